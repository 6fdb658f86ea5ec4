//! The interface through which the side with the user's files stores memories and asks about them.

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

/// The questions that the memory of one project answers about what was stored.
#[async_trait]
pub trait ReadIntake: Send + Sync {
    /// Returns the project.
    fn project(&self) -> &ProjectId;

    /// Returns the last cursor that was stored under the name `source`; `None` if there is none.
    async fn cursor(&self, source: &str) -> Result<Option<String>>;

    /// Returns the full git ids of all commits, including forgotten ones.
    async fn known_commits(&self) -> Result<Vec<String>>;

    /// Returns up to `limit` living commits that were made between `from` and `until`, in order of time.
    async fn commits_made(&self, from: Millis, until: Millis, limit: usize) -> Result<Vec<CommitRow>>;

    /// Returns the parts of the graph of commits, in order.
    async fn commit_graph(&self) -> Result<Vec<GraphRow>>;
}

/// The memory of one project, as seen by the side with the files. When a method returns, its writes are durable.
#[async_trait]
pub trait Intake: ReadIntake {
    /// Waits until a write could begin, but no longer than `patience`.
    ///
    /// Errors with [`Kind::Busy`](tiro_base::error::Kind::Busy) if others write during this whole time.
    async fn await_turn(&self, patience: Duration) -> Result<()>;

    /// Stores memories in order, and returns the result of each. A memory that is stored already is not stored again.
    async fn remember(&self, memories: Vec<PreparedMemory>) -> Result<Receipt>;

    /// Stores the client, work tree, title and aliases of a session. They must be redacted.
    async fn describe_session(&self, session: &SessionId, origin: Origin) -> Result<()>;

    /// Stores a cursor under the name `source`, and replaces the previous one. The name and the cursor must be
    /// redacted.
    async fn keep_cursor(&self, source: &str, cursor: &str) -> Result<()>;

    /// Returns whether a cursor is stored under a name that ends with `end`.
    async fn has_cursor(&self, end: &str) -> Result<bool>;

    /// Stashes the messages that a client compacted, which are the messages of the session before the first message of
    /// `rest`. `rest` has the ids that the client gave the messages after the compaction, in order. Messages that are
    /// already stashed don't change.
    async fn stash_compacted(&self, session: &SessionId, rest: &[String]) -> Result<()>;

    /// Returns those of `ids` that are stored in sessions other than `session`. `ids` are the ids that clients gave
    /// their messages.
    async fn known_elsewhere(&self, session: &SessionId, ids: Vec<String>) -> Result<HashSet<String>>;

    /// Returns the ids of the living messages of the session, in order. The list is empty if there is no such session.
    async fn messages_of(&self, session: &SessionId) -> Result<Vec<MemoryId>>;

    /// Returns the living messages of the session with their texts, in order, each with the role of its speaker.
    async fn texts_of(&self, session: &SessionId) -> Result<Vec<(MemoryId, Option<Role>, String)>>;

    /// Returns, for each of `prompts`, whether a session contains it.
    async fn known_prompts(&self, prompts: Vec<Prompt>) -> Result<Vec<bool>>;

    /// Returns, for each branch and time in `places`, the full git id of the last living commit up to that time. The
    /// commit is on the given branch, or its branch is unknown. Returns `None` for a place without such a commit.
    async fn commits_before(&self, places: Vec<(String, Millis)>) -> Result<Vec<Option<String>>>;

    /// Returns the time of the living commit with the full git id `sha`; `None` if it is not stored.
    async fn time_of_commit(&self, sha: &str) -> Result<Option<Millis>>;

    /// Returns up to `limit` living commits with their authors, the last stored commit first. If `before` is `Some`,
    /// the list begins with the commit that was stored before `before`.
    async fn commit_authors(&self, before: Option<MemoryKey>, limit: usize) -> Result<Vec<AuthorRow>>;

    /// Returns the living memories in `keys`, in the order of `keys`, each with its chunks.
    async fn memories(&self, keys: Vec<MemoryKey>) -> Result<Vec<(Memory, Vec<ChunkRange>)>>;

    /// Changes the authors of commits. The names must be redacted.
    async fn rename_authors(&self, renamed: Vec<Renamed>) -> Result<()>;

    /// Returns the time of the first tool call that changed a file or made a commit, or `None`.
    async fn first_evidence(&self) -> Result<Option<Millis>>;

    /// Returns what tool calls did, as far as they are not forgotten, between `from` and `until`: the changes of files, and the calls that
    /// made a commit. The two lists are in order of time.
    async fn work_between(&self, from: Millis, until: Millis) -> Result<(Vec<WriteRow>, Vec<CallRow>)>;

    /// Returns the links of each commit to sessions, in the order of `commits`.
    async fn links_of(&self, commits: Vec<MemoryKey>) -> Result<Vec<CommitLinks>>;

    /// Replaces the links of each commit by the given links, of which the likeliest comes first.
    async fn link_commits(&self, links: Vec<CommitLinks>) -> Result<()>;

    /// Returns the commits that were replaced, with their full git ids.
    async fn replaced_commits(&self) -> Result<Vec<(MemoryKey, String)>>;

    /// Records which of `commits` were replaced. `replaced` has pairs of an old and a new commit. Before, earlier
    /// replacements of `commits` are removed. If `among` is `Some`, only replacements by a commit in `among` are
    /// removed.
    async fn replace_commits(
        &self,
        commits: Vec<MemoryKey>,
        among: Option<HashSet<MemoryKey>>,
        replaced: Vec<(MemoryKey, MemoryKey)>,
    ) -> Result<()>;

    /// Adds a part to the graph of commits. If the part doesn't continue the last part, adds nothing and returns false.
    async fn add_to_commit_graph(&self, part: GraphRow) -> Result<bool>;

    /// Returns the numbers of commits, messages, notes, sessions and stashed memories of the project.
    async fn sizes(&self) -> Result<Sizes>;
}

/// A prompt from a client's list of prompts, which doesn't name the session.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The name of the session in which the prompt would be stored. This session is not searched.
    pub session: String,
    /// The first and the last time, in milliseconds, at which a stored prompt counts as this prompt.
    pub between: (Millis, Millis),
    /// What was said, redacted.
    pub text: String,
}
