//! Sessions, their messages, and the segments into which the messages are divided.

use crate::{StashedPlace, SummaryRow, Version};
use tiro_base::memory::{Kind, Memory, MemoryId, MemoryKey, Millis, Provenance, Role};
use tiro_base::scope::{AuthorId, SessionId, Visibility};

/// A session, with counts of its memories.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    /// Its name.
    pub id: SessionId,
    /// How many living memories it has.
    pub memories: i64,
    /// How many tokens these memories have (o200k).
    pub tokens: i64,
    /// The time of its earliest memory.
    pub first: Millis,
    /// The time of its latest memory.
    pub last: Millis,
    /// The branch that was last checked out in the session.
    pub branch: Option<String>,
    /// The commit that was last checked out in the session.
    pub head_sha: Option<String>,
}

/// How much was said in a session within a quarter of an hour. In all zones of today, a day begins with such a quarter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityRow {
    /// The session.
    pub session: SessionId,
    /// The time of the first message.
    pub first: Millis,
    /// The time of the last message.
    pub last: Millis,
    /// How many living messages there are.
    pub messages: i64,
    /// How many tokens these messages have (o200k).
    pub tokens: i64,
}

/// The length of the times that an [`ActivityRow`] counts, in milliseconds.
pub const QUARTER_HOUR: Millis = 15 * 60 * 1000;

/// If a script ran the session, the client's name ends with this. Such sessions are listed last.
pub const HEADLESS: &str = " headless";

/// The title and the client of a session, by which people recognise the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The title that the client gave the session, unless the topic of the memory that summarises the session is this
    /// title: then the title of this memory replaces it. Without a title, the beginning of the user's first message,
    /// marked if this message is damaged.
    pub title: Option<String>,
    /// The title that the client gave the session.
    pub given: Option<String>,
    /// The client program.
    pub client: Option<String>,
}

/// The client, work tree, title and aliases of a session. A field that is `None` doesn't change the stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The client program.
    pub client: Option<String>,
    /// The root of the session's work tree.
    pub worktree: Option<String>,
    /// The session's title.
    pub title: Option<String>,
    /// Other names of the session.
    pub aliases: Vec<String>,
    /// Who sees the session; `None` if the session is stored already, or if it is shared.
    pub visibility: Option<Visibility>,
}

/// A message without its text.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRow {
    /// Its key.
    pub key: MemoryKey,
    /// Its id.
    pub id: MemoryId,
    /// The ordinal of the message in the session, from 0.
    pub ordinal: i64,
    /// Its author.
    pub author: AuthorId,
    /// The role of the speaker.
    pub role: Option<Role>,
    /// The speaker's name.
    pub speaker: Option<String>,
    /// When it was said.
    pub time: Millis,
    /// How many tokens the text has (o200k).
    pub tokens: i64,
    /// Whether it was marked important.
    pub marked: bool,
    /// The importance that the author gave the message, from 0 to 1.
    pub importance: Option<f64>,
    /// Its kind.
    pub kind: Kind,
    /// Where its text came from.
    pub provenance: Provenance,
    /// Whether the text is damaged. The damage is known only after the text was read (see
    /// [`ReadMemories::checked_texts`](crate::ReadMemories::checked_texts)).
    pub is_damaged: bool,
}

/// A run of messages of a session. The whole run is summarised together, and moves between tiers together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentRow {
    /// The place of the segment among the segments of the session, from 0.
    pub number: i64,
    /// The ordinal of its first message.
    pub first: i64,
    /// The ordinal of its last message.
    pub last: i64,
    /// How many of the session's messages are living; 0 if all are forgotten.
    pub messages: i64,
    /// How many tokens the session's living messages have (o200k).
    pub tokens: i64,
}

/// A session whose messages changed since its segments and summaries were last updated: messages were added,
/// forgotten or restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrownSession {
    /// The session.
    pub session: SessionId,
    /// The version of the session's last change, for [`WriteSessions::worked_off`](crate::WriteSessions::worked_off).
    pub version: Version,
}

/// Returns a hash of the messages that a summary is made of. The hash covers the messages' ids, in order.
///
/// The text under an id never changes. So only the ids are hashed, and the texts don't have to be read.
pub fn source_hash<'a>(ids: impl IntoIterator<Item = &'a MemoryId>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("tiro 2026 summary sources");
    for id in ids {
        hasher.update(id.as_str().as_bytes());
        hasher.update(b"\n");
    }
    *hasher.finalize().as_bytes()
}

/// The state of a scope, which callers can read before any memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceState {
    /// The version of the scope. The scope gets a new version whenever a memory of the scope is stored, forgotten,
    /// restored or marked, and whenever an embedding or a summary of such a memory is stored. A version never occurs
    /// again later.
    pub version: Version,
    /// Whether no living memory is in the scope.
    pub is_empty: bool,
}

/// The limits for reading a session for a context.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ContextQuery {
    /// How many messages at the end of the closed segments are read. A segment is always read whole.
    pub recent: usize,
    /// All messages are read if their closed segments have at most this many tokens.
    pub whole: i64,
    /// Reading begins this many messages before the first message whose facts are not extracted yet.
    pub look_back: i64,
    /// The maximum number of texts that are read.
    pub texts: usize,
    /// A message with at least this importance counts as important.
    pub importance: f64,
    /// The maximum number of important messages that are read.
    pub important: usize,
    /// The maximum number of facts that are read.
    pub facts: usize,
}

/// The data from which a context of a session is chosen, all as of one moment.
#[derive(Clone, Debug, Default)]
pub struct ContextParts {
    /// The ordinal of the last message whose facts are extracted; -1 if there is none.
    pub noted: i64,
    /// The closed segments, in order.
    pub segments: Vec<SegmentRow>,
    /// The newest version of each summary, of all levels, in the order of the summarised messages.
    pub summaries: Vec<SummaryRow>,
    /// The ordinal from which on the messages were read.
    pub from: i64,
    /// The living messages from `from` on, in order.
    pub messages: Vec<MessageRow>,
    /// Texts of messages, in order, up to a limit: those that a context may show in full, and those after the last
    /// closed segment. The `bool` says whether the text is damaged.
    pub texts: Vec<(MemoryKey, String, bool)>,
    /// The tokens (o200k) of all living messages of the session.
    pub tokens: i64,
    /// The living messages that are marked as important, or whose importance is high enough, the latest first.
    pub important: Vec<Memory>,
    /// The living facts and decisions of the session, the latest first.
    pub facts: Vec<Memory>,
    /// The stashed memories of the session, ordered by key.
    pub stashed: Vec<StashedPlace>,
    /// How many chunks of the owner, in all sessions, have no embedding yet.
    pub pending: usize,
}
