//! What an engine does for itself.

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
    /// Indexes again what an earlier version of the program indexed, the newest first.
    Index,
    /// Merges parts of the text index. Searches find the same afterwards.
    Merge,
    /// Computes the sums, by which damage is found, of rows that another version of the program wrote.
    Sums,
    /// Lets go of what was opened for calls that ended a while ago.
    Release,
    /// Makes the data complete in one place, so that a copy of it is. Does nothing while another call reads or writes.
    Rest,
}

/// Where a store is.
pub trait Placed: Send + Sync {
    /// Returns the project whose memories the store holds.
    fn project(&self) -> &ProjectId;

    /// Returns where the engine keeps the data, as people would look for it.
    fn place(&self) -> String;
}

/// What an engine does for itself, each in its way; no answer of another call depends on it. A handle is opened by
/// [`Registry::store`](crate::Registry::store), and is current until somebody replaces or removes its data.
#[async_trait]
pub trait Lifecycle: Send + Sync {
    /// Returns what the handle has open: equal for two handles on the same data.
    fn identity(&self) -> String;

    /// Returns whether what is open is still what is at its place: it wasn't removed, moved or replaced.
    fn is_current(&self) -> bool;

    /// Lets go of everything that is open, as far as no call uses it; later calls fail. Nothing that was acknowledged
    /// is lost. Returns whether nothing is open any more.
    fn leave(&self) -> bool;

    /// Lets go of everything as [`Lifecycle::leave`] does, but waits up to `patience` for calls that use it. Returns
    /// whether nothing is open any more.
    fn close(&self, patience: Duration) -> bool;

    /// Returns the clock that leases are measured by, for a test to set.
    fn clock(&self) -> &Clock;

    /// Waits until a write could begin, but no longer than `patience`.
    ///
    /// Errors with [`Kind::Busy`](tiro_base::error::Kind::Busy) if other processes, or other calls of this process,
    /// write during all that time.
    async fn await_turn(&self, scope: &Scope, patience: Duration) -> Result<()>;

    /// Does one step of the work, some tens of milliseconds. Returns whether a step is left.
    async fn tend(&self, scope: &Scope, work: Upkeep) -> Result<bool>;

    /// Removes damaged vectors whose texts are sound, so that their chunks wait for new ones, and indexes the chunks
    /// that the text index lacks. Reads all vectors.
    async fn mend(&self, scope: &Scope) -> Result<Mended>;

    /// Gives space back that is no longer used. Returns how many bytes: 0 if it was little, or others use the store.
    async fn shrink(&self, scope: &Scope) -> Result<u64>;

    /// Copies the memories of the scope's owner, as they are at one moment, to the new file `target`. Other
    /// callers can read and write the store during the copying. The copy gets the name `target` only when it is
    /// complete and on the disk.
    ///
    /// Returns what is damaged. The copy has it too, but damaged memories are not restored from it.
    ///
    /// Errors if `target` exists. Also errors if the store is damaged so that a copy of it could not be restored.
    async fn back_up(&self, scope: &Scope, target: &Path) -> Result<Damage>;

    /// Copies everything in the store, as it is at one moment, to the new file `target`. Only cached answers and the
    /// leases of running processes are left out.
    ///
    /// Errors if `target` exists.
    async fn copy_whole(&self, scope: &Scope, target: &Path) -> Result<()>;
}
