//! The dialects of the services: how a request is written, and how an answer is read.
//!
//! A dialect is a pure pair. `post` makes the body of a request, and a [`Read`] reads the answer, either as a whole or
//! event by event. Nothing here knows about connections, keys or limits. Each dialect returns in [`Read::kept`] what
//! the service needs unchanged in the next request. If another dialect or another model kept this, the request has the
//! text and the calls instead.

mod anthropic;
mod chat;
mod embeddings;
mod gemini;
mod ollama;
mod parts;
mod responses;
mod schema;

pub(super) use self::parts::{
    Answer, Asked, Counts, Misread, Piece, Post, Read, Stop, made_id, most_output, read_arguments,
};

use super::catalogue;
use super::{Provider, Request, Service};

/// A dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// OpenAI's Chat Completions.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Anthropic,
    /// Gemini's.
    Gemini,
    /// Ollama's.
    Ollama,
    /// OpenAI's Embeddings.
    Embeddings,
}

impl Dialect {
    /// Returns the dialect in which `provider` is asked.
    pub fn of(provider: &Provider, request: &Request) -> Dialect {
        // OpenAI's newer models call no functions in Chat Completions. OpenAI itself has both dialects at one address.
        let needs_responses = || {
            catalogue::model(provider).is_some_and(|model| model.needs_responses)
                && provider.is_own_service()
                && has_functions(request)
        };
        match provider.service {
            _ if request.is_embedding => Dialect::Embeddings,
            Service::Openai if needs_responses() => Dialect::Responses,
            Service::Openai | Service::OpenaiCompatible => Dialect::Chat,
            Service::OpenaiResponses => Dialect::Responses,
            Service::Anthropic => Dialect::Anthropic,
            Service::Gemini => Dialect::Gemini,
            Service::Ollama => Dialect::Ollama,
        }
    }

    /// Returns what is sent. `author` is the name that marks the data that the model keeps: see [`author`].
    pub fn post(self, asked: &Asked<'_>, author: &str) -> Post {
        match self {
            Dialect::Chat => chat::post(asked, author),
            Dialect::Responses => responses::post(asked, author),
            Dialect::Anthropic => anthropic::post(asked, author),
            Dialect::Gemini => gemini::post(asked, author),
            Dialect::Ollama => ollama::post(asked, author),
            Dialect::Embeddings => embeddings::post(asked),
        }
    }

    /// Returns a reader of the answer.
    pub fn reader(self, asked: &Asked<'_>) -> Box<dyn Read> {
        match self {
            Dialect::Chat => Box::<chat::ChatReader>::default(),
            Dialect::Responses => Box::<responses::ResponsesReader>::default(),
            Dialect::Anthropic => Box::new(anthropic::AnthropicReader::new(asked)),
            Dialect::Gemini => Box::<gemini::GeminiReader>::default(),
            Dialect::Ollama => Box::<ollama::OllamaReader>::default(),
            Dialect::Embeddings => Box::new(embeddings::EmbeddingsReader),
        }
    }

    /// Returns whether the data that is kept has the ids of calls, too.
    pub fn keeps_ids(self) -> bool {
        matches!(self, Dialect::Responses | Dialect::Anthropic)
    }
}

/// Returns the name by which the data that a model keeps is marked. This data must not reach another model: only the
/// model that wrote it can read it, and nobody else should.
pub(super) fn author(provider: &Provider, dialect: Dialect) -> String {
    format!("{dialect:?} {} {}", provider.host(), provider.model)
}

/// Returns whether functions are involved, now or earlier in the conversation.
fn has_functions(request: &Request) -> bool {
    let has_called = |turn: &super::Turn| matches!(turn, super::Turn::Result { .. });
    !request.functions.is_empty() || request.turns.iter().any(has_called)
}
