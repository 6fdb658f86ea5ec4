//! Turns text into vectors, on this machine and without a model server.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//!
//! The model is all-MiniLM-L6-v2. This model is small enough for a laptop's processor. Larger models were little better
//! in our measurements of retrieval of English texts. For other languages, multilingual-e5-small can be installed, and
//! is then used instead. The encoder is our own (see `forward`). The encoder packs texts together without padding, and
//! its weights are small. On one core, our encoder is two and a half times as fast as the reference implementation
//! (`evals embed`). Our encoder loads in milliseconds; the reference takes seconds.
//!
//! For texts of all lengths and scripts, vectors agree with the vectors of the reference to a cosine of .9999. A test
//! with a golden file checks this. Vectors of different models, poolings or normalisations belong to different spaces
//! and are never compared. Each space has a [`SpaceId`].
//!
//! This crate can't run models of other shapes. It doesn't divide documents into chunks: `chunk` does that, and
//! [`Embedder::split`] only keeps pieces within the model's limit. A failed embedding is an error, never a made-up
//! vector.

mod e5;
mod embedder;
mod encoder;
mod forward;
pub mod install;
mod kernels;
mod minilm;
mod model;
mod raw;
mod split;
#[cfg(test)]
mod tests;
mod unigram;
mod weights;
mod wordpiece;

use std::fmt;
use std::ops::{ControlFlow, Range};

pub use embedder::{Embedder, embed_whole};
pub use encoder::{Embedding, Encode, Encoded, Encoders, Loaded, Local, Piece};
pub use install::{InstalledModel, Models};
pub use model::Model;
pub use raw::give_back_freed;

/// The name of a vector space: model, pooling and normalisation. Only vectors of the same space can be compared.
///
/// Two kernels of the same model have the same space if their vectors agree to a cosine of .9999.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(String);

impl SpaceId {
    /// Returns the space named `name`, which has the form `model/pooling/normalisation`.
    pub fn new(name: impl Into<String>) -> SpaceId {
        SpaceId(name.into())
    }

    /// Returns the name in the form in which it is stored beside vectors.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SpaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A word of the text and the ids of its pieces. It has at least one piece.
struct Word<'a> {
    /// The range of the word in the text, in bytes.
    range: Range<usize>,
    /// The ids of its pieces.
    ids: &'a [u32],
}

/// A tokenizer: turns text into token ids.
trait Tokenize {
    /// Returns the ids of the tokens before and after every text.
    fn ends(&self) -> (u32, u32);

    /// Calls `on_word` with each word, in order, until `on_word` returns [`ControlFlow::Break`].
    fn words(&self, text: &str, on_word: impl FnMut(Word<'_>) -> ControlFlow<()>);

    /// Returns the ids of the start token, of `text` and of the end token, at most `limit` ids in all. Reads `text`
    /// only as far as the limit allows.
    fn encode(&self, text: &str, limit: usize) -> Vec<u32> {
        let (start, end) = self.ends();
        let mut ids = vec![start];
        let content = limit.saturating_sub(1).max(1);
        self.words(text, |word| {
            let room = content - ids.len();
            ids.extend(word.ids.iter().take(room));
            if ids.len() < content { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        ids.push(end);
        ids
    }

    /// Returns the number of tokens of the whole `text`, including the start and end tokens.
    fn count(&self, text: &str) -> usize {
        let mut count = 2;
        self.words(text, |word| {
            count += word.ids.len();
            ControlFlow::Continue(())
        });
        count
    }
}
