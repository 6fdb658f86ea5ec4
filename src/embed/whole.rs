//! Embeds texts that may be longer than the embedder's limit.

use super::Embedder;
use crate::error::Result;

/// Returns an embedding of each whole text. A text that is longer than the embedder's limit is embedded in pieces, and
/// its embedding is the normalised mean of theirs.
///
/// Errors as [`Embedder::embed`] does.
pub fn embed_whole(embedder: &Embedder, texts: &[&str], threads: usize) -> Result<Vec<Vec<f32>>> {
    let mut pieces: Vec<&str> = Vec::with_capacity(texts.len());
    let mut ends: Vec<usize> = Vec::with_capacity(texts.len());
    for text in texts {
        // A token has at least one byte, so a text with few bytes need not be counted.
        if text.len() < embedder.max_tokens() || embedder.count(text) <= embedder.max_tokens() {
            pieces.push(text);
        } else {
            pieces
                .extend(embedder.split(text, embedder.max_tokens(), 0).into_iter().map(|range| &text[range]));
        }
        ends.push(pieces.len());
    }
    let mut embeddings = embedder.embed(&pieces, threads)?.into_iter();
    let mut start = 0;
    let mean = |end: usize| {
        let mut parts = embeddings.by_ref().take(end - std::mem::replace(&mut start, end));
        let mut sum = parts.next().unwrap_or_else(|| vec![0.0; embedder.dimensions()]);
        let mut is_mean = false;
        for part in parts {
            is_mean = true;
            sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
        if is_mean {
            let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
            sum.iter_mut().for_each(|value| *value /= length);
        }
        sum
    };
    Ok(ends.into_iter().map(mean).collect())
}
