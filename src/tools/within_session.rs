//! The context of one conversation: what doesn't depend on the question, then what answers it.
//!
//! The first is a function of the closed segments and of the budget: it stays byte for byte until a segment closes,
//! whatever is asked and said meanwhile. The open end of the conversation and what is relevant come after it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::leaves::{self, Closed, Leaves};
use super::messages;
use super::passages::{Chosen, FRAME, Part, Passage, cost, day};
use super::retrieve_context::{Asked, IncludeLevel};
use crate::budget::Budget;
use crate::context::assemble::{self, Heads, Line, Offered, Shares};
use crate::context::importance::{Signals, Spoken, importance, recency};
use crate::context::render;
use crate::context::tier::Tier;
use crate::embed::Embedder;
use crate::engine::{Engine, OpenProject};
use crate::error::Result;
use crate::filter::Filter;
use crate::memory::{Kind, Memory, Role};
use crate::retrieve;
use crate::retrieve::rank::Weights;
use crate::scope::SessionId;
use crate::store::{MessageRow, SegmentRow};
use crate::tokens::Tokenizer;

/// Summaries that a call makes where they are missing, the last first: about a tenth of a second.
const SUMMARIES_AT_ONCE: usize = 24;

/// Marked and important messages looked at. Arbitrary: more are not all that important.
const MOST_IMPORTANT: usize = 40;

/// Facts looked at. Arbitrary: more than any budget has room for.
const MOST_FACTS: usize = 200;

/// Messages over which recency halves. Arbitrary.
const HALF_LIFE: i64 = 200;

/// The share of the open end, of what the budget leaves it.
const OPEN_SHARE: f64 = 0.25;

/// Messages of the open end that are read: more than any budget has room for, where segments are still to be closed.
const MOST_OPEN: usize = 1000;

/// Messages whose neighbours fill what is left of a budget.
const WITH_NEIGHBOURS: usize = 60;

/// The sum of the weights of a search's score: what the best possible hit has.
const BEST_SCORE: f64 = 2.2;

/// What stands of a conversation before anything is asked.
pub struct Prepared {
    closed: Vec<SegmentRow>,
    leaves: Leaves,
    /// Whether segments were closed or summaries made just now.
    pub wrote: bool,
    /// Messages that are still to be cut into segments.
    pub waiting: usize,
}

/// Closes segments and makes summaries that are missing, as far as one call may.
pub async fn prepare(engine: &Engine, project: &OpenProject, session: &SessionId) -> Result<Prepared> {
    let Closed { segments: closed, wrote, waiting } = leaves::close(engine, project, session).await?;
    let wanted = leaves::wanted(&leaves::tiers(engine), &closed);
    let leaves = leaves::summaries(engine, project, session, &wanted, SUMMARIES_AT_ONCE).await?;
    Ok(Prepared { wrote: wrote || leaves.new > 0, waiting, closed, leaves })
}

/// Chooses what is shown of the conversation.
pub async fn choose(
    engine: &Engine,
    project: &OpenProject,
    asked: &Asked,
    session: &SessionId,
    prepared: Prepared,
    embedder: Option<Arc<dyn Embedder>>,
) -> Result<Chosen> {
    let waiting = prepared.leaves.waiting + prepared.waiting;
    let pending = project.store.pending(&asked.scope).await? + waiting;
    let mut chosen = Chosen { pending, ..Chosen::default() };
    let mut shown: BTreeSet<i64> = BTreeSet::new();
    let open_from = prepared.closed.last().map_or(0, |row| row.last + 1);
    let stable = stable(engine, project, asked, session, prepared, &mut chosen, &mut shown).await?;
    let mut budget = Budget::new((asked.budget - FRAME).saturating_sub(stable));
    open(project, asked, session, open_from, &mut budget, &mut chosen, &mut shown).await?;
    if asked.level != IncludeLevel::Summary {
        relevant(engine, project, asked, session, embedder, &mut budget, &mut chosen, &mut shown).await?;
    }
    Ok(chosen)
}

/// Chooses what doesn't depend on the question and returns what it costs.
async fn stable(
    engine: &Engine,
    project: &OpenProject,
    asked: &Asked,
    session: &SessionId,
    prepared: Prepared,
    chosen: &mut Chosen,
    shown: &mut BTreeSet<i64>,
) -> Result<usize> {
    let Prepared { closed, leaves: Leaves { made, .. }, .. } = prepared;
    let Some(last) = closed.last() else { return Ok(0) };
    let (store, scope) = (&project.store, &project.scope);
    let options = &engine.config().options;
    let segments: Vec<_> = closed.iter().map(leaves::segment).collect();
    let tiers = leaves::tiers(engine).of(&segments);
    let recent_from = closed.iter().zip(&tiers).find(|(_, tier)| **tier == Tier::Recent);
    let recent_from = recent_from.map_or(last.last + 1, |(row, _)| row.first);
    let (limit, facts_limit, summaries_limit) = limits(asked, options.summary_ratio);
    let most = longest(asked.budget);

    let rows = store.session_messages(scope, session, recent_from).await?;
    let rows: Vec<MessageRow> = rows.into_iter().take_while(|row| row.ordinal <= last.last).collect();
    let mut recent: Vec<(MessageRow, Passage)> = Vec::new();
    for (row, text) in messages::texts(project, &rows).await? {
        let passage = said(Part::Recent, session, &row, &text, most);
        recent.push((row, passage));
    }
    recent.reverse();
    let important =
        store.important_messages(scope, session, options.importance_threshold, MOST_IMPORTANT).await?;
    let important: Vec<Memory> = important
        .into_iter()
        .filter(|memory| memory.ordinal.is_some_and(|ordinal| ordinal < recent_from))
        .collect();
    let mut facts: Vec<(Option<i64>, Passage)> = important
        .iter()
        .map(|memory| {
            let line = remembered(Part::Facts, session, memory, &memory.text, most).line;
            (memory.ordinal, known(session, line))
        })
        .collect();
    for fact in store.facts(scope, session, MOST_FACTS).await? {
        let line = render::fact(fact.kind.as_str(), fact.id.as_str(), &fact.text);
        facts.push((None, known(session, line)));
    }
    let starts = closed.iter().map(|row| row.first);
    let summaries: Vec<Passage> = starts
        .filter_map(|first| made.get(&first))
        .filter(|summary| !summary.text.is_empty())
        .rev()
        .map(|summary| {
            let line = render::summary(summary.first, summary.last, &summary.text);
            let place = (0, String::new(), summary.first);
            Passage {
                part: Part::Summaries,
                head: render::head(session.as_str(), "summary"),
                place,
                cost: cost(&line),
                line,
            }
        })
        .collect();

    let costs =
        |passages: &mut dyn Iterator<Item = &Passage>| passages.map(|each| each.cost).collect::<Vec<_>>();
    let (fact_costs, summary_costs, recent_costs) = (
        costs(&mut facts.iter().map(|(_, passage)| passage)),
        costs(&mut summaries.iter()),
        costs(&mut recent.iter().map(|(_, passage)| passage)),
    );
    let with_summaries = asked.level != IncludeLevel::Full;
    let offered = Offered {
        facts: &fact_costs,
        summaries: if with_summaries { &summary_costs } else { &[] },
        recent: &recent_costs,
    };
    // A head for each part and day.
    let heads = 4 * cost(&render::head(session.as_str(), "2026-03-01"));
    let taken = assemble::stable(limit.saturating_sub(heads), facts_limit, summaries_limit, &offered);
    let mut keep = |part: Part, passages: Vec<(Option<i64>, Passage)>, taken: &[bool]| {
        let (mut kept, mut left) = (Vec::new(), 0);
        for ((ordinal, passage), taken) in passages.into_iter().zip(taken) {
            match taken {
                true => {
                    shown.extend(ordinal);
                    kept.push(passage);
                }
                false => left += 1,
            }
        }
        kept.reverse();
        chosen.stable.extend(kept);
        *chosen.dropped.entry(part.as_str()).or_default() += left;
    };
    keep(Part::Facts, facts, &taken.facts);
    if with_summaries {
        keep(
            Part::Summaries,
            summaries.into_iter().map(|passage| (None, passage)).collect(),
            &taken.summaries,
        );
    }
    let recent = recent.into_iter().map(|(row, passage)| (Some(row.ordinal), passage)).collect();
    keep(Part::Recent, recent, &taken.recent);
    Ok(taken.used + heads)
}

/// Returns the tokens for what is stable, and of them for facts and summaries.
fn limits(asked: &Asked, summary_ratio: f64) -> (usize, usize, usize) {
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

/// Chooses of the open end of the conversation, the last first, what its share has room for.
async fn open(
    project: &OpenProject,
    asked: &Asked,
    session: &SessionId,
    from: i64,
    budget: &mut Budget,
    chosen: &mut Chosen,
    shown: &mut BTreeSet<i64>,
) -> Result<()> {
    let mut rows = project.store.session_messages(&project.scope, session, from).await?;
    let unread = rows.len().saturating_sub(MOST_OPEN);
    rows.drain(..unread);
    *chosen.dropped.entry(Part::Recent.as_str()).or_default() += unread;
    let most = longest(asked.budget);
    let mut limit = Budget::new((budget.left() as f64 * OPEN_SHARE) as usize);
    for (row, text) in messages::texts(project, &rows).await?.into_iter().rev() {
        let passage = said(Part::Recent, session, &row, &text, most);
        let head =
            if chosen.live.iter().any(|other| other.head == passage.head) { 0 } else { cost(&passage.head) };
        if limit.spend(passage.cost + head) {
            budget.spend(passage.cost + head);
            shown.insert(row.ordinal);
            chosen.live.push(passage);
        } else {
            *chosen.dropped.entry(Part::Recent.as_str()).or_default() += 1;
        }
    }
    Ok(())
}

/// Chooses what answers the question and isn't shown yet, then what was said around it, while there is room.
#[expect(clippy::too_many_arguments, reason = "where, what and how much; a struct would be used once a call")]
async fn relevant(
    engine: &Engine,
    project: &OpenProject,
    asked: &Asked,
    session: &SessionId,
    embedder: Option<Arc<dyn Embedder>>,
    budget: &mut Budget,
    chosen: &mut Chosen,
    shown: &mut BTreeSet<i64>,
) -> Result<()> {
    let store = &project.store;
    let options = &engine.config().options;
    let filter = Filter { kinds: Some(vec![Kind::Message]), ..asked.filter.clone() };
    let places = [(store, &asked.scope)];
    let found = retrieve::search(&places, embedder, &asked.query, &filter, &Weights::default()).await?;
    chosen.notices.extend(found.notices);
    let hits: Vec<_> = found
        .ranked
        .into_iter()
        .filter(|hit| hit.place.ordinal.is_some_and(|ordinal| !shown.contains(&ordinal)))
        .take(options.vector_search_limit)
        .collect();
    let wanted = hits.iter().map(|hit| (hit.place.seq, hit.chunk)).collect();
    let read = store.shown(&asked.scope, wanted).await?;
    let spoken = Spoken::of(read.iter().map(|each| each.memory.text.as_str()));
    let newest = read.iter().filter_map(|each| each.memory.ordinal).max().unwrap_or(0);
    let weights = leaves::weights(engine);
    let most = longest(asked.budget);
    let mut found: Vec<(f64, Memory, Passage)> = read
        .into_iter()
        .map(|each| {
            let hit = &hits[each.place];
            let signals = Signals {
                recency: recency(each.memory.ordinal.unwrap_or(0), newest, HALF_LIFE),
                semantic: hit.score / BEST_SCORE,
                entity: spoken.importance(&each.memory.text),
                user: if each.memory.marked { 1.0 } else { each.memory.importance.unwrap_or(0.0) },
            };
            let passage = match usize::try_from(each.memory.tokens).unwrap_or(0) > most {
                true => {
                    let piece = each.memory.text.get(each.chunk.start..each.chunk.end).unwrap_or_default();
                    remembered(Part::Relevant, session, &each.memory, piece, most)
                }
                false => remembered(Part::Relevant, session, &each.memory, &each.memory.text, most),
            };
            (importance(&signals, &weights), each.memory, passage)
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.id.cmp(&b.1.id)));
    let seqs: Vec<i64> = found.iter().take(WITH_NEIGHBOURS).map(|(_, memory, _)| memory.seq).collect();
    shown.extend(found.iter().filter_map(|(_, memory, _)| memory.ordinal));
    fill(found.into_iter().map(|(.., passage)| passage).collect(), budget, chosen, true);
    if budget.left() > most.min(200) && asked.filter.since.is_none() && asked.filter.until.is_none() {
        let beside = store.beside(&asked.scope, seqs).await?;
        let beside =
            beside.iter().filter(|memory| memory.ordinal.is_some_and(|ordinal| !shown.contains(&ordinal)));
        let beside =
            beside.map(|memory| remembered(Part::Relevant, session, memory, &memory.text, most)).collect();
        fill(beside, budget, chosen, false);
    }
    Ok(())
}

/// Takes the passages that fit, in order, each with its head where that isn't shown yet.
pub(super) fn fill(passages: Vec<Passage>, budget: &mut Budget, chosen: &mut Chosen, says_dropped: bool) {
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
pub(super) fn longest(budget: usize) -> usize {
    (budget / 8).max(200)
}

/// Returns the passage of a message of the session.
fn said(part: Part, session: &SessionId, row: &MessageRow, text: &str, most: usize) -> Passage {
    let whole = usize::try_from(row.tokens).unwrap_or(0);
    let name = row.speaker.as_deref().or(row.role.map(Role::as_str)).unwrap_or("?");
    let line = line(row.ordinal, name, text, whole, most);
    let place = (0, session.as_str().to_owned(), row.ordinal);
    Passage { part, head: render::head(session.as_str(), &day(row.time)), place, cost: cost(&line), line }
}

/// Returns the passage of a message that was read whole; `text` is what is shown of it.
pub(super) fn remembered(
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

fn known(session: &SessionId, line: String) -> Passage {
    let place = (0, session.as_str().to_owned(), -1);
    Passage {
        part: Part::Facts,
        head: render::head(session.as_str(), "known"),
        place,
        cost: cost(&line),
        line,
    }
}

/// Returns the line of a message with `whole` tokens, of which at most `most` are shown: their beginning.
fn line(ordinal: i64, name: &str, text: &str, whole: usize, most: usize) -> String {
    match whole > most {
        true => {
            render::message(ordinal, name, Tokenizer::O200k.truncate(text.trim_start(), most), Some(whole))
        }
        false => render::message(ordinal, name, text, None),
    }
}
