//! Ends the stash of memories whose time is over.

use rusqlite::{Connection, params};

use crate::error::Result;
use crate::memory::Millis;
use crate::scope::Scope;
use crate::store::sqlite::forget::erase;
use crate::store::{StashExpired, Store};

/// Which memories leave the stash: those past their date, those older than an age, and those that were stashed because no
/// summary covered them and that a summary covers now.
const DUE: &str = "s.owner = ?1 AND (NOT s.is_protected AND (s.expires_at <= ?2 OR m.time < ?3)
    OR s.cause = 'pruning' AND EXISTS (SELECT 1 FROM summaries u WHERE u.session = m.session
        AND m.ordinal BETWEEN u.first AND u.last))";

impl Store {
    /// Returns what [`Store::expire_stash`] would do if it had no limit.
    pub async fn expiring_stash(
        &self,
        scope: &Scope,
        now: Millis,
        made_before: Millis,
    ) -> Result<StashExpired> {
        self.read(scope, move |_, connection, scope| {
            let sql = format!(
                "SELECT coalesce(sum(s.is_given), 0), count(*) FROM stashed s JOIN memories m ON m.seq = s.memory WHERE {DUE}"
            );
            let values = params![scope.owner.as_str(), now, made_before];
            let (removed, all): (i64, i64) =
                connection.prepare_cached(&sql)?.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(StashExpired { removed, ended: all - removed })
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
    let sql = format!(
        "SELECT s.memory, s.is_given FROM stashed s JOIN memories m ON m.seq = s.memory WHERE {DUE}
         ORDER BY s.memory LIMIT ?4"
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
