//! Reads lists for people: memories and sessions in the order of time, and ids by their beginning.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::SqliteStore;
use crate::columns::id;
use crate::error::Result;
use crate::read::conditions::Conditions;
use crate::read::memories::{COLUMNS, memory};
use crate::read::parts::indexed_by;
use tiro_base::error;
use tiro_base::filter::Filter;
use tiro_base::memory::{Memory, MemoryId, MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::{ActivityRow, QUARTER_HOUR};

impl SqliteStore {
    pub(crate) async fn ids_beginning(
        &self,
        scope: &Scope,
        beginning: &str,
        limit: usize,
    ) -> error::Result<Vec<MemoryId>> {
        let beginning = beginning.to_owned();
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?;
            let sql = format!(
                "SELECT m.id FROM memories m WHERE {} AND m.id >= ? AND m.id < ? ORDER BY m.id LIMIT ?",
                conditions.sql
            );
            // Ids consist of letters and digits, so `{` follows all of them.
            let end = format!("{beginning}{{");
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let own = [Value::from(beginning), Value::from(end), Value::from(limit)];
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement
                .query_map(params_from_iter(conditions.values.into_iter().chain(own)), |row| id(row, 0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        after: Option<MemoryKey>,
        limit: usize,
    ) -> error::Result<Vec<Memory>> {
        let before = Value::from(after.map_or(i64::MAX, MemoryKey::in_store));
        let filter = filter.clone();
        self.read(scope, move |_, connection, scope| {
            listed(connection, scope, &filter, "AND m.seq < ? ORDER BY m.seq DESC", vec![before], limit)
        })
        .await
    }

    pub(crate) async fn latest(
        &self,
        scope: &Scope,
        filter: &Filter,
        limit: usize,
    ) -> error::Result<Vec<Memory>> {
        let filter = filter.clone();
        self.read(scope, move |_, connection, scope| {
            let order = "ORDER BY m.time DESC, m.seq DESC";
            let Some(kinds) = filter.kinds.clone() else {
                return listed(connection, scope, &filter, order, Vec::new(), limit);
            };
            // The kinds are read one by one, because the index has one kind after the other. In one query SQLite would
            // read all kinds by time, and the last decision may be older than thousands of messages.
            let mut found = Vec::new();
            for kind in BTreeSet::from_iter(kinds) {
                let filter = Filter { kinds: Some(vec![kind]), ..filter.clone() };
                found.extend(listed(connection, scope, &filter, order, Vec::new(), limit)?);
            }
            found.sort_by_key(|memory| Reverse((memory.time, memory.key)));
            found.truncate(limit);
            Ok(found)
        })
        .await
    }

    pub(crate) async fn activity(&self, scope: &Scope, filter: &Filter) -> error::Result<Vec<ActivityRow>> {
        let filter = filter.clone();
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?.narrowed(&filter);
            // A stash may have more messages without a session than all sessions.
            let by_time = indexed_by(connection, "memories_in_sessions_by_time")?;
            let sql = format!(
                "SELECT m.session, m.time, m.tokens FROM memories m {by_time}
                 WHERE {} AND m.session IS NOT NULL AND m.kind = 'message'",
                conditions.sql
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let mut messages = statement.query(params_from_iter(conditions.values))?;
            let mut names: HashMap<i64, Option<SessionId>> = HashMap::new();
            let mut rows: HashMap<(i64, Millis), ActivityRow> = HashMap::new();
            // Added up here, because SQLite would sort all messages to group them.
            while let Some(message) = messages.next()? {
                let (session, time, tokens): (i64, Millis, i64) =
                    (message.get(0)?, message.get(1)?, message.get(2)?);
                let name = match names.entry(session) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => unknown.insert(name(connection, session)?),
                };
                let Some(name) = name else { continue };
                // Times before 1970 are negative, and division rounds towards zero. Such a quarter is counted together
                // with the one after it.
                let row = rows.entry((session, time / QUARTER_HOUR)).or_insert_with(|| ActivityRow {
                    session: name.clone(),
                    first: time,
                    last: time,
                    messages: 0,
                    tokens: 0,
                });
                (row.first, row.last) = (row.first.min(time), row.last.max(time));
                row.messages += 1;
                row.tokens += tokens;
            }
            let mut rows: Vec<ActivityRow> = rows.into_values().collect();
            rows.sort_by(|one, other| (&one.session, one.first).cmp(&(&other.session, other.first)));
            Ok(rows)
        })
        .await
    }
}

/// Returns the name of the session, or `None` if it can't be read.
fn name(connection: &Connection, session: i64) -> Result<Option<SessionId>> {
    let mut statement = connection.prepare_cached("SELECT name FROM sessions WHERE seq = ?")?;
    Ok(SessionId::parse(&statement.query_row([session], |row| row.get::<_, String>(0))?))
}

/// Returns up to `limit` memories that the filter admits. `rest` is the end of the query, with the `values` of its `?`.
fn listed(
    connection: &Connection,
    scope: &Scope,
    filter: &Filter,
    rest: &str,
    values: Vec<Value>,
    limit: usize,
) -> Result<Vec<Memory>> {
    let conditions = Conditions::of_scope(connection, scope)?.narrowed(filter);
    let sql = format!(
        "SELECT {COLUMNS} FROM memories m LEFT JOIN sessions s ON s.seq = m.session
         WHERE {} {rest} LIMIT ?",
        conditions.sql
    );
    let limit = Value::from(i64::try_from(limit).unwrap_or(i64::MAX));
    let values = conditions.values.into_iter().chain(values).chain([limit]);
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), memory)?;
    Ok(rows.collect::<Result<_, _>>()?)
}
