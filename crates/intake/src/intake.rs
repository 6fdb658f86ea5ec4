//! What the side with a user's files gives and asks.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;

use tiro_base::error::Result;
use tiro_base::memory::{Memory, MemoryId, MemoryKey, Millis, Role};
use tiro_base::scope::{ProjectId, SessionId};
use tiro_store::{
    AuthorRow, CallRow, ChunkRange, CommitLinks, CommitRow, GraphRow, Origin, PreparedMemory, Receipt,
    Renamed, Sizes, WriteRow,
};

/// What the memory of one project answers about what it took in.
#[async_trait]
pub trait ReadIntake: Send + Sync {
    /// Returns the project.
    fn project(&self) -> &ProjectId;

    /// Returns the cursor that was last kept under the name `source`; `None` if there is none.
    async fn cursor(&self, source: &str) -> Result<Option<String>>;

    /// Returns the full git ids of all commits, including forgotten ones.
    async fn known_commits(&self) -> Result<Vec<String>>;

    /// Returns up to `limit` living commits that were made between `from` and `until`, in order of time.
    async fn commits_made(&self, from: Millis, until: Millis, limit: usize) -> Result<Vec<CommitRow>>;

    /// Returns the parts of the graph of commits, in order.
    async fn commit_graph(&self) -> Result<Vec<GraphRow>>;
}

/// The memory of one project, as the side with its files sees it. What it was given is durable when a method returns.
#[async_trait]
pub trait Intake: ReadIntake {
    /// Waits until something could be stored, but no longer than `patience`.
    ///
    /// Errors with [`Kind::Busy`](tiro_base::error::Kind::Busy) if others write during all that time.
    async fn await_turn(&self, patience: Duration) -> Result<()>;

    /// Stores memories in order, and returns the result of each. A memory that is stored already is not stored again.
    async fn remember(&self, memories: Vec<PreparedMemory>) -> Result<Receipt>;

    /// Stores the client, work tree, title and aliases of a session, which are redacted.
    async fn describe_session(&self, session: &SessionId, origin: Origin) -> Result<()>;

    /// Keeps a cursor under the name `source`, in the place of the one that is kept there. Both are redacted.
    async fn keep_cursor(&self, source: &str, cursor: &str) -> Result<()>;

    /// Returns whether a cursor is kept under a name that ends with `end`.
    async fn has_cursor(&self, end: &str) -> Result<bool>;

    /// Stashes the messages that a client compacted: those of the session before the first of `rest`. `rest` has the ids
    /// that the client gave the messages after the compaction, in order. What is stashed already stays as it is.
    async fn stash_compacted(&self, session: &SessionId, rest: &[String]) -> Result<()>;

    /// Returns those of `ids` that are stored in sessions other than `session`. `ids` are the ids that clients gave
    /// their messages.
    async fn known_elsewhere(&self, session: &SessionId, ids: Vec<String>) -> Result<HashSet<String>>;

    /// Returns the ids of the living messages of the session, in order; none if there is no such session.
    async fn messages_of(&self, session: &SessionId) -> Result<Vec<MemoryId>>;

    /// Returns the texts of the living messages of the session, in order, each with the role of its speaker.
    async fn texts_of(&self, session: &SessionId) -> Result<Vec<(Option<Role>, String)>>;

    /// Returns for each of `prompts` whether a session has it.
    async fn known_prompts(&self, prompts: Vec<Prompt>) -> Result<Vec<bool>>;

    /// Returns, for each branch and time in `places`, the full git id of the last living commit up to that time. The
    /// commit is on the given branch, or its branch is unknown. Returns `None` for a place without such a commit.
    async fn commits_before(&self, places: Vec<(String, Millis)>) -> Result<Vec<Option<String>>>;

    /// Returns when the living commit with the full git id `sha` was made; `None` if it is not stored.
    async fn time_of_commit(&self, sha: &str) -> Result<Option<Millis>>;

    /// Returns up to `limit` living commits with their authors, those stored last first. If `before` is `Some`, the list
    /// begins with the commit that was stored before `before`.
    async fn commit_authors(&self, before: Option<MemoryKey>, limit: usize) -> Result<Vec<AuthorRow>>;

    /// Returns the living memories in `keys`, in their order, each with its chunks.
    async fn memories(&self, keys: Vec<MemoryKey>) -> Result<Vec<(Memory, Vec<ChunkRange>)>>;

    /// Gives commits other authors, whose names are redacted.
    async fn rename_authors(&self, renamed: Vec<Renamed>) -> Result<()>;

    /// Returns the time of the first file change or commit by a tool call, or `None`.
    async fn first_evidence(&self) -> Result<Option<Millis>>;

    /// Returns what living tool calls between `from` and `until` did, each in order of time: the files that they changed,
    /// and those of them that made a commit.
    async fn work_between(&self, from: Millis, until: Millis) -> Result<(Vec<WriteRow>, Vec<CallRow>)>;

    /// Returns the links of each of `commits` to sessions, in their order.
    async fn links_of(&self, commits: Vec<MemoryKey>) -> Result<Vec<CommitLinks>>;

    /// Replaces the links of each commit by the given ones, which are ordered with the likeliest first.
    async fn link_commits(&self, links: Vec<CommitLinks>) -> Result<()>;

    /// Returns the commits that were replaced, with their full git ids.
    async fn replaced_commits(&self) -> Result<Vec<(MemoryKey, String)>>;

    /// Records which of `commits` were replaced. `replaced` has pairs of the old and the new commit. Earlier replacements
    /// of `commits` are removed first; if `among` is `Some`, only replacements by a commit in `among` are.
    async fn replace_commits(
        &self,
        commits: Vec<MemoryKey>,
        among: Option<HashSet<MemoryKey>>,
        replaced: Vec<(MemoryKey, MemoryKey)>,
    ) -> Result<()>;

    /// Adds a part to the graph of commits. Returns false, and adds nothing, if the part doesn't continue the last one.
    async fn add_to_commit_graph(&self, part: GraphRow) -> Result<bool>;

    /// Returns how many memories of each kind the project has.
    async fn sizes(&self) -> Result<Sizes>;
}

/// A prompt that a client listed without its session.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The name of the session in which it would be stored, which is not looked at.
    pub session: String,
    /// The times, in milliseconds, between which the same prompt must have been said.
    pub between: (Millis, Millis),
    /// What was said, redacted.
    pub text: String,
}
