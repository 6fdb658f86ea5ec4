//! Turns an answer, as a dialect read it, into a reply.

use serde_json::{Value, json};

use super::dialects::{Answer, Counts, Dialect, Piece, Stop, author, made_id, read_arguments};
use super::failure::Failure;
use super::thoughts::answer_begins;
use super::{Call, Provider, Reply, Request, Turn, Usage};
use tiro_text::tokens;

/// Returns the reply to `request`. `kept` is the data that the dialect needs back.
pub(super) fn reply(
    provider: &Provider,
    dialect: Dialect,
    request: &Request,
    answer: Answer,
    kept: Option<Value>,
) -> Result<Reply, Failure> {
    let Answer { text, calls, vectors, stop, counts } = answer;
    if request.is_embedding {
        return embedded(request, vectors, counts);
    }
    let is_cut = stop == Some(Stop::Cut);
    if stop == Some(Stop::Withheld) {
        return Err(Failure::Withheld);
    }
    let had_ids = calls.iter().all(|piece| !piece.id.is_empty());
    let (calls, is_distinct) = self::calls(request, calls)?;
    if text.trim().is_empty() && calls.is_empty() {
        return Err(Failure::Empty { is_cut });
    }
    let usage = usage(request, &text, &calls, kept.as_ref(), counts);
    let text = match answer_begins(&text, true) {
        Some(0) | None => text,
        Some(begin) => text[begin..].to_owned(),
    };
    if text.is_empty() && calls.is_empty() {
        return Err(Failure::Empty { is_cut });
    }
    // If ids of calls were replaced, the kept data still has the old ids, but the results will have the new ones.
    let fits = is_distinct && (had_ids || !dialect.keeps_ids());
    let kept = kept.filter(|_| fits).map(|parts| json!({"of": author(provider, dialect), "parts": parts}));
    Ok(Reply { text, calls, kept, is_cut, usage, attempts: 1, ..Reply::default() })
}

/// Returns the reply to a request for embeddings: a vector for each text, all with the same number of dimensions.
fn embedded(request: &Request, vectors: Vec<Vec<f32>>, counts: Counts) -> Result<Reply, Failure> {
    let is_whole = vectors.len() == request.turns.len();
    if !is_whole || vectors.iter().any(|vector| vector.len() != vectors[0].len()) {
        return Err(Failure::Unreadable);
    }
    let input = counts.input.filter(|tokens| *tokens > 0);
    let usage = Usage {
        input: input.unwrap_or_else(|| request.tokens() as u64),
        is_estimate: input.is_none(),
        ..Usage::default()
    };
    Ok(Reply { vectors, usage, attempts: 1, ..Reply::default() })
}

/// Returns the calls, and whether the service gave each call a different id. A call without an id, or with the id of
/// another call, gets a new id.
fn calls(request: &Request, pieces: Vec<Piece>) -> Result<(Vec<Call>, bool), Failure> {
    let earlier = request.turns.iter().map(|turn| match turn {
        Turn::Assistant { calls, .. } => calls.len(),
        _ => 0,
    });
    let earlier: usize = earlier.sum();
    let mut calls: Vec<Call> = Vec::new();
    let mut is_distinct = true;
    for (nth, piece) in pieces.into_iter().enumerate() {
        let Piece { mut id, name, arguments, .. } = piece;
        let is_repeated = calls.iter().any(|call| call.id == id);
        is_distinct &= !is_repeated;
        if id.is_empty() || is_repeated {
            id = made_id(earlier + nth);
        }
        calls.push(Call { id, name, arguments: read_arguments(&arguments) });
    }
    Ok((calls, is_distinct))
}

/// Returns the usage that the service reported. A missing number is replaced by an upper estimate. The number 0 is
/// replaced too, because a real request never has 0 tokens.
fn usage(request: &Request, text: &str, calls: &[Call], kept: Option<&Value>, counts: Counts) -> Usage {
    let known = |number: Option<u64>| number.filter(|tokens| *tokens > 0);
    let (input, output) = (known(counts.input), known(counts.output));
    let answered = || {
        let calls = calls.iter().map(|call| call.name.len() + call.arguments.to_string().len() + 16);
        let kept = kept.map_or(0, |kept| tokens::bounded(&kept.to_string()).high);
        (tokens::bounded(text).high + calls.sum::<usize>() + kept + 16) as u64
    };
    let input_or_more = input.unwrap_or_else(|| request.tokens() as u64);
    let cached = counts.cached.unwrap_or(0).min(input_or_more);
    Usage {
        input: input_or_more,
        cached,
        written: counts.written.unwrap_or(0).min(input_or_more - cached),
        output: output.unwrap_or_else(answered),
        is_estimate: input.is_none() || output.is_none(),
    }
}
