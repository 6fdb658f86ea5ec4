//! Chunks: where a long text is cut, the texts that the indexes have of a chunk, and how a chunk is shown. Pure.

pub mod excerpt;
pub mod index_text;
mod split;

pub use split::{Chunk, chunks};
