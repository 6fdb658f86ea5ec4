//! Sessions, their messages, and the segments that these fall into.

use crate::memory::{Kind, MemoryId, MemoryKey, Millis, Provenance, Role};
use crate::scope::SessionId;
use crate::store::Version;

/// A session and what it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// Its name.
    pub id: SessionId,
    /// Living memories in it.
    pub memories: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// The time of its earliest memory.
    pub first: Millis,
    /// The time of its latest memory.
    pub last: Millis,
    /// The branch it was last seen on.
    pub branch: Option<String>,
    /// The commit it was last seen on.
    pub head_sha: Option<String>,
}

/// What a session is about, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The line that its client gave it, else how its user began.
    pub title: Option<String>,
    /// The program it was held in.
    pub client: Option<String>,
}

/// What is known of a session beside its memories; what is `None` leaves what is known already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The program it was held in.
    pub client: Option<String>,
    /// The root of the work tree it was held in.
    pub worktree: Option<String>,
    /// A line that names it.
    pub title: Option<String>,
    /// Its other names.
    pub aliases: Vec<String>,
}

/// A message as it counts, without its text.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRow {
    /// Its key.
    pub seq: MemoryKey,
    /// Its id.
    pub id: MemoryId,
    /// Its place in the session.
    pub ordinal: i64,
    /// Who speaks.
    pub role: Option<Role>,
    /// The speaker's name.
    pub speaker: Option<String>,
    /// When it was said.
    pub time: Millis,
    /// Tokens of the text (o200k).
    pub tokens: i64,
    /// Whether it was marked important.
    pub marked: bool,
    /// What its author thinks of it, 0 to 1.
    pub importance: Option<f64>,
    /// What it is.
    pub kind: Kind,
    /// Where its text came from.
    pub provenance: Provenance,
}

/// A run of messages of a session that is summarised, and changes tier, as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRow {
    /// Its place among the segments, from 0.
    pub number: i64,
    /// The ordinal of its first message.
    pub first: i64,
    /// The ordinal of its last message.
    pub last: i64,
    /// Living messages in it; 0 where all are forgotten.
    pub messages: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
}

/// A session whose messages changed since it was worked off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrownSession {
    /// The session.
    pub session: SessionId,
    /// The version at which its messages changed last, for [`Store::worked_off`].
    pub version: Version,
}

/// Returns a hash of which messages a summary is made of, given their ids in order.
///
/// An id stands for one text for good, so the texts needn't be read.
pub fn source_hash<'a>(ids: impl IntoIterator<Item = &'a MemoryId>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("tiro 2026 summary sources");
    for id in ids {
        hasher.update(id.as_str().as_bytes());
        hasher.update(b"\n");
    }
    *hasher.finalize().as_bytes()
}
