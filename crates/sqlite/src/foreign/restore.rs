//! Stores the memories of a backup. Existing rows are not changed, and new rows are added as they are in the backup.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rusqlite::{Connection, OptionalExtension, params};

use super::evidence;
use crate::SqliteStore;
use crate::error::Result;
use crate::forget::{SelectedRow, tombstone};
use crate::links;
use crate::links::Known;
use crate::read::parts::{self, Place};
use crate::superseded;
use crate::write::one::{insert_one, save_one};
use crate::write::record;
use crate::write::session::OpenSession;
use tiro_base::error;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::{Scope, SessionId, TenantId};
use tiro_store::{ForeignForgotten, ForeignSession, Outcome, Receipt, RestoredMemory};

/// The maximum number of ordinals that a restored message may skip. Skipped ordinals belong to purged messages.
/// Arbitrary: a gap costs nothing, but a backup must not be able to use up all ordinals.
pub(crate) const WIDEST_GAP: i64 = 1_000_000;

impl SqliteStore {
    pub(crate) async fn restore_sessions(
        &self,
        scope: &Scope,
        sessions: Vec<ForeignSession>,
    ) -> error::Result<()> {
        self.write(scope, move |connection, scope| {
            for ForeignSession { session, origin, branch, head_sha, .. } in &sessions {
                let part = parts::of_session(connection, scope, session, origin.visibility)?;
                let owner = part.tenant.as_str();
                connection
                    .prepare_cached(
                        "INSERT INTO sessions (owner, name, client, worktree, title, branch, head_sha)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                         ON CONFLICT (owner, name) DO UPDATE SET client = coalesce(client, ?3),
                             worktree = coalesce(worktree, ?4), title = coalesce(title, ?5),
                             branch = coalesce(branch, ?6), head_sha = coalesce(head_sha, ?7)",
                    )?
                    .execute(params![
                        owner,
                        session.as_str(),
                        origin.client,
                        origin.worktree,
                        origin.title,
                        branch,
                        head_sha
                    ])?;
                for alias in &origin.aliases {
                    links::alias(connection, owner, alias, session, Known::Kept)?;
                }
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn restore(
        &self,
        scope: &Scope,
        restored: Vec<RestoredMemory>,
        now: Millis,
    ) -> error::Result<Receipt> {
        self.write(scope, move |connection, scope| restore(connection, scope, &restored, now)).await
    }

    pub(crate) async fn restore_forgotten(
        &self,
        scope: &Scope,
        forgotten: ForeignForgotten,
    ) -> error::Result<usize> {
        self.write(scope, move |connection, scope| {
            let owner = scope.tenant.as_str();
            let mine = parts::private(scope);
            for (id, at, undone) in &forgotten.operations {
                connection
                    .prepare_cached(
                        "INSERT INTO operations (id, owner, kind, at, undone_at) VALUES (?1, ?2, 'forget', ?3, ?4)
                         ON CONFLICT (id) DO NOTHING",
                    )?
                    .execute(params![id, parts::own(scope), at, undone])?;
            }
            for (session, stood) in &forgotten.retired {
                let session = parts::session_called(connection, scope, session)?;
                connection
                    .prepare_cached(
                        "UPDATE sessions SET retired = ?2 WHERE seq = ?1 AND retired IS NULL
                             AND EXISTS (SELECT 1 FROM memories m WHERE m.owner = sessions.owner AND m.id = ?2
                                 AND m.tombstoned_at IS NOT NULL)",
                    )?
                    .execute((session, stood.as_str()))?;
            }
            let mut added = 0;
            for id in &forgotten.purged {
                // A memory that is in this store stays, even if it was purged in the store of the backup.
                added += connection
                    .prepare_cached(
                        "INSERT OR IGNORE INTO purged (owner, id) SELECT ?1, ?2
                         WHERE NOT EXISTS (SELECT 1 FROM memories WHERE owner IN (?3, ?4) AND id = ?2)",
                    )?
                    .execute((parts::own(scope), id.as_str(), &mine, owner))?;
            }
            Ok(added)
        })
        .await
    }
}

fn restore(
    connection: &Connection,
    scope: &Scope,
    restored: &[RestoredMemory],
    now: Millis,
) -> Result<Receipt> {
    let mut receipt = Receipt::default();
    let mut sessions: BTreeMap<(TenantId, SessionId), OpenSession> = BTreeMap::new();
    let mut forgotten: BTreeMap<&(String, Millis), Vec<SelectedRow>> = BTreeMap::new();
    for each in restored {
        let RestoredMemory { memory, ordinal, .. } = each;
        let Place { part, session: id } = parts::of_draft(connection, scope, &memory.draft)?;
        let owner = part.tenant.as_str();
        let mut session = None;
        if let Some(id) = id {
            session = Some(match sessions.entry((part.tenant.clone(), id.clone())) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(OpenSession::open(connection, &part, &id)?),
            });
        }
        if let (Some(session), Some(ordinal)) = (&mut session, ordinal) {
            session.skip_to(*ordinal, WIDEST_GAP);
        }
        // A forgotten memory is stored even if its sources are forgotten too.
        let outcome = match each.forgotten {
            Some(_) => insert_one(connection, &part, memory, session, now)?,
            None => save_one(connection, &part, memory, session, now)?,
        };
        receipt.outcomes.push((memory.id.clone(), outcome));
        if outcome == Outcome::Forgotten || outcome == Outcome::Conflict {
            continue;
        }
        mark_and_link(connection, &part, each)?;
        if outcome != Outcome::Stored {
            continue;
        }
        for sha in &each.shas {
            record::commit_id(connection, owner, sha, &memory.id)?;
        }
        evidence::add(connection, owner, &memory.id, &each.evidence)?;
        for key in &each.repeats {
            record::repeat(connection, owner, &memory.id, key)?;
        }
        match &each.forgotten {
            None => receipt.pending += memory.chunks.iter().filter(|chunk| chunk.embedding.is_none()).count(),
            Some(operation) => {
                let row = connection
                    .prepare_cached(
                        "SELECT seq, tokens, session, ordinal FROM memories WHERE owner = ?1 AND id = ?2",
                    )?
                    .query_row((owner, memory.id.as_str()), |row| {
                        let id = memory.id.clone();
                        let (seq, tokens, session, ordinal) =
                            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
                        Ok(SelectedRow { seq, id, tokens, session, ordinal })
                    })?;
                forgotten.entry(operation).or_default().push(row);
            }
        }
    }
    for session in sessions.values() {
        session.close(connection)?;
    }
    for ((operation, at), rows) in forgotten {
        connection
            .prepare_cached(
                "INSERT INTO operations (id, owner, kind, at) VALUES (?1, ?2, 'forget', ?3) ON CONFLICT DO NOTHING",
            )?
            .execute((operation, parts::own(scope), at))?;
        tombstone(connection, operation, &rows, *at)?;
    }
    Ok(receipt)
}

/// Marks a memory as important if it is marked in the backup. Stores its links to sessions, to memories that it
/// replaces, and to memories that replace it.
fn mark_and_link(connection: &Connection, part: &Scope, restored: &RestoredMemory) -> Result<()> {
    let owner = part.tenant.as_str();
    let id = &restored.memory.id;
    if restored.is_marked {
        connection
            .prepare_cached("UPDATE memories SET marked = 1 WHERE owner = ?1 AND id = ?2 AND marked = 0")?
            .execute((owner, id.as_str()))?;
    }
    let RestoredMemory { memory, superseded_by, .. } = restored;
    if let Some(own) = superseded::row_of(connection, owner, id)? {
        // If the other memory isn't stored yet, the link is added when that memory is restored.
        for older in &memory.draft.supersedes {
            if let Some(older) = superseded::row_of(connection, owner, older)? {
                superseded::link(connection, older, own)?;
            }
        }
        for newer in superseded_by {
            if let Some(newer) = superseded::row_of(connection, owner, newer)? {
                superseded::link(connection, own, newer)?;
            }
        }
    }
    stash(connection, owner, restored)?;
    link(connection, part, id, &restored.links)
}

/// Puts a memory into the stash if it is in the stash of the backup, and its text is the same here.
fn stash(connection: &Connection, owner: &str, restored: &RestoredMemory) -> Result<()> {
    let RestoredMemory { memory, stashed: Some(stashed), .. } = restored else { return Ok(()) };
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO stashed
                 (memory, owner, stashed_at, expires_at, is_protected, is_held_out, is_given, topic, cause)
             SELECT seq, owner, ?4, ?5, ?6, ?7, ?8, ?9, ?10 FROM memories
             WHERE owner = ?1 AND id = ?2 AND text_hash = ?3",
        )?
        .execute(params![
            owner,
            memory.id.as_str(),
            blake3::hash(memory.draft.text.as_bytes()).as_bytes().as_slice(),
            stashed.stashed_at,
            stashed.expires_at,
            stashed.is_protected,
            stashed.is_held_out,
            stashed.is_given,
            stashed.topic,
            stashed.cause.as_str(),
        ])?;
    Ok(())
}

/// Stores the sessions that led to a commit, unless sessions are already stored for it here.
fn link(connection: &Connection, part: &Scope, id: &MemoryId, links: &[(SessionId, f64)]) -> Result<()> {
    let owner = part.tenant.as_str();
    let [shared, mine] = parts::both(part);
    let commit: Option<i64> = connection
        .prepare_cached(
            "SELECT seq FROM memories m WHERE owner = ?1 AND id = ?2
                 AND NOT EXISTS (SELECT 1 FROM commit_sessions c WHERE c.memory = m.seq)",
        )?
        .query_row((owner, id.as_str()), |row| row.get(0))
        .optional()?;
    let Some(commit) = commit else { return Ok(()) };
    for (place, (session, confidence)) in links.iter().enumerate() {
        connection
            .prepare_cached(
                "INSERT INTO commit_sessions (memory, place, session, confidence)
                 SELECT ?1, ?2, seq, ?5 FROM sessions WHERE owner IN (?3, ?6) AND name = ?4
                 ORDER BY owner = ?3 LIMIT 1",
            )?
            .execute(params![commit, place as i64, shared, session.as_str(), confidence, mine])?;
    }
    Ok(())
}
