//! Cuts long texts into chunks, makes the texts that the indexes get for a chunk, and renders a chunk as an excerpt.
//! The functions here are pure.

mod code;
pub mod excerpt;
pub mod index_text;
mod split;

pub use code::{CodeChunk, Language, code};
pub use split::{Chunk, chunks};
