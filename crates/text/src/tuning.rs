//! The tuned numbers for indexing texts and looking up words.

/// The maximum number of words of a query that are looked for. Arbitrary: even a long question names few things, and
/// most words of a pasted log name nothing.
pub const MOST_TERMS: usize = 48;

/// The maximum number of commits that a query may name by their ids. Arbitrary.
pub const MOST_COMMIT_IDS: usize = 8;

/// The maximum number of identifiers of a query that are looked for as phrases. Arbitrary.
pub const MOST_PHRASES: usize = 8;

/// The factor by which the weight of the exact form of an identifier is multiplied. Measured by `evals words`.
pub const EXACT_FACTOR: u8 = 2;

/// The maximum number of words of a phrase. Longer phrases are paths or noise, and their words are looked for anyway.
/// Arbitrary.
pub const LONGEST_PHRASE: usize = 8;

/// The maximum number of words of a neighbouring turn that count as context. Arbitrary: most turns have fewer words
/// than this, and only a small part of a long answer counts.
pub const NEIGHBOUR_WORDS: usize = 80;

/// The maximum number of tokens (o200k) of a chunk. A hit shows one chunk, and in most scripts a chunk with its
/// header fits into the embedder's 256 tokens. Shown by `evals retrieval`.
pub const CHUNK_TOKENS: usize = 150;

/// How many tokens neighbouring chunks share, so that one chunk contains the whole sentence at the border. Arbitrary.
pub const CHUNK_OVERLAP: usize = 16;
