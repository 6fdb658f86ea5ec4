//! A store, with helper methods that write and read what promises need.

use std::sync::Arc;

use super::subject::{Engine, OWNER, project};
use tiro_base::error::Error;
use tiro_base::filter::Filter;
use tiro_base::memory::{
    CommitRecord, Draft, Identity, Kind, Level, Memory, MemoryId, MemoryKey, Millis, Provenance, Role, Work,
};
use tiro_base::scope::{Scope, SessionId, Sessions, TenantId};
use tiro_store::*;
use tiro_text::words::Term;

/// An hour, in milliseconds.
pub const HOUR: Millis = 3_600_000;

/// The vector space of embeddings.
pub const SPACE: &str = "space";

/// How the message of a panic begins if the store returns an error where a promise expects a result. Such a panic
/// doesn't count as a failure of the promise.
pub const NO_ANSWER: &str = "the store gave no answer";

/// A result that a promise expects to be `Ok`.
pub trait Answered<T> {
    /// Returns the answer; panics with [`NO_ANSWER`] if the result is an error.
    fn answered(self) -> T;
}

impl<T> Answered<T> for Result<T, Error> {
    fn answered(self) -> T {
        self.unwrap_or_else(|refusal| panic!("{NO_ANSWER}: {refusal:?}"))
    }
}

/// A handle on a store of an engine, and a scope in it.
pub struct Fixture {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// A handle on its store.
    pub store: Arc<dyn Store>,
    /// The scope of the owner [`OWNER`].
    pub scope: Scope,
}

impl Fixture {
    /// Opens the store of `engine`.
    pub fn new(engine: Box<dyn Engine>) -> Fixture {
        let store = engine.open();
        Fixture { engine, store, scope: Scope::own(TenantId::new(OWNER), project()) }
    }

    /// Closes the store and opens it again.
    pub fn reopened(self) -> Fixture {
        let Fixture { engine, store, .. } = self;
        drop(store);
        Fixture::new(engine)
    }

    /// Returns the scope of these sessions.
    pub fn only(&self, sessions: &[&str]) -> Scope {
        let sessions = Sessions::Only(sessions.iter().map(|session| name(session)).collect());
        Scope { sessions, ..self.scope.clone() }
    }

    /// Returns the scope of another owner.
    pub fn stranger(&self) -> Scope {
        Scope { tenant: TenantId::new("ana"), ..self.scope.clone() }
    }

    /// Saves memories; the time of the call is 1.
    pub async fn save(&self, memories: Vec<PreparedMemory>) -> Receipt {
        self.store.save(&self.scope, memories, 1).await.answered()
    }

    /// Saves one memory; returns its id.
    pub async fn put(&self, memory: PreparedMemory) -> MemoryId {
        self.save(vec![memory]).await.outcomes.remove(0).0
    }

    /// Saves messages of one token each, whose ids are derived from their texts.
    pub async fn say(&self, session: &str, texts: &[&str]) -> Vec<MemoryId> {
        let said = self.save(texts.iter().map(|text| message(session, text)).collect()).await;
        said.outcomes.into_iter().map(|(id, _)| id).collect()
    }

    /// Returns the living messages of the session.
    pub async fn rows(&self, session: &str) -> Vec<MessageRow> {
        self.store.session_messages(&self.scope, &name(session), 0).await.answered()
    }

    /// Returns the memory; `None` if it is forgotten.
    pub async fn living(&self, id: &MemoryId) -> Option<Memory> {
        self.store.memory(&self.scope, id).await.answered()
    }

    /// Returns the key of a living memory.
    pub async fn key(&self, id: &MemoryId) -> MemoryKey {
        self.living(id).await.expect("it is stored").key
    }

    /// Returns the key of the session.
    pub async fn session_key(&self, session: &str) -> SessionKey {
        let found = self.store.behind(&self.scope, vec![name(session)], 0).await.answered();
        found.first().expect("it has messages").key
    }

    /// Returns the texts of the memories that `filter` admits, in the order in which `list` returns them.
    pub async fn listed(&self, filter: &Filter) -> Vec<String> {
        let found = self.store.list(&self.scope, filter, None, 100).await.answered();
        found.into_iter().map(|memory| memory.text).collect()
    }

    /// Returns the chunks that contain the word.
    pub async fn candidates(&self, scope: &Scope, filter: &Filter, word: &str) -> Vec<LexicalCandidate> {
        let found = self.store.candidates(scope, by_words(filter, &[word], 10)).await.answered();
        found.words.answered().0
    }

    /// Returns how many chunks contain the word.
    pub async fn found(&self, word: &str) -> usize {
        self.candidates(&self.scope, &Filter::default(), word).await.len()
    }

    /// Returns the texts whose embeddings are nearest to `embedding`.
    pub async fn near(
        &self,
        scope: &Scope,
        filter: &Filter,
        embedding: [f32; 4],
        limit: usize,
    ) -> Vec<String> {
        let found = self.store.candidates(scope, by_meaning(filter, SPACE, &embedding, limit)).await;
        let near = found.answered().near.answered();
        self.texts(near.into_iter().map(|candidate| candidate.memory).collect()).await
    }

    /// Returns those of `memories` that a later memory replaced.
    pub async fn superseded(&self, memories: Vec<MemoryKey>) -> Vec<Superseded> {
        let query = ReplacementQuery { memories, ..ReplacementQuery::default() };
        self.store.replacements(&self.scope, query).await.answered().superseded
    }

    /// Returns those of `commits` that another commit replaced, each with that one.
    pub async fn stand_ins(&self, commits: &[MemoryKey]) -> Vec<(MemoryKey, MemoryKey)> {
        let query = ReplacementQuery { commits: commits.to_vec(), ..ReplacementQuery::default() };
        let found = self.store.replacements(&self.scope, query).await.answered();
        found.stand_ins.into_iter().map(|(old, (by, _))| (old, by)).collect()
    }

    /// Returns the texts of the living memories among `keys`, in the order of `keys`.
    pub async fn texts(&self, keys: Vec<MemoryKey>) -> Vec<String> {
        let texts = self.store.texts(&self.scope, keys.clone()).await.answered();
        let text = |key| texts.iter().find(|(own, _)| *own == key).map(|(_, text)| text.clone());
        keys.into_iter().filter_map(text).collect()
    }

    /// Returns a summary of the living messages in the range. The text of the summary consists of the texts of the
    /// messages.
    pub async fn draft(&self, session: &str, first: i64, last: i64) -> Summary {
        let rows = self.rows(session).await;
        let rows: Vec<_> = rows.into_iter().filter(|row| (first..=last).contains(&row.ordinal)).collect();
        let text = self.texts(rows.iter().map(|row| row.key).collect()).await.join(" | ");
        Summary {
            session: name(session),
            segment: None,
            level: Level::Standard,
            first,
            last,
            messages: rows.len() as i64,
            tokens: rows.len() as i64,
            text,
            provider: "extractive".into(),
            model: String::new(),
            quality: 1.0,
            provenance: Provenance::UserSaid,
            cited: rows.iter().map(|row| row.ordinal).collect(),
            source_hash: source_hash(rows.iter().map(|row| &row.id)),
        }
    }

    /// Summarises the range of messages.
    pub async fn summarise(&self, session: &str, first: i64, last: i64) -> Saved {
        let draft = self.draft(session, first, last).await;
        self.store.save_summary(&self.scope, draft, 1).await.answered()
    }

    /// Returns the summaries of the session at all levels.
    pub async fn summaries(&self, session: &str) -> Vec<SummaryRow> {
        self.store.summaries(&self.scope, &name(session), None).await.answered()
    }

    /// Forgets these memories.
    pub async fn forget(&self, ids: &[&MemoryId], operation: &str) -> Forgotten {
        let ids = ids.iter().map(|id| (*id).clone()).collect();
        self.store.forget(&self.scope, &Selection::Ids(ids), operation, 5).await.answered()
    }

    /// Forgets the session.
    pub async fn forget_session(&self, session: &str, operation: &str) -> Forgotten {
        self.store.forget(&self.scope, &Selection::Session(name(session)), operation, 5).await.answered()
    }

    /// Undoes the last operation.
    pub async fn undo(&self) -> Forgotten {
        self.store.undo(&self.scope, None, 6).await.answered()
    }

    /// Returns the version of the memories in these sessions.
    pub async fn version(&self, sessions: &[&str]) -> Version {
        self.store.source_state(&self.only(sessions)).await.answered().version
    }

    /// Returns what a context of the session is chosen from.
    pub async fn parts(&self, session: &str, query: ContextQuery) -> ContextParts {
        self.store.context_parts(&self.scope, &name(session), query).await.answered()
    }

    /// Stores a summary of the session up to the message `last` as a memory.
    pub async fn summarise_session(&self, session: &str, text: &str, last: i64) -> Saved {
        let rows = self.rows(session).await;
        let hash = source_hash(rows.iter().filter(|row| row.ordinal <= last).map(|row| &row.id));
        let memory = conversation(session, text);
        self.store.save_conversation(&self.scope, memory, last, hash, 1).await.answered()
    }

    /// Adds segments, each given by its number, its first and its last ordinal.
    pub async fn close_segments(&self, session: &str, segments: &[(i64, i64, i64)]) {
        let row = |&(number, first, last)| SegmentRow { number, first, last, messages: 0, tokens: 0 };
        let segments = segments.iter().map(row).collect();
        self.store.add_segments(&self.scope, &name(session), segments).await.answered();
    }
}

/// Returns a search by words in all groups that the filter admits.
pub fn by_words(filter: &Filter, words: &[&str], limit: usize) -> CandidateQuery {
    let terms = words.iter().copied().map(Term::new).collect();
    CandidateQuery {
        filter: filter.clone(),
        groups: filter.groups(),
        terms,
        limit,
        ..CandidateQuery::default()
    }
}

/// Returns a search by meaning in all groups that the filter admits.
pub fn by_meaning(filter: &Filter, space: &str, embedding: &[f32], limit: usize) -> CandidateQuery {
    let embeddings = vec![(space.to_owned(), embedding.to_vec())];
    CandidateQuery {
        filter: filter.clone(),
        groups: filter.groups(),
        embeddings,
        limit,
        ..CandidateQuery::default()
    }
}

/// Returns the session called `session`.
pub fn name(session: &str) -> SessionId {
    SessionId::parse(session).unwrap()
}

/// Returns the memory of the draft, with an id derived from `key`. It has one token and one chunk.
pub fn prepared(draft: Draft, key: &str) -> PreparedMemory {
    let end = draft.text.len();
    let chunk = PreparedChunk { start: 0, end, tokens: 1, embedding: None };
    let id = MemoryId::derive(draft.kind, draft.session.as_ref(), key);
    PreparedMemory { id, draft, tokens: 1, chunks: vec![chunk] }
}

/// Returns a message of the user whose id is derived from its text.
pub fn message(session: &str, text: &str) -> PreparedMemory {
    let mut draft = Draft::new(Kind::Message, Provenance::UserSaid, text, 10);
    draft.session = Some(name(session));
    draft.role = Some(Role::User);
    draft.identity = Identity::Named(text.into());
    prepared(draft, text)
}

/// Returns a message said at `time`.
pub fn message_at(session: &str, text: &str, time: Millis) -> PreparedMemory {
    let mut message = message(session, text);
    message.draft.time = time;
    message
}

/// Returns a decision without a session.
pub fn note(text: &str) -> PreparedMemory {
    prepared(Draft::new(Kind::Decision, Provenance::UserSaid, text, 10), text)
}

/// Returns the memory with the embedding of its chunk.
pub fn embedded(mut memory: PreparedMemory, embedding: [f32; 4]) -> PreparedMemory {
    memory.chunks[0].embedding = Some((SPACE.into(), embedding.to_vec()));
    memory
}

/// Returns a summary of the session, with an embedding.
pub fn conversation(session: &str, text: &str) -> PreparedMemory {
    let mut draft = Draft::new(Kind::Conversation, Provenance::Derived, text, 10);
    draft.session = Some(name(session));
    embedded(prepared(draft, text), [0.1; 4])
}

/// Returns a fact derived from `sources`. It has no chunks, so searches find it only through its sources.
pub fn fact(session: &str, text: &str, sources: &[&MemoryId]) -> PreparedMemory {
    let mut draft = Draft::new(Kind::Fact, Provenance::Derived, text, 10);
    draft.session = Some(name(session));
    draft.references = sources.iter().map(|id| (*id).clone()).collect();
    PreparedMemory { chunks: Vec::new(), ..prepared(draft, text) }
}

/// Returns the summary of a quarter, derived from `sources`.
pub fn quarter(text: &str, sources: &[MemoryId]) -> PreparedMemory {
    let mut draft = Draft::new(Kind::Summary, Provenance::Derived, text, 10);
    draft.topic = Some("quarter 2024-Q1".into());
    draft.references = sources.to_vec();
    prepared(draft, text)
}

/// Returns a commit that was made at `time`. Its id is `digit`, repeated.
pub fn commit(digit: char, text: &str, time: Millis) -> PreparedMemory {
    let sha = sha(digit);
    let mut draft = Draft::new(Kind::Commit, Provenance::GitCommit, text, time);
    draft.source_id = Some(sha.clone());
    draft.commit = Some(CommitRecord { sha: sha.clone(), ..CommitRecord::default() });
    prepared(draft, &sha)
}

/// Returns the full id of a commit that consists of one repeated digit.
pub fn sha(digit: char) -> String {
    std::iter::repeat_n(digit, 40).collect()
}

/// Returns the message of a tool call that did `work` at `time`.
pub fn tool_call(session: &str, text: &str, work: Work, time: Millis) -> PreparedMemory {
    let mut call = message_at(session, text, time);
    call.draft.role = Some(Role::Tool);
    call.draft.work = work;
    call
}

/// Returns a request for a summary of the first two messages of the session `s`.
pub fn wanted(level: Level, asked_by: AskedBy) -> Wanted {
    Wanted { session: name("s"), level, first: 0, last: 1, provider: "local".into(), asked_by }
}

/// Returns the outcomes of a receipt, without the ids.
pub fn outcomes(receipt: &Receipt) -> Vec<Outcome> {
    receipt.outcomes.iter().map(|(_, outcome)| *outcome).collect()
}
