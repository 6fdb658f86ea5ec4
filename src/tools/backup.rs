//! Copies the project's store to a file, and merges such a file back.

use std::path::PathBuf;

use serde::Serialize;

use super::common::{self, counted};
use crate::engine::Engine;
use crate::error::Result;
use crate::memory::{Draft, Identity, LONGEST_TEXT, MemoryId};
use crate::redact::Redactor;
use crate::remember::prepare;
use crate::store::{Foreign, ForeignMemory, Outcome, PreparedMemory};

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
    /// Memories left out because they are longer than a memory may be.
    pub too_long: usize,
    /// Entries left out because they are no memories: of an unknown kind, without an id, at an impossible time.
    pub malformed: usize,
    /// Secrets replaced that the backup held, by rule.
    pub redactions: Vec<common::Redaction>,
    /// Pieces not embedded yet.
    pub pending: usize,
}

/// Merges the memories of the backup `file` into the project by id: what is here stays, what is new is added.
///
/// What comes in is held to what holds for every write, wherever the file comes from: see `store/foreign.rs`.
pub async fn restore(
    engine: &Engine,
    file: PathBuf,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Restored> {
    let project = engine.project().await?;
    let redactor = &project.redactor;
    let mut foreign = Foreign::open(&project.scope, &file).await?;
    let mut restored = Restored::default();
    let mut done = 0;
    while let Some(page) = foreign.next().await? {
        done += page.memories.len() + page.too_long + page.malformed;
        restored.too_long += page.too_long;
        restored.malformed += page.malformed;
        let mut marked: Vec<MemoryId> = Vec::new();
        let mut prepared = Vec::with_capacity(page.memories.len());
        for each in page.memories {
            let (id, is_marked) = (each.memory.id.clone(), each.memory.marked);
            let Some(draft) = draft(redactor, each) else {
                restored.malformed += 1;
                continue;
            };
            let (memory, found) = prepare(redactor, draft, &mut || engine.random());
            found.iter().for_each(|(rule, count)| common::add(&mut restored.redactions, rule, *count));
            marked.extend(is_marked.then(|| id.clone()));
            // The id was made from a key that the backup doesn't hold, and names the same memory here.
            prepared.push(PreparedMemory { id, ..memory });
        }
        let receipt = project.store.save(&project.scope, prepared, engine.now(), |_| {}).await?;
        project.store.mark(&project.scope, &marked, true, None).await?;
        restored.added += receipt.count(Outcome::Stored);
        restored.known += receipt.count(Outcome::AlreadyStored);
        restored.conflicts += receipt.count(Outcome::Conflict);
        restored.forgotten += receipt.count(Outcome::Forgotten);
        restored.pending += receipt.pending;
        progress(done, foreign.all);
    }
    engine.wrote();
    Ok(restored)
}

/// Returns what to store of a memory of the backup; `None` where its conversation's name is none once redacted.
fn draft(redactor: &Redactor, foreign: ForeignMemory) -> Option<Draft> {
    let ForeignMemory { memory, references, lead, files, commit } = foreign;
    let session = match &memory.session {
        Some(name) => Some(common::session(redactor, "session", name.as_str()).ok()?),
        None => None,
    };
    Some(Draft {
        kind: memory.kind,
        provenance: memory.provenance,
        lead: lead.and_then(|lead| memory.text.get(..lead)).map(str::to_owned),
        text: memory.text,
        indexed: memory.indexed,
        session,
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
    })
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
        let mut text = format!(
            "Added {}; {} here already, {} here, {} forgotten here. {} for embedding.",
            counted(self.added, "memory", "memories"),
            counted(self.known, "was", "were"),
            counted(self.conflicts, "differs and was left as it is", "differ and were left as they are"),
            counted(self.forgotten, "is", "are"),
            counted(self.pending, "piece waits", "pieces wait"),
        );
        if self.too_long > 0 {
            let longer = counted(self.too_long, "memory is", "memories are");
            text += &format!("\n{longer} longer than {} MB and left out.", LONGEST_TEXT >> 20);
        }
        if self.malformed > 0 {
            let entries = counted(self.malformed, "entry", "entries");
            text += &format!("\n{entries} of the file can't be read as memories and were left out.");
        }
        if !self.redactions.is_empty() {
            let secrets = self.redactions.iter().map(|each| each.count).sum::<usize>();
            text += &format!("\n{} in it replaced.", counted(secrets, "secret was", "secrets were"));
        }
        text
    }
}
