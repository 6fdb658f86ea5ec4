//! Chunks: where a long text is cut, which texts the indexes get for a chunk, and how a chunk is shown. The functions
//! here are pure.

mod code;
pub mod excerpt;
pub mod index_text;
mod split;

pub use code::{CodeChunk, Language, code};
pub use split::{Chunk, chunks};
