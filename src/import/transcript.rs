//! Reads the transcripts that clients keep of their sessions, which say what was written, by whom, when and where.
//!
//! A transcript has one JSON value per line, appended while the session runs. [`Transcript`] is given the lines one by
//! one, each with its position, and returns the entries that are worth remembering: prompts, answers, and one entry for
//! each tool call, with its shortened arguments and an excerpt of its output. The module `formats` parses the lines of
//! each client; `session` does what is the same for all formats.
//!
//! Only known types of lines are remembered, because a client also writes whole prompts, system instructions and the
//! output of hooks into the file. Skipped lines are counted by type.
//!
//! The time of an entry is that of its line. If a line has no time, its entry and those after it are held back until a
//! later time is read. The known times before and after the entry then limit when it can have been written
//! ([`Entry::since`], [`Entry::until`]).
//!
//! Reading lines again is harmless, because an entry has the same key each time. So if a reader stops while calls are
//! open or entries are held back, the next reading begins at the first of them ([`Transcript::open_from`]).
//!
//! This module does not read files: the caller opens them, finds whole lines and limits their length. It does not
//! redact either; the write path does that.

use super::entry;
use super::fields::Fields;
use super::formats;
use super::session::Session;
use crate::memory::Millis;

pub use entry::{About, Counts, Entry};
pub use formats::Format;

/// Reads a transcript line by line.
pub struct Transcript {
    format: Format,
    session: Session,
}

impl Transcript {
    /// Returns a reader that begins at the start of a file, or continues in the middle of it with what is known `about`
    /// the session.
    pub fn new(format: Format, about: About) -> Transcript {
        Transcript { format, session: Session::new(about, format.rewrites()) }
    }

    /// Reads a whole line that begins `at` bytes into the file, and returns the entries that are now complete.
    pub fn line(&mut self, at: u64, line: &[u8]) -> Vec<Entry> {
        self.session.begin_line(at);
        let line = String::from_utf8_lossy(line);
        let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\0' || c == '\u{feff}');
        if line.is_empty() {
            self.session.skip("empty");
            return Vec::new();
        }
        match Fields::parse(line) {
            Ok(fields) => self.format.line(&mut self.session, &fields),
            Err(_) => self.session.unreadable(),
        }
        self.session.settled()
    }

    /// Counts a line of `bytes` bytes that is too long to be read. `start` is its beginning.
    ///
    /// If `start` contains the id of an open call, the line counts as its result, and the call is closed.
    pub fn cut(&mut self, at: u64, start: &[u8], bytes: u64) -> Vec<Entry> {
        self.session.begin_line(at);
        self.session.cut(&String::from_utf8_lossy(start), bytes);
        self.session.settled()
    }

    /// Returns the byte at which the next reading must begin. The first line whose call has no result yet, or whose
    /// entry is held back, begins there. Returns `None` if there is no such line.
    pub fn open_from(&self) -> Option<u64> {
        self.session.open_from()
    }

    /// Returns the last known time before the byte at which the next reading must begin.
    pub fn known_before(&self) -> Option<Millis> {
        self.session.known_before()
    }

    /// Returns the entries that are still held back because no line with a later timestamp has followed. This is
    /// called when the file has no more lines.
    pub fn rest(&mut self) -> Vec<Entry> {
        self.session.rest()
    }

    /// Returns what is known of the session so far.
    pub fn about(&self) -> &About {
        self.session.about()
    }

    /// Returns how many lines were read so far, and how many were left out, by reason.
    pub fn counts(&self) -> &Counts {
        self.session.counts()
    }

    /// Stops waiting for results. Returns the entries of the calls that have no result, and the entries that are held
    /// back.
    pub fn finish(&mut self) -> Vec<Entry> {
        self.session.give_up_calls();
        self.session.rest()
    }
}
