//! The write path: redact → chunk → count → index and embed → store.
//!
//! A text is redacted before anything else reads it. A write never waits for the embedding model: if the model is not
//! loaded or the text is long, the chunks are stored as pending. A search finds pending chunks by their words at once.
//!
//! After the write, the store learns what the new memories correct ([`supersede`]).

pub mod supersede;

use tiro_base::error::Result;
use tiro_base::memory::Content;
use tiro_base::memory::{Draft, MemoryId, Millis};
use tiro_base::scope::Scope;
use tiro_embed::{Loaded, embed_whole};
use tiro_intake::prepare::{Prepared, embedded_text, prepare_all};
use tiro_redact::Redactor;
use tiro_store::{Outcome, PreparedMemory, Receipt, Store};

/// The maximum number of chunks that a write embeds, which takes about 20 ms. Arbitrary.
const EMBEDDED_AT_ONCE: usize = 8;

/// The result of a write.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// The store's result for each memory.
    pub receipt: Receipt,
    /// How many secrets each rule replaced, in the order of the rules' names.
    pub redactions: Vec<(String, usize)>,
    /// The memories with statements that the drafts correct.
    pub corrected: Vec<MemoryId>,
}

/// Stores `drafts` in order and returns the result for each. When this function returns, the drafts are durable.
///
/// `fresh` returns a random key for each draft without an identity. `on_batch` is called with the number of drafts
/// that are durable so far.
#[expect(clippy::too_many_arguments, reason = "a struct of these arguments would serve only this call")]
pub async fn remember(
    store: &dyn Store,
    scope: &Scope,
    redactor: &Redactor,
    loaded: &Loaded,
    drafts: Vec<Draft>,
    now: Millis,
    mut fresh: impl FnMut() -> [u8; 16],
    mut on_batch: impl FnMut(usize) + Send,
) -> Result<Remembered> {
    let Prepared { memories, redactions } = prepared(redactor, loaded, drafts, &mut fresh);
    let (receipt, corrected) = save(store, scope, memories, now, &mut on_batch).await?;
    Ok(Remembered { receipt, redactions, corrected })
}

/// Stores prepared memories, and then which earlier statements they correct. When this function returns, both are
/// durable. Also returns the memories with the corrected statements. `on_batch` is called with the number of memories that
/// are durable so far.
pub async fn save(
    store: &dyn Store,
    scope: &Scope,
    memories: Vec<PreparedMemory>,
    now: Millis,
    on_batch: &mut (dyn FnMut(usize) + Send),
) -> Result<(Receipt, Vec<MemoryId>)> {
    let correcting: Vec<bool> = memories.iter().map(supersede::may_correct).collect();
    let receipt = store.save_reporting(scope, memories, now, on_batch).await?;
    let stored = receipt.outcomes.iter().zip(correcting);
    let stored = stored.filter(|((_, outcome), corrects)| *corrects && *outcome == Outcome::Stored);
    let corrected = supersede::supersede(store, scope, stored.map(|((id, _), _)| id.clone()).collect()).await;
    Ok((receipt, corrected))
}

/// Prepares `drafts` as [`prepare_all`] does. If a model is loaded and the chunks are few, they are embedded.
pub fn prepared(
    redactor: &Redactor,
    loaded: &Loaded,
    drafts: Vec<Draft>,
    fresh: &mut impl FnMut() -> [u8; 16],
) -> Prepared {
    let mut prepared = prepare_all(redactor, drafts, fresh);
    embed_few(loaded, &mut prepared.memories);
    prepared
}

/// Embeds the chunks if they are few. If they are many or embedding fails, they stay pending.
fn embed_few(loaded: &Loaded, memories: &mut [PreparedMemory]) {
    let chunks = memories.iter().map(|memory| memory.chunks.len()).sum::<usize>();
    if chunks > EMBEDDED_AT_ONCE {
        return;
    }
    for content in [Content::Prose, Content::Code] {
        let Some(embedder) = loaded.of(content) else { continue };
        let own = |memory: &&mut PreparedMemory| memory.draft.kind.content() == content;
        let texts = memories.iter_mut().filter(own).flat_map(|memory| {
            memory.chunks.iter().map(|chunk| embedded_text(memory, chunk)).collect::<Vec<_>>()
        });
        let texts: Vec<String> = texts.collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let Ok(embeddings) = embed_whole(embedder, &texts, 1) else { continue };
        let chunks = memories.iter_mut().filter(own).flat_map(|memory| &mut memory.chunks);
        for (chunk, embedding) in chunks.zip(embeddings) {
            chunk.embedding = Some((embedder.space().to_string(), embedding));
        }
    }
}
