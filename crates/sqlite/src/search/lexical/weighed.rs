//! Finds candidates in a small store. Words are weighted by the counts of a larger store.

use std::collections::HashMap;

use rusqlite::Connection;

use super::query::{Query, any_form};
use super::search;
use crate::error::Result;
use crate::read::conditions::Conditions;
use tiro_base::memory::Group;
use tiro_base::scope::Scope;
use tiro_store::decide::words;
use tiro_store::tuning::LARGE_STORE;
use tiro_store::{CandidateQuery, ChunkKey, LexicalCandidate, Vocabulary};

/// Like [`lexical`](super::lexical), but for a small store: words are weighted by `weights`, which are the counts of
/// another store.
pub(crate) fn lexical_as(
    connection: &Connection,
    scope: &Scope,
    query: &CandidateQuery,
    weights: &Vocabulary,
) -> Result<Vec<LexicalCandidate>> {
    let CandidateQuery { filter, groups, terms, limit, .. } = query;
    let conditions = Conditions::of_scope(connection, scope)?.narrowed(filter);
    let mut found: HashMap<ChunkKey, LexicalCandidate> = HashMap::new();
    for (place, term) in terms.iter().enumerate() {
        let text = format!("{{speaker header text context}} : ({})", any_form(term));
        let with = weights.counts[place];
        let weight = term.factor() * words::weight(weights.documents, with);
        let mut words = Query { text, weights: Some(vec![(0, weight); term.forms().len()]), among: None };
        if terms.len() == 1 {
            words = words.preferring_text(&(with, term.clone()), weights.documents);
        }
        let most = LARGE_STORE as usize;
        search(connection, &conditions, &words, most, &mut |candidate| {
            found
                .entry(candidate.chunk)
                .and_modify(|known| known.score += candidate.score)
                .or_insert(candidate);
            true
        })?;
    }
    let mut candidates: Vec<LexicalCandidate> =
        found.into_values().filter(|candidate| groups.contains(&candidate.group)).collect();
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
    let mut taken: HashMap<Group, usize> = HashMap::new();
    candidates.retain(|candidate| {
        let taken = taken.entry(candidate.group).or_default();
        *taken += 1;
        *taken <= *limit
    });
    Ok(candidates)
}
