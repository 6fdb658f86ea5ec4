//! Says how much the project remembers.

use serde::Serialize;

use crate::engine::{Embedding, Engine};
use crate::error::Result;

/// What `tiro stats` answers.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The project's name.
    pub project: String,
    /// The project's id.
    pub project_id: String,
    /// Where its store lies.
    pub store: String,
    /// Living memories by kind.
    pub kinds: Vec<KindCount>,
    /// Conversations.
    pub sessions: i64,
    /// Pieces of text with an embedding.
    pub embedded: i64,
    /// Pieces that wait for one.
    pub pending: i64,
    /// Memories that are forgotten and can be brought back.
    pub forgotten: i64,
    /// Bytes of the store on disk.
    pub bytes_on_disk: u64,
    /// Memories that belong to the owner, in all projects.
    pub owner_memories: i64,
    /// The vector space of the embedder, where one is installed.
    pub embedder: Option<String>,
}

/// How many memories of one kind there are.
#[derive(Debug, Serialize)]
pub struct KindCount {
    /// The kind.
    pub kind: String,
    /// How many.
    pub memories: i64,
    /// Bytes of their texts.
    pub bytes: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
}

/// Counts; nothing is changed.
pub async fn run(engine: &Engine) -> Result<Output> {
    let project = engine.project().await?;
    let owners = &engine.installation().await?.registry;
    let stats = project.store.stats(&project.scope).await?;
    let owner_stats = owners.memories().stats(owners.scope()).await?;
    let embedder = match engine.embedding().await {
        Embedding::Ready(embedder) => Some(embedder.space().to_string()),
        Embedding::Missing(_) => None,
    };
    let kinds = stats.kinds.into_iter().map(|each| KindCount {
        kind: each.kind,
        memories: each.memories,
        bytes: each.bytes,
        tokens: each.tokens,
    });
    Ok(Output {
        project: project.name.clone(),
        project_id: project.scope.project.as_str().to_owned(),
        store: project.store.path().display().to_string(),
        kinds: kinds.collect(),
        sessions: stats.sessions,
        embedded: stats.embedded,
        pending: stats.pending,
        forgotten: stats.tombstoned,
        bytes_on_disk: stats.file_bytes,
        owner_memories: owner_stats.kinds.iter().map(|each| each.memories).sum(),
        embedder,
    })
}

impl Output {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        let mut text = format!("project {} ({})\nstore {}\n\n", self.project, self.project_id, self.store);
        text += &format!("{:14} {:>9} {:>12} {:>12}\n", "kind", "memories", "bytes", "tokens");
        for each in &self.kinds {
            text +=
                &format!("{:14} {:>9} {:>12} {:>12}\n", each.kind, each.memories, each.bytes, each.tokens);
        }
        let embedder =
            self.embedder.as_deref().unwrap_or("none: lexical search only; run `tiro model install`");
        text += &format!(
            "\nsessions {}, embedded pieces {}, pending {}, forgotten {}, bytes on disk {}, memories of the owner {}\n\
             embedder {embedder}",
            self.sessions,
            self.embedded,
            self.pending,
            self.forgotten,
            self.bytes_on_disk,
            self.owner_memories,
        );
        text
    }
}
