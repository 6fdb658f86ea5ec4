//! Copies the project's store to a file, and merges such a file back.

use std::collections::HashSet;
use std::path::PathBuf;

use serde::Serialize;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Result;
use crate::humanize::counted;
use crate::memory::{Draft, Identity, LONGEST_TEXT, MemoryId, Millis, Provenance, Work};
use crate::project::OpenProject;
use crate::redact::{self, Redaction, Redactor};
use crate::remember::prepare;
use crate::scope::SessionId;
use crate::store::{
    Foreign, ForeignDepth, ForeignEvidence, ForeignMemory, ForeignPage, ForeignPart, ForeignSession, Origin,
    Outcome, PreparedMemory, Receipt, RestoredMemory, Saved, Summary,
};
use crate::summaries::messages;

/// What `tiro backup` answers.
#[derive(Debug, Serialize)]
pub struct Backup {
    /// The file written.
    pub file: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The file with what is stored for all projects, which is not in it.
    pub not_included: String,
}

/// Copies the project's store to `file` while others go on working.
pub async fn back_up(engine: &Engine, caller: &Caller, file: PathBuf) -> Result<Backup> {
    let project = caller.project(engine).await?;
    project.store.back_up(&project.scope, &file).await?;
    let bytes = std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    let not_included = engine.config().data_dir.join("owner.db").display().to_string();
    Ok(Backup { file: file.display().to_string(), bytes, not_included })
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
    /// Of those added, memories that were forgotten there and stay so; `tiro undo` brings them back.
    pub still_forgotten: usize,
    /// Ids that were purged there and stay away here.
    pub purged: usize,
    /// Summaries that were new here.
    pub summaries: usize,
    /// Summaries of messages that aren't all here, or of which others came between; left out, and made anew where needed.
    pub outdated: usize,
    /// Memories left out because they are longer than a memory may be.
    pub too_long: usize,
    /// Entries left out because they are no memories: of an unknown kind, without an id, at an impossible time.
    pub malformed: usize,
    /// Secrets replaced that the backup held, by rule.
    pub redactions: Vec<Redaction>,
    /// Pieces not embedded yet.
    pub pending: usize,
    /// What is never restored, and why.
    pub left_out: Vec<&'static str>,
}

/// What a backup holds and restoring leaves out: it is of the place, or is made anew.
pub const LEFT_OUT: [&str; 5] = [
    "memories stored for all projects, which are in no project's store",
    "embeddings, which are made anew",
    "how far imports came: `tiro import` looks at everything again and stores nothing twice",
    "what was measured and spent there",
    "requests for summaries that wait there, and answers kept for later",
];

/// Merges the backup `file` into the project by id: what is here stays, what is new is added as it was there.
///
/// What comes in is held to what holds for every write, wherever the file comes from: see `store/sqlite/foreign/`.
pub async fn restore(
    engine: &Engine,
    caller: &Caller,
    file: PathBuf,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Restored> {
    let project = caller.begin_project(engine).await?;
    let (store, scope) = (&project.store, &project.scope);
    let mut foreign = Foreign::open(scope, &file).await?;
    let mut into = Into { engine, project, restored: Restored::default(), done: 0 };
    while let Some(sessions) = foreign.next_sessions(ForeignDepth::Origin).await? {
        let sessions = sessions.into_iter().filter_map(|each| into.session(each)).collect();
        store.restore_sessions(scope, sessions).await?;
    }
    while let Some(page) = foreign.next(ForeignPart::Original).await? {
        into.page(page).await?;
        progress(into.done, foreign.all);
    }
    // What was made of messages comes after them, and what was made of that after it.
    while let Some(sessions) = foreign.next_sessions(ForeignDepth::Made).await? {
        for session in sessions.into_iter().filter_map(|each| into.session(each)).collect::<Vec<_>>() {
            into.made(session).await?;
        }
    }
    while let Some(page) = foreign.next(ForeignPart::Derived).await? {
        into.page(page).await?;
        progress(into.done, foreign.all);
    }
    into.restored.purged = store.restore_forgotten(scope, foreign.forgotten().await?).await?;
    into.restored.left_out = LEFT_OUT.to_vec();
    engine.wrote();
    Ok(into.restored)
}

/// A project that a backup is merged into.
struct Into<'a> {
    engine: &'a Engine,
    project: &'a OpenProject,
    restored: Restored,
    done: usize,
}

impl Into<'_> {
    /// Stores a page of memories.
    async fn page(&mut self, page: ForeignPage) -> Result<()> {
        self.done += page.memories.len() + page.too_long + page.malformed;
        self.restored.too_long += page.too_long;
        self.restored.malformed += page.malformed;
        let mut ready = Vec::with_capacity(page.memories.len());
        for each in page.memories {
            match self.prepared(each) {
                Some(memory) => ready.push(memory),
                None => self.restored.malformed += 1,
            }
        }
        let forgotten: HashSet<MemoryId> =
            ready.iter().filter(|each| each.forgotten.is_some()).map(|each| each.memory.id.clone()).collect();
        let (store, scope) = (&self.project.store, &self.project.scope);
        let receipt = store.restore(scope, ready, self.engine.now()).await?;
        self.count(&receipt);
        let is_stored =
            |(id, outcome): &&(MemoryId, Outcome)| *outcome == Outcome::Stored && forgotten.contains(id);
        self.restored.still_forgotten += receipt.outcomes.iter().filter(is_stored).count();
        Ok(())
    }

    fn count(&mut self, receipt: &Receipt) {
        let restored = &mut self.restored;
        restored.added += receipt.count(Outcome::Stored);
        restored.known += receipt.count(Outcome::AlreadyStored);
        restored.conflicts += receipt.count(Outcome::Conflict);
        restored.forgotten += receipt.count(Outcome::Forgotten);
        restored.pending += receipt.pending;
    }

    /// Returns what to store of a memory of the backup; `None` where its conversation's name is none once redacted.
    fn prepared(&mut self, each: ForeignMemory) -> Option<RestoredMemory> {
        let redactor = &self.project.redactor;
        let (ordinal, is_marked) = (each.memory.ordinal, each.memory.marked);
        // What was derived of a message is found by that.
        let is_indexed = each.is_indexed || each.memory.provenance != Provenance::Derived;
        let shas = each.shas.clone();
        let named = |name: &SessionId| SessionId::read(redactor, "session", name.as_str()).ok();
        let link = |(name, sure): &(SessionId, f64)| Some((named(name)?, *sure));
        let links = each.links.iter().filter_map(link).collect();
        let evidence = clean_evidence(redactor, each.evidence.clone());
        // A key that holds a secret names nothing any more.
        let is_clean = |key: &&String| redactor.redact(key).text == key.as_str();
        let repeats = each.repeats.iter().filter(is_clean).cloned().collect();
        let engine = self.engine;
        let forgotten = each.forgotten.clone().map(|(operation, at)| {
            let id = operation.unwrap_or_else(|| format!("f{}", hex(engine.random::<6>())));
            (id, at)
        });
        let draft = draft(redactor, each)?;
        let (memory, found) = prepare(redactor, draft, &mut || engine.random());
        found.iter().for_each(|(rule, count)| redact::add(&mut self.restored.redactions, rule, *count));
        let chunks = if is_indexed { memory.chunks } else { Vec::new() };
        let memory = PreparedMemory { chunks, ..memory };
        Some(RestoredMemory { memory, ordinal, forgotten, is_marked, shas, repeats, links, evidence })
    }

    /// Returns the session with its names and titles redacted; `None` where its name is none then.
    fn session(&self, each: ForeignSession) -> Option<ForeignSession> {
        let redactor = &self.project.redactor;
        let clean = |text: Option<String>| text.map(|text| redactor.redact(&text).text.into_owned());
        let session = SessionId::read(redactor, "session", each.session.as_str()).ok()?;
        let aliases = each.origin.aliases.iter();
        let aliases = aliases.filter_map(|alias| SessionId::read(redactor, "session", alias).ok());
        let origin = Origin {
            client: clean(each.origin.client),
            worktree: clean(each.origin.worktree),
            title: clean(each.origin.title),
            aliases: aliases.map(|alias| alias.as_str().to_owned()).collect(),
        };
        Some(ForeignSession { session, origin, branch: clean(each.branch), ..each })
    }

    /// Stores what was made of a session: each as far as its messages are those it was made of.
    async fn made(&mut self, each: ForeignSession) -> Result<()> {
        let (store, scope, now) = (&self.project.store, &self.project.scope, self.engine.now());
        let session = each.session;
        if !each.segments.is_empty() && store.segments(scope, &session).await?.is_empty() {
            store.add_segments(scope, &session, each.segments).await?;
        }
        let rows = store.session_messages(scope, &session, 0).await?;
        for (summary, made_at) in each.summaries {
            let within = rows.iter().filter(|row| (summary.first..=summary.last).contains(&row.ordinal));
            let redactor = &self.project.redactor;
            let clean = |text: &str| redactor.redact(text).text.into_owned();
            let text = clean(&summary.text);
            let summary = Summary {
                session: session.clone(),
                tokens: messages::count(&text) as i64,
                provider: clean(&summary.provider),
                model: clean(&summary.model),
                provenance: Provenance::lowest(within.map(|row| row.provenance)),
                text,
                ..summary
            };
            match store.save_version(scope, summary, Millis::MAX, made_at.min(now)).await? {
                Saved::Made(_) => self.restored.summaries += 1,
                Saved::AlreadyMade(_) => {}
                Saved::SourcesChanged => self.restored.outdated += 1,
            }
        }
        let Some(conversation) = each.conversation else { return Ok(()) };
        self.done += 1;
        if store.conversation(scope, &session).await?.is_some() {
            self.restored.known += 1;
            return Ok(());
        }
        let (last, hash, made_at) = (conversation.last, conversation.source_hash, conversation.made_at);
        let Some(RestoredMemory { memory, .. }) = self.prepared(conversation.memory) else {
            self.restored.malformed += 1;
            return Ok(());
        };
        let pending = memory.chunks.len();
        match store.save_conversation(scope, memory, last, hash, made_at.min(now)).await? {
            Saved::Made(_) => {
                self.restored.added += 1;
                self.restored.pending += pending;
            }
            Saved::AlreadyMade(_) => self.restored.known += 1,
            Saved::SourcesChanged => self.restored.outdated += 1,
        }
        Ok(())
    }
}

/// Returns the evidence with its names redacted.
fn clean_evidence(redactor: &Redactor, mut evidence: ForeignEvidence) -> ForeignEvidence {
    let clean = |text: &mut String| *text = redactor.redact(text).text.into_owned();
    for write in &mut evidence.writes {
        clean(&mut write.path);
        write.worktree.iter_mut().chain(&mut write.branch).for_each(clean);
    }
    evidence.calls.iter_mut().for_each(|call| call.worktree.iter_mut().for_each(clean));
    evidence
}

/// Returns bytes as hexadecimal digits.
fn hex(bytes: [u8; 6]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns what to store of a memory of the backup; `None` where its conversation's name is none once redacted.
fn draft(redactor: &Redactor, foreign: ForeignMemory) -> Option<Draft> {
    let ForeignMemory { memory, references, lead, files, commit, .. } = foreign;
    let session = match &memory.session {
        Some(name) => Some(SessionId::read(redactor, "session", name.as_str()).ok()?),
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
        // It was made from a key that the backup doesn't hold, and names the same memory here.
        identity: Identity::Known(memory.id),
        work: Work::default(),
        commit,
    })
}

impl Backup {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        format!(
            "Wrote {} ({} bytes).\nIt holds this project alone: memories stored for all your projects are in {}.",
            self.file, self.bytes, self.not_included
        )
    }
}

impl Restored {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        self.told("the backup")
    }

    /// Returns in words what came of merging `source`.
    pub fn told(&self, source: &str) -> String {
        let mut text = format!(
            "Added {}; {} here already, {} here, {} forgotten here. {} for embedding.",
            counted(self.added, "memory", "memories"),
            counted(self.known, "was", "were"),
            counted(self.conflicts, "differs and was left as it is", "differ and were left as they are"),
            counted(self.forgotten, "is", "are"),
            counted(self.pending, "piece waits", "pieces wait"),
        );
        if self.still_forgotten > 0 {
            let forgotten = counted(self.still_forgotten, "of them was", "of them were");
            let stay = if self.still_forgotten == 1 { "stays" } else { "stay" };
            text += &format!("\n{forgotten} forgotten in {source} and {stay} forgotten (`tiro undo`).");
        }
        if self.purged > 0 {
            let purged = counted(self.purged, "purged memory was", "purged memories were");
            text += &format!("\n{purged} not restored.");
        }
        if self.summaries > 0 {
            text += &format!("\n{} added.", counted(self.summaries, "summary was", "summaries were"));
        }
        if self.outdated > 0 {
            let (outdated, their, they) = match self.outdated {
                1 => ("1 summary was".to_owned(), "its", "it is"),
                count => (format!("{count} summaries were"), "their", "they are"),
            };
            text += &format!(
                "\n{outdated} skipped because {their} messages differ here; {they} remade when needed."
            );
        }
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
        text + &format!("\nNot taken from {source}: {}.", self.left_out.join("; "))
    }
}
