//! Lists the content of the stash.

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{id, memory_key, number, word};
use crate::database::sql::Sql;
use crate::error::Result;
use crate::read::conditions::{Which, narrow, of_scope};
use crate::transactions::read;
use tiro_base::error;
use tiro_base::filter::{Filter, Stash};
use tiro_base::memory::{Kind, MemoryId, MemoryKey};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{StashCause, StashContents, StashGroup, StashPage, StashedMemory};

/// Selects the memories `m` of the stash, with their rows `t` of the stash and their sessions `n`, as [`stashed_row`] reads
/// them.
const STASHED: &str =
    "SELECT m.id, m.seq, m.kind, n.name, m.ordinal, t.topic, m.time, t.stashed_at, t.expires_at,
        t.is_protected, t.is_held_out, t.is_given, t.cause, m.tokens
    FROM stashed t JOIN memories m ON m.owner = t.owner AND m.seq = t.memory
    LEFT JOIN sessions n ON n.owner = m.owner AND n.seq = m.session WHERE ";

impl PostgresStore {
    pub(crate) async fn stashed(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
    ) -> error::Result<Vec<StashedMemory>> {
        read!(self, scope, tx => {
            let mut sql = Sql::new(STASHED);
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            let seqs = sql.bind(keys.iter().map(|key| key.in_store()).collect::<Vec<i64>>());
            sql.push(&format!(" AND m.seq = ANY ({seqs}) ORDER BY m.seq"));
            tx.query(&sql).await?.iter().map(stashed_row).collect()
        })
    }

    pub(crate) async fn list_stash(
        &self,
        scope: &Scope,
        filter: &Filter,
        after: Option<MemoryKey>,
        limit: usize,
    ) -> error::Result<Vec<StashedMemory>> {
        let filter = within_stash(filter.clone());
        read!(self, scope, tx => {
            let mut sql = Sql::new(STASHED);
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            narrow(&tx, &filter, &mut sql).await?;
            let (after, limit) = (sql.bind(after.map_or(-1, MemoryKey::in_store)), sql.bind(number(limit)));
            sql.push(&format!(" AND m.seq > {after} ORDER BY m.seq LIMIT {limit}"));
            tx.query(&sql).await?.iter().map(stashed_row).collect()
        })
    }

    pub(crate) async fn stash_contents(
        &self,
        scope: &Scope,
        page: StashPage,
    ) -> error::Result<StashContents> {
        let StashPage { filter, offset, groups, ids } = page;
        let filter = within_stash(filter);
        read!(self, scope, tx => {
            let mut sql = Sql::default();
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            narrow(&tx, &filter, &mut sql).await?;
            let from = format!(
                "FROM stashed t JOIN memories m ON m.owner = t.owner AND m.seq = t.memory
                 LEFT JOIN sessions n ON n.owner = m.owner AND n.seq = m.session WHERE {}",
                sql.text()
            );
            let (limit, offset, ids) = (sql.bind(number(groups)), sql.bind(number(offset)), sql.bind(number(ids)));
            // Groups of two parts are never the same, except the groups without a session.
            let order = "last DESC, topic COLLATE \"C\" NULLS FIRST, name COLLATE \"C\" NULLS FIRST, session";
            let text = format!(
                "WITH g AS MATERIALIZED (
                     SELECT t.topic, m.session, n.name, count(*) AS memories, sum(m.tokens)::bigint AS tokens,
                         max(t.stashed_at) AS last {from} GROUP BY t.topic, m.session, n.name),
                 p AS (SELECT * FROM g ORDER BY {order} LIMIT {limit} OFFSET {offset})
                 SELECT (SELECT count(*) FROM g), (SELECT coalesce(sum(memories), 0)::bigint FROM g),
                     (SELECT coalesce(sum(tokens), 0)::bigint FROM g),
                     p.topic, p.name, p.memories, p.tokens, p.last, CASE WHEN p.memories IS NULL THEN '{{}}' ELSE ARRAY(
                         SELECT m.id {from} AND t.topic IS NOT DISTINCT FROM p.topic
                             AND m.session IS NOT DISTINCT FROM p.session
                         ORDER BY t.stashed_at DESC, m.seq LIMIT {ids}) END
                 FROM (VALUES (1)) AS whole LEFT JOIN p ON true ORDER BY {order}"
            );
            contents(&tx.rows(&text, &sql.params()).await?)
        })
    }
}

/// Returns the content of the stash from its rows: first what all groups have, then the columns of one group. If no
/// group is on the page, the columns of the group are NULL.
fn contents(rows: &[Row]) -> Result<StashContents> {
    let mut contents = StashContents::default();
    for row in rows {
        (contents.groups, contents.memories, contents.tokens) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let Some(memories) = row.try_get(5)? else { continue };
        let ids: Vec<&str> = row.try_get(8)?;
        contents.page.push(StashGroup {
            topic: row.try_get(3)?,
            session: row.try_get::<_, Option<&str>>(4)?.and_then(SessionId::parse),
            memories,
            tokens: row.try_get(6)?,
            last: row.try_get(7)?,
            ids: ids.into_iter().filter_map(MemoryId::parse).collect(),
        });
    }
    Ok(contents)
}

/// Returns the filter, limited to the stash.
fn within_stash(filter: Filter) -> Filter {
    let stash = filter.stash.filter(|stash| stash.is_within()).unwrap_or(Stash::Only);
    Filter { stash: Some(stash), ..filter }
}

fn stashed_row(row: &Row) -> Result<StashedMemory> {
    Ok(StashedMemory {
        id: id(row, 0)?,
        key: memory_key(row, 1)?,
        kind: word(row, 2, Kind::parse)?,
        session: row.try_get::<_, Option<&str>>(3)?.and_then(SessionId::parse),
        ordinal: row.try_get(4)?,
        topic: row.try_get(5)?,
        time: row.try_get(6)?,
        stashed_at: row.try_get(7)?,
        expires_at: row.try_get(8)?,
        is_protected: row.try_get(9)?,
        is_held_out: row.try_get(10)?,
        is_given: row.try_get(11)?,
        cause: word(row, 12, StashCause::parse)?,
        tokens: row.try_get(13)?,
    })
}
