//! Compares what two machines of one person remember and answer.
//!
//! What is left out of the comparison differs by design:
//!
//! - *The ids of memories.* A machine keeps what came from elsewhere under the id under which it travels. Ids mean
//!   something only on one machine.
//! - *The number of a message in its session.* It says in which order a machine got the messages.
//! - *The marks of the envelopes*, which depend on a secret of the machine.
//! - *Scores that differ by little*, as sums in another order do.
//! - *The last lines of a context.* An id has another number of tokens on another machine, so that one line more or less
//!   fits. Contexts are asked for with a budget that they don't reach.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Machine;
use crate::calls;
use crate::client::{Era, Server};
use crate::random::Random;

/// How many hits are compared.
const K: usize = 10;

/// The budget of a context, in tokens.
const BUDGET: usize = 20_000;

/// By how much scores may differ.
const TOLERANCE: f64 = 0.002;

/// What differs between two machines.
#[derive(Debug, Default)]
pub struct Differences {
    /// How many hits were compared.
    pub hits: usize,
    /// The memories that only one of the machines has, or that have another state there.
    pub memories: Vec<Value>,
    /// The questions with other hits.
    pub searches: Vec<Value>,
    /// The questions with another context.
    pub contexts: Vec<Value>,
}

/// Compares two machines by what they remember, and by their answers to `questions` questions.
pub fn compare(machines: [&Machine; 2], questions: usize, seed: u64) -> Result<Differences> {
    let [one, other] = machines.map(Machine::memories);
    let (one, other) = (one?, other?);
    let mut found = Differences { memories: only_one_has(&one, &other), ..Differences::default() };
    let [first, second] = machines.map(|machine| machine.tiro.serve(&machine.place, Era::Session));
    let (first, second) = (&mut first?, &mut second?);
    let mut random = Random::new(seed);
    for number in 0..questions {
        let question = question(&one, &mut random);
        let (left, right) = (hits(first, &question)?, hits(second, &question)?);
        found.hits += left.len();
        if !are_same(&left, &right) {
            found.searches.push(json!({"question": question, "one": left, "other": right}));
        }
        if number % 5 == 0 {
            let (left, right) = (context(first, &question)?, context(second, &question)?);
            if left != right {
                found.contexts.push(json!({"question": question, "one": left, "other": right}));
            }
        }
    }
    Ok(found)
}

/// Returns the memories that only one of the two has.
fn only_one_has(one: &[Value], other: &[Value]) -> Vec<Value> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    let plain = |memory: &Value| {
        let mut memory = memory.clone();
        memory.as_object_mut().map(|fields| fields.remove("id"));
        memory.to_string()
    };
    one.iter().for_each(|memory| *counts.entry(plain(memory)).or_default() += 1);
    other.iter().for_each(|memory| *counts.entry(plain(memory)).or_default() -= 1);
    let differing = counts.into_iter().filter(|(_, count)| *count != 0);
    differing.map(|(memory, count)| json!({"more on the first": count, "memory": memory})).collect()
}

/// Returns a question with some words of one of the memories.
fn question(memories: &[Value], random: &mut Random) -> String {
    let text = random.pick(memories)["text"].as_str().unwrap_or_default().to_owned();
    let words: Vec<&str> = text.split([' ', '.', ',', '\n']).filter(|word| word.len() > 3).collect();
    let wanted = 2 + random.below(5);
    let chosen: Vec<&str> = match words.is_empty() {
        true => vec!["harbor"],
        false => (0..wanted).map(|_| *random.pick(&words)).collect(),
    };
    format!("{} {}", random.pick(&["what about", "when was", "why the", "how is"]), chosen.join(" "))
}

/// Returns what is compared of the hits.
fn hits(server: &mut Server, question: &str) -> Result<Vec<Value>> {
    let answer = calls::search(server, question, K)?;
    let plain = |hit: &Value| {
        let mut hit = hit.clone();
        hit["id"] = Value::Null;
        if let Some(replaced) = hit["superseded"].as_object_mut() {
            replaced.remove("by");
        }
        hit
    };
    Ok(answer.hits().iter().map(plain).collect())
}

/// Returns whether two answers have the same hits in the same order. Hits whose scores are nearly the same may have changed
/// places, also with one that is not shown.
fn are_same(one: &[Value], other: &[Value]) -> bool {
    let score = |hit: &Value| hit["score"].as_f64().unwrap_or(0.0);
    let rest = |hit: &Value| {
        let mut hit = hit.clone();
        hit["score"] = Value::Null;
        hit["score_parts"] = Value::Null;
        hit
    };
    let is_near = |a: &Value, b: &Value| (score(a) - score(b)).abs() < TOLERANCE;
    let is_same =
        |(a, b): (&Value, &Value)| is_near(a, b) && (rest(a) == rest(b) || has(one, b) || has(other, a));
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

/// Returns whether one of the hits has the same text.
fn has(hits: &[Value], wanted: &Value) -> bool {
    hits.iter().any(|hit| hit["text"] == wanted["text"])
}

/// Returns the lines of a context, without ids, numbers of messages and marks of envelopes.
fn context(server: &mut Server, question: &str) -> Result<String> {
    let answer =
        calls::patiently(server, "retrieve_context", json!({"query": question, "max_tokens": BUDGET}))?;
    let context = answer.structured()["context"].as_str().context("a context has lines")?;
    let lines = context.lines().filter(|line| !line.starts_with("[data ") && !line.starts_with("[/data "));
    Ok(lines.map(without_names).collect::<Vec<_>>().join("\n"))
}

/// Returns a line without ids of memories and numbers of messages.
fn without_names(line: &str) -> String {
    let is_part = |char: char| char.is_ascii_alphanumeric();
    let is_id = |word: &str| {
        word.len() == 14
            && word.starts_with('m')
            // Ids have no letters that look like digits.
            && word.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase() && !b"ilou".contains(&byte))
    };
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let end = match is_part(first) {
            true => rest.find(|char| !is_part(char)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        let is_number = plain.ends_with('#') && word.bytes().all(|byte| byte.is_ascii_digit());
        plain.push_str(if is_id(word) || is_number { "…" } else { word });
        rest = after;
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_something_on_one_machine_only_are_left_out() {
        for (line, plain) in [
            ("[fact m5g0h4me6ktc9b 2026-11-30]", "[fact … 2026-11-30]"),
            ("[fact mvcabfhxmgnyha] mischievousness", "[fact …] mischievousness"),
            ("[fact mvcabfhxmgnyha] mountaineering", "[fact …] mountaineering"),
            ("#14 user: the 3 #notes", "#… user: the 3 #notes"),
            ("the mallet, made of maple", "the mallet, made of maple"),
        ] {
            assert_eq!(without_names(line), plain);
        }
    }

    #[test]
    fn a_memory_counts_as_often_as_it_is_there() {
        let memory = |id: &str, text: &str| json!({"id": id, "text": text});
        let one = [memory("a", "x"), memory("b", "x"), memory("c", "y")];
        let other = [memory("d", "y"), memory("e", "x")];
        assert_eq!(only_one_has(&one, &other).len(), 1);
        assert!(only_one_has(&one, &one).is_empty());
    }
}
