//! A block of rows, by column: what is scanned lies together.

use std::ops::Range;

use super::Entry;
use super::codes::quantize;

/// Rows of a block; also how many are scored before the best are picked (arbitrary: the scores stay in the nearest cache).
pub(super) const BLOCK: usize = 4096;

/// Up to [`BLOCK`] rows, by column.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) codes: Vec<i8>,
    /// What a row's codes are multiplied by.
    pub(super) scales: Vec<f32>,
    pub(super) chunks: Vec<i64>,
    memories: Vec<i64>,
    pub(super) groups: Vec<u8>,
}

impl Block {
    pub(super) fn new(dimensions: usize) -> Block {
        Block {
            codes: Vec::with_capacity(BLOCK * dimensions),
            scales: Vec::with_capacity(BLOCK),
            chunks: Vec::with_capacity(BLOCK),
            memories: Vec::with_capacity(BLOCK),
            groups: Vec::with_capacity(BLOCK),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.scales.len()
    }

    pub(super) fn entry(&self, row: usize) -> Entry {
        Entry { chunk: self.chunks[row], memory: self.memories[row], group: self.groups[row] }
    }

    pub(super) fn codes_of(&self, row: usize, dimensions: usize) -> Range<usize> {
        row * dimensions..(row + 1) * dimensions
    }

    pub(super) fn push(&mut self, entry: Entry, vector: &[f32]) {
        let dimensions = vector.len();
        self.codes.resize(self.codes.len() + dimensions, 0);
        self.scales.push(0.0);
        self.chunks.push(0);
        self.memories.push(0);
        self.groups.push(0);
        self.set(self.len() - 1, dimensions, entry, vector);
    }

    pub(super) fn pop(&mut self, dimensions: usize) {
        self.codes.truncate(self.codes.len() - dimensions);
        self.scales.pop();
        self.chunks.pop();
        self.memories.pop();
        self.groups.pop();
    }

    pub(super) fn set(&mut self, row: usize, dimensions: usize, entry: Entry, vector: &[f32]) {
        let codes = self.codes_of(row, dimensions);
        self.scales[row] = quantize(vector, f32::from(i8::MAX), &mut self.codes[codes], |code| code as i8);
        self.set_entry(row, entry);
    }

    pub(super) fn copy_from(&mut self, row: usize, from: &Block, from_row: usize, dimensions: usize) {
        let codes = self.codes_of(row, dimensions);
        self.codes[codes].copy_from_slice(&from.codes[from.codes_of(from_row, dimensions)]);
        self.scales[row] = from.scales[from_row];
        self.set_entry(row, from.entry(from_row));
    }

    pub(super) fn copy_within(&mut self, row: usize, from_row: usize, dimensions: usize) {
        let codes = self.codes_of(from_row, dimensions);
        self.codes.copy_within(codes, row * dimensions);
        self.scales[row] = self.scales[from_row];
        self.set_entry(row, self.entry(from_row));
    }

    fn set_entry(&mut self, row: usize, entry: Entry) {
        self.chunks[row] = entry.chunk;
        self.memories[row] = entry.memory;
        self.groups[row] = entry.group;
    }
}
