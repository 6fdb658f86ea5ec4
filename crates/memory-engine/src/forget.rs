//! Forgets memories, undoes forgetting, and purges.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::MemoryStore;
use super::state::{Act, ActKind, State, Stored};
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::memory::{MemoryId, MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId, TenantId};
use tiro_store::decide::retention;
use tiro_store::{Forgotten, Operation, Reach, Selection, SessionKey};

/// The reason for forgetting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Asked,
    Purge,
    Age,
}

impl MemoryStore {
    /// Does as [`WriteMemories::mark`](tiro_store::WriteMemories::mark).
    pub(crate) async fn mark(
        &self,
        scope: &Scope,
        ids: &[MemoryId],
        marked: bool,
        importance: Option<f64>,
    ) -> Result<Vec<MemoryId>> {
        self.write(scope, |state| {
            let keys = state.select(scope, &Selection::Ids(ids.to_vec()), Reach::Living);
            keys.iter().for_each(|key| state.set_mark(*key, marked, importance));
            Ok(state.forgotten("", &keys).ids)
        })
    }

    /// Does as [`Forget::forget`](tiro_store::Forget::forget).
    pub(crate) async fn forget(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        now: Millis,
    ) -> Result<Forgotten> {
        self.write(scope, |state| state.forget(scope, selection, operation, Reason::Asked, now))
    }

    /// Does as [`Forget::retire`](tiro_store::Forget::retire).
    pub(crate) async fn retire(
        &self,
        scope: &Scope,
        session: &SessionId,
        operation: &str,
        now: Millis,
    ) -> Result<Forgotten> {
        let selection = Selection::Session(session.clone());
        self.write(scope, |state| state.forget(scope, &selection, operation, Reason::Age, now))
    }

    /// Does as [`Forget::undo`](tiro_store::Forget::undo).
    pub(crate) async fn undo(
        &self,
        scope: &Scope,
        operation: Option<&str>,
        now: Millis,
    ) -> Result<Forgotten> {
        self.write(scope, |state| {
            let (name, keys) = state.to_bring_back(&scope.tenant, operation, now)?;
            let expired = state.operations.get(&name).is_some_and(|act| act.kind == ActKind::Expire);
            keys.iter().for_each(|key| state.set_forgotten(*key, None));
            for key in &keys {
                let memory = state.memories.get_mut(key);
                if let Some(stashed) = memory.and_then(|memory| memory.stashed.as_mut()) {
                    let is_over = stashed.expires_at.is_some_and(|at| at <= now);
                    stashed.is_protected |= stashed.is_given && (is_over || expired);
                }
            }
            if let Some(operation) = state.operations.get_mut(&name) {
                operation.undone_at = Some(now);
            }
            Ok(state.forgotten(&name, &keys))
        })
    }

    /// Does as [`ReadForgotten::undoable`](tiro_store::ReadForgotten::undoable).
    pub(crate) async fn undoable(&self, scope: &Scope, operation: Option<&str>) -> Result<Forgotten> {
        self.read(scope, |state| {
            let (name, keys) = state.to_bring_back(&scope.tenant, operation, self.clock.now())?;
            Ok(state.forgotten(&name, &keys))
        })
    }

    /// Does as [`ReadForgotten::operations`](tiro_store::ReadForgotten::operations).
    pub(crate) async fn operations(&self, scope: &Scope, limit: usize) -> Result<Vec<Operation>> {
        self.read(scope, |state| {
            let mut own: Vec<(&String, &Act)> =
                state.operations.iter().filter(|(_, operation)| operation.owner == scope.tenant).collect();
            own.sort_by_key(|(id, operation)| Reverse((operation.at, *id)));
            let row = |(id, operation): (&String, &Act)| Operation {
                id: id.clone(),
                kind: operation.kind.as_str().to_owned(),
                at: operation.at,
                memories: operation.memories.len() as i64,
                undone: operation.undone_at.is_some(),
            };
            Ok(own.into_iter().take(limit).map(row).collect())
        })
    }

    /// Does as [`ReadForgotten::selected`](tiro_store::ReadForgotten::selected).
    pub(crate) async fn selected(
        &self,
        scope: &Scope,
        selection: &Selection,
        reach: Reach,
    ) -> Result<Forgotten> {
        self.read(scope, |state| {
            let keys = state.with_derived(&scope.tenant, state.select_own(scope, selection, reach), reach);
            Ok(state.forgotten("", &keys))
        })
    }

    /// Does as [`ReadForgotten::forgotten_with`](tiro_store::ReadForgotten::forgotten_with).
    pub(crate) async fn forgotten_with(
        &self,
        scope: &Scope,
        words: Vec<String>,
        most: usize,
    ) -> Result<(Vec<(MemoryId, String)>, usize)> {
        self.read(scope, |state| {
            let view = state.with_forgotten(scope);
            let text = |memory: &Stored| {
                let Stored { title, topic, speaker, path, .. } = memory;
                let others = [title, topic, speaker, path].into_iter().flatten();
                std::iter::once(&memory.text).chain(others).cloned().collect::<Vec<_>>().join("\n")
            };
            let forgotten = view.all().filter(|(_, memory)| !memory.is_living() && !words.is_empty());
            let mut found: Vec<(MemoryId, String)> = forgotten
                .map(|(_, memory)| (memory.id.clone(), text(memory)))
                .filter(|(_, text)| words.iter().all(|word| text.to_lowercase().contains(word)))
                .collect();
            let others = found.len().saturating_sub(most);
            found.truncate(most);
            Ok((found, others))
        })
    }

    /// Does as [`ReadForgotten::forgotten_at`](tiro_store::ReadForgotten::forgotten_at).
    pub(crate) async fn forgotten_at(
        &self,
        scope: &Scope,
        session: &SessionId,
        ordinal: i64,
    ) -> Result<Option<MemoryId>> {
        self.read(scope, |state| {
            let session = state.session_of(&scope.tenant, session);
            let is_it = |memory: &Stored| {
                memory.session == session && memory.ordinal == Some(ordinal) && !memory.is_living()
            };
            let found = state.memories.values().find(|memory| session.is_some() && is_it(memory));
            Ok(found.map(|memory| memory.id.clone()))
        })
    }

    /// Does as [`Forget::forget_for_good`](tiro_store::Forget::forget_for_good).
    pub(crate) async fn forget_for_good(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        now: Millis,
    ) -> Result<Forgotten> {
        self.write(scope, |state| {
            let forgotten = state.forget(scope, selection, operation, Reason::Purge, now)?;
            match forgotten.ids.is_empty() {
                true => Ok(forgotten),
                false => Ok(state.purge(&scope.tenant, operation, now)),
            }
        })
    }

    /// No purge is ever interrupted: it is one step.
    pub(crate) async fn finish_purges(&self, scope: &Scope, _before: Millis) -> Result<Forgotten> {
        self.admit(scope).map(|()| Forgotten::default())
    }

    /// Does as [`Forget::purge`](tiro_store::Forget::purge).
    pub(crate) async fn purge(&self, scope: &Scope, operation: &str, now: Millis) -> Result<Forgotten> {
        self.write(scope, |state| Ok(state.purge(&scope.tenant, operation, now)))
    }
}

impl State {
    /// Returns the memories that the selection names, in the order of storing.
    fn select(&self, scope: &Scope, selection: &Selection, reach: Reach) -> Vec<MemoryKey> {
        let view = match reach {
            Reach::Living => self.living(scope),
            Reach::Forgotten => self.with_forgotten(scope),
        };
        let keys = |view: super::view::View<'_>, is_named: &dyn Fn(MemoryKey, &Stored) -> bool| {
            view.all().filter(|(key, memory)| is_named(*key, memory)).map(|(key, _)| key).collect()
        };
        match selection {
            Selection::Ids(ids) => keys(view, &|_, memory| ids.contains(&memory.id)),
            Selection::Matching(filter) => keys(view.narrowed(filter), &|_, _| true),
            Selection::Session(name) => {
                let session = self.session_of(&scope.tenant, name);
                // The memory that summarises the session leaves with its messages.
                let summary = session
                    .and_then(|session| self.sessions.get(&session)?.conversation.as_ref())
                    .map(|conversation| conversation.memory);
                keys(view, &|key, memory| {
                    session.is_some() && memory.session == session && Some(key) != summary
                })
            }
        }
    }

    /// Returns those of the memories that the selection names that the reader may forget: those whose author the reader
    /// is, and for some readers also what others share.
    fn select_own(&self, scope: &Scope, selection: &Selection, reach: Reach) -> Vec<MemoryKey> {
        let mut keys = self.select(scope, selection, reach);
        let is_own = |memory: &Stored| scope.forgets_all() || memory.author == scope.reader;
        keys.retain(|key| self.memories.get(key).is_some_and(is_own));
        keys
    }

    /// Adds the memories that are derived from those of `keys`, directly or through others.
    pub fn with_derived(&self, owner: &TenantId, keys: Vec<MemoryKey>, reach: Reach) -> Vec<MemoryKey> {
        let mut all: BTreeSet<MemoryKey> = keys.iter().copied().collect();
        let mut rest = keys;
        while let Some(source) = rest.pop().and_then(|key| self.memories.get(&key)) {
            // An id is unique only within a part. What is private to the author of the derived memory is meant first.
            let is_meant = |memory: &Stored| match source.is_private {
                true => source.author == memory.author,
                false => !self.owned(owner).any(|(_, other)| {
                    other.is_private && other.author == memory.author && other.id == source.id
                }),
            };
            let derived = self.owned(owner).filter(|(_, memory)| {
                memory.references.contains(&source.id)
                    && memory.is_derived()
                    && is_meant(memory)
                    && (memory.is_living() || reach == Reach::Forgotten)
            });
            let new: Vec<MemoryKey> = derived.map(|(key, _)| key).filter(|key| all.insert(*key)).collect();
            rest.extend(new);
        }
        all.into_iter().collect()
    }

    fn forget(
        &mut self,
        scope: &Scope,
        selection: &Selection,
        name: &str,
        reason: Reason,
        now: Millis,
    ) -> Result<Forgotten> {
        let of_session = match selection {
            Selection::Session(session) => self.session_of(&scope.tenant, session),
            _ => None,
        };
        if let (Reason::Purge, Selection::Session(session)) = (reason, selection) {
            let found = self.find_session(scope, session).filter(|found| Some(*found) == of_session);
            self.threads.retain(|_, thread| Some(thread.session) != found);
            self.remove_unneeded_texts();
        }
        let (reach, kind) = match reason {
            Reason::Purge => (Reach::Forgotten, ActKind::Purge),
            Reason::Asked | Reason::Age => (Reach::Living, ActKind::Forget),
        };
        let keys = self.with_derived(&scope.tenant, self.select_own(scope, selection, reach), reach);
        let forgotten = self.forgotten(name, &keys);
        let sessions = self.sessions_of(&keys.iter().copied().collect());
        match reason {
            Reason::Age => sessions.into_iter().for_each(|session| self.retire_session(session)),
            Reason::Asked | Reason::Purge => {
                of_session.into_iter().chain(sessions).for_each(|session| self.end_retirement(session));
            }
        }
        if keys.is_empty() {
            return Ok(Forgotten::default());
        }
        if self.operations.contains_key(name) {
            return Err(Error::new(Kind::Store, format!("there is an operation `{}` already", quoted(name))));
        }
        self.forget_keys(&scope.tenant, name, kind, &keys, now);
        Ok(forgotten)
    }

    /// Forgets memories, as a new operation or as part of it.
    pub fn forget_keys(
        &mut self,
        owner: &TenantId,
        name: &str,
        kind: ActKind,
        keys: &[MemoryKey],
        now: Millis,
    ) {
        let new = || Act { owner: owner.clone(), kind, at: now, undone_at: None, memories: BTreeSet::new() };
        self.operations.entry(name.to_owned()).or_insert_with(new).memories.extend(keys);
        // The memory that summarises a session is removed when one of its messages is forgotten.
        keys.iter().for_each(|key| self.set_forgotten(*key, Some(now)));
        let State { operations, memories, .. } = self;
        if let Some(operation) = operations.get_mut(name) {
            operation.memories.retain(|key| memories.contains_key(key));
        }
    }

    /// Records the memory that summarises a session that is about to be forgotten because of its age.
    fn retire_session(&mut self, session: SessionKey) {
        let conversation = self.sessions.get(&session).and_then(|session| session.conversation.as_ref());
        let summary = conversation.and_then(|conversation| self.memories.get(&conversation.memory));
        let id = summary.map(|memory| memory.id.clone());
        if let Some(session) = self.session_mut(Some(session)) {
            session.retired = id;
        }
    }

    /// Removes the summaries of quarters that replace a session which was forgotten because of its age.
    pub fn end_retirement(&mut self, session: SessionKey) {
        let Some(session) = self.session_mut(Some(session)) else { return };
        if let Some(retired) = session.retired.take() {
            let owner = session.owner.clone();
            self.remove_quarters(&owner, &retired);
        }
    }

    /// Returns the name of the operation to undo, and the memories to restore. Those stay forgotten that are derived
    /// from a memory that stays forgotten.
    fn to_bring_back(
        &self,
        owner: &TenantId,
        operation: Option<&str>,
        now: Millis,
    ) -> Result<(String, Vec<MemoryKey>)> {
        let is_meant = |(id, act): &(&String, &Act)| match operation {
            None => act.kind == ActKind::Forget,
            Some(name) => act.kind != ActKind::Purge && id.as_str() == name,
        };
        let own = self.operations.iter().filter(|(_, act)| act.owner == *owner && act.undone_at.is_none());
        let latest = own.filter(is_meant).max_by_key(|(id, act)| (act.at <= now, act.at, *id));
        let Some((name, act)) = latest else {
            return Err(Error::not_found("no such operation to undo")
                .hint("`forget_context` answers with the operation's id"));
        };
        let forgotten: Vec<(MemoryKey, Vec<MemoryKey>)> = act
            .memories
            .iter()
            .filter(|key| self.is_forgotten(key))
            .map(|key| (*key, self.sources(*key).into_iter().filter(|key| self.is_forgotten(key)).collect()))
            .collect();
        let coming = retention::coming_back(&forgotten).into_iter();
        Ok((name.clone(), coming.filter_map(|place| Some(forgotten.get(place)?.0)).collect()))
    }

    fn is_forgotten(&self, key: &MemoryKey) -> bool {
        self.memories.get(key).is_some_and(|memory| !memory.is_living())
    }

    /// Returns the memories that a memory is derived from.
    fn sources(&self, key: MemoryKey) -> Vec<MemoryKey> {
        let derived = self.memories.get(&key).filter(|memory| memory.is_derived());
        let ids =
            derived.into_iter().flat_map(|memory| memory.references.iter().map(|id| (&memory.owner, id)));
        ids.filter_map(|(owner, id)| self.key_of(owner, id)).collect()
    }

    /// Removes for good what the operation forgot.
    pub fn purge(&mut self, owner: &TenantId, name: &str, now: Millis) -> Forgotten {
        let is_open = |act: &&mut Act| {
            act.owner == *owner
                && act.undone_at.is_none()
                && match act.kind {
                    ActKind::Forget => true,
                    ActKind::Expire => false,
                    // It begins as a purge, and is over once nothing is left of it.
                    ActKind::Purge => !act.memories.is_empty(),
                }
        };
        let Some(operation) = self.operations.get_mut(name).filter(is_open) else {
            return Forgotten::default();
        };
        (operation.kind, operation.at) = (ActKind::Purge, now);
        let keys = std::mem::take(&mut operation.memories);
        let keys: Vec<MemoryKey> = keys.into_iter().filter(|key| self.is_forgotten(key)).collect();
        let mut purged = self.forgotten(name, &keys);
        for session in self.sessions_of(&keys.iter().copied().collect()) {
            self.end_retirement(session);
            // A client makes the title of a session from its messages.
            if let Some(session) = self.session_mut(Some(session)) {
                session.title = None;
            }
        }
        // Answers may have the text, and much of it can be guessed from an embedding.
        self.answers.retain(|(of, _), _| of != owner);
        self.embeddings.retain(|(of, _), _| of != owner);
        for (key, id) in keys.into_iter().zip(&purged.ids) {
            self.leave_trace(key);
            self.remove(key);
            self.purged.insert((owner.clone(), id.clone()));
        }
        // An operation without memories can't be undone.
        self.operations.retain(|_, act| {
            act.owner != *owner
                || act.kind == ActKind::Purge
                || act.undone_at.is_some()
                || !act.memories.is_empty()
        });
        let is_empty = |key: &SessionKey| !self.memories.values().any(|memory| memory.session == Some(*key));
        let own = self.sessions.iter().filter(|(_, session)| session.owner == *owner);
        let empty: Vec<(SessionKey, String)> = own
            .filter(|(key, _)| is_empty(key))
            .map(|(key, session)| (*key, session.name.as_str().to_owned()))
            .collect();
        empty.iter().for_each(|(key, _)| self.remove_session(*key));
        purged.sessions = empty.into_iter().map(|(_, name)| name).collect();
        purged
    }

    fn forgotten(&self, operation: &str, keys: &[MemoryKey]) -> Forgotten {
        let memories = || keys.iter().filter_map(|key| self.memories.get(key));
        Forgotten {
            operation: operation.to_owned(),
            ids: memories().map(|memory| memory.id.clone()).collect(),
            tokens: memories().map(|memory| memory.tokens).sum(),
            sessions: Vec::new(),
        }
    }
}
