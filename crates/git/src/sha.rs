//! The name of a git object.

use std::fmt;
use std::str::FromStr;

use tiro_base::error::{Error, Result};

/// The name of a git object: its SHA-1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha(pub(super) [u8; 20]);

impl Sha {
    /// Returns the 20 bytes of the name.
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// Returns the name in the library's type.
    pub(super) fn object_id(&self) -> gix::ObjectId {
        gix::ObjectId::Sha1(self.0)
    }
}

impl From<&gix::oid> for Sha {
    fn from(id: &gix::oid) -> Sha {
        let mut bytes = [0; 20];
        bytes.copy_from_slice(id.as_bytes());
        Sha(bytes)
    }
}

/// Prints all 40 hexadecimal digits.
impl fmt::Display for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Parses the full name of 40 hexadecimal digits. Abbreviated names are not accepted, because only a repository can
/// resolve them.
impl FromStr for Sha {
    type Err = Error;

    fn from_str(text: &str) -> Result<Sha> {
        gix::ObjectId::from_hex(text.as_bytes()).map(|id| Sha::from(id.as_ref())).map_err(|_| {
            Error::bad_input(format!("`{text}` is not a full commit id of 40 hexadecimal digits"))
        })
    }
}
