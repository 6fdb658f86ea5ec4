//! The embedder, which runs a model in batches, on several threads and within the model's limits.

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::forward::{Kernel, Workspace, forward};
use super::model::Model;
use super::split::Splitter;
use super::unigram::Unigram;
use super::weights::{self, TOKENS, WIDTH, Weights};
use super::wordpiece::WordPiece;
use super::{SpaceId, Tokenize, Word};
use tiro_base::error::{Error, Result};

/// The maximum number of tokens that go through the network together. A batch of this size is large enough to repay the
/// cost of widening the weights, and small enough that its intermediate results fit into a core's cache.
const BATCH: usize = 256;
/// The number of tokens that are added to every text: the start token and the end token.
const ENDS: usize = 2;

/// Turns texts into vectors with one of the models.
///
/// The same text always gives exactly the same vector, whether it is embedded alone or with other texts, and on any
/// number of threads. Another processor or another version of Tiro may give a different vector, but the cosine of the
/// two vectors is at least .9999. Threads can share one embedder.
pub struct Embedder {
    model: Model,
    space: SpaceId,
    weights: Weights,
    tokenizer: Tokenizer,
    /// The kernel that computes its matrix products.
    pub(super) kernel: Kernel,
}

/// The tokenizer of a model.
enum Tokenizer {
    WordPiece(WordPiece),
    Unigram(Unigram),
}

impl Tokenize for Tokenizer {
    fn ends(&self) -> (u32, u32) {
        match self {
            Tokenizer::WordPiece(wordpiece) => wordpiece.ends(),
            Tokenizer::Unigram(unigram) => unigram.ends(),
        }
    }

    fn words(&self, text: &str, on_word: impl FnMut(Word<'_>) -> ControlFlow<()>) {
        match self {
            Tokenizer::WordPiece(wordpiece) => wordpiece.words(text, on_word),
            Tokenizer::Unigram(unigram) => unigram.words(text, on_word),
        }
    }
}

impl Embedder {
    /// Loads the model that [`super::install::install`] put into `model_dir`, and verifies every byte of it.
    ///
    /// Errors with [`tiro_base::error::Kind::Model`] if a file is missing, truncated, damaged, or from another model.
    /// The hint of the error says how to install the model again.
    pub fn load(model: Model, model_dir: &Path) -> Result<Embedder> {
        let weights = Weights::open(model, &model_dir.join(weights::FILE))?;
        let tokenizer = match model {
            Model::MiniLm => Tokenizer::WordPiece(WordPiece::new(weights.vocabulary())?),
            Model::E5 => Tokenizer::Unigram(Unigram::new(weights.vocabulary())?),
        };
        let space = SpaceId::new(model.space());
        Ok(Embedder { model, space, weights, tokenizer, kernel: Kernel::best() })
    }

    /// Returns the model.
    pub fn model(&self) -> Model {
        self.model
    }

    /// Returns the space to which all vectors of this embedder belong.
    pub fn space(&self) -> &SpaceId {
        &self.space
    }

    /// Returns the length of a vector: 384.
    pub fn dimensions(&self) -> usize {
        WIDTH
    }

    /// Returns the maximum number of tokens of a text that are read: 256, including the start and end tokens. The rest
    /// of the text is ignored.
    pub fn max_tokens(&self) -> usize {
        TOKENS
    }

    /// Returns a vector of length 1 for each text, in the order of the texts. Uses up to `threads` threads.
    ///
    /// An empty text has a vector too. A call blocks for about 30 ms per text of full length.
    pub fn embed(&self, texts: &[&str], threads: usize) -> Result<Vec<Vec<f32>>> {
        let (_, prefix) = self.model.prefixes();
        self.embed_after(prefix, texts, threads)
    }

    /// Returns a vector of length 1 for a question. The vector can be compared with the vectors of texts.
    pub fn embed_question(&self, question: &str) -> Result<Vec<f32>> {
        let (prefix, _) = self.model.prefixes();
        let vectors = self.embed_after(prefix, &[question], 1)?;
        Ok(vectors.into_iter().next().unwrap_or_default())
    }

    /// Returns a vector for each of `texts`, each preceded by `prefix`.
    fn embed_after(&self, prefix: &str, texts: &[&str], threads: usize) -> Result<Vec<Vec<f32>>> {
        let encode = |text: &&str| match prefix {
            "" => self.tokenizer.encode(text, TOKENS),
            _ => self.tokenizer.encode(&format!("{prefix}{text}"), TOKENS),
        };
        let ids: Vec<Vec<u32>> = texts.iter().map(encode).collect();
        let ids: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
        let batches = batches(&ids, threads.max(1));
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut room, mut done) = (Workspace::default(), vec![]);
            while let Some(batch) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                let vectors = forward(&self.weights, self.kernel, &ids[batch.clone()], &mut room)?;
                done.push((batch.start, vectors));
            }
            Ok::<_, Error>(done)
        };
        let mut done = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(batches.len())).map(|_| scope.spawn(work)).collect();
            let mut done = work()?;
            for other in others {
                done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            Ok::<_, Error>(done)
        })?;
        done.sort_unstable_by_key(|(start, _)| *start);
        Ok(done.into_iter().flat_map(|(_, vectors)| vectors).collect())
    }

    /// Returns the number of tokens of the whole `text`, including the start and end tokens and the prefix of the
    /// model.
    pub fn count(&self, text: &str) -> usize {
        self.tokenizer.count(text) + self.prefix_tokens()
    }

    fn prefix_tokens(&self) -> usize {
        let (_, prefix) = self.model.prefixes();
        if prefix.is_empty() { 0 } else { self.tokenizer.count(prefix.trim_end()) - ENDS }
    }

    /// Cuts `text` into pieces of at most `max_tokens` tokens, including start and end tokens, and returns the ranges
    /// of the pieces. Each piece begins with up to `overlap` tokens (at most a quarter of the limit) from the end of
    /// the previous piece.
    ///
    /// The ranges are ranges of bytes, in the order of the text, without blanks at their ends. The text is cut only
    /// between words, and if possible at the end of a paragraph, line or sentence. A blank text has no pieces. A word
    /// with more than `max_tokens` tokens becomes a piece by itself, which exceeds the limit. A word has at most 100
    /// tokens. In practice, only words of encoded data have so many. Splitting takes time linear in the length of the
    /// text, and memory only for the pieces.
    pub fn split(&self, text: &str, max_tokens: usize, overlap: usize) -> Vec<Range<usize>> {
        let mut splitter =
            Splitter::new(text, max_tokens.saturating_sub(ENDS + self.prefix_tokens()), overlap);
        self.tokenizer.words(text, |word| {
            splitter.push(word.range, word.ids.len());
            ControlFlow::Continue(())
        });
        splitter.finish()
    }
}

/// Returns an embedding of each text as a whole. A text that is longer than the embedder's limit is embedded in pieces,
/// and its embedding is the normalised mean of the embeddings of the pieces.
///
/// Errors in the same cases as [`Embedder::embed`].
pub fn embed_whole(embedder: &Embedder, texts: &[&str], threads: usize) -> Result<Vec<Vec<f32>>> {
    let mut pieces: Vec<&str> = Vec::with_capacity(texts.len());
    let mut ends: Vec<usize> = Vec::with_capacity(texts.len());
    for text in texts {
        // A token has at least one byte, so the tokens of a text with few bytes need not be counted.
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

/// Divides the texts into batches, which are ranges of consecutive texts. The texts of a batch go through the network
/// together. Every thread gets at least one batch, unless there are only a few texts.
fn batches(ids: &[&[u32]], threads: usize) -> Vec<Range<usize>> {
    let total: usize = ids.iter().map(|ids| ids.len()).sum();
    let limit = total.div_ceil(threads).clamp(TOKENS / 4, BATCH);
    let (mut batches, mut start, mut tokens) = (vec![], 0, 0);
    for (i, ids) in ids.iter().enumerate() {
        if i > start && tokens + ids.len() > limit {
            batches.push(start..i);
            (start, tokens) = (i, 0);
        }
        tokens += ids.len();
    }
    if start < ids.len() {
        batches.push(start..ids.len());
    }
    batches
}
