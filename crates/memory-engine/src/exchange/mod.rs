//! What a store exchanges with others.

pub(crate) mod data;
mod merge;

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryStore;
use super::state::{Absent, State, Stored};
use tiro_base::error::Result;
use tiro_base::memory::{CommitRecord, Kind, MemoryId, MemoryKey, Millis, Provenance};
use tiro_base::scope::{AuthorId, Scope, Visibility};
use tiro_store::decide::exchange;
use tiro_store::tuning::PAGE_OF_CHANGES;
use tiro_store::{
    Change, Changes, ExchangedChunk, ExchangedMemory, ExchangedState, Incoming, MergeOutcome, MergeRights,
    WantedChanges,
};

impl MemoryStore {
    /// Does as [`ReadChanges::came_from_peers`](tiro_store::ReadChanges::came_from_peers).
    pub(crate) async fn came_from_peers(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> Result<Vec<MemoryKey>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            let found = view.all().filter(|(key, memory)| keys.contains(key) && memory.came());
            Ok(found.map(|(key, _)| key).collect())
        })
    }

    /// Does as [`ReadChanges::changes`](tiro_store::ReadChanges::changes).
    pub(crate) async fn changes(
        &self,
        scope: &Scope,
        name: Option<&AuthorId>,
        wanted: &WantedChanges,
        after: i64,
        limit: usize,
    ) -> Result<Changes> {
        self.read(scope, |state| Ok(Giving { state, scope, name, wanted }.page(after, limit)))
    }

    /// Does as [`MergeChanges::merge_changes`](tiro_store::MergeChanges::merge_changes).
    pub(crate) async fn merge_changes(
        &self,
        scope: &Scope,
        name: Option<&AuthorId>,
        peer: &str,
        rights: MergeRights,
        incoming: Vec<Incoming>,
        now: Millis,
    ) -> Result<Vec<MergeOutcome>> {
        exchange::check(scope, name, &incoming)?;
        self.write(scope, |state| {
            let peer = merge::Peer { name, id: peer, rights };
            incoming.iter().map(|each| state.merge(scope, peer, each, now)).collect()
        })
    }
}

/// A peer to which changes are given.
struct Giving<'g> {
    state: &'g State,
    scope: &'g Scope,
    /// The peer's name for the reader.
    name: Option<&'g AuthorId>,
    wanted: &'g WantedChanges,
}

impl Giving<'_> {
    fn page(&self, after: i64, limit: usize) -> Changes {
        let after = if after > self.state.last { 0 } else { after };
        let wanted = self.wanted;
        let is_wanted = |kind: Kind, is_private: bool, number: i64, by: &Option<String>| {
            let is_of_peer = wanted.peer.is_some() && *by == wanted.peer;
            wanted.kinds.contains(&kind)
                && number > after
                && !is_of_peer
                && (wanted.with_private || !is_private)
        };
        let here = self.state.owned(&self.scope.tenant).filter(|(_, memory)| {
            let is_given_text = memory.stashed.as_ref().is_some_and(|stashed| stashed.is_given);
            let own = &memory.exchanged;
            is_wanted(memory.kind, memory.is_private, own.changed, &own.by)
                && exchange::is_exchanged(memory.kind, memory.provenance)
                && !is_given_text
                && !(self.name.is_some() && self.is_second_hand(memory))
        });
        let absent = self.state.absent.iter().filter(|((owner, is_private, _), absent)| {
            *owner == self.scope.tenant && is_wanted(absent.kind, *is_private, absent.changed, &absent.by)
        });
        let mut changes: BTreeMap<i64, Change> =
            here.map(|(key, memory)| (memory.exchanged.changed, self.present(key, memory))).collect();
        changes.extend(
            absent
                .map(|((_, is_private, id), absent)| (absent.changed, self.absent(*is_private, id, absent))),
        );
        let all = changes.len();
        let mut page = Changes { next: self.state.last, is_last: true, ..Changes::default() };
        let mut bytes = 0;
        for change in changes.into_values().take(limit) {
            bytes += change.content.as_ref().map_or(0, |content| content.bytes());
            page.next = change.number;
            page.changes.push(change);
            if bytes >= PAGE_OF_CHANGES {
                break;
            }
        }
        page.is_last = page.changes.len() == all && all < limit;
        if page.is_last {
            page.next = self.state.last;
        }
        page
    }

    /// Returns whether the memory was extracted here from what another said, or the reader said elsewhere.
    fn is_second_hand(&self, memory: &Stored) -> bool {
        let came = |other: &Stored| {
            other.author != self.scope.reader || other.exchanged.id.as_ref() == Some(&other.id)
        };
        let source = |id: &MemoryId| self.state.key_in(&self.scope.tenant, id, memory.is_private);
        let sources = memory.references.iter().filter_map(source);
        memory.provenance == Provenance::Derived
            && !came(memory)
            && sources.filter_map(|key| self.state.memories.get(&key)).any(came)
    }

    fn present(&self, key: MemoryKey, memory: &Stored) -> Change {
        let state = memory.exchanged_state();
        let is_own = memory.author == self.scope.reader;
        let is_given = state.is_living() && (is_own || self.name.is_none());
        let shown = self.state.shown(key, memory);
        Change {
            number: memory.exchanged.changed,
            id: self.id_of(&memory.id, memory.kind, &memory.author, memory.exchanged.id.as_ref()),
            kind: memory.kind,
            author: self.author_of(&memory.author),
            visibility: shown.visibility,
            state,
            content: is_given.then(|| Box::new(self.content(key, memory))),
        }
    }

    fn absent(&self, is_private: bool, id: &MemoryId, absent: &Absent) -> Change {
        Change {
            number: absent.changed,
            id: self.id_of(id, absent.kind, &absent.author, absent.travelling.as_ref()),
            kind: absent.kind,
            author: self.author_of(&absent.author),
            visibility: if is_private { Visibility::Private } else { self.scope.project.shared() },
            state: absent.state,
            content: None,
        }
    }

    fn content(&self, key: MemoryKey, stored: &Stored) -> ExchangedMemory {
        let mut memory = self.state.shown(key, stored);
        memory.id = self.id_of(&stored.id, stored.kind, &stored.author, stored.exchanged.id.as_ref());
        memory.author = self.author_of(&stored.author);
        memory.session = memory.session.filter(|_| self.wanted.kinds.contains(&Kind::Message));
        if let (Some(name), true) = (self.name, stored.author == self.scope.reader) {
            memory.session = memory.session.map(|session| exchange::sent_session(name, &session));
        }
        let chunks = self.state.chunks_of(key).map(|(_, chunk)| ExchangedChunk {
            start: chunk.start,
            end: chunk.end,
            embedding: chunk.embedding.clone(),
        });
        let chunks: Vec<ExchangedChunk> = chunks.collect();
        let travelling = |key: MemoryKey| self.travelling(&self.state.memories.get(&key)?.id);
        let sha = stored.source_id.clone().or_else(|| stored.shas.first().cloned());
        let commit = sha.filter(|_| stored.kind == Kind::Commit).map(|sha| CommitRecord {
            sha,
            parents: stored.parents.clone(),
            patch_id: None,
            files: stored.files.clone(),
        });
        ExchangedMemory {
            memory,
            references: stored.references.iter().filter_map(|id| self.travelling(id)).collect(),
            supersedes: self.replacements(key, |key| self.older(key)).filter_map(travelling).collect(),
            superseded_by: self.replacements(key, |key| self.newer(key)).filter_map(travelling).collect(),
            lead: chunks.iter().map(|chunk| chunk.end).max().filter(|_| stored.indexed.is_some()),
            files: stored.paths.iter().cloned().collect(),
            commit,
            chunks,
        }
    }

    /// Returns the memories that `next` leads to. A forgotten memory may never have reached the peer, so what lies behind
    /// it belongs to them.
    fn replacements(
        &self,
        key: MemoryKey,
        next: impl Fn(MemoryKey) -> BTreeSet<MemoryKey>,
    ) -> impl Iterator<Item = MemoryKey> {
        let mut found = next(key);
        let mut rest: Vec<MemoryKey> = found.iter().copied().collect();
        while let Some(key) = rest.pop() {
            if self.state.memories.get(&key).is_some_and(|memory| !memory.is_living()) {
                rest.extend(next(key).into_iter().filter(|key| found.insert(*key)));
            }
        }
        found.into_iter()
    }

    fn older(&self, key: MemoryKey) -> BTreeSet<MemoryKey> {
        let memories = self.state.memories.iter();
        memories.filter(|(_, older)| older.newer.contains(&key)).map(|(key, _)| *key).collect()
    }

    fn newer(&self, key: MemoryKey) -> BTreeSet<MemoryKey> {
        self.state.memories.get(&key).map(|memory| memory.newer.iter().copied().collect()).unwrap_or_default()
    }

    /// Returns the id under which the memory `id` travels, if it is exchanged.
    fn travelling(&self, id: &MemoryId) -> Option<MemoryId> {
        let keys = [true, false].map(|is_private| self.state.key_in(&self.scope.tenant, id, is_private));
        let keys = keys.into_iter().skip(usize::from(!self.wanted.with_private)).flatten();
        let memory = keys.filter_map(|key| self.state.memories.get(&key)).next()?;
        let is_given = self.wanted.kinds.contains(&memory.kind)
            && exchange::is_exchanged(memory.kind, memory.provenance);
        is_given.then(|| self.id_of(id, memory.kind, &memory.author, memory.exchanged.id.as_ref()))
    }

    fn id_of(&self, id: &MemoryId, kind: Kind, author: &AuthorId, travelling: Option<&MemoryId>) -> MemoryId {
        match (travelling, self.name) {
            (Some(travelling), _) => travelling.clone(),
            (None, Some(name)) if *author == self.scope.reader => exchange::exchange_id(name, kind, id),
            (None, _) => id.clone(),
        }
    }

    fn author_of(&self, author: &AuthorId) -> AuthorId {
        self.name
            .map_or_else(|| author.clone(), |name| exchange::sent_author(name, &self.scope.reader, author))
    }
}

impl Stored {
    /// Returns the part of the memory that may change.
    pub(super) fn exchanged_state(&self) -> ExchangedState {
        ExchangedState {
            is_marked: self.marked,
            importance: self.importance,
            marked_at: self.exchanged.marked_at,
            is_forgotten: !self.is_living(),
            forgotten_at: self.exchanged.forgotten_at,
            is_purged: false,
        }
    }
}
