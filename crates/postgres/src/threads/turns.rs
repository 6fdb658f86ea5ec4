//! Lists threads, their turns, and the exchanges of a session with other assistants.

use tokio_postgres::Row;

use super::read::marked;
use super::{count, find_thread};
use crate::PostgresStore;
use crate::columns::{self, number};
use crate::error::Result;
use crate::owners::{is_named, sessions};
use crate::read::find::find_session;
use crate::transactions::read;
use tiro_base::error;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_base::thread::{Spent, ThreadName};
use tiro_store::{Exchange, ThreadRow, TurnRow};

/// Selects turns `u`, each with its messages as far as they are living.
const TURNS: &str =
    "SELECT u.number, u.epoch, u.call, q.id, a.id, a.text, a.text_hash, u.model, u.time, u.prompt, u.appended,
        u.whole, u.input, u.cached, u.output, u.micros,
        CASE WHEN q.seq IS NOT NULL AND a.seq IS NOT NULL THEN u.receipt END
    FROM thread_turns u
        LEFT JOIN memories q ON q.owner = u.owner AND q.seq = u.question AND q.tombstoned_at IS NULL
        LEFT JOIN memories a ON a.owner = u.owner AND a.seq = u.answer AND a.tombstoned_at IS NULL
    WHERE u.owner = $1 AND u.thread = $2";

/// Selects threads `t` of sessions `s`, each with its counts.
const THREADS: &str =
    "SELECT s.name, t.assistant, t.epoch, t.turns, t.is_fixed, t.\"window\", f.inline, f.overflow, k.tokens, u.first,
        t.updated, u.prompt, u.appended, u.whole, u.input, u.cached, u.output, u.micros
    FROM threads t JOIN sessions s ON s.owner = t.owner AND s.seq = t.session
        CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE is_inline) AS inline,
                count(*) FILTER (WHERE NOT is_inline) AS overflow
            FROM thread_files WHERE owner = t.owner AND thread = t.seq AND NOT is_removed) f
        CROSS JOIN LATERAL (SELECT coalesce(sum(tokens), 0)::bigint AS tokens
            FROM thread_blocks WHERE owner = t.owner AND thread = t.seq) k
        CROSS JOIN LATERAL (SELECT min(time) AS first, sum(prompt)::bigint AS prompt,
                sum(appended)::bigint AS appended, sum(whole)::bigint AS whole, sum(input)::bigint AS input,
                sum(cached)::bigint AS cached, sum(output)::bigint AS output, sum(micros)::bigint AS micros
            FROM thread_turns WHERE owner = t.owner AND thread = t.seq) u";

impl PostgresStore {
    pub(crate) async fn turn_by_call(
        &self,
        scope: &Scope,
        name: &ThreadName,
        call_id: &str,
    ) -> error::Result<Option<TurnRow>> {
        read!(self, scope, tx => {
            let Some(found) = find_thread(&tx, scope, name).await? else { return Ok(None) };
            let sql = format!("{TURNS} AND u.call = $3");
            tx.row(&sql, &[&found.owner, &found.seq, &call_id]).await?.as_ref().map(turn).transpose()
        })
    }

    pub(crate) async fn turns(
        &self,
        scope: &Scope,
        name: &ThreadName,
        limit: usize,
    ) -> error::Result<Vec<TurnRow>> {
        read!(self, scope, tx => {
            let Some(found) = find_thread(&tx, scope, name).await? else { return Ok(Vec::new()) };
            let sql = format!("{TURNS} ORDER BY u.number DESC LIMIT $3");
            let rows = tx.rows(&sql, &[&found.owner, &found.seq, &number(limit)]).await?;
            rows.iter().map(turn).collect()
        })
    }

    pub(crate) async fn threads(
        &self,
        scope: &Scope,
        session: Option<&SessionId>,
    ) -> error::Result<Vec<ThreadRow>> {
        read!(self, scope, tx => {
            let which = match session {
                Some(session) => Some(Vec::from_iter(find_session(&tx, scope, session).await?)),
                None => sessions(&tx, scope).await?,
            };
            let which: Option<Vec<i64>> =
                which.map(|sessions| sessions.iter().map(|session| session.seq).collect());
            let sql = format!(
                "{THREADS} WHERE t.owner = ANY ($1) AND {} AND ($3::bigint[] IS NULL OR s.seq = ANY ($3))
                 ORDER BY t.updated DESC, s.name COLLATE \"C\", t.assistant COLLATE \"C\"",
                is_named("$2")
            );
            let rows = tx.rows(&sql, &[&tx.seen.parts, &tx.seen.mine, &which]).await?;
            rows.iter().map(thread).collect()
        })
    }

    pub(crate) async fn other_exchanges(
        &self,
        scope: &Scope,
        name: &ThreadName,
        limit: usize,
    ) -> error::Result<Vec<Exchange>> {
        read!(self, scope, tx => {
            let Some(session) = find_session(&tx, scope, &name.session).await? else { return Ok(Vec::new()) };
            // The answer has the newest row among the messages of its turn. It is NULL if the turn was purged.
            let rows = tx
                .rows(
                    "SELECT t.assistant, u.time, q.text, q.text_hash, a.text, a.text_hash, q.id, a.id
                     FROM threads t JOIN thread_turns u ON u.owner = t.owner AND u.thread = t.seq
                         JOIN memories q ON q.owner = u.owner AND q.seq = u.question AND q.tombstoned_at IS NULL
                         JOIN memories a ON a.owner = u.owner AND a.seq = u.answer AND a.tombstoned_at IS NULL
                     WHERE t.owner = $1 AND t.session = $2 AND t.assistant <> $3
                         AND a.seq > (SELECT coalesce(max(greatest(o.answer, o.question)), 0)
                             FROM threads p JOIN thread_turns o ON o.owner = p.owner AND o.thread = p.seq
                             WHERE p.owner = $1 AND p.session = $2 AND p.assistant = $3)
                     ORDER BY a.seq DESC LIMIT $4",
                    &[&session.owner, &session.seq, &name.assistant, &number(limit)],
                )
                .await?;
            rows.iter().rev().map(exchange).collect()
        })
    }
}

fn exchange(row: &Row) -> Result<Exchange> {
    Ok(Exchange {
        assistant: row.try_get(0)?,
        time: row.try_get(1)?,
        question: marked(row, 2, 3)?.unwrap_or_default(),
        answer: marked(row, 4, 5)?.unwrap_or_default(),
        ids: [columns::id(row, 6)?, columns::id(row, 7)?],
    })
}

fn turn(row: &Row) -> Result<TurnRow> {
    let id = |column| -> Result<Option<MemoryId>> {
        let id: Option<&str> = row.try_get(column)?;
        id.map(|_| columns::id(row, column)).transpose()
    };
    Ok(TurnRow {
        number: count(row, 0)?,
        epoch: count(row, 1)?,
        call_id: row.try_get(2)?,
        question: id(3)?,
        answer: id(4)?,
        answer_text: marked(row, 5, 6)?,
        model: row.try_get(7)?,
        time: row.try_get(8)?,
        spent: spent(row, 9)?,
        receipt: row.try_get(16)?,
    })
}

fn thread(row: &Row) -> Result<ThreadRow> {
    let last = row.try_get(10)?;
    Ok(ThreadRow {
        name: ThreadName { session: columns::word(row, 0, SessionId::parse)?, assistant: row.try_get(1)? },
        epoch: count(row, 2)?,
        turns: count(row, 3)?,
        is_fixed: row.try_get(4)?,
        window: count(row, 5)?,
        files_inline: count(row, 6)?,
        files_overflow: count(row, 7)?,
        tokens: row.try_get::<_, i64>(8)?.max(0).cast_unsigned(),
        first: row.try_get::<_, Option<Millis>>(9)?.unwrap_or(last),
        last,
        spent: spent(row, 11)?,
    })
}

/// Reads the cost and the tokens of a turn from `column` and the six columns after it. NULL counts as 0.
fn spent(row: &Row, column: usize) -> Result<Spent> {
    let number = |place: usize| -> Result<u64> {
        Ok(row.try_get::<_, Option<i64>>(column + place)?.unwrap_or(0).max(0).cast_unsigned())
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
