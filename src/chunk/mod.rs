//! Pieces of text: where a long text is cut, what the indexes hold of a piece, how a piece is shown. Pure.

pub mod excerpt;
pub mod index_text;
mod split;

pub use split::{Chunk, chunks};
