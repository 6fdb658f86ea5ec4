//! The reasons why a model did not answer, in words that are safe to show.
//!
//! The text of a service's error is never repeated, because some services include the key or the request in it. Only
//! the kind or the code of the error may be repeated, and only if the kind or code occurs neither in the key nor in the
//! request.

use std::time::Duration;

use serde_json::Value;

use super::Fate;
use super::Provider;
use super::Request;
use super::Service;
use tiro_base::error::{Error, Kind};

/// The code of a service's error is shown only if it has at most this many characters. Arbitrary.
const LONGEST_WORD: usize = 48;

/// Shown when a connection ended before an answer came. The service may still have read the request.
pub(super) const CLOSED: &str = "the connection was closed before an answer came";
/// Shown when making a connection took too long, or when a connection was silent for too long.
pub(super) const TIMED_OUT: &str = "the connection timed out";

/// If a service asks us to wait for more than this many seconds (a year), the error says "more than a year".
const ENDLESS: f64 = 31_536_000.0;

/// The optional parameters of a request, in all dialects.
const OPTIONAL: [&str; 8] = [
    "temperature",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "think",
    "thinkingConfig",
    "prompt_cache_key",
    "stream_options",
];

/// The reason why a request failed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Failure {
    /// The key contains characters that can't be in a header.
    NoKey,
    /// No connection was made, or the connection ended before an answer began. The text says why.
    Unreachable(&'static str),
    /// The service refused the request.
    Status {
        /// The status.
        status: u16,
        /// The code of the error.
        word: Option<String>,
        /// The parameter that the service refuses.
        parameter: Option<&'static str>,
        /// How long the service asks us to wait (`Retry-After`).
        wait: Option<Duration>,
    },
    /// The service reported an error in the middle of an answer. The field has the code of the error.
    Reported(Option<String>),
    /// The connection ended in the middle of an answer.
    BrokenOff,
    /// The service sent nothing for this long.
    Silent(Duration),
    /// The answer is larger than this limit, in bytes.
    TooLarge(u64),
    /// The answer is not in the dialect of the service.
    Unreadable,
    /// The answer contains neither text nor a call.
    Empty {
        /// Whether the answer reached its limit of tokens.
        is_cut: bool,
    },
    /// The service's content filter withheld the answer.
    Withheld,
}

impl Failure {
    /// Returns the failure for a response whose `status` is an error.
    pub(super) fn of_status(
        status: u16,
        word: Option<String>,
        parameter: Option<&'static str>,
        wait: Option<Duration>,
    ) -> Failure {
        Failure::Status { status, word, parameter, wait }
    }

    /// Returns the parameter that the service refuses, if this parameter is optional.
    pub(super) fn parameter(&self) -> Option<&'static str> {
        match self {
            Failure::Status { status: 400 | 422, parameter, .. } => *parameter,
            _ => None,
        }
    }

    /// Returns whether the same request may succeed if it is repeated.
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
            | Failure::Silent(_)
            | Failure::TooLarge(_)
            | Failure::Unreadable
            | Failure::Empty { .. }
            | Failure::Withheld => false,
        }
    }

    /// Returns how much of the request may be billed.
    pub(super) fn fate(&self) -> Fate {
        match self {
            Failure::NoKey => Fate::Unsent,
            Failure::Unreachable(why) if ![CLOSED, TIMED_OUT].contains(why) => Fate::Unsent,
            // The service, or a proxy in front of it, gave up waiting, but the model may have worked on the
            // request.
            Failure::Status { status: 408 | 499, .. } => Fate::Lost,
            Failure::Status { status: 300..=499, .. } => Fate::Refused,
            _ => Fate::Lost,
        }
    }

    /// Returns whether the service refused the key.
    pub(super) fn is_unauthorized(&self) -> bool {
        matches!(self, Failure::Status { status: 401, .. })
    }

    /// Returns how long the service asks us to wait (`Retry-After`).
    pub(super) fn wait(&self) -> Option<Duration> {
        match self {
            Failure::Status { wait, .. } => *wait,
            _ => None,
        }
    }

    /// Returns the error to show after `attempts` requests.
    pub(super) fn error(&self, provider: &Provider, attempts: u32) -> Error {
        let mut said = format!("provider `{}` {}", provider.name, self.reason(provider));
        if attempts > 1 {
            said += &format!(", {attempts} requests in all");
        }
        let error = Error::new(Kind::Provider, said).with_retry_after(self.wait());
        match self.way_out(provider) {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    fn reason(&self, provider: &Provider) -> String {
        match self {
            Failure::NoKey => {
                "was not asked: its key contains line feeds or other control characters".to_owned()
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
                let refused = self.parameter().map(|name| format!(": it refuses the parameter `{name}`"));
                format!("answered {}{}", status_line(*status, word.as_deref()), refused.unwrap_or_default())
            }
            Failure::Reported(Some(word)) => format!("reported an error within its answer, `{word}`"),
            Failure::Reported(None) => "reported an error within its answer".to_owned(),
            Failure::Silent(silence) => format!("sent nothing for {} s", silence.as_secs()),
            Failure::BrokenOff => "broke off in the middle of its answer".to_owned(),
            Failure::TooLarge(limit) => format!("sent more than {} MiB, which no answer needs", limit >> 20),
            Failure::Unreadable => {
                format!("did not answer with {}", provider.service.dialect())
            }
            Failure::Empty { is_cut: false } => "gave an empty answer".to_owned(),
            Failure::Empty { is_cut: true } => {
                "gave an empty answer: it reached its limit of tokens before it said anything".to_owned()
            }
            Failure::Withheld => "withheld its answer because of its content filter".to_owned(),
        }
    }

    fn way_out(&self, provider: &Provider) -> Option<String> {
        Some(match self {
            Failure::Unreachable(_) if provider.is_local() => match provider.service {
                Service::Ollama => "start it: `ollama serve`".to_owned(),
                _ => "start the server that listens there, or name another endpoint".to_owned(),
            },
            Failure::Silent(_) => {
                "ask again, or allow more time with `consult.silence` for a model that thinks for long"
                    .to_owned()
            }
            Failure::Status { status: 401 | 403, .. } => {
                format!(
                    "check the key of provider `{}`, and that it may use `{}`",
                    provider.name, provider.model
                )
            }
            Failure::Status { status: 404, .. } if provider.service == Service::Ollama => {
                format!("`ollama pull {}`, or name a model that `ollama list` shows", provider.model)
            }
            Failure::Status { status: 404, .. } => {
                "name a model that the service offers, and check the endpoint: a removed model and a wrong \
                 endpoint get the same answer"
                    .to_owned()
            }
            Failure::Status { status: 300..=399, .. } => {
                "name the address it redirects to as the endpoint".to_owned()
            }
            Failure::Status { status: 402, .. } => "the service asks for payment".to_owned(),
            Failure::Unreadable => "check that the endpoint belongs to the service".to_owned(),
            Failure::Empty { is_cut: true } => "allow more tokens with `max_output`".to_owned(),
            _ => return None,
        })
    }
}

/// Returns the error for a call that reached its deadline, after it received `received` bytes of an answer.
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

/// Returns the error for a service that asks us to wait longer than the time that is left.
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
    Error::new(Kind::Provider, format!("{error}; the service asks to wait for {wait}, and {left} s are left"))
        .with_retry_after(failure.wait())
        .hint("try again later, or allow another provider")
}

/// Returns the error of `failure`. `why` is the reason not to repeat the request.
pub(super) fn not_repeated(failure: &Failure, why: &Error, provider: &Provider, attempts: u32) -> Error {
    let error = failure.error(provider, attempts);
    why.reworded(format!("{error}; it was not asked again: {why}")).with_retry_after(failure.wait())
}

/// Returns the code of the error in a response; `None` if the key or the request contains that code.
pub(super) fn word(body: &Value, key: Option<&str>, request: &Request) -> Option<String> {
    let error = body.get("error").unwrap_or(body);
    // In Gemini's errors, the member `code` is the HTTP status, and the member `status` is the code of the error.
    ["code", "type", "status"].iter().find_map(|field| {
        let word = error.get(field)?.as_str()?;
        let is_word = (3..=LONGEST_WORD).contains(&word.len())
            && word.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-' | b'.'));
        let is_of_key = key.is_some_and(|key| key.contains(word) || word.contains(key));
        let is_of_request = request.texts().any(|text| text.contains(word));
        (is_word && !is_of_key && !is_of_request).then(|| word.to_owned())
    })
}

/// Returns the parameter that a service refuses, if it is one of the [`OPTIONAL`] parameters. The error is searched
/// only for the names of these parameters.
pub(super) fn parameter(body: &Value) -> Option<&'static str> {
    let error = body.get("error").unwrap_or(body);
    let said = |field: &str| error.get(field).and_then(Value::as_str).unwrap_or_default();
    let names = |text: &str, name: &str| {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        text.match_indices(name).any(|(at, _)| {
            let (before, after) = (&text.as_bytes()[..at], &text.as_bytes()[at + name.len()..]);
            !before.last().copied().is_some_and(is_part) && !after.first().copied().is_some_and(is_part)
        })
    };
    let is_word = |name: &str| ["reasoning", "thinking", "think"].contains(&name);
    OPTIONAL.into_iter().find(|name| names(said("param"), name)).or_else(|| {
        // In a sentence, a parameter name that is also an ordinary word may have another meaning.
        OPTIONAL.into_iter().find(|name| !is_word(name) && names(said("message"), name))
    })
}

fn status_line(status: u16, word: Option<&str>) -> String {
    let known = reqwest::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    let mut line = status.to_string();
    if let Some(reason) = known {
        line += &format!(" {reason}");
    }
    if let Some(word) = word {
        line += &format!(" (`{word}`)");
    }
    line
}
