//! The vocabulary of transcripts: entries, what is known of a session, and the parts of a line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::evidence::Written;
use super::gist;
use crate::memory::{Millis, Role};

/// One thing that was said or done in a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Names it within the session, the same whenever the line is read; a session forked from this one has it too.
    pub key: String,
    /// Who speaks.
    pub role: Role,
    /// The tool's name.
    pub speaker: Option<String>,
    /// The text; of a tool call the gist of its arguments, how it ended, and a piece of its output.
    pub text: String,
    /// When, as the client noted it.
    pub time: Option<Millis>,
    /// After when: the time, or the last one that is known before; `None` where none is.
    pub since: Option<Millis>,
    /// Before when: the time, that of a tool's answer, or the next one that is known; `None` where none is.
    pub until: Option<Millis>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// The working directory.
    pub worktree: Option<String>,
    /// Files that a tool call read or changed, as the call named them.
    pub files: Vec<String>,
    /// The files that it changed; none where it failed.
    pub written: Vec<Written>,
    /// The beginnings of the ids of the commits that it made, as git printed them; `None` where it made none.
    pub commits: Option<Vec<String>>,
    /// Whether it is the client's own summary of what went before.
    pub is_summary: bool,
    /// Whether a sub-agent's conversation has it; the user there is another agent.
    pub is_subagent: bool,
    /// Equal for tool calls that say the same but for times, counts and temporary paths.
    pub fingerprint: Option<u64>,
}

/// What is known of the session so far; given back to go on reading in the middle of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// The client's id of it.
    pub session: Option<String>,
    /// Ids of the sessions that it resumes, forks or belongs to.
    pub aliases: Vec<String>,
    /// Where it works, at the last line read.
    pub worktree: Option<String>,
    /// What is checked out there, at the last line read.
    pub branch: Option<String>,
    /// What the client or the user calls it.
    pub title: Option<String>,
    /// Whether it is a sub-agent's.
    pub is_subagent: bool,
    /// The last time that is known of what was read.
    pub last: Option<Millis>,
}

/// What became of the lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Lines read.
    pub lines: usize,
    /// Lines that are no JSON object.
    pub unreadable: usize,
    /// Lines longer than the caller reads.
    pub cut: usize,
    /// What is known and not worth remembering, by type.
    pub skipped: BTreeMap<String, usize>,
    /// What is not known, by type.
    pub unknown: BTreeMap<String, usize>,
    /// Private passages taken out.
    pub private: usize,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::import) enum Outcome {
    Ok,
    Failed,
    /// The client doesn't say.
    Unknown,
}

/// A piece of a line, as a format understands it.
pub(in crate::import) enum Part<'a> {
    /// Somebody speaks.
    Text { role: Role, text: Cow<'a, str>, is_summary: bool },
    /// A tool is called.
    Call { id: Cow<'a, str>, tool: Cow<'a, str>, arguments: gist::Arguments<'a> },
    /// A call has ended, and changed files that its arguments don't name.
    Result { id: Cow<'a, str>, outcome: Outcome, output: Cow<'a, str>, changed: Vec<String> },
}

/// What the parts of a line have in common.
#[derive(Default)]
pub(in crate::import) struct Line<'a> {
    pub(in crate::import) key: Option<Cow<'a, str>>,
    pub(in crate::import) time: Option<Millis>,
    pub(in crate::import) is_subagent: bool,
    /// The name of who speaks, where it says more than the role.
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

/// Returns the time that RFC 3339 `text` is, unless it is beyond the calendar.
pub(in crate::import) fn time(text: Option<Cow<'_, str>>) -> Option<Millis> {
    let time = text?.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    // The years 1 to 9999, as far as times are shown.
    (-62_135_596_800_000..253_402_300_800_000).contains(&time).then_some(time)
}
