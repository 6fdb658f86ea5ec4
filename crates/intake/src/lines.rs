//! The origins of the lines of a file, for the side with the memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tiro_base::memory::Millis;

/// The lines whose origins are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinesAsked {
    /// The file, relative to the root of the work tree or absolute.
    pub path: String,
    /// The first and the last line, beginning with 1; `None` for all lines.
    pub lines: Option<(usize, usize)>,
    /// The name of the commit whose version of the file is meant; `None` for the file as it is now.
    pub rev: Option<String>,
    /// The time that reading the history may take; `None` for as long as it takes.
    pub patience: Option<Duration>,
}

/// The origins of lines of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineOrigins {
    /// The path of the file in the repository.
    pub path: String,
    /// The number of lines of the whole file.
    pub count: usize,
    /// The runs of lines in order. Together they are the lines that were asked for.
    pub runs: Vec<LineRun>,
    /// The hashes of the lines before and after the lines that were asked for, as in [`LineRun`]. A line such as `}` is
    /// known by its neighbours.
    #[serde(default)]
    pub around: Vec<u32>,
    /// The commits that the runs name, by their ids.
    pub commits: BTreeMap<String, OriginCommit>,
    /// What is missing, and why; each a sentence without a full stop.
    pub notices: Vec<String>,
}

/// A run of lines with one origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRun {
    /// The lines, beginning with 1.
    pub lines: Range<usize>,
    /// Where they came from.
    pub origin: LineOrigin,
    /// The path that the file had in the commit.
    pub path: String,
    /// The beginning of the lines, redacted. The words in it tell what was said about the lines.
    pub text: String,
    /// The hash of each line, as tool calls record the lines that they write; `None` for a line that says too little.
    pub hashes: Vec<Option<u32>>,
}

/// Where lines came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LineOrigin {
    /// The commit with this id wrote them.
    Commit(String),
    /// They are at least as old as the commit with this id, at which a shallow history ends.
    Boundary(String),
    /// They are not committed yet.
    Uncommitted,
    /// It was not found in time, or an object could not be read.
    Unknown,
}

impl LineOrigin {
    /// Returns the id of the commit, if the origin has one.
    pub fn commit(&self) -> Option<&str> {
        match self {
            LineOrigin::Commit(sha) | LineOrigin::Boundary(sha) => Some(sha),
            LineOrigin::Uncommitted | LineOrigin::Unknown => None,
        }
    }
}

/// A commit that wrote lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginCommit {
    /// The author's name.
    pub author: String,
    /// When the author wrote it.
    pub time: Millis,
    /// The message, redacted.
    pub message: String,
    /// Whether its first parent has no such file; `false` if that was not looked up in time.
    #[serde(default)]
    pub makes_file: bool,
}
