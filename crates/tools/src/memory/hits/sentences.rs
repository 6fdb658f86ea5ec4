//! Sentences about the hits of a search.

use tiro_base::envelope;
use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_base::memory::{Memory, MemoryId};
use tiro_base::times;
use tiro_host::project::OpenProject;
use tiro_store::Sizes;

/// The maximum number of pairs of notes about the same thing that an answer names. Arbitrary.
const MOST_ALIKE: usize = 3;

/// Returns what was searched: the kinds and sessions to which the search is limited, or how much the project remembers,
/// and the number of other projects. Returns `None` if the answer is not to say it.
pub async fn searched(
    project: &OpenProject,
    covered: &[String],
    kinds: Option<&[String]>,
    others: usize,
    is_said: bool,
) -> Result<Option<String>> {
    if !is_said {
        return Ok(None);
    }
    let kinds = kinds.filter(|kinds| !kinds.is_empty());
    let kinds = kinds.map(|kinds| format!("memories of the kind {}", envelope::names(kinds)));
    let is_all = covered == ["all"];
    let sessions = (!is_all).then(|| match covered.len() {
        1 => format!("session {}", envelope::names(covered)),
        count => format!("{count} sessions"),
    });
    if is_all && kinds.is_none() {
        let Sizes { commits, messages, notes, sessions, .. } = project.store.sizes(&project.scope).await?;
        let others = match others {
            0 => String::new(),
            others => format!(", and {}", counted(others, "other project", "other projects")),
        };
        return Ok(Some(format!(
            "{}, {} and {} in {}{others}",
            counted(messages, "message", "messages"),
            counted(commits, "commit", "commits"),
            counted(notes, "note", "notes"),
            counted(sessions, "session", "sessions"),
        )));
    }
    Ok(Some(kinds.into_iter().chain(sessions).collect::<Vec<_>>().join(" in ")))
}

/// Returns a notice for each pair of notes about the same thing that is among the hits, the newer first.
pub fn alike<'m>(pairs: &[[MemoryId; 2]], hits: impl Iterator<Item = &'m Memory>) -> Vec<String> {
    let hits: Vec<&Memory> = hits.collect();
    let named = |id: &MemoryId| {
        let memory = hits.iter().find(|memory| memory.id == *id)?;
        Some(format!("`{id}` ({})", times::minute(memory.time)))
    };
    let pair = |[newer, older]: &[MemoryId; 2]| {
        let (newer, older) = (named(newer)?, named(older)?);
        Some(format!(
            "{newer} and {older} are about the same thing; where they disagree, the first is the later one"
        ))
    };
    pairs.iter().filter_map(pair).take(MOST_ALIKE).collect()
}
