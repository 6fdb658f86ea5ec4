//! Prepares the messages of a session as the input of summaries: reads them with their texts, turns them into sources,
//! and counts their tokens.

use std::collections::{BTreeMap, BTreeSet};

use crate::project::OpenProject;
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::humanize::some;
use tiro_base::memory::{DAMAGED, MemoryKey, Millis, Role};
use tiro_base::scope::{AuthorId, SessionId};
use tiro_digest::summarize::{Corrected, Source};
use tiro_store::MessageRow;
use tiro_text::tokens;

/// Returns the messages of the session between two ordinals and between two times (milliseconds), in order. `None`
/// means no bound.
///
/// Errors with [`Kind::NotFound`] if there are no such messages.
pub async fn range(
    project: &OpenProject,
    session: &SessionId,
    places: (Option<i64>, Option<i64>),
    times: (Option<Millis>, Option<Millis>),
) -> Result<Vec<MessageRow>> {
    let from = places.0.unwrap_or(0).max(0);
    let mut rows = project.store.session_messages(&project.scope, session, from).await?;
    let was_empty = rows.is_empty() && from == 0;
    rows.retain(|row| {
        places.1.is_none_or(|to| row.ordinal <= to)
            && times.0.is_none_or(|since| row.time >= since)
            && times.1.is_none_or(|until| row.time <= until)
    });
    match rows.is_empty() {
        false => Ok(rows),
        true if was_empty => Err(Error::not_found(format!("no messages in session `{}`", quoted(session)))
            .hint("`list_sessions` lists this project's sessions")),
        true => Err(Error::not_found(format!("no messages of session `{}` in that range", quoted(session)))
            .hint("leave the range out, or widen it")),
    }
}

/// Returns the rows with their texts, in order. A row says whether its text is damaged. Messages that were forgotten
/// after the rows were read are left out.
pub async fn texts(project: &OpenProject, rows: &[MessageRow]) -> Result<Vec<(MessageRow, String)>> {
    let keys = rows.iter().map(|row| row.key).collect();
    let read = project.store.checked_texts(&project.scope, keys).await?;
    let mut texts: BTreeMap<MemoryKey, (String, bool)> =
        read.into_iter().map(|(key, text, is_damaged)| (key, (text, is_damaged))).collect();
    let with_text = |row: &MessageRow| {
        let (text, is_damaged) = texts.remove(&row.key)?;
        Some((MessageRow { is_damaged, ..row.clone() }, text))
    };
    Ok(rows.iter().filter_map(with_text).collect())
}

/// Returns the names of the authors of messages, in order, if there are others than `reader`.
pub fn others(rows: &[MessageRow], reader: &AuthorId) -> Option<String> {
    if rows.iter().all(|row| row.author == *reader) {
        return None;
    }
    let names: BTreeSet<&str> = rows.iter().map(|row| row.author.as_str()).collect();
    let shown = names.into_iter().map(|name| AuthorId::new(name).shown().into_owned());
    Some(shown.collect::<Vec<_>>().join(", "))
}

/// Returns `summary`, which summarises the messages `texts`. If some messages are damaged, a last line says that they
/// are not summarised.
pub fn without_damaged(summary: String, texts: &[(MessageRow, String)]) -> String {
    let damaged: Vec<String> =
        texts.iter().filter(|(row, _)| row.is_damaged).map(|(row, _)| format!("#{}", row.ordinal)).collect();
    match damaged.is_empty() {
        true => summary,
        false => format!("{summary}\n[{} left out; {DAMAGED}]", some(&damaged)).trim_start().to_owned(),
    }
}

/// Returns the messages as sources of a summary, with the statements in each that later messages corrected. `corrected`
/// is empty or contains one list for each message.
pub fn corrected<'a>(texts: &'a [(MessageRow, String)], corrected: &'a [Vec<Corrected>]) -> Vec<Source<'a>> {
    let mut sources = sources(texts);
    sources.iter_mut().zip(corrected).for_each(|(source, corrected)| source.corrected = corrected);
    sources
}

/// Returns the messages as sources of a summary. The source of a damaged message has no text, so that nothing is
/// concluded from it.
pub fn sources(texts: &[(MessageRow, String)]) -> Vec<Source<'_>> {
    texts
        .iter()
        .map(|(row, text)| Source {
            ordinal: row.ordinal,
            speaker: row.speaker.as_deref().unwrap_or_else(|| row.role.map_or("", Role::as_str)),
            role: row.role.unwrap_or(Role::User),
            time: row.time,
            text: if row.is_damaged { "" } else { text },
            corrected: &[],
        })
        .collect()
}

/// Returns how many o200k tokens `text` has.
pub fn count(text: &str) -> usize {
    tokens::count(text)
}

/// Runs `work`, which takes long, on a separate thread, so that it delays no other task.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::new(Kind::Store, "summarising stopped").source(error))
}

/// The number of bytes of a message that are read. The text after them is mostly pasted. Arbitrary.
const MOST_READ: usize = 4096;

/// Returns the instructions and answers among the messages, without pasted text.
pub fn instructions_and_answers(texts: &[(MessageRow, String)]) -> Vec<(MessageRow, String)> {
    let talk = texts.iter().filter(|(row, _)| matches!(row.role, Some(Role::User | Role::Assistant)));
    let kept = talk.map(|(row, text)| (row.clone(), without_pasted(text)));
    kept.filter(|(_, text)| !text.is_empty()).collect()
}

/// Returns the beginning of a message without its blocks of code.
fn without_pasted(text: &str) -> String {
    let text = &text[..text.floor_char_boundary(MOST_READ)];
    let mut is_inside = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_inside ^= is_fence;
        !is_fence && !is_inside
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasted_code_is_left_out_of_the_memory_of_a_session() {
        assert_eq!(without_pasted("Look:\n```rust\nfn f() {}\n```\nWhy?"), "Look:\nWhy?");
        assert_eq!(without_pasted("Look:\n  ```\nnever closed"), "Look:");
        assert_eq!(without_pasted(&"ä".repeat(MOST_READ)).len(), MOST_READ);
    }
}
