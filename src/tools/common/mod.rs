//! Reading arguments and answering, as several operations do it in the same way.

pub(crate) mod arguments;
pub(crate) mod beginning;
pub(crate) mod schema;
pub mod tool;

use std::path::Path;

use crate::engine::Engine;
use crate::error::{Error, Result, quoted};
use crate::humanize::counted;
use crate::memory::{Kind, LONGEST_TEXT};
use crate::project::OpenProject;
use crate::redact::Redaction;
use crate::store::ProjectRow;

/// The longest name, title or id an argument may be, in bytes. Arbitrary.
const SHORT: usize = 500;

/// Reads the budget of an answer in tokens, `usual` where none is given; the second says where it was made another.
///
/// Less than `least` holds nothing and is an error; `most` is what clients don't cut.
pub fn max_tokens(
    asked: Option<usize>,
    usual: usize,
    least: usize,
    most: usize,
) -> Result<(usize, Option<String>)> {
    match asked.unwrap_or(usual.clamp(least, most)) {
        less if less < least => {
            Err(Error::bad_input(format!("argument `max_tokens` is {less}, out of range"))
                .hint(format!("give {least} or more")))
        }
        more if more > most => {
            Ok((most, Some(format!("max_tokens is {most} at most, since clients cut longer answers"))))
        }
        budget => Ok((budget, None)),
    }
}

/// What agents are asked to store, by the words they are asked in, and the kinds that these are.
const ALSO_CALLED: [(&str, Kind); 2] = [("finding", Kind::Research), ("preference", Kind::Fact)];

/// Reads the name of a kind, or one that it is also called by.
pub fn kind(argument: &str, word: &str) -> Result<Kind> {
    let also = || ALSO_CALLED.iter().find(|(name, _)| *name == word.trim()).map(|(_, kind)| *kind);
    Kind::parse(word.trim()).or_else(also).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        Error::bad_input(format!("`{argument}` is not a kind: `{}`", quoted(word)))
            .hint(format!("use {}", known.join(", ")))
    })
}

/// Checks that `text` is no longer than a memory may be.
pub fn whole(argument: &str, text: &str) -> Result<()> {
    if text.len() <= LONGEST_TEXT {
        return Ok(());
    }
    let (bytes, most) = (text.len(), LONGEST_TEXT >> 20);
    Err(Error::bad_input(format!("`{argument}` has {bytes} bytes, and a memory {most} MB at most"))
        .hint("save it in parts, or what matters of it; nothing was stored"))
}

/// Reads a name, a title or an id: not empty, at most 500 bytes.
pub fn short(argument: &str, text: &str) -> Result<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > SHORT {
        return Err(Error::bad_input(format!("`{argument}` is empty or longer than {SHORT} bytes"))
            .hint("shorten it, or leave it out"));
    }
    Ok(text.to_owned())
}

/// Returns what to say where nothing is remembered of the project yet: what begins its memory.
pub async fn nothing_yet(engine: &Engine, project: &OpenProject) -> Result<String> {
    let registry = &engine.installation().await?.registry;
    let original = match &project.original {
        Some(original) => Some(original.clone()),
        None => registry.original(&project.scope.project).await?,
    };
    if let Some(original) = original {
        let (copied, way_out) = (copied_from(&original), share(&original, &project.root));
        return Ok(format!("nothing is remembered of this project yet: it is {copied}; {way_out}"));
    }
    let import = if project.repository.is_some() { ", `tiro import git` with its commits" } else { "" };
    Ok(format!(
        "nothing is remembered of this project yet; save_messages and store_memory begin its memory{import}"
    ))
}

/// Returns the words for a repository that was copied from that of `original`.
pub fn copied_from(original: &ProjectRow) -> String {
    let place = original.places.first().map(|place| place.strip_suffix("/.git").unwrap_or(place));
    let place = place.map_or(String::new(), |place| format!(" in {place}"));
    format!("a copy of {}{place}, with a memory of its own", original.name)
}

/// Returns the words for letting the copy in `root` share the memory of `original`.
pub fn share(original: &ProjectRow, root: &Path) -> String {
    let (id, root) = (original.id.as_str(), root.display());
    format!("`tiro projects link {id} {root}` lets it share the other's")
}

/// Returns the branch and the commit checked out, as far as they can be told.
pub fn head(project: &OpenProject) -> (Option<String>, Option<String>) {
    let head = project.repository.as_ref().and_then(|repository| repository.head().ok());
    head.map_or((None, None), |head| (head.branch, head.commit.map(|sha| sha.to_string())))
}

/// Returns what a write has to say beside its result, one line each; empty where there is nothing.
pub fn footnotes(redactions: &[Redaction], pending: usize, notices: &[String]) -> String {
    let mut text = String::new();
    if !redactions.is_empty() {
        let shown: Vec<String> =
            redactions.iter().map(|each| format!("{} {}", each.count, each.rule)).collect();
        text += &format!("\nSecrets replaced: {}.", shown.join(", "));
    }
    if pending > 0 {
        let one = "piece has no embedding yet; only keywords find it";
        let several = "pieces have no embedding yet; only keywords find them";
        text += &format!("\n{}.", counted(pending, one, several));
    }
    for notice in notices {
        text += &format!("\nNote: {notice}.");
    }
    text
}
