//! Searches an index. Candidates are found by words and by meaning, and are ranked by the sum of their z-scores.

use std::time::Instant;

use super::found::{EphemeralResult, Ranked};
use super::meaning::{self, STEP};
use super::{Index, terms};
use crate::tuning::ephemeral::{CANDIDATES, LEXICAL, SEMANTIC};
use tiro_base::error::{Error, Result, partial};
use tiro_embed::Embedder;

/// The maximum number of bytes of a query that are read. Arbitrary.
const LONGEST_QUERY: usize = 8 * 1024;

/// A search request of a model.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The text to search for.
    pub query: &'a str,
    /// The maximum number of hits.
    pub k: usize,
    /// The maximum number of tokens (o200k) of the answer.
    pub max_tokens: usize,
    /// The time at which embedding for this search ends. The answer follows soon after.
    pub deadline: Instant,
    /// The maximum number of threads that embed.
    pub threads: usize,
}

impl Index {
    /// Returns the best passages for `ask` as text within `max_tokens`, the best first. Without an embedder, the search
    /// is by words alone, and the answer says so.
    ///
    /// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the query is blank or `k` is 0.
    pub fn search(&self, embedder: Option<&Embedder>, ask: &Ask<'_>) -> Result<EphemeralResult> {
        let query = ask.query.trim();
        if query.is_empty() {
            return Err(Error::bad_input("`query` is empty").hint("say what to look for, in a few words"));
        }
        if ask.k == 0 {
            return Err(Error::bad_input("`k` is 0").hint("ask for at least one hit"));
        }
        let query = &query[..query.floor_char_boundary(LONGEST_QUERY)];
        let mut notices: Vec<String> = self.refusal().map(partial::notice).into_iter().collect();
        let scores = self.words.scores(&terms::of_query(query), &self.pieces);
        let by_words = best(scores.iter().copied().enumerate().filter(|(_, score)| *score > 0.0).collect());
        let ranked = match embedder {
            None => {
                notices.push("no embedding model is installed, so the search was by words alone".to_owned());
                by_words
            }
            Some(embedder) => match self.with_meaning(embedder, query, ask, &scores, &by_words) {
                Ok(ranked) => ranked,
                // If the search by words found nothing, it is unknown whether a search by meaning would find something.
                Err(error) if by_words.is_empty() => return Err(error),
                Err(error) => {
                    error.log();
                    let missing = "the embedding model failed, so the search was by words alone";
                    notices.push(partial::notice(missing));
                    by_words
                }
            },
        };
        let pending = self.pending();
        if embedder.is_some() {
            notices.extend(self.pending_notice(pending));
        }
        let ranked = ranked.into_iter().map(|(place, score)| Ranked { place, score }).collect();
        Ok(EphemeralResult::fit(self, ranked, pending, notices, ask.k, ask.max_tokens))
    }

    /// Returns the candidates by words and by meaning, best first.
    fn with_meaning(
        &self,
        embedder: &Embedder,
        query: &str,
        ask: &Ask<'_>,
        scores: &[f64],
        by_words: &[(usize, f64)],
    ) -> Result<Vec<(usize, f64)>> {
        let question = embedder.embed_question(query)?;
        let missing: Vec<usize> = {
            let vectors = meaning::locked(&self.vectors);
            by_words.iter().map(|(place, _)| *place).filter(|place| !vectors.has(*place)).collect()
        };
        for places in missing.chunks(STEP) {
            if Instant::now() >= ask.deadline {
                break;
            }
            self.embed(embedder, ask.threads, places)?;
        }
        // If the search by words found only few candidates, the texts may express the question in other words. So
        // further chunks are embedded.
        let mut room = CANDIDATES.saturating_sub(by_words.len());
        while room > 0 && Instant::now() < ask.deadline {
            let places = meaning::locked(&self.vectors).next(STEP.min(room));
            if places.is_empty() {
                break;
            }
            room -= places.len();
            self.embed(embedder, ask.threads, &places)?;
        }
        let cosines = meaning::locked(&self.vectors).cosines(&question);
        let embedded = cosines.iter().enumerate().filter_map(|(place, cosine)| Some((place, (*cosine)?)));
        let by_meaning = best(embedded.collect());
        let mut places: Vec<usize> = by_words.iter().chain(&by_meaning).map(|(place, _)| *place).collect();
        places.sort_unstable();
        places.dedup();
        let of_words = standard(&places.iter().map(|place| Some(scores[*place])).collect::<Vec<_>>());
        let of_meaning = standard(&places.iter().map(|place| cosines[*place]).collect::<Vec<_>>());
        let sums = places.iter().zip(of_words.iter().zip(&of_meaning));
        let mut ranked: Vec<(usize, f64)> =
            sums.map(|(place, (words, meaning))| (*place, LEXICAL * words + SEMANTIC * meaning)).collect();
        sort(&mut ranked);
        Ok(ranked)
    }
}

/// Returns the best of `scored`, best first.
fn best(mut scored: Vec<(usize, f64)>) -> Vec<(usize, f64)> {
    sort(&mut scored);
    scored.truncate(CANDIDATES);
    scored
}

/// Sorts by score, and by place where scores are equal.
fn sort(scored: &mut [(usize, f64)]) {
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
}

/// Returns the z-scores of `values`. An unknown value counts as the mean.
fn standard(values: &[Option<f64>]) -> Vec<f64> {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let count = known.len().max(1) as f64;
    let mean = known.iter().sum::<f64>() / count;
    let deviation = (known.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    let scored = |value: &Option<f64>| match value {
        Some(value) if deviation > f64::EPSILON => (value - mean) / deviation,
        _ => 0.0,
    };
    values.iter().map(scored).collect()
}
