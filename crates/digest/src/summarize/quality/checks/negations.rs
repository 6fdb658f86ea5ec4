//! Checks whether a summary and its sources negate the same things.

use std::collections::BTreeSet;

use crate::summarize::quality::read::index::{Index, is_content, is_reporting};
use crate::summarize::quality::read::negatives::{REACH, is_negative, negates};
use crate::summarize::quality::read::statements::Statement;
use crate::summarize::quality::read::tokens::Token;
use crate::tuning::gate;

/// Verbs whose negation is positive, as in "don't worry". A speaker may have said the same without a negation.
const ENCOURAGED: [&str; 10] =
    ["give", "giving", "stop", "stopping", "worry", "forget", "hesitate", "miss", "lose", "quit"];

/// The maximum number of passages between a negation in the sources and the passage that supports the sentence.
/// Arbitrary.
const NEAR: usize = 1;

/// Returns whether a sentence of the summary contains a negation that its sources don't contain.
pub(super) fn is_added(statement: &Statement<'_>, index: &Index, speakers: &BTreeSet<String>) -> bool {
    let near: Vec<usize> = statement.near().collect();
    let is_near = |passage: usize| near.iter().any(|place| place.abs_diff(passage) <= NEAR);
    let said = &statement.tokens;
    said.iter().enumerate().filter(|(_, token)| negates(token)).any(|(place, _)| {
        let Some(next) = said.get(place + 1) else { return false };
        let negated =
            |stem: &str| index.with(stem).any(|said| said.negated.contains(stem) && is_near(said.passage));
        // "Never give up" is an encouragement, not a negation.
        let verb = if next.lower == "to" { said.get(place + 2) } else { Some(next) };
        if verb.is_some_and(|verb| ENCOURAGED.contains(&verb.lower.as_str())) {
            return false;
        }
        // A summary rarely reports that something was not said, unless a source reports the same.
        if is_reporting(next) {
            return !next.lower.starts_with("agree") && !negated(&next.stem);
        }
        if statement.best < gate::KNOWN * statement.weight {
            return false;
        }
        let scope = scope(said, place, speakers);
        let known: Vec<&String> = scope.iter().filter(|stem| index.has(stem)).collect();
        let weight = |stems: &[&String]| stems.iter().map(|stem| index.weight(stem)).sum::<f64>();
        let said_so: Vec<&String> = known.iter().copied().filter(|stem| negated(stem)).collect();
        match (scope.is_empty(), known.is_empty()) {
            (true, _) => {
                statement.best > 0.0 && !index.said.iter().any(|said| said.negates && is_near(said.passage))
            }
            (false, true) => false,
            (false, false) => weight(&said_so) < 0.5 * weight(&known),
        }
    })
}

/// Returns whether a sentence of the summary states something without a negation, although the sources only state it
/// with a negation.
pub(super) fn is_dropped(statement: &Statement<'_>, index: &Index) -> bool {
    if statement.best < gate::KNOWN * statement.weight {
        return false;
    }
    let near: Vec<usize> = statement.near().collect();
    let is_near = |passage: &usize| near.iter().any(|place| place.abs_diff(*passage) <= NEAR);
    let negated = |pair: &str| index.negated.after.get(pair).is_some_and(|places| places.iter().any(is_near));
    let mut left = 0;
    statement.tokens.windows(2).any(|two| {
        if is_negative(&two[0]) {
            left = REACH;
            return false;
        }
        let pair = format!("{} {}", two[0].stem, two[1].stem);
        let has_meaning = is_content(&two[0]) || is_content(&two[1]);
        let is_only = pair == "giv up" || (has_meaning && negated(&pair));
        let is = left == 0 && is_only && !index.negated.elsewhere.contains(&pair);
        left = usize::saturating_sub(left, 1);
        is
    })
}

/// Returns the stems of the content words that the token at `place` negates: at most three, up to the next mark.
fn scope(tokens: &[Token<'_>], place: usize, speakers: &BTreeSet<String>) -> Vec<String> {
    let mut scope = Vec::new();
    for token in tokens[place + 1..].iter().take(REACH) {
        if is_content(token) && !speakers.contains(&token.lower) {
            scope.push(token.stem.clone());
        }
        let ends = matches!(token.lower.as_str(), "but" | "because" | "since" | "and" | "as" | "due");
        if token.is_before_mark || ends || scope.len() == 3 {
            break;
        }
    }
    scope
}
