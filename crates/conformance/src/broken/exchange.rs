//! Faults of the exchange with other stores.

use super::{BrokenStore, Fault};
use tiro_base::error::Result;
use tiro_base::memory::{Kind, Millis};
use tiro_base::scope::{AuthorId, Scope, Visibility};
use tiro_store::decide::exchange::Stamp;
use tiro_store::*;

impl BrokenStore {
    pub async fn changes(
        &self,
        scope: &Scope,
        name: Option<&AuthorId>,
        wanted: &WantedChanges,
        after: i64,
        limit: usize,
    ) -> Result<Changes> {
        let mut wanted = wanted.clone();
        if self.is(Fault::GivesBack) {
            wanted.peer = None;
        }
        if self.is(Fault::IgnoresFilter) {
            wanted.kinds = Kind::ALL.to_vec();
        }
        let after = if self.is(Fault::IgnoresPage) { 0 } else { after };
        let limit = self.limit(limit);
        let mut page = self.inner.changes(&self.scope(scope), name, &wanted, after, limit).await?;
        for change in page.changes.iter_mut().filter(|_| self.is(Fault::DropsContents)) {
            change.content = None;
        }
        if self.is(Fault::HidesForgotten) {
            page.changes.retain(|change| change.state.is_living());
        }
        if self.is(Fault::KeepsBack) {
            let own = self.own.lock().unwrap();
            page.changes.retain(|change| !own.contains(&change.id));
        }
        page.changes = self.ordered(page.changes);
        Ok(page)
    }

    pub async fn merge_changes(
        &self,
        scope: &Scope,
        name: Option<&AuthorId>,
        peer: &str,
        rights: MergeRights,
        mut incoming: Vec<Incoming>,
        now: Millis,
    ) -> Result<Vec<MergeOutcome>> {
        if self.is(Fault::LosesMerges) {
            return Ok(vec![MergeOutcome::Stored; incoming.len()]);
        }
        let (name, rights) = match self.fault {
            Fault::IgnoresNames => (None, rights),
            Fault::IgnoresRights => (name, MergeRights::ALL),
            _ => (name, rights),
        };
        let last = Stamp::from_number(i64::MAX);
        for change in &mut incoming {
            match self.fault {
                Fault::TakesWhatComes => (change.state.marked_at, change.state.forgotten_at) = (last, last),
                Fault::DropsStates => change.state = ExchangedState::default(),
                Fault::TakesAnyName => change.author = name.unwrap_or(&scope.reader).clone(),
                Fault::SharesWhatIsPrivate => change.visibility = Visibility::Project,
                Fault::KeepsBack => drop(self.own.lock().unwrap().insert(change.id.clone())),
                _ => {}
            }
        }
        let dropped = incoming.iter().map(|change| self.is(Fault::ForgetsStates) && change.content.is_none());
        let dropped: Vec<bool> = dropped.collect();
        let mut kept = dropped.iter().map(|is_dropped| !is_dropped);
        incoming.retain(|_| kept.next().unwrap_or(true));
        let merged = self.inner.merge_changes(&self.scope(scope), name, peer, rights, incoming, now).await?;
        let mut merged = merged.into_iter();
        let outcome = |is_dropped: &bool| match is_dropped {
            true => MergeOutcome::Remembered,
            false => match merged.next() {
                Some(MergeOutcome::Conflict) if self.is(Fault::HidesConflicts) => MergeOutcome::Known,
                Some(outcome) => outcome,
                None => MergeOutcome::Known,
            },
        };
        Ok(dropped.iter().map(outcome).collect())
    }
}
