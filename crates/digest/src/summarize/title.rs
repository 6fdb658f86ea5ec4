//! Chooses titles of conversations.

use std::collections::BTreeSet;

use super::Source;
use super::conclusions::concludes;
use super::exchanges::{edits, repeated};
use super::reading::{Reading, Sentence};
use super::specificity::{is_preparation, names, specificity, verbs_of_requests};
use super::word_keys::{self, words};
use crate::statements::own_words::{is_prose, own_words};
use crate::tuning::summaries;
use tiro_base::memory::Role;
use tiro_text::blocks::{Form, is_boilerplate};

/// Beginnings of a request that say nothing about its topic.
const FILLERS: [&str; 35] = [
    "also",
    "and",
    "but",
    "so",
    "ok",
    "okay",
    "hmm",
    "yes",
    "no",
    "well",
    "hey",
    "hi",
    "hello",
    "please",
    "can you",
    "could you",
    "would you",
    "i want you to",
    "i need you to",
    "be able to",
    "now",
    "it's time to",
    "we want to",
    "we need to",
    "i want to",
    "i need to",
    "i'd like to",
    "i would like to",
    "i'm trying to",
    "i am trying to",
    "go ahead and",
    "help me",
    "let's",
    "lets",
    "then",
];

/// Verbs with which a user begins work or asks about it before naming the task. Together with an object that says
/// little, they begin many sessions.
const OPENERS: &str =
    "continue start proceed resume read check see review show tell explain help understand what";

/// The phrase with which a user asks to go on with the work of an earlier conversation.
const LEFT_OFF: &str = "left off";

/// Words that refer to an earlier sentence.
const REFERENCES: [&str; 6] = ["it", "its", "this", "that", "these", "they"];

/// If a title is shorter than this many characters, the user's next sentence is added. Arbitrary.
const SHORT: usize = 44;

/// The first part of a title, which names a task by its number, has at most this many characters. Arbitrary:
/// less than half of a title.
const LONGEST_HEAD: usize = 30;

/// This many words of a request weigh as much as a word that is not common. Arbitrary.
const LONGER: usize = 5;

/// A part of a long sentence is preferred to the sentence's beginning if its specificity is at least this many times as
/// high. Arbitrary.
const BETTER: usize = 2;

/// Words of titles that name a conversation or its course, not its topic.
const COURSE: &str = "chat conversation discussion session prior previous last next step steps continue continuing \
    started starting request requests question questions inquiry issue problem task tasks project untitled name";

/// Returns the title that a conversation is shown with: `given`, the title of the client, if it is about what the user
/// asked for. Otherwise the conversation's own title, as [`title`] makes it. If `given` has one word of the user's, both
/// are joined. Some clients give the beginning of the first message as the title, with markup and all; it is replaced,
/// too.
pub fn shown_title(given: &str, sources: &[Source<'_>]) -> String {
    if is_beginning(given, sources) {
        let own = title(sources);
        return if own.is_empty() { given.to_owned() } else { own };
    }
    let said: BTreeSet<String> = sources
        .iter()
        .filter(|source| source.role == Role::User)
        .flat_map(|source| words(source.text))
        .map(|word| word_keys::key(word.text))
        .collect();
    let course: BTreeSet<String> = COURSE.split(' ').map(word_keys::key).collect();
    let verbs: BTreeSet<String> = verbs_of_requests().map(word_keys::key).collect();
    let is_about = |word: &str, key: &String| {
        !word_keys::is_common(word, key) && !course.contains(key) && !verbs.contains(key)
    };
    let about: BTreeSet<String> = words(given)
        .into_iter()
        .map(|word| (word.text, word_keys::key(word.text)))
        .filter(|(word, key)| is_about(word, key))
        .map(|(_, key)| key)
        .collect();
    let keys: BTreeSet<&String> = about.intersection(&said).collect();
    if keys.len() > 1 {
        return given.to_owned();
    }
    let (own, files) = (title(sources), edited(sources));
    let (mut shown, more) = match () {
        () if own.is_empty() && about.is_empty() => (opening(sources).unwrap_or(given.to_owned()), files),
        () if own.is_empty() => (given.to_owned(), files),
        () if is_opener(&own) => (own, files),
        () if keys.is_empty() => (own, String::new()),
        () => (given.to_owned(), own),
    };
    add(&mut shown, &more);
    shown
}

/// Returns the first words of the user, even if they are mixed with code. A line that begins with a time or a level, as
/// those of logs do, or with a sign has none.
fn opening(sources: &[Source<'_>]) -> Option<String> {
    let first = sources.iter().find(|source| source.role == Role::User)?;
    let is_said = |line: &&str| {
        let mut begin = line.chars();
        begin.next().is_some_and(char::is_alphabetic)
            && begin.next().is_some_and(|second| second.is_alphabetic() && !second.is_uppercase())
    };
    let line = first.text.lines().map(|line| line.trim_start()).find(is_said)?;
    Some(shortened(line, summaries::TITLE))
}

/// Returns whether a title is only the beginning of the user's first message.
fn is_beginning(given: &str, sources: &[Source<'_>]) -> bool {
    let said = |text: &str| words(text).into_iter().map(|word| word.text.to_lowercase()).collect::<Vec<_>>();
    let mut given = said(given.trim_end_matches(['…', '.', ' ']));
    // The last word may be cut.
    let last = given.pop().unwrap_or_default();
    let first = sources.iter().find(|source| source.role == Role::User);
    let first =
        first.map(|source| said(&source.text[..source.text.floor_char_boundary(4 * summaries::TITLE)]));
    first.is_some_and(|first| {
        let next = first.get(given.len());
        first.starts_with(&given) && next.is_some_and(|next| next.starts_with(&last))
    })
}

/// The maximum number of files in a title. Arbitrary.
const FILES: usize = 3;

/// Returns the names of the files that the assistant edited most often.
fn edited(sources: &[Source<'_>]) -> String {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for name in sources.iter().filter(|source| source.role == Role::Tool).filter_map(|call| edits(call.text))
    {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let names: Vec<String> = counts.into_iter().take(FILES).map(|(name, _)| name).collect();
    names.join(", ")
}

/// Returns the title of a conversation: the user's first request that says what it is about, in at most
/// [`summaries::TITLE`] characters. A request such as "what is next" or "continue working on task 2" begins many
/// sessions. So only its number or name is kept, and the next request is added. If no request says what it is about,
/// the assistant's first conclusion is added. The title is empty if nothing can be quoted.
pub fn title(sources: &[Source<'_>]) -> String {
    let repeated = repeated(sources);
    let all: Vec<String> = sources
        .iter()
        .enumerate()
        .filter(|(place, source)| source.role == Role::User && !repeated.contains(place))
        .flat_map(|(_, source)| asked(source))
        .collect();
    let prose: Vec<String> = all.iter().filter(|ask| is_prose(ask)).cloned().collect();
    let asks = if prose.is_empty() { all } else { prose };
    let Some(first) = asks.first() else { return String::new() };
    let mut title = String::new();
    let mut rest = &asks[..];
    if is_opener(first) && !says_enough(first) {
        let at = |is_next: &dyn Fn(&String) -> bool| (1..asks.len()).find(|at| is_next(&asks[*at]));
        let next = at(&|ask| !is_opener(ask) && !refers(ask))
            .or_else(|| at(&|ask| specificity(ask) >= summaries::SPECIFIC));
        rest = &asks[next.unwrap_or(asks.len())..];
        let heads = asks[..next.unwrap_or(1)].iter().rev().map(|ask| clauses(ask)[0]);
        let named = heads.clone().find(|head| names(head) > 0 && head.chars().count() <= LONGEST_HEAD);
        if next.is_none() {
            add(&mut title, first);
            conclusion(sources).into_iter().for_each(|conclusion| add(&mut title, &conclusion));
        } else if let Some(head) = named {
            title = capitalised(head);
        }
    }
    for ask in rest {
        let is_first = std::ptr::eq(ask, &rest[0]);
        if !is_first && (title.chars().count() >= SHORT || specificity(ask) < summaries::SPECIFIC) {
            break;
        }
        add(&mut title, ask);
    }
    title
}

/// Returns the user's sentences in a message, without the words that say nothing about the topic.
fn asked(source: &Source<'_>) -> Vec<String> {
    let own = own_words(source.text);
    let mut said: Vec<&str> = own
        .iter()
        .filter(|sentence| sentence.form != Form::Aside && !is_boilerplate(&sentence.text))
        .map(|sentence| without_mentions(&sentence.text))
        .filter(|text| words(text).len() > 1 || !starts_with(text, "ok"))
        .collect();
    // What there is comes before what is wanted.
    let has = |text: &str| HAVES.iter().any(|have| text.to_lowercase().contains(have));
    let is_wanted = |text: &&str| {
        let ask = without_fillers(text);
        WANTS.iter().any(|want| starts_with(text, want)) && !refers(ask) && words(ask).len() > 2
    };
    if said.first().is_some_and(|first| has(first))
        && let Some(wanted) = said.iter().position(is_wanted)
    {
        said.drain(..wanted);
    }
    said.into_iter()
        .map(|text| without_preparation(without_fillers(text)).trim_end_matches(STOPS))
        .map(with_short_paths)
        .filter(|text| !text.is_empty())
        .collect()
}

/// Phrases with which a user says what there is, and beginnings of a sentence that says what is wanted.
const HAVES: [&str; 2] = ["we have ", "i have "];
const WANTS: [&str; 6] = ["now ", "we want to ", "we need to ", "it's time to ", "i want ", "i need "];

/// Words between what the assistant should read and what it should do.
const THEN: [&str; 4] = [" then ", " and now ", ", now ", " and also "];

/// Returns what a request asks for after it names what to read first, as in "read the plan, then begin with step 2".
fn without_preparation(ask: &str) -> &str {
    let after = THEN.iter().filter_map(|then| ask.split_once(then)).min_by_key(|(before, _)| before.len());
    match after.map(|(before, after)| (before, without_fillers(after))) {
        Some((before, after))
            if is_preparation(before) && specificity(after) >= summaries::SPECIFIC && !refers_soon(after) =>
        {
            after
        }
        _ => ask,
    }
}

fn starts_with(text: &str, beginning: &str) -> bool {
    text.get(..beginning.len()).is_some_and(|head| head.eq_ignore_ascii_case(beginning))
}

/// A path with more characters is shown as the name of its file. Arbitrary: a third of a title.
const LONGEST_PATH: usize = 24;

/// Returns a sentence with the names of files instead of long paths.
fn with_short_paths(sentence: &str) -> String {
    let short = |word: &str| {
        let is_path = word.chars().count() > LONGEST_PATH && !word.contains("://");
        let name = word.rsplit(['/', '\\']).next().filter(|name| is_path && name.len() < word.len());
        name.filter(|name| name.contains(char::is_alphanumeric)).unwrap_or(word).to_owned()
    };
    sentence.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

/// Returns a sentence without the files that the user attached before it, such as `@src/a.rs`. If it has no other
/// words, returns it whole.
fn without_mentions(sentence: &str) -> &str {
    let rest = sentence.trim_start_matches(|c: char| c.is_whitespace());
    match rest.strip_prefix('@').and_then(|mention| mention.split_once(' ')) {
        Some((_, after)) if after.contains(char::is_alphanumeric) => without_mentions(after),
        _ => rest,
    }
}

/// Returns the first word of a text in lower case.
fn first_word(text: &str) -> String {
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase()
}

/// Returns whether one of the first words of a request refers to what comes before it.
fn refers_soon(ask: &str) -> bool {
    ask.split(' ').take(4).any(refers)
}

/// Returns whether a request begins with a reference to an earlier sentence.
fn refers(ask: &str) -> bool {
    REFERENCES.contains(&first_word(ask).as_str())
}

/// Returns whether a request begins with one of the [`OPENERS`].
fn begins_with_opener(ask: &str) -> bool {
    let first = first_word(ask);
    OPENERS.split_whitespace().any(|opener| opener == first)
}

/// Returns whether a first request can do without a later one, although it names little: it has many words, and none
/// that refers to something else.
fn says_enough(ask: &str) -> bool {
    let length = words(ask).len() / LONGER;
    !is_preparation(ask)
        && !begins_with_opener(ask)
        && !ask.split(' ').any(refers)
        && specificity(ask) + length > summaries::SPECIFIC
}

/// Returns whether a request says too little, so that many sessions begin with it.
fn is_opener(ask: &str) -> bool {
    let bar = summaries::SPECIFIC + 1;
    let says_more = |clause: &&str| names(clause) > 0 && specificity(clause) > bar;
    // Files to read say nothing about the work.
    let mentions = ask.split(' ').filter(|word| is_preparation(ask) && word.starts_with('@')).count();
    ask.to_lowercase().contains(LEFT_OFF)
        || specificity(ask) < bar + mentions
        || (begins_with_opener(ask)
            && !ask.contains(": ")
            && specificity(clauses(ask)[0]) <= bar
            && !clauses(ask).iter().any(says_more))
}

/// Returns the assistant's first conclusion.
fn conclusion(sources: &[Source<'_>]) -> Option<String> {
    let reading = Reading::of(sources, "");
    let is_answer = |sentence: &&Sentence| sources[sentence.source].role == Role::Assistant;
    let concluding = |sentence: &&Sentence| sentence.is_last && concludes(sentence);
    let found = reading.sentences.iter().filter(is_answer).find(concluding)?;
    Some(found.text.trim_end_matches(STOPS).to_owned())
}

/// Adds a sentence to a title, as far as there is room for it.
fn add(title: &mut String, sentence: &str) {
    let before = if title.is_empty() { 0 } else { title.chars().count() + 2 };
    let room = summaries::TITLE.saturating_sub(before);
    let text = fitted(sentence, room);
    if before == 0 {
        *title = text;
    } else if room >= SHORT / 2 && specificity(&text) > 1 {
        *title += "; ";
        *title += &text;
    }
}

/// Returns a sentence in at most `room` characters. A long sentence is cut at the end. If a later clause of it is more
/// specific than its beginning, the text begins with this clause.
fn fitted(sentence: &str, room: usize) -> String {
    if sentence.chars().count() <= room {
        return capitalised(sentence);
    }
    let mut best = shortened(sentence, room);
    let mut bar = (specificity(&best) * BETTER).max(1);
    for clause in clauses(sentence).into_iter().skip(1) {
        let from = clause.as_ptr() as usize - sentence.as_ptr() as usize;
        let rest = shortened(without_fillers(&sentence[from..]), room);
        if specificity(&rest) >= bar {
            bar = specificity(&rest) + 1;
            best = rest;
        }
    }
    capitalised(&best)
}

/// Returns the clauses of a sentence. There is at least one.
fn clauses(sentence: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, mark) in sentence.match_indices([',', ';', ':', '—']) {
        let end = at + mark.len();
        if sentence[end..].starts_with(' ') {
            found.push(sentence[start..at].trim());
            start = end;
        }
    }
    found.push(sentence[start..].trim());
    found
}

fn without_fillers(clause: &str) -> &str {
    let mut rest = clause.trim();
    loop {
        let after = FILLERS.iter().find_map(|filler| {
            let head = rest.get(..filler.len())?;
            let after = &rest[filler.len()..];
            (head.eq_ignore_ascii_case(filler) && after.starts_with([' ', ',']))
                .then(|| after.trim_start_matches([' ', ',']))
        });
        match after.filter(|after| words(after).len() > 1 && !after.starts_with("with")) {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

/// The marks at the end of a sentence, which a title does without.
const STOPS: [char; 7] = ['.', ',', ':', ';', '!', '?', ' '];

/// Shortens `text` to `room` characters.
fn shortened(text: &str, room: usize) -> String {
    let mut title = String::new();
    for word in text.split_whitespace() {
        if title.chars().count() + word.chars().count() + 1 > room {
            // A text in a script without spaces can't be shortened at a space.
            if title.is_empty() {
                title = word.chars().take(room.saturating_sub(1)).collect();
            }
            title = format!("{}…", title.trim_end_matches(STOPS));
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title += word;
    }
    title
}

/// Returns `text` with a capital letter at its beginning, unless it begins with a name.
fn capitalised(text: &str) -> String {
    let first_word = text.split(' ').next().unwrap_or_default();
    let is_name = word_keys::is_identifier(first_word) || first_word.contains(['_', '.', '/', ':']);
    let mut characters = text.chars();
    match characters.next() {
        Some(first) if !is_name => first.to_uppercase().chain(characters).collect(),
        _ => text.to_owned(),
    }
}
