//! Reads commits and their links with sessions. Records these links.

use std::collections::HashSet;

use async_trait::async_trait;

use crate::{
    AuthorRow, BehindRow, CallRow, ChunkKey, CommitLinks, CommitRow, GraphRow, LinkedCommit, Renamed,
    WriteRow,
};
use tiro_base::error::Result;
use tiro_base::memory::{MemoryId, MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};

/// Reads commits and their links with sessions.
#[async_trait]
pub trait ReadCommits: Send + Sync {
    /// Returns the living commit of the scope whose git id begins with `prefix`, and its first chunk. Returns
    /// `None` if there is no such commit, or more than one.
    async fn commit_named(&self, scope: &Scope, prefix: &str) -> Result<Option<(MemoryKey, ChunkKey)>>;

    /// Returns the full git ids of all commits of the owner, including forgotten ones.
    async fn known_commits(&self, scope: &Scope) -> Result<Vec<String>>;

    /// Returns the living commits that `session` led to, the latest first.
    async fn commits_of(&self, scope: &Scope, session: &SessionId) -> Result<Vec<MemoryKey>>;

    /// Returns for each commit up to five sessions that led to it, the likeliest first, each with a confidence from 0 to 1.
    async fn sessions_behind(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
    ) -> Result<Vec<Vec<(SessionId, f64)>>>;

    /// Returns those of `sessions` that have living messages of the scope, in the order of `sessions`. Each result has
    /// the time and ordinal of one message of the session. The message is the last one up to `time`, or the first one
    /// if all messages are later.
    async fn behind(&self, scope: &Scope, sessions: Vec<SessionId>, time: Millis) -> Result<Vec<BehindRow>>;

    /// Returns up to `limit` living commits that `session` led to, and the number of all such commits. Commits made at
    /// `time` or later come first, followed by earlier commits. In both groups, the commits nearest to `time` come
    /// first.
    ///
    /// `head` is a commit that was checked out in the session. If the session has no client, because an agent
    /// saved it itself, commits whose parent is `head` also count as linked, with the lowest confidence.
    async fn linked_commits(
        &self,
        scope: &Scope,
        session: &SessionId,
        head: Option<String>,
        time: Millis,
        limit: usize,
    ) -> Result<(Vec<LinkedCommit>, usize)>;

    /// Returns up to `limit` living commits without a derived summary, the newest first. A commit whose summary was
    /// forgotten is not returned.
    async fn commits_without_summary(&self, scope: &Scope, limit: usize) -> Result<Vec<MemoryKey>>;

    /// Returns the living summary that was derived from the commit `id`, or `None`.
    async fn summary_of_commit(&self, scope: &Scope, id: &MemoryId) -> Result<Option<MemoryId>>;

    /// Returns, for each branch and time in `places`, the full git id of the last living commit up to that
    /// time. The commit is on the given branch, or its branch is unknown. Returns `None` for a place without
    /// such a commit.
    async fn commits_before(
        &self,
        scope: &Scope,
        places: Vec<(String, Millis)>,
    ) -> Result<Vec<Option<String>>>;

    /// Returns up to `limit` living commits up to the time `until`, in order of time and key. The list begins after the
    /// commit with the time and key of `after`. If `after` has no key, the list begins with the first commit of that
    /// time.
    async fn commits_made(
        &self,
        scope: &Scope,
        after: (Millis, Option<MemoryKey>),
        until: Millis,
        limit: usize,
    ) -> Result<Vec<CommitRow>>;

    /// Returns the links of each commit, in the order of `commits`. For a commit of another owner, returns no links.
    async fn links_of(&self, scope: &Scope, commits: Vec<MemoryKey>) -> Result<Vec<CommitLinks>>;

    /// Returns the commits that were replaced, with their full git ids. A commit with several ids is returned
    /// several times.
    async fn replaced_commits(&self, scope: &Scope) -> Result<Vec<(MemoryKey, String)>>;

    /// Returns the time of the owner's first tool call that changed a file or made a commit, or `None`.
    async fn first_evidence(&self, scope: &Scope) -> Result<Option<Millis>>;

    /// Returns the file changes that tool calls of the owner's sessions made between `from` and `until`, in order of
    /// time. Forgotten tool calls are left out.
    async fn file_writes(&self, scope: &Scope, from: Millis, until: Millis) -> Result<Vec<WriteRow>>;

    /// Returns the changes of the files `paths` that tool calls of the owner's sessions made up to the time `until`, the
    /// latest first. For each path, returns up to `limit` changes. Forgotten tool calls are left out.
    async fn writes_of(
        &self,
        scope: &Scope,
        paths: Vec<String>,
        until: Millis,
        limit: usize,
    ) -> Result<Vec<WriteRow>>;

    /// Returns the tool calls of the owner's sessions that made a commit and began between `from` and `until`, in order
    /// of time. Forgotten tool calls are left out.
    async fn commit_calls(&self, scope: &Scope, from: Millis, until: Millis) -> Result<Vec<CallRow>>;

    /// Returns the parts of the owner's graph, in order.
    async fn commit_graph(&self, scope: &Scope) -> Result<Vec<GraphRow>>;

    /// Returns up to `limit` living commits of the owner with their authors, the last stored commit first. If `before`
    /// is `Some`, the list begins with the commit that was stored before `before`.
    async fn commit_authors(
        &self,
        scope: &Scope,
        before: Option<MemoryKey>,
        limit: usize,
    ) -> Result<Vec<AuthorRow>>;
}

/// Records the links of commits with sessions.
#[async_trait]
pub trait WriteCommits: Send + Sync {
    /// Replaces the links of each commit by the given links, of which the likeliest must come first. Links of commits
    /// or sessions that have been purged are ignored. Links with a confidence below one half are ignored too: a trigger
    /// of the schema drops them (`migrations/0007_weak_links.sql`).
    async fn link_commits(&self, scope: &Scope, links: Vec<CommitLinks>) -> Result<()>;

    /// Stores which of `commits` were replaced, for example by an amendment. `replaced` has pairs of an old and a new
    /// commit; a reference from the new to the old commit is stored. Before, earlier replacements of `commits` are
    /// removed. If `among` is `Some`, only replacements by a commit in `among` are removed.
    async fn replace_commits(
        &self,
        scope: &Scope,
        commits: Vec<MemoryKey>,
        among: Option<HashSet<MemoryKey>>,
        replaced: Vec<(MemoryKey, MemoryKey)>,
    ) -> Result<()>;

    /// Adds a part to the graph. The part must continue the last part, or begin the graph of another history. Any other
    /// part is not added, and the result is `false`. For example, another process may have added a part since the graph
    /// was read.
    async fn add_to_commit_graph(&self, scope: &Scope, part: GraphRow) -> Result<bool>;

    /// Changes the authors of commits, and indexes the commits under the new names.
    async fn rename_authors(&self, scope: &Scope, renamed: Vec<Renamed>) -> Result<()>;
}
