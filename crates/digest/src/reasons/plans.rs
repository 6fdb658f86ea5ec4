//! Quotes the plans and lists of the assistant that the user asked it to carry out.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

use super::files::names_it;
use super::{LONGEST_REQUEST, NAMED, Part, Quote, Said, Topic, shared, words_of};
use crate::statements::answers::{self as dialogs, FOLLOWING};
use crate::statements::voice;
use tiro_base::memory::Role;
use tiro_text::blocks::{Block, Kind, blocks, quotable, shortened};

/// How many messages before a reply are searched for the plan that it accepts. Arbitrary: a plan is often asked about.
const NEAR_PLAN: usize = 12;

/// A request of more words than this is read for itself, also if it names items of a list by their numbers. Arbitrary.
const WORDS_OF_CHOICE: usize = 24;

/// How many answers before a request are searched for the list whose items it names. Arbitrary: clients divide a report on
/// much work into many.
const NEAR_LIST: usize = 40;

/// How many items are quoted, if a request names several. Arbitrary.
const MOST_NAMED: usize = 6;

/// The longest part of an item that is quoted, in bytes. Arbitrary: three lines.
const LONGEST_ITEM: usize = 300;

/// Returns what a reply to questions of the assistant decides.
pub(super) fn decisions(messages: &[Said<'_>], reply: usize) -> Vec<String> {
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

/// Returns whether a message that says nothing else asks the assistant to carry out its plan, as clients write it, or is a
/// dialog in which the user approved it.
pub(super) fn approves_plan(messages: &[Said<'_>], reply: usize) -> bool {
    let Said { role, text, .. } = messages[reply];
    if role == Role::Tool {
        return decisions(messages, reply).first().is_some_and(|first| dialogs::is_plan(first));
    }
    let lower = text.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    lower.trim_start().starts_with("implement") && words.any(|word| word == "plan")
}

/// Returns what the last plan of the assistant before the reply is, and its item about the lines. A plan is a document with
/// a title.
pub(super) fn plan(messages: &[Said<'_>], reply: usize, topic: &Topic) -> Option<Quote> {
    let is_plan = |place: &usize| {
        let Said { role, text, .. } = messages[*place];
        role == Role::Assistant && text.starts_with("# ") && text.chars().count() > LONGEST_REQUEST
    };
    let message = (0..reply).rev().take(NEAR_PLAN).find(is_plan)?;
    quoted(messages[message].text, 0, message, topic)
}

/// Returns what the plan in `text` is, and its item about the lines. The plan begins at the byte `start` of the message.
fn quoted(text: &str, start: usize, message: usize, topic: &Topic) -> Option<Quote> {
    let all = blocks(text);
    let title = all.iter().find(|block| block.kind == Kind::Heading || block.is_said())?;
    let is_after = |block: &&Block| block.range.start >= title.range.end;
    let first = all.iter().filter(is_after).find(|block| block.kind == Kind::Prose && block.is_said());
    let first = first.filter(|block| block.text.chars().count() <= LONGEST_REQUEST);
    // Many items of a plan have the words of its title.
    let words = &topic.words - &words_of(&[title.text.as_str()]);
    let topic = Topic { words, files: topic.files.clone() };
    let is_part =
        |block: &Block| matches!(block.kind, Kind::Item | Kind::Heading) && block.range != title.range;
    let item = best_about(text, &topic, is_part);
    let parts =
        [Some(shortened(title.text.trim(), LONGEST_ITEM)), first.map(|block| block.text.trim().to_owned())];
    let mut quoted = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    quoted += &item.map(|(_, item)| format!(" … {item}")).unwrap_or_default();
    Some(Quote {
        part: Part::Accepted,
        message,
        range: start + title.range.start..start + title.range.end,
        text: quoted,
    })
}

/// Returns what the plan is with which a session begins, and its item about the lines.
pub(super) fn followed_plan(request: &str, message: usize, topic: &Topic) -> Option<Quote> {
    let start = request.len() - request.trim_start().strip_prefix(FOLLOWING)?.len();
    quoted(&request[start..], start, message, topic)
}

/// Returns the item about the lines of the assistant's last answer, if the user asked for items by their numbers, as in "fix
/// 2 and 4".
pub(super) fn named_item(messages: &[Said<'_>], request: usize, topic: &Topic) -> Option<Quote> {
    let named = numbers(messages[request].text);
    if named.is_empty() {
        return None;
    }
    let label = label(messages[request].text);
    let answers = (0..request).rev().filter(|place| messages[*place].role == Role::Assistant);
    let items = |message: usize| -> Option<(usize, Vec<Range<usize>>)> {
        let text = messages[message].text;
        let mut all = numbered(text);
        // "MIP 2" is no other item 2.
        all.retain(|(_, range)| label.is_none_or(|label| text[range.clone()].contains(label)));
        let found = all.iter().filter(|(number, _)| named.contains(number));
        let has_all = named.iter().all(|number| all.iter().any(|(each, _)| each == number));
        has_all.then(|| (message, found.map(|(_, range)| range.clone()).collect()))
    };
    let (message, items) = answers.take(NEAR_LIST).find_map(items)?;
    let text = messages[message].text;
    let rated: Vec<usize> = items.iter().map(|range| shared(&text[range.clone()], topic)).collect();
    let most = *rated.iter().max()?;
    let best = rated.iter().position(|about| *about == most)?;
    let is_best = most > 1 && rated.iter().filter(|about| **about == most).count() == 1;
    let quoted = match is_best {
        true => item_with_detail(&text[items[best].clone()], topic)?,
        // Which of them it is can't be told.
        false if items.len() <= MOST_NAMED => {
            let first: Vec<String> = items.iter().filter_map(|range| first(&text[range.clone()])).collect();
            first.join(" · ")
        }
        false => return None,
    };
    let range = items[best].clone();
    let text = shortened(&quoted, LONGEST_REQUEST);
    (!text.is_empty()).then_some(Quote { part: Part::Accepted, message, range, text })
}

/// Returns the title or the first sentence of an item of a list.
fn first(item: &str) -> Option<String> {
    let block = blocks(item).into_iter().next()?;
    match block.kind {
        Kind::Heading => Some(block.text),
        _ => quotable(item).into_iter().next().map(|said| said.text),
    }
}

/// Returns the title or the first sentence of an item, with its sentence that is most about the lines.
fn item_with_detail(item: &str, topic: &Topic) -> Option<String> {
    let first = first(item)?;
    let said = quotable(item).into_iter().map(|sentence| sentence.text).filter(|text| *text != first);
    let best = said.map(|text| (shared(&text, topic), text)).rev().max_by_key(|(about, _)| *about);
    let best = best.filter(|(about, _)| *about > 1).map(|(_, text)| format!(" … {text}"));
    Some(shortened(&(first + &best.unwrap_or_default()), LONGEST_ITEM))
}

/// Returns the numbers in a short request, as in "#2, 4 and 6-8"; none in a longer one.
pub(super) fn numbers(request: &str) -> BTreeSet<u32> {
    let mut named = BTreeSet::new();
    let words: Vec<&str> = request.split_whitespace().collect();
    for word in words.iter().take(WORDS_OF_CHOICE + 1) {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        let (first, last) = word.split_once(['-', '–']).unwrap_or((word, word));
        let number = |text: &str| text.trim_start_matches('#').parse::<u32>().ok().filter(|it| *it < 100);
        if let (Some(first), Some(last)) = (number(first), number(last)) {
            named.extend(first..=last);
        }
    }
    if words.len() > WORDS_OF_CHOICE { BTreeSet::new() } else { named }
}

/// Returns the word in capitals before the first number of a request, as in "address MIP 2".
fn label(request: &str) -> Option<&str> {
    let words: Vec<&str> = request.split_whitespace().collect();
    let is_label = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let labels =
        words.windows(2).filter(|two| !numbers(two[1]).is_empty()).map(|two| two[0].trim_end_matches(':'));
    labels.take(1).find(|word| is_label(word))
}

/// Returns the parts of a text that begin with a number, as in "2. Title", "### 2) Title" and "**MI #2** Title". A part ends
/// with the next number, or with a heading.
fn numbered(text: &str) -> Vec<(u32, Range<usize>)> {
    let mut found: Vec<(u32, Range<usize>)> = Vec::new();
    let (mut start, mut is_within) = (0, false);
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        match number(line) {
            Some(number) => {
                found.push((number, start..end));
                is_within = true;
            }
            None if line.starts_with('#') => is_within = false,
            None => found.last_mut().filter(|_| is_within).into_iter().for_each(|(_, part)| part.end = end),
        }
        start = end;
    }
    found
}

/// Returns the number with which a line begins, after marks of headings, emphasis and tables, and at most one word.
fn number(line: &str) -> Option<u32> {
    let is_row = line.starts_with('|');
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || "#*_|-(".contains(c));
    let (word, rest) = line.split_at(line.find(|c: char| !c.is_alphabetic()).unwrap_or(0));
    let rest = rest.trim_start_matches([' ', '#', '-']);
    let end = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| (1..=2).contains(end))?;
    let mut next = rest[end..].chars();
    let (after, is_range) = (next.next()?, next.next().is_some_and(|c| c.is_ascii_digit()));
    let is_label = word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_cell = is_row && rest[end..].trim_start().starts_with('|');
    let is_marked = ".):*|—–-".contains(after) || is_label && after == ' ' || is_cell;
    rest[..end].parse().ok().filter(|_| is_marked && !is_range && word.chars().count() <= 5)
}

/// Returns the item of a list that has more words of the lines than any other.
pub(super) fn item_about(text: &str, topic: &Topic) -> Option<(Range<usize>, String)> {
    best_about(text, topic, |block| block.kind == Kind::Item)
}

/// Returns the block that has more words of the lines than any other of those that `is_part` admits.
fn best_about(text: &str, topic: &Topic, is_part: impl Fn(&Block) -> bool) -> Option<(Range<usize>, String)> {
    let mut rated: Vec<(usize, Block)> = Vec::new();
    // An item below a heading or a sentence that names the file is about the file.
    let mut is_of_file = false;
    for block in blocks(text) {
        if block.kind != Kind::Item {
            is_of_file = topic.files.iter().any(|name| names_it(&block.text, name));
        }
        let about = shared(&block.text, topic);
        if is_part(&block) && about > 0 {
            rated.push((about + if is_of_file { NAMED } else { 0 }, block));
        }
    }
    rated.sort_by_key(|(about, _)| Reverse(*about));
    let is_best = rated.get(1).is_none_or(|(second, _)| *second < rated[0].0);
    let (_, best) = rated.into_iter().next().filter(|_| is_best)?;
    let is_short = best.text.chars().count() <= LONGEST_REQUEST;
    is_short.then(|| (best.range, best.text.split_whitespace().collect::<Vec<_>>().join(" ")))
}
