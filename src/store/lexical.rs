//! Candidates by words: FTS5 over chunks with their header and context.
//!
//! One query serves every group of kinds: its rows are read best first and handed to the group they belong to, until
//! each has enough. Asking group by group would cost as much again for each, because BM25 counts the documents of
//! every phrase, and a group's own mark stands in all of its documents. Groups that got little from the first hundreds of
//! rows are asked for by their marks, all at once.
//!
//! What costs is a score, some two microseconds a document: an OR over every word takes 85 ms at 100k documents. So
//! small corpora alone are searched by every word. In large ones a document has to have two of the rarest words, or two
//! of some more where few do, or one of the rarest where few have two; one of a small group has to have one of the rarest.
//! Looser tiers are read for large groups only. At the shares of 2,760 turns the first ten hold 76.3% of the evidence that
//! way, and 78.5% with every word.

mod merge;

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

/// Words that stood nowhere yet that are looked for in a large corpus at most. Arbitrary.
const MOST_UNMET: usize = 4;

/// Candidates of a large group from which on no looser tier is asked.
const ENOUGH: usize = 20;

/// The share of the documents from which on a group is large. Arbitrary: the others are asked for by their mark.
const LARGE_SHARE: f64 = 0.2;

/// What share of the documents the words may stand in, together, that the texts of the other groups have to have one of.
const RARE_SHARE: f64 = 0.06;

/// Documents below which every word decides.
pub(super) const SMALL_CORPUS: i64 = 5_000;

/// The share of documents from which on a stem's count is remembered; rarer ones are counted in no time.
const COMMON_SHARE: f64 = 0.01;

/// Rows read to fill every group, at most. Arbitrary: a row costs some five microseconds.
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
            let groups = inhabited(connection, scope, groups)?;
            let expressions = expressions(inner, connection, &terms)?;
            let large = large(inner, connection, &groups)?;
            let mut found = Best::new(&groups, limit);
            let mut has_more = false;
            // Where only small groups are asked for, the tiers would find what is of others.
            let tiers = if large.is_empty() { &[] } else { &expressions.tiers[..] };
            for words in tiers {
                has_more = found.read(connection, &conditions, &in_text(&terms, words), &large, ROWS_READ)?;
                if large.iter().all(|group| found.count(*group) >= ENOUGH) {
                    break;
                }
            }
            // The texts of a group that has few are found by its mark; one query serves all, unless one of them fills it.
            let is_pruned = expressions.tiers.first() != Some(&expressions.loosest);
            let has_little = |group: &Group| {
                found.count(*group) < LITTLE && (has_more || (is_pruned && !large.contains(group)))
            };
            let little: Vec<Group> = groups.iter().copied().filter(has_little).collect();
            if !little.is_empty() && !expressions.loosest.is_empty() {
                let marked = |groups: &[Group]| {
                    let marks: Vec<String> = groups.iter().map(|group| write::facet(*group)).collect();
                    let words = in_text(&terms, &expressions.loosest);
                    format!("facets : ({}) AND ({words})", marks.join(" OR "))
                };
                let is_full = found.read(connection, &conditions, &marked(&little), &little, ROWS_READ)?;
                let crowded_out =
                    |group: &&Group| is_full && little.len() > 1 && found.count(**group) < LITTLE;
                for group in little.iter().filter(crowded_out).copied().collect::<Vec<Group>>() {
                    found.read(connection, &conditions, &marked(&[group]), &[group], limit)?;
                }
            }
            Ok(found.candidates())
        })
        .await
    }
}

/// The best chunks of each group.
struct Best {
    limit: usize,
    of: Vec<(Group, HashMap<i64, LexicalCandidate>)>,
}

impl Best {
    fn new(groups: &[Group], limit: usize) -> Best {
        Best { limit, of: groups.iter().map(|group| (*group, HashMap::new())).collect() }
    }

    fn count(&self, group: Group) -> usize {
        self.of.iter().find(|(own, _)| *own == group).map_or(0, |(_, found)| found.len())
    }

    /// Adds what matches, from `rows` rows at most, until none of the groups `wanted` has room for more; returns whether there
    /// may be more.
    fn read(
        &mut self,
        connection: &Connection,
        conditions: &Conditions,
        expression: &str,
        wanted: &[Group],
        rows: usize,
    ) -> Result<bool> {
        let mut added = vec![0; self.of.len()];
        let is_wanted: Vec<bool> = self.of.iter().map(|(group, _)| wanted.contains(group)).collect();
        let mut is_full = false;
        let count = search(connection, conditions, expression, rows, &mut |candidate| {
            if let Some(place) = self.of.iter().position(|(group, _)| *group == candidate.group)
                && added[place] < self.limit
            {
                added[place] += 1;
                self.of[place].1.insert(candidate.chunk, candidate);
            }
            is_full =
                added.iter().zip(&is_wanted).all(|(added, is_wanted)| !is_wanted || *added == self.limit);
            !is_full
        })?;
        Ok(is_full || count == rows)
    }

    /// Returns the best of all groups, the best first.
    fn candidates(self) -> Vec<LexicalCandidate> {
        let best_first = |a: &LexicalCandidate, b: &LexicalCandidate| {
            b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk))
        };
        let mut candidates: Vec<LexicalCandidate> = Vec::new();
        for (_, found) in self.of {
            let mut found: Vec<LexicalCandidate> = found.into_values().collect();
            found.sort_by(best_first);
            candidates.extend(found.into_iter().take(self.limit));
        }
        candidates.sort_by(best_first);
        candidates
    }
}

/// Returns the expression `words` of `terms` as it matches the text alone, not the marks of groups. To look into all columns
/// takes a quarter less, and only a few words are marks.
fn in_text(terms: &[String], words: &str) -> String {
    let is_mark = |term: &String| {
        let term = term.to_lowercase();
        Group::ALL.iter().any(|group| term.contains(&write::facet(*group)))
    };
    if terms.iter().any(is_mark) {
        format!("{{speaker header text context}} : ({words})")
    } else {
        words.to_owned()
    }
}

/// Returns those of `groups` that a good part of the documents belong to.
fn large(inner: &Inner, connection: &Connection, groups: &[Group]) -> Result<Vec<Group>> {
    let documents = documents(connection)?;
    if documents < SMALL_CORPUS {
        return Ok(groups.to_vec());
    }
    let marks = groups.iter().map(|group| write::facet(*group)).collect();
    let counts = count(inner, connection, documents, marks)?;
    let is_large = |((count, _), group): ((i64, String), &Group)| {
        (count as f64 >= LARGE_SHARE * documents as f64).then_some(*group)
    };
    Ok(counts.into_iter().zip(groups).filter_map(is_large).collect())
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

/// What is asked for `terms`.
struct Expressions {
    /// What the text has to have, the strictest first.
    tiers: Vec<String>,
    /// What a text of a group has to have that few of the others are of.
    loosest: String,
}

fn expressions(inner: &Inner, connection: &Connection, terms: &[String]) -> Result<Expressions> {
    if terms.is_empty() {
        return Ok(Expressions { tiers: Vec::new(), loosest: String::new() });
    }
    let documents = documents(connection)?;
    if documents < SMALL_CORPUS {
        return Ok(Expressions { tiers: vec![joined(terms)], loosest: joined(terms) });
    }
    let mut counted = count(inner, connection, documents, terms.to_vec())?;
    counted.sort();
    let loosest = joined(&rarest(&counted, RARE_SHARE, documents, MOST_WORDS));
    Ok(Expressions { tiers: tiers(&counted, documents), loosest })
}

/// Returns how many documents there are, about: chunks are numbered, and few are gone.
pub(super) fn documents(connection: &Connection) -> Result<i64> {
    let sql = "SELECT coalesce(max(seq), 0) FROM chunks";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

/// Returns the expressions of a large corpus for `terms` with the documents each stands in, the rarest first; the strictest
/// expression first.
fn tiers(terms: &[(i64, String)], documents: i64) -> Vec<String> {
    let mut tiers: Vec<String> = Vec::with_capacity(TIERS.len());
    for (least, share, most) in TIERS {
        let words = rarest(terms, share, documents, most);
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

/// Returns the rarest of `terms`, at least one and at most `most`, that together stand in at most `share` of the documents.
/// Words that stood nowhere when they were counted come on top, [`MOST_UNMET`] at most: by now a text may have them.
fn rarest(terms: &[(i64, String)], share: f64, documents: i64, most: usize) -> Vec<&String> {
    let room = LEAST_DOCUMENTS.max((documents as f64 * share) as i64);
    let (unmet, met) = terms.split_at(terms.partition_point(|(documents, _)| *documents == 0));
    let mut total = 0;
    let within = |(place, (documents, _)): &(usize, &(i64, String))| {
        total += documents;
        *place == 0 || total <= room
    };
    let met = met.iter().enumerate().take_while(within).take(most).map(|(_, (_, term))| term);
    unmet.iter().map(|(_, term)| term).take(MOST_UNMET).chain(met).collect()
}

/// Returns the expression that any of `words` matches.
fn joined(words: &[impl AsRef<str>]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" OR ")
}

/// Returns the expression that any two of `words`, the rarest first, match.
///
/// BM25 counts the documents of a word for each time that the expression has it, so common words stand in few pairs' lists: the
/// most common of three stands there once, the others twice.
fn pairs(words: &[&String]) -> String {
    let pair =
        |(place, word): (usize, &&String)| format!("({} AND ({}))", quoted(word), joined(&words[..place]));
    words.iter().enumerate().skip(1).rev().map(pair).collect::<Vec<_>>().join(" OR ")
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

    fn sorted(mut terms: Vec<(i64, String)>) -> Vec<(i64, String)> {
        terms.sort();
        terms
    }

    #[test]
    fn in_a_small_corpus_every_word_decides() {
        assert_eq!(joined(&["w0", "w1", "w2"]), r#""w0" OR "w1" OR "w2""#);
    }

    #[test]
    fn in_a_large_one_two_of_the_rarest_decide_then_two_of_more_and_then_one() {
        let found = tiers(&sorted(terms(&[40_000, 300, 3_000, 9_000, 15_000])), 100_000);
        let two_of_three = r#"("w3" AND ("w1" OR "w2")) OR ("w2" AND ("w1"))"#;
        let two_of_four =
            r#"("w4" AND ("w1" OR "w2" OR "w3")) OR ("w3" AND ("w1" OR "w2")) OR ("w2" AND ("w1"))"#;
        assert_eq!(found, [two_of_three, two_of_four, r#""w1" OR "w2""#]);
        let unmet = tiers(&sorted(terms(&[0, 300, 3_000])), 100_000);
        let two_of_all = r#"("w2" AND ("w0" OR "w1")) OR ("w1" AND ("w0"))"#;
        assert_eq!(unmet, [two_of_all, r#""w0" OR "w1" OR "w2""#], "a new text may have it");
    }

    #[test]
    fn the_marks_of_groups_are_looked_for_in_the_text_alone() {
        let of =
            |terms: &[&str]| in_text(&terms.iter().map(|term| (*term).to_owned()).collect::<Vec<_>>(), "w");
        assert_eq!(
            (of(&["group", "message"]), of(&["a GroupMessage"])),
            ("w".into(), "{speaker header text context} : (w)".to_owned())
        );
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
        assert_eq!(tiers(&[(90_000, "a\"b".into())], 100_000), [r#""a""b""#]);
    }
}
