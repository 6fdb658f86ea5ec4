//! Finds the structure of a Python file by its indentation.

use super::headers::shortened;
use super::outline::{Mark, Outline};

/// A block, whose lines are indented more than `indent`.
struct Block {
    indent: usize,
    has_items: bool,
    span: Option<usize>,
}

/// Reads the structure of `text`.
pub(super) fn read(text: &str) -> Outline {
    let mut outline = Outline::default();
    let mut blocks: Vec<Block> = Vec::new();
    // The number of blocks that do not contain items.
    let mut inner = 0;
    // Where the comments and decorators before the next statement begin, and whether a decorator is among them.
    let mut lead: Option<usize> = None;
    let mut is_decorated = false;
    let mut start = 0;
    while start < text.len() {
        let line = &text[start..][..text[start..].find('\n').map_or(text.len() - start, |end| end + 1)];
        let code = line.trim_start_matches([' ', '\t', '\u{c}']);
        let indent = line.len() - code.len();
        if code.trim().is_empty() {
            start += line.len();
            // A comment that is followed by a blank line is not about the next statement only.
            lead = lead.filter(|_| is_decorated);
            continue;
        }
        if code.starts_with('#') {
            lead.get_or_insert(start);
            start += line.len();
            continue;
        }
        while blocks.last().is_some_and(|block| indent <= block.indent) {
            let block = blocks.pop().expect("the loop checks that there is one");
            inner -= usize::from(!block.has_items);
            if let Some(span) = block.span {
                outline.close(span, lead.unwrap_or(start));
            }
        }
        let end = logical_end(text, start);
        let word = &code[..code.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(code.len())];
        if code.starts_with('@') {
            lead.get_or_insert(start);
            is_decorated = true;
            start = end;
            continue;
        }
        let begins = lead.take().unwrap_or(start);
        is_decorated = false;
        if !matches!(word, "else" | "elif" | "except" | "finally") {
            outline.mark(Mark { start: begins, is_item: inner == 0, depth: blocks.len() });
        }
        if text[start..end].trim_end().ends_with(':') || matches!(word, "class" | "def" | "async") {
            let has_items = word == "class";
            let span = label(code, word).and_then(|label| outline.open(begins, label));
            inner += usize::from(!has_items);
            blocks.push(Block { indent, has_items, span });
        }
        start = end;
    }
    for span in blocks.into_iter().rev().filter_map(|block| block.span) {
        outline.close(span, text.len());
    }
    outline
}

fn label(code: &str, word: &str) -> Option<String> {
    let rest = match word {
        "class" | "def" => code,
        "async" => code["async".len()..].trim_start(),
        _ => return None,
    };
    (rest.starts_with("class ") || rest.starts_with("def "))
        .then(|| shortened(&rest[..rest.find(['(', ':', '[', '\n']).unwrap_or(rest.len())]))
}

/// Returns the end of the line at `start`, or of the last line that continues it: within brackets, within a string of
/// several lines, or after a backslash.
fn logical_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (start, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'#' => {
                at += text[at..].find('\n').unwrap_or(text.len() - at);
                continue;
            }
            b'\'' | b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'\\' => at += 1,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'\n' if depth == 0 => return at + 1,
            // A bracket that is never closed must not hide the rest of the file.
            b'\n' if bytes[at + 1..].starts_with(b"def ") || bytes[at + 1..].starts_with(b"class ") => {
                return at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Returns the end of the string that begins at `at`. A string that isn't triple-quoted ends at the end of its line at
/// the latest.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let is_long = bytes[at..].starts_with(&[quote; 3]);
    let mut end = at + if is_long { 3 } else { 1 };
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 1,
            b'\n' if !is_long => return end,
            byte if byte == quote && !is_long => return end + 1,
            byte if byte == quote && bytes[end..].starts_with(&[quote; 3]) => return end + 3,
            _ => {}
        }
        end += 1;
    }
    bytes.len()
}
