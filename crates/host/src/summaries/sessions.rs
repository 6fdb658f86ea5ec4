//! Processes the sessions that grew: closes their segments, summarises them, and updates the memory that represents
//! each session.
//!
//! Writing a message only marks its session as grown. Imports, `tiro index` and the idle server do the work later, in
//! bounded steps. A call that saves messages does a first step. The work uses no model, and equal messages lead to
//! equal bytes. So two processes that do the same work at the same time store one result.
//!
//! The memory that represents a session contains the user's requests and their outcomes.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::caller::WritingCaller;
use crate::engine::Engine;
use crate::project::WritableProject;
use crate::summaries::notes::corrections::corrections;
use crate::summaries::wanted::Made;
use crate::summaries::{enqueue, messages, notes, segments};
use tiro_base::error::{Error, Result};
use tiro_base::memory::{Draft, Identity, Kind as MemoryKind, Level, Millis, Provenance, Role};
use tiro_base::scope::SessionId;
use tiro_capture::follow::reading::prompts;
use tiro_digest::summarize::{self, Source};
use tiro_digest::tuning::summaries::SESSION_ENDED;
use tiro_intake::prepare;
use tiro_store::{ConversationRow, GrownSession, MessageRow, Saved, source_hash};

/// The number of sessions that are read from the store at once.
const SESSIONS: usize = 16;

/// The number of summaries of segments that are made before the clock is checked again.
const STEP: usize = 32;

/// The maximum number of messages from which the memory of a session is made.
const MOST_MESSAGES: usize = 1000;

/// The result of [`work_off`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worked {
    /// The number of sessions that are up to date now.
    pub sessions: usize,
    /// The number of memories of sessions that were made or updated.
    pub conversations: usize,
    /// Whether time ran out before all sessions were processed.
    pub is_left: bool,
}

/// Processes the sessions that grew, for at most `patience`.
///
/// If a session can't be processed, the error is logged and the session is tried again at the next call.
pub async fn work_off(engine: &Engine, caller: &WritingCaller, patience: Duration) -> Result<Worked> {
    let began = Instant::now();
    let is_over = || began.elapsed() >= patience;
    let project = caller.writable_project(engine).await?;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let mut worked = Worked::default();
    let mut failed: HashSet<SessionId> = HashSet::new();
    loop {
        let grown = store.grown_sessions(scope, SESSIONS + failed.len()).await?;
        let Some(grown) = grown.into_iter().find(|grown| !failed.contains(&grown.session)) else { break };
        let step = async {
            if digest(engine, &project, &grown.session).await? > 0 {
                return Ok(());
            }
            worked.conversations += usize::from(represent(engine, &project, &grown).await?);
            worked.sessions += 1;
            Ok::<(), Error>(())
        };
        // An error in one session doesn't stop the others.
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
        worked.conversations += usize::from(renew(engine, &project, &session).await?);
    }
    if worked.conversations > 0 {
        // The new memories wait to be embedded.
        engine.wrote();
    }
    Ok(worked)
}

/// Extracts facts from the session's new messages, closes its segments, and makes some of their missing summaries.
/// Returns how much work is left.
pub async fn digest(engine: &Engine, project: &WritableProject, session: &SessionId) -> Result<usize> {
    let unread = notes::note(engine, project, session).await?;
    if unread > 0 {
        return Ok(unread);
    }
    let closed = segments::close(project, session).await?;
    if closed.waiting > 0 {
        // The remaining segments are closed first, because the last segment determines which summaries are wanted.
        return Ok(closed.waiting);
    }
    let wanted = segments::wanted(&segments::tiers(engine), &closed.segments);
    segments::keep_summaries(engine, project, session, &wanted, STEP).await
}

/// Makes the memory that represents the session if it is due, otherwise stores the time at which it will be due.
/// Returns whether it was made.
async fn represent(engine: &Engine, project: &WritableProject, grown: &GrownSession) -> Result<bool> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
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

/// Updates the memory that represents a session, once the update is due. Returns whether a memory was stored.
async fn renew(engine: &Engine, project: &WritableProject, session: &SessionId) -> Result<bool> {
    let rows = project.store.session_messages(&project.scope, session, 0).await?;
    make(engine, project, session, &rows).await
}

/// The time when a session gets a new memory that represents it.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    Now,
    At(Millis),
    Never,
}

/// Returns when a session with the messages `rows` gets a new memory. `known` is the memory that represents the session
/// now.
///
/// A session that grew gets a new memory in three cases: it has twice as many messages as the present memory was made
/// from, it has ended, or `interval` has passed since the present memory was made. Without the first case, a memory
/// made from two messages would represent a long session for a while.
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

/// Makes the memory that represents the session with the messages `rows`. Returns true if the memory is new and was
/// therefore stored.
async fn make(
    engine: &Engine,
    project: &WritableProject,
    session: &SessionId,
    rows: &[MessageRow],
) -> Result<bool> {
    let Some(last) = rows.last() else { return Ok(false) };
    let texts = messages::texts(project, &chosen(rows)).await?;
    let given = given_title(project, session).await?;
    let own = given.clone();
    let (title, text) = messages::blocking(move || in_short(&texts, own.as_deref())).await?;
    if text.is_empty() {
        return Ok(false);
    }
    let is_made = save(engine, project, session, rows, (title, given, text), "").await?;
    if is_made {
        enqueue::once_at_rest(engine, project, session, last).await?;
    }
    Ok(is_made)
}

/// Returns the messages from which the memory of a session is made, at most [`MOST_MESSAGES`]. If a session has more
/// messages, tool calls are left out first. Next, for each request, all answers except the last are left out. Finally,
/// evenly spaced requests are left out, together with their answers.
fn chosen(rows: &[MessageRow]) -> Vec<MessageRow> {
    let is_of = |row: &MessageRow, roles: &[Role]| row.role.is_some_and(|role| roles.contains(&role));
    let talk = [Role::User, Role::Assistant];
    let all: Vec<&MessageRow> = rows.iter().filter(|row| row.role != Some(Role::System)).collect();
    if all.len() <= MOST_MESSAGES {
        return all.into_iter().cloned().collect();
    }
    let said: Vec<&MessageRow> = all.into_iter().filter(|row| is_of(row, &talk)).collect();
    if said.len() <= MOST_MESSAGES {
        return said.into_iter().cloned().collect();
    }
    let is_last = |place: usize| said.get(place + 1).is_none_or(|next| next.role != said[place].role);
    let ends: Vec<&MessageRow> =
        (0..said.len()).filter(|place| is_last(*place)).map(|place| said[place]).collect();
    let every = ends.len().div_ceil(MOST_MESSAGES).max(1);
    let pairs = ends.chunks(2).step_by(every).flatten();
    pairs.copied().cloned().collect()
}

/// Replaces the memory that represents the session with a model's summary. Does nothing if that memory was not made
/// from the messages up to the last of `rows`.
pub async fn supersede(
    engine: &Engine,
    project: &WritableProject,
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
    let texts = messages::texts(project, &chosen(rows)).await?;
    let given = given_title(project, session).await?;
    let own = given.clone();
    let title = messages::blocking(move || title(own.as_deref(), &messages::sources(&texts))).await?;
    if save(engine, project, session, rows, (title, given, made.text.clone()), &by).await? {
        // The new memory waits to be embedded.
        engine.wrote();
    }
    Ok(())
}

/// Returns the title that the client gave the session.
async fn given_title(project: &WritableProject, session: &SessionId) -> Result<Option<String>> {
    let about = project.store.about_sessions(&project.scope, vec![session.clone()]).await?;
    Ok(about.into_iter().find_map(|about| about.given))
}

/// Returns the title of a session with the messages `sources`, whose client gave it the title `given`. A title that says
/// that the answers are missing is kept.
fn title(given: Option<&str>, sources: &[Source<'_>]) -> String {
    match given {
        Some(prompts::TITLE) => prompts::TITLE.to_owned(),
        Some(given) => summarize::shown_title(given, sources),
        None => summarize::title(sources),
    }
}

/// Stores `text` as the memory that represents the session with the messages `rows`, with a title, and with the title
/// `given` of the client, which this title replaces. Returns whether this memory is new.
async fn save(
    engine: &Engine,
    project: &WritableProject,
    session: &SessionId,
    rows: &[MessageRow],
    (title, given, text): (String, Option<String>, String),
    by: &str,
) -> Result<bool> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let Some(last) = rows.last() else { return Ok(false) };
    let hash = source_hash(rows.iter().map(|row| &row.id));
    let mut draft = Draft::new(MemoryKind::Conversation, Provenance::Derived, text, last.time);
    draft.identity = Identity::Named(format!("session {}{by}", blake3::Hash::from(hash).to_hex()));
    draft.session = Some(session.clone());
    draft.title = Some(title).filter(|title| !title.is_empty());
    draft.topic = given.filter(|given| draft.title.as_ref().is_some_and(|title| title != given));
    (draft.branch, draft.head_sha) = store.session_stands(scope, session).await?;
    let redactor = &project.redactor;
    let (memory, _) = prepare::prepare(redactor, draft, &mut || engine.random());
    let saved = store.save_conversation(scope, memory, last.ordinal, hash, engine.now()).await?;
    Ok(matches!(saved, Saved::Made(_)))
}

/// Returns the title of a session and its standard summary, which quotes sentences of its messages.
fn in_short(texts: &[(MessageRow, String)], given: Option<&str>) -> (String, String) {
    let tokens = texts.iter().map(|(row, _)| usize::try_from(row.tokens).unwrap_or(0)).sum();
    let most = summarize::length(Level::Standard, tokens);
    let corrected = corrections(texts);
    let sources = messages::corrected(texts, &corrected);
    let text = summarize::extract_to_the_end(&sources, Level::Standard, most, "", &messages::count).text;
    (title(given, &sources), messages::without_damaged(text, texts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiro_base::memory::{MemoryId, MemoryKey};
    use tiro_base::scope::AuthorId;

    const HOUR: Millis = 3_600_000;

    fn rows(count: i64, last: Millis) -> Vec<MessageRow> {
        let row = |ordinal| MessageRow {
            key: MemoryKey::from_store(ordinal),
            id: MemoryId::derive(MemoryKind::Message, None, &ordinal.to_string()),
            ordinal,
            author: AuthorId::new("ada"),
            role: Some(Role::User),
            speaker: None,
            time: last,
            tokens: 1,
            marked: false,
            importance: None,
            kind: MemoryKind::Message,
            provenance: Provenance::UserSaid,
            is_damaged: false,
        };
        (0..count).map(row).collect()
    }

    #[test]
    fn a_long_session_keeps_requests_with_their_answers() {
        let mut long = rows(6000, 0);
        for (place, row) in long.iter_mut().enumerate() {
            row.role = Some([Role::User, Role::Assistant, Role::Tool, Role::Assistant][place % 4]);
        }
        for most in [40, 900, 1500, 6000] {
            let kept = chosen(&long[..most]);
            assert!(
                kept.len() <= MOST_MESSAGES && kept.len() * 8 >= most.min(MOST_MESSAGES),
                "{}",
                kept.len()
            );
            assert!(kept.is_sorted_by_key(|row| row.ordinal));
            let users = kept.iter().filter(|row| row.role == Some(Role::User)).count();
            assert!(users * 4 >= kept.len() && users * 2 <= kept.len(), "{users} of {}", kept.len());
        }
        assert_eq!(chosen(&long[..40]).len(), 40);
    }

    #[test]
    fn a_session_is_due_when_it_doubled_ended_or_an_hour_passed() {
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
