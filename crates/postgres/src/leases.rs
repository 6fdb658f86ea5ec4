//! Leases. A lease gives one process the right to do some work until the lease ends.
//!
//! A lease is a row, and who locks the row decides. The database's clock says when a lease ends, because the clocks of
//! the machines that share it differ. A lease need not survive a crash of the server, because its holder then asks again.

use crate::PostgresStore;
use crate::error::Result;
use crate::transactions::{Durability, Transaction, read, write_light};
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::decide::leases::{Held, may_take};

/// The time of the database's clock, in milliseconds since 1970 UTC.
const CLOCK: &str = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

impl PostgresStore {
    pub(crate) async fn lease(
        &self,
        scope: &Scope,
        name: &str,
        holder: &str,
        lasts: Millis,
    ) -> error::Result<bool> {
        write_light!(self, scope, Durability::Unsynced, tx => {
            // This locks the row, also if it is new, and changes nothing.
            let sql = format!(
                "INSERT INTO leases (owner, name, holder, expires) VALUES ($1, $2, '', 0)
                 ON CONFLICT (owner, name) DO UPDATE SET expires = leases.expires
                 RETURNING holder, expires, {CLOCK}"
            );
            let row = tx.only(&sql, &[&tx.seen.shared, &name]).await?;
            let now = self.clock().stopped().unwrap_or(row.try_get(2)?);
            let held = Held { holder: row.try_get(0)?, expires: row.try_get(1)? };
            if !may_take(Some(held), holder, now) {
                return Ok(false);
            }
            let sql = "UPDATE leases SET holder = $3, expires = $4 WHERE owner = $1 AND name = $2";
            tx.execute(sql, &[&tx.seen.shared, &name, &holder, &now.saturating_add(lasts)]).await?;
            Ok(true)
        })
    }

    pub(crate) async fn is_leased(&self, scope: &Scope, name: &str) -> error::Result<bool> {
        read!(self, scope, tx => {
            let sql = format!("SELECT holder, expires, {CLOCK} FROM leases WHERE owner = $1 AND name = $2");
            let Some(row) = tx.row(&sql, &[&tx.seen.shared, &name]).await? else { return Ok(false) };
            let now = self.clock().stopped().unwrap_or(row.try_get(2)?);
            let held = Held { holder: row.try_get(0)?, expires: row.try_get(1)? };
            // No holder has an empty name, so this asks whether anybody holds the lease.
            Ok(!may_take(Some(held), "", now))
        })
    }

    pub(crate) async fn release(&self, scope: &Scope, name: &str, holder: &str) -> error::Result<()> {
        write_light!(self, scope, Durability::Unsynced, tx => {
            let sql = "DELETE FROM leases WHERE owner = $1 AND name = $2 AND holder = $3";
            tx.execute(sql, &[&tx.seen.shared, &name, &holder]).await?;
            Ok(())
        })
    }

    /// Returns the time by which leases end: that of the database's clock, unless a test stopped the store's clock.
    pub(crate) async fn lease_time(&self, tx: &Transaction) -> Result<Millis> {
        match self.clock().stopped() {
            Some(now) => Ok(now),
            None => Ok(tx.only(&format!("SELECT {CLOCK}"), &[]).await?.try_get(0)?),
        }
    }
}
