//! What a reader sees: what the tenant shares, and what the reader keeps private.
//!
//! A call works on what its reader sees, as if it were all there is ([`State::seen`]). What others keep private, and what
//! they left for themselves, is put aside meanwhile; after a write, what is private goes back to its part
//! ([`State::kept`]). So no read and no write has to ask who sees what. Only what is made of a shared memory follows it
//! although its author alone sees it ([`State::follow`]).

use std::collections::{BTreeMap, BTreeSet};

use crate::state::{PieceText, State, Stored, nobody};
use tiro_base::memory::{Draft, Kind, MemoryId, MemoryKey};
use tiro_base::scope::{AuthorId, Scope, SessionId, TenantId, Visibility};
use tiro_base::thread::ContentHash;

impl State {
    /// Returns whether the reader sees all that there is, and left for itself what is left.
    pub fn is_whole(&self, scope: &Scope) -> bool {
        scope.is_own() && self.private.is_empty()
    }

    /// Returns whether something that was seen is private.
    pub fn has_private(&self) -> bool {
        self.memories.values().any(|memory| memory.is_private)
            || self.sessions.values().any(|session| session.is_private)
            || self.absent.keys().any(|(_, is_private, _)| *is_private)
    }

    /// Returns what the reader of the scope sees, with no other part.
    pub fn seen(&self, scope: &Scope) -> State {
        let mut seen = self.clone();
        if scope.hides_shared() {
            seen.hide_shared(&scope.tenant);
        }
        let mine = seen.private.remove(&part_of(scope)).unwrap_or_default();
        seen.private.clear();
        if !scope.is_own() {
            let is_others = |tenant: &TenantId| *tenant != scope.tenant;
            seen.answers.retain(|(tenant, _), _| is_others(tenant));
            seen.embeddings.retain(|(tenant, _), _| is_others(tenant));
            seen.token_counts.retain(|(tenant, _), _| is_others(tenant));
            seen.cursors.retain(|(tenant, _), _| is_others(tenant));
            seen.operations.retain(|_, act| is_others(&act.owner));
        }
        let names: BTreeSet<&SessionId> = mine.sessions.values().map(|session| &session.name).collect();
        for session in seen.sessions.values_mut() {
            if session.owner == scope.tenant && names.contains(&session.name) {
                session.owner = nobody();
            }
        }
        seen.add_all(mine);
        let State { memories, sessions, .. } = &mut seen;
        for memory in memories.values_mut() {
            memory.links.retain(|(session, _)| sessions.contains_key(session));
        }
        seen
    }

    /// Removes what the tenant shares. Numbers, from which keys are made, stay.
    fn hide_shared(&mut self, tenant: &TenantId) {
        self.memories.retain(|_, memory| memory.owner != *tenant);
        self.sessions.retain(|_, session| session.owner != *tenant);
        let State { memories, sessions, .. } = self;
        self.chunks.retain(|_, chunk| memories.contains_key(&chunk.memory));
        self.aliases.retain(|(owner, _), _| owner != tenant);
        self.purged.retain(|(owner, _)| owner != tenant);
        self.absent.retain(|(owner, ..), _| owner != tenant);
        self.statements.retain(|_, (owner, _)| owner != tenant);
        self.queue.retain(|_, waiting| sessions.contains_key(&waiting.session));
        self.attempts.retain(|(session, _)| sessions.contains_key(session));
        self.threads.retain(|_, thread| sessions.contains_key(&thread.session));
        self.blobs.retain(|(owner, _), _| owner != tenant);
        self.graph.remove(tenant);
    }

    /// Returns the state after a write that made `after` of what a reader saw from whom the shared part is hidden: only
    /// the reader's part is another.
    fn kept_by_hidden(&self, scope: &Scope, before: &State, mut after: State) -> State {
        let former = self.private.get(&part_of(scope)).cloned().unwrap_or_default();
        let mut kept = self.clone();
        kept.follow(before, &mut after);
        let mine = after.take_private(scope, before, &former);
        kept.private.remove(&part_of(scope));
        if !mine.is_bare() {
            kept.private.insert(part_of(scope), mine);
        }
        (kept.last, kept.versions, kept.leases) = (after.last, after.versions, after.leases);
        (kept.counters, kept.measurements) = (after.counters, after.measurements);
        kept
    }

    /// Adds what another state has; where both have something under one name, that of the other counts.
    fn add_all(&mut self, other: State) {
        self.memories.extend(other.memories);
        self.chunks.extend(other.chunks);
        self.sessions.extend(other.sessions);
        self.aliases.extend(other.aliases);
        self.operations.extend(other.operations);
        self.purged.extend(other.purged);
        self.absent.extend(other.absent);
        self.statements.extend(other.statements);
        self.queue.extend(other.queue);
        self.attempts.extend(other.attempts);
        self.threads.extend(other.threads);
        self.blobs.extend(other.blobs);
        self.cursors.extend(other.cursors);
        self.answers.extend(other.answers);
        self.embeddings.extend(other.embeddings);
        self.token_counts.extend(other.token_counts);
    }

    /// Returns the state after a write that made `after` of what the reader saw `before`.
    pub fn kept(&self, scope: &Scope, before: &State, mut after: State) -> State {
        if scope.hides_shared() {
            return self.kept_by_hidden(scope, before, after);
        }
        let mut parts = self.private.clone();
        let former = parts.remove(&part_of(scope)).unwrap_or_default();
        for part in parts.iter_mut().filter(|((tenant, _), _)| *tenant == scope.tenant) {
            part.1.follow(before, &mut after);
        }
        for session in after.sessions.values_mut().filter(|session| session.owner == nobody()) {
            session.owner = scope.tenant.clone();
        }
        let mine = after.take_private(scope, before, &former);
        // What others see of shared memories, and what was hidden by a name of the reader's, is as it was.
        for (key, memory) in &mut after.memories {
            let Some(old) = self.memories.get(key) else { continue };
            let hidden = old.links.iter().filter(|(session, _)| !before.sessions.contains_key(session));
            memory.links = hidden.cloned().chain(memory.links.drain(..)).collect();
        }
        for (alias, session) in
            self.aliases.iter().filter(|(_, session)| after.sessions.contains_key(session))
        {
            after.aliases.entry(alias.clone()).or_insert(*session);
        }
        if !scope.is_own() {
            let is_tenants = |tenant: &TenantId| *tenant == scope.tenant;
            let State { answers, embeddings, token_counts, cursors, operations, .. } = self;
            after.answers.extend(own(answers, |key| is_tenants(&key.0)));
            after.embeddings.extend(own(embeddings, |key| is_tenants(&key.0)));
            after.token_counts.extend(own(token_counts, |key| is_tenants(&key.0)));
            after.cursors.extend(own(cursors, |key| is_tenants(&key.0)));
            let acts = operations.iter().filter(|(_, act)| is_tenants(&act.owner));
            after.operations.extend(acts.map(|(name, act)| (name.clone(), act.clone())));
        }
        // A purge removes the answers and embeddings of all readers, since they may have the text.
        if before.purged != after.purged || mine.purged != former.purged {
            for ((tenant, _), part) in &mut parts {
                if *tenant == scope.tenant {
                    part.answers.clear();
                    part.embeddings.clear();
                }
            }
            after.answers.retain(|(tenant, _), _| *tenant != scope.tenant);
            after.embeddings.retain(|(tenant, _), _| *tenant != scope.tenant);
        }
        if !mine.is_bare() {
            parts.insert(part_of(scope), mine);
        }
        after.private = parts;
        after
    }

    /// Moves what the reader keeps private, and what it left for itself, into a state of its own.
    fn take_private(&mut self, scope: &Scope, before: &State, former: &State) -> State {
        let mut mine = State::default();
        mine.memories = taken(&mut self.memories, |_, memory| memory.is_private);
        mine.sessions = taken(&mut self.sessions, |_, session| session.is_private);
        mine.chunks = taken(&mut self.chunks, |_, chunk| mine.memories.contains_key(&chunk.memory));
        mine.aliases = taken(&mut self.aliases, |_, session| mine.sessions.contains_key(session));
        mine.statements =
            taken(&mut self.statements, |_, (_, statement)| mine.memories.contains_key(&statement.memory));
        mine.queue = taken(&mut self.queue, |_, waiting| mine.sessions.contains_key(&waiting.session));
        mine.threads = taken(&mut self.threads, |_, thread| mine.sessions.contains_key(&thread.session));
        let attempts = std::mem::take(&mut self.attempts);
        (mine.attempts, self.attempts) =
            attempts.into_iter().partition(|(session, _)| mine.sessions.contains_key(session));
        mine.absent = taken(&mut self.absent, |(_, is_private, _), _| *is_private);
        let was_private =
            |id: &MemoryId| before.memories.values().any(|memory| memory.is_private && memory.id == *id);
        let purged = std::mem::take(&mut self.purged);
        (mine.purged, self.purged) = purged.into_iter().partition(|known| {
            former.purged.contains(known) || (!before.purged.contains(known) && was_private(&known.1))
        });
        let (needed, shared) = (mine.needed(), self.needed());
        mine.blobs = self.blobs.clone();
        mine.blobs.retain(|(_, hash), _| needed.contains(hash));
        self.blobs.retain(|(_, hash), _| !needed.contains(hash) || shared.contains(hash));
        if !scope.is_own() {
            let is_tenants = |tenant: &TenantId| *tenant == scope.tenant;
            mine.answers = taken(&mut self.answers, |key, _| is_tenants(&key.0));
            mine.embeddings = taken(&mut self.embeddings, |key, _| is_tenants(&key.0));
            mine.token_counts = taken(&mut self.token_counts, |key, _| is_tenants(&key.0));
            mine.cursors = taken(&mut self.cursors, |key, _| is_tenants(&key.0));
            mine.operations = taken(&mut self.operations, |_, act| is_tenants(&act.owner));
        }
        mine
    }

    /// Returns the hashes of the texts that the threads need.
    fn needed(&self) -> BTreeSet<ContentHash> {
        let of_blocks = |piece: &crate::state::Piece| match piece.text {
            PieceText::Blob(hash) => Some(hash),
            PieceText::Message(_) => None,
        };
        let threads = self.threads.values();
        threads
            .flat_map(|thread| {
                thread.blocks.iter().filter_map(of_blocks).chain(thread.copies.iter().copied())
            })
            .collect()
    }

    /// Returns whether there is nothing in a part.
    fn is_bare(&self) -> bool {
        self.memories.is_empty()
            && self.sessions.is_empty()
            && self.purged.is_empty()
            && self.absent.is_empty()
            && self.answers.is_empty()
            && self.embeddings.is_empty()
            && self.token_counts.is_empty()
            && self.cursors.is_empty()
            && self.operations.is_empty()
    }

    /// Forgets, restores and removes what is private here and made of memories that another reader forgot, restored or
    /// removed. What is forgotten is noted in the operation of that reader, who doesn't see it.
    fn follow(&mut self, before: &State, after: &mut State) {
        // Of shared memories only, and of those whose id means no memory here.
        let is_meant =
            |memory: &Stored| !memory.is_private && !self.memories.values().any(|own| own.id == memory.id);
        let ids =
            |was: &dyn Fn(&Stored) -> bool, is: &dyn Fn(Option<&Stored>) -> bool| -> BTreeSet<MemoryId> {
                let changed = before
                    .memories
                    .iter()
                    .filter(|(key, memory)| is_meant(memory) && was(memory) && is(after.memories.get(key)));
                changed.map(|(_, memory)| memory.id.clone()).collect()
            };
        let mut gone = ids(&|memory| memory.is_living(), &|now| now.is_none_or(|memory| !memory.is_living()));
        let mut removed = ids(&|_| true, &|now| now.is_none());
        let back = ids(&|memory| !memory.is_living(), &|now| now.is_some_and(Stored::is_living));
        let at = after.memories.values().filter_map(|memory| memory.forgotten_at).max();
        while let Some((key, id)) = self.made_of(&gone, Stored::is_living) {
            self.set_forgotten(key, at.or(Some(0)));
            gone.insert(id);
            for act in after.operations.values_mut() {
                let is_new = |key: &MemoryKey| before.memories.get(key).is_some_and(Stored::is_living);
                if act.undone_at.is_none() && act.memories.iter().any(is_new) {
                    act.memories.insert(key);
                }
            }
        }
        while let Some((key, id)) = self.made_of(&back, |memory| !memory.is_living()) {
            let is_forgotten =
                |memory: &Stored| !memory.is_living() && self.memories[&key].references.contains(&memory.id);
            let waits = self.memories.values().chain(after.memories.values()).any(is_forgotten);
            if waits || id.as_str().is_empty() {
                break;
            }
            self.set_forgotten(key, None);
        }
        while let Some((key, id)) = self.made_of(&removed, |_| true) {
            if let Some(memory) = self.memories.get(&key) {
                self.purged.insert((memory.owner.clone(), memory.id.clone()));
            }
            self.leave_trace(key);
            self.remove(key);
            removed.insert(id);
        }
    }

    /// Returns a memory that is derived from one of `sources`, of those that `which` admits.
    fn made_of(
        &self,
        sources: &BTreeSet<MemoryId>,
        which: impl Fn(&Stored) -> bool,
    ) -> Option<(MemoryKey, MemoryId)> {
        let is_made = |memory: &Stored| {
            memory.is_derived() && memory.references.iter().any(|id| sources.contains(id)) && which(memory)
        };
        let found = self.memories.iter().find(|(_, memory)| is_made(memory));
        found.map(|(key, memory)| (*key, memory.id.clone()))
    }

    /// Returns whether a session is private: as it is said, or as it is known.
    pub fn is_private_session(&self, scope: &Scope, name: &SessionId, said: Option<Visibility>) -> bool {
        let mut known = self.sessions.values();
        match said {
            _ if scope.hides_shared() => true,
            Some(visibility) => visibility == Visibility::Private,
            None => known
                .any(|session| session.is_private && session.owner == scope.tenant && session.name == *name),
        }
    }

    /// Returns whether a draft is private, and its session: none if it is shared, and its session is private. If the
    /// draft doesn't say who sees it, it is as private as what it comes from.
    pub fn place_of(&self, scope: &Scope, draft: &Draft) -> (bool, Option<SessionId>) {
        let session = draft.session.as_ref();
        let is_in_private = session.is_some_and(|name| self.is_private_session(scope, name, None));
        let is_private = |id: &MemoryId| {
            self.owned(&scope.tenant).any(|(_, memory)| memory.is_private && memory.id == *id)
        };
        let is_private = match draft.visibility {
            _ if scope.hides_shared() => true,
            Some(visibility) => visibility == Visibility::Private,
            None => is_in_private || draft.references.iter().any(is_private),
        };
        let is_named = is_private || draft.kind == Kind::Message || !is_in_private;
        (is_private, draft.session.clone().filter(|_| is_named))
    }
}

/// Returns the part that the reader of the scope keeps private.
fn part_of(scope: &Scope) -> (TenantId, AuthorId) {
    (scope.tenant.clone(), scope.reader.clone())
}

/// Returns copies of the entries whose keys are meant.
fn own<K: Ord + Clone, V: Clone>(map: &BTreeMap<K, V>, is_meant: impl Fn(&K) -> bool) -> BTreeMap<K, V> {
    let own = map.iter().filter(|(key, _)| is_meant(key));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Moves the entries that are meant out of a map.
fn taken<K: Ord, V>(map: &mut BTreeMap<K, V>, is_meant: impl Fn(&K, &V) -> bool) -> BTreeMap<K, V> {
    let (taken, left) = std::mem::take(map).into_iter().partition(|(key, value)| is_meant(key, value));
    *map = left;
    taken
}
