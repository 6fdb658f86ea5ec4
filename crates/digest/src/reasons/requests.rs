//! Quotes what a request of the user says about the lines.

use std::cmp::Reverse;
use std::ops::Range;

use super::files::names_it;
use super::{LONGEST_REQUEST, Part, Quote, Said, Topic, asks_something_else, connects, shared};
use crate::statements::own_words::{is_prose, own_words};
use crate::statements::stems;
use tiro_base::memory::Role;
use tiro_text::blocks::{Form, Sentence, blocks, first_error, is_boilerplate};

/// A request of fewer stems than this says too little to be quoted alone. Arbitrary.
const FEW_STEMS: usize = 2;

/// A request of at most this many words that is no sentence is a command. Arbitrary.
const WORDS_OF_COMMAND: usize = 5;

/// A request of at most this many words that speaks of a commit asks for nothing else. Arbitrary.
const WORDS_ABOUT_COMMIT: usize = 10;

/// Words of a request for a commit.
const COMMITS: [&str; 6] = [
    "commit message",
    "commit-message",
    "commit and push",
    "git commit",
    "commit this",
    "commit the changes",
];

/// The longest item of a request that is quoted because it names the file, in characters. Arbitrary: three lines.
const LONGEST_ITEM: usize = 300;

/// A request with at least this many items is a list. Arbitrary.
const ITEMS: usize = 3;

/// A text of more bytes than this is not quoted whole: the limit of [`quotable`](tiro_text::blocks::quotable).
const LONGEST_SENTENCE: usize = 500;

/// If this many bytes lie between two sentences, something was left out between them. Arbitrary: more than marks of lists
/// and of paragraphs.
const GAP: usize = 16;

/// Returns what a request says about the lines: the sentence about them with those around it, or its beginning, and its item
/// about their file.
pub(super) fn asked(request: &str, topic: &Topic) -> Option<(Range<usize>, String)> {
    if is_about_a_commit(request) {
        return None;
    }
    let (range, text) = sentence_about(request, topic)?;
    // A long request has an item for the file.
    let names_file = |text: &str| topic.files.iter().any(|name| names_it(text, name));
    let item = blocks(request).into_iter().find(|block| block.is_said() && names_file(&block.text));
    let item = item.filter(|item| !names_file(&text) && item.text.chars().count() <= LONGEST_ITEM);
    Some(match item {
        Some(item) => {
            let range = range.start.min(item.range.start)..range.end.max(item.range.end);
            (range, format!("{text} … {}", item.text.split_whitespace().collect::<Vec<_>>().join(" ")))
        }
        None => (range, text),
    })
}

/// Returns whether a short request asks for a commit or its message, not for a change.
fn is_about_a_commit(request: &str) -> bool {
    let lower = request.trim_start().to_lowercase();
    let is_short = lower.split_whitespace().count() <= WORDS_ABOUT_COMMIT;
    is_short && (lower.starts_with("commit") || COMMITS.iter().any(|words| lower.contains(words)))
}

/// Returns the sentence of a request about the lines with those around it, or its beginning.
fn sentence_about(request: &str, topic: &Topic) -> Option<(Range<usize>, String)> {
    let own = own_words(request).into_iter().map(|own| as_written(request, own));
    let mut own: Vec<Sentence> = own.collect();
    let is_list = own.iter().filter(|sentence| sentence.is_item).count() >= ITEMS;
    let is_long =
        own.iter().map(|sentence| sentence.text.chars().count() + 1).sum::<usize>() > LONGEST_REQUEST;
    if is_list && is_long {
        // A list asks for different things, so each sentence must be about the lines.
        own.retain(|sentence| shared(&sentence.text, topic) > usize::from(sentence.is_item));
    }
    match best(&own, topic) {
        Some(best) => Some(around(&own, best)),
        None => beginning(request, is_list).or_else(|| command(request)).or_else(|| before_log(request)),
    }
}

/// Returns the sentence at `place` with those around it, as many as fit: the first sentence of a request often says what
/// is wrong, and the next one what to do.
fn around(own: &[Sentence], place: usize) -> (Range<usize>, String) {
    let size = |at: usize| own.get(at).map_or(usize::MAX, |sentence| sentence.text.chars().count() + 1);
    let (mut from, mut to) = (place, place + 1);
    let mut left = LONGEST_REQUEST.saturating_sub(size(place));
    loop {
        let quoted = to - from;
        if from > 0 && size(from - 1) <= left {
            from -= 1;
            left -= size(from);
        }
        if size(to) <= left {
            left -= size(to);
            to += 1;
        }
        if to - from == quoted {
            break;
        }
    }
    let (mut text, mut last) = (String::new(), None);
    for sentence in &own[from..to] {
        let is_gap = last.is_some_and(|last: usize| sentence.range.start > last + GAP);
        let joint = match text.ends_with(char::is_alphanumeric) {
            _ if is_gap => " … ",
            true => " · ",
            false => " ",
        };
        text += if text.is_empty() { "" } else { joint };
        text += &sentence.text;
        last = Some(sentence.range.end);
    }
    (own[from].range.start..own[to - 1].range.end, text)
}

/// Returns whether a request names something by a pronoun, so that it can't be understood alone.
pub(super) fn refers_back(request: &str) -> bool {
    let lower = request.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| ["it", "its", "this", "that", "them", "these", "those", "they"].contains(&word))
}

/// Returns whether a text is what a person writes, also after the name of a command of the client, such as `/fix`.
fn is_written(text: &str) -> bool {
    is_prose(text.strip_prefix('/').unwrap_or(text))
}

/// Returns whether a sentence may say why.
fn says_something(sentence: &Sentence) -> bool {
    sentence.form != Form::Aside && is_written(&sentence.text) && !is_boilerplate(&sentence.text)
}

/// Returns the place of the sentence that is about the lines, or else of the one that says most.
fn best(said: &[Sentence], topic: &Topic) -> Option<usize> {
    let rated = said.iter().enumerate().filter(|(_, sentence)| says_something(sentence));
    let rated = rated.filter_map(|(place, sentence)| {
        let says = stems(&sentence.text).len().min(12);
        (says >= FEW_STEMS).then_some((
            shared(&sentence.text, topic),
            connects(&sentence.text),
            says,
            Reverse(place),
        ))
    });
    rated.max().map(|(.., Reverse(place))| place)
}

/// Returns a sentence as its message has it. Own words may name the first error of a log after a sentence, which nobody
/// said.
fn as_written(message: &str, sentence: Sentence) -> Sentence {
    let written = message.get(sentence.range.clone()).unwrap_or_default();
    let written = written.split_whitespace().collect::<Vec<_>>().join(" ");
    let head = written.trim_end_matches(['.', ':', ' ']);
    let has_error = !head.is_empty() && sentence.text.len() > written.len();
    match sentence.text.strip_prefix(head).is_some_and(|rest| has_error && rest.starts_with(": ")) {
        true => Sentence { text: written, ..sentence },
        false => sentence,
    }
}

/// Returns a request of a few words that are no sentence, such as "Implement phase 12".
fn command(request: &str) -> Option<(Range<usize>, String)> {
    let mut said = blocks(request).into_iter().filter(|block| block.is_said());
    let block = said.next().filter(|_| said.next().is_none())?;
    let text = block.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_said = text.chars().all(|c| c.is_alphanumeric() || " .,:!?'-/".contains(c));
    let is_short = text.split(' ').count() <= WORDS_OF_COMMAND;
    (is_said && is_short && stems(&text).len() >= FEW_STEMS).then_some((block.range, text))
}

/// Returns a request of a few words that says something else than to go on, such as "Refactor now".
pub(super) fn few_words(messages: &[Said<'_>], message: usize) -> Option<Quote> {
    let text = messages[message].text.trim();
    let is_short =
        messages[message].role == Role::User && text.split_whitespace().count() <= WORDS_OF_COMMAND;
    let is_quoted =
        is_short && text.starts_with(char::is_alphabetic) && asks_something_else(messages, message);
    let range = 0..messages[message].text.len();
    is_quoted.then(|| Quote { part: Part::Asked, message, range, text: text.to_owned() })
}

/// Returns the first line of a request before a log or other output that was pasted, or else the first error in it.
fn before_log(request: &str) -> Option<(Range<usize>, String)> {
    let line = request.lines().find(|line| !line.trim().is_empty())?;
    if is_boilerplate(line) {
        return None;
    }
    let is_sentence = is_written(line) && stems(line).len() > FEW_STEMS && line.len() <= LONGEST_SENTENCE;
    let quoted = if is_sentence { Some(line.trim().to_owned()) } else { first_error(request) }?;
    let start = request.find(quoted.trim_end_matches([' ', '…'])).unwrap_or(0);
    Some((start..start + quoted.len().min(request.len() - start), quoted))
}

/// Returns the beginning of a request that is a list, or one long text without full stops.
fn beginning(request: &str, is_list: bool) -> Option<(Range<usize>, String)> {
    let mut said = blocks(request).into_iter().filter(|block| block.is_said());
    let (range, text) = if is_list {
        let all: Vec<_> = said.collect();
        let range = all.first()?.range.start..all.last()?.range.end;
        (range, all.iter().map(|block| block.text.trim()).collect::<Vec<_>>().join(" · "))
    } else {
        let block = said.find(|block| is_written(&block.text))?;
        (block.range, block.text)
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.char_indices().nth(LONGEST_REQUEST).map_or(text.len(), |(end, _)| end);
    let cut = &text[..end];
    if is_list && cut.len() == text.len() {
        return Some((range, text));
    }
    let end =
        cut.rfind(' ').filter(|_| cut.len() < text.len() && (is_list || text.len() > LONGEST_SENTENCE))?;
    Some((range, format!("{} …", &cut[..end])))
}
