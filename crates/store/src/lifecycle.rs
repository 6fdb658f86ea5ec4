//! The work that an engine does for its own purposes.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;

use crate::clock::Clock;
use crate::{Damage, Mended};
use tiro_base::error::Result;
use tiro_base::scope::{ProjectId, Scope};

/// Work that an engine does in bounded steps while nobody waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upkeep {
    /// Indexes again the texts that an earlier version of the program indexed, the newest first.
    Index,
    /// Merges parts of the text index. The results of searches don't change.
    Merge,
    /// Computes the checksums of rows that another version of the program wrote. Damage is found by these sums.
    Sums,
    /// Closes connections that were opened for calls that ended a while ago.
    Release,
    /// Brings the data together in one file, so that a copy of this file is complete. Does nothing while another call
    /// reads or writes.
    Rest,
}

/// Where a store is.
pub trait Placed: Send + Sync {
    /// Returns the project whose memories the store holds.
    fn project(&self) -> &ProjectId;

    /// Returns the place where the engine keeps the data, in a form that people can look up.
    fn place(&self) -> String;
}

/// The work that an engine does for its own purposes, each engine in its own way. The answers of calls don't depend on
/// this work. A handle is opened by [`Registry::store`](crate::Registry::store), and is current until somebody replaces
/// or removes its data.
#[async_trait]
pub trait Lifecycle: Send + Sync {
    /// Returns a text that identifies the open data. The text is the same for two handles on the same data.
    fn identity(&self) -> String;

    /// Returns whether the open data is still the data at its place, so that it was not removed, moved or replaced.
    fn is_current(&self) -> bool;

    /// Closes everything that no call uses. Later calls fail. No acknowledged write is lost. Returns true if nothing is
    /// open any more.
    fn leave(&self) -> bool;

    /// Like [`Lifecycle::leave`], but waits up to `patience` for running calls to end. Returns true if nothing is open
    /// any more.
    fn close(&self, patience: Duration) -> bool;

    /// Returns the clock that is used for leases. Tests can set it.
    fn clock(&self) -> &Clock;

    /// Waits until a write could begin, but no longer than `patience`.
    ///
    /// Errors with [`Kind::Busy`](tiro_base::error::Kind::Busy) if other processes, or other calls of this process,
    /// write during this whole time.
    async fn await_turn(&self, scope: &Scope, patience: Duration) -> Result<()>;

    /// Does one step of the work, which takes some tens of milliseconds. Returns whether another step is left.
    async fn tend(&self, scope: &Scope, work: Upkeep) -> Result<bool>;

    /// Removes damaged vectors whose texts are sound; their chunks then wait for new vectors. Also indexes chunks that
    /// are missing from the text index. Reads all vectors.
    async fn mend(&self, scope: &Scope) -> Result<Mended>;

    /// Gives unused space back to the file system. Returns the number of bytes. The number is 0 if there is little
    /// unused space, or if others use the store.
    async fn shrink(&self, scope: &Scope) -> Result<u64>;

    /// Copies the memories of the scope's owner, as they are at one moment, to the new file `target`. Other
    /// callers can read and write the store during the copying. The copy gets the name `target` only when it is
    /// complete and on the disk.
    ///
    /// Returns the damage that was found. The copy has the same damage, but damaged memories are not restored from it.
    ///
    /// Errors if `target` exists. Also returns an error if the store is so damaged that a copy could not be restored.
    async fn back_up(&self, scope: &Scope, target: &Path) -> Result<Damage>;

    /// Copies everything in the store, as it is at one moment, to the new file `target`. Only cached answers and the
    /// leases of running processes are left out.
    ///
    /// Errors if `target` exists.
    async fn copy_whole(&self, scope: &Scope, target: &Path) -> Result<()>;
}
