//! The messages of a session as summaries are made of them: read with their texts, turned into sources, counted.

use std::collections::BTreeMap;

use crate::engine::OpenProject;
use crate::error::{Error, Kind, Result, quoted};
use crate::memory::{Millis, Role};
use crate::scope::SessionId;
use crate::store::MessageRow;
use crate::summarize::Source;
use crate::tokens::Tokenizer;

/// Returns the messages of the session between two places and two times, in order.
///
/// Errors where there are none.
pub(super) async fn range(
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
            .hint("`list_sessions` names those there are")),
        true => Err(Error::not_found(format!("no messages of session `{}` in that range", quoted(session)))
            .hint("leave the range out, or widen it")),
    }
}

/// Returns the texts of the rows, in order; what is gone by now is left out.
pub(super) async fn texts(project: &OpenProject, rows: &[MessageRow]) -> Result<Vec<(MessageRow, String)>> {
    let seqs = rows.iter().map(|row| row.seq).collect();
    let mut texts: BTreeMap<i64, String> =
        project.store.texts(&project.scope, seqs).await?.into_iter().collect();
    Ok(rows.iter().filter_map(|row| Some((row.clone(), texts.remove(&row.seq)?))).collect())
}

/// Returns the messages as sources.
pub(super) fn sources(texts: &[(MessageRow, String)]) -> Vec<Source<'_>> {
    texts
        .iter()
        .map(|(row, text)| Source {
            ordinal: row.ordinal,
            speaker: row.speaker.as_deref().unwrap_or_else(|| row.role.map_or("", Role::as_str)),
            role: row.role.unwrap_or(Role::User),
            time: row.time,
            text,
        })
        .collect()
}

/// Returns the o200k tokens of `text`.
pub(super) fn count(text: &str) -> usize {
    Tokenizer::O200k.count(text).high
}

/// Does what takes long where nobody waits for it to answer others.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::new(Kind::Store, "summarising stopped").source(error))
}
