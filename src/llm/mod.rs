//! Asking language models: who serves them, what is asked and what comes back.
//!
//! A provider is data: [`Provider`] comes from the configuration. [`Llm`] is what the rest of the house asks; it holds
//! its deadline, caps what it reads, tries again where that can help, and ends the request when it is dropped. Nothing
//! here knows memories, budgets of answers or what an answer is for, and nothing is asked that the caller did not
//! reserve money for.
//!
//! The dialects are genai's (`convert`); the connection is ours (`relay`, which says why). Google's Vertex is left
//! out, because its sign-in can't be tested here.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Result;

pub mod catalogue;
mod client;
mod convert;
mod failure;
mod relay;
mod service;
#[cfg(test)]
mod tests;

pub use client::{Client, Keys, OnFailure};
pub use service::is_model;

/// What the libraries beneath log is turned off by: keys, requests and answers are in it.
pub const QUIET: &str = "genai=off,hyper=off,hyper_util=off,h2=off,reqwest=off,rustls=off";

/// Who serves models, and in which of their dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// OpenAI's chat completions.
    Openai,
    /// OpenAI's responses.
    OpenaiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// A local Ollama, in its own dialect.
    Ollama,
    /// Any server that speaks OpenAI's chat completions: llama.cpp, vLLM.
    OpenaiCompatible,
}

/// Where a provider's key is found; it is resolved for each call and never kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// There is none.
    #[default]
    None,
    /// In the environment variable of this name.
    Variable(String),
    /// In this file, readable by its owner alone.
    File(PathBuf),
}

/// A configured model and who serves it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// What the user calls it.
    pub name: String,
    /// Who serves it.
    pub service: Service,
    /// The base address, where it isn't the service's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The model, as the service calls it.
    pub model: String,
    /// Where its key is found.
    #[serde(default)]
    pub key: Key,
    /// Tokens of an answer at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<usize>,
    /// Overrides the temperature that the use of the model asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Tokens of request and answer together, where the catalogue doesn't know or is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// What it costs, where the catalogue doesn't know or is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Of what is sent.
    pub input: f64,
    /// Of what comes back.
    pub output: f64,
}

/// Who says a part of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// The one who asks.
    User(String),
    /// The model, with the functions it called.
    Assistant {
        /// What it said.
        text: String,
        /// What it called.
        calls: Vec<Call>,
    },
    /// What a function returned.
    Result {
        /// Of which call.
        call: String,
        /// What it returned.
        text: String,
    },
}

/// A function the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What the model is told of it.
    pub description: String,
    /// Its arguments, as a JSON schema.
    pub parameters: serde_json::Value,
}

/// A call of a function by the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The id that its result must name.
    pub id: String,
    /// The function.
    pub name: String,
    /// The arguments.
    pub arguments: serde_json::Value,
}

/// What a model is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// What it is told to be.
    pub system: String,
    /// What was said so far, the question last.
    pub turns: Vec<Turn>,
    /// Functions it may call.
    pub functions: Vec<Function>,
    /// The JSON schema that the answer must match, with its name.
    pub schema: Option<(String, serde_json::Value)>,
    /// Tokens of the answer at most.
    pub max_output: usize,
    /// 0 to 2; the provider's own setting goes before it.
    pub temperature: Option<f64>,
}

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// The functions it wants called.
    pub calls: Vec<Call>,
    /// Whether the answer ended because it reached its limit.
    pub is_cut: bool,
    /// What it took.
    pub usage: Usage,
    /// How many requests it took, the first included.
    pub attempts: u32,
}

/// Tokens as the provider reports them; estimated, from above, where it doesn't.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Sent.
    pub input: u64,
    /// Of what was sent, read from the provider's cache.
    pub cached: u64,
    /// Received.
    pub output: u64,
    /// Whether the provider did not say and this is an estimate.
    pub is_estimate: bool,
}

/// What became of a request that brought no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It never left.
    Unsent,
    /// It was refused, which nobody bills.
    Refused,
    /// The service may have worked on it, and may bill that.
    Lost,
}

/// A request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What became of it.
    pub fate: Fate,
    /// Whether it is about to be repeated.
    pub is_repeated: bool,
}

/// An answer that is still being worked on; dropping it ends the request.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<Reply>> + Send + 'a>>;

/// A model that can be asked.
pub trait Llm: Send + Sync {
    /// Returns who it is.
    fn provider(&self) -> &Provider;

    /// Asks, and answers or fails within `deadline`, retries included. `on_text` is given the text as it comes; once
    /// it was given any, nothing is tried again.
    ///
    /// Errors with [`Kind::Provider`](crate::error::Kind::Provider), or as the finder of keys does; no error holds a key
    /// or a text of the request. A request that fails may still be charged for, and nobody says how much.
    fn ask<'a>(
        &'a self,
        request: &'a Request,
        deadline: Duration,
        on_text: Option<&'a (dyn Fn(&str) + Send + Sync)>,
    ) -> Asking<'a>;
}
