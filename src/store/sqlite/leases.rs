//! Leases: the right of one process to do some work, until it ends.

use rusqlite::{OptionalExtension, params};

use crate::error::Result;
use crate::memory::Millis;
use crate::scope::Scope;
use crate::store::Store;
use crate::store::decide::leases::{Held, may_take};

impl Store {
    /// Takes or renews the owner's lease `name` for `holder`, for `lasts` milliseconds from now on by the store's own clock;
    /// returns `false` where another holder has it.
    ///
    /// Of several callers at once, one gets it. A holder that neither renews nor releases it, such as a dead process,
    /// loses it when it ends. Owners don't see each other's leases.
    pub async fn lease(&self, scope: &Scope, name: &str, holder: &str, lasts: Millis) -> Result<bool> {
        let (name, holder) = (owned(scope, name), holder.to_owned());
        let store = self.clone();
        self.write(scope, move |connection, _| {
            let held: Option<(String, Millis)> = connection
                .prepare_cached("SELECT holder, expires FROM leases WHERE name = ?1")?
                .query_row([&name], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
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

    /// Ends the owner's lease `name` where `holder` has it; does nothing where another has taken it since.
    pub async fn release(&self, scope: &Scope, name: &str, holder: &str) -> Result<()> {
        let (name, holder) = (owned(scope, name), holder.to_owned());
        self.write(scope, move |connection, _| {
            connection
                .prepare_cached("DELETE FROM leases WHERE name = ?1 AND holder = ?2")?
                .execute((name, holder))?;
            Ok(())
        })
        .await
    }
}

/// Returns the name that the owner's lease is stored under: the table has no column for the owner.
fn owned(scope: &Scope, name: &str) -> String {
    format!("{name} of {}", scope.owner.as_str())
}
