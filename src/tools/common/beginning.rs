//! Cuts a text to its beginning, by tokens or by bytes.

use std::borrow::Cow;

use crate::tokens;

/// Returns the beginning of `text` with at most `tokens` tokens; it ends with a whole word if a word ends in its second
/// half.
pub(crate) fn beginning(text: &str, tokens: usize) -> &str {
    let cut = tokens::truncate(text, tokens);
    if cut.len() == text.len() || text[cut.len()..].starts_with(char::is_whitespace) {
        return cut.trim_end();
    }
    match cut.rfind(char::is_whitespace) {
        Some(end) if end >= cut.len() / 2 => cut[..end].trim_end(),
        _ => cut,
    }
}

/// Returns the beginning of `text` with at most `bytes` bytes; if it is cut, it ends with a whole word where possible,
/// and ` …` follows.
pub(crate) fn beginning_in_bytes(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let cut = &text[..text.floor_char_boundary(bytes)];
    let end = cut.rfind(char::is_whitespace).filter(|end| *end >= cut.len() / 2).unwrap_or(cut.len());
    Cow::Owned(format!("{} …", cut[..end].trim_end()))
}
