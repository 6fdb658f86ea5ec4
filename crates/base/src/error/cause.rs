//! Describes the errors of other libraries by their kinds, in our own words.
//!
//! An error is recognised by its type, wherever it is in the chain of causes. Nothing is shown of an error whose
//! type is not listed here.

use std::error::Error as Foreign;
use std::io::ErrorKind;

use super::{RefusedFile, quote};

/// How many characters of the causes' text are logged. Arbitrary.
const LONGEST_DETAIL: usize = 400;

/// Returns the kind of the first known error in the chain that begins with `error`; `None` if no error in it is
/// known.
pub(super) fn shown(error: &(dyn Foreign + 'static)) -> Option<String> {
    chain(error).find_map(words)
}

/// Returns the texts of the errors of other libraries in the chain, for the log. The texts are redacted, and quoted
/// parts are removed.
pub(super) fn detail(error: &(dyn Foreign + 'static)) -> Option<String> {
    let foreign = |error: &&(dyn Foreign + 'static)| !error.is::<super::Error>();
    let said: Vec<String> =
        chain(error).filter(foreign).map(|error| without_quotes(&error.to_string())).collect();
    let own = chain(error).find_map(|error| detail(error.downcast_ref::<super::Error>()?.source.as_deref()?));
    let all: Vec<String> = said.into_iter().chain(own).collect();
    (!all.is_empty()).then(|| quote::clean(&all.join(": "), LONGEST_DETAIL))
}

fn chain<'e>(error: &'e (dyn Foreign + 'static)) -> impl Iterator<Item = &'e (dyn Foreign + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn Foreign + 'static)| {
        let error: &'e (dyn Foreign + 'static) = *error;
        // If an I/O error wraps another error, `source()` skips the wrapped error, so `get_ref` is used to get it.
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        inner.map(|inner| inner as &'e (dyn Foreign + 'static)).or_else(|| error.source())
    })
}

fn words(error: &(dyn Foreign + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<super::Error>() {
        return Some(error.to_string());
    }
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        // An error of Tiro inside the I/O error says more than the kind of the I/O error.
        let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<RefusedFile>());
        return refused.map(RefusedFile::to_string).or_else(|| of_io(error));
    }
    if let Some(error) = error.downcast_ref::<serde_json::Error>() {
        return of_json(error);
    }
    if error.is::<std::str::Utf8Error>() || error.is::<std::string::FromUtf8Error>() {
        return Some("it is not UTF-8".to_owned());
    }
    if let Some(error) = error.downcast_ref::<tokio::task::JoinError>() {
        return Some(if error.is_panic() { "it panicked" } else { "it was cancelled" }.to_owned());
    }
    None
}

/// Returns whether the error `number` of the operating system is a failure of the disk (`EIO` or `ENXIO`). Rust has no
/// [`std::io::ErrorKind`] for these errors.
pub fn is_of_disk(number: i32) -> bool {
    cfg!(unix) && matches!(number, 5 | 6)
}

fn of_io(error: &std::io::Error) -> Option<String> {
    let words = match error.kind() {
        ErrorKind::NotFound => "no such file or directory",
        ErrorKind::PermissionDenied => "permission denied",
        ErrorKind::AlreadyExists => "it exists already",
        ErrorKind::StorageFull => "no space left",
        ErrorKind::QuotaExceeded => "the quota of the disk is used up",
        ErrorKind::FileTooLarge => "it is too large",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        ErrorKind::IsADirectory => "it is a directory",
        ErrorKind::NotADirectory => "it should be a directory but is not",
        ErrorKind::DirectoryNotEmpty => "the directory is not empty",
        ErrorKind::InvalidData => "its content is not of the right form",
        ErrorKind::InvalidInput => "the system does not accept the name or the value",
        ErrorKind::UnexpectedEof => "it ends too early",
        ErrorKind::BrokenPipe => "the other end is closed",
        ErrorKind::TimedOut => "it took too long",
        ErrorKind::ConnectionRefused => "the connection was refused",
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => "the connection was closed",
        ErrorKind::ResourceBusy | ErrorKind::ExecutableFileBusy => "it is in use",
        ErrorKind::OutOfMemory => "no memory left",
        ErrorKind::Unsupported => "the system does not support it",
        _ if error.raw_os_error().is_some_and(is_of_disk) => "the disk failed",
        // The number of the error is more specific than a general sentence, and quotes nothing.
        _ => return error.raw_os_error().map(|number| format!("error {number} of the operating system")),
    };
    Some(words.to_owned())
}

fn of_json(error: &serde_json::Error) -> Option<String> {
    use serde_json::error::Category;
    let place = format!("line {}, column {}", error.line(), error.column());
    match error.classify() {
        // The I/O error is a later element of the chain.
        Category::Io => None,
        Category::Syntax => Some(format!("it is not valid JSON from {place} on")),
        Category::Eof => Some(format!("it ends too early, in {place}")),
        // An error in a value that was already parsed has no line.
        Category::Data if error.line() == 0 => Some("a value is not of the right form".to_owned()),
        Category::Data => Some(format!("a value is not of the right form in {place}")),
    }
}

/// Returns `text` with an ellipsis in place of each text in quotation marks or backticks.
fn without_quotes(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['"', '\'', '`']) {
        let (before, quoted) = rest.split_at(start);
        let mark = &quoted[..1];
        kept += before;
        // The quoted value may contain the quotation mark, so the last mark ends it. If no mark ends it, the rest
        // of the text is removed.
        kept += mark;
        kept += "…";
        kept += mark;
        let Some(end) = quoted[1..].rfind(mark) else { return kept };
        rest = &quoted[end + 2..];
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_value_is_left_out_with_all_that_it_holds() {
        for (text, expected) in [
            ("plain", "plain"),
            ("for path 'a b'", "for path '…'"),
            ("for path 'it's' at 7", "for path '…' at 7"),
            ("\"a\" then `b", "\"…\" then `…`"),
        ] {
            assert_eq!(without_quotes(text), expected);
        }
    }

    #[test]
    fn json_is_named_by_its_place() {
        let of = |text: &str| shown(&serde_json::from_str::<Vec<u8>>(text).unwrap_err()).unwrap();
        assert_eq!(of("[1,\n \"s3cret\"]"), "a value is not of the right form in line 2, column 9");
        assert_eq!(of("[1, s3cret"), "it is not valid JSON from line 1, column 5 on");
        assert_eq!(of("[1"), "it ends too early, in line 1, column 2");
    }
}
