//! Stores memories with their chunks and embeddings.

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryStore;
use super::state::{Absent, Chunk, Exchanged, FileChange, State, Stored};
use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::{Content, Draft, Group, Identity, Memory, MemoryId, MemoryKey, Millis, Provenance};
use tiro_base::scope::{Scope, TenantId};
use tiro_store::decide::stale::{self, KnownMemory};
use tiro_store::{
    ChunkKey, ChunkRange, Outcome, PendingChunk, PreparedChunk, PreparedMemory, Receipt, SessionKey,
};

/// The most memories that one step stores.
const AT_ONCE: usize = 500;

/// The most embeddings of providers that are kept for an owner.
const MOST_EMBEDDINGS: usize = 20_000;

impl MemoryStore {
    /// Does as [`WriteMemories::save_reporting`](tiro_store::WriteMemories::save_reporting).
    pub(crate) async fn save_reporting(
        &self,
        scope: &Scope,
        memories: Vec<PreparedMemory>,
        now: Millis,
        on_batch: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Receipt> {
        self.admit(scope)?;
        let mut receipt = Receipt::default();
        // What another author said is stored as if this one wrote it.
        let writer = |memory: &PreparedMemory| memory.draft.author.clone().unwrap_or(scope.reader.clone());
        let by_writer = memories.chunk_by(|one, other| writer(one) == writer(other));
        for batch in by_writer.flat_map(|memories| memories.chunks(AT_ONCE)) {
            let scope = &batch.first().map_or(scope.clone(), |first| scope.read_by(writer(first)));
            let stored = self.write(scope, |state| state.save(scope, batch, now))?;
            receipt.pending += stored.pending;
            receipt.outcomes.extend(stored.outcomes);
            on_batch(receipt.outcomes.len());
        }
        Ok(receipt)
    }

    /// Does as [`ReadEmbeddings::derived_without_chunk`](tiro_store::ReadEmbeddings::derived_without_chunk).
    pub(crate) async fn derived_without_chunk(&self, scope: &Scope, limit: usize) -> Result<Vec<Memory>> {
        self.read(scope, |state| {
            let bare = state.owned(&scope.tenant).filter(|(key, memory)| {
                memory.is_living() && memory.is_extract() && state.chunks_of(*key).next().is_none()
            });
            Ok(bare.take(limit).map(|(key, memory)| state.shown(key, memory)).collect())
        })
    }

    /// Does as [`WriteEmbeddings::add_chunks`](tiro_store::WriteEmbeddings::add_chunks).
    pub(crate) async fn add_chunks(
        &self,
        scope: &Scope,
        found: Vec<(MemoryKey, Draft, Vec<PreparedChunk>)>,
    ) -> Result<()> {
        self.write(scope, |state| {
            for (key, _, chunks) in &found {
                let memory = state.memories.get(key);
                let is_own = memory.is_some_and(|memory| memory.owner == scope.tenant && memory.is_living());
                if is_own && state.chunks_of(*key).next().is_none() {
                    state.put_chunks(*key, chunks)?;
                }
            }
            Ok(())
        })
    }

    /// Does as [`ReadEmbeddings::pending`](tiro_store::ReadEmbeddings::pending).
    pub(crate) async fn pending(&self, scope: &Scope) -> Result<usize> {
        self.read(scope, |state| Ok(state.waiting(&scope.tenant).count()))
    }

    /// Does as [`ReadEmbeddings::pending_chunks`](tiro_store::ReadEmbeddings::pending_chunks).
    pub(crate) async fn pending_chunks(
        &self,
        scope: &Scope,
        content: Option<Content>,
        limit: usize,
    ) -> Result<Vec<PendingChunk>> {
        self.read(scope, |state| {
            let is_wanted = |memory: &Stored| content.is_none_or(|content| memory.kind.content() == content);
            let waiting = state.waiting(&scope.tenant).filter(|(.., memory)| is_wanted(memory)).take(limit);
            let pending = waiting.map(|(key, chunk, memory)| PendingChunk {
                key,
                memory: memory.id.clone(),
                start: chunk.start,
                text: memory.text.get(chunk.start..chunk.end).unwrap_or_default().to_owned(),
                kind: memory.kind,
                role: memory.role,
                speaker: memory.speaker.clone(),
                title: memory.title.clone(),
                path: memory.path.clone(),
                session: state.name_of(memory),
                branch: memory.branch.clone(),
                topic: memory.topic.clone(),
                time: memory.time,
            });
            Ok(pending.collect())
        })
    }

    /// Does as [`ReadEmbeddings::chunks_of`](tiro_store::ReadEmbeddings::chunks_of).
    pub(crate) async fn chunks_of(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> Result<Vec<(MemoryKey, ChunkRange)>> {
        self.read(scope, |state| {
            let is_own =
                |key: &MemoryKey| state.memories.get(key).is_some_and(|memory| memory.owner == scope.tenant);
            let range = |key: ChunkKey, chunk: &Chunk| ChunkRange {
                key,
                start: chunk.start,
                end: chunk.end,
                tokens: chunk.tokens,
            };
            let own = keys.into_iter().filter(is_own);
            let chunks = own.flat_map(|memory| {
                state.chunks_of(memory).map(move |(key, chunk)| (memory, range(key, chunk)))
            });
            Ok(chunks.collect())
        })
    }

    /// Does as [`WriteEmbeddings::save_embeddings`](tiro_store::WriteEmbeddings::save_embeddings).
    pub(crate) async fn save_embeddings(
        &self,
        scope: &Scope,
        space: &str,
        embeddings: Vec<(PendingChunk, Vec<f32>)>,
    ) -> Result<()> {
        self.write(scope, |state| {
            let mut embedded = BTreeSet::new();
            for (pending, embedding) in &embeddings {
                let Some(chunk) = state.chunks.get_mut(&pending.key) else { continue };
                let memory = state.memories.get(&chunk.memory);
                let is_it =
                    chunk.start == pending.start && memory.is_some_and(|memory| memory.id == pending.memory);
                if is_it && chunk.embedding.is_none() {
                    chunk.embedding = Some((space.to_owned(), embedding.clone()));
                    embedded.insert(chunk.memory);
                }
            }
            if !embedded.is_empty() {
                let sessions = state.sessions_of(&embedded);
                state.touch(&scope.tenant, sessions);
            }
            Ok(())
        })
    }

    /// Does as [`WriteEmbeddings::mark_other_spaces_pending`](tiro_store::WriteEmbeddings::mark_other_spaces_pending).
    pub(crate) async fn mark_other_spaces_pending(
        &self,
        scope: &Scope,
        prose: &str,
        code: &str,
    ) -> Result<usize> {
        self.write(scope, |state| {
            let State { chunks, memories, .. } = state;
            let mut marked = 0;
            for chunk in chunks.values_mut() {
                let Some(memory) = memories.get(&chunk.memory) else { continue };
                let wanted = match memory.kind.content() {
                    Content::Prose => prose,
                    Content::Code => code,
                };
                let is_other = chunk.embedding.as_ref().is_some_and(|(space, _)| space != wanted);
                if memory.owner == scope.tenant && is_other {
                    chunk.embedding = None;
                    marked += 1;
                }
            }
            Ok(marked)
        })
    }

    /// Does as [`ReadEmbeddings::cached_embeddings`](tiro_store::ReadEmbeddings::cached_embeddings).
    pub(crate) async fn cached_embeddings(
        &self,
        scope: &Scope,
        keys: Vec<[u8; 32]>,
    ) -> Result<Vec<Option<Vec<f32>>>> {
        self.read(scope, |state| {
            let found = |key| state.embeddings.get(&(scope.tenant.clone(), key));
            Ok(keys.into_iter().map(|key| found(key).map(|(_, vector)| vector.clone())).collect())
        })
    }

    /// Does as [`Bookkeeping::cache_embeddings`](tiro_store::Bookkeeping::cache_embeddings).
    pub(crate) async fn cache_embeddings(
        &self,
        scope: &Scope,
        entries: Vec<([u8; 32], Vec<f32>)>,
    ) -> Result<()> {
        self.write(scope, |state| {
            for (key, embedding) in &entries {
                let number = state.number();
                state.embeddings.insert((scope.tenant.clone(), *key), (number, embedding.clone()));
            }
            let own = state.embeddings.iter().filter(|((owner, _), _)| *owner == scope.tenant);
            let mut numbers: Vec<i64> = own.map(|(_, (number, _))| *number).collect();
            numbers.sort_unstable_by_key(|number| std::cmp::Reverse(*number));
            if let Some(too_old) = numbers.get(MOST_EMBEDDINGS) {
                state
                    .embeddings
                    .retain(|(owner, _), (number, _)| *owner != scope.tenant || *number > *too_old);
            }
            Ok(())
        })
    }
}

impl State {
    /// Stores memories in order, as one call.
    pub fn save(&mut self, scope: &Scope, memories: &[PreparedMemory], now: Millis) -> Result<Receipt> {
        let mut receipt = Receipt::default();
        for memory in memories {
            let draft = &memory.draft;
            let (is_private, session) = self.place_of(scope, draft);
            let session = session.map(|name| self.open_session(&scope.tenant, &name, is_private));
            if let Some(session) = self.session_mut(session) {
                session.branch = draft.branch.clone().or(session.branch.take());
                session.head_sha = draft.head_sha.clone().or(session.head_sha.take());
            }
            let outcome = self.save_one(scope, memory, session, is_private, now)?;
            if matches!(outcome, Outcome::Stored | Outcome::AlreadyStored) {
                let is_strict = draft.provenance != Provenance::Derived;
                self.supersede(scope, &memory.id, &draft.supersedes, is_strict)?;
            }
            if outcome == Outcome::Stored {
                receipt.pending += without_embedding(memory);
            }
            receipt.outcomes.push((memory.id.clone(), outcome));
        }
        Ok(receipt)
    }

    /// Stores a memory, unless its id is known or it is derived from a memory that isn't living.
    pub fn save_one(
        &mut self,
        scope: &Scope,
        memory: &PreparedMemory,
        session: Option<SessionKey>,
        is_private: bool,
        now: Millis,
    ) -> Result<Outcome> {
        let (owner, draft) = (&scope.tenant, &memory.draft);
        if let Some(outcome) = self.met_before(scope, memory, is_private) {
            let Some(known) = self.key_in(owner, &memory.id, is_private) else { return Ok(outcome) };
            self.record(known, draft);
            return Ok(match &draft.occurrence {
                Some(occurrence) if outcome != Outcome::Forgotten => self.repeat(known, occurrence),
                _ => outcome,
            });
        }
        let is_living = |id: &MemoryId| {
            self.key_of(owner, id).and_then(|key| self.memories.get(&key)).is_some_and(Stored::is_living)
        };
        if draft.provenance == Provenance::Derived && !draft.references.iter().all(is_living) {
            return Ok(Outcome::Forgotten);
        }
        self.insert(scope, memory, session, is_private, now)
    }

    /// Returns the outcome of storing a memory whose id is known.
    pub fn met_before(&self, scope: &Scope, memory: &PreparedMemory, is_private: bool) -> Option<Outcome> {
        let (owner, author) = (&scope.tenant, memory.draft.author.as_ref().unwrap_or(&scope.reader));
        let stored = self.key_in(owner, &memory.id, is_private).and_then(|key| self.memories.get(&key));
        let known = stored.map(|stored| KnownMemory {
            is_same: stored.text == memory.draft.text || tiro_redact::alike(&stored.text, &memory.draft.text),
            is_forgotten: !stored.is_living(),
        });
        let place = (owner.clone(), is_private, memory.id.clone());
        let is_left = |absent: &Absent| absent.state.is_forgotten && absent.author == *author;
        let is_left = self.absent.get(&place).is_some_and(is_left);
        stale::outcome(known, is_left || self.purged.contains(&(owner.clone(), memory.id.clone())))
    }

    /// Stores a memory whose id is new.
    pub fn insert(
        &mut self,
        scope: &Scope,
        memory: &PreparedMemory,
        session: Option<SessionKey>,
        is_private: bool,
        now: Millis,
    ) -> Result<Outcome> {
        let PreparedMemory { id, draft, tokens, chunks } = memory;
        // A message that is given to the stash has no place among the messages of its session.
        let is_numbered = draft.kind.group() == Group::Message && draft.identity != Identity::Segment;
        let ordinal = self.session_mut(session).filter(|_| is_numbered).map(|session| session.last + 1);
        let of_draft = Stored::of(draft, scope, id);
        let stored = Stored { is_private, session, ordinal, stored_at: now, tokens: *tokens, ..of_draft };
        let key = self.add(stored);
        if let Some(occurrence) = &draft.occurrence {
            self.repeat(key, occurrence);
        }
        self.record(key, draft);
        self.put_chunks(key, chunks)?;
        Ok(Outcome::Stored)
    }

    /// Stores the chunks of a memory. Errors if a chunk is no part of the text.
    pub fn put_chunks(&mut self, memory: MemoryKey, chunks: &[PreparedChunk]) -> Result<()> {
        for (place, chunk) in chunks.iter().enumerate() {
            let PreparedChunk { start, end, tokens, ref embedding } = *chunk;
            let text = self.memories.get(&memory).map_or("", |memory| memory.text.as_str());
            if text.get(start..end).is_none() {
                return Err(Error::new(Kind::Store, "a chunk is no part of the text of its memory"));
            }
            let embedding = embedding.as_ref().map(|(space, embedding)| (space.clone(), embedding.clone()));
            let key = ChunkKey::from_store(self.number());
            self.chunks.insert(key, Chunk { memory, place, start, end, tokens, embedding });
        }
        Ok(())
    }

    /// Stores the id of a commit, and what a tool call changed and committed.
    fn record(&mut self, key: MemoryKey, draft: &Draft) {
        if let Some(commit) = &draft.commit {
            self.add_commit_id(key, &commit.sha);
        }
        let Some(memory) = self.memories.get_mut(&key) else { return };
        for write in &draft.work.writes {
            let change = FileChange {
                worktree: write.worktree.clone(),
                branch: draft.branch.clone(),
                lines: write.lines.clone(),
            };
            memory.writes.insert((draft.time, write.path.clone()), change);
        }
        let Some(printed) = &draft.work.commits else { return };
        // If git printed no id, the call is known by its time.
        let quiet = [String::new()];
        let printed = if printed.is_empty() { &quiet[..] } else { printed };
        for sha in printed {
            let ended = draft.work.ended.unwrap_or(draft.time);
            memory.calls.insert((draft.time, sha.clone()), (ended, draft.work.worktree.clone()));
        }
    }

    /// Stores a further id of a commit, unless another commit of the owner has it.
    pub fn add_commit_id(&mut self, key: MemoryKey, sha: &str) {
        let Some(owner) = self.memories.get(&key).map(|memory| memory.owner.clone()) else { return };
        let is_taken = self.owned(&owner).any(|(_, memory)| memory.shas.contains(sha));
        if let Some(memory) = self.memories.get_mut(&key).filter(|_| !is_taken) {
            memory.shas.insert(sha.to_owned());
        }
    }

    /// Counts an occurrence of a memory's text, unless it was counted before.
    pub fn repeat(&mut self, key: MemoryKey, occurrence: &str) -> Outcome {
        let memory = self.memories.get_mut(&key);
        match memory.is_some_and(|memory| memory.repeats.insert(occurrence.to_owned())) {
            true => Outcome::Repeated,
            false => Outcome::AlreadyStored,
        }
    }

    /// Returns the owner's chunks that wait for an embedding, in the order of storing.
    pub fn waiting(&self, owner: &TenantId) -> impl Iterator<Item = (ChunkKey, &Chunk, &Stored)> {
        let owner = owner.clone();
        let waiting = self.chunks.iter().filter(|(_, chunk)| chunk.embedding.is_none());
        let with_memory =
            waiting.filter_map(|(key, chunk)| Some((*key, chunk, self.memories.get(&chunk.memory)?)));
        with_memory.filter(move |(.., memory)| memory.owner == owner)
    }
}

/// Returns how many chunks of the memory have no embedding.
pub fn without_embedding(memory: &PreparedMemory) -> usize {
    memory.chunks.iter().filter(|chunk| chunk.embedding.is_none()).count()
}

impl Stored {
    /// Returns the memory of the draft, as far as the draft says it.
    fn of(draft: &Draft, scope: &Scope, id: &MemoryId) -> Stored {
        let files = draft.commit.as_ref().map(|commit| commit.files.clone()).unwrap_or_default();
        let parents = draft.commit.as_ref().map(|commit| commit.parents.clone()).unwrap_or_default();
        Stored {
            owner: scope.tenant.clone(),
            author: draft.author.as_ref().unwrap_or(&scope.reader).clone(),
            is_private: false,
            id: id.clone(),
            kind: draft.kind,
            provenance: draft.provenance,
            session: None,
            ordinal: None,
            role: draft.role,
            speaker: draft.speaker.clone(),
            title: draft.title.clone(),
            topic: draft.topic.clone(),
            source_id: draft.source_id.clone(),
            path: draft.path.clone(),
            branch: draft.branch.clone(),
            head_sha: draft.head_sha.clone(),
            time: draft.time,
            stored_at: 0,
            importance: draft.importance,
            marked: false,
            tokens: 0,
            text: draft.text.clone(),
            indexed: draft.indexed.clone(),
            forgotten_at: None,
            references: draft.references.iter().cloned().collect(),
            paths: draft.path.iter().chain(&draft.files).chain(&files).cloned().collect(),
            files,
            shas: BTreeSet::new(),
            parents,
            repeats: BTreeSet::new(),
            links: Vec::new(),
            writes: BTreeMap::new(),
            calls: BTreeMap::new(),
            newer: BTreeSet::new(),
            stashed: None,
            exchanged: Exchanged::default(),
        }
    }
}
