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
    let text = sentence.to_lowercase().replace('’', "'");
    RETRACTS
        .iter()
        .any(|start| text.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)))
}
