//! The numbers of threads with assistants: how much of what was sent is kept.

/// The maximum size of the compressed texts that a project keeps for its threads, in bytes. A file whose copy was
/// removed is sent whole when it changes. Arbitrary: sources compress to about a third, so this is about 190 MB of
/// them.
pub const BLOB_BYTES: i64 = 64 << 20;

/// How many contents a store keeps the token counts of; the oldest are removed. Arbitrary: a count takes about 80 bytes.
pub const TOKEN_COUNTS: i64 = 100_000;
