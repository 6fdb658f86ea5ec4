//! Reads, in one snapshot, the data from which a context of a session is chosen.

use rusqlite::Connection;

use super::memories::{facts, important_messages};
use super::segments::{checked_texts, find_session, messages, segments, tokens};
use crate::SqliteStore;
use crate::error::Result;
use crate::stash::read::stashed_of;
use crate::statements::noted;
use crate::summaries::summaries;
use crate::write::pending::pending;
use tiro_base::error;
use tiro_base::scope::{Scope, SessionId};
use tiro_store::decide::context;
use tiro_store::{ContextParts, ContextQuery};

impl SqliteStore {
    pub(crate) async fn context_parts(
        &self,
        scope: &Scope,
        session: &SessionId,
        query: ContextQuery,
    ) -> error::Result<ContextParts> {
        let session = session.clone();
        self.read(scope, move |_, connection, scope| {
            let parts = match find_session(connection, scope, &session)? {
                Some(session) => parts(connection, scope, session, &query)?,
                None => ContextParts::default(),
            };
            Ok(ContextParts { pending: pending(connection, scope)?, ..parts })
        })
        .await
    }
}

/// Returns the data for a context, except the number of waiting chunks.
fn parts(connection: &Connection, scope: &Scope, session: i64, query: &ContextQuery) -> Result<ContextParts> {
    let (noted, segments) = (noted(connection, session)?, segments(connection, session)?);
    let (from, with_texts) = context::read_from(&segments, noted, query);
    let messages = messages(connection, session, from)?;
    let keys = messages.iter().filter(|row| row.ordinal >= with_texts).map(|row| row.key);
    Ok(ContextParts {
        texts: checked_texts(connection, scope, keys.take(query.texts).collect())?,
        summaries: summaries(connection, session, None)?,
        tokens: tokens(connection, session)?,
        important: important_messages(connection, session, query.importance, query.important)?,
        facts: facts(connection, session, query.facts)?,
        stashed: stashed_of(connection, scope, session)?,
        pending: 0,
        noted,
        segments,
        from,
        messages,
    })
}
