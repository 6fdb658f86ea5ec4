//! The search by meaning: the embeddings of chunks, made in steps.

use std::sync::{Mutex, MutexGuard};

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::{Index, Piece};
use tiro_base::error::Result;
use tiro_embed::{Embedder, embed_whole};

/// How many chunks are embedded in one step. Arbitrary: some tens of milliseconds for each thread.
pub(super) const STEP: usize = 8;

/// The embeddings of the chunks of an index.
#[derive(Debug, Default)]
pub(super) struct Vectors {
    by_place: Vec<Option<Box<[f16]>>>,
    /// The places of the chunks in the order in which they are embedded.
    order: Vec<usize>,
    /// How many of `order` were taken.
    taken: usize,
    count: usize,
}

impl Vectors {
    /// Returns no vectors yet, for as many chunks as `order` has places.
    pub(super) fn new(order: Vec<usize>) -> Vectors {
        Vectors { by_place: vec![None; order.len()], order, taken: 0, count: 0 }
    }

    /// Returns how many chunks have a vector.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Takes the next places without a vector, up to `most`. A place is returned only once.
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

/// Locks `vectors`. A thread that panicked while it held the lock has left them whole, since each is set at once.
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

    /// Returns the text to embed for a chunk: its source, the items around it, and its text.
    fn embedded(&self, piece: &Piece) -> String {
        let name = &self.sources[piece.source].name;
        let within: String = piece.chunk.within.iter().map(|item| format!(" {item}")).collect();
        format!("{name}{within}\n{}", self.text(piece))
    }
}
