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

use super::entry;
use super::fields::Fields;
use super::formats;
use super::session::Session;
use crate::memory::Millis;

pub use entry::{About, Counts, Said};
pub use formats::Format;

/// Reads a transcript, a line at a time.
pub struct Transcript {
    format: Format,
    session: Session,
}

impl Transcript {
    /// Returns a reader that begins at the start of a file, or continues with what is known of the session.
    pub fn new(format: Format, about: About) -> Transcript {
        Transcript { format, session: Session::new(about, format.rewrites()) }
    }

    /// Reads a whole line that begins `at` bytes into the file; returns the entries that it completes.
    pub fn line(&mut self, at: u64, line: &[u8]) -> Vec<Said> {
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

    /// Counts a line of `bytes` bytes that is too long to be read; `start` is its beginning.
    ///
    /// Where `start` names a call, the line is taken for its result, and the call doesn't wait any longer.
    pub fn cut(&mut self, at: u64, start: &[u8], bytes: u64) -> Vec<Said> {
        self.session.begin_line(at);
        self.session.cut(&String::from_utf8_lossy(start), bytes);
        self.session.settled()
    }

    /// Returns the byte at which reading must begin the next time: where the first line begins whose call has no result
    /// yet, or whose entry is held back. `None` where nothing waits.
    pub fn open_from(&self) -> Option<u64> {
        self.session.open_from()
    }

    /// Returns the last time that is known before the place where reading begins the next time.
    pub fn known_before(&self) -> Option<Millis> {
        self.session.known_before()
    }

    /// Returns the entries that are held back for a later time, at the end of a file that has no more lines.
    pub fn rest(&mut self) -> Vec<Said> {
        self.session.rest()
    }

    /// Returns what is known of the session so far.
    pub fn about(&self) -> &About {
        self.session.about()
    }

    /// Returns how many lines were read so far, and how many were skipped, by reason.
    pub fn counts(&self) -> &Counts {
        self.session.counts()
    }

    /// Stops waiting for results; returns the calls that have none, and the entries that are held back.
    pub fn finish(&mut self) -> Vec<Said> {
        self.session.give_up_calls();
        self.session.rest()
    }
}
