//! Finds the earlier statements that new memories correct, and stores which statement replaced which.
//!
//! A correction names what no longer holds ([`tiro_digest::statements`]), so the store is searched for its words. A
//! statement is replaced only by the same voice: a person by the same person, and a note by a note.

use std::collections::HashSet;

use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Group, Kind, Memory, MemoryId, MemoryKey, Provenance};
use tiro_base::scope::Scope;
use tiro_digest::statements::voice::Voice;
use tiro_digest::statements::{Corrected, Correction, Statements, corrections, words_of};
use tiro_store::{CandidateQuery, NewStatement, PreparedMemory, ReplacementQuery, Statement, Store};
use tiro_text::words::query;

/// The number of earlier memories that are compared with a correction. Arbitrary: the searched words name the thing and
/// its old value, so the wanted memory is among the first.
const COMPARED: usize = 20;

/// A correction replaces at most this many statements. Arbitrary: people repeat themselves a few times.
const MOST_REPLACED: usize = 5;

/// A message takes back a message of the same person among this many messages before it. Arbitrary: the last one, with
/// an assistant's answers between them.
const MESSAGES_BEFORE: usize = 6;

/// The voice of memories that a model or a person stored as notes.
const NOTES: &str = "note";

/// Returns whether a memory may correct earlier memories.
pub(super) fn may_correct(memory: &PreparedMemory) -> bool {
    let draft = &memory.draft;
    let is_note = draft.kind.group() == Group::Note && draft.provenance != Provenance::Derived;
    let is_persons = matches!(Voice::of(draft.role, draft.speaker.as_deref()), Voice::Person(_));
    (is_note || draft.kind == Kind::Message && is_persons) && !corrections(&draft.text).is_empty()
}

/// Finds what the stored memories `ids` correct, stores it, and returns the ids of the corrected memories. The memories
/// are durable already, so an error is only logged: the order of time still shows the change.
pub async fn supersede(store: &dyn Store, scope: &Scope, ids: Vec<MemoryId>) -> Vec<MemoryId> {
    let mut corrected = Vec::new();
    if let Err(error) = supersede_all(store, scope, ids, &mut corrected).await {
        error.log();
    }
    corrected
}

async fn supersede_all(
    store: &dyn Store,
    scope: &Scope,
    ids: Vec<MemoryId>,
    corrected: &mut Vec<MemoryId>,
) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let keys = store.keys_of(scope, ids).await?.into_iter().flatten().collect();
    for memory in store.memories(scope, keys).await? {
        for correction in corrections(&memory.text) {
            let (statements, ids) = replaced(store, scope, &memory, &correction).await?;
            corrected.extend(ids);
            // Each is stored at once, because the next correction may replace it.
            if !statements.is_empty() {
                store.add_statements(scope, statements, None).await?;
            }
        }
    }
    Ok(())
}

/// Returns the statements to store for a correction in `memory`: those that it replaces, then itself. Also returns the
/// ids of the memories with the replaced statements. Both are empty if it replaces nothing.
async fn replaced(
    store: &dyn Store,
    scope: &Scope,
    memory: &Memory,
    correction: &Correction,
) -> Result<(Vec<NewStatement>, Vec<MemoryId>)> {
    let Some(voice) = voice(memory).filter(|_| !memory.is_damaged) else { return Ok(Default::default()) };
    let earlier = match correction.is_of_message_before() {
        true => message_before(store, scope, memory).await?,
        false => with_words(store, scope, memory, correction).await?,
    };
    let found: Vec<(Memory, Corrected)> = earlier
        .into_iter()
        .filter(|earlier| is_before(earlier, memory) && !earlier.is_damaged)
        .filter(|earlier| self::voice(earlier).as_ref() == Some(&voice))
        .filter_map(|earlier| Some((correction.corrected(&Statements::of(&earlier.text))?, earlier)))
        .map(|(corrected, earlier)| (earlier, corrected))
        .take(MOST_REPLACED)
        .collect();
    if found.is_empty() {
        return Ok(Default::default());
    }
    let keys = found.iter().map(|(earlier, _)| earlier.key).collect();
    let query = ReplacementQuery { memories: keys, with_statements: true, ..ReplacementQuery::default() };
    let known = store.replacements(scope, query).await?.statements;
    // A sentence that is a correction itself has a subject, which the new correction joins.
    let is_joined = |statement: &&Statement| {
        is_correction(statement.number)
            && found.iter().any(|(earlier, corrected)| {
                let same = (corrected.sentence.start, corrected.sentence.end);
                (statement.memory, (statement.start, statement.end)) == (earlier.key, same)
            })
    };
    let mut same_as = known.iter().find(is_joined).map(|statement| (statement.memory, statement.number));
    let mut statements = Vec::new();
    for (earlier, corrected) in &found {
        let number = number(corrected.at, false);
        let statement = Statement {
            memory: earlier.key,
            number,
            start: corrected.sentence.start,
            end: corrected.sentence.end,
            voice: voice.clone(),
            value: format!("+ {}", correction.names()),
            words: words_of(&earlier.text[corrected.sentence.clone()]),
            time: earlier.time,
            subject: None,
        };
        statements.push(NewStatement { statement, same_as });
        same_as = same_as.or(Some((earlier.key, number)));
    }
    let statement = Statement {
        memory: memory.key,
        number: number(correction.at, true),
        start: correction.sentence.start,
        end: correction.sentence.end,
        voice,
        value: format!("- {}", correction.names()),
        words: words_of(&memory.text[correction.sentence.clone()]),
        time: memory.time,
        subject: None,
    };
    statements.push(NewStatement { statement, same_as });
    Ok((statements, found.into_iter().map(|(earlier, _)| earlier.id).collect()))
}

/// Returns the number of a statement in its memory: corrections have odd numbers, and what they correct even ones.
fn number(at: usize, is_correction: bool) -> i64 {
    2 * at as i64 + i64::from(is_correction)
}

fn is_correction(number: i64) -> bool {
    number % 2 == 1
}

/// Returns the voice of a memory; `None` if nothing that it says can be corrected or corrects anything.
fn voice(memory: &Memory) -> Option<String> {
    match (memory.kind, Voice::of(memory.role, memory.speaker.as_deref())) {
        (Kind::Message, Voice::Person(name)) => Some(name),
        (Kind::Message, _) => None,
        _ => (memory.kind.group() == Group::Note && memory.provenance != Provenance::Derived)
            .then(|| NOTES.to_owned()),
    }
}

fn is_before(earlier: &Memory, later: &Memory) -> bool {
    let is_same_session = earlier.session.is_some() && earlier.session == later.session;
    match (earlier.ordinal, later.ordinal) {
        (Some(earlier), Some(later)) if is_same_session => earlier < later,
        _ => earlier.key != later.key && earlier.time <= later.time,
    }
}

/// Returns the last message of the same person before `memory` in its session.
async fn message_before(store: &dyn Store, scope: &Scope, memory: &Memory) -> Result<Vec<Memory>> {
    let (Some(session), Some(ordinal)) = (&memory.session, memory.ordinal) else { return Ok(Vec::new()) };
    let before = store.surroundings(scope, session, ordinal, MESSAGES_BEFORE, 0).await?;
    let is_own = |earlier: &Memory| is_before(earlier, memory) && voice(earlier) == voice(memory);
    Ok(before.into_iter().rev().find(is_own).into_iter().collect())
}

/// Returns earlier memories with words of the correction, the best first.
async fn with_words(
    store: &dyn Store,
    scope: &Scope,
    memory: &Memory,
    correction: &Correction,
) -> Result<Vec<Memory>> {
    let group = memory.kind.group();
    let kinds = Kind::ALL.iter().copied().filter(|kind| kind.group() == group).collect();
    let filter = Filter { kinds: Some(kinds), ..Filter::default() };
    let wanted = CandidateQuery {
        terms: query::read(correction.searched(&memory.text)).terms,
        groups: filter.groups(),
        filter,
        limit: COMPARED,
        ..CandidateQuery::default()
    };
    let (found, _) = store.candidates(scope, wanted).await?.words?;
    let mut known: HashSet<MemoryKey> = HashSet::from([memory.key]);
    let keys = found.into_iter().map(|each| each.memory).filter(|key| known.insert(*key)).collect();
    store.memories(scope, keys).await
}
