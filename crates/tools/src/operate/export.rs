//! Exports every memory of the project and of the owner.

use serde::Serialize;

use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::Memory;
use tiro_base::scope::Scope;
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;

/// The number of memories that are read in one query.
const PAGE: usize = 500;

/// A memory as one line of the export.
#[derive(Debug, Serialize)]
pub struct Exported {
    /// The memory's id.
    pub id: String,
    /// The id that the client or git gave it.
    pub source_id: Option<String>,
    /// The kind, such as `message` or `commit`.
    pub kind: String,
    /// Where the text came from.
    pub provenance: String,
    /// The conversation it belongs to.
    pub session_id: Option<String>,
    /// The role of the speaker.
    pub role: Option<String>,
    /// The speaker's name.
    pub speaker: Option<String>,
    /// Who shared it, if that isn't the one who exports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// A tag.
    pub topic: Option<String>,
    /// The file it is about.
    pub path: Option<String>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The hash of the commit that was checked out when the memory was made.
    pub head_sha: Option<String>,
    /// When it was said or committed, RFC 3339.
    pub time: String,
    /// The importance that its author gave, from 0 to 1.
    pub importance: Option<f64>,
    /// Whether it is marked important.
    pub important: bool,
    /// Tokens of the text (o200k).
    pub tokens: i64,
    /// Whether the text or another part is damaged, so that it differs from the stored original.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// The text, verbatim except for replaced secrets.
    pub text: String,
}

/// Calls `each` with every memory that is not forgotten: first the project's memories, then the owner's, the newest
/// first.
pub async fn run(
    engine: &Engine,
    caller: &Caller,
    mut each: impl FnMut(&Exported) -> Result<()>,
) -> Result<()> {
    let project = caller.project(engine).await?;
    let owners = &engine.installation().await?.registry;
    for (store, scope) in
        [(project.store.as_ref(), &project.scope), (owners.memories().as_ref(), owners.scope())]
    {
        let mut after = None;
        loop {
            let page = store.list(scope, &Filter::default(), after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.key);
            for memory in page {
                each(&exported(scope, memory))?;
            }
        }
    }
    Ok(())
}

fn exported(scope: &Scope, memory: Memory) -> Exported {
    let is_own = memory.author == scope.reader;
    Exported {
        author: (!is_own).then(|| memory.author.shown().into_owned()),
        id: memory.id.to_string(),
        source_id: memory.source_id,
        kind: memory.kind.to_string(),
        provenance: memory.provenance.to_string(),
        session_id: memory.session.map(|session| session.to_string()),
        role: memory.role.map(|role| role.to_string()),
        speaker: memory.speaker,
        title: memory.title,
        topic: memory.topic,
        path: memory.path,
        branch: memory.branch,
        head_sha: memory.head_sha,
        time: times::show_time(memory.time),
        importance: memory.importance,
        important: memory.marked,
        tokens: memory.tokens,
        damaged: memory.is_damaged,
        text: memory.text,
    }
}
