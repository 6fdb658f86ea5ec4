//! Assembles the context of one conversation. A part that doesn't depend on the question comes first, then passages
//! that answer it.
//!
//! The first part depends only on the closed segments and the budget, so it stays the same, byte for byte, until a
//! segment closes. The open end of the conversation and the relevant passages follow.

use crate::assembly::choice::{Choice, MOST_FACTS, MOST_IMPORTANT};
use crate::assembly::passages::Chosen;
use crate::assembly::{ContextRequest, IncludeLevel};
use crate::caller::{Caller, Task};
use crate::engine::Engine;
use crate::project::OpenProject;
use crate::summaries::known::Known;
use crate::summaries::notes::{self, NewFacts};
use crate::summaries::segments::{self, Closed, Leaves};
use tiro_base::error::Result;
use tiro_base::scope::SessionId;
use tiro_embed::Encoders;
use tiro_store::{ContextParts, ContextQuery, SegmentRow};

/// The maximum number of missing summaries that a call makes for its answer, which takes about a tenth of a second. The
/// call starts with the latest segments.
const SUMMARIES_AT_ONCE: usize = 24;

/// The maximum number of texts that are read at once. Arbitrary: slightly more than the messages that one call divides
/// into segments.
const MOST_TEXTS: usize = 5000;

/// The data of a conversation from which a context is chosen, such as its facts, segments and summaries. Some of it is
/// stored, and the rest was made for this answer.
pub struct Prepared<'p> {
    known: Known<'p>,
    parts: ContextParts,
    facts: NewFacts,
    closed: Vec<SegmentRow>,
    leaves: Leaves,
    /// Whether some of this data still has to be stored.
    pub is_behind: bool,
    /// The number of messages that are not divided into segments yet.
    pub waiting: usize,
}

impl Prepared<'_> {
    /// Returns the number of tokens (o200k) of the whole conversation.
    pub fn tokens(&self) -> i64 {
        self.parts.tokens
    }
}

/// Reads the data from which a context of the conversation is chosen, all at once. Makes as many of the missing
/// segments and summaries as one call may make. Stores nothing.
pub async fn prepare<'p>(
    engine: &Engine,
    project: &'p OpenProject,
    asked: &ContextRequest,
    session: &'p SessionId,
) -> Result<Prepared<'p>> {
    let tiers = segments::tiers(engine);
    let query = ContextQuery {
        recent: tiers.recent,
        whole: i64::try_from(asked.budget).unwrap_or(i64::MAX),
        look_back: notes::LOOK_BACK,
        texts: MOST_TEXTS,
        importance: engine.config().options.importance_threshold,
        important: MOST_IMPORTANT,
        facts: MOST_FACTS,
    };
    let (known, parts) = Known::read(project, session, query).await?;
    let facts = notes::new_facts(&known).await?;
    let Closed { segments: closed, new, waiting } = segments::closed(&known).await?;
    let wanted = segments::wanted(&tiers, &closed);
    let leaves = segments::summaries(&known, &wanted, SUMMARIES_AT_ONCE).await?;
    let is_behind = facts.is_behind || new > 0 || waiting > 0 || !leaves.new.is_empty() || leaves.waiting > 0;
    Ok(Prepared { known, parts, facts, is_behind, waiting, closed, leaves })
}

/// Chooses passages in this order: passages that don't depend on the question, the open end, passages that answer the
/// question, and then other passages as long as budget is left.
pub async fn choose(
    (engine, caller): (&Engine, &Caller),
    asked: &ContextRequest,
    prepared: Prepared<'_>,
    encoders: &Encoders<'_>,
) -> Result<Chosen> {
    let Prepared { known, parts, facts, mut closed, leaves, is_behind, waiting } = prepared;
    let ContextParts { important, facts: stored, stashed, pending, .. } = parts;
    let mut begins = closed.last().map_or(0, |row| row.last + 1);
    let open_from = begins;
    if asked.filter.has_range() {
        // If a range of time is requested, the messages within it are treated as if they were the whole conversation.
        let rows = known.messages(0).await?;
        let mut within = rows.iter().filter(|row| asked.filter.is_within(row.time)).map(|row| row.ordinal);
        let first = within.next().unwrap_or(i64::MAX);
        let last = within.next_back().unwrap_or(first);
        closed.retain(|row| first <= row.first && row.last <= last);
        begins = last.saturating_add(1);
    }
    let mut choice = Choice::new(engine, &known, asked, begins);
    choice.hold_out(stashed.iter().filter(|place| place.is_held_out));
    choice.learn(facts);
    choice.said_by(known.others(&asked.scope.reader).await?);
    choice.chosen.pending = pending + leaves.waiting + waiting;
    choice.stable(&closed, &leaves.made, (important, stored)).await?;
    choice.open(open_from).await?;
    if asked.level != IncludeLevel::Summary && !choice.shows_all() {
        choice.relevant(encoders).await?;
        choice.rest();
    }
    let session = known.session;
    if is_behind {
        caller.leave(Task::Digest(session.clone()));
    }
    // Some messages have no room in this context although no summary covers them yet. They are stashed later, so that
    // they can be found in the stash. Later contexts that have room still show them.
    if !asked.filter.has_range() {
        let mut uncovered = choice.uncovered();
        uncovered.retain(|(key, _)| !stashed.iter().any(|place| place.key == *key));
        if !uncovered.is_empty() {
            let ids = uncovered.into_iter().map(|(_, id)| id).collect();
            caller.leave(Task::Stash(session.clone(), ids));
        }
    }
    Ok(choice.done())
}
