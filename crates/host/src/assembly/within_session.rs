//! Assembles the context of one conversation: first a part that doesn't depend on the question, then passages that
//! answer it.
//!
//! The first part depends only on the closed segments and the budget, so it stays the same, byte for byte, until a
//! segment closes. The open end of the conversation and the relevant passages follow.

use crate::assembly::choice::Choice;
use crate::assembly::passages::Chosen;
use crate::assembly::{ContextRequest, IncludeLevel};
use crate::caller::{Caller, Task};
use crate::engine::Engine;
use crate::project::OpenProject;
use crate::summaries::notes::{self, NewFacts};
use crate::summaries::segments::{self, Closed, Leaves};
use tiro_base::error::Result;
use tiro_base::memory::MemoryId;
use tiro_base::scope::SessionId;
use tiro_embed::Encoders;
use tiro_store::SegmentRow;

/// The maximum number of missing summaries that a call makes for its answer. This takes about a tenth of a second. The
/// call starts with the latest segments.
const SUMMARIES_AT_ONCE: usize = 24;

/// The facts, segments and summaries of a conversation, whether they are stored or were made for this answer.
pub struct Prepared {
    facts: NewFacts,
    closed: Vec<SegmentRow>,
    leaves: Leaves,
    /// Whether some of them are to be stored.
    pub is_behind: bool,
    /// How many messages are not divided into segments yet.
    pub waiting: usize,
}

/// Reads the segments and summaries of a conversation, and makes as many of the missing ones as one call may. Stores
/// nothing.
pub async fn prepare(engine: &Engine, project: &OpenProject, session: &SessionId) -> Result<Prepared> {
    let facts = notes::new_facts(project, session).await?;
    let Closed { segments: closed, new, waiting } = segments::closed(project, session).await?;
    let wanted = segments::wanted(&segments::tiers(engine), &closed);
    let leaves = segments::summaries(project, session, &wanted, SUMMARIES_AT_ONCE).await?;
    let is_behind = facts.is_behind || new > 0 || waiting > 0 || !leaves.new.is_empty() || leaves.waiting > 0;
    Ok(Prepared { facts, is_behind, waiting, closed, leaves })
}

/// Chooses passages in this order: those that don't depend on the question, the open end, those that answer the
/// question, then others as long as budget is left.
pub async fn choose(
    (engine, caller): (&Engine, &Caller),
    project: &OpenProject,
    asked: &ContextRequest,
    session: &SessionId,
    mut prepared: Prepared,
    encoders: &Encoders<'_>,
) -> Result<Chosen> {
    let waiting = prepared.leaves.waiting + prepared.waiting;
    let pending = project.store.pending(&asked.scope).await? + waiting;
    let mut begins = prepared.closed.last().map_or(0, |row| row.last + 1);
    let open_from = begins;
    if asked.filter.has_range() {
        // If a range of time is requested, the messages within it are treated as if they were the whole conversation.
        let rows = project.store.session_messages(&project.scope, session, 0).await?;
        let mut within = rows.iter().filter(|row| asked.filter.is_within(row.time)).map(|row| row.ordinal);
        let first = within.next().unwrap_or(i64::MAX);
        let last = within.next_back().unwrap_or(first);
        prepared.closed.retain(|row| first <= row.first && row.last <= last);
        begins = last.saturating_add(1);
    }
    let mut choice = Choice::new(engine, project, asked, session, begins);
    choice.hold_out(project.store.held_out(&project.scope, session).await?);
    choice.learn(prepared.facts);
    choice.chosen.pending = pending;
    choice.stable(&prepared.closed, &prepared.leaves.made).await?;
    choice.open(open_from).await?;
    if asked.level != IncludeLevel::Summary && !choice.shows_all() {
        choice.relevant(encoders).await?;
        choice.rest().await?;
    }
    if prepared.is_behind {
        caller.leave(Task::Digest(session.clone()));
    }
    // Messages that the context has no room for, although no summary covers them yet, are put into the stash later, so that
    // they are found there. They stay in later contexts that have room.
    if !asked.filter.has_range() {
        let uncovered = not_stashed(project, choice.uncovered()).await?;
        if !uncovered.is_empty() {
            caller.leave(Task::Stash(session.clone(), uncovered));
        }
    }
    Ok(choice.done())
}

/// Returns those of the memories that are not in the stash.
async fn not_stashed(project: &OpenProject, mut ids: Vec<MemoryId>) -> Result<Vec<MemoryId>> {
    let keys = project.store.keys_of(&project.scope, ids.clone()).await?.into_iter().flatten().collect();
    let stashed = project.store.stashed(&project.scope, keys).await?;
    ids.retain(|id| !stashed.iter().any(|row| row.id == *id));
    Ok(ids)
}
