//! The read path: filter → lexical and vector candidates → fuse → rank → dedup → fit the budget.
//!
//! The lexical and the vector search run at the same time, each with a deadline. If one of them misses its
//! deadline, a notice says so. Without an embedder, only the lexical search runs. Ranking ([`rank`]), reading the
//! query ([`query`], [`cues`]) and pairing ([`pair`]) are pure.

pub mod cues;
pub mod pair;
mod prior;
pub use tiro_text::words::query;
pub mod rank;
pub mod superseded;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use query::Question;
use rank::{Candidate, Ranked, Weights};

use crate::tuning::ranking::CANDIDATES;
use tiro_base::error::{Error, Kind, Result, partial};
use tiro_base::filter::Filter;
use tiro_base::memory::{Content, Group, Kind as MemoryKind, Memory, MemoryKey};
use tiro_base::scope::Scope;
use tiro_embed::{Embedding, Encode, Encoders, Model};
use tiro_store::tuning::LARGE_STORE;
use tiro_store::{ChunkKey, DenseCandidate, LexicalCandidate, ReadStore, Vocabulary};
use tiro_text::words::{Language, Term};

/// The maximum number of bytes of a query that are read. Arbitrary.
const LONGEST_QUERY: usize = 8 * 1024;

/// How long each of the two searches may take. Arbitrary: hundreds of times the measured durations.
const DEADLINE: Duration = Duration::from_secs(5);

/// The notice for an answer without a good hit: every hit has too few of the query's words and is too far from the
/// query's meaning.
pub const NO_GOOD_HIT: &str = "nothing here is about this; these are the nearest, and may be unrelated";

/// The result of a search.
#[derive(Debug, Default)]
pub struct SearchResult {
    /// The memories, best first.
    pub ranked: Vec<Ranked>,
    /// Notices for the user about what the search could not do.
    pub notices: Vec<String>,
    /// How long each stage took.
    pub timings: Timings,
    /// The words that were looked for.
    pub terms: Vec<Term>,
    /// The rarity of each of `terms`, as a share of the total rarity of all of them.
    pub rarity: Vec<f64>,
    /// Which of the memories are superseded.
    pub superseded: superseded::SupersededHits,
    /// Whether the query names commits by their ids and the search found at least one of them.
    pub is_named: bool,
}

/// How long the stages of a search took, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Embedding the query.
    pub embed: u64,
    /// Finding the lexical candidates. This runs at the same time as the embedding and the search for vector
    /// candidates.
    pub lexical: u64,
    /// Finding the vector candidates, and computing the cosines of all candidates.
    pub dense: u64,
    /// Reading the fields of the candidates that ranking needs, and ranking.
    pub rank: u64,
}

/// Searches `stores` for `query` and returns the memories that it found, best first.
///
/// From each group of kinds that `filter` admits, the search takes up to 100 candidates by words and 100 by meaning, so
/// that no kind crowds out another. If one of the two searches fails or passes its deadline, the result is
/// [partial], and a notice says so. Errors if a store can't be read after these searches, and if a search failed and
/// the other one found nothing: nobody knows then whether there is something.
pub async fn search(
    stores: &[(&dyn ReadStore, &Scope)],
    encoders: &Encoders<'_>,
    query: &str,
    filter: &Filter,
    weights: &Weights,
) -> Result<SearchResult> {
    let groups = filter.groups();
    let mut found = SearchResult::default();
    let all = query.len();
    let query = &query[..query.floor_char_boundary(LONGEST_QUERY)];
    if query.len() < all {
        found.notices.push(format!("only the first {} of {all} bytes of the query were read", query.len()));
    }
    let Question { terms, identifiers, language } = query::read(query);

    let model = encoders.of(Content::Prose).and_then(Encode::model);
    found.notices.extend(unread(language, model));

    let began = Instant::now();
    let lexical = timed(lexical(stores, filter, &groups, &terms, identifiers));
    let dense = async {
        let (embedded, embed_time) = timed(embed(encoders, query)).await;
        let (candidates, dense_time) = timed(dense(stores, filter, &groups, &embedded)).await;
        (embedded, candidates, embed_time, dense_time)
    };
    let ((lexical, lexical_time), (embedded, dense, embed_time, dense_time)) = tokio::join!(lexical, dense);
    found.notices.extend(encoders.each().flat_map(Encode::disclosures));
    let mut failed: Vec<Failed> = Vec::new();
    let mut candidates: HashMap<(usize, ChunkKey), (MemoryKey, f64)> = HashMap::new();
    match dense {
        Ok(dense) => {
            candidates.extend(dense.iter().map(|(store, each)| ((*store, each.chunk), (each.memory, 0.0))))
        }
        Err(error) => failed.push(("meaning", error)),
    }
    match lexical {
        Ok((lexical, rarity)) => {
            found.rarity = rarity;
            let scored =
                lexical.iter().map(|(store, each)| ((*store, each.chunk), (each.memory, each.score)));
            candidates.extend(scored);
        }
        Err(error) => failed.push(("words", error)),
    }

    let named = named(stores, filter, query).await?;
    for (store, memory, chunk) in &named {
        candidates.entry((*store, *chunk)).or_insert((*memory, 0.0));
    }

    let cosine_began = Instant::now();
    let cosines = cosines(stores, embedded, &candidates, &mut failed).await;
    found.timings = Timings {
        embed: embed_time,
        lexical: lexical_time,
        dense: dense_time + micros(cosine_began),
        rank: 0,
    };

    let rank_began = Instant::now();
    let candidates = places(stores, candidates, &cosines).await?;
    let words: Vec<String> = terms.iter().map(|term| term.word().to_owned()).collect();
    let weights = if cues::asks_for_answers(query) { weights.with_answers() } else { *weights };
    found.ranked = rank::rank(candidates, &words, &weights);
    settle(stores, &mut found, &named, query, filter).await?;
    found.is_named = !named.is_empty();
    report(failed, &mut found)?;
    found.terms = terms;
    found.rarity.resize(found.terms.len(), 0.0);
    found.timings.rank = micros(rank_began);
    tracing::debug!(micros = micros(began), candidates = found.ranked.len(), "searched");
    Ok(found)
}

/// One of the two searches, `words` or `meaning`, and why it failed.
type Failed = (&'static str, Error);

/// Adds the notices of the searches that failed. Errors with the first failure if the others found nothing.
fn report(failed: Vec<Failed>, found: &mut SearchResult) -> Result<()> {
    let said = |signal: &str, error: &Error| format!("no search by {signal}: {error}");
    if found.ranked.is_empty()
        && let Some((signal, error)) = failed.first()
    {
        error.log();
        let failure = error.reworded(said(signal, error));
        return Err(if failure.way_out().is_some() { failure } else { failure.hint("repeat the call") });
    }
    for (signal, error) in &failed {
        error.log();
        found.notices.push(partial::notice(said(signal, error)));
    }
    partial::first(&mut found.notices);
    Ok(())
}

/// Settles the order of what was ranked: a commit that the query names by its id comes first, whatever its score is; a
/// commit that was amended is replaced by what it became; and a memory that was superseded comes after the one that
/// replaced it.
async fn settle(
    stores: &[(&dyn ReadStore, &Scope)],
    found: &mut SearchResult,
    named: &[(usize, MemoryKey, ChunkKey)],
    query: &str,
    filter: &Filter,
) -> Result<()> {
    let is_named = |ranked: &Ranked| {
        named.iter().any(|(store, memory, _)| (*store, *memory) == (ranked.store, ranked.place.key))
    };
    found.ranked.sort_by_key(|ranked| !is_named(ranked));
    let narrows = filter.narrows(Group::Commit);
    let ranked = newest(stores, std::mem::take(&mut found.ranked), narrows, is_named).await?;
    (found.ranked, found.superseded) = superseded::current_first(stores, ranked, query, filter).await?;
    Ok(())
}

/// Returns a notice if there is a model and it was not trained on the language of the question.
fn unread(language: Option<Language>, model: Option<Model>) -> Option<String> {
    let (language, model) = (language?, model?);
    if model.reads(language) {
        return None;
    }
    Some(format!(
        "the embedding model reads only English, and the question is in {language}: its words were matched, its meaning \
         hardly; `{}` installs a model that reads it",
        Model::E5.installation()
    ))
}

/// Returns the text in which the query's words are counted for a memory: its chunk `piece`, its speaker, and its other
/// indexed fields.
pub fn searched_text(memory: &Memory, piece: Range<usize>) -> String {
    // For a commit, the searched text is the whole message and the changed paths.
    let is_commit = memory.kind == MemoryKind::Commit;
    let piece = if is_commit { memory.text.as_str() } else { memory.text.get(piece).unwrap_or_default() };
    let names = [&memory.speaker, &memory.title, &memory.topic, &memory.path, &memory.indexed];
    names.into_iter().flatten().fold(piece.to_owned(), |text, name| text + "\n" + name)
}

/// Replaces each commit that was amended or squashed by the commit that it became, unless the query names the old
/// commit. Each new commit is returned only once. If the filter excludes some commits (`narrows`), a new commit
/// replaces an old one only if the search found it too.
async fn newest(
    stores: &[(&dyn ReadStore, &Scope)],
    ranked: Vec<Ranked>,
    narrows: bool,
    is_named: impl Fn(&Ranked) -> bool,
) -> Result<Vec<Ranked>> {
    let mut replacements: HashMap<(usize, MemoryKey), Ranked> = HashMap::new();
    for (number, (store, scope)) in stores.iter().enumerate() {
        let commits = ranked
            .iter()
            .filter(|each| each.store == number && each.place.kind == MemoryKind::Commit && !is_named(each));
        let commits: Vec<MemoryKey> = commits.map(|each| each.place.key).collect();
        if commits.is_empty() {
            continue;
        }
        let found = store.stand_ins(scope, commits).await?;
        let places = store.places(scope, found.iter().map(|(_, (by, _))| *by).collect()).await?;
        for (old, (by, chunk)) in found {
            let known = ranked.iter().find(|each| (each.store, each.place.key) == (number, by));
            let old_hit = ranked.iter().find(|each| (each.store, each.place.key) == (number, old));
            let place = places.iter().find(|place| place.key == by);
            let by = match (known, old_hit, place) {
                (Some(known), ..) => known.clone(),
                (None, Some(old), Some(place)) if !narrows => {
                    Ranked { place: place.clone(), chunk, ..old.clone() }
                }
                _ => continue,
            };
            replacements.insert((number, old), by);
        }
    }
    if replacements.is_empty() {
        return Ok(ranked);
    }
    let mut placed: HashSet<(usize, MemoryKey)> = HashSet::new();
    let in_place = ranked.into_iter().map(|each| match replacements.remove(&(each.store, each.place.key)) {
        // The better of the two scores is shown, since it decided the place among the hits.
        Some(by) if by.score < each.score => Ranked { score: each.score, parts: each.parts, ..by },
        Some(by) => by,
        None => each,
    });
    Ok(in_place.filter(|each| placed.insert((each.store, each.place.key))).collect())
}

/// The query as a vector, and the model on this machine that made it.
struct Embedded {
    model: Option<Model>,
    embedding: Embedding,
}

/// Embeds the query for each vector space.
async fn embed(encoders: &Encoders<'_>, query: &str) -> Vec<Result<Embedded>> {
    let each = encoders.each().map(async |encoder| {
        let embedding = within_deadline(encoder.question(query.trim().to_owned())).await?;
        Ok(Embedded { model: encoder.model(), embedding })
    });
    futures_util::future::join_all(each).await
}

/// Returns the candidates that the search by words finds, and the rarity of each of `terms`.
///
/// All scores are on the same scale: a word has the same weight in a small store as in the largest one.
async fn lexical(
    stores: &[(&dyn ReadStore, &Scope)],
    filter: &Filter,
    groups: &[Group],
    terms: &[Term],
    identifiers: Vec<Term>,
) -> Result<(Vec<(usize, LexicalCandidate)>, Vec<f64>)> {
    if terms.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let all: Vec<Term> = terms.iter().cloned().chain(identifiers).collect();
    within_deadline(async {
        let found =
            stores.iter().map(|(store, scope)| store.lexical(scope, filter, groups, all.clone(), CANDIDATES));
        let (mut found, vocabularies): (Vec<Vec<LexicalCandidate>>, Vec<Vocabulary>) =
            try_join_all(found).await?.into_iter().unzip();
        let size = |number: &usize| vocabularies[*number].documents;
        let largest = (0..stores.len()).rev().max_by_key(size).unwrap_or(0);
        // A small store is searched again with the weights of the largest. That takes less time than waiting for these
        // weights before the first search of the small store.
        for (number, (store, scope)) in stores.iter().enumerate() {
            if number != largest && size(&number) < LARGE_STORE && !found[number].is_empty() {
                let weights = vocabularies[largest].clone();
                found[number] =
                    store.lexical_as(scope, filter, groups, all.clone(), weights, CANDIDATES).await?;
            }
        }
        let number = |(number, found): (usize, Vec<LexicalCandidate>)| {
            found.into_iter().map(move |candidate| (number, candidate))
        };
        let candidates = found.into_iter().enumerate().flat_map(number).collect();
        let mut rarity = Vocabulary::rarity(&vocabularies);
        rarity.truncate(terms.len());
        Ok((candidates, rarity))
    })
    .await
}

/// Returns the commits that the query names by the beginning of their ids, each as its store, memory and chunk.
async fn named(
    stores: &[(&dyn ReadStore, &Scope)],
    filter: &Filter,
    query: &str,
) -> Result<Vec<(usize, MemoryKey, ChunkKey)>> {
    let mut named = Vec::new();
    if !filter.groups().contains(&Group::Commit) || filter.narrows(Group::Commit) {
        return Ok(named);
    }
    for id in query::commit_ids(query) {
        for (number, (store, scope)) in stores.iter().enumerate() {
            let found = store.commit_named(scope, id).await?;
            named.extend(found.map(|(memory, chunk)| (number, memory, chunk)));
        }
    }
    Ok(named)
}

async fn dense(
    stores: &[(&dyn ReadStore, &Scope)],
    filter: &Filter,
    groups: &[Group],
    embedded: &[Result<Embedded>],
) -> Result<Vec<(usize, DenseCandidate)>> {
    let mut candidates = Vec::new();
    for Embedded { embedding: Embedding { space, vector }, .. } in embedded.iter().flatten() {
        for (number, (store, scope)) in stores.iter().enumerate() {
            let near = store.dense(scope, filter, groups, space.as_str(), vector, CANDIDATES);
            let near = within_deadline(near).await?;
            candidates.extend(near.into_iter().map(|candidate| (number, candidate)));
        }
    }
    Ok(candidates)
}

/// Returns the cosine of every candidate that has a vector in one of the spaces. Adds to `failed` why a question has no
/// embedding, or why vectors can't be read.
async fn cosines(
    stores: &[(&dyn ReadStore, &Scope)],
    embedded: Vec<Result<Embedded>>,
    candidates: &HashMap<(usize, ChunkKey), (MemoryKey, f64)>,
    failed: &mut Vec<Failed>,
) -> HashMap<(usize, ChunkKey), f64> {
    let mut cosines = HashMap::new();
    for question in embedded {
        let read = match question {
            Ok(question) => cosines_to(stores, &question, candidates).await,
            Err(error) => Err(error),
        };
        match read {
            Ok(more) => cosines.extend(more),
            Err(error) => failed.push(("meaning", error)),
        }
    }
    cosines
}

/// Returns the cosine, on the scale of the default model, of every candidate that has a vector, including those that
/// only the search by words found.
async fn cosines_to(
    stores: &[(&dyn ReadStore, &Scope)],
    Embedded { model, embedding: Embedding { space, vector } }: &Embedded,
    candidates: &HashMap<(usize, ChunkKey), (MemoryKey, f64)>,
) -> Result<HashMap<(usize, ChunkKey), f64>> {
    let mut cosines = HashMap::with_capacity(candidates.len());
    for (number, (store, scope)) in stores.iter().enumerate() {
        let own = candidates.keys().filter(|(store, _)| *store == number);
        let chunks = own.map(|(_, chunk)| *chunk).collect();
        let found = within_deadline(store.cosines(scope, space.as_str(), vector, chunks)).await?;
        let scaled =
            |(chunk, cosine)| ((number, chunk), model.map_or(cosine, |model| model.on_common_scale(cosine)));
        cosines.extend(found.into_iter().map(scaled));
    }
    Ok(cosines)
}

/// Reads the fields of the candidates' memories that ranking needs. Leaves out candidates that are no longer in the
/// scope.
async fn places(
    stores: &[(&dyn ReadStore, &Scope)],
    found: HashMap<(usize, ChunkKey), (MemoryKey, f64)>,
    cosines: &HashMap<(usize, ChunkKey), f64>,
) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::with_capacity(found.len());
    for (number, (store, scope)) in stores.iter().enumerate() {
        let own = || found.iter().filter(|((store, _), _)| *store == number);
        let mut keys: Vec<MemoryKey> = own().map(|(_, (memory, _))| *memory).collect();
        keys.sort_unstable();
        keys.dedup();
        let places = store.places(scope, keys).await?;
        let places: HashMap<MemoryKey, _> = places.into_iter().map(|place| (place.key, place)).collect();
        candidates.extend(own().filter_map(|((store, chunk), (memory, lexical))| {
            let place = places.get(memory)?.clone();
            let cosine = cosines.get(&(*store, *chunk)).copied();
            Some(Candidate { store: *store, chunk: *chunk, lexical: *lexical, cosine, place })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_failed_is_told_before_the_hits_and_is_an_error_without_hits() {
        let busy = || Error::new(Kind::Busy, "another process writes");
        let mut found = SearchResult::default();
        let error = report(vec![("words", busy())], &mut found).unwrap_err();
        assert_eq!(error.kind(), Kind::Busy);
        assert_eq!(error.with_hint(), "no search by words: another process writes; repeat the call");
        report(Vec::new(), &mut found).expect("a complete search may find nothing");
        assert_eq!(found.notices, Vec::<String>::new());
        found.notices.push("the question is in German".to_owned());
        found.ranked.push(rank::tests::ranked());
        report(vec![("meaning", busy()), ("meaning", busy())], &mut found).unwrap();
        assert!(partial::is(&found.notices[0]), "{:?}", found.notices);
        assert_eq!(found.notices.len(), 2);
    }

    #[test]
    fn a_question_in_a_language_that_the_model_does_not_read_has_a_notice() {
        let notice = unread(Some(Language::German), Some(Model::MiniLm)).unwrap();
        assert!(notice.contains("in German"), "{notice}");
        for (language, model) in [
            (Some(Language::German), Some(Model::E5)),
            (Some(Language::German), None),
            (None, Some(Model::MiniLm)),
        ] {
            assert_eq!(unread(language, model), None);
        }
    }
}
