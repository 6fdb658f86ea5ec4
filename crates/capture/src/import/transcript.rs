//! Reads the transcripts that clients write. A transcript records what was said, by whom, when and where.
//!
//! A transcript has one JSON object per line. Lines are appended while the session runs. [`Transcript`] is given the
//! lines one by one, each with its position, and returns the entries that are worth remembering: prompts, answers, and
//! one entry for each tool call, with its shortened arguments and an excerpt of its output. The module `formats` parses
//! the lines of each client. The module `session` contains everything that is the same for all formats.
//!
//! Only known types of lines are remembered, because a client also writes whole prompts, system instructions and the
//! output of hooks into the file. Skipped lines are counted by type.
//!
//! The time of an entry is the time of its line. If a line has no time, its entry and the entries after it are held
//! back until a later time is read. The known times before and after the entry then limit when it can have been written
//! ([`TranscriptEntry::since`], [`TranscriptEntry::until`]).
//!
//! A message is not lost if part of it is invalid. Bytes that are not UTF-8, halves of characters, and control
//! characters are replaced. If a line has several objects, they are read one after the other. Both kinds of lines are
//! counted.
//!
//! Lines can be read again without harm, because an entry has the same key each time. So if a reader stops while calls
//! are open or entries are held back, the next reading begins at the first of them ([`Transcript::open_from`]).
//!
//! This module does not read files. The caller opens them, finds whole lines and limits their length. This module does
//! not redact either, because the write path does.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::entry;
use super::fields::{Fields, has_half_pairs, items};
use super::formats;
use super::session::Session;
use tiro_base::memory::Millis;

pub use entry::{About, Counts, Forked, TranscriptEntry};
pub use formats::Format;

/// A line may have invalid JSON that is followed by objects. These objects are looked for only if the text has at most
/// this many bytes, and only at the following number of places.
const LONGEST_MENDED: usize = 1024 * 1024;
const MOST_STARTS: usize = 64;

/// The part of a line that was read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    All,
    Part,
    Nothing,
}

/// Reads a transcript line by line.
pub struct Transcript {
    format: Format,
    session: Session,
}

impl Transcript {
    /// Returns a reader that begins at the start of a file, or continues in the middle of a file. `about` is the
    /// information about the session so far.
    pub fn new(format: Format, about: About) -> Transcript {
        Transcript { format, session: Session::new(about, format.rewrites()) }
    }

    /// Reads a whole line that begins `at` bytes into the file. Returns the entries that are now complete.
    pub fn line(&mut self, at: u64, line: &[u8]) -> Vec<TranscriptEntry> {
        self.session.begin_line(at);
        let line = String::from_utf8_lossy(line);
        let text = trimmed(&line);
        if text.is_empty() {
            self.session.skip("empty");
            return Vec::new();
        }
        if self.read(at, text) == Read::Nothing {
            self.session.unreadable();
        } else if matches!(line, Cow::Owned(_)) || has_half_pairs(text) {
            self.session.replaced();
        }
        self.session.settled()
    }

    /// Reads the kept part of a line that is too long or unfinished. The whole line has `bytes` bytes.
    ///
    /// If the part is not JSON but contains the id of an open call, the line counts as the call's result, and the call
    /// is closed.
    pub fn cut(&mut self, at: u64, kept: &[u8], bytes: u64) -> Vec<TranscriptEntry> {
        self.session.begin_line(at);
        let kept = String::from_utf8_lossy(kept);
        match self.read(at, trimmed(&kept)) {
            Read::Nothing => self.session.cut(&kept, bytes),
            Read::All | Read::Part => self.session.shortened(),
        }
        self.session.settled()
    }

    /// Reads the JSON objects in `text`, which usually contains one.
    fn read(&mut self, at: u64, text: &str) -> Read {
        let read = self.values(at, text);
        if read != Read::Nothing || !text.contains(is_control) {
            return read;
        }
        // Strings in JSON can't contain control characters.
        let read = self.values(at, trimmed(&text.replace(is_control, " ")));
        if read != Read::Nothing {
            self.session.replaced();
        }
        read
    }

    fn values(&mut self, at: u64, text: &str) -> Read {
        if text.starts_with('{')
            && let Ok(fields) = Fields::parse(text)
        {
            self.format.line(&mut self.session, &fields);
            return Read::All;
        }
        let (mut objects, rest) = objects(text);
        if !rest.is_empty() && rest.len() <= LONGEST_MENDED {
            // If a line was not finished, other objects may follow it on the same line.
            let starts = rest.match_indices("{\"").map(|(at, _)| at).filter(|at| *at > 0).take(MOST_STARTS);
            let found = starts
                .map(|at| self::objects(&rest[at..]))
                .find(|(found, rest)| !found.is_empty() && rest.is_empty());
            objects.extend(found.into_iter().flat_map(|(found, _)| found));
        }
        for (place, object) in objects.iter().enumerate() {
            // The key of an entry without an id is derived from its position.
            self.session.move_to(at + place as u64);
            self.format.line(&mut self.session, object);
        }
        self.session.move_to(at);
        match (objects.is_empty(), rest.is_empty()) {
            (true, _) => Read::Nothing,
            (false, true) => Read::All,
            (false, false) => {
                self.session.unreadable();
                Read::Part
            }
        }
    }

    /// Returns the byte at which the next reading must begin: the beginning of the first line whose call has no result
    /// yet, or whose entry is held back. Returns `None` if there is no such line.
    pub fn open_from(&self) -> Option<u64> {
        self.session.open_from()
    }

    /// Returns the last known time before the byte at which the next reading must begin.
    pub fn known_before(&self) -> Option<Millis> {
        self.session.known_before()
    }

    /// Returns the entries that are still held back because no line with a later timestamp has followed. Call this when
    /// the file has no more lines.
    pub fn rest(&mut self) -> Vec<TranscriptEntry> {
        self.session.rest()
    }

    /// Returns what is known about the session so far.
    pub fn about(&self) -> &About {
        self.session.about()
    }

    /// Returns how many lines were read so far, and how many were left out, by reason.
    pub fn counts(&self) -> &Counts {
        self.session.counts()
    }

    /// Stops waiting for results. Returns the entries of the calls that have no result, and the entries that were held
    /// back.
    pub fn finish(&mut self) -> Vec<TranscriptEntry> {
        self.session.give_up_calls();
        self.session.rest()
    }
}

/// Returns the objects at the beginning of `text`, including those in arrays, and the rest of the text, which is not
/// JSON.
pub(super) fn objects(text: &str) -> (Vec<Fields<'_>>, &str) {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let mut found = Vec::new();
    let mut end = 0;
    while let Some(Ok(value)) = values.next() {
        let inner = if value.get().starts_with('[') { items(value) } else { vec![value] };
        found.extend(inner.into_iter().filter(|raw| raw.get().starts_with('{')).map(Fields::of));
        end = values.byte_offset();
    }
    (found, text[end..].trim())
}

fn trimmed(line: &str) -> &str {
    line.trim_matches(|c: char| c.is_whitespace() || c == '\0' || c == '\u{feff}')
}

fn is_control(c: char) -> bool {
    c < ' '
}
