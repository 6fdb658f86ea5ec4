//! Quotes what the assistant proposed, decided or announced, and tells which messages answer its questions.

use std::ops::Range;

use super::plans::{approves_plan, decisions, item_about};
use super::{
    ENOUGH_STEMS, LONGEST_REQUEST, Part, QUESTION_MARKS, Quote, Said, Topic, gives_reason, has_phrase, shared,
};
use crate::statements::answers::REQUEST;
use crate::statements::own_words::is_prose;
use crate::statements::stems;
use tiro_base::memory::Role;
use tiro_text::blocks::{Block, Form, Kind, Sentence, blocks, quotable};

/// The beginnings of sentences with which an assistant ends its answer.
const FAREWELLS: [&str; 3] = ["let me know", "feel free", "if you"];

/// How many lines at the end of an answer are searched for questions to the user. Arbitrary.
const ASKED_LAST: usize = 16;

/// How many answers before a change are searched for its reason. Arbitrary: an answer to a long request reports on many
/// files.
const NEAR_ANSWERS: usize = 4;

/// A sentence right before a change, such as "I do it", has at least this many stems or a word of the lines. Arbitrary.
const FEW_STEMS: usize = 3;

/// How many characters of the paragraph before a change are quoted. Arbitrary: three lines.
const LONGEST_ANNOUNCEMENT: usize = 300;

/// Words of a sentence that proposes something. A sentence without them reports what was done.
const PROPOSES: [&str; 19] = [
    "should i",
    "should we",
    "i should",
    "we should",
    "shall",
    "would you",
    "want me",
    "do you want",
    "let's",
    "i'll",
    "i will",
    "we'll",
    "we will",
    "i'd",
    "i would",
    "suggest",
    "recommend",
    "recommendation",
    "propose",
];

/// Words of a sentence that proposes to do nothing.
const REFUSES: [&str; 4] = ["should not", "shouldn't", "would not", "wouldn't"];

/// Words of a sentence that may propose something, or say what is possible.
const MAY_PROPOSE: [&str; 4] = ["i could", "we could", "i can", "we can"];

/// Returns whether a message of the user answers a question of the assistant: the message before it has several questions,
/// or ends with one, and the answer is short.
pub(super) fn is_answer(messages: &[Said<'_>], reply: usize, answer: &str) -> bool {
    let before = messages[..reply].iter().rfind(|said| said.role != Role::Tool);
    let Some(before) = before.filter(|said| said.role == Role::Assistant) else { return false };
    let asks = |line: &&str| line.trim_end_matches(['*', '_', ' ']).ends_with(QUESTION_MARKS);
    let lines = before.text.lines().rev().filter(|line| !line.trim().is_empty()).take(ASKED_LAST);
    let ends_with_one = lines.clone().next().is_some_and(|line| asks(&line));
    lines.filter(asks).nth(1).is_some() || ends_with_one && stems(answer).len() < ENOUGH_STEMS
}

/// Returns what the user decided about the lines by answering questions of the assistant: each question with its answer.
pub(super) fn answered(messages: &[Said<'_>], reply: usize, topic: &Topic) -> Option<(Range<usize>, String)> {
    if approves_plan(messages, reply) {
        return None;
    }
    let mut quoted = String::new();
    for decision in decisions(messages, reply) {
        // The request is quoted, too.
        let decision = decision.split(REQUEST).next().unwrap_or_default();
        let is_short = quoted.chars().count() + decision.chars().count() < LONGEST_REQUEST;
        if shared(decision, topic) > 1 && is_short {
            quoted += if quoted.is_empty() { "" } else { " · " };
            quoted += decision;
        }
    }
    // The text is put together from both messages, so only a replacement of the whole reply replaces it.
    (!quoted.is_empty()).then_some((0..0, quoted))
}

/// Returns whether the request before a message of the user is still open: no file was changed in between.
pub(super) fn is_open(messages: &[Said<'_>], reply: usize) -> bool {
    let Some(before) = messages[..reply].iter().rposition(|said| said.role == Role::User) else {
        return false;
    };
    messages[before + 1..=reply].iter().all(|said| said.is_after_change == Some(false))
}

/// Returns whether a file was changed between the request before a message of the user and this message.
pub(super) fn is_closed(messages: &[Said<'_>], reply: usize) -> bool {
    let said = messages[..=reply].iter().rev();
    let since = said.clone().take(1).chain(said.skip(1).take_while(|said| said.role != Role::User));
    since.into_iter().any(|said| said.is_after_change == Some(true))
}

/// Returns the sentence that the user accepted: one of the assistant's last message before the reply, which proposes
/// something. If the reply is a bare yes, the last proposal counts also if it has no words of the lines.
pub(super) fn proposal(messages: &[Said<'_>], reply: usize, topic: &Topic, is_yes: bool) -> Option<Quote> {
    let place = (0..reply).rev().find(|place| messages[*place].role != Role::Tool)?;
    if messages[place].role != Role::Assistant {
        return None;
    }
    let rated = quotable(messages[place].text).into_iter().filter_map(|sentence| {
        let about = shared(&sentence.text, topic);
        let is_clear = has_phrase(&sentence.text, &PROPOSES);
        let proposes = (is_clear || has_phrase(&sentence.text, &MAY_PROPOSE))
            && !has_phrase(&sentence.text, &REFUSES)
            && sentence.form != Form::Aside
            && is_prose(&sentence.text);
        let is_farewell = FAREWELLS.iter().any(|words| sentence.text.to_lowercase().starts_with(words));
        (proposes && !is_farewell && (is_yes || about > 1))
            .then_some(((about > 1, is_clear, about), sentence))
    });
    let Sentence { text, range, .. } = rated.max_by_key(|(rank, _)| *rank)?.1;
    let item = item_about(messages[place].text, topic).filter(|(.., item)| is_yes && *item != text);
    let (range, text) = match item {
        Some((of_item, item)) => {
            (range.start.min(of_item.start)..range.end.max(of_item.end), format!("{item} … {text}"))
        }
        None => (range, text),
    };
    Some(Quote { part: Part::Accepted, message: place, range, text })
}

/// Returns what the assistant said shortly before it wrote the lines, after the last request: a sentence that gives a reason
/// and is about the lines, or what it said that it does next. If the request is vague, less of that need be about the lines;
/// and nothing, if the last message `announces` the call that wrote them.
pub(super) fn decided(
    messages: &[Said<'_>],
    topic: &Topic,
    is_vague: bool,
    announces: bool,
) -> Option<Quote> {
    let answers = (0..messages.len()).rev().take_while(|place| messages[*place].role != Role::User);
    let mut answers = answers.filter(|place| messages[*place].role == Role::Assistant).take(NEAR_ANSWERS);
    let said = |place: usize| {
        let text = messages[place].text;
        let least = match () {
            () if announces && place + 1 == messages.len() => 0,
            () if is_vague => 1,
            () => 2,
        };
        decision(text, place, topic).or_else(|| announcement(text, place, topic, least))
    };
    answers.find_map(said)
}

/// Returns the last sentence of an answer that gives a reason and is about the lines.
fn decision(answer: &str, message: usize, topic: &Topic) -> Option<Quote> {
    let said = quotable(answer).into_iter().rev();
    let about = |sentence: &Sentence| shared(&sentence.text, topic) > 1;
    let Sentence { text, range, .. } =
        said.filter(|sentence| gives_reason(sentence) && is_prose(&sentence.text)).find(about)?;
    Some(Quote { part: Part::Decided, message, range, text })
}

/// Returns the last paragraph of an answer from its first sentence about the lines, if it has `least` words of the lines.
fn announcement(answer: &str, message: usize, topic: &Topic, least: usize) -> Option<Quote> {
    let is_told = |block: &Block| block.is_said() || block.kind == Kind::Heading;
    let block = blocks(answer).into_iter().rev().find(is_told)?;
    let said = quotable(&answer[block.range.clone()]);
    let first = said.iter().find(|sentence| shared(&sentence.text, topic) > 0);
    let start = first.and_then(|sentence| block.text.find(sentence.text.as_str())).unwrap_or(0);
    let text = block.text[start..].trim().trim_end_matches(':').to_owned();
    let is_short = text.chars().count() <= LONGEST_ANNOUNCEMENT;
    let is_told = block.kind == Kind::Heading || is_prose(&text);
    let says_something = shared(&text, topic) >= least.max(1) || stems(&text).len() >= FEW_STEMS;
    let is_quoted = is_short && is_told && says_something && shared(&text, topic) >= least;
    is_quoted.then_some(Quote { part: Part::Decided, message, range: block.range, text })
}
