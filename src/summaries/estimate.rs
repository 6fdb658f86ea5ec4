//! What having summaries written by a model takes: requests, tokens and dollars.

use serde::Serialize;

use crate::humanize::counted;

/// Summaries in a row that get no answer before nobody is asked for the rest. Arbitrary: nobody waits out the deadline of a
/// thousand.
pub(crate) const PATIENCE: usize = 3;

/// What asking a model takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtMost {
    /// Requests.
    pub requests: usize,
    /// Tokens sent.
    pub input: usize,
    /// Tokens received.
    pub output: usize,
    /// What it costs in US dollars; absent where nobody knows.
    pub cost_usd: Option<f64>,
    /// What it will likely cost: each answer does, comes at once, and is as long as the summary is to be. Left out where it
    /// costs nothing.
    #[serde(skip_serializing_if = "costs_nothing")]
    pub likely_usd: Option<f64>,
}

fn costs_nothing(cost: &Option<f64>) -> bool {
    cost.is_none_or(|cost| cost == 0.0)
}

impl Default for AtMost {
    fn default() -> AtMost {
        AtMost { requests: 0, input: 0, output: 0, cost_usd: Some(0.0), likely_usd: Some(0.0) }
    }
}

impl AtMost {
    /// Adds what something else takes.
    pub(crate) fn add(&mut self, other: AtMost) {
        self.requests += other.requests;
        self.input += other.input;
        self.output += other.output;
        let sum = |one: Option<f64>, other: Option<f64>| one.zip(other).map(|(one, other)| one + other);
        self.cost_usd = sum(self.cost_usd, other.cost_usd);
        self.likely_usd = sum(self.likely_usd, other.likely_usd);
    }
}

/// Prints it as the end of a sentence.
impl std::fmt::Display for AtMost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let AtMost { requests, input, output, .. } = self;
        let requests = counted(*requests, "request", "requests");
        write!(f, "{requests}, {input} tokens sent and {output} received at most, ")?;
        write!(f, "{}", cost(self.likely_usd, self.cost_usd))
    }
}

/// Returns what is said of a cost that is likely and at most so much, in US dollars.
pub(crate) fn cost(likely: Option<f64>, most: Option<f64>) -> String {
    match (likely, most) {
        (_, Some(0.0)) => "at no cost".to_owned(),
        (Some(likely), Some(most)) => format!("likely for ${likely:.4}, for ${most:.4} at most"),
        (None, Some(most)) => format!("for ${most:.4} at most"),
        (_, None) => "at an unknown cost".to_owned(),
    }
}
