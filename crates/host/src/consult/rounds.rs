//! Asks the assistant, runs the functions that it calls, and asks again with the results, until it answers.
//!
//! Each request is sent by `ask`, so spending limits, the ledger, redaction and disclosure apply to every round.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::functions::Functions;
use super::receipt::Reported;
use crate::ask::{self, Bill};
use crate::caller::Caller;
use crate::config::{Configured, Options};
use crate::engine::Engine;
use tiro_base::error::{Error, Kind, Result, partial};
use tiro_base::humanize::thousands;
use tiro_llm::{Request, Turn};
use tiro_store::{Matter, Purpose};
use tiro_text::tokens;

/// The maximum number of rounds in which the assistant may call functions in a turn. After that it must answer.
const MOST_ROUNDS: usize = 8;

/// Functions are offered only if at least this many tokens are left for their results.
const LEAST_ROOM: usize = 200;

/// For each token of an answer's limit, at most this many bytes of the answer are kept. Arbitrary: a token has about
/// four bytes.
const BYTES_OF_TOKEN: usize = 16;

/// This text is added at the end of an answer that broke off. The caller reads it, and in the next turn the assistant
/// reads it too.
const BROKE_OFF: &str = "[The answer broke off here.]";

/// The assistant of a round of requests, and its limits.
pub struct Round<'a> {
    /// What the process has open.
    pub engine: &'a Engine,
    /// The caller who asks.
    pub caller: &'a Caller,
    /// The options.
    pub options: &'a Options,
    /// The assistant.
    pub assistant: &'a Configured,
    /// The time by which the answer must be there.
    pub until: Instant,
    /// The bill, to which sent tokens and costs are added.
    pub bill: &'a Bill,
    /// Gets the text of the answer as it arrives.
    pub on_text: Option<&'a (dyn Fn(&str) + Send + Sync)>,
    /// Gets the names of the functions that are run.
    pub on_functions: &'a (dyn Fn(&[String]) + Send + Sync),
    /// The purpose of the first request, and the sources of its content.
    pub matter: Matter,
}

/// The answer of an assistant.
#[derive(Debug, Default)]
pub struct Answered {
    /// The text of all rounds.
    pub text: String,
    /// The numbers of tokens that the provider reports, for all rounds.
    pub reported: Reported,
    /// The time that the provider took.
    pub waited: Duration,
    /// Remarks, each of which is a sentence without a full stop.
    pub notices: Vec<String>,
}

/// The outcome of one request.
enum RequestOutcome {
    /// The answer.
    Answered(Box<ask::Answered>),
    /// The beginning of an answer that broke off, with a mark at its end, and a notice with the reason.
    BrokeOff(String, String),
}

/// Sends one request. If the answer breaks off, keeps the part that arrived, because it is paid for.
async fn ask(round: &Round<'_>, request: &Request) -> Result<RequestOutcome> {
    let arrived = Mutex::new(String::new());
    let arrived_so_far = || arrived.lock().unwrap_or_else(PoisonError::into_inner);
    let on_text = |piece: &str| {
        arrived_so_far().push_str(piece);
        if let Some(told) = round.on_text {
            told(piece);
        }
    };
    let left = round.until.saturating_duration_since(Instant::now());
    let Round { engine, caller, options, assistant, matter, bill, .. } = round;
    let asked =
        ask::ask_one(engine, caller, options, assistant, matter, request, left, bill, Some(&on_text)).await;
    let begun = arrived_so_far().trim().to_owned();
    match asked {
        Ok(asked) => Ok(RequestOutcome::Answered(Box::new(asked))),
        Err(failed) if failed.kind() == Kind::Provider && !begun.is_empty() => {
            let notice = partial::notice(format!("the answer broke off ({failed}); ask it to go on"));
            Ok(RequestOutcome::BrokeOff(format!("{begun}\n\n{BROKE_OFF}"), notice))
        }
        Err(error) => Err(error),
    }
}

/// Asks until the assistant answers. The results of functions take at most `room` tokens.
pub async fn until_answered(
    mut round: Round<'_>,
    mut request: Request,
    functions: &mut Functions,
    mut room: usize,
) -> Result<Answered> {
    let mut answered = Answered::default();
    let mut texts: Vec<String> = Vec::new();
    for number in 0..=MOST_ROUNDS {
        if number == MOST_ROUNDS || room < LEAST_ROOM {
            request.functions.clear();
        }
        let asked = match ask(&round, &request).await? {
            RequestOutcome::Answered(asked) => *asked,
            RequestOutcome::BrokeOff(text, notice) => {
                texts.push(text);
                answered.notices.insert(0, notice);
                break;
            }
        };
        answered.waited += asked.waited;
        for notice in asked.notices {
            if !answered.notices.contains(&notice) {
                answered.notices.push(notice);
            }
        }
        let mut reply = asked.reply;
        functions.clean(&mut reply);
        answered.reported.input += reply.usage.input;
        answered.reported.cached += reply.usage.cached;
        answered.reported.output += reply.usage.output;
        answered.reported.is_estimate |= reply.usage.is_estimate;
        if !reply.text.trim().is_empty() {
            texts.push(reply.text.trim().to_owned());
        }
        if reply.is_cut {
            answered.notices.push("the answer was cut at its limit of tokens; ask it to go on".to_owned());
        }
        if reply.calls.is_empty() || request.functions.is_empty() || reply.is_cut {
            break;
        }
        let names: Vec<String> = reply.calls.iter().map(|call| call.name.clone()).collect();
        (round.on_functions)(&names);
        request.turns.push(Turn::answer(&reply));
        let results = functions.run(&reply.calls, room).await;
        room = room.saturating_sub(tokens_of(&results));
        request.turns.extend(results);
        round.matter.purpose = Purpose::Functions;
        round.matter.sources.add(functions.sources.clone());
    }
    answered.text = texts.join("\n\n");
    let most = request.max_output.saturating_mul(BYTES_OF_TOKEN);
    if answered.text.len() > most {
        answered.text.truncate(answered.text.floor_char_boundary(most));
        let asked = thousands(request.max_output as u64);
        answered.notices.push(format!(
            "the answer was cut at {} bytes, because the model sent more than the {asked} tokens it was asked for",
            thousands(most as u64)
        ));
    }
    if answered.text.is_empty() {
        let name = &round.assistant.provider.name;
        return Err(Error::new(
            Kind::Provider,
            format!("assistant `{name}` called functions but gave no answer"),
        )
        .hint("ask again, with a narrower question"));
    }
    Ok(answered)
}

/// Returns the number of tokens of the results of functions.
fn tokens_of(results: &[Turn]) -> usize {
    let of = |turn: &Turn| if let Turn::Result { text, .. } = turn { tokens::count(text) } else { 0 };
    results.iter().map(of).sum()
}
