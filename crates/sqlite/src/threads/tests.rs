//! Tests of what SQLite stores for threads: the texts that stay, the space that the ledger takes, and what a backup
//! has.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rusqlite::Connection;

use crate::SqliteStore;
use crate::tests::engine::Sqlite;
use tiro_base::memory::{Draft, Identity, Kind, MemoryId, Provenance};
use tiro_base::scope::{Scope, TenantId};
use tiro_base::thread::{
    Block, BlockText, ContentHash, FilePlace, LedgerEntry, Part, Spent, Stat, Thread, ThreadName,
};
use tiro_conformance::fixture::{name, prepared};
use tiro_conformance::subject::{Engine, project};
use tiro_store::{PreparedMemory, Reset, Selection, Store, TurnRecord};

fn scope() -> Scope {
    Scope::own(TenantId::new("ines"), project())
}

fn name_of(assistant: &str) -> ThreadName {
    ThreadName { session: name("s"), assistant: assistant.into() }
}

fn said(text: &str) -> PreparedMemory {
    let mut draft = Draft::new(Kind::Message, Provenance::UserSaid, text, 10);
    draft.session = Some(name("s"));
    draft.identity = Identity::Named(text.into());
    prepared(draft, text)
}

/// Returns the next turn of the thread, which sends these files whole.
fn turn(thread: &Thread, assistant: &str, epoch: u32, files: &[(String, String)]) -> TurnRecord {
    let number = thread.turns + 1;
    let [question, answer] = ["asks", "says"].map(|verb| said(&format!("{assistant} {verb} {number}")));
    let message = |part, id: &MemoryId| Block {
        turn: number,
        part,
        path: None,
        tokens: 4,
        text: BlockText::Message(id.clone(), None),
    };
    let file = |(path, text): &(String, String)| Block {
        turn: number,
        part: Part::File,
        path: Some(path.clone()),
        tokens: 900,
        text: BlockText::Blob(ContentHash::of(text.as_bytes()), Some(text.clone())),
    };
    let mut blocks: Vec<Block> = files.iter().map(file).collect();
    blocks.extend([message(Part::Question, &question.id), message(Part::Answer, &answer.id)]);
    TurnRecord {
        expected_turns: thread.turns,
        epoch,
        is_fixed: false,
        window: 200_000,
        rules: 3,
        context: vec!["src".into()],
        blocks,
        ledger: files.iter().map(|(path, text)| entry(path, text, thread.turns)).collect(),
        ledger_removed: Vec::new(),
        blobs: Vec::new(),
        max_blob_bytes: tiro_store::tuning::BLOB_BYTES,
        question: question.id.clone(),
        answer: answer.id.clone(),
        memories: vec![question, answer],
        call_id: format!("call {number}"),
        receipt: "{}".into(),
        spent: Spent::default(),
        model: "o3".into(),
        time: i64::from(number),
    }
}

fn entry(path: &str, text: &str, seed: u32) -> LedgerEntry {
    let hash = ContentHash::of(text.as_bytes());
    let mtime_ns = 1_790_000_000_000_000_000 + i64::from(seed) * 123_456_789;
    // Writing a file takes some microseconds from the first byte to the last change of its inode.
    let stat = Stat { size: 4096, mtime_ns, ctime_ns: mtime_ns + 40_000, inode: 5_000_000 + u64::from(seed) };
    LedgerEntry {
        path: path.into(),
        place: FilePlace::Inline,
        stat: Some(stat),
        raw: hash,
        sent: hash,
        tokens: 1_100,
        is_removed: false,
    }
}

/// Returns a text of 4 KB that reads like a source.
fn source(seed: usize) -> String {
    let words = ["let", "store", "self", "value", "path", "match", "return", "fn", "impl", "thread", "turn"];
    let line = |line: usize| {
        let word = |place: usize| words[(seed * 31 + line * 17 + place * (line + 7)) % words.len()];
        format!("    {} {}_{} = {}({});\n", word(1), word(2), (seed * line) % 977, word(3), word(4))
    };
    let mut text: String = (0..200).map(line).collect();
    text.truncate(4096);
    text
}

/// A thousand files of 4 KB, whose paths have 35 bytes.
fn thousand() -> Vec<(String, String)> {
    let path = |number: usize| format!("crates/some-crate/src/module/f{number:04}.");
    (0..1000).map(|number| (path(number * 7919 % 1000), source(number))).collect()
}

async fn read(store: &dyn Store, assistant: &str) -> Thread {
    store.thread(&scope(), &name_of(assistant)).await.unwrap().unwrap_or_default()
}

/// Opens the file of a store, to look at its tables.
fn file_of(store: &SqliteStore) -> Connection {
    Connection::open(store.path()).unwrap()
}

/// Returns how many bytes the pages of the tables and indexes have whose names begin so.
fn bytes(connection: &Connection, beginning: &str) -> i64 {
    let sql = "SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE aggregate = 1 AND substr(name, 1, length(?1)) = ?1";
    connection.query_row(sql, [beginning], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn the_ledger_of_a_thousand_files_takes_less_than_100_kb() {
    let engine = Sqlite::new();
    let store = engine.file();
    let empty = bytes(&file_of(&store), "thread_files");
    let mut first = turn(&Thread::default(), "ada", 1, &thousand());
    for (seed, entry) in first.ledger.iter_mut().enumerate() {
        *entry = self::entry(&entry.path, &source(seed), seed as u32);
        entry.sent = ContentHash::of(source(seed).as_bytes());
    }
    store.record_turn(&scope(), &name_of("ada"), first).await.unwrap();
    let thread = read(&store, "ada").await;
    assert_eq!((thread.blocks.len(), thread.ledger.len()), (1002, 1000));
    let file = file_of(&store);
    let [ledger, blocks] = ["thread_files", "thread_blocks"].map(|name| bytes(&file, name));
    eprintln!("the ledger takes {ledger} bytes, the blocks {blocks}");
    assert!((50_000..=100_000).contains(&(ledger - empty)), "{ledger} bytes");
}

/// A step of a history of two threads. Numbers name files and their contents.
#[derive(Clone, Debug)]
enum Step {
    /// Sends files whole.
    Send(bool, Vec<(u8, u8)>),
    /// Sends the changes of a file that the assistant has.
    Change(bool, u8, u8),
    /// Begins a new epoch with some of the files, and without the others.
    Rebase(bool, u8),
    ResetFiles(bool),
    ResetThread(bool),
    /// Purges a message.
    Purge(u8),
    /// Purges the session.
    PurgeAll,
}

fn step() -> impl Strategy<Value = Step> {
    let file = || (0..6_u8, 0..4_u8);
    prop_oneof![
        6 => (any::<bool>(), prop::collection::vec(file(), 0..4)).prop_map(|(a, files)| Step::Send(a, files)),
        4 => (any::<bool>(), 0..6_u8, 0..4_u8).prop_map(|(a, path, text)| Step::Change(a, path, text)),
        3 => (any::<bool>(), any::<u8>()).prop_map(|(a, some)| Step::Rebase(a, some)),
        1 => any::<bool>().prop_map(Step::ResetFiles),
        1 => any::<bool>().prop_map(Step::ResetThread),
        2 => any::<u8>().prop_map(Step::Purge),
        1 => Just(Step::PurgeAll),
    ]
}

fn content(number: u8) -> String {
    format!("content {number}\n")
}

/// Asserts that the store has exactly the texts that its threads need, and that each inline file has its copy.
async fn assert_texts_are_needed(store: &SqliteStore) {
    let file = file_of(store);
    let count = |sql: &str| -> i64 { file.query_row(sql, [], |row| row.get(0)).unwrap() };
    let unneeded = "SELECT count(*) FROM blobs WHERE seq NOT IN (
        SELECT blob FROM thread_blocks WHERE blob IS NOT NULL UNION SELECT blob FROM thread_copies)";
    assert_eq!(count(unneeded), 0, "texts that no thread needs");
    assert_eq!(count("SELECT count(*) FROM pragma_foreign_key_check"), 0);
    assert_eq!(count("SELECT count(*) FROM blobs WHERE body IS NULL"), 0, "every text was passed");
    for assistant in ["ada", "bob"] {
        let thread = read(store, assistant).await;
        let inline = thread.ledger.iter().filter(|entry| entry.place == FilePlace::Inline);
        let paths: Vec<String> = inline.clone().map(|entry| entry.path.clone()).collect();
        if thread == Thread::default() {
            continue;
        }
        let copies = store.copies(&scope(), &name_of(assistant), paths).await.unwrap();
        for entry in inline {
            assert_eq!(ContentHash::of(copies[&entry.path].as_bytes()), entry.sent);
            assert!(thread.blocks.iter().any(|block| block.path.as_ref() == Some(&entry.path)));
        }
        let is_whole = |block: &&Block| {
            matches!(block.text, BlockText::Blob(_, Some(_)) | BlockText::Message(_, Some(_)))
        };
        assert_eq!(thread.blocks.iter().filter(is_whole).count(), thread.blocks.len());
    }
}

async fn run(steps: Vec<Step>) {
    let engine = Sqlite::new();
    let store = engine.file();
    let assistant = |first: &bool| if *first { "ada" } else { "bob" };
    let mut said = 0;
    for (at, step) in steps.iter().enumerate() {
        said += 1;
        match step {
            Step::Send(who, _) | Step::Change(who, ..) | Step::Rebase(who, _) => {
                let name = assistant(who);
                let thread = read(&store, name).await;
                let record = recorded(step, &thread, &format!("{name} {said}"));
                store.record_turn(&scope(), &name_of(name), record).await.unwrap();
            }
            Step::ResetFiles(who) => {
                drop(store.reset_thread(&scope(), &name_of(assistant(who)), Reset::Files).await);
            }
            Step::ResetThread(who) => {
                drop(store.reset_thread(&scope(), &name_of(assistant(who)), Reset::Thread).await);
            }
            Step::Purge(number) => {
                let rows = store.session_messages(&scope(), &name("s"), 0).await.unwrap();
                if let Some(row) = rows.get(usize::from(*number) % rows.len().max(1)) {
                    let selection = Selection::Ids(vec![row.id.clone()]);
                    store.forget_for_good(&scope(), &selection, &format!("p{at}"), 6).await.unwrap();
                }
            }
            Step::PurgeAll => {
                let selection = Selection::Session(name("s"));
                store.forget_for_good(&scope(), &selection, &format!("p{at}"), 6).await.unwrap();
            }
        }
        assert_texts_are_needed(&store).await;
    }
}

/// Returns the turn of a step. Its messages have names that no other turn uses.
fn recorded(step: &Step, thread: &Thread, unique: &str) -> TurnRecord {
    let current = thread.epoch.max(1);
    let mut turn = match step {
        Step::Send(_, files) => {
            let mut files: Vec<(String, String)> =
                files.iter().map(|(path, text)| (format!("f{path}"), content(*text))).collect();
            files.sort();
            files.dedup_by(|a, b| a.0 == b.0);
            turn(thread, unique, current, &files)
        }
        Step::Change(_, path, text) => {
            let (path, text) = (format!("f{path}"), content(*text));
            let mut turn = turn(thread, unique, current, &[]);
            if thread.ledger.iter().any(|entry| entry.path == path) {
                let diff = format!("change to {text}");
                let hash = ContentHash::of(diff.as_bytes());
                let block = Block {
                    turn: turn.expected_turns + 1,
                    part: Part::Change,
                    path: Some(path.clone()),
                    tokens: 2,
                    text: BlockText::Blob(hash, Some(diff)),
                };
                turn.blocks.push(block);
                turn.ledger = vec![entry(&path, &text, 1)];
                turn.blobs = vec![(ContentHash::of(text.as_bytes()), text)];
            }
            turn
        }
        Step::Rebase(_, some) => {
            let stays =
                |entry: &&LedgerEntry| entry.path.len() + usize::from(*some) % 2 == 3 || entry.tokens == 0;
            let kept = |entry: &LedgerEntry| {
                let text = (0..4).map(content).find(|text| ContentHash::of(text.as_bytes()) == entry.sent);
                (entry.path.clone(), text.unwrap())
            };
            let files: Vec<(String, String)> = thread.ledger.iter().filter(stays).map(kept).collect();
            let mut turn = turn(thread, unique, thread.epoch + 1, &files);
            let gone = thread.ledger.iter().filter(|entry| !stays(entry));
            turn.ledger_removed = gone.map(|entry| entry.path.clone()).collect();
            turn
        }
        _ => unreachable!("no turn"),
    };
    turn.call_id = unique.to_owned();
    turn
}

#[test]
fn texts_stay_as_long_as_a_thread_needs_them() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let config = Config { source_file: Some(file!()), ..Config::with_cases(40) };
    let mut runner = TestRunner::new(config);
    let steps = prop::collection::vec(step(), 1..14);
    runner
        .run(&steps, |steps| {
            runtime.block_on(run(steps));
            Ok(())
        })
        .unwrap();
}

/// A server of an earlier version that knows nothing of threads purges messages, too: it deletes their rows.
#[tokio::test]
async fn what_an_earlier_version_purges_leaves_its_thread() {
    let engine = Sqlite::new();
    let store = engine.file();
    let files = [("a".to_owned(), "a one".to_owned())];
    let first = turn(&Thread::default(), "ada", 1, &files);
    store.record_turn(&scope(), &name_of("ada"), first).await.unwrap();
    let file = file_of(&store);
    file.execute_batch("PRAGMA foreign_keys = ON; DELETE FROM memories WHERE text = 'ada says 1'").unwrap();
    assert_eq!(read(&store, "ada").await.blocks.len(), 2);
    let turns = store.turns(&scope(), &name_of("ada"), 9).await.unwrap();
    assert_eq!((turns[0].answer.as_ref(), turns[0].receipt.as_ref()), (None, None));
    file.execute_batch("DELETE FROM memories; DELETE FROM sessions").unwrap();
    for table in ["threads", "thread_blocks", "thread_files", "thread_turns", "thread_copies", "blobs"] {
        let sql = format!("SELECT count(*) FROM {table}");
        assert_eq!(file.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "{table}");
    }
}

#[tokio::test]
async fn a_backup_has_turns_and_no_texts_of_files() {
    let engine = Sqlite::new();
    let store = engine.file();
    let files = [("a".to_owned(), "a one".to_owned())];
    let first = turn(&Thread::default(), "ada", 1, &files);
    store.record_turn(&scope(), &name_of("ada"), first).await.unwrap();
    let target = engine.folder().join("backup.db");
    store.back_up(&scope(), &target).await.unwrap();
    let copy = engine.open_copy(&target);
    let thread = read(copy.as_ref(), "ada").await;
    assert_eq!(thread.blocks[0].text, BlockText::Blob(ContentHash::of(b"a one"), None));
    assert!(matches!(&thread.blocks[1].text, BlockText::Message(_, Some(text)) if text == "ada asks 1"));
    assert_eq!(
        read(&store, "ada").await.blocks[0].text,
        BlockText::Blob(ContentHash::of(b"a one"), Some("a one".into()))
    );
}
