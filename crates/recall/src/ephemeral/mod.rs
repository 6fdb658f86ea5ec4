//! Indexes the texts of one call for searches by the consulted model. These texts are attachments, and files that did
//! not fit into the prompt.
//!
//! An [`Index`] is in memory and belongs to one call, so nothing of one call can appear in another. It is searched like
//! the store, by words and by meaning, and the scores are added as z-scores. Embedding all chunks may take longer than
//! the call, so a search doesn't wait for it. Instead, the owner of the index embeds chunks in bounded steps while the
//! model thinks ([`Index::embed_some`]), and a search embeds its best candidates first. Every answer reports how many
//! chunks have no embedding yet.
//!
//! The index does not read files and does not redact texts. It keeps nothing after it is dropped.

mod bm25;
mod found;
mod lines;
mod meaning;
mod passage;
mod search;
mod terms;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::humanize::counted;
use tiro_embed::Embedder;
use tiro_text::chunk::{CodeChunk, Language, code};
use tiro_text::tokens;
use tiro_text::tuning::{CHUNK_OVERLAP, CHUNK_TOKENS};

use bm25::InvertedIndex;
use lines::Lines;
use meaning::Vectors;

pub use search::Ask;

/// The maximum number of bytes of text in an index. Arbitrary: dividing so much text into chunks takes some seconds,
/// and the index takes about three times as much memory as its texts.
pub const MOST_BYTES: usize = 64 << 20;

/// The maximum number of names of sources that an error lists. Arbitrary.
const MOST_NAMES: usize = 10;

/// The origin of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The caller attached it to be searched.
    Attachment,
    /// It is a file that did not fit into the prompt.
    File,
}

/// A text to search.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name, such as the path of a file. Its extension decides how the text is divided.
    pub name: String,
    /// The redacted text.
    pub text: String,
    /// The origin of the source.
    pub origin: Origin,
}

/// A source that is not in the index, because the index already has the maximum number of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The name of the source.
    pub name: String,
    /// The number of bytes of its text.
    pub bytes: usize,
}

/// An index of the texts of one call.
///
/// All functions except [`chunk`](Index::chunk) take a shared reference, so that one thread can embed while another
/// searches. The same calls in the same order give the same answers, unless a deadline stops embedding early.
#[derive(Debug)]
pub struct Index {
    sources: Vec<Kept>,
    left_out: Vec<LeftOut>,
    secret: [u8; 32],
    pieces: Vec<Piece>,
    words: InvertedIndex,
    vectors: Mutex<Vectors>,
}

/// A source of the index.
#[derive(Debug)]
struct Kept {
    /// A name that differs from the names of all other sources of the index.
    name: String,
    text: String,
    origin: Origin,
    lines: Lines,
}

/// A chunk of a source.
#[derive(Clone, Debug)]
struct Piece {
    /// The index of the chunk's source.
    source: usize,
    chunk: CodeChunk,
}

impl Index {
    /// Returns an index of `sources`. It is not divided into chunks yet. Sources are added in order as long as all
    /// texts together have at most [`MOST_BYTES`] bytes. The others are [left out](Index::left_out). If a name occurs
    /// again, a number is added to the name of the later source.
    ///
    /// `secret` is the secret of the installation, for the envelopes of answers.
    pub fn new(sources: Vec<Source>, secret: [u8; 32]) -> Index {
        let mut kept: Vec<Kept> = Vec::with_capacity(sources.len());
        let mut left_out = Vec::new();
        let mut bytes = 0;
        let mut names = std::collections::HashMap::<String, usize>::new();
        for Source { name, text, origin } in sources {
            if bytes + text.len() > MOST_BYTES {
                left_out.push(LeftOut { name, bytes: text.len() });
                continue;
            }
            bytes += text.len();
            let mut unique = name.clone();
            while let Some(count) = names.get_mut(&unique) {
                *count += 1;
                unique = format!("{name} ({count})");
            }
            names.insert(unique.clone(), 1);
            kept.push(Kept { name: unique, lines: Lines::of(&text), text, origin });
        }
        let (pieces, words) = (Vec::new(), InvertedIndex::default());
        Index { sources: kept, left_out, secret, pieces, words, vectors: Mutex::default() }
    }

    /// Adds sources that the owner of the index left out because there was no room for them. Answers report them.
    pub fn leave_out(&mut self, sources: impl IntoIterator<Item = LeftOut>) {
        self.left_out.extend(sources);
    }

    /// Returns the sources that are not in the index.
    #[cfg(test)]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Returns an error that names the sources that were left out. Returns `None` if there are none. The caller decides
    /// whether the call fails, or continues with the error as a notice.
    pub fn refusal(&self) -> Option<Error> {
        if self.left_out.is_empty() {
            return None;
        }
        let megabytes = |bytes: usize| format!("{:.1} MB", bytes as f64 / (1 << 20) as f64);
        let listed = |one: &LeftOut| format!("`{}` ({})", quoted(&one.name), megabytes(one.bytes));
        let names: Vec<String> = self.left_out.iter().take(MOST_NAMES).map(listed).collect();
        let more = match self.left_out.len().saturating_sub(MOST_NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!(
            "the texts to search have more than {}; left out: {}{more}",
            megabytes(MOST_BYTES),
            names.join(", ")
        );
        Some(Error::new(Kind::Limit, message).hint("attach fewer or smaller files"))
    }

    /// Returns the names of the sources, in order.
    #[cfg(test)]
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(|source| source.name.as_str())
    }

    /// Divides the texts into chunks and indexes their words, on up to `threads` threads. Before this call, searches
    /// find nothing. Further calls change nothing.
    pub fn chunk(&mut self, threads: usize) {
        if !self.pieces.is_empty() {
            return;
        }
        let next = AtomicUsize::new(0);
        let sources = &self.sources;
        let work = || {
            let mut done = Vec::new();
            while let Some((place, source)) = {
                let place = next.fetch_add(1, Ordering::Relaxed);
                sources.get(place).map(|source| (place, source))
            } {
                let language = Language::of_path(&source.name);
                let size = |text: &str| tokens::count(text);
                done.push((place, code(&source.text, language, &size, CHUNK_TOKENS, CHUNK_OVERLAP)));
            }
            done
        };
        let mut chunked = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(sources.len())).map(|_| scope.spawn(work)).collect();
            let mut chunked = work();
            for other in others {
                chunked.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            chunked
        });
        chunked.sort_unstable_by_key(|(place, _)| *place);
        for (source, chunks) in chunked {
            self.pieces.extend(chunks.into_iter().map(|chunk| Piece { source, chunk }));
        }
        self.words = InvertedIndex::of(&self.sources, &self.pieces);
        *self.vectors.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner()) =
            Vectors::new(self.by_priority());
    }

    /// Returns the indexes of the chunks in the order in which the chunks are embedded. First come the first chunks of
    /// all attachments, then their second chunks, and so on. The chunks of the files follow in the same way.
    fn by_priority(&self) -> Vec<usize> {
        let mut order: Vec<(Origin, usize, usize)> = Vec::with_capacity(self.pieces.len());
        let (mut source, mut ordinal) = (usize::MAX, 0);
        for (place, piece) in self.pieces.iter().enumerate() {
            ordinal = if piece.source == source { ordinal + 1 } else { 0 };
            source = piece.source;
            order.push((self.sources[source].origin, ordinal, place));
        }
        order.sort_unstable();
        order.into_iter().map(|(_, _, place)| place).collect()
    }

    /// Returns how many chunks there are.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks whether it is empty")]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns how many chunks have no embedding yet.
    pub fn pending(&self) -> usize {
        self.pieces.len() - meaning::locked(&self.vectors).count()
    }

    /// Embeds chunks until `budget` is used up or all chunks are embedded, on up to `threads` threads. Returns how many
    /// chunks are still pending. The budget may be exceeded by one step, which takes some tens of milliseconds.
    ///
    /// Errors as [`Embedder::embed`] does.
    pub fn embed_some(&self, embedder: &Embedder, threads: usize, budget: Duration) -> Result<usize> {
        let until = Instant::now() + budget;
        while Instant::now() < until {
            let places = meaning::locked(&self.vectors).next(meaning::STEP);
            if places.is_empty() {
                break;
            }
            self.embed(embedder, threads, &places)?;
        }
        Ok(self.pending())
    }

    /// Returns the text of a chunk.
    fn text(&self, piece: &Piece) -> &str {
        &self.sources[piece.source].text[piece.chunk.range.start..piece.chunk.range.end]
    }

    /// Returns a sentence that says how many chunks have no embedding. Returns `None` if all chunks have one.
    fn pending_notice(&self, pending: usize) -> Option<String> {
        (pending > 0).then(|| {
            let of = counted(self.len(), "piece", "pieces");
            format!("{pending} of {of} without an embedding yet, found only by words")
        })
    }
}

#[cfg(test)]
mod tests;
