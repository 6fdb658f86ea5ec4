//! What a store of memories promises: one store for each project, shared by many processes.
//!
//! A [`Store`] is a handle on the memories of one project; a [`ReadStore`] is one that can't change them. A
//! [`Registry`] has the owner's projects and the ledger of spending, and opens their stores. [`Stores`] is what an
//! engine makes of a place: the program chooses one when it starts. Callers see keys ([`ChunkKey`] and others),
//! versions ([`Version`]) and plain values. Decisions that every engine takes the same way, such as who may take a
//! lease, are in [`decide`]. This crate opens and stores nothing: the engine does (`tiro-sqlite`). Ranking, summarising
//! and embedding happen elsewhere.
//!
//! # What every call promises
//!
//! **Scope.** Every call takes a [`Scope`](tiro_base::scope::Scope) and sees only the memories of its tenant, or owner, that
//! are shared or that its reader keeps private. If the
//! scope names sessions, the call sees only the memories of these sessions; the docs of a method say if it also
//! sees notes and commits. A call neither returns nor changes memories outside the scope, and doesn't reveal
//! whether there are any. If the scope is of a project that the store doesn't hold, the call fails with
//! [`Kind::NotFound`](tiro_base::error::Kind::NotFound). Most tables have a column for the owner; the rows of the
//! other tables refer to rows that have this column. The owners of one file share only the statistics of the
//! text index (how common a word is), the number of the newest change, and the file itself.
//!
//! **Privacy.** A memory is private or shared. What is private is seen, changed, forgotten and backed up by its author only;
//! to others it is unknown, like its id, its session, and all that is made of it. A session is private or shared as a whole:
//! its messages are what it is. Its name means the reader's private session first. A memory whose draft names no
//! visibility is as private as its session and the memories it refers to; one that is shared although its session is private
//! has no session. A shared memory is forgotten by its author or by the tenant. What is derived from a memory is forgotten
//! with it, whoever sees it. Answers, cursors and operations belong to their reader.
//!
//! **Visibility.** A call that reads sees the store as it was at one moment: of each write, it sees either
//! everything or nothing. When a call that writes returns, its effect is durable, and every read that begins
//! afterwards in any process sees it. A read that began before the call returned may not see its effect.
//!
//! **Atomicity.** A call that writes takes effect as a whole, or not at all if it fails. Calls that may take
//! long, such as those that save or forget many memories, consist of several such steps in order. Their docs
//! say so; after a failure such a call can safely be repeated. A memory changes together with its place in the
//! text index, its vectors, and the summaries made of it.
//!
//! **Two callers at once.** Writes take effect one after the other; each sees the effects of all earlier ones.
//! A writer waits up to ten seconds for other writers. Readers never wait for writers.
//!
//! **Errors.** [`Kind::Busy`](tiro_base::error::Kind::Busy): other processes wrote for too long, or a read took more
//! than a minute; the same call may succeed later. [`Kind::Store`](tiro_base::error::Kind::Store): the file can't be
//! opened, read or written, is damaged, was replaced while it was open, or belongs to a newer Tiro. If a method has
//! other errors, its docs list them.
//!
//! **Time.** `now` is the caller's date and is stored as such. The store's own clock decides when a lease ends.
//!
//! # Storage: promises
//!
//! The promises of a store, such as when a write is visible, which bytes a purge removes and which caller gets a lease,
//! are tested by a suite that knows no engine: the crate `tiro-conformance`, one function for each promise. Another
//! engine is added in three steps:
//!
//! 1. Write it in a crate of its own, as `tiro-sqlite` is. It uses [`decide`] (pure decisions) and the values, and creates its
//!    own keys. It implements [`Store`], [`Registry`] and [`Stores`]; [`methods!`] has the list.
//! 2. Run the suite against it: implement `tiro_conformance::subject::Engine`, the place of its data, which opens further
//!    handles on the same data, and call the suite's macros, as `crates/sqlite/src/tests/promises.rs` does.
//! 3. Let `cli::main` choose it. Nothing else has to change, because all other code gets [`Stores`].
//!
//! To add a promise, write a function in the file of its subject, and add a line to the table of the suite. The line
//! names a fault that breaks the promise: the suite also runs the function against a store with that fault, and fails
//! if the function passes there.

pub mod clock;
pub mod decide;
mod keys;
mod lifecycle;
mod registry;
mod restoring;
mod stores;
mod table;
mod traits;
pub mod tuning;
mod values;

pub use keys::{ChunkKey, QueueKey, SessionKey, SubjectKey, Version};
pub use lifecycle::{Lifecycle, Placed, Upkeep};
pub use registry::Registry;
pub use restoring::Restore;
pub use stores::{Backup, Files, Stores};
pub use traits::*;
pub use values::*;
