//! The memories that summarise whole sessions, and those that summarise quarters of a year.
//!
//! A trigger removes the memory with the row in `conversations` that names it, and the row with the memory.

use super::admitted;
use super::segments::hash_of_range;
use crate::PostgresStore;
use crate::columns::{self, number};
use crate::database::seen::NO_OWNER;
use crate::error::Result;
use crate::owners::{self, SessionRef, is_named};
use crate::read::find::{find_session, required_session};
use crate::transactions::{Transaction, read, write};
use crate::write::save_batch;
use tiro_base::error;
use tiro_base::memory::{Draft, Millis};
use tiro_base::scope::{Scope, SessionId, Visibility};
use tiro_store::decide::stale::{Standin, Standing, standin};
use tiro_store::{ConversationRow, Outcome, PreparedMemory, Saved};

/// The farthest that a due date may lie in the future, in milliseconds: a year and a day. No caller postpones a memory
/// that far.
const FARTHEST: Millis = 366 * 24 * 60 * 60 * 1000;

impl PostgresStore {
    pub(crate) async fn conversation(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> error::Result<Option<ConversationRow>> {
        read!(self, scope, tx => {
            let Some(session) = find_session(&tx, scope, session).await? else { return Ok(None) };
            let sql = "SELECT m.id, c.last, c.made_at
                       FROM conversations c JOIN memories m ON m.owner = c.owner AND m.seq = c.memory
                       WHERE c.owner = $1 AND c.session = $2";
            let Some(row) = tx.row(sql, &[&session.owner, &session.seq]).await? else { return Ok(None) };
            let (last, made_at) = (row.try_get(1)?, row.try_get(2)?);
            Ok(Some(ConversationRow { id: columns::id(&row, 0)?, last, made_at }))
        })
    }

    pub(crate) async fn save_conversation(
        &self,
        scope: &Scope,
        memory: PreparedMemory,
        last: i64,
        source_hash: [u8; 32],
        now: Millis,
    ) -> error::Result<Saved> {
        write!(self, scope, tx => {
            let Some(name) = &memory.draft.session else { return Ok(Saved::SourcesChanged) };
            let session = required_session(&tx, scope, name).await?;
            if hash_of_range(&tx, session, 0, last).await? != source_hash {
                return Ok(Saved::SourcesChanged);
            }
            let due = match standin(standing(&tx, session).await?, &memory.id, last) {
                Standin::Stays(id) => return Ok(Saved::AlreadyMade(id)),
                Standin::First => None,
                Standin::Replaces { due } => {
                    let sql = "DELETE FROM conversations WHERE owner = $1 AND session = $2";
                    tx.execute(sql, &[&session.owner, &session.seq]).await?;
                    due
                }
            };
            let draft = in_session(&tx, scope, session, &memory.draft).await?;
            let placed = PreparedMemory { draft, ..memory.clone() };
            if save_one(&tx, scope, &placed, now).await? != Outcome::Stored {
                return Ok(Saved::AlreadyMade(placed.id));
            }
            tx.execute(
                "INSERT INTO conversations (owner, session, memory, last, made_at, due)
                 SELECT $1, $2, seq, $4, $5, $6 FROM memories WHERE owner = $1 AND id = $3",
                &[&session.owner, &session.seq, &placed.id.as_str(), &last, &now, &due],
            )
            .await?;
            Ok(Saved::Made(placed.id))
        })
    }

    pub(crate) async fn postpone_conversation(
        &self,
        scope: &Scope,
        session: &SessionId,
        due: Millis,
    ) -> error::Result<()> {
        write!(self, scope, tx => {
            if let Some(session) = find_session(&tx, scope, session).await? {
                let sql = "UPDATE conversations SET due = $3 WHERE owner = $1 AND session = $2";
                tx.execute(sql, &[&session.owner, &session.seq, &due]).await?;
            }
            Ok(())
        })
    }

    pub(crate) async fn due_conversations(
        &self,
        scope: &Scope,
        now: Millis,
        limit: usize,
    ) -> error::Result<Vec<SessionId>> {
        // A date that is too far in the future was written with a wrong clock, so the memory counts as due.
        let sql = format!(
            "SELECT s.name FROM conversations c JOIN sessions s ON s.owner = c.owner AND s.seq = c.session
             WHERE c.owner = ANY ($1) AND c.due IS NOT NULL AND (c.due <= $3 OR c.due > $4) AND {}
                 AND ($5::bigint[] IS NULL OR c.session = ANY ($5))
             ORDER BY c.due, c.session LIMIT $6",
            is_named("$2")
        );
        read!(self, scope, tx => {
            let admitted = admitted(&tx, scope).await?;
            let admitted: Option<Vec<i64>> =
                admitted.map(|sessions| sessions.into_iter().map(|session| session.seq).collect());
            let (parts, mine, late) = (&tx.seen.parts, &tx.seen.mine, now.saturating_add(FARTHEST));
            let rows = tx.rows(&sql, &[parts, mine, &now, &late, &admitted, &number(limit)]).await?;
            rows.iter().map(|row| columns::word(row, 0, SessionId::parse)).collect()
        })
    }

    pub(crate) async fn save_quarter(
        &self,
        scope: &Scope,
        memory: PreparedMemory,
        now: Millis,
    ) -> error::Result<Outcome> {
        write!(self, scope, tx => {
            let owner = owners::of_draft(&tx, scope, &memory.draft).await?.owner;
            tx.execute(
                "DELETE FROM memories WHERE owner = $1 AND kind = 'summary' AND provenance = 'derived'
                     AND topic = $2 AND id <> $3",
                &[&owner, &memory.draft.topic, &memory.id.as_str()],
            )
            .await?;
            save_one(&tx, scope, &memory, now).await
        })
    }

    pub(crate) async fn quarter_is_retired(&self, scope: &Scope, topic: &str) -> error::Result<bool> {
        read!(self, scope, tx => {
            let sql = "SELECT FROM memories m JOIN memory_references r ON r.owner = m.owner AND r.memory = m.seq
                       JOIN sessions s ON s.owner = ANY ($1) AND s.retired = r.target
                       WHERE m.owner = ANY ($1) AND m.kind = 'summary' AND m.provenance = 'derived'
                           AND m.topic = $2 LIMIT 1";
            tx.exists(sql, &[&tx.seen.parts, &topic]).await
        })
    }
}

/// Stores one memory; returns its outcome.
async fn save_one(tx: &Transaction, scope: &Scope, memory: &PreparedMemory, now: Millis) -> Result<Outcome> {
    let receipt = save_batch(tx, scope, std::slice::from_ref(memory), now).await?;
    Ok(receipt.outcomes[0].1)
}

/// Returns the draft of a memory that is to be in the session, and in the part of the session.
async fn in_session(tx: &Transaction, scope: &Scope, session: SessionRef, draft: &Draft) -> Result<Draft> {
    let sql = "SELECT name FROM sessions WHERE owner = $1 AND seq = $2";
    let name: String = tx.only(sql, &[&session.owner, &session.seq]).await?.try_get(0)?;
    let is_private = tx.seen.mine != NO_OWNER && session.owner == tx.seen.mine;
    let draft = Draft { session: SessionId::parse(&name), ..draft.clone() };
    Ok(match is_private {
        true => Draft { visibility: Some(Visibility::Private), author: Some(scope.reader.clone()), ..draft },
        false => Draft { visibility: Some(Visibility::Project), ..draft },
    })
}

/// Returns the fields of the session's summarising memory that decide whether another memory replaces it.
async fn standing(tx: &Transaction, session: SessionRef) -> Result<Option<Standing>> {
    let sql = "SELECT m.id, c.last, c.due FROM conversations c JOIN memories m ON m.owner = c.owner AND m.seq = c.memory
               WHERE c.owner = $1 AND c.session = $2";
    let Some(row) = tx.row(sql, &[&session.owner, &session.seq]).await? else { return Ok(None) };
    Ok(Some(Standing { id: columns::id(&row, 0)?, last: row.try_get(1)?, due: row.try_get(2)? }))
}
