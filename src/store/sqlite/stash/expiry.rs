//! Ends the stash of memories whose time is over.

use rusqlite::{Connection, params};

use crate::error::Result;
use crate::memory::Millis;
use crate::scope::Scope;
use crate::store::sqlite::connection::blocking;
use crate::store::sqlite::forget::erase;
use crate::store::{StashExpired, Store};

/// Returns the query for the rows of the memories that leave the stash: those past their date, those older than an age, and
/// those that were stashed because no summary covered them and that a summary covers now. Each part has an index, except
/// the age, which is left out if there is no such limit.
fn due(made_before: Millis) -> String {
    let age = match made_before {
        Millis::MIN => "",
        _ => {
            "UNION SELECT a.memory FROM stashed a JOIN memories m ON m.seq = a.memory
             WHERE a.owner = ?1 AND NOT a.is_protected AND m.time < ?3"
        }
    };
    format!(
        "SELECT memory FROM stashed WHERE owner = ?1 AND expires_at <= ?2 AND NOT is_protected {age}
         UNION SELECT p.memory FROM stashed p JOIN memories m ON m.seq = p.memory
             WHERE p.owner = ?1 AND p.cause = 'pruning' AND EXISTS (SELECT 1 FROM summaries u
                 WHERE u.session = m.session AND m.ordinal BETWEEN u.first AND u.last)"
    )
}

impl Store {
    /// Returns what [`Store::expire_stash`] would do if it had no limit.
    pub async fn expiring_stash(
        &self,
        scope: &Scope,
        now: Millis,
        made_before: Millis,
    ) -> Result<StashExpired> {
        self.read(scope, move |_, connection, scope| {
            let due = due(made_before);
            let sql = format!(
                "SELECT coalesce(sum(is_given), 0), count(*) FROM stashed WHERE memory IN ({due}) AND ?3 IS ?3"
            );
            let values = params![scope.owner.as_str(), now, made_before];
            let (removed, all): (i64, i64) =
                connection.prepare_cached(&sql)?.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(StashExpired { removed, ended: all - removed })
        })
        .await
    }

    /// Gives unused pages of the file back if they are more than a quarter of it. Returns by how many bytes the file is
    /// smaller: 0 if there was little to give back, or another process uses the file.
    pub async fn vacuum(&self, scope: &Scope) -> Result<u64> {
        /// The share of unused pages that is not worth a new file.
        const FEW: i64 = 4;
        self.admit(scope)?;
        let store = self.clone();
        blocking(move || {
            let Ok(writer) = store.inner.writer.try_lock() else { return Ok(0) };
            store.inner.place.check()?;
            let pragma = |name: &str| writer.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0));
            let (pages, free): (i64, i64) = (pragma("page_count")?, pragma("freelist_count")?);
            if free * FEW <= pages {
                return Ok(0);
            }
            let size: i64 = pragma("page_size")?;
            // Another process that reads or writes has precedence; the next call tries again.
            if writer.execute_batch("VACUUM").is_err() {
                return Ok(0);
            }
            store.inner.shorten_log(&writer, 0);
            let left: i64 = writer.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            Ok(((pages - left) * size).max(0).unsigned_abs())
        })
        .await
    }

    /// Ends the stash of up to `limit` memories that expired by `now`, or were made before `made_before`; protected ones
    /// stay. Memories that were stashed to be reachable, and that a summary covers now, leave too.
    ///
    /// Memories that were given to the stash as text are removed for good: their texts, index rows and vectors. If the
    /// same text is stashed again, it is stored again. Other memories only leave the stash. Does not write if nothing
    /// is due.
    pub async fn expire_stash(
        &self,
        scope: &Scope,
        now: Millis,
        made_before: Millis,
        limit: usize,
    ) -> Result<StashExpired> {
        let due = self.expiring_stash(scope, now, made_before).await?;
        if due == StashExpired::default() {
            return Ok(due);
        }
        self.write(scope, move |connection, scope| expire(connection, scope, now, made_before, limit)).await
    }
}

fn expire(
    connection: &Connection,
    scope: &Scope,
    now: Millis,
    made_before: Millis,
    limit: usize,
) -> Result<StashExpired> {
    let due = due(made_before);
    let sql = format!(
        "SELECT memory, is_given FROM stashed WHERE memory IN ({due}) AND ?3 IS ?3 ORDER BY memory LIMIT ?4"
    );
    let values = params![scope.owner.as_str(), now, made_before, limit as i64];
    let due: Vec<(i64, bool)> = connection
        .prepare_cached(&sql)?
        .query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut expired = StashExpired::default();
    for (memory, is_given) in due {
        match is_given {
            true => {
                erase(connection, memory)?;
                expired.removed += 1;
            }
            false => {
                connection.prepare_cached("DELETE FROM stashed WHERE memory = ?1")?.execute([memory])?;
                expired.ended += 1;
            }
        }
    }
    Ok(expired)
}
