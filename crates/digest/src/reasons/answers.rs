//! Quotes what the assistant proposed, decided or announced, and tells which messages answer its questions.

use std::cmp::Reverse;
use std::ops::Range;

use super::{
    ENOUGH_STEMS, LONGEST_REQUEST, Part, QUESTION_MARKS, Quote, Said, Topic, gives_reason, has_phrase,
    shared, words_of,
};
use crate::statements::answers::{self as dialogs, REQUEST};
use crate::statements::own_words::is_prose;
use crate::statements::stems;
use crate::statements::voice;
use tiro_base::memory::Role;
use tiro_text::blocks::{Block, Form, Kind, Sentence, blocks, quotable};

/// The beginnings of sentences with which an assistant ends its answer.
const FAREWELLS: [&str; 3] = ["let me know", "feel free", "if you"];

/// How many lines at the end of an answer are searched for questions to the user. Arbitrary.
const ASKED_LAST: usize = 16;

/// How many messages before a reply are searched for the plan that it accepts. Arbitrary: a plan is often asked about.
const NEAR_PLAN: usize = 12;

/// How many answers before a change are searched for its reason. Arbitrary: an answer to a long request reports on many
/// files.
const NEAR_ANSWERS: usize = 4;

/// How many characters of the paragraph before a change are quoted. Arbitrary: three lines.
const LONGEST_ANNOUNCEMENT: usize = 300;

/// Words of a sentence that proposes something. A sentence without them reports what was done.
const PROPOSES: [&str; 22] = [
    "i could",
    "we could",
    "i can",
    "we can",
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
    "propose",
];

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
    (!quoted.is_empty()).then(|| (0..messages[reply].text.len(), quoted))
}

/// Returns what a reply to questions of the assistant decides.
fn decisions(messages: &[Said<'_>], reply: usize) -> Vec<String> {
    fn said<'a>(said: &Said<'a>) -> voice::Said<'a> {
        voice::Said { ordinal: 0, role: Some(said.role), speaker: said.speaker, text: said.text }
    }
    let before: Vec<voice::Said<'_>> = messages[..reply].iter().map(said).collect();
    let message = said(&messages[reply]);
    match message.role {
        Some(Role::Tool) => dialogs::in_dialog(&before, &message),
        _ => {
            let asked = messages[..reply].iter().rposition(|said| said.role == Role::User);
            dialogs::decisions(&before, asked.map_or(0, |asked| asked + 1), &message)
        }
    }
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

/// Returns whether a message that says nothing else asks the assistant to carry out its plan, as clients write it, or is a
/// dialog in which the user approved it.
pub(super) fn approves_plan(messages: &[Said<'_>], reply: usize) -> bool {
    let Said { role, text, .. } = messages[reply];
    if role == Role::Tool {
        return decisions(messages, reply).first().is_some_and(|first| dialogs::is_plan(first));
    }
    let lower = text.to_lowercase();
    lower.trim_start().starts_with("implement") && lower.contains("plan")
}

/// Returns what the last plan of the assistant before the reply is, and its item about the lines. A plan is a document with
/// a title.
pub(super) fn plan(messages: &[Said<'_>], reply: usize, topic: &Topic) -> Option<Quote> {
    let is_plan = |place: &usize| {
        let Said { role, text, .. } = messages[*place];
        role == Role::Assistant && text.starts_with("# ") && text.chars().count() > LONGEST_REQUEST
    };
    let message = (0..reply).rev().take(NEAR_PLAN).find(is_plan)?;
    let text = messages[message].text;
    let all = blocks(text);
    let title = all.first()?;
    let first = all[1..].iter().find(|block| block.kind == Kind::Prose && block.is_said());
    let first = first.filter(|block| block.text.chars().count() <= LONGEST_REQUEST);
    // Many items of a plan have the words of its title.
    let words = &topic.words - &words_of(&[title.text.as_str()]);
    let item = item_about(text, &Topic { words, files: topic.files.clone() });
    let end = item.as_ref().map_or(title.range.end, |(range, _)| range.end);
    let parts = [Some(title.text.trim().to_owned()), first.map(|block| block.text.trim().to_owned())];
    let mut quoted = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    quoted += &item.map(|(_, item)| format!(" … {item}")).unwrap_or_default();
    Some(Quote { part: Part::Accepted, message, range: title.range.start..end, text: quoted })
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
        let proposes =
            has_phrase(&sentence.text, &PROPOSES) && sentence.form != Form::Aside && is_prose(&sentence.text);
        let is_farewell = FAREWELLS.iter().any(|words| sentence.text.to_lowercase().starts_with(words));
        (proposes && !is_farewell && (is_yes || about > 1))
            .then_some((if about > 1 { about } else { 0 }, sentence))
    });
    let Sentence { text, range, .. } = rated.max_by_key(|(about, _)| *about)?.1;
    let item = item_about(messages[place].text, topic).filter(|(.., item)| is_yes && *item != text);
    let (range, text) = match item {
        Some((of_item, item)) => {
            (range.start.min(of_item.start)..range.end.max(of_item.end), format!("{item} … {text}"))
        }
        None => (range, text),
    };
    Some(Quote { part: Part::Accepted, message: place, range, text })
}

/// Returns the item of a list that has more words of the lines than any other.
fn item_about(text: &str, topic: &Topic) -> Option<(Range<usize>, String)> {
    let items = blocks(text).into_iter().filter(|block| block.kind == Kind::Item && block.is_said());
    let mut rated: Vec<(usize, Block)> =
        items.map(|block| (shared(&block.text, topic), block)).filter(|(about, _)| *about > 0).collect();
    rated.sort_by_key(|(about, _)| Reverse(*about));
    let is_best = rated.get(1).is_none_or(|(second, _)| *second < rated[0].0);
    let (_, best) = rated.into_iter().next().filter(|_| is_best)?;
    let is_short = best.text.chars().count() <= LONGEST_REQUEST;
    is_short.then(|| (best.range, best.text.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Returns what the assistant said shortly before it wrote the lines, after the last request: a sentence that gives a reason
/// and is about the lines, or what it said that it does next. If the request is vague, less of that need be about the lines.
pub(super) fn decided(messages: &[Said<'_>], topic: &Topic, is_vague: bool) -> Option<Quote> {
    let least = if is_vague { 1 } else { 2 };
    let answers = (0..messages.len()).rev().take_while(|place| messages[*place].role != Role::User);
    let mut answers = answers.filter(|place| messages[*place].role == Role::Assistant).take(NEAR_ANSWERS);
    let said = |place: usize| {
        let text = messages[place].text;
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
    let block = blocks(answer).into_iter().rev().find(|block| block.is_said())?;
    let said = quotable(&answer[block.range.clone()]);
    let first = said.iter().find(|sentence| shared(&sentence.text, topic) > 0);
    let start = first.and_then(|sentence| block.text.find(sentence.text.as_str())).unwrap_or(0);
    let text = block.text[start..].trim().trim_end_matches(':').to_owned();
    let is_short = text.chars().count() <= LONGEST_ANNOUNCEMENT;
    let is_quoted = is_short && is_prose(&text) && shared(&text, topic) >= least;
    is_quoted.then_some(Quote { part: Part::Decided, message, range: block.range, text })
}
