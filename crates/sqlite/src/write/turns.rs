//! Makes the rows of messages in the text index. The context in a row consists of the messages before and after it.

use std::collections::BTreeSet;
use std::ops::Range;

use rusqlite::{Connection, Row};

use super::chunks::index;
use crate::error::Result;
use tiro_base::memory::{Group, Kind, Millis, Role};
use tiro_store::tuning::NEIGHBOURS;
use tiro_text::chunk::index_text::{self, About};

/// A stored message, with the fields that are needed to index it.
struct Turn {
    seq: i64,
    ordinal: i64,
    role: Option<Role>,
    speaker: Option<String>,
    topic: Option<String>,
    path: Option<String>,
    time: Millis,
    text: String,
}

/// Indexes the living messages of the session whose ordinals are in `places`, with their neighbours as context.
/// Messages that are already indexed are indexed again. For messages before `new`, only chunks with a context are
/// indexed again, because a new neighbour doesn't change the other chunks.
pub(crate) fn index_turns(connection: &Connection, session: i64, places: Range<i64>, new: i64) -> Result<()> {
    let turns = turns_around(connection, session, &places)?;
    index_among(connection, &turns, Rows { new, only_outdated: false }, |turn| places.contains(&turn.ordinal))
}

/// Returns the ordinal of the first of the nearest living messages before `ordinal` that have a message there in their
/// context, or `ordinal` if there are none. Between them may be many that are forgotten.
pub(super) fn reached_before(connection: &Connection, session: i64, ordinal: i64) -> Result<i64> {
    let sql = "SELECT coalesce(min(ordinal), ?2) FROM (SELECT ordinal FROM memories
                   WHERE session = ?1 AND ordinal < ?2 AND tombstoned_at IS NULL ORDER BY ordinal DESC LIMIT ?3)";
    Ok(connection.prepare_cached(sql)?.query_row((session, ordinal, NEIGHBOURS), |row| row.get(0))?)
}

/// As [`reached_before`], for the messages after `ordinal`.
fn reached_after(connection: &Connection, session: i64, ordinal: i64) -> Result<i64> {
    let sql = "SELECT coalesce(max(ordinal), ?2) FROM (SELECT ordinal FROM memories
                   WHERE session = ?1 AND ordinal > ?2 AND tombstoned_at IS NULL ORDER BY ordinal LIMIT ?3)";
    Ok(connection.prepare_cached(sql)?.query_row((session, ordinal, NEIGHBOURS), |row| row.get(0))?)
}

/// Indexes the messages around places again, each a session and an ordinal, and the messages at these places: there,
/// messages came or went.
pub(crate) fn index_around(connection: &Connection, turns: BTreeSet<(i64, i64)>) -> Result<()> {
    let mut turns = turns.into_iter().peekable();
    while let Some((session, first)) = turns.next() {
        let mut last = first;
        while let Some((_, ordinal)) =
            turns.next_if(|(next, ordinal)| *next == session && *ordinal <= last + 2)
        {
            last = ordinal;
        }
        let from = reached_before(connection, session, first)?;
        let to = reached_after(connection, session, last)?;
        // Older versions of Tiro gave every chunk a context, so all chunks are indexed again.
        index_turns(connection, session, from..to + 1, i64::MIN)?;
    }
    Ok(())
}

/// Indexes the message with `ordinal` again, if an earlier version of the program indexed it and its row would get
/// additional words now.
pub(super) fn reindex_turn(connection: &Connection, session: i64, ordinal: i64) -> Result<()> {
    let turns = turns_around(connection, session, &(ordinal..ordinal + 1))?;
    let rows = Rows { new: i64::MIN, only_outdated: true };
    index_among(connection, &turns, rows, |turn| turn.ordinal == ordinal)
}

/// Indexes the message with `ordinal` again.
pub(super) fn index_anew(connection: &Connection, session: i64, ordinal: i64) -> Result<()> {
    let turns = turns_around(connection, session, &(ordinal..ordinal + 1))?;
    let rows = Rows { new: i64::MIN, only_outdated: false };
    index_among(connection, &turns, rows, |turn| turn.ordinal == ordinal)
}

/// Returns the living messages of the session whose ordinals are in `places`, and their neighbours on both sides.
fn turns_around(connection: &Connection, session: i64, places: &Range<i64>) -> Result<Vec<Turn>> {
    let (from, to) = (places.start, places.end);
    let mut statement = connection.prepare_cached(
        "SELECT seq, ordinal, role, speaker, topic, path, time, text FROM (
             SELECT * FROM (SELECT * FROM memories WHERE session = ?1 AND ordinal < ?2 AND tombstoned_at IS NULL
                            ORDER BY ordinal DESC LIMIT ?4)
             UNION ALL
             SELECT * FROM memories WHERE session = ?1 AND ordinal >= ?2 AND ordinal < ?3 AND tombstoned_at IS NULL
             UNION ALL
             SELECT * FROM (SELECT * FROM memories WHERE session = ?1 AND ordinal >= ?3 AND tombstoned_at IS NULL
                            ORDER BY ordinal LIMIT ?4))
         ORDER BY ordinal",
    )?;
    let rows = statement.query_map((session, from, to, NEIGHBOURS), turn)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn turn(row: &Row<'_>) -> rusqlite::Result<Turn> {
    Ok(Turn {
        seq: row.get(0)?,
        ordinal: row.get(1)?,
        role: row.get::<_, Option<String>>(2)?.and_then(|word| Role::parse(&word)),
        speaker: row.get(3)?,
        topic: row.get(4)?,
        path: row.get(5)?,
        time: row.get(6)?,
        text: row.get(7)?,
    })
}

/// Which rows of messages are made again.
#[derive(Clone, Copy)]
struct Rows {
    /// For messages before this ordinal, only the rows of chunks with a context are made again.
    new: i64,
    /// If true, a row is made again only if the present version adds words to it.
    only_outdated: bool,
}

/// Indexes those messages of `turns` that are `wanted`, with the messages around them as context. `turns` must be in
/// order.
fn index_among(
    connection: &Connection,
    turns: &[Turn],
    rows: Rows,
    wanted: impl Fn(&Turn) -> bool,
) -> Result<()> {
    let reach = NEIGHBOURS as usize;
    for (at, turn) in turns.iter().enumerate() {
        if !wanted(turn) {
            continue;
        }
        let around = turns[at.saturating_sub(reach)..at].iter().chain(turns[at + 1..].iter().take(reach));
        let context = index_text::neighbours(around.map(|turn| turn.text.as_str()));
        index_turn(connection, turn, &context, rows)?;
    }
    Ok(())
}

fn index_turn(connection: &Connection, turn: &Turn, context: &str, rows: Rows) -> Result<()> {
    let pieces = if turn.ordinal < rows.new { index_text::WITH_CONTEXT } else { i64::MAX };
    let about = About {
        kind: Kind::Message,
        role: turn.role,
        speaker: turn.speaker.as_deref(),
        title: None,
        topic: turn.topic.as_deref(),
        path: turn.path.as_deref(),
        time: turn.time,
    };
    let sql = "SELECT seq, start_byte, end_byte, ordinal FROM chunks WHERE memory = ?1 AND ordinal < ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut chunks = statement.query((turn.seq, pieces))?;
    while let Some(chunk) = chunks.next()? {
        let (seq, start, end): (i64, i64, i64) = (chunk.get(0)?, chunk.get(1)?, chunk.get(2)?);
        let context = if chunk.get::<_, i64>(3)? < index_text::WITH_CONTEXT { context } else { "" };
        let piece = turn.text.get(start as usize..end as usize).unwrap_or_default();
        if rows.only_outdated && !index_text::is_outdated(piece, context) {
            continue;
        }
        connection.prepare_cached("DELETE FROM text_index WHERE rowid = ?1")?.execute([seq])?;
        index(connection, seq, Group::Message, &about.indexed(piece, context))?;
    }
    Ok(())
}
