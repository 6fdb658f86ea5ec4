//! The unit of everything that is stored: a [`Memory`] is a piece of text with a kind, a scope, a provenance and a time.
//!
//! Messages, commits, decisions and stashed segments are all memories; they differ in kind and lifecycle. Text, kind and
//! provenance of a memory never change; mark, stash, expiry and tombstone are stored separately.

mod words;

use std::fmt;

use crate::error::{Error, Result, quoted};
use crate::scope::SessionId;

pub use self::words::{Group, Kind, Level, Provenance, Role};

/// Milliseconds since 1970-01-01 UTC.
pub type Millis = i64;

/// Bytes of a memory's text, at most, for calls, imports and backups. Arbitrary: some hundred times the longest answer, and
/// seconds to store.
pub const LONGEST_TEXT: usize = 16 << 20;

/// The id of a memory: `m` and 13 characters of base 32, derived from its kind, session and key.
///
/// The same message of the same session, or the same commit, has the same id on every machine, so restoring a backup adds
/// no duplicates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryId(String);

impl MemoryId {
    /// Returns the id of the memory that has this kind, and `key` as its name within `session`.
    pub fn derive(kind: Kind, session: Option<&SessionId>, key: &str) -> MemoryId {
        let mut hasher = blake3::Hasher::new_derive_key("tiro 2026 memory id");
        for part in [kind.as_str(), session.map_or("", SessionId::as_str), key] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let bits = u64::from_le_bytes(hasher.finalize().as_bytes()[..8].try_into().expect("8 of 32 bytes"));
        let digit =
            |place: u32| char::from(b"0123456789abcdefghjkmnpqrstvwxyz"[(bits >> (5 * place) & 31) as usize]);
        MemoryId(std::iter::once('m').chain((0..13).map(digit)).collect())
    }

    /// Returns the memory id that the argument `argument` gives.
    ///
    /// Errors with [`Kind::BadInput`](crate::error::Kind::BadInput) where `text` doesn't have the form of an id.
    pub fn read(argument: &str, text: &str) -> Result<MemoryId> {
        MemoryId::parse(text).ok_or_else(|| {
            Error::bad_input(format!("`{argument}` is not the id of a memory: `{}`", quoted(text))).hint(
                "search results show ids: `m` and 13 letters and digits, or SESSION#NUMBER of a message",
            )
        })
    }

    /// Returns `text` as an id; `None` if it doesn't have the form of one.
    pub fn parse(text: &str) -> Option<MemoryId> {
        let text = text.trim();
        let fits =
            text.len() == 14 && text.starts_with('m') && text.bytes().all(|b| b.is_ascii_alphanumeric());
        fits.then(|| MemoryId(text.into()))
    }

    /// Returns the id as stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The data of a commit other than its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitRecord {
    /// The full object id, hexadecimal.
    pub sha: String,
    /// The parents' full object ids, first parent first.
    pub parents: Vec<String>,
    /// A hash of the changes, equal for a rebased or cherry-picked commit; `None` for merges and empty commits.
    pub patch_id: Option<String>,
    /// The paths it changed, in the order of the digest.
    pub files: Vec<String>,
}

/// What a tool call did, as evidence of which session led to a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The root of its work tree.
    pub worktree: Option<String>,
    /// When its result came.
    pub ended: Option<Millis>,
    /// The files it changed.
    pub writes: Vec<FileWrite>,
    /// The abbreviated ids of the commits it made, as git printed them; `None` where it made none.
    pub commits: Option<Vec<String>>,
}

/// A file that was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileWrite {
    /// Relative to the root of the work tree.
    pub path: String,
    /// The root of its work tree.
    pub worktree: Option<String>,
    /// Hashes of the lines added and removed; empty where they are unknown.
    pub lines: Vec<u32>,
}

/// What identifies a memory, so that writing it again is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A key that names it within its kind and session: a client's message id, a commit's patch and time.
    Named(String),
    /// Its redacted text.
    Text,
    /// None: every write makes a new memory.
    Fresh,
    /// Its id, for a memory that is restored.
    Known(MemoryId),
}

/// A memory to write: everything but what the write path adds.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Its kind.
    pub kind: Kind,
    /// Its provenance.
    pub provenance: Provenance,
    /// The text, not redacted yet.
    pub text: String,
    /// The text for the text index, where it differs: a commit's, without its paths.
    pub indexed: Option<String>,
    /// The beginning of the text, where only that is embedded and shown: a commit's message.
    pub lead: Option<String>,
    /// Its session.
    pub session: Option<SessionId>,
    /// The role of the speaker, for messages.
    pub role: Option<Role>,
    /// The speaker's name, where it says more than the role.
    pub speaker: Option<String>,
    /// Its title: a commit's subject, a document's title.
    pub title: Option<String>,
    /// A tag to filter by.
    pub topic: Option<String>,
    /// The client's own id of it: a message id, or a commit's full id.
    pub source_id: Option<String>,
    /// The file that it is about, relative to the project.
    pub path: Option<String>,
    /// The files that it touched, relative to the project; a commit's are in its record.
    pub files: Vec<String>,
    /// The key of this occurrence of a text that is stored once and counted.
    pub occurrence: Option<String>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The commit that was checked out when it was made.
    pub head_sha: Option<String>,
    /// When it was said, made or committed.
    pub time: Millis,
    /// The importance that its author gave it, 0 to 1.
    pub importance: Option<f64>,
    /// Ids of memories it refers to.
    pub references: Vec<MemoryId>,
    /// What identifies it when it is written again.
    pub identity: Identity,
    /// The data of a commit other than its text.
    pub commit: Option<CommitRecord>,
    /// What a tool call did.
    pub work: Work,
}

impl Draft {
    /// Returns a draft without any optional field.
    pub fn new(kind: Kind, provenance: Provenance, text: impl Into<String>, time: Millis) -> Draft {
        Draft {
            kind,
            provenance,
            text: text.into(),
            indexed: None,
            lead: None,
            session: None,
            role: None,
            speaker: None,
            title: None,
            topic: None,
            source_id: None,
            path: None,
            files: Vec::new(),
            occurrence: None,
            branch: None,
            head_sha: None,
            time,
            importance: None,
            references: Vec::new(),
            identity: Identity::Fresh,
            commit: None,
            work: Work::default(),
        }
    }
}

/// The key of a memory within one store, opaque to callers.
///
/// It is valid for calls to the same store until the memory is purged. Keys of one store are ordered by when their
/// memories were first stored. [`MemoryId`] names a memory in every store, also after a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryKey(i64);

impl MemoryKey {
    /// The key of a memory that is shown but not stored, such as a range of messages at a level of detail.
    pub const NOT_STORED: MemoryKey = MemoryKey(-1);

    /// Returns whether the memory is in a store.
    pub fn is_stored(self) -> bool {
        self != MemoryKey::NOT_STORED
    }

    /// Returns the key of the row that an engine stores under `number`.
    pub(crate) const fn from_store(number: i64) -> MemoryKey {
        MemoryKey(number)
    }

    /// Returns the number under which an engine stores the row.
    pub(crate) const fn in_store(self) -> i64 {
        self.0
    }
}

/// A memory as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Its public id.
    pub id: MemoryId,
    /// Its key in the store.
    pub key: MemoryKey,
    /// Its kind.
    pub kind: Kind,
    /// Its provenance.
    pub provenance: Provenance,
    /// The redacted text.
    pub text: String,
    /// Its session.
    pub session: Option<SessionId>,
    /// Its ordinal in the session, from 0.
    pub ordinal: Option<i64>,
    /// The role of the speaker, for messages.
    pub role: Option<Role>,
    /// The speaker's name.
    pub speaker: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// A tag to filter by.
    pub topic: Option<String>,
    /// The client's own id of it.
    pub source_id: Option<String>,
    /// The file that it is about.
    pub path: Option<String>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The commit that was checked out when it was made.
    pub head_sha: Option<String>,
    /// When it was said, made or committed.
    pub time: Millis,
    /// The importance that its author gave it, 0 to 1.
    pub importance: Option<f64>,
    /// Whether it was marked important.
    pub marked: bool,
    /// Tokens of the text (o200k).
    pub tokens: i64,
    /// The text for the text index, where it differs.
    pub indexed: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_depends_on_every_part_and_on_where_parts_end() {
        let session = |name| SessionId::parse(name);
        let a = MemoryId::derive(Kind::Message, session("ab").as_ref(), "c");
        let b = MemoryId::derive(Kind::Message, session("a").as_ref(), "bc");
        let c = MemoryId::derive(Kind::Fact, session("ab").as_ref(), "c");
        assert!(a != b && a != c);
        assert_eq!(a, MemoryId::derive(Kind::Message, session("ab").as_ref(), "c"));
        assert_eq!(MemoryId::parse(a.as_str()), Some(a));
    }
}
