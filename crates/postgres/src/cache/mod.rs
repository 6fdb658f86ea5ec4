//! A cache of answers, shared by processes: a table, or Valkey if there is one (`shared.rs`).
//!
//! The caller computes the key, which is a hash of the question and of the versions of its sources
//! ([`PostgresStore::source_state`]). When the sources change, the key changes too, so entries needn't be invalidated.
//! Losing an entry costs only time. So an answer, and its use, is written without waiting for the disk or for those who
//! write to the store, and not at all if that fails.

mod shared;

use std::time::Duration;

use crate::PostgresStore;
use crate::database::seen::NO_OWNER;
use crate::error::Result;
use crate::transactions::{Durability, Transaction, read, write};
use tiro_base::error;
use tiro_base::memory::Millis;
use tiro_base::scope::Scope;
use tiro_store::decide::retention;
use tiro_store::{CacheStats, Expired};

/// The names of the counters of hits and misses.
const USES: [&str; 2] = ["cache hit", "cache miss"];

/// The farthest that the date of a use may lie in the future, in milliseconds: a day. A later date comes from a clock
/// that was ahead. Arbitrary.
const FARTHEST: Millis = 24 * 60 * 60 * 1000;

/// How long storing an answer, or noting its use, waits for others who write to the cache. Arbitrary: making the answer
/// takes about this long.
const PATIENCE: Duration = Duration::from_millis(50);

/// The condition that a later version of the summary `u` exists.
const SUPERSEDED: &str = "EXISTS (SELECT FROM summaries o WHERE o.owner = u.owner AND o.session = u.session
    AND o.first = u.first AND o.last = u.last AND o.level = u.level AND o.version > u.version)";

impl PostgresStore {
    pub(crate) async fn cached(
        &self,
        scope: &Scope,
        key: [u8; 32],
        now: Millis,
    ) -> error::Result<Option<String>> {
        if let Some(shared) = self.shared_answer(scope, key, now).await {
            return Ok(Some(shared));
        }
        let found: error::Result<(Option<String>, Millis, i64)> = read!(self, scope, tx => {
            let owner = tx.own_known(scope);
            let now = now.max(last_seen(&tx, owner, now).await?);
            let sql = "SELECT body FROM context_cache WHERE owner = $1 AND key = $2 AND expires > $3 AND used <= $4";
            let row = tx.row(sql, &[&owner, &key.as_slice(), &now, &now.saturating_add(FARTHEST)]).await?;
            Ok((row.map(|row| row.try_get(0)).transpose()?, now, owner))
        });
        let (body, now, owner) = found?;
        // Nobody who stored nothing yet can have a hit, and reading must not make a part of the store.
        if owner != NO_OWNER {
            let noted = self.note_use(scope, owner, &key, body.is_some(), now).await;
            if let Err(error) = noted {
                tracing::debug!(%error, "cannot note the use of an answer");
            }
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
        if self.share_answer(scope, key, &body, (now, ttl_ms)).await {
            return Ok(());
        }
        let is_kept = body.len() as i64 <= max_bytes && ttl_ms > 0;
        let stored = match is_kept {
            true => self.store_answer(scope, &key, &body, (now, ttl_ms), max_bytes).await,
            false => Ok(()),
        };
        if let Err(error) = stored {
            tracing::debug!(%error, "cannot cache an answer");
        }
        Ok(())
    }

    pub(crate) async fn cache_stats(&self, scope: &Scope) -> error::Result<CacheStats> {
        read!(self, scope, tx => {
            let sql = "SELECT (SELECT count(*) FROM context_cache WHERE owner = $1),
                           (SELECT coalesce(sum(bytes), 0)::bigint FROM context_cache WHERE owner = $1),
                           coalesce((SELECT count FROM counters WHERE owner = $1 AND name = $2), 0),
                           coalesce((SELECT count FROM counters WHERE owner = $1 AND name = $3), 0)";
            let [hit, miss] = USES;
            let row = tx.only(sql, &[&tx.own_known(scope), &hit, &miss]).await?;
            Ok(CacheStats {
                entries: row.try_get(0)?,
                bytes: row.try_get(1)?,
                hits: row.try_get(2)?,
                misses: row.try_get(3)?,
            })
        })
    }

    pub(crate) async fn expired(&self, scope: &Scope, now: Millis, before: Millis) -> error::Result<Expired> {
        read!(self, scope, tx => { expired(&tx, scope, now, before).await })
    }

    pub(crate) async fn remove_expired(
        &self,
        scope: &Scope,
        now: Millis,
        before: Millis,
    ) -> error::Result<Expired> {
        write!(self, scope, tx => {
            let expired = expired(&tx, scope, now, before).await?;
            let sql = "DELETE FROM context_cache WHERE owner = $1 AND expires <= $2";
            tx.execute(sql, &[&tx.own_known(scope), &now]).await?;
            tx.execute(
                "DELETE FROM summary_queue
                 WHERE owner = ANY ($1) AND state IN ('completed', 'failed') AND changed_at < $2",
                &[&tx.seen.parts, &before],
            )
            .await?;
            let sql = format!("DELETE FROM summaries u WHERE u.owner = ANY ($1) AND u.made_at < $2 AND {SUPERSEDED}");
            tx.execute(&sql, &[&tx.seen.parts, &before]).await?;
            Ok(expired)
        })
    }

    /// Stores an answer, and makes room for it.
    async fn store_answer(
        &self,
        scope: &Scope,
        key: &[u8; 32],
        body: &str,
        (now, ttl_ms): (Millis, Millis),
        max_bytes: i64,
    ) -> Result<()> {
        let tx = self.begin_light(scope, Durability::Unsynced, PATIENCE).await?;
        let owner = tx.own(scope).await?;
        let now = now.max(last_seen(&tx, owner, now).await?);
        tx.execute(
            "INSERT INTO context_cache (owner, key, expires, used, bytes, body) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (owner, key) DO UPDATE SET expires = excluded.expires, used = excluded.used,
                 bytes = excluded.bytes, body = excluded.body",
            &[&owner, &key.as_slice(), &now.saturating_add(ttl_ms), &now, &(body.len() as i64), &body],
        )
        .await?;
        let sql = "DELETE FROM context_cache WHERE owner = $1 AND (expires <= $2 OR used > $3)";
        tx.execute(sql, &[&owner, &now, &now.saturating_add(FARTHEST)]).await?;
        make_room(&tx, owner, max_bytes).await?;
        tx.end().await
    }

    /// Counts a hit or a miss, and dates the last use of an answer.
    async fn note_use(
        &self,
        scope: &Scope,
        owner: i64,
        key: &[u8; 32],
        is_hit: bool,
        now: Millis,
    ) -> Result<()> {
        let tx = self.begin_light(scope, Durability::Unsynced, PATIENCE).await?;
        if is_hit {
            let sql = "UPDATE context_cache SET used = $3 WHERE owner = $1 AND key = $2 AND used < $3";
            tx.execute(sql, &[&owner, &key.as_slice(), &now]).await?;
        }
        let [hit, miss] = USES;
        tx.execute(
            "INSERT INTO counters (owner, name, count) VALUES ($1, $2, 1)
             ON CONFLICT (owner, name) DO UPDATE SET count = counters.count + 1",
            &[&owner, &if is_hit { hit } else { miss }],
        )
        .await?;
        tx.end().await
    }
}

/// Returns the latest time at which the owner used an answer. Callers give these times. Times more than a day after
/// `now` are ignored: they come from a clock that was ahead, and answers would otherwise stay until that time.
async fn last_seen(tx: &Transaction, owner: i64, now: Millis) -> Result<Millis> {
    let sql = "SELECT max(used) FROM context_cache WHERE owner = $1 AND used <= $2";
    let seen: Option<Millis> = tx.only(sql, &[&owner, &now.saturating_add(FARTHEST)]).await?.try_get(0)?;
    Ok(seen.unwrap_or(Millis::MIN))
}

/// Removes the least recently used answers until the rest fit into `max_bytes`.
async fn make_room(tx: &Transaction, owner: i64, max_bytes: i64) -> Result<()> {
    let sql = "SELECT coalesce(sum(bytes), 0)::bigint FROM context_cache WHERE owner = $1";
    let total: i64 = tx.only(sql, &[&owner]).await?.try_get(0)?;
    if total <= max_bytes {
        return Ok(());
    }
    let sql = "SELECT key, bytes FROM context_cache WHERE owner = $1 ORDER BY used, bytes, seq";
    let rows = tx.rows(sql, &[&owner]).await?;
    let surplus = retention::surplus(total, max_bytes, rows.iter().map(|row| row.get::<_, i64>(1)));
    let keys: Vec<&[u8]> = rows[..surplus].iter().map(|row| row.get(0)).collect();
    tx.execute("DELETE FROM context_cache WHERE owner = $1 AND key = ANY ($2)", &[&owner, &keys]).await?;
    Ok(())
}

async fn expired(tx: &Transaction, scope: &Scope, now: Millis, before: Millis) -> Result<Expired> {
    let sql = "SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM context_cache WHERE owner = $1 AND expires <= $2";
    let answers = tx.only(sql, &[&tx.own_known(scope), &now]).await?;
    let sql = "SELECT count(*) FILTER (WHERE state = 'completed'), count(*) FILTER (WHERE state = 'failed')
               FROM summary_queue WHERE owner = ANY ($1) AND changed_at < $2";
    let queue = tx.only(sql, &[&tx.seen.parts, &before]).await?;
    let sql = format!(
        "SELECT count(*) FROM summaries u WHERE u.owner = ANY ($1) AND u.made_at < $2 AND {SUPERSEDED}"
    );
    let summaries = tx.only(&sql, &[&tx.seen.parts, &before]).await?;
    Ok(Expired {
        answers: answers.try_get(0)?,
        answer_bytes: answers.try_get(1)?,
        made: queue.try_get(0)?,
        given_up: queue.try_get(1)?,
        superseded: summaries.try_get(0)?,
    })
}
