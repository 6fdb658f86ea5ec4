//! Who may use a server over HTTP: authors with personal keys.
//!
//! A principal is an author in the team of the server's owner, together with what this author may do. Whoever has a
//! principal's key acts as this author. The keys are in one private file for now ([`keys`]); everything else asks
//! [`Keys::principal`](keys::Keys::principal).

pub mod key;
pub mod keys;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use tiro_base::error::{Error, quoted};
use tiro_base::scope::AuthorId;

/// An author with a valid key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Who reads and writes.
    pub author: AuthorId,
    /// What the author may do.
    pub access: Access,
}

/// What an author may do. Each also includes what the earlier ones include.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Search and read what the author may see.
    Read,
    /// Also store, mark, stash and forget.
    #[default]
    Write,
    /// Also configure the providers of the server.
    Admin,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Admin => "admin",
        })
    }
}

impl FromStr for Access {
    type Err = Error;

    fn from_str(name: &str) -> Result<Access, Error> {
        match name {
            "read" => Ok(Access::Read),
            "write" => Ok(Access::Write),
            "admin" => Ok(Access::Admin),
            other => Err(Error::bad_input(format!("there is no scope `{}`", quoted(other)))
                .hint("choose read, write or admin")),
        }
    }
}

/// Why a key is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// There is no such key: it is missing, wrong or revoked.
    Unknown,
    /// The key is right, but has expired.
    Expired,
}
