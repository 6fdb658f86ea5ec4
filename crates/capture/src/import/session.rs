//! Follows a session through the lines of its transcript and returns its entries.
//!
//! The modules in `formats` parse each line. The steps that are the same for all formats are here. Private passages and
//! blobs are removed, and repeats are dropped. A tool call waits for its result. An entry without a time is held back
//! until a later time is read.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::clean::{self, Private};
use super::entry::{About, Counts, Line, Outcome, Part, TranscriptEntry};
use super::evidence::{self, WrittenFile};
use super::fingerprint::fingerprint;
use super::gist::dialogs::{self, Question};
use super::gist::{self, Arguments, Gist, Shape};
use tiro_base::memory::{Millis, Role};

/// The maximum number of types of lines that are counted by name. A file that is no transcript can have another type
/// on every line.
const NAMED_TYPES: usize = 64;

/// The number of prompts after which a call that still has no result is closed. While a call runs, a user may type one
/// prompt, but hardly three.
const PROMPTS_WAITED: u8 = 3;

/// The maximum number of calls that may wait for a result at the same time. A client makes fewer calls in parallel.
const MOST_OPEN: usize = 256;

/// The maximum number of entries that are held back until a later time is read, and the maximum number of bytes of
/// their texts.
const MOST_HELD: usize = 64;
const BYTES_HELD: usize = 1024 * 1024;

/// The maximum number of bytes of a key, a tool's name or a path. Longer names mean nothing to a reader, but would be
/// stored with each entry.
const LONGEST_NAME: usize = 512;

/// A call whose result is not read yet.
struct Open {
    id: String,
    at: u64,
    prompts: u8,
    shape: Shape,
    command: Option<String>,
    /// The questions that the call asks the user.
    questions: Vec<Question>,
    private: Private,
    entry: TranscriptEntry,
}

/// The state of a session while its transcript is read.
pub(super) struct Session {
    /// Whether the client writes a message again as a new line after the message has grown. The new line has the time
    /// of the message's first line.
    rewrites: bool,
    about: About,
    counts: Counts,
    /// The byte at which the current line begins.
    at: u64,
    open: Vec<Open>,
    /// The keys of entries that were already returned. Some clients write a message again, with the same key, after it
    /// has grown.
    seen: HashSet<String>,
    /// The latest time read so far.
    latest: Option<Millis>,
    /// Entries that are held back, each with the byte at which its line begins.
    held: Vec<(u64, TranscriptEntry)>,
    /// Titles that came before the lines that they are about, by the key of such a line.
    offered: HashMap<String, String>,
}

impl Session {
    /// Returns the state described by `about`. `rewrites` says whether the client writes a message again as a new line
    /// after the message has grown.
    pub fn new(about: About, rewrites: bool) -> Session {
        Session {
            rewrites,
            latest: about.last,
            about,
            counts: Counts::default(),
            at: 0,
            open: Vec::new(),
            seen: HashSet::new(),
            held: Vec::new(),
            offered: HashMap::new(),
        }
    }

    /// Begins the line that starts at byte `at`.
    pub fn begin_line(&mut self, at: u64) {
        self.at = at;
        self.counts.lines += 1;
    }

    /// Counts a line that is not a JSON object.
    pub fn unreadable(&mut self) {
        self.counts.unreadable += 1;
    }

    /// Derives the keys of the following entries from the byte `at`, not from the byte at which the line begins.
    pub fn move_to(&mut self, at: u64) {
        self.at = at;
    }

    /// Counts a line in which unreadable characters were replaced.
    pub fn replaced(&mut self) {
        self.counts.replaced += 1;
    }

    /// Counts a line that is too long, so that its long texts were left out.
    pub fn shortened(&mut self) {
        self.counts.shortened += 1;
    }

    /// Counts a line that is too long to be read. If the beginning of the line contains the id of an open call, closes
    /// this call.
    pub fn cut(&mut self, start: &str, bytes: u64) {
        self.counts.cut += 1;
        while let Some(place) = self.open.iter().position(|open| start.contains(&open.id)) {
            let open = self.open.remove(place);
            self.settle(open, &format!("[a line of {bytes} bytes, not read]"), "");
        }
    }

    /// Closes all calls that still wait for a result.
    pub fn give_up_calls(&mut self) {
        for open in std::mem::take(&mut self.open) {
            self.give_up(open);
        }
    }

    /// Returns the byte at which the next reading must begin: the beginning of the first line whose call has no result
    /// yet, or whose entry is held back. Returns `None` if there is no such line.
    pub fn open_from(&self) -> Option<u64> {
        self.unsettled().map(|(at, _)| at).min()
    }

    /// Returns the last known time before the byte at which the next reading must begin.
    pub fn known_before(&self) -> Option<Millis> {
        // An unknown time, `None`, counts as less than any known time.
        self.unsettled().map(|(_, entry)| entry.since).min().unwrap_or(self.about.last)
    }

    fn unsettled(&self) -> impl Iterator<Item = (u64, &TranscriptEntry)> {
        let open = self.open.iter().map(|open| (open.at, &open.entry));
        open.chain(self.held.iter().map(|(at, entry)| (*at, entry)))
    }

    /// Returns the entries that are held back. Call this when the file has no more lines.
    pub fn rest(&mut self) -> Vec<TranscriptEntry> {
        self.held.drain(..).map(|(_, entry)| entry).collect()
    }

    /// Returns the entries that need not be held back any longer.
    pub fn settled(&mut self) -> Vec<TranscriptEntry> {
        let held = self.held.iter().position(|(_, entry)| entry.until.is_none()).unwrap_or(self.held.len());
        let bytes: usize = self.held[held..].iter().map(|(_, entry)| entry.text.len()).sum();
        let is_full = self.held.len() - held > MOST_HELD || bytes > BYTES_HELD;
        let settled = if is_full { self.held.len() } else { held };
        self.held.drain(..settled).map(|(_, entry)| entry).collect()
    }

    /// Returns what is known about the session so far.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Returns how many lines were read so far, and how many were left out.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns what is known about the session so far, so that the caller can change it.
    pub fn about_mut(&mut self) -> &mut About {
        &mut self.about
    }

    /// Counts a line or part of the type `kind`, which is known and not worth remembering.
    pub fn skip(&mut self, kind: &str) {
        count(&mut self.counts.skipped, kind);
    }

    /// Counts a line or part whose type `kind` is unknown.
    pub fn unknown(&mut self, kind: Option<&str>) {
        count(&mut self.counts.unknown, kind.unwrap_or("without a type"));
    }

    /// Sets the title as soon as the line with the key `of` is read. The title of another session is never set.
    pub fn offer_title(&mut self, title: String, of: String) {
        self.offered.insert(of, title);
    }

    /// Counts a line by which the client shows that it compacted the conversation.
    pub fn compacted(&mut self) {
        self.counts.compactions += 1;
    }

    /// Adds the parts of a line.
    pub fn add_line(&mut self, line: Line<'_>) {
        let is_again = self.rewrites && line.time < self.latest;
        if let Some(title) = line.key.as_deref().and_then(|key| self.offered.remove(key)) {
            self.about.title = Some(title);
        }
        if let Some(time) = line.time {
            if Some(time) > self.latest {
                let held = self.held.iter_mut().filter(|(_, entry)| entry.until.is_none());
                held.for_each(|(_, entry)| entry.until = Some(time));
                self.latest = Some(time);
            }
            self.about.last = Some(time);
        }
        let mut private = Private::default();
        for part in &line.parts {
            if let Part::Text { text, .. } | Part::Result { output: text, .. } = part {
                private.note(text);
            }
        }
        let context = TranscriptEntry { copy_of: line.copy_of, ..self.context(line.time, line.is_subagent) };
        for part in line.parts {
            match part {
                Part::Text { role, text, is_summary } => {
                    let text = clean::readable(private.strip(text)).trim().to_owned();
                    let key = line.key.as_deref().map_or_else(|| format!("at:{}", self.at), str::to_owned);
                    let speaker = line.speaker.as_deref().map(str::to_owned);
                    self.add_text(TranscriptEntry {
                        key,
                        role,
                        speaker,
                        text,
                        is_summary,
                        ..context.clone()
                    });
                }
                Part::Call { id, tool, arguments } => {
                    self.open_call(id.into_owned(), &tool, &arguments, private.for_call(), context.clone());
                }
                Part::Result { id, outcome, output, changed } => {
                    let time = line.time.filter(|_| !is_again);
                    self.close_call(&id, outcome, output, changed, &mut private, time);
                }
            }
        }
        self.counts.private += private.replaced;
    }

    fn add_text(&mut self, entry: TranscriptEntry) {
        if entry.text.is_empty() {
            return self.skip("empty");
        }
        if entry.role == Role::User {
            self.count_prompt();
        }
        self.emit(self.at, entry);
    }

    /// Starts a tool call. Its entry is returned once its result is read.
    fn open_call(
        &mut self,
        id: String,
        tool: &str,
        arguments: &Arguments<'_>,
        mut private: Private,
        context: TranscriptEntry,
    ) {
        let tool = &tool[..tool.floor_char_boundary(LONGEST_NAME)];
        if self.seen.contains(&id) || self.open.iter().any(|open| open.id == id) {
            return;
        }
        if gist::is_own(tool) {
            // Questions to Tiro are not remembered: a stored question would be the best hit whenever the same
            // question is asked again.
            self.seen.insert(id);
            return self.skip("asking Tiro");
        }
        let Gist { text, files, shape, plan, questions } = gist::gist(tool, arguments, &mut private);
        if let Some(text) = plan {
            let key = format!("plan:{id}");
            self.emit(self.at, TranscriptEntry { key, role: Role::Assistant, text, ..context.clone() });
        }
        let written = evidence::written(arguments, &files, shape);
        let command = evidence::command(arguments);
        let entry = TranscriptEntry {
            key: id.clone(),
            speaker: Some(tool.to_owned()),
            text,
            files,
            written,
            ..context
        };
        if self.open.len() == MOST_OPEN {
            let first = self.open.remove(0);
            self.give_up(first);
        }
        self.open.push(Open { id, at: self.at, prompts: 0, shape, command, questions, private, entry });
    }

    /// Returns an entry without text that has the given time, and the current folder and branch of the session.
    fn context(&self, time: Option<Millis>, is_subagent: bool) -> TranscriptEntry {
        TranscriptEntry {
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
            copy_of: None,
        }
    }

    fn close_call(
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
                self.unknown(Some("result without a call"));
            }
            return;
        };
        let mut open = self.open.remove(place);
        // If the line with the result has the same time as the earlier line with the call, both are the same message,
        // which was written again after the result came. Then the line's time doesn't show when the call ended.
        let is_again = self.rewrites && open.at != self.at && time == open.entry.time;
        open.entry.until = time.filter(|_| !is_again);
        open.entry.written.retain(|_| outcome != Outcome::Failed);
        open.entry
            .written
            .extend(changed.iter().map(|path| WrittenFile { path: path.clone(), ..WrittenFile::default() }));
        open.entry.files.extend(changed);
        let command = open.command.as_deref().filter(|_| outcome != Outcome::Failed);
        open.entry.commits = command.and_then(|command| evidence::commits(command, &output));
        let ended = match outcome {
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
            Outcome::Unknown => "answered",
        };
        // The output of a successful edit only repeats the file, that of a to-do list says nothing, and Tiro's answers
        // consist of stored memories. So none of them is kept.
        let shown = match open.shape {
            Shape::Own => None,
            Shape::Edit | Shape::List if outcome != Outcome::Failed => None,
            Shape::Read if outcome != Outcome::Failed => Some(gist::EXCERPT_OF_FILE),
            _ => Some(gist::EXCERPT),
        };
        let output = dialogs::answered(&open.questions, &output).map_or(output, Cow::Owned);
        let excerpt = shown.map(|most| {
            let output = open.private.strip(private.strip(output));
            gist::excerpt(&output, most)
        });
        self.settle(open, ended, &excerpt.unwrap_or_default());
    }

    fn settle(&mut self, open: Open, ended: &str, excerpt: &str) {
        self.counts.private += open.private.replaced;
        let mut entry = open.entry;
        entry.fingerprint = Some(fingerprint(&entry.text, &format!("{ended} {excerpt}")));
        let colon = if excerpt.is_empty() { "" } else { ":\n" };
        entry.text = format!("{}\n{ended}{colon}{excerpt}", entry.text);
        self.emit(open.at, entry);
    }

    fn give_up(&mut self, open: Open) {
        self.settle(open, "no outcome recorded", "");
    }

    /// Counts a prompt, and closes calls that still have no result after several prompts. Otherwise every later reading
    /// would have to begin at such a call.
    fn count_prompt(&mut self) {
        for open in &mut self.open {
            open.prompts += 1;
        }
        while let Some(place) = self.open.iter().position(|open| open.prompts >= PROMPTS_WAITED) {
            let open = self.open.remove(place);
            self.give_up(open);
        }
    }

    fn emit(&mut self, at: u64, mut entry: TranscriptEntry) {
        if entry.key.len() > LONGEST_NAME {
            entry.key = format!("hash:{}", blake3::hash(entry.key.as_bytes()).to_hex());
        }
        entry.files.retain(|path| path.len() <= LONGEST_NAME);
        entry.written.retain(|written| written.path.len() <= LONGEST_NAME);
        if self.seen.insert(entry.key.clone()) {
            self.held.push((at, entry));
        } else {
            self.skip("repeated");
        }
    }
}

fn count(counts: &mut BTreeMap<String, usize>, kind: &str) {
    let kind: String = kind.chars().filter(|c| !c.is_control()).take(40).collect();
    let is_room = counts.len() < NAMED_TYPES || counts.contains_key(&kind);
    *counts.entry(if is_room { kind } else { "other".to_owned() }).or_default() += 1;
}
