//! The one error of the library: what was being done and to what, why it failed, and what to try next.
//!
//! The reader is usually a model holding a tool result, so an error says what happened in `message`, and puts the way
//! out in `hint`, apart from what happened. `Kind` is what a caller may branch on; nothing branches on the text.
//!
//! **What is shown is Tiro's own words.** The text of another library's error can quote whatever that library read: a
//! path, a line of a file, a value. So of a cause only its kind is shown, in our words (`cause.rs`); a cause that is not
//! known here shows nothing. Its own text goes to the log, by [`Error::log`], without what stands there in quotes.
//!
//! **Values are quoted.** A name, a path or an argument within a message goes through [`quoted`]: without secrets, on one
//! line, short, and without what could end its backticks. All that is shown is cleaned once more as a whole when it is
//! read: `Display`, `Debug` and [`Error::way_out`] give nothing else, so every answer, protocol error, line on stderr,
//! log and row of the store has the same.
//!
//! **Errors stand in no envelope.** An envelope marks text that others wrote. An error has none: no message, commit or
//! content of a file is ever part of it, and the values that it names are short and in backticks, as the names in the
//! head of a hit are. A second frame would make own words look like data.

mod cause;
mod quote;

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

pub use quote::{cleaned, quoted};

/// The result of every operation of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The longest text that is shown of a message or of a hint, in characters. Arbitrary: the longest list of an operation's
/// arguments has half of it.
const LONGEST: usize = 1600;

/// What went wrong, in the few kinds a caller may treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An argument is missing, malformed or out of range; repeating the call cannot help.
    BadInput,
    /// What was named does not exist within the caller's scope.
    NotFound,
    /// No project can be told from where the call came.
    NoProject,
    /// Somebody else holds what is needed; repeating the call later can help.
    Busy,
    /// The store cannot be read or written: permissions, space, damage, a format from the future.
    Store,
    /// The embedding model is missing or is not what it should be.
    Model,
    /// A repository cannot be read.
    Git,
    /// A file or directory cannot be read or written.
    Io,
    /// A provider of language models did not answer, or not with something that is of use.
    Provider,
    /// A limit on what may be spent leaves no room.
    Limit,
}

/// What was being done when it failed, what to try next, and the cause beneath.
pub struct Error {
    kind: Kind,
    message: Box<Text>,
    hint: Option<Box<Text>>,
    wait: Option<Duration>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Returns an error of `kind` saying `message`: lower case, no full stop, values in backticks and [`quoted`].
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: Text::new(message), hint: None, wait: None, source: None }
    }

    /// Returns a [`Kind::BadInput`] error.
    pub fn bad_input(message: impl Into<String>) -> Error {
        Error::new(Kind::BadInput, message)
    }

    /// Returns a [`Kind::NotFound`] error.
    pub fn not_found(message: impl Into<String>) -> Error {
        Error::new(Kind::NotFound, message)
    }

    /// Adds what the reader can try next.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(Text::new(hint));
        self
    }

    /// Adds how long whoever was asked wants to be left alone.
    pub fn wait(mut self, wait: Option<Duration>) -> Error {
        self.wait = wait;
        self
    }

    /// Keeps the error beneath this one: its kind is shown, its own text never.
    pub fn source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.source = Some(source.into());
        self
    }

    /// Returns what a caller may branch on.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns what to try next, where something is known to help.
    pub fn way_out(&self) -> Option<&str> {
        self.hint.as_ref().map(|hint| hint.shown())
    }

    /// Returns it with what to try next, for where there is room for one line.
    pub fn told(&self) -> String {
        match self.way_out() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }

    /// Returns how long whoever was asked wants to be left alone, where that was said.
    pub fn left_alone(&self) -> Option<Duration> {
        self.wait
    }

    /// Logs what the libraries beneath said, which is shown nowhere else; called where an error leaves the program.
    pub fn log(&self) {
        if let Some(detail) = self.source.as_deref().and_then(|source| cause::detail(source)) {
            tracing::debug!(error = %self, detail, "the cause beneath");
        }
    }
}

/// Shows the message and the kinds of the causes beneath it on one line; the hint is shown by whoever shows the error.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.shown())?;
        match self.source.as_deref().and_then(|source| cause::shown(source)) {
            Some(words) => write!(f, ": {words}"),
            None => Ok(()),
        }
    }
}

/// Shows no more than `Display` does.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} error: {self}", self.kind)?;
        self.way_out().map_or(Ok(()), |hint| write!(f, " (hint: {hint})"))
    }
}

/// The causes are already part of `Display`, so `source` is not offered a second time.
impl std::error::Error for Error {}

/// A text that is cleaned when it is first read: most errors are never shown.
struct Text {
    raw: String,
    shown: OnceLock<String>,
}

impl Text {
    /// Boxed, since every result has room for an error.
    fn new(text: impl Into<String>) -> Box<Text> {
        Box::new(Text { raw: text.into(), shown: OnceLock::new() })
    }

    fn shown(&self) -> &str {
        self.shown.get_or_init(|| quote::clean(&self.raw, LONGEST))
    }
}

/// Adds what was being done to a foreign error.
pub trait Context<T> {
    /// Wraps the error as `kind`, saying what was being done.
    fn context(self, kind: Kind, message: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Box<dyn std::error::Error + Send + Sync>>> Context<T> for std::result::Result<T, E> {
    fn context(self, kind: Kind, message: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::new(kind, message()).source(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_tells_message_and_cause_and_keeps_the_hint_apart() {
        let error = Error::new(Kind::Io, "cannot read `a.txt`")
            .source(std::io::Error::from(std::io::ErrorKind::StorageFull))
            .hint("free some space");
        assert_eq!(error.to_string(), "cannot read `a.txt`: no space left");
        assert_eq!(error.way_out(), Some("free some space"));
        assert_eq!(error.told(), "cannot read `a.txt`: no space left; free some space");
        assert_eq!(error.kind(), Kind::Io);
        let outer = Error::new(Kind::Io, "nothing was imported").source(error);
        assert_eq!(outer.to_string(), "nothing was imported: cannot read `a.txt`: no space left");
    }

    #[test]
    fn what_a_library_says_is_not_shown() {
        let quoting = "could not trust path '-----BEGIN OPENSSH PRIVATE KEY-----b3BlbnNzaC1r'";
        for source in
            [std::io::Error::other(quoting), std::io::Error::new(std::io::ErrorKind::NotFound, quoting)]
        {
            let error = Error::new(Kind::Git, "cannot open `a`").source(source);
            for shown in [error.to_string(), error.told(), format!("{error:?}")] {
                assert!(!shown.contains("trust") && !shown.contains("b3Bl"), "{shown}");
            }
            let detail = cause::detail(error.source.as_deref().unwrap()).unwrap();
            assert!(detail.contains("could not trust path") && !detail.contains("b3Bl"), "{detail}");
        }
    }

    #[test]
    fn whatever_a_message_quotes_it_has_one_line_and_no_secret() {
        let token = "ghp_Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w";
        let raw = format!("cannot find `x\n[data 1]\r\u{1b}[2J\u{202e}{token}` {}", "y ".repeat(4000));
        let error = Error::bad_input(raw.clone()).hint(raw);
        for shown in [error.to_string(), error.way_out().unwrap().to_owned(), format!("{error:?}")] {
            assert!(!shown.contains(&token[4..]), "{shown}");
            assert!(!shown.contains(['\n', '\r', '\u{1b}', '\u{202e}']), "{shown:?}");
            assert!(shown.chars().count() < 2 * LONGEST + 200);
        }
    }
}
