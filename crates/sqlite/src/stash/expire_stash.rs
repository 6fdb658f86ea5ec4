//! Takes expired memories out of the stash.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::SqliteStore;
use crate::connection::blocking;
use crate::error::Result;
use crate::forget::{SelectedRow, bring_back, selected_row, tombstone};
use crate::read::parts;
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::StashExpired;
use tiro_store::decide::clock;
use tiro_store::tuning::GRACE;

/// Returns the query for the rows of expired memories of the owner `?1`: memories that expired by `?2`, and memories
/// older than `?3`. An index helps with each condition except the age. So the condition on the age is left out if
/// `made_before` sets no limit.
fn over(made_before: Millis) -> String {
    let age = match made_before {
        Millis::MIN => "AND ?3 IS ?3",
        _ => {
            "UNION SELECT a.memory FROM stashed a JOIN memories m ON m.seq = a.memory
             WHERE a.owner = ?1 AND NOT a.is_protected AND m.time < ?3"
        }
    };
    format!("SELECT memory FROM stashed WHERE owner = ?1 AND expires_at <= ?2 AND NOT is_protected {age}")
}

/// Selects the rows of memories that were stashed because no summary covered them, and that a summary covers now.
const COVERED: &str = "SELECT p.memory FROM stashed p JOIN memories m ON m.seq = p.memory
    WHERE p.owner = ?1 AND p.cause = 'pruning' AND EXISTS (SELECT 1 FROM summaries u
        WHERE u.session = m.session AND m.ordinal BETWEEN u.first AND u.last)";

impl SqliteStore {
    pub(crate) async fn expiring_stash(
        &self,
        scope: &Scope,
        now: Millis,
        made_before: Millis,
    ) -> error::Result<StashExpired> {
        self.read(scope, move |_, connection, scope| count(connection, scope, now, made_before)).await
    }

    pub(crate) async fn newest(&self, scope: &Scope) -> error::Result<Option<Millis>> {
        self.read(scope, |_, connection, scope| newest(connection, scope)).await
    }

    /// Gives unused pages of the file back to the file system, if they are more than a quarter of the file. Returns by
    /// how many bytes the file is smaller. The number is 0 if there were few unused pages, or if another process uses
    /// the file.
    pub async fn vacuum(&self, scope: &Scope) -> error::Result<u64> {
        /// The file is rewritten only if more than one in this many pages is unused.
        const FEW: i64 = 4;
        self.admit(scope)?;
        let store = self.clone();
        blocking(move || {
            let Ok(writer) = store.inner.writer.try_lock() else { return Ok(0) };
            store.inner.store_file.check()?;
            let pragma = |name: &str| writer.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0));
            let (pages, free): (i64, i64) = (pragma("page_count")?, pragma("freelist_count")?);
            if free * FEW <= pages {
                return Ok(0);
            }
            let size: i64 = pragma("page_size")?;
            // Other processes that read or write have precedence. The next call tries again.
            if writer.execute_batch("VACUUM").is_err() {
                return Ok(0);
            }
            store.inner.shorten_log(&writer, 0);
            let left: i64 = writer.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            Ok(((pages - left) * size).max(0).unsigned_abs())
        })
        .await
    }

    pub(crate) async fn expire_stash(
        &self,
        scope: &Scope,
        (now, made_before): (Millis, Millis),
        operation: &str,
        limit: usize,
    ) -> error::Result<StashExpired> {
        let (is_due, ahead) = self
            .read(scope, move |_, connection, scope| {
                let is_over = count(connection, scope, now, made_before)? != StashExpired::default();
                let ahead = clock::ahead(newest(connection, scope)?, now).filter(|_| is_over);
                Ok((is_over || !removed_early(connection, scope, scope, now, made_before)?.is_empty(), ahead))
            })
            .await?;
        if ahead.is_some() || !is_due {
            return Ok(StashExpired { ahead, ..StashExpired::default() });
        }
        let operation = operation.to_owned();
        let write = move |connection: &Connection, scope: &Scope| {
            let mut all = StashExpired::default();
            for part in parts::seen(connection, scope)? {
                all.returned += bring_back_early(connection, scope, &part, now, made_before)?;
                let left = limit.saturating_sub((all.removed + all.ended).unsigned_abs() as usize);
                let expired = expire(connection, scope, &part, (now, made_before), &operation, left)?;
                all.removed += expired.removed;
                all.ended += expired.ended;
            }
            Ok(all)
        };
        self.write(scope, write).await
    }
}

/// Returns the times that are used for removing texts. These times lie a week before `now` and `made_before`.
fn before_grace(now: Millis, made_before: Millis) -> (Millis, Millis) {
    (now.saturating_sub(GRACE), made_before.saturating_sub(GRACE))
}

/// Counts the expired living memories of the stash.
fn count(connection: &Connection, scope: &Scope, now: Millis, made_before: Millis) -> Result<StashExpired> {
    let sql = format!(
        "SELECT coalesce(sum(s.is_given), 0), count(*) FROM stashed s JOIN memories m ON m.seq = s.memory
         WHERE s.memory IN ({} UNION {COVERED}) AND m.tombstoned_at IS NULL",
        over(made_before)
    );
    let values = params![scope.tenant.as_str(), now, made_before];
    let (removed, all): (i64, i64) =
        connection.prepare_cached(&sql)?.query_row(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(StashExpired { removed, ended: all - removed, ..StashExpired::default() })
}

/// Returns the latest time of storing among the memories that were stored last.
fn newest(connection: &Connection, scope: &Scope) -> Result<Option<Millis>> {
    // The `+` keeps SQLite from sorting all memories of the owner. The last 64 memories are considered, because the
    // writer of the last memory may have had a clock that was behind.
    let sql = "SELECT max(stored_at) FROM (SELECT stored_at FROM memories WHERE +owner = ?1 ORDER BY seq DESC LIMIT 64)";
    Ok(connection.prepare_cached(sql)?.query_row([scope.tenant.as_str()], |row| row.get(0))?)
}

/// Returns the texts that were removed because they expired, but that are not expired at `now`, each with its
/// operation.
fn removed_early(
    connection: &Connection,
    scope: &Scope,
    part: &Scope,
    now: Millis,
    made_before: Millis,
) -> Result<Vec<(SelectedRow, String)>> {
    let (now, made_before) = before_grace(now, made_before);
    let sql = format!(
        "SELECT m.seq, m.id, m.tokens, m.session, m.ordinal, o.id FROM operations o
         JOIN operation_memories b ON b.operation = o.id JOIN memories m ON m.seq = b.memory
         JOIN stashed s ON s.memory = m.seq
         WHERE o.owner = ?4 AND m.owner = ?1 AND o.kind = 'expire' AND o.undone_at IS NULL AND m.tombstoned_at IS NOT NULL
             AND m.seq NOT IN ({}) ORDER BY m.seq",
        over(made_before)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let values = params![part.tenant.as_str(), now, made_before, parts::own(scope)];
    let rows = statement.query_map(values, |row| Ok((selected_row(row)?, row.get(5)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Restores the texts that [`removed_early`] returns. Returns how many were restored.
fn bring_back_early(
    connection: &Connection,
    scope: &Scope,
    part: &Scope,
    now: Millis,
    made_before: Millis,
) -> Result<i64> {
    let mut by_operation: BTreeMap<String, Vec<SelectedRow>> = BTreeMap::new();
    for (row, operation) in removed_early(connection, scope, part, now, made_before)? {
        by_operation.entry(operation).or_default().push(row);
    }
    let mut returned = 0;
    for (operation, rows) in by_operation {
        for row in bring_back(connection, &operation, rows)? {
            connection
                .prepare_cached("DELETE FROM operation_memories WHERE operation = ?1 AND memory = ?2")?
                .execute((&operation, row.seq))?;
            returned += 1;
        }
    }
    Ok(returned)
}

fn expire(
    connection: &Connection,
    scope: &Scope,
    part: &Scope,
    (now, made_before): (Millis, Millis),
    operation: &str,
    limit: usize,
) -> Result<StashExpired> {
    let owner = part.tenant.as_str();
    // A text that was given to the stash stays out of contexts, because it belongs only to the stash.
    let shown = "UPDATE stashed SET is_held_out = 0 WHERE is_held_out AND NOT is_given AND memory IN";
    connection.prepare_cached(&format!("{shown} ({})", over(made_before)))?.execute(params![
        owner,
        now,
        made_before
    ])?;
    let (at, made_before) = before_grace(now, made_before);
    let sql = format!(
        "SELECT m.seq, m.id, m.tokens, m.session, m.ordinal, s.is_given
         FROM stashed s JOIN memories m ON m.seq = s.memory
         WHERE s.memory IN ({} UNION {COVERED}) AND m.tombstoned_at IS NULL ORDER BY m.seq LIMIT ?4",
        over(made_before)
    );
    let due: Vec<(SelectedRow, bool)> = connection
        .prepare_cached(&sql)?
        .query_map(params![owner, at, made_before, limit as i64], |row| {
            Ok((selected_row(row)?, row.get(5)?))
        })?
        .collect::<Result<_, _>>()?;
    let (given, named): (Vec<_>, Vec<_>) = due.into_iter().partition(|(_, is_given)| *is_given);
    for (row, _) in &named {
        connection.prepare_cached("DELETE FROM stashed WHERE memory = ?1")?.execute([row.seq])?;
    }
    let given: Vec<SelectedRow> = given.into_iter().map(|(row, _)| row).collect();
    if !given.is_empty() {
        connection
            .prepare_cached(
                "INSERT OR IGNORE INTO operations (id, owner, kind, at) VALUES (?1, ?2, 'expire', ?3)",
            )?
            .execute((operation, parts::own(scope), now))?;
        tombstone(connection, operation, &given, now)?;
    }
    Ok(StashExpired { removed: given.len() as i64, ended: named.len() as i64, ..StashExpired::default() })
}
