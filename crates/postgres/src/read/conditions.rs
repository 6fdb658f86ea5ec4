//! Turns a scope and a filter into the conditions of a query over `memories AS m`.

use crate::database::sql::Sql;
use crate::error::Result;
use crate::owners::{self, sessions, sessions_named};
use crate::transactions::Transaction;
use tiro_base::filter::{Expiry, Filter, Stash};
use tiro_base::scope::Scope;

/// Which memories of a scope a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that are not forgotten.
    Living,
    /// All, also forgotten ones.
    All,
}

/// Adds the condition that the memory `m` is in the scope. The text must end where a condition can begin, for example
/// with `WHERE `.
pub(crate) async fn of_scope(tx: &Transaction, scope: &Scope, which: Which, sql: &mut Sql) -> Result<()> {
    let parts = sql.bind(tx.seen.parts.clone());
    sql.push(&format!("m.owner = ANY ({parts})"));
    if let Some(sessions) = sessions(tx, scope).await? {
        owners::in_sessions(sql, &sessions);
    }
    if which == Which::Living {
        sql.push(" AND m.tombstoned_at IS NULL");
    }
    Ok(())
}

/// Adds the condition that the filter admits the memory `m`.
pub(crate) async fn narrow(tx: &Transaction, filter: &Filter, sql: &mut Sql) -> Result<()> {
    let Filter { kinds, branch, path, topic, source_id, source, stash, since, until, without } = filter;
    if let Some(session) = without {
        let without = sessions_named(tx, std::slice::from_ref(session)).await?;
        let seqs = sql.bind(without.iter().map(|session| session.seq).collect::<Vec<i64>>());
        sql.push(&format!(" AND (m.session IS NULL OR m.session <> ALL ({seqs}))"));
    }
    if let Some(kinds) = kinds {
        let kinds = sql.bind(kinds.iter().map(|kind| kind.as_str()).collect::<Vec<&str>>());
        sql.push(&format!(" AND m.kind = ANY ({kinds})"));
    }
    if let Some(branch) = branch {
        let branch = sql.bind(branch.clone());
        sql.push(&format!(" AND m.branch = {branch}"));
    }
    in_stash(*stash, topic.as_deref(), sql);
    if let Some(source) = source {
        let source = sql.bind(source.clone());
        sql.push(&format!(
            " AND (m.source_id = {source} OR EXISTS (SELECT FROM memory_paths p
                 WHERE p.owner = m.owner AND p.memory = m.seq AND p.path = {source}))"
        ));
    }
    if let Some(id) = source_id {
        // A commit that was rebased or cherry-picked has several ids. Answers show ten digits of an id. Fewer digits
        // could belong to several commits, so they are not accepted as the beginning of an id.
        let is_prefix = (10..=40).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (whole, start) =
            (sql.bind(id.clone()), sql.bind(if is_prefix { id.clone() } else { String::new() }));
        sql.push(&format!(
            " AND (m.source_id = {whole} OR EXISTS (SELECT FROM commit_ids i WHERE i.owner = m.owner
                 AND i.memory = m.seq AND (i.sha = {whole} OR {start} <> '' AND starts_with(i.sha, {start}))))"
        ));
    }
    if let Some(path) = path {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let (path, below) = (sql.bind(path.to_owned()), sql.bind(format!("{path}/")));
        sql.push(&format!(
            " AND EXISTS (SELECT FROM memory_paths p WHERE p.owner = m.owner AND p.memory = m.seq
                 AND (p.path = {path} OR starts_with(p.path, {below})))"
        ));
    }
    if let Some(since) = since {
        let since = sql.bind(*since);
        sql.push(&format!(" AND m.time >= {since}"));
    }
    if let Some(until) = until {
        let until = sql.bind(*until);
        sql.push(&format!(" AND m.time < {until}"));
    }
    Ok(())
}

/// Adds the conditions that a memory is in the stash, or is not left out of contexts because of the stash, and that it
/// has the topic.
fn in_stash(stash: Option<Stash>, topic: Option<&str>, sql: &mut Sql) {
    match (stash, topic) {
        (Some(stash), topic) if stash.is_within() => {
            let living = match stash {
                Stash::Unexpired(expiry) => format!(" AND {}", unexpired(expiry, sql)),
                _ => String::new(),
            };
            let topic = topic.map(|topic| format!(" AND x.topic = {}", sql.bind(topic.to_owned())));
            sql.push(&format!(
                " AND EXISTS (SELECT FROM stashed x WHERE x.owner = m.owner AND x.memory = m.seq{}{living})",
                topic.unwrap_or_default()
            ));
        }
        (_, Some(topic)) => {
            let topic = sql.bind(topic.to_owned());
            sql.push(&format!(" AND m.topic = {topic}"));
        }
        (_, None) => {}
    }
    if stash == Some(Stash::Without) {
        sql.push(
            " AND NOT EXISTS (SELECT FROM stashed x WHERE x.owner = m.owner AND x.memory = m.seq AND x.is_held_out)",
        );
    }
}

/// Returns the SQL condition that the row `x`, the stash row of the memory `m`, is not expired. A memory also counts as
/// expired if it was stashed only because no summary covered it, and a summary covers it now.
pub(crate) fn unexpired(Expiry { now, made_before }: Expiry, sql: &mut Sql) -> String {
    let (now, made_before) = (sql.bind(now), sql.bind(made_before));
    format!(
        "(x.is_protected OR ((x.expires_at IS NULL OR x.expires_at > {now}) AND m.time >= {made_before}))
         AND NOT (x.cause = 'pruning' AND EXISTS (SELECT FROM summaries u
             WHERE u.owner = m.owner AND u.session = m.session AND m.ordinal BETWEEN u.first AND u.last))"
    )
}
