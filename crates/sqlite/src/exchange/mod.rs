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

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::SqliteStore;
use crate::keys::memory_key;
use crate::read::conditions::Conditions;
use tiro_base::error;
use tiro_base::memory::{MemoryKey, Millis};
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::decide::exchange;
use tiro_store::{Changes, Incoming, MergeOutcome, MergeRights, WantedChanges};

/// The condition that the memory `m` with the row `e` of `exchange` came from a peer. It is stored under the id under
/// which it travels, then. What was stored here first travels under another id, or under the same one if no peer knows the
/// user by another name.
pub(crate) const CAME: &str = "iif(e.exchange_id IS NULL, e.changed_by IS NOT NULL, e.exchange_id = m.id)";

impl SqliteStore {
    pub(crate) async fn came_from_peers(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> error::Result<Vec<MemoryKey>> {
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            let sql = format!(
                "SELECT m.seq FROM json_each(?) k CROSS JOIN memories m ON m.seq = k.value
                     CROSS JOIN exchange e ON e.memory = m.seq
                 WHERE {CAME} AND {} ORDER BY m.seq",
                conditions.sql
            );
            let keys: Vec<i64> = keys.iter().map(|key| key.in_store()).collect();
            let keys = Value::from(format!("{keys:?}"));
            let mut statement = connection.prepare_cached(&sql)?;
            let values = [keys].into_iter().chain(conditions.values);
            let rows = statement.query_map(params_from_iter(values), |row| memory_key(row, 0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

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
        mut incoming: Vec<Incoming>,
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
        let mut outcomes = Vec::with_capacity(incoming.len());
        while !incoming.is_empty() {
            let later = incoming.split_off(exchange::at_once(&incoming));
            let (name, peer) = (name.cloned(), peer.to_owned());
            let (merged, is_purging) = self
                .write(scope, move |connection, scope| {
                    let peer = merge::Peer { name: name.as_ref(), id: &peer, rights };
                    merge::merge(connection, scope, peer, &incoming, now)
                })
                .await?;
            if is_purging {
                self.finish_purges(scope, Millis::MAX).await?;
            }
            outcomes.extend(merged);
            incoming = later;
        }
        Ok(outcomes)
    }
}
