//! Makes the rows of messages in the text index. The context in a row consists of the messages before and after it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use tokio_postgres::Row;

use crate::columns::size;
use crate::error::Result;
use crate::owners::SessionRef;
use crate::search::index::{self, IndexRow};
use crate::transactions::Transaction;
use tiro_base::memory::{Group, Kind, Millis, Role};
use tiro_store::tuning::NEIGHBOURS;
use tiro_text::chunk::index_text::{self, About};

/// A stored message, with the fields that are needed to index it.
struct Turn {
    session: SessionRef,
    seq: i64,
    ordinal: i64,
    role: Option<Role>,
    speaker: Option<String>,
    topic: Option<String>,
    path: Option<String>,
    time: Millis,
    text: String,
}

/// The columns of a [`Turn`].
const TURN: &str = "owner, session, seq, ordinal, role, speaker, topic, path, time, text";

/// Indexes the living messages of the session whose ordinals are in `places`, with their neighbours as context. Messages
/// that are already indexed are indexed again. For messages before `new`, only chunks with a context are indexed again,
/// because a new neighbour doesn't change the other chunks.
pub(crate) async fn index_turns(
    tx: &Transaction,
    session: SessionRef,
    places: Range<i64>,
    new: i64,
) -> Result<()> {
    let turns = turns_around(tx, session, &places).await?;
    index_among(tx, &turns, new, |turn| places.contains(&turn.ordinal)).await
}

/// Returns the ordinal of the first of the nearest living messages before `ordinal` that have a message there in their
/// context, or `ordinal` if there are none. Between them may be many that are forgotten.
pub(super) async fn reached_before(tx: &Transaction, session: SessionRef, ordinal: i64) -> Result<i64> {
    let sql = "SELECT coalesce(min(ordinal), $3) FROM (SELECT ordinal FROM memories
                   WHERE owner = $1 AND session = $2 AND ordinal < $3 AND tombstoned_at IS NULL
                   ORDER BY ordinal DESC LIMIT $4) m";
    let row = tx.row(sql, &[&session.owner, &session.seq, &ordinal, &NEIGHBOURS]).await?;
    Ok(row.map_or(Ok(ordinal), |row| row.try_get(0))?)
}

/// The place of a message: part, session, ordinal.
pub(crate) type Place = (i64, i64, i64);

/// Indexes the living messages again that lost or gained a neighbour because the messages at `changed` were forgotten or
/// restored, and the living ones among these messages themselves.
pub(crate) async fn index_neighbours(tx: &Transaction, changed: &BTreeSet<Place>) -> Result<()> {
    /// How many runs of messages are indexed at once. Arbitrary: the texts of ten times as many messages are read.
    const AT_ONCE: usize = 500;
    let runs = runs(changed);
    for some in runs.chunks(AT_ONCE) {
        // The neighbours need their own neighbours as context.
        let turns = turns_near(tx, some, 2 * NEIGHBOURS).await?;
        let wanted: HashSet<i64> =
            turns.iter().filter(|(_, distance)| *distance <= NEIGHBOURS).map(|(turn, _)| turn.seq).collect();
        let turns: Vec<Turn> = turns.into_iter().map(|(turn, _)| turn).collect();
        index_among(tx, &turns, i64::MIN, |turn| wanted.contains(&turn.seq)).await?;
    }
    Ok(())
}

/// Messages of a session from one ordinal to another.
struct Run {
    session: (i64, i64),
    first: i64,
    last: i64,
}

/// Returns the places as runs. Messages belong to one run if at most one other message is between them.
fn runs(places: &BTreeSet<Place>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (owner, session, ordinal) in places {
        match runs.last_mut() {
            Some(run) if run.session == (*owner, *session) && *ordinal <= run.last + 2 => run.last = *ordinal,
            _ => runs.push(Run { session: (*owner, *session), first: *ordinal, last: *ordinal }),
        }
    }
    runs
}

/// Returns the living messages of the runs, and the nearest ones on both sides of each run, `reach` on each side. Each
/// comes with its distance from the nearest run: 0 within a run, 1 for the first message beside it. They are in order, and
/// no living message between two of one run is missing.
async fn turns_near(tx: &Transaction, runs: &[Run], reach: i64) -> Result<Vec<(Turn, i64)>> {
    let sql = format!(
        "SELECT DISTINCT ON (n.owner, n.session, n.ordinal) {TURN}, n.distance
         FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS r (of_owner, of_session, first, last)
         CROSS JOIN LATERAL (
             (SELECT m.*, row_number() OVER (ORDER BY m.ordinal DESC) AS distance FROM memories m
                 WHERE m.owner = r.of_owner AND m.session = r.of_session AND m.ordinal < r.first AND m.tombstoned_at IS NULL
                 ORDER BY m.ordinal DESC LIMIT $5)
             UNION ALL
             (SELECT m.*, 0 FROM memories m
                 WHERE m.owner = r.of_owner AND m.session = r.of_session AND m.ordinal BETWEEN r.first AND r.last
                     AND m.tombstoned_at IS NULL)
             UNION ALL
             (SELECT m.*, row_number() OVER (ORDER BY m.ordinal) FROM memories m
                 WHERE m.owner = r.of_owner AND m.session = r.of_session AND m.ordinal > r.last AND m.tombstoned_at IS NULL
                 ORDER BY m.ordinal LIMIT $5)) n
         ORDER BY n.owner, n.session, n.ordinal, n.distance"
    );
    let column = |of: fn(&Run) -> i64| runs.iter().map(of).collect::<Vec<i64>>();
    let (owners, sessions) = (column(|run| run.session.0), column(|run| run.session.1));
    let (firsts, lasts) = (column(|run| run.first), column(|run| run.last));
    let rows = tx.rows(&sql, &[&owners, &sessions, &firsts, &lasts, &reach]).await?;
    rows.iter().map(|row| Ok((turn(row)?, row.try_get(10)?))).collect()
}

/// Returns the living messages of the session whose ordinals are in `places`, and their neighbours on both sides.
async fn turns_around(tx: &Transaction, session: SessionRef, places: &Range<i64>) -> Result<Vec<Turn>> {
    let sql = format!(
        "SELECT {TURN} FROM (
             (SELECT * FROM memories WHERE owner = $1 AND session = $2 AND ordinal < $3 AND tombstoned_at IS NULL
                 ORDER BY ordinal DESC LIMIT $5)
             UNION ALL
             (SELECT * FROM memories WHERE owner = $1 AND session = $2 AND ordinal >= $3 AND ordinal < $4
                 AND tombstoned_at IS NULL)
             UNION ALL
             (SELECT * FROM memories WHERE owner = $1 AND session = $2 AND ordinal >= $4 AND tombstoned_at IS NULL
                 ORDER BY ordinal LIMIT $5)) m
         ORDER BY ordinal"
    );
    let rows =
        tx.rows(&sql, &[&session.owner, &session.seq, &places.start, &places.end, &NEIGHBOURS]).await?;
    rows.iter().map(turn).collect()
}

fn turn(row: &Row) -> Result<Turn> {
    Ok(Turn {
        session: SessionRef { owner: row.try_get(0)?, seq: row.try_get(1)? },
        seq: row.try_get(2)?,
        ordinal: row.try_get(3)?,
        role: row.try_get::<_, Option<&str>>(4)?.and_then(Role::parse),
        speaker: row.try_get(5)?,
        topic: row.try_get(6)?,
        path: row.try_get(7)?,
        time: row.try_get(8)?,
        text: row.try_get(9)?,
    })
}

/// A chunk of a message.
struct Chunk {
    seq: i64,
    start: usize,
    end: usize,
    ordinal: i64,
}

/// Indexes those messages of `turns` that are `wanted`, with the messages around them as context. `turns` must be in the
/// order of their sessions and ordinals. For messages before `new`, only the rows of chunks with a context are made again.
async fn index_among(
    tx: &Transaction,
    turns: &[Turn],
    new: i64,
    wanted: impl Fn(&Turn) -> bool,
) -> Result<()> {
    let reach = NEIGHBOURS as usize;
    let (owners, seqs): (Vec<i64>, Vec<i64>) =
        turns.iter().filter(|turn| wanted(turn)).map(|turn| (turn.session.owner, turn.seq)).unzip();
    if seqs.is_empty() {
        return Ok(());
    }
    let mut chunks: HashMap<i64, Vec<Chunk>> = HashMap::new();
    let sql = "SELECT c.memory, c.seq, c.start_byte, c.end_byte, c.ordinal
               FROM unnest($1::bigint[], $2::bigint[]) AS u (owner, memory)
               JOIN chunks c ON c.owner = u.owner AND c.memory = u.memory ORDER BY c.memory, c.ordinal";
    for row in tx.rows(sql, &[&owners, &seqs]).await? {
        let chunk = Chunk {
            seq: row.try_get(1)?,
            start: size(&row, 2)?,
            end: size(&row, 3)?,
            ordinal: row.try_get(4)?,
        };
        chunks.entry(row.try_get(0)?).or_default().push(chunk);
    }
    let mut rows = Vec::new();
    for turns in turns.chunk_by(|one, next| one.session == next.session) {
        for (at, turn) in turns.iter().enumerate().filter(|(_, turn)| wanted(turn)) {
            let around = turns[at.saturating_sub(reach)..at].iter().chain(turns[at + 1..].iter().take(reach));
            let context = index_text::neighbours(around.map(|turn| turn.text.as_str()));
            for chunk in chunks.get(&turn.seq).into_iter().flatten() {
                let has_context = chunk.ordinal < index_text::WITH_CONTEXT;
                if turn.ordinal < new && !has_context {
                    continue;
                }
                rows.push(index_row(turn, chunk, if has_context { &context } else { "" }));
            }
        }
    }
    index::save(tx, &rows).await
}

fn index_row(turn: &Turn, chunk: &Chunk, context: &str) -> IndexRow {
    let about = About {
        kind: Kind::Message,
        role: turn.role,
        speaker: turn.speaker.as_deref(),
        title: None,
        topic: turn.topic.as_deref(),
        path: turn.path.as_deref(),
        time: turn.time,
    };
    let piece = turn.text.get(chunk.start..chunk.end).unwrap_or_default();
    IndexRow {
        owner: turn.session.owner,
        chunk: chunk.seq,
        group: Group::Message,
        text: about.indexed(piece, context),
    }
}
