//! Ends the stash of memories whose time is over.

use crate::MemoryStore;
use crate::state::{ActKind, Stashed, State, Stored};
use tiro_base::error::Result;
use tiro_base::memory::{MemoryKey, Millis};
use tiro_base::scope::{Scope, TenantId};
use tiro_store::decide::clock;
use tiro_store::tuning::GRACE;
use tiro_store::{StashCause, StashExpired};

/// Of how many memories that were stored last the latest time counts. One may have been stored with a clock that was
/// behind.
const LAST: usize = 64;

/// The time that a memory is over by its terms, and the earliest time of a memory that is not over by its age.
type Times = (Millis, Millis);

impl MemoryStore {
    /// Does as [`ReadStash::newest`](tiro_store::ReadStash::newest).
    pub(crate) async fn newest(&self, scope: &Scope) -> Result<Option<Millis>> {
        self.read(scope, |state| Ok(state.newest(&scope.tenant)))
    }

    /// Does as [`ReadStash::expiring_stash`](tiro_store::ReadStash::expiring_stash).
    pub(crate) async fn expiring_stash(
        &self,
        scope: &Scope,
        now: Millis,
        made_before: Millis,
    ) -> Result<StashExpired> {
        self.read(scope, |state| Ok(state.expiring(&scope.tenant, (now, made_before))))
    }

    /// Does as [`WriteStash::expire_stash`](tiro_store::WriteStash::expire_stash).
    pub(crate) async fn expire_stash(
        &self,
        scope: &Scope,
        (now, made_before): Times,
        operation: &str,
        limit: usize,
    ) -> Result<StashExpired> {
        self.write(scope, |state| {
            let is_over = state.expiring(&scope.tenant, (now, made_before)) != StashExpired::default();
            let ahead = clock::ahead(state.newest(&scope.tenant), now).filter(|_| is_over);
            if ahead.is_some() {
                return Ok(StashExpired { ahead, ..StashExpired::default() });
            }
            let graced = (now.saturating_sub(GRACE), made_before.saturating_sub(GRACE));
            let early = state.removed_early(&scope.tenant, graced);
            if !is_over && early.is_empty() {
                return Ok(StashExpired::default());
            }
            for (name, key) in &early {
                state.set_forgotten(*key, None);
                if let Some(operation) = state.operations.get_mut(name) {
                    operation.memories.remove(key);
                }
            }
            // Contexts show the memories again, except texts, which belong to the stash alone.
            for key in state.stashed_ones(&scope.tenant, |memory, stashed| {
                is_over_by(memory, stashed, (now, made_before))
            }) {
                let is_given =
                    state.memories.get(&key).and_then(|it| it.stashed.as_ref()).is_none_or(|it| it.is_given);
                if !is_given {
                    state.hold_out(key, false);
                }
            }
            let expired = state.expire(&scope.tenant, graced, (operation, now), limit);
            Ok(StashExpired { returned: early.len() as i64, ..expired })
        })
    }
}

/// Returns whether the time of a stashed memory is over.
fn is_over_by(memory: &Stored, stashed: &Stashed, (now, made_before): Times) -> bool {
    !stashed.is_protected && (stashed.expires_at.is_some_and(|at| at <= now) || memory.time < made_before)
}

impl State {
    /// Returns the owner's memories in the stash for which `is_meant`.
    fn stashed_ones(&self, owner: &TenantId, is_meant: impl Fn(&Stored, &Stashed) -> bool) -> Vec<MemoryKey> {
        let is_one =
            |memory: &Stored| memory.stashed.as_ref().is_some_and(|stashed| is_meant(memory, stashed));
        self.owned(owner).filter(|(_, memory)| is_one(memory)).map(|(key, _)| key).collect()
    }

    /// Returns the living memories that leave the stash: their time is over, or a summary covers them, for lack of
    /// which they are there.
    fn leaving(&self, owner: &TenantId, times: Times) -> Vec<MemoryKey> {
        self.stashed_ones(owner, |memory, stashed| {
            let is_covered = stashed.cause == StashCause::Pruning && self.is_covered(memory);
            memory.is_living() && (is_covered || is_over_by(memory, stashed, times))
        })
    }

    /// Counts the memories that leave the stash: texts that were given, and others.
    fn expiring(&self, owner: &TenantId, times: Times) -> StashExpired {
        let leaving = self.leaving(owner, times);
        let is_given = |key: &&MemoryKey| self.is_given(**key);
        let removed = leaving.iter().filter(is_given).count() as i64;
        StashExpired { removed, ended: leaving.len() as i64 - removed, ..StashExpired::default() }
    }

    fn is_given(&self, key: MemoryKey) -> bool {
        let stashed = self.memories.get(&key).and_then(|memory| memory.stashed.as_ref());
        stashed.is_some_and(|stashed| stashed.is_given)
    }

    /// Returns the latest time at which one of the owner's last memories was stored.
    fn newest(&self, owner: &TenantId) -> Option<Millis> {
        let mut times: Vec<Millis> = self.owned(owner).map(|(_, memory)| memory.stored_at).collect();
        times.drain(..times.len().saturating_sub(LAST));
        times.into_iter().max()
    }

    /// Returns the texts that were removed because their time was over, but isn't now, each with the operation.
    fn removed_early(&self, owner: &TenantId, times: Times) -> Vec<(String, MemoryKey)> {
        let acts = self
            .operations
            .iter()
            .filter(|(_, act)| act.owner == *owner && act.kind == ActKind::Expire && act.undone_at.is_none());
        let removed = acts.flat_map(|(name, act)| act.memories.iter().map(move |key| (name.clone(), *key)));
        let is_early = |key: &MemoryKey| {
            self.memories.get(key).is_some_and(|memory| {
                let stashed = memory.stashed.as_ref();
                !memory.is_living() && stashed.is_some_and(|stashed| !is_over_by(memory, stashed, times))
            })
        };
        removed.filter(|(_, key)| is_early(key)).collect()
    }

    /// Removes texts whose time is over as an operation, and takes the other memories out of the stash.
    fn expire(
        &mut self,
        owner: &TenantId,
        times: Times,
        (operation, now): (&str, Millis),
        limit: usize,
    ) -> StashExpired {
        let leaving = self.leaving(owner, times).into_iter().take(limit);
        let (given, named): (Vec<MemoryKey>, Vec<MemoryKey>) = leaving.partition(|key| self.is_given(*key));
        for key in &named {
            self.leave_stash(*key);
        }
        if !given.is_empty() {
            self.forget_keys(owner, operation, ActKind::Expire, &given, now);
        }
        StashExpired { removed: given.len() as i64, ended: named.len() as i64, ..StashExpired::default() }
    }
}
