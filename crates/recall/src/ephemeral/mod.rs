//! The texts of one call, searched by the model that the call consults: attachments, and files that did not fit into
//! the prompt.
//!
//! An [`Index`] is in memory and belongs to one call, so nothing of one call can appear in another. It is searched like
//! the store, by words and by meaning, and the scores are added as z-scores. Embedding all chunks may take longer than
//! the call, so a search never waits for that: the owner of the index embeds chunks in bounded steps while the model
//! thinks ([`Index::embed_some`]), and a search embeds its best candidates first. Every answer says how many chunks have
//! no embedding yet.
//!
//! The index does not read files, redact texts or keep anything after it is dropped.

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

/// The most bytes of text of an index. Arbitrary: chunking as much takes some seconds, and the index takes about three
/// times as much memory.
pub const MOST_BYTES: usize = 64 << 20;

/// The most names of sources that an error lists. Arbitrary.
const MOST_NAMES: usize = 10;

/// Where a source comes from.
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
    /// Its name, such as the path of the file. The extension tells how it is divided.
    pub name: String,
    /// Its redacted text.
    pub text: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// A source that is not in the index, because the texts before it have as many bytes as an index may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// How many bytes its text has.
    pub bytes: usize,
}

/// An index of the texts of one call.
///
/// All its functions but [`chunk`](Index::chunk) take a shared reference, so that one thread can embed while another
/// searches. The same calls in the same order give the same answers, unless a deadline cuts embedding short.
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
    /// A name that no other source of the index has.
    name: String,
    text: String,
    origin: Origin,
    lines: Lines,
}

/// A chunk of a source.
#[derive(Clone, Debug)]
struct Piece {
    /// The place of its source.
    source: usize,
    chunk: CodeChunk,
}

impl Index {
    /// Returns an index of `sources`, which is not divided into chunks yet. Sources are added in order while all texts
    /// have at most [`MOST_BYTES`] bytes; the others are [left out](Index::left_out). If a name occurs again, the later
    /// source gets a number after its name.
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

    /// Adds sources that the owner of the index left out, because there was no room for them. Answers say so.
    pub fn leave_out(&mut self, sources: impl IntoIterator<Item = LeftOut>) {
        self.left_out.extend(sources);
    }

    /// Returns the sources that are not in the index.
    #[cfg(test)]
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Returns an error that names the sources that were left out; `None` if there are none. The caller decides
    /// whether the call fails, or goes on with the error as a notice.
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

    /// Divides the texts into chunks and indexes their words, on up to `threads` threads. A search before that finds
    /// nothing. Calling it again changes nothing.
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

    /// Returns the places of the chunks in the order in which they are embedded: the first chunks of all attachments,
    /// their second chunks, and so on, then those of the files.
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

    /// Embeds chunks until `budget` is over or all are embedded, on up to `threads` threads. Returns how many are still
    /// pending. One step takes some tens of milliseconds, by which the budget may be exceeded.
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

    /// Returns the sentence that says how many chunks have no embedding; `None` if all have one.
    fn pending_notice(&self, pending: usize) -> Option<String> {
        (pending > 0).then(|| {
            let of = counted(self.len(), "piece", "pieces");
            format!("{pending} of {of} without an embedding yet, found only by words")
        })
    }
}

#[cfg(test)]
mod tests;
