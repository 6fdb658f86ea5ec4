//! Finds the conversations behind commits.

use std::collections::HashMap;

use crate::columns;
use crate::database::sql::Sql;
use crate::error::Result;
use crate::owners::is_named;
use crate::read::conditions::{Which, of_scope};
use crate::transactions::Transaction;
use tiro_base::scope::{Scope, SessionId};

/// Returns, by commit, the sessions that led to it and have living memories in the scope, the likeliest first, each with
/// the confidence in its link. Commits without such sessions are left out.
///
/// A session that an agent saved itself has no tool calls as evidence. Such a session is linked, with the lowest
/// confidence, if a parent of the commit was checked out in it.
pub(crate) async fn conversations(
    tx: &Transaction,
    scope: &Scope,
    commits: &[i64],
) -> Result<HashMap<i64, Vec<(SessionId, f64)>>> {
    let mut found: HashMap<i64, Vec<(SessionId, f64)>> = HashMap::new();
    if commits.is_empty() {
        return Ok(found);
    }
    let mut sql = Sql::new("");
    let (parts, commits) = (sql.bind(tx.seen.parts.clone()), sql.bind(commits.to_vec()));
    let mine = sql.bind(tx.seen.mine);
    sql.push(&format!(
        "WITH linked AS (
             SELECT l.memory, l.session_owner, l.session, l.place, l.confidence, 0::bigint AS latest
             FROM commit_sessions l WHERE l.owner = ANY ({parts}) AND l.memory = ANY ({commits})
             UNION ALL
             SELECT p.memory, m.owner, m.session, 1000000, 0.5, -max(m.time) FROM commit_parents p
             JOIN memories m ON m.owner = ANY ({parts}) AND m.head_sha = p.sha
             JOIN sessions o ON o.owner = m.owner AND o.seq = m.session
             WHERE p.owner = ANY ({parts}) AND p.memory = ANY ({commits}) AND o.client IS NULL
             GROUP BY p.memory, m.owner, m.session),
         ranked AS (
             SELECT l.memory, s.name, max(l.confidence) AS confidence, row_number() OVER (
                 PARTITION BY l.memory ORDER BY min(l.place), min(l.latest), s.name) AS rank
             FROM linked l JOIN sessions s ON s.owner = l.session_owner AND s.seq = l.session
             WHERE {} AND EXISTS (SELECT FROM memories m WHERE m.owner = s.owner AND m.session = s.seq AND ",
        is_named(&mine)
    ));
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    sql.push(
        ") GROUP BY l.memory, s.name)
         SELECT memory, name, confidence FROM ranked WHERE rank <= 5 ORDER BY memory, rank",
    );
    for row in tx.query(&sql).await? {
        let session = (columns::word(&row, 1, SessionId::parse)?, row.try_get(2)?);
        found.entry(row.try_get(0)?).or_default().push(session);
    }
    Ok(found)
}
