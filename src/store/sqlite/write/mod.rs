//! Storing memories: rows, text index and vectors in one transaction.

pub(super) mod chunks;
pub(super) mod pending;
pub(in crate::store::sqlite) mod record;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use rusqlite::{Connection, Row, params};

use crate::chunk::index_text::{self, About, IndexText};
use crate::error::Result;
use crate::memory::{Group, Kind, Millis, Provenance, Role};
use crate::scope::{Scope, SessionId, Sessions};
use crate::store::sqlite::links;
use crate::store::vectors::encode_f16;
use crate::store::{Outcome, PreparedChunk, PreparedMemory, Receipt, Store};

/// Memories stored by one transaction. Larger writes are split, so that other processes get their turn.
const BATCH: usize = 500;

impl Store {
    /// Stores `memories` in order, `now` being the time of storing, and says what became of each.
    ///
    /// Writes of more than 500 memories take several transactions; where one fails, `on_batch` has told how many
    /// are already durable.
    pub async fn save(
        &self,
        scope: &Scope,
        memories: Vec<PreparedMemory>,
        now: Millis,
        mut on_batch: impl FnMut(usize) + Send,
    ) -> Result<Receipt> {
        let mut receipt = Receipt::default();
        let mut memories = memories.into_iter().peekable();
        while memories.peek().is_some() {
            let batch: Vec<PreparedMemory> = memories.by_ref().take(BATCH).collect();
            let done = self
                .write(scope, move |connection, scope| save_batch(connection, scope, &batch, now))
                .await?;
            receipt.outcomes.extend(done.outcomes);
            receipt.pending += done.pending;
            on_batch(receipt.outcomes.len());
        }
        Ok(receipt)
    }
}

fn save_batch(
    connection: &Connection,
    scope: &Scope,
    memories: &[PreparedMemory],
    now: Millis,
) -> Result<Receipt> {
    let mut receipt = Receipt::default();
    let mut sessions: HashMap<&SessionId, OpenSession> = HashMap::new();
    for memory in memories {
        if let Some(id) = &memory.draft.session {
            if !sessions.contains_key(id) {
                sessions.insert(id, OpenSession::open(connection, scope, id)?);
            }
            let session = sessions.get_mut(id).expect("inserted above");
            session.head = memory.draft.head_sha.clone().or(session.head.take());
            session.branch = memory.draft.branch.clone().or(session.branch.take());
        }
        let session = memory.draft.session.as_ref().map(|id| sessions.get_mut(id).expect("opened above"));
        let outcome = save_one(connection, scope, memory, session, now)?;
        if outcome == Outcome::Stored {
            receipt.pending += memory.chunks.iter().filter(|chunk| chunk.embedding.is_none()).count();
        }
        receipt.outcomes.push((memory.id.clone(), outcome));
    }
    for session in sessions.values() {
        session.close(connection)?;
    }
    Ok(receipt)
}

/// A session while a batch is written to it.
pub(in crate::store::sqlite) struct OpenSession {
    seq: i64,
    next_ordinal: i64,
    first_new: i64,
    branch: Option<String>,
    head: Option<String>,
}

impl OpenSession {
    pub(in crate::store::sqlite) fn open(
        connection: &Connection,
        scope: &Scope,
        id: &SessionId,
    ) -> Result<OpenSession> {
        debug_assert!(match &scope.sessions {
            Sessions::All => true,
            Sessions::Only(ids) => ids.contains(id),
        });
        connection
            .prepare_cached("INSERT INTO sessions (owner, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute((scope.owner.as_str(), id.as_str()))?;
        let seq: i64 = connection
            .prepare_cached("SELECT seq FROM sessions WHERE owner = ?1 AND name = ?2")?
            .query_row((scope.owner.as_str(), id.as_str()), |row| row.get(0))?;
        // What was made of a range stays true of it: the place of a message that was purged is not given again.
        let next_ordinal: i64 = connection
            .prepare_cached(
                "SELECT max(last, coalesce((SELECT max(ordinal) FROM memories WHERE session = ?1), -1)) + 1
                 FROM sessions WHERE seq = ?1",
            )?
            .query_row([seq], |row| row.get(0))?;
        Ok(OpenSession { seq, next_ordinal, first_new: next_ordinal, branch: None, head: None })
    }

    /// Leaves the places before `ordinal` free, where that is ahead and no more than `widest` of them.
    pub(in crate::store::sqlite) fn skip_to(&mut self, ordinal: i64, widest: i64) {
        if ordinal.checked_sub(self.next_ordinal).is_some_and(|gap| (1..=widest).contains(&gap)) {
            self.next_ordinal = ordinal;
        }
    }

    /// Records where the session stands in git and indexes its new messages, and anew those they are context of.
    pub(in crate::store::sqlite) fn close(&self, connection: &Connection) -> Result<()> {
        if self.branch.is_some() || self.head.is_some() {
            connection
                .prepare_cached(
                    "UPDATE sessions SET branch = coalesce(?2, branch), head_sha = coalesce(?3, head_sha)
                     WHERE seq = ?1",
                )?
                .execute((self.seq, &self.branch, &self.head))?;
        }
        if self.next_ordinal > self.first_new {
            index_turns(
                connection,
                self.seq,
                self.first_new - index_text::NEIGHBOURS..self.next_ordinal,
                self.first_new,
            )?;
        }
        Ok(())
    }
}

pub(in crate::store::sqlite) fn save_one(
    connection: &Connection,
    scope: &Scope,
    memory: &PreparedMemory,
    session: Option<&mut OpenSession>,
    now: Millis,
) -> Result<Outcome> {
    let owner = scope.owner.as_str();
    let PreparedMemory { id, draft, .. } = memory;
    let hash = blake3::hash(draft.text.as_bytes());
    if let Some(outcome) = record::met_before(connection, owner, id, hash.as_bytes(), &draft.text)? {
        links::record(connection, owner, id, draft)?;
        return match &draft.occurrence {
            Some(occurrence) if outcome != Outcome::Forgotten => {
                record::repeat(connection, owner, id, occurrence)
            }
            _ => Ok(outcome),
        };
    }
    if draft.provenance == Provenance::Derived && !record::are_living(connection, owner, &draft.references)? {
        return Ok(Outcome::Forgotten);
    }
    insert(connection, scope, memory, hash, session, now)
}

/// Stores a memory that is new, as [`save_one`] does, whatever became of what it was derived from: it is forgotten in the
/// same transaction.
pub(in crate::store::sqlite) fn insert_one(
    connection: &Connection,
    scope: &Scope,
    memory: &PreparedMemory,
    session: Option<&mut OpenSession>,
    now: Millis,
) -> Result<Outcome> {
    let (owner, text) = (scope.owner.as_str(), &memory.draft.text);
    let hash = blake3::hash(text.as_bytes());
    match record::met_before(connection, owner, &memory.id, hash.as_bytes(), text)? {
        Some(outcome) => Ok(outcome),
        None => insert(connection, scope, memory, hash, session, now),
    }
}

fn insert(
    connection: &Connection,
    scope: &Scope,
    memory: &PreparedMemory,
    text_hash: blake3::Hash,
    session: Option<&mut OpenSession>,
    now: Millis,
) -> Result<Outcome> {
    let owner = scope.owner.as_str();
    let PreparedMemory { id, draft, tokens, chunks: pieces } = memory;
    let is_message = draft.kind.group() == Group::Message;
    let ordinal = session.as_ref().filter(|_| is_message).map(|session| session.next_ordinal);
    connection
        .prepare_cached(
            "INSERT INTO memories (owner, id, kind, provenance, session, ordinal, role, speaker, title, topic,
                 source_id, path, branch, head_sha, time, stored_at, importance, tokens, text_hash, text, indexed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)",
        )?
        .execute(params![
            owner,
            id.as_str(),
            draft.kind.as_str(),
            draft.provenance.as_str(),
            session.as_ref().map(|session| session.seq),
            ordinal,
            draft.role.map(|role| role.as_str()),
            draft.speaker,
            draft.title,
            draft.topic,
            draft.source_id,
            draft.path,
            draft.branch,
            draft.head_sha,
            draft.time,
            now,
            draft.importance,
            tokens,
            text_hash.as_bytes().as_slice(),
            draft.text,
            draft.indexed,
        ])?;
    let seq = connection.last_insert_rowid();
    if let (Some(session), Some(_)) = (session, ordinal) {
        session.next_ordinal += 1;
    }
    for target in &draft.references {
        connection
            .prepare_cached("INSERT OR IGNORE INTO memory_references (memory, target) VALUES (?1, ?2)")?
            .execute((seq, target.as_str()))?;
    }
    if let Some(occurrence) = &draft.occurrence {
        record::repeat(connection, owner, id, occurrence)?;
    }
    links::record(connection, owner, id, draft)?;
    let files = draft.commit.iter().flat_map(|commit| &commit.files);
    for path in draft.path.iter().chain(&draft.files).chain(files.clone()) {
        connection
            .prepare_cached("INSERT OR IGNORE INTO memory_paths (memory, path) VALUES (?1, ?2)")?
            .execute((seq, path))?;
    }
    if let Some(commit) = &draft.commit {
        for (place, parent) in commit.parents.iter().enumerate() {
            connection
                .prepare_cached("INSERT INTO commit_parents (memory, place, sha) VALUES (?1, ?2, ?3)")?
                .execute(params![seq, place as i64, parent])?;
        }
    }
    // Messages of a session are indexed with their neighbours, once all of the batch are there.
    chunks::save_chunks(connection, seq, draft, pieces, ordinal.is_none())?;
    Ok(Outcome::Stored)
}

pub(in crate::store::sqlite) fn save_chunk(
    connection: &Connection,
    memory: i64,
    ordinal: usize,
    chunk: &PreparedChunk,
) -> Result<i64> {
    connection
        .prepare_cached(
            "INSERT INTO chunks (memory, ordinal, start_byte, end_byte, tokens) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((memory, ordinal as i64, chunk.start as i64, chunk.end as i64, chunk.tokens))?;
    let seq = connection.last_insert_rowid();
    match &chunk.embedding {
        Some((space, embedding)) => save_vector(connection, seq, space, embedding)?,
        None => {
            connection.prepare_cached("INSERT INTO pending (chunk) VALUES (?1)")?.execute([seq])?;
        }
    }
    Ok(seq)
}

pub(in crate::store::sqlite) fn index(
    connection: &Connection,
    chunk: i64,
    group: Group,
    row: &IndexText,
) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO text_index (rowid, facets, speaker, header, text, context) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
        .execute((chunk, facet(group), &row.speaker, &row.header, &row.text, &row.context))?;
    Ok(())
}

/// Stores the embedding of a chunk and tells the caches of vectors.
pub(in crate::store::sqlite) fn save_vector(
    connection: &Connection,
    chunk: i64,
    space: &str,
    embedding: &[f32],
) -> Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO vectors (chunk, space, embedding) VALUES (?1, ?2, ?3)")?
        .execute((chunk, space, encode_f16(embedding)))?;
    connection
        .prepare_cached("INSERT INTO changes (chunk, change) VALUES (?1, 'added')")?
        .execute([chunk])?;
    Ok(())
}

/// Returns the indexed word that stands for `group`.
pub(in crate::store::sqlite) fn facet(group: Group) -> String {
    format!("group{group}")
}

/// A message as the index reads it back.
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

/// Indexes, or indexes anew, the living messages of the session whose ordinal lies in `places`, with their neighbours as
/// context. Of those before `new`, only the pieces that have a context: it is all that a new neighbour changes.
pub(in crate::store::sqlite) fn index_turns(
    connection: &Connection,
    session: i64,
    places: Range<i64>,
    new: i64,
) -> Result<()> {
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
    let rows = statement.query_map((session, from, to, index_text::NEIGHBOURS), turn)?;
    let turns: Vec<Turn> = rows.collect::<Result<_, _>>()?;
    index_among(connection, &turns, new, |turn| places.contains(&turn.ordinal))
}

/// Indexes anew the forgotten messages of the session, with all that is left around them as context: what `operation`
/// forgot is to be purged, and not to stay there.
pub(in crate::store::sqlite) fn index_forgotten(
    connection: &Connection,
    session: i64,
    operation: &str,
) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT ordinal FROM memories WHERE session = ?1 AND ordinal IS NOT NULL AND tombstoned_at IS NOT NULL
             AND seq NOT IN (SELECT memory FROM operation_memories WHERE operation = ?2)",
    )?;
    let forgotten: HashSet<i64> =
        statement.query_map((session, operation), |row| row.get(0))?.collect::<Result<_, _>>()?;
    if forgotten.is_empty() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached(
        "SELECT seq, ordinal, role, speaker, topic, path, time, text FROM memories
         WHERE session = ?1 AND ordinal IS NOT NULL
             AND seq NOT IN (SELECT memory FROM operation_memories WHERE operation = ?2) ORDER BY ordinal",
    )?;
    let turns: Vec<Turn> = statement.query_map((session, operation), turn)?.collect::<Result<_, _>>()?;
    index_among(connection, &turns, i64::MIN, |turn| forgotten.contains(&turn.ordinal))
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

/// Indexes those of `turns`, which are in order, that are `wanted`, with the others around them as context; of those
/// before `new` only the pieces that have one.
fn index_among(
    connection: &Connection,
    turns: &[Turn],
    new: i64,
    wanted: impl Fn(&Turn) -> bool,
) -> Result<()> {
    let reach = index_text::NEIGHBOURS as usize;
    for (at, turn) in turns.iter().enumerate() {
        if !wanted(turn) {
            continue;
        }
        let around = turns[at.saturating_sub(reach)..at].iter().chain(turns[at + 1..].iter().take(reach));
        let context = index_text::neighbours(around.map(|turn| turn.text.as_str()));
        let pieces = if turn.ordinal < new { index_text::WITH_CONTEXT } else { i64::MAX };
        index_turn(connection, turn, &context, pieces)?;
    }
    Ok(())
}

fn index_turn(connection: &Connection, turn: &Turn, context: &str, pieces: i64) -> Result<()> {
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
        connection.prepare_cached("DELETE FROM text_index WHERE rowid = ?1")?.execute([seq])?;
        index(connection, seq, Group::Message, &about.indexed(piece, context))?;
    }
    Ok(())
}
