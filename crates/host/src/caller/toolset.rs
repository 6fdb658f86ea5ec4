//! Groups of tools. A caller may be offered only some of the groups.

use std::str::FromStr;

use tiro_base::error::{Error, Result, quoted};

/// A group of tools. The description of each tool takes tokens from the model's context, so a server can leave out some
/// groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolset {
    /// Searching, storing and forgetting memories.
    Memory,
    /// Asking other models.
    Consult,
    /// Assembling the context of long conversations.
    Context,
    /// Storing parts of a conversation for later.
    Stash,
}

/// The toolsets that a server offers. The default is all toolsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolsets(Vec<Toolset>);

impl Toolsets {
    /// Returns whether these toolsets include `toolset`.
    pub fn has(&self, toolset: Toolset) -> bool {
        self.0.contains(&toolset)
    }
}

impl Default for Toolsets {
    fn default() -> Toolsets {
        Toolsets(vec![Toolset::Memory, Toolset::Consult, Toolset::Context, Toolset::Stash])
    }
}

/// Reads names separated by commas: `memory,consult`.
impl FromStr for Toolsets {
    type Err = Error;

    fn from_str(names: &str) -> Result<Toolsets> {
        let toolset = |name: &str| match name.trim() {
            "memory" => Ok(Toolset::Memory),
            "consult" => Ok(Toolset::Consult),
            "context" => Ok(Toolset::Context),
            "stash" => Ok(Toolset::Stash),
            other => Err(Error::bad_input(format!("there is no toolset `{}`", quoted(other)))
                .hint("choose from memory, consult, context and stash, separated by commas")),
        };
        names.split(',').map(toolset).collect::<Result<Vec<Toolset>>>().map(Toolsets)
    }
}
