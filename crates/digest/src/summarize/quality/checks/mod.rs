//! Runs the checks of a summary, and computes a score for each check.

mod copies;
mod grammar;
mod language;
mod names;
mod negations;
mod numbers;
mod voices;

use std::collections::BTreeSet;

use self::copies::is_copy;
use self::language::{Language, language};
use self::names::{anchors, unknown_names};
use self::numbers::unknown_numbers;
use self::voices::{Evidence, Voices, evidence};
use crate::summarize::Source;
use crate::summarize::quality::read::index::{Index, readable};
use crate::summarize::quality::read::statements::{Statement, statements};
use crate::tuning::gate;

/// The result of all checks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The lowest score of any check, from 0 to 1.
    pub quality: f64,
    /// The fault, as the end of a sentence that begins with "the answer". It contains no text of the summary. It is
    /// empty if there is no fault.
    pub fault: &'static str,
    /// The wrong words or sentences.
    pub wrong: Vec<String>,
    /// Whether only names and numbers could be checked, because the summary is in another language than its sources.
    pub is_partial: bool,
    /// How far into the sources the summary reaches: the position of the last source that supports a statement, from 0
    /// to 1.
    pub reached: f64,
}

impl Verdict {
    /// Returns whether the summary passed every check.
    pub fn accepts(&self) -> bool {
        self.quality >= gate::LEAST_QUALITY
    }
}

/// Returns the quality of the summary according to the checks of [`judge`], from 0 to 1. A quality of
/// [`gate::LEAST_QUALITY`] is enough to be accepted. An empty summary has a quality of 0.
pub fn quality(summary: &str, sources: &[Source<'_>]) -> f64 {
    judge(summary, sources).quality
}

/// The score of a check that finds a fault, whatever the number of faults.
const WRONG: f64 = 0.4;

/// The fault of a text whose words have no order.
const ORDER: &str = "is not in sentences: its words have no order";

/// The order of the words is checked only if a text has at least this many words. Arbitrary.
const SHORT: usize = 6;

/// The result of a check.
struct Check {
    score: f64,
    fault: &'static str,
    wrong: Vec<String>,
}

impl Check {
    /// Returns the result of a check that looks for wrong words or sentences.
    fn found(wrong: Vec<String>, fault: &'static str) -> Check {
        Check { score: if wrong.is_empty() { 1.0 } else { WRONG }, fault, wrong }
    }

    /// Returns the result of a check that passes if `is_right` is true.
    fn holds(is_right: bool, fault: &'static str) -> Check {
        Check { score: if is_right { 1.0 } else { WRONG }, fault, wrong: Vec::new() }
    }

    /// Returns the result of a check that measures a value. The score is [`gate::LEAST_QUALITY`] at the limit, and 1
    /// from `full` on. Below the limit, the score falls to 0 over the same distance.
    fn measured(value: f64, (limit, full): (f64, f64), fault: &'static str) -> Check {
        let above = (value - limit) / (full - limit);
        let slope = if above < 0.0 { gate::LEAST_QUALITY } else { 1.0 - gate::LEAST_QUALITY };
        Check { score: (gate::LEAST_QUALITY + above * slope).clamp(0.0, 1.0), fault, wrong: Vec::new() }
    }
}

/// Judges a summary of `sources`.
pub fn judge(summary: &str, sources: &[Source<'_>]) -> Verdict {
    let sources = &readable(summary, sources)[..];
    let index = Index::of(sources);
    let voices = Voices::of(sources);
    let speakers: BTreeSet<String> = voices.words().collect();
    let said = statements(summary, &index, &speakers);
    if said.is_empty() || index.passages.is_empty() {
        return Verdict { fault: "says nothing of the messages", ..Verdict::default() };
    }
    let reached = reached(&said, &index, sources.len());
    let language = language(&said, sources);
    let mut checks = vec![
        Check::holds(ends(summary), "ends within a sentence"),
        Check::found(
            unknown_numbers(&said, sources, language == Language::English),
            "has a number or a date that the messages don't have",
        ),
    ];
    if language == Language::Another {
        let anchors = anchors(&said, &index, &speakers);
        checks.push(Check::holds(
            anchors * 2 >= said.len(),
            "is in another language than the messages, and has too few names and numbers to check it",
        ));
    } else {
        checks.extend(of_words(&said, &index, language));
        checks.extend(of_statements(&said, &index, &voices, &speakers, language));
        checks.push(Check::holds(!is_copy(summary, sources), "is a copy of one message"));
        if said.len() >= gate::REACHING.0 && sources.len() >= gate::REACHING.1 {
            let fault = "speaks only of the beginning of the conversation";
            checks.push(Check::measured(reached, gate::REACHED, fault));
        }
    }
    let is_partial = language == Language::Another;
    let most = if is_partial { gate::LEAST_QUALITY } else { 1.0 };
    let quality = checks.iter().map(|check| check.score).fold(most, f64::min);
    let failed = checks.into_iter().filter(|check| check.score < gate::LEAST_QUALITY);
    let worst = failed.min_by(|a, b| a.score.total_cmp(&b.score));
    let (fault, wrong) = worst.map_or(("", Vec::new()), |check| (check.fault, check.wrong));
    Verdict { quality, fault, wrong, is_partial, reached }
}

/// Returns whether the text ends with a complete sentence or with a list item.
fn ends(summary: &str) -> bool {
    let last = summary.trim_end().rsplit('\n').next().unwrap_or_default().trim_start();
    let is_item = summary.trim_end().contains('\n') && last.starts_with(['-', '*', '•']);
    let end = summary.trim_end().trim_end_matches(['"', '\'', ')', '”', '’', '*', '`', '»', ']', '」']);
    is_item || end.ends_with(['.', '!', '?', '…', '。', '！', '？', '।', '؟', '۔'])
}

/// Returns the position of the last source that supports a statement, from 0 for the first source to 1 for the last.
fn reached(said: &[Statement<'_>], index: &Index, sources: usize) -> f64 {
    let last = |statement: &Statement<'_>| {
        let best = statement.support.iter().filter(|(_, weight)| **weight >= statement.best);
        best.map(|(place, _)| index.passages[*place]).max()
    };
    let last = said.iter().filter_map(last).max().unwrap_or(0);
    if sources < 2 { 1.0 } else { last as f64 / (sources - 1) as f64 }
}

/// Checks the words of the whole text: their order, and the share of them that the sources support.
fn of_words(said: &[Statement<'_>], index: &Index, language: Language) -> Vec<Check> {
    let (mut order, mut pairs, mut known_pairs, mut words, mut marks) = (0.0, 0, 0, 0, 0);
    for statement in said {
        order += grammar::order(&statement.tokens);
        let (all, known) = grammar::pairs(&statement.tokens, &index.pairs);
        (pairs, known_pairs) = (pairs + all, known_pairs + known);
        words += statement.tokens.len();
        marks += statement.tokens.iter().filter(|token| token.is_before_mark).count();
    }
    let order = match language {
        // A few words, such as "Fixes the parser.", have too little order to be checked.
        _ if words < SHORT => Check::holds(true, ORDER),
        Language::English => Check::measured(order + known_pairs as f64, gate::ORDER, ORDER),
        _ if pairs < 2 * SHORT => Check::holds(true, ORDER),
        _ => Check::measured(known_pairs as f64 / pairs as f64, gate::PAIRS, ORDER),
    };
    let is_list = words > 5 && marks as f64 > gate::MARKS * words as f64;
    let weight: f64 = said.iter().map(|statement| statement.weight).sum();
    let best: f64 = said.iter().map(|statement| statement.best).sum();
    // The constants reduce the influence of a single word in a short text.
    let support = (best + 1.0) / (weight + 3.0) + (known_pairs as f64 + 0.5) / (pairs as f64 + 5.0);
    let long = (weight / gate::LONG).min(1.0);
    let doublings = (index.passages.len() as f64 / 16.0).log2().clamp(0.0, 5.0);
    let limit = gate::SUPPORT + gate::SUPPORT_IF_LONG * long + gate::SUPPORT_PER_DOUBLING * doublings;
    vec![
        order,
        Check::holds(!is_list, "is a list of words, not sentences"),
        Check::measured(support, (limit, gate::SUPPORTED), "says much that the messages don't say"),
        Check::holds(best > 0.0, "says nothing that the messages say"),
    ]
}

/// Checks each statement: its support, names, speaker and negations.
fn of_statements(
    said: &[Statement<'_>],
    index: &Index,
    voices: &Voices<'_>,
    speakers: &BTreeSet<String>,
    language: Language,
) -> Vec<Check> {
    let those = |is_wrong: &dyn Fn(&Statement<'_>) -> bool| -> Vec<String> {
        said.iter()
            .filter(|statement| is_wrong(statement))
            .map(|statement| statement.text.to_owned())
            .collect()
    };
    let (least, words) = gate::SENTENCE;
    let alone =
        those(&|statement| statement.words.len() >= words && statement.best < least * statement.weight);
    let mut checks =
        vec![Check::found(alone, "has a sentence that no message supports"), voice(said, voices, index)];
    if language != Language::Unknown {
        let names = unknown_names(said, index, speakers);
        checks.push(Check::found(names, "has a name that the messages don't have"));
    }
    if language == Language::English {
        let added = those(&|statement| negations::is_added(statement, index, speakers));
        checks.push(Check::found(added, "negates what the messages don't negate"));
        let dropped = those(&|statement| negations::is_dropped(statement, index));
        checks.push(Check::found(dropped, "says what the messages only negate"));
    }
    checks
}

/// Checks whether each speaker that a statement names said the words that support the statement.
fn voice(said: &[Statement<'_>], voices: &Voices<'_>, index: &Index) -> Check {
    let mut subject = None;
    let (mut right, mut wrong) = (0.0, 0.0);
    for statement in said {
        let found: Evidence = evidence(statement, voices, index, &mut subject);
        (right, wrong) = (right + found.right, wrong + found.wrong);
    }
    let sum = right + wrong;
    let (prior, limit) = match sum >= gate::EVIDENCE.0 {
        true => (0.0, gate::BALANCE.0),
        false => (gate::EVIDENCE.1, gate::BALANCE.1),
    };
    let balance = (right - wrong) / (sum + prior);
    Check::measured(balance, (limit, 0.3), "says of one speaker what another said")
}
