//! Chooses titles of conversations.

use super::Source;
use super::reading::{Reading, Sentence};
use super::word_keys::{self, words};
use crate::tuning::summaries;
use tiro_base::memory::Role;
use tiro_text::blocks::Form;

/// Beginnings of a request that say nothing about its topic.
const FILLERS: [&str; 29] = [
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
    "i want to",
    "i need to",
    "i'd like to",
    "i would like to",
    "i'm trying to",
    "i am trying to",
    "go ahead and",
    "let's",
    "lets",
    "then",
];

/// A sentence has at least this many words of letters only, or twice as many letters in a script without spaces. A path,
/// a command, a line of a log and a list of names have fewer. Arbitrary.
const LEAST_WORDS: usize = 3;

/// If a title is shorter than this many characters, the user's next sentence is added. A short request, such as "what is
/// next", says too little, and many sessions begin with it. Arbitrary.
const SHORT: usize = 40;

/// A title quotes at most this many sentences. Arbitrary.
const MOST_QUOTED: usize = 3;

/// Returns the title of a conversation: the user's first request, in at most [`summaries::TITLE`] characters, and the
/// next one if the first is short. The title is empty if the user said nothing that can be quoted.
pub fn title(sources: &[Source<'_>]) -> String {
    let said: Vec<Source<'_>> = sources.iter().filter(|source| source.role == Role::User).copied().collect();
    let reading = Reading::of(&said, "");
    let says_something = |sentence: &&Sentence| {
        !sentence.is_boilerplate && sentence.form != Form::Aside && !sentence.words.is_empty()
    };
    let said: Vec<&Sentence> = reading.sentences.iter().filter(says_something).collect();
    let prose: Vec<&Sentence> = said.iter().copied().filter(|sentence| is_prose(&sentence.text)).collect();
    let mut title = String::new();
    for sentence in if prose.is_empty() { said } else { prose }.into_iter().take(MOST_QUOTED) {
        let quoted = capitalised(without_fillers(&sentence.text).trim_end_matches(STOPS));
        if !title.is_empty() {
            title += "; ";
        }
        title += &quoted;
        if title.chars().count() >= SHORT {
            break;
        }
    }
    shortened(&title)
}

/// Returns whether a sentence is what a person writes, not a command, a path, a line of a log, or data.
fn is_prose(text: &str) -> bool {
    let begins =
        text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '"' | '“' | '`' | '@' | '¿' | '¡'));
    let is_word = |word: &str| {
        let word = word
            .trim_matches(|c: char| matches!(c, '.' | ',' | ':' | ';' | '!' | '?' | '"' | '(' | ')' | '`'));
        !word.is_empty() && word.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '’' | '-'))
    };
    let words = text.split_whitespace().filter(|word| is_word(word)).count();
    let letters = text.chars().filter(|c| c.is_alphabetic() && !c.is_ascii()).count();
    begins && (words >= LEAST_WORDS || letters >= 2 * LEAST_WORDS)
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
        match after.filter(|after| words(after).len() > 1) {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

/// The marks at the end of a sentence, which a title does without.
const STOPS: [char; 7] = ['.', ',', ':', ';', '!', '?', ' '];

/// Shortens `text` to the length of a title.
fn shortened(text: &str) -> String {
    let mut title = String::new();
    for word in text.split_whitespace() {
        if title.chars().count() + word.chars().count() + 1 > summaries::TITLE {
            // A text in a script without spaces can't be shortened at a space.
            if title.is_empty() {
                title = word.chars().take(summaries::TITLE).collect();
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
