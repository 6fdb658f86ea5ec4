//! Reads, in one snapshot, the data from which a context of a session is chosen.

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{self, memory_key};
use crate::error::Result;
use crate::owners::SessionRef;
use crate::read::find::find_session;
use crate::read::memories::{facts, important_messages};
use crate::read::messages::{checked_texts, messages, tokens};
use crate::summaries::segments::segments;
use crate::summaries::summaries;
use crate::transactions::{Transaction, read};
use tiro_base::error;
use tiro_base::memory::MemoryKey;
use tiro_base::scope::{Scope, SessionId};
use tiro_store::decide::context;
use tiro_store::{ContextParts, ContextQuery, StashedPlace};

impl PostgresStore {
    pub(crate) async fn context_parts(
        &self,
        scope: &Scope,
        session: &SessionId,
        query: ContextQuery,
    ) -> error::Result<ContextParts> {
        read!(self, scope, tx => {
            let parts = match find_session(&tx, scope, session).await? {
                Some(session) => parts(&tx, scope, session, &query).await?,
                None => ContextParts::default(),
            };
            let sql = "SELECT count(*) FROM pending WHERE owner = ANY ($1)";
            let pending = columns::size(&tx.only(sql, &[&tx.seen.parts]).await?, 0)?;
            Ok(ContextParts { pending, ..parts })
        })
    }
}

/// Returns the data for a context, except the number of waiting chunks.
async fn parts(
    tx: &Transaction,
    scope: &Scope,
    session: SessionRef,
    query: &ContextQuery,
) -> Result<ContextParts> {
    let sql = "SELECT noted FROM sessions WHERE owner = $1 AND seq = $2";
    let noted: i64 = tx.only(sql, &[&session.owner, &session.seq]).await?.try_get(0)?;
    let segments = segments(tx, session).await?;
    let (from, with_texts) = context::read_from(&segments, noted, query);
    let messages = messages(tx, session, from).await?;
    let with_text = messages.iter().filter(|row| row.ordinal >= with_texts).map(|row| row.key);
    let keys: Vec<MemoryKey> = with_text.take(query.texts).collect();
    Ok(ContextParts {
        texts: checked_texts(tx, scope, &keys).await?,
        summaries: summaries(tx, session, None).await?,
        tokens: tokens(tx, session).await?,
        important: important_messages(tx, session, query.importance, query.important).await?,
        facts: facts(tx, session, query.facts).await?,
        stashed: stashed_of(tx, session).await?,
        pending: 0,
        noted,
        segments,
        from,
        messages,
    })
}

/// Returns the stashed memories of the session, ordered by key.
async fn stashed_of(tx: &Transaction, session: SessionRef) -> Result<Vec<StashedPlace>> {
    let sql = "SELECT m.seq, m.ordinal, x.is_held_out FROM stashed x
               JOIN memories m ON m.owner = x.owner AND m.seq = x.memory
               WHERE x.owner = $1 AND m.session = $2 ORDER BY m.seq";
    let stashed = |row: &Row| {
        Ok(StashedPlace { key: memory_key(row, 0)?, ordinal: row.try_get(1)?, is_held_out: row.try_get(2)? })
    };
    tx.rows(sql, &[&session.owner, &session.seq]).await?.iter().map(stashed).collect()
}
