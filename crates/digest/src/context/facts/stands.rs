//! Decides whether a sentence is understandable without the conversation in which it was said.

use crate::statements::words::{has, words};

/// A fact has at least and at most this many words. Arbitrary: a shorter one names nothing, and a longer one tells a
/// story.
const WORDS: std::ops::RangeInclusive<usize> = 4..=40;

/// A text counts as prose only if at most this percentage of its characters, not counting spaces, are signs and
/// digits. Arbitrary: a sentence about code has less than half of this percentage.
const SYMBOLS: usize = 22;

/// Words that point to something outside the sentence.
const POINTS: &str =
    "this these above below here former latter former's option following previous aforementioned";

/// Words that point to something said before if they are the subject or the object of a short sentence.
const REFERS: &str = "those it it's its that's thats they they're them he she both either neither";

/// What "your" points to in a reply to an assistant.
const OF_ASSISTANT: &str = "recommendation recommendations suggestion suggestions proposal advice idea ideas
    approach plan option options";

/// Words that limit a sentence to a moment.
const OF_MOMENT: &str = "now today tomorrow yesterday currently temporarily yet soon already next still";

/// What `this` may stand before, because the conversation has only one of it.
const PROJECT: &str = "project repo repository codebase app crate package";

/// Words after "the" that compare a thing with others that the sentence doesn't name.
const COMPARES: &str = "last first second third next whole entire other others different same very remaining";

/// The number of words at the beginning of a sentence among which a word such as `it` refers to an earlier sentence.
/// Arbitrary.
const BEGINNING: usize = 4;

/// Words after which "that" points to something said before, as in "use that".
const BEFORE_THAT: &str = "use do keep like want need have in of for to with on by from";

/// Returns whether a sentence stands alone. A decision (`lasts`) also must not be limited to a moment.
pub(super) fn alone(text: &str, lasts: bool) -> bool {
    let words = words(text);
    let all = format!(" {} ", words.join(" ")).replace(" from now on ", " ");
    let is_project = |at: usize| words.get(at + 1).is_some_and(|next| has(PROJECT, next));
    let points = words.iter().enumerate().any(|(at, word)| has(POINTS, word) && !is_project(at));
    let refers = words.iter().take(BEGINNING).any(|word| has(REFERS, word) || has("same one", word))
        || words.first().is_some_and(|word| word == "that");
    let ends_open = words.last().is_some_and(|word| has(REFERS, word) || has("that one same to", word));
    let of_moment = all.split(' ').any(|word| has(OF_MOMENT, word)) || all.contains(" for the moment ");
    let is_of_moment = lasts && of_moment;
    let refers_back = words.windows(2).any(|two| has("that those", &two[1]) && has(BEFORE_THAT, &two[0]));
    let is_reply = words.windows(2).any(|two| two[0] == "your" && has(OF_ASSISTANT, &two[1]));
    let needs_context = points || is_reply || refers || ends_open || is_of_moment || refers_back;
    let is_frame =
        text.ends_with(':') || is_output(text) || text.starts_with(['@', '#', '/', '[', '{', '(', '•']);
    WORDS.contains(&words.len()) && !needs_context && !is_frame
}

/// Returns whether a sentence adds to something, or compares with something, that only an earlier sentence names, as in
/// "the last columns should also be frozen".
pub(super) fn is_more_of_something(text: &str) -> bool {
    let words = words(text);
    words.iter().any(|word| word == "also")
        || words.windows(2).any(|two| two[0] == "the" && has(COMPARES, &two[1]))
}

/// Returns whether a text is the output of a program. Such a text has too many signs for prose, or it is a chain of
/// causes such as `error: reading: no such file`.
pub(super) fn is_output(text: &str) -> bool {
    let counted = text.chars().filter(|c| !c.is_whitespace()).count().max(1);
    let signs = text.chars().filter(|c| !c.is_whitespace() && !c.is_alphabetic() && *c != '\'').count();
    signs * 100 > counted * SYMBOLS || text.matches(": ").count() >= 2
}
