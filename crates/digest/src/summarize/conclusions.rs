//! Finds the sentences with which an assistant concludes its work.
//!
//! An assistant writes many sentences while it works: announcements, guesses, and exclamations about single steps. Only
//! the last part of its last answer concludes. From this part, the plain statements are taken. A statement with a modal
//! verb or a hedge is an intention, an instruction or a guess. The words are English. Sentences of other languages
//! count as plain statements.

use super::reading::Sentence;
use super::specificity::verbs_of_requests;
use tiro_text::blocks::Form;

/// Words that turn a statement into an intention, an instruction or a guess.
const MODALS: &str = "can can't cannot could couldn't may might must shall should shouldn't will won't would wouldn't \
    let's lets let need needs want try going likely probably possibly perhaps maybe potentially potential seem seems \
    seemed appear appears appeared looks suggest suggests suspect assume think believe guess if unless recommend \
    ready please once suggested proposed recommended";

/// Words at the beginning of a statement that refer to something before it, or that show a step and not its result.
const LEANS: &str = "otherwise overall additionally nevertheless despite while you're your it its this that these those \
    they he she here there now next first then also and but so however ah oh hmm wait ok okay great good perfect \
    excellent yes no";

/// Words that point to another text.
const POINTS: &str = "this these above below following";

/// Words that judge the work. A statement with such a word is praise, which says little and is often wrong.
const JUDGES: &str = "success successful successfully proper properly correct correctly accurate accurately robust \
    comprehensive excellent complete completed completely completion maintainable best fully significant progress \
    better consistent consistency resolved works working";

/// A conclusion has at least this many words that are not common. Arbitrary.
const LEAST_WORDS: usize = 3;

/// Returns whether a sentence of an assistant's last part concludes its work.
pub(super) fn concludes(sentence: &Sentence) -> bool {
    let text = sentence.text.to_lowercase().replace('’', "'");
    let words: Vec<&str> =
        text.split(|c: char| !(c.is_alphanumeric() || c == '\'')).filter(|word| !word.is_empty()).collect();
    let Some(first) = words.first() else { return false };
    let has = |list: &str, word: &str| list.split_whitespace().any(|each| each == word);
    let is_modal = |word: &str| has(MODALS, word) || word.ends_with("'ll") || word.ends_with("'d");
    sentence.form == Form::Statement
        && !sentence.is_boilerplate
        && sentence.words.len() >= LEAST_WORDS
        && text.starts_with(|c: char| c.is_alphanumeric() || c == '/' || c == '"')
        && !text.ends_with('!')
        // A sentence that was cut within brackets.
        && text.matches('(').count() == text.matches(')').count()
        && !has(LEANS, first)
        && !first.ends_with("ing")
        && !verbs_of_requests().any(|verb| verb == *first)
        && (!sentence.is_item || first.ends_with("ed"))
        && !words.iter().any(|word| is_modal(word) || has(JUDGES, word) || has(POINTS, word))
}
