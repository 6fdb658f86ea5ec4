//! A cache of answers, shared by processes.
//!
//! The caller computes the key, which is a hash of the question and of the versions of its sources
//! ([`SqliteStore::source_state`]). When the sources change, the key changes too, so entries needn't be invalidated.
//! Losing an entry costs only time. So writes to the cache don't wait for the disk, and are skipped while another
//! process writes. An answer is stored with its hash, and a damaged answer counts as missing.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use crate::CacheUse;
use crate::SqliteStore;
use crate::connection::{BUSY_TIMEOUT, Unsynced, blocking, lock};
use crate::error::{Error, Result};
use crate::file::verify;
use crate::read::parts;
use tiro_base::error::{self, Kind};
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::CacheStats;
use tiro_store::decide::retention;

/// The time that storing an answer waits for other writers. Arbitrary: making the answer takes about this long.
const PATIENCE: Duration = Duration::from_millis(50);

/// The number of hexadecimal digits of the hash before an answer.
const SEAL: usize = 16;

/// The farthest that the date of a use may lie in the future, in milliseconds: a day. A later date comes from a clock
/// that was ahead. Arbitrary.
const FARTHEST: Millis = 24 * 60 * 60 * 1000;

impl SqliteStore {
    pub(crate) async fn cached(
        &self,
        scope: &Scope,
        key: [u8; 32],
        now: Millis,
    ) -> error::Result<Option<String>> {
        let found = self
            .read(scope, move |_, connection, scope| {
                let owner = parts::own(scope);
                let owner = owner.as_str();
                let now = now.max(last_seen(connection, owner, now)?);
                let found: Option<(i64, String)> = connection
                    .prepare_cached(
                        "SELECT seq, body FROM context_cache
                         WHERE owner = ?1 AND key = ?2 AND expires > ?3 AND used <= ?3 + ?4",
                    )?
                    .query_row((owner, key, now, FARTHEST), |row| Ok((row.get(0)?, verify::text(row, 1)?)))
                    .optional()?;
                Ok(found.and_then(|(seq, stored)| Some((seq, unsealed(&key, &stored)?))))
            })
            .await?;
        let (seq, body) = found.unzip();
        {
            let mut used = lock(&self.inner.cache_use);
            used.hits += i64::from(seq.is_some());
            used.misses += i64::from(seq.is_none());
        }
        // A miss is written to the store later, together with the answer.
        if seq.is_some() {
            let noted = self.write_counting(scope, Duration::ZERO, move |connection, scope, used| {
                let owner = parts::own(scope);
                let owner = owner.as_str();
                let now = now.max(last_seen(connection, owner, now)?);
                connection
                    .prepare_cached("UPDATE context_cache SET used = ?2 WHERE seq = ?1")?
                    .execute((seq, now))?;
                count(connection, owner, used)
            });
            pass_over(noted.await);
        }
        Ok(body)
    }

    pub(crate) async fn cache(
        &self,
        scope: &Scope,
        key: [u8; 32],
        body: String,
        now: Millis,
        ttl_ms: Millis,
        max_bytes: i64,
    ) -> error::Result<()> {
        let stored = self.write_counting(scope, PATIENCE, move |connection, scope, used| {
            let owner = parts::own(scope);
            let owner = owner.as_str();
            let now = now.max(last_seen(connection, owner, now)?);
            count(connection, owner, used)?;
            let bytes = body.len() as i64;
            if bytes > max_bytes || ttl_ms <= 0 {
                return Ok(());
            }
            connection
                .prepare_cached(
                    "INSERT INTO context_cache (owner, key, expires, used, bytes, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                     ON CONFLICT (owner, key) DO UPDATE SET expires = ?3, used = ?4, bytes = ?5, body = ?6",
                )?
                .execute(params![owner, key, now.saturating_add(ttl_ms), now, bytes, sealed(&key, &body)])?;
            connection
                .prepare_cached("DELETE FROM context_cache WHERE owner = ?1 AND (expires <= ?2 OR used > ?2 + ?3)")?
                .execute((owner, now, FARTHEST))?;
            make_room(connection, owner, max_bytes)
        });
        pass_over(stored.await);
        Ok(())
    }

    pub(crate) async fn cache_stats(&self, scope: &Scope) -> error::Result<CacheStats> {
        let unnoted = *lock(&self.inner.cache_use);
        self.read(scope, move |_, connection, scope| {
            let owner = parts::own(scope);
            let owner = owner.as_str();
            let (entries, bytes) = connection
                .prepare_cached(
                    "SELECT count(*), coalesce(sum(bytes), 0) FROM context_cache WHERE owner = ?1",
                )?
                .query_row([owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let counted = |name: &str| -> Result<i64> {
                let counted = connection
                    .prepare_cached("SELECT count FROM counters WHERE owner = ?1 AND name = ?2")?
                    .query_row((owner, name), |row| row.get(0))
                    .optional()?;
                Ok(counted.unwrap_or(0))
            };
            Ok(CacheStats {
                entries,
                bytes,
                hits: counted("cache hit")? + unnoted.hits,
                misses: counted("cache miss")? + unnoted.misses,
            })
        })
        .await
    }

    /// Like [`SqliteStore::write_lightly`], but also passes to `work` the hits and misses that are not stored yet. If
    /// `work` succeeds, these hits and misses count as stored.
    async fn write_counting<T: Send + 'static>(
        &self,
        scope: &Scope,
        patience: Duration,
        work: impl FnOnce(&Connection, &Scope, CacheUse) -> Result<T> + Send + 'static,
    ) -> error::Result<T> {
        let store = self.clone();
        let (answer, used) = self
            .write_lightly(scope, patience, move |connection, scope| {
                let used = *lock(&store.inner.cache_use);
                Ok((work(connection, scope, used)?, used))
            })
            .await?;
        let mut unnoted = lock(&self.inner.cache_use);
        unnoted.hits -= used.hits;
        unnoted.misses -= used.misses;
        Ok(answer)
    }

    /// Runs `work` in one immediate transaction that doesn't wait for the disk.
    ///
    /// Errors with [`Kind::Busy`] if other processes write for longer than `patience`, or if another call of this
    /// process writes.
    pub(crate) async fn write_lightly<T: Send + 'static>(
        &self,
        scope: &Scope,
        patience: Duration,
        work: impl FnOnce(&Connection, &Scope) -> Result<T> + Send + 'static,
    ) -> error::Result<T> {
        self.admit(scope)?;
        let (store, scope) = (self.clone(), scope.clone());
        blocking(move || {
            let Ok(mut writer) = store.inner.writer.try_lock() else {
                return Err(Error::new(Kind::Busy, "another call of this process writes"));
            };
            let mut writer = Unsynced::of(&mut writer)?;
            writer.busy_timeout(patience)?;
            let done = store.inner.write(&mut writer, false, |changes| work(changes, &scope));
            writer.busy_timeout(BUSY_TIMEOUT)?;
            done
        })
        .await
    }
}

/// Returns the latest time at which the owner used an answer. Callers give these times. Times more than a day after
/// `now` are ignored: they come from a clock that was ahead, and answers would otherwise stay until that time.
fn last_seen(connection: &Connection, owner: &str, now: Millis) -> Result<Millis> {
    let seen: Option<Millis> = connection
        .prepare_cached("SELECT max(used) FROM context_cache WHERE owner = ?1 AND used <= ?2")?
        .query_row((owner, now.saturating_add(FARTHEST)), |row| row.get(0))?;
    Ok(seen.unwrap_or(Millis::MIN))
}

fn count(connection: &Connection, owner: &str, used: CacheUse) -> Result<()> {
    for (name, count) in [("cache hit", used.hits), ("cache miss", used.misses)] {
        if count > 0 {
            connection
                .prepare_cached(
                    "INSERT INTO counters (owner, name, count) VALUES (?1, ?2, ?3)
                     ON CONFLICT DO UPDATE SET count = count + ?3",
                )?
                .execute((owner, name, count))?;
        }
    }
    Ok(())
}

/// Removes the least recently used answers until the rest fit into `max_bytes`.
fn make_room(connection: &Connection, owner: &str, max_bytes: i64) -> Result<()> {
    let total: i64 = connection
        .prepare_cached("SELECT coalesce(sum(bytes), 0) FROM context_cache WHERE owner = ?1")?
        .query_row([owner], |row| row.get(0))?;
    if total <= max_bytes {
        return Ok(());
    }
    let mut statement = connection
        .prepare_cached("SELECT seq, bytes FROM context_cache WHERE owner = ?1 ORDER BY used, bytes, seq")?;
    let rows = statement.query_map([owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let entries: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
    let surplus = retention::surplus(total, max_bytes, entries.iter().map(|(_, bytes)| *bytes));
    for (seq, _) in &entries[..surplus] {
        connection.prepare_cached("DELETE FROM context_cache WHERE seq = ?1")?.execute([seq])?;
    }
    Ok(())
}

/// Ignores the error if an answer could not be stored, because reading must work even if the store can't be written.
fn pass_over(done: error::Result<()>) {
    if let Err(error) = done {
        tracing::debug!(%error, "cannot cache an answer");
    }
}

/// Returns a hash that covers an answer and its key.
fn seal(key: &[u8; 32], body: &str) -> String {
    blake3::keyed_hash(key, body.as_bytes()).to_hex()[..SEAL].to_owned()
}

/// Returns an answer in its stored form, with its hash before it.
fn sealed(key: &[u8; 32], body: &str) -> String {
    seal(key, body) + body
}

/// Returns the answer that is stored under `key`; `None` if the answer is damaged, or was stored without a hash.
fn unsealed(key: &[u8; 32], stored: &str) -> Option<String> {
    let (hash, body) = stored.split_at_checked(SEAL)?;
    (hash == seal(key, body)).then(|| body.to_owned())
}
