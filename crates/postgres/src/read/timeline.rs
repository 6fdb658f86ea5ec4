//! Reads lists for people: memories and sessions in the order of time, and ids by their beginning.

use std::collections::BTreeSet;

use tokio_postgres::Row;

use crate::PostgresStore;
use crate::columns::{self, MEMORY, MEMORY_FROM, number};
use crate::database::sql::Sql;
use crate::error::Result;
use crate::read::conditions::{Which, narrow, of_scope};
use crate::transactions::{Transaction, read};
use tiro_base::error;
use tiro_base::filter::Filter;
use tiro_base::memory::{Memory, MemoryId, MemoryKey};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{ActivityRow, QUARTER_HOUR};

/// The order in which memories are listed.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// The last stored first, beginning before this key.
    StoredBefore(i64),
    /// The latest first. Of memories of the same time, the last stored comes first.
    Latest,
}

impl PostgresStore {
    pub(crate) async fn ids_beginning(
        &self,
        scope: &Scope,
        beginning: &str,
        limit: usize,
    ) -> error::Result<Vec<MemoryId>> {
        read!(self, scope, tx => {
            let mut sql = Sql::new("SELECT m.id FROM memories m WHERE ");
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            // Ids consist of letters and digits, so `{` follows all of them.
            let (from, end) = (sql.bind(beginning.to_owned()), sql.bind(format!("{beginning}{{")));
            let limit = sql.bind(number(limit));
            sql.push(&format!(" AND m.id >= {from} AND m.id < {end} ORDER BY m.id LIMIT {limit}"));
            tx.query(&sql).await?.iter().map(|row| columns::id(row, 0)).collect()
        })
    }

    pub(crate) async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        after: Option<MemoryKey>,
        limit: usize,
    ) -> error::Result<Vec<Memory>> {
        let order = Order::StoredBefore(after.map_or(i64::MAX, MemoryKey::in_store));
        read!(self, scope, tx => { listed(&tx, scope, filter, order, limit).await })
    }

    pub(crate) async fn latest(
        &self,
        scope: &Scope,
        filter: &Filter,
        limit: usize,
    ) -> error::Result<Vec<Memory>> {
        read!(self, scope, tx => { listed(&tx, scope, filter, Order::Latest, limit).await })
    }

    pub(crate) async fn activity(&self, scope: &Scope, filter: &Filter) -> error::Result<Vec<ActivityRow>> {
        read!(self, scope, tx => {
            // Times before 1970 are negative, and division rounds towards zero. Such a quarter is counted together with
            // the one after it.
            let mut sql = Sql::new(
                "SELECT s.name, c.first, c.last, c.messages, c.tokens FROM (
                     SELECT m.owner, m.session, min(m.time) AS first, max(m.time) AS last, count(*) AS messages,
                         sum(m.tokens)::bigint AS tokens
                     FROM memories m WHERE ",
            );
            of_scope(&tx, scope, Which::Living, &mut sql).await?;
            narrow(&tx, filter, &mut sql).await?;
            let quarter = sql.bind(QUARTER_HOUR);
            sql.push(&format!(
                " AND m.session IS NOT NULL AND m.kind = 'message'
                     GROUP BY m.owner, m.session, m.time / {quarter}) c
                 JOIN sessions s ON s.owner = c.owner AND s.seq = c.session"
            ));
            let activity = |row: &Row| -> Result<ActivityRow> {
                Ok(ActivityRow {
                    session: columns::word(row, 0, SessionId::parse)?,
                    first: row.try_get(1)?,
                    last: row.try_get(2)?,
                    messages: row.try_get(3)?,
                    tokens: row.try_get(4)?,
                })
            };
            let mut rows: Vec<ActivityRow> =
                tx.query(&sql).await?.iter().map(activity).collect::<Result<_>>()?;
            rows.sort_by(|one, other| (&one.session, one.first).cmp(&(&other.session, other.first)));
            Ok(rows)
        })
    }
}

/// Returns up to `limit` memories that the filter admits.
async fn listed(
    tx: &Transaction,
    scope: &Scope,
    filter: &Filter,
    order: Order,
    limit: usize,
) -> Result<Vec<Memory>> {
    // The first of each part and kind are read in the order of an index, which has one part and kind after the other.
    // In a query for several parts or kinds at once, all their memories would be read and sorted.
    let mut sql = Sql::new(format!("SELECT {MEMORY} FROM {MEMORY_FROM} JOIN ("));
    let parts = sql.bind(tx.seen.parts.clone());
    sql.push(&format!("SELECT f.owner, f.seq FROM unnest({parts}::bigint[]) p (owner)"));
    if let Some(kinds) = &filter.kinds {
        let kinds: BTreeSet<&'static str> = kinds.iter().map(|kind| kind.as_str()).collect();
        let kinds = sql.bind(Vec::from_iter(kinds));
        sql.push(&format!(" CROSS JOIN unnest({kinds}::text[]) k (kind)"));
    }
    sql.push(" CROSS JOIN LATERAL (SELECT m.owner, m.seq FROM memories m WHERE m.owner = p.owner AND ");
    of_scope(tx, scope, Which::Living, &mut sql).await?;
    let others = Filter { kinds: None, ..filter.clone() };
    narrow(tx, &others, &mut sql).await?;
    if filter.kinds.is_some() {
        sql.push(" AND m.kind = k.kind");
    }
    let by = match order {
        Order::StoredBefore(key) => {
            let key = sql.bind(key);
            sql.push(&format!(" AND m.seq < {key}"));
            "m.seq DESC"
        }
        Order::Latest => "m.time DESC, m.seq DESC",
    };
    let limit = sql.bind(number(limit));
    sql.push(&format!(
        " ORDER BY {by} LIMIT {limit}) f) f ON f.owner = m.owner AND f.seq = m.seq ORDER BY {by} LIMIT {limit}"
    ));
    tx.query(&sql).await?.iter().map(columns::memory).collect()
}
