//! Highlights the words of the query in a text.

use super::{Span, Style};
use tiro_recall::retrieve::query;

/// English endings that are ignored when words are compared, the longest first.
const ENDINGS: [&str; 9] = ["ings", "ing", "ies", "ied", "es", "ed", "s", "e", "y"];

/// An ending is removed from a word only if at least this many characters remain.
const SHORTEST: usize = 3;

/// The words of a query without their endings.
#[derive(Clone, Debug, Default)]
pub struct Marks(Vec<String>);

impl Marks {
    /// Returns the words of `query` that a search looks for, without their endings.
    pub fn of(query: &str) -> Marks {
        Marks(query::terms(query).iter().map(|word| beginning(word).to_owned()).collect())
    }

    /// Returns `line` as spans. The spans of words that are in the query have the style of matches.
    pub fn spans(&self, line: &str) -> Vec<Span> {
        let mut spans = Vec::new();
        let (mut rest, mut before) = (line, 0);
        while let Some(start) = rest[before..].find(char::is_alphanumeric).map(|at| before + at) {
            let length = rest[start..].find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len() - start);
            let end = start + length;
            if self.has(&rest[start..end]) {
                spans.push(Span::new(Style::Plain, &rest[..start]));
                spans.push(Span::new(Style::Match, &rest[start..end]));
                (rest, before) = (&rest[end..], 0);
            } else {
                before = end;
            }
        }
        spans.push(Span::new(Style::Plain, rest));
        spans.retain(|span| !span.text.is_empty());
        spans
    }

    /// Returns whether `word` is in the query. For a word in camel case, one part of the word in the query is enough.
    fn has(&self, word: &str) -> bool {
        !self.0.is_empty()
            && query::terms(word).iter().any(|part| self.0.iter().any(|wanted| wanted == beginning(part)))
    }
}

/// Returns `word` without its English ending. The result is similar to the stemming of the index, and is used only for
/// display.
fn beginning(word: &str) -> &str {
    let endings = ENDINGS.iter().filter_map(|ending| word.strip_suffix(ending));
    endings.into_iter().find(|rest| rest.len() >= SHORTEST).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_question_are_marked_in_any_form() {
        let marks = Marks::of("why is the cache flushed twice?");
        let marked = |line: &str| -> Vec<String> {
            let spans = marks.spans(line);
            assert_eq!(spans.iter().map(|span| span.text.as_str()).collect::<String>(), line);
            spans.into_iter().filter(|span| span.style == Style::Match).map(|span| span.text).collect()
        };
        assert_eq!(
            marked("Caches are flushed; the CacheFlush is not the one. Twice!"),
            ["Caches", "flushed", "CacheFlush", "Twice"]
        );
        assert_eq!(marked("nothing of it"), Vec::<String>::new());
        assert_eq!(marked(""), Vec::<String>::new());
        assert_eq!(Marks::default().spans("the cache").len(), 1);
    }
}
