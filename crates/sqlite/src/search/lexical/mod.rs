//! Finds candidates by words. Searches the chunks, with their header and context, with FTS5.
//!
//! One query serves all groups of kinds. The rows of this query are read, the best first, until every group has enough
//! rows. If a group still has few rows after a few hundred rows were read, the group is searched separately. For this
//! search, the index contains a word that marks the documents of the group, and the query requires this word.
//!
//! Most of a query's time is spent on scoring ([`rank`]), which takes about a microsecond for each document. An OR over
//! all words takes 85 ms for 100,000 documents. So only a small corpus is searched for every word. In a large corpus,
//! queries are tried in tiers. In the first tier, a document must contain two of the rarest words. If too few documents
//! match, the next tier accepts two words of a somewhat longer list. If there are still too few, the last tier accepts
//! one of the rarest words. The looser tiers are read only for large groups. A document of a small group must contain
//! one of the rarest words. The words of a tier together occur in at most a certain share of the documents. In a corpus
//! of 2,760 turns, the first ten results contain 76.2% of the evidence with these shares, and 78.5% if every word is
//! searched.

mod merge;
pub(crate) mod query;
pub(crate) mod rank;
pub(crate) mod weighed;

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, Statement, params_from_iter};

use self::query::{Counted, Queries, Query};
use crate::Inner;
use crate::columns::is_answer;
use crate::connection::lock;
use crate::error::Result;
use crate::keys::{key, memory_key};
use crate::read::conditions::Conditions;
use crate::search::vocabulary::{self, count};
use crate::write::chunks;
use tiro_base::filter::Filter;
use tiro_base::memory::{Group, Kind};
use tiro_base::scope::Scope;
use tiro_store::tuning::{ENOUGH, FEW_CHUNKS, LARGE_GROUP, LARGE_STORE, LITTLE};
use tiro_store::{CandidateQuery, ChunkKey, LexicalCandidate, Vocabulary};
use tiro_text::words::Term;

/// The maximum number of rows that are read to fill every group. Arbitrary: this many rows take about 2.5 milliseconds.
const ROWS_READ: usize = 500;

/// Returns the best chunks that contain some of the terms, up to the limit for each group, and how common the terms are.
pub(super) fn lexical(
    inner: &Inner,
    connection: &Connection,
    scope: &Scope,
    query: &CandidateQuery,
) -> Result<(Vec<LexicalCandidate>, Vocabulary)> {
    let CandidateQuery { filter, terms, limit, .. } = query;
    let limit = *limit;
    let conditions = Conditions::of_scope(connection, scope)?.narrowed(filter);
    let groups = inhabited(connection, scope, query.groups.clone())?;
    let vocabulary = vocabulary::read(inner, connection, terms)?;
    let queries = queries(terms, &vocabulary);
    let large = large(inner, connection, &groups, vocabulary.documents)?;
    let mut found = Best::new(&groups, limit);
    if let Some(chunks) = few(inner, connection, scope, filter, &vocabulary)? {
        let query = queries.loosest.in_text(terms).among(&chunks);
        found.read(connection, &conditions, &query, &groups, limit, chunks.len())?;
        return Ok((found.candidates(), vocabulary));
    }
    let mut has_more = false;
    // The tiers ignore groups. If only small groups are searched, the tiers would mostly find chunks of other groups.
    let tiers = if large.is_empty() { &[] } else { &queries.tiers[..] };
    for tier in tiers {
        let query = tier.in_text(terms);
        has_more = found.read(connection, &conditions, &query, &large, limit, ROWS_READ)?;
        if large.iter().all(|group| found.count(*group) >= ENOUGH) {
            break;
        }
    }
    // Groups with few candidates are searched by the words that mark their documents. One query serves all these
    // groups. If it reaches its limit of rows, each group that still has few candidates is searched separately.
    let is_pruned = queries.tiers.first() != Some(&queries.loosest);
    let has_little =
        |group: &Group| found.count(*group) < LITTLE && (has_more || (is_pruned && !large.contains(group)));
    let little: Vec<Group> = groups.iter().copied().filter(has_little).collect();
    if !little.is_empty() && !terms.is_empty() {
        let marked = |groups: &[Group]| queries.loosest.in_text(terms).of_groups(groups);
        // If a large group is searched too, a small group needs only `LITTLE` chunks.
        let most = if large.is_empty() { limit } else { LITTLE.min(limit) };
        let is_full = found.read(connection, &conditions, &marked(&little), &little, most, ROWS_READ)?;
        let crowded_out = |group: &&Group| is_full && little.len() > 1 && found.count(**group) < LITTLE;
        for group in little.iter().filter(crowded_out).copied().collect::<Vec<Group>>() {
            found.read(connection, &conditions, &marked(&[group]), &[group], most, most)?;
        }
    }
    Ok((found.candidates(), vocabulary))
}

/// The best chunks of each group. The chunks of long answers are in a separate list, because they would fill the list
/// of messages.
struct Best {
    limit: usize,
    of: Vec<(Group, HashMap<ChunkKey, LexicalCandidate>)>,
    answers: HashMap<ChunkKey, LexicalCandidate>,
}

impl Best {
    fn new(groups: &[Group], limit: usize) -> Best {
        Best {
            limit,
            of: groups.iter().map(|group| (*group, HashMap::new())).collect(),
            answers: HashMap::new(),
        }
    }

    fn count(&self, group: Group) -> usize {
        let answers = if group == Group::Message { self.answers.len() } else { 0 };
        self.of.iter().find(|(own, _)| *own == group).map_or(0, |(_, found)| found.len() + answers)
    }

    /// Adds matching chunks until each group in `wanted` has `most` chunks, not counting chunks of long answers, or
    /// until `rows` rows have been read. Returns whether more chunks may match.
    fn read(
        &mut self,
        connection: &Connection,
        conditions: &Conditions,
        query: &Query,
        wanted: &[Group],
        most: usize,
        rows: usize,
    ) -> Result<bool> {
        let mut added = vec![0; self.of.len()];
        let mut added_answers = 0;
        let is_wanted: Vec<bool> = self.of.iter().map(|(group, _)| wanted.contains(group)).collect();
        let mut is_full = false;
        let count = search(connection, conditions, query, rows, &mut |candidate| {
            if candidate.is_answer {
                if added_answers < most {
                    added_answers += 1;
                    self.answers.insert(candidate.chunk, candidate);
                }
            } else if let Some(place) = self.of.iter().position(|(group, _)| *group == candidate.group)
                && added[place] < most
            {
                added[place] += 1;
                self.of[place].1.insert(candidate.chunk, candidate);
            }
            is_full = added.iter().zip(&is_wanted).all(|(added, is_wanted)| !is_wanted || *added == most);
            !is_full
        })?;
        Ok(is_full || count == rows)
    }

    /// Returns the best chunks of all groups in one list, the best first.
    fn candidates(self) -> Vec<LexicalCandidate> {
        let best_first = |a: &LexicalCandidate, b: &LexicalCandidate| {
            b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk))
        };
        let mut candidates: Vec<LexicalCandidate> = Vec::new();
        for found in self.of.into_iter().map(|(_, found)| found).chain([self.answers]) {
            let mut found: Vec<LexicalCandidate> = found.into_values().collect();
            found.sort_by(best_first);
            candidates.extend(found.into_iter().take(self.limit));
        }
        candidates.sort_by(best_first);
        candidates
    }
}

/// Returns the chunks that scope and filter admit, if the store is large and these chunks are few. The search is then
/// limited to these chunks, because scoring other chunks would take most of the time.
fn few(
    inner: &Inner,
    connection: &Connection,
    scope: &Scope,
    filter: &Filter,
    vocabulary: &Vocabulary,
) -> Result<Option<Arc<[i64]>>> {
    let narrows = filter.groups().into_iter().any(|group| filter.narrows(group));
    if vocabulary.documents < LARGE_STORE || !narrows || filter.is_whole_stash() {
        return Ok(None);
    }
    let chunks = lock(&inner.admitted_chunks).of(connection, scope, filter)?;
    Ok(Some(chunks).filter(|chunks| chunks.len() <= FEW_CHUNKS))
}

/// Returns those of `groups` that have a large share of the `documents`.
fn large(inner: &Inner, connection: &Connection, groups: &[Group], documents: i64) -> Result<Vec<Group>> {
    if documents < LARGE_STORE {
        return Ok(groups.to_vec());
    }
    let marks: Vec<Term> = groups.iter().map(|group| Term::new(chunks::facet(*group))).collect();
    let counts = count(inner, connection, documents, &marks)?;
    let is_large =
        |(count, group): (i64, &Group)| (count as f64 >= LARGE_GROUP * documents as f64).then_some(*group);
    Ok(counts.into_iter().zip(groups).filter_map(is_large).collect())
}

/// Returns those of `groups` in which the owner has memories.
pub(crate) fn inhabited(
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
            is_inhabited[group] || statement.exists((scope.tenant.as_str(), kind.as_str()))?;
    }
    groups.retain(|group| is_inhabited[*group as usize]);
    Ok(groups)
}

/// Calls `each` with up to `limit` matching chunks, the best first, until `each` returns `false`. Returns how many rows
/// were read.
pub(crate) fn search(
    connection: &Connection,
    conditions: &Conditions,
    query: &Query,
    limit: usize,
    each: &mut dyn FnMut(LexicalCandidate) -> bool,
) -> Result<usize> {
    let by = rank::by(query.weights.as_deref());
    let mut values = vec![Value::from(query.text.clone())];
    // The index returns rows in the order of their rank. The join drops rows that are out of scope, and the query ends
    // after `limit` rows in scope. If only a few chunks are admitted, no others are ranked. The `+` keeps FTS5 from
    // running a search for each admitted chunk.
    let (rank, ranked) = match &query.among {
        None => {
            values.push(Value::from(by));
            ("t.rank".to_owned(), "t.rank MATCH ?")
        }
        Some(chunks) => {
            values.push(Value::from(chunks.clone()));
            (by.replacen('(', "(t.text_index, ", 1), "+t.rowid IN (SELECT value FROM json_each(?))")
        }
    };
    let sql = format!(
        "SELECT c.memory, c.seq, m.kind, {rank}, {} FROM text_index t
         CROSS JOIN chunks c ON c.seq = t.rowid CROSS JOIN memories m ON m.seq = c.memory
         WHERE t.text_index MATCH ? AND {ranked} AND {} ORDER BY 4 LIMIT ?",
        is_answer(),
        conditions.sql
    );
    values.extend(conditions.values.iter().cloned());
    values.push(Value::from(limit as i64));
    // The text of a query for few chunks contains the weights of the words. It hardly ever occurs twice, so its
    // statement is not cached.
    let (mut cached, mut fresh);
    let statement: &mut Statement<'_> = match query.among {
        None => {
            cached = connection.prepare_cached(&sql)?;
            &mut cached
        }
        Some(_) => {
            fresh = connection.prepare(&sql)?;
            &mut fresh
        }
    };
    let mut rows = statement.query(params_from_iter(values))?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += 1;
        let Some(kind) = Kind::parse(row.get_ref(2)?.as_str().unwrap_or_default()) else { continue };
        let score = -row.get::<_, f64>(3)?;
        let (memory, chunk) = (memory_key(row, 0)?, key(row, 1)?);
        if !each(LexicalCandidate { memory, chunk, group: kind.group(), is_answer: row.get(4)?, score }) {
            break;
        }
    }
    Ok(count)
}

/// Returns the queries for `terms`.
fn queries(terms: &[Term], vocabulary: &Vocabulary) -> Queries {
    let counted: Vec<Counted> = vocabulary.counts.iter().copied().zip(terms.iter().cloned()).collect();
    let documents = vocabulary.documents;
    let word = match counted.as_slice() {
        [] => return Queries::default(),
        [word] => Some(word.clone()),
        _ => None,
    };
    let queries = match documents < LARGE_STORE {
        true => Queries::of_any(&counted, documents),
        false => Queries::of_rare(counted, documents),
    };
    match word {
        Some(word) => queries.preferring_text(&word, documents),
        None => queries,
    }
}
