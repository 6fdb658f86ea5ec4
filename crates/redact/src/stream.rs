//! Redacts a text that arrives piece by piece. A secret that is split between two pieces is never shown.

use super::copies::Places;
use super::{Redacted, Redactor};

/// The number of bytes at the end that are held back, because a secret, or the name before it, may continue in the next
/// piece.
const HELD: usize = 160;

/// The number of bytes before the end that are redacted again with each piece, as context for the new text.
const CONTEXT: usize = 8 * 1024;

/// A text that arrives piece by piece.
pub struct Stream {
    redactor: Redactor,
    /// The last part of the text that arrived. This part begins at a line end at least [`CONTEXT`] bytes before the
    /// end.
    arrived: String,
    /// The redacted form of the part of `arrived` that the caller already has.
    shown: String,
}

impl Stream {
    /// Returns a stream that has not received any text.
    pub fn new(redactor: Redactor) -> Stream {
        Stream { redactor, arrived: String::new(), shown: String::new() }
    }

    /// Takes the next piece. Returns the text that can be shown now, which may be empty.
    pub fn piece(&mut self, piece: &str) -> String {
        self.arrived.push_str(piece);
        let end = self.arrived.len().saturating_sub(HELD);
        let space = |(_, byte): &(usize, &u8)| byte.is_ascii_whitespace();
        let bytes = self.arrived.as_bytes();
        let Some((end, _)) = bytes[..end].iter().enumerate().rev().find(space) else { return String::new() };
        let (sure, whole) = (self.redact(&self.arrived[..end]).text, self.redact(&self.arrived).text);
        // The end of the text may turn the text before it into a secret.
        if !whole.starts_with(&*sure) {
            return String::new();
        }
        let new = sure.strip_prefix(self.shown.as_str()).unwrap_or_default().to_owned();
        if !new.is_empty() {
            self.shown.push_str(&new);
        }
        self.forget();
        new
    }

    /// Returns the rest of the text and empties the stream. Called when nothing more arrives.
    pub fn end(&mut self) -> String {
        let whole = self.redact(&self.arrived).text.into_owned();
        let shown = std::mem::take(&mut self.shown);
        self.arrived.clear();
        match whole.strip_prefix(shown.as_str()) {
            Some(rest) => rest.to_owned(),
            // The end turned a text that was already shown into a secret. Only the common beginning of both texts can
            // be continued.
            None => {
                let equal = shown.bytes().zip(whole.bytes()).take_while(|(a, b)| a == b).count();
                whole.get(equal..).unwrap_or_default().to_owned()
            }
        }
    }

    /// Returns `text` redacted. A copy before its secret stays, because it may have been shown before.
    fn redact<'t>(&self, text: &'t str) -> Redacted<'t> {
        self.redactor.redact_at(text, Places::After)
    }

    /// Drops the beginning of the text, if it was shown and the rest is redacted in the same way without it.
    fn forget(&mut self) {
        let Some(cut) = self.arrived.len().checked_sub(CONTEXT).filter(|cut| *cut > CONTEXT) else { return };
        let Some(line) = self.arrived.as_bytes()[..cut].iter().rposition(|byte| *byte == b'\n') else {
            return;
        };
        let (before, rest) = self.arrived.split_at(line + 1);
        let before = self.redact(before).text;
        let Some(shown) = self.shown.strip_prefix(&*before) else { return };
        if self.redact(rest).text.starts_with(shown) {
            self.shown = shown.to_owned();
            self.arrived = rest.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is shown of `text` if it arrives in pieces of `size` characters.
    fn shown(text: &str, size: usize) -> String {
        let mut stream = Stream::new(Redactor::blank());
        let characters: Vec<char> = text.chars().collect();
        let mut shown = String::new();
        for piece in characters.chunks(size) {
            shown += &stream.piece(&piece.iter().collect::<String>());
        }
        shown + &stream.end()
    }

    #[test]
    fn a_stream_shows_what_the_whole_text_would_be() {
        let token = ["ghp", "_9sT2kLmQ4vXzR7bNwEyU1cJdHfGaPo3i5V8M"].concat();
        let words = "a plain sentence without anything else, ünd möre. ".repeat(20);
        let lines = "a line of words\n".repeat(1500);
        for text in [
            format!("Here: {token} and more."),
            format!("{words}{token} {words}{token}"),
            format!("{lines}DB_PASSWORD={}\n{lines}{token}\n{words}", ["kT7v", "Lq2z#Rw9"].concat()),
            words.clone(),
            String::new(),
        ] {
            let whole = Redactor::blank().redact(&text).text.into_owned();
            for size in [1, 7, 64, 4000] {
                if text.len() < 5000 || size > 7 {
                    assert_eq!(shown(&text, size), whole);
                }
            }
        }
    }

    #[test]
    fn text_is_shown_before_it_ends() {
        let mut stream = Stream::new(Redactor::blank());
        let shown = stream.piece(&"a plain sentence. ".repeat(30));
        assert!(shown.len() > 300, "{shown}");
    }
}
