//! Removes for good what was forgotten: rows, text index, vectors, backups, and the bytes on disk.
//!
//! A purge first tombstones what it is to remove and notes that it began; then it removes in transactions so short that
//! others write between them. Where its process dies, nothing shows what was left of it, and whoever purges next, or an
//! idle server, goes on. It is the one place that truncates the WAL.

use std::collections::BTreeSet;
use std::time::Instant;

use rusqlite::{Connection, params};

use super::erase::erase;
use super::{Act, SelectedRow, forgotten, give_way, retired, selected_row};
use crate::error::{Error, Kind, Result};
use crate::memory::Millis;
use crate::scope::Scope;
use crate::store::sqlite::file::migrate;
use crate::store::sqlite::write::turns;
use crate::store::sqlite::{LOOK_AGAIN, blocking, lock};
use crate::store::{Forgotten, Selection, Store};

/// Memories removed by one transaction: some tens of milliseconds.
const REMOVED_AT_ONCE: usize = 250;

/// Pages of the text index merged by one transaction: as long.
const MERGED_AT_ONCE: i64 = 64;

/// How often the WAL is tried to be emptied while others read, each time for as long as a writer waits.
const EMPTYINGS: usize = 3;

/// The share of forgotten rows, in percent, from which on SQLite cleans a part of the index by itself.
const DELETE_MERGE: i64 = 10;

impl Store {
    /// Removes what `selection` names for good, also where it was forgotten before: [`Store::forget`] and [`Store::purge`]
    /// in one.
    pub async fn forget_for_good(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        now: Millis,
    ) -> Result<Forgotten> {
        let forgotten = self.forget_as(scope, selection, operation, Act::Purge, now).await?;
        if forgotten.ids.is_empty() {
            return Ok(forgotten);
        }
        self.purge(scope, operation, now).await
    }

    /// Removes what the forgetting `operation` tombstoned, for good: rows, text index, vectors, backups.
    pub async fn purge(&self, scope: &Scope, operation: &str, now: Millis) -> Result<Forgotten> {
        let id = operation.to_owned();
        let purged = self.write(scope, move |connection, scope| begin(connection, scope, &id, now)).await?;
        self.finish_purges(scope, Millis::MAX).await?;
        Ok(purged)
    }

    /// Goes on with the purges that began before `before` and didn't end; returns what was left of them.
    pub async fn finish_purges(&self, scope: &Scope, before: Millis) -> Result<Forgotten> {
        let unfinished = self.read(scope, move |_, connection, scope| {
            Ok(connection
                .prepare_cached("SELECT 1 FROM operations WHERE owner = ?1 AND kind = 'purging' AND at < ?2")?
                .exists((scope.owner.as_str(), before))?)
        });
        if !unfinished.await? {
            return Ok(Forgotten::default());
        }
        let mut all = Forgotten::default();
        loop {
            let began = Instant::now();
            let removed = self.write(scope, remove_some).await?;
            all.tokens += removed.tokens;
            let is_last = removed.ids.len() < REMOVED_AT_ONCE;
            all.ids.extend(removed.ids);
            if is_last {
                break;
            }
            give_way(began).await?;
        }
        self.write(scope, forget_names).await?;
        // The first step takes all there is, the others go on with it.
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
                .execute([scope.owner.as_str()])?;
            Ok(())
        })
        .await?;
        Ok(all)
    }

    /// Removes the automatic backups and empties the WAL, which still hold what was removed.
    async fn clean_files(&self) -> Result<()> {
        let store = self.clone();
        blocking(move || {
            migrate::remove_backups(&store.inner.path)?;
            // Readers are closed first: one that still looks at the past would keep the WAL.
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
                "what was removed may still be in the log of the store, which another process reads";
            Err(Error::new(Kind::Busy, message)
                .hint("`tiro gc` finishes it; other servers of the project may be busy"))
        })
        .await
    }
}

/// Notes that what `operation` forgot is to be removed, and returns it; from here on nothing brings it back.
fn begin(connection: &Connection, scope: &Scope, operation: &str, now: Millis) -> Result<Forgotten> {
    let owner = scope.owner.as_str();
    let begun = connection
        .prepare_cached(
            "UPDATE operations SET kind = 'purging', at = ?2 WHERE id = ?1 AND owner = ?3
                 AND kind IN ('forget', 'purging') AND undone_at IS NULL",
        )?
        .execute((operation, now, owner))?;
    if begun == 0 {
        return Ok(Forgotten::default());
    }
    let mut statement = connection.prepare_cached(
        "SELECT m.seq, m.id, m.tokens, m.session, m.ordinal FROM operation_memories o
         JOIN memories m ON m.seq = o.memory
         WHERE o.operation = ?1 AND m.owner = ?2 AND m.tombstoned_at IS NOT NULL ORDER BY m.seq",
    )?;
    let rows: Vec<SelectedRow> =
        statement.query_map((operation, owner), selected_row)?.collect::<Result<_, _>>()?;
    // What was forgotten and brought back before is in other operations too. They have no index by memory: once for
    // all, and not for each.
    connection
        .prepare_cached(
            "DELETE FROM operation_memories WHERE operation <> ?1
                 AND memory IN (SELECT memory FROM operation_memories WHERE operation = ?1)",
        )?
        .execute([operation])?;
    retired::forget_sessions(connection, &rows)?;
    let sessions: BTreeSet<i64> = rows.iter().filter_map(|row| row.session).collect();
    for session in sessions {
        turns::index_forgotten(connection, session, operation)?;
        // A client takes the title of a conversation from what was said.
        connection.prepare_cached("UPDATE sessions SET title = NULL WHERE seq = ?1")?.execute([session])?;
    }
    // Answers made before may hold the text.
    connection.prepare_cached("DELETE FROM context_cache WHERE owner = ?1")?.execute([owner])?;
    // Parts of the index would be cleaned over and over while the rest of them is removed.
    configure(connection, "deletemerge", 0)?;
    Ok(forgotten(operation.to_owned(), &rows))
}

/// Removes some of what is to be removed, and says what.
fn remove_some(connection: &Connection, scope: &Scope) -> Result<Forgotten> {
    let owner = scope.owner.as_str();
    let mut statement = connection.prepare_cached(
        "SELECT m.seq, m.id, m.tokens, m.session, m.ordinal FROM operations p
         CROSS JOIN operation_memories o ON o.operation = p.id CROSS JOIN memories m ON m.seq = o.memory
         WHERE p.owner = ?1 AND p.kind = 'purging' AND m.owner = ?1 AND m.tombstoned_at IS NOT NULL LIMIT ?2",
    )?;
    let rows = statement.query_map(params![owner, REMOVED_AT_ONCE as i64], selected_row)?;
    let rows: Vec<SelectedRow> = rows.collect::<Result<_, _>>()?;
    for row in &rows {
        remove(connection, owner, row)?;
    }
    Ok(forgotten(String::new(), &rows))
}

/// Removes one tombstoned memory and all that was made of it.
fn remove(connection: &Connection, owner: &str, row: &SelectedRow) -> Result<()> {
    erase(connection, row.seq)?;
    connection
        .prepare_cached(
            "DELETE FROM operation_memories WHERE memory = ?1
                 AND operation IN (SELECT id FROM operations WHERE owner = ?2 AND kind = 'purging')",
        )?
        .execute((row.seq, owner))?;
    connection
        .prepare_cached("INSERT OR IGNORE INTO purged (owner, id) VALUES (?1, ?2)")?
        .execute((owner, row.id.as_str()))?;
    Ok(())
}

/// Removes what names what is gone.
fn forget_names(connection: &Connection, scope: &Scope) -> Result<()> {
    let owner = scope.owner.as_str();
    // What is in an operation and living again, or gone already, is none of it any more.
    connection
        .prepare_cached(
            "DELETE FROM operation_memories
             WHERE operation IN (SELECT id FROM operations WHERE owner = ?1 AND kind = 'purging')
                 AND memory NOT IN (SELECT seq FROM memories WHERE tombstoned_at IS NOT NULL)",
        )?
        .execute([owner])?;
    // There is nothing to undo of an operation all of whose memories are gone.
    connection
        .prepare_cached(
            "DELETE FROM operations WHERE owner = ?1 AND kind = 'forget' AND undone_at IS NULL
                 AND id NOT IN (SELECT operation FROM operation_memories)",
        )?
        .execute([owner])?;
    // A name can say as much as a text.
    connection
        .prepare_cached(
            "DELETE FROM sessions WHERE owner = ?1
                 AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.session = sessions.seq)",
        )?
        .execute([owner])?;
    configure(connection, "deletemerge", DELETE_MERGE)
}

/// Merges parts of the text index, which drops what deletion only marked; returns whether something is left to merge.
fn merge(connection: &Connection, pages: i64) -> Result<bool> {
    let before = connection.total_changes();
    configure(connection, "merge", pages)?;
    // So SQLite's documentation tells the last step.
    Ok(connection.total_changes() - before >= 2)
}

fn configure(connection: &Connection, name: &str, value: i64) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO text_index (text_index, rank) VALUES (?1, ?2)")?
        .execute((name, value))?;
    Ok(())
}
