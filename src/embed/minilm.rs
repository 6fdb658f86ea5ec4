//! all-MiniLM-L6-v2 as an [`Embedder`]: batches, threads, and the model's limits.

use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::forward::{Kernel, Workspace, forward};
use super::split::Splitter;
use super::weights::{self, TOKENS, WIDTH, Weights};
use super::wordpiece::WordPiece;
use super::{Embedder, SpaceId};
use crate::error::{Error, Result};

/// Tokens that go through the network together: enough to make up for widening the weights, few enough that the
/// intermediate results stay in a core's cache.
const BATCH: usize = 256;
/// The start and the end token.
const ENDS: usize = 2;

/// The model, read from disk; cheap to share, and used by several threads at once.
pub struct MiniLm {
    space: SpaceId,
    weights: Weights,
    wordpiece: WordPiece,
    pub(super) kernel: Kernel,
}

impl MiniLm {
    /// Loads the model that [`super::install::install`] put into `model_dir`, and verifies all of it.
    ///
    /// A missing, truncated, foreign or damaged file is a [`crate::error::Kind::Model`] error whose hint says how
    /// to install it again.
    pub fn load(model_dir: &Path) -> Result<MiniLm> {
        let weights = Weights::open(&model_dir.join(weights::FILE))?;
        let wordpiece = WordPiece::new(weights.vocabulary())?;
        let space = SpaceId::new("all-MiniLM-L6-v2/mean/l2");
        Ok(MiniLm { space, weights, wordpiece, kernel: Kernel::best() })
    }
}

impl Embedder for MiniLm {
    fn space(&self) -> &SpaceId {
        &self.space
    }

    fn dimensions(&self) -> usize {
        WIDTH
    }

    fn max_tokens(&self) -> usize {
        TOKENS
    }

    fn embed(&self, texts: &[&str], threads: usize) -> Result<Vec<Vec<f32>>> {
        let ids: Vec<Vec<u32>> = texts.iter().map(|text| self.wordpiece.encode(text, TOKENS)).collect();
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

    fn count(&self, text: &str) -> usize {
        self.wordpiece.count(text)
    }

    fn split(&self, text: &str, max_tokens: usize, overlap: usize) -> Vec<Range<usize>> {
        let mut splitter = Splitter::new(text, max_tokens.saturating_sub(ENDS), overlap);
        self.wordpiece.words(text, |word| {
            splitter.push(word.range, word.ids.len());
            ControlFlow::Continue(())
        });
        splitter.finish()
    }
}

/// Returns consecutive texts that go through the network together, so that every thread gets some.
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
