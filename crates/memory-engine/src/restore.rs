//! Backups, and what is restored from them.

use std::collections::BTreeMap;
use std::path::Path;

use super::state::{FileChange, Stashed, State};
use super::write::without_embedding;
use super::{BACKUPS, MemoryStore, lock};
use crate::state::ActKind;
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::memory::{MemoryKey, Millis};
use tiro_base::scope::{Scope, TenantId};
use tiro_store::{Damage, ForeignForgotten, ForeignSession, Outcome, Receipt, RestoredMemory, SessionKey};

/// The most ordinals that a restored message may skip.
const WIDEST_GAP: i64 = 1_000_000;

impl MemoryStore {
    /// Does as [`Lifecycle::back_up`](tiro_store::Lifecycle::back_up).
    pub(crate) async fn back_up(&self, scope: &Scope, target: &Path) -> Result<Damage> {
        let copy = self.read_all(scope, |state| Ok(state.only_of(scope)))?;
        put_aside(copy, target)?;
        Ok(Damage::default())
    }

    /// Does as [`Lifecycle::copy_whole`](tiro_store::Lifecycle::copy_whole).
    pub(crate) async fn copy_whole(&self, scope: &Scope, target: &Path) -> Result<()> {
        let mut copy = self.read_all(scope, |state| Ok(state.clone()))?;
        copy.answers.clear();
        copy.leases.clear();
        copy.private.values_mut().for_each(|part| part.answers.clear());
        put_aside(copy, target)
    }

    /// Does as [`Restore::restore_sessions`](tiro_store::Restore::restore_sessions).
    pub(crate) async fn restore_sessions(&self, scope: &Scope, sessions: Vec<ForeignSession>) -> Result<()> {
        self.write(scope, |state| {
            for ForeignSession { session, origin, branch, head_sha, .. } in sessions {
                let is_private = state.is_private_session(scope, &session, origin.visibility);
                let key = state.open_session(&scope.tenant, &session, is_private);
                if let Some(session) = state.session_mut(Some(key)) {
                    session.client = session.client.take().or(origin.client);
                    session.worktree = session.worktree.take().or(origin.worktree);
                    session.title = session.title.take().or(origin.title);
                    session.branch = session.branch.take().or(branch);
                    session.head_sha = session.head_sha.take().or(head_sha);
                }
                for alias in origin.aliases {
                    state.aliases.entry((scope.tenant.clone(), alias)).or_insert(key);
                }
            }
            Ok(())
        })
    }

    /// Does as [`Restore::restore`](tiro_store::Restore::restore).
    pub(crate) async fn restore(
        &self,
        scope: &Scope,
        restored: Vec<RestoredMemory>,
        now: Millis,
    ) -> Result<Receipt> {
        self.write(scope, |state| {
            let mut receipt = Receipt::default();
            let mut forgotten: BTreeMap<(String, Millis), Vec<MemoryKey>> = BTreeMap::new();
            for each in &restored {
                let (is_private, session) = state.place_of(scope, &each.memory.draft);
                let session = session.map(|name| state.open_session(&scope.tenant, &name, is_private));
                let outcome = state.restore(scope, each, session, is_private, now)?;
                receipt.outcomes.push((each.memory.id.clone(), outcome));
                let key = state.key_of(&scope.tenant, &each.memory.id);
                let Some(key) = key.filter(|_| !matches!(outcome, Outcome::Forgotten | Outcome::Conflict))
                else {
                    continue;
                };
                state.restore_links(&scope.tenant, key, each);
                if outcome != Outcome::Stored {
                    continue;
                }
                state.restore_evidence(key, each);
                match &each.forgotten {
                    Some(operation) => forgotten.entry(operation.clone()).or_default().push(key),
                    None => receipt.pending += without_embedding(&each.memory),
                }
            }
            for ((operation, at), keys) in forgotten {
                state.forget_keys(&scope.tenant, &operation, ActKind::Forget, &keys, at);
            }
            Ok(receipt)
        })
    }

    /// Does as [`Restore::restore_forgotten`](tiro_store::Restore::restore_forgotten).
    pub(crate) async fn restore_forgotten(
        &self,
        scope: &Scope,
        forgotten: ForeignForgotten,
    ) -> Result<usize> {
        self.write(scope, |state| {
            for (name, at, undone_at) in forgotten.operations {
                if !state.operations.contains_key(&name) {
                    state.forget_keys(&scope.tenant, &name, ActKind::Forget, &[], at);
                    if let Some(operation) = state.operations.get_mut(&name) {
                        operation.undone_at = undone_at;
                    }
                }
            }
            for (session, stood) in forgotten.retired {
                let is_forgotten = state
                    .key_of(&scope.tenant, &stood)
                    .and_then(|key| state.memories.get(&key))
                    .is_some_and(|memory| !memory.is_living());
                let session = state.session_of(&scope.tenant, &session);
                if let Some(session) = state.session_mut(session).filter(|_| is_forgotten) {
                    session.retired.get_or_insert(stood);
                }
            }
            let unknown = forgotten.purged.into_iter().filter(|id| state.key_of(&scope.tenant, id).is_none());
            let unknown: Vec<_> = unknown.collect();
            let added =
                unknown.into_iter().filter(|id| state.purged.insert((scope.tenant.clone(), id.clone())));
            Ok(added.count())
        })
    }
}

/// Keeps a copy under the path `target` for this process, where an empty file is put.
fn put_aside(copy: State, target: &Path) -> Result<()> {
    if target.exists() {
        return Err(Error::bad_input(format!("`{}` exists already", quoted(target.display()))));
    }
    std::fs::File::create_new(target)
        .context(Kind::Io, || format!("cannot write the backup `{}`", quoted(target.display())))?;
    lock(&BACKUPS).insert(target.to_owned(), copy);
    Ok(())
}

impl State {
    /// Returns a copy of what the reader sees, without answers and texts of files, which can be made again.
    fn only_of(&self, scope: &Scope) -> State {
        let (mut copy, owner) = (self.clone(), &scope.tenant);
        let mine = copy.private.remove(&(owner.clone(), scope.reader.clone()));
        copy.private = mine
            .map(|part| ((owner.clone(), scope.reader.clone()), part.only_of(scope)))
            .into_iter()
            .collect();
        copy.versions.retain(|of, _| of == owner);
        copy.memories.retain(|_, memory| memory.owner == *owner);
        copy.sessions.retain(|_, session| session.owner == *owner);
        copy.aliases.retain(|(of, _), _| of == owner);
        copy.operations.retain(|_, operation| operation.owner == *owner);
        copy.purged.retain(|(of, _)| of == owner);
        copy.absent.retain(|(of, ..), _| of == owner);
        copy.statements.retain(|_, (of, _)| of == owner);
        copy.cursors.retain(|(of, _), _| of == owner);
        copy.counters.retain(|(of, _), _| of == owner);
        copy.measurements.retain(|(of, ..), _| of == owner);
        copy.graph.retain(|of, _| of == owner);
        copy.blobs.retain(|(of, _), _| of == owner);
        copy.leases.retain(|(of, _), _| of == owner);
        for blob in copy.blobs.values_mut() {
            (blob.text, blob.bytes) = (None, 0);
        }
        copy.answers.clear();
        copy.embeddings.clear();
        copy.token_counts.clear();
        let State { memories, sessions, chunks, queue, attempts, threads, .. } = &mut copy;
        attempts.retain(|(session, _)| sessions.contains_key(session));
        chunks.retain(|_, chunk| memories.contains_key(&chunk.memory));
        queue.retain(|_, waiting| sessions.contains_key(&waiting.session));
        threads.retain(|_, thread| sessions.contains_key(&thread.session));
        copy
    }

    /// Stores a memory of a backup, at its place if that is free.
    fn restore(
        &mut self,
        scope: &Scope,
        restored: &RestoredMemory,
        session: Option<SessionKey>,
        is_private: bool,
        now: Millis,
    ) -> Result<Outcome> {
        let RestoredMemory { memory, ordinal, .. } = restored;
        let is_new = self.met_before(scope, memory, is_private).is_none();
        if let (Some(session), Some(ordinal), true) = (self.session_mut(session), ordinal, is_new) {
            let gap = ordinal.checked_sub(session.last + 1);
            if gap.is_some_and(|gap| (1..=WIDEST_GAP).contains(&gap)) {
                session.last = ordinal - 1;
            }
        }
        // A forgotten memory is stored even if its sources are forgotten too.
        match &restored.forgotten {
            None => self.save_one(scope, memory, session, is_private, now),
            Some(_) => match self.met_before(scope, memory, is_private) {
                Some(outcome) => Ok(outcome),
                None => self.insert(scope, memory, session, is_private, now),
            },
        }
    }

    /// Restores the mark of a memory, its links, and its terms in the stash.
    fn restore_links(&mut self, owner: &TenantId, key: MemoryKey, restored: &RestoredMemory) {
        let is_marked = self.memories.get(&key).is_some_and(|memory| memory.marked);
        if restored.is_marked && !is_marked {
            self.set_mark(key, true, None);
        }
        for older in &restored.memory.draft.supersedes {
            if let Some(older) = self.key_of(owner, older) {
                self.link(older, key);
            }
        }
        for newer in &restored.superseded_by {
            if let Some(newer) = self.key_of(owner, newer) {
                self.link(key, newer);
            }
        }
        let links = restored.links.iter();
        let links: Vec<_> =
            links.filter_map(|(name, sure)| Some((self.session_of(owner, name)?, *sure))).collect();
        if self.memories.get(&key).is_some_and(|memory| memory.links.is_empty()) && !links.is_empty() {
            self.link_commit(owner, key, &links);
        }
        let Some(memory) = self.memories.get_mut(&key) else { return };
        let stashed = restored.stashed.as_ref().filter(|_| memory.text == restored.memory.draft.text);
        if let Some(stashed) = stashed.filter(|_| memory.stashed.is_none()) {
            memory.stashed = Some(Stashed {
                stashed_at: stashed.stashed_at,
                expires_at: stashed.expires_at,
                is_protected: stashed.is_protected,
                is_held_out: stashed.is_held_out,
                is_given: stashed.is_given,
                topic: stashed.topic.clone(),
                cause: stashed.cause,
            });
            let session = memory.session.filter(|_| stashed.is_held_out);
            self.touch(owner, session);
        }
    }

    /// Restores the ids of a commit, the occurrences of a text, and the evidence of a tool call.
    fn restore_evidence(&mut self, key: MemoryKey, restored: &RestoredMemory) {
        restored.shas.iter().for_each(|sha| self.add_commit_id(key, sha));
        for occurrence in &restored.repeats {
            self.repeat(key, occurrence);
        }
        let Some(memory) = self.memories.get_mut(&key) else { return };
        for write in &restored.evidence.writes {
            let bytes = write.lines.as_deref().unwrap_or_default().as_chunks::<4>().0;
            let change = FileChange {
                worktree: write.worktree.clone(),
                branch: write.branch.clone(),
                lines: bytes.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
            };
            memory.writes.entry((write.time, write.path.clone())).or_insert(change);
        }
        for call in &restored.evidence.calls {
            let ended = (call.time.1, call.worktree.clone());
            memory.calls.entry((call.time.0, call.sha.clone())).or_insert(ended);
        }
    }
}
