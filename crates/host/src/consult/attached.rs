//! The texts that an assistant can search during one call: the attachments, and the files that don't fit into the
//! prompt.
//!
//! The texts are redacted, indexed in memory and dropped at the end of the call. Files that don't fit are read only if
//! the assistant searches. Large folders are read only as far as the index has room, and the other files are listed as
//! left out. From the first search until the call ends, a separate thread embeds more of the texts for the next search.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Callable;
use super::functions::Returned;
use super::look::{self, Copy, FileReader, Unreached};
use super::receipt::{Receipt, Skipped};
use crate::engine::{Embedding, Engine};
use tiro_base::error::{Error, Result, quoted};
use tiro_base::humanize::thousands;
use tiro_base::parallel::{beside, cores, on_all_cores};
use tiro_embed::Embedder;
use tiro_files::{Form, FoundFile};
use tiro_inline::Plan;
use tiro_llm::Function;
use tiro_recall::ephemeral::{Ask, Index, LeftOut, MOST_BYTES, Origin, Source};
use tiro_store::Sources;
use tiro_text::tokens;

/// The name of the function.
const NAME: &str = "search_session_attachments";

/// The maximum number of passages that a search returns.
const MOST_HITS: usize = 8;

/// The maximum number of tokens of a result, if there is enough room.
const MOST_TOKENS: usize = 4000;

/// The number of lines that are read if a call names no last line. Arbitrary.
const LINES: usize = 200;

/// If paths are left out of the search, at most this many of them are named. Arbitrary.
const NAMED: usize = 5;

/// The longest time that a search may take to embed the texts that it compares.
const PATIENCE: Duration = Duration::from_secs(3);

/// The background thread embeds for this long, and then checks whether the call has ended.
const STEP: Duration = Duration::from_millis(200);

/// The texts of a call.
#[derive(Default)]
pub struct Attached {
    /// The names of the attachments, each with a description.
    listing: Vec<(String, String)>,
    /// The texts of the attachments, until they are moved to the index.
    texts: Mutex<Vec<Source>>,
    /// The attachments that don't fit into the index.
    left_out: Vec<LeftOut>,
    /// The documents among the attachments that were not read because the call's budget was used up.
    unreached: Option<Skipped>,
    overflow: Vec<FoundFile>,
    reader: Option<Arc<FileReader>>,
    index: OnceLock<Index>,
    /// Files that could not be read when the index was made.
    unread: Mutex<Vec<Skipped>>,
    is_ahead: AtomicBool,
    has_ended: AtomicBool,
    /// The secret of the installation.
    secret: [u8; 32],
}

impl Attached {
    /// Reads the attachments at `paths`. Files that can't be read are listed in the receipt.
    pub async fn read(
        reader: &Arc<FileReader>,
        paths: &[String],
        secret: [u8; 32],
        receipt: &mut Receipt,
    ) -> Result<Attached> {
        let (reader, paths) = (Arc::clone(reader), paths.to_vec());
        let read = beside(move || {
            let gathered = reader.gather(&paths);
            let found = (look::skipped(&gathered), look::cut(&gathered));
            let (mut attached, mut redacted) = (Attached { secret, ..Attached::default() }, Vec::new());
            let mut texts = Vec::new();
            let Outcome { skipped, left_out, unreached } =
                copies(&reader, gathered.files, MOST_BYTES, |path, copy| {
                    if copy.redacted > 0 {
                        redacted.push((path.clone(), copy.redacted));
                    }
                    let mut about = vec![format!("{} tokens", thousands(tokens::count(&copy.text) as u64))];
                    about.extend(copy.notes);
                    attached.listing.push((path.clone(), about.join(", ")));
                    texts.push(Source { name: path, text: copy.text, origin: Origin::Attachment });
                });
            attached = Attached { texts: Mutex::new(texts), left_out, unreached, ..attached };
            (attached, found, redacted, skipped)
        });
        let (attached, found, redacted, skipped) = read.await?;
        receipt.skipped.extend(found.0);
        receipt.notices.extend(found.1);
        receipt.redacted.extend(redacted);
        receipt.skipped.splice(0..0, attached.unreached.clone());
        receipt.skipped.extend(skipped.into_iter().chain(without_room(&attached.left_out)));
        Ok(attached)
    }

    /// Returns the attachments with their descriptions.
    pub fn listing(&self) -> &[(String, String)] {
        &self.listing
    }

    /// Adds the files that don't fit into the prompt. `reader` reads them when the index is made.
    pub fn add_overflow(
        &mut self,
        plan: &Plan,
        found: &BTreeMap<String, FoundFile>,
        reader: Arc<FileReader>,
    ) {
        self.overflow = plan.overflow.iter().filter_map(|path| found.get(path).cloned()).collect();
        self.reader = Some(reader);
    }

    /// Returns the documents among the attachments that were not read because the call's budget was used up.
    pub fn unreached(&self) -> Option<&Skipped> {
        self.unreached.as_ref()
    }

    /// Returns whether there is nothing to search.
    pub fn is_empty(&self) -> bool {
        self.listing.is_empty() && self.overflow.is_empty()
    }

    /// Returns the files that could not be read for the index.
    pub fn unread(&self) -> Vec<Skipped> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the index. The first call makes it.
    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let mut sources = std::mem::take(&mut *self.texts.lock().unwrap_or_else(PoisonError::into_inner));
            let attached: usize = sources.iter().map(|source| source.text.len()).sum();
            let Outcome { skipped: mut unread, left_out, unreached } = match &self.reader {
                Some(reader) => {
                    let room = MOST_BYTES.saturating_sub(attached);
                    copies(reader, self.overflow.clone(), room, |path, copy| {
                        sources.push(Source { name: path, text: copy.text, origin: Origin::File });
                    })
                }
                None => Outcome::default(),
            };
            unread.extend(unreached.into_iter().chain(without_room(&left_out)));
            let mut index = Index::new(sources, self.secret);
            index.leave_out(self.left_out.iter().cloned().chain(left_out));
            index.chunk(cores());
            *self.unread.lock().unwrap_or_else(PoisonError::into_inner) = unread;
            index
        })
    }

    /// Embeds the texts of the index until the call ends. Only the first call of this function has an effect.
    fn work_ahead(&self, embedder: Option<&Embedder>) {
        let Some(embedder) = embedder.filter(|_| !self.is_ahead.swap(true, Ordering::Relaxed)) else {
            return;
        };
        let index = self.index();
        loop {
            // A search embeds the texts that it needs, so an error is reported there.
            let pending = index.embed_some(embedder, 1, STEP).unwrap_or(0);
            if pending == 0 || self.has_ended.load(Ordering::Relaxed) {
                break;
            }
        }
    }

    /// Ends the work in the background thread.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Answers a call of the search function.
    fn answer(&self, arguments: &Value, most: usize, embedder: Option<&Embedder>) -> Result<Returned> {
        let text = |name: &str| {
            arguments.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
        };
        let number =
            |name: &str| arguments.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let max_tokens = most.min(MOST_TOKENS);
        let index = self.index();
        match (text("query"), text("source")) {
            (Some(query), _) => {
                let deadline = Instant::now() + PATIENCE;
                let ask = Ask { query, k: MOST_HITS, max_tokens, deadline, threads: cores() };
                let found = index.search(embedder, &ask)?;
                Ok(returned(found.text, found.hits.into_iter().map(|hit| hit.source)))
            }
            (None, Some(source)) => {
                let first = number("first_line").unwrap_or(1).max(1);
                let last = number("last_line").unwrap_or(first + LINES - 1);
                let passage = index.open(source, first, last, max_tokens)?;
                Ok(returned(passage.text, [passage.source]))
            }
            (None, None) => {
                let shown = quoted(arguments);
                Err(Error::bad_input(format!("the call names neither `query` nor `source`: {shown}"))
                    .hint("give `query` to search, or `source` with `first_line` and `last_line` to read"))
            }
        }
    }
}

/// Returns a result whose content comes from `files`.
fn returned(text: String, files: impl IntoIterator<Item = String>) -> Returned {
    let sources = Sources { memories: Vec::new(), files: files.into_iter().collect() };
    Returned { text, sources: sources.each_once() }
}

/// The files that were not added to the index.
#[derive(Default)]
struct Outcome {
    /// The files that could not be read, as the receipt shows them.
    skipped: Vec<Skipped>,
    /// The files for which the index has no room.
    left_out: Vec<LeftOut>,
    /// The documents that were not read because the call's budget was used up.
    unreached: Option<Skipped>,
}

/// Reads `files` and passes their copies to `take`, in order, as long as the texts have at most `room` bytes. Texts for
/// which there is no room are dropped. A file whose size already shows that there is no room is not read.
fn copies(
    reader: &FileReader,
    files: Vec<FoundFile>,
    mut room: usize,
    mut take: impl FnMut(String, Copy),
) -> Outcome {
    let (mut rest, mut outcome, mut unreached) = (files, Outcome::default(), Unreached::default());
    while !rest.is_empty() {
        let later = rest.split_off(look::batch(&rest));
        let batch = std::mem::replace(&mut rest, later);
        let may_fit = |found: &FoundFile| found.form != Form::Text || found.stat.size <= room as u64;
        let copies = on_all_cores(&batch, |found| may_fit(found).then(|| reader.copy(found)));
        for (found, copy) in batch.into_iter().zip(copies) {
            let bytes = match copy {
                Some(Ok(copy)) if copy.text.len() <= room => {
                    room -= copy.text.len();
                    take(found.path, copy);
                    continue;
                }
                Some(Err(why)) => {
                    outcome.skipped.extend(unreached.or_skipped(found.path, why));
                    continue;
                }
                Some(Ok(copy)) => copy.text.len(),
                None => usize::try_from(found.stat.size).unwrap_or(usize::MAX),
            };
            outcome.left_out.push(LeftOut { name: found.path, bytes });
        }
    }
    outcome.unreached = unreached.into_skipped();
    outcome
}

/// Returns the files for which the index has no room, as the receipt shows them.
fn without_room(left_out: &[LeftOut]) -> Option<Skipped> {
    let named: Vec<&str> = left_out.iter().take(NAMED).map(|left| left.name.as_str()).collect();
    let more = match left_out.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| Skipped {
        path: named.join(", ") + &more,
        why: "is left out of the search, because all texts together are too large".to_owned(),
    })
}

/// Returns the description of the function for the assistant.
pub fn function() -> Function {
    Function {
        name: NAME.to_owned(),
        description: "Searches the files that did not fit into the prompt and the attachments of this message. Give \
                      `query` (a question or words) to find passages, or `source` with lines to read part of a file."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "A question, words or names to find"},
                "source": {"type": "string", "description": "The path of a file to read instead"},
                "first_line": {"type": "integer"},
                "last_line": {"type": "integer"}
            }
        }),
    }
}

/// Returns the function with its implementation. Returns `None` if there is nothing to search.
pub async fn search(engine: &Arc<Engine>, attached: &Arc<Attached>) -> Result<Option<Callable>> {
    if attached.is_empty() {
        return Ok(None);
    }
    let embedder = {
        let engine = Arc::clone(engine);
        move || -> Option<Arc<Embedder>> {
            let embedding = tokio::runtime::Handle::current().block_on(engine.embedding());
            match embedding {
                Embedding::Ready(embedder) => Some(embedder),
                Embedding::Missing(_) => None,
            }
        }
    };
    let attached = Arc::clone(attached);
    Ok(Some(Callable {
        function: function(),
        run: Arc::new(move |arguments, most| {
            let (attached, load) = (Arc::clone(&attached), embedder.clone());
            Box::pin(async move {
                let ahead = (Arc::clone(&attached), load.clone());
                let work =
                    tokio::task::spawn_blocking(move || attached.answer(&arguments, most, load().as_deref()));
                let answer = work.await;
                drop(tokio::task::spawn_blocking(move || ahead.0.work_ahead(ahead.1().as_deref())));
                answer.unwrap_or_else(|_| {
                    Err(Error::new(
                        tiro_base::error::Kind::Io,
                        "the search broke off, which is a bug in Tiro",
                    ))
                })
            })
        }),
    }))
}
