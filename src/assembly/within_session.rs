//! Assembles the context of one conversation: first a part that doesn't depend on the question, then passages that
//! answer it.
//!
//! The first part depends only on the closed segments and the budget, so it stays the same, byte for byte, until a
//! segment closes. The open end of the conversation and the relevant passages follow.

use crate::assembly::choice::Choice;
use crate::assembly::passages::Chosen;
use crate::assembly::{Asked, IncludeLevel};
use crate::embed::Encoders;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::memory::MemoryId;
use crate::project::OpenProject;
use crate::scope::SessionId;
use crate::store::{SegmentRow, StashCause, Stashing};
use crate::summaries::notes;
use crate::summaries::segments::{self, Closed, Leaves};

/// The maximum number of missing summaries that a call makes. This takes about a tenth of a second. The call starts
/// with the latest segments.
const SUMMARIES_AT_ONCE: usize = 24;

/// The segments and summaries of a conversation.
pub struct Prepared {
    closed: Vec<SegmentRow>,
    leaves: Leaves,
    /// Whether this call closed segments or made summaries.
    pub wrote: bool,
    /// How many messages are not divided into segments yet.
    pub waiting: usize,
    /// If the segments and summaries that this call made could not be stored, the reason.
    unkept: Option<String>,
}

/// Closes as many segments, and makes as many missing summaries, as one call may.
pub async fn prepare(engine: &Engine, project: &OpenProject, session: &SessionId) -> Result<Prepared> {
    // If another writer takes long, the facts are extracted later.
    let _ = notes::note(engine, project, session).await;
    let Closed { segments: closed, wrote, waiting, unkept } = segments::close(project, session).await?;
    let wanted = segments::wanted(&segments::tiers(engine), &closed);
    let leaves = segments::summaries(engine, project, session, &wanted, SUMMARIES_AT_ONCE).await?;
    let unkept = unkept.as_ref().or(leaves.unkept.as_ref()).map(Error::with_hint);
    Ok(Prepared { wrote: wrote || leaves.new > 0, waiting, unkept, closed, leaves })
}

/// Chooses passages in this order: those that don't depend on the question, the open end, those that answer the
/// question, then others as long as budget is left.
pub async fn choose(
    engine: &Engine,
    project: &OpenProject,
    asked: &Asked,
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
    choice.chosen.pending = pending;
    choice.chosen.notices.extend(
        prepared
            .unkept
            .take()
            .map(|why| format!("segments and summaries made for this answer are not stored: {why}")),
    );
    choice.stable(&prepared.closed, &prepared.leaves.made).await?;
    choice.open(open_from).await?;
    if asked.level != IncludeLevel::Summary && !choice.shows_all() {
        choice.relevant(encoders).await?;
        choice.rest().await?;
    }
    if !asked.filter.has_range() {
        stash_uncovered(engine, project, choice.uncovered()).await;
    }
    Ok(choice.done())
}

/// Stashes messages that the context has no room for, although no summary covers them yet, so that they are found in the
/// stash. They stay in later contexts that have room. If they can't be stored now, the next context stores them.
async fn stash_uncovered(engine: &Engine, project: &OpenProject, ids: Vec<MemoryId>) {
    if ids.is_empty() {
        return;
    }
    let stashing = Stashing {
        named: ids,
        given: Vec::new(),
        cause: StashCause::Pruning,
        expires_at: None,
        is_protected: None,
        topic: None,
    };
    let done = project.store.stash_in_passing(&project.scope, stashing, engine.now()).await;
    done.unwrap_or_else(|error| error.log());
}
