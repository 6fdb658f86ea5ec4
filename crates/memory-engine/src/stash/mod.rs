//! The stash: memories that are put aside.

mod expiry;
mod read;

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryStore;
use super::state::{Assembly, Stashed, State};
use tiro_base::error::{Error, Result};
use tiro_base::memory::{MemoryId, MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{Outcome, PreparedMemory, SessionKey, ShownLine, StashReceipt, Stashing};

impl MemoryStore {
    /// Does as [`WriteStash::stash`](tiro_store::WriteStash::stash).
    pub(crate) async fn stash(&self, scope: &Scope, stashing: Stashing, now: Millis) -> Result<StashReceipt> {
        self.write(scope, |state| state.stash(scope, &stashing, now))
    }

    /// Does as [`WriteStash::unstash`](tiro_store::WriteStash::unstash).
    pub(crate) async fn unstash(&self, scope: &Scope, ids: &[MemoryId], keep: bool) -> Result<Vec<MemoryId>> {
        self.write(scope, |state| {
            let mut found: Vec<MemoryId> = Vec::new();
            for id in ids {
                let Some((key, _)) = state.living(scope).by_id(id) else { continue };
                let was_there = match keep {
                    true => state.hold_out(key, false),
                    false => state.leave_stash(key),
                };
                if was_there && !found.contains(id) {
                    found.push(id.clone());
                }
            }
            Ok(found)
        })
    }

    /// Does as [`Bookkeeping::record_assembly`](tiro_store::Bookkeeping::record_assembly).
    pub(crate) async fn record_assembly(
        &self,
        scope: &Scope,
        session: &SessionId,
        key: [u8; 32],
        lines: Vec<ShownLine>,
    ) -> Result<()> {
        self.write(scope, |state| {
            let stored = lines.into_iter().filter(|line| state.memories.contains_key(&line.memory));
            let mut shown: BTreeMap<MemoryKey, ShownLine> = BTreeMap::new();
            for line in stored {
                let is_more = shown.get_mut(&line.memory).map(|known| known.tokens += line.tokens).is_some();
                if !is_more {
                    shown.insert(line.memory, line);
                }
            }
            let session = state.named(&scope.tenant, session);
            let session = state
                .session_mut(session)
                .filter(|session| session.assembly.as_ref().is_none_or(|assembly| assembly.key != Some(key)));
            if let Some(session) = session {
                session.assembly = Some(Assembly { key: Some(key), lines: shown });
            }
            Ok(())
        })
    }
}

impl State {
    fn stash(&mut self, scope: &Scope, stashing: &Stashing, now: Millis) -> Result<StashReceipt> {
        let living = |state: &State, id: &MemoryId| state.living(scope).by_id(id).map(|(key, _)| key);
        let mut keys: Vec<MemoryKey> = Vec::new();
        for id in &stashing.named {
            let unknown = || {
                Error::not_found(format!("no memory is called `{id}`"))
                    .hint("nothing was stashed; search results show ids, and SESSION#NUMBER names a message")
            };
            keys.push(living(self, id).ok_or_else(unknown)?);
        }
        let pending = self.store_given(scope, &stashing.given, now)?;
        let mut receipt = StashReceipt { pending, ..StashReceipt::default() };
        let given: BTreeSet<&MemoryId> = stashing.given.iter().map(|memory| &memory.id).collect();
        for id in &given {
            living(self, id).ok_or_else(|| gone(id))?;
        }
        keys.extend(stashing.given.iter().filter_map(|memory| living(self, &memory.id)));
        let mut seen = BTreeSet::new();
        keys.retain(|key| seen.insert(*key));
        let mut by_session: BTreeMap<SessionKey, Vec<MemoryKey>> = BTreeMap::new();
        for key in keys {
            let Some(memory) = self.memories.get(&key) else { continue };
            let (id, tokens, session) = (memory.id.clone(), memory.tokens, memory.session);
            let is_new = self.put_aside(key, stashing, given.contains(&id), now);
            receipt.tokens += tokens;
            receipt.outcomes.push((id, is_new));
            if let Some(session) = session {
                by_session.entry(session).or_default().push(key);
            }
        }
        if stashing.cause.holds_out() {
            receipt.freed = by_session.iter().map(|(session, keys)| self.free(*session, keys)).sum();
        }
        Ok(receipt)
    }

    /// Stores the given memories, and brings back those that were forgotten. Returns how many of their chunks have no
    /// embedding.
    fn store_given(&mut self, scope: &Scope, given: &[PreparedMemory], now: Millis) -> Result<usize> {
        let receipt = self.save(scope, given, now)?;
        for (id, outcome) in &receipt.outcomes {
            let key = self.key_of(&scope.tenant, id);
            match (outcome, key) {
                (Outcome::Conflict, _) => return Err(gone(id)),
                (Outcome::Forgotten, Some(key))
                    if !self.memories.get(&key).is_none_or(|it| it.is_living()) =>
                {
                    self.set_forgotten(key, None);
                }
                _ => {}
            }
        }
        for memory in given {
            let Some(key) = self.key_of(&scope.tenant, &memory.id) else { continue };
            let Some(stored) = self.memories.get_mut(&key) else { continue };
            // A text that is given again gets its new time, so that it doesn't expire by its age.
            stored.time = stored.time.max(memory.draft.time);
            let is_over = stored.stashed.as_ref().is_some_and(|stashed| {
                !stashed.is_protected && stashed.expires_at.is_some_and(|at| at <= now)
            });
            if is_over {
                self.leave_stash(key);
            }
        }
        Ok(receipt.pending)
    }

    /// Puts a memory into the stash, or changes the terms on which it is there. Returns whether it is new there.
    fn put_aside(&mut self, key: MemoryKey, stashing: &Stashing, is_given: bool, now: Millis) -> bool {
        let Some(memory) = self.memories.get_mut(&key) else { return false };
        let holds_out = stashing.cause.holds_out();
        let (owner, session) = (memory.owner.clone(), memory.session);
        match &mut memory.stashed {
            Some(stashed) if holds_out => {
                stashed.expires_at = stashing.expires_at.or(stashed.expires_at);
                stashed.is_protected = stashing.is_protected.unwrap_or(stashed.is_protected);
                stashed.topic = stashing.topic.clone().or(stashed.topic.take());
                stashed.cause = stashing.cause;
                self.hold_out(key, true);
                false
            }
            Some(_) => false,
            None => {
                memory.stashed = Some(Stashed {
                    stashed_at: now,
                    expires_at: stashing.expires_at,
                    is_protected: stashing.is_protected.unwrap_or(false),
                    is_held_out: holds_out,
                    is_given,
                    topic: stashing.topic.clone().or(memory.topic.clone()),
                    cause: stashing.cause,
                });
                self.touch(&owner, session.filter(|_| holds_out));
                true
            }
        }
    }

    /// Sets whether contexts leave a stashed memory out. Returns whether it is in the stash.
    fn hold_out(&mut self, key: MemoryKey, is_held_out: bool) -> bool {
        let Some(memory) = self.memories.get_mut(&key) else { return false };
        let Some(stashed) = &mut memory.stashed else { return false };
        let was_held_out = std::mem::replace(&mut stashed.is_held_out, is_held_out);
        let (owner, session) = (memory.owner.clone(), memory.session);
        if was_held_out != is_held_out {
            self.touch(&owner, session);
        }
        true
    }

    /// Takes a memory out of the stash. Returns whether it was there.
    fn leave_stash(&mut self, key: MemoryKey) -> bool {
        let Some(memory) = self.memories.get_mut(&key) else { return false };
        let Some(stashed) = memory.stashed.take() else { return false };
        let (owner, session) = (memory.owner.clone(), memory.session);
        self.touch(&owner, session.filter(|_| stashed.is_held_out));
        true
    }

    /// Returns the tokens that memories took in the last context of their session, with the headings that have no other
    /// line. They no longer count as shown.
    fn free(&mut self, session: SessionKey, memories: &[MemoryKey]) -> i64 {
        let Some(session) = self.session_mut(Some(session)) else { return 0 };
        let Some(assembly) = &mut session.assembly else { return 0 };
        let gone: Vec<ShownLine> = memories.iter().filter_map(|key| assembly.lines.remove(key)).collect();
        let headings: BTreeMap<i64, i64> =
            gone.iter().map(|line| (line.heading, line.heading_tokens)).collect();
        let is_needed = |heading: &i64| assembly.lines.values().any(|line| line.heading == *heading);
        let unneeded = headings.iter().filter(|(heading, _)| !is_needed(heading)).map(|(_, tokens)| tokens);
        let freed = gone.iter().map(|line| line.tokens).chain(unneeded.copied()).sum();
        if freed > 0 {
            assembly.key = None;
        }
        freed
    }
}

fn gone(id: &MemoryId) -> Error {
    Error::not_found(format!("the text of segment `{id}` was purged before, so it is not stored again"))
        .hint("nothing was stashed; leave that segment out")
}
