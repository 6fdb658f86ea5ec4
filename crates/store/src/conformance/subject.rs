//! The methods of a store that are tested by promises, and the engines that implement them.
//!
//! To be tested, an engine implements [`Engine`] for the place of its data, [`Subject`] for its handles and
//! [`Registrar`] for its registries. [`Sqlite`] does so by delegating the calls.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::{
    About, BehindRow, CacheStats, CallRow, Check, ChunkKey, CommitLinks, CommitRow, ConversationRow, Damage,
    DenseCandidate, Exchange, Expired, Flavour, ForeignForgotten, ForeignSession, Forgotten, GraphRow,
    GrownSession, LeftSession, LevelCount, LexicalCandidate, LinkedCommit, Measurement, MessageRow,
    Neighbour, NewStatement, Operation, Origin, Outcome, PendingChunk, Planned, PreparedChunk,
    PreparedMemory, ProjectRow, QueueCounts, QueueKey, Queued, Reach, Receipt, Recorded, Registry,
    Reservation, Reset, ResetDone, RestoredMemory, Saved, Savings, SegmentRow, Selection, SentFilter,
    SentRow, SessionRow, ShownLine, ShownMemory, Sizes, SpendingRow, Spent, StashContents, StashExpired,
    StashPage, StashReceipt, StashedMemory, Stashing, Statement, Stats, Store, SummarisedSegment, Summary,
    SummaryRow, Superseded, ThreadRow, TurnRecord, TurnRow, Version, Vocabulary, Wanted, WriteRow,
};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Draft, Group, Level, Memory, MemoryId, MemoryKey, Millis};
use tiro_base::scope::{OwnerId, ProjectId, Scope, SessionId};
use tiro_base::thread::{ContentHash, Thread, ThreadName};

/// The owner of the memories in promises that don't name another owner.
pub const OWNER: &str = "ines";

/// Passes the list of a store's methods to the macro `then`. Each method takes a scope as its first argument and
/// returns a `Result`.
macro_rules! methods {
    ($then:ident) => {
        $then! {
            save(memories: Vec<PreparedMemory>, now: Millis) -> Receipt;
            memory(id: &MemoryId) -> Option<Memory>;
            memories(keys: Vec<MemoryKey>) -> Vec<Memory>;
            texts(keys: Vec<MemoryKey>) -> Vec<(MemoryKey, String)>;
            places(keys: Vec<MemoryKey>) -> Vec<Neighbour>;
            list(filter: &Filter, after: Option<MemoryKey>, limit: usize) -> Vec<Memory>;
            shown(found: Vec<(MemoryKey, ChunkKey)>) -> Vec<ShownMemory>;
            surroundings(session: &SessionId, ordinal: i64, before: usize, after: usize) -> Vec<Memory>;
            beside(keys: Vec<MemoryKey>) -> Vec<Memory>;
            important_messages(session: &SessionId, importance: f64, limit: usize) -> Vec<Memory>;
            facts(session: &SessionId, limit: usize) -> Vec<Memory>;
            references(memory: MemoryKey) -> Vec<MemoryKey>;
            refers_to(memory: MemoryKey) -> Vec<MemoryKey>;
            commit_named(prefix: &str) -> Option<(MemoryKey, ChunkKey)>;
            known_commits() -> Vec<String>;
            session_messages(session: &SessionId, from: i64) -> Vec<MessageRow>;
            session_tokens(session: &SessionId) -> i64;
            sessions(offset: usize, limit: usize) -> Vec<SessionRow>;
            session_stands(session: &SessionId) -> (Option<String>, Option<String>);
            about_sessions(sessions: Vec<SessionId>) -> Vec<About>;
            sessions_called(text: &str, limit: usize) -> Vec<SessionId>;
            describe_session(session: &SessionId, origin: Origin) -> ();
            known_elsewhere(session: &SessionId, ids: Vec<String>) -> HashSet<String>;
            source_version() -> Version;
            grown_sessions(limit: usize) -> Vec<GrownSession>;
            worked_off(grown: GrownSession) -> ();
            lexical(filter: &Filter, groups: &[Group], terms: Vec<tiro_text::words::Term>, limit: usize)
                -> (Vec<LexicalCandidate>, Vocabulary);
            dense(filter: &Filter, groups: &[Group], space: &str, embedding: &[f32], limit: usize)
                -> Vec<DenseCandidate>;
            cosines(space: &str, embedding: &[f32], chunks: Vec<ChunkKey>) -> Vec<(ChunkKey, f64)>;
            shares(terms: Vec<tiro_text::words::Term>, rarity: Vec<f64>, texts: Vec<String>) -> Vec<f64>;
            pending() -> usize;
            pending_chunks(content: Option<tiro_base::memory::Content>, limit: usize) -> Vec<PendingChunk>;
            save_embeddings(space: &str, embeddings: Vec<(PendingChunk, Vec<f32>)>) -> ();
            mark_other_spaces_pending(prose: &str, code: &str) -> usize;
            cached_embeddings(keys: Vec<[u8; 32]>) -> Vec<Option<Vec<f32>>>;
            cache_embeddings(entries: Vec<([u8; 32], Vec<f32>)>) -> ();
            derived_without_chunk(limit: usize) -> Vec<Memory>;
            add_chunks(found: Vec<(MemoryKey, Draft, Vec<PreparedChunk>)>) -> ();
            superseded(keys: Vec<MemoryKey>) -> Vec<Superseded>;
            keys_of(ids: Vec<MemoryId>) -> Vec<Option<MemoryKey>>;
            statements_in(keys: Vec<MemoryKey>) -> Vec<Statement>;
            statements(voice: &str, limit: usize) -> Vec<Statement>;
            add_statements(statements: Vec<NewStatement>, noted: Option<(SessionId, i64)>) -> ();
            noted(session: &SessionId) -> i64;
            remove_extracts(session: &SessionId, limit: usize) -> usize;
            mark(ids: &[MemoryId], marked: bool, importance: Option<f64>) -> Vec<MemoryId>;
            forget(selection: &Selection, operation: &str, now: Millis) -> Forgotten;
            retire(session: &SessionId, operation: &str, now: Millis) -> Forgotten;
            undo(operation: Option<&str>, now: Millis) -> Forgotten;
            undoable(operation: Option<&str>) -> Forgotten;
            operations(limit: usize) -> Vec<Operation>;
            selected(selection: &Selection, reach: Reach) -> Forgotten;
            forgotten_with(words: Vec<String>, most: usize) -> (Vec<(MemoryId, String)>, usize);
            forgotten_at(session: &SessionId, ordinal: i64) -> Option<MemoryId>;
            purge(operation: &str, now: Millis) -> Forgotten;
            forget_for_good(selection: &Selection, operation: &str, now: Millis) -> Forgotten;
            is_purged(id: &MemoryId) -> bool;
            segments(session: &SessionId) -> Vec<SegmentRow>;
            add_segments(session: &SessionId, segments: Vec<SegmentRow>) -> ();
            save_summary(summary: Summary, now: Millis) -> Saved;
            save_version(summary: Summary, since: Millis, now: Millis) -> Saved;
            foresee_version(summary: Summary, since: Millis) -> Saved;
            summaries(session: &SessionId, level: Option<Level>) -> Vec<SummaryRow>;
            summary(id: &MemoryId) -> Option<SummaryRow>;
            conversation(session: &SessionId) -> Option<ConversationRow>;
            save_conversation(memory: PreparedMemory, last: i64, source_hash: [u8; 32], now: Millis) -> Saved;
            postpone_conversation(session: &SessionId, due: Millis) -> ();
            due_conversations(now: Millis, limit: usize) -> Vec<SessionId>;
            save_quarter(memory: PreparedMemory, now: Millis) -> Outcome;
            quarter_is_retired(topic: &str) -> bool;
            summary_counts() -> Vec<LevelCount>;
            summarised_segments() -> Vec<SummarisedSegment>;
            enqueue(wanted: Wanted, not_before: Millis, now: Millis) -> ();
            is_queue_due(now: Millis) -> bool;
            next_queued(holder: &str, lease: Millis, now: Millis) -> Option<Queued>;
            finish(entry: QueueKey, holder: &str, now: Millis) -> ();
            fail(entry: QueueKey, holder: &str, error: &str, not_before: Millis, now: Millis) -> ();
            drop_queued(entry: QueueKey, holder: &str) -> ();
            queue_counts() -> QueueCounts;
            lease(name: &str, holder: &str, lasts: Millis) -> bool;
            release(name: &str, holder: &str) -> ();
            import_cursor(source: &str) -> Option<String>;
            set_import_cursor(source: &str, cursor: &str, now: Millis) -> ();
            cached(key: [u8; 32], now: Millis) -> Option<String>;
            cache(key: [u8; 32], body: String, now: Millis, ttl: Millis, max_bytes: i64) -> ();
            cache_stats() -> CacheStats;
            expired(now: Millis, before: Millis) -> Expired;
            remove_expired(now: Millis, before: Millis) -> Expired;
            left_sessions(before: Millis) -> Vec<LeftSession>;
            commits_without_summary(limit: usize) -> Vec<MemoryKey>;
            summary_of_commit(id: &MemoryId) -> Option<MemoryId>;
            commits_before(places: Vec<(String, Millis)>) -> Vec<Option<String>>;
            commits_made(after: (Millis, Option<MemoryKey>), until: Millis, limit: usize) -> Vec<CommitRow>;
            link_commits(links: Vec<CommitLinks>) -> ();
            links_of(commits: Vec<MemoryKey>) -> Vec<CommitLinks>;
            replace_commits(
                commits: Vec<MemoryKey>, among: Option<HashSet<MemoryKey>>, replaced: Vec<(MemoryKey, MemoryKey)>
            ) -> ();
            stand_ins(commits: Vec<MemoryKey>) -> Vec<(MemoryKey, (MemoryKey, ChunkKey))>;
            replaced_commits() -> Vec<(MemoryKey, String)>;
            first_evidence() -> Option<Millis>;
            file_writes(from: Millis, until: Millis) -> Vec<WriteRow>;
            commit_calls(from: Millis, until: Millis) -> Vec<CallRow>;
            commit_graph() -> Vec<GraphRow>;
            add_to_commit_graph(part: GraphRow) -> bool;
            sessions_behind(commit: MemoryKey) -> Vec<(SessionId, f64)>;
            behind(sessions: Vec<SessionId>, time: Millis) -> Vec<BehindRow>;
            commits_of(session: &SessionId) -> Vec<MemoryKey>;
            linked_commits(session: &SessionId, head: Option<String>, time: Millis, limit: usize)
                -> (Vec<LinkedCommit>, usize);
            sizes() -> Sizes;
            is_empty() -> bool;
            measure(measurements: Vec<Measurement>, savings: Savings) -> ();
            measurements() -> Vec<Measurement>;
            savings() -> Savings;
            stats(now: Millis) -> Stats;
            check() -> Check;
            back_up(target: &Path) -> Damage;
            restore_sessions(sessions: Vec<ForeignSession>) -> ();
            restore(restored: Vec<RestoredMemory>, now: Millis) -> Receipt;
            restore_forgotten(forgotten: ForeignForgotten) -> usize;
            stash(stashing: Stashing, now: Millis) -> StashReceipt;
            unstash(ids: &[MemoryId], keep: bool) -> Vec<MemoryId>;
            stashed(keys: Vec<MemoryKey>) -> Vec<StashedMemory>;
            list_stash(filter: &Filter, after: Option<MemoryKey>, limit: usize) -> Vec<StashedMemory>;
            stash_contents(page: StashPage) -> StashContents;
            held_out(session: &SessionId) -> Vec<(MemoryKey, Option<i64>)>;
            record_assembly(session: &SessionId, key: [u8; 32], lines: Vec<ShownLine>) -> ();
            expiring_stash(now: Millis, made_before: Millis) -> StashExpired;
            expire_stash(times: (Millis, Millis), operation: &str, limit: usize) -> StashExpired;
            thread(name: &ThreadName) -> Option<Thread>;
            copies(name: &ThreadName, paths: Vec<String>) -> HashMap<String, String>;
            record_turn(name: &ThreadName, turn: TurnRecord) -> Recorded;
            turn_by_call(name: &ThreadName, call_id: &str) -> Option<TurnRow>;
            turns(name: &ThreadName, limit: usize) -> Vec<TurnRow>;
            threads(session: Option<&SessionId>) -> Vec<ThreadRow>;
            other_exchanges(name: &ThreadName, limit: usize) -> Vec<Exchange>;
            reset_thread(name: &ThreadName, what: Reset) -> ResetDone;
            token_counts(hashes: &[ContentHash]) -> HashMap<ContentHash, u32>;
            note_token_counts(counts: &[(ContentHash, u32)]) -> ();
        }
    };
}
pub(crate) use methods;

/// An engine with the data of one promise: the store of a project, and the registry of the installation.
pub trait Engine: Sync {
    /// A handle on the store.
    type Store: Subject;
    /// A handle on the registry.
    type Registry: Registrar;

    /// Opens another handle on the store of the project [`project`], as another process would. All handles share
    /// the data.
    fn open(&self) -> Self::Store;

    /// Opens the backup `copy` as a store of the project [`project`].
    fn open_copy(&self, copy: &Path) -> Self::Store;

    /// Opens another handle on the registry of the owner [`OWNER`]. All handles share the data.
    fn registry(&self) -> Self::Registry;

    /// Returns a folder for backups. It is removed when the engine is dropped.
    fn folder(&self) -> PathBuf;

    /// Returns whether the bytes of `text` are in any file of the store.
    fn holds(&self, text: &str) -> bool;
}

/// Returns the project of the memories in promises.
pub fn project() -> ProjectId {
    ProjectId::from_random([7; 8])
}

macro_rules! subject {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        /// A handle on a store.
        pub trait Subject {
            /// Stops the clock by which the handle measures leases, and sets it to `now`.
            fn set_clock(&self, now: Millis);

            $(
                #[doc = concat!("Does as [`Store::", stringify!($name), "`] promises.")]
                async fn $name(&self, scope: &Scope $(, $argument: $type)*) -> Result<$answer>;
            )+
        }

        impl Subject for Store {
            fn set_clock(&self, now: Millis) {
                self.clock().set(now);
            }

            $(
                async fn $name(&self, scope: &Scope $(, $argument: $type)*) -> Result<$answer> {
                    subject!(@call self scope $name $($argument)*).await
                }
            )+
        }
    };
    (@call $self:ident $scope:ident save $memories:ident $now:ident) => {
        Store::save($self, $scope, $memories, $now, |_| {})
    };
    (@call $self:ident $scope:ident $name:ident $($argument:ident)*) => {
        Store::$name($self, $scope $(, $argument)*)
    };
}
methods!(subject);

macro_rules! registrar {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        /// A handle on a registry.
        pub trait Registrar {
            $(
                #[doc = concat!("Does as [`Registry::", stringify!($name), "`] promises.")]
                async fn $name(&self $(, $argument: $type)*) -> Result<$answer>;
            )+
        }

        impl Registrar for Registry {
            $(
                async fn $name(&self $(, $argument: $type)*) -> Result<$answer> {
                    Registry::$name(self $(, $argument)*).await
                }
            )+
        }
    };
}

registrar! {
    reserve(planned: Planned, now: Millis) -> Reservation;
    reserve_again(reservation: &mut Reservation, now: Millis) -> ();
    settle(reservation: Reservation, outcome: Spent) -> ();
    spending() -> Vec<SpendingRow>;
    sent(filter: SentFilter) -> (Vec<SentRow>, i64);
    secret(fresh: [u8; 32]) -> [u8; 32];
    note_retry_after(provider: &str, until: Millis) -> ();
    retry_after(provider: &str) -> Option<Millis>;
    by_id(id: &ProjectId) -> Option<ProjectRow>;
    by_place(place: &str) -> Option<ProjectRow>;
    all() -> Vec<ProjectRow>;
    record(id: &ProjectId, name: &str, folder: &str, place: &str, now: Millis) -> ();
    claim(id: &ProjectId, name: &str, folder: &str, place: &str, now: Millis) -> ProjectRow;
    forget_place(place: &str) -> ();
    absorb(from: &ProjectId, to: &ProjectId) -> ();
    remove(id: &ProjectId) -> ();
    note_copy(copy: &ProjectId, original: &ProjectId) -> ();
    original(copy: &ProjectId) -> Option<ProjectRow>;
}

/// An engine that keeps SQLite's files in a temporary folder.
pub struct Sqlite {
    folder: tempfile::TempDir,
}

impl Sqlite {
    /// Returns an engine without data.
    pub fn new() -> Sqlite {
        Sqlite { folder: tempfile::tempdir().unwrap() }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("store")
    }
}

impl Engine for Sqlite {
    type Store = Store;
    type Registry = Registry;

    fn open(&self) -> Store {
        Store::open(&self.data().join("tiro.db"), Flavour::Project, project()).unwrap()
    }

    fn open_copy(&self, copy: &Path) -> Store {
        Store::open(copy, Flavour::Project, project()).unwrap()
    }

    fn registry(&self) -> Registry {
        Registry::open(&self.folder.path().join("registry"), &OwnerId::new(OWNER)).unwrap()
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn holds(&self, text: &str) -> bool {
        std::fs::read_dir(self.data()).unwrap().any(|file| {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    }
}
