//! Tests with sessions of opencode 1.18: `fixtures/opencode.jsonl` has the rows of two databases, cut. They are written
//! into a database and read as the transcripts are.

use std::io::Read;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::{file, lines_of, read};
use crate::clients::transcripts::{of_database, open};
use crate::import::transcript::{Format, TranscriptEntry};

const CAPTURED: &str = include_str!("fixtures/opencode.jsonl");

/// Writes the captured rows into a database.
fn captured(path: &Path) {
    let database = Connection::open(path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, title text, time_created integer,
               time_updated integer);
             CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
             CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer,
               time_updated integer, data text);",
        )
        .unwrap();
    for line in CAPTURED.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let row = line["row"].as_object().unwrap();
        let names: Vec<&str> = row.keys().map(String::as_str).collect();
        let values = row.values().map(|value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        });
        let places = vec!["?"; names.len()].join(", ");
        let table = line["table"].as_str().unwrap();
        let insert = format!("INSERT INTO {table} ({}) VALUES ({places})", names.join(", "));
        database.execute(&insert, rusqlite::params_from_iter(values)).unwrap();
    }
}

/// Returns the entries of each captured session.
fn sessions() -> Vec<Vec<TranscriptEntry>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    captured(&path);
    let read_session = |id: &str| {
        let mut bytes = Vec::new();
        open(&of_database(&path, id)).unwrap().read_to_end(&mut bytes).unwrap();
        let (said, about, counts) = read(Format::Opencode, &bytes);
        assert_eq!(
            (about.session.as_deref(), about.worktree.as_deref()),
            (Some(id), Some("/home/ada/larder"))
        );
        assert_eq!((counts.unknown.len(), counts.unreadable), (0, 0), "{counts:?}");
        said
    };
    let ids = [
        "ses_dce731d63ffe899vLGEXdU04zg",
        "ses_dce72c4b7ffeorWxI693tIyz2u",
        "ses_dce6d02e7ffemh6IpSHtEedG5c",
    ];
    ids.iter().map(|id| read_session(id)).collect()
}

#[test]
fn captured_sessions_are_read_in_order() {
    let sessions = sessions();
    insta::assert_snapshot!(lines_of(&sessions[0]).join("\n"), @r###"
    User: "Why is it so? Commit larder please."
    Assistant: I commit.
    Tool: bash: git commit -q -a -m "jam: stir the marmalade before it is flushed" && git rev-parse HEAD
    ok:
    5d726e8f46c7f9d3452c43f6a7aae41fcc5fc906
    Assistant: I write.
    Tool: write: /home/ada/larder/x.txt: 2 lines, `hello`
    ok
    Assistant: I edit.
    Tool: edit: /home/ada/larder/x.txt: `hello` → `bye`
    ok
    Assistant: I read.
    Tool: read: /home/ada/larder/larder.txt
    ok:
    <path>/home/ada/larder/larder.txt</path>
    <type>file</type>
    <content>
    1: quince
    2: jam

    (End of file - total 2 lines)
    </content>
    Assistant: Done, it is noted.
    User: "How many?"
    Assistant: Nine crates.
    "###);
    let edit = sessions[0].iter().find(|said| said.text.starts_with("edit:")).unwrap();
    assert_eq!(edit.written[0].path, "/home/ada/larder/x.txt");
    assert!(sessions[0].iter().all(|said| said.time.is_some() && !said.is_subagent));
    // The third one was compacted.
    let compacted = lines_of(&sessions[2]);
    assert!(compacted.iter().all(|line| !line.contains("Continue if you have next steps")), "{compacted:?}");
    assert_eq!(sessions[2].iter().filter(|said| said.is_summary).count(), 1);
}

/// A copy of a session has new ids, and doesn't say that it is a copy.
#[test]
fn the_entries_of_a_copy_have_the_keys_of_the_originals() {
    let sessions = sessions();
    let keys = |said: &[TranscriptEntry]| said.iter().map(|said| said.key.clone()).collect::<Vec<_>>();
    let (original, copy) = (keys(&sessions[0]), keys(&sessions[1]));
    assert!(copy.starts_with(&original) && copy.len() > original.len(), "{original:?} {copy:?}");
    assert!(original.iter().all(|key| key.len() >= 20), "{original:?}");
}

#[test]
fn a_sub_agents_session_says_so_and_text_of_the_client_is_no_prompt() {
    let lines = [
        json!({"type": "session", "id": "ses_2", "parent": "ses_1", "cwd": "/w/app", "time": 1_796_127_646_372_i64}),
        json!({"type": "message", "role": "user", "time": 1_796_127_646_610_i64, "parts": [
            {"type": "text", "text": "look", "added": false}, {"type": "text", "text": "HIDDEN", "added": true},
            {"type": "file", "name": "plan.pdf"}]}),
        json!({"type": "message", "role": "assistant", "time": 1_796_127_648_657_i64, "cwd": "/w/app/sub", "parts": [
            {"type": "reasoning"}, {"type": "brand-new"},
            {"type": "tool", "id": "c1:1", "name": "bash", "input": {"command": "sleep 9"}, "status": "running"}]}),
    ];
    let (said, about, counts) = read(Format::Opencode, &file(&lines));
    assert_eq!(lines_of(&said), ["User: look\n\n[file plan.pdf]", "Tool: bash: sleep 9\nanswered"]);
    assert!(said.iter().all(|said| said.is_subagent) && about.aliases == ["ses_1"]);
    assert_eq!(said[1].worktree.as_deref(), Some("/w/app/sub"));
    assert_eq!(counts.unknown.keys().collect::<Vec<_>>(), ["part brand-new"]);
}
