//! Copies the project's store to a file, and merges such a file into a project.

mod archive;
pub mod everything;
pub mod restore_everything;

use std::collections::HashSet;
use std::path::PathBuf;

use serde::Serialize;

use tiro_base::error::Result;
use tiro_base::humanize::{self, counted};
use tiro_base::memory::{Draft, Identity, LONGEST_TEXT, MemoryId, Millis, Provenance, Work};
use tiro_base::scope::SessionId;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::project::WritableProject;
use tiro_host::summaries::messages;
use tiro_intake::prepare::prepare;
use tiro_intake::session_id;
use tiro_redact::{self, Redaction, Redactor};
use tiro_store::{
    ForeignDepth, ForeignEvidence, ForeignMemory, ForeignPage, ForeignPart, ForeignSession, ForeignStash,
    Origin, Outcome, PreparedMemory, Receipt, RestoredMemory, Saved, Summary,
};

/// The answer of `tiro backup`.
#[derive(Debug, Serialize)]
pub struct Backup {
    /// The file written.
    pub file: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// How many vectors are damaged; `tiro restore` computes them again.
    #[serde(skip_serializing_if = "is_zero")]
    pub damaged_vectors: usize,
    /// How many other rows are damaged, such as those of sessions and summaries.
    #[serde(skip_serializing_if = "is_zero")]
    pub damaged_rows: usize,
    /// The ids of the memories that are damaged; `tiro restore` leaves them out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
    /// The data of this installation that this backup does not contain. `tiro backup --all` contains it.
    pub not_included: Vec<&'static str>,
}

/// The data that a backup of one project does not contain.
pub const LACKS: [&str; 4] = [
    "memories stored for all your projects",
    "the files that assistants have in threads: each sends them again",
    "other projects, and which directory each belongs to",
    "the configuration, and what was spent and sent",
];

/// Copies the project's store to `file`. Other processes may read and write the store during the copy.
pub async fn back_up(engine: &Engine, caller: &WritingCaller, file: PathBuf) -> Result<Backup> {
    let project = caller.writable_project(engine).await?;
    let damage = project.store.back_up(&project.scope, &file).await?;
    let bytes = std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    Ok(Backup {
        file: file.display().to_string(),
        bytes,
        damaged: damage.memories,
        damaged_vectors: damage.vectors,
        damaged_rows: damage.rows,
        not_included: LACKS.to_vec(),
    })
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The answer of `tiro restore`.
#[derive(Debug, Default, Serialize)]
pub struct Restored {
    /// How many memories were added because the project did not have them.
    pub added: usize,
    /// How many memories of the backup were already in the project.
    pub known: usize,
    /// The number of memories that were left out because the project uses their id for another text. That text stays.
    pub conflicts: usize,
    /// The number of memories that were forgotten in the project before and stay forgotten.
    pub forgotten: usize,
    /// How many of the added memories are forgotten in the backup, and so stay forgotten; `tiro undo` brings them back.
    pub still_forgotten: usize,
    /// How many ids were purged in the backup's project. This project never stores a memory with such an id again.
    pub purged: usize,
    /// How many summaries were added because the project did not have them.
    pub summaries: usize,
    /// The number of summaries that were left out because the project has other messages in their range. They are made
    /// again when they are needed.
    pub outdated: usize,
    /// How many memories were left out because they are longer than [`LONGEST_TEXT`].
    pub too_long: usize,
    /// How many entries were left out because they aren't valid memories: they have an unknown kind, no id or an
    /// impossible time.
    pub malformed: usize,
    /// How many memories were left out because they are damaged in the backup.
    pub damaged: usize,
    /// Secrets of the backup that were replaced, counted by rule.
    pub redactions: Vec<Redaction>,
    /// How many of the added chunks have no embedding yet.
    pub pending: usize,
    /// The parts of a backup that are never restored, each with the reason.
    pub left_out: Vec<&'static str>,
}

/// The parts of a backup that are not restored. They concern only the place where the backup was made, or are computed
/// again.
pub const LEFT_OUT: [&str; 6] = [
    "memories stored for all projects, which are in no project's store",
    "embeddings, which are computed again",
    "import progress: `tiro import` reads everything again and stores nothing twice",
    "measurements and spending",
    "queued requests for summaries, and cached answers",
    "threads with assistants: their messages are restored, and the next call sends the files again",
];

/// Merges the backup `file` into the project. Memories are compared by id. Memories that the project already has stay
/// unchanged, and new ones keep the time and marks that they have in the backup.
///
/// The file is not trusted. Its entries pass the same checks as every write (see `sqlite/foreign/`).
pub async fn restore(
    engine: &Engine,
    caller: &WritingCaller,
    file: PathBuf,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Restored> {
    let project = caller.begin_project(engine).await?;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let mut backup = engine.stores().backup(scope, &file).await?;
    let mut target = Target { engine, project: &project, restored: Restored::default(), done: 0 };
    while let Some(sessions) = backup.next_sessions(ForeignDepth::Origin).await? {
        let sessions = sessions.into_iter().filter_map(|each| target.session(each)).collect();
        store.restore_sessions(scope, sessions).await?;
    }
    while let Some(page) = backup.next(ForeignPart::Original).await? {
        target.page(page).await?;
        progress(target.done, backup.all());
    }
    // The order matters, because a summary can be stored only after its messages, and a derived memory only after the
    // summaries.
    while let Some(sessions) = backup.next_sessions(ForeignDepth::Made).await? {
        for session in sessions.into_iter().filter_map(|each| target.session(each)).collect::<Vec<_>>() {
            target.restore_derived(session).await?;
        }
    }
    while let Some(page) = backup.next(ForeignPart::Derived).await? {
        target.page(page).await?;
        progress(target.done, backup.all());
    }
    target.restored.purged = store.restore_forgotten(scope, backup.forgotten().await?).await?;
    target.restored.left_out = LEFT_OUT.to_vec();
    engine.wrote();
    Ok(target.restored)
}

/// The project into which a backup is merged.
struct Target<'a> {
    engine: &'a Engine,
    project: &'a WritableProject,
    restored: Restored,
    done: usize,
}

impl Target<'_> {
    /// Stores a page of memories and counts the outcomes.
    async fn page(&mut self, page: ForeignPage) -> Result<()> {
        self.done += page.memories.len() + page.too_long + page.malformed + page.damaged;
        self.restored.damaged += page.damaged;
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
        let (store, scope) = (self.project.store.as_ref(), &self.project.scope);
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

    /// Returns the memory to be stored. Returns `None` if its session name is invalid after redaction.
    fn prepared(&mut self, each: ForeignMemory) -> Option<RestoredMemory> {
        let redactor = &self.project.redactor;
        let (ordinal, is_marked) = (each.memory.ordinal, each.memory.marked);
        // If a derived memory has no chunks in the backup, it gets none here, and is found through its source.
        let is_indexed = each.is_indexed || each.memory.provenance != Provenance::Derived;
        let shas = each.shas.clone();
        let named = |name: &SessionId| session_id(redactor, "session", name.as_str()).ok();
        let link = |(name, sure): &(SessionId, f64)| Some((named(name)?, *sure));
        let links = each.links.iter().filter_map(link).collect();
        let evidence = clean_evidence(redactor, each.evidence.clone());
        // A repeat is a further occurrence of the memory that was counted but not stored again. The key of a repeat
        // can't be stored if it contains a secret.
        let is_clean = |key: &&String| redactor.redact(key).text == key.as_str();
        let repeats = each.repeats.iter().filter(is_clean).cloned().collect();
        let engine = self.engine;
        let new_id = || format!("f{}", hex(engine.random::<6>()));
        let forgotten = each.forgotten.clone().map(|(operation, at)| (operation.unwrap_or_else(new_id), at));
        let superseded_by = each.superseded_by.clone();
        let clean = |topic: String| redactor.redact(&topic).text.into_owned();
        let stashed = each.stashed.clone().map(|it| ForeignStash { topic: it.topic.map(clean), ..it });
        let draft = draft(redactor, each)?;
        let (memory, found) = prepare(redactor, draft, &mut || engine.random());
        found.iter().for_each(|(rule, count)| tiro_redact::add(&mut self.restored.redactions, rule, *count));
        let chunks = if is_indexed { memory.chunks } else { Vec::new() };
        Some(RestoredMemory {
            memory: PreparedMemory { chunks, ..memory },
            ordinal,
            forgotten,
            is_marked,
            shas,
            repeats,
            links,
            evidence,
            superseded_by,
            stashed,
        })
    }

    /// Returns the session with its names and titles redacted. Returns `None` if its name is invalid after redaction.
    fn session(&self, each: ForeignSession) -> Option<ForeignSession> {
        let redactor = &self.project.redactor;
        let clean = |text: Option<String>| text.map(|text| redactor.redact(&text).text.into_owned());
        let session = session_id(redactor, "session", each.session.as_str()).ok()?;
        let named = |alias: &String| session_id(redactor, "session", alias).ok();
        let aliases = each.origin.aliases.iter().filter_map(named);
        let origin = Origin {
            client: clean(each.origin.client),
            worktree: clean(each.origin.worktree),
            title: clean(each.origin.title),
            aliases: aliases.map(|alias| alias.to_string()).collect(),
            visibility: each.origin.visibility,
        };
        Some(ForeignSession { session, origin, branch: clean(each.branch), ..each })
    }

    /// Stores the segments, the summaries and the session memory of a session. Each of these is skipped if its messages
    /// are different in this project.
    async fn restore_derived(&mut self, each: ForeignSession) -> Result<()> {
        let (store, scope, now) = (self.project.store.as_ref(), &self.project.scope, self.engine.now());
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

/// Returns the evidence with its paths and branch names redacted.
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

/// Returns the draft to be stored. Returns `None` if its session name is invalid after redaction.
fn draft(redactor: &Redactor, foreign: ForeignMemory) -> Option<Draft> {
    let ForeignMemory { memory, references, supersedes, lead, files, commit, .. } = foreign;
    let session = match &memory.session {
        Some(name) => Some(session_id(redactor, "session", name.as_str()).ok()?),
        None => None,
    };
    Some(Draft {
        kind: memory.kind,
        provenance: memory.provenance,
        lead: lead.and_then(|lead| memory.text.get(..lead)).map(str::to_owned),
        text: memory.text,
        indexed: memory.indexed,
        author: Some(memory.author),
        visibility: Some(memory.visibility),
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
        supersedes,
        // The id was derived with a key that the backup doesn't have, so it can't be derived again. The id is stored
        // unchanged and stands for the same memory here.
        identity: Identity::Known(memory.id),
        work: Work::default(),
        commit,
    })
}

impl Backup {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let damaged = match self.damaged.len() {
            0 => String::new(),
            count => format!(
                "Of {}, the text or another part is damaged and not the one that was stored: {}. `tiro doctor` says what \
                 helps.\n",
                counted(count, "memory", "memories"),
                humanize::some(&self.damaged)
            ),
        };
        let vectors = match self.damaged_vectors {
            0 => String::new(),
            count => format!("{} damaged.\n", counted(count, "embedding is", "embeddings are")),
        };
        let rows = match self.damaged_rows {
            0 => String::new(),
            count => format!("{} damaged.\n", counted(count, "other row is", "other rows are")),
        };
        format!(
            "{damaged}{vectors}{rows}Wrote {} ({} bytes).\nIt holds only this project. Not in it, but in `tiro backup --all FILE`: {}.",
            self.file,
            self.bytes,
            self.not_included.join("; ")
        )
    }
}

impl Restored {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        self.merged("the backup")
    }

    /// Returns the result as text. `source` is the name of the file or project that was merged.
    pub fn merged(&self, source: &str) -> String {
        let mut text = String::new();
        if self.damaged > 0 {
            let damaged = counted(self.damaged, "memory was", "memories were");
            text += &format!("{damaged} left out: damaged in {source} and not as they were stored.\n");
        }
        text += &format!(
            "Added {}; {} here already, {}, {} forgotten here. {} for embedding.",
            counted(self.added, "memory", "memories"),
            counted(self.known, "was", "were"),
            counted(self.conflicts, "differs here and was not replaced", "differ here and were not replaced"),
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
            text += &format!("\n{} replaced.", counted(secrets, "secret was", "secrets were"));
        }
        text + &format!("\nNot taken from {source}: {}.", self.left_out.join("; "))
    }
}
