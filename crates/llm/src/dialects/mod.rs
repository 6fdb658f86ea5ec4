//! The dialects of the services. A dialect is the format of requests and answers.
//!
//! A dialect has two pure parts: `post` makes the body of a request, and a [`Read`] reads the answer, either as a whole
//! or event by event. The dialects don't handle connections, keys or limits. [`Read::kept`] returns the data of an
//! answer that the service needs unchanged in the next request. If another dialect or another model made this data, the
//! request contains the text and the calls of the answer instead.

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
    /// Returns the dialect that is used for `provider`.
    pub fn of(provider: &Provider, request: &Request) -> Dialect {
        // OpenAI's newer models call no functions in Chat Completions. OpenAI's own service offers both dialects at the
        // same address.
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

    /// Returns the path, headers and body of the request. The data that the model wants back is kept under the name
    /// `author` (see [`author`]).
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

    /// Returns whether the kept data contains the ids of calls.
    pub fn keeps_ids(self) -> bool {
        matches!(self, Dialect::Responses | Dialect::Anthropic)
    }
}

/// Returns the name under which the data that a model wants back is kept. The data must not reach another model,
/// because only the model that wrote it can and should read it.
pub(super) fn author(provider: &Provider, dialect: Dialect) -> String {
    format!("{dialect:?} {} {}", provider.host(), provider.model)
}

/// Returns whether functions are involved, now or earlier in the conversation.
fn has_functions(request: &Request) -> bool {
    let has_called = |turn: &super::Turn| matches!(turn, super::Turn::Result { .. });
    !request.functions.is_empty() || request.turns.iter().any(has_called)
}
