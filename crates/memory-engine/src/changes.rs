//! What changes together: versions, and what is made of a memory and leaves with it.
//!
//! Whatever changes a memory calls these functions, so that counts of segments, summaries, threads and versions follow.

use std::collections::BTreeSet;

use super::exchange::data::time;
use super::state::{Absent, PieceText, State, Stored};
use tiro_base::memory::{Kind, MemoryId, MemoryKey, Millis};
use tiro_base::scope::TenantId;
use tiro_base::thread::Part;
use tiro_store::{ExchangedState, SessionKey};

impl State {
    /// Gives the owner a version that it never had, and the sessions too. Returns the version.
    pub fn touch(&mut self, owner: &TenantId, sessions: impl IntoIterator<Item = SessionKey>) -> i64 {
        let version = self.versions.entry(owner.clone()).or_default();
        *version += 1;
        let version = *version;
        for session in sessions {
            if let Some(session) = self.sessions.get_mut(&session) {
                session.version = version;
            }
        }
        version
    }

    /// Adds a memory under a new key.
    pub fn add(&mut self, mut memory: Stored) -> MemoryKey {
        let key = MemoryKey::from_store(self.number());
        memory.exchanged.changed = key.in_store();
        self.absent.remove(&(memory.owner.clone(), memory.is_private, memory.id.clone()));
        let version = self.touch(&memory.owner, memory.session);
        if let (Some(session), Some(ordinal)) = (self.session_mut(memory.session), memory.ordinal) {
            session.grown = Some(version);
            session.last = session.last.max(ordinal);
        }
        self.memories.insert(key, memory);
        key
    }

    /// Marks a memory, or removes the mark, and sets its importance if one is given.
    pub fn set_mark(&mut self, key: MemoryKey, marked: bool, importance: Option<f64>) {
        let Some(memory) = self.memories.get_mut(&key) else { return };
        let importance = importance.or(memory.importance);
        let is_changed = (memory.marked, memory.importance) != (marked, importance);
        (memory.marked, memory.importance) = (marked, importance);
        let (owner, session) = (memory.owner.clone(), memory.session);
        self.touch(&owner, session);
        if is_changed && let Some(memory) = self.memories.get_mut(&key) {
            memory.exchanged.marked_at = memory.exchanged.marked_at.next(time());
            self.changed(key);
        }
    }

    /// Forgets a memory at a time, or restores it. Does nothing if there is none.
    pub fn set_forgotten(&mut self, key: MemoryKey, at: Option<Millis>) {
        let Some(memory) = self.memories.get_mut(&key) else { return };
        let before = std::mem::replace(&mut memory.forgotten_at, at);
        let memory = memory.clone();
        let version = self.touch(&memory.owner, memory.session);
        if let Some(session) = self.session_mut(memory.session)
            && memory.ordinal.is_some()
            && before != at
        {
            session.grown = Some(version);
        }
        let replaced = self.replaced_by(key);
        if !replaced.is_empty() {
            let sessions = self.sessions_of(&replaced);
            self.touch(&memory.owner, sessions);
        }
        if before.is_some() == at.is_some() {
            return;
        }
        if let Some(stored) = self.memories.get_mut(&key) {
            let own = &mut stored.exchanged;
            own.forgotten_at = own.forgotten_at.next(at.unwrap_or_else(time));
        }
        self.changed(key);
        if memory.kind == Kind::Message && at.is_some() {
            self.remove_openings(key, memory.session);
        }
        self.message_changed(&memory, at.is_none());
    }

    /// Gives a memory a new number for peers, because it was changed here.
    pub fn changed(&mut self, key: MemoryKey) {
        let number = self.number();
        if let Some(memory) = self.memories.get_mut(&key) {
            (memory.exchanged.changed, memory.exchanged.by) = (number, None);
        }
    }

    /// Remembers the state of a memory that is about to be purged.
    pub fn leave_trace(&mut self, key: MemoryKey) {
        let changed = self.number();
        let Some(memory) = self.memories.get(&key) else { return };
        let state = ExchangedState {
            is_marked: memory.marked,
            importance: memory.importance,
            marked_at: memory.exchanged.marked_at,
            is_forgotten: !memory.is_living(),
            forgotten_at: memory.exchanged.forgotten_at,
            is_purged: true,
        };
        let (kind, author, travelling) = (memory.kind, memory.author.clone(), memory.exchanged.id.clone());
        let absent = Absent { kind, author, state, changed, by: None, travelling };
        if tiro_store::decide::exchange::is_exchanged(kind, memory.provenance) {
            let place = (memory.owner.clone(), memory.is_private, memory.id.clone());
            self.absent.insert(place, absent);
        }
    }

    /// Returns the memories whose state depends on whether `key` is living: those that it replaced, and those with a
    /// statement about the same things.
    fn replaced_by(&self, key: MemoryKey) -> BTreeSet<MemoryKey> {
        let by_request = self.memories.iter().filter(|(_, memory)| memory.newer.contains(&key));
        let mut replaced: BTreeSet<MemoryKey> = by_request.map(|(key, _)| *key).collect();
        let own = self.statements.values().filter(|(_, statement)| statement.memory == key);
        let subjects: BTreeSet<_> = own.filter_map(|(_, statement)| statement.subject).collect();
        let shared = self
            .statements
            .values()
            .filter(|(_, statement)| statement.subject.is_some_and(|subject| subjects.contains(&subject)));
        replaced.extend(shared.map(|(_, statement)| statement.memory));
        replaced
    }

    /// Returns the sessions of the memories.
    pub fn sessions_of(&self, memories: &BTreeSet<MemoryKey>) -> BTreeSet<SessionKey> {
        memories.iter().filter_map(|key| self.memories.get(key)?.session).collect()
    }

    /// Removes from the threads of the session what quotes earlier turns, if the message is one of a turn.
    fn remove_openings(&mut self, message: MemoryKey, session: Option<SessionKey>) {
        let is_of_turn = self
            .threads
            .values()
            .flat_map(|thread| &thread.history)
            .any(|turn| turn.question == Some(message) || turn.answer == Some(message));
        if is_of_turn {
            for thread in self.threads.values_mut().filter(|thread| Some(thread.session) == session) {
                thread.blocks.retain(|block| block.part != Part::Opening);
            }
            self.remove_unneeded_texts();
        }
    }

    /// Updates the counts of the segment of a message that left or came back, and removes the summaries that were made
    /// with or without it.
    pub fn message_changed(&mut self, message: &Stored, came_back: bool) {
        let (Some(key), Some(ordinal)) = (message.session, message.ordinal) else { return };
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let sign = if came_back { 1 } else { -1 };
        let is_in = |first: i64, last: i64| (first..=last).contains(&ordinal);
        for segment in session.segments.iter_mut().filter(|segment| is_in(segment.first, segment.last)) {
            segment.messages += sign;
            segment.tokens += sign * message.tokens;
        }
        session.summaries.retain(|row| !is_in(row.summary.first, row.summary.last));
        if session.conversation.as_ref().is_some_and(|conversation| conversation.last >= ordinal) {
            self.remove_conversation(key);
        }
    }

    /// Removes the memory that summarises a session.
    pub fn remove_conversation(&mut self, session: SessionKey) {
        let conversation = self.session_mut(Some(session)).and_then(|session| session.conversation.take());
        if let Some(conversation) = conversation {
            self.remove(conversation.memory);
        }
    }

    /// Removes a memory with all that belongs to it.
    pub fn remove(&mut self, key: MemoryKey) {
        let Some(gone) = self.memories.remove(&key) else { return };
        // In a chain of replacements, those that it replaced are replaced by those that replaced it.
        let mut relinked = BTreeSet::new();
        for (other, memory) in &mut self.memories {
            if memory.newer.remove(&key) && !gone.newer.is_empty() {
                memory.newer.extend(gone.newer.iter().filter(|newer| *newer != other));
                relinked.insert(*other);
            }
        }
        self.chunks.retain(|_, chunk| chunk.memory != key);
        self.statements.retain(|_, (_, statement)| statement.memory != key);
        for operation in self.operations.values_mut() {
            operation.memories.remove(&key);
        }
        self.leave_threads(key);
        for session in self.sessions.values_mut() {
            session.conversation.take_if(|conversation| conversation.memory == key);
            if let Some(assembly) = &mut session.assembly {
                assembly.lines.remove(&key);
            }
        }
        let sessions = self.sessions_of(&relinked);
        self.touch(&gone.owner, sessions.into_iter().chain(gone.session));
        if gone.is_living() {
            self.message_changed(&gone, false);
        }
        let is_retired =
            self.session_mut(gone.session).is_some_and(|session| session.retired.as_ref() == Some(&gone.id));
        if gone.kind == Kind::Conversation && !is_retired {
            self.remove_quarters(&gone.owner, &gone.id);
        }
    }

    /// Removes the summaries of quarters that were made of the memory `source`, which summarised a session.
    pub fn remove_quarters(&mut self, owner: &TenantId, source: &MemoryId) {
        let is_made_of = |memory: &Stored| memory.is_derived_summary() && memory.references.contains(source);
        let quarters: Vec<MemoryKey> =
            self.owned(owner).filter(|(_, memory)| is_made_of(memory)).map(|(key, _)| key).collect();
        quarters.into_iter().for_each(|quarter| self.remove(quarter));
    }

    /// Removes a memory from the threads: its blocks, and the receipts that may quote it.
    fn leave_threads(&mut self, key: MemoryKey) {
        for thread in self.threads.values_mut() {
            thread.blocks.retain(|block| block.text != PieceText::Message(key));
            for turn in &mut thread.history {
                if turn.question == Some(key) || turn.answer == Some(key) {
                    turn.receipt = None;
                    turn.question.take_if(|question| *question == key);
                    turn.answer.take_if(|answer| *answer == key);
                }
            }
        }
    }

    /// Removes a session that has no memories, with all that belongs to it.
    pub fn remove_session(&mut self, key: SessionKey) {
        self.sessions.remove(&key);
        self.aliases.retain(|_, session| *session != key);
        self.queue.retain(|_, waiting| waiting.session != key);
        self.attempts.retain(|(session, _)| *session != key);
        self.threads.retain(|_, thread| thread.session != key);
        for memory in self.memories.values_mut() {
            memory.links.retain(|(session, _)| *session != key);
        }
        self.remove_unneeded_texts();
    }

    /// Removes the texts that no thread needs.
    pub fn remove_unneeded_texts(&mut self) {
        let mut needed = BTreeSet::new();
        for thread in self.threads.values() {
            let Some(session) = self.sessions.get(&thread.session) else { continue };
            let of_blocks = thread.blocks.iter().filter_map(|block| match block.text {
                PieceText::Blob(hash) => Some(hash),
                PieceText::Message(_) => None,
            });
            needed.extend(
                of_blocks.chain(thread.copies.iter().copied()).map(|hash| (session.owner.clone(), hash)),
            );
        }
        self.blobs.retain(|text, _| needed.contains(text));
    }

    /// Returns the session to change, if there is one.
    pub fn session_mut(&mut self, key: Option<SessionKey>) -> Option<&mut super::state::Session> {
        self.sessions.get_mut(&key?)
    }
}
