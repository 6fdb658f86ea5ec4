//! Exchanges memories with other stores: reads what changed, and merges what changed in another store.
//!
//! The table `exchange` has a row for each memory, and `absent` one for each memory that is not here but whose state is
//! known. Triggers number every change (`migrations/0018_exchange.sql`), so no code that writes has to think of it. The
//! decisions are those of [`tiro_store::decide::exchange`].

mod changes;
mod content;
mod giving;
mod ids;
mod known;
mod merge;
mod settled;

use crate::SqliteStore;
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::decide::exchange;
use tiro_store::{Changes, Incoming, MergeOutcome, MergeRights, WantedChanges};

impl SqliteStore {
    pub(crate) async fn changes(
        &self,
        scope: &Scope,
        name: Option<&AuthorId>,
        wanted: &WantedChanges,
        after: i64,
        limit: usize,
    ) -> error::Result<Changes> {
        let (name, wanted) = (name.cloned(), wanted.clone());
        self.read_all(scope, move |_, connection, scope| {
            changes::page(connection, scope, name.as_ref(), &wanted, after, limit)
        })
        .await
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
        if let Some(name) = name.cloned() {
            let assign = |scope| {
                let name = name.clone();
                self.write(scope, move |connection, scope| {
                    ids::assign(connection, scope, &name, ids::AT_ONCE)
                })
            };
            while assign(scope).await? == ids::AT_ONCE {}
        }
        let (name, peer) = (name.cloned(), peer.to_owned());
        let (outcomes, is_purging) = self
            .write(scope, move |connection, scope| {
                let peer = merge::Peer { name: name.as_ref(), id: &peer, rights };
                merge::merge(connection, scope, peer, &incoming, now)
            })
            .await?;
        if is_purging {
            self.finish_purges(scope, Millis::MAX).await?;
        }
        Ok(outcomes)
    }
}
