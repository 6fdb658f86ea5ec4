//! Cuts a text to its beginning, by tokens or by bytes.

use std::borrow::Cow;

use tiro_text::tokens;

/// Returns the beginning of `text`, with at most `tokens` tokens. The cut is moved back to the end of a word, unless
/// that would drop more than half of the beginning.
pub fn beginning(text: &str, tokens: usize) -> &str {
    let cut = tokens::truncate(text, tokens);
    if cut.len() == text.len() || text[cut.len()..].starts_with(char::is_whitespace) {
        return cut.trim_end();
    }
    match cut.rfind(char::is_whitespace) {
        Some(end) if end >= cut.len() / 2 => cut[..end].trim_end(),
        _ => cut,
    }
}

/// Returns `text` if it has at most `bytes` bytes. Otherwise returns its beginning, cut after a whole word if possible,
/// followed by ` …`.
pub fn beginning_in_bytes(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let cut = &text[..text.floor_char_boundary(bytes)];
    let end = cut.rfind(char::is_whitespace).filter(|end| *end >= cut.len() / 2).unwrap_or(cut.len());
    Cow::Owned(format!("{} …", cut[..end].trim_end()))
}
