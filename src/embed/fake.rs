//! An embedder for tests: no model, no file, the same vectors for ever.

use std::ops::Range;

use super::split::Splitter;
use super::{Embedder, SpaceId};
use crate::error::Result;

const DIMENSIONS: usize = 384;

/// Gives each word a fixed pseudo-random direction and each text the sum over its words.
///
/// Texts that share words are near each other, so that ranking can be tested, but it knows no meaning: never used
/// outside of tests. A token is a run of non-blanks.
pub struct FakeEmbedder {
    space: SpaceId,
}

impl FakeEmbedder {
    /// Returns the embedder; all of them are equal.
    pub fn new() -> FakeEmbedder {
        FakeEmbedder { space: SpaceId::new("fake/sum/l2") }
    }
}

impl Default for FakeEmbedder {
    fn default() -> FakeEmbedder {
        FakeEmbedder::new()
    }
}

impl Embedder for FakeEmbedder {
    fn space(&self) -> &SpaceId {
        &self.space
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    fn max_tokens(&self) -> usize {
        256
    }

    fn embed(&self, texts: &[&str], _threads: usize) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| vector(text, self.max_tokens() - 2)).collect())
    }

    fn count(&self, text: &str) -> usize {
        text.split_whitespace().count() + 2
    }

    fn split(&self, text: &str, max_tokens: usize, overlap: usize) -> Vec<Range<usize>> {
        let mut splitter = Splitter::new(text, max_tokens.saturating_sub(2), overlap);
        for word in text.split_whitespace() {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            splitter.push(start..start + word.len(), 1);
        }
        splitter.finish()
    }
}

fn vector(text: &str, limit: usize) -> Vec<f32> {
    let mut sum = vec![0.0; DIMENSIONS];
    // One direction that all texts share, so that none has length 0.
    add(&mut sum, "");
    for word in text.split_whitespace().take(limit) {
        add(&mut sum, &word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
    }
    let length = sum.iter().map(|x| x * x).sum::<f32>().sqrt();
    sum.iter().map(|x| x / length).collect()
}

/// Adds a word's direction: whole numbers from −128 to 127, exact in any order.
fn add(sum: &mut [f32], word: &str) {
    let mut bytes = vec![0; sum.len()];
    blake3::Hasher::new().update(word.as_bytes()).finalize_xof().fill(&mut bytes);
    for (sum, byte) in sum.iter_mut().zip(bytes) {
        *sum += f32::from(byte as i8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_share_words_are_near_each_other() {
        let texts = ["cache invalidation is hard", "why is cache invalidation hard?", "bread and butter", ""];
        let vectors = FakeEmbedder::new().embed(&texts, 1).unwrap();
        let cosine = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(x, y)| x * y).sum::<f32>();
        assert!(cosine(0, 1) > 0.7 && cosine(0, 2) < 0.5, "{} {}", cosine(0, 1), cosine(0, 2));
        assert!((cosine(3, 3) - 1.0).abs() < 1e-6);
    }
}
