//! Chooses titles of conversations.

use super::Source;
use super::cues::{chooses, only_prepares, stands_alone};
use super::exchanges::central;
use super::reading::{Reading, Sentence};
use super::word_keys::{self, words};
use crate::tuning::summaries;
use tiro_base::memory::Role;
use tiro_text::blocks::Form;

/// The separators of the clauses of a request.
const BOUNDARIES: [&str; 15] = [
    "; ",
    " - ",
    ", then ",
    " and then ",
    " then ",
    ", and i ",
    ", and ",
    ", but ",
    ", so ",
    ", can you ",
    ", could you ",
    ", which ",
    ", especially ",
    ", considering ",
    ", ",
];

/// Beginnings of a clause that say nothing about its topic.
const FILLERS: [&str; 63] = [
    "also",
    "and",
    "but",
    "so",
    "ok cool",
    "ok",
    "okay",
    "hmm",
    "yes",
    "no",
    "well",
    "hey",
    "hi",
    "please",
    "can you",
    "could you",
    "would you",
    "i need you to",
    "i want you to",
    "i'm kinda",
    "i'm trying to",
    "i am trying to",
    "i'm working on",
    "i am working on",
    "i want to",
    "i wanna",
    "i need to",
    "i'd like to",
    "i would like to",
    "i'm planning to",
    "i'm wondering",
    "i'm",
    "help me with",
    "help me to",
    "help me",
    "figure out how to",
    "understand how to",
    "make sure",
    "how do i",
    "how can i",
    "go ahead and",
    "let's",
    "lets",
    "considering",
    "worried that",
    "worried about",
    "kinda",
    "curious about",
    "anxious about",
    "stressed about",
    "stuck on",
    "stuck",
    "how to effectively",
    "i was wondering if you could",
    "wondering if",
    "specifically looking to",
    "then",
    "since",
    "now that",
    "i feel like",
    "i'm thinking of",
    "i was thinking of",
    "to",
];

/// The minimum number of words of a clause that can be a title. If no clause has so many words, half as many are
/// enough.
const LEAST_OF_TITLE: usize = 4;

/// Returns the title of a conversation: the topic of one of its early requests, in at most [`summaries::TITLE`]
/// characters. The title is empty if the user said nothing that can be quoted.
pub fn title(sources: &[Source<'_>]) -> String {
    let said: Vec<Source<'_>> = sources.iter().filter(|source| source.role == Role::User).copied().collect();
    let reading = Reading::of(&said, "");
    let central = central(&reading);
    let weight = |numbers: &[u32]| numbers.iter().map(|word| central[*word as usize]).sum::<f64>();
    let early = said.len().div_ceil(3).max(3);
    let rate = |sentence: &Sentence| {
        let first = match said.len() {
            _ if sentence.source > 0 => 1.0,
            ..=summaries::FEW_ASKS => summaries::ONLY_ASK,
            _ => summaries::FIRST_ASK,
        };
        let chooses = if chooses(sentence) { summaries::CHOICE } else { 1.0 };
        let item = if sentence.is_item { summaries::ITEM } else { 1.0 };
        let is_short = words(&sentence.text).len() < LEAST_OF_TITLE;
        let alone = if stands_alone(&sentence.text) && !is_short { 1.0 } else { summaries::LEANS };
        let task = if only_prepares(&sentence.text) { summaries::PREPARES } else { 1.0 };
        first * chooses * item * alone * task * weight(&sentence.words)
            / ((sentence.words.len() + 5) as f64).sqrt()
    };
    let asked = reading.sentences.iter().filter(|sentence| {
        sentence.source < early
            && !sentence.is_boilerplate
            && sentence.form != Form::Aside
            && !sentence.words.is_empty()
    });
    let best = asked.max_by(|a, b| rate(a).total_cmp(&rate(b)).then(b.source.cmp(&a.source)));
    let Some(best) = best else { return String::new() };
    let worth = |clause: &str| {
        let keys = words(clause).into_iter().map(|word| word_keys::key(word.text));
        let numbers: Vec<u32> = keys.filter_map(|key| reading.numbers.get(&key).copied()).collect();
        weight(&numbers) / ((numbers.len() + 3) as f64).sqrt()
    };
    shortened(&clause(&best.text, &worth))
}

/// Returns the most valuable clause of a request. Fillers at its beginning are removed.
fn clause(request: &str, worth: &dyn Fn(&str) -> f64) -> String {
    let request = request.replace('’', "'");
    let mut clauses = vec![request.as_str()];
    for boundary in BOUNDARIES {
        let parts = clauses.iter().flat_map(|clause| {
            let parts: Vec<&str> = clause.split(boundary).collect();
            // If a clause is only separated by a comma and is short, it is an item of an enumeration, or a part of a
            // number.
            let least = if boundary == ", " { LEAST_OF_TITLE } else { 2 };
            let are_long = parts.iter().all(|part| words(part).len() >= least);
            if are_long { parts } else { vec![*clause] }
        });
        clauses = parts.collect();
    }
    let stripped: Vec<&str> = clauses.iter().map(|clause| without_fillers(clause)).collect();
    let of = |least: usize| -> Vec<&str> {
        stripped.iter().copied().filter(|clause| words(clause).len() >= least).collect()
    };
    let long = [LEAST_OF_TITLE, LEAST_OF_TITLE / 2].into_iter().map(of).find(|clauses| !clauses.is_empty());
    let long = long.unwrap_or_default();
    // The first clause of a request mostly states the wish, unless it only prepares the work.
    let rate = |at: usize, clause: &str| {
        let task = if only_prepares(clause) { summaries::PREPARES } else { 1.0 };
        worth(clause) * task * if at == 0 { summaries::FIRST_CLAUSE } else { 1.0 }
    };
    let best = long
        .iter()
        .enumerate()
        .max_by(|(a_at, a), (b_at, b)| rate(*a_at, a).total_cmp(&rate(*b_at, b)).then(b_at.cmp(a_at)));
    best.map_or(without_fillers(&request), |(_, clause)| clause).to_owned()
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

/// Shortens a clause to the length of a title, and begins it with a capital letter.
fn shortened(clause: &str) -> String {
    let clause = clause.trim_end_matches(['.', ',', ':', ';', '!', '?', ' ']);
    let mut title = String::new();
    for word in clause.split_whitespace() {
        if title.chars().count() + word.chars().count() + 1 > summaries::TITLE {
            // A text in a script without spaces can't be shortened at a space.
            if title.is_empty() {
                title = word.chars().take(summaries::TITLE).collect();
            }
            title.push('…');
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title += word;
    }
    let first_word = title.split(' ').next().unwrap_or_default();
    let is_name = word_keys::is_identifier(first_word) || first_word.contains(['_', '.', '/', ':']);
    let mut characters = title.chars();
    match characters.next() {
        Some(first) if !is_name => first.to_uppercase().chain(characters).collect(),
        _ => title,
    }
}
