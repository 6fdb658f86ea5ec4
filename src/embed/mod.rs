//! Text to vectors, on this machine and without a model server.
//!
//! The default and only shipped model is all-MiniLM-L6-v2: small enough for a laptop's processor, good enough that
//! larger ones gained little in our measurements of retrieval. The encoder is our own (see `forward`): a packed
//! pass over 16-bit weights, about twice as fast on one core as the reference implementation and ready in milliseconds,
//! where the reference takes seconds to load.
//!
//! Vectors agree with the reference to a cosine of .9999 on texts of all lengths and scripts, which a golden file
//! holds. Vectors of different models, poolings or normalisations are never compared: each names its [`SpaceId`].
//!
//! It is not: a runtime for other models, a chunker (documents are divided by `chunk`; [`Embedder::split`] only
//! keeps to the embedder's limit), or a place that ever replaces a failed embedding by a made-up vector.

mod fake;
mod forward;
pub mod install;
mod kernels;
mod minilm;
mod raw;
mod split;
#[cfg(test)]
mod tests;
mod weights;
mod wordpiece;

use std::fmt;
use std::ops::Range;

use crate::error::Result;
pub use fake::FakeEmbedder;
pub use minilm::MiniLm;
pub use raw::give_back_freed;

/// What vectors must share to be comparable: the model, how its tokens were pooled, how the result was normalised.
///
/// Two kernels of the same model share a space if their vectors agree to a cosine of .9999.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpaceId(String);

impl SpaceId {
    /// Returns the space named `name`, which reads `model/pooling/normalisation`.
    pub fn new(name: impl Into<String>) -> SpaceId {
        SpaceId(name.into())
    }

    /// Returns the name, as it is stored beside vectors.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SpaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What turns texts into vectors.
///
/// The same text gives the same vector to the last bit, alone or among others, on any number of threads; another
/// processor or version may differ within a cosine of .9999.
pub trait Embedder: Send + Sync {
    /// Returns the space that all vectors are in.
    fn space(&self) -> &SpaceId;

    /// Returns how many numbers a vector has.
    fn dimensions(&self) -> usize;

    /// Returns how many tokens of a text are read, start and end tokens included; what is beyond is ignored.
    fn max_tokens(&self) -> usize;

    /// Returns a vector of length 1 for each text, in their order, working on up to `threads` threads.
    ///
    /// An empty text has a vector too. This blocks: about 30 ms for each text of full length.
    fn embed(&self, texts: &[&str], threads: usize) -> Result<Vec<Vec<f32>>>;

    /// Returns how many tokens `text` has, start and end tokens included, however long it is.
    fn count(&self, text: &str) -> usize;

    /// Returns where to cut `text` so that each piece has at most `max_tokens` tokens, start and end included, of
    /// which up to `overlap` (at most a quarter) repeat the end of the piece before.
    ///
    /// The ranges are of bytes, in order, without the blanks around them; they fall between words, at the end of a
    /// paragraph, line or sentence where one is near. A blank text has no pieces. A word with more tokens than
    /// allowed (100 at most, in practice encoded data) is a piece by itself that exceeds it. Takes time linear
    /// in the text, and memory for the pieces only.
    fn split(&self, text: &str, max_tokens: usize, overlap: usize) -> Vec<Range<usize>>;
}
