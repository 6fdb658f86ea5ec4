//! Memories that two stores exchange, and their states.

use super::stamp::Stamp;
use crate::PreparedMemory;
use tiro_base::memory::{CommitRecord, Kind, Memory, MemoryId};
use tiro_base::scope::{AuthorId, Visibility};

/// The part of a memory that can change after the memory was stored, with the time of each change.
///
/// The mark and the importance are one register, and whether the memory is forgotten is another one.
/// [`ExchangedState::merged`] says which of two states holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExchangedState {
    /// Whether it is marked as important.
    pub is_marked: bool,
    /// Its importance, from 0 to 1.
    pub importance: Option<f64>,
    /// When the mark or the importance changed last.
    pub marked_at: Stamp,
    /// Whether it is forgotten.
    pub is_forgotten: bool,
    /// When it was forgotten or restored last.
    pub forgotten_at: Stamp,
    /// Whether it is removed for good. Nothing else of the state counts then.
    pub is_purged: bool,
}

/// Which changes a peer wants.
#[derive(Clone, Debug)]
pub struct WantedChanges {
    /// The kinds of memories. References to memories of other kinds are left out. The session of a memory is left out
    /// unless messages are among the kinds. Memories that no peer gets ([`is_exchanged`]) are left out in any case.
    ///
    /// [`is_exchanged`]: crate::decide::exchange::is_exchanged
    pub kinds: Vec<Kind>,
    /// The peer that asks. Changes that came from it, and still are what it said, are left out.
    pub peer: Option<String>,
    /// Whether memories that are private to the reader are wanted too.
    pub with_private: bool,
}

/// Changes of a store, in the order in which they happened.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The changes, by ascending number. A memory that changed several times is there only once, as it is now.
    pub changes: Vec<Change>,
    /// The number after which the next page begins. Larger than the number of the last change if further changes were
    /// looked at that are not wanted.
    pub next: i64,
    /// Whether there were no further changes when the page was read.
    pub is_last: bool,
}

/// The present state of a memory that was stored or changed.
#[derive(Clone, Debug)]
pub struct Change {
    /// The number of the change. Numbers rise with each change of the store, in the order in which changes become
    /// visible.
    pub number: i64,
    /// The id under which the memory travels.
    pub id: MemoryId,
    /// Its kind.
    pub kind: Kind,
    /// Its author, by the name that the peer uses.
    pub author: AuthorId,
    /// Who sees it in this store.
    pub visibility: Visibility,
    /// Its state.
    pub state: ExchangedState,
    /// Its content. `None` if it is forgotten, purged, not here, or damaged, or if its author is neither the reader nor
    /// known to the peer only through this store.
    pub content: Option<Box<ExchangedMemory>>,
}

/// The content of a memory that travels: everything by which another store can store the same memory.
///
/// Ids, author and session are those under which the memory travels.
#[derive(Clone, Debug)]
pub struct ExchangedMemory {
    /// The memory. Its key is that of this store, and means nothing elsewhere.
    pub memory: Memory,
    /// The memories that it refers to, except those that are not exchanged.
    pub references: Vec<MemoryId>,
    /// The memories that it replaces by request, except those that are not exchanged.
    pub supersedes: Vec<MemoryId>,
    /// The memories that replace it by request, except those that are not exchanged.
    pub superseded_by: Vec<MemoryId>,
    /// How many bytes at the beginning of the text are embedded; `None` if the whole text is embedded.
    pub lead: Option<usize>,
    /// The files it touches.
    pub files: Vec<String>,
    /// If the memory is a commit, its fields except the text.
    pub commit: Option<CommitRecord>,
    /// Its chunks, in order; empty if the text index doesn't contain the memory.
    pub chunks: Vec<ExchangedChunk>,
}

impl ExchangedMemory {
    /// Returns the approximate size of the content in bytes.
    pub fn bytes(&self) -> usize {
        let text = self.memory.text.len() + self.memory.indexed.as_ref().map_or(0, String::len);
        let paths = self.files.iter().map(|text| text.len() + size_of::<String>());
        let vector =
            |chunk: &ExchangedChunk| chunk.embedding.as_ref().map_or(0, |(_, vector)| 4 * vector.len());
        text + paths.sum::<usize>() + self.chunks.iter().map(vector).sum::<usize>()
    }
}

/// A piece of a memory that travels.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangedChunk {
    /// The byte of the text at which the piece begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The vector space and the embedding; `None` if the piece waits for its embedding.
    pub embedding: Option<(String, Vec<f32>)>,
}

/// A change that came from a peer, ready to be merged. It was checked like every write: the text is redacted, chunked and
/// counted here, and the stamps are not ahead of the clock ([`ExchangedState::is_ahead`]).
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The id under which the memory travels.
    pub id: MemoryId,
    /// Its kind.
    pub kind: Kind,
    /// Its author, by the name that travels.
    pub author: AuthorId,
    /// Who is to see the memory here. Counts only if the memory is not known yet.
    pub visibility: Visibility,
    /// Its state.
    pub state: ExchangedState,
    /// Its content, if it came along.
    pub content: Option<Box<IncomingMemory>>,
}

impl Incoming {
    /// Returns the full id of the commit whose content came along.
    pub fn commit(&self) -> Option<&str> {
        let commit = self.content.as_ref()?.memory.draft.commit.as_ref()?;
        Some(&commit.sha)
    }
}

/// The content of a memory that came from a peer.
#[derive(Clone, Debug)]
pub struct IncomingMemory {
    /// The memory. Its id, and the ids in its references, are those under which memories travel. The draft's author,
    /// visibility and importance don't count: [`Incoming`] has them. The draft's session is the one that travels.
    pub memory: PreparedMemory,
    /// The ordinal of the message in its session.
    pub ordinal: Option<i64>,
    /// The memories that replace it by request. The memories that it replaces are in its draft.
    pub superseded_by: Vec<MemoryId>,
}

/// What a peer may change in memories that belong neither to the scope's reader nor to the reader's private part. Of
/// the reader's own memories, a peer may change everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeRights {
    /// Whether it may mark memories of other authors, and set their importance.
    pub marks_others: bool,
    /// Whether it may forget, restore and purge memories of other authors, and store memories in their name.
    pub forgets_others: bool,
}

impl MergeRights {
    /// Everything is allowed, as to the server on which the user relies.
    pub const ALL: MergeRights = MergeRights { marks_others: true, forgets_others: true };
}

/// What became of an incoming change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The memory was stored; it may be forgotten at once, if it is forgotten there or here.
    Stored,
    /// The memory was known, and its state changed.
    Changed,
    /// The memory was known, and nothing changed.
    Known,
    /// The memory is not here. Its state is remembered, and holds as soon as the memory arrives.
    Remembered,
    /// The memory was purged here, so its content was not stored.
    Purged,
    /// Another text is stored under the id, or the same commit under another id. Nothing was changed.
    Conflict,
    /// The peer has no right to the whole change. What it may change was merged.
    Refused,
}
