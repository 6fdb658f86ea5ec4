//! Stores leases. A lease gives one process the right to do some work until the lease ends.
//!
//! A lease need not survive a power failure, because no process that holds a lease survives it.

use rusqlite::{Connection, OptionalExtension, params};

use crate::SqliteStore;
use crate::error::Result;
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::decide::leases::{Held, may_take};

impl SqliteStore {
    pub(crate) async fn lease(
        &self,
        scope: &Scope,
        name: &str,
        holder: &str,
        lasts: Millis,
    ) -> error::Result<bool> {
        let (name, holder) = (owned(scope, name), holder.to_owned());
        let store = self.clone();
        self.write_unsynced(scope, move |connection, _| {
            let held = held(connection, &name)?;
            let now = store.inner.clock.now();
            let held = held.as_ref().map(|(holder, expires)| Held { holder, expires: *expires });
            if !may_take(held, &holder, now) {
                return Ok(false);
            }
            connection
                .prepare_cached("INSERT OR REPLACE INTO leases (name, holder, expires) VALUES (?1, ?2, ?3)")?
                .execute(params![name, holder, now.saturating_add(lasts)])?;
            Ok(true)
        })
        .await
    }

    pub(crate) async fn is_leased(&self, scope: &Scope, name: &str) -> error::Result<bool> {
        let name = owned(scope, name);
        self.read(scope, move |inner, connection, _| {
            let held = held(connection, &name)?;
            let held = held.as_ref().map(|(holder, expires)| Held { holder, expires: *expires });
            // No holder has an empty name, so this asks whether anybody holds the lease.
            Ok(!may_take(held, "", inner.clock.now()))
        })
        .await
    }

    pub(crate) async fn release(&self, scope: &Scope, name: &str, holder: &str) -> error::Result<()> {
        let (name, holder) = (owned(scope, name), holder.to_owned());
        self.write_unsynced(scope, move |connection, _| {
            connection
                .prepare_cached("DELETE FROM leases WHERE name = ?1 AND holder = ?2")?
                .execute((name, holder))?;
            Ok(())
        })
        .await
    }
}

/// Returns who has the lease that is stored under `name`, and when it ends.
fn held(connection: &Connection, name: &str) -> Result<Option<(String, Millis)>> {
    let mut statement = connection.prepare_cached("SELECT holder, expires FROM leases WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// Returns the name under which the owner's lease is stored. The name contains the owner, because the table has
/// no column for the owner.
fn owned(scope: &Scope, name: &str) -> String {
    format!("{name} of {}", scope.tenant.as_str())
}
