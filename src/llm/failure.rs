//! Why a model did not answer, and what of it may be told.
//!
//! What a service writes into an error is not repeated: some echo the key or the request. One word of it may be, the
//! kind or code that services name errors by, and only if it stands in neither.

use std::time::Duration;

use serde_json::Value;

use super::{Fate, Provider, Request, Service};
use crate::error::{Error, Kind};

/// The longest word of a service's error that is repeated. Arbitrary.
const LONGEST_WORD: usize = 48;

/// What is said of a connection that ended when the request may have been read.
pub(super) const CLOSED: &str = "the connection was closed before an answer came";
pub(super) const TIMED_OUT: &str = "the connection timed out";

/// A wait beyond it is told as more than this, in seconds: a year.
const ENDLESS: f64 = 31_536_000.0;

/// Why one request failed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Failure {
    /// What was found as its key can't be sent as one.
    NoKey,
    /// No connection, or it ended before an answer began.
    Unreachable(&'static str),
    /// The service refused, with a word of its own and how long it asks to be left alone.
    Status { status: u16, word: Option<String>, wait: Option<Duration> },
    /// The service reported an error in the middle of an answer.
    Reported(Option<String>),
    /// The answer ended before its end.
    BrokenOff,
    /// The answer is larger than this limit, in bytes.
    TooLarge(u64),
    /// The answer is not in the dialect of the service.
    Unreadable,
    /// The answer holds neither text nor a call; whether it reached its limit.
    Empty { is_cut: bool },
    /// The service's filter withheld the answer.
    Withheld,
}

impl Failure {
    /// Returns the failure that a refusal is, given the word that its body names it by.
    pub(super) fn of_status(status: u16, word: Option<String>, wait: Option<Duration>) -> Failure {
        Failure::Status { status, word, wait }
    }

    /// Returns whether the same request may succeed later.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Failure::Unreachable(_) | Failure::BrokenOff => true,
            Failure::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..=599),
            Failure::Reported(word) => word.as_deref().is_some_and(|word| {
                ["overloaded", "rate_limit", "server_error", "UNAVAILABLE", "api_error"]
                    .iter()
                    .any(|passing| word.contains(passing))
            }),
            Failure::NoKey
            | Failure::TooLarge(_)
            | Failure::Unreadable
            | Failure::Empty { .. }
            | Failure::Withheld => false,
        }
    }

    /// Returns what became of the request, as far as money goes.
    pub(super) fn fate(&self) -> Fate {
        match self {
            Failure::NoKey => Fate::Unsent,
            Failure::Unreachable(why) if ![CLOSED, TIMED_OUT].contains(why) => Fate::Unsent,
            // The service, or who stands before it, gave up waiting: it may have been at work.
            Failure::Status { status: 408 | 499, .. } => Fate::Lost,
            Failure::Status { status: 300..=499, .. } => Fate::Refused,
            _ => Fate::Lost,
        }
    }

    /// Returns whether the key was refused.
    pub(super) fn is_unauthorized(&self) -> bool {
        matches!(self, Failure::Status { status: 401, .. })
    }

    /// Returns how long the service asks to be left alone.
    pub(super) fn wait(&self) -> Option<Duration> {
        match self {
            Failure::Status { wait, .. } => *wait,
            _ => None,
        }
    }

    /// Returns the error that is shown, after so many requests.
    pub(super) fn error(&self, provider: &Provider, attempts: u32) -> Error {
        let mut said = format!("provider `{}` {}", provider.name, self.reason(provider));
        if attempts > 1 {
            said += &format!(", {attempts} requests in all");
        }
        let error = Error::new(Kind::Provider, said).wait(self.wait());
        match self.way_out(provider) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    fn reason(&self, provider: &Provider) -> String {
        match self {
            Failure::NoKey => {
                "was not asked: what was found as its key holds line feeds or the like".to_owned()
            }
            Failure::Unreachable(why) => format!("could not be reached at {}: {why}", provider.host()),
            Failure::Status { status: 404, word, .. } => {
                format!(
                    "has no model `{}`: it answered {}",
                    provider.model,
                    status_line(404, word.as_deref())
                )
            }
            Failure::Status { status: status @ 300..=399, .. } => {
                format!("answered {status}: a redirection, which is not followed")
            }
            Failure::Status { status, word, .. } => {
                format!("answered {}", status_line(*status, word.as_deref()))
            }
            Failure::Reported(Some(word)) => format!("reported an error within its answer, `{word}`"),
            Failure::Reported(None) => "reported an error within its answer".to_owned(),
            Failure::BrokenOff => "broke off in the middle of its answer".to_owned(),
            Failure::TooLarge(limit) => format!("sent more than {} MiB, which no answer needs", limit >> 20),
            Failure::Unreadable => {
                format!("answered something else than {}", provider.service.dialect())
            }
            Failure::Empty { is_cut: false } => "gave an empty answer".to_owned(),
            Failure::Empty { is_cut: true } => {
                "gave an empty answer: it reached its limit of tokens before it said anything".to_owned()
            }
            Failure::Withheld => "withheld its answer: its filter objected".to_owned(),
        }
    }

    fn way_out(&self, provider: &Provider) -> Option<String> {
        Some(match self {
            Failure::Unreachable(_) if provider.is_local() => match provider.service {
                Service::Ollama => "start it: `ollama serve`".to_owned(),
                _ => "start the server that listens there, or name another endpoint".to_owned(),
            },
            Failure::Status { status: 401 | 403, .. } => {
                format!(
                    "check the key that `{}` names, and that it may use `{}`",
                    provider.name, provider.model
                )
            }
            Failure::Status { status: 404, .. } if provider.service == Service::Ollama => {
                format!("`ollama pull {}`, or name a model that `ollama list` shows", provider.model)
            }
            Failure::Status { status: 404, .. } => {
                "name a model that the service offers; it may have dropped this one, and a wrong endpoint \
                 answers the same"
                    .to_owned()
            }
            Failure::Status { status: 300..=399, .. } => {
                "name the address it redirects to as the endpoint".to_owned()
            }
            Failure::Status { status: 402, .. } => "the service wants to be paid first".to_owned(),
            Failure::Unreadable => "check service and endpoint: they must belong together".to_owned(),
            Failure::Empty { is_cut: true } => "allow more tokens with `max_output`".to_owned(),
            _ => return None,
        })
    }
}

/// Returns the error of a call whose time ran out, `received` bytes into an answer.
pub(super) fn late(provider: &Provider, deadline: Duration, received: u64) -> Error {
    let seconds = (deadline.as_secs_f64() * 10.0).round() / 10.0;
    let said = match received {
        0 => format!("provider `{}` did not answer within {seconds} s", provider.name),
        _ => format!(
            "provider `{}` was still sending after {seconds} s, {received} bytes so far",
            provider.name
        ),
    };
    Error::new(Kind::Provider, said)
}

/// Returns the error of a service that asks to be left alone for longer than there is time.
pub(super) fn too_long(
    failure: &Failure,
    wait: Duration,
    left: Duration,
    provider: &Provider,
    attempts: u32,
) -> Error {
    let error = failure.error(provider, attempts);
    let (wait, left) = (wait.as_secs_f64().ceil(), left.as_secs_f64().floor());
    let wait = if wait > ENDLESS { "more than a year".to_owned() } else { format!("{wait} s") };
    Error::new(Kind::Provider, format!("{error}; the next may follow in {wait}, and {left} s are left"))
        .wait(failure.wait())
        .hint("try again later, or allow another provider")
}

/// Returns the error of a request that was not repeated because of `why`.
pub(super) fn not_repeated(failure: &Failure, why: &Error, provider: &Provider, attempts: u32) -> Error {
    let error = failure.error(provider, attempts);
    let told = Error::new(why.kind(), format!("{error}; it was not asked again: {why}")).wait(failure.wait());
    match why.way_out() {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

/// Returns the word that names the error in a service's body, unless it says something of the key or the request.
pub(super) fn word(body: &Value, key: Option<&str>, request: &Request) -> Option<String> {
    let error = body.get("error").unwrap_or(body);
    // Gemini's `code` is the number of the status, its `status` the word.
    ["code", "type", "status"].iter().find_map(|field| {
        let word = error.get(field)?.as_str()?;
        let is_word = (3..=LONGEST_WORD).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b'.'));
        let is_of_key = key.is_some_and(|key| key.contains(word) || word.contains(key));
        let is_of_request = request.texts().any(|text| text.contains(word));
        (is_word && !is_of_key && !is_of_request).then(|| word.to_owned())
    })
}

fn status_line(status: u16, word: Option<&str>) -> String {
    let known = hyper::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut line = status.to_string();
    if let Some(reason) = known {
        line += &format!(" {reason}");
    }
    if let Some(word) = word {
        line += &format!(" (`{word}`)");
    }
    line
}
