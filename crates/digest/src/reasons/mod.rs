//! Finds the sentences that say why lines were written: in the conversation in which they were written, and in the
//! message of their commit. The sentences are quoted whole.

mod answers;
pub mod files;
mod plans;
mod requests;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;

use self::answers::{answered, decided, is_answer, is_closed, is_open, proposal};
use self::plans::{approves_plan, followed_plan, named_item, numbers, plan};
use self::requests::{asked, few_words, refers_back};
use crate::statements::own_words::is_prose;
use crate::statements::replies::{accepts, confirms};
use crate::statements::stems;
use tiro_base::memory::Role;
use tiro_text::blocks::{Form, Sentence, quotable};
use tiro_text::words::query::terms;

/// How many messages of the user are read, from the last one back. Arbitrary: a request is often followed by a few
/// words such as "go on".
const REQUESTS: usize = 4;

/// A request of fewer stems than this, none of which is in the lines, is not quoted if a request before it says more.
/// Arbitrary.
const FEW_STEMS_ALONE: usize = 5;

/// A request of fewer stems than this, none of which is in the lines, is quoted with the request before it. Arbitrary.
const ENOUGH_STEMS: usize = 10;

/// As how many words the name of the file of some lines counts. Arbitrary: a sentence about the file says more than one
/// with two common words.
const NAMED: usize = 3;

/// How many requests before the last one are looked through for the first one. Arbitrary: a talk about a plan.
const OPEN_REQUESTS: usize = 12;

/// How many characters are quoted of a request of several sentences. Arbitrary: six lines, which hold most requests whole.
const LONGEST_REQUEST: usize = 600;

/// Marks with which a question ends.
const QUESTION_MARKS: [char; 3] = ['?', '？', '؟'];

/// Words that connect a sentence with its reason.
const CONNECTIVES: [&str; 18] = [
    "because",
    "since",
    "so that",
    "so we",
    "so it",
    "to avoid",
    "to prevent",
    "to keep",
    "to make sure",
    "otherwise",
    "in order to",
    "instead of",
    "rather than",
    "due to",
    "root cause",
    "the problem is",
    "the issue is",
    "that's why",
];

/// A message before lines were written.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// Who said it. A tool said what the user chose in a dialog of the client.
    pub role: Role,
    /// The speaker's name.
    pub speaker: Option<&'a str>,
    /// The text.
    pub text: &'a str,
    /// Whether files were changed between the message before and this one; `None` if that is not known.
    pub is_after_change: Option<bool>,
}

/// What a quoted sentence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The user asked for the change.
    Asked,
    /// The user answered questions of the assistant about the change.
    Answered,
    /// The assistant proposed the change, and the user accepted it.
    Accepted,
    /// The assistant gave the reason, or said what comes next, right before it made the change.
    Decided,
}

/// A sentence of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// What it is.
    pub part: Part,
    /// The index of the message.
    pub message: usize,
    /// The bytes of the message from which the sentence was read; none if it was put together from several messages.
    pub range: Range<usize>,
    /// The sentence, or several, without markup.
    pub text: String,
}

/// What some lines are about.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    /// The [words](words_of) of the lines, of the name of their file, and of the subject of their commit.
    pub words: BTreeSet<String>,
    /// The [names](files::name) of their file.
    pub files: Vec<String>,
}

/// Returns the stems of the words in lines of code, in the names of their file, and in other texts about them.
pub fn words_of(texts: &[&str]) -> BTreeSet<String> {
    let words = texts.iter().flat_map(|text| text.lines()).flat_map(terms);
    words.flat_map(|word| stems(&word)).collect()
}

/// Returns the sentences that say why lines were written: first what the user asked for or accepted, then the reason
/// that the assistant gave. `messages` are those before the lines were written, in order, and `topic` is what the lines are
/// about. The last message `announces` them if nothing else was changed between it and the lines. The result is empty if
/// nothing says why.
pub fn in_conversation(messages: &[Said<'_>], topic: &Topic, announces: bool) -> Vec<Quote> {
    let is_request = |place: &usize| match messages[*place].role {
        Role::User => true,
        Role::Tool => approves_plan(messages, *place) || answered(messages, *place, topic).is_some(),
        _ => false,
    };
    let requests = (0..messages.len()).rev().filter(is_request);
    let mut quotes: Vec<Quote> = Vec::new();
    let mut later = None;
    for request in requests.take(REQUESTS) {
        let is_accepted = quotes.first().is_some_and(|quote| quote.part == Part::Accepted);
        let later = later.replace(request);
        let is_done = later.is_some_and(|later| is_accepted && is_closed(messages, later));
        if is_done || quotes.first().is_some_and(|kept| is_another_request(messages, kept, topic)) {
            break;
        }
        if later.is_some_and(|later| is_sent_again(messages, request, later)) {
            continue;
        }
        let says_little = |text: &str| says_little(text, topic);
        let followed = followed_plan(messages[request].text, request, topic);
        let own = if followed.is_some() { None } else { own(messages, request, topic) };
        let accepted = followed.or_else(|| accepted(messages, request, topic, own.as_ref()));
        if let Some(accepted) = accepted.filter(|_| !is_accepted) {
            quotes.retain(|kept| !says_little(&kept.text));
            quotes.splice(0..0, [Some(accepted), own.filter(|own| !is_bare(own))].into_iter().flatten());
            continue;
        }
        let Some(asked) = own.or_else(|| few_words(messages, request)) else { continue };
        // An answer to a question of the assistant is understood with what was asked before, and so is what the user adds
        // to a request for which nothing was changed yet.
        let is_about = |text: &str| shared(text, topic) > 0;
        let enough = if is_about(&asked.text) { FEW_STEMS_ALONE } else { ENOUGH_STEMS };
        let goes_on = |quote: &Quote| {
            let Quote { part, message, ref text, .. } = *quote;
            part == Part::Answered || is_answer(messages, message, text) || is_open(messages, message)
        };
        let is_enough = says(&asked.text) >= enough && !goes_on(&asked);
        match quotes.first().map(|kept| kept.text.as_str()) {
            // The request to which the proposal answers.
            Some(_) if quotes[0].part == Part::Accepted => {
                if says_little(&asked.text) || is_question(&asked.text) {
                    continue;
                }
                quotes.insert(0, asked);
                break;
            }
            // "Carry on with the next steps" says nothing without the request before it.
            Some(kept) if says_little(kept) => {
                // "Refactor now", after the request before it was done, asks for something else.
                if asks_something_else(messages, quotes[0].message) {
                    break;
                }
                if !says_little(&asked.text) || says(&asked.text) > says(kept) {
                    quotes = vec![asked];
                }
            }
            // "Write the docs for it, too" is about the lines, but only the request before it says what "it" is.
            Some(kept) => {
                let is_other = !is_about(kept) && !asks_something_else(messages, quotes[0].message);
                let is_vague = is_other || refers_back(kept) || goes_on(&quotes[0]);
                let says_more = says(&asked.text) >= FEW_STEMS_ALONE && is_vague;
                if is_about(&asked.text) || says_more {
                    quotes.insert(0, asked);
                    break;
                }
            }
            None => quotes.push(asked),
        }
        if is_enough {
            break;
        }
    }
    begun(messages, topic, &mut quotes);
    // A request such as "implement the plan" says nothing, but the assistant often says which part of it comes next.
    let is_vague = quotes.iter().all(|quote| shared(&quote.text, topic) == 0);
    quotes.extend(decided(messages, topic, is_vague, announces));
    quotes
}

/// Returns what a message of the user says for itself about the lines.
fn own(messages: &[Said<'_>], request: usize, topic: &Topic) -> Option<Quote> {
    let quote = |part, (range, text)| Quote { part, message: request, range, text };
    if let Some(answer) = answered(messages, request, topic) {
        return Some(quote(Part::Answered, answer));
    }
    let Said { role, text, .. } = messages[request];
    let is_said = role == Role::User;
    is_said.then(|| asked(text, topic)).flatten().map(|asked| quote(Part::Asked, asked))
}

/// Returns what the user accepts with a message: a plan, a proposal, or items of a list. `own` is what the message says for
/// itself.
fn accepted(messages: &[Said<'_>], request: usize, topic: &Topic, own: Option<&Quote>) -> Option<Quote> {
    let Said { role, text, .. } = messages[request];
    let is_bare = own.is_none_or(is_bare);
    let is_answer_alone = own.is_some_and(|own| own.part == Part::Answered);
    if own.is_none() && approves_plan(messages, request) {
        return plan(messages, request, topic);
    }
    if is_reply(messages, request) && !is_answer_alone {
        return proposal(messages, request, topic, is_bare && accepts(text));
    }
    let is_named = role == Role::User && is_bare;
    let item = is_named.then(|| named_item(messages, request, topic)).flatten();
    item.or_else(|| {
        let is_answer = is_named && is_answer(messages, request, text);
        is_answer.then(|| proposal(messages, request, topic, false)).flatten()
    })
}

/// Returns how many words a text has that say something.
fn says(text: &str) -> usize {
    stems(text).len()
}

/// Returns whether a quotation says little for itself.
fn is_bare(quote: &Quote) -> bool {
    says(&quote.text) < FEW_STEMS_ALONE
}

/// Returns whether a text says little, and nothing about the lines.
fn says_little(text: &str, topic: &Topic) -> bool {
    says(text) < FEW_STEMS_ALONE && shared(text, topic) == 0
}

/// Returns whether a message only agrees with the one before it.
fn is_reply(messages: &[Said<'_>], place: usize) -> bool {
    accepts(messages[place].text) || confirms(messages[place].text)
}

/// Returns whether a quoted request stands for itself, and the request before it was done, as in "fix 2 and 4" after 1 and 3
/// were fixed.
fn is_another_request(messages: &[Said<'_>], kept: &Quote, topic: &Topic) -> bool {
    let enough = if shared(&kept.text, topic) > 0 { FEW_STEMS_ALONE } else { ENOUGH_STEMS };
    let says_enough = says(&kept.text) >= enough && !refers_back(&kept.text);
    let stands_alone = says_enough || !numbers(messages[kept.message].text).is_empty();
    stands_alone && asks_something_else(messages, kept.message)
}

/// Returns whether the user stopped the assistant, added something to a request, and sent it again.
fn is_sent_again(messages: &[Said<'_>], request: usize, later: usize) -> bool {
    let is_answered = messages[request + 1..later].iter().any(|said| said.role == Role::Assistant);
    !is_answered && messages[later].text.trim_start().starts_with(messages[request].text.trim())
}

/// Returns whether a message says something else than to go on, after the request before it was done.
fn asks_something_else(messages: &[Said<'_>], place: usize) -> bool {
    let text = messages[place].text;
    let says_more = says(text) > 0 && !is_reply(messages, place) || !numbers(text).is_empty();
    says_more && is_closed(messages, place)
}

/// Returns whether a text is one question.
fn is_question(text: &str) -> bool {
    let is_only = || ![". ", " · ", "… ", "? "].iter().any(|end| text.contains(end));
    text.ends_with(QUESTION_MARKS) && is_only()
}

/// Puts the request with which a longer talk began before `quotes`, if the last request alone doesn't say what is wanted
/// and nothing was changed in between.
fn begun(messages: &[Said<'_>], topic: &Topic, quotes: &mut Vec<Quote>) {
    let asked = |quote: &&Quote| matches!(quote.part, Part::Asked | Part::Answered);
    let Some(last) = quotes.iter().rev().find(asked) else { return };
    if last.text.ends_with(QUESTION_MARKS) || refers_back(&last.text) || shared(&last.text, topic) == 0 {
        let (mut place, mut first) = (last.message, None);
        for _ in 0..OPEN_REQUESTS {
            let before = messages[..place].iter().rposition(|said| said.role == Role::User);
            let Some(before) = before.filter(|_| is_open(messages, place)) else { break };
            place = before;
            first = requests::asked(messages[place].text, topic).map(|said| (place, said)).or(first);
        }
        let Some((place, (range, text))) = first else { return };
        // A talk may have begun about something else.
        let is_beginning = !messages[..place].iter().any(|said| said.role == Role::User);
        let is_about = is_beginning || shared(&text, topic) > 0;
        let is_known = quotes.iter().any(|quote| quote.message == place);
        if is_about && !is_known && stems(&text).len() >= FEW_STEMS_ALONE {
            let last = last.message;
            let is_passing = |text: &str| text.ends_with(QUESTION_MARKS) && stems(text).len() < ENOUGH_STEMS;
            quotes.retain(|quote| {
                quote.part != Part::Asked || quote.message == last || !is_passing(&quote.text)
            });
            quotes.insert(0, Quote { part: Part::Asked, message: place, range, text });
        }
    }
}

/// Returns how many words about some lines a sentence has. The name of their file counts as [`NAMED`] words.
pub fn shared(sentence: &str, topic: &Topic) -> usize {
    let is_named = topic.files.iter().any(|name| files::names_it(sentence, name));
    words_of(&[sentence]).intersection(&topic.words).count() + if is_named { NAMED } else { 0 }
}

/// Returns the sentence of a commit's message that says why, after the subject. An item of a list, and one of several
/// sentences, must be about the lines, because a commit often does something elsewhere, too. Words of the subject are about
/// all of the commit, so they don't count.
pub fn in_commit(message: &str, topic: &Topic) -> Option<Sentence> {
    let (subject, body) = message.split_once('\n')?;
    let start = subject.len() + 1;
    let topic = Topic { words: &topic.words - &words_of(&[subject]), files: topic.files.clone() };
    let said = quotable(body).into_iter().filter(|said| gives_reason(said) && is_prose(&said.text));
    let said: Vec<Sentence> = said.collect();
    // Of several reasons, most are those of other changes.
    let is_only = said.len() == 1 && !said[0].is_item;
    let about = |sentence: &Sentence| shared(&sentence.text, &topic);
    let best = said.into_iter().rev().max_by_key(about);
    let found = best.filter(|sentence| is_only || about(sentence) > 1)?;
    Some(Sentence { range: start + found.range.start..start + found.range.end, ..found })
}

fn gives_reason(sentence: &Sentence) -> bool {
    sentence.form == Form::Statement && connects(&sentence.text)
}

fn connects(text: &str) -> bool {
    has_phrase(text, &CONNECTIVES)
}

fn has_phrase(text: &str, phrases: &[&str]) -> bool {
    let lower = format!(" {} ", text.to_lowercase().replace('’', "'"));
    phrases.iter().any(|phrase| lower.contains(&format!(" {phrase} ")))
}
