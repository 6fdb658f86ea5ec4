//! Highlights the words of the query in a text.

use super::{Span, Style};
use tiro_text::words;

/// The words of a query.
#[derive(Clone, Debug, Default)]
pub struct Marks(words::Marks);

impl Marks {
    /// Returns the words of `query` that a search looks for.
    pub fn of(query: &str) -> Marks {
        Marks(words::Marks::of(query))
    }

    /// Returns `line` as spans. The spans of words that are in the query have the style of matches.
    pub fn spans(&self, line: &str) -> Vec<Span> {
        let style = |is_match| if is_match { Style::Match } else { Style::Plain };
        self.0.parts(line).into_iter().map(|(text, is_match)| Span::new(style(is_match), text)).collect()
    }
}
