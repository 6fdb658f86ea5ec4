//! The messages of a session as summaries are made of them: read with their texts, turned into sources, counted.

use std::collections::BTreeMap;

use crate::engine::OpenProject;
use crate::error::{Error, Kind, Result};
use crate::memory::Role;
use crate::store::MessageRow;
use crate::summarize::Source;
use crate::tokens::Tokenizer;

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
