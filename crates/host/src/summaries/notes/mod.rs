//! Extracts facts and decisions from the messages of a session, and finds what they correct.
//!
//! A call that needs the results, or the idle server, does this work in bounded steps. The extracted facts depend only
//! on the messages. So two processes that read the same messages at the same time store the same facts. An assistant's
//! statement is judged by the reply to it. Nothing is extracted from messages that came from another machine of the
//! user, because what that machine extracted comes, too. So messages after the last message of a person are read again when a person
//! has answered.

pub mod corrections;

use std::collections::HashSet;
use std::time::Duration;

use crate::engine::Engine;
use crate::project::WritableProject;
use crate::summaries::known::Known;
use crate::summaries::messages::{blocking, count};
use tiro_base::error::Result;
use tiro_base::memory::{Draft, Memory, MemoryId, MemoryKey, Provenance, Role};
use tiro_base::scope::{SessionId, Visibility};
use tiro_digest::context::facts::{Fact, Said, TakenBack, Voice, facts, is_dialog};
use tiro_digest::statements::corrections;
use tiro_intake::prepare;
use tiro_recall::remember::supersede::supersede;
use tiro_store::{MessageRow, PreparedMemory};

/// The maximum number of messages that one step reads, which usually takes less than a second. Arbitrary.
const STEP: usize = 1000;

/// This many messages before the new ones are read again, so that replies are read together with the messages that they
/// answer. Arbitrary.
pub const LOOK_BACK: i64 = 40;

/// One transaction removes at most this many facts that an earlier version of the program stored. Arbitrary.
const REMOVED_AT_ONCE: usize = 500;

/// The longest time to wait for other writers. It is short, because the result can be made again.
const TURN: Duration = Duration::from_millis(250);

/// Extracts facts and corrections from the next new messages of the session. Returns how many messages are left for the
/// next step.
pub async fn note(engine: &Engine, project: &WritableProject, session: &SessionId) -> Result<usize> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let Some(new) = unnoted(&Known::unread(project, session)).await? else { return Ok(0) };
    store.await_turn(scope, TURN).await?;
    if new.noted < 0 {
        while store.remove_extracts(scope, session, REMOVED_AT_ONCE).await? == REMOVED_AT_ONCE {}
    }
    let Unnoted { noted, read, facts, last_reply, left, .. } = new;
    let last = read.last().map_or(noted, |(row, _)| row.ordinal);
    let correcting = move || {
        let corrects = |(row, text): &&(MessageRow, String)| {
            row.ordinal > noted && is_persons(row) && !corrections(text).is_empty()
        };
        let ids: Vec<MemoryId> = read.iter().filter(corrects).map(|(row, _)| row.id.clone()).collect();
        (ids, read)
    };
    let (correcting, read) = blocking(correcting).await?;
    save_facts(engine, project, session, facts, &read).await?;
    // What a message corrects may have been imported after the message was stored.
    supersede(store, scope, correcting).await;
    // If there is no reply, a whole step of messages is skipped.
    let noted = last_reply.or((left > 0).then_some(last)).unwrap_or(noted);
    store.add_statements(scope, Vec::new(), Some((session.clone(), noted))).await?;
    Ok(left)
}

/// The next new messages of a session, and the facts in them. None of this is stored yet.
struct Unnoted {
    /// The ordinal of the last message from which facts were stored.
    noted: i64,
    /// The new messages, and those before them that they may reply to.
    read: Vec<(MessageRow, String)>,
    facts: Vec<Fact>,
    /// The ordinal of the last new message of a person.
    last_reply: Option<i64>,
    /// The number of new messages that are left for the next step.
    left: usize,
}

/// Reads the next new messages of the session and the facts in them. Returns `None` if there is nothing new to extract.
async fn unnoted(known: &Known<'_>) -> Result<Option<Unnoted>> {
    let noted = known.noted().await?;
    let from = (noted - LOOK_BACK).max(0);
    let mut rows = known.messages(from).await?;
    let is_new = |row: &MessageRow| row.ordinal > noted;
    let new = rows.iter().filter(|row| is_new(row)).count();
    if !rows.iter().any(|row| is_new(row) && is_reply(row)) && new <= STEP {
        return Ok(None);
    }
    let left = new.saturating_sub(STEP);
    rows.truncate(rows.len() - left);
    let last_reply = rows.iter().rev().find(|row| is_new(row) && is_reply(row)).map(|row| row.ordinal);
    let read = known.texts(&rows).await?;
    let extract = move || {
        let said: Vec<Said<'_>> = read.iter().map(|(row, text)| said(row, text)).collect();
        let facts: Vec<Fact> = facts(&said).into_iter().filter(|fact| fact.ordinal > noted).collect();
        (facts, read)
    };
    let (mut facts, read) = blocking(extract).await?;
    if !facts.is_empty() {
        // The facts in messages of another machine come from that machine.
        let of_facts = read.iter().filter(|(row, _)| facts.iter().any(|fact| fact.ordinal == row.ordinal));
        let keys = of_facts.map(|(row, _)| row.key).collect();
        let came = known.project.store.came_from_peers(&known.project.scope, keys).await?;
        let is_own = |ordinal| !read.iter().any(|(row, _)| row.ordinal == ordinal && came.contains(&row.key));
        facts.retain(|fact| is_own(fact.ordinal));
    }
    Ok(Some(Unnoted { noted, read, facts, last_reply, left }))
}

/// Facts and decisions that are not stored yet, and the stored facts that they take back.
#[derive(Debug, Default)]
pub struct NewFacts {
    /// The facts, the latest first.
    pub facts: Vec<Memory>,
    /// Stored facts that are no longer valid.
    pub taken_back: HashSet<MemoryId>,
    /// Whether there are messages from which facts were not extracted yet.
    pub is_behind: bool,
}

/// Returns the facts in the next new messages of the session, as [`note`] would store them. Stores nothing.
pub async fn new_facts(known: &Known<'_>) -> Result<NewFacts> {
    let Some(new) = unnoted(known).await? else { return Ok(NewFacts::default()) };
    let memories = as_memories(known.session, new.facts, &new.read);
    let taken_back: HashSet<MemoryId> =
        memories.iter().flat_map(|memory| memory.draft.supersedes.clone()).collect();
    let author = |draft: &Draft| {
        let source = new.read.iter().find(|(row, _)| draft.references.contains(&row.id));
        source.map_or(&known.project.scope.reader, |(row, _)| &row.author).clone()
    };
    let fact = |PreparedMemory { id, draft, tokens, .. }: PreparedMemory| Memory {
        id,
        key: MemoryKey::NOT_STORED,
        kind: draft.kind,
        provenance: draft.provenance,
        author: author(&draft),
        visibility: Visibility::Project,
        tokens,
        text: draft.text,
        session: draft.session,
        ordinal: None,
        role: draft.role,
        speaker: draft.speaker,
        title: None,
        topic: None,
        source_id: None,
        path: None,
        branch: None,
        head_sha: None,
        time: draft.time,
        importance: None,
        marked: false,
        indexed: None,
        is_damaged: false,
    };
    let mut facts: Vec<Memory> = memories.into_iter().map(fact).collect();
    facts.retain(|fact| !taken_back.contains(&fact.id));
    facts.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.id.cmp(&other.id)));
    Ok(NewFacts { facts, taken_back, is_behind: true })
}

/// Returns whether a person wrote the message.
pub(super) fn is_persons(row: &MessageRow) -> bool {
    matches!(said(row, "").voice(), Voice::Person(_))
}

/// Returns whether a person wrote the message, or answered in a client's dialog.
fn is_reply(row: &MessageRow) -> bool {
    is_persons(row) || is_dialog(row.role, row.speaker.as_deref())
}

/// Returns the message as the input of extraction.
pub(super) fn said<'a>(row: &'a MessageRow, text: &'a str) -> Said<'a> {
    // Nothing is concluded from a damaged text.
    let text = if row.is_damaged { "" } else { text };
    Said { ordinal: row.ordinal, role: row.role, speaker: row.speaker.as_deref(), text }
}

/// Stores facts as memories that refer to their messages.
async fn save_facts(
    engine: &Engine,
    project: &WritableProject,
    session: &SessionId,
    facts: Vec<Fact>,
    read: &[(MessageRow, String)],
) -> Result<()> {
    let memories = as_memories(session, facts, read);
    if memories.is_empty() {
        return Ok(());
    }
    project.store.save(&project.scope, memories, engine.now()).await?;
    engine.wrote();
    Ok(())
}

/// Returns the facts as memories that refer to their messages. Each memory names those that it takes back: earlier
/// facts, and messages that say nothing else.
fn as_memories(session: &SessionId, facts: Vec<Fact>, read: &[(MessageRow, String)]) -> Vec<PreparedMemory> {
    let source_of = |ordinal: i64| read.iter().map(|(row, _)| row).find(|row| row.ordinal == ordinal);
    let key = |source: &MessageRow, text: &str| {
        format!("from {} {}", source.id, blake3::hash(text.as_bytes()).to_hex())
    };
    let mut memories = Vec::with_capacity(facts.len());
    for fact in facts {
        let Some(source) = source_of(fact.ordinal) else { continue };
        let id = MemoryId::derive(fact.kind, Some(session), &key(source, &fact.text));
        let mut draft = Draft::new(fact.kind, Provenance::Derived, fact.text, source.time);
        draft.session = Some(session.clone());
        let is_of_dialog = is_dialog(source.role, source.speaker.as_deref());
        draft.role = if is_of_dialog { Some(Role::User) } else { source.role };
        draft.speaker = source.speaker.clone().filter(|_| !is_of_dialog);
        draft.references = vec![source.id.clone()];
        for TakenBack { kind, text, ordinal, is_message } in fact.takes_back {
            let Some(source) = source_of(ordinal) else { continue };
            draft.supersedes.push(MemoryId::derive(kind, Some(session), &key(source, &text)));
            draft.supersedes.extend(is_message.then(|| source.id.clone()));
        }
        let chunks = prepare::pieces(&draft, &id);
        memories.push(PreparedMemory { tokens: count(&draft.text) as i64, chunks, id, draft });
    }
    memories
}
