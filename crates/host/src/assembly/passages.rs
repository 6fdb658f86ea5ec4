//! Passages. A passage is a line of a context, with its cost and its place in the order.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::assembly::quote;
use tiro_base::budget::Budget;
use tiro_base::envelope;
use tiro_base::memory::{Group, Memory, MemoryKey, Millis, Role, marked};
use tiro_base::scope::{AuthorId, SessionId};
use tiro_base::times::day;
use tiro_digest::context::assemble::{Heads, Line};
use tiro_digest::context::facts::Voice;
use tiro_digest::context::render;
use tiro_digest::tuning::contexts::{ANSWER_PASSAGE, EVENT, PASSAGE, WHOLE_EVENT, WHOLE_MESSAGE};
use tiro_intake::Subject;
use tiro_store::Neighbour;

/// A part of a context. The answer lists the cost of each part.
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
    /// The part of the context to which the line's cost is added.
    pub part: Part,
    /// The heading that names the session and the day; empty if there is none.
    pub head: String,
    /// The values that determine the order of passages: time, session, ordinal.
    pub place: (Millis, String, i64),
    /// The line as it is shown.
    pub line: String,
    /// The cost of the line in tokens.
    pub cost: usize,
    /// The memory of the project that the passage shows, if it shows one.
    pub shows: Option<Shown>,
}

/// A memory that a passage shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The key of the memory in the project's store.
    pub key: MemoryKey,
    /// The time of the memory in milliseconds.
    pub time: Millis,
    /// The voice that said it.
    pub voice: Voice,
    /// The number of bytes of its text.
    pub bytes: usize,
    /// What is compared with git, if the memory is a note that names code.
    pub subject: Option<Subject>,
}

impl Shown {
    /// Returns the description of a memory that a passage shows.
    pub fn of(memory: &Memory) -> Shown {
        let voice = Voice::of(memory.role, memory.speaker.as_deref());
        let subject = (memory.kind.group() == Group::Note).then(|| Subject::of(memory, &[]));
        let subject = subject.filter(|subject| !subject.names.is_empty());
        Shown { key: memory.key, time: memory.time, voice, bytes: memory.text.trim().len(), subject }
    }
}

/// Everything chosen for a context.
#[derive(Debug, Default)]
pub struct Chosen {
    /// The passages that don't depend on the question, in the order in which they are shown.
    pub stable: Vec<Passage>,
    /// The passages that depend on the question, most important first.
    pub live: Vec<Passage>,
    /// For each part, the number of its passages that were left out.
    pub dropped: BTreeMap<&'static str, usize>,
    /// The number of memories that wait to be embedded or summarised.
    pub pending: usize,
    /// Notices about content that the answer lacks.
    pub notices: Vec<String>,
}

impl Chosen {
    /// Returns whether one of the passages shows the memory of the project with this key.
    pub fn shows(&self, key: MemoryKey) -> bool {
        let shown = self.stable.iter().chain(&self.live).filter_map(|passage| passage.shows.as_ref());
        shown.into_iter().any(|shown| shown.key == key)
    }
}

/// Returns the line of a document, with at most `most` tokens of the bytes `piece` of its text.
pub fn document_line(memory: &Memory, reader: &AuthorId, piece: Range<usize>, most: usize) -> String {
    let text = quote::quote(&memory.text, piece, most);
    let source = format!("{} {}", memory.path.as_deref().unwrap_or_default(), memory.id);
    known_line(memory, reader, source.trim_start(), &text)
}

/// Returns the line of a memory that is no message, with its kind, its source, its author if that is not `reader`, and
/// `text`.
pub fn known_line(memory: &Memory, reader: &AuthorId, source: &str, text: &str) -> String {
    let line = by(render::fact(memory.kind.as_str(), source, text), &memory.author, reader);
    marked(line, memory.is_damaged)
}

/// Returns the line with the author of what it shows, unless that is `reader`.
pub fn by(line: String, author: &AuthorId, reader: &AuthorId) -> String {
    match author.other_than(reader) {
        Some(author) => with_mark(&line, &format!("shared by {}", envelope::name(&author))),
        None => line,
    }
}

/// Returns the heading of what `author` has in a session. It names the author unless that is `reader`. `day` is a day,
/// or another word that ends the heading.
pub fn head(session: &SessionId, author: &AuthorId, reader: &AuthorId, day: &str) -> String {
    match author.other_than(reader) {
        Some(author) => render::head(&format!("{session}, shared by {author}"), day),
        None => render::head(session.as_str(), day),
    }
}

/// The approximate number of tokens of an answer with two envelopes, not counting the answer's lines. This includes the
/// marks of the envelopes and the lists below them.
pub const FRAME: usize = 180;

/// The approximate number of tokens of an answer with one envelope, not counting the answer's lines.
pub const SMALL_FRAME: usize = 120;

/// Returns the cost of a line in tokens. In an answer, the line never takes more tokens.
pub fn cost(line: &str) -> usize {
    render::cost(line)
}

/// Inserts a mark after the beginning of a line. In a message it follows the speaker's name, and in a fact it is within
/// the brackets.
pub fn with_mark(line: &str, mark: &str) -> String {
    let at = match line.starts_with('#') {
        true => line.find(": ").map(|at| (at, format!(" ({mark})"))),
        false => line.find(']').map(|at| (at, format!(", {mark}"))),
    };
    let Some((at, mark)) = at else { return line.to_owned() };
    format!("{}{mark}{}", &line[..at], &line[at..])
}

/// Takes the passages that fit, in order. The cost of a passage includes its heading, unless this heading is already
/// shown. If `says_dropped` is true, the passages that don't fit are counted as left out.
pub fn fill(passages: Vec<Passage>, budget: &mut Budget, chosen: &mut Chosen, says_dropped: bool) {
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

/// How many tokens of a message are shown before other messages had their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// A message with at most this many tokens is shown whole, unless it is an assistant's.
    pub whole: usize,
    /// The maximum number of tokens that are shown of a longer message.
    pub part: usize,
    /// The maximum number of tokens that are shown of an assistant's long answer.
    pub answer: usize,
}

impl Room {
    /// The usual room.
    pub const USUAL: Room = Room { whole: WHOLE_MESSAGE, part: PASSAGE, answer: ANSWER_PASSAGE };

    /// The room if the question asks for an order of events, or for an overview.
    pub const EVENT: Room = Room { whole: WHOLE_EVENT, part: EVENT, answer: EVENT };

    /// Returns whether a memory is an assistant's message that is longer than one passage.
    pub fn is_long(place: &Neighbour) -> bool {
        Room::is_answer(place.role, place.tokens)
    }

    fn is_answer(role: Option<Role>, tokens: i64) -> bool {
        role == Some(Role::Assistant) && usize::try_from(tokens).is_ok_and(|tokens| tokens > PASSAGE)
    }

    /// Returns whether a message of `role` with `tokens` tokens is shown whole.
    pub fn is_whole(self, role: Option<Role>, tokens: i64) -> bool {
        !Room::is_answer(role, tokens) && usize::try_from(tokens).is_ok_and(|tokens| tokens <= self.whole)
    }

    /// Returns the maximum number of tokens that are shown of a message of `role` with `tokens` tokens.
    pub fn most(self, role: Option<Role>, tokens: i64) -> usize {
        match () {
            () if self.is_whole(role, tokens) => self.whole,
            () if Room::is_answer(role, tokens) => self.answer,
            () => self.part,
        }
    }

    /// Returns the approximate number of tokens that a memory takes.
    pub fn tokens(self, place: &Neighbour) -> usize {
        usize::try_from(place.tokens).unwrap_or(0).min(self.most(place.role, place.tokens))
    }
}

/// Returns the maximum number of tokens of `budget` that a single message may take.
pub fn longest(budget: usize) -> usize {
    (budget / 8).max(200)
}

/// Returns a passage that shows `reader` the message `memory`. A message with at most `most` tokens is shown whole. Otherwise
/// the whole sentences within the bytes `piece` are shown, up to `most` tokens.
pub fn remembered(
    part: Part,
    session: &SessionId,
    (memory, reader): (&Memory, &AuthorId),
    piece: Range<usize>,
    most: usize,
) -> Passage {
    let whole = usize::try_from(memory.tokens).unwrap_or(0);
    let name = memory.speaker.as_deref().or(memory.role.map(Role::as_str)).unwrap_or("?");
    let ordinal = memory.ordinal.unwrap_or(0);
    let line = marked(line(ordinal, name, &memory.text, piece, whole, most), memory.is_damaged);
    let place = (0, session.as_str().to_owned(), ordinal);
    let head = head(session, &memory.author, reader, &day(memory.time));
    Passage { part, head, place, cost: cost(&line), line, shows: Some(Shown::of(memory)) }
}

/// Returns the line of a message that has `whole` tokens. If it has more than `most` tokens, the line contains only the
/// message's whole sentences within the bytes `piece`.
pub fn line(ordinal: i64, name: &str, text: &str, piece: Range<usize>, whole: usize, most: usize) -> String {
    match whole > most {
        true => render::message(ordinal, name, &quote::quote(text, piece, most), Some(whole)),
        false => render::message(ordinal, name, text, None),
    }
}

/// Returns the line of a fact or another note. If the text has more than `most` tokens, the line contains only the
/// first whole sentences.
pub fn fact_line(memory: &Memory, reader: &AuthorId, most: usize) -> String {
    let is_long = usize::try_from(memory.tokens).is_ok_and(|tokens| tokens > most);
    let text =
        if is_long { quote::quote(&memory.text, 0..memory.text.len(), most) } else { memory.text.clone() };
    known_line(memory, reader, memory.id.as_str(), &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_after_the_name_of_the_speaker() {
        assert_eq!(
            with_mark("#12 Ada: So: yes.\n", "superseded by #14"),
            "#12 Ada (superseded by #14): So: yes.\n"
        );
        assert_eq!(with_mark("[fact m1] So.\n", "superseded by m2"), "[fact m1, superseded by m2] So.\n");
    }
}
