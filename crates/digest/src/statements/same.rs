//! Decides whether a correction is about a sentence.

use std::collections::BTreeSet;

use super::cues::Cue;
use super::words::{stems, tokens};
use super::{Correction, Replaced, Sentence};
use tiro_text::words::Language;

/// A correction of a value is about a sentence that states this value if the two share at least this part of the
/// sentence's other words. Arbitrary: more than half of them.
const SAME_TOPIC: f64 = 0.6;

/// Two texts are about the same thing if they share at least this part of the shorter one's words. Arbitrary: half of
/// them.
const ALIKE: f64 = 0.5;

/// A clause denies a sentence if the sentence contains at least this part of the clause's words. Arbitrary.
const DENIED: f64 = 0.75;

/// A replaced statement is about the topic of a question if it contains at least this part of the question's words.
/// Arbitrary.
const CONCERNED: f64 = 0.3;

/// Returns how well `sentence` fits what `correction` corrects, from 0 to 1, and the byte at which it states that.
/// Returns `None` if the correction is not about the sentence.
pub(super) fn corrects(correction: &Correction, sentence: &Sentence) -> Option<(f64, usize)> {
    let Sentence { text, stems: own, cues, .. } = sentence;
    let shares = |words: &BTreeSet<String>, all: usize| {
        let shared = words.intersection(own).count();
        (shared, shared as f64 / all.max(1) as f64)
    };
    match &correction.replaced {
        Replaced::Value(value) => {
            let states = value.is_subset(own) && !cues.iter().any(|cue| names(cue, value));
            let (shared, share) = shares(&correction.topic, own.len() - value.intersection(own).count());
            // A number alone says little: "5 days" and "5 apples".
            let least = if value.iter().all(|stem| is_number(stem)) { 2 } else { 1 };
            let is_same = shared >= least && share >= SAME_TOPIC;
            (states && is_same).then(|| (share, place(text, value)))
        }
        Replaced::Clause(clause) => {
            let (shared, share) = shares(clause, clause.len());
            let is_denied = shared >= 2 && share >= DENIED && 2 * shared >= own.len() && !denies(text);
            is_denied.then(|| (share, place(text, clause)))
        }
        Replaced::MessageBefore => {
            let (shared, share) = shares(&correction.topic, own.len());
            (shared >= 2 && share >= SAME_TOPIC).then_some((share, 0))
        }
    }
}

/// Returns whether two short texts with these stems are about the same thing: they share at least two stems, and half of
/// the stems of the shorter text.
pub fn are_alike(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    let shared = one.intersection(other).count();
    shared >= 2 && shared as f64 >= ALIKE * one.len().min(other.len()) as f64
}

/// Returns whether a replaced statement with the stems `words` is about the topic of a question. A question without
/// such words is about any topic.
pub fn concerns(question: &str, words: &str) -> bool {
    let asked = stems(question);
    let shared = asked.iter().filter(|stem| words.split(' ').any(|word| word == stem.as_str())).count();
    asked.is_empty() || shared > 0 && shared as f64 >= CONCERNED * asked.len() as f64
}

/// Returns whether the part of a sentence names one of these words as what no longer holds.
fn names(cue: &Cue, value: &BTreeSet<String>) -> bool {
    match &cue.replaced {
        Replaced::Value(replaced) | Replaced::Clause(replaced) => value.is_subset(replaced),
        Replaced::MessageBefore => false,
    }
}

/// Returns whether a sentence denies something itself.
fn denies(sentence: &str) -> bool {
    let is_negation = |word: &str| {
        matches!(
            word,
            "no" | "not" | "never" | "nicht" | "nie" | "kein" | "keine" | "pas" | "jamais" | "cannot"
        ) || word.ends_with("n't")
    };
    tokens(sentence).iter().any(|token| is_negation(&token.lower()))
}

fn is_number(stem: &str) -> bool {
    stem.trim_start_matches(['$', '€', '£']).starts_with(|c: char| c.is_ascii_digit())
}

/// Returns the byte at which a sentence states the first of these words.
fn place(sentence: &str, words: &BTreeSet<String>) -> usize {
    let language = Language::of(sentence);
    let tokens = tokens(sentence);
    let first = tokens.iter().find(|token| token.stems(language).iter().any(|stem| words.contains(stem)));
    first.map_or(0, |token| token.start)
}
