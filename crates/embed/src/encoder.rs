//! The encoders that embed texts: models on this machine, and models of providers.

use std::pin::Pin;
use std::sync::Arc;

use super::{Embedder, Model, SpaceId, embed_whole};
use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::{Content, MemoryId};

/// A vector of length 1, and its space.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding {
    /// The space.
    pub space: SpaceId,
    /// The numbers.
    pub vector: Vec<f32>,
}

/// A text to embed, and the memory that it is a part of.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The id of the memory.
    pub memory: MemoryId,
    /// The text.
    pub text: String,
}

/// The future that a method of an encoder returns.
pub type Encoded<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Turns texts into vectors.
pub trait Encode: Send + Sync {
    /// Returns the model if it is on this machine.
    fn model(&self) -> Option<Model>;

    /// Returns the name of the space. The name lacks the number of dimensions if this number is not known yet.
    fn name(&self) -> String;

    /// Returns the vector of a question. The vector can be compared with the vectors of texts.
    fn question(&self, question: String) -> Encoded<'_, Embedding>;

    /// Returns the vector of each text, in the order of the texts. All vectors belong to the same space. Uses up to
    /// `threads` threads.
    fn texts(&self, texts: Vec<Piece>, threads: usize) -> Encoded<'_, Vec<Embedding>>;

    /// Returns a description of what was sent to another machine since the last call of this method, with one line for
    /// each request.
    fn disclosures(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The encoder for prose and the encoder for code, which may be the same. An encoder that can't be used is missing.
#[derive(Clone, Default)]
pub struct Encoders<'e> {
    prose: Option<Arc<dyn Encode + 'e>>,
    code: Option<Arc<dyn Encode + 'e>>,
    is_divided: bool,
}

impl<'e> Encoders<'e> {
    /// Returns encoders that use `encoder` for all texts.
    pub fn one(encoder: Option<Arc<dyn Encode + 'e>>) -> Encoders<'e> {
        Encoders { code: encoder.clone(), prose: encoder, is_divided: false }
    }

    /// Returns encoders that use `prose` for prose and `code` for code.
    pub fn two(prose: Option<Arc<dyn Encode + 'e>>, code: Option<Arc<dyn Encode + 'e>>) -> Encoders<'e> {
        Encoders { prose, code, is_divided: true }
    }

    /// Returns the encoder of `content`.
    pub fn of(&self, content: Content) -> Option<&(dyn Encode + 'e)> {
        match content {
            Content::Prose => self.prose.as_deref(),
            Content::Code => self.code.as_deref(),
        }
    }

    /// Returns the kinds of content that have an encoder of their own. If all texts have the same encoder, the list is
    /// a single `None`.
    pub fn contents(&self) -> &'static [Option<Content>] {
        if self.is_divided { &[Some(Content::Prose), Some(Content::Code)] } else { &[None] }
    }

    /// Returns each encoder once.
    pub fn each(&self) -> impl Iterator<Item = &(dyn Encode + 'e)> {
        let code = self.code.as_deref().filter(|_| self.is_divided);
        self.prose.as_deref().into_iter().chain(code)
    }

    /// Returns the names of the spaces; `None` if there is no encoder.
    pub fn names(&self) -> Option<String> {
        let names: Vec<String> = self.each().map(Encode::name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Returns the spaces of prose and of code. If the number of dimensions of a provider is not known yet, asks the
    /// provider. Returns `None` if an encoder is missing.
    ///
    /// # Errors
    ///
    /// Errors if an encoder fails.
    pub async fn spaces(&self) -> Result<Option<[SpaceId; 2]>> {
        let (Some(prose), Some(code)) = (&self.prose, &self.code) else { return Ok(None) };
        let prose = prose.question("space".into()).await?.space;
        let code = match self.is_divided {
            true => code.question("space".into()).await?.space,
            false => prose.clone(),
        };
        Ok(Some([prose, code]))
    }
}

/// The loaded models on this machine, for prose and for code. A model is missing if it is not loaded, or if a provider
/// embeds such texts instead.
#[derive(Clone, Default)]
pub struct Loaded {
    /// The model for prose.
    pub prose: Option<Arc<Embedder>>,
    /// The model for code.
    pub code: Option<Arc<Embedder>>,
}

impl Loaded {
    /// Returns the model for `content`.
    pub fn of(&self, content: Content) -> Option<&Embedder> {
        match content {
            Content::Prose => self.prose.as_deref(),
            Content::Code => self.code.as_deref(),
        }
    }
}

/// A model on this machine, used as an encoder. It runs on blocking threads.
pub struct Local(pub Arc<Embedder>);

impl Encode for Local {
    fn model(&self) -> Option<Model> {
        Some(self.0.model())
    }

    fn name(&self) -> String {
        self.0.space().to_string()
    }

    fn question(&self, question: String) -> Encoded<'_, Embedding> {
        let embedder = Arc::clone(&self.0);
        let work = tokio::task::spawn_blocking(move || {
            let vector = embedder.embed_question(&question)?;
            Ok(Embedding { space: embedder.space().clone(), vector })
        });
        Box::pin(async { work.await.map_err(stopped)? })
    }

    fn texts(&self, texts: Vec<Piece>, threads: usize) -> Encoded<'_, Vec<Embedding>> {
        let embedder = Arc::clone(&self.0);
        let work = tokio::task::spawn_blocking(move || {
            let texts: Vec<&str> = texts.iter().map(|piece| piece.text.as_str()).collect();
            let vectors = embed_whole(&embedder, &texts, threads)?;
            let embedding = |vector| Embedding { space: embedder.space().clone(), vector };
            Ok(vectors.into_iter().map(embedding).collect())
        });
        Box::pin(async { work.await.map_err(stopped)? })
    }
}

fn stopped(error: tokio::task::JoinError) -> Error {
    Error::new(Kind::Model, "embedding stopped").source(error)
}
