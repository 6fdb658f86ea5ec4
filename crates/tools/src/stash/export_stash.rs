//! Exports every segment of the stash with its full text.

use serde::Serialize;

use super::hidden_segments;
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::MemoryKey;
use tiro_base::times::show_time;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;

/// The number of segments that are read in one query.
const PAGE: usize = 200;

/// A segment as one line of the export.
#[derive(Debug, Serialize)]
pub struct Exported {
    /// Its id.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its conversation.
    pub session_id: Option<String>,
    /// Its number in that conversation.
    pub number: Option<i64>,
    /// Its topic.
    pub topic: Option<String>,
    /// Its file.
    pub source: Option<String>,
    /// When it was made, RFC 3339.
    pub time: String,
    /// When it was stashed, RFC 3339.
    pub stashed_at: String,
    /// When it expires, RFC 3339.
    pub expires_at: Option<String>,
    /// Whether it never expires.
    pub protected: bool,
    /// The reason why the segment is in the stash: call, pruning or compaction.
    pub cause: &'static str,
    /// The memories that it refers to.
    pub references: Vec<String>,
    /// Tokens of the text (o200k).
    pub tokens: i64,
    /// Whether the text or another part is damaged, so that it differs from the stored original.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// The text, verbatim except for replaced secrets.
    pub text: String,
}

/// Calls `each` with every segment, in the order in which the texts were stored.
pub async fn run(
    engine: &Engine,
    caller: &Caller,
    mut each: impl FnMut(&Exported) -> Result<()>,
) -> Result<()> {
    let project = caller.project(engine).await?;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    // Expired segments are not exported.
    let filter =
        Filter { stash: Some(hidden_segments::hidden(engine, &project).await?), ..Filter::default() };
    let mut after: Option<MemoryKey> = None;
    loop {
        let rows = store.list_stash(scope, &filter, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(()) };
        after = Some(last.key);
        let memories = store.memories(scope, rows.iter().map(|row| row.key).collect()).await?;
        for row in rows {
            let Some(memory) = memories.iter().find(|memory| memory.key == row.key) else { continue };
            let to = store.refers_to(scope, row.key).await?;
            let references = store.memories(scope, to).await?;
            each(&Exported {
                id: row.id.to_string(),
                kind: row.kind.to_string(),
                session_id: row.session.map(|session| session.to_string()),
                number: row.ordinal,
                topic: row.topic,
                source: memory.path.clone(),
                time: show_time(row.time),
                stashed_at: show_time(row.stashed_at),
                expires_at: row.expires_at.map(show_time),
                protected: row.is_protected,
                cause: row.cause.as_str(),
                references: references.iter().map(|memory| memory.id.to_string()).collect(),
                tokens: row.tokens,
                damaged: memory.is_damaged,
                text: memory.text.clone(),
            })?;
        }
    }
}
