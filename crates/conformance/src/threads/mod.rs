//! Promises about threads with assistants.
//!
//! `recording` has those about writing and reading a thread, and `leaving` those about lists, resetting, forgetting and
//! scopes.

mod leaving;
mod recording;

pub use leaving::*;
pub use recording::*;

use super::fixture::{Answered, Fixture, fact, message, name};
use tiro_base::error::Kind as ErrorKind;
use tiro_base::memory::{Kind, Provenance, Role};
use tiro_base::thread::{
    Block, BlockText, ContentHash, FilePlace, LedgerEntry, Part, Spent, Thread, ThreadName,
};
use tiro_store::tuning::BLOB_BYTES;
use tiro_store::*;

/// Returns the thread of a session with an assistant.
pub fn thread(session: &str, assistant: &str) -> ThreadName {
    ThreadName { session: name(session), assistant: assistant.into() }
}

/// Returns the hash of a text.
pub fn hash(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

/// Returns a question or an answer.
pub fn said(session: &str, text: &str, role: Role) -> PreparedMemory {
    let mut message = message(session, text);
    message.draft.role = Some(role);
    if role == Role::Assistant {
        message.draft.provenance = Provenance::ModelSaid;
    }
    message
}

/// Returns a block of three tokens.
pub fn block(turn: u32, part: Part, path: Option<&str>, text: BlockText) -> Block {
    Block { turn, part, path: path.map(str::to_owned), tokens: 3, text }
}

/// Returns turn `number` of a thread in its first epoch, with a question, an answer and what is derived from both.
pub fn turn(thread: &ThreadName, number: u32) -> TurnRecord {
    let session = thread.session.as_str();
    let texts =
        [format!("{} asks {number}", thread.assistant), format!("{} says {number}", thread.assistant)];
    let question = said(session, &texts[0], Role::User);
    let answer = said(session, &texts[1], Role::Assistant);
    let ids = [&question, &answer].map(|message| message.id.clone());
    let mut both = fact(session, &texts.join(" | "), &[&ids[0], &ids[1]]);
    both.draft.kind = Kind::Conversation;
    let [asked, answered] = [(Part::Question, 0), (Part::Answer, 1)].map(|(part, place)| {
        block(number, part, None, BlockText::Message(ids[place].clone(), Some(texts[place].clone())))
    });
    let [question_id, answer_id] = ids;
    TurnRecord {
        expected_turns: number - 1,
        epoch: 1,
        is_fixed: false,
        window: 1000,
        rules: 3,
        context: vec!["src".into()],
        blocks: vec![asked, answered],
        ledger: Vec::new(),
        ledger_removed: Vec::new(),
        blobs: Vec::new(),
        max_blob_bytes: BLOB_BYTES,
        memories: vec![question, answer, both],
        question: question_id,
        answer: answer_id,
        call_id: format!("call {number}"),
        receipt: format!("{{\"turn\": {number}}}"),
        spent: Spent { prompt: 7, appended: 5, whole: 6, input: 8, cached: 2, output: 1, micros: 9 },
        model: "o3".into(),
        time: i64::from(number) * 10,
    }
}

/// Returns an entry of the ledger for a file that was sent as it is.
pub fn entry(path: &str, text: &str, place: FilePlace) -> LedgerEntry {
    LedgerEntry {
        path: path.into(),
        place,
        stat: None,
        raw: hash(text),
        sent: hash(text),
        tokens: 3,
        is_removed: false,
    }
}

/// Adds the file to the turn, whole and inline.
pub fn with_file(mut turn: TurnRecord, path: &str, text: &str) -> TurnRecord {
    let text_of_block = BlockText::Blob(hash(text), Some(text.into()));
    turn.blocks.insert(0, block(turn.expected_turns + 1, Part::File, Some(path), text_of_block));
    turn.ledger.push(entry(path, text, FilePlace::Inline));
    turn
}

/// Records a turn.
pub async fn record(fixture: &Fixture, thread: &ThreadName, turn: TurnRecord) -> Recorded {
    fixture.store.record_turn(&fixture.scope, thread, turn).await.answered()
}

/// Returns a thread that has turns.
pub async fn read(fixture: &Fixture, thread: &ThreadName) -> Thread {
    fixture.store.thread(&fixture.scope, thread).await.answered().expect("it is recorded")
}

/// Returns the copy of the file that the assistant has.
pub async fn copy(fixture: &Fixture, thread: &ThreadName, path: &str) -> Option<String> {
    let copies = fixture.store.copies(&fixture.scope, thread, vec![path.into()]).await.answered();
    assert!(copies.keys().all(|found| found == path));
    copies.into_values().next()
}

/// Returns the texts of the thread's blocks; a dash for those without one.
pub async fn texts(fixture: &Fixture, thread: &ThreadName) -> Vec<String> {
    let text = |block: Block| match block.text {
        BlockText::Message(_, text) | BlockText::Blob(_, text) => text.unwrap_or("-".into()),
    };
    read(fixture, thread).await.blocks.into_iter().map(text).collect()
}

/// Returns an error's kind; panics if the turn was recorded.
pub async fn refused(fixture: &Fixture, thread: &ThreadName, turn: TurnRecord) -> ErrorKind {
    let recorded = fixture.store.record_turn(&fixture.scope, thread, turn).await;
    recorded.expect_err("the turn is recorded").kind()
}
