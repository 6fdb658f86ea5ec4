//! The data of a store, and the numbers from which keys are made.

use std::collections::{BTreeMap, BTreeSet};

use tiro_base::memory::{Kind, Level, MemoryId, MemoryKey, Millis, Provenance, Role};
use tiro_base::scope::{AuthorId, SessionId, TenantId};
use tiro_base::thread::ContentHash;
use tiro_store::decide::queue;
use tiro_store::{
    Attempt, ChunkKey, GraphRow, QueueKey, SegmentRow, SessionKey, ShownLine, StashCause, Statement,
    SubjectKey, SummaryRow,
};

pub use super::exchange::data::{Absent, Exchanged};
pub use super::threads::data::{Blob, Piece, PieceText, ThreadData, Turn};

/// Everything that a store holds.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The last number from which a key was made. No number is given twice.
    pub last: i64,
    /// How often each owner's memories changed.
    pub versions: BTreeMap<TenantId, i64>,
    /// The memories, also forgotten ones.
    pub memories: BTreeMap<MemoryKey, Stored>,
    /// The chunks of all memories.
    pub chunks: BTreeMap<ChunkKey, Chunk>,
    /// The sessions.
    pub sessions: BTreeMap<SessionKey, Session>,
    /// The session of each alias.
    pub aliases: BTreeMap<(TenantId, String), SessionKey>,
    /// The operations that forgot memories, by name.
    pub operations: BTreeMap<String, Act>,
    /// The ids of purged memories.
    pub purged: BTreeSet<(TenantId, MemoryId)>,
    /// The states of memories that are not here, by owner, by whether they are private, and by id.
    pub absent: BTreeMap<(TenantId, bool, MemoryId), Absent>,
    /// The statements in memories, in the order of storing, with their owners.
    pub statements: BTreeMap<SubjectKey, (TenantId, Statement)>,
    /// The queue of summaries.
    pub queue: BTreeMap<QueueKey, Waiting>,
    /// The attempts of providers to summarise messages of a session, in the order of storing.
    pub attempts: Vec<(SessionKey, Attempt)>,
    /// The threads, by number.
    pub threads: BTreeMap<i64, ThreadData>,
    /// The texts of threads.
    pub blobs: BTreeMap<(TenantId, ContentHash), Blob>,
    /// The holder of each lease, and when it ends.
    pub leases: BTreeMap<(TenantId, String), (String, Millis)>,
    /// The cursor of each import.
    pub cursors: BTreeMap<(TenantId, String), String>,
    /// The cache of answers.
    pub answers: BTreeMap<(TenantId, [u8; 32]), Answer>,
    /// The embeddings that providers made, each with its number.
    pub embeddings: BTreeMap<(TenantId, [u8; 32]), (i64, Vec<f32>)>,
    /// Sums of savings and of uses of the cache.
    pub counters: BTreeMap<(TenantId, &'static str), i64>,
    /// How many calls of a tool fell into each bucket.
    pub measurements: BTreeMap<(TenantId, String, u32), u64>,
    /// The parts of the graph of commits.
    pub graph: BTreeMap<TenantId, Vec<GraphRow>>,
    /// How many tokens contents have, each with its number.
    pub token_counts: BTreeMap<(TenantId, ContentHash), (i64, u32)>,
    /// What each author keeps private, and what readers other than the tenant left for themselves.
    pub private: BTreeMap<(TenantId, AuthorId), State>,
}

/// A memory with all that belongs to it and leaves with it.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its owner.
    pub owner: TenantId,
    /// Who said it.
    pub author: AuthorId,
    /// Whether only its author sees it.
    pub is_private: bool,
    /// Its id.
    pub id: MemoryId,
    /// Its kind.
    pub kind: Kind,
    /// Its provenance.
    pub provenance: Provenance,
    /// Its session.
    pub session: Option<SessionKey>,
    /// Its ordinal in the session.
    pub ordinal: Option<i64>,
    /// The role of the speaker.
    pub role: Option<Role>,
    /// The speaker's or author's name.
    pub speaker: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its tag.
    pub topic: Option<String>,
    /// The id that its client gave it.
    pub source_id: Option<String>,
    /// The file that it is about.
    pub path: Option<String>,
    /// The branch it was made on.
    pub branch: Option<String>,
    /// The commit that was checked out when it was made.
    pub head_sha: Option<String>,
    /// When it was made.
    pub time: Millis,
    /// When it was stored.
    pub stored_at: Millis,
    /// The importance that its author gave it.
    pub importance: Option<f64>,
    /// Whether it is marked as important.
    pub marked: bool,
    /// How many tokens its text has.
    pub tokens: i64,
    /// Its text.
    pub text: String,
    /// The text for the text index, if it differs.
    pub indexed: Option<String>,
    /// When it was forgotten.
    pub forgotten_at: Option<Millis>,
    /// The memories that it refers to.
    pub references: BTreeSet<MemoryId>,
    /// The files that it is about.
    pub paths: BTreeSet<String>,
    /// The files of a commit, in the order of its record.
    pub files: Vec<String>,
    /// The ids of a commit.
    pub shas: BTreeSet<String>,
    /// The parents of a commit.
    pub parents: Vec<String>,
    /// The keys of the occurrences of its text.
    pub repeats: BTreeSet<String>,
    /// The sessions that led to a commit.
    pub links: Vec<(SessionKey, f64)>,
    /// The changes of files by a tool call, by time and path.
    pub writes: BTreeMap<(Millis, String), FileChange>,
    /// The commits by a tool call, by the time it began and the id: when it ended, and the work tree.
    pub calls: BTreeMap<(Millis, String), (Millis, Option<String>)>,
    /// The memories that replaced it by request.
    pub newer: BTreeSet<MemoryKey>,
    /// Its terms in the stash.
    pub stashed: Option<Stashed>,
    /// What is exchanged of it.
    pub exchanged: Exchanged,
}

/// A change of a file.
#[derive(Clone, Debug)]
pub struct FileChange {
    /// The work tree it lies in.
    pub worktree: Option<String>,
    /// The branch that was checked out.
    pub branch: Option<String>,
    /// Hashes of the added and removed lines.
    pub lines: Vec<u32>,
}

/// The terms on which a memory is in the stash.
#[derive(Clone, Debug)]
pub struct Stashed {
    /// When it was stashed.
    pub stashed_at: Millis,
    /// When it leaves the stash.
    pub expires_at: Option<Millis>,
    /// Whether it never expires.
    pub is_protected: bool,
    /// Whether contexts leave it out.
    pub is_held_out: bool,
    /// Whether it was given as text.
    pub is_given: bool,
    /// Its topic in the stash.
    pub topic: Option<String>,
    /// Why it is there.
    pub cause: StashCause,
}

/// A piece of a memory's text. Without an embedding it waits for one.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Its memory.
    pub memory: MemoryKey,
    /// Its place among the chunks of the memory.
    pub place: usize,
    /// Where it begins in the text.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// How many tokens it has.
    pub tokens: i64,
    /// The vector space, and the vector.
    pub embedding: Option<(String, Vec<f32>)>,
}

/// A session with all that belongs to it and leaves with it.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its owner.
    pub owner: TenantId,
    /// Whether it is private, with everything in it.
    pub is_private: bool,
    /// Its name.
    pub name: SessionId,
    /// The branch that was last checked out in it.
    pub branch: Option<String>,
    /// The commit that was last checked out in it.
    pub head_sha: Option<String>,
    /// The client program.
    pub client: Option<String>,
    /// The root of its work tree.
    pub worktree: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The owner's version when it changed last.
    pub version: i64,
    /// The owner's version when its messages changed last, until that is worked off.
    pub grown: Option<i64>,
    /// The last ordinal that it gave.
    pub last: i64,
    /// The ordinal of the last message whose facts are extracted.
    pub noted: i64,
    /// The memory that summarised it when it was forgotten because of its age.
    pub retired: Option<MemoryId>,
    /// Its closed segments.
    pub segments: Vec<SegmentRow>,
    /// The summaries of its messages, all versions.
    pub summaries: Vec<SummaryRow>,
    /// The memory that summarises it.
    pub conversation: Option<Conversation>,
    /// What its last context showed.
    pub assembly: Option<Assembly>,
}

/// The memory that summarises a session.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// The memory.
    pub memory: MemoryKey,
    /// The last message that it was made of.
    pub last: i64,
    /// When it was made.
    pub made_at: Millis,
    /// When it is to be made again.
    pub due: Option<Millis>,
}

/// What a context shows.
#[derive(Clone, Debug)]
pub struct Assembly {
    /// The key of the context; `None` if some of it was stashed since.
    pub key: Option<[u8; 32]>,
    /// What it shows of each memory.
    pub lines: BTreeMap<MemoryKey, ShownLine>,
}

/// An operation that forgot memories.
#[derive(Clone, Debug)]
pub struct Act {
    /// Its owner.
    pub owner: TenantId,
    /// What it did.
    pub kind: ActKind,
    /// When it happened.
    pub at: Millis,
    /// When it was undone.
    pub undone_at: Option<Millis>,
    /// The memories that it forgot.
    pub memories: BTreeSet<MemoryKey>,
}

/// What an operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActKind {
    /// It forgot memories.
    Forget,
    /// It removed texts of the stash because of their age.
    Expire,
    /// It purged memories.
    Purge,
}

impl ActKind {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            ActKind::Forget => "forget",
            ActKind::Expire => "expire",
            ActKind::Purge => "purge",
        }
    }
}

/// An entry of the queue of summaries.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The session whose messages are to be summarised.
    pub session: SessionKey,
    /// The level of detail.
    pub level: Level,
    /// The first message.
    pub first: i64,
    /// The last message.
    pub last: i64,
    /// The provider's name.
    pub provider: String,
    /// Its state.
    pub entry: queue::QueueEntry,
    /// Who works on it.
    pub holder: Option<String>,
    /// When it changed last.
    pub changed_at: Millis,
}

/// A cached answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its place in the order of storing.
    pub number: i64,
    /// When it expires.
    pub expires: Millis,
    /// When it was used last.
    pub used: Millis,
    /// The answer.
    pub body: String,
}

/// The tenant of shared sessions while the reader has private ones of their names: nothing finds them by name.
pub fn nobody() -> TenantId {
    TenantId::new("\u{0}")
}

impl State {
    /// Returns a number that was never returned before.
    pub fn number(&mut self) -> i64 {
        self.last += 1;
        self.last
    }

    /// Returns the key of the owner's memory with this id, whether it is living or forgotten; a private one first.
    pub fn key_of(&self, owner: &TenantId, id: &MemoryId) -> Option<MemoryKey> {
        self.key_in(owner, id, true).or_else(|| self.key_in(owner, id, false))
    }

    /// Returns the key of the owner's memory with this id, among those that are private or those that are shared.
    pub fn key_in(&self, owner: &TenantId, id: &MemoryId, is_private: bool) -> Option<MemoryKey> {
        let is_it = |(_, memory): &(&MemoryKey, &Stored)| {
            memory.owner == *owner && memory.id == *id && memory.is_private == is_private
        };
        self.memories.iter().find(is_it).map(|(key, _)| *key)
    }

    /// Returns the key of the session with this name, but not with this alias.
    pub fn session_of(&self, owner: &TenantId, name: &SessionId) -> Option<SessionKey> {
        let is_it = |(_, session): &(&SessionKey, &Session)| session.owner == *owner && session.name == *name;
        self.sessions.iter().find(is_it).map(|(key, _)| *key)
    }

    /// Returns the key of the private or the shared session with this name, which is made if there is none.
    pub fn open_session(&mut self, owner: &TenantId, name: &SessionId, is_private: bool) -> SessionKey {
        let is_it = |(_, session): &(&SessionKey, &Session)| {
            let is_owners = session.owner == *owner || session.owner == nobody();
            is_owners && session.name == *name && session.is_private == is_private
        };
        if let Some((key, _)) = self.sessions.iter().find(is_it) {
            return *key;
        }
        let key = SessionKey::from_store(self.number());
        let is_hidden = !is_private && self.session_of(owner, name).is_some();
        let session = Session {
            owner: if is_hidden { nobody() } else { owner.clone() },
            is_private,
            name: name.clone(),
            branch: None,
            head_sha: None,
            client: None,
            worktree: None,
            title: None,
            version: 0,
            grown: None,
            last: -1,
            noted: -1,
            retired: None,
            segments: Vec::new(),
            summaries: Vec::new(),
            conversation: None,
            assembly: None,
        };
        self.sessions.insert(key, session);
        key
    }

    /// Returns the chunks of a memory, in order.
    pub fn chunks_of(&self, memory: MemoryKey) -> impl Iterator<Item = (ChunkKey, &Chunk)> {
        // The chunks of a memory are stored in order.
        let of = self.chunks.iter().filter(move |(_, chunk)| chunk.memory == memory);
        of.map(|(key, chunk)| (*key, chunk))
    }

    /// Returns the owner's memories.
    pub fn owned(&self, owner: &TenantId) -> impl Iterator<Item = (MemoryKey, &Stored)> {
        let owner = owner.clone();
        self.memories
            .iter()
            .filter(move |(_, memory)| memory.owner == owner)
            .map(|(key, memory)| (*key, memory))
    }
}

impl Stored {
    /// Returns whether it is not forgotten.
    pub fn is_living(&self) -> bool {
        self.forgotten_at.is_none()
    }

    /// Returns whether it leaves with the memories that it refers to.
    pub fn is_derived(&self) -> bool {
        self.provenance == Provenance::Derived || self.kind == Kind::Conversation
    }

    /// Returns whether it came from a peer. It is stored under the id under which it travels, then.
    pub fn came(&self) -> bool {
        let own = &self.exchanged;
        own.id.as_ref().map_or(own.by.is_some(), |travelling| *travelling == self.id)
    }

    /// Returns whether it is a fact or a decision that was extracted from a message.
    pub fn is_extract(&self) -> bool {
        self.provenance == Provenance::Derived && matches!(self.kind, Kind::Fact | Kind::Decision)
    }

    /// Returns whether it summarises something and leaves with it.
    pub fn is_derived_summary(&self) -> bool {
        self.provenance == Provenance::Derived && self.kind == Kind::Summary
    }
}
