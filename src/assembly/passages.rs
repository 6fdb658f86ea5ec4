//! Passages: the lines of a context, each with its cost and its place.

use std::collections::BTreeMap;

use crate::budget::Budget;
use crate::context::assemble::{Heads, Line};
use crate::context::render;
use crate::memory::{Memory, Millis, Role};
use crate::scope::SessionId;
use crate::times;
use crate::tokens;

/// A part of a context, as its costs are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Decisions, marked messages and stored facts.
    Facts,
    /// Summaries of segments and sessions.
    Summaries,
    /// The latest messages.
    Recent,
    /// Messages that answer the question, and their neighbours.
    Relevant,
    /// Commits that answer the question.
    Commits,
}

impl Part {
    /// Returns the part's name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Facts => "facts",
            Part::Summaries => "summaries",
            Part::Recent => "recent",
            Part::Relevant => "relevant",
            Part::Commits => "commits",
        }
    }
}

/// A line of a context, with the heading above it.
#[derive(Clone, Debug)]
pub struct Passage {
    /// The part that its cost counts for.
    pub part: Part,
    /// The heading with session and day; empty if there is none.
    pub head: String,
    /// Its place in the order: time, session, ordinal.
    pub place: (Millis, String, i64),
    /// The line as shown.
    pub line: String,
    /// Its cost in tokens.
    pub cost: usize,
}

/// Everything chosen for a context.
#[derive(Debug, Default)]
pub struct Chosen {
    /// The passages that don't depend on the question, in the order shown.
    pub stable: Vec<Passage>,
    /// The passages that depend on it, most important first.
    pub live: Vec<Passage>,
    /// How many passages of each part were left out.
    pub dropped: BTreeMap<&'static str, usize>,
    /// How many memories wait to be embedded or summarised.
    pub pending: usize,
    /// Notices about what the answer lacks.
    pub notices: Vec<String>,
}

/// About the tokens of an answer without its lines: two envelopes, their marks, and the lists below them.
pub const FRAME: usize = 180;

/// The same for an answer with one envelope.
pub const SMALL_FRAME: usize = 120;

/// Returns the cost of a line in tokens, from above.
pub fn cost(line: &str) -> usize {
    render::cost(line)
}

/// Returns the day of a time in milliseconds, as `YYYY-MM-DD`.
pub fn day(time: Millis) -> String {
    times::show_time(time).chars().take_while(|c| *c != 'T').collect()
}

/// Takes the passages that fit, in order, each with its heading if that isn't shown yet. Counts those left out if
/// `says_dropped`.
pub(crate) fn fill(passages: Vec<Passage>, budget: &mut Budget, chosen: &mut Chosen, says_dropped: bool) {
    let mut names: Vec<String> = chosen.live.iter().map(|passage| passage.head.clone()).collect();
    names.sort_unstable();
    names.dedup();
    let known = names.len();
    let mut lines = Vec::with_capacity(passages.len());
    for passage in &passages {
        let head = names.iter().position(|name| *name == passage.head).unwrap_or_else(|| {
            names.push(passage.head.clone());
            names.len() - 1
        });
        lines.push(Line { cost: passage.cost, head });
    }
    let costs = names.iter().enumerate().map(|(place, name)| if place < known { 0 } else { cost(name) });
    let taken = Heads::new(costs.collect()).take(budget, usize::MAX, &lines);
    for (passage, taken) in passages.into_iter().zip(taken) {
        match taken {
            true => chosen.live.push(passage),
            false if says_dropped => *chosen.dropped.entry(passage.part.as_str()).or_default() += 1,
            false => {}
        }
    }
}

/// Returns the most tokens that one message may take of `budget`.
pub(crate) fn longest(budget: usize) -> usize {
    (budget / 8).max(200)
}

/// Returns the passage of a message, which shows `text`.
pub(crate) fn remembered(
    part: Part,
    session: &SessionId,
    memory: &Memory,
    text: &str,
    most: usize,
) -> Passage {
    let whole = usize::try_from(memory.tokens).unwrap_or(0);
    let name = memory.speaker.as_deref().or(memory.role.map(Role::as_str)).unwrap_or("?");
    let ordinal = memory.ordinal.unwrap_or(0);
    let is_part = text.len() < memory.text.len();
    let line = line(ordinal, name, text, if is_part { whole.max(most + 1) } else { whole }, most);
    let place = (0, session.as_str().to_owned(), ordinal);
    Passage { part, head: render::head(session.as_str(), &day(memory.time)), place, cost: cost(&line), line }
}

/// Returns the line of a message of `whole` tokens. At most `most` of them are shown, from the beginning.
pub(crate) fn line(ordinal: i64, name: &str, text: &str, whole: usize, most: usize) -> String {
    match whole > most {
        true => render::message(ordinal, name, tokens::truncate(text.trim_start(), most), Some(whole)),
        false => render::message(ordinal, name, text, None),
    }
}
