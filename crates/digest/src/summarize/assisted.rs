//! Recognises a user's conversation with an assistant, the last part of an assistant's answer, and what the assistant
//! takes back.

use super::Source;
use crate::tuning::summaries;
use tiro_base::memory::Role;
use tiro_text::blocks::{Kind, blocks, has_calls};

/// The beginnings of sentences in which an assistant takes back what it said.
const RETRACTS: [&str; 18] = [
    "i was wrong",
    "i was mistaken",
    "that was not it",
    "that wasn't it",
    "that was wrong",
    "i stand corrected",
    "i made a mistake",
    "i misread",
    "i misunderstood",
    "i apologize",
    "i'm sorry",
    "sorry",
    "apologies",
    "my mistake",
    "my apologies",
    "you're right",
    "you're absolutely right",
    "you are right",
];

/// The beginnings of sentences in which an assistant announces a step, or thinks about the request.
const STEPS: [&str; 20] = [
    "let me",
    "let's",
    "i'll",
    "i will",
    "i need to",
    "i should",
    "i want to",
    "i think",
    "now let",
    "now i",
    "next, i",
    "first, i",
    "the user wants",
    "the user is",
    "the user says",
    "the user said",
    "the user asked",
    "the user asks",
    "the user has",
    "user wants",
];

/// Returns the text of `sentence` in lower case, with straight apostrophes.
pub(super) fn lower(sentence: &str) -> String {
    sentence.to_lowercase().replace('’', "'")
}

/// Returns whether `text` begins with `start` and a word ends there.
fn begins_with(text: &str, start: &str) -> bool {
    text.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Returns whether an assistant announces a step in a sentence, or thinks about the request, as in "The user wants a
/// table". Some clients export such thoughts as if they were answers.
pub(super) fn is_step(sentence: &str) -> bool {
    let text = lower(sentence);
    let is_doing = |start: &str| {
        let next = text.strip_prefix(start).and_then(|rest| rest.split(' ').next());
        next.is_some_and(|next| next.ends_with("ing"))
    };
    let announces = STEPS.iter().any(|start| begins_with(&text, start)) && !text.starts_with("let me know");
    announces || is_doing("i'm ") || is_doing("i am ")
}

/// Returns whether the sources are a user's conversation with an assistant. The assistant's answers are long, or
/// several in a row, or use tools. In any other conversation, all speakers count alike.
pub(super) fn is_assisted(sources: &[Source<'_>]) -> bool {
    let answers: Vec<usize> = sources
        .iter()
        .filter(|source| source.role == Role::Assistant)
        .map(|source| source.text.len())
        .collect();
    let mean = answers.iter().sum::<usize>() / answers.len().max(1);
    sources.iter().any(|source| source.role == Role::User)
        && (works(sources) || mean >= summaries::LONG_ANSWER)
}

/// Returns whether the assistant does work, so that its answers report actions. Such an assistant calls tools, or
/// writes several messages for each message of the user.
pub(super) fn works(sources: &[Source<'_>]) -> bool {
    let of = |role: Role| sources.iter().filter(|source| source.role == role).count();
    let (asked, answered) = (of(Role::User), of(Role::Assistant));
    let shows_calls = |source: &Source<'_>| source.role == Role::Assistant && has_calls(source.text);
    of(Role::Tool) > 0
        || sources.iter().any(shows_calls)
        || (asked > 0 && answered >= 3 && answered * 2 >= asked * 3)
}

/// Returns the byte at which the last part of an answer begins: the text after its last tool call or horizontal line.
pub(super) fn last_part(answer: &str) -> usize {
    let calls =
        blocks(answer).into_iter().filter(|block| block.kind == Kind::Tool).map(|block| block.range.end);
    let line = answer.trim_end().rfind("\n---\n").map(|at| at + 5);
    calls.chain(line).max().unwrap_or(0)
}

/// Returns whether an assistant takes back in a sentence what it said before.
pub(super) fn retracts(sentence: &str) -> bool {
    let text = lower(sentence);
    RETRACTS.iter().any(|start| begins_with(&text, start))
}
