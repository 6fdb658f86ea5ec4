//! Where memories live: one file a project, shared by many processes.
//!
//! [`Store`] is the one engine there is, SQLite ([`sqlite`]); what stands here is what callers know of it: the store, and the
//! plain values that it takes and returns. Nothing above this folder knows that the store is SQL.
//!
//! Nothing here knows what a good answer or a good summary is, or which model embeds: it keeps what others made, and
//! removes what was made of something that is gone.

mod clock;
mod decide;
mod keys;
mod sqlite;
mod values;
pub mod vectors;

pub use keys::{ChunkKey, QueueKey, SessionKey, Version};
pub use sqlite::{Foreign, Registry, Store};
pub use values::*;

/// Which of the two files a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// `projects/<name>-<id>/tiro.db`: the memories of a project.
    Project,
    /// `owner.db`: the owner's memories, the registry of projects and the installation's secret.
    Owner,
}
