//! Shows a memory in one line. Lists of references and commits contain such lines.

use serde::Serialize;

use tiro_base::envelope;
use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_base::memory::{Memory, MemoryKey, marked};
use tiro_base::scope::{AuthorId, Scope};
use tiro_base::times;
use tiro_store::ReadStore;

/// The most memories that a list of references or commits shows.
const MOST_BESIDE: usize = 20;

/// The most bytes of a memory's line.
const LINE: usize = 160;

/// A memory in one line.
#[derive(Debug, Serialize)]
pub struct Brief {
    /// Its id.
    pub id: String,
    /// The memory's kind.
    pub kind: String,
    /// The commit's full SHA, or the id that a client gave a message.
    pub source_id: Option<String>,
    /// When it was made, RFC 3339.
    pub time: String,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Its title, or the beginning of its text.
    pub line: String,
}

/// Returns one line for each of the first [`MOST_BESIDE`] memories of `keys`. If there are more, adds a notice to
/// `notices`. `which` is the clause after "memories" in the notice, such as `that refer to it`.
pub async fn briefs(
    store: &dyn ReadStore,
    scope: &Scope,
    mut keys: Vec<MemoryKey>,
    which: &str,
    notices: &mut Vec<String>,
) -> Result<Vec<Brief>> {
    let left_out = keys.len().saturating_sub(MOST_BESIDE);
    if left_out > 0 {
        notices.push(format!(
            "not listed: {} {which} (at most {MOST_BESIDE} are listed)",
            counted(left_out, "memory", "memories")
        ));
    }
    keys.truncate(MOST_BESIDE);
    let memories = store.memories(scope, keys).await?.into_iter();
    Ok(memories.map(|memory| brief(memory, &scope.reader)).collect())
}

fn brief(memory: Memory, reader: &AuthorId) -> Brief {
    Brief {
        id: memory.id.to_string(),
        kind: memory.kind.to_string(),
        source_id: memory.source_id.as_deref().map(escaped),
        time: times::show_time(memory.time),
        author: memory.author.other_than(reader),
        line: marked(
            memory.title.as_deref().and_then(line).or_else(|| line(&memory.text)).unwrap_or_default(),
            memory.is_damaged,
        ),
    }
}

/// Returns `text` with invisible and control characters [escaped](envelope::escape).
pub fn escaped(text: &str) -> String {
    envelope::escape(text).into_owned()
}

/// Returns the first line of `text` that contains a letter or digit, cut to at most [`LINE`] bytes after a whole word.
/// Returns `None` if there is no such line.
pub fn line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| line.contains(char::is_alphanumeric))?;
    let line = envelope::one_line(line);
    if line.len() <= LINE {
        return Some(line.into_owned());
    }
    let cut = &line[..line.floor_char_boundary(LINE)];
    let cut = cut.rfind(' ').map_or(cut, |space| &cut[..space]);
    Some(format!("{}…", cut.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_first_that_says_something() {
        assert_eq!(line("\n---\n  The cache.\nMore.").as_deref(), Some("The cache."));
        assert_eq!(line(" \n*\n"), None);
        let long = line(&"word ".repeat(60)).unwrap();
        assert!(long.ends_with("word…") && long.len() <= LINE + 3, "{long}");
        assert_eq!(line(&"語".repeat(200)).unwrap().chars().count(), LINE / 3 + 1);
    }
}
