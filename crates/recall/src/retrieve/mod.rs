//! The read path: filter → lexical and vector candidates → fuse → rank → dedup → fit the budget.
//!
//! Each store is read twice: the first read finds the candidates of both searches, and the second finds the memories
//! that replaced them. If the lexical or the vector search misses its deadline, a notice says so. Without an embedder,
//! only the lexical search runs. Ranking ([`rank`]), reading the query ([`query`], [`cues`]) and pairing ([`pair`]) are
//! pure.

pub mod answering;
mod candidates;
pub mod cues;
pub mod pair;
mod prior;
pub use tiro_text::words::query;
pub mod rank;
pub mod superseded;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::Instant;

use answering::{Asked, Verdict};
use candidates::{Embedded, Failed, Gathered, gather, within_deadline};
use query::Question;
use rank::{Ranked, Weights};

use crate::tuning::ranking::CANDIDATES;
use tiro_base::error::{Error, Result, partial};
use tiro_base::filter::Filter;
use tiro_base::memory::{Content, Group, Kind as MemoryKind, Memory, MemoryId, MemoryKey};
use tiro_base::scope::Scope;
use tiro_embed::{Encode, Encoders, Model};
use tiro_store::{CandidateQuery, ReadStore, Replacements};
use tiro_text::words::{Language, Term};

/// The maximum number of bytes of a query that are read. Arbitrary.
const LONGEST_QUERY: usize = 8 * 1024;

/// The result of a search.
#[derive(Debug, Default)]
pub struct SearchResult {
    /// The memories, best first.
    pub ranked: Vec<Ranked>,
    /// Notices for the user about parts of the search that failed.
    pub notices: Vec<String>,
    /// The duration of each stage.
    pub timings: Timings,
    /// The words that were searched for.
    pub terms: Vec<Term>,
    /// The rarity of each of `terms`, as a share of the total rarity of all of them.
    pub rarity: Vec<f64>,
    /// Pairs of notes about the same thing, the newer first. They may repeat or contradict each other.
    pub alike: Vec<[MemoryId; 2]>,
    /// Which of the memories are superseded.
    pub superseded: superseded::SupersededHits,
    /// What is known of the question, to estimate whether a memory answers it.
    pub asked: Asked,
    /// The number of chunks of the searched stores that have no embedding yet; `None` if they could not be counted.
    pub pending: Option<usize>,
}

/// The durations of the stages of a search, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Embedding the query.
    pub embed: u64,
    /// Finding the candidates by words and by meaning, and reading the data that ranking needs.
    pub candidates: u64,
    /// Ranking, and reading the memories that replaced the best hits.
    pub rank: u64,
}

/// Searches `stores` for `query` and returns the memories that were found, the best first.
///
/// From each group of kinds that `filter` admits, the search takes up to 100 candidates by words and 100 by meaning, so
/// that no kind crowds out another. If one of the two searches fails or passes its deadline, the result is [partial],
/// and a notice says so. Errors if a store can't be read after these searches. Also returns an error if one search
/// failed and the other found nothing, because it is unknown then whether there is an answer.
pub async fn search(
    stores: &[(&dyn ReadStore, &Scope)],
    encoders: &Encoders<'_>,
    query: &str,
    filter: &Filter,
    weights: &Weights,
) -> Result<SearchResult> {
    let mut found = SearchResult::default();
    let all = query.len();
    let query = &query[..query.floor_char_boundary(LONGEST_QUERY)];
    if query.len() < all {
        found.notices.push(format!("only the first {} of {all} bytes of the query were read", query.len()));
    }
    let Question { terms, identifiers, language } = query::read(query);

    let model = encoders.of(Content::Prose).and_then(Encode::model);
    let unread = unread(language, model);
    let by_words = unread.is_some() || !query.contains(char::is_alphanumeric);
    found.asked.reads_meaning = !by_words;
    found.notices.extend(unread);

    let began = Instant::now();
    let wanted = CandidateQuery {
        terms: match terms.is_empty() {
            true => Vec::new(),
            false => terms.iter().cloned().chain(identifiers).collect(),
        },
        commits: commits(filter, query),
        groups: filter.groups(),
        filter: filter.clone(),
        limit: CANDIDATES,
        ..CandidateQuery::default()
    };
    // A vector that says little about the question would put other texts before those that contain its words. So it is
    // used only if no text contains them.
    let mut gathered = match by_words {
        true => gather(stores, wanted.clone(), Vec::new()).await?,
        false => Gathered::default(),
    };
    let mut embed_time = 0;
    if gathered.candidates.is_empty() {
        let questions;
        (questions, embed_time) = timed(embed(encoders, query)).await;
        found.notices.extend(encoders.each().flat_map(Encode::disclosures));
        gathered = gather(stores, wanted, questions).await?;
    }
    let candidates_time = micros(began).saturating_sub(embed_time);
    let Gathered { candidates, rarity, absent, named, failed, pending } = gathered;
    (found.rarity, found.pending) = (rarity, pending);
    found.asked.lacks_name = language.is_none() && lacks_name(query, &terms, &absent);
    found.asked.is_answered = !named.is_empty() || cues::asks_for_much(query);
    found.rarity.truncate(terms.len());
    found.timings = Timings { embed: embed_time, candidates: candidates_time, rank: 0 };

    let rank_began = Instant::now();
    let words: Vec<String> = terms.iter().map(|term| term.word().to_owned()).collect();
    let weights = if cues::asks_for_answers(query) { weights.with_answers() } else { *weights };
    found.ranked = rank::rank(candidates, &words, &weights);
    settle(stores, &mut found, &named, query, filter).await?;
    report(failed, &mut found)?;
    found.terms = terms;
    found.rarity.resize(found.terms.len(), 0.0);
    found.timings.rank = micros(rank_began);
    tracing::debug!(micros = micros(began), candidates = found.ranked.len(), "searched");
    Ok(found)
}

/// Returns whether `query` contains a name that is one of the words in `terms` that no document contains. `absent` says
/// for each of `terms` whether no document contains it.
fn lacks_name(query: &str, terms: &[Term], absent: &[bool]) -> bool {
    let names = cues::names(query);
    terms
        .iter()
        .zip(absent)
        .any(|(term, is_absent)| *is_absent && names.iter().any(|name| name == term.word()))
}

impl SearchResult {
    /// Returns whether `hits`, the best of the memories, answer the question. Each comes with the share of the
    /// question's words that it contains.
    pub fn verdict(&self, hits: &[(&Ranked, f64)]) -> Verdict {
        let words: Vec<String> = self.terms.iter().map(|term| term.word().to_owned()).collect();
        answering::verdict(hits, &words, self.asked)
    }
}

/// Adds a notice for each search that failed. Errors with the first failure if the other searches found nothing.
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

/// Corrects the order of the ranked memories in four ways. If the query names a commit by its id, this commit comes
/// first, whatever its score is. A commit that was amended is replaced by the new commit. Of notes about the same thing,
/// the newest comes first. A superseded memory comes after the memory that superseded it.
async fn settle(
    stores: &[(&dyn ReadStore, &Scope)],
    found: &mut SearchResult,
    named: &[(usize, MemoryKey)],
    query: &str,
    filter: &Filter,
) -> Result<()> {
    let is_named = |ranked: &Ranked| named.contains(&(ranked.store, ranked.place.key));
    let may_be_replaced = |ranked: &Ranked| ranked.place.kind == MemoryKind::Commit && !is_named(ranked);
    let mut ranked = std::mem::take(&mut found.ranked);
    ranked.sort_by_key(|ranked| !is_named(ranked));
    let replaced = superseded::replaced(stores, &ranked, may_be_replaced).await?;
    let mut ranked = newest(&replaced, ranked, filter.narrows(Group::Commit));
    if !superseded::asks_for_history(query) {
        let texts = replaced.iter().enumerate().flat_map(|(number, replaced)| {
            replaced.texts.iter().map(move |(key, text)| ((number, *key), text.clone()))
        });
        (ranked, found.alike) =
            superseded::newest_first(superseded::latest_of_best(ranked), &texts.collect());
    }
    (found.ranked, found.superseded) = superseded::current_first(&replaced, ranked, query, filter);
    // That a note was replaced is said with the note.
    let SearchResult { ranked, superseded, alike, .. } = found;
    let is_replaced = |id: &MemoryId| {
        ranked
            .iter()
            .any(|each| each.place.id == *id && superseded.contains_key(&(each.store, each.place.key)))
    };
    alike.retain(|[_, older]| !is_replaced(older));
    Ok(())
}

/// Returns a notice if `model` is known and was not trained on the language of the question.
fn unread(language: Option<Language>, model: Option<Model>) -> Option<String> {
    let (language, model) = (language?, model?);
    if model.reads(language) {
        return None;
    }
    Some(format!(
        "the embedding model reads only English, and the question is in {language}: only its words were matched; \
         `{}` installs a model that reads it",
        Model::E5.installation()
    ))
}

/// Returns the part of a memory's text that is searched for the query's words. It consists of the memory's chunk
/// `piece`, its speaker, and its other indexed fields.
pub fn searched_text(memory: &Memory, piece: Range<usize>) -> String {
    // For a commit, the searched text is the whole message and the changed paths.
    let is_commit = memory.kind == MemoryKind::Commit;
    let piece = if is_commit { memory.text.as_str() } else { memory.text.get(piece).unwrap_or_default() };
    let names = [&memory.speaker, &memory.title, &memory.topic, &memory.path, &memory.indexed];
    names.into_iter().flatten().fold(piece.to_owned(), |text, name| text + "\n" + name)
}

/// Replaces each commit that was amended or squashed by the resulting commit, unless the query names the old commit.
/// Each new commit is returned only once. If the filter excludes some commits (`narrows`), a new commit replaces an old
/// one only if the search also found the new one.
fn newest(replaced: &[Replacements], ranked: Vec<Ranked>, narrows: bool) -> Vec<Ranked> {
    let mut replacements: HashMap<(usize, MemoryKey), Ranked> = HashMap::new();
    for (number, Replacements { stand_ins, places, .. }) in replaced.iter().enumerate() {
        for (old, (by, chunk)) in stand_ins {
            let known = ranked.iter().find(|each| (each.store, each.place.key) == (number, *by));
            let old_hit = ranked.iter().find(|each| (each.store, each.place.key) == (number, *old));
            let place = places.iter().find(|place| place.key == *by);
            let by = match (known, old_hit, place) {
                (Some(known), ..) => known.clone(),
                (None, Some(old), Some(place)) if !narrows => {
                    Ranked { place: place.clone(), chunk: *chunk, ..old.clone() }
                }
                _ => continue,
            };
            replacements.insert((number, *old), by);
        }
    }
    if replacements.is_empty() {
        return ranked;
    }
    let mut placed: HashSet<(usize, MemoryKey)> = HashSet::new();
    let in_place = ranked.into_iter().map(|each| match replacements.remove(&(each.store, each.place.key)) {
        // The higher of the two scores is shown, because it decided the place among the hits.
        Some(by) if by.score < each.score => Ranked { score: each.score, parts: each.parts, ..by },
        Some(by) => by,
        None => each,
    });
    in_place.filter(|each| placed.insert((each.store, each.place.key))).collect()
}

/// Embeds the query for each vector space.
async fn embed(encoders: &Encoders<'_>, query: &str) -> Vec<Result<Embedded>> {
    let each = encoders.each().map(async |encoder| {
        let embedding = within_deadline(encoder.question(query.trim().to_owned())).await?;
        Ok(Embedded { model: encoder.model(), embedding })
    });
    futures_util::future::join_all(each).await
}

/// Returns the ids of commits that the query names, if the search may find commits by their ids.
fn commits(filter: &Filter, query: &str) -> Vec<String> {
    match !filter.groups().contains(&Group::Commit) || filter.narrows(Group::Commit) {
        true => Vec::new(),
        false => query::commit_ids(query).into_iter().map(str::to_owned).collect(),
    }
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
    use tiro_base::error::Kind;

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
    fn a_name_that_no_document_contains_is_noticed() {
        let terms = [Term::new("gina"), Term::new("shop")];
        for (query, absent, lacks) in [
            ("When did Gina open a shop?", [true, false], true),
            ("When did Gina open a shop?", [false, true], false),
            ("when did gina open a shop?", [true, false], false),
            ("Gina opened a shop?", [true, false], false),
        ] {
            assert_eq!(lacks_name(query, &terms, &absent), lacks, "{query} {absent:?}");
        }
        assert!(!lacks_name("When did Gina open a shop?", &terms, &[]), "the search by words failed");
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
