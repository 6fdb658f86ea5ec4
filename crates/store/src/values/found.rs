//! Queries of searches, and the memories that searches find, in the form in which answers show them.

use std::cmp::Reverse;

use crate::{ChunkKey, SessionKey, Statement, Superseded};
use tiro_base::error::{Error, Result};
use tiro_base::filter::Filter;
use tiro_base::memory::{Group, Kind, Memory, MemoryId, MemoryKey, Millis, Role};
use tiro_base::scope::SessionId;
use tiro_text::words::Term;

/// A chunk near the query in the vector space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DenseCandidate {
    /// The memory.
    pub memory: MemoryKey,
    /// The chunk.
    pub chunk: ChunkKey,
}

/// A chunk that contains some words of the query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LexicalCandidate {
    /// The memory.
    pub memory: MemoryKey,
    /// The chunk.
    pub chunk: ChunkKey,
    /// The group of kinds to which the memory belongs.
    pub group: Group,
    /// Whether the chunk belongs to a long answer, which is a message of an assistant that is longer than one chunk.
    pub is_answer: bool,
    /// The BM25 score; higher is better.
    pub score: f64,
}

/// How many documents of a store contain each word of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// How many documents there are.
    pub documents: i64,
    /// How many documents contain each word, in the order of the words.
    pub counts: Vec<i64>,
}

impl Vocabulary {
    /// Returns the weight of each word, which is higher for words that are rarer in all of `stores`. The weight is
    /// BM25's inverse document frequency, so it is above 0, and highest for a word that no document contains.
    pub fn rarity(stores: &[Vocabulary]) -> Vec<f64> {
        let words = stores.iter().map(|store| store.counts.len()).max().unwrap_or(0);
        let all: i64 = stores.iter().map(|store| store.documents).sum();
        let rarity = |place: usize| {
            let with: i64 = stores.iter().filter_map(|store| store.counts.get(place)).sum();
            (1.0 + ((all - with).max(0) as f64 + 0.5) / (with as f64 + 0.5)).ln()
        };
        (0..words).map(rarity).collect()
    }
}

/// A search for candidates, by words, by meaning and by the ids of commits.
#[derive(Clone, Debug, Default)]
pub struct CandidateQuery {
    /// The conditions for memories that are searched by words and by meaning.
    pub filter: Filter,
    /// The groups of kinds that are searched. Each group is searched separately.
    pub groups: Vec<Group>,
    /// The words or phrases to look for, as the user wrote them. Words in other languages than English have their
    /// stems. Without terms, there is no search by words.
    pub terms: Vec<Term>,
    /// The counts of another store. A small store weights the terms by these counts instead of its own.
    pub weights: Option<Vocabulary>,
    /// Beginnings of the git ids of commits.
    pub commits: Vec<String>,
    /// The vector of the query in each vector space, with the name of the space. Without embeddings, there is no search
    /// by meaning.
    pub embeddings: Vec<(String, Vec<f32>)>,
    /// The maximum number of candidates of each group. This limit applies to the search by words, and to the search by
    /// meaning in each space.
    pub limit: usize,
}

/// The result of a store for a [`CandidateQuery`], all as of one moment. Each part is a separate `Result`, so an answer
/// can be given without the parts that failed.
#[derive(Debug)]
pub struct Candidates {
    /// The chunks that contain some of the terms, the best first. All groups are in one list. The second value says how
    /// common the terms are in the store; if the query has weights, the second value has these weights.
    pub words: Result<(Vec<LexicalCandidate>, Vocabulary)>,
    /// The chunks that are nearest to the embeddings, space after space.
    pub near: Result<Vec<DenseCandidate>>,
    /// The commits that the query names, each with its first chunk.
    pub named: Result<Vec<(MemoryKey, ChunkKey)>>,
    /// For each embedding of the query: its exact cosine with each chunk that the other fields name and that has a
    /// vector of the same space.
    pub cosines: Vec<Result<Vec<(ChunkKey, f64)>>>,
    /// The data that ranking needs about the memories in the other fields, ordered by key.
    pub places: Result<Vec<Neighbour>>,
    /// How many chunks of the owner have no embedding yet and can't be found by meaning; `None` if they can't be
    /// counted.
    pub pending: Option<usize>,
}

impl Candidates {
    /// Returns the result for `query` if the store could not be read because of `error`.
    pub fn failed(query: &CandidateQuery, error: &Error) -> Candidates {
        let again = || error.reworded(error.to_string());
        let is_asked = |is_empty: bool| if is_empty { Ok(()) } else { Err(again()) };
        Candidates {
            words: is_asked(query.terms.is_empty()).map(|()| Default::default()),
            near: is_asked(query.embeddings.is_empty()).map(|()| Vec::new()),
            named: is_asked(query.commits.is_empty()).map(|()| Vec::new()),
            cosines: query.embeddings.iter().map(|_| Err(again())).collect(),
            places: Ok(Vec::new()),
            pending: None,
        }
    }
}

/// A query for the commits and memories that replaced others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplacementQuery {
    /// The commits that may have been amended or squashed.
    pub commits: Vec<MemoryKey>,
    /// The memories that may be superseded.
    pub memories: Vec<MemoryKey>,
    /// Whether the statements in the memories are returned, too.
    pub with_statements: bool,
    /// The memories whose texts are returned.
    pub texts: Vec<MemoryKey>,
    /// Whether the memories that are valid now are returned.
    pub with_holding: bool,
}

/// The result of a store for a [`ReplacementQuery`], all as of one moment.
#[derive(Clone, Debug, Default)]
pub struct Replacements {
    /// The commits of the query that were replaced. Each commit comes with the last living commit in its chain of
    /// replacements, and the first chunk of that commit.
    pub stand_ins: Vec<(MemoryKey, (MemoryKey, ChunkKey))>,
    /// The memories of the query that a later living memory of the scope replaced, followed by the replacing commits
    /// that were replaced in the same way. The memories are in the order of the query. Each entry names the memory that
    /// is valid now. A memory is listed once for each replaced statement. If the whole memory was replaced by request,
    /// it is listed once.
    pub superseded: Vec<Superseded>,
    /// The living statements of the scope that stand in the memories of the query or in the replacing commits, in the
    /// order of these memories; empty if statements weren't requested.
    pub statements: Vec<Statement>,
    /// The texts of the living memories of the scope that the query asks for, in the order of the query.
    pub texts: Vec<(MemoryKey, String)>,
    /// The memories that are valid now in place of superseded memories, each once; empty if they weren't requested.
    pub holding: Vec<Memory>,
    /// The data that ranking needs about the replacing commits and about the memories that are valid now, ordered by
    /// key. Memories that are not living or not in the scope are left out.
    pub places: Vec<Neighbour>,
}

/// The fields of a candidate that ranking needs: all except its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its key.
    pub key: MemoryKey,
    /// Its id.
    pub id: MemoryId,
    /// Its kind.
    pub kind: Kind,
    /// Its session.
    pub session: Option<SessionKey>,
    /// Its ordinal in the session.
    pub ordinal: Option<i64>,
    /// The role of the speaker.
    pub role: Option<Role>,
    /// The speaker's or author's name.
    pub speaker: Option<String>,
    /// The number of tokens (o200k) of the memory's text.
    pub tokens: i64,
    /// When it was made.
    pub time: Millis,
    /// Whether it was marked important.
    pub marked: bool,
    /// The importance that the author gave the memory, from 0 to 1.
    pub importance: Option<f64>,
    /// A hash of its text.
    pub text_hash: [u8; 8],
    /// The message from which a derived fact or decision was taken.
    pub taken_from: Option<MemoryKey>,
}

impl Neighbour {
    /// Returns what orders this memory among others with its score: the newer one comes first. Only memories of the same
    /// time and text are ordered by their ids, which are not the same on every machine that has them.
    pub fn tie(&self) -> (Reverse<Millis>, [u8; 8], &MemoryId) {
        (Reverse(self.time), self.text_hash, &self.id)
    }
}

/// A query for the messages of a session before a given message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// The session.
    pub session: SessionId,
    /// The ordinal of the given message.
    pub ordinal: i64,
    /// The maximum number of messages.
    pub most: usize,
}

/// A found memory, in the form in which an answer shows it.
#[derive(Clone, Debug)]
pub struct ShownMemory {
    /// The memory's place in the list of memories that the caller asked for.
    pub place: usize,
    /// The memory.
    pub memory: Memory,
    /// The chunk that matches the query best.
    pub chunk: ChunkRange,
    /// If the memory is a commit, its full git ids. After a rebase or a cherry-pick, a commit has several ids.
    pub commit_ids: Vec<String>,
    /// If the memory is a commit, the sessions that led to it, the likeliest first.
    pub conversations: Vec<SessionId>,
    /// The confidence, 0 to 1, that each session of `conversations` led to the commit.
    pub confidences: Vec<f64>,
    /// If the memory is a summary and has a session, the ordinal of the last message that the summary of this session
    /// covers.
    pub covered: Option<i64>,
}

/// A commit with its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorRow {
    /// The memory.
    pub key: MemoryKey,
    /// The commit's id.
    pub sha: String,
    /// The author's name.
    pub author: Option<String>,
}

/// The changes of a commit whose author gets another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The memory.
    pub key: MemoryKey,
    /// The author's new name.
    pub author: Option<String>,
    /// The text that is indexed in place of the memory's own text.
    pub indexed: Option<String>,
    /// The chunks. Each comes with the number of tokens that its excerpt has once the author has the new name.
    pub tokens: Vec<(ChunkKey, i64)>,
}

/// A piece of a memory's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRange {
    /// The chunk.
    pub key: ChunkKey,
    /// The byte of the text at which the piece begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// How many tokens the piece has (o200k).
    pub tokens: i64,
}
