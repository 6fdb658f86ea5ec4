//! Searches by words and by meaning: reads everything, and keeps the best of each group.
//!
//! A row of the text index is made when it is searched, from the text of a chunk and of the messages around it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::MemoryStore;
use super::state::{Chunk, State, Stored};
use super::view::View;
use tiro_base::error::Result;
use tiro_base::memory::{Group, Kind, MemoryKey, Role};
use tiro_base::scope::Scope;
use tiro_store::tuning::{BM25_B, BM25_K1, COLUMNS, LEAST_WEIGHT, NEIGHBOURS};
use tiro_store::{
    CandidateQuery, Candidates, ChunkKey, DenseCandidate, LexicalCandidate, ReplacementQuery, Replacements,
    Superseded, Vocabulary,
};
use tiro_text::chunk::index_text::{self, About, IndexText};
use tiro_text::tuning::CHUNK_TOKENS;
use tiro_text::words::{Term, is_of_word, stems};

/// The most words of a question that count.
const MOST_WORDS: usize = 64;

/// The most paths of a commit that are indexed.
const PATHS_INDEXED: usize = 64;

impl MemoryStore {
    /// Does as [`Search::candidates`](tiro_store::Search::candidates).
    pub(crate) async fn candidates(&self, scope: &Scope, query: CandidateQuery) -> Result<Candidates> {
        self.read(scope, |state| {
            let (words, vocabulary) = state.with_words(scope, &query);
            let near = state.near(scope, &query);
            let named: Vec<(MemoryKey, ChunkKey)> =
                query.commits.iter().filter_map(|id| state.commit_named(scope, id)).collect();
            let mut found: BTreeMap<ChunkKey, MemoryKey> = BTreeMap::new();
            found.extend(words.iter().map(|each| (each.chunk, each.memory)));
            found.extend(near.iter().map(|each| (each.chunk, each.memory)));
            found.extend(named.iter().map(|(memory, chunk)| (*chunk, *memory)));
            let cosines = query.embeddings.iter().map(|(space, embedding)| {
                let hits = state.nearest(space, embedding, found.keys().copied().collect(), usize::MAX);
                Ok(hits.into_iter().map(|(_, chunk, score)| (chunk, score)).collect())
            });
            Ok(Candidates {
                cosines: cosines.collect(),
                places: Ok(state.places(scope, found.values().copied().collect())),
                words: Ok((words, vocabulary)),
                near: Ok(near),
                named: Ok(named),
                pending: Some(state.waiting(&scope.tenant).count()),
            })
        })
    }

    /// Does as [`Search::replacements`](tiro_store::Search::replacements).
    pub(crate) async fn replacements(&self, scope: &Scope, query: ReplacementQuery) -> Result<Replacements> {
        self.read(scope, |state| {
            let view = state.living(scope);
            let stand_ins = state.stand_ins(scope, query.commits);
            let mut keys = query.memories;
            for (_, (by, _)) in &stand_ins {
                if !keys.contains(by) {
                    keys.push(*by);
                }
            }
            let superseded: Vec<Superseded> =
                keys.iter().flat_map(|key| state.superseded_by(&view, *key)).collect();
            let living = keys.into_iter().filter_map(|key| Some((key, view.get(key)?)));
            let stating = living.filter(|_| query.with_statements);
            let statements = stating
                .flat_map(|(key, _)| state.statements_of(key))
                .map(|(_, statement)| statement.clone())
                .collect();
            let text = |key: MemoryKey| Some((key, view.get(key)?.text.clone()));
            let texts = query.texts.into_iter().filter_map(text).collect();
            let mut by: BTreeSet<MemoryKey> = superseded.iter().map(|each| each.by_key).collect();
            let holding = by.iter().filter(|_| query.with_holding);
            let holding = holding.filter_map(|key| Some(state.shown(*key, view.get(*key)?))).collect();
            by.extend(stand_ins.iter().map(|(_, (by, _))| *by));
            let places = state.places(scope, by);
            Ok(Replacements { stand_ins, superseded, statements, texts, holding, places })
        })
    }

    /// Does as [`Search::completions`](tiro_store::Search::completions).
    pub(crate) async fn completions(
        &self,
        scope: &Scope,
        beginning: &str,
        limit: usize,
    ) -> Result<Vec<String>> {
        self.read_all(scope, |state| {
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            for row in state.index() {
                let words: BTreeSet<&String> = row.columns.iter().flat_map(|(stems, _)| stems).collect();
                let words = words.into_iter().filter(|word| word.len() > beginning.len());
                for word in words.filter(|word| word.starts_with(beginning)) {
                    *counts.entry(word.clone()).or_default() += 1;
                }
            }
            let mut words: Vec<(String, usize)> = counts.into_iter().collect();
            words.sort_by(|(word, count), (other, others)| others.cmp(count).then(word.cmp(other)));
            Ok(words.into_iter().take(limit).map(|(word, _)| word).collect())
        })
    }

    /// Does as [`Search::shares`](tiro_store::Search::shares).
    pub(crate) async fn shares(
        &self,
        scope: &Scope,
        terms: Vec<Term>,
        rarity: Vec<f64>,
        texts: Vec<String>,
    ) -> Result<Vec<f64>> {
        self.read(scope, |_| {
            let all: f64 = rarity.iter().sum();
            let share = |text: &String| {
                let text = index_text::with_parts(text);
                let own: Vec<Vec<String>> =
                    text.split(|c: char| !is_of_word(c)).filter(|word| !word.is_empty()).map(stems).collect();
                let has = |term: &Term| term.forms().iter().any(|form| own.contains(&stems(form)));
                let had = terms.iter().zip(&rarity).filter(|(term, _)| has(term));
                if all > 0.0 { had.map(|(_, rarity)| rarity).sum::<f64>() / all } else { 0.0 }
            };
            Ok(texts.iter().map(share).collect())
        })
    }
}

/// Returns whether the memory is a long answer: these have a list of their own, since they would fill that of all
/// messages.
fn is_answer(memory: &Stored) -> bool {
    memory.kind == Kind::Message
        && memory.role == Some(Role::Assistant)
        && memory.tokens > CHUNK_TOKENS as i64
}

/// The place of the text among the columns of a [`Row`].
const TEXT: usize = 2;

/// A row of the text index.
struct Row {
    memory: MemoryKey,
    chunk: ChunkKey,
    /// The stems in the columns with speaker, header, text and context, each with the weight of its column.
    columns: [(Vec<String>, f64); 4],
}

impl Row {
    /// Returns how many words the row has; one names its group.
    fn size(&self) -> usize {
        self.columns.iter().map(|(stems, _)| stems.len()).sum::<usize>() + 1
    }

    /// Returns how often `columns` of the row have the phrase, each time weighed by its column.
    fn frequency(&self, phrase: &[String], columns: Range<usize>) -> f64 {
        let in_column = |(stems, weight): &(Vec<String>, f64)| {
            let times = match phrase.is_empty() {
                true => 0,
                false => stems.windows(phrase.len()).filter(|window| *window == phrase).count(),
            };
            weight * times as f64
        };
        self.columns[columns].iter().map(in_column).sum()
    }

    fn has(&self, stem: &String) -> bool {
        self.columns.iter().any(|(stems, _)| stems.contains(stem))
    }
}

/// Returns how many rows have the term: a phrase counts as often as its rarest word, and the most frequent form counts.
fn documents_with(term: &Term, rows: &[Row]) -> i64 {
    let with = |stem: &String| rows.iter().filter(|row| row.has(stem)).count() as i64;
    let least = |form: &String| stems(form).iter().map(with).min().unwrap_or(0);
    term.forms().iter().map(least).max().unwrap_or(0)
}

/// Returns the `limit` best rows of each group that the view admits, in one list, the best first.
fn best(
    view: &View<'_>,
    rows: &[Row],
    groups: &[Group],
    terms: &[Term],
    vocabulary: &Vocabulary,
    limit: usize,
) -> Vec<LexicalCandidate> {
    let all: usize = rows.iter().map(Row::size).sum();
    let average = all as f64 / rows.len().max(1) as f64;
    let mut found: Vec<LexicalCandidate> = Vec::new();
    for row in rows {
        let Some(memory) = view.get(row.memory) else { continue };
        let score = score(row, terms, vocabulary, average);
        let group = memory.kind.group();
        if let Some(score) = score.filter(|_| groups.contains(&group)) {
            let is_answer = is_answer(memory);
            let (memory, chunk) = (row.memory, row.chunk);
            found.push(LexicalCandidate { memory, chunk, group, is_answer, score });
        }
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.chunk.cmp(&b.chunk)));
    let mut taken: BTreeMap<(Group, bool), usize> = BTreeMap::new();
    found.retain(|candidate| {
        let taken = taken.entry((candidate.group, candidate.is_answer)).or_default();
        *taken += 1;
        *taken <= limit
    });
    found
}

/// Returns the BM25 score of a row; `None` if it has none of the terms. `average` is the average size of a row.
fn score(row: &Row, terms: &[Term], vocabulary: &Vocabulary, average: f64) -> Option<f64> {
    let length = row.size() as f64 / average;
    let in_columns = |(term, with): (&Term, &i64), columns: Range<usize>| {
        // A text with a word usually has its stem too, so the first form that it has counts.
        let frequencies = term.forms().iter().map(|form| row.frequency(&stems(form), columns.clone()));
        let frequency = frequencies.into_iter().find(|frequency| *frequency > 0.0)?;
        let rarity = (vocabulary.documents as f64 - *with as f64 + 0.5) / (*with as f64 + 0.5);
        let weight = if rarity.ln() > 0.0 { rarity.ln() } else { LEAST_WEIGHT };
        let often = frequency * (BM25_K1 + 1.0) / (frequency + BM25_K1 * (1.0 - BM25_B + BM25_B * length));
        Some(term.factor() * weight * often)
    };
    // The only word of a query counts twice in the row's own text.
    let own = terms.iter().zip(&vocabulary.counts).filter(|_| terms.len() == 1);
    let own = own.filter_map(|term| in_columns(term, TEXT..TEXT + 1));
    let all = terms.iter().zip(&vocabulary.counts).take(MOST_WORDS);
    own.chain(all.filter_map(|term| in_columns(term, 0..4))).reduce(|sum, more| sum + more)
}

impl State {
    /// Searches a store of any size by words as a small one.
    fn with_words(&self, scope: &Scope, query: &CandidateQuery) -> (Vec<LexicalCandidate>, Vocabulary) {
        let CandidateQuery { filter, groups, terms, weights, limit, .. } = query;
        if terms.is_empty() {
            return Default::default();
        }
        let view = self.living(scope).narrowed(filter);
        let rows = self.index();
        let vocabulary = weights.clone().unwrap_or_else(|| {
            let counts = terms.iter().map(|term| documents_with(term, &rows)).collect();
            Vocabulary { documents: rows.len() as i64, counts }
        });
        (best(&view, &rows, groups, terms, &vocabulary, *limit), vocabulary)
    }

    /// Finds the nearest by exact cosines.
    fn near(&self, scope: &Scope, query: &CandidateQuery) -> Vec<DenseCandidate> {
        let view = self.living(scope).narrowed(&query.filter);
        let mut found = Vec::new();
        for (space, embedding) in &query.embeddings {
            let mut add = |is_wanted: &dyn Fn(&Stored) -> bool| {
                let admitted =
                    self.chunks.iter().filter(|(_, chunk)| view.get(chunk.memory).is_some_and(is_wanted));
                let admitted: Vec<ChunkKey> = admitted.map(|(key, _)| *key).collect();
                let hits = self.nearest(space, embedding, admitted, query.limit);
                found.extend(hits.iter().map(|hit| DenseCandidate { memory: hit.0, chunk: hit.1 }));
            };
            for group in &query.groups {
                add(&|memory| memory.kind.group() == *group && !is_answer(memory));
            }
            if query.groups.contains(&Group::Message) {
                add(&is_answer);
            }
        }
        found
    }

    /// Makes the rows of the text index for the chunks of all living memories.
    fn index(&self) -> Vec<Row> {
        let row = |(key, chunk): (&ChunkKey, &Chunk)| {
            let memory = self.memories.get(&chunk.memory).filter(|memory| memory.is_living())?;
            let IndexText { speaker, header, text, context } = self.index_text(chunk.memory, memory, chunk);
            let [_, weights @ ..] = COLUMNS;
            let columns = [speaker, header, text, context].map(|column| stems(&column));
            let mut weights = weights.into_iter();
            let columns = columns.map(|stems| (stems, weights.next().unwrap_or_default()));
            Some(Row { memory: chunk.memory, chunk: *key, columns })
        };
        self.chunks.iter().filter_map(row).collect()
    }

    /// Returns the texts of the row for a chunk.
    fn index_text(&self, key: MemoryKey, memory: &Stored, chunk: &Chunk) -> IndexText {
        let piece = memory.text.get(chunk.start..chunk.end).unwrap_or_default();
        let instead = memory.indexed.as_deref().filter(|_| chunk.place == 0 && memory.ordinal.is_none());
        let context = match (chunk.place as i64) < index_text::WITH_CONTEXT {
            true => self.context(key, memory),
            false => String::new(),
        };
        let about = About {
            kind: memory.kind,
            role: memory.role,
            speaker: memory.speaker.as_deref(),
            title: memory.title.as_deref(),
            topic: memory.topic.as_deref(),
            path: memory.path.as_deref(),
            time: memory.time,
        };
        about.indexed(instead.unwrap_or(piece), &context)
    }

    /// Returns what stands around a memory: the living messages next to a message, and the files of a commit.
    fn context(&self, key: MemoryKey, memory: &Stored) -> String {
        let (Some(session), Some(ordinal)) = (memory.session, memory.ordinal) else {
            return memory
                .files
                .iter()
                .take(PATHS_INDEXED)
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join("\n");
        };
        let messages = self.messages(session);
        let others = messages.iter().filter(|(other, ..)| *other != key);
        let (before, after): (Vec<_>, Vec<_>) = others.partition(|(_, place, _)| *place < ordinal);
        let text = |(.., message): &&(MemoryKey, i64, &Stored)| message.text.clone();
        let reach = NEIGHBOURS as usize;
        let mut around: Vec<String> = before.iter().rev().take(reach).rev().map(text).collect();
        around.extend(after.iter().take(reach).map(text));
        index_text::neighbours(around.iter().map(String::as_str))
    }

    /// Returns the `limit` chunks that are nearest to `embedding`, each with its memory and the cosine.
    fn nearest(
        &self,
        space: &str,
        embedding: &[f32],
        chunks: Vec<ChunkKey>,
        limit: usize,
    ) -> Vec<(MemoryKey, ChunkKey, f64)> {
        let cosine = |key: ChunkKey| {
            let chunk = self.chunks.get(&key)?;
            let (own, vector) = chunk.embedding.as_ref()?;
            let products = vector.iter().zip(embedding).map(|(a, b)| f64::from(*a) * f64::from(*b));
            (own == space && vector.len() == embedding.len()).then(|| (chunk.memory, key, products.sum()))
        };
        let mut nearest: Vec<(MemoryKey, ChunkKey, f64)> = chunks.into_iter().filter_map(cosine).collect();
        nearest.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.1.cmp(&b.1)));
        nearest.truncate(limit);
        nearest
    }
}
