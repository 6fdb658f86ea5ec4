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
use crate::columns::memory_key;
use crate::database::sql::Sql;
use crate::read::conditions::{Which, of_scope};
use crate::transactions::{read, write};
use tiro_base::error;
use tiro_base::memory::{MemoryKey, Millis};
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::decide::exchange;
use tiro_store::{Changes, Incoming, MergeOutcome, MergeRights, WantedChanges};

/// The condition that the memory `m` with the row `x` of `exchange` came from a peer. It is stored under the id under
/// which it travels, then. What was stored here first travels under another id, or under the same one if no peer knows the
/// user by another name.
pub(crate) const CAME: &str =
    "CASE WHEN x.exchange_id IS NULL THEN x.changed_by IS NOT NULL ELSE x.exchange_id = m.id END";

impl PostgresStore {
    pub(crate) async fn came_from_peers(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> error::Result<Vec<MemoryKey>> {
        read!(self, scope, tx => {
            let mut sql = Sql::new(
                "SELECT m.seq FROM memories m JOIN exchange x ON x.owner = m.owner AND x.memory = m.seq WHERE ",
            );
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            let keys = sql.bind(keys.iter().map(|key| key.in_store()).collect::<Vec<i64>>());
            sql.push(&format!(
                " AND m.seq = ANY ({keys}) AND {CAME} ORDER BY m.seq"
            ));
            tx.query(&sql).await?.iter().map(|row| memory_key(row, 0)).collect()
        })
    }

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
        let (mut outcomes, mut left) = (Vec::with_capacity(incoming.len()), incoming.as_slice());
        while !left.is_empty() {
            let (first, later) = left.split_at(exchange::at_once(left));
            let merged: error::Result<(Vec<MergeOutcome>, bool)> =
                write!(self, scope, tx => { merge::merge(&tx, scope, peer, first, now).await });
            let (merged, is_purging) = merged?;
            if is_purging {
                self.drop_shared_answers(scope).await?;
                self.finish_purges(scope, Millis::MAX).await?;
            }
            outcomes.extend(merged);
            left = later;
        }
        let stored = outcomes.iter().filter(|outcome| **outcome == MergeOutcome::Stored).count();
        self.database().grew(stored).await;
        Ok(outcomes)
    }
}
