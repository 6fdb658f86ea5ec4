//! Measures how specifically a request says what it is about.

use super::word_keys::{self, words};

/// Verbs with which an assistant instructs the user.
const INSTRUCTS: &str = "add adjust analyze apply ask assume avoid begin build calculate carefully check choose compare \
    configure consider continue create customize define describe determine develop discuss document download draw edit \
    emphasize enable ensure establish evaluate explain explore find focus follow gather give go highlight identify imagine \
    implement import include incorporate initialize install keep learn leverage list look maintain make measure mention \
    monitor navigate note obtain open organize outline plan practice prepare prioritize provide re-run read refactor \
    reflect regularly remember replace replicate research review run schedule seek select send set share show solve start \
    state stay store submit suppose tailor take test think track try understand update use utilize validate verify visit \
    visualize write";

/// Verbs with which a user begins a request.
const PREPARES: &str =
    "read refer look see check learn review explain tell show remember note continue proceed retry";

/// Returns the verbs of requests. These verbs say nothing about the topic of a request.
pub(super) fn verbs_of_requests() -> impl Iterator<Item = &'static str> {
    PREPARES.split_whitespace().chain(INSTRUCTS.split_whitespace())
}

/// Returns whether a text begins with a verb of reading, so that it asks for a preparation of work.
pub(super) fn is_preparation(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default();
    PREPARES.split_whitespace().any(|verb| first.eq_ignore_ascii_case(verb))
}

/// Returns how specifically a sentence says what it is about: the number of its words that are not common, without a
/// verb of requests at its beginning, plus the number of its names.
pub(super) fn specificity(text: &str) -> usize {
    let is_verb = |word: &str| verbs_of_requests().any(|verb| word.eq_ignore_ascii_case(verb));
    let said = words(text).into_iter().enumerate().filter(|(at, word)| *at > 0 || !is_verb(word.text));
    said.filter(|(_, word)| !word_keys::is_common(word.text, &word_keys::key(word.text))).count()
        + names(text)
}

/// Returns the number of words of a text that are written like a number, an identifier, an option or a path.
pub(super) fn names(text: &str) -> usize {
    let is_name = |word: &&str| {
        let word =
            word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '@' | '#' | '/' | '-' | '_'));
        word_keys::has_digit(word)
            || word_keys::is_identifier(word)
            || word.contains(['/', '_', '.', ':', '@', '#'])
            || word.starts_with("--")
    };
    text.split_whitespace().filter(is_name).count()
}
