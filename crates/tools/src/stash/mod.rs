//! The stash: segments of context that are put aside, found again, and brought back.

mod given;
pub(super) mod hidden_segments;
mod named;
mod preview;

pub mod export_stash;
pub mod merge_stashed_context;
pub mod retrieve_stashed_context;
pub mod stash_context;
