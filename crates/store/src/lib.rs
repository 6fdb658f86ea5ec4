//! The interface of a store of memories, and its promises. Each project has one store, which many processes share.
//!
//! A [`Store`] is a handle on the memories of one project; a [`ReadStore`] is a handle that can't change them. A
//! [`Registry`] has the owner's projects, the users of a server and the ledger of spending, and opens the stores of the
//! projects. [`Stores`]
//! are all stores of an installation, kept by one engine; the program chooses the engine when it starts. Callers see
//! keys ([`ChunkKey`] and others), versions ([`Version`]) and plain values. Decisions that are the same in every
//! engine, such as who may take a lease, are in [`decide`]. This crate doesn't open or store anything: engines such as
//! `tiro-sqlite` do. Ranking, summarising and embedding happen in other crates.
//!
//! # What every call promises
//!
//! **Scope.** Every call takes a [`Scope`](tiro_base::scope::Scope) and sees only memories of the scope's tenant (also
//! called owner) that are shared, or that are private to the scope's reader. If the scope names sessions, the call sees
//! only the memories of these sessions; the documentation of a method says so if it also sees notes and commits. A call
//! neither returns nor changes memories outside the scope, and doesn't reveal whether such memories exist. If the scope
//! names a project that the store doesn't hold, the call fails with
//! [`Kind::NotFound`](tiro_base::error::Kind::NotFound). Most tables have a column for the owner; the rows of the other
//! tables refer to rows that have this column. The owners of one file share only the statistics of the text index (how
//! common a word is), the number of the newest change, and the file itself.
//!
//! **Privacy.** A memory is private or shared. Only the author of a private memory can see, change, forget and back it
//! up. Others can learn nothing of a private memory: neither its id, nor its session, nor anything made of it. A
//! session is private or shared as a whole, together with its messages. If a reader has a private session with the same
//! name as a shared one, the name means the private session. A memory whose draft names no visibility is as private as
//! its session and the memories that it refers to. A shared memory of a private session is stored without its session.
//! A shared memory can be forgotten by its author, by the tenant, and by readers whose scope says so. If a scope hides the
//! shared part from its reader, the store holds for the call only what the reader keeps private, and what the call saves
//! is private. Everything derived from a memory is forgotten
//! together with it, whoever can see it. Answers, cursors and operations belong to their reader.
//!
//! **Visibility.** A call that reads sees the store as it was at one moment. Such a call sees either the whole effect
//! of a write or nothing of it. When a call that writes returns, its effect is durable, and every read that begins
//! afterwards in any process sees it. A read that began before the call returned may not see its effect.
//!
//! **Atomicity.** A call that writes takes effect as a whole, or not at all if it fails. Calls that may take long, such
//! as those that save or forget many memories, consist of several steps, each of which is atomic. Their documentation
//! says so. After a failure, such a call can safely be repeated. A memory changes together with its place in the text
//! index, its vectors, and the summaries made of it.
//!
//! **Two callers at once.** Writes take effect one after the other. Each write sees the effects of all earlier writes.
//! A writer waits up to ten seconds for other writers. Readers never wait for writers.
//!
//! **Errors.** [`Kind::Busy`](tiro_base::error::Kind::Busy): other processes wrote for too long, or a read took more
//! than a minute; the same call may succeed later. [`Kind::Store`](tiro_base::error::Kind::Store): the file can't be
//! opened, read or written, is damaged, was replaced while it was open, or belongs to a newer Tiro. If a method has
//! other errors, its documentation lists them.
//!
//! **Time.** `now` is the caller's date, and is stored as given. The store's own clock decides when a lease ends.
//!
//! # Storage: promises
//!
//! The promises of a store, such as when a write is visible, which bytes a purge removes and which caller gets a lease,
//! are tested by a suite that works for any engine: the crate `tiro-conformance`. This crate has one function for each
//! promise. Another engine is added in three steps:
//!
//! 1. Write the engine in a crate of its own, like `tiro-sqlite`. The engine's crate uses [`decide`] (pure decisions)
//!    and the values, and creates its own keys. It implements [`Store`], [`Registry`] and [`Stores`]. The macro
//!    [`methods!`] has the list of the methods of a store.
//! 2. Run the suite against it: implement `tiro_conformance::subject::Engine`, which stands for the place of the data
//!    and opens further handles on the same data. Call the suite's macros as in `crates/sqlite/src/tests/promises.rs`.
//! 3. Let `cli::main` choose the engine. Nothing else has to change, because all other code gets [`Stores`].
//!
//! To add a promise, write a function in the file of its subject, and add a line to the table of the suite. The line
//! names a fault that breaks the promise. The suite also runs the function against a store with that fault, and fails
//! if the function doesn't notice the fault.

pub mod clock;
pub mod decide;
mod exchange;
mod keys;
mod lifecycle;
mod members;
mod registry;
mod restoring;
mod stores;
mod table;
mod traits;
pub mod tuning;
mod values;

pub use exchange::{
    Change, Changes, ExchangedChunk, ExchangedMemory, ExchangedState, Incoming, IncomingMemory, MergeChanges,
    MergeOutcome, MergeRights, ReadChanges, WantedChanges,
};
pub use keys::{ChunkKey, QueueKey, SessionKey, SubjectKey, Version};
pub use lifecycle::{Lifecycle, Placed, Upkeep};
pub use members::{
    Access, AuditFilter, AuditRow, KeyChange, KeyRow, Members, ProjectRights, Rights, ShareRow, TeamChange,
    TeamRow, usually_shared,
};
pub use registry::Registry;
pub use restoring::Restore;
pub use stores::{Backup, Files, NextChange, Stores};
pub use traits::*;
pub use values::*;
