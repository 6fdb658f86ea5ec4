//! The unit of everything that is stored: a [`Memory`] is a piece of text with a kind, a scope, a provenance and a time.
//!
//! Messages, commits, decisions and stashed segments are all memories; they differ in kind and lifecycle. Text, kind and
//! provenance of a memory never change; mark, stash, expiry and tombstone are stored separately.

use std::fmt;

use crate::error::{Error, Result, quoted};
use crate::scope::SessionId;

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
    /// Errors with [`Kind::BadInput`](crate::error::Kind::BadInput) where `text` can't be one.
    pub fn read(argument: &str, text: &str) -> Result<MemoryId> {
        MemoryId::parse(text).ok_or_else(|| {
            Error::bad_input(format!("`{argument}` is not the id of a memory: `{}`", quoted(text))).hint(
                "ids come with search results: `m` and 13 letters and digits, or SESSION#NUMBER of a message",
            )
        })
    }

    /// Returns `text` as an id, or `None` where it can't be one.
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

/// Declares an enum whose values are stored, parsed and shown by one word each.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// Returns the word by which it is stored and shown.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// Returns the value spelled `word`, or `None`.
            pub fn parse(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// The kind of a memory.
    Kind {
        /// One message of a conversation.
        Message = "message",
        /// A summary of messages.
        Summary = "summary",
        /// An exchange or a session, summarised.
        Conversation = "conversation",
        /// A git commit: message, stat and a bounded digest of its diff.
        Commit = "commit",
        /// A fact.
        Fact = "fact",
        /// A decision, and its reasons.
        Decision = "decision",
        /// A piece of code.
        CodeBlock = "code_block",
        /// A file, or part of one.
        FileContent = "file_content",
        /// An error message or a stack trace.
        ErrorLog = "error_log",
        /// Output of a program.
        DebugOutput = "debug_output",
        /// The state of a task.
        TaskState = "task_state",
        /// The findings of an inquiry.
        Research = "research",
    }
}

words! {
    /// The origin of a memory's text, which decides how far readers can trust it.
    Provenance {
        /// A user typed it.
        UserSaid = "user_said",
        /// A model wrote it.
        ModelSaid = "model_said",
        /// A tool printed it.
        ToolOutput = "tool_output",
        /// It was read from a file.
        File = "file",
        /// It was read from a git commit.
        GitCommit = "git_commit",
        /// It was read from another program's history.
        Imported = "imported",
        /// It was computed from other memories.
        Derived = "derived",
    }
}

words! {
    /// The role of a message's speaker.
    Role {
        /// The user, or an agent in the user's place.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// A tool's result.
        Tool = "tool",
        /// Instructions of the client.
        System = "system",
    }
}

words! {
    /// The groups of kinds. Each has candidates of its own in a search, so that no kind crowds out another.
    Group {
        /// Conversations and summaries.
        Conversation = "conversation",
        /// Commits.
        Commit = "commit",
        /// Facts, decisions, research and task states.
        Note = "note",
        /// Messages.
        Message = "message",
        /// Code, files, logs and output: searched only when named.
        Artifact = "artifact",
    }
}

words! {
    /// The level of detail of a summary.
    Level {
        /// One or two sentences: the outcome.
        Brief = "brief",
        /// A paragraph: the main points.
        Standard = "standard",
        /// Several paragraphs: also how the outcome was reached.
        Detailed = "detailed",
    }
}

impl Provenance {
    /// Every provenance, the most trusted first.
    ///
    /// The user and the model of a session are trusted most. A commit may come from anyone, and so may what was computed from
    /// one. A file, another program's history and a tool's output can hold text of strangers.
    const BY_TRUST: [Provenance; 7] = [
        Provenance::UserSaid,
        Provenance::ModelSaid,
        Provenance::GitCommit,
        Provenance::Derived,
        Provenance::File,
        Provenance::Imported,
        Provenance::ToolOutput,
    ];

    /// Returns the least trusted of `all`, which is the provenance of text made from all of them; `derived` for none.
    pub fn lowest(all: impl IntoIterator<Item = Provenance>) -> Provenance {
        let place = |one: &Provenance| Provenance::BY_TRUST.iter().position(|each| each == one);
        all.into_iter().max_by_key(place).unwrap_or(Provenance::Derived)
    }
}

impl Kind {
    /// Returns the group of the kind.
    pub fn group(self) -> Group {
        match self {
            Kind::Conversation | Kind::Summary => Group::Conversation,
            Kind::Commit => Group::Commit,
            Kind::Fact | Kind::Decision | Kind::Research | Kind::TaskState => Group::Note,
            Kind::Message => Group::Message,
            Kind::CodeBlock | Kind::FileContent | Kind::ErrorLog | Kind::DebugOutput => Group::Artifact,
        }
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
    /// Nothing: every write makes a new memory.
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

/// Names a memory within the store that it is kept in; only the store can look into it.
///
/// Good for later calls to the same store until the memory is purged. Keys of one store are ordered by when their memories
/// were first stored. What names a memory everywhere, also after a restore, is its [`MemoryId`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryKey(i64);

impl MemoryKey {
    /// The key of a memory that is shown and not stored, such as a range of messages at a level of detail.
    pub const NOT_STORED: MemoryKey = MemoryKey(-1);

    /// Returns whether a store keeps the memory.
    pub fn is_stored(self) -> bool {
        self != MemoryKey::NOT_STORED
    }

    /// Makes the key of what a store keeps under `number`.
    pub(crate) const fn from_store(number: i64) -> MemoryKey {
        MemoryKey(number)
    }

    /// Returns the number that the store keeps the memory under.
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
    pub seq: MemoryKey,
    /// What it is.
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

    #[test]
    fn what_is_made_of_several_is_trusted_as_the_least_of_them() {
        use Provenance::*;
        assert_eq!(Provenance::lowest([UserSaid, ModelSaid]), ModelSaid);
        assert_eq!(Provenance::lowest([ToolOutput, UserSaid, Imported]), ToolOutput);
        assert_eq!(Provenance::lowest([]), Derived);
        for one in Provenance::ALL {
            assert_eq!(Provenance::lowest([*one, UserSaid]), *one);
        }
    }

    #[test]
    fn words_parse_as_they_print() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(*kind));
        }
        assert_eq!(Kind::parse("Message"), None);
    }
}
