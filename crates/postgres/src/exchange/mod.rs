//! Exchanges memories with other stores: reads what changed, and merges what changed in another store.
//!
//! The table `exchange` has a row for each memory, and `absent` one for each memory that is not here but whose state is
//! known. Triggers number every change (`migrations/0007_exchange.sql`), so no code that writes has to think of it. The
//! decisions are those of [`tiro_store::decide::exchange`].

mod changes;
mod content;
mod giving;
mod ids;
mod known;
mod merge;
mod settle;

use crate::PostgresStore;
use crate::transactions::{read, write};
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::decide::exchange;
use tiro_store::{Changes, Incoming, MergeOutcome, MergeRights, WantedChanges};

impl PostgresStore {
    pub(crate) async fn changes(
        &self,
        scope: &Scope,
        name: Option<&AuthorId>,
        wanted: &WantedChanges,
        after: i64,
        limit: usize,
    ) -> error::Result<Changes> {
        read!(self, scope, tx => { changes::page(&tx, scope, name, wanted, after, limit).await })
    }

    pub(crate) async fn merge_changes(
        &self,
        scope: &Scope,
        name: Option<&AuthorId>,
        peer: &str,
        rights: MergeRights,
        incoming: Vec<Incoming>,
        now: Millis,
    ) -> error::Result<Vec<MergeOutcome>> {
        exchange::check(scope, name, &incoming)?;
        if let Some(name) = name {
            loop {
                let named: error::Result<usize> =
                    write!(self, scope, tx => { ids::assign(&tx, name, ids::AT_ONCE).await });
                if named? < ids::AT_ONCE {
                    break;
                }
            }
        }
        let peer = merge::Peer { name, id: peer, rights };
        let merged: error::Result<(Vec<MergeOutcome>, bool)> =
            write!(self, scope, tx => { merge::merge(&tx, scope, peer, &incoming, now).await });
        let (outcomes, is_purging) = merged?;
        if is_purging {
            self.drop_shared_answers(scope).await?;
            self.finish_purges(scope, Millis::MAX).await?;
        }
        Ok(outcomes)
    }
}
        let stored = outcomes.iter().filter(|outcome| **outcome == MergeOutcome::Stored).count();
        self.database().grew(stored).await;
