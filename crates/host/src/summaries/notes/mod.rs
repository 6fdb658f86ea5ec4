//! Extracts facts and decisions from the messages of a session, and finds which statements replaced earlier statements.
//!
//! A call that needs the results, or the idle server, does this work in bounded steps. The extracted facts depend only
//! on the messages. So two processes that read the same messages at the same time store the same facts. An assistant's
//! statement is judged by the reply to it. So messages after the last message of a person are read again when a person
//! has answered.

pub mod corrections;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::engine::Engine;
use crate::project::WritableProject;
use crate::summaries::known::Known;
use crate::summaries::messages::{blocking, count};
use tiro_base::error::Result;
use tiro_base::memory::{Draft, Memory, MemoryId, MemoryKey, Provenance};
use tiro_base::scope::{Scope, SessionId, Visibility};
use tiro_digest::context::facts::{Fact, Said, TakenBack, Voice, facts};
use tiro_digest::statements::{About, Stated, Subjects, of_message};
use tiro_intake::prepare;
use tiro_store::{MessageRow, NewStatement, PreparedMemory, ReadStore, Statement, Store, SubjectKey};

/// The maximum number of messages that one step reads, which usually takes less than a second. Arbitrary.
const STEP: usize = 1000;

/// This many messages before the new ones are read again, so that replies are read together with the messages that they
/// answer. Arbitrary.
pub const LOOK_BACK: i64 = 40;

/// One transaction removes at most this many facts that an earlier version of the program stored. Arbitrary.
const REMOVED_AT_ONCE: usize = 500;

/// New statements are compared with at most this many earlier statements of the same voice. Arbitrary: a comparison
/// takes a microsecond.
const COMPARED: usize = 2000;

/// The longest time to wait for other writers. It is short, because the result can be made again.
const TURN: Duration = Duration::from_millis(250);

/// The voice of memories that a model stored.
const NOTES: &str = "note";

/// Extracts facts and statements from the next new messages of the session. Returns how many messages are left for the
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
    let stating = move || {
        let is_new = |message: &Said<'_>| message.ordinal > noted;
        let said: Vec<Said<'_>> = read.iter().map(|(row, text)| said(row, text)).collect();
        let stated: Vec<(usize, String, Vec<Stated>)> = said
            .iter()
            .enumerate()
            .filter(|(_, message)| is_new(message))
            .filter_map(|(place, message)| match message.voice() {
                Voice::Person(name) => Some((place, name, of_message(message.text))),
                Voice::Assistant | Voice::Other => None,
            })
            .collect();
        (stated, read)
    };
    let (stated, read) = blocking(stating).await?;
    save_facts(engine, project, session, facts, &read).await?;
    let stated = stated.into_iter().map(|(place, voice, stated)| (&read[place].0, voice, stated));
    let stated =
        stated.map(|(row, voice, stated)| Told { memory: row.key, time: row.time, voice, stated }).collect();
    let statements = compared(store, scope, stated).await?;
    // If there is no reply, a whole step of messages is skipped.
    let noted = last_reply.or((left > 0).then_some(last)).unwrap_or(noted);
    store.add_statements(scope, statements, Some((session.clone(), noted))).await?;
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
    if !rows.iter().any(|row| is_new(row) && is_persons(row)) && new <= STEP {
        return Ok(None);
    }
    let left = new.saturating_sub(STEP);
    rows.truncate(rows.len() - left);
    let last_reply = rows.iter().rev().find(|row| is_new(row) && is_persons(row)).map(|row| row.ordinal);
    let read = known.texts(&rows).await?;
    let extract = move || {
        let said: Vec<Said<'_>> = read.iter().map(|(row, text)| said(row, text)).collect();
        let facts: Vec<Fact> = facts(&said).into_iter().filter(|fact| fact.ordinal > noted).collect();
        (facts, read)
    };
    let (facts, read) = blocking(extract).await?;
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
    let fact = |PreparedMemory { id, draft, tokens, .. }: PreparedMemory| Memory {
        id,
        key: MemoryKey::NOT_STORED,
        kind: draft.kind,
        provenance: draft.provenance,
        author: known.project.scope.reader.clone(),
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

/// Compares a stored memory with earlier memories, so that those with another value become superseded.
pub async fn note_stored(store: &dyn Store, scope: &Scope, memory: &Memory) -> Result<()> {
    let stated = of_message(&memory.text);
    let told = Told { memory: memory.key, time: memory.time, voice: NOTES.to_owned(), stated };
    let statements = compared(store, scope, vec![told]).await?;
    match statements.is_empty() {
        true => Ok(()),
        false => store.add_statements(scope, statements, None).await,
    }
}

/// Returns whether a person wrote the message.
pub(super) fn is_persons(row: &MessageRow) -> bool {
    matches!(said(row, "").voice(), Voice::Person(_))
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
        draft.role = source.role;
        draft.speaker.clone_from(&source.speaker);
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

/// The statements of a voice in a memory.
struct Told {
    memory: MemoryKey,
    time: i64,
    voice: String,
    stated: Vec<Stated>,
}

/// Returns the statements in the form in which they are stored. Each names the earlier statement about the same thing,
/// if there is one.
async fn compared(store: &dyn ReadStore, scope: &Scope, told: Vec<Told>) -> Result<Vec<NewStatement>> {
    let voices: HashSet<&str> =
        told.iter().filter(|told| !told.stated.is_empty()).map(|told| told.voice.as_str()).collect();
    let mut known: BTreeMap<String, Vec<Statement>> = BTreeMap::new();
    for voice in voices {
        known.insert(voice.to_owned(), store.statements(scope, voice, COMPARED).await?);
    }
    if known.is_empty() {
        return Ok(Vec::new());
    }
    blocking(move || {
        let mut by_voice: BTreeMap<String, Voiced> =
            known.into_iter().map(|(voice, statements)| (voice, Voiced::of(statements))).collect();
        let mut found = Vec::new();
        for Told { memory, time, voice, stated } in told {
            let Some(voiced) = by_voice.get_mut(&voice) else { continue };
            for (number, stated) in stated.into_iter().enumerate() {
                found.extend(voiced.compare(memory, number as i64, time, &voice, stated));
            }
        }
        found
    })
    .await
}

/// The statements of a voice. Each comes with its memory and its number in that memory.
struct Voiced {
    subjects: Subjects,
    places: Vec<(MemoryKey, i64)>,
    known: HashSet<(MemoryKey, i64)>,
}

impl Voiced {
    fn of(statements: Vec<Statement>) -> Voiced {
        let mut voiced = Voiced { subjects: Subjects::default(), places: Vec::new(), known: HashSet::new() };
        let mut by_subject: HashMap<SubjectKey, usize> = HashMap::new();
        for Statement { memory, number, value, words, subject, .. } in statements {
            let same_as = subject.and_then(|subject| by_subject.get(&subject).copied());
            let place = voiced.subjects.add(value, About::parse(&words), memory, same_as);
            if let Some(subject) = subject {
                by_subject.insert(subject, place);
            }
            voiced.places.push((memory, number));
            voiced.known.insert((memory, number));
        }
        voiced
    }

    /// Returns the statement in the form in which it is stored. Returns `None` if it is already stored.
    fn compare(
        &mut self,
        memory: MemoryKey,
        number: i64,
        time: i64,
        voice: &str,
        stated: Stated,
    ) -> Option<NewStatement> {
        if !self.known.insert((memory, number)) {
            return None;
        }
        let Stated { start, end, value, about } = stated;
        let words = about.line();
        let about = About::parse(&words);
        let same = self.subjects.compare(value.clone(), about, memory).same_as;
        self.places.push((memory, number));
        let voice = voice.to_owned();
        let statement = Statement { memory, number, start, end, voice, value, words, time, subject: None };
        Some(NewStatement { statement, same_as: same.map(|place| self.places[place]) })
    }
}
