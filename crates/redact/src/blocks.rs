//! Finds blocks of text that their author marked as private.

use std::ops::Range;

/// Returns the blocks from `<private>` to `</private>`. `tags` are the places where a tag may begin.
///
/// Blocks may be nested. A block without an end tag extends to the end of the text.
pub(super) fn private(text: &[u8], tags: &[usize]) -> Vec<Range<usize>> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    for &start in tags {
        let Some((closing, end)) = private_tag(text, start) else { continue };
        match (&mut open, closing) {
            (None, false) => open = Some((start, 1)),
            (None, true) => {}
            (Some((_, depth)), false) => *depth += 1,
            (Some((first, 1)), true) => {
                blocks.push(*first..end);
                open = None;
            }
            (Some((_, depth)), true) => *depth -= 1,
        }
    }
    blocks.extend(open.map(|(first, _)| first..text.len()));
    blocks
}

/// Returns the content of a private block, without its tags.
pub(super) fn private_content(block: &[u8]) -> &[u8] {
    let start = private_tag(block, 0).map_or(0, |(_, end)| end);
    let last = block.iter().rposition(|&b| b == b'<' || b == b'\\').filter(|&at| at >= start);
    let end =
        last.filter(|&at| private_tag(block, at).is_some_and(|(closing, _)| closing)).unwrap_or(block.len());
    &block[start..end]
}

/// Returns whether the private tag at `start` is an end tag, and the place where the tag ends. Returns `None` if there
/// is no private tag at `start`.
fn private_tag(text: &[u8], start: usize) -> Option<(bool, usize)> {
    let escaped = text[start] == b'\\';
    let mut at = start + if escaped { 6 } else { 1 };
    let closing = text.get(at) == Some(&b'/');
    at += usize::from(closing);
    let name = text.get(at..at + 7)?;
    if !name.eq_ignore_ascii_case(b"private") {
        return None;
    }
    at += 7;
    if text.get(at).is_some_and(u8::is_ascii_whitespace) {
        let length = text[at..].iter().take(200).position(|b| matches!(b, b'>' | b'<' | b'\\'))?;
        let attributes = &text[at..at + length];
        if !attributes.contains(&b'=') && !attributes.trim_ascii().is_empty() {
            return None;
        }
        at += length;
    }
    let end: &[u8] = if escaped { b"\\u003e" } else { b">" };
    let ends = text.get(at..at + end.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(end));
    ends.then_some((closing, at + end.len()))
}
