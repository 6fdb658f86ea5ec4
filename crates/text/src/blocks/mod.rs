//! Divides a message into blocks, such as prose, list items and code, and divides the prose into sentences.
//!
//! The text of a block is plain: the markup of Markdown is removed. Each block and each sentence has the range of bytes
//! of the message from which it was read. Text that a client adds in the user's name, tool calls, and pasted output of
//! programs are blocks of their own, so that a caller can distinguish them from the words of a person.
//!
//! Summaries, facts and excerpts quote only sentences and list items of this module for which [`Sentence::is_whole`] is
//! true.

mod added;
mod boilerplate;
mod code;
mod errors;
mod markdown;
mod quotations;
mod sentences;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use added::{ADDED, has_calls, is_added, without_added};
pub use boilerplate::is_boilerplate;
pub use errors::{first_error, shortened};
pub use quotations::quotations;
pub use sentences::{Form, Sentence, sentences};

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A paragraph.
    Prose,
    /// A list item, without the items nested in it.
    Item,
    /// A heading, or a line that is set in bold as a heading.
    Heading,
    /// A row of a table.
    Table,
    /// Quoted text.
    Quotation,
    /// Code, a program's output, or a stack trace.
    Code,
    /// A tool call that a transcript shows as text.
    Tool,
    /// Text that the client added in the user's name.
    Added,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: Kind,
    /// The text without markup. The text has only the line breaks that the author set explicitly.
    pub text: String,
    /// The bytes of the message from which the block was read.
    pub range: Range<usize>,
    /// The runs of plain text, in order.
    runs: Vec<Run>,
}

impl Block {
    /// Returns whether the block can be quoted: it is prose or a list item.
    pub fn is_said(&self) -> bool {
        matches!(self.kind, Kind::Prose | Kind::Item)
    }

    /// Returns the bytes of the message from which a part of the text was read.
    fn source_range(&self, part: Range<usize>) -> Range<usize> {
        let run_of = |at: usize| {
            let run = self.runs.partition_point(|run| run.start <= at);
            run.checked_sub(1).map(|run| &self.runs[run])
        };
        let start = run_of(part.start).map_or(self.range.start, |run| match run.is_verbatim {
            true => run.source.start + (part.start - run.start),
            false => run.source.start,
        });
        let end = run_of(part.end.saturating_sub(1)).map_or(self.range.end, |run| match run.is_verbatim {
            true => run.source.start + (part.end - run.start),
            false => run.source.end,
        });
        start..end.max(start)
    }
}

/// A run of plain text in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    /// Where the run begins in the block's text.
    start: usize,
    /// The bytes of the message from which the run was read.
    source: Range<usize>,
    /// Whether the bytes in `source` are the same as the text of the run.
    is_verbatim: bool,
}

/// Returns the blocks of `message` in order.
pub fn blocks(message: &str) -> Vec<Block> {
    let added = added::ranges(message);
    let mut blocks = markdown::blocks(&masked(message, &added));
    output_goes_on(message, &mut blocks);
    for block in &mut blocks {
        let Range { start, end } = block.range;
        block.range = message.floor_char_boundary(start)..message.ceil_char_boundary(end);
    }
    blocks.extend(added.into_iter().map(|(kind, range)| Block {
        kind,
        text: message[range.clone()].trim().to_owned(),
        runs: Vec::new(),
        range,
    }));
    blocks.sort_by_key(|block| block.range.start);
    blocks
}

/// A message with fewer bytes than this is not searched for a pasted document. Arbitrary.
const DOCUMENT: usize = 1200;

/// A pasted document without headings has at least this many list items. Arbitrary.
const ITEMS: usize = 4;

/// Returns the byte at which a pasted document, such as a plan or a review, begins in a person's message. A message has
/// a document if it is long and has headings or a list; the person wrote only its first paragraph. Returns `None` if
/// there is no document.
pub fn pasted_from(message: &str) -> Option<usize> {
    if message.len() < DOCUMENT {
        return None;
    }
    let blocks = blocks(message);
    let count = |kind: Kind| blocks.iter().filter(|block| block.kind == kind).count();
    let is_document = count(Kind::Heading) > 0 || count(Kind::Item) >= ITEMS || message.contains('•');
    let first = blocks.iter().find(|block| block.kind != Kind::Added)?;
    is_document.then_some(if first.kind == Kind::Prose { first.range.end } else { first.range.start })
}

/// Marks blocks that follow a program's output without a blank line as output too, because the output of a shell may
/// look like a list.
fn output_goes_on(message: &str, blocks: &mut [Block]) {
    let mut end = None;
    for block in blocks {
        let before = end.and_then(|end: usize| message.get(end..block.range.start));
        if block.is_said() && before.is_some_and(|before| before.matches('\n').count() < 2) {
            block.kind = Kind::Code;
        }
        let is_near = before.is_some_and(|before| before.matches('\n').count() < 2);
        let is_output = block.kind == Kind::Code && (is_near || code::is_prompt(&block.text));
        end = is_output.then_some(block.range.end);
    }
}

/// Returns, in order, the sentences and list items of `message` that can be quoted, and its asides.
pub fn quotable(message: &str) -> Vec<Sentence> {
    let blocks = blocks(message);
    let mut found = Vec::new();
    for (place, block) in blocks.iter().enumerate().filter(|(_, block)| block.is_said()) {
        let mut said = sentences(block);
        // If code or a table follows, the last sentence may continue there.
        let is_followed =
            blocks.get(place + 1).is_some_and(|next| matches!(next.kind, Kind::Code | Kind::Table));
        if is_followed && block.kind == Kind::Prose && said.last().is_some_and(|last| last.is_open) {
            said.pop();
        }
        found.extend(said.into_iter().filter(|each| each.is_whole() || each.form == Form::Aside));
    }
    found
}

/// Returns `message` with a line break in place of each byte of the given ranges. With spaces instead, Markdown would
/// read the text after them as code.
fn masked(message: &str, ranges: &[(Kind, Range<usize>)]) -> String {
    let mut masked = String::with_capacity(message.len());
    let mut read = 0;
    for (_, range) in ranges {
        masked += &message[read..range.start];
        masked.extend(std::iter::repeat_n('\n', range.len()));
        read = range.end;
    }
    masked + &message[read..]
}
