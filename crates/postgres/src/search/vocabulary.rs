//! Counts the documents that contain a word, and computes the share of a query's words that a text contains.
//!
//! BM25 weights a word by the number of documents of the searched store that contain it. In a store with few documents,
//! every word is common, so the scores are near zero compared with the scores in a large store. So if several stores
//! are searched, words in the small stores get the weights that they have in the largest one. Counts are those of the
//! parts that the reader sees. A forgotten memory has no documents.

use std::collections::{HashMap, HashSet};

use crate::PostgresStore;
use crate::columns::number;
use crate::database::Database;
use crate::error::Result;
use crate::search::index::facet;
use crate::transactions::{Transaction, read};
use tiro_base::error;
use tiro_base::memory::Group;
use tiro_base::scope::Scope;
use tiro_store::Vocabulary;
use tiro_store::tuning::LARGE_STORE;
use tiro_text::chunk::index_text;
use tiro_text::words::{Term, is_of_word, stems};

/// The sizes of the text index.
#[derive(Default)]
pub(crate) struct Sizes {
    /// The number of a group, its documents, and their words.
    groups: Vec<(i16, i64, i64)>,
    /// The average number of words of a document. Each document counts as one word longer, as in SQLite, where a word
    /// names its group.
    average: f64,
}

impl Sizes {
    /// Reads the sizes in the parts that the reader sees.
    pub async fn read(tx: &Transaction) -> Result<Sizes> {
        let sql = "SELECT facet, sum(documents)::bigint, sum(words)::bigint FROM index_sizes
                   WHERE owner = ANY ($1) GROUP BY facet";
        let rows = tx.rows(sql, &[&tx.seen.parts]).await?;
        let group = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        let groups: Vec<(i16, i64, i64)> = rows.iter().map(group).collect::<Result<_>>()?;
        let all = |each: fn(&(i16, i64, i64)) -> i64| groups.iter().map(each).sum::<i64>();
        let documents = all(|(_, documents, _)| *documents);
        let words = all(|(.., words)| *words) + documents;
        Ok(Sizes { average: words.max(1) as f64 / documents.max(1) as f64, groups })
    }

    /// Returns how many documents there are.
    pub fn documents(&self) -> i64 {
        self.groups.iter().map(|(_, documents, _)| documents).sum()
    }

    /// Returns how many documents of a group there are.
    pub fn of(&self, group: Group) -> i64 {
        let own = self.groups.iter().filter(|(own, ..)| *own == facet(group));
        own.map(|(_, documents, _)| documents).sum()
    }

    /// Returns how long a document with so many words is, compared with the average of all documents.
    pub fn length(&self, words: u32) -> f64 {
        f64::from(words + 1) / self.average
    }
}

/// Returns how many documents contain each stem of the terms. In a large store, the counts may be a little out of date.
pub(crate) async fn count(
    database: &Database,
    tx: &Transaction,
    sizes: &Sizes,
    terms: &[Term],
) -> Result<HashMap<String, i64>> {
    let documents = sizes.documents();
    let all: HashSet<String> = terms.iter().flat_map(Term::forms).flat_map(|form| stems(form)).collect();
    let asked: Vec<&str> = all.iter().map(String::as_str).collect();
    let is_large = documents >= LARGE_STORE;
    let cache = database.counts();
    let known = match is_large {
        true => cache.known(&tx.seen.parts, documents, &asked),
        false => HashMap::new(),
    };
    let new: Vec<&str> = asked.iter().copied().filter(|stem| !known.contains_key(stem)).collect();
    let mut counts: HashMap<String, i64> =
        known.into_iter().map(|(stem, count)| (stem.to_owned(), count)).collect();
    if !new.is_empty() {
        let sql =
            "SELECT w.stem, (SELECT count(*) FROM postings p WHERE p.owner = ANY ($1) AND p.stem = w.stem)
                   FROM unnest($2::text[]) w (stem)";
        let rows = tx.rows(sql, &[&tx.seen.parts, &new]).await?;
        let counted = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        let counted = counted.collect::<Result<Vec<(String, i64)>>>()?;
        if is_large {
            cache.remember(&tx.seen.parts, documents, counted.iter().cloned());
        }
        counts.extend(counted);
    }
    Ok(counts)
}

/// Returns how many documents contain each of `terms`, which are words or phrases. For a phrase, counts the documents
/// that contain its rarest word. This is an upper bound for the number of documents with the phrase.
pub(crate) fn vocabulary(sizes: &Sizes, counts: &HashMap<String, i64>, terms: &[Term]) -> Vocabulary {
    let documents = sizes.documents();
    let count = |stem: &String| counts.get(stem).copied().unwrap_or_default();
    let least = |form: &String| stems(form).iter().map(count).min().unwrap_or_default();
    // A text that contains a word usually contains its stem too, so the counts of the forms are not added.
    let most = |term: &Term| term.forms().iter().map(least).max().unwrap_or_default().min(documents);
    Vocabulary { documents, counts: terms.iter().map(most).collect() }
}

impl PostgresStore {
    pub(crate) async fn completions(
        &self,
        scope: &Scope,
        beginning: &str,
        limit: usize,
    ) -> error::Result<Vec<String>> {
        read!(self, scope, tx => {
            let sql = "SELECT stem FROM postings WHERE owner = ANY ($1) AND stem > $2 AND stem < $3
                       GROUP BY stem ORDER BY count(*) DESC, stem LIMIT $4";
            let end = format!("{beginning}{}", char::MAX);
            let rows = tx.rows(sql, &[&tx.seen.parts, &beginning, &end, &number(limit)]).await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }

    /// Reads nothing, because words are stemmed in this process.
    pub(crate) async fn shares(
        &self,
        scope: &Scope,
        terms: Vec<Term>,
        rarity: Vec<f64>,
        texts: Vec<String>,
    ) -> error::Result<Vec<f64>> {
        self.admit(scope)?;
        let all: f64 = rarity.iter().sum();
        let forms: Vec<Vec<Vec<String>>> =
            terms.iter().map(|term| term.forms().iter().map(|form| stems(form)).collect()).collect();
        // A word of a text can have the same stem as a word of the question only if both words begin with the same
        // letter.
        let begins: HashSet<char> =
            terms.iter().flat_map(Term::forms).filter_map(|form| form.chars().next()).collect();
        let share = |text: &String| {
            let own: HashSet<Vec<String>> =
                words(text, &begins).into_iter().map(|word| stems(&word)).collect();
            let has = |forms: &Vec<Vec<String>>| forms.iter().any(|stems| own.contains(stems));
            let had = forms.iter().zip(&rarity).filter(|(forms, _)| has(forms));
            if all > 0.0 { had.map(|(_, rarity)| rarity).sum::<f64>() / all } else { 0.0 }
        };
        Ok(texts.iter().map(share).collect())
    }
}

/// Returns the words of `text` in lower case that begin with one of the letters, or with a letter that is not ASCII,
/// with the words that the index adds: parts of identifiers, stems, and pairs of characters.
fn words(text: &str, begins: &HashSet<char>) -> HashSet<String> {
    let text = index_text::with_parts(text);
    let words = text.split(|c: char| !is_of_word(c)).filter(|word| !word.is_empty()).map(str::to_lowercase);
    let may_be =
        |word: &String| word.chars().next().is_some_and(|first| !first.is_ascii() || begins.contains(&first));
    words.filter(may_be).collect()
}
