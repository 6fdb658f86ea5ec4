//! The encoders of a project's texts: models on this machine, and providers that the user named for embedding.
//!
//! A provider's embeddings are stored under a keyed hash of their texts, so that no text is paid for twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Bill, ask_one, known};
use crate::caller::Caller;
use crate::config::{Configured, Encoding, Options};
use crate::engine::{self, Engine};
use tiro_base::error::{Error, Kind, Result, partial};
use tiro_base::memory::{Content, MemoryId};
use tiro_embed::{Encode, Encoded, Encoders, Local, Model, Piece, SpaceId};
use tiro_llm::{Request, Service};
use tiro_store::{Matter, Purpose, Sources};

/// The longest time that a provider may take for a question. If the request fails, it is not repeated, because a search
/// waits for it. Arbitrary: services take some tenths of a second.
const QUESTION: Duration = Duration::from_millis(2_500);

/// The longest time that a provider may take for the texts of one call. The lease on embedding lasts two seconds
/// longer.
const TEXTS: Duration = Duration::from_secs(8);

/// The maximum number of texts in a request. Arbitrary: with 3,072 numbers for each text, the answer has 2 MB.
const TEXTS_AT_ONCE: usize = 32;

/// Returns whether the current configuration allows asking a provider to embed a question.
pub fn may_ask_to_embed(engine: &Engine) -> bool {
    let sources = &engine.config().sources;
    let Ok(options) = sources.options() else { return false };
    let is_provider = |content| matches!(sources.encoding(&options, content), Ok(Encoding::Provider(_)));
    is_provider(Content::Prose) || is_provider(Content::Code)
}

/// Reads the configuration again, and returns the encoders of the caller's texts. If an encoder is missing, adds the
/// reason to `notices`. Searches then work by words.
pub async fn encoders<'e>(engine: &'e Engine, caller: &'e Caller, notices: &mut Vec<String>) -> Encoders<'e> {
    let sources = &engine.config().sources;
    let read = sources.options().map(|options| {
        let [prose, code] =
            [Content::Prose, Content::Code].map(|content| sources.encoding(&options, content));
        (options, prose, code)
    });
    let (options, prose, code) = match read {
        Ok(read) => read,
        Err(error) => {
            notices.push(partial::notice(lexical(&error)));
            return Encoders::default();
        }
    };
    if let (Ok(prose), Ok(code)) = (&prose, &code)
        && prose == code
    {
        return Encoders::one(encoder(engine, caller, &options, prose, notices).await);
    }
    let mut found = Vec::new();
    for encoding in [prose, code] {
        found.push(match encoding {
            Ok(encoding) => encoder(engine, caller, &options, &encoding, notices).await,
            Err(error) => {
                notices.push(partial::notice(lexical(&error)));
                None
            }
        });
    }
    let code = found.pop().flatten();
    Encoders::two(found.pop().flatten(), code)
}

async fn encoder<'e>(
    engine: &'e Engine,
    caller: &'e Caller,
    options: &Options,
    encoding: &Encoding,
    notices: &mut Vec<String>,
) -> Option<Arc<dyn Encode + 'e>> {
    let model = match encoding {
        Encoding::Local(name) => engine.model(name.as_deref()),
        Encoding::Provider(configured) => {
            let (configured, options) = (configured.as_ref().clone(), options.clone());
            let (bill, told) = (Bill::default(), AtomicUsize::new(0));
            return Some(Arc::new(Remote { engine, caller, configured, options, bill, told }));
        }
    };
    let embedding = match model {
        Ok(model) => engine.embedding_by(model).await,
        Err(error) => engine::Embedding::Missing(partial::notice(lexical(&error))),
    };
    match embedding {
        engine::Embedding::Ready(embedder) => Some(Arc::new(Local(embedder))),
        engine::Embedding::Missing(notice) => {
            notices.push(notice);
            None
        }
    }
}

fn lexical(error: &Error) -> String {
    format!("lexical search only: {}", error.with_hint())
}

/// A provider that is used as an encoder.
struct Remote<'e> {
    engine: &'e Engine,
    caller: &'e Caller,
    configured: Configured,
    options: Options,
    bill: Bill,
    /// The number of lines of the bill that were already returned.
    told: AtomicUsize,
}

impl Remote<'_> {
    /// Returns the embeddings of `texts`. These are parts of `memories`, in the same order; for a question, `memories`
    /// is empty. Embeddings that are not stored are requested within `deadline`, and then stored. A failed request is
    /// repeated up to `retries` times.
    async fn embed(
        &self,
        texts: Vec<String>,
        memories: &[MemoryId],
        deadline: Duration,
        retries: u32,
    ) -> Result<Vec<tiro_embed::Embedding>> {
        let end = Instant::now() + deadline;
        let installation = self.engine.begin_installation().await?;
        // A stored text contains no secrets, but a question may contain some.
        let texts: Vec<String> =
            texts.iter().map(|text| known::redacted(&installation.redactor, text)).collect();
        let space = self.name();
        let key = |text: &String| {
            let mut hasher = blake3::Hasher::new_keyed(&installation.secret);
            hasher.update(space.as_bytes()).update(&[0]).update(text.as_bytes());
            *hasher.finalize().as_bytes()
        };
        let keys: Vec<[u8; 32]> = texts.iter().map(key).collect();
        let project = self.caller.project(self.engine).await?;
        let (store, scope) = (project.store.as_ref(), &project.scope);
        let mut found = store.cached_embeddings(scope, keys.clone()).await?;
        let missing: Vec<usize> = (0..texts.len()).filter(|place| found[*place].is_none()).collect();
        for places in missing.chunks(TEXTS_AT_ONCE) {
            let asked = places.iter().map(|place| texts[*place].clone());
            let left = end.saturating_duration_since(Instant::now());
            // If the process ended after the request and before the embeddings are stored, the texts would be paid for
            // twice.
            let _finished = self.engine.begin_to_finish()?;
            let of = places.iter().filter_map(|place| memories.get(*place)).map(|id| id.as_str().to_owned());
            let purpose = if memories.is_empty() { Purpose::Question } else { Purpose::Texts };
            let matter = Matter::of(purpose, Sources::memories(of));
            let vectors = self.ask(asked.collect(), &matter, left, retries).await?;
            let entries: Vec<([u8; 32], Vec<f32>)> =
                places.iter().map(|place| keys[*place]).zip(vectors.iter().cloned()).collect();
            project.books.cache_embeddings(scope, entries).await?;
            for (place, vector) in places.iter().zip(vectors) {
                found[*place] = Some(vector);
            }
        }
        let vectors: Vec<Vec<f32>> = found.into_iter().flatten().collect();
        let embedding = |vector: Vec<f32>| {
            let space = SpaceId::new(format!("{space}/{}", vector.len()));
            tiro_embed::Embedding { space, vector }
        };
        Ok(vectors.into_iter().map(embedding).collect())
    }

    /// Asks the provider for the vectors of `texts`.
    async fn ask(
        &self,
        texts: Vec<String>,
        matter: &Matter,
        deadline: Duration,
        retries: u32,
    ) -> Result<Vec<Vec<f32>>> {
        let provider = &self.configured.provider;
        if matches!(provider.service, Service::Anthropic | Service::Gemini) {
            let message = format!("provider `{}` can't be asked for embeddings", provider.name);
            return Err(Error::new(Kind::Provider, message)
                .hint("name one with OpenAI's Embeddings API: openai, ollama or openai-compatible"));
        }
        let request = Request::embedding(texts);
        let Remote { engine, caller, configured, bill, .. } = self;
        let options = Options { max_retries: retries.min(self.options.max_retries), ..self.options.clone() };
        let answered =
            ask_one(engine, caller, &options, configured, matter, &request, deadline, bill, None).await?;
        Ok(answered.reply.vectors)
    }
}

impl Encode for Remote<'_> {
    fn model(&self) -> Option<Model> {
        None
    }

    fn name(&self) -> String {
        format!("{}/{}", self.configured.provider.host(), self.configured.provider.model)
    }

    fn question(&self, question: String) -> Encoded<'_, tiro_embed::Embedding> {
        Box::pin(async {
            let embedded = self.embed(vec![question], &[], QUESTION, 0).await?;
            embedded.into_iter().next().ok_or_else(|| Error::new(Kind::Provider, "there is no embedding"))
        })
    }

    fn texts(&self, texts: Vec<Piece>, _: usize) -> Encoded<'_, Vec<tiro_embed::Embedding>> {
        Box::pin(async move {
            let (memories, texts): (Vec<MemoryId>, Vec<String>) =
                texts.into_iter().map(|piece| (piece.memory, piece.text)).unzip();
            self.embed(texts, &memories, TEXTS, self.options.max_retries).await
        })
    }

    fn disclosures(&self) -> Vec<String> {
        let lines = self.bill.disclosures();
        let told = self.told.swap(lines.len(), Ordering::Relaxed);
        lines.into_iter().skip(told).collect()
    }
}
