//! A batch of memories that is being written. What is known of their ids is read once, for all of them; then each gets
//! its place and its outcome, in order; at the end, all rows are inserted with one statement for each table.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::chunks::ChunkRows;
use super::evidence::Evidence;
use super::nul::storable;
use super::session::{OpenSession, Wanted};
use crate::columns::number;
use crate::error::{Error, Result};
use crate::owners::{self, Place};
use crate::search::index;
use crate::search::label::label;
use crate::transactions::Transaction;
use tiro_base::error::Kind as ErrorKind;
use tiro_base::memory::{Draft, Group, Identity, MemoryId, Millis, Provenance};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::decide::stale::{self, KnownMemory};
use tiro_store::{Outcome, PreparedMemory};

/// A memory to add to a batch.
pub(crate) struct NewMemory<'m> {
    /// The memory.
    pub memory: &'m PreparedMemory,
    /// The place of a message in its session.
    pub place: Wanted,
    /// Whether the caller forgets it in the same transaction. Such a memory is stored even if its sources are
    /// forgotten.
    pub is_forgotten: bool,
    /// Whether the user marked it.
    pub is_marked: bool,
}

impl<'m> NewMemory<'m> {
    /// Returns a memory that is written for the first time.
    pub fn of(memory: &'m PreparedMemory) -> NewMemory<'m> {
        NewMemory { memory, place: Wanted::Next, is_forgotten: false, is_marked: false }
    }
}

/// A memory that is stored under an id.
struct Known {
    seq: i64,
    hash: Vec<u8>,
    text: String,
    is_forgotten: bool,
}

/// A batch that is being written.
pub(crate) struct Batch {
    now: Millis,
    /// The stored memories with ids of the batch, by part and id. Grows with the batch.
    known: HashMap<(i64, String), Known>,
    /// The purged ids of the batch, by part.
    purged: HashSet<(i64, String)>,
    /// The authors of memories that are not here, but of which it is known that they are forgotten, by part and id.
    left: HashMap<(i64, String), String>,
    /// The living memories that memories of the batch refer to, by part and id.
    sources: HashSet<(i64, String)>,
    sessions: HashMap<(i64, SessionId), OpenSession>,
    rows: Rows,
    evidence: Evidence,
    chunks: ChunkRows,
    /// Numbers for new rows, the greatest first.
    keys: Vec<i64>,
    indexed: Vec<index::IndexRow>,
    /// The part of each memory, in order.
    places: Vec<i64>,
}

/// The rows of new memories, by column.
#[derive(Default)]
struct Rows {
    owner: Vec<i64>,
    seq: Vec<i64>,
    id: Vec<String>,
    kind: Vec<&'static str>,
    provenance: Vec<&'static str>,
    author: Vec<String>,
    session: Vec<Option<i64>>,
    ordinal: Vec<Option<i64>>,
    role: Vec<Option<&'static str>>,
    speaker: Vec<Option<String>>,
    title: Vec<Option<String>>,
    topic: Vec<Option<String>>,
    source_id: Vec<Option<String>>,
    path: Vec<Option<String>>,
    branch: Vec<Option<String>>,
    head_sha: Vec<Option<String>>,
    time: Vec<i64>,
    importance: Vec<Option<f64>>,
    marked: Vec<bool>,
    tokens: Vec<i64>,
    text_hash: Vec<Vec<u8>>,
    text: Vec<String>,
    indexed: Vec<Option<String>>,
    /// The paths: part, memory, path.
    paths: (Vec<i64>, Vec<i64>, Vec<String>),
    /// The references: part, memory, target.
    references: (Vec<i64>, Vec<i64>, Vec<String>),
    /// The parents of commits: part, memory, place, id.
    parents: (Vec<i64>, Vec<i64>, Vec<i64>, Vec<String>),
}

impl Batch {
    /// Reads what is known of the memories' ids and sources in all parts that the reader sees or writes to.
    pub async fn open<'m>(
        tx: &Transaction,
        scope: &Scope,
        memories: impl IntoIterator<Item = &'m PreparedMemory>,
        now: Millis,
    ) -> Result<Batch> {
        let memories: Vec<&PreparedMemory> = memories.into_iter().collect();
        check(&memories)?;
        let ids: Vec<&str> = memories.iter().map(|memory| memory.id.as_str()).collect();
        let sources = memories.iter().filter(|memory| memory.draft.provenance == Provenance::Derived);
        let sources: Vec<&str> =
            sources.flat_map(|memory| memory.draft.references.iter().map(MemoryId::as_str)).collect();
        // A draft may be private to another author than the reader, so all parts of the store are looked at.
        let parts = owners::of_store(tx, scope).await?;
        let mut batch = Batch {
            now,
            known: HashMap::new(),
            purged: HashSet::new(),
            left: HashMap::new(),
            sources: HashSet::new(),
            sessions: HashMap::new(),
            rows: Rows::default(),
            evidence: Evidence::default(),
            chunks: ChunkRows::default(),
            keys: keys(tx, &memories).await?,
            indexed: Vec::new(),
            places: Vec::new(),
        };
        let sql = "SELECT owner, id, seq, text_hash, text, tombstoned_at IS NOT NULL FROM memories
                   WHERE owner = ANY ($1) AND id = ANY ($2)";
        for row in tx.rows(sql, &[&parts, &ids]).await? {
            let known =
                Known { seq: row.get(2), hash: row.get(3), text: row.get(4), is_forgotten: row.get(5) };
            batch.known.insert((row.get(0), row.get(1)), known);
        }
        let sql = "SELECT owner, id FROM purged WHERE owner = ANY ($1) AND id = ANY ($2)";
        for row in tx.rows(sql, &[&parts, &ids]).await? {
            batch.purged.insert((row.get(0), row.get(1)));
        }
        let sql =
            "SELECT owner, id, author FROM absent WHERE owner = ANY ($1) AND id = ANY ($2) AND is_forgotten";
        for row in tx.rows(sql, &[&parts, &ids]).await? {
            batch.left.insert((row.get(0), row.get(1)), row.get(2));
        }
        if !sources.is_empty() {
            let sql = "SELECT owner, id FROM memories
                       WHERE owner = ANY ($1) AND id = ANY ($2) AND tombstoned_at IS NULL";
            for row in tx.rows(sql, &[&parts, &sources]).await? {
                batch.sources.insert((row.get(0), row.get(1)));
            }
        }
        Ok(batch)
    }

    /// Gives a memory its place, and returns its outcome. Its rows are inserted by [`Batch::close`].
    pub async fn add(&mut self, tx: &Transaction, scope: &Scope, new: NewMemory<'_>) -> Result<Outcome> {
        let NewMemory { memory, place: wanted, is_forgotten, is_marked } = new;
        let memory = &*storable(memory);
        let PreparedMemory { id, draft, .. } = memory;
        let Place { owner, session } = owners::of_draft(tx, scope, draft).await?;
        self.places.push(owner);
        let session = match session {
            Some(name) => {
                let session = match self.sessions.entry((owner, name.clone())) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => new.insert(OpenSession::open(tx, owner, &name).await?),
                };
                session.head = draft.head_sha.clone().or(session.head.take());
                session.branch = draft.branch.clone().or(session.branch.take());
                Some(session)
            }
            None => None,
        };
        let hash = blake3::hash(draft.text.as_bytes());
        let place = (owner, id.as_str().to_owned());
        let author = author_of(tx, scope, owner, draft);
        let is_left = self.left.get(&place).is_some_and(|left| left == author);
        let is_purged = is_left || self.purged.contains(&place);
        if let Some(outcome) = outcome(self.known.get(&place), is_purged, &hash, &draft.text) {
            let Some(Known { seq, .. }) = self.known.get(&place) else { return Ok(outcome) };
            if is_forgotten {
                return Ok(outcome);
            }
            self.evidence.add(owner, *seq, draft);
            return match &draft.occurrence {
                Some(occurrence) if outcome != Outcome::Forgotten => {
                    let is_new = self.evidence.repeat(tx, owner, *seq, occurrence).await?;
                    Ok(if is_new { Outcome::Repeated } else { Outcome::AlreadyStored })
                }
                _ => Ok(outcome),
            };
        }
        let is_living = |target: &MemoryId| {
            let of = |owner| self.sources.contains(&(owner, target.as_str().to_owned()));
            of(tx.seen.shared) || of(tx.seen.mine) || of(owner)
        };
        if !is_forgotten && draft.provenance == Provenance::Derived && !draft.references.iter().all(is_living)
        {
            return Ok(Outcome::Forgotten);
        }
        let mut key = || self.keys.pop().expect("there is a number for each memory and each chunk");
        let seq = key();
        let session_seq = session.as_ref().map(|session| session.seq);
        // A message that is given to the stash has no place among the messages of its session.
        let is_numbered = draft.kind.group() == Group::Message && draft.identity != Identity::Segment;
        let ordinal = match session {
            Some(session) if is_numbered => Some(session.next(tx, wanted).await?),
            _ => None,
        };
        self.rows.push((owner, seq), memory, author, (session_seq, ordinal), hash.as_bytes());
        self.rows.marked.push(is_marked);
        self.evidence.add(owner, seq, draft);
        if let Some(occurrence) = &draft.occurrence {
            self.evidence.new_repeat(owner, seq, occurrence);
        }
        let chunks: Vec<i64> = memory.chunks.iter().map(|_| key()).collect();
        let label = label(draft.kind, draft.role, memory.tokens);
        self.chunks.push((owner, seq), label, &memory.chunks, &chunks);
        // Messages of a session are indexed together with their neighbours, when the whole batch is stored.
        if ordinal.is_none() {
            self.indexed.extend(index::rows_of(owner, draft, &memory.chunks, &chunks));
        }
        let text = draft.text.clone();
        let known = Known { seq, hash: hash.as_bytes().to_vec(), text, is_forgotten: false };
        self.sources.insert(place.clone());
        self.known.insert(place, known);
        Ok(Outcome::Stored)
    }

    /// Inserts all rows. Returns the part of each memory, in order.
    pub async fn close(self, tx: &Transaction) -> Result<Vec<i64>> {
        self.rows.insert(tx, self.now).await?;
        self.chunks.insert(tx).await?;
        self.evidence.insert(tx).await?;
        index::save(tx, &self.indexed).await?;
        for session in self.sessions.values() {
            session.close(tx).await?;
        }
        Ok(self.places)
    }
}

/// Errors if a chunk is no part of its text.
fn check(memories: &[&PreparedMemory]) -> Result<()> {
    let is_sound = |memory: &&&PreparedMemory| {
        memory.chunks.iter().all(|chunk| memory.draft.text.get(chunk.start..chunk.end).is_some())
    };
    match memories.iter().find(|memory| !is_sound(memory)) {
        Some(memory) => {
            Err(Error::new(ErrorKind::BadInput, format!("a chunk of `{}` is no part of its text", memory.id)))
        }
        None => Ok(()),
    }
}

/// Returns numbers for all rows of memories and chunks, the greatest first.
async fn keys(tx: &Transaction, memories: &[&PreparedMemory]) -> Result<Vec<i64>> {
    let count = memories.iter().map(|memory| 1 + memory.chunks.len()).sum();
    let sql = "SELECT nextval('keys') FROM generate_series(1, $1::bigint)";
    let rows = tx.rows(sql, &[&number(count)]).await?;
    Ok(rows.iter().rev().map(|row| row.get(0)).collect())
}

/// Returns the author of a new memory: whose private part it is in, or who the draft says, or who writes.
fn author_of<'a>(tx: &Transaction, scope: &'a Scope, owner: i64, draft: &'a Draft) -> &'a str {
    let named = draft.author.as_ref().unwrap_or(&scope.reader).as_str();
    match owner == tx.seen.mine {
        true => scope.reader.as_str(),
        false => named,
    }
}

/// Returns the result of storing a memory whose id the store knows; `None` for a new id.
///
/// Texts that differ only in the digits of redaction marks count as the same, because the digits depend on the project
/// and the version.
fn outcome(known: Option<&Known>, is_purged: bool, hash: &blake3::Hash, text: &str) -> Option<Outcome> {
    let stored = known.map(|known| KnownMemory {
        // The text of a forgotten memory doesn't matter.
        is_same: known.is_forgotten || known.hash == hash.as_bytes() || tiro_redact::alike(&known.text, text),
        is_forgotten: known.is_forgotten,
    });
    stale::outcome(stored, is_purged)
}

impl Rows {
    fn push(
        &mut self,
        (owner, seq): (i64, i64),
        memory: &PreparedMemory,
        author: &str,
        (session, ordinal): (Option<i64>, Option<i64>),
        hash: &[u8; 32],
    ) {
        let PreparedMemory { id, draft, tokens, .. } = memory;
        self.owner.push(owner);
        self.seq.push(seq);
        self.id.push(id.as_str().to_owned());
        self.kind.push(draft.kind.as_str());
        self.provenance.push(draft.provenance.as_str());
        self.author.push(author.to_owned());
        self.session.push(session);
        self.ordinal.push(ordinal);
        self.role.push(draft.role.map(|role| role.as_str()));
        self.speaker.push(draft.speaker.clone());
        self.title.push(draft.title.clone());
        self.topic.push(draft.topic.clone());
        self.source_id.push(draft.source_id.clone());
        self.path.push(draft.path.clone());
        self.branch.push(draft.branch.clone());
        self.head_sha.push(draft.head_sha.clone());
        self.time.push(draft.time);
        self.importance.push(draft.importance);
        self.tokens.push(*tokens);
        self.text_hash.push(hash.to_vec());
        self.text.push(draft.text.clone());
        self.indexed.push(draft.indexed.clone());
        let files = draft.commit.iter().flat_map(|commit| &commit.files);
        for path in draft.path.iter().chain(&draft.files).chain(files) {
            self.paths.0.push(owner);
            self.paths.1.push(seq);
            self.paths.2.push(path.clone());
        }
        for target in &draft.references {
            self.references.0.push(owner);
            self.references.1.push(seq);
            self.references.2.push(target.as_str().to_owned());
        }
        for (place, parent) in (0..).zip(draft.commit.iter().flat_map(|commit| &commit.parents)) {
            self.parents.0.push(owner);
            self.parents.1.push(seq);
            self.parents.2.push(place);
            self.parents.3.push(parent.clone());
        }
    }

    async fn insert(&self, tx: &Transaction, now: Millis) -> Result<()> {
        if self.seq.is_empty() {
            return Ok(());
        }
        tx.execute(
            "INSERT INTO memories (owner, seq, id, kind, provenance, author, session, ordinal, role, speaker, title,
                 topic, source_id, path, branch, head_sha, time, stored_at, importance, marked, tokens, text_hash, text,
                 indexed)
             SELECT u.owner, u.seq, u.id, u.kind, u.provenance, u.author, u.session, u.ordinal, u.role, u.speaker,
                 u.title, u.topic, u.source_id, u.path, u.branch, u.head_sha, u.time, $1, u.importance, u.marked,
                 u.tokens, u.text_hash, u.text, u.indexed
             FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
                 $9::bigint[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[],
                 $16::text[], $17::text[], $18::bigint[], $19::float8[], $20::bool[], $21::bigint[], $22::bytea[],
                 $23::text[], $24::text[])
                 AS u (owner, seq, id, kind, provenance, author, session, ordinal, role, speaker, title, topic,
                     source_id, path, branch, head_sha, time, importance, marked, tokens, text_hash, text,
                     indexed)",
            &[
                &now,
                &self.owner,
                &self.seq,
                &self.id,
                &self.kind,
                &self.provenance,
                &self.author,
                &self.session,
                &self.ordinal,
                &self.role,
                &self.speaker,
                &self.title,
                &self.topic,
                &self.source_id,
                &self.path,
                &self.branch,
                &self.head_sha,
                &self.time,
                &self.importance,
                &self.marked,
                &self.tokens,
                &self.text_hash,
                &self.text,
                &self.indexed,
            ],
        )
        .await?;
        let (owners, memories, paths) = &self.paths;
        if !owners.is_empty() {
            tx.execute(
                "INSERT INTO memory_paths (owner, memory, path)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[]) ON CONFLICT DO NOTHING",
                &[owners, memories, paths],
            )
            .await?;
        }
        let (owners, memories, targets) = &self.references;
        if !owners.is_empty() {
            tx.execute(
                "INSERT INTO memory_references (owner, memory, target)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[]) ON CONFLICT DO NOTHING",
                &[owners, memories, targets],
            )
            .await?;
        }
        let (owners, memories, places, shas) = &self.parents;
        if !owners.is_empty() {
            tx.execute(
                "INSERT INTO commit_parents (owner, memory, place, sha)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])",
                &[owners, memories, places, shas],
            )
            .await?;
        }
        Ok(())
    }
}
