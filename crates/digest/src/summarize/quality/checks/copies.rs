//! Checks whether a summary is a copy of one message.

use std::collections::HashSet;

use crate::summarize::Source;
use crate::summarize::quality::read::tokens::{pair_key, tokens};
use crate::tuning::gate;

/// Returns whether the summary is a copy of one source. A source that makes up most of the conversation may be copied.
pub(super) fn is_copy(summary: &str, sources: &[Source<'_>]) -> bool {
    let own = runs(summary);
    let all: usize = sources.iter().map(|source| source.text.len()).sum();
    sources.iter().any(|source| {
        let is_most = source.text.len() as f64 > gate::MOST_OF_ALL * all as f64;
        // Only a message of about the same length can have been copied.
        if is_most || source.text.len() < summary.len() / 2 || source.text.len() > summary.len() * 2 {
            return false;
        }
        if own.is_empty() {
            return source.text.trim() == summary.trim();
        }
        let theirs = runs(source.text);
        let shared = own.intersection(&theirs).count() as f64;
        shared > gate::COPY.0 * own.len() as f64 && shared > gate::COPY.1 * theirs.len() as f64
    })
}

/// Returns all runs of four neighbouring words of a text.
fn runs(text: &str) -> HashSet<(u64, u64)> {
    let tokens = tokens(text);
    tokens.windows(4).map(|four| (pair_key(&four[0], &four[1]), pair_key(&four[2], &four[3]))).collect()
}
