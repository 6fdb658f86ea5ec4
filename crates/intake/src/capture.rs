//! Questions of the side with the memory to the side with the user's files.

use async_trait::async_trait;

use crate::lines::{LineOrigins, LinesAsked};
use tiro_base::error::Result;
use tiro_base::memory::{Group, Kind, Memory, Millis};
use tiro_text::words::CodeNames;

/// The side that has the files of a project: its transcripts, its repository, and the references that hooks left. A
/// capture is asked for news before a question is answered, and for the freshness of the hits in the answer.
#[async_trait]
pub trait Capture: Send + Sync {
    /// Imports new messages of transcripts and new commits, within a limited time. Returns notices that say what may be
    /// missing from the answer, and why. An error becomes a notice, and the question is answered from the memories
    /// stored so far.
    async fn catch_up(&self) -> Vec<String>;

    /// Returns the standing of each subject, in the order of `subjects`. A standing is unknown if there is no time to
    /// find it out.
    async fn standing(&self, subjects: Vec<Subject>) -> Vec<Standing>;

    /// Returns the id of the commit that is checked out, on which the standings depend; `None` if there is none.
    async fn checked_out(&self) -> Option<String>;

    /// Returns the origins of lines of a file.
    ///
    /// # Errors
    ///
    /// [`BadInput`](tiro_base::error::Kind::BadInput) if the path policy refuses the file, or if it has no such lines.
    /// [`NotFound`](tiro_base::error::Kind::NotFound) if there is no repository, or no such file or commit.
    async fn line_origins(&self, asked: LinesAsked) -> Result<LineOrigins>;
}

/// Whether the commit or file that a memory refers to is still as it was when the memory was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Nothing is known to have changed.
    Current,
    /// The content of the file has changed.
    FileChanged,
    /// The commit is not on the branch that is checked out, but on another branch.
    OtherBranch,
    /// The commit is on no branch.
    CommitGone,
    /// A file or an identifier that the memory names is not in the code any more.
    Gone,
    /// Reading git took too long, or failed.
    Unknown,
}

/// The place where git keeps a commit that is on no branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// A reflog leads to the commit, so git keeps it until the reflog's entry expires.
    InReflog,
    /// Nothing in git leads to the commit, so git's next garbage collection may remove it.
    Unnamed,
    /// The commit is not in the repository.
    Removed,
}

impl Gone {
    /// Returns the word that answers show.
    pub fn as_str(self) -> &'static str {
        match self {
            Gone::InReflog => "in_reflog",
            Gone::Unnamed => "unnamed",
            Gone::Removed => "removed",
        }
    }
}

impl Freshness {
    /// Returns the word that answers show.
    pub fn as_str(self) -> &'static str {
        match self {
            Freshness::Current => "current",
            Freshness::FileChanged => "file_changed",
            Freshness::OtherBranch => "other_branch",
            Freshness::CommitGone => "commit_gone",
            Freshness::Gone => "gone",
            Freshness::Unknown => "unknown",
        }
    }
}

/// The commits, the file and the names of code that a memory refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// For a commit, its ids. For any other memory, the id of the commit that was checked out when the memory was made.
    pub made_at: Vec<String>,
    /// The file.
    pub path: Option<String>,
    /// The id of the content that `path` had; for a document.
    pub blob: Option<String>,
    /// The files and identifiers that a note names.
    pub names: CodeNames,
    /// When the memory was made.
    pub time: Millis,
}

impl Subject {
    /// Returns the subject of `memory`. If `memory` is a commit, `commit_ids` are the ids by which git may know it.
    pub fn of(memory: &Memory, commit_ids: &[String]) -> Subject {
        let is_commit = memory.kind == Kind::Commit;
        let shas = if is_commit { commit_ids } else { memory.head_sha.as_slice() };
        let names = match memory.kind.group() {
            Group::Note => CodeNames::of(&memory.text),
            _ => CodeNames::default(),
        };
        let path = memory.path.clone().filter(|_| !is_commit);
        let blob = memory.source_id.clone().filter(|_| memory.kind == Kind::Document);
        Subject { made_at: shas.to_vec(), path, blob, names, time: memory.time }
    }
}

/// The freshness of a subject, and the place where git has its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whether the subject is still as it was.
    pub freshness: Freshness,
    /// The commit of the subject that is checked out now, or is an ancestor of the checked-out commit, if there is one.
    pub reached: Option<String>,
    /// The place where git keeps a commit that is on no branch.
    pub gone: Option<Gone>,
    /// The named files and identifiers because of which the memory is not current.
    pub names: Vec<String>,
}

impl Standing {
    /// The standing of a subject that names neither commits nor code.
    pub const CURRENT: Standing = Standing::only(Freshness::Current);

    /// The standing of a subject if git could not be read, or could not be read in time.
    pub const UNKNOWN: Standing = Standing::only(Freshness::Unknown);

    /// Returns a standing of which nothing more is known than `freshness`.
    pub const fn only(freshness: Freshness) -> Standing {
        Standing { freshness, reached: None, gone: None, names: Vec::new() }
    }
}
