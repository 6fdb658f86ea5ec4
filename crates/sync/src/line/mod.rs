//! A line of a page: one change of one memory, as JSON.
//!
//! Names of members are short, because each line repeats them. A member that is absent has its usual value. Members of
//! later versions are ignored; a word of a later version, such as an unknown kind, makes only its line unreadable.
//!
//! What is read has the form of a memory, and nothing more is known of it: it isn't redacted, its author may lie, and its
//! chunks may be anywhere.

use serde::{Deserialize, Serialize};

use crate::numbers;
use tiro_base::memory::{
    CommitRecord, Draft, Identity, Kind, LONGEST_TEXT, MemoryId, Millis, Provenance, Role,
};
use tiro_base::scope::{AuthorId, SessionId};
use tiro_store::decide::exchange::Stamp;
use tiro_store::{Change, ExchangedChunk, ExchangedMemory, ExchangedState};

/// The latest time of a memory that is read, in milliseconds: the end of the year 9998. Times after it can't be shown.
const LATEST: Millis = 253_370_764_799_999;

/// The longest text of a member other than the text of the memory, in bytes. Arbitrary: a path has at most 4,096.
const LONGEST_MEMBER: usize = 16 << 10;

/// The most entries of a list, such as the files of a commit. Arbitrary.
const MOST_ENTRIES: usize = 20_000;

/// A change that was read.
#[derive(Clone, Debug)]
pub struct Arrived {
    /// The id under which the memory travels.
    pub id: MemoryId,
    /// Its kind.
    pub kind: Kind,
    /// Its author, by the name that travels.
    pub author: AuthorId,
    /// Its state.
    pub state: ExchangedState,
    /// Its content, if it came along.
    pub content: Option<Box<ArrivedMemory>>,
}

/// The content of a memory that was read.
#[derive(Clone, Debug)]
pub struct ArrivedMemory {
    /// The memory as a draft. It names its author.
    pub draft: Draft,
    /// The ordinal of the message in its session.
    pub ordinal: Option<i64>,
    /// The memories that replace it by request.
    pub superseded_by: Vec<MemoryId>,
    /// Whether the text index has the memory.
    pub is_indexed: bool,
    /// The pieces that came with an embedding whose numbers are those of a vector of length 1.
    pub embedded: Vec<ExchangedChunk>,
}

/// Why a line can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misread {
    /// It has a word of a later version.
    Later,
    /// It is malformed.
    Malformed,
    /// It is too long.
    TooLong,
}

impl Misread {
    /// Returns the reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Misread::Later => "it is of a later version of Tiro",
            Misread::Malformed => "it is malformed",
            Misread::TooLong => "it is too long",
        }
    }
}

/// A line as it is written.
#[derive(Serialize, Deserialize)]
struct Line {
    id: String,
    kind: String,
    author: String,
    #[serde(default, skip_serializing_if = "State::is_new")]
    state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<Box<Content>>,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct State {
    #[serde(skip_serializing_if = "is_default")]
    marked: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    importance: Option<f64>,
    #[serde(skip_serializing_if = "is_default")]
    marked_at: i64,
    #[serde(skip_serializing_if = "is_default")]
    forgotten: bool,
    #[serde(skip_serializing_if = "is_default")]
    forgotten_at: i64,
    #[serde(skip_serializing_if = "is_default")]
    purged: bool,
}

impl State {
    fn is_new(&self) -> bool {
        *self == State::default()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Serialize, Deserialize)]
struct Content {
    text: String,
    provenance: String,
    time: Millis,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ordinal: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    speaker: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head_sha: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    indexed: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lead: Option<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    references: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    supersedes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    superseded_by: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<Commit>,
    #[serde(default, skip_serializing_if = "is_default")]
    unindexed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    chunks: Vec<Chunk>,
}

#[derive(Serialize, Deserialize)]
struct Commit {
    sha: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parents: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patch_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Chunk {
    start: usize,
    end: usize,
    space: String,
    vector: String,
}

/// Whether a line has the vectors of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// They travel.
    Kept,
    /// They are left out, so that the line is shorter.
    LeftOut,
}

/// Returns the line of a change.
pub fn write(change: &Change, vectors: Vectors) -> String {
    let ExchangedState { is_marked, importance, marked_at, is_forgotten, forgotten_at, is_purged } =
        change.state;
    let line = Line {
        id: change.id.to_string(),
        kind: change.kind.to_string(),
        author: change.author.as_str().to_owned(),
        state: State {
            marked: is_marked,
            importance,
            marked_at: marked_at.number(),
            forgotten: is_forgotten,
            forgotten_at: forgotten_at.number(),
            purged: is_purged,
        },
        memory: change.content.as_deref().map(|memory| Box::new(content(memory, vectors))),
    };
    serde_json::to_string(&line).expect("plain values are JSON")
}

fn content(exchanged: &ExchangedMemory, vectors: Vectors) -> Content {
    let memory = exchanged.memory.clone();
    let names = |ids: &[MemoryId]| ids.iter().map(MemoryId::to_string).collect::<Vec<_>>();
    let chunk = |chunk: &ExchangedChunk| {
        let (space, vector) = chunk.embedding.as_ref().filter(|_| vectors == Vectors::Kept)?;
        let (space, vector) = (space.clone(), numbers::write(vector));
        Some(Chunk { start: chunk.start, end: chunk.end, space, vector })
    };
    Content {
        text: memory.text,
        provenance: memory.provenance.to_string(),
        time: memory.time,
        session: memory.session.map(|session| session.to_string()),
        ordinal: memory.ordinal,
        role: memory.role.map(|role| role.to_string()),
        speaker: memory.speaker,
        title: memory.title,
        topic: memory.topic,
        source_id: memory.source_id,
        path: memory.path,
        branch: memory.branch,
        head_sha: memory.head_sha,
        indexed: memory.indexed,
        lead: exchanged.lead,
        files: exchanged.files.clone(),
        references: names(&exchanged.references),
        supersedes: names(&exchanged.supersedes),
        superseded_by: names(&exchanged.superseded_by),
        commit: exchanged.commit.clone().map(|commit| Commit {
            sha: commit.sha,
            parents: commit.parents,
            patch_id: commit.patch_id,
            files: commit.files,
        }),
        unindexed: exchanged.chunks.is_empty(),
        chunks: exchanged.chunks.iter().filter_map(chunk).collect(),
    }
}

/// Reads a line.
pub fn read(bytes: &[u8]) -> Result<Arrived, Misread> {
    let line: Line = serde_json::from_slice(bytes).map_err(|_| Misread::Malformed)?;
    let id = id(&line.id)?;
    let kind = Kind::parse(&line.kind).ok_or(Misread::Later)?;
    let author = author(&line.author)?;
    let state = state(&line.state)?;
    let content = line.memory.map(|memory| arrived(&id, kind, &author, *memory).map(Box::new)).transpose()?;
    Ok(Arrived { id, kind, author, state, content })
}

fn arrived(id: &MemoryId, kind: Kind, author: &AuthorId, memory: Content) -> Result<ArrivedMemory, Misread> {
    if memory.text.len() > LONGEST_TEXT
        || memory.indexed.as_ref().is_some_and(|text| text.len() > LONGEST_TEXT)
    {
        return Err(Misread::TooLong);
    }
    if memory.text.trim().is_empty() || !(0..=LATEST).contains(&memory.time) {
        return Err(Misread::Malformed);
    }
    if memory.ordinal.is_some_and(|ordinal| ordinal < 0) || (kind == Kind::Commit) != memory.commit.is_some()
    {
        return Err(Misread::Malformed);
    }
    let mut draft = Draft::new(kind, provenance(&memory.provenance)?, String::new(), memory.time);
    draft.lead = memory
        .lead
        .map(|lead| memory.text.get(..lead).ok_or(Misread::Malformed))
        .transpose()?
        .map(str::to_owned);
    draft.author = Some(author.clone());
    draft.session = memory.session.map(|name| session(&name)).transpose()?;
    draft.role = memory.role.map(|role| Role::parse(&role).ok_or(Misread::Later)).transpose()?;
    draft.speaker = member(memory.speaker)?;
    draft.title = member(memory.title)?;
    draft.topic = member(memory.topic)?;
    draft.source_id = member(memory.source_id)?;
    draft.path = member(memory.path)?;
    draft.branch = member(memory.branch)?;
    draft.head_sha = member(memory.head_sha)?;
    draft.indexed = memory.indexed;
    draft.files = list(memory.files)?;
    draft.references = ids(&memory.references)?;
    draft.supersedes = ids(&memory.supersedes)?;
    draft.identity = Identity::Known(id.clone());
    if let Some(commit) = memory.commit {
        let (sha, parents) = (sha(commit.sha)?, shas_of(commit.parents)?);
        let (patch_id, files) = (member(commit.patch_id)?, list(commit.files)?);
        draft.commit = Some(CommitRecord { sha, parents, patch_id, files });
    }
    let chunk = |chunk: Chunk| {
        let fits = memory.text.get(chunk.start..chunk.end).is_some_and(|piece| !piece.is_empty());
        let vector = numbers::read(&chunk.vector).filter(|_| fits)?;
        let space = member(Some(chunk.space)).ok().flatten()?;
        Some(ExchangedChunk { start: chunk.start, end: chunk.end, embedding: Some((space, vector)) })
    };
    let embedded = memory.chunks.into_iter().filter_map(chunk).collect();
    let superseded_by = ids(&memory.superseded_by)?;
    draft.text = memory.text;
    Ok(ArrivedMemory {
        draft,
        ordinal: memory.ordinal,
        superseded_by,
        is_indexed: !memory.unindexed,
        embedded,
    })
}

fn state(state: &State) -> Result<ExchangedState, Misread> {
    let is_share = |number: f64| (0.0..=1.0).contains(&number);
    if state.importance.is_some_and(|number| !is_share(number))
        || state.marked_at < 0
        || state.forgotten_at < 0
    {
        return Err(Misread::Malformed);
    }
    Ok(ExchangedState {
        is_marked: state.marked,
        importance: state.importance,
        marked_at: Stamp::from_number(state.marked_at),
        is_forgotten: state.forgotten,
        forgotten_at: Stamp::from_number(state.forgotten_at),
        is_purged: state.purged,
    })
}

fn id(text: &str) -> Result<MemoryId, Misread> {
    MemoryId::parse(text).filter(|id| id.as_str() == text).ok_or(Misread::Malformed)
}

fn ids(texts: &[String]) -> Result<Vec<MemoryId>, Misread> {
    match texts.len() > MOST_ENTRIES {
        true => Err(Misread::TooLong),
        false => texts.iter().map(|text| id(text)).collect(),
    }
}

/// Returns the author called `name`. Names of authors are short, and have no control characters.
fn author(name: &str) -> Result<AuthorId, Misread> {
    let fits = !name.is_empty() && name.len() <= 200 && name.trim() == name;
    match fits && !name.chars().any(char::is_control) {
        true => Ok(AuthorId::new(name)),
        false => Err(Misread::Malformed),
    }
}

fn session(name: &str) -> Result<SessionId, Misread> {
    SessionId::parse(name).filter(|session| session.as_str() == name).ok_or(Misread::Malformed)
}

fn provenance(word: &str) -> Result<Provenance, Misread> {
    Provenance::parse(word).ok_or(Misread::Later)
}

fn member(text: Option<String>) -> Result<Option<String>, Misread> {
    match text.as_ref().is_some_and(|text| text.len() > LONGEST_MEMBER) {
        true => Err(Misread::TooLong),
        false => Ok(text),
    }
}

fn list(texts: Vec<String>) -> Result<Vec<String>, Misread> {
    let is_too_long = texts.len() > MOST_ENTRIES || texts.iter().any(|text| text.len() > LONGEST_MEMBER);
    if is_too_long { Err(Misread::TooLong) } else { Ok(texts) }
}

/// Returns `text` if it is a full git id: 40 or 64 hexadecimal digits.
fn sha(text: String) -> Result<String, Misread> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match matches!(text.len(), 40 | 64) && text.bytes().all(is_digit) {
        true => Ok(text),
        false => Err(Misread::Malformed),
    }
}

fn shas_of(texts: Vec<String>) -> Result<Vec<String>, Misread> {
    match texts.len() > MOST_ENTRIES {
        true => Err(Misread::TooLong),
        false => texts.into_iter().map(sha).collect(),
    }
}

#[cfg(test)]
mod tests;
