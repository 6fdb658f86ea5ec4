//! Removes forgotten memories for good: their rows, index entries and vectors, the automatic backups, and the
//! bytes on disk.
//!
//! A purge first sets the tombstones of its memories and records that it has begun. After that, the purge removes the
//! memories in short transactions, so that others can write in between. If the process of a purge dies, its memories
//! stay forgotten, and the next purge or an idle server finishes the removal.

use std::collections::BTreeSet;
use std::time::Instant;

use rusqlite::{Connection, params};

use super::Act;
use super::SelectedRow;
use super::erase::erase;
use super::forgotten;
use super::give_way;
use super::retired;
use super::selected_row;
use crate::SqliteStore;
use crate::connection::{LOOK_AGAIN, blocking, lock};
use crate::error::{Error, Result};
use crate::file::migrate;
use crate::read::parts;
use crate::tuning::{DELETE_MERGE, MERGED_AT_ONCE, REMOVED_AT_ONCE};
use tiro_base::error::{self, Kind};
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::{Forgotten, Selection};

/// The maximum number of attempts to empty the WAL while others read. In each attempt, it waits for readers, for the
/// same time that a write waits for other writers.
const EMPTYINGS: usize = 3;

/// If the recorded beginning of a purge lies more than this many milliseconds in the future, the clock was wrong when
/// the purge began. Arbitrary: an hour.
const AHEAD: Millis = 3_600_000;

impl SqliteStore {
    pub(crate) async fn forget_for_good(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        now: Millis,
    ) -> error::Result<Forgotten> {
        let forgotten = self.forget_as(scope, selection, operation, Act::Purge, now).await?;
        if forgotten.ids.is_empty() {
            return Ok(forgotten);
        }
        self.purge(scope, operation, now).await
    }

    pub(crate) async fn purge(
        &self,
        scope: &Scope,
        operation: &str,
        now: Millis,
    ) -> error::Result<Forgotten> {
        let id = operation.to_owned();
        let purged = self.write(scope, move |connection, scope| begin(connection, scope, &id, now)).await?;
        let finished = self.finish_purges(scope, Millis::MAX).await?;
        Ok(Forgotten { sessions: finished.sessions, ..purged })
    }

    pub(crate) async fn finish_purges(&self, scope: &Scope, before: Millis) -> error::Result<Forgotten> {
        let unfinished = self.read(scope, move |_, connection, scope| {
            Ok(connection
                .prepare_cached(
                    "SELECT 1 FROM operations WHERE owner = ?1 AND kind = 'purging' AND (at < ?2 OR at > ?3)",
                )?
                .exists((parts::own(scope), before, before.saturating_add(AHEAD)))?)
        });
        if !unfinished.await? {
            return Ok(Forgotten::default());
        }
        let mut all = Forgotten::default();
        loop {
            let began = Instant::now();
            let (removed, is_last) = self.write(scope, remove_some).await?;
            all.tokens += removed.tokens;
            all.ids.extend(removed.ids);
            if is_last {
                break;
            }
            give_way(began).await?;
        }
        all.sessions = self.write(scope, forget_names).await?;
        // The first step begins a merge of the whole index, the others continue it.
        let mut pages = -MERGED_AT_ONCE;
        loop {
            let began = Instant::now();
            let is_left = self.write(scope, move |connection, _| merge(connection, pages)).await?;
            if !is_left {
                break;
            }
            pages = MERGED_AT_ONCE;
            give_way(began).await?;
        }
        self.clean_files().await?;
        self.write(scope, |connection, scope| {
            connection
                .prepare_cached(
                    "UPDATE operations SET kind = 'purge' WHERE owner = ?1 AND kind = 'purging'
                         AND id NOT IN (SELECT operation FROM operation_memories)",
                )?
                .execute([parts::own(scope)])?;
            Ok(())
        })
        .await?;
        Ok(all)
    }

    /// Removes the automatic backups and empties the WAL, because both still contain the removed texts.
    pub(crate) async fn clean_files(&self) -> error::Result<()> {
        let store = self.clone();
        blocking(move || {
            migrate::remove_backups(&store.inner.path)?;
            // Idle readers are closed first: an old snapshot would keep SQLite from emptying the WAL.
            store.inner.readers.clear();
            let writer = lock(&store.inner.writer);
            for _ in 0..EMPTYINGS {
                let is_kept: bool =
                    writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
                if !is_kept {
                    return Ok(());
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            let message =
                "removed texts may still be in the log of the store, because another process reads the store";
            Err(Error::new(Kind::Busy, message)
                .hint("`tiro gc` finishes the removal; other servers of the project may be busy"))
        })
        .await
    }
}

/// Records that the memories of `operation` are being purged, and returns them. From now on, they can't be restored.
pub(super) fn begin(
    connection: &Connection,
    scope: &Scope,
    operation: &str,
    now: Millis,
) -> Result<Forgotten> {
    let own = parts::own(scope);
    let begun = connection
        .prepare_cached(
            "UPDATE operations SET kind = 'purging', at = ?2 WHERE id = ?1 AND owner = ?3
                 AND kind IN ('forget', 'purging') AND undone_at IS NULL",
        )?
        .execute((operation, now, &own))?;
    if begun == 0 {
        return Ok(Forgotten::default());
    }
    let tenant = scope.tenant.as_str();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT m.seq, m.id, m.tokens, m.session, m.ordinal FROM operation_memories o
         JOIN memories m ON m.seq = o.memory
         WHERE o.operation = ?1 AND {} AND m.tombstoned_at IS NOT NULL ORDER BY m.seq",
        parts::of_tenant("m.owner", 2)
    ))?;
    let rows: Vec<SelectedRow> =
        statement.query_map((operation, tenant), selected_row)?.collect::<Result<_, _>>()?;
    // A memory that was once forgotten and restored is recorded under other operations too. The table has no
    // index by memory, so one statement removes these records for all memories.
    connection
        .prepare_cached(
            "DELETE FROM operation_memories WHERE operation <> ?1
                 AND memory IN (SELECT memory FROM operation_memories WHERE operation = ?1)",
        )?
        .execute([operation])?;
    retired::forget_sessions(connection, &rows)?;
    let sessions: BTreeSet<i64> = rows.iter().filter_map(|row| row.session).collect();
    for session in sessions {
        // A client makes the title of a session from its messages, so the title may repeat their text.
        connection.prepare_cached("UPDATE sessions SET title = NULL WHERE seq = ?1")?.execute([session])?;
    }
    // Cached answers of any reader may contain the text. Much of a text can be guessed from its embedding, so cached
    // embeddings are removed too.
    for cache in ["context_cache", "embedding_cache"] {
        let sql = format!("DELETE FROM {cache} WHERE {}", parts::of_tenant("owner", 1));
        connection.prepare_cached(&sql)?.execute([tenant])?;
    }
    // This turns off the merges that SQLite begins when entries are deleted. Otherwise SQLite would clean the same
    // parts of the index again and again while memories are removed.
    configure(connection, "deletemerge", 0)?;
    forgotten(connection, scope, operation.to_owned(), &rows)
}

/// Removes some of the memories that are being purged. Returns the removed memories that the reader sees, and whether
/// all memories are removed now.
fn remove_some(connection: &Connection, scope: &Scope) -> Result<(Forgotten, bool)> {
    let own = parts::own(scope);
    let mut statement = connection.prepare_cached(&format!(
        "SELECT m.seq, m.id, m.tokens, m.session, m.ordinal FROM operations p
         CROSS JOIN operation_memories o ON o.operation = p.id CROSS JOIN memories m ON m.seq = o.memory
         WHERE p.owner = ?1 AND p.kind = 'purging' AND {} AND m.tombstoned_at IS NOT NULL LIMIT ?2",
        parts::of_tenant("m.owner", 3)
    ))?;
    let values = params![own, REMOVED_AT_ONCE as i64, scope.tenant.as_str()];
    let rows = statement.query_map(values, selected_row)?;
    let rows: Vec<SelectedRow> = rows.collect::<Result<_, _>>()?;
    let seen = forgotten(connection, scope, String::new(), &rows)?;
    for row in &rows {
        remove(connection, &own, row)?;
    }
    Ok((seen, rows.len() < REMOVED_AT_ONCE))
}

/// Removes one forgotten memory, and records its id as purged. `own` is the part with the reader's own data, such as
/// the operations.
fn remove(connection: &Connection, own: &str, row: &SelectedRow) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO purged (owner, id) SELECT owner, id FROM memories WHERE seq = ?1",
        )?
        .execute([row.seq])?;
    erase(connection, row.seq)?;
    connection
        .prepare_cached(
            "DELETE FROM operation_memories WHERE memory = ?1
                 AND operation IN (SELECT id FROM operations WHERE owner = ?2 AND kind = 'purging')",
        )?
        .execute((row.seq, own))?;
    Ok(())
}

/// Removes operations and sessions that have no memory any more, and returns the names of these sessions.
fn forget_names(connection: &Connection, scope: &Scope) -> Result<Vec<String>> {
    let (own, [shared, mine]) = (parts::own(scope), parts::both(scope));
    // Memories that were restored or removed after the operation no longer belong to it.
    connection
        .prepare_cached(
            "DELETE FROM operation_memories
             WHERE operation IN (SELECT id FROM operations WHERE owner = ?1 AND kind = 'purging')
                 AND memory NOT IN (SELECT seq FROM memories WHERE tombstoned_at IS NOT NULL)",
        )?
        .execute([&own])?;
    // An operation without memories can't be undone.
    connection
        .prepare_cached(
            "DELETE FROM operations WHERE owner = ?1 AND kind IN ('forget', 'expire') AND undone_at IS NULL
                 AND id NOT IN (SELECT operation FROM operation_memories)",
        )?
        .execute([&own])?;
    // The name of a session may repeat its text, so sessions without memories are removed.
    let mut statement = connection.prepare_cached(
        "DELETE FROM sessions WHERE owner IN (?1, ?2)
             AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.session = sessions.seq) RETURNING name",
    )?;
    let names = statement.query_map((shared, mine), |row| row.get(0))?.collect::<Result<_, _>>()?;
    configure(connection, "deletemerge", DELETE_MERGE)?;
    Ok(names)
}

/// Merges parts of the text index. The merge drops entries that were only marked as deleted. Returns whether there is
/// more to merge.
fn merge(connection: &Connection, pages: i64) -> Result<bool> {
    let before = connection.total_changes();
    configure(connection, "merge", pages)?;
    // According to SQLite's documentation, a merge that changes fewer than two rows had nothing left to do.
    Ok(connection.total_changes() - before >= 2)
}

fn configure(connection: &Connection, name: &str, value: i64) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO text_index (text_index, rank) VALUES (?1, ?2)")?
        .execute((name, value))?;
    Ok(())
}
