//! The read path: filter → lexical and vector candidates → fuse → rank → dedup → fit the budget.
//!
//! Both searches run at once and each has a deadline; what misses it is said in the answer. Without an embedder the
//! lexical search answers alone. Ranking ([`rank`]), reading the question ([`query`]), pairing and fitting are pure.

pub mod fit;
pub mod freshness;
pub mod pair;
pub mod query;
pub mod rank;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::embed::Embedder;
use crate::error::{Error, Kind, Result};
use crate::filter::Filter;
use crate::memory::Group;
use crate::scope::Scope;
use crate::store::{LexicalCandidate, Store};
use rank::{Candidate, Ranked, Weights};

/// Candidates of one group of kinds from one search, at most. More don't change the first ten.
const CANDIDATES: usize = 200;

/// Bytes of a question that are read: words further on say nothing new. Arbitrary.
const MOST_QUESTION: usize = 8 * 1024;

/// How long one search may take before the other answers alone. Arbitrary: far beyond what is measured.
const DEADLINE: Duration = Duration::from_secs(5);

/// What was found, and how.
#[derive(Debug, Default)]
pub struct Found {
    /// The memories, best first.
    pub ranked: Vec<Ranked>,
    /// What the answer is missing, in words.
    pub notices: Vec<String>,
    /// How long each stage took.
    pub timings: Timings,
}

/// How long the stages of a search took, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Embedding the question.
    pub embed: u64,
    /// The lexical candidates; runs beside embedding.
    pub lexical: u64,
    /// The vector candidates and the cosines of the others.
    pub dense: u64,
    /// Reading where candidates stand, and ranking.
    pub rank: u64,
}

/// Searches `stores` for `query` and returns the memories that answer, best first.
///
/// The groups of kinds that `filter` admits each give up to 200 candidates by words and 200 by meaning, so that none
/// swamps another.
pub async fn search(
    stores: &[(&Store, &Scope)],
    embedder: Option<Arc<dyn Embedder>>,
    query: &str,
    filter: &Filter,
    weights: &Weights,
) -> Result<Found> {
    let groups = filter.groups();
    let mut found = Found::default();
    let all = query.len();
    let query = &query[..query.floor_char_boundary(MOST_QUESTION)];
    if query.len() < all {
        found.notices.push(format!("of the query only the first {} of {all} bytes were read", query.len()));
    }
    let terms = query::terms(query);

    let began = Instant::now();
    let embedding = embed(embedder.clone(), query.to_owned());
    let lexical = timed(lexical(stores, filter, &groups, &terms));
    let ((embedding, embed_time), (lexical, lexical_time)) = tokio::join!(timed(embedding), lexical);
    found.timings.embed = embed_time;
    found.timings.lexical = lexical_time;
    let lexical = lexical.unwrap_or_else(|error| {
        found.notices.push(format!("no search by words: {error}"));
        Vec::new()
    });
    let embedding = embedding.unwrap_or_else(|error| {
        found.notices.push(format!("no search by meaning: {error}"));
        None
    });

    let dense_began = Instant::now();
    let mut by_chunk: HashMap<(usize, i64), (i64, f64, Option<f64>)> = HashMap::new();
    for (store, each) in &lexical {
        by_chunk.insert((*store, each.chunk), (each.memory, each.score, None));
    }
    if let (Some(embedding), Some(embedder)) = (embedding, embedder) {
        let space = embedder.space().to_string();
        match dense(stores, filter, &groups, &space, &embedding, &mut by_chunk).await {
            Ok(()) => {}
            Err(error) => found.notices.push(format!("no search by meaning: {error}")),
        }
    }
    found.timings.dense = micros(dense_began);

    let rank_began = Instant::now();
    let candidates = places(stores, by_chunk).await?;
    found.ranked = rank::rank(candidates, &terms, weights);
    found.timings.rank = micros(rank_began);
    tracing::debug!(micros = micros(began), candidates = found.ranked.len(), "searched");
    Ok(found)
}

/// Embeds the question on a blocking thread.
async fn embed(embedder: Option<Arc<dyn Embedder>>, query: String) -> Result<Option<Vec<f32>>> {
    let Some(embedder) = embedder else { return Ok(None) };
    let embed = tokio::task::spawn_blocking(move || embedder.embed(&[query.trim()], 1));
    let embedded = within_deadline(async {
        embed.await.map_err(|error| Error::new(Kind::Model, "embedding stopped").source(error))?
    });
    Ok(embedded.await?.pop())
}

async fn lexical(
    stores: &[(&Store, &Scope)],
    filter: &Filter,
    groups: &[Group],
    terms: &[String],
) -> Result<Vec<(usize, LexicalCandidate)>> {
    let mut candidates = Vec::new();
    if terms.is_empty() {
        return Ok(candidates);
    }
    within_deadline(async {
        for (number, (store, scope)) in stores.iter().enumerate() {
            let found = store.lexical(scope, filter, groups, terms.to_vec(), CANDIDATES).await?;
            candidates.extend(found.into_iter().map(|candidate| (number, candidate)));
        }
        Ok(candidates)
    })
    .await
}

/// Adds the vector candidates, and the cosines of the lexical ones.
async fn dense(
    stores: &[(&Store, &Scope)],
    filter: &Filter,
    groups: &[Group],
    space: &str,
    embedding: &[f32],
    by_chunk: &mut HashMap<(usize, i64), (i64, f64, Option<f64>)>,
) -> Result<()> {
    for (number, (store, scope)) in stores.iter().enumerate() {
        let others: Vec<i64> =
            by_chunk.keys().filter(|(store, _)| *store == number).map(|(_, chunk)| *chunk).collect();
        let found =
            within_deadline(store.dense(scope, filter, groups, space, embedding, others, CANDIDATES)).await?;
        for candidate in found {
            by_chunk.entry((number, candidate.chunk)).or_insert((candidate.memory, 0.0, None)).2 =
                Some(candidate.cosine);
        }
    }
    Ok(())
}

/// Reads where the candidates' memories stand; what is out of scope by now is left out.
async fn places(
    stores: &[(&Store, &Scope)],
    by_chunk: HashMap<(usize, i64), (i64, f64, Option<f64>)>,
) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::with_capacity(by_chunk.len());
    for (number, (store, scope)) in stores.iter().enumerate() {
        let own = || by_chunk.iter().filter(|((store, _), _)| *store == number);
        let mut seqs: Vec<i64> = own().map(|(_, (memory, ..))| *memory).collect();
        seqs.sort_unstable();
        seqs.dedup();
        let places = store.places(scope, seqs).await?;
        let places: HashMap<i64, _> = places.into_iter().map(|place| (place.seq, place)).collect();
        candidates.extend(own().filter_map(|((store, chunk), (memory, lexical, cosine))| {
            let place = places.get(memory)?.clone();
            Some(Candidate { store: *store, chunk: *chunk, lexical: *lexical, cosine: *cosine, place })
        }));
    }
    Ok(candidates)
}

async fn within_deadline<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(DEADLINE, work).await.unwrap_or_else(|_| {
        let message = format!("it took longer than {} s", DEADLINE.as_secs());
        Err(Error::new(Kind::Busy, message).hint("try again"))
    })
}

async fn timed<T>(work: impl Future<Output = T>) -> (T, u64) {
    let began = Instant::now();
    let done = work.await;
    (done, micros(began))
}

fn micros(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX)
}
