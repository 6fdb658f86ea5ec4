//! Works off the sessions that grew: closes their segments, summarises these, and makes the memory that stands for each.
//!
//! It is done in bounded steps by imports, by `tiro index`, by an idle server and by calls that need it; a write only
//! leaves a mark. Nothing runs without a client. All of it is made without a model and is the same each time, so two
//! processes that do it at once store it once.
//!
//! What stands for a session is made of instructions and answers: not of what tools printed, which is long and says
//! little of what was wanted, nor of files that were pasted.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::memory::{Draft, Identity, Kind as MemoryKind, Level, Millis, Provenance, Role};
use crate::project::OpenProject;
use crate::remember;
use crate::scope::SessionId;
use crate::store::{ConversationRow, GrownSession, MessageRow, Saved, source_hash};
use crate::summaries::messages::told;
use crate::summaries::wanted::Made;
use crate::summaries::{enqueue, messages, segments};
use crate::summarize;
use crate::tuning::summaries::SESSION_ENDED;

/// Sessions looked for at once.
const SESSIONS: usize = 16;

/// Summaries of a session's segments made between two looks at the clock.
const STEP: usize = 32;

/// Messages that what stands for a session is chosen from. Of more, some are passed over evenly.
const MOST_MESSAGES: usize = 1000;

/// What was worked off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Worked {
    /// Sessions that have nothing left to do.
    pub sessions: usize,
    /// Memories made that stand for a session.
    pub conversations: usize,
    /// Whether time ran out before all was done.
    pub is_left: bool,
}

/// Works off the sessions that grew, until `patience` is over.
///
/// A session that fails is left for the next time.
pub(crate) async fn work_off(engine: &Engine, caller: &Caller, patience: Duration) -> Result<Worked> {
    let began = Instant::now();
    let is_over = || began.elapsed() >= patience;
    let project = caller.project(engine).await?;
    let (store, scope) = (&project.store, &project.scope);
    let mut worked = Worked::default();
    let mut failed: HashSet<SessionId> = HashSet::new();
    loop {
        let grown = store.grown_sessions(scope, SESSIONS + failed.len()).await?;
        let Some(grown) = grown.into_iter().find(|grown| !failed.contains(&grown.session)) else { break };
        let step = async {
            if summarise_segments(engine, project, &grown.session).await? > 0 {
                return Ok(());
            }
            worked.conversations += usize::from(stand_for(engine, project, &grown).await?);
            worked.sessions += 1;
            Ok::<(), Error>(())
        };
        // The others are none the worse for it.
        if let Err(error) = step.await {
            tracing::warn!(%error, "a session is not summarised");
            failed.insert(grown.session);
        }
        if is_over() {
            return Ok(Worked { is_left: true, ..worked });
        }
    }
    for session in store.due_conversations(scope, engine.now(), SESSIONS).await? {
        if is_over() {
            return Ok(Worked { is_left: true, ..worked });
        }
        worked.conversations += usize::from(renew(engine, project, &session).await?);
    }
    if worked.conversations > 0 {
        // They wait to be embedded.
        engine.wrote();
    }
    Ok(worked)
}

/// Closes the session's segments and makes some of the summaries that they lack; returns how much is left.
async fn summarise_segments(engine: &Engine, project: &OpenProject, session: &SessionId) -> Result<usize> {
    let closed = segments::close(engine, project, session).await?;
    if let Some(error) = closed.unkept {
        return Err(error);
    }
    if closed.waiting > 0 {
        // Which summaries are wanted depends on where the last segment ends.
        return Ok(closed.waiting);
    }
    let wanted = segments::wanted(&segments::tiers(engine), &closed.segments);
    let leaves = segments::summaries(engine, project, session, &wanted, STEP).await?;
    leaves.unkept.map_or(Ok(leaves.waiting), Err)
}

/// Makes the memory that stands for a session which grew, or says when it is to be made anew; returns whether it was made.
async fn stand_for(engine: &Engine, project: &OpenProject, grown: &GrownSession) -> Result<bool> {
    let (store, scope) = (&project.store, &project.scope);
    let known = store.conversation(scope, &grown.session).await?;
    let rows = store.session_messages(scope, &grown.session, 0).await?;
    let interval = engine.config().options.summary_update_interval();
    let now = engine.now();
    let mut is_made = false;
    match is_due(known.as_ref(), &rows, interval, now) {
        Due::Now => is_made = make(engine, project, &grown.session, &rows).await?,
        Due::At(time) => store.postpone_conversation(scope, &grown.session, time).await?,
        Due::Never => {}
    }
    store.worked_off(scope, grown.clone()).await?;
    Ok(is_made)
}

/// Makes the memory of a session anew that was put off.
async fn renew(engine: &Engine, project: &OpenProject, session: &SessionId) -> Result<bool> {
    let rows = project.store.session_messages(&project.scope, session, 0).await?;
    make(engine, project, session, &rows).await
}

/// When the memory of a session is to be made.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Now,
    At(Millis),
    Never,
}

/// Returns when the memory of the session with the messages `rows` is to be made, where it is `known` as far as it was.
///
/// A session that goes on is told anew when it has doubled, and else when `interval` has passed: what is made of its
/// first two messages would stand for it for long otherwise.
fn is_due(known: Option<&ConversationRow>, rows: &[MessageRow], interval: Millis, now: Millis) -> Due {
    let Some(last) = rows.last().filter(|_| rows.len() > 1) else { return Due::Never };
    let Some(known) = known else { return Due::Now };
    if known.last >= last.ordinal {
        return Due::Never;
    }
    let has_doubled = last.ordinal + 1 >= 2 * (known.last + 1);
    let has_ended = now.saturating_sub(last.time) > SESSION_ENDED;
    let at = known.made_at.saturating_add(interval);
    match has_doubled || has_ended || at <= now {
        true => Due::Now,
        false => Due::At(at),
    }
}

/// Makes the memory that stands for the session of the messages `rows`; returns whether it was stored.
async fn make(
    engine: &Engine,
    project: &OpenProject,
    session: &SessionId,
    rows: &[MessageRow],
) -> Result<bool> {
    let Some(last) = rows.last() else { return Ok(false) };
    let told: Vec<MessageRow> =
        rows.iter().filter(|row| matches!(row.role, Some(Role::User | Role::Assistant))).cloned().collect();
    let every = told.len().div_ceil(MOST_MESSAGES).max(1);
    let told: Vec<MessageRow> = told.into_iter().step_by(every).collect();
    let texts = messages::texts(project, &told).await?;
    let text = messages::blocking(move || in_short(&texts)).await?;
    if text.is_empty() {
        return Ok(false);
    }
    let is_made = save(engine, project, session, rows, text, "").await?;
    if is_made {
        enqueue::once_at_rest(engine, project, session, last).await?;
    }
    Ok(is_made)
}

/// Lets a model's summary of the session stand for it, in place of what was made without one; does nothing where that is of
/// other messages by now.
pub(crate) async fn supersede(
    engine: &Engine,
    project: &OpenProject,
    session: &SessionId,
    rows: &[MessageRow],
    made: &Made,
) -> Result<()> {
    let known = project.store.conversation(&project.scope, session).await?;
    let last = rows.last().map(|row| row.ordinal);
    if known.is_none_or(|known| Some(known.last) != last) {
        return Ok(());
    }
    let by = format!(" {} {}", made.provider, made.model);
    if save(engine, project, session, rows, made.text.clone(), &by).await? {
        // It waits to be embedded.
        engine.wrote();
    }
    Ok(())
}

/// Stores the memory that stands for the session of the messages `rows`, which says `text`; returns whether it wasn't there.
async fn save(
    engine: &Engine,
    project: &OpenProject,
    session: &SessionId,
    rows: &[MessageRow],
    text: String,
    by: &str,
) -> Result<bool> {
    let (store, scope) = (&project.store, &project.scope);
    let Some(last) = rows.last() else { return Ok(false) };
    let hash = source_hash(rows.iter().map(|row| &row.id));
    let mut draft = Draft::new(MemoryKind::Conversation, Provenance::Derived, text, last.time);
    draft.identity = Identity::Named(format!("session {}{by}", blake3::Hash::from(hash).to_hex()));
    draft.session = Some(session.clone());
    (draft.branch, draft.head_sha) = store.session_stands(scope, session).await?;
    let redactor = &project.redactor;
    let (memory, _) = remember::prepare(redactor, draft, &mut || engine.random());
    let saved = store.save_conversation(scope, memory, last.ordinal, hash, engine.now()).await?;
    Ok(matches!(saved, Saved::Made(_)))
}

/// Returns what the messages come down to.
fn in_short(texts: &[(MessageRow, String)]) -> String {
    let tokens = texts.iter().map(|(row, _)| usize::try_from(row.tokens).unwrap_or(0)).sum();
    let most = summarize::length(Level::Standard, tokens);
    let told = told(texts);
    summarize::extract(&messages::sources(&told), Level::Standard, most, "", &messages::count).text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{MemoryId, MemoryKey};

    const HOUR: Millis = 3_600_000;

    fn rows(count: i64, last: Millis) -> Vec<MessageRow> {
        let row = |ordinal| MessageRow {
            seq: MemoryKey::from_store(ordinal),
            id: MemoryId::derive(MemoryKind::Message, None, &ordinal.to_string()),
            ordinal,
            role: Some(Role::User),
            speaker: None,
            time: last,
            tokens: 1,
            marked: false,
            importance: None,
            kind: MemoryKind::Message,
            provenance: Provenance::UserSaid,
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn what_stands_for_a_session_is_made_when_it_doubled_ended_or_an_hour_passed() {
        let known = |last| ConversationRow {
            id: MemoryId::derive(MemoryKind::Conversation, None, ""),
            last,
            made_at: 10 * HOUR,
        };
        let now = 10 * HOUR + 1;
        for (known, messages, said, now, due) in [
            (None, 1, now, now, Due::Never),
            (None, 2, now, now, Due::Now),
            (Some(known(9)), 10, now, now, Due::Never),
            (Some(known(9)), 11, now, now, Due::At(11 * HOUR)),
            (Some(known(9)), 20, now, now, Due::Now),
            (Some(known(9)), 11, now, 11 * HOUR, Due::Now),
            (Some(known(9)), 11, 9 * HOUR, now, Due::Now),
        ] {
            assert_eq!(is_due(known.as_ref(), &rows(messages, said), HOUR, now), due, "{known:?} {messages}");
        }
    }
}
