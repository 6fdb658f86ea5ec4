//! Stores one memory, with its rows in all tables.

use rusqlite::{Connection, params};

use super::session::OpenSession;
use super::{chunks, record};
use crate::error::Result;
use crate::file::sums;
use crate::links;
use crate::read::parts;
use tiro_base::memory::{Draft, Group, Identity, Millis, Provenance};
use tiro_base::scope::Scope;
use tiro_store::{Outcome, PreparedMemory};

/// Stores a memory in the part of the scope, unless its id is known there, or unless it is derived from a forgotten
/// memory. Returns the outcome.
pub(crate) fn save_one(
    connection: &Connection,
    scope: &Scope,
    memory: &PreparedMemory,
    session: Option<&mut OpenSession>,
    now: Millis,
) -> Result<Outcome> {
    let owner = scope.tenant.as_str();
    let PreparedMemory { id, draft, .. } = memory;
    let hash = blake3::hash(draft.text.as_bytes());
    let place = (owner, author_of(scope, draft));
    if let Some(outcome) = record::met_before(connection, place, id, hash.as_bytes(), &draft.text)? {
        links::record(connection, owner, id, draft)?;
        return match &draft.occurrence {
            Some(occurrence) if outcome != Outcome::Forgotten => {
                record::repeat(connection, owner, id, occurrence)
            }
            _ => Ok(outcome),
        };
    }
    if draft.provenance == Provenance::Derived && !record::are_living(connection, scope, &draft.references)? {
        return Ok(Outcome::Forgotten);
    }
    insert(connection, scope, memory, hash, session, now)
}

/// Like [`save_one`], but stores a new memory even if its sources are forgotten. The caller forgets the new memory in
/// the same transaction.
pub(crate) fn insert_one(
    connection: &Connection,
    scope: &Scope,
    memory: &PreparedMemory,
    session: Option<&mut OpenSession>,
    now: Millis,
) -> Result<Outcome> {
    let (place, text) = ((scope.tenant.as_str(), author_of(scope, &memory.draft)), &memory.draft.text);
    let hash = blake3::hash(text.as_bytes());
    match record::met_before(connection, place, &memory.id, hash.as_bytes(), text)? {
        Some(outcome) => Ok(outcome),
        None => insert(connection, scope, memory, hash, session, now),
    }
}

/// Inserts the rows of a new memory into all tables.
fn insert(
    connection: &Connection,
    scope: &Scope,
    memory: &PreparedMemory,
    text_hash: blake3::Hash,
    session: Option<&mut OpenSession>,
    now: Millis,
) -> Result<Outcome> {
    let owner = scope.tenant.as_str();
    let PreparedMemory { id, draft, chunks: pieces, .. } = memory;
    let is_message = draft.kind.group() == Group::Message;
    let place = session.as_ref().map(|session| session.seq);
    // A message that is given to the stash has no place among the messages of its session.
    let is_numbered = is_message && draft.identity != Identity::Segment;
    let ordinal = session.filter(|_| is_numbered).map(OpenSession::take_ordinal);
    let seq = insert_row(connection, scope, memory, text_hash, (place, ordinal), now)?;
    if let Some(occurrence) = &draft.occurrence {
        record::repeat(connection, owner, id, occurrence)?;
    }
    links::record(connection, owner, id, draft)?;
    insert_beside(connection, seq, draft)?;
    // Messages of a session are not indexed here. They are indexed together with their neighbours when the whole batch
    // is stored.
    chunks::save_chunks(connection, seq, draft, pieces, ordinal.is_none())?;
    sums::of_memory(connection, seq)?;
    Ok(Outcome::Stored)
}

/// Inserts the row of the memory, with its session and its ordinal in the session. Returns the number of the row.
fn insert_row(
    connection: &Connection,
    scope: &Scope,
    PreparedMemory { id, draft, tokens, .. }: &PreparedMemory,
    text_hash: blake3::Hash,
    (session, ordinal): (Option<i64>, Option<i64>),
    now: Millis,
) -> Result<i64> {
    let owner = scope.tenant.as_str();
    let (tenant, alone) = parts::names(owner);
    let author = author_of(scope, draft);
    connection
        .prepare_cached(
            "INSERT INTO memories (owner, id, kind, provenance, session, ordinal, role, speaker, title, topic,
                 source_id, path, branch, head_sha, time, stored_at, importance, tokens, text_hash, text, indexed,
                 author, visibility)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
                 ?22, ?23)",
        )?
        .execute(params![
            owner,
            id.as_str(),
            draft.kind.as_str(),
            draft.provenance.as_str(),
            session,
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
            Some(author).filter(|author| *author != tenant),
            alone.is_none(),
        ])?;
    Ok(connection.last_insert_rowid())
}

/// Returns the author of a new memory in the part of the scope: whose private part it is, or who the draft says, or who
/// writes.
fn author_of<'a>(scope: &'a Scope, draft: &'a Draft) -> &'a str {
    let alone = parts::names(scope.tenant.as_str()).1;
    alone.unwrap_or_else(|| draft.author.as_ref().unwrap_or(&scope.reader).as_str())
}

/// Inserts the references, the paths and the parents of the memory in row `seq`.
fn insert_beside(connection: &Connection, seq: i64, draft: &Draft) -> Result<()> {
    for target in &draft.references {
        connection
            .prepare_cached("INSERT OR IGNORE INTO memory_references (memory, target) VALUES (?1, ?2)")?
            .execute((seq, target.as_str()))?;
    }
    let files = draft.commit.iter().flat_map(|commit| &commit.files);
    for path in draft.path.iter().chain(&draft.files).chain(files) {
        connection
            .prepare_cached("INSERT OR IGNORE INTO memory_paths (memory, path) VALUES (?1, ?2)")?
            .execute((seq, path))?;
    }
    let parents = draft.commit.iter().flat_map(|commit| &commit.parents);
    for (place, parent) in parents.enumerate() {
        connection
            .prepare_cached("INSERT INTO commit_parents (memory, place, sha) VALUES (?1, ?2, ?3)")?
            .execute(params![seq, place as i64, parent])?;
    }
    Ok(())
}
