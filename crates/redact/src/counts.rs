//! Counts how many secrets of each rule were replaced, so that answers can report it.

use serde::Serialize;

/// How many secrets one rule replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Redaction {
    /// The rule's name.
    pub rule: String,
    /// How many secrets were replaced.
    pub count: usize,
}

/// Converts `found`, which has pairs of a rule and its count, to the form that answers use.
pub fn redactions(found: Vec<(String, usize)>) -> Vec<Redaction> {
    found.into_iter().map(|(rule, count)| Redaction { rule, count }).collect()
}

/// Adds `count` secrets of `rule` to `counts`.
pub fn add(counts: &mut Vec<Redaction>, rule: &str, count: usize) {
    match counts.iter_mut().find(|each| each.rule == rule) {
        Some(each) => each.count += count,
        None => counts.push(Redaction { rule: rule.to_owned(), count }),
    }
}
