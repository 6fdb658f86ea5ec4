//! What the words of a question weigh, and how much of a question a text has.
//!
//! BM25 weighs words by the documents of the store they are looked for in. In a store of a few documents every word is
//! common, so that its scores are next to nothing beside those of a large one: where several stores are searched, the
//! words of the small ones are weighed as in the largest.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::conditions::Conditions;
use super::lexical::query::{Query, quoted};
use super::lexical::{self, LexicalCandidate, SMALL_CORPUS, rank};
use super::{Inner, Store, lock};
use crate::chunk::index_text;
use crate::error::Result;
use crate::filter::Filter;
use crate::memory::Group;
use crate::scope::Scope;

/// In how many documents of a store the words of a question stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// How many documents there are.
    pub documents: i64,
    /// In how many of them each word stands, in the order of the words.
    pub counts: Vec<i64>,
}

impl Vocabulary {
    /// Returns what each word says of what is asked for, by how rare it is in all of `stores`: above 0, a word that stands
    /// nowhere the most.
    pub fn rarity(stores: &[Vocabulary]) -> Vec<f64> {
        let words = stores.iter().map(|store| store.counts.len()).max().unwrap_or(0);
        let all: i64 = stores.iter().map(|store| store.documents).sum();
        let rarity = |place: usize| {
            let with: i64 = stores.iter().filter_map(|store| store.counts.get(place)).sum();
            (1.0 + ((all - with).max(0) as f64 + 0.5) / (with as f64 + 0.5)).ln()
        };
        (0..words).map(rarity).collect()
    }
}

/// Returns in how many documents each of `terms`, words or phrases, stands; of a phrase, its rarest word.
pub(super) fn read(inner: &Inner, connection: &Connection, terms: &[String]) -> Result<Vocabulary> {
    let documents = lexical::documents(connection)?;
    if documents >= SMALL_CORPUS {
        let counts = lexical::count(inner, connection, documents, terms)?;
        return Ok(Vocabulary { documents, counts });
    }
    let stems = stems(inner, &terms.iter().collect::<Vec<_>>())?;
    let mut counts = Vec::with_capacity(stems.len());
    for stems in stems {
        let mut least = documents;
        for stem in &stems {
            least = least.min(lexical::documents_of(connection, stem)?);
        }
        counts.push(if stems.is_empty() { 0 } else { least });
    }
    Ok(Vocabulary { documents, counts })
}

impl Store {
    /// Does what [`Store::lexical`] does, for a store that is small, with the words weighed as in the store of `weights`.
    pub async fn lexical_as(
        &self,
        scope: &Scope,
        filter: &Filter,
        groups: &[Group],
        terms: Vec<String>,
        weights: Vocabulary,
        limit: usize,
    ) -> Result<Vec<LexicalCandidate>> {
        let (filter, groups) = (filter.clone(), groups.to_vec());
        self.read(scope, move |_, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?.narrowed(&filter);
            let mut found: HashMap<i64, LexicalCandidate> = HashMap::new();
            for (place, term) in terms.iter().enumerate() {
                let text = format!("{{speaker header text context}} : {}", quoted(term));
                let weight = rank::weight(weights.documents, weights.counts[place]);
                let query = Query { text, weights: Some(vec![(0, weight)]) };
                let most = SMALL_CORPUS as usize;
                lexical::search(connection, &conditions, &query, most, &mut |candidate| {
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
                *taken <= limit
            });
            Ok(candidates)
        })
        .await
    }

    /// Returns for each of `texts` the share of `terms` that it has, each counted by its `rarity`: 1 where it has all.
    pub async fn shares(
        &self,
        scope: &Scope,
        terms: Vec<String>,
        rarity: Vec<f64>,
        texts: Vec<String>,
    ) -> Result<Vec<f64>> {
        self.read(scope, move |inner, _, _| {
            let all: f64 = rarity.iter().sum();
            let words: Vec<HashSet<String>> = texts.iter().map(|text| words(text)).collect();
            // Only what begins like a word of the question can be one.
            let begins: HashSet<char> = terms.iter().filter_map(|term| term.chars().next()).collect();
            let may_be = |word: &&String| {
                word.chars().next().is_some_and(|first| !first.is_ascii() || begins.contains(&first))
            };
            let mut asked: Vec<&String> = terms.iter().collect();
            asked.extend(words.iter().flatten().filter(may_be).collect::<HashSet<_>>());
            let stems = stems(inner, &asked)?;
            let stem_of: HashMap<&String, &Vec<String>> = asked.iter().copied().zip(&stems).collect();
            let share = |words: &HashSet<String>| {
                let own: HashSet<&Vec<String>> =
                    words.iter().filter_map(|word| stem_of.get(word).copied()).collect();
                let had = stems[..terms.len()].iter().zip(&rarity).filter(|(stem, _)| own.contains(stem));
                if all > 0.0 { had.map(|(_, rarity)| rarity).sum::<f64>() / all } else { 0.0 }
            };
            Ok(words.iter().map(share).collect())
        })
        .await
    }
}

fn stems(inner: &Inner, terms: &[&String]) -> Result<Vec<Vec<String>>> {
    lock(&inner.common_terms).stems(terms)
}

/// Returns the words of `text` in lower case, identifiers also in parts.
fn words(text: &str) -> HashSet<String> {
    let text = index_text::with_parts(text);
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}
