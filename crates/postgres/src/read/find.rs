//! Finds the session that a name or an alias means.

use std::collections::HashSet;

use crate::error::{Error, Result};
use crate::owners::{SessionRef, is_named};
use crate::transactions::Transaction;
use tiro_base::scope::{Scope, SessionId, Sessions};

/// Returns, for each name or alias, the session that it means for the reader, and the session's version. A name comes
/// before an alias, and a private session before a shared one.
pub(crate) async fn named(tx: &Transaction, names: &[SessionId]) -> Result<Vec<Option<(SessionRef, i64)>>> {
    let mut found = vec![None; names.len()];
    if names.is_empty() {
        return Ok(found);
    }
    let names: Vec<&str> = names.iter().map(SessionId::as_str).collect();
    let sql = format!(
        "SELECT DISTINCT ON (u.place) u.place, f.owner, f.seq, f.version
         FROM unnest($1::text[]) WITH ORDINALITY u (name, place)
         CROSS JOIN LATERAL (
             SELECT s.owner, s.seq, s.version, (s.owner <> $3)::int AS rank FROM sessions s
             WHERE s.owner = ANY ($2) AND s.name = u.name
             UNION ALL
             SELECT s.owner, s.seq, s.version, 2 + (s.owner <> $3)::int
             FROM session_aliases a JOIN sessions s ON s.owner = a.owner AND s.seq = a.session
             WHERE a.owner = ANY ($2) AND a.alias = u.name AND {}) f
         ORDER BY u.place, f.rank",
        is_named("$3")
    );
    for row in tx.rows(&sql, &[&names, &tx.seen.parts, &tx.seen.mine]).await? {
        let place = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or_default();
        found[place] = Some((SessionRef { owner: row.try_get(1)?, seq: row.try_get(2)? }, row.try_get(3)?));
    }
    Ok(found)
}

/// Returns, for each name or alias, the session that it means for the reader; `None` if there is no such session, or if
/// the scope doesn't admit it.
pub(crate) async fn find_sessions(
    tx: &Transaction,
    scope: &Scope,
    names: &[SessionId],
) -> Result<Vec<Option<SessionRef>>> {
    let admitted: &[SessionId] = match &scope.sessions {
        Sessions::All => &[],
        Sessions::Only(names) => names,
    };
    let mut found = named(tx, &[names, admitted].concat()).await?;
    let admitted: HashSet<SessionRef> =
        found.split_off(names.len()).into_iter().flatten().map(|(session, _)| session).collect();
    let is_admitted = |session: &SessionRef| scope.sessions == Sessions::All || admitted.contains(session);
    Ok(found.into_iter().map(|found| found.map(|(session, _)| session).filter(is_admitted)).collect())
}

/// Returns the session with the name or alias `session`; `None` if there is no such session, or if the scope doesn't
/// admit it.
pub(crate) async fn find_session(
    tx: &Transaction,
    scope: &Scope,
    session: &SessionId,
) -> Result<Option<SessionRef>> {
    let found = find_sessions(tx, scope, std::slice::from_ref(session)).await?;
    Ok(found.into_iter().next().flatten())
}

/// Like [`find_session`], but errors with `Kind::NotFound` if the scope has no such session.
pub(crate) async fn required_session(
    tx: &Transaction,
    scope: &Scope,
    session: &SessionId,
) -> Result<SessionRef> {
    find_session(tx, scope, session).await?.ok_or_else(|| {
        Error::not_found(format!("no session `{session}`"))
            .hint("`list_sessions` lists this project's sessions")
    })
}
