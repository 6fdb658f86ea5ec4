//! The types that describe transcripts: entries, what is known of a session, and the parts of a line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::evidence::WrittenFile;
use super::gist;
use tiro_base::memory::{Millis, Role};
use tiro_base::times;

/// An entry of a session: a message or a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptEntry {
    /// Identifies the entry within the session. The key stays the same when the line is read again, and a forked
    /// session's copy of the line has the same key.
    pub key: String,
    /// The role of the author.
    pub role: Role,
    /// The name of the tool or the sub-agent that the entry comes from; `None` for the user and the main assistant.
    pub speaker: Option<String>,
    /// The text. For a tool call, this is its shortened arguments, its outcome, and an excerpt of its output.
    pub text: String,
    /// When the entry was written, according to the client.
    pub time: Option<Millis>,
    /// The earliest time at which the entry can have been written. This is its own time, if known, otherwise the last
    /// known time before it. `None` if neither is known.
    pub since: Option<Millis>,
    /// The latest time at which the entry can have been written. This is its own time, if known, otherwise the next
    /// known time. For a tool call, it is the time of its result. `None` if no such time is known.
    pub until: Option<Millis>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// The working directory.
    pub worktree: Option<String>,
    /// The files that a tool call read or changed, named as in the call.
    pub files: Vec<String>,
    /// The files that the call changed; empty if the call failed.
    pub written: Vec<WrittenFile>,
    /// The abbreviated ids of the commits that the call made, as git printed them; empty if git printed none. `None`
    /// if the call made no commit.
    pub commits: Option<Vec<String>>,
    /// Whether the entry is the client's summary of the conversation so far.
    pub is_summary: bool,
    /// Whether the entry belongs to a sub-agent's conversation, in which the user is another agent.
    pub is_subagent: bool,
    /// For a tool call, a hash that is equal for calls that differ only in times, counts and temporary paths.
    pub fingerprint: Option<u64>,
    /// The entry of another session that this one copies, according to the client.
    pub copy_of: Option<CopyOf>,
}

/// The client's information about a copied entry. The entry itself has the key of the original.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyOf {
    /// The client's id of the original session.
    pub session: String,
    /// The copy's own id. If this copy is copied again, the new copy names this id.
    pub own: Option<String>,
}

/// Information about a session that begins with a copy of another session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    /// The client's id of the original session.
    pub from: String,
    /// When the copy was made.
    pub at: Option<Millis>,
}

/// The information about the session so far. It is needed to continue reading in the middle of a file.
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
    /// Whether a script ran the session, without a user at the terminal.
    pub is_headless: bool,
    /// When the session began, if the client says so.
    pub began: Option<Millis>,
    /// The session that was copied to the beginning of this session, if the client doesn't mark the copied entries.
    pub forked: Option<Forked>,
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
    /// Lines that are too long or unfinished, so that they were read without their long texts or without their end.
    pub shortened: usize,
    /// Lines that were read with some of their characters replaced.
    pub replaced: usize,
    /// Known lines and parts that are not worth remembering, by type.
    pub skipped: BTreeMap<String, usize>,
    /// Lines and parts of unknown types, by type.
    pub unknown: BTreeMap<String, usize>,
    /// Private passages that were replaced.
    pub private: usize,
    /// How often the client compacted the conversation, according to the lines.
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

/// A line of the transcript: its parts, and the properties that the parts share.
#[derive(Default)]
pub(in crate::import) struct Line<'a> {
    pub(in crate::import) key: Option<Cow<'a, str>>,
    pub(in crate::import) time: Option<Millis>,
    pub(in crate::import) is_subagent: bool,
    /// The name of the sub-agent that wrote the line.
    pub(in crate::import) speaker: Option<Cow<'a, str>>,
    /// The entry of another session that the line copies.
    pub(in crate::import) copy_of: Option<CopyOf>,
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

/// The least number that counts as a time in seconds since 1970. Numbers from the second constant on are milliseconds.
const SECONDS: f64 = 1e8;
const MILLISECONDS: f64 = 1e11;

/// Parses a time. The text may be in RFC 3339, a date and time without an offset (taken as UTC), or a number of seconds
/// or milliseconds since 1970. Returns `None` for any other text, and for times that can't be printed.
pub(in crate::import) fn time(text: Option<Cow<'_, str>>) -> Option<Millis> {
    let text = text?;
    if let Ok(time) = times::parse_time_in_utc("timestamp", &text) {
        return Some(time);
    }
    let number: f64 = text.trim().parse().ok().filter(|number| *number >= SECONDS)?;
    let millis = if number < MILLISECONDS { number * 1000.0 } else { number };
    // The end of the year 9999.
    (millis < 253_402_300_800_000.0).then_some(millis as Millis)
}
