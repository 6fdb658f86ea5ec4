//! Finds the words of a question in a text, to show people why the text was found.

use super::query;

/// English endings that are ignored when words are compared, the longest first.
const ENDINGS: [&str; 9] = ["ings", "ing", "ies", "ied", "es", "ed", "s", "e", "y"];

/// An ending is removed from a word only if at least this many characters remain.
const SHORTEST: usize = 3;

/// The words of a question without their endings.
#[derive(Clone, Debug, Default)]
pub struct Marks(Vec<String>);

impl Marks {
    /// Returns the words of `question` that a search looks for, without their endings.
    pub fn of(question: &str) -> Marks {
        Marks(query::terms(question).iter().map(|word| beginning(word).to_owned()).collect())
    }

    /// Divides `line` into parts, each with whether it is a word of the question. No part is empty.
    pub fn parts<'t>(&self, line: &'t str) -> Vec<(&'t str, bool)> {
        let mut parts = Vec::new();
        let (mut rest, mut before) = (line, 0);
        while let Some(start) = rest[before..].find(char::is_alphanumeric).map(|at| before + at) {
            let length = rest[start..].find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len() - start);
            let end = start + length;
            if self.has(&rest[start..end]) {
                parts.extend([(&rest[..start], false), (&rest[start..end], true)]);
                (rest, before) = (&rest[end..], 0);
            } else {
                before = end;
            }
        }
        parts.push((rest, false));
        parts.retain(|(text, _)| !text.is_empty());
        parts
    }

    /// Returns whether `word` is in the question. For a word in camel case, one part of the word in the question is
    /// enough.
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
        let marked = |line: &'static str| -> Vec<&str> {
            let parts = marks.parts(line);
            assert_eq!(parts.iter().map(|(text, _)| *text).collect::<String>(), line);
            parts.into_iter().filter(|(_, is_marked)| *is_marked).map(|(text, _)| text).collect()
        };
        assert_eq!(
            marked("Caches are flushed; the CacheFlush is not the one. Twice!"),
            ["Caches", "flushed", "CacheFlush", "Twice"]
        );
        assert_eq!(marked("nothing of it"), Vec::<&str>::new());
        assert_eq!(marked(""), Vec::<&str>::new());
        assert_eq!(Marks::default().parts("the cache").len(), 1);
    }
}
