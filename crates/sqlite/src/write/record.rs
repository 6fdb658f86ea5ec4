//! Handles a write of a memory that is already stored. Looks up the state of the memory, and records additional ids of
//! a commit and additional occurrences of an output.

use rusqlite::{Connection, OptionalExtension};

use crate::error::Result;
use crate::read::memories;
use crate::read::parts;
use tiro_base::memory::MemoryId;
use tiro_base::scope::Scope;
use tiro_store::Outcome;
use tiro_store::decide::stale::{self, KnownMemory};

/// Returns the result of storing a memory of `author` whose id the store knows; `None` for a new id.
///
/// Texts that differ only in the digits of redaction marks count as the same, because the digits depend on the project
/// and the version. If the stored text is damaged and the new text is the right one, the stored text is repaired.
pub(super) fn met_before(
    connection: &Connection,
    (owner, author): (&str, &str),
    id: &MemoryId,
    hash: &[u8; 32],
    text: &str,
) -> Result<Option<Outcome>> {
    let stored: Option<(Vec<u8>, bool, blake3::Hash)> = connection
        .prepare_cached(
            "SELECT text_hash, tombstoned_at IS NOT NULL, text FROM memories WHERE owner = ?1 AND id = ?2",
        )?
        .query_row((owner, id.as_str()), |row| {
            let text = row.get_ref(2)?.as_bytes_or_null()?.unwrap_or_default();
            Ok((row.get(0)?, row.get(1)?, blake3::hash(text)))
        })
        .optional()?;
    let stored = match stored {
        Some((stored_hash, is_forgotten, hash_of_text)) => {
            let is_hash = stored_hash == hash;
            // Either the stored text or the stored hash is damaged, and the other one shows that `text` is the text
            // that was stored.
            if is_hash != (hash_of_text.as_bytes() == hash) {
                repair(connection, owner, id, hash, text)?;
            }
            // The text of a forgotten memory doesn't matter.
            let is_same = is_forgotten
                || is_hash
                || hash_of_text.as_bytes() == hash
                || memories::is_alike(connection, owner, id, text)?;
            Some(KnownMemory { is_same, is_forgotten })
        }
        None => None,
    };
    // The memory may also be forgotten in another store of its author, from which only the state came.
    let is_purged = stored.is_none()
        && connection
            .prepare_cached(
                "SELECT 1 FROM purged WHERE owner = ?1 AND id = ?2
                 UNION ALL SELECT 1 FROM absent
                     WHERE owner = ?1 AND id = ?2 AND is_forgotten AND coalesce(author, ?4) = ?3",
            )?
            .exists((owner, id.as_str(), author, parts::names(owner).0))?;
    Ok(stale::outcome(stored, is_purged))
}

/// Replaces a damaged text, or the damaged hash of a text. The entries of the indexes stay, because they were made from
/// the right text.
fn repair(connection: &Connection, owner: &str, id: &MemoryId, hash: &[u8; 32], text: &str) -> Result<()> {
    // Setting the mark increases the version, so cached answers with the damaged text are no longer used.
    tracing::warn!(%id, "a damaged text was replaced by the right one");
    connection
        .prepare_cached(
            "UPDATE memories SET text = ?3, text_hash = ?4, marked = marked WHERE owner = ?1 AND id = ?2",
        )?
        .execute((owner, id.as_str(), text, hash))?;
    // Summaries that were made without the damaged text are made again.
    let (session, ordinal): (Option<i64>, Option<i64>) = connection
        .prepare_cached("SELECT session, ordinal FROM memories WHERE owner = ?1 AND id = ?2")?
        .query_row((owner, id.as_str()), |row| Ok((row.get(0)?, row.get(1)?)))?;
    for sql in [
        "DELETE FROM summaries WHERE session = ?1 AND first <= ?2 AND last >= ?2",
        "DELETE FROM conversations WHERE session = ?1 AND last >= ?2",
        "UPDATE sessions SET grown = version WHERE seq = ?1 AND ?2 IS NOT NULL",
    ] {
        connection.prepare_cached(sql)?.execute((session, ordinal))?;
    }
    Ok(())
}

/// Returns whether all of `ids` are stored and not forgotten. A derived memory needs all its sources, because it
/// doesn't outlive them.
///
/// A private memory may have shared sources. A shared memory may have sources that are private to its writer.
pub(super) fn are_living(connection: &Connection, scope: &Scope, ids: &[MemoryId]) -> Result<bool> {
    let mut living = connection
        .prepare_cached("SELECT 1 FROM memories WHERE owner = ?1 AND id = ?2 AND tombstoned_at IS NULL")?;
    let [shared, mine] = parts::both(scope);
    for id in ids {
        if !living.exists((&shared, id.as_str()))? && !living.exists((&mine, id.as_str()))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Records that the memory `id` is the commit `sha`.
pub(crate) fn commit_id(connection: &Connection, owner: &str, sha: &str, id: &MemoryId) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO commit_ids (owner, sha, memory)
             SELECT owner, ?2, seq FROM memories WHERE owner = ?1 AND id = ?3",
        )?
        .execute((owner, sha, id.as_str()))?;
    Ok(())
}

/// Counts the occurrence `occurrence` of the memory, unless it was counted before.
pub(crate) fn repeat(
    connection: &Connection,
    owner: &str,
    id: &MemoryId,
    occurrence: &str,
) -> Result<Outcome> {
    let is_new = connection
        .prepare_cached(
            "INSERT OR IGNORE INTO repeats (memory, key) SELECT seq, ?2 FROM memories WHERE owner = ?1 AND id = ?3",
        )?
        .execute((owner, occurrence, id.as_str()))?;
    Ok(if is_new == 1 { Outcome::Repeated } else { Outcome::AlreadyStored })
}
