//! Finds candidates by words, in the chunks with their header and context.
//!
//! The database returns the postings of the words ([`postings`]); this process ranks the documents ([`rank`]). Which of
//! the best of them scope and filter admit is looked up some hundred at a time ([`Admitted`]), until every group has
//! enough candidates. If a group still has few candidates after a few hundred were read, it is searched separately.
//!
//! A common word has a posting in most documents, so only a small corpus is searched for every word. In a large corpus,
//! queries are tried in tiers. In the first tier, a document must contain two of the rarest words. If too few documents
//! match, the next tier accepts two words of a somewhat longer list. If there are still too few, the last tier accepts
//! one of the rarest words. The looser tiers are read only for large groups. A document of a small group must contain
//! one of the rarest words. The words of a tier together occur in at most a certain share of the documents.

mod postings;
mod query;
mod rank;
mod weighed;

use std::collections::HashMap;

use self::postings::Postings;
use self::query::{Counted, Queries, Query};
use self::rank::{Ranked, ranked};
use crate::database::Database;
use crate::error::Result;
use crate::search::admitted::{self, Admitted};
use crate::search::index::facet;
use crate::search::vocabulary::{Sizes, count, vocabulary};
use crate::transactions::Transaction;
use tiro_base::memory::Group;
use tiro_store::tuning::{ENOUGH, FEW_CHUNKS, LARGE_GROUP, LARGE_STORE, LITTLE};
use tiro_store::{CandidateQuery, ChunkKey, LexicalCandidate, Vocabulary};

/// The maximum number of candidates that are read to fill every group. Arbitrary.
const ROWS_READ: usize = 500;

/// Returns the best chunks that contain some of the terms, up to the limit for each group, and how common the terms are.
/// If the query has weights, words are weighted by these.
pub(super) async fn lexical(
    database: &Database,
    tx: &Transaction,
    query: &CandidateQuery,
    admitted: &mut Admitted<'_>,
) -> Result<(Vec<LexicalCandidate>, Vocabulary)> {
    let CandidateQuery { filter, groups, terms, weights, limit, .. } = query;
    if terms.is_empty() {
        return Ok(Default::default());
    }
    let sizes = Sizes::read(tx).await?;
    let counts = count(database, tx, &sizes, terms).await?;
    let mut search = Search {
        postings: Postings::new(tx, &sizes, &counts),
        admitted,
        found: Best::new(groups.iter().copied().filter(|group| sizes.of(*group) > 0), *limit),
    };
    if let Some(weights) = weights {
        return Ok((search.weighed(query, weights).await?, weights.clone()));
    }
    let vocabulary = vocabulary(&sizes, &counts, terms);
    let documents = vocabulary.documents;
    let counted: Vec<Counted<'_>> = vocabulary.counts.iter().copied().zip(terms).collect();
    let queries = Queries::of(&counted, documents, documents >= LARGE_STORE);
    let narrows = filter.groups().into_iter().any(|group| filter.narrows(group));
    if documents >= LARGE_STORE
        && narrows
        && !filter.is_whole_stash()
        && let Some(chunks) = search.admitted.all(FEW_CHUNKS).await?
    {
        // Only few chunks are admitted, so the best of all that contain one of the words are found.
        let groups = search.found.groups();
        let mut ranked = search.ranked(&queries.loosest, &groups).await?;
        ranked.retain(|ranked| chunks.contains(&ranked.chunk));
        search.read(&ranked, &groups, *limit, chunks.len()).await?;
    } else {
        search.by_tiers(&queries, &sizes, *limit).await?;
    }
    Ok((search.found.candidates(), vocabulary))
}

/// A search that is under way.
struct Search<'s, 'a> {
    postings: Postings<'s>,
    admitted: &'s mut Admitted<'a>,
    found: Best,
}

impl Search<'_, '_> {
    /// Reads the tiers for the large groups, and then the loosest query for groups with few candidates.
    async fn by_tiers(&mut self, queries: &Queries<'_>, sizes: &Sizes, limit: usize) -> Result<()> {
        let groups = self.found.groups();
        let documents = sizes.documents();
        let is_large = |group: &Group| {
            documents < LARGE_STORE || sizes.of(*group) as f64 >= LARGE_GROUP * documents as f64
        };
        let large: Vec<Group> = groups.iter().copied().filter(is_large).collect();
        let mut has_more = false;
        // The tiers ignore groups. If only small groups are searched, the tiers would mostly find chunks of other groups.
        let tiers = if large.is_empty() { &[] } else { &queries.tiers[..] };
        for tier in tiers {
            let ranked = self.ranked(tier, &groups).await?;
            has_more = self.read(&ranked, &large, limit, ROWS_READ).await?;
            if large.iter().all(|group| self.found.count(*group) >= ENOUGH) {
                break;
            }
        }
        // One query serves all groups with few candidates. If it reaches its limit of rows, each group that still has few
        // candidates is searched separately.
        let is_pruned = queries.tiers.first() != Some(&queries.loosest);
        let has_little = |group: &Group| {
            self.found.count(*group) < LITTLE && (has_more || (is_pruned && !large.contains(group)))
        };
        let little: Vec<Group> = groups.iter().copied().filter(has_little).collect();
        if little.is_empty() {
            return Ok(());
        }
        // If a large group is searched too, a small group needs only `LITTLE` chunks.
        let most = if large.is_empty() { limit } else { LITTLE.min(limit) };
        let ranked = self.ranked(&queries.loosest, &little).await?;
        let is_full = self.read(&ranked, &little, most, ROWS_READ).await?;
        for group in little.iter().copied() {
            if is_full && little.len() > 1 && self.found.count(group) < LITTLE {
                let own: Vec<Ranked> =
                    ranked.iter().copied().filter(|ranked| ranked.facet == facet(group)).collect();
                self.read(&own, &[group], most, most).await?;
            }
        }
        Ok(())
    }

    /// Returns the chunks of the groups that match the query, the best first.
    async fn ranked(&mut self, query: &Query<'_>, groups: &[Group]) -> Result<Vec<Ranked>> {
        self.postings.read(query.all()).await?;
        let mut ranked = ranked(query, |term, form| self.postings.of(term, form));
        ranked.retain(|ranked| groups.iter().any(|group| facet(*group) == ranked.facet));
        Ok(ranked)
    }

    /// Returns the candidate for the first of the ranked chunks; `None` if it isn't admitted.
    async fn candidate(&mut self, ranked: &[Ranked]) -> Result<Option<LexicalCandidate>> {
        let admitted = self.admitted.first(ranked.iter().map(|ranked| ranked.chunk)).await?;
        Ok(ranked.first().zip(admitted).map(|(Ranked { chunk, score, .. }, found)| {
            let admitted::Chunk { memory, group, is_answer } = found;
            LexicalCandidate { memory, chunk: ChunkKey::from_store(*chunk), group, is_answer, score: *score }
        }))
    }

    /// Adds ranked chunks until each group in `wanted` has `most` chunks, not counting chunks of long answers, or until
    /// `rows` admitted chunks have been read. Returns whether more chunks may match.
    async fn read(&mut self, ranked: &[Ranked], wanted: &[Group], most: usize, rows: usize) -> Result<bool> {
        let mut adding = Adding::new(&self.found, wanted, most);
        for place in 0..ranked.len() {
            if adding.count == rows || adding.is_full() {
                return Ok(true);
            }
            if let Some(candidate) = self.candidate(&ranked[place..]).await? {
                adding.add(&mut self.found, candidate);
            }
        }
        Ok(adding.count == rows || adding.is_full())
    }
}

/// The best chunks of each group. The chunks of long answers are in a separate list, because they would fill the list
/// of messages.
struct Best {
    limit: usize,
    of: Vec<(Group, HashMap<ChunkKey, LexicalCandidate>)>,
    answers: HashMap<ChunkKey, LexicalCandidate>,
}

/// The chunks that one query adds to the best.
struct Adding {
    most: usize,
    count: usize,
    added: Vec<usize>,
    added_answers: usize,
    is_wanted: Vec<bool>,
}

impl Adding {
    fn new(found: &Best, wanted: &[Group], most: usize) -> Adding {
        let is_wanted: Vec<bool> = found.of.iter().map(|(group, _)| wanted.contains(group)).collect();
        Adding { most, count: 0, added: vec![0; is_wanted.len()], added_answers: 0, is_wanted }
    }

    fn add(&mut self, found: &mut Best, candidate: LexicalCandidate) {
        self.count += 1;
        if candidate.is_answer {
            if self.added_answers < self.most {
                self.added_answers += 1;
                found.answers.insert(candidate.chunk, candidate);
            }
        } else if let Some(place) = found.of.iter().position(|(group, _)| *group == candidate.group)
            && self.added[place] < self.most
        {
            self.added[place] += 1;
            found.of[place].1.insert(candidate.chunk, candidate);
        }
    }

    /// Returns whether each wanted group has enough chunks.
    fn is_full(&self) -> bool {
        self.added.iter().zip(&self.is_wanted).all(|(added, is_wanted)| !is_wanted || *added == self.most)
    }
}

impl Best {
    fn new(groups: impl Iterator<Item = Group>, limit: usize) -> Best {
        Best { limit, of: groups.map(|group| (group, HashMap::new())).collect(), answers: HashMap::new() }
    }

    fn groups(&self) -> Vec<Group> {
        self.of.iter().map(|(group, _)| *group).collect()
    }

    fn count(&self, group: Group) -> usize {
        let answers = if group == Group::Message { self.answers.len() } else { 0 };
        self.of.iter().find(|(own, _)| *own == group).map_or(0, |(_, found)| found.len() + answers)
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
