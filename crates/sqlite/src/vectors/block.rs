//! A block of rows. The block is stored by column, so that a scan reads contiguous memory.

use super::VectorRow;
use super::codes::Codes;

/// The maximum number of rows of a block. A scan computes the bounds of all rows of a block before it selects the best
/// rows. Arbitrary: the bounds of this many rows fit into the processor's nearest cache.
pub(super) const BLOCK: usize = 4096;

/// Up to [`BLOCK`] rows, by column.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) codes: Codes,
    pub(super) chunks: Vec<i64>,
    memories: Vec<i64>,
    sessions: Vec<i64>,
    pub(super) groups: Vec<u8>,
    /// Every label that is in `groups` now or was in it before.
    pub(super) labels: Vec<u8>,
}

impl Block {
    pub(super) fn new(dimensions: usize) -> Block {
        Block {
            codes: Codes::with_capacity(BLOCK, dimensions),
            chunks: Vec::with_capacity(BLOCK),
            memories: Vec::with_capacity(BLOCK),
            sessions: Vec::with_capacity(BLOCK),
            groups: Vec::with_capacity(BLOCK),
            labels: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn entry(&self, row: usize) -> VectorRow {
        VectorRow {
            chunk: self.chunks[row],
            memory: self.memories[row],
            session: self.sessions[row],
            group: self.groups[row],
        }
    }

    pub(super) fn push(&mut self, entry: VectorRow, vector: &[f32]) {
        self.codes.push(vector);
        self.chunks.push(0);
        self.memories.push(0);
        self.sessions.push(0);
        self.groups.push(0);
        self.set_entry(self.len() - 1, entry);
    }

    pub(super) fn pop(&mut self) {
        self.codes.pop();
        self.chunks.pop();
        self.memories.pop();
        self.sessions.pop();
        self.groups.pop();
    }

    pub(super) fn set(&mut self, row: usize, entry: VectorRow, vector: &[f32]) {
        self.codes.set(row, vector);
        self.set_entry(row, entry);
    }

    pub(super) fn copy_from(&mut self, row: usize, from: &Block, from_row: usize) {
        self.codes.copy_from(row, &from.codes, from_row);
        self.set_entry(row, from.entry(from_row));
    }

    pub(super) fn copy_within(&mut self, row: usize, from_row: usize) {
        self.codes.copy_within(row, from_row);
        self.set_entry(row, self.entry(from_row));
    }

    fn set_entry(&mut self, row: usize, entry: VectorRow) {
        self.chunks[row] = entry.chunk;
        self.memories[row] = entry.memory;
        self.sessions[row] = entry.session;
        self.groups[row] = entry.group;
        if !self.labels.contains(&entry.group) {
            self.labels.push(entry.group);
        }
    }
}
