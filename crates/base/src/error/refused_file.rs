//! The reasons why a file is refused before its content is read.

use std::fmt;
use std::io;

/// The reason why a file is refused. The reason is the source of an [`io::Error`], so functions that return only I/O
/// errors pass it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedFile {
    /// The file is a directory, a pipe, a device or a link.
    NotRegular,
    /// The file has more than this many bytes.
    TooLarge(u64),
    /// A link or a file is in the place of a folder.
    NoFolder,
    /// The file belongs to another user.
    NotOwn,
}

impl fmt::Display for RefusedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefusedFile::NotRegular => f.write_str("it is not a regular file"),
            RefusedFile::TooLarge(most) => write!(f, "it has more than {most} bytes"),
            RefusedFile::NoFolder => f.write_str("a link or a file is in place of the folder"),
            RefusedFile::NotOwn => f.write_str("it belongs to another user"),
        }
    }
}

impl std::error::Error for RefusedFile {}

impl From<RefusedFile> for io::Error {
    fn from(refused: RefusedFile) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, refused)
    }
}
