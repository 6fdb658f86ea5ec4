//! Chooses the passages of a conversation that answer the question, and other passages to fill the rest of the budget.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::assembly::ContextRequest;
use crate::assembly::choice::{Choice, fact};
use crate::assembly::order::is_event;
use crate::assembly::passages::{Part, Passage, Room, fill, remembered};
use crate::summaries::segments;
use tiro_base::error::{Result, partial};
use tiro_base::filter::{Filter, Stash};
use tiro_base::memory::{Kind, Memory, MemoryKey, Provenance};
use tiro_digest::context::importance::{Mentions, Signals, importance, recency};
use tiro_digest::tuning::contexts::{self, PASSAGE};
use tiro_embed::Encoders;
use tiro_recall::retrieve::rank::{Ranked, Weights};
use tiro_recall::retrieve::{self, SearchResult, cues};
use tiro_recall::tuning::ranking::BEST_SCORE;
use tiro_store::Before;

/// The maximum number of earlier messages that are read to fill the rest of a budget.
const MOST_BEFORE: usize = 400;

/// The minimum number of tokens that the line of a message takes.
const LEAST_LINE: usize = 8;

/// The kinds of memories that may answer a question within a conversation.
const KINDS: &[Kind] = &[Kind::Message, Kind::Fact, Kind::Decision, Kind::Research, Kind::TaskState];

impl Choice<'_> {
    /// Chooses passages that answer the question and aren't shown yet. Then adds the neighbouring messages of the best
    /// passages, as long as there is room.
    pub async fn relevant(&mut self, encoders: &Encoders<'_>) -> Result<()> {
        let ContextRequest { scope, query, .. } = self.asked;
        let store = self.project.store.as_ref();
        let (begun, mut shown): (BTreeSet<i64>, BTreeSet<i64>) =
            self.shown().into_iter().partition(|ordinal| self.long.contains(ordinal));
        let stash = (!self.held.is_empty()).then_some(Stash::Without);
        let filter = Filter { kinds: Some(KINDS.to_vec()), stash, ..self.asked.filter.clone() };
        let found = retrieve::search(&[(store, scope)], encoders, query, &filter, &Weights::default()).await;
        let found = match found {
            // The rest of the context was read. So it is shown, and the answer says what is missing.
            Err(error) if !self.chosen.stable.is_empty() || !self.chosen.live.is_empty() => {
                SearchResult { notices: vec![partial::notice(error)], ..SearchResult::default() }
            }
            found => found?,
        };
        self.chosen.notices.extend(found.notices);
        let is_listed = |hit: &Ranked| !cues::asks_for_order(query) || is_event(hit);
        let hits: Vec<_> = found
            .ranked
            .into_iter()
            .filter(is_listed)
            .filter(|hit| hit.place.ordinal.is_none_or(|ordinal| !shown.contains(&ordinal)))
            .take(self.engine.config().options.vector_search_limit)
            .collect();
        let wanted = hits.iter().map(|hit| (hit.place.key, hit.chunk)).collect();
        let read = store.shown(scope, wanted).await?;
        let mentions = Mentions::of(read.iter().map(|each| each.memory.text.as_str()));
        let newest = read.iter().filter_map(|each| each.memory.ordinal).max().unwrap_or(0);
        let weights = segments::weights(self.engine);
        let most = self.most;
        let mut found: Vec<(f64, Memory, Passage)> = read
            .into_iter()
            // A derived memory is left out, because it repeats the messages from which it was derived.
            .filter(|each| each.memory.ordinal.is_some() || each.memory.provenance != Provenance::Derived)
            .filter(|each| each.chunk.start > 0 || !each.memory.ordinal.is_some_and(|it| begun.contains(&it)))
            .map(|each| {
                let hit = &hits[each.place];
                let signals = Signals {
                    recency: recency(each.memory.ordinal.unwrap_or(0), newest, contexts::HALF_LIFE_MESSAGES),
                    semantic: hit.score / BEST_SCORE,
                    entity: mentions.importance(&each.memory.text),
                    user: if each.memory.marked { 1.0 } else { each.memory.importance.unwrap_or(0.0) },
                };
                let passage = self.answer(&each.memory, each.chunk.start..each.chunk.end);
                (importance(&signals, &weights), each.memory, passage)
            })
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.text.cmp(&b.1.text)));
        let keys: Vec<MemoryKey> =
            found.iter().take(contexts::WITH_NEIGHBOURS).map(|(_, memory, _)| memory.key).collect();
        self.found.extend(found.iter().filter_map(|(_, memory, _)| memory.ordinal));
        shown.extend(&self.found);
        let is_new = |passage: &Passage| !self.chosen.stable.iter().any(|known| known.line == passage.line);
        let passages = found.into_iter().map(|(.., passage)| passage).filter(is_new).collect();
        fill(passages, &mut self.budget, &mut self.chosen, false);
        // The messages that `rest` may show are read at the same time.
        let before = self.most_before();
        let shows_beside = self.budget.left() > most.min(200);
        if shows_beside || before.is_some() {
            let keys = if shows_beside { keys } else { Vec::new() };
            let (beside, before) = store.beside(scope, keys, before).await?;
            self.before = before;
            let beside = beside.iter().filter(|memory| self.is_new(memory, &shown));
            let passage = |memory| self.passage(memory);
            let beside = beside.map(passage).collect();
            fill(beside, &mut self.budget, &mut self.chosen, false);
        }
        Ok(())
    }

    /// Returns the passage of a message or fact that answers the question. If a message is too long to be shown whole,
    /// its passage shows only `piece`, a range of its bytes.
    fn answer(&self, memory: &Memory, piece: Range<usize>) -> Passage {
        if memory.ordinal.is_none() {
            return fact(self.session, (memory, self.reader()), self.most);
        }
        let room = self.room();
        match room.is_whole(memory.role, memory.tokens) {
            true => self.passage(memory),
            false => {
                let most = room.most(memory.role, memory.tokens);
                remembered(Part::Relevant, self.session, (memory, self.reader()), piece, most)
            }
        }
    }

    /// Returns the room of each message that answers the question.
    fn room(&self) -> Room {
        if cues::asks_for_order(&self.asked.query) { Room::EVENT } else { Room::USUAL }
    }

    /// Spends the rest of the budget. First it is spent on passages that exceeded their part's share, then on earlier
    /// messages, the latest first.
    pub fn rest(&mut self) {
        let shown = self.shown();
        let mut left_out = std::mem::take(&mut self.left_out);
        let live = &self.chosen.live;
        left_out.retain(|passage| {
            !shown.contains(&passage.place.2) && !live.iter().any(|each| each.line == passage.line)
        });
        fill(left_out, &mut self.budget, &mut self.chosen, false);
        if let Some(Before { most, .. }) = self.most_before() {
            let before = std::mem::take(&mut self.before);
            let mut before = before[before.len().saturating_sub(most)..].to_vec();
            before.retain(|memory| self.is_new(memory, &shown));
            let before = before.iter().rev().map(|memory| self.passage(memory)).collect();
            fill(before, &mut self.budget, &mut self.chosen, false);
        }
    }

    /// Returns the earlier messages that may fill the rest of the budget. Returns `None` if there are no such messages
    /// or there is no room.
    fn most_before(&self) -> Option<Before> {
        let most = (self.budget.left() / LEAST_LINE).min(MOST_BEFORE);
        let before = Before { session: self.session.clone(), ordinal: self.begins, most };
        (most > 0 && self.begins > 0).then_some(before)
    }

    /// Returns whether the message is within the requested time and not in `shown`.
    fn is_new(&self, memory: &Memory, shown: &BTreeSet<i64>) -> bool {
        memory.ordinal.is_some_and(|ordinal| !shown.contains(&ordinal))
            && self.asked.filter.is_within(memory.time)
            && !self.held.contains(&memory.key)
    }

    /// Returns the passage of a message that starts at the beginning of the message.
    fn passage(&self, memory: &Memory) -> Passage {
        let most = if self.room().is_whole(memory.role, memory.tokens) {
            self.most.max(self.room().whole)
        } else {
            PASSAGE
        };
        remembered(Part::Relevant, self.session, (memory, self.reader()), 0..memory.text.len(), most)
    }
}
