//! Why an object is not read.

use std::fmt;

use gix::objs::Kind;

/// Why an object is not read, in our own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::git) enum Fault {
    Missing,
    Damaged,
    /// It has this many bytes, more than are read of its kind.
    TooLarge(u64),
    /// It is of this kind, which nobody asked for.
    Kind(Kind),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing => f.write_str("the object is missing"),
            Fault::Damaged => f.write_str("the object is damaged"),
            Fault::TooLarge(bytes) => write!(f, "it has {bytes} bytes, too many to be read"),
            Fault::Kind(kind) => write!(f, "it is a {kind}"),
        }
    }
}

/// Checks that an object is of the kind that was asked for.
pub(super) fn expect(wanted: Kind, found: Kind) -> Result<(), Fault> {
    if wanted == found { Ok(()) } else { Err(Fault::Kind(found)) }
}
