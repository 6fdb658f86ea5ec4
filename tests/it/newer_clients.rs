//! Sessions of Qwen Code, Copilot CLI and opencode are followed by hooks, imported once and found.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Home, feed};

const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// Returns whether a search in `directory` finds a message with `text`.
fn has(home: &Home, directory: &Path, text: &str) -> bool {
    let found = home.json(directory, &["search", text]);
    found["hits"].as_array().unwrap().iter().any(|hit| hit["text"].as_str().unwrap().contains(text))
}

/// Runs the hook of `client` with `payload`, and returns what it prints. A hook gives up when the machine is too busy, so
/// it is run until `is_done`.
fn hook(
    home: &Home,
    directory: &Path,
    (client, payload): (&str, &Value),
    is_done: impl Fn(&str) -> bool,
) -> String {
    let run = |_| {
        let ran = feed(home.tiro(directory, &["hook", client]), payload.to_string().as_bytes());
        assert!(ran.is_ok && ran.stderr.is_empty(), "{ran:?}");
        ran.stdout
    };
    (0..50).map(run).find(|printed| is_done(printed)).expect("the hook does its work in time")
}

/// Runs the hook at the start of a session, and returns what it prints.
fn begins(home: &Home, directory: &Path, client: &str, payload: &Value) -> String {
    hook(home, directory, (client, payload), |printed| !printed.is_empty())
}

/// Runs the hook at the end of a turn, which leaves a reference and prints nothing.
fn ends(home: &Home, directory: &Path, client: &str, payload: &Value) {
    hook(home, directory, (client, payload), |printed| {
        assert_eq!(printed, "");
        home.waiting() == 1
    });
}

/// Checks that the transcripts of `client` are in the account, that importing stores nothing twice, and that setup is
/// taken back.
fn is_whole(home: &Home, directory: &Path, client: &str, sessions: usize) {
    let again = home.json(directory, &["import", client]);
    assert_eq!(
        (&again["imported"], &again["failed"], &again["unreadable"]),
        (&0.into(), &json!([]), &0.into())
    );
    let account = &again["account"];
    assert_eq!(
        (&account["seen"], &account["here"], &account["imported"]),
        (&sessions.into(), &sessions.into(), &sessions.into())
    );
    let preview = home.json(directory, &["import", client, "--dry-run"]);
    assert_eq!(preview["entries"], 0, "{preview}");
    let doctor = home.run(directory, &["doctor"]);
    assert!(doctor.stdout.contains(&format!("{sessions} session")), "{doctor:?}");
    assert!(home.run(directory, &["init", "--remove"]).is_ok);
}

#[test]
fn a_session_of_qwen_code() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    home.dir("home/.qwen");
    assert!(home.run(&repo.path, &["init", "--yes"]).is_ok);
    let settings = fs::read_to_string(home.path().join("home/.qwen/settings.json")).unwrap();
    assert!(
        settings.contains(" hook qwen") && settings.contains("mcp__tiro__search_project_memory"),
        "{settings}"
    );

    let chats = home.dir("home/.qwen/projects/-any/chats");
    let path = chats.join(format!("{SESSION}.jsonl"));
    let line = |id: u32, kind: &str, more: Value| {
        let mut line = json!({"uuid": format!("00000000-0000-4000-8000-{id:012}"), "sessionId": SESSION, "type": kind,
            "timestamp": format!("2026-12-01T12:18:{id:02}.000Z"), "cwd": repo.path, "gitBranch": "main"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let said = |text: &str| json!({"message": {"parts": [{"text": text}]}});
    let text =
        line(1, "user", said("why is the rope dyed?")) + &line(2, "assistant", said("with woad it lasts"));
    fs::write(&path, &text).unwrap();
    let payload = |event: &str| {
        json!({"session_id": SESSION, "transcript_path": path, "cwd": repo.path,
        "hook_event_name": event, "source": "startup"})
    };
    let pointer = begins(&home, &repo.path, "qwen", &payload("SessionStart"));
    assert!(pointer.contains("hookSpecificOutput") && pointer.contains(SESSION), "{pointer}");
    ends(&home, &repo.path, "qwen", &payload("Stop"));
    assert!(has(&home, &repo.path, "woad"));
    fs::write(&path, text + &line(3, "user", said("and the cord?"))).unwrap();
    home.json(&repo.path, &["import", "qwen"]);
    assert!(has(&home, &repo.path, "cord"));
    is_whole(&home, &repo.path, "qwen", 1);
    assert!(!home.path().join("home/.qwen/settings.json").exists());
}

#[test]
fn a_session_of_copilot_cli() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    home.dir("home/.copilot");
    assert!(home.run(&repo.path, &["init", "--yes"]).is_ok);
    let session = home.dir(&format!("home/.copilot/session-state/{SESSION}"));
    fs::create_dir(session.join("files")).unwrap();
    fs::write(session.join("files/data.jsonl"), "{\"cwd\": \"/elsewhere\"}\n").unwrap();
    let event = |id: u32, kind: &str, data: Value| {
        let line = json!({"type": kind, "data": data, "id": format!("00000000-0000-4000-8000-{id:012}"),
            "timestamp": format!("2026-12-01T12:18:{id:02}.000Z")});
        format!("{line}\n")
    };
    let context = json!({"cwd": repo.path, "gitRoot": repo.path, "branch": "main"});
    let text = event(1, "session.start", json!({"sessionId": SESSION, "context": context}))
        + &event(
            2,
            "user.message",
            json!({"content": "why is the rope dyed?", "transformedContent": "HIDDEN"}),
        )
        + &event(3, "assistant.message", json!({"content": "with woad it lasts", "toolRequests": []}));
    fs::write(session.join("events.jsonl"), text).unwrap();
    // The payload at the start and the end of a session doesn't name the transcript.
    let payload = |event: &str| json!({"session_id": SESSION, "cwd": repo.path, "hook_event_name": event, "source": "new"});
    let pointer: Value =
        serde_json::from_str(&begins(&home, &repo.path, "copilot", &payload("SessionStart"))).unwrap();
    assert!(pointer["additionalContext"].as_str().unwrap().contains(SESSION), "{pointer}");
    ends(&home, &repo.path, "copilot", &payload("SessionEnd"));
    assert!(has(&home, &repo.path, "woad") && !has(&home, &repo.path, "HIDDEN"));
    is_whole(&home, &repo.path, "copilot", 1);
    assert_eq!(
        fs::read_dir(home.path().join("home/.copilot")).unwrap().count(),
        1,
        "only the sessions are left"
    );
}

/// opencode's database, written by a connection of this process.
struct Database {
    path: PathBuf,
    writer: Connection,
    directory: PathBuf,
    time: i64,
}

impl Database {
    fn new(home: &Home, directory: &Path) -> Database {
        let path = home.dir("home/.local/share/opencode").join("opencode.db");
        let writer = Connection::open(&path).unwrap();
        let tables = "PRAGMA journal_mode = WAL;
            CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, time_created integer, time_updated integer);
            CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
            CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer,
              time_updated integer, data text)";
        writer.execute_batch(tables).unwrap();
        Database { path, writer, directory: directory.to_owned(), time: 1_796_127_646_000 }
    }

    fn session(&self, id: &str, parent: Option<&str>) {
        let directory = self.directory.to_str().unwrap();
        self.writer
            .execute("INSERT INTO session VALUES (?1, ?2, ?3, ?4, ?4)", (id, parent, directory, self.time))
            .unwrap();
    }

    fn says(&mut self, session: &str, role: &str, text: &str) {
        self.time += 1000;
        let id = format!("msg_{}", self.time);
        let time = json!({"created": self.time, "completed": if role == "assistant" { json!(self.time + 9) } else { Value::Null }});
        let data = json!({"role": role, "time": time, "path": {"cwd": self.directory}}).to_string();
        let part = json!({"type": "text", "text": text}).to_string();
        self.writer
            .execute("INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)", (&id, session, self.time, data))
            .unwrap();
        self.writer
            .execute(
                "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
                (format!("prt_{id}"), &id, session, self.time, part),
            )
            .unwrap();
    }
}

#[test]
fn a_session_of_opencode_while_it_is_written() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    home.dir("home/.config/opencode");
    assert!(home.run(&repo.path, &["init", "--yes"]).is_ok);
    let mut database = Database::new(&home, &repo.path);
    database.session("ses_1", None);
    database.says("ses_1", "user", "why is the rope dyed?");
    database.says(
        "ses_1",
        "assistant",
        "with woad it lasts, and the key is sk-ant-api03-AbCdEf0123456789AbCdEf0123456789AbCdEf0123456789",
    );
    let files = || {
        let folder = database.path.parent().unwrap();
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = files();
    let payload = |event: &str| json!({"session_id": "ses_1", "cwd": repo.path, "hook_event_name": event, "source": "startup"});
    let pointer = begins(&home, &repo.path, "opencode", &payload("SessionStart"));
    assert!(pointer.contains("hookSpecificOutput") && pointer.contains("ses_1"), "{pointer}");
    ends(&home, &repo.path, "opencode", &payload("Stop"));
    assert_eq!(home.waiting(), 1);
    assert!(has(&home, &repo.path, "woad"));
    assert_eq!(files(), before, "nothing was created beside the database");
    assert!(
        home.files_with("AbCdEf0123456789").is_empty(),
        "secrets are replaced before anything is written"
    );

    // opencode writes while Tiro reads: a transaction is open, and the next message is not complete yet.
    database.writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    database.says("ses_1", "user", "and the cord?");
    database.says("ses_1", "assistant", "the cord is tarred");
    let during = home.json(&repo.path, &["import", "opencode"]);
    assert_eq!((&during["imported"], &during["failed"]), (&0.into(), &json!([])), "{during}");
    database.writer.execute_batch("COMMIT").unwrap();
    database.says("ses_1", "user", "an unanswered question about hemp");
    let after = home.json(&repo.path, &["import", "opencode"]);
    assert_eq!(after["imported"], 2, "{after}");
    assert!(has(&home, &repo.path, "tarred") && !has(&home, &repo.path, "hemp"));

    // A sub-agent has a session of its own; a session in another directory is another project's.
    database.session("ses_2", Some("ses_1"));
    database.says("ses_2", "user", "look for jute");
    database.says("ses_2", "assistant", "there is jute");
    home.json(&repo.path, &["import", "opencode"]);
    assert!(has(&home, &repo.path, "there is jute"));
    database.writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    is_whole(&home, &repo.path, "opencode", 2);

    // A database that is only partly there is reported, and read on when it is whole.
    database.says("ses_2", "user", "and flax?");
    database.says("ses_2", "assistant", "flax too");
    let whole = fs::read(&database.path).unwrap();
    let path = database.path.clone();
    let Database { writer, .. } = database;
    writer.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let now = fs::read(&path).unwrap();
    drop(writer);
    assert!(!path.with_extension("db-wal").exists() && now.len() >= whole.len());
    fs::write(&path, &now[..1000]).unwrap();
    let half = home.run(&repo.path, &["import", "opencode"]);
    assert!(half.is_ok && half.stdout.contains("1 unreadable"), "{half:?}");
    fs::write(&path, &now).unwrap();
    assert_eq!(home.json(&repo.path, &["import", "opencode"])["imported"], 2);
    assert!(has(&home, &repo.path, "flax too"));
}
