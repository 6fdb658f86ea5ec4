//! Counts the documents that contain a word, and computes the share of a query's words that a text contains.
//!
//! BM25 weights a word by the number of documents of the searched store that contain it. In a store with few documents,
//! every word is common, so the scores are near zero compared with the scores in a large store. So if several stores
//! are searched, words in the small stores get the weights that they have in the largest one. Counts include the
//! documents of all owners of a file.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension};

use crate::Inner;
use crate::SqliteStore;
use crate::connection::{blocking, lock};
use crate::error::Result;
use tiro_base::error;
use tiro_base::scope::Scope;
use tiro_store::Vocabulary;
use tiro_store::tuning::LARGE_STORE;
use tiro_text::chunk::index_text;
use tiro_text::words::{Term, is_of_word};

/// The count of a stem is cached if more than this share of the documents contain the stem. Counting rarer stems is
/// fast.
const COMMON_SHARE: f64 = 0.01;

/// The maximum number of words whose counts are cached. Arbitrary: they take a few megabytes.
const WORDS_REMEMBERED: usize = 20_000;

/// Returns how many documents contain each of `terms`, which are words or phrases. For a phrase, counts the documents
/// that contain its rarest word.
pub(crate) fn read(inner: &Inner, connection: &Connection, terms: &[Term]) -> Result<Vocabulary> {
    let documents = documents(connection)?;
    if documents >= LARGE_STORE {
        let counts = count(inner, connection, documents, terms)?;
        return Ok(Vocabulary { documents, counts });
    }
    let stems = stems(inner, &terms.iter().flat_map(Term::forms).collect::<Vec<_>>())?;
    let mut stems = stems.iter();
    let mut counts = Vec::with_capacity(terms.len());
    for term in terms {
        // A text that contains a word usually contains its stem too, so the counts of the forms are not added.
        let mut most = 0;
        for stems in stems.by_ref().take(term.forms().len()) {
            most = most.max(least(stems, |stem| documents_of(connection, stem))?);
        }
        counts.push(most.min(documents));
    }
    Ok(Vocabulary { documents, counts })
}

/// Returns how many documents contain the rarest of `stems`. The result is an upper bound for the number of documents
/// with the phrase of these stems. Counting these documents exactly would take as long as a search.
fn least(stems: &[String], mut documents_of: impl FnMut(&str) -> Result<i64>) -> Result<i64> {
    let mut least = None;
    for stem in stems {
        let documents = documents_of(stem)?;
        least = Some(least.map_or(documents, |least: i64| least.min(documents)));
    }
    Ok(least.unwrap_or(0))
}

impl SqliteStore {
    pub(crate) async fn completions(
        &self,
        scope: &Scope,
        beginning: &str,
        limit: usize,
    ) -> error::Result<Vec<String>> {
        let beginning = beginning.to_owned();
        self.read(scope, move |_, connection, _| {
            let mut statement = connection.prepare_cached(
                "SELECT term FROM text_terms WHERE term > ?1 AND term < ?1 || char(1114111)
                 ORDER BY doc DESC, term LIMIT ?2",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map((beginning, limit), |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
        .await
    }

    pub(crate) async fn shares(
        &self,
        scope: &Scope,
        terms: Vec<Term>,
        rarity: Vec<f64>,
        texts: Vec<String>,
    ) -> error::Result<Vec<f64>> {
        self.admit(scope)?;
        let store = self.clone();
        blocking(move || {
            let all: f64 = rarity.iter().sum();
            let words: Vec<HashSet<String>> = texts.iter().map(|text| words(text)).collect();
            let forms = || terms.iter().flat_map(Term::forms);
            // A word of a text can have the same stem as a word of the question only if both words begin with the same
            // letter.
            let begins: HashSet<char> = forms().filter_map(|form| form.chars().next()).collect();
            let may_be = |word: &&String| {
                word.chars().next().is_some_and(|first| !first.is_ascii() || begins.contains(&first))
            };
            let mut asked: Vec<&String> = forms().collect();
            asked.extend(words.iter().flatten().filter(may_be).collect::<HashSet<_>>());
            let stems = stems(&store.inner, &asked)?;
            let stem_of: HashMap<&String, &Vec<String>> = asked.iter().copied().zip(&stems).collect();
            let share = |words: &HashSet<String>| {
                let own: HashSet<&Vec<String>> =
                    words.iter().filter_map(|word| stem_of.get(word).copied()).collect();
                let has = |term: &Term| {
                    let stems = term.forms().iter().filter_map(|form| stem_of.get(form));
                    stems.into_iter().any(|stems| own.contains(stems))
                };
                let had = terms.iter().zip(&rarity).filter(|(term, _)| has(term));
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

/// Returns the words of `text` in lower case, with the words that the index adds: parts of identifiers, stems, and
/// pairs of characters.
fn words(text: &str) -> HashSet<String> {
    let text = index_text::with_parts(text);
    let words = text.split(|c: char| !is_of_word(c)).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Returns the number of documents. In a large store, it is approximate: the number of the last chunk, because only few
/// chunks are ever removed.
pub(crate) fn documents(connection: &Connection) -> Result<i64> {
    let number = |sql: &str| Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?);
    match number("SELECT coalesce(max(seq), 0) FROM chunks")? {
        last if last >= LARGE_STORE => Ok(last),
        _ => number("SELECT count(*) FROM text_index_docsize"),
    }
}

/// Returns the approximate number of the `documents` that contain each of `terms`.
pub(crate) fn count(
    inner: &Inner,
    connection: &Connection,
    documents: i64,
    terms: &[Term],
) -> Result<Vec<i64>> {
    let mut common = lock(&inner.common_terms);
    if common.read_at == 0 || documents > common.read_at + common.read_at / 4 {
        common.documents_by_stem = read_common_terms(connection, documents)?;
        common.documents_by_word.clear();
        common.read_at = documents;
    }
    if common.documents_by_word.len() > WORDS_REMEMBERED {
        common.documents_by_word.clear();
    }
    let is_new = |form: &&String| !common.documents_by_word.contains_key(*form);
    let new: Vec<&String> = terms.iter().flat_map(Term::forms).filter(is_new).collect();
    if !new.is_empty() {
        for (term, stems) in new.iter().zip(common.stems(&new)?) {
            let documents = least(&stems, |stem| match common.documents_by_stem.get(stem) {
                Some(documents) => Ok(*documents),
                None => documents_of(connection, stem),
            })?;
            common.documents_by_word.insert((*term).clone(), documents);
        }
    }
    let most = |term: &Term| term.forms().iter().map(|form| common.documents_by_word[form]).max();
    Ok(terms.iter().map(|term| most(term).unwrap_or(0).min(documents)).collect())
}

/// Returns how many documents contain the stem.
fn documents_of(connection: &Connection, stem: &str) -> Result<i64> {
    Ok(connection
        .prepare_cached("SELECT doc FROM text_terms WHERE term = ?1")?
        .query_row([stem], |row| row.get(0))
        .optional()?
        .unwrap_or(0))
}

fn read_common_terms(connection: &Connection, documents: i64) -> Result<HashMap<String, i64>> {
    let mut statement = connection.prepare("SELECT term, doc FROM text_terms WHERE doc > ?1")?;
    let bar = (documents as f64 * COMMON_SHARE) as i64;
    let rows = statement.query_map([bar], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
