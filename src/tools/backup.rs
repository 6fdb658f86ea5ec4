//! Copies the project's store to a file, and merges such a file back.

use std::path::PathBuf;

use serde::Serialize;

use super::common::counted;
use crate::engine::Engine;
use crate::error::Result;
use crate::memory::{Draft, Identity, MemoryId};
use crate::remember::prepare;
use crate::store::{ForeignMemory, Outcome, PreparedMemory, Store};

/// Memories merged by one write.
const BATCH: usize = 500;

/// What `tiro backup` answers.
#[derive(Debug, Serialize)]
pub struct Backup {
    /// The file written.
    pub file: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Copies the project's store to `file` while others go on working.
pub async fn back_up(engine: &Engine, file: PathBuf) -> Result<Backup> {
    let project = engine.project().await?;
    project.store.back_up(&project.scope, &file).await?;
    let bytes = std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    Ok(Backup { file: file.display().to_string(), bytes })
}

/// What `tiro restore` answers.
#[derive(Debug, Default, Serialize)]
pub struct Restored {
    /// Memories that were new here.
    pub added: usize,
    /// Memories that were here already.
    pub known: usize,
    /// Memories whose id is taken by another text here, which stays.
    pub conflicts: usize,
    /// Memories that were forgotten here and stay so.
    pub forgotten: usize,
    /// Pieces not embedded yet.
    pub pending: usize,
}

/// Merges the memories of the backup `file` into the project by id: what is here stays, what is new is added.
pub async fn restore(
    engine: &Engine,
    file: PathBuf,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Restored> {
    let project = engine.project().await?;
    let redactor = &engine.installation().await?.redactor;
    let foreign = Store::read_foreign(&project.scope, &file).await?;
    let all = foreign.len();
    let mut restored = Restored::default();
    let mut marked: Vec<MemoryId> = Vec::new();
    let mut foreign = foreign.into_iter().peekable();
    let mut done = 0;
    while foreign.peek().is_some() {
        let batch: Vec<ForeignMemory> = foreign.by_ref().take(BATCH).collect();
        done += batch.len();
        marked.extend(batch.iter().filter(|each| each.memory.marked).map(|each| each.memory.id.clone()));
        let prepared = batch.into_iter().map(|each| {
            let id = each.memory.id.clone();
            let (memory, _) = prepare(redactor, draft(each), &mut || engine.random());
            // The id was made from a key that the backup doesn't hold, and names the same memory here.
            PreparedMemory { id, ..memory }
        });
        let prepared = prepared.collect();
        let receipt = project.store.save(&project.scope, prepared, engine.now(), |_| {}).await?;
        restored.added += receipt.count(Outcome::Stored);
        restored.known += receipt.count(Outcome::AlreadyStored);
        restored.conflicts += receipt.count(Outcome::Conflict);
        restored.forgotten += receipt.count(Outcome::Forgotten);
        restored.pending += receipt.pending;
        progress(done, all);
    }
    project.store.mark(&project.scope, &marked, true, None).await?;
    engine.wrote();
    Ok(restored)
}

fn draft(foreign: ForeignMemory) -> Draft {
    let ForeignMemory { memory, references, lead, files, commit } = foreign;
    Draft {
        kind: memory.kind,
        provenance: memory.provenance,
        lead: lead.and_then(|lead| memory.text.get(..lead)).map(str::to_owned),
        text: memory.text,
        indexed: memory.indexed,
        session: memory.session,
        role: memory.role,
        speaker: memory.speaker,
        title: memory.title,
        topic: memory.topic,
        source_id: memory.source_id,
        path: memory.path,
        files,
        occurrence: None,
        branch: memory.branch,
        head_sha: memory.head_sha,
        time: memory.time,
        importance: memory.importance,
        references,
        identity: Identity::Fresh,
        commit,
    }
}

impl Backup {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        format!("Wrote {} ({} bytes).", self.file, self.bytes)
    }
}

impl Restored {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        format!(
            "Added {}; {} here already, {} here, {} forgotten here. {} for embedding.",
            counted(self.added, "memory", "memories"),
            counted(self.known, "was", "were"),
            counted(self.conflicts, "differs and was left as it is", "differ and were left as they are"),
            counted(self.forgotten, "is", "are"),
            counted(self.pending, "piece waits", "pieces wait"),
        )
    }
}
