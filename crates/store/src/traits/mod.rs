//! The methods of a store, in one file for each subject. Methods that read and methods that write are in separate
//! traits.

mod bookkeeping;
mod commits;
mod embeddings;
mod forgetting;
mod memories;
mod queue;
mod records;
mod search;
mod sessions;
mod stash;
mod statements;
mod summaries;
mod threads;

pub use bookkeeping::Bookkeeping;
pub use commits::{ReadCommits, WriteCommits};
pub use embeddings::{ReadEmbeddings, WriteEmbeddings};
pub use forgetting::{Forget, ReadForgotten};
pub use memories::{ReadMemories, WriteMemories};
pub use queue::{ReadQueue, WorkQueue};
pub use records::{ReadRecords, WriteRecords};
pub use search::Search;
pub use sessions::{ReadSessions, WriteSessions};
pub use stash::{ReadStash, WriteStash};
pub use statements::{ReadStatements, WriteStatements};
pub use summaries::{ReadSummaries, WriteSummaries};
pub use threads::{ReadThreads, WriteThreads};

use crate::{Lifecycle, MergeChanges, Placed, ReadChanges, Restore};

/// A read-only handle on the memories of one project, or on the memories that belong to an owner and to no project. The
/// code that answers questions gets this handle, so the compiler refuses code that changes something while it answers.
///
/// [The crate](crate) says what all methods promise.
pub trait ReadStore:
    Placed
    + ReadMemories
    + ReadSessions
    + Search
    + ReadEmbeddings
    + ReadCommits
    + ReadStatements
    + ReadForgotten
    + ReadSummaries
    + ReadQueue
    + ReadStash
    + ReadThreads
    + ReadRecords
    + ReadChanges
{
}

impl<T> ReadStore for T where
    T: Placed
        + ReadMemories
        + ReadSessions
        + Search
        + ReadEmbeddings
        + ReadCommits
        + ReadStatements
        + ReadForgotten
        + ReadSummaries
        + ReadQueue
        + ReadStash
        + ReadThreads
        + ReadRecords
        + ReadChanges
{
}

/// A handle on the memories of one project, or on the memories that belong to an owner and to no project.
///
/// [The crate](crate) says what all methods promise.
pub trait Store:
    ReadStore
    + Bookkeeping
    + WriteMemories
    + WriteSessions
    + WriteEmbeddings
    + WriteCommits
    + WriteStatements
    + Forget
    + WriteSummaries
    + WorkQueue
    + WriteStash
    + WriteThreads
    + WriteRecords
    + MergeChanges
    + Restore
    + Lifecycle
{
}

impl<T> Store for T where
    T: ReadStore
        + Bookkeeping
        + WriteMemories
        + WriteSessions
        + WriteEmbeddings
        + WriteCommits
        + WriteStatements
        + Forget
        + WriteSummaries
        + WorkQueue
        + WriteStash
        + WriteThreads
        + WriteRecords
        + MergeChanges
        + Restore
        + Lifecycle
{
}
