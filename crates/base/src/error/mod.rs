//! The error type of the library. An error says what was being done and to what, why it failed, and what to try
//! next.
//!
//! The reader is usually a model, which gets the error as the result of a tool. So the message says what happened,
//! and a separate hint says what to try. Callers branch on [`Kind`], never on the text.
//!
//! **Errors show Tiro's own words.** The text of another library's error can quote anything that the library read: a
//! path, a line of a file, a value. So only the kind of a cause is shown, in our words (`cause.rs`), and nothing is
//! shown of an unknown cause. The library's own text goes to the log ([`Error::log`]), without its quoted parts.
//!
//! **Values are quoted.** A name, path or argument in a message goes through [`quoted`]: redacted, on one line, short,
//! and without backticks. When the message and the hint are read, each is redacted and escaped once more as a whole.
//! Answers, errors of the protocol, stderr, logs and the store all get the text after that step. The rules of redaction
//! are not part of this crate: the program sets them at its start ([`redact_by`]).
//!
//! **Errors have no envelope.** An envelope marks text that other people or programs wrote. An error contains no such
//! text: no message, commit or file content is part of it, and the values in it are short and in backticks. In an
//! envelope, our own words would look like data.

mod cause;
pub mod partial;
mod quote;
mod refused_file;

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

pub use cause::is_of_disk;
pub use quote::{cleaned, quoted, redact_by};
pub use refused_file::RefusedFile;

/// The result of every operation of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// How many characters of a message or a hint are shown. Arbitrary: twice the length of the longest list of a tool's
/// arguments.
const LONGEST: usize = 1600;

/// The kinds of errors that callers may need to treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An argument is missing, malformed or out of range; repeating the call cannot help.
    BadInput,
    /// Nothing in the caller's scope has this name or id.
    NotFound,
    /// The call has no project, because neither a repository nor a directory was found.
    NoProject,
    /// Another process holds a lock or a lease. Repeating the call later can help.
    Busy,
    /// The store cannot be read or written, because of permissions, missing space, damage, or a format of a later
    /// version.
    Store,
    /// The embedding model is missing or damaged.
    Model,
    /// A repository cannot be read.
    Git,
    /// A file or directory cannot be read or written.
    Io,
    /// A provider of language models did not answer, or its answer was not usable.
    Provider,
    /// A limit on money, tokens or requests would be exceeded.
    Limit,
    /// The server of a team did not answer, or refused.
    Server,
}

/// An error: its kind, message, hint and cause.
pub struct Error {
    kind: Kind,
    message: Box<Text>,
    hint: Option<Box<Text>>,
    retry_after: Option<Duration>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Returns an error with this message. The message must be in lower case and without a full stop, and values in
    /// it must be [`quoted`] and in backticks.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: Text::new(message), hint: None, retry_after: None, source: None }
    }

    /// Returns a [`Kind::BadInput`] error.
    pub fn bad_input(message: impl Into<String>) -> Error {
        Error::new(Kind::BadInput, message)
    }

    /// Returns a [`Kind::NotFound`] error.
    pub fn not_found(message: impl Into<String>) -> Error {
        Error::new(Kind::NotFound, message)
    }

    /// Adds the hint: what the reader can try next.
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(Text::new(hint));
        self
    }

    /// Returns the same error with another message and without its causes.
    pub fn reworded(&self, message: impl Into<String>) -> Error {
        let error = Error::new(self.kind, message).with_retry_after(self.retry_after);
        match self.way_out() {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// Adds the time that a provider asked us to wait before the next request.
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Error {
        self.retry_after = retry_after;
        self
    }

    /// Adds the cause. The kind of the cause is shown, but never its text.
    pub fn source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind of the error, on which callers may branch.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the first error of the type `T` in the chain of causes.
    pub fn root<T: std::error::Error + 'static>(&self) -> Option<&T> {
        let source = self.source.as_deref()?;
        source.downcast_ref::<T>().or_else(|| source.downcast_ref::<Error>()?.root())
    }

    /// Returns the hint: what to try next.
    pub fn way_out(&self) -> Option<&str> {
        self.hint.as_ref().map(|hint| hint.shown())
    }

    /// Returns the message and the hint on one line.
    pub fn with_hint(&self) -> String {
        match self.way_out() {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }

    /// Returns the time that a provider asked us to wait before the next request (`Retry-After`).
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Logs the text of the causes, which appears only in the log. Called where an error leaves the program.
    pub fn log(&self) {
        if let Some(detail) = self.source.as_deref().and_then(|source| cause::detail(source)) {
            tracing::debug!(error = %self, detail, "cause of the error");
        }
    }
}

/// Shows the message and the kinds of the causes on one line, without the hint.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.shown())?;
        match self.source.as_deref().and_then(|source| cause::shown(source)) {
            Some(words) => write!(f, ": {words}"),
            None => Ok(()),
        }
    }
}

/// Shows the text of `Display`, the kind and the hint.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} error: {self}", self.kind)?;
        self.way_out().map_or(Ok(()), |hint| write!(f, " (hint: {hint})"))
    }
}

/// `Display` already shows the causes, so `source` returns none.
impl std::error::Error for Error {}

/// A text that is redacted and escaped only when it is first read, because most errors are never shown.
struct Text {
    raw: String,
    shown: OnceLock<String>,
}

impl Text {
    /// The text is boxed to keep errors small, because every `Result` is at least as large as an error.
    fn new(text: impl Into<String>) -> Box<Text> {
        Box::new(Text { raw: text.into(), shown: OnceLock::new() })
    }

    fn shown(&self) -> &str {
        self.shown.get_or_init(|| quote::clean(&self.raw, LONGEST))
    }
}

/// Wraps another library's error.
pub trait Context<T> {
    /// Returns an [`Error`] of `kind` with `message`. The error of the library becomes its cause.
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
        assert_eq!(error.with_hint(), "cannot read `a.txt`: no space left; free some space");
        assert_eq!(error.kind(), Kind::Io);
        let outer = Error::new(Kind::Io, "nothing was imported").source(error);
        assert_eq!(outer.to_string(), "nothing was imported: cannot read `a.txt`: no space left");
    }

    #[test]
    fn what_a_library_says_is_not_shown() {
        redact_by(tiro_redact::without_secrets);
        let quoting = "could not trust path '-----BEGIN OPENSSH PRIVATE KEY-----b3BlbnNzaC1r'";
        for source in
            [std::io::Error::other(quoting), std::io::Error::new(std::io::ErrorKind::NotFound, quoting)]
        {
            let error = Error::new(Kind::Git, "cannot open `a`").source(source);
            for shown in [error.to_string(), error.with_hint(), format!("{error:?}")] {
                assert!(!shown.contains("trust") && !shown.contains("b3Bl"), "{shown}");
            }
            let detail = cause::detail(error.source.as_deref().unwrap()).unwrap();
            assert!(detail.contains("could not trust path") && !detail.contains("b3Bl"), "{detail}");
        }
    }

    #[test]
    fn whatever_a_message_quotes_it_has_one_line_and_no_secret() {
        redact_by(tiro_redact::without_secrets);
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
