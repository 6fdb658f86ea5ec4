//! Finds the sources of each sentence of a summary.

use std::collections::{BTreeMap, BTreeSet};

use super::read::index::{Index, is_content, readable};
use super::read::tokens::{Kind, sentences, tokens};
use crate::summarize::Source;
use crate::tuning::summaries::CITED_SHARE;

/// For each sentence of `text`, finds the sources that contain most of its words, by weight. Returns the ordinals of
/// all these sources, ascending.
pub fn cite(text: &str, sources: &[Source<'_>]) -> Vec<i64> {
    let sources = readable(text, sources);
    let index = Index::of(&sources);
    let mut cited = BTreeSet::new();
    for sentence in sentences(text) {
        let words: BTreeSet<String> = tokens(sentence)
            .into_iter()
            .filter(|token| is_content(token) || token.kind == Kind::Number)
            .map(|token| token.stem)
            .collect();
        let mut shared: BTreeMap<usize, f64> = BTreeMap::new();
        for word in &words {
            let having: BTreeSet<usize> = index.with(word).map(|said| said.source).collect();
            having.into_iter().for_each(|source| *shared.entry(source).or_default() += index.weight(word));
        }
        let most = shared.values().copied().fold(0.0, f64::max);
        // Each source that shares nearly as much with the sentence as the best source does is cited.
        let near = shared.iter().filter(|(_, weight)| **weight > CITED_SHARE * most);
        cited.extend(near.map(|(place, _)| sources[*place].ordinal));
    }
    cited.into_iter().collect()
}
