//! Assembles a context across conversations. It shows the hits that answer the question, in the order of [`order`], as
//! long as they fit.
//!
//! The weight of a conversation is computed from the scores of its best messages and lowered by its age. This weight
//! raises the scores of all messages of the conversation. So the budget is divided by relevance and recency. Each
//! message is first shown within the limits of [`Room`]. A short answer is shown with the message before it, and the
//! best of the long messages are shown whole, as long as there is room. A context ends where relevance ends: what scores
//! far below the best hit is left out, even if there is room.

use std::collections::{HashMap, HashSet};

use crate::assembly::filling::Filling;
use crate::assembly::order::{Conversation, Lane, Weighed, conversation, is_event, lane, order, weigh};
use crate::assembly::passages::{
    Chosen, Part, Passage, Room, SMALL_FRAME, Shown, cost, fact_line, remembered,
};
use crate::assembly::quote::{self, quote};
use crate::assembly::repeats::Repeats;
use crate::assembly::standing::standing;
use crate::assembly::whole_sessions::{latest, summarise};
use crate::assembly::{ContextRequest, IncludeLevel};
use crate::engine::Engine;
use crate::project::OpenProject;
use tiro_base::error::{Result, partial};
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Memory, MemoryKey, Millis, marked};
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_base::times::day;
use tiro_digest::context::render;
use tiro_digest::tuning::contexts::{self, LEAST_RELEVANCE, PASSAGE, SHOWN_WHOLE};
use tiro_digest::tuning::summaries::ACROSS_TOKENS;
use tiro_embed::Encoders;
use tiro_recall::retrieve::answering::{BEST, Verdict};
use tiro_recall::retrieve::rank::{Ranked, Weights};
use tiro_recall::retrieve::{self, SearchResult, cues};
use tiro_store::ReadStore;

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

/// The number of hits that are read at once. Arbitrary: a small context shows about as many.
const BATCH: usize = 32;

/// A message with fewer words than this is shown with the message before it. Arbitrary: "Yes, the second one."
const FEW_WORDS: usize = 6;

/// The number of hits that a context without an answer shows. Arbitrary: enough to see what is near.
const NEAREST: usize = 3;

/// The maximum number of tokens of a hit in a context without an answer. Arbitrary: two sentences.
const NEAREST_TOKENS: usize = 60;

/// A memory that the search found, with its rank.
#[derive(Clone)]
pub struct Hit {
    /// Its rank and score.
    pub ranked: Ranked,
    /// The memory.
    pub memory: Memory,
    /// The memory's best chunk, as a range of bytes.
    piece: (usize, usize),
    /// If the memory is a summary of its session: the ordinal of the last message that it covers.
    covered: Option<i64>,
}

/// Chooses the passages of a context across all conversations.
pub async fn choose(
    engine: &Engine,
    project: &OpenProject,
    asked: &ContextRequest,
    encoders: &Encoders<'_>,
) -> Result<Chosen> {
    let owners = &engine.installation().await?.registry;
    let mut places: Vec<(&dyn ReadStore, &Scope)> = vec![(project.store.as_ref(), &asked.scope)];
    if asked.scope.sessions == Sessions::All {
        places.push((owners.memories().as_ref(), owners.scope()));
    }
    let mut chosen = Chosen::default();
    let filter = Filter { kinds: Some(KINDS.to_vec()), ..asked.filter.clone() };
    let mut found =
        retrieve::search(&places, encoders, &asked.query, &filter, &Weights::of_context()).await?;
    chosen.notices.append(&mut found.notices);
    chosen.pending = pending(&places, found.pending).await?;
    let sessions = weigh(&found.ranked);
    let events = cues::asks_for_order(&asked.query);
    let is_broad = events || cues::asks_for_overview(&asked.query);
    let room = if is_broad { Room::EVENT } else { Room::USUAL };
    let is_asked = |hit: &Ranked| match (asked.level, lane(hit.place.kind)) {
        (IncludeLevel::Summary, Lane::Said) => hit.place.kind != Kind::Message,
        (IncludeLevel::Summary | IncludeLevel::Full, Lane::Summaries) => false,
        _ => !events || is_event(hit),
    };
    let asked_for = found.ranked.iter().filter(|hit| is_asked(hit)).cloned().collect();
    let share = engine.config().options.summary_ratio * contexts::SUMMARIES_ACROSS;
    let mut order = order(asked_for, &sessions, room, share, least_relevance(asked));
    // The hits that show whether anything answers the question, and the hits that are probably shown, are read
    // together.
    let best = found.ranked.iter().take(BEST);
    let mut first: Vec<Ranked> = best.chain(order.iter().take(BATCH)).cloned().collect();
    let mut known: HashSet<(usize, MemoryKey)> = HashSet::new();
    first.retain(|hit| known.insert((hit.store, hit.place.key)));
    let first = read(&places, first).await?;
    let denial = verdict(project, &found, &first).await?.notice().filter(|_| !partial::any(&chosen.notices));
    if let Some(notice) = denial {
        chosen.notices.insert(0, notice.to_owned());
        chosen.live = nearest(&first, &sessions, room);
        return Ok(chosen);
    }
    let mut filling = Filling::new(asked.budget - SMALL_FRAME);
    let mut repeats = Repeats::default();
    if !asked.filter.has_range() {
        let (passages, memories) = standing(project, asked).await?;
        for passage in passages {
            filling.add(&mut chosen, passage, |_| None);
        }
        repeats = Repeats::of(&memories);
        order.retain(|hit| hit.store > 0 || !chosen.shows(hit.place.key));
    }
    let listed = match cues::asks_for_sessions(&asked.query) {
        Some(count) => latest(project, asked, count, &mut filling, &mut chosen).await?,
        None => HashSet::new(),
    };
    if asked.level == IncludeLevel::Summary {
        summarise(project, asked, &found.ranked, &sessions, &mut filling, &mut chosen).await?;
    }
    let known: HashSet<MemoryKey> = order.iter().map(|hit| hit.place.key).collect();
    let top = order.iter().map(|hit| hit.score).fold(f64::MIN_POSITIVE, f64::max);
    let few = engine.config().options.summarization_threshold;
    let relevant = Relevant { sessions: &sessions, listed: &listed, few };
    let (cut, answers) =
        show(&places, (order, first), relevant, repeats, room, &mut filling, &mut chosen).await?;
    if !answers.is_empty() && !filling.is_full() && !asked.filter.has_range() && !events {
        let keys = answers.iter().map(|answer| answer.key).collect();
        let (mut questions, _) = project.store.beside(&asked.scope, keys, None).await?;
        questions.retain(|memory| !known.contains(&memory.key));
        questions.retain(|memory| answers.iter().any(|answer| is_right_before(memory, answer)));
        add_questions(&questions, room, &mut filling, &mut chosen);
    }
    let is_best = |hit: &Hit| hit.ranked.score >= SHOWN_WHOLE * top;
    let cut = cut.into_iter().filter(|(_, hit)| is_best(hit));
    let whole = Room { whole: usize::MAX, part: usize::MAX, answer: usize::MAX };
    for (place, hit) in cut {
        if let Some(whole) = passage(&hit, &sessions, whole, usize::MAX).filter(|_| !filling.is_full()) {
            filling.extend(&mut chosen, place, whole);
        }
    }
    Ok(chosen)
}

/// Returns how many chunks have no embedding yet. This is `known` if it is given, otherwise the stores are asked.
pub async fn pending(places: &[(&dyn ReadStore, &Scope)], known: Option<usize>) -> Result<usize> {
    let mut pending = known.unwrap_or_default();
    if known.is_none() {
        for (store, scope) in places {
            pending += store.pending(scope).await?;
        }
    }
    Ok(pending)
}

/// Returns the share of the best score below which a hit is left out. A question about a time, or about everything, asks
/// for all of it.
fn least_relevance(asked: &ContextRequest) -> f64 {
    let is_of_all = asked.filter.has_range() || cues::asks_for_much(&asked.query);
    if is_of_all { 0.0 } else { LEAST_RELEVANCE }
}

/// Returns the verdict of the best hits on the question. `read` contains the hits that could be read.
async fn verdict(project: &OpenProject, found: &SearchResult, read: &[Hit]) -> Result<Verdict> {
    let best: Vec<&Hit> = found.ranked.iter().take(BEST).filter_map(|ranked| of(ranked, read)).collect();
    let text = |hit: &&Hit| retrieve::searched_text(&hit.memory, hit.piece.0..hit.piece.1);
    let (texts, terms, rarity) = (best.iter().map(text).collect(), found.terms.clone(), found.rarity.clone());
    let shares = project.store.shares(&project.scope, terms, rarity, texts).await?;
    Ok(found.verdict(&best.iter().map(|hit| &hit.ranked).zip(shares).collect::<Vec<_>>()))
}

/// Returns the beginnings of the nearest hits, for a context without an answer.
fn nearest(hits: &[Hit], sessions: &HashMap<Conversation, Weighed>, room: Room) -> Vec<Passage> {
    hits.iter().filter_map(|hit| passage(hit, sessions, room, NEAREST_TOKENS)).take(NEAREST).collect()
}

/// Returns the hit in `read` that shows the memory of `ranked`.
fn of<'h>(ranked: &Ranked, read: &'h [Hit]) -> Option<&'h Hit> {
    read.iter().find(|hit| (hit.ranked.store, hit.ranked.place.key) == (ranked.store, ranked.place.key))
}

/// Adds the messages before short answers, as long as they fit.
fn add_questions(questions: &[Memory], room: Room, filling: &mut Filling, chosen: &mut Chosen) {
    for memory in questions {
        let Some(session) = &memory.session else { continue };
        let first = chosen.live.iter().find(|passage| passage.place.1 == session.as_str());
        let first = first.map_or(memory.time, |passage| passage.place.0);
        let most = room.most(memory.role, memory.tokens);
        let at_most = |most| {
            let mut passage = remembered(Part::Relevant, session, memory, 0..memory.text.len(), most);
            passage.place.0 = first;
            passage
        };
        filling.add(chosen, at_most(most), |left| Some(at_most(left.min(most))));
    }
}

/// The conversations of a context: their weights, and the names of the conversations that are already listed.
struct Relevant<'a> {
    sessions: &'a HashMap<Conversation, Weighed>,
    listed: &'a HashSet<SessionId>,
    /// The minimum number of messages of a conversation that is summarised.
    few: usize,
}

/// Adds the passages of the hits, in order, as long as they fit. The first of the hits are already read. Returns the
/// messages that are not shown whole, each with the index of its passage, and the messages of a few words.
async fn show(
    places: &[(&dyn ReadStore, &Scope)],
    (order, first): (Vec<Ranked>, Vec<Hit>),
    Relevant { sessions, listed, few }: Relevant<'_>,
    mut repeats: Repeats,
    room: Room,
    filling: &mut Filling,
    chosen: &mut Chosen,
) -> Result<(Vec<(usize, Hit)>, Vec<Memory>)> {
    let (mut cut, mut answers) = (Vec::new(), Vec::new());
    let mut left = order.into_iter();
    let mut first = Some(first);
    while !filling.is_full() {
        let batch: Vec<Ranked> = left.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        let hits = match first.take() {
            Some(first) => {
                let hit =
                    |ranked: Ranked| Some(Hit { ranked: ranked.clone(), ..of(&ranked, &first)?.clone() });
                batch.into_iter().filter_map(hit).collect()
            }
            None => read(places, batch).await?,
        };
        for hit in hits {
            let is_listed = hit.memory.session.as_ref().is_some_and(|session| listed.contains(session));
            let is_summary = lane(hit.memory.kind) == Lane::Summaries;
            if is_summary && (is_listed || is_short(&hit, few)) {
                continue;
            }
            let Some(whole) = passage(&hit, sessions, room, usize::MAX) else { continue };
            let Some(text) = repeats.new_text(&hit.ranked, &hit.memory) else { continue };
            let part = whole.part;
            let added = filling.add(chosen, whole, |left| passage(&hit, sessions, room, left));
            if added {
                repeats.show(text, chosen.live.len() - 1);
                if hit.ranked.store == 0 && is_short_answer(&hit.memory) {
                    answers.push(hit.memory.clone());
                }
            }
            if !added {
                *chosen.dropped.entry(part.as_str()).or_default() += 1;
            } else if hit.memory.kind == Kind::Message && !room.is_whole(hit.memory.role, hit.memory.tokens) {
                cut.push((chosen.live.len() - 1, hit));
            }
        }
    }
    for hit in left {
        *chosen.dropped.entry(part_of(&hit).as_str()).or_default() += 1;
    }
    repeats.tell(filling, chosen);
    Ok((cut, answers))
}

/// Returns whether a message has so few words that it says nothing without the message before it.
fn is_short_answer(memory: &Memory) -> bool {
    memory.kind == Kind::Message && memory.text.split_whitespace().take(FEW_WORDS).count() < FEW_WORDS
}

/// Returns whether `memory` is the message right before `answer` in the same session.
fn is_right_before(memory: &Memory, answer: &Memory) -> bool {
    memory.session == answer.session
        && memory.ordinal.zip(answer.ordinal).is_some_and(|(before, after)| before + 1 == after)
}

/// Returns whether the hit is a summary of a conversation with fewer than `few` messages. Such a conversation needs no
/// summary, because its messages are shown.
fn is_short(hit: &Hit, few: usize) -> bool {
    hit.covered.is_some_and(|last| usize::try_from(last + 1).is_ok_and(|count| count < few))
}

/// Returns the part of a context to which a hit belongs.
fn part_of(hit: &Ranked) -> Part {
    match (hit.place.kind, hit.place.session) {
        (Kind::Message, _) => Part::Relevant,
        (Kind::Commit, _) => Part::Commits,
        (Kind::Conversation | Kind::Summary, Some(_)) => Part::Summaries,
        _ => Part::Facts,
    }
}

/// Reads the memories that the search found, in their order. Those that were forgotten since the search are left out.
pub async fn read(places: &[(&dyn ReadStore, &Scope)], ranked: Vec<Ranked>) -> Result<Vec<Hit>> {
    let mut hits: Vec<(usize, Hit)> = Vec::with_capacity(ranked.len());
    for (number, (store, scope)) in places.iter().enumerate() {
        let own: Vec<(usize, &Ranked)> =
            ranked.iter().enumerate().filter(|(_, hit)| hit.store == number).collect();
        let wanted = own.iter().map(|(_, hit)| (hit.place.key, hit.chunk)).collect();
        hits.extend(store.shown(scope, wanted).await?.into_iter().map(|shown| {
            let (rank, hit) = own[shown.place];
            let piece = (shown.chunk.start, shown.chunk.end);
            (rank, Hit { ranked: hit.clone(), memory: shown.memory, piece, covered: shown.covered })
        }));
    }
    hits.sort_by_key(|(rank, _)| *rank);
    Ok(hits.into_iter().map(|(_, hit)| hit).collect())
}

/// Returns the passage of a hit with at most `most` tokens of its text; `None` if nothing of it fits.
pub fn passage(
    hit: &Hit,
    sessions: &HashMap<Conversation, Weighed>,
    room: Room,
    most: usize,
) -> Option<Passage> {
    let Hit { memory, piece, .. } = hit;
    let piece = piece.0..piece.1;
    let first = conversation(&hit.ranked).and_then(|it| sessions.get(&it)).map_or(memory.time, |it| it.first);
    let part = part_of(&hit.ranked);
    // Memories of the owner are in another store, and their keys have no meaning in the project's store.
    let shows = (hit.ranked.store == 0).then(|| Shown::of(memory));
    match (part, &memory.session) {
        (Part::Relevant, Some(session)) => {
            let is_whole = room.is_whole(memory.role, memory.tokens);
            let piece = if is_whole { 0..memory.text.len() } else { piece };
            let most = most.min(room.most(memory.role, memory.tokens));
            let mut passage = remembered(part, session, memory, piece, most);
            passage.place.0 = first;
            passage.shows = shows;
            Some(passage)
        }
        (Part::Commits, _) => {
            let text = quote::commit(&memory.text, piece, most.min(PASSAGE));
            let sha =
                memory.source_id.as_deref().map_or(memory.id.as_str(), |sha| sha.get(..10).unwrap_or(sha));
            let line = marked(render::fact(memory.kind.as_str(), sha, &text), memory.is_damaged);
            // A commit that was made later comes first.
            let place = (Millis::MIN + 1, String::new(), -memory.time);
            let head = format!("[committed {}]\n", day(memory.time));
            Some(Passage { part, head, place, cost: cost(&line), line, shows })
        }
        (Part::Summaries, Some(session)) => {
            let text = quote(&memory.text, 0..memory.text.len(), most.min(ACROSS_TOKENS));
            let line = render::session_summary(&marked(text.clone(), memory.is_damaged));
            let head = render::head(session.as_str(), &day(first));
            let place = (first, session.as_str().to_owned(), -1);
            (!text.is_empty()).then(|| Passage { part, head, place, cost: cost(&line), line, shows: None })
        }
        _ => {
            let line = fact_line(memory, most.min(PASSAGE));
            // A memory that was stored later comes first.
            let place = (Millis::MIN, String::new(), -memory.time);
            let head = format!("[known {}]\n", day(memory.time));
            Some(Passage { part: Part::Facts, head, place, cost: cost(&line), line, shows })
        }
    }
}
