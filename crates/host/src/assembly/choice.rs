//! Chooses passages from one conversation, part by part, within a budget.
//!
//! Each part may spend its share of the budget and leaves the rest to the next part. This file chooses the parts that
//! don't depend on the question. It also chooses passages of the open end, which consists of the messages after the
//! last closed segment. `relevant.rs` adds the passages that answer the question, and others that fit.

use std::collections::{BTreeMap, BTreeSet};

use crate::assembly::passages::{
    Chosen, FRAME, Part, Passage, SMALL_FRAME, Shown, by, cost, fact_line, head, line, longest, remembered,
};
use crate::assembly::{ContextRequest, IncludeLevel};
use crate::engine::Engine;
use crate::project::OpenProject;
use crate::summaries::known::Known;
use crate::summaries::notes::NewFacts;
use crate::summaries::segments;
use tiro_base::budget::Budget;
use tiro_base::error::Result;
use tiro_base::memory::{Memory, MemoryId, MemoryKey, Provenance, Role, marked};
use tiro_base::scope::{AuthorId, SessionId};
use tiro_base::times::day;
use tiro_digest::context::assemble::{self, Offered, Shares};
use tiro_digest::context::facts::Voice;
use tiro_digest::context::render;
use tiro_digest::context::tier::Tier;
use tiro_digest::tuning::contexts;
use tiro_store::{MessageRow, SegmentRow, StashedPlace, Summary};

/// The largest number of marked and important messages that are examined. Arbitrary.
pub(super) const MOST_IMPORTANT: usize = 40;

/// The maximum number of facts that are examined. Arbitrary: more than fit into any budget.
pub(super) const MOST_FACTS: usize = 200;

/// The maximum number of messages of the open end that are read. No budget has room for so many. The open end has so
/// many messages only if some segments should be closed but aren't yet.
const MOST_OPEN: usize = 1000;

/// One call stashes at most this many messages that no summary covers. Arbitrary: this takes some milliseconds.
const MOST_UNCOVERED: usize = 200;

/// The approximate number of tokens that the line of a message takes in addition to its text.
const LINE: i64 = 6;

/// A context that is being assembled.
pub struct Choice<'a> {
    pub(super) engine: &'a Engine,
    known: &'a Known<'a>,
    pub(super) project: &'a OpenProject,
    pub(super) asked: &'a ContextRequest,
    pub(super) session: &'a SessionId,
    /// The maximum number of tokens that one message may take.
    pub(super) most: usize,
    pub(super) budget: Budget,
    /// The passages chosen so far.
    pub chosen: Chosen,
    /// The ordinal of the first recent message.
    pub(super) begins: i64,
    /// Whether every message of the conversation is recent.
    is_whole: bool,
    /// The lines of all facts and decisions that were examined, whether shown or not.
    facts: BTreeSet<String>,
    /// The ordinals of messages that are shown among the facts.
    in_facts: BTreeSet<i64>,
    /// The ordinals of all recent messages, whether shown or not.
    recent: BTreeSet<i64>,
    /// The ordinals of messages that are too long to be shown whole. A piece of
    /// such a message may answer the question even if another piece is already shown.
    pub(super) long: BTreeSet<i64>,
    /// The ordinals of all messages that answer the question, whether shown or not.
    pub(super) found: BTreeSet<i64>,
    /// Passages that exceeded their part's share, most important first.
    pub(super) left_out: Vec<Passage>,
    /// The messages before the recent ones that may fill the rest of the budget, in order.
    pub(super) before: Vec<Memory>,
    /// The memories of the session that contexts leave out because they are stashed.
    pub(super) held: BTreeSet<MemoryKey>,
    /// The ordinals of those left-out memories that are messages.
    held_messages: BTreeSet<i64>,
    /// The open messages, which no summary covers.
    uncovered: Vec<(i64, MemoryKey, MemoryId)>,
    /// Facts that are not stored yet.
    new_facts: NewFacts,
    /// The authors of the conversation, if it has others than the reader.
    by: Option<String>,
}

impl<'a> Choice<'a> {
    /// Returns an empty choice. A message is recent if its ordinal is at least `begins`.
    pub fn new(
        engine: &'a Engine,
        known: &'a Known<'a>,
        asked: &'a ContextRequest,
        begins: i64,
    ) -> Choice<'a> {
        Choice {
            engine,
            known,
            project: known.project,
            asked,
            session: known.session,
            most: longest(asked.budget),
            budget: Budget::new(asked.budget - FRAME),
            chosen: Chosen::default(),
            begins,
            is_whole: false,
            facts: BTreeSet::new(),
            in_facts: BTreeSet::new(),
            recent: BTreeSet::new(),
            long: BTreeSet::new(),
            found: BTreeSet::new(),
            left_out: Vec::new(),
            before: Vec::new(),
            held: BTreeSet::new(),
            held_messages: BTreeSet::new(),
            uncovered: Vec::new(),
            new_facts: NewFacts::default(),
            by: None,
        }
    }

    /// Returns who reads the context.
    pub(super) fn reader(&self) -> &'a AuthorId {
        &self.asked.scope.reader
    }

    /// Sets the authors of the conversation, which its summaries name.
    pub fn said_by(&mut self, names: Option<String>) {
        self.by = names;
    }

    /// Adds facts that are not stored yet.
    pub fn learn(&mut self, facts: NewFacts) {
        self.new_facts = facts;
    }

    /// Leaves out the memories `held`, which are stashed.
    pub fn hold_out<'s>(&mut self, held: impl Iterator<Item = &'s StashedPlace>) {
        for place in held {
            self.held.insert(place.key);
            self.held_messages.extend(place.ordinal);
        }
    }

    /// Returns whether at least one message of the segment may be shown.
    fn is_open(&self, segment: &SegmentRow) -> bool {
        let held = self.held_messages.range(segment.first..=segment.last).count();
        held == 0 || i64::try_from(held).is_ok_and(|held| held < segment.messages)
    }

    /// Returns the keys and ids of the latest messages that no summary covers and that the context doesn't show, at
    /// most [`MOST_UNCOVERED`]. Later calls return the other such messages, unless a summary covers them by then.
    pub fn uncovered(&self) -> Vec<(MemoryKey, MemoryId)> {
        let shown = self.shown();
        let hidden = self.uncovered.iter().rev().filter(|(ordinal, ..)| !shown.contains(ordinal));
        hidden.take(MOST_UNCOVERED).map(|(_, key, id)| (*key, id.clone())).collect()
    }

    /// Chooses the passages that don't depend on the question. `stored` contains the important messages and the facts.
    pub async fn stable(
        &mut self,
        closed: &[SegmentRow],
        made: &BTreeMap<i64, Summary>,
        stored: (Vec<Memory>, Vec<Memory>),
    ) -> Result<()> {
        let used = self.choose_stable(closed, made, stored).await?;
        match self.chosen.stable.is_empty() {
            // Without stable passages, the answer has only one envelope.
            true => self.budget = Budget::new(self.asked.budget - SMALL_FRAME),
            false => drop(self.budget.spend(used)),
        }
        Ok(())
    }

    /// Chooses the passages that don't depend on the question, and returns their cost in tokens.
    async fn choose_stable(
        &mut self,
        closed: &[SegmentRow],
        made: &BTreeMap<i64, Summary>,
        stored: (Vec<Memory>, Vec<Memory>),
    ) -> Result<usize> {
        let options = &self.engine.config().options;
        let (limit, facts_limit, summaries_limit) = limits(self.asked, options.summary_ratio);
        let is_whole = self.asked.level != IncludeLevel::Summary && fits_whole(closed, self.budget.left());
        let limit = if is_whole { self.budget.left() } else { limit };
        self.is_whole = is_whole && !self.asked.filter.has_range();
        let segments: Vec<_> = closed.iter().map(segments::segment).collect();
        let tiers = segments::tiers(self.engine).of(&segments);
        let mut recent = closed.iter().zip(&tiers).filter(|(_, tier)| is_whole || **tier == Tier::Recent);
        let rows = match (recent.next(), closed.last()) {
            (Some((first, _)), Some(last)) => {
                self.begins = first.first;
                let rows = self.known.messages(first.first).await?;
                rows.into_iter().take_while(|row| row.ordinal <= last.last).collect()
            }
            _ => Vec::new(),
        };
        let mut recent: Vec<Passage> =
            self.said(rows).await?.into_iter().map(|(_, passage)| passage).collect();
        recent.reverse();
        let facts = self.facts_of(stored, is_whole);
        self.facts = facts.iter().map(|(_, passage)| passage.line.clone()).collect();
        let shows_summaries = !is_whole && self.asked.level != IncludeLevel::Full;
        // If everything in a segment is stashed, the context doesn't show its summary either.
        let open = closed.iter().rev().filter(|row| self.is_open(row));
        let all = open.filter_map(|row| made.get(&row.first));
        let all: Vec<&Summary> = all.filter(|each| shows_summaries && !each.text.is_empty()).collect();
        let summaries = self.summaries(&all, limit);
        let beyond = all.len() - summaries.len();

        let costs = |passages: &[Passage]| passages.iter().map(|each| each.cost).collect::<Vec<_>>();
        let fact_costs: Vec<usize> = facts.iter().map(|(_, passage)| passage.cost).collect();
        let (summary_costs, recent_costs) = (costs(&summaries), costs(&recent));
        let offered = Offered { facts: &fact_costs, summaries: &summary_costs, recent: &recent_costs };
        // Reserves room for four headings: each part has one heading for each day of its messages.
        let heads = 4 * cost(&render::head(self.session.as_str(), "2026-03-01"));
        let taken = assemble::stable(limit.saturating_sub(heads), facts_limit, summaries_limit, &offered);
        self.in_facts.extend(
            facts.iter().zip(&taken.facts).filter(|(_, taken)| **taken).filter_map(|((told, _), _)| *told),
        );
        let facts: Vec<Passage> = facts.into_iter().map(|(_, passage)| passage).collect();
        let facts_left = self.keep(facts, &taken.facts);
        let summaries_left = self.keep(summaries, &taken.summaries).len();
        self.recent.extend(recent.iter().map(|passage| passage.place.2));
        self.left_out = self.keep(recent, &taken.recent);
        self.left_out.extend(facts_left);
        self.chosen.dropped.insert(Part::Summaries.as_str(), summaries_left + beyond);
        let shown: BTreeSet<&str> = self.chosen.stable.iter().map(|passage| passage.head.as_str()).collect();
        Ok(taken.used + shown.into_iter().map(cost).sum::<usize>())
    }

    /// Adds those of `passages` for which `taken` is true to the stable passages, the earliest first. Returns the
    /// others.
    fn keep(&mut self, passages: Vec<Passage>, taken: &[bool]) -> Vec<Passage> {
        let (mut kept, mut left) = (Vec::new(), Vec::new());
        for (passage, taken) in passages.into_iter().zip(taken) {
            if *taken { &mut kept } else { &mut left }.push(passage);
        }
        kept.reverse();
        self.chosen.stable.extend(kept);
        left
    }

    /// Returns the passages of facts: first important messages that aren't recent, with their ordinals, then stored
    /// facts. Both lists begin with the latest. If `is_whole` is true, all messages are recent, so only facts that no
    /// message contains are returned.
    fn facts_of(
        &self,
        (important, stored): (Vec<Memory>, Vec<Memory>),
        is_whole: bool,
    ) -> Vec<(Option<i64>, Passage)> {
        let is_within = |memory: &Memory| self.asked.filter.is_within(memory.time);
        let mut known: Vec<(Option<i64>, Passage)> = Vec::new();
        for memory in important {
            if !self.held.contains(&memory.key)
                && memory.ordinal.is_some_and(|ordinal| ordinal < self.begins)
                && is_within(&memory)
            {
                let reader = self.reader();
                let (shown, piece) = ((&memory, reader), 0..memory.text.len());
                let line = remembered(Part::Facts, self.session, shown, piece, self.most).line;
                let line = by(line, &memory.author, reader);
                known.push((memory.ordinal, known_as(self.session, &memory, line)));
            }
        }
        let NewFacts { facts, taken_back, .. } = &self.new_facts;
        let stored = stored.into_iter().filter(|fact| !taken_back.contains(&fact.id));
        let mut facts: Vec<Memory> = facts.iter().cloned().chain(stored).collect();
        facts.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.text.cmp(&other.text)));
        for fact in facts.into_iter().take(MOST_FACTS) {
            if is_within(&fact)
                && !self.held.contains(&fact.key)
                && !(is_whole && fact.provenance == Provenance::Derived)
            {
                known.push((None, self::fact(self.session, (&fact, self.reader()), self.most)));
            }
        }
        known
    }

    /// Returns the passages of those summaries that may fit into `limit` tokens. `summaries` begins with the latest
    /// summary.
    fn summaries(&self, summaries: &[&Summary], limit: usize) -> Vec<Passage> {
        let mut tokens = 0;
        let may_fit = |summary: &&&Summary| {
            tokens += summary.tokens.unsigned_abs() as usize;
            // Counting the tokens of thousands of summaries would take long. It is enough to choose from summaries that
            // together have twice as many tokens as the limit.
            tokens <= 2 * limit
        };
        let passage = |summary: &&Summary| {
            let line = render::summary(summary.first, summary.last, &summary.text);
            let name = match &self.by {
                Some(names) => format!("{}, by {names}", self.session),
                None => self.session.to_string(),
            };
            let head = render::head(&name, "summary");
            let place = (0, String::new(), summary.first);
            Passage { part: Part::Summaries, head, place, cost: cost(&line), line, shows: None }
        };
        summaries.iter().take_while(may_fit).map(passage).collect()
    }

    /// Chooses the latest messages of the open end, as many as fit into the open end's share of the budget. The open
    /// end begins with the ordinal `from`.
    pub async fn open(&mut self, from: i64) -> Result<()> {
        let mut rows = self.known.messages(from).await?;
        rows.retain(|row| !self.held.contains(&row.key));
        self.uncovered.extend(rows.iter().map(|row| (row.ordinal, row.key, row.id.clone())));
        self.recent
            .extend(rows.iter().filter(|row| self.asked.filter.is_within(row.time)).map(|row| row.ordinal));
        let unread = rows.len().saturating_sub(MOST_OPEN);
        rows.drain(..unread);
        self.is_whole &= unread == 0;
        let mut limit = Budget::new((self.budget.left() as f64 * contexts::OPEN_SHARE) as usize);
        let mut left_out = Vec::new();
        for (_, passage) in self.said(rows).await?.into_iter().rev() {
            let is_headed = self.chosen.live.iter().any(|other| other.head == passage.head);
            let head = if is_headed { 0 } else { cost(&passage.head) };
            if limit.spend(passage.cost + head) {
                self.budget.spend(passage.cost + head);
                self.chosen.live.push(passage);
            } else {
                left_out.push(passage);
            }
        }
        self.left_out.splice(0..0, left_out);
        Ok(())
    }

    /// Returns whether every message of the conversation is shown in full.
    pub fn shows_all(&self) -> bool {
        self.is_whole && self.left_out.is_empty() && self.long.is_empty()
    }

    /// Returns the ordinals of the messages that are shown.
    pub(super) fn shown(&self) -> BTreeSet<i64> {
        let all = self.chosen.stable.iter().chain(&self.chosen.live);
        let messages = all.filter(|passage| matches!(passage.part, Part::Recent | Part::Relevant));
        messages.map(|passage| passage.place.2).chain(self.in_facts.iter().copied()).collect()
    }

    /// Counts the passages that were left out, and returns the chosen ones.
    pub fn done(mut self) -> Chosen {
        let shown = self.shown();
        for passage in self.chosen.stable.iter().chain(&self.chosen.live) {
            self.facts.remove(&passage.line);
        }
        let recent = self.recent.difference(&shown).count();
        let relevant = self.found.difference(&shown).filter(|ordinal| !self.recent.contains(ordinal)).count();
        self.chosen.dropped.extend([
            (Part::Facts.as_str(), self.facts.len()),
            (Part::Recent.as_str(), recent),
            (Part::Relevant.as_str(), relevant),
        ]);
        self.chosen
    }

    /// Returns the messages of `rows` within the requested time, with their passages.
    async fn said(&mut self, rows: Vec<MessageRow>) -> Result<Vec<(MessageRow, Passage)>> {
        let rows: Vec<MessageRow> =
            rows.into_iter().filter(|row| self.asked.filter.is_within(row.time)).collect();
        let rows: Vec<MessageRow> = rows.into_iter().filter(|row| !self.held.contains(&row.key)).collect();
        let is_long = |row: &&MessageRow| usize::try_from(row.tokens).is_ok_and(|tokens| tokens > self.most);
        self.long =
            rows.iter().filter(is_long).map(|row| row.ordinal).chain(self.long.iter().copied()).collect();
        let read = self.known.texts(&rows).await?;
        Ok(read
            .into_iter()
            .map(|(row, text)| {
                let passage = said((self.session, self.reader()), &row, &text, self.most);
                (row, passage)
            })
            .collect())
    }
}

/// Returns whether the closed segments are shown in full. This is so if they take at most seven eighths of the budget.
/// Then no summaries are needed, and there is room for the open end. The result depends only on the closed segments and
/// the budget, so the passages stay the same until the next segment closes.
fn fits_whole(closed: &[SegmentRow], budget: usize) -> bool {
    let tokens: i64 = closed.iter().map(|row| row.tokens + row.messages * LINE).sum();
    usize::try_from(tokens).is_ok_and(|tokens| tokens <= budget / contexts::WHOLE.1 * contexts::WHOLE.0)
}

/// Returns three limits in tokens: for all stable passages, for the facts among them, and for the summaries among them.
fn limits(asked: &ContextRequest, summary_ratio: f64) -> (usize, usize, usize) {
    let budget = asked.budget - FRAME;
    let shares = Shares::of(summary_ratio);
    match asked.level {
        IncludeLevel::Summary => (budget * 3 / 4, budget / 4, budget * 3 / 4),
        _ => {
            let limit = shares.stable(budget);
            (limit, (limit as f64 * shares.facts) as usize, shares.summaries(budget))
        }
    }
}

/// Returns the passage of a recent message.
fn said((session, reader): (&SessionId, &AuthorId), row: &MessageRow, text: &str, most: usize) -> Passage {
    let whole = usize::try_from(row.tokens).unwrap_or(0);
    let name = row.speaker.as_deref().or(row.role.map(Role::as_str)).unwrap_or("?");
    let line = marked(line(row.ordinal, name, text, 0..text.len(), whole, most), row.is_damaged);
    let place = (0, session.as_str().to_owned(), row.ordinal);
    let head = head(session, &row.author, reader, &day(row.time));
    let voice = Voice::of(row.role, row.speaker.as_deref());
    let shows = Some(Shown { key: row.key, time: row.time, voice, bytes: text.trim().len(), subject: None });
    Passage { part: Part::Recent, head, place, cost: cost(&line), line, shows }
}

/// Returns the passage of a stored or derived fact.
pub(super) fn fact(session: &SessionId, (memory, reader): (&Memory, &AuthorId), most: usize) -> Passage {
    known_as(session, memory, fact_line(memory, reader, most))
}

fn known_as(session: &SessionId, memory: &Memory, line: String) -> Passage {
    let place = (0, session.as_str().to_owned(), -1);
    Passage {
        part: Part::Facts,
        head: render::head(session.as_str(), "known"),
        place,
        cost: cost(&line),
        line,
        shows: memory.key.is_stored().then(|| Shown::of(memory)),
    }
}
