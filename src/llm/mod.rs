//! Asks language models.
//!
//! A [`Provider`] comes from the configuration. A [`Client`] asks it: it keeps its deadline, limits what it reads,
//! repeats a failed request if that can help, and ends the request when it is dropped. This module knows nothing of
//! memories, budgets of answers, or the purpose of an answer. It spends money only as far as the caller reserved it.
//!
//! `convert` translates to genai, which knows the dialects of the services; `relay` makes the connection and says why.
//! Google's Vertex is left out, because its sign-in can't be tested here.

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

pub use client::{Client, OnFailure};
pub use request::{Call, Request, Turn};
pub use service::is_model;

/// Log directives that silence the libraries below, because they log keys, requests and answers.
pub const QUIET: &str = "genai=off,hyper=off,hyper_util=off,h2=off,reqwest=off,rustls=off";

/// A service that offers models, and the dialect it is asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// OpenAI's Chat Completions API.
    Openai,
    /// OpenAI's Responses API.
    OpenaiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// Ollama, in its own dialect.
    Ollama,
    /// Any server with OpenAI's Chat Completions API, such as llama.cpp or vLLM.
    OpenaiCompatible,
}

/// Where the key of a provider is. The key is read for each call and never kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// The provider needs no key.
    #[default]
    None,
    /// In the environment variable of this name.
    Variable(String),
    /// In this file, readable by its owner alone.
    File(PathBuf),
}

/// A configured model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// The name in the configuration.
    pub name: String,
    /// The service, which determines the dialect.
    pub service: Service,
    /// The base address, if it differs from the service's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The name of the model, as the service spells it.
    pub model: String,
    /// Where the key is.
    #[serde(default)]
    pub key: Key,
    /// Tokens of an answer at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<usize>,
    /// The temperature; it replaces the one that a request asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The context window in tokens of request and answer together, if the catalogue lacks it or is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// The price, if the catalogue lacks it or is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// For tokens that are sent.
    pub input: f64,
    /// For tokens that are received.
    pub output: f64,
}

/// An answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// The functions that the model wants to call.
    pub calls: Vec<Call>,
    /// Whether the answer was cut at its limit of tokens.
    pub is_cut: bool,
    /// The tokens that it took.
    pub usage: Usage,
    /// How many requests were sent, the first included.
    pub attempts: u32,
}

/// Numbers of tokens, as the provider reports them, or upper estimates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that were sent.
    pub input: u64,
    /// Tokens that were sent and read from the provider's cache.
    pub cached: u64,
    /// Tokens that were received.
    pub output: u64,
    /// Whether a number is an estimate, because the provider did not report it.
    pub is_estimate: bool,
}

/// What may be billed of a request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing: the request was not sent.
    Unsent,
    /// Nothing: the service refused the request.
    Refused,
    /// Everything: the service may have worked on the request.
    Lost,
}

/// A request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What may be billed.
    pub fate: Fate,
    /// Whether the request is about to be repeated.
    pub is_repeated: bool,
}
