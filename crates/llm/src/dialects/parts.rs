//! The types that all dialects share: the request with the properties of its model, the request as it is sent, and the
//! parts of an answer.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::super::catalogue::{self, Thinking};
use super::super::request::{Effort, Image, Request, Turn};
use super::super::{Provider, Service};

/// The maximum number of functions that an answer may call. Arbitrary: services allow at most this many functions in a
/// request.
const MOST_CALLS: usize = 128;

/// The beginning of the ids that Tiro gives to calls without an id.
const MADE_ID: &str = "tiro-call-";

/// The budgets for thinking, in tokens, for the efforts minimal, low, medium and high. The budgets are for models that
/// want a number instead of an effort. Arbitrary, but at least the 512 tokens that Gemini demands and the 1,024 tokens
/// that Anthropic demands.
const BUDGETS: [usize; 4] = [1_024, 2_048, 8_192, 24_576];

/// A request, with the properties of its model from the catalogue and the configuration.
pub(crate) struct Asked<'a> {
    /// The provider.
    pub provider: &'a Provider,
    /// The request.
    pub request: &'a Request,
    /// Whether the answer should come piece by piece.
    pub is_streamed: bool,
    /// The maximum number of tokens of the answer.
    pub max_output: Option<usize>,
    /// The temperature, if the model accepts one.
    pub temperature: Option<f64>,
    /// The amount of thinking that is asked for, if the model accepts such a setting.
    pub effort: Option<Effort>,
    /// The form in which the model is told how much to think.
    pub thinking: Thinking,
    /// Whether the answer can be made to match a schema.
    pub keeps_schema: bool,
    /// The context window to request from Ollama.
    pub window: Option<usize>,
}

impl<'a> Asked<'a> {
    /// Combines `request` with the properties of the model of `provider`.
    pub fn new(
        provider: &'a Provider,
        request: &'a Request,
        is_streamed: bool,
        window: Option<usize>,
    ) -> Asked<'a> {
        let model = catalogue::model(provider);
        let temperature = provider
            .temperature
            .or(request.temperature)
            .or(request.usual_temperature.filter(|_| model.is_some()))
            .filter(|_| model.is_none_or(|model| !model.fixed_temperature));
        Asked {
            provider,
            request,
            is_streamed,
            max_output: most_output(provider, request),
            temperature: temperature.map(|it| it.clamp(0.0, 2.0)),
            effort: request.effort.filter(|_| model.is_none_or(|model| model.thinking.is_some())),
            thinking: model.and_then(|model| model.thinking).unwrap_or(Thinking::Level),
            keeps_schema: model.is_none_or(|model| model.keeps_schema),
            window,
        }
    }

    /// Returns the word that tells the model how much to think.
    pub fn level(&self) -> Option<&'static str> {
        let is_minimal = catalogue::model(self.provider).is_some_and(|model| model.thinks_minimally);
        Some(match self.effort? {
            Effort::Minimal if is_minimal => "minimal",
            Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        })
    }

    /// Returns the budget for thinking in tokens. The budget is at most half of the tokens of the answer.
    pub fn budget(&self) -> Option<usize> {
        let budget = BUDGETS[self.effort? as usize];
        Some(self.max_output.map_or(budget, |most| budget.min(most / 2)))
    }

    /// Returns whether the schema is written into the system prompt. The schema is written there for services that
    /// can't make the answer match a schema while the model may call functions.
    pub fn tells_schema(&self) -> bool {
        let service = self.provider.service;
        self.request.schema.is_some()
            && !self.request.functions.is_empty()
            && (service == Service::Ollama
                || (service == Service::Gemini && self.thinking == Thinking::Budget))
    }

    /// Returns the system prompt. It contains the schema if [`Asked::tells_schema`].
    pub fn system(&self) -> Cow<'a, str> {
        match &self.request.schema {
            Some((_, schema)) if self.tells_schema() => {
                let told = format!("Your final answer must be JSON that matches this schema: {schema}");
                let both = [self.request.system.as_str(), &told];
                let parts: Vec<&str> = both.into_iter().filter(|part| !part.is_empty()).collect();
                parts.join("\n\n").into()
            }
            _ => Cow::from(&self.request.system),
        }
    }

    /// Returns whether thinking must be switched off, because the model refuses to call functions in Chat Completions
    /// while it thinks.
    pub fn must_not_think(&self) -> bool {
        let needs_responses = catalogue::model(self.provider).is_some_and(|model| model.needs_responses);
        needs_responses && !self.request.functions.is_empty()
    }

    /// Returns whether OpenAI is told not to write the request to its cache, because writing would cost money.
    pub fn avoids_cache(&self) -> bool {
        let charges = catalogue::model(self.provider).is_some_and(|model| model.charges_writes);
        charges && !self.request.keeps_prefix && self.provider.is_own_service()
    }
}

/// Returns the maximum number of tokens of the answer; `None` if there is no limit.
pub(crate) fn most_output(provider: &Provider, request: &Request) -> Option<usize> {
    let asked = Some(request.max_output).filter(|most| *most > 0);
    let known = catalogue::model(provider).and_then(|model| model.max_output);
    [asked, provider.max_output, known].into_iter().flatten().min()
}

/// The members of a body that tell a model how much to think, in all dialects.
const EFFORTS: [&str; 6] = [
    "/reasoning_effort",
    "/reasoning/effort",
    "/thinking",
    "/think",
    "/generationConfig/thinkingConfig",
    "/output_config/effort",
];

/// A request in the form in which it is sent.
#[derive(Debug)]
pub(crate) struct Post {
    /// The path, which is appended to the base address, with its query.
    pub path: String,
    /// The headers, except the one with the key.
    pub headers: &'static [(&'static str, &'static str)],
    /// The body.
    pub body: Value,
}

impl Post {
    /// Removes a parameter from the body. Returns whether it was there.
    pub fn remove(&mut self, parameter: &str) -> bool {
        let mut is_removed = false;
        for place in ["", "/options", "/generationConfig"] {
            let members = self.body.pointer_mut(place).and_then(Value::as_object_mut);
            is_removed |= members.is_some_and(|members| members.remove(parameter).is_some());
        }
        is_removed
    }

    /// Returns whether the body tells the model how much to think.
    pub fn tells_effort(&self) -> bool {
        EFFORTS.iter().any(|place| self.body.pointer(place).is_some_and(|level| level != "none"))
    }
}

/// The reason why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The answer is finished, or the model calls functions.
    Done,
    /// The answer reached its limit of tokens.
    Cut,
    /// A content filter withheld the rest, or the model refused.
    Withheld,
}

/// A call of a function, as far as it has arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Piece {
    /// The place of the call within the answer.
    pub key: u64,
    /// The id; empty if the service gives none.
    pub id: String,
    /// The name of the function.
    pub name: String,
    /// The arguments as text.
    pub arguments: String,
}

/// Numbers of tokens that a service reported.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// Tokens that were sent.
    pub input: Option<u64>,
    /// Input tokens that were read from the cache.
    pub cached: Option<u64>,
    /// Input tokens that were written to the cache.
    pub written: Option<u64>,
    /// Tokens that were received.
    pub output: Option<u64>,
}

impl Counts {
    /// Replaces the numbers that `newer` has.
    pub fn update(&mut self, newer: Counts) {
        self.input = newer.input.or(self.input);
        self.cached = newer.cached.or(self.cached);
        self.written = newer.written.or(self.written);
        self.output = newer.output.or(self.output);
    }
}

/// An answer as far as it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Answer {
    /// The text.
    pub text: String,
    /// The calls.
    pub calls: Vec<Piece>,
    /// The vectors of the texts, each of length 1, if the request was for embeddings.
    pub vectors: Vec<Vec<f32>>,
    /// The reason why the model stopped; `None` if the service has not said it yet.
    pub stop: Option<Stop>,
    /// The numbers of tokens.
    pub counts: Counts,
}

impl Answer {
    /// Returns the call at a place of the answer. If there is none, a new call begins.
    pub fn call(&mut self, key: u64) -> Result<&mut Piece, Misread> {
        match self.calls.iter().position(|piece| piece.key == key) {
            Some(place) => Ok(&mut self.calls[place]),
            None if self.calls.len() >= MOST_CALLS => Err(Misread::Unreadable),
            None => {
                self.calls.push(Piece { key, ..Piece::default() });
                Ok(self.calls.last_mut().expect("a call was added"))
            }
        }
    }

    /// Returns the number of bytes of the text and of the arguments of the calls.
    pub fn size(&self) -> usize {
        self.text.len() + self.calls.iter().map(|piece| piece.arguments.len()).sum::<usize>()
    }
}

/// The reason why an answer can't be read.
#[derive(Debug, PartialEq)]
pub(crate) enum Misread {
    /// The answer is not in the dialect.
    Unreadable,
    /// The answer reports an error.
    Reported(Value),
}

/// Reads an answer in one dialect: either its whole body, or its events.
pub(crate) trait Read: Send {
    /// Reads a whole answer.
    fn whole(&mut self, answer: &mut Answer, body: &Value) -> Result<(), Misread>;

    /// Reads one event of an answer that comes in pieces. Returns whether the event was the last one.
    fn event(&mut self, answer: &mut Answer, event: &Value) -> Result<bool, Misread>;

    /// Returns the data, besides text and calls, that the service needs back in the next request. Called after the
    /// answer was read.
    fn kept(&mut self, answer: &Answer) -> Option<Value>;
}

/// Returns a member that is a text.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}

/// Returns a member that is a list. Returns an empty list if it is missing.
pub(super) fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the number at a path such as `/usage/input_tokens`.
pub(super) fn number(value: &Value, path: &str) -> Option<u64> {
    value.pointer(path)?.as_u64()
}

/// Returns arguments as text. Some services send the arguments as text, others send them as an object.
pub(super) fn as_text(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns arguments as the object that every dialect demands. Anything else becomes its only member.
pub(super) fn as_object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => json!({}),
        other => json!({"arguments": other}),
    }
}

/// Parses arguments as JSON. Returns them as a string if they are not JSON.
pub(crate) fn read_arguments(text: &str) -> Value {
    match text.trim() {
        "" => json!({}),
        json => serde_json::from_str(json).unwrap_or_else(|_| Value::String(text.to_owned())),
    }
}

/// Returns the bytes of an image in Base64.
pub(super) fn base64(image: &Image) -> String {
    STANDARD.encode(&image.bytes)
}

/// Returns an image as a `data:` URL, which contains the bytes.
pub(super) fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.media_type, base64(image))
}

/// Returns the text of a result. If the function failed, the text says so, because some dialects can't say it in
/// another way.
pub(super) fn result_text(text: &str, is_error: bool) -> Cow<'_, str> {
    if is_error { format!("Error: {text}").into() } else { text.into() }
}

/// Returns an id for a call to which the service gave none. `earlier` is the number of calls before it.
pub(crate) fn made_id(earlier: usize) -> String {
    format!("{MADE_ID}{earlier}")
}

/// Returns the id of a call; `None` if Tiro made this id.
pub(super) fn own_id(id: &str) -> Option<&str> {
    Some(id).filter(|id| !id.starts_with(MADE_ID))
}

/// Returns the names of the functions that were called, by the ids of the calls.
pub(super) fn names(request: &Request) -> HashMap<&str, &str> {
    let calls = request.turns.iter().flat_map(|turn| match turn {
        Turn::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    calls.map(|call| (call.id.as_str(), call.name.as_str())).collect()
}

/// Returns the kept data of an earlier answer, if the same model wrote that answer.
pub(super) fn kept<'v>(kept: &'v Option<Value>, author: &str) -> Option<&'v Value> {
    let kept = kept.as_ref()?;
    if text(kept, "of")? == author { kept.get("parts") } else { None }
}
