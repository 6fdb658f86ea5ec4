//! Gets the candidates of a search from its stores, with one read of each store, and combines them for ranking.
//!
//! If the search by words or the search by meaning fails, in one store or in all, the candidates of the other search
//! are still used. If a store answers neither search in time, it is asked for each of the two searches alone.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;

use super::rank::Candidate;
use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::MemoryKey;
use tiro_base::scope::Scope;
use tiro_embed::{Embedding, Model};
use tiro_store::tuning::LARGE_STORE;
use tiro_store::{CandidateQuery, Candidates, ChunkKey, ReadStore, Vocabulary};

/// The longest time for each of the two searches. Arbitrary: hundreds of times the measured durations.
const DEADLINE: Duration = Duration::from_secs(5);

/// The name of one of the two searches, `words` or `meaning`, and the error with which it failed.
pub type Failed = (&'static str, Error);

/// The query as a vector, and the model on this machine that made it.
pub struct Embedded {
    /// The model; `None` if a provider made the vector.
    pub model: Option<Model>,
    /// The vector, and the name of its space.
    pub embedding: Embedding,
}

/// The data that the stores contain for a query.
#[derive(Default)]
pub struct Gathered {
    /// The candidates of all stores.
    pub candidates: Vec<Candidate>,
    /// The rarity of each term; empty if the search by words failed.
    pub rarity: Vec<f64>,
    /// Whether each term is contained in no document; empty if the search by words failed.
    pub absent: Vec<bool>,
    /// The commits that the query names, each with the number of its store.
    pub named: Vec<(usize, MemoryKey)>,
    /// The searches that failed.
    pub failed: Vec<Failed>,
    /// The number of chunks that have no embedding yet; `None` if they can't be counted.
    pub pending: Option<usize>,
}

/// A chunk that was found, with the number of its store.
type Place = (usize, ChunkKey);

/// Asks each store for the candidates of `query`. The embeddings of `questions` are added to the query. Scores by words
/// are on the same scale in all stores, because a word has the same weight in a small store as in the largest store.
///
/// Errors if a store can't tell which commits the query names, or can't read the data of its candidates for ranking.
pub async fn gather(
    stores: &[(&dyn ReadStore, &Scope)],
    mut query: CandidateQuery,
    questions: Vec<Result<Embedded>>,
) -> Result<Gathered> {
    let embedded = questions.iter().flatten().map(|each| &each.embedding);
    query.embeddings = embedded.map(|each| (each.space.as_str().to_owned(), each.vector.clone())).collect();
    let mut answers = join_all(stores.iter().map(|(store, scope)| ask(*store, scope, &query))).await;
    let vocabularies = weigh_alike(stores, &query, &mut answers).await;

    let pending = answers.iter().map(|answer| answer.pending).sum();
    let mut gathered = Gathered { pending, ..Gathered::default() };
    let mut found: HashMap<Place, (MemoryKey, f64)> = HashMap::new();
    match lists(&mut answers, |answer| std::mem::replace(&mut answer.near, Ok(Vec::new()))) {
        Ok(near) => found.extend(near.map(|(store, each)| ((store, each.chunk), (each.memory, 0.0)))),
        Err(error) => gathered.failed.push(("meaning", error)),
    }
    let words = |answer: &mut Candidates| {
        let words = std::mem::replace(&mut answer.words, Ok(Default::default()));
        words.map(|(found, _)| found)
    };
    match lists(&mut answers, words) {
        Ok(words) => {
            found.extend(words.map(|(store, each)| ((store, each.chunk), (each.memory, each.score))));
            gathered.rarity = Vocabulary::rarity(&vocabularies);
            gathered.absent = absent(&vocabularies);
        }
        Err(error) => gathered.failed.push(("words", error)),
    }
    for (store, (memory, chunk)) in
        lists(&mut answers, |answer| std::mem::replace(&mut answer.named, Ok(Vec::new())))?
    {
        found.entry((store, chunk)).or_insert((memory, 0.0));
        gathered.named.push((store, memory));
    }
    let cosines = cosines(&mut answers, questions, &mut gathered.failed);
    for (number, answer) in answers.into_iter().enumerate() {
        let places = answer.places?.into_iter().map(|place| (place.key, place));
        let places: HashMap<MemoryKey, _> = places.collect();
        let own = found.iter().filter(|((store, _), _)| *store == number);
        gathered.candidates.extend(own.filter_map(|(place, (memory, lexical))| {
            let cosine = cosines.get(place).copied();
            let (store, chunk) = *place;
            let place = places.get(memory)?.clone();
            Some(Candidate { store, chunk, lexical: *lexical, cosine, place })
        }));
    }
    Ok(gathered)
}

/// Takes a list from each answer. Returns the elements of all lists, each with the number of its store. Errors if one
/// of the lists could not be read.
fn lists<T, F: FnMut(&mut Candidates) -> Result<Vec<T>>>(
    answers: &mut [Candidates],
    list: F,
) -> Result<impl Iterator<Item = (usize, T)> + use<T, F>> {
    let lists: Vec<Vec<T>> = answers.iter_mut().map(list).collect::<Result<_>>()?;
    let numbered = |(number, list): (usize, Vec<T>)| list.into_iter().map(move |each| (number, each));
    Ok(lists.into_iter().enumerate().flat_map(numbered))
}

/// Asks small stores again with the weights of words from the largest store, unless a search by words failed. Asking
/// twice takes less time than waiting for these weights before a small store is asked at all. Returns the counts of
/// words in each store.
async fn weigh_alike(
    stores: &[(&dyn ReadStore, &Scope)],
    query: &CandidateQuery,
    answers: &mut [Candidates],
) -> Vec<Vocabulary> {
    let words = |answer: &Candidates| {
        let (found, vocabulary) = answer.words.as_ref().ok()?;
        Some((found.is_empty(), vocabulary.clone()))
    };
    let Some(words) = answers.iter().map(words).collect::<Option<Vec<(bool, Vocabulary)>>>() else {
        return Vec::new();
    };
    let (is_empty, vocabularies): (Vec<bool>, Vec<Vocabulary>) = words.into_iter().unzip();
    let size = |number: &usize| vocabularies[*number].documents;
    let largest = (0..stores.len()).rev().max_by_key(size).unwrap_or(0);
    for (number, (store, scope)) in stores.iter().enumerate() {
        if number != largest && size(&number) < LARGE_STORE && !is_empty[number] {
            let weights = Some(vocabularies[largest].clone());
            answers[number] = ask(*store, scope, &CandidateQuery { weights, ..query.clone() }).await;
        }
    }
    vocabularies
}

/// Returns for each word whether no document of the stores contains it.
fn absent(vocabularies: &[Vocabulary]) -> Vec<bool> {
    let words = vocabularies.iter().map(|store| store.counts.len()).max().unwrap_or(0);
    let is_absent = |place: usize| {
        vocabularies.iter().all(|store| store.counts.get(place).is_none_or(|count| *count == 0))
    };
    (0..words).map(is_absent).collect()
}

/// Returns the cosine, on the scale of the default model, of every candidate that has a vector in one of the spaces.
/// Candidates that only the search by words found are included. If a question has no embedding, or vectors can't be
/// read, adds the reason to `failed`.
fn cosines(
    answers: &mut [Candidates],
    questions: Vec<Result<Embedded>>,
    failed: &mut Vec<Failed>,
) -> HashMap<Place, f64> {
    let mut cosines = HashMap::new();
    let mut space = 0..;
    for question in questions {
        let read = question.and_then(|Embedded { model, .. }| {
            let space = space.next().unwrap_or_default();
            let of = |answer: &mut Candidates| std::mem::replace(&mut answer.cosines[space], Ok(Vec::new()));
            let scale = move |cosine| model.map_or(cosine, |model| model.on_common_scale(cosine));
            let found = lists(answers, of)?;
            Ok(found.map(move |(store, (chunk, cosine))| ((store, chunk), scale(cosine))).collect::<Vec<_>>())
        });
        match read {
            Ok(more) => cosines.extend(more),
            Err(error) => failed.push(("meaning", error)),
        }
    }
    cosines
}

/// Asks a store for the candidates of a query, within the deadline of its searches. If the store takes longer, asks
/// separately for the candidates by words and the candidates by meaning.
async fn ask(store: &dyn ReadStore, scope: &Scope, query: &CandidateQuery) -> Candidates {
    let searches = u32::from(!query.terms.is_empty()) + u32::from(!query.embeddings.is_empty());
    let asked = |query: CandidateQuery, deadline| async move {
        let answer = tokio::time::timeout(deadline, store.candidates(scope, query.clone())).await;
        answer.ok().map(|answer| {
            answer.unwrap_or_else(|error| {
                error.log();
                Candidates::failed(&query, &error)
            })
        })
    };
    if let Some(answer) = asked(query.clone(), DEADLINE * searches.max(1)).await {
        return answer;
    }
    let (by_words, by_meaning) = (
        CandidateQuery { embeddings: Vec::new(), ..query.clone() },
        CandidateQuery { terms: Vec::new(), ..query.clone() },
    );
    let (words, meaning) = match searches {
        2 => tokio::join!(asked(by_words, DEADLINE), asked(by_meaning, DEADLINE)),
        _ => (None, None),
    };
    apart(query, words, meaning)
}

/// Combines the two answers of a store that was asked separately for candidates by words and by meaning. `None` stands
/// for an answer that came too late.
fn apart(query: &CandidateQuery, words: Option<Candidates>, meaning: Option<Candidates>) -> Candidates {
    let late = Candidates::failed(query, &late());
    let mut answer = Candidates { places: Ok(Vec::new()), ..late };
    if let Some(meaning) = meaning {
        answer = Candidates { words: answer.words, ..meaning };
    }
    if let Some(words) = words {
        let places = words.places.and_then(|places| Ok([places, answer.places?].concat()));
        answer = Candidates { words: words.words, named: words.named, places, ..answer };
    }
    answer
}

/// Returns the result of `work`, or an error if it takes longer than the deadline.
pub async fn within_deadline<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(DEADLINE, work).await.unwrap_or_else(|_| Err(late()))
}

fn late() -> Error {
    Error::new(Kind::Busy, format!("it took longer than {} s", DEADLINE.as_secs())).hint("try again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::memory::Group;
    use tiro_store::{DenseCandidate, LexicalCandidate};
    use tiro_text::words::Term;

    fn found() -> Candidates {
        let (memory, chunk) = (MemoryKey::from_store(1), ChunkKey::from_store(1));
        let word = LexicalCandidate { memory, chunk, group: Group::Message, is_answer: false, score: 1.0 };
        Candidates {
            words: Ok((vec![word], Vocabulary::default())),
            near: Ok(vec![DenseCandidate { memory, chunk }]),
            named: Ok(Vec::new()),
            cosines: vec![Ok(vec![(chunk, 0.5)])],
            places: Ok(Vec::new()),
            pending: Some(3),
        }
    }

    #[test]
    fn a_search_that_takes_too_long_leaves_the_candidates_of_the_other() {
        let query = CandidateQuery {
            terms: vec![Term::new("quince")],
            embeddings: vec![("space".to_owned(), vec![1.0])],
            ..CandidateQuery::default()
        };
        let parts = |answer: Candidates| {
            let is_read = answer.cosines.into_iter().all(|cosines| cosines.is_ok());
            (answer.words.is_ok(), answer.near.is_ok(), is_read, answer.places.is_ok())
        };
        assert_eq!(parts(apart(&query, Some(found()), None)), (true, false, false, true));
        assert_eq!(parts(apart(&query, None, Some(found()))), (false, true, true, true));
        assert_eq!(parts(apart(&query, None, None)), (false, false, false, true));
        let late = apart(&query, Some(found()), None).near.unwrap_err();
        assert_eq!((late.kind(), late.to_string().as_str()), (Kind::Busy, "it took longer than 5 s"));
        let words = CandidateQuery { embeddings: Vec::new(), ..query };
        assert!(apart(&words, None, None).near.is_ok(), "nothing was to be searched by meaning");
    }
}
