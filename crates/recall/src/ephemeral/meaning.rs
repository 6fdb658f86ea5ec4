//! Searches by meaning. The embeddings of chunks are made in steps.

use std::sync::{Mutex, MutexGuard};

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::{Index, Piece};
use tiro_base::error::Result;
use tiro_embed::{Embedder, embed_whole};

/// The number of chunks that are embedded in one step. Arbitrary: a step takes some tens of milliseconds for each
/// thread.
pub(super) const STEP: usize = 8;

/// The embeddings of the chunks of an index.
#[derive(Debug, Default)]
pub(super) struct Vectors {
    by_place: Vec<Option<Box<[f16]>>>,
    /// The indexes of the chunks, in the order in which the chunks are embedded.
    order: Vec<usize>,
    /// The number of indexes that were already taken from `order`.
    taken: usize,
    count: usize,
}

impl Vectors {
    /// Returns an instance without vectors, for as many chunks as `order` contains.
    pub(super) fn new(order: Vec<usize>) -> Vectors {
        Vectors { by_place: vec![None; order.len()], order, taken: 0, count: 0 }
    }

    /// Returns how many chunks have a vector.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Takes up to `most` further chunks without a vector, and returns their indexes. A chunk is returned only once.
    pub(super) fn next(&mut self, most: usize) -> Vec<usize> {
        let mut places = Vec::new();
        while places.len() < most && self.taken < self.order.len() {
            let place = self.order[self.taken];
            self.taken += 1;
            if self.by_place[place].is_none() {
                places.push(place);
            }
        }
        places
    }

    /// Returns whether the chunk at `place` has a vector.
    pub(super) fn has(&self, place: usize) -> bool {
        self.by_place[place].is_some()
    }

    fn set(&mut self, place: usize, vector: &[f32]) {
        let mut halves = vec![f16::ZERO; vector.len()];
        halves.convert_from_f32_slice(vector);
        if self.by_place[place].replace(halves.into()).is_none() {
            self.count += 1;
        }
    }

    /// Returns the cosine of `question` with each chunk that has a vector.
    pub(super) fn cosines(&self, question: &[f32]) -> Vec<Option<f64>> {
        let mut vector = vec![0.0; question.len()];
        let mut cosine = |halves: &[f16]| {
            halves.convert_to_f32_slice(&mut vector);
            f64::from(vector.iter().zip(question).map(|(a, b)| a * b).sum::<f32>())
        };
        self.by_place.iter().map(|halves| halves.as_deref().map(&mut cosine)).collect()
    }
}

/// Locks `vectors`. If a thread panicked while it held the lock, the vectors are still valid, because each vector is
/// set in one step.
pub(super) fn locked(vectors: &Mutex<Vectors>) -> MutexGuard<'_, Vectors> {
    vectors.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Index {
    /// Embeds the chunks at `places`.
    pub(super) fn embed(&self, embedder: &Embedder, threads: usize, places: &[usize]) -> Result<()> {
        let texts: Vec<String> = places.iter().map(|place| self.embedded(&self.pieces[*place])).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embeddings = embed_whole(embedder, &texts, threads)?;
        let mut vectors = locked(&self.vectors);
        places.iter().zip(embeddings).for_each(|(place, vector)| vectors.set(*place, &vector));
        Ok(())
    }

    /// Returns the text that is embedded for a chunk: its source, the items around it, and its text.
    fn embedded(&self, piece: &Piece) -> String {
        let name = &self.sources[piece.source].name;
        let within: String = piece.chunk.within.iter().map(|item| format!(" {item}")).collect();
        format!("{name}{within}\n{}", self.text(piece))
    }
}
