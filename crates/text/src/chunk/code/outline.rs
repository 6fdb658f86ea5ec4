//! The structure of a file of code: the beginnings of its items and statements, and its named items.

use super::split::Chunk;
use super::{CodeChunk, Cut};

/// The maximum number of named items around an item; a more deeply nested item gets no name. Arbitrary: deeper nesting
/// is rare.
const DEEPEST: usize = 6;

/// The beginning of an item or statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The beginning, including the comments before the item or statement. If the item or statement is the first of its
    /// line, the beginning is that of the line.
    pub(super) start: usize,
    /// Whether all blocks around it contain items, as the blocks of classes do.
    pub(super) is_item: bool,
    /// How many blocks are around it.
    pub(super) depth: usize,
}

impl Mark {
    /// Returns the kind of the cut before the item or statement.
    pub(super) fn cut(&self, is_after_blank: bool) -> Cut {
        // Only data is nested more than 100 levels deep.
        let level = 100 - self.depth.min(100) as u8;
        match self.is_item {
            true => Cut::Item(level),
            false => Cut::Statement(2 * level + u8::from(is_after_blank)),
        }
    }
}

/// An item with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
    label: String,
}

/// The structure of a file of code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    /// The beginnings of items and statements, in order.
    pub(super) marks: Vec<Mark>,
    /// The named items, in the order of their beginnings. Each item contains the next item or ends before it.
    spans: Vec<Span>,
    /// How many named items are open.
    open: usize,
}

impl Outline {
    /// Adds the beginning of an item or statement if it lies after the last beginning.
    pub(super) fn mark(&mut self, mark: Mark) {
        if self.marks.last().is_none_or(|last| last.start < mark.start) {
            self.marks.push(mark);
        }
    }

    /// Opens an item named `label` that begins at `start`. Returns the key of the item, or `None` if it is nested too
    /// deeply.
    pub(super) fn open(&mut self, start: usize, label: String) -> Option<usize> {
        if self.open == DEEPEST {
            return None;
        }
        self.open += 1;
        let start = start.max(self.spans.last().map_or(0, |last| last.start));
        self.spans.push(Span { start, end: usize::MAX, label });
        Some(self.spans.len() - 1)
    }

    /// Closes the item with the key `span` at `end`.
    pub(super) fn close(&mut self, span: usize, end: usize) {
        self.open -= 1;
        self.spans[span].end = end;
    }

    /// Returns `chunks`, each with the named items around its beginning.
    pub(super) fn within(&self, text: &str, chunks: Vec<Chunk>) -> Vec<CodeChunk> {
        let mut around: Vec<&Span> = Vec::new();
        let mut spans = self.spans.iter().peekable();
        let with_items = |range: Chunk| {
            let piece = &text[range.start..range.end];
            let begins = range.start + (piece.len() - piece.trim_start().len());
            while let Some(span) = spans.next_if(|span| span.start < range.start) {
                while around.last().is_some_and(|last| last.end <= span.start) {
                    around.pop();
                }
                around.push(span);
            }
            while around.last().is_some_and(|last| last.end <= begins) {
                around.pop();
            }
            CodeChunk { range, within: around.iter().map(|span| span.label.clone()).collect() }
        };
        chunks.into_iter().map(with_items).collect()
    }
}
