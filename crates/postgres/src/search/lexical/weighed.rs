//! Finds candidates in a small store. Words are weighted by the counts of a larger store.

use std::collections::HashMap;

use super::Search;
use super::query::{Query, Weighed};
use crate::error::Result;
use tiro_base::memory::Group;
use tiro_store::decide::words;
use tiro_store::{CandidateQuery, LexicalCandidate, Vocabulary};

impl Search<'_, '_> {
    /// Returns the best chunks that contain any of the query's terms, up to the limit for each group. Words are weighted
    /// by `weights`, which are the counts of another store.
    pub(super) async fn weighed(
        &mut self,
        query: &CandidateQuery,
        weights: &Vocabulary,
    ) -> Result<Vec<LexicalCandidate>> {
        let CandidateQuery { terms, limit, .. } = query;
        let weigh = |(term, with)| (term, term_weight(term, weights.documents, with));
        let counts = weights.counts.iter().copied().chain(std::iter::repeat(0));
        let words: Vec<Weighed<'_>> = terms.iter().zip(counts).map(weigh).collect();
        let own = words.first().copied().filter(|_| words.len() == 1);
        let any = Query { words, least: 1, extra: Vec::new(), own };
        let groups = self.found.groups();
        let ranked = self.ranked(&any, &groups).await?;
        let mut taken: HashMap<Group, usize> = HashMap::new();
        let mut candidates = Vec::new();
        for place in 0..ranked.len() {
            if groups.iter().all(|group| taken.get(group).is_some_and(|taken| taken == limit)) {
                break;
            }
            let Some(candidate) = self.candidate(&ranked[place..]).await? else { continue };
            let taken = taken.entry(candidate.group).or_default();
            if *taken < *limit {
                *taken += 1;
                candidates.push(candidate);
            }
        }
        Ok(candidates)
    }
}

/// Returns the weight of a term that occurs in `with` of `documents` documents.
fn term_weight(term: &tiro_text::words::Term, documents: i64, with: i64) -> f64 {
    term.factor() * words::weight(documents, with)
}
