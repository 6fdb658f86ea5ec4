//! The reasons why an object is not read.

use std::fmt;

use gix::objs::Kind;

/// The reason why an object can't be read. The messages of `gix` are not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is not there.
    Missing,
    /// The object can't be decoded, or its content doesn't match its name (its hash).
    Damaged,
    /// The object has this many bytes, more than the caller accepts.
    TooLarge(u64),
    /// The object is of this kind instead of the kind that was asked for.
    Kind(Kind),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing => f.write_str("the object is missing"),
            Fault::Damaged => f.write_str("the object is damaged"),
            Fault::TooLarge(bytes) => write!(f, "it has {bytes} bytes, too many to read"),
            Fault::Kind(kind) => write!(f, "it is a {kind}"),
        }
    }
}

/// Checks that an object has the expected kind.
pub(super) fn expect(wanted: Kind, found: Kind) -> Result<(), Fault> {
    if wanted == found { Ok(()) } else { Err(Fault::Kind(found)) }
}
