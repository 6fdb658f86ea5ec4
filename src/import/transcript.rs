//! Turns the transcripts that clients keep of their sessions into what was said, by whom, when and where.
//!
//! A transcript is one JSON value a line, appended while the session runs. [`Transcript`] is fed line by line, with the
//! place of each in its file, and hands back what is worth remembering: prompts, answers, and one entry for a tool call
//! with the gist of its arguments and a bounded piece of its output. The formats (`claude_code`, `codex`, `gemini`) say
//! which line is what; what all have in common is here: private passages, blobs, repeats, calls that wait for a result.
//!
//! What is remembered is chosen by a list of known types, never by leaving out: a client writes whole prompts, system
//! instructions and hook output into the same file. What is skipped is counted by its type.
//!
//! When something was said is known by its line's time, and where it has none by the lines around it: what comes behind
//! such a line is held back with it until a later time is read ([`Said::since`], [`Said::until`]).
//!
//! Reading again is harmless, because each entry has a key that is the same every time. So a reader that stops with
//! calls open, or with something held back, begins the next time where the first of them stands
//! ([`Transcript::open_from`]).
//!
//! It is not: a reader of files (a path, half a line at the end and the cap on a line's length are the caller's), and no
//! redactor (the write path is).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use super::clean::{self, Private};
use super::evidence::{self, Written};
use super::fields::Fields;
use super::fingerprint::fingerprint;
use super::gist::{self, Gist, Shape};
use super::{claude_code, codex, gemini};
use crate::memory::{Millis, Role};

/// Types of unknown lines that are counted by name; a file that is no transcript has as many as lines.
const NAMED_TYPES: usize = 64;

/// Prompts after which a call without a result is given up; one may be typed while a call runs, more hardly.
const PROMPTS_WAITED: u8 = 3;

/// Calls that are waited for at a time: more than a client makes in parallel.
const MOST_OPEN: usize = 256;

/// Entries, and bytes of their texts, that are held back for a later time.
const MOST_HELD: usize = 64;
const BYTES_HELD: usize = 1024 * 1024;

/// Bytes of a key, of a tool's name or of a path; longer ones are nonsense and would be stored with each entry.
const LONGEST_NAME: usize = 512;

/// Programs whose transcripts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `~/.claude/projects/<folder>/<session>.jsonl`, sub-agents beneath.
    ClaudeCode,
    /// `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`.
    Codex,
    /// `~/.gemini/tmp/<project>/chats/session-*.jsonl`; an older `.json` is one line.
    Gemini,
}

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
pub(super) enum Outcome {
    Ok,
    Failed,
    /// The client doesn't say.
    Unknown,
}

/// A piece of a line, as a format understands it.
pub(super) enum Part<'a> {
    /// Somebody speaks.
    Text { role: Role, text: Cow<'a, str>, is_summary: bool },
    /// A tool is called.
    Call { id: Cow<'a, str>, tool: Cow<'a, str>, arguments: gist::Arguments<'a> },
    /// A call has ended, and changed files that its arguments don't name.
    Result { id: Cow<'a, str>, outcome: Outcome, output: Cow<'a, str>, changed: Vec<String> },
}

/// What the parts of a line have in common.
#[derive(Default)]
pub(super) struct Line<'a> {
    pub(super) key: Option<Cow<'a, str>>,
    pub(super) time: Option<Millis>,
    pub(super) is_subagent: bool,
    /// The name of who speaks, where it says more than the role.
    pub(super) speaker: Option<Cow<'a, str>>,
    pub(super) parts: Vec<Part<'a>>,
}

/// A call whose result is not read yet.
struct Open {
    id: String,
    at: u64,
    prompts: u8,
    shape: Shape,
    command: Option<String>,
    private: Private,
    said: Said,
}

/// Reads a transcript, a line at a time.
pub struct Transcript {
    format: Format,
    about: About,
    counts: Counts,
    at: u64,
    open: Vec<Open>,
    /// Keys that were handed out: some clients write a message again whenever it grows.
    seen: HashSet<String>,
    /// The latest time read so far.
    latest: Option<Millis>,
    /// What was said and not handed out yet, with the place from which it is read again.
    said: Vec<(u64, Said)>,
}

impl Transcript {
    /// Returns a reader that begins at the start of a file, or goes on with what is known of the session.
    pub fn new(format: Format, about: About) -> Transcript {
        Transcript {
            format,
            latest: about.last,
            about,
            counts: Counts::default(),
            at: 0,
            open: Vec::new(),
            seen: HashSet::new(),
            said: Vec::new(),
        }
    }

    /// Reads a whole line that begins `at` bytes into the file; returns what it completes.
    pub fn line(&mut self, at: u64, line: &[u8]) -> Vec<Said> {
        self.at = at;
        self.counts.lines += 1;
        let line = String::from_utf8_lossy(line);
        let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\0' || c == '\u{feff}');
        if line.is_empty() {
            self.skip("empty");
            return Vec::new();
        }
        match Fields::parse(line) {
            Ok(fields) => match self.format {
                Format::ClaudeCode => claude_code::line(self, &fields),
                Format::Codex => codex::line(self, &fields),
                Format::Gemini => gemini::line(self, &fields),
            },
            Err(_) => self.counts.unreadable += 1,
        }
        self.settled()
    }

    /// Notes a line of `bytes` bytes that the caller doesn't read whole; `start` is how it begins.
    ///
    /// Where that shows whose result it is, the call is not waited for.
    pub fn cut(&mut self, at: u64, start: &[u8], bytes: u64) -> Vec<Said> {
        self.at = at;
        self.counts.lines += 1;
        self.counts.cut += 1;
        let start = String::from_utf8_lossy(start);
        while let Some(place) = self.open.iter().position(|open| start.contains(&open.id)) {
            let open = self.open.remove(place);
            self.settle(open, &format!("[a line of {bytes} bytes, not read]"), "");
        }
        self.settled()
    }

    /// Returns where the first line stands whose call has no result yet, or that is held back: where reading must begin
    /// the next time.
    pub fn open_from(&self) -> Option<u64> {
        self.unsettled().map(|(at, _)| at).min()
    }

    /// Returns the last time that is known before the place where reading begins the next time.
    pub fn known_before(&self) -> Option<Millis> {
        // `None` is before all times.
        self.unsettled().map(|(_, said)| said.since).min().unwrap_or(self.about.last)
    }

    fn unsettled(&self) -> impl Iterator<Item = (u64, &Said)> {
        let open = self.open.iter().map(|open| (open.at, &open.said));
        open.chain(self.said.iter().map(|(at, said)| (*at, said)))
    }

    /// Returns what is held back for a later time, where the file has no more lines.
    pub fn rest(&mut self) -> Vec<Said> {
        self.said.drain(..).map(|(_, said)| said).collect()
    }

    /// Returns what need not be held back any longer.
    fn settled(&mut self) -> Vec<Said> {
        let held = self.said.iter().position(|(_, said)| said.until.is_none()).unwrap_or(self.said.len());
        let bytes: usize = self.said[held..].iter().map(|(_, said)| said.text.len()).sum();
        let is_full = self.said.len() - held > MOST_HELD || bytes > BYTES_HELD;
        let settled = if is_full { self.said.len() } else { held };
        self.said.drain(..settled).map(|(_, said)| said).collect()
    }

    /// Returns what is known of the session so far.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns what became of the lines so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Stops waiting for results; returns the calls that have none, and what is held back.
    pub fn finish(&mut self) -> Vec<Said> {
        for open in std::mem::take(&mut self.open) {
            self.give_up(open);
        }
        self.rest()
    }
}

/// What the formats tell.
impl Transcript {
    /// Returns what is known of the session, to be made true.
    pub(super) fn about_mut(&mut self) -> &mut About {
        &mut self.about
    }

    /// Counts something that is known and not worth remembering.
    pub(super) fn skip(&mut self, kind: &str) {
        count(&mut self.counts.skipped, kind);
    }

    /// Counts something that is not known.
    pub(super) fn unknown(&mut self, kind: Option<&str>) {
        count(&mut self.counts.unknown, kind.unwrap_or("without a type"));
    }

    /// Takes in the parts of a line.
    pub(super) fn hear(&mut self, line: Line<'_>) {
        let is_again = self.is_rewritten() && line.time < self.latest;
        if let Some(time) = line.time {
            if Some(time) > self.latest {
                let held = self.said.iter_mut().filter(|(_, said)| said.until.is_none());
                held.for_each(|(_, said)| said.until = Some(time));
                self.latest = Some(time);
            }
            self.about.last = Some(time);
        }
        let mut private = Private::default();
        for part in &line.parts {
            if let Part::Text { text, .. } | Part::Result { output: text, .. } = part {
                private.hear(text);
            }
        }
        for part in line.parts {
            match part {
                Part::Text { role, text, is_summary } => {
                    let text = clean::readable(private.strip(text)).trim().to_owned();
                    if text.is_empty() {
                        self.skip("empty");
                        continue;
                    }
                    if role == Role::User {
                        self.prompted();
                    }
                    let key = line.key.as_deref().map_or_else(|| format!("at:{}", self.at), str::to_owned);
                    let speaker = line.speaker.as_deref().map(str::to_owned);
                    let place = self.place(line.time, line.is_subagent);
                    self.emit(self.at, Said { key, role, speaker, text, is_summary, ..place });
                }
                Part::Call { id, tool, arguments } => {
                    let tool = &tool[..tool.floor_char_boundary(LONGEST_NAME)];
                    if self.seen.contains(id.as_ref()) || self.open.iter().any(|open| open.id == id) {
                        continue;
                    }
                    if gist::is_own(tool) {
                        // What memory was asked for would be found by whoever asks it again, before any answer.
                        self.seen.insert(id.into_owned());
                        self.skip("asking Tiro");
                        continue;
                    }
                    let mut private = private.handed_on();
                    let Gist { text, files, shape } = gist::gist(tool, &arguments, &mut private);
                    let written = evidence::written(&arguments, &files, shape);
                    let command = evidence::command(&arguments);
                    let said = Said {
                        key: id.as_ref().to_owned(),
                        speaker: Some(tool.to_owned()),
                        text,
                        files,
                        written,
                        ..self.place(line.time, line.is_subagent)
                    };
                    let (id, at) = (id.into_owned(), self.at);
                    if self.open.len() == MOST_OPEN {
                        let first = self.open.remove(0);
                        self.give_up(first);
                    }
                    self.open.push(Open { id, at, prompts: 0, shape, command, private, said });
                }
                Part::Result { id, outcome, output, changed } => {
                    let time = line.time.filter(|_| !is_again);
                    self.answered(&id, outcome, output, changed, &mut private, time);
                }
            }
        }
        self.counts.private += private.replaced;
    }

    /// Whether a message is written again, under its first time, when it has grown.
    fn is_rewritten(&self) -> bool {
        self.format == Format::Gemini
    }

    /// Returns something a tool says, still without words, where the session stands.
    fn place(&self, time: Option<Millis>, is_subagent: bool) -> Said {
        Said {
            key: String::new(),
            role: Role::Tool,
            speaker: None,
            text: String::new(),
            time,
            since: time.or(self.about.last),
            until: time,
            branch: self.about.branch.clone(),
            worktree: self.about.worktree.clone(),
            files: Vec::new(),
            written: Vec::new(),
            commits: None,
            is_summary: false,
            is_subagent: is_subagent || self.about.is_subagent,
            fingerprint: None,
        }
    }

    fn answered(
        &mut self,
        id: &str,
        outcome: Outcome,
        output: Cow<'_, str>,
        changed: Vec<String>,
        private: &mut Private,
        time: Option<Millis>,
    ) {
        let Some(place) = self.open.iter().position(|open| open.id == id) else {
            if !self.seen.contains(id) {
                self.skip("result without a call");
            }
            return;
        };
        let mut open = self.open.remove(place);
        // In another line of the same time it is the same message, written again when the answer was there.
        let is_again = self.is_rewritten() && open.at != self.at && time == open.said.time;
        open.said.until = time.filter(|_| !is_again);
        open.said.written.retain(|_| outcome != Outcome::Failed);
        open.said
            .written
            .extend(changed.iter().map(|path| Written { path: path.clone(), ..Written::default() }));
        open.said.files.extend(changed);
        let command = open.command.as_deref().filter(|_| outcome != Outcome::Failed);
        open.said.commits = command.and_then(|command| evidence::commits(command, &output));
        let ended = match outcome {
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
            Outcome::Unknown => "answered",
        };
        // An edit that worked repeats the file, and memory must not remember its own answers.
        let shown = match open.shape {
            Shape::Own => None,
            Shape::Edit if outcome != Outcome::Failed => None,
            Shape::Read if outcome != Outcome::Failed => Some(gist::EXCERPT_OF_FILE),
            _ => Some(gist::EXCERPT),
        };
        let excerpt = shown.map(|most| {
            let output = open.private.strip(private.strip(output));
            gist::excerpt(&output, most)
        });
        self.settle(open, ended, &excerpt.unwrap_or_default());
    }

    fn settle(&mut self, open: Open, ended: &str, excerpt: &str) {
        self.counts.private += open.private.replaced;
        let mut said = open.said;
        said.fingerprint = Some(fingerprint(&said.text, &format!("{ended} {excerpt}")));
        let colon = if excerpt.is_empty() { "" } else { ":\n" };
        said.text = format!("{}\n{ended}{colon}{excerpt}", said.text);
        self.emit(open.at, said);
    }

    fn give_up(&mut self, open: Open) {
        self.settle(open, "no outcome recorded", "");
    }

    /// Gives up calls that too many prompts have followed, so that a reader's place moves on.
    fn prompted(&mut self) {
        for open in &mut self.open {
            open.prompts += 1;
        }
        while let Some(place) = self.open.iter().position(|open| open.prompts >= PROMPTS_WAITED) {
            let open = self.open.remove(place);
            self.give_up(open);
        }
    }

    fn emit(&mut self, at: u64, mut said: Said) {
        if said.key.len() > LONGEST_NAME {
            said.key = format!("hash:{}", blake3::hash(said.key.as_bytes()).to_hex());
        }
        said.files.retain(|path| path.len() <= LONGEST_NAME);
        said.written.retain(|written| written.path.len() <= LONGEST_NAME);
        if self.seen.insert(said.key.clone()) {
            self.said.push((at, said));
        } else {
            self.skip("repeated");
        }
    }
}

/// Returns the time that RFC 3339 `text` is, unless it is beyond the calendar.
pub(super) fn time(text: Option<Cow<'_, str>>) -> Option<Millis> {
    let time = text?.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    // The years 1 to 9999, as far as times are shown.
    (-62_135_596_800_000..253_402_300_800_000).contains(&time).then_some(time)
}

fn count(counts: &mut BTreeMap<String, usize>, kind: &str) {
    let kind: String = kind.chars().filter(|c| !c.is_control()).take(40).collect();
    let is_room = counts.len() < NAMED_TYPES || counts.contains_key(&kind);
    *counts.entry(if is_room { kind } else { "other".to_owned() }).or_default() += 1;
}
