//! The unit of everything that is stored: a [`Memory`] is a piece of text with a kind, a scope, a provenance and a
//! time.
//!
//! Messages, commits, decisions and stashed segments are all memories; they differ in kind and lifecycle. The text, the
//! kind and the provenance of a memory never change. A separate place stores whether the memory is marked, stashed,
//! expiring or forgotten.

mod enums;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, quoted};
use crate::scope::{AuthorId, SessionId, Visibility};

pub use self::enums::words;
pub use self::enums::{Content, Group, Kind, Level, Provenance, Role};

/// Milliseconds since 1970-01-01 UTC.
pub type Millis = i64;

/// The maximum number of bytes of a memory's text, for calls, imports and backups. Arbitrary: about a hundred times
/// the longest answer; a text of this size takes seconds to store.
pub const LONGEST_TEXT: usize = 16 << 20;

/// The id of a memory: `m` and 13 characters of base 32, derived from the memory's kind, session and key.
///
/// The same message of the same session has the same id on every machine, and so does the same commit, so restoring a
/// backup adds no duplicates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemoryId(String);

impl MemoryId {
    /// Returns the id of the memory of this kind whose name within `session` is `key`.
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

    /// Reads `text`, the value of the argument `argument`, as the id of a memory.
    ///
    /// Errors with [`Kind::BadInput`](crate::error::Kind::BadInput) if `text` doesn't have the form of an id.
    pub fn read(argument: &str, text: &str) -> Result<MemoryId> {
        MemoryId::parse(text).ok_or_else(|| {
            Error::bad_input(format!("`{argument}` is not the id of a memory: `{}`", quoted(text))).hint(
                "search results show ids: `m` and 13 letters and digits, or SESSION#NUMBER of a message",
            )
        })
    }

    /// Returns `text` as an id, or `None` if it doesn't have the form of an id.
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
    /// A hash of the commit's changes. A rebased or cherry-picked copy of the commit has the same hash. `None` for
    /// merges and empty commits.
    pub patch_id: Option<String>,
    /// The paths that the commit changed, in the order in which the digest lists them.
    pub files: Vec<String>,
}

/// The effects of a tool call: evidence of which session led to a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The root of its work tree.
    pub worktree: Option<String>,
    /// When its result came.
    pub ended: Option<Millis>,
    /// The files it changed.
    pub writes: Vec<FileWrite>,
    /// The abbreviated ids of the commits that the call made, as git printed them. `None` if it made no commit.
    pub commits: Option<Vec<String>>,
}

/// A file that was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileWrite {
    /// The path of the file, relative to the root of the work tree.
    pub path: String,
    /// The root of its work tree.
    pub worktree: Option<String>,
    /// Hashes of the lines that were added and removed. Empty if they are unknown.
    pub lines: Vec<u32>,
}

/// What identifies a memory, so that a repeated write of the same memory is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A key that names the memory within its kind and session: a client's message id, or a commit's patch and time.
    Named(String),
    /// Its redacted text. In prose, case, spaces and the stops at the ends of words make no difference.
    Text,
    /// Its redacted text, byte for byte. The text is compared only with other texts that were given to the stash. Such
    /// a text may expire, so it is never treated as the same memory as a text that was stored in another way.
    Segment,
    /// Nothing identifies the memory: every write makes a new one.
    Fresh,
    /// The id of a memory that is restored from a backup.
    Known(MemoryId),
}

/// A memory before it is redacted and stored.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Its kind.
    pub kind: Kind,
    /// Its provenance.
    pub provenance: Provenance,
    /// The text, not redacted yet.
    pub text: String,
    /// The text for the text index, if the memory's own text is not indexed. For a commit, the indexed text is the text
    /// without the paths.
    pub indexed: Option<String>,
    /// The beginning of the text, if only the beginning is embedded and shown. For a commit, the beginning is the
    /// message.
    pub lead: Option<String>,
    /// Who said the memory. `None` means the one who writes the memory.
    pub author: Option<AuthorId>,
    /// Who sees the memory. With `None`, the memory is as private as its session and the memories that it refers to.
    pub visibility: Option<Visibility>,
    /// Its session.
    pub session: Option<SessionId>,
    /// The role of the speaker, for messages.
    pub role: Option<Role>,
    /// The speaker's name, if it says more than the role.
    pub speaker: Option<String>,
    /// The title of the memory, such as the subject of a commit or the title of a document.
    pub title: Option<String>,
    /// A tag to filter by.
    pub topic: Option<String>,
    /// The id that the client gave the memory: the id of a message, or the full id of a commit.
    pub source_id: Option<String>,
    /// The file that the memory is about, relative to the project.
    pub path: Option<String>,
    /// The files that a tool call read or changed, relative to the project. The files of a commit are in `commit`
    /// instead.
    pub files: Vec<String>,
    /// The key of one occurrence of the text. `Some` if the text is stored only once and its occurrences are counted.
    pub occurrence: Option<String>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The commit that was checked out when the memory was made.
    pub head_sha: Option<String>,
    /// When the text was said, made or committed.
    pub time: Millis,
    /// The importance that the author gave the memory, from 0 to 1.
    pub importance: Option<f64>,
    /// Ids of memories it refers to.
    pub references: Vec<MemoryId>,
    /// Ids of memories that it replaces.
    pub supersedes: Vec<MemoryId>,
    /// The data by which a repeated write of the memory is recognised.
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
            author: None,
            visibility: None,
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
            supersedes: Vec::new(),
            identity: Identity::Fresh,
            commit: None,
            work: Work::default(),
        }
    }
}

/// The key of a memory within one store, opaque to callers.
///
/// A key is valid for calls to the same store until the memory is purged. Keys of the same store are ordered by when
/// their memories were first stored. To identify a memory in every store, even after a restore, use its [`MemoryId`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemoryKey(i64);

impl MemoryKey {
    /// The key of a memory that is shown but not stored, such as a summary of a range of messages.
    pub const NOT_STORED: MemoryKey = MemoryKey(-1);

    /// Returns whether the memory is in a store.
    pub fn is_stored(self) -> bool {
        self != MemoryKey::NOT_STORED
    }

    /// Returns the key of the row that an engine stores under `number`.
    pub const fn from_store(number: i64) -> MemoryKey {
        MemoryKey(number)
    }

    /// Returns the number under which the engine stores the row.
    pub const fn in_store(self) -> i64 {
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
    /// Who said it.
    pub author: AuthorId,
    /// Who sees it.
    pub visibility: Visibility,
    /// The redacted text.
    pub text: String,
    /// Its session.
    pub session: Option<SessionId>,
    /// Its ordinal in the session. Ordinals begin with 0.
    pub ordinal: Option<i64>,
    /// The role of the speaker, for messages.
    pub role: Option<Role>,
    /// The speaker's name.
    pub speaker: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// A tag to filter by.
    pub topic: Option<String>,
    /// The id that the client gave the memory.
    pub source_id: Option<String>,
    /// The file that it is about.
    pub path: Option<String>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The commit that was checked out when the memory was made.
    pub head_sha: Option<String>,
    /// When the text was said, made or committed.
    pub time: Millis,
    /// The importance that the author gave the memory, from 0 to 1.
    pub importance: Option<f64>,
    /// Whether it was marked important.
    pub marked: bool,
    /// How many tokens (o200k) the text has.
    pub tokens: i64,
    /// The text for the text index, if the memory's own text is not indexed.
    pub indexed: Option<String>,
    /// Whether the text or another part was damaged in the file after it was stored.
    pub is_damaged: bool,
}

/// The line that answers show with a damaged text.
pub const DAMAGED: &str = "damaged: this is not what was stored";

/// Returns `text`. If the text is damaged, a mark that says so is put before the text.
pub fn marked(text: String, is_damaged: bool) -> String {
    if is_damaged { format!("[{DAMAGED}] {text}") } else { text }
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
