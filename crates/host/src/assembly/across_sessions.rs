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
    Chosen, Part, Passage, Room, SMALL_FRAME, Shown, cost, document_line, fact_line, head, known_line,
    remembered,
};
use crate::assembly::quote::{self, quote};
use crate::assembly::repeats::Repeats;
use crate::assembly::replies::{add_last_replies, add_questions, is_short_answer};
use crate::assembly::standing::standing;
use crate::assembly::whole_sessions::{latest, summarise};
use crate::assembly::{ContextRequest, IncludeLevel};
use crate::engine::Engine;
use crate::project::OpenProject;
use tiro_base::error::{Result, partial};
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Memory, MemoryKey, Millis, Role, marked};
use tiro_base::scope::{AuthorId, Scope, SessionId, Sessions};
use tiro_base::times::day;
use tiro_digest::context::render;
use tiro_digest::tuning::contexts::{
    self, LEAST_RELEVANCE, LONGEST_WHOLE, PASSAGE, SHOWN_WHOLE, SURE_RELEVANCE, SURE_SCORE, SURE_SHARE,
    WHOLE_MESSAGE,
};
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
    Kind::Document,
];

/// The number of hits that are read at once. Arbitrary: a small context shows about as many.
const BATCH: usize = 32;

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
    let owners_scope = project.scope.owner_wide();
    let mut places: Vec<(&dyn ReadStore, &Scope)> = vec![(project.store.as_ref(), &asked.scope)];
    if asked.scope.sessions == Sessions::All {
        places.push((owners.memories().as_ref(), &owners_scope));
    }
    let mut chosen = Chosen::default();
    let filter = Filter { kinds: Some(KINDS.to_vec()), ..asked.filter.clone() };
    let mut found =
        retrieve::search(&places, encoders, &asked.query, &filter, &Weights::of_context()).await?;
    project.keep_current_documents(&mut found.ranked).await?;
    chosen.notices.append(&mut found.notices);
    chosen.pending = pending(&places, found.pending).await?;
    let sessions = weigh(&found.ranked);
    let events = cues::asks_for_order(&asked.query);
    let is_broad = events || cues::asks_for_overview(&asked.query);
    let room = if is_broad { Room::EVENT } else { Room::USUAL };
    let is_wanted = |hit: &&Ranked| is_of_level(hit, asked.level) && (!events || is_event(hit));
    let asked_for: Vec<Ranked> = found.ranked.iter().filter(is_wanted).cloned().collect();
    let share = engine.config().options.summary_ratio * contexts::SUMMARIES_ACROSS;
    let ordered = |least: f64| order(asked_for.clone(), &sessions, room, share, least);
    let mut order = ordered(least_relevance(asked, 0.0));
    // The hits that show whether anything answers the question, and the hits that are probably shown, are read
    // together.
    let best = found.ranked.iter().take(BEST);
    let mut first: Vec<Ranked> = best.chain(order.iter().take(BATCH)).cloned().collect();
    let mut known: HashSet<(usize, MemoryKey)> = HashSet::new();
    first.retain(|hit| known.insert((hit.store, hit.place.key)));
    let first = read(&places, first).await?;
    let Judged { verdict, sure, mut meant } = judged(project, &found, &first).await?;
    if let Some(notice) = verdict.notice().filter(|_| !partial::any(&chosen.notices)) {
        chosen.notices.insert(0, notice.to_owned());
        chosen.live = nearest(&first, &asked.scope.reader, &sessions, room);
        return Ok(chosen);
    }
    if sure > 0.0 {
        order = ordered(least_relevance(asked, sure));
        meant.retain(|memory| order.iter().any(|hit| hit.store == 0 && hit.place.key == memory.key));
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
        None => HashMap::new(),
    };
    if asked.level == IncludeLevel::Summary {
        summarise(project, asked, &found.ranked, &sessions, &mut filling, &mut chosen).await?;
    }
    let known: HashSet<MemoryKey> = order.iter().map(|hit| hit.place.key).collect();
    let top = order.iter().map(|hit| hit.score).fold(f64::MIN_POSITIVE, f64::max);
    let few = engine.config().options.summarization_threshold;
    let reader = &asked.scope.reader;
    let relevant = Relevant { reader, sessions: &sessions, listed: &listed, few, best: SHOWN_WHOLE * top };
    let (cut, answers) =
        show(&places, (order, first), relevant, repeats, room, &mut filling, &mut chosen).await?;
    if !asked.filter.has_range() && !events {
        add_last_replies(project, asked, &meant, &mut filling, &mut chosen).await?;
        add_questions(project, asked, &answers, &known, room, &mut filling, &mut chosen).await?;
    }
    let is_whole = |hit: &Hit| {
        hit.ranked.score >= SHOWN_WHOLE * top
            && (hit.memory.kind == Kind::Commit || hit.memory.tokens <= LONGEST_WHOLE)
    };
    let cut = cut.into_iter().filter(|(_, hit)| is_whole(hit));
    show_whole(cut, reader, &sessions, &mut filling, &mut chosen);
    Ok(chosen)
}

/// Replaces passages that show only a part of a message by the whole message, as long as there is room. Each hit comes
/// with the index of its passage.
fn show_whole(
    cut: impl Iterator<Item = (usize, Hit)>,
    reader: &AuthorId,
    sessions: &HashMap<Conversation, Weighed>,
    filling: &mut Filling,
    chosen: &mut Chosen,
) {
    let whole = Room { whole: usize::MAX, part: usize::MAX, answer: usize::MAX };
    for (place, hit) in cut {
        if let Some(whole) = passage(&hit, reader, sessions, whole, usize::MAX).filter(|_| !filling.is_full())
        {
            filling.extend(chosen, place, whole);
        }
    }
}

/// Returns whether a context of this level of detail shows the hit.
fn is_of_level(hit: &Ranked, level: IncludeLevel) -> bool {
    match (level, lane(hit.place.kind)) {
        (IncludeLevel::Summary, Lane::Said) => hit.place.kind != Kind::Message,
        (IncludeLevel::Summary | IncludeLevel::Full, Lane::Summaries) => false,
        _ => true,
    }
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

/// Returns the share of the best score below which a hit is left out: the surer it is that the best hit is meant, the
/// higher. `sure` is 0 to 1. A question about a time, or about everything, asks for all of it.
fn least_relevance(asked: &ContextRequest, sure: f64) -> f64 {
    let is_of_all = asked.filter.has_range() || cues::asks_for_much(&asked.query);
    if is_of_all { 0.0 } else { LEAST_RELEVANCE + sure * (SURE_RELEVANCE - LEAST_RELEVANCE) }
}

/// What the best hits say about the question.
struct Judged {
    verdict: Verdict,
    /// How sure it is that the question means one of them, from 0 to 1: if one contains nearly all words of a long
    /// question.
    sure: f64,
    /// The requests of a user that the question means.
    meant: Vec<Memory>,
}

/// Compares the best hits with the question. `read` contains the hits that could be read.
async fn judged(project: &OpenProject, found: &SearchResult, read: &[Hit]) -> Result<Judged> {
    let best: Vec<&Hit> = found.ranked.iter().take(BEST).filter_map(|ranked| of(ranked, read)).collect();
    let text = |hit: &&Hit| retrieve::searched_text(&hit.memory, hit.piece.0..hit.piece.1);
    let (texts, terms, rarity) = (best.iter().map(text).collect(), found.terms.clone(), found.rarity.clone());
    let shares = project.store.shares(&project.scope, terms, rarity, texts).await?;
    let judged: Vec<(&Ranked, f64)> =
        best.iter().map(|hit| &hit.ranked).zip(shares.iter().copied()).collect();
    let verdict = found.verdict(&judged);
    let top = judged.iter().map(|(hit, _)| hit.score).fold(f64::MIN_POSITIVE, f64::max);
    let is_long = found.terms.len() >= contexts::SURE_WORDS;
    let is_meant = |(hit, share): &(&&Hit, &f64)| {
        is_long && **share > SURE_SHARE && hit.ranked.score >= SURE_SCORE * top && !is_of_people(&hit.memory)
    };
    let meant: Vec<(&&Hit, &f64)> = best.iter().zip(&shares).filter(is_meant).collect();
    let share = meant.iter().map(|(_, share)| **share).fold(0.0, f64::max);
    let sure = ((share - SURE_SHARE) / (1.0 - SURE_SHARE)).clamp(0.0, 1.0);
    let is_request = |hit: &&&Hit| {
        let Memory { kind, role, .. } = &hit.memory;
        hit.ranked.store == 0 && *kind == Kind::Message && *role == Some(Role::User)
    };
    let meant =
        meant.into_iter().map(|(hit, _)| hit).filter(is_request).map(|hit| hit.memory.clone()).collect();
    Ok(Judged { verdict, sure, meant })
}

/// Returns whether the message is from a talk between people, in which many messages together answer a question.
fn is_of_people(memory: &Memory) -> bool {
    let speaker = memory.speaker.as_deref().filter(|_| memory.kind == Kind::Message);
    speaker.is_some_and(|name| Role::parse(&name.to_lowercase()).is_none())
}

/// Returns the beginnings of the nearest hits, for a context without an answer.
fn nearest(
    hits: &[Hit],
    reader: &AuthorId,
    sessions: &HashMap<Conversation, Weighed>,
    room: Room,
) -> Vec<Passage> {
    let shown = |hit| passage(hit, reader, sessions, room, NEAREST_TOKENS);
    hits.iter().filter_map(shown).take(NEAREST).collect()
}

/// Returns the hit in `read` that shows the memory of `ranked`.
fn of<'h>(ranked: &Ranked, read: &'h [Hit]) -> Option<&'h Hit> {
    read.iter().find(|hit| is_same(&hit.ranked, ranked))
}

/// Returns whether both are the same memory.
fn is_same(one: &Ranked, other: &Ranked) -> bool {
    (one.store, one.place.key) == (other.store, other.place.key)
}

/// The conversations of a context: their weights, and the conversations that are already listed, with the times of
/// their first messages.
struct Relevant<'a> {
    reader: &'a AuthorId,
    sessions: &'a HashMap<Conversation, Weighed>,
    listed: &'a HashMap<SessionId, Millis>,
    /// The minimum number of messages of a conversation that is summarised.
    few: usize,
    /// The least score of the best hits.
    best: f64,
}

/// Adds the passages of the hits, in order, as long as they fit. The first of the hits are already read. Returns the
/// messages that are not shown whole, each with the index of its passage, and the messages of a few words.
async fn show(
    places: &[(&dyn ReadStore, &Scope)],
    (order, first): (Vec<Ranked>, Vec<Hit>),
    Relevant { reader, sessions, listed, few, best }: Relevant<'_>,
    mut repeats: Repeats,
    room: Room,
    filling: &mut Filling,
    chosen: &mut Chosen,
) -> Result<(Vec<(usize, Hit)>, Vec<Memory>)> {
    let (mut cut, mut answers) = (Vec::new(), Vec::new());
    let mut left = order.into_iter();
    while !filling.is_full() {
        let batch: Vec<Ranked> = left.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        let (known, unread): (Vec<Ranked>, Vec<Ranked>) =
            batch.iter().cloned().partition(|ranked| of(ranked, &first).is_some());
        let mut hits: Vec<Hit> = match unread.is_empty() {
            true => Vec::new(),
            false => read(places, unread).await?,
        };
        let hit = |ranked: Ranked| Some(Hit { ranked: ranked.clone(), ..of(&ranked, &first)?.clone() });
        hits.extend(known.into_iter().filter_map(hit));
        hits.sort_by_key(|hit| batch.iter().position(|ranked| is_same(ranked, &hit.ranked)));
        for hit in hits {
            let is_listed = hit.memory.session.as_ref().is_some_and(|session| listed.contains_key(session));
            let is_summary = lane(hit.memory.kind) == Lane::Summaries;
            if is_summary && (is_listed || is_short(&hit, few)) {
                continue;
            }
            // A question about the latest conversations is not about what was before them, nor about documents.
            let is_beside = |began: &Millis| hit.memory.time < *began || hit.memory.kind == Kind::Document;
            let is_beside = !is_listed && listed.values().min().is_some_and(is_beside);
            if is_beside || hit.ranked.score < best && says_nothing(&hit, room) {
                *chosen.dropped.entry(part_of(&hit.ranked).as_str()).or_default() += 1;
                continue;
            }
            let Some(whole) = passage(&hit, reader, sessions, room, usize::MAX) else { continue };
            let Some(text) = repeats.new_text(&hit.ranked, &hit.memory) else { continue };
            let part = whole.part;
            let added = filling.add(chosen, whole, |left| passage(&hit, reader, sessions, room, left));
            if added {
                repeats.show(text, chosen.live.len() - 1);
                if hit.ranked.store == 0 && is_short_answer(&hit.memory) {
                    answers.push(hit.memory.clone());
                }
            }
            if !added {
                *chosen.dropped.entry(part.as_str()).or_default() += 1;
            } else if is_cut(&hit.memory, room) {
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

/// Returns whether a message says nothing in words: it is a tool's output, or only code, logs or tables of it would be
/// shown.
fn says_nothing(hit: &Hit, room: Room) -> bool {
    let Hit { memory, piece, .. } = hit;
    let is_fragment = is_cut(memory, room) && !quote::has_sentence(&memory.text, piece.0..piece.1);
    memory.kind == Kind::Message && (memory.role == Some(Role::Tool) || is_fragment)
}

/// Returns whether only a part of the message or commit is shown.
fn is_cut(memory: &Memory, room: Room) -> bool {
    match memory.kind {
        Kind::Message => !room.is_whole(memory.role, memory.tokens),
        Kind::Commit => usize::try_from(memory.tokens).is_ok_and(|tokens| tokens > PASSAGE),
        _ => false,
    }
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

/// Returns the passage that shows `reader` a hit with at most `most` tokens of its text; `None` if nothing of it fits.
pub fn passage(
    hit: &Hit,
    reader: &AuthorId,
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
            let mut passage = remembered(part, session, (memory, reader), piece, most);
            passage.place.0 = first;
            passage.shows = shows;
            Some(passage)
        }
        (Part::Commits, _) => {
            let text = quote::commit(&memory.text, piece, most.min(room.part.clamp(PASSAGE, WHOLE_MESSAGE)));
            let sha =
                memory.source_id.as_deref().map_or(memory.id.as_str(), |sha| sha.get(..10).unwrap_or(sha));
            let line = known_line(memory, reader, sha, &text);
            // A commit that was made later comes first.
            let place = (Millis::MIN + 1, String::new(), -memory.time);
            let head = format!("[committed {}]\n", day(memory.time));
            Some(Passage { part, head, place, cost: cost(&line), line, shows })
        }
        (Part::Summaries, Some(session)) => {
            let text = quote(&memory.text, 0..memory.text.len(), most.min(ACROSS_TOKENS));
            let line = render::session_summary(&marked(text.clone(), memory.is_damaged));
            let head = head(session, &memory.author, reader, &day(first));
            let place = (first, session.as_str().to_owned(), -1);
            (!text.is_empty()).then(|| Passage { part, head, place, cost: cost(&line), line, shows: None })
        }
        _ => {
            let line = match memory.kind {
                Kind::Document => document_line(memory, reader, piece, most.min(PASSAGE)),
                _ => fact_line(memory, reader, most.min(PASSAGE)),
            };
            // A memory that was stored later comes first.
            let place = (Millis::MIN, String::new(), -memory.time);
            let head = format!("[known {}]\n", day(memory.time));
            Some(Passage { part: Part::Facts, head, place, cost: cost(&line), line, shows })
        }
    }
}
