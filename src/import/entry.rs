//! The vocabulary of transcripts: entries, what is known of a session, and the parts of a line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::evidence::Written;
use super::gist;
use crate::memory::{Millis, Role};

/// An entry of a session: a message or a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Identifies the entry within the session, and stays the same when the line is read again. A forked session has
    /// entries with the same key.
    pub key: String,
    /// The author.
    pub role: Role,
    /// The name of the tool or the sub-agent.
    pub speaker: Option<String>,
    /// The text; for a tool call its arguments in short, its outcome, and a part of its output.
    pub text: String,
    /// When it was written, according to the client.
    pub time: Option<Millis>,
    /// A lower bound of the time: the time itself, or the last known time before it; `None` if there is none.
    pub since: Option<Millis>,
    /// An upper bound of the time: the time itself, the time of a tool's result, or the next known time; `None` if
    /// there is none.
    pub until: Option<Millis>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// The working directory.
    pub worktree: Option<String>,
    /// Files that a tool call read or changed, as it named them.
    pub files: Vec<String>,
    /// The files that the call changed; empty if it failed.
    pub written: Vec<Written>,
    /// Abbreviated ids of the commits that the call made, as git printed them; `None` if it made no commit.
    pub commits: Option<Vec<String>>,
    /// Whether it is the client's own summary of the conversation so far.
    pub is_summary: bool,
    /// Whether it belongs to a sub-agent's conversation, whose user is another agent.
    pub is_subagent: bool,
    /// A hash that is equal for tool calls that differ only in times, counts and temporary paths.
    pub fingerprint: Option<u64>,
}

/// What is known of the session so far. Needed to continue reading in the middle of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The client's id of the session.
    pub session: Option<String>,
    /// Ids of sessions that it resumes, forks or belongs to.
    pub aliases: Vec<String>,
    /// The working directory at the last line that was read.
    pub worktree: Option<String>,
    /// The branch at the last line that was read.
    pub branch: Option<String>,
    /// The title that the client or the user gave it.
    pub title: Option<String>,
    /// Whether it is the session of a sub-agent.
    pub is_subagent: bool,
    /// The last known time of an entry.
    pub last: Option<Millis>,
}

/// Numbers of lines, by what was done with them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Lines that were read.
    pub lines: usize,
    /// Lines that are not a JSON object.
    pub unreadable: usize,
    /// Lines that were too long to be read.
    pub cut: usize,
    /// Known lines and parts that are not worth remembering, by type.
    pub skipped: BTreeMap<String, usize>,
    /// Unknown lines and parts, by type.
    pub unknown: BTreeMap<String, usize>,
    /// Private passages that were replaced.
    pub private: usize,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Outcome {
    Ok,
    Failed,
    /// The client doesn't report it.
    Unknown,
}

/// A part of a line.
pub(in crate::import) enum Part<'a> {
    /// A text of the user or the assistant.
    Text { role: Role, text: Cow<'a, str>, is_summary: bool },
    /// The start of a tool call.
    Call { id: Cow<'a, str>, tool: Cow<'a, str>, arguments: gist::Arguments<'a> },
    /// The result of a tool call, with files that the call changed but does not name in its arguments.
    Result { id: Cow<'a, str>, outcome: Outcome, output: Cow<'a, str>, changed: Vec<String> },
}

/// A line of the transcript: its parts, and what they have in common.
#[derive(Default)]
pub(in crate::import) struct Line<'a> {
    pub(in crate::import) key: Option<Cow<'a, str>>,
    pub(in crate::import) time: Option<Millis>,
    pub(in crate::import) is_subagent: bool,
    /// The name of the sub-agent that wrote it.
    pub(in crate::import) speaker: Option<Cow<'a, str>>,
    pub(in crate::import) parts: Vec<Part<'a>>,
}

impl About {
    /// Adds the id of another session that this one resumes, forks or belongs to.
    pub(in crate::import) fn add_alias(&mut self, id: &str) {
        if self.session.as_deref() != Some(id) && self.aliases.iter().all(|known| known != id) {
            self.aliases.push(id.to_owned());
        }
    }
}

/// Parses an RFC 3339 time; returns `None` outside the years 1 to 9999.
pub(in crate::import) fn time(text: Option<Cow<'_, str>>) -> Option<Millis> {
    let time = text?.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    // The years 1 to 9999, which can be printed.
    (-62_135_596_800_000..253_402_300_800_000).contains(&time).then_some(time)
}
