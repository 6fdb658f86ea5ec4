//! Finds the sentences with which an assistant concludes its work.
//!
//! An assistant writes many sentences while it works: announcements, guesses, and exclamations about single steps. Only
//! the last part of its last answer concludes. From this part, the plain statements are taken. A statement with a modal
//! verb or a hedge is an intention, an instruction or a guess. The words are English. Sentences of other languages
//! count as plain statements.

use super::assisted::{is_step, lower, retracts};
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
    better consistent consistency resolved works working follows preserved maintained essential";

/// Words that claim an effect. An assistant claims effects before it has seen them, so that such a statement needs
/// something that bears it out.
const EFFECTS: &str = "fix fixed fixes fixing solved solves passes passing pass passed now ensures ensure prevents \
    eliminates handles functional running runs deployed live achieved optimized improved faster clean";

/// The verbs with which an assistant reports a change.
const CHANGES: &str = "added created updated removed renamed moved implemented replaced refactored changed deleted \
    installed integrated introduced extended modified rewrote built set wrote";

/// Words that nearly every English sentence has one of.
const ENGLISH: &str =
    "the and is are was were to of for with by from now its it be as not no that which than but";

/// Returns whether a sentence claims an effect of the work, such as "Fixed the login", and not only a change. Every
/// sentence that is not English may claim one.
pub(super) fn claims_effect(sentence: &Sentence) -> bool {
    let is_short = sentence.text.is_ascii() && sentence.text.split_whitespace().count() < LONG;
    has_one_of(&sentence.text, EFFECTS) || !(is_short || has_one_of(&sentence.text, ENGLISH))
}

/// Returns whether a sentence reports a change of files, such as "Added a parser".
pub(super) fn reports_change(sentence: &Sentence) -> bool {
    has_one_of(&sentence.text, CHANGES)
}

fn has_one_of(text: &str, list: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric()).any(|word| has(list, &word.to_lowercase()))
}

fn has(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|each| each == word)
}

/// The labels before a finding, as in "Root cause: the pool has one connection".
const FINDINGS: [&str; 6] = ["cause", "root cause", "the cause", "reason", "problem", "the problem"];

/// A sentence with fewer words may be English without one of the words [`ENGLISH`]. Arbitrary.
const LONG: usize = 8;

/// A label of a sentence has at most this many words. Arbitrary.
const LABEL: usize = 4;

/// Returns whether a sentence begins with a label that is no finding, as "Reduced confusion: …" or "2. Migration" do.
/// Such a sentence is a part of a list.
fn has_label(text: &str) -> bool {
    let is_numbered = text.split_once(['.', ')']).is_some_and(|(number, rest)| {
        rest.starts_with(' ') && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let label = text.split_once(": ").map(|(label, _)| label);
    let is_label = |label: &str| label.split_whitespace().count() <= LABEL && !FINDINGS.contains(&label);
    is_numbered || (label.is_some_and(is_label) && !retracts(text))
}

/// A conclusion has at least this many words that are not common. Arbitrary.
const LEAST_WORDS: usize = 3;

/// Returns whether a sentence of an assistant's last part concludes its work.
pub(super) fn concludes(sentence: &Sentence) -> bool {
    let text = lower(&sentence.text);
    let words: Vec<&str> =
        text.split(|c: char| !(c.is_alphanumeric() || c == '\'')).filter(|word| !word.is_empty()).collect();
    let Some(first) = words.first() else { return false };
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
        && (!sentence.is_item || has(CHANGES, first))
        && !has_label(&text)
        // A change without its object, as in "Added to the model".
        && !(has(CHANGES, first) && words.get(1).is_some_and(|word| has("to in for with from", word)))
        && !is_step(&text)
        && !words.iter().any(|word| is_modal(word) || has(JUDGES, word) || has(POINTS, word))
}
