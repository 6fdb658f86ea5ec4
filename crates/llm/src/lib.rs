//! Asks language models.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//!
//! A [`Provider`] comes from the configuration. A [`Client`] asks the provider. The client keeps to a deadline, limits
//! the size of answers, and repeats a failed request if a repetition can help. Dropping the future ends the request.
//! This crate doesn't know about memories, tools, or the purpose of a model's answer. The crate spends only money that
//! the caller has reserved.
//!
//! The module `dialects` writes requests and reads answers, as values. `transport` makes the connection. `reading`
//! divides an answer that comes in pieces into events. `reply` makes the result, and `failure` has the reasons why
//! there is none. The code for the dialects is our own, because the library that supports all of them reads answers of
//! any length, quotes answers in errors, and loses parts of a conversation that the services need back. Google's Vertex
//! is not supported, because its sign-in can't be tested here.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub mod catalogue;
mod client;
mod dialects;
mod failure;
mod reading;
mod reply;
mod request;
mod service;
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
mod thoughts;
mod transport;

pub use client::{Client, OnFailure};
pub use reading::OnText;
pub use request::{Call, Request, Turn};
pub use request::{Effort, Function, Image};
pub use service::is_model;

/// Directives for the log that silence the libraries used here, because these libraries log keys, requests and answers.
pub const QUIET: &str = "hyper=off,hyper_util=off,reqwest=off,rustls=off";

/// A service that offers models, together with its dialect.
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
    /// Ollama, in its own dialect rather than OpenAI's.
    Ollama,
    /// Any server with OpenAI's Chat Completions API, such as llama.cpp or vLLM.
    OpenaiCompatible,
}

/// The source of the key of a provider. The key is read for each call and never kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// The provider needs no key.
    #[default]
    None,
    /// The key is in the environment variable of this name.
    Variable(String),
    /// The key is in this file, which only its owner can read.
    File(PathBuf),
}

/// A configured model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provider {
    /// The name of the provider in the configuration.
    pub name: String,
    /// The service, which determines the dialect.
    pub service: Service,
    /// The base address, if it differs from the service's own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The name of the model, in the spelling of the service.
    pub model: String,
    /// Where the key comes from.
    #[serde(default)]
    pub key: Key,
    /// The maximum number of tokens that an answer may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<usize>,
    /// The temperature, which replaces the one that a request asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The context window, in tokens of request and answer together. Users set this field if the window of the model is
    /// missing or wrong in the catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// The price. Users set this field if the price of the model is missing or wrong in the catalogue.
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
    /// The vectors of the texts, each of length 1 and all with the same number of dimensions: see [`Request::embedding`].
    pub vectors: Vec<Vec<f32>>,
    /// The data that the service needs back unchanged in the next request; see [`Turn::Assistant`].
    pub kept: Option<serde_json::Value>,
    /// Whether the answer was cut off at its limit of tokens. The arguments of its last call may then be incomplete.
    pub is_cut: bool,
    /// How many tokens the request and the answer took.
    pub usage: Usage,
    /// How many requests were sent, including the first one.
    pub attempts: u32,
    /// Parameters of the request that were not sent, because the model doesn't accept them.
    pub left_out: Vec<&'static str>,
}

/// Numbers of tokens. The provider reports these numbers; a number that is not reported is an upper estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that were sent, including those that the provider read from its cache or wrote to it.
    pub input: u64,
    /// Tokens that were sent and that the provider read from its cache.
    pub cached: u64,
    /// Tokens that were sent and that the provider wrote to its cache, at a higher price.
    pub written: u64,
    /// Tokens that were received, including the tokens of thoughts.
    pub output: u64,
    /// Whether at least one of the numbers is an estimate, because the provider did not report it.
    pub is_estimate: bool,
}

/// How much of a failed request may be billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing may be billed, because the request was not sent.
    Unsent,
    /// Nothing may be billed, because the service refused the request.
    Refused,
    /// The whole request may be billed, because the service may have worked on it.
    Lost,
}

/// A request that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// How much of the request may be billed.
    pub fate: Fate,
    /// Whether the request will be repeated.
    pub is_repeated: bool,
}
