//! Finds the names that a summary contains but its sources don't contain.

use std::collections::BTreeSet;

use crate::summarize::quality::read::functions::{class, is_function};
use crate::summarize::quality::read::index::{Index, is_content};
use crate::summarize::quality::read::statements::Statement;
use crate::summarize::quality::read::tokens::{Kind, stem};

/// Short forms of names. The sources may contain the long forms instead.
const SHORT: [&str; 8] = ["TV", "TVs", "TVS", "UK", "US", "USA", "EU", "AI"];

/// Endings of common nouns and of other words at the beginning of a sentence. A word with such an ending is not taken
/// for a name.
const NOUNS: [&str; 14] =
    ["s", "ing", "ed", "ion", "ment", "ness", "ity", "ly", "ance", "ence", "ship", "ics", "ware", "work"];

/// Returns the names in the summary that no source contains. A name is a word with a capital letter within a sentence.
pub(super) fn unknown_names(
    said: &[Statement<'_>],
    index: &Index,
    speakers: &BTreeSet<String>,
) -> Vec<String> {
    let speaker_stems: BTreeSet<String> = speakers.iter().map(|word| stem(word)).collect();
    let mut found = Vec::new();
    for statement in said {
        let tokens = &statement.tokens;
        let is_known = |at: usize| is_name(statement, at) && index.has(&tokens[at].stem);
        for (at, token) in tokens.iter().enumerate() {
            // A model may complete a name: "LeBron" becomes "LeBron James".
            let completes = is_known(at + 1) || at.checked_sub(1).is_some_and(is_known);
            let is_speaker = speakers.contains(&token.lower) || speaker_stems.contains(&token.stem);
            if is_name(statement, at)
                && !is_speaker
                && !index.has(&token.stem)
                && !completes
                && !SHORT.contains(&token.text)
            {
                found.push(token.text.to_owned());
            }
        }
    }
    found
}

/// Returns how many different anchors the summary has. An anchor is a name or a number that also occurs in the sources.
pub(super) fn anchors(said: &[Statement<'_>], index: &Index, speakers: &BTreeSet<String>) -> usize {
    let mut found = BTreeSet::new();
    for statement in said {
        for token in &statement.tokens {
            let is_key = token.kind == Kind::Number || (token.is_capital() && index.has(&token.stem));
            if is_key || speakers.contains(&token.lower) {
                found.insert(token.lower.as_str());
            }
        }
    }
    found.len()
}

fn is_name(statement: &Statement<'_>, at: usize) -> bool {
    let is_counted = || statement.quantities.iter().any(|(place, _)| *place == at);
    statement.tokens.get(at).is_some_and(|token| {
        let is_word = token.kind == Kind::Word && token.is_capital() && !is_function(&token.lower);
        is_word && !is_counted() && (at > 0 || is_first_name(statement))
    })
}

/// Returns whether the first word of a sentence is a name. A verb must follow it, and it must not look like a common
/// noun.
fn is_first_name(statement: &Statement<'_>) -> bool {
    let [first, second, ..] = &statement.tokens[..] else { return false };
    let is_noun = NOUNS.iter().any(|ending| first.lower.ends_with(ending));
    let has_verb = "ZEBM".contains(class(second, false)) && !first.is_before_mark;
    has_verb && !is_noun && is_content(first)
}
