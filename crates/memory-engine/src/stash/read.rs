//! Lists what is in the stash.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::MemoryStore;
use crate::state::{Stashed, State, Stored};
use tiro_base::error::Result;
use tiro_base::filter::{Filter, Stash};
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;
use tiro_store::{SessionKey, StashContents, StashGroup, StashPage, StashedMemory};

impl MemoryStore {
    /// Does as [`ReadStash::stashed`](tiro_store::ReadStash::stashed).
    pub(crate) async fn stashed(&self, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<StashedMemory>> {
        self.read(scope, |state| {
            let view = state.living(scope);
            let keys: BTreeSet<MemoryKey> = keys.into_iter().collect();
            Ok(keys.into_iter().filter_map(|key| state.stashed_row(key, view.get(key)?)).collect())
        })
    }

    /// Does as [`ReadStash::list_stash`](tiro_store::ReadStash::list_stash).
    pub(crate) async fn list_stash(
        &self,
        scope: &Scope,
        filter: &Filter,
        after: Option<MemoryKey>,
        limit: usize,
    ) -> Result<Vec<StashedMemory>> {
        let filter = within_stash(filter.clone());
        self.read(scope, |state| {
            let view = state.living(scope).narrowed(&filter);
            let listed = view.all().filter(|(key, _)| after.is_none_or(|after| *key > after));
            Ok(listed.filter_map(|(key, memory)| state.stashed_row(key, memory)).take(limit).collect())
        })
    }

    /// Does as [`ReadStash::stash_contents`](tiro_store::ReadStash::stash_contents).
    pub(crate) async fn stash_contents(&self, scope: &Scope, page: StashPage) -> Result<StashContents> {
        let StashPage { filter, offset, groups, ids } = page;
        let filter = within_stash(filter);
        self.read(scope, |state| {
            let view = state.living(scope).narrowed(&filter);
            let mut by_group: BTreeMap<(Option<&str>, Option<SessionKey>), Vec<_>> = BTreeMap::new();
            for (key, memory) in view.all() {
                if let Some(stashed) = &memory.stashed {
                    let group = (stashed.topic.as_deref(), memory.session);
                    by_group.entry(group).or_default().push((key, memory, stashed));
                }
            }
            let group = |members: &Vec<_>| state.group(members, ids);
            let mut all: Vec<StashGroup> = by_group.values().filter_map(group).collect();
            all.sort_by_key(|group| (Reverse(group.last), group.topic.clone(), group.session.clone()));
            Ok(StashContents {
                memories: all.iter().map(|group| group.memories).sum(),
                tokens: all.iter().map(|group| group.tokens).sum(),
                groups: all.len() as i64,
                page: all.into_iter().skip(offset).take(groups).collect(),
            })
        })
    }
}

impl State {
    /// Returns the group of these memories, with the ids of the first few, the last stashed first.
    fn group(&self, members: &[(MemoryKey, &Stored, &Stashed)], ids: usize) -> Option<StashGroup> {
        let mut latest_first = members.to_vec();
        latest_first.sort_by_key(|(key, _, stashed)| (Reverse(stashed.stashed_at), *key));
        let (_, memory, stashed) = latest_first.first()?;
        Some(StashGroup {
            topic: stashed.topic.clone(),
            session: self.name_of(memory),
            memories: members.len() as i64,
            tokens: members.iter().map(|(_, memory, _)| memory.tokens).sum(),
            last: stashed.stashed_at,
            ids: latest_first.iter().take(ids).map(|(_, memory, _)| memory.id.clone()).collect(),
        })
    }

    fn stashed_row(&self, key: MemoryKey, memory: &Stored) -> Option<StashedMemory> {
        let stashed = memory.stashed.as_ref()?;
        Some(StashedMemory {
            id: memory.id.clone(),
            key,
            kind: memory.kind,
            session: self.name_of(memory),
            ordinal: memory.ordinal,
            topic: stashed.topic.clone(),
            time: memory.time,
            stashed_at: stashed.stashed_at,
            expires_at: stashed.expires_at,
            is_protected: stashed.is_protected,
            is_held_out: stashed.is_held_out,
            is_given: stashed.is_given,
            cause: stashed.cause,
            tokens: memory.tokens,
        })
    }
}

/// Returns the filter, limited to the stash.
fn within_stash(filter: Filter) -> Filter {
    let stash = filter.stash.filter(|stash| stash.is_within()).unwrap_or(Stash::Only);
    Filter { stash: Some(stash), ..filter }
}
