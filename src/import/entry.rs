//! The types that describe transcripts: entries, what is known of a session, and the parts of a line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::evidence::Written;
use super::gist;
use crate::memory::{Millis, Role};

/// An entry of a session: a message or a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Identifies the entry within the session. It is the same when the line is read again, and in a forked session's
    /// copy of the line.
    pub key: String,
    /// The author.
    pub role: Role,
    /// The name of the tool or the sub-agent that the entry comes from; `None` for the user and the main assistant.
    pub speaker: Option<String>,
    /// The text. For a tool call, this is its shortened arguments, its outcome, and an excerpt of its output.
    pub text: String,
    /// When the entry was written, according to the client.
    pub time: Option<Millis>,
    /// The earliest time at which the entry can have been written: its time if known, otherwise the last known time
    /// before it. `None` if neither is known.
    pub since: Option<Millis>,
    /// The latest time at which the entry can have been written: its time if known, otherwise the next known time. For
    /// a tool call, it is the time of its result. `None` if no such time is known.
    pub until: Option<Millis>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// The working directory.
    pub worktree: Option<String>,
    /// Files that a tool call read or changed, as the call names them.
    pub files: Vec<String>,
    /// The files that the call changed; empty if it failed.
    pub written: Vec<Written>,
    /// The abbreviated ids of the commits that the call made, as git printed them; empty if git printed none. `None`
    /// if the call made no commit.
    pub commits: Option<Vec<String>>,
    /// Whether the entry is the client's summary of the conversation so far.
    pub is_summary: bool,
    /// Whether the entry belongs to a sub-agent's conversation, in which the user is another agent.
    pub is_subagent: bool,
    /// For a tool call, a hash that is equal for calls that differ only in times, counts and temporary paths.
    pub fingerprint: Option<u64>,
}

/// What is known of the session so far. It is needed to continue reading in the middle of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The client's id of the session.
    pub session: Option<String>,
    /// The ids of other sessions that this one resumes, forks or belongs to.
    pub aliases: Vec<String>,
    /// The working directory at the last line that was read.
    pub worktree: Option<String>,
    /// The branch at the last line that was read.
    pub branch: Option<String>,
    /// The title that the client or the user gave to the session.
    pub title: Option<String>,
    /// Whether this is the session of a sub-agent.
    pub is_subagent: bool,
    /// The time of the last line that has a time.
    pub last: Option<Millis>,
}

/// How many lines were read, and how many were left out, by reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Lines that were read.
    pub lines: usize,
    /// Lines that are not a JSON object.
    pub unreadable: usize,
    /// Lines that are too long to be read.
    pub cut: usize,
    /// Known lines and parts that are not worth remembering, by type.
    pub skipped: BTreeMap<String, usize>,
    /// Lines and parts of unknown types, by type.
    pub unknown: BTreeMap<String, usize>,
    /// Private passages that were replaced.
    pub private: usize,
    /// Lines that show that the client compacted the conversation before them.
    pub compactions: usize,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Outcome {
    Ok,
    Failed,
    /// The client doesn't report how the call ended.
    Unknown,
}

/// A part of a line.
pub(in crate::import) enum Part<'a> {
    /// A text of the user or the assistant.
    Text { role: Role, text: Cow<'a, str>, is_summary: bool },
    /// The start of a tool call.
    Call { id: Cow<'a, str>, tool: Cow<'a, str>, arguments: gist::Arguments<'a> },
    /// The result of a tool call. `changed` are the files that the client reports as changed by the call.
    Result { id: Cow<'a, str>, outcome: Outcome, output: Cow<'a, str>, changed: Vec<String> },
}

/// A line of the transcript: its parts, and what they have in common.
#[derive(Default)]
pub(in crate::import) struct Line<'a> {
    pub(in crate::import) key: Option<Cow<'a, str>>,
    pub(in crate::import) time: Option<Millis>,
    pub(in crate::import) is_subagent: bool,
    /// The name of the sub-agent that wrote the line.
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

/// Parses an RFC 3339 time. Returns `None` if it is invalid or outside the years 1 to 9999.
pub(in crate::import) fn time(text: Option<Cow<'_, str>>) -> Option<Millis> {
    let time = text?.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    // Only times in the years 1 to 9999 can be printed.
    (-62_135_596_800_000..253_402_300_800_000).contains(&time).then_some(time)
}
