//! Who may use a server over HTTP: authors with personal keys.
//!
//! A principal is an author in the team of the server's owner, together with what this author may do. Whoever has a
//! principal's key acts as this author. The keys, the teams, and what is shared with the teams are in the registry, where
//! each request looks them up: so a change that another process makes counts at the next request.

pub mod key;
pub mod keys;
pub mod rights;

use tiro_base::scope::AuthorId;

pub use tiro_store::{Access, Rights};

/// An author with a valid key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Who reads and writes.
    pub author: AuthorId,
    /// What the author may do.
    pub access: Access,
}

/// Why a key is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// There is no such key: it is missing, wrong or revoked.
    Unknown,
    /// The key is right, but has expired.
    Expired,
}
