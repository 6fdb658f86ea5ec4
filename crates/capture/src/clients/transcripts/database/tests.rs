use std::io::Read;

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::clients::transcripts::{Line, Lines, around, is_file};

/// A database as opencode makes it, open for writing.
struct Written {
    folder: TempDir,
    writer: Connection,
    time: i64,
}

impl Written {
    fn new() -> Written {
        let folder = tempfile::tempdir().unwrap();
        let writer = Connection::open(folder.path().join("opencode.db")).unwrap();
        writer
            .execute_batch(
                "PRAGMA journal_mode = WAL;
                 CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, title text,
                   time_created integer NOT NULL, time_updated integer NOT NULL);
                 CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
                   time_updated integer NOT NULL, data text NOT NULL);
                 CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
                   time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);",
            )
            .unwrap();
        let mut written = Written { folder, writer, time: 1_796_127_646_000 };
        written.session("ses_1", None);
        written
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("opencode.db")
    }

    fn session(&mut self, id: &str, parent: Option<&str>) {
        let row = (id, parent, "/w/app", self.time);
        self.writer.execute("INSERT INTO session VALUES (?1, ?2, ?3, 'a title', ?4, ?4)", row).unwrap();
    }

    /// Writes a message with one text. An answer is unfinished at first.
    fn message(&mut self, id: &str, role: &str, text: &str) {
        self.time += 1000;
        let data =
            json!({"role": role, "time": {"created": self.time}, "path": {"cwd": "/w/app"}}).to_string();
        self.writer
            .execute("INSERT INTO message VALUES (?1, 'ses_1', ?2, ?2, ?3)", (id, self.time, data))
            .unwrap();
        self.part(id, &json!({"type": "text", "text": text}));
    }

    fn part(&mut self, message: &str, data: &Value) {
        self.time += 1;
        let id = format!("prt_{}", self.time);
        let row = (id, message, self.time, data.to_string());
        self.writer.execute("INSERT INTO part VALUES (?1, ?2, 'ses_1', ?3, ?3, ?4)", row).unwrap();
    }

    fn finish(&mut self, id: &str) {
        self.time += 1;
        let finished = "UPDATE message SET data = json_set(data, '$.time.completed', ?2), time_updated = ?2 WHERE id = ?1";
        self.writer.execute(finished, (id, self.time)).unwrap();
    }

    fn text(&self) -> String {
        let mut text = String::new();
        Text::open(&self.path(), "ses_1").unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// Returns the names and contents of all files. The index of the log has no content here, because the connections
    /// of one process share it.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let content = |path: &Path| match path.to_string_lossy().ends_with("-shm") {
            true => Vec::new(),
            false => fs::read(path).unwrap(),
        };
        let mut files: Vec<_> = entries.map(|path| (path.clone(), content(&path))).collect();
        files.sort();
        files
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_session_is_a_transcript_that_only_grows() {
    let mut db = Written::new();
    db.message("msg_1", "user", "why?");
    let mut before = db.text();
    assert_eq!(before.lines().count(), 1, "the prompt may still get parts");
    db.message("msg_2", "assistant", "because");
    db.message("msg_3", "user", "typed while the assistant works");
    for step in 0..6 {
        match step {
            0 => db.part("msg_2", &json!({"type": "tool", "tool": "bash", "callID": "c1", "state": {"status": "completed",
                "input": {"command": "ls"}, "output": "a", "time": {"start": 7, "end": 9}}})),
            1 => db.finish("msg_2"),
            2 => db.message("msg_4", "assistant", "half"),
            3 => db.message("msg_5", "assistant", "another"),
            // opencode drops the output of a call from the conversation, and renames the session.
            4 => drop(db.writer.execute_batch(
                "UPDATE part SET data = json_set(data, '$.state.time.compacted', 1) WHERE json_extract(data, '$.type') = 'tool';
                 UPDATE message SET data = json_set(data, '$.summary', json('{\"diffs\": []}')) WHERE id = 'msg_1';
                 UPDATE session SET title = 'another'",
            )),
            _ => db.finish("msg_5"),
        }
        let text = db.text();
        assert!(text.starts_with(&before), "{step}: {text}");
        assert!(text.len() > before.len() || [0, 4].contains(&step), "{step}: {text}");
        before = text;
    }
    let lines = lines(&before);
    assert_eq!(lines[0]["cwd"], "/w/app");
    let ids: Vec<&str> = lines[1..].iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["msg_1", "msg_2", "msg_3", "msg_4", "msg_5"]);
    assert_eq!(lines[2]["parts"][1]["id"], "c1:7");
}

#[test]
fn reading_writes_nothing_and_needs_no_log() {
    let mut db = Written::new();
    db.message("msg_1", "user", "why?");
    db.message("msg_2", "assistant", "because");
    db.finish("msg_2");
    let before = db.files();
    assert_eq!(before.len(), 3, "the database, its log and the index of the log");
    let text = db.text();
    assert_eq!(text.lines().count(), 3);
    assert_eq!(sessions(&db.path()).unwrap().len(), 1);
    assert_eq!(db.files(), before);

    let Written { folder, writer, time } = db;
    drop(writer);
    let closed = Written { folder, writer: Connection::open_in_memory().unwrap(), time };
    let before = closed.files();
    assert_eq!(before.len(), 1, "opencode was ended");
    assert_eq!(closed.text(), text);
    assert_eq!(closed.files(), before, "no log was created");
}

#[test]
fn a_reader_and_a_writer_do_not_wait_for_each_other() {
    let mut db = Written::new();
    db.message("msg_1", "user", "why?");
    db.message("msg_2", "assistant", "because");
    db.finish("msg_2");
    db.message("msg_3", "user", "and then?");
    db.message("msg_4", "assistant", "so");
    db.finish("msg_4");
    let mut reader = Text::open(&db.path(), "ses_1").unwrap();
    let mut first = [0; 200];
    reader.read_exact(&mut first).unwrap();
    // A writer in the middle of a transaction, one that commits, and one that empties the log.
    db.writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    db.message("msg_5", "user", "more");
    assert_eq!(db.text().lines().count(), 5);
    db.writer.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    db.message("msg_6", "assistant", "yes");
    db.finish("msg_6");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    let text = String::from_utf8(first.to_vec()).unwrap() + &rest;
    assert!(db.text().starts_with(&text) && text.lines().count() == 5, "{text}");
}

#[test]
fn a_session_is_read_by_its_path_from_any_byte() {
    let mut db = Written::new();
    db.message("msg_1", "user", "why?");
    db.message("msg_2", "assistant", "because");
    db.finish("msg_2");
    let path = path_of(&db.path(), "ses_1");
    assert!(is_file(&path) && !is_file(&path_of(&db.path().with_extension("no"), "ses_1")));
    let whole = db.text();
    let second = whole.lines().next().unwrap().len() as u64 + 1;
    let mut lines = Lines::open(&path, second).unwrap();
    let (at, line) = lines.next_line().unwrap().unwrap();
    assert_eq!((at, line), (second, Line::Whole(whole.lines().nth(1).unwrap().as_bytes())));
    let (length, bytes) = around(&path, second, 10).unwrap();
    assert_eq!(length, whole.len() as u64);
    assert_eq!(
        bytes,
        [&whole.as_bytes()[..10], &whole.as_bytes()[second as usize - 10..second as usize]].concat()
    );
    let error = Lines::open(&path_of(&db.path(), "ses_2"), 0).map(drop).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
}

#[test]
fn a_changed_session_has_another_stamp() {
    let mut db = Written::new();
    db.session("ses_empty", None);
    db.message("msg_1", "user", "why?");
    let stamp = |db: &Written| {
        sessions(&db.path()).unwrap().into_iter().map(|it| (it.id, it.modified)).collect::<Vec<_>>()
    };
    let before = stamp(&db);
    assert_eq!(before.len(), 1, "a session without messages is none");
    db.message("msg_2", "assistant", "because");
    let between = stamp(&db);
    db.finish("msg_2");
    assert!(before != between && between != stamp(&db));
}

#[test]
fn a_database_that_is_damaged_locked_or_different_is_reported() {
    let mut db = Written::new();
    db.message("msg_1", "user", &"why? ".repeat(5000));
    db.message("msg_2", "assistant", "because");
    db.finish("msg_2");
    let hint = |path: &Path| {
        let error = Text::open(path, "ses_1").map(drop).unwrap_err();
        assert_eq!(error.kind(), Kind::Io, "{error:?}");
        error.way_out().unwrap().to_owned()
    };
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("opencode.db");
    fs::write(&copy, "this is no database, but a text that is long enough to be taken for one").unwrap();
    assert!(hint(&copy).contains("damaged"));
    // The log was copied without its index.
    fs::write(&copy, fs::read(db.path()).unwrap()).unwrap();
    fs::write(
        folder.path().join("opencode.db-wal"),
        fs::read(db.folder.path().join("opencode.db-wal")).unwrap(),
    )
    .unwrap();
    assert!(hint(&copy).contains("start opencode once"));
    assert!(!folder.path().join("opencode.db-shm").exists());
    fs::remove_file(folder.path().join("opencode.db-wal")).unwrap();
    Connection::open(&copy)
        .unwrap()
        .execute_batch("DROP TABLE IF EXISTS session; CREATE TABLE x (y)")
        .unwrap();
    assert!(hint(&copy).contains("another version"));
    // A part that is no JSON doesn't hide the others.
    db.writer.execute_batch("UPDATE part SET data = '{' WHERE message_id = 'msg_1'").unwrap();
    assert_eq!(lines(&db.text())[1]["parts"][0]["type"], "unread");
}
