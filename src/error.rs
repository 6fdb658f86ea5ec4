//! The one error of the library: what was being done and to what, why it failed, and what to try next.
//!
//! The reader is usually a model holding a tool result, so an error says what happened in `message`, keeps the
//! cause as `source`, and puts the way out in `hint`, apart from what happened. `Kind` is what a caller may branch
//! on; nothing branches on the text.

use std::fmt;
use std::time::Duration;

/// The result of every operation of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

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
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: Option<String>,
    wait: Option<Duration>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Returns an error of `kind` saying `message`: lower case, no full stop, values in backticks.
    pub fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), hint: None, wait: None, source: None }
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
        self.hint = Some(hint.into());
        self
    }

    /// Adds how long whoever was asked wants to be left alone.
    pub fn wait(mut self, wait: Option<Duration>) -> Error {
        self.wait = wait;
        self
    }

    /// Keeps the error beneath this one.
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
        self.hint.as_deref()
    }

    /// Returns it with what to try next, for where there is room for one line.
    pub fn told(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }

    /// Returns how long whoever was asked wants to be left alone, where that was said.
    pub fn left_alone(&self) -> Option<Duration> {
        self.wait
    }
}

/// Prints the message and the causes beneath it on one line; the hint is printed by whoever shows the error.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let mut cause = self.source.as_deref().map(|e| e as &dyn std::error::Error);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// The causes are already part of `Display`, so `source` is not offered a second time.
impl std::error::Error for Error {}

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
            .source(std::io::Error::other("disk on fire"))
            .hint("call the fire brigade");
        assert_eq!(error.to_string(), "cannot read `a.txt`: disk on fire");
        assert_eq!(error.way_out(), Some("call the fire brigade"));
        assert_eq!(error.told(), "cannot read `a.txt`: disk on fire; call the fire brigade");
        assert_eq!(error.kind(), Kind::Io);
    }
}
