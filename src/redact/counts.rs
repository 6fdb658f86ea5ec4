//! How many secrets of each rule were replaced, as answers list them.

use serde::Serialize;

/// Secrets of one rule that were replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Redaction {
    /// The rule's name.
    pub rule: String,
    /// How many.
    pub count: usize,
}

/// Returns findings by rule as an answer shows them.
pub fn redactions(found: Vec<(String, usize)>) -> Vec<Redaction> {
    found.into_iter().map(|(rule, count)| Redaction { rule, count }).collect()
}

/// Adds `count` of `rule` to `counts`.
pub fn add(counts: &mut Vec<Redaction>, rule: &str, count: usize) {
    match counts.iter_mut().find(|each| each.rule == rule) {
        Some(each) => each.count += count,
        None => counts.push(Redaction { rule: rule.to_owned(), count }),
    }
}
