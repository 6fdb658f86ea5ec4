//! Asking language models: who serves them, what is asked and what comes back.
//!
//! A provider is data: [`Provider`] comes from the configuration. [`Client`] is what the rest of the house asks; it holds
//! its deadline, caps what it reads, tries again where that can help, and ends the request when it is dropped. Nothing
//! here knows memories, budgets of answers or what an answer is for, and nothing is asked that the caller did not
//! reserve money for.
//!
//! The dialects are genai's (`convert`); the connection is ours (`relay`, which says why). Google's Vertex is left
//! out, because its sign-in can't be tested here.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub mod catalogue;
mod client;
mod convert;
mod failure;
mod relay;
mod request;
mod service;
#[cfg(test)]
mod tests;

pub use client::{Client, Keys, OnFailure};
pub use request::{Call, Function, Request, Turn};
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
