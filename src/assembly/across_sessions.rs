//! Assembles a context across conversations. Each relevant conversation gets a share of the budget.
//!
//! The weight of a conversation is the score of its best messages, lowered by its age. The weight raises the scores of
//! all its messages, so the budget is divided by relevance and recency. Tokens that one conversation doesn't need go to
//! the others. The older a conversation is, the more its long messages are cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::assembly::passages::{Chosen, Part, Passage, SMALL_FRAME, cost, day, fill, longest, remembered};
use crate::assembly::{Asked, IncludeLevel};
use crate::budget::Budget;
use crate::context::importance::recency;
use crate::context::render;
use crate::embed::Embedder;
use crate::engine::Engine;
use crate::error::Result;
use crate::filter::Filter;
use crate::memory::{Kind, Level, Memory, MemoryKey, Millis};
use crate::project::OpenProject;
use crate::retrieve;
use crate::retrieve::rank::{Ranked, Weights};
use crate::scope::{Scope, SessionId, Sessions};
use crate::store::Store;
use crate::summaries::messages;
use crate::summarize;
use crate::tokens;
use crate::tuning::contexts::{self, AGEING, COMMIT_SHARE, SESSION_WEIGHT};
use crate::tuning::summaries::{ACROSS_SESSIONS, ACROSS_TOKENS};

/// The kinds of memories in a context. Files and logs are left out.
const KINDS: &[Kind] = &[
    Kind::Message,
    Kind::Commit,
    Kind::Conversation,
    Kind::Summary,
    Kind::Fact,
    Kind::Decision,
    Kind::Research,
    Kind::TaskState,
];

/// The maximum number of messages of a conversation that are read for its summary: the latest ones.
const MOST_READ: usize = 300;

/// A memory that the search found, with its rank.
pub(crate) struct Hit {
    /// Its rank and score.
    pub ranked: Ranked,
    /// The memory.
    pub memory: Memory,
    /// Its best chunk, as a range of bytes.
    piece: (usize, usize),
    /// Whether it is one of the owner's memories, which belong to no project.
    is_owners: bool,
}

/// Chooses the passages of a context across all conversations.
pub async fn choose(
    engine: &Engine,
    project: &OpenProject,
    asked: &Asked,
    embedder: Option<Arc<Embedder>>,
) -> Result<Chosen> {
    let owners = &engine.installation().await?.registry;
    let mut places: Vec<(&Store, &Scope)> = vec![(&project.store, &asked.scope)];
    if asked.scope.sessions == Sessions::All {
        places.push((owners.memories(), owners.scope()));
    }
    let mut chosen = Chosen::default();
    for (store, scope) in &places {
        chosen.pending += store.pending(scope).await?;
    }
    let filter = Filter { kinds: Some(KINDS.to_vec()), ..asked.filter.clone() };
    let found = retrieve::search(&places, embedder, &asked.query, &filter, &Weights::default()).await?;
    chosen.notices.extend(found.notices);
    let hits = read(&places, found.ranked).await?;
    let sessions = weigh(&hits);
    let mut budget = Budget::new(asked.budget - SMALL_FRAME);
    let ratio = engine.config().options.summary_ratio;
    let summaries = match asked.level {
        IncludeLevel::Summary => budget.left(),
        IncludeLevel::Mixed => (budget.left() as f64 * ratio * contexts::SUMMARIES_ACROSS) as usize,
        IncludeLevel::Full => 0,
    };
    let few = engine.config().options.summarization_threshold;
    if asked.level != IncludeLevel::Full {
        summarise(project, asked, &sessions, few, summaries, &mut budget, &mut chosen).await?;
    }
    let most = longest(asked.budget);
    let mut scored: Vec<(f64, &Hit, Passage)> = Vec::with_capacity(hits.len());
    for hit in &hits {
        let Some(passage) = passage(hit, &sessions, most) else { continue };
        if asked.level == IncludeLevel::Summary && passage.part == Part::Relevant {
            continue;
        }
        let weight = hit.memory.session.as_ref().and_then(|session| sessions.get(session));
        let score = hit.ranked.score + SESSION_WEIGHT * weight.map_or(0.0, |session| session.weight);
        scored.push((score, hit, passage));
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.memory.id.cmp(&b.1.memory.id)));
    let keys: Vec<MemoryKey> = scored
        .iter()
        .filter(|(_, hit, _)| hit.memory.ordinal.is_some() && !hit.is_owners)
        .take(contexts::WITH_NEIGHBOURS)
        .map(|(_, hit, _)| hit.memory.key)
        .collect();
    let passages = scored.into_iter().map(|(.., passage)| passage).collect();
    fill(commits_in_turn(passages, budget.left()), &mut budget, &mut chosen, true);
    let is_timeless = asked.filter.since.is_none() && asked.filter.until.is_none();
    if budget.left() > most.min(200) && is_timeless && asked.level != IncludeLevel::Summary {
        let beside = project.store.beside(&asked.scope, keys).await?;
        let is_new = |memory: &&Memory| !hits.iter().any(|hit| hit.memory.id == memory.id);
        let beside = beside.iter().filter(is_new).filter_map(|memory| {
            let session = memory.session.as_ref()?;
            let mut passage = remembered(Part::Relevant, session, memory, &memory.text, most);
            passage.place.0 = sessions.get(session).map_or(memory.time, |session| session.first);
            Some(passage)
        });
        fill(beside.collect(), &mut budget, &mut chosen, false);
    }
    Ok(chosen)
}

/// Moves the commits that don't fit into the commits' share of `budget` after all other passages.
fn commits_in_turn(passages: Vec<Passage>, budget: usize) -> Vec<Passage> {
    let mut share = Budget::new((budget as f64 * COMMIT_SHARE) as usize);
    let (mut first, later): (Vec<Passage>, Vec<Passage>) =
        passages.into_iter().partition(|passage| passage.part != Part::Commits || share.spend(passage.cost));
    first.extend(later);
    first
}

/// Reads the memories that the search found, best first. Those that were forgotten since the search are left out.
pub(crate) async fn read(places: &[(&Store, &Scope)], ranked: Vec<Ranked>) -> Result<Vec<Hit>> {
    let mut hits: Vec<(usize, Hit)> = Vec::with_capacity(ranked.len());
    for (number, (store, scope)) in places.iter().enumerate() {
        let own: Vec<(usize, &Ranked)> =
            ranked.iter().enumerate().filter(|(_, hit)| hit.store == number).collect();
        let wanted = own.iter().map(|(_, hit)| (hit.place.key, hit.chunk)).collect();
        hits.extend(store.shown(scope, wanted).await?.into_iter().map(|shown| {
            let (rank, hit) = own[shown.place];
            let piece = (shown.chunk.start, shown.chunk.end);
            (rank, Hit { ranked: hit.clone(), memory: shown.memory, piece, is_owners: number > 0 })
        }));
    }
    hits.sort_by_key(|(rank, _)| *rank);
    Ok(hits.into_iter().map(|(_, hit)| hit).collect())
}

/// A relevant conversation.
#[derive(Debug)]
pub(crate) struct Weighed {
    /// Its weight, from 0 to 1.
    pub weight: f64,
    /// Its recency, from 0 to 1.
    recency: f64,
    /// The time of its earliest hit, in milliseconds.
    pub first: Millis,
}

/// Computes the weight of each conversation from its three best messages and its age, relative to the highest weight of
/// all.
pub(crate) fn weigh(hits: &[Hit]) -> BTreeMap<SessionId, Weighed> {
    let newest = hits.iter().map(|hit| hit.memory.time).max().unwrap_or(0);
    let mut scores: BTreeMap<&SessionId, (Vec<f64>, Millis, Millis)> = BTreeMap::new();
    for hit in hits {
        let Some(session) = &hit.memory.session else { continue };
        let time = hit.memory.time;
        let (scores, first, last) = scores.entry(session).or_insert((Vec::new(), time, time));
        scores.push(hit.ranked.score);
        (*first, *last) = ((*first).min(time), (*last).max(time));
    }
    let weighed = scores.into_iter().map(|(session, (mut scores, first, last))| {
        scores.sort_by(|a, b| b.total_cmp(a));
        let best: f64 = scores.iter().take(contexts::WEIGHING_MESSAGES).sum();
        let recency = recency(last, newest, contexts::HALF_LIFE);
        (session.clone(), Weighed { weight: best * (1.0 - AGEING + AGEING * recency), recency, first })
    });
    let mut weighed: BTreeMap<SessionId, Weighed> = weighed.collect();
    let most = weighed.values().map(|session| session.weight).fold(f64::MIN_POSITIVE, f64::max);
    weighed.values_mut().for_each(|session| session.weight /= most);
    weighed
}

/// Returns the passage of a hit; `None` if the hit isn't shown separately.
pub(crate) fn passage(hit: &Hit, sessions: &BTreeMap<SessionId, Weighed>, most: usize) -> Option<Passage> {
    let Hit { memory, piece, .. } = hit;
    let weighed = memory.session.as_ref().and_then(|session| sessions.get(session));
    match (memory.kind, &memory.session) {
        (Kind::Message, Some(session)) => {
            let weighed = weighed?;
            // Older messages get less room, but at least as much as the results of a search.
            let detail = contexts::OLDEST_DETAIL + (1.0 - contexts::OLDEST_DETAIL) * weighed.recency;
            let most = ((most as f64 * detail) as usize).max(contexts::LEAST_DETAIL);
            let is_long = usize::try_from(memory.tokens).unwrap_or(0) > most;
            let text = if is_long { memory.text.get(piece.0..piece.1)? } else { memory.text.as_str() };
            let mut passage = remembered(Part::Relevant, session, memory, text, most);
            passage.place.0 = weighed.first;
            Some(passage)
        }
        (Kind::Commit, _) => {
            let text = tokens::truncate(memory.text.get(piece.0..piece.1)?.trim(), most);
            let sha =
                memory.source_id.as_deref().map_or(memory.id.as_str(), |sha| sha.get(..10).unwrap_or(sha));
            let line = render::fact(memory.kind.as_str(), sha, text);
            let place = (Millis::MIN + 1, String::new(), memory.time);
            let head = format!("[committed {}]\n", day(memory.time));
            Some(Passage { part: Part::Commits, head, place, cost: cost(&line), line })
        }
        // The summary of a conversation isn't a separate passage: `summarise` adds a summary for the conversation.
        (Kind::Conversation | Kind::Summary, Some(_)) => None,
        _ => {
            let text = tokens::truncate(&memory.text, most);
            let line = render::fact(memory.kind.as_str(), memory.id.as_str(), text);
            let place = (Millis::MIN, String::new(), memory.time);
            let head = format!("[known {}]\n", day(memory.time));
            Some(Passage { part: Part::Facts, head, place, cost: cost(&line), line })
        }
    }
}

/// Adds short summaries of the conversations with the highest weights, within `limit` tokens. In a mixed context,
/// conversations with fewer than `few` messages get no summary.
async fn summarise(
    project: &OpenProject,
    asked: &Asked,
    sessions: &BTreeMap<SessionId, Weighed>,
    few: usize,
    limit: usize,
    budget: &mut Budget,
    chosen: &mut Chosen,
) -> Result<()> {
    let mut own = Budget::new(limit.min(budget.left()));
    let mut order: Vec<(&SessionId, &Weighed)> = sessions.iter().collect();
    order.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight).then_with(|| a.0.cmp(b.0)));
    let length = match asked.level {
        // The fewer conversations there are, the longer each summary may be.
        IncludeLevel::Summary => (limit / order.len().clamp(1, ACROSS_SESSIONS)).clamp(ACROSS_TOKENS, 600),
        _ => ACROSS_TOKENS,
    };
    for (session, weighed) in order.into_iter().take(ACROSS_SESSIONS) {
        if own.left() < ACROSS_TOKENS {
            *chosen.dropped.entry(Part::Summaries.as_str()).or_default() += 1;
            continue;
        }
        let scope = &asked.scope;
        let rows = project.store.session_messages(scope, session, 0).await?;
        // A short conversation needs no summary: its messages are shown.
        if asked.level == IncludeLevel::Mixed && rows.len() < few {
            continue;
        }
        let head = render::head(session.as_str(), &day(weighed.first));
        let rows = &rows[rows.len().saturating_sub(MOST_READ)..];
        let read = messages::texts(project, rows).await?;
        let most = length.min(own.left().saturating_sub(cost(&head) + 8));
        let (query, level) = (asked.query.clone(), if length > 150 { Level::Standard } else { Level::Brief });
        let extract =
            move || summarize::extract(&messages::sources(&read), level, most, &query, &messages::count).text;
        let text = messages::blocking(extract).await.unwrap_or_default();
        if text.is_empty() {
            continue;
        }
        let line = render::session_summary(&text);
        let place = (weighed.first, session.as_str().to_owned(), -1);
        let passage = Passage { part: Part::Summaries, head, place, cost: cost(&line), line };
        let needed = passage.cost + cost(&passage.head);
        if own.spend(needed) {
            budget.spend(needed);
            chosen.live.push(passage);
        }
    }
    Ok(())
}
