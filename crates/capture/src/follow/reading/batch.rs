//! Collects entries that were read and are not stored yet.

use crate::import::transcript::TranscriptEntry;

/// The maximum number of entries that one transaction stores, and the maximum number of bytes of their texts. The last
/// line of a transaction can exceed both limits.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// Entries that one transaction stores.
#[derive(Default)]
pub(super) struct Batch {
    /// Each entry, with the offset of the line that completed it.
    pub said: Vec<(u64, TranscriptEntry)>,
    bytes: usize,
    /// The number of entries before the last compaction by the client, if the transcript shows a compaction.
    pub compacted: Option<usize>,
}

impl Batch {
    /// Adds entries that the line at `end` completed.
    pub fn take(&mut self, end: u64, said: Vec<TranscriptEntry>) {
        self.bytes += said.iter().map(|said| said.text.len()).sum::<usize>();
        self.said.extend(said.into_iter().map(|said| (end, said)));
    }

    /// Returns whether the batch has reached the size of one transaction.
    pub fn is_full(&self) -> bool {
        self.said.len() >= BATCH || self.bytes >= BATCH_BYTES
    }
}
