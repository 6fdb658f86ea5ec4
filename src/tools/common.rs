//! What several tools read and say in the same way.

use std::fmt::Display;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::{Engine, OpenProject};
use crate::error::{Error, Result, quoted};
use crate::memory::{Kind, LONGEST_TEXT, MemoryId};
use crate::redact::Redactor;
use crate::scope::SessionId;
use crate::store::ProjectRow;

/// The longest name, title or id an argument may be, in bytes. Arbitrary.
const SHORT: usize = 500;

/// Secrets of one rule that were replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Redaction {
    /// The rule's name.
    pub rule: String,
    /// How many.
    pub count: usize,
}

/// Returns findings by rule as an answer shows them.
pub fn redactions(found: Vec<(String, usize)>) -> Vec<Redaction> {
    found.into_iter().map(|(rule, count)| Redaction { rule, count }).collect()
}

/// Adds `count` of `rule` to `counts`.
pub fn add(counts: &mut Vec<Redaction>, rule: &str, count: usize) {
    match counts.iter_mut().find(|each| each.rule == rule) {
        Some(each) => each.count += count,
        None => counts.push(Redaction { rule: rule.to_owned(), count }),
    }
}

/// Reads the name of a session, in `argument`. A secret in it is replaced, the same way each time: the name that was
/// given finds what was saved under it, and is not stored.
pub fn session(redactor: &Redactor, argument: &str, name: &str) -> Result<SessionId> {
    let name = redactor.redact(name).text;
    SessionId::parse(&name).ok_or_else(|| {
        Error::bad_input(format!("`{argument}` is empty, longer than 200 bytes or holds control characters"))
            .hint("use a short plain name, such as `auth-refactor`")
    })
}

/// Reads the id of a memory.
pub fn memory_id(argument: &str, text: &str) -> Result<MemoryId> {
    MemoryId::parse(text).ok_or_else(|| {
        Error::bad_input(format!("`{argument}` is not the id of a memory: `{}`", quoted(text))).hint(
            "ids come with search results: `m` and 13 letters and digits, or SESSION#NUMBER of a message",
        )
    })
}

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

/// Returns how many there are, with the words for one or for another number: `1 memory`, `2 memories`.
pub fn counted<N: Copy + PartialEq + From<u8> + Display>(count: N, one: &str, several: &str) -> String {
    format!("{count} {}", if count == N::from(1) { one } else { several })
}

/// Returns a number with its thousands apart: `1,204`.
pub fn thousands(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().map_or(0_u64, |number| number).to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// Returns the first few of `items`, and how many more there are.
pub fn some(items: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut text =
        items.iter().take(SHOWN).map(|item| format!("`{}`", quoted(item))).collect::<Vec<_>>().join(", ");
    if items.len() > SHOWN {
        text += &format!(" and {} more", items.len() - SHOWN);
    }
    text
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
