//! Lists threads, their turns, and the exchanges of a session with other assistants.

use rusqlite::{OptionalExtension, Row};

use super::find_thread;
use crate::SqliteStore;
use crate::columns;
use crate::error::Result;
use crate::file::verify;
use crate::read::conditions;
use crate::read::segments::find_session;
use tiro_base::error;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_base::thread::{Spent, ThreadName};
use tiro_store::{Exchange, ThreadRow, TurnRow};

/// Selects turns `u`, each with its messages as far as they are living.
const TURNS: &str =
    "SELECT u.number, u.epoch, u.call, q.id, a.id, a.text, u.model, u.time, u.prompt, u.appended,
        u.whole, u.input, u.cached, u.output, u.micros, iif(q.seq IS NULL OR a.seq IS NULL, NULL, u.receipt),
        a.text_hash
    FROM thread_turns u LEFT JOIN memories q ON q.seq = u.question AND q.tombstoned_at IS NULL
        LEFT JOIN memories a ON a.seq = u.answer AND a.tombstoned_at IS NULL";

/// Selects threads `t` of sessions `s`, each with its counts.
const THREADS: &str =
    "SELECT s.name, t.assistant, t.epoch, t.turns, t.is_fixed, t.window, f.inline, f.overflow,
        (SELECT coalesce(sum(k.tokens), 0) FROM thread_blocks k WHERE k.thread = t.seq), u.first, t.updated,
        u.prompt, u.appended, u.whole, u.input, u.cached, u.output, u.micros
    FROM threads t JOIN sessions s ON s.seq = t.session
        LEFT JOIN (SELECT thread, sum(is_inline) AS inline, sum(NOT is_inline) AS overflow
            FROM thread_files WHERE NOT is_removed GROUP BY thread) f ON f.thread = t.seq
        LEFT JOIN (SELECT thread, min(time) AS first, sum(prompt) AS prompt, sum(appended) AS appended,
                sum(whole) AS whole, sum(input) AS input, sum(cached) AS cached, sum(output) AS output,
                sum(micros) AS micros
            FROM thread_turns GROUP BY thread) u ON u.thread = t.seq";

impl SqliteStore {
    pub(crate) async fn turn_by_call(
        &self,
        scope: &Scope,
        name: &ThreadName,
        call_id: &str,
    ) -> error::Result<Option<TurnRow>> {
        let (name, call_id) = (name.clone(), call_id.to_owned());
        self.read(scope, move |_, connection, scope| {
            let Some(found) = find_thread(connection, scope, &name)? else { return Ok(None) };
            let sql = format!("{TURNS} WHERE u.thread = ?1 AND u.call = ?2");
            let mut statement = connection.prepare_cached(&sql)?;
            Ok(statement.query_row((found.seq, call_id), turn).optional()?)
        })
        .await
    }

    pub(crate) async fn turns(
        &self,
        scope: &Scope,
        name: &ThreadName,
        limit: usize,
    ) -> error::Result<Vec<TurnRow>> {
        let name = name.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(found) = find_thread(connection, scope, &name)? else { return Ok(Vec::new()) };
            let sql = format!("{TURNS} WHERE u.thread = ?1 ORDER BY u.number DESC LIMIT ?2");
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map((found.seq, at_most(limit)), turn)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn threads(
        &self,
        scope: &Scope,
        session: Option<&SessionId>,
    ) -> error::Result<Vec<ThreadRow>> {
        let session = session.cloned();
        self.read(scope, move |_, connection, scope| {
            let sessions = match &session {
                Some(session) => Some(Vec::from_iter(find_session(connection, scope, session)?)),
                None => conditions::sessions(connection, scope)?,
            };
            let marks = sessions.iter().flatten().map(i64::to_string).collect::<Vec<_>>().join(", ");
            let which = if sessions.is_some() { format!("AND s.seq IN ({marks})") } else { String::new() };
            let sql =
                format!("{THREADS} WHERE s.owner = ?1 {which} ORDER BY t.updated DESC, s.name, t.assistant");
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map([scope.tenant.as_str()], thread)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn other_exchanges(
        &self,
        scope: &Scope,
        name: &ThreadName,
        limit: usize,
    ) -> error::Result<Vec<Exchange>> {
        let name = name.clone();
        self.read(scope, move |_, connection, scope| {
            let Some(session) = find_session(connection, scope, &name.session)? else {
                return Ok(Vec::new());
            };
            let own = find_thread(connection, scope, &name)?.map(|found| found.seq);
            // The answer has the newest row among the messages of its turn. It is NULL if the turn was purged.
            let last: Option<i64> = connection
                .prepare_cached(
                    "SELECT max(max(coalesce(answer, 0), coalesce(question, 0))) FROM thread_turns WHERE thread = ?1",
                )?
                .query_row([own], |row| row.get(0))?;
            let mut statement = connection.prepare_cached(
                "SELECT t.assistant, u.time, q.text, a.text, q.id, a.id, q.text_hash, a.text_hash
                 FROM threads t JOIN thread_turns u ON u.thread = t.seq
                     JOIN memories q ON q.seq = u.question AND q.tombstoned_at IS NULL
                     JOIN memories a ON a.seq = u.answer AND a.tombstoned_at IS NULL
                 WHERE t.session = ?1 AND t.assistant <> ?2 AND a.seq > ?3
                 ORDER BY a.seq DESC LIMIT ?4",
            )?;
            let values = (session, &name.assistant, last.unwrap_or(0), at_most(limit));
            let rows = statement.query_map(values, |row| {
                Ok(Exchange {
                    assistant: row.get(0)?,
                    time: row.get(1)?,
                    question: verify::marked(row, 2, 6)?.unwrap_or_default(),
                    answer: verify::marked(row, 3, 7)?.unwrap_or_default(),
                    ids: [columns::id(row, 4)?, columns::id(row, 5)?],
                })
            })?;
            let mut exchanges: Vec<Exchange> = rows.collect::<Result<_, _>>()?;
            exchanges.reverse();
            Ok(exchanges)
        })
        .await
    }
}

fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn turn(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    let id = |column| match row.get::<_, Option<String>>(column)? {
        Some(_) => columns::word(row, column, MemoryId::parse).map(Some),
        None => Ok(None),
    };
    Ok(TurnRow {
        number: row.get(0)?,
        epoch: row.get(1)?,
        call_id: row.get(2)?,
        question: id(3)?,
        answer: id(4)?,
        answer_text: verify::marked(row, 5, 16)?,
        model: row.get(6)?,
        time: row.get(7)?,
        spent: spent(row, 8)?,
        receipt: row.get(15)?,
    })
}

fn thread(row: &Row<'_>) -> rusqlite::Result<ThreadRow> {
    let last = row.get(10)?;
    Ok(ThreadRow {
        name: ThreadName { session: columns::word(row, 0, SessionId::parse)?, assistant: row.get(1)? },
        epoch: row.get(2)?,
        turns: row.get(3)?,
        is_fixed: row.get(4)?,
        window: row.get(5)?,
        files_inline: row.get::<_, Option<u32>>(6)?.unwrap_or(0),
        files_overflow: row.get::<_, Option<u32>>(7)?.unwrap_or(0),
        tokens: row.get::<_, i64>(8)?.max(0).cast_unsigned(),
        first: row.get::<_, Option<Millis>>(9)?.unwrap_or(last),
        last,
        spent: spent(row, 11)?,
    })
}

/// Reads the cost and the tokens of a turn from `column` and the six columns after it. NULL counts as 0.
fn spent(row: &Row<'_>, column: usize) -> rusqlite::Result<Spent> {
    let number = |place: usize| -> rusqlite::Result<u64> {
        Ok(row.get::<_, Option<i64>>(column + place)?.unwrap_or(0).max(0).cast_unsigned())
    };
    Ok(Spent {
        prompt: number(0)?,
        appended: number(1)?,
        whole: number(2)?,
        input: number(3)?,
        cached: number(4)?,
        output: number(5)?,
        micros: number(6)?,
    })
}
