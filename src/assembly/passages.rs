//! Passages: the lines that a context is made of, each with its cost and its place.

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
    /// What was decided, marked, or stored as a fact.
    Facts,
    /// Summaries of segments and sessions.
    Summaries,
    /// What was said last.
    Recent,
    /// What answers the question, and what was said around it.
    Relevant,
    /// Commits that answer it.
    Commits,
}

impl Part {
    /// Returns the word it is listed under.
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

/// A line of a context, with the head it stands under.
#[derive(Clone, Debug)]
pub struct Passage {
    /// What it is counted as.
    pub part: Part,
    /// The line that names its session and day; empty where there is none.
    pub head: String,
    /// Where it stands among the others.
    pub place: (Millis, String, i64),
    /// What is shown.
    pub line: String,
    /// What that costs.
    pub cost: usize,
}

/// All that is chosen for a context.
#[derive(Debug, Default)]
pub struct Chosen {
    /// What doesn't depend on the question, in the order in which it is shown.
    pub stable: Vec<Passage>,
    /// What does, what matters most first.
    pub live: Vec<Passage>,
    /// How much of each part was left out.
    pub dropped: BTreeMap<&'static str, usize>,
    /// What waits to be embedded or summarised.
    pub pending: usize,
    /// What the answer is missing, in words.
    pub notices: Vec<String>,
}

/// Tokens that an answer takes beside its lines, about: two envelopes, their marks, and what is listed below.
pub const FRAME: usize = 180;

/// The same of an answer with one envelope.
pub const SMALL_FRAME: usize = 120;

/// Returns what a line costs.
pub fn cost(line: &str) -> usize {
    render::cost(line)
}

/// Returns the day of a time.
pub fn day(time: Millis) -> String {
    times::show_time(time).chars().take_while(|c| *c != 'T').collect()
}

/// Takes the passages that fit, in order, each with its head where that isn't shown yet.
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

/// Returns the most tokens that one message may take.
pub(crate) fn longest(budget: usize) -> usize {
    (budget / 8).max(200)
}

/// Returns the passage of a message that was read whole; `text` is what is shown of it.
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

/// Returns the line of a message with `whole` tokens, of which at most `most` are shown: their beginning.
pub(crate) fn line(ordinal: i64, name: &str, text: &str, whole: usize, most: usize) -> String {
    match whole > most {
        true => render::message(ordinal, name, tokens::truncate(text.trim_start(), most), Some(whole)),
        false => render::message(ordinal, name, text, None),
    }
}
