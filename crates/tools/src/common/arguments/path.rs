//! Where a value stands in the arguments of a call.

use std::fmt;

use tiro_base::error::quoted;

/// The path of a value in the arguments, displayed like `messages[3].role`.
pub(super) enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    /// A field that is given under the first name and is called by the second.
    Also(&'a Path<'a>, &'a str, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// Returns the name of the argument that the value belongs to; empty for all arguments together.
    pub fn name(&self) -> &str {
        match self {
            Path::Root => "",
            Path::Field(_, name) | Path::Also(_, _, name) => name,
            Path::Item(parent, _) => parent.name(),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) | Path::Also(Path::Root, name, _) => f.write_str(&quoted(name)),
            Path::Field(parent, name) | Path::Also(parent, name, _) => write!(f, "{parent}.{}", quoted(name)),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
