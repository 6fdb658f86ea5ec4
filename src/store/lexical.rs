//! Candidates by words: FTS5 over chunks with their header and context.
//!
//! One query serves every group of kinds: its rows are read best first and handed to the group they belong to, until
//! each has enough. Asking group by group would cost as much again for each, because BM25 counts the documents of
//! every phrase, and a group's own mark stands in all of its documents. Only a group that got little from the first
//! hundreds of rows is asked for by its mark, which is rare then.
//!
//! What costs is a score, some two microseconds a document: an OR over every word takes 85 ms at 100k documents. So
//! small corpora alone are searched by every word. In large ones a document has to have two of the rarest words, or two
//! of some more where few do, or one of the rarest where few have two. At the same shares of 2,760 turns the first ten
//! hold 72.2% of the evidence that way, 72.8% with every word, and 65.8% where one of the very rarest had to be there,
//! at three times the cost.

use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::conditions::Conditions;
use super::{Inner, Store, lock, write};
use crate::error::Result;
use crate::filter::Filter;
use crate::memory::{Group, Kind};
use crate::scope::Scope;

/// What a document has to have, from the strictest on: so many words of the rarest that together stand in at most this
/// share of the documents, and at most so many of them.
const TIERS: [(usize, f64, usize); 3] = [(2, 0.15, 3), (2, 0.4, 5), (1, 0.12, MOST_WORDS)];

/// Documents that the words of a tier may stand in at least, together: all where the corpus is not that large.
const LEAST_DOCUMENTS: i64 = 4_000;

/// Words that are looked for in a large corpus at most. Arbitrary: the rarest of more decide.
const MOST_WORDS: usize = 16;

/// Candidates of a group from which on no looser tier is asked.
const ENOUGH: usize = 20;

/// Documents below which every word decides.
pub(super) const SMALL_CORPUS: i64 = 5_000;

/// The share of documents from which on a stem's count is remembered; rarer ones are counted in no time.
const COMMON_SHARE: f64 = 0.01;

/// Rows read to fill every group before the groups with little are asked for by themselves. Arbitrary: a row costs some
/// five microseconds.
const ROWS_READ: usize = 500;

/// Candidates below which a group has little.
const LITTLE: usize = 40;

/// How much a word counts in the facets, the speaker, the header, the text and the context.
pub(super) const WEIGHTS: &str = "bm25(0.0, 0.1, 1.0, 1.0, 0.5)";

/// A chunk that holds some of the words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LexicalCandidate {
    /// The memory's row.
    pub memory: i64,
    /// The chunk's row.
    pub chunk: i64,
    /// The group of kinds it belongs to.
    pub group: Group,
    /// BM25, higher is better.
    pub score: f64,
}

/// Words whose documents are remembered, at most. Arbitrary: a few megabytes.
const WORDS_REMEMBERED: usize = 20_000;

/// In how many documents words stand, as far as it was asked, and what stems words.
#[derive(Default)]
pub(super) struct CommonTerms {
    documents_by_stem: HashMap<String, i64>,
    documents_by_word: HashMap<String, i64>,
    read_at: i64,
    stemmer: Option<Connection>,
}

impl Store {
    /// Returns for each of `groups` up to `limit` chunks that hold any of `terms`, best first within a group.
    ///
    /// `terms` are words as the user wrote them, or phrases; stemming and pruning happen here. Scope and filter hold before the
    /// best are chosen.
    pub async fn lexical(
        &self,
        scope: &Scope,
        filter: &Filter,
        groups: &[Group],
        terms: Vec<String>,
        limit: usize,
    ) -> Result<Vec<LexicalCandidate>> {
        let (filter, groups) = (filter.clone(), groups.to_vec());
        self.read(scope, move |inner, connection, scope| {
            let conditions = Conditions::of_scope(connection, scope)?.narrowed(&filter);
            let mut wanted = inhabited(connection, scope, groups)?;
            let mut found: Vec<Vec<LexicalCandidate>> = vec![Vec::new(); Group::ALL.len()];
            for (tier, words) in expressions(inner, connection, terms)?.iter().enumerate() {
                let all_columns = format!("{{speaker header text context}} : ({words})");
                wanted.iter().for_each(|group| found[*group as usize].clear());
                // Messages are most of a store: their mark costs more than what it leaves out.
                let is_general = tier == 0 || wanted.contains(&Group::Message);
                let mut rows = ROWS_READ;
                if is_general {
                    rows = search(connection, &conditions, &all_columns, ROWS_READ, &mut |candidate| {
                        let own = &mut found[candidate.group as usize];
                        if wanted.contains(&candidate.group) && own.len() < limit {
                            own.push(candidate);
                        }
                        wanted.iter().any(|group| found[*group as usize].len() < limit)
                    })?;
                }
                let has_more = rows == ROWS_READ;
                for group in wanted.iter().filter(|_| has_more) {
                    let own = &mut found[*group as usize];
                    if own.len() < LITTLE {
                        own.clear();
                        let expression = format!("facets : {} AND {all_columns}", write::facet(*group));
                        search(connection, &conditions, &expression, limit, &mut |candidate| {
                            own.push(candidate);
                            true
                        })?;
                    }
                }
                wanted.retain(|group| found[*group as usize].len() < ENOUGH);
                if wanted.is_empty() {
                    break;
                }
            }
            let mut candidates: Vec<LexicalCandidate> = found.into_iter().flatten().collect();
            candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
            Ok(candidates)
        })
        .await
    }
}

/// Returns those of `groups` that hold anything: the others needn't be waited for.
pub(super) fn inhabited(
    connection: &Connection,
    scope: &Scope,
    mut groups: Vec<Group>,
) -> Result<Vec<Group>> {
    let mut statement =
        connection.prepare_cached("SELECT 1 FROM memories WHERE owner = ?1 AND kind = ?2 LIMIT 1")?;
    let mut is_inhabited = [false; Group::ALL.len()];
    for kind in Kind::ALL {
        let group = kind.group() as usize;
        is_inhabited[group] =
            is_inhabited[group] || statement.exists((scope.owner.as_str(), kind.as_str()))?;
    }
    groups.retain(|group| is_inhabited[*group as usize]);
    Ok(groups)
}

/// Hands `each` up to `limit` chunks that match, best first, until it returns `false`; returns how many.
pub(super) fn search(
    connection: &Connection,
    conditions: &Conditions,
    expression: &str,
    limit: usize,
    each: &mut dyn FnMut(LexicalCandidate) -> bool,
) -> Result<usize> {
    // The index hands out rows by rank; the join drops what is out of scope until enough have passed.
    let sql = format!(
        "SELECT c.memory, c.seq, m.kind, t.rank FROM text_index t
         CROSS JOIN chunks c ON c.seq = t.rowid CROSS JOIN memories m ON m.seq = c.memory
         WHERE t.text_index MATCH ? AND t.rank MATCH '{WEIGHTS}' AND {} ORDER BY t.rank LIMIT ?",
        conditions.sql
    );
    let values = std::iter::once(Value::from(expression.to_owned()))
        .chain(conditions.values.iter().cloned())
        .chain(std::iter::once(Value::from(limit as i64)));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        let Some(kind) = Kind::parse(row.get_ref(2)?.as_str().unwrap_or_default()) else { continue };
        let score = -row.get::<_, f64>(3)?;
        if !each(LexicalCandidate { memory: row.get(0)?, chunk: row.get(1)?, group: kind.group(), score }) {
            break;
        }
    }
    Ok(count)
}

/// Returns the expressions that match `terms`, the strictest first; none where there are no terms.
fn expressions(inner: &Inner, connection: &Connection, terms: Vec<String>) -> Result<Vec<String>> {
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let documents = documents(connection)?;
    if documents < SMALL_CORPUS {
        return Ok(vec![joined(&terms)]);
    }
    Ok(tiers(count(inner, connection, documents, terms)?, documents))
}

/// Returns how many documents there are, about: chunks are numbered, and few are gone.
pub(super) fn documents(connection: &Connection) -> Result<i64> {
    let sql = "SELECT coalesce(max(seq), 0) FROM chunks";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Returns the expressions of a large corpus for `terms` with the documents each stands in, the strictest first.
fn tiers(mut terms: Vec<(i64, String)>, documents: i64) -> Vec<String> {
    terms.sort();
    let mut tiers: Vec<String> = Vec::with_capacity(TIERS.len());
    for (least, share, most) in TIERS {
        let room = LEAST_DOCUMENTS.max((documents as f64 * share) as i64);
        let mut total = 0;
        let within = |(place, (documents, _)): &(usize, &(i64, String))| {
            total += documents;
            *place == 0 || total <= room
        };
        let words: Vec<&String> =
            terms.iter().enumerate().take_while(within).take(most).map(|(_, (_, term))| term).collect();
        let expression = match least {
            2 if words.len() < 2 => continue,
            2 => pairs(&words),
            _ => joined(&words),
        };
        if !tiers.contains(&expression) {
            tiers.push(expression);
        }
    }
    tiers
}

/// Returns the expression that any of `words` matches.
fn joined(words: &[impl AsRef<str>]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" OR ")
}

/// Returns the expression that any two of `words` match.
fn pairs(words: &[&String]) -> String {
    let pair = |(place, word): (usize, &&String)| {
        format!("({} AND ({}))", quoted(word), joined(&words[place + 1..]))
    };
    words[..words.len() - 1].iter().enumerate().map(pair).collect::<Vec<_>>().join(" OR ")
}

/// Returns the term as the index's language quotes it.
pub(super) fn quoted(term: &str) -> String {
    format!("\"{}\"", term.replace('"', "\"\""))
}

/// Returns each term with the number of documents it stands in.
pub(super) fn count(
    inner: &Inner,
    connection: &Connection,
    documents: i64,
    terms: Vec<String>,
) -> Result<Vec<(i64, String)>> {
    let mut common = lock(&inner.common_terms);
    if common.read_at == 0 || documents > common.read_at + common.read_at / 4 {
        common.documents_by_stem = read_common_terms(connection, documents)?;
        common.documents_by_word.clear();
        common.read_at = documents;
    }
    if common.documents_by_word.len() > WORDS_REMEMBERED {
        common.documents_by_word.clear();
    }
    let new: Vec<&String> =
        terms.iter().filter(|term| !common.documents_by_word.contains_key(*term)).collect();
    if !new.is_empty() {
        for (term, stems) in new.iter().zip(common.stems(&new)?) {
            let mut documents = i64::MAX;
            // A phrase stands in no more documents than its rarest word.
            for stem in stems {
                documents = documents.min(match common.documents_by_stem.get(&stem) {
                    Some(documents) => *documents,
                    None => documents_of(connection, &stem)?,
                });
            }
            let documents = if documents == i64::MAX { 0 } else { documents };
            common.documents_by_word.insert((*term).clone(), documents);
        }
    }
    Ok(terms.into_iter().map(|term| (common.documents_by_word[&term], term)).collect())
}

/// Returns in how many documents the stem stands.
pub(super) fn documents_of(connection: &Connection, stem: &str) -> Result<i64> {
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

impl CommonTerms {
    /// Returns the words of each of `terms` as the index spells them, by asking the index's own tokenizer; nothing of it is
    /// kept.
    pub(super) fn stems(&mut self, terms: &[&String]) -> Result<Vec<Vec<String>>> {
        if self.stemmer.is_none() {
            let connection = Connection::open_in_memory()?;
            connection.execute_batch(
                "CREATE VIRTUAL TABLE words USING fts5 (
                     text, content = '', contentless_delete = 1,
                     tokenize = 'porter unicode61 remove_diacritics 2'
                 );
                 CREATE VIRTUAL TABLE stems USING fts5vocab (words, instance);",
            )?;
            self.stemmer = Some(connection);
        }
        let connection = self.stemmer.as_mut().expect("made above");
        let transaction = connection.transaction()?;
        let mut stems = vec![Vec::new(); terms.len()];
        {
            let mut insert = transaction.prepare_cached("INSERT INTO words (rowid, text) VALUES (?1, ?2)")?;
            for (place, term) in terms.iter().enumerate() {
                insert.execute((place as i64, term))?;
            }
            let mut select =
                transaction.prepare_cached("SELECT doc, term FROM stems ORDER BY doc, offset")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                stems[row.get::<_, i64>(0)? as usize].push(row.get(1)?);
            }
        }
        transaction.rollback()?;
        Ok(stems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(counts: &[i64]) -> Vec<(i64, String)> {
        counts.iter().enumerate().map(|(n, documents)| (*documents, format!("w{n}"))).collect()
    }

    #[test]
    fn in_a_small_corpus_every_word_decides() {
        assert_eq!(joined(&["w0", "w1", "w2"]), r#""w0" OR "w1" OR "w2""#);
    }

    #[test]
    fn in_a_large_one_two_of_the_rarest_decide_then_two_of_more_and_then_one() {
        let found = tiers(terms(&[40_000, 300, 3_000, 9_000, 15_000]), 100_000);
        let two_of_three = r#"("w1" AND ("w2" OR "w3")) OR ("w2" AND ("w3"))"#;
        let two_of_four =
            r#"("w1" AND ("w2" OR "w3" OR "w4")) OR ("w2" AND ("w3" OR "w4")) OR ("w3" AND ("w4"))"#;
        assert_eq!(found, [two_of_three, two_of_four, r#""w1" OR "w2""#]);
    }

    #[test]
    fn words_are_stemmed_as_the_index_does_it_and_nothing_is_kept() {
        let mut common = CommonTerms::default();
        let words = ["running", "Größe", "x", "no colors"].map(str::to_owned);
        let terms: Vec<&String> = words.iter().collect();
        let expected: [&[&str]; 4] = [&["run"], &["groß"], &["x"], &["no", "color"]];
        assert_eq!(common.stems(&terms).unwrap(), expected);
        assert_eq!(common.stems(&terms[..1]).unwrap(), [["run"]]);
    }

    #[test]
    fn a_common_word_alone_still_matches_and_quotes_are_data() {
        assert_eq!(tiers(vec![(90_000, "a\"b".into())], 100_000), [r#""a""b""#]);
    }
}
