//! The parts of a store. A store has one part with the shared memories of the tenant; each author can have a part with
//! private memories.
//!
//! The column `owner` of a row has the number of its part. Every statement names the parts that it reads or changes:
//! those that the reader sees ([`Seen::parts`](crate::database::seen::Seen::parts)), the part of a draft ([`of_draft`]), the part of a session
//! ([`session_called`]), or all parts of the store. A session and everything made of it are in the same part, so a range
//! of messages is never partly private. If an author has a private session with the name of a shared session, the name
//! means the private session for this author, and the shared session for others.
//!
//! Rows that a reader stores for its own use, such as cached answers, cursors and operations, are in the reader's own
//! part ([`Transaction::own`]).

use crate::database::seen::NO_OWNER;
use crate::database::sql::Sql;
use crate::error::Result;
use crate::transactions::Transaction;
use tiro_base::memory::{Draft, Kind, MemoryId};
use tiro_base::scope::{Scope, SessionId, Sessions, Visibility};

impl Transaction {
    /// Returns the part for rows that the reader stores for its own use: the shared part if the reader is the tenant. For
    /// a transaction that writes, the part is made if necessary.
    pub async fn own(&self, scope: &Scope) -> Result<i64> {
        if scope.is_own() {
            return Ok(self.seen.shared);
        }
        self.private_part(scope, scope.reader.as_str()).await
    }

    /// Like [`Transaction::own`], for a transaction that reads: [`NO_OWNER`] if the reader stored nothing yet.
    pub fn own_known(&self, scope: &Scope) -> i64 {
        if scope.is_own() { self.seen.shared } else { self.seen.mine }
    }

    /// Returns the private part of `author`, which is made if necessary. Only for transactions that write.
    pub async fn private_part(&self, scope: &Scope, author: &str) -> Result<i64> {
        if author == scope.reader.as_str() && self.seen.mine != NO_OWNER {
            return Ok(self.seen.mine);
        }
        let keys: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&scope.tenant.as_str(), &scope.project.as_str(), &author];
        self.execute(
            "INSERT INTO owners (tenant, project, author) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
            &keys,
        )
        .await?;
        let owner: i64 = self
            .only(
                "SELECT seq, set_config('tiro.owners', current_setting('tiro.owners') || ',' || seq::text, true)
                 FROM owners WHERE tenant = $1 AND project = $2 AND author = $3",
                &keys,
            )
            .await?
            .get(0);
        Ok(owner)
    }
}

/// Returns the SQL condition that the session `s` has its name for the reader: while the reader has a private session
/// with a name, the name doesn't mean the shared session. `mine` is the parameter with the reader's private part.
pub(crate) fn is_named(mine: &str) -> String {
    format!(
        "(s.owner = {mine} OR NOT EXISTS (SELECT FROM sessions p WHERE p.owner = {mine} AND p.name = s.name))"
    )
}

/// Returns all parts of the scope's store, also the private parts of other authors. What is derived from a memory is
/// forgotten together with it, whoever can see it.
pub(crate) async fn of_store(tx: &Transaction, scope: &Scope) -> Result<Vec<i64>> {
    let sql = "SELECT seq FROM owners WHERE tenant = $1 AND project = $2";
    let rows = tx.rows(sql, &[&scope.tenant.as_str(), &scope.project.as_str()]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// A session, with the part that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionRef {
    pub owner: i64,
    pub seq: i64,
}

/// Returns the session whose name (not an alias) is `name`: the reader's private session, or else the shared one.
pub(crate) async fn session_called(tx: &Transaction, name: &SessionId) -> Result<Option<SessionRef>> {
    let row = tx
        .row(
            "SELECT owner, seq FROM sessions WHERE owner = ANY ($1) AND name = $2 ORDER BY owner = $3 DESC LIMIT 1",
            &[&tx.seen.parts, &name.as_str(), &tx.seen.mine],
        )
        .await?;
    Ok(row.map(|row| SessionRef { owner: row.get(0), seq: row.get(1) }))
}

/// Returns the sessions that the scope names by name or alias; `None` if the scope has all sessions.
pub(crate) async fn sessions(tx: &Transaction, scope: &Scope) -> Result<Option<Vec<SessionRef>>> {
    match &scope.sessions {
        Sessions::All => Ok(None),
        Sessions::Only(names) => Ok(Some(sessions_named(tx, names).await?)),
    }
}

/// Returns the sessions with these names or aliases that the reader sees, ordered by their numbers.
pub(crate) async fn sessions_named(tx: &Transaction, names: &[SessionId]) -> Result<Vec<SessionRef>> {
    let names: Vec<&str> = names.iter().map(SessionId::as_str).collect();
    let sql = format!(
        "SELECT s.owner, s.seq FROM sessions s WHERE s.owner = ANY ($1) AND s.name = ANY ($2) AND {named}
         UNION SELECT s.owner, s.seq FROM session_aliases a JOIN sessions s ON s.owner = a.owner AND s.seq = a.session
         WHERE a.owner = ANY ($1) AND a.alias = ANY ($2) AND {named} ORDER BY 2",
        named = is_named("$3")
    );
    let rows = tx.rows(&sql, &[&tx.seen.parts, &names, &tx.seen.mine]).await?;
    Ok(rows.iter().map(|row| SessionRef { owner: row.get(0), seq: row.get(1) }).collect())
}

/// The place where a draft is stored.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The part.
    pub owner: i64,
    /// The session. `None` also if the memory is shared but its session is private.
    pub session: Option<SessionId>,
}

/// Returns the place where a draft must be stored. If the draft names no visibility, it is as private as its session
/// and its sources.
pub(crate) async fn of_draft(tx: &Transaction, scope: &Scope, draft: &Draft) -> Result<Place> {
    let session = draft.session.clone();
    let author = draft.author.as_ref().unwrap_or(&scope.reader).as_str();
    if scope.hides_shared() {
        return Ok(Place { owner: tx.seen.mine, session });
    }
    if draft.visibility == Some(Visibility::Private) {
        return Ok(Place { owner: tx.private_part(scope, author).await?, session });
    }
    let Some(mine) = known_private(tx, scope, author).await? else {
        return Ok(Place { owner: tx.seen.shared, session });
    };
    let is_in_private = match &session {
        Some(name) => {
            let sql = "SELECT FROM sessions WHERE owner = $1 AND name = $2";
            tx.exists(sql, &[&mine, &name.as_str()]).await?
        }
        None => false,
    };
    if draft.visibility.is_none() {
        let sources: Vec<&str> = draft.references.iter().map(MemoryId::as_str).collect();
        let sql = "SELECT FROM memories WHERE owner = $1 AND id = ANY ($2) LIMIT 1";
        let is_private = is_in_private || (!sources.is_empty() && tx.exists(sql, &[&mine, &sources]).await?);
        if is_private {
            return Ok(Place { owner: mine, session });
        }
    }
    // A shared memory must not name a private session.
    let is_named = draft.kind == Kind::Message || !is_in_private;
    Ok(Place { owner: tx.seen.shared, session: session.filter(|_| is_named) })
}

/// Returns the private part of the author, if there is one.
async fn known_private(tx: &Transaction, scope: &Scope, author: &str) -> Result<Option<i64>> {
    if author == scope.reader.as_str() && tx.seen.mine != NO_OWNER {
        return Ok(Some(tx.seen.mine));
    }
    let row = tx
        .row(
            "SELECT seq FROM owners WHERE tenant = $1 AND project = $2 AND author = $3",
            &[&scope.tenant.as_str(), &scope.project.as_str(), &author],
        )
        .await?;
    Ok(row.map(|row| row.get(0)))
}

/// Adds to `sql` the condition that the memory `m` is in one of the sessions.
pub(crate) fn in_sessions(sql: &mut Sql, sessions: &[SessionRef]) {
    let seqs = sql.bind(sessions.iter().map(|session| session.seq).collect::<Vec<i64>>());
    sql.push(&format!(" AND m.session = ANY ({seqs})"));
}
