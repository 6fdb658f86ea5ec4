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

pub use minilm::Embedder;
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
