//! Stores memories: one file for each project, shared by many processes.
//!
//! [`Store`] is one open file of memories, [`Registry`] the owner's file with the list of projects and the ledger of
//! spending. SQLite is the only engine; its statements are in `sqlite/`. Callers see keys ([`ChunkKey`] and others),
//! versions ([`Version`]) and plain values. Decisions that every engine takes the same way, such as who may take a
//! lease, are in `decide/`. Ranking, summarising and embedding happen elsewhere.
//!
//! # What every call promises
//!
//! **Scope.** Every call takes a [`Scope`](crate::scope::Scope) and sees the memories of its owner only; a scope of
//! some sessions narrows to their memories, and to notes and commits where a method says so. A call neither returns nor
//! changes memories outside the scope, and doesn't reveal whether there are any. A scope of another project than the
//! store holds is refused with [`Kind::NotFound`](crate::error::Kind::NotFound). Most tables have a column for the
//! owner; rows of the others refer to a row that has one. The owners of one file share only the statistics of the text
//! index (how common a word is), the number of the newest change, and the file itself.
//!
//! **Visibility.** A call that reads sees the store at one moment: all of a write, or nothing of it. When a call that
//! writes returns, its effect is durable, and every read that begins afterwards in any process sees it. A read that
//! began before may not see it.
//!
//! **Atomicity.** A call that writes takes effect as a whole or, where it fails, not at all. Calls that may take long, saving
//! or forgetting many memories, consist of several such steps in order; their docs say so, and that repeating them after a
//! failure is safe. A memory changes together with its place in the text index, its vectors, and the summaries made of it.
//!
//! **Two callers at once.** Writes take effect one after the other; each sees those before it. A writer waits up to ten
//! seconds for others. Readers wait for no writer.
//!
//! **Errors.** [`Kind::Busy`](crate::error::Kind::Busy): other processes wrote for too long, or a read took more than a
//! minute; the same call may succeed later. [`Kind::Store`](crate::error::Kind::Store): the file can't be opened, read
//! or written, is damaged, was replaced while it was open, or belongs to a newer Tiro. A method documents its other
//! errors.
//!
//! **Time.** `now` is the caller's date and is stored as such. Leases end by the store's own clock.
//!
//! # Storage: promises
//!
//! The promises of a store, such as when a write is visible, which bytes a purge removes and which caller gets a lease,
//! are tested by a suite that is independent of the engine: `conformance/`, one function for each promise. A second
//! engine is added in four steps:
//!
//! 1. Write it in a folder beside `sqlite/`. It shares `decide/` (pure decisions) and `values/`, and makes its own keys.
//! 2. Implement the traits of `conformance/subject.rs` for it: `Subject` for a handle on a store, `Registrar` for a handle on a
//!    registry, and `Engine` for the place of their data, which opens further handles on the same data.
//! 3. Run the suite against it, as `conformance/tests.rs` does against SQLite: `cargo test --lib store::conformance`.
//! 4. Make `Store` and `Registry` choose between the engines. Nothing above this folder changes.
//!
//! A new promise is a function in the file of its subject and a line in the table of `conformance/mod.rs`. The line
//! names a fault that breaks the promise: the suite also runs the function against a store with that fault, and fails
//! if the function passes there.

mod clock;
#[cfg(test)]
mod conformance;
mod decide;
mod keys;
mod sqlite;
mod values;
pub(crate) mod vectors;

pub use keys::{ChunkKey, QueueKey, SessionKey, Version};
pub use sqlite::{Foreign, Registry, Store};
pub use values::*;
