//! Histories in all the forms in which clients leave them: compressed, in old formats, copied into forks, and kept by
//! other programs.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Home, Repo};

/// Returns a home with a repository.
fn home() -> (Home, Repo) {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("README.md", "# It\n", "Begin");
    (home, repo)
}

/// Returns the texts of the stored memories of a kind, in order of their sessions and times.
fn texts(home: &Home, repo: &Repo, kind: &str) -> Vec<String> {
    let out = home.run(&repo.path, &["export"]).stdout;
    let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let found = lines.filter(|line| line["kind"] == kind);
    let mut texts: Vec<String> = found.map(|line| line["text"].as_str().unwrap().to_owned()).collect();
    texts.sort();
    texts
}

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Returns the first line of a session of Codex.
fn meta(id: &str, cwd: &Path, time: &str, more: Value) -> Value {
    let mut payload = json!({"id": id, "timestamp": time, "cwd": cwd, "source": "cli"});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"timestamp": time, "type": "session_meta", "payload": payload})
}

fn codex_says(time: &str, role: &str, text: &str) -> Value {
    let content = json!([{"type": if role == "user" { "input_text" } else { "output_text" }, "text": text}]);
    let payload = json!({"type": "message", "role": role, "content": content});
    json!({"timestamp": time, "type": "response_item", "payload": payload})
}

fn claude_says(session: &str, uuid: &str, cwd: &Path, text: &str) -> Value {
    json!({"type": "user", "uuid": format!("{uuid}-0000-4000-8000-000000000000"), "sessionId": session, "cwd": cwd,
        "timestamp": "2026-09-01T10:00:00Z", "message": {"role": "user", "content": text}})
}

/// Returns a frame of uncompressed blocks.
fn packed(text: &str) -> Vec<u8> {
    let mut out = [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..], &(text.len() as u32).to_le_bytes()].concat();
    let parts: Vec<&[u8]> = text.as_bytes().chunks(100).collect();
    for (place, part) in parts.iter().enumerate() {
        let head = (part.len() << 3) | usize::from(place + 1 == parts.len());
        out.extend(&(head as u32).to_le_bytes()[..3]);
        out.extend(*part);
    }
    out
}

/// Compressed sessions used to be invisible.
#[test]
fn a_compressed_session_is_read_and_stays_the_same_session() {
    let (home, repo) = home();
    let path = home.path().join("home/.codex/sessions/2026/08/01/rollout-2026-08-01T10-00-00-one.jsonl");
    let cwd = repo.path.canonicalize().unwrap();
    let first = [
        meta("one", &cwd, "2026-08-01T10:00:00Z", json!({})),
        codex_says("2026-08-01T10:00:01Z", "user", "Why is it loud?"),
    ];
    write(&path, lines(&first));
    assert_eq!(home.json(&repo.path, &["import", "codex"])["imported"], 1);
    let more = lines(&[codex_says("2026-08-01T10:00:02Z", "assistant", "A worn pawl.")]);
    let both = [packed(&lines(&first)), packed(&more)].concat();
    let compressed = path.with_extension("jsonl.zst");
    write(&compressed, &both);
    std::fs::remove_file(&path).unwrap();
    let imported = home.json(&repo.path, &["import", "codex"]);
    assert_eq!((&imported["imported"], &imported["already_stored"]), (&json!(1), &json!(0)), "{imported}");
    assert_eq!(home.json(&repo.path, &["import", "codex"])["grown"], 0);
    assert_eq!(texts(&home, &repo, "message"), ["A worn pawl.", "Why is it loud?"]);

    // A file that ends too early is read as far as it goes, and that is said.
    let more = lines(&[
        codex_says("2026-08-01T10:00:03Z", "user", "And the winch?"),
        codex_says("2026-08-01T10:00:04Z", "user", &"x".repeat(900)),
    ]);
    let cut = [both, packed(&more)].concat();
    write(&compressed, &cut[..cut.len() - 500]);
    let imported = home.json(&repo.path, &["import", "codex"]);
    assert!(imported["notices"].to_string().contains("damaged or not finished"), "{imported}");
    assert!(texts(&home, &repo, "message").contains(&"And the winch?".to_owned()));
    // That is said also if nothing more can be read.
    write(&compressed, &cut[..cut.len() - 450]);
    let imported = home.json(&repo.path, &["import", "codex"]);
    assert!(imported["notices"].to_string().contains("damaged or not finished"), "{imported}");
    assert_eq!(home.json(&repo.path, &["import", "codex"])["notices"], json!([]));
}

#[test]
fn a_chat_that_is_one_indented_object_is_read() {
    let (home, repo) = home();
    let folder = home.path().join("home/.gemini/tmp/repo");
    write(&folder.join(".project_root"), repo.path.canonicalize().unwrap().to_str().unwrap());
    let message = |id: &str, kind: &str, text: &str| json!({"id": id, "type": kind, "timestamp": "2026-02-01T10:00:00Z", "content": text});
    let mut chat = json!({"sessionId": "g", "messages": [message("1", "user", "Why is it blue?")]});
    let path = folder.join("chats/session-g.json");
    write(&path, serde_json::to_string_pretty(&chat).unwrap());
    assert_eq!(home.json(&repo.path, &["import", "gemini"])["imported"], 1);
    chat["messages"].as_array_mut().unwrap().push(message("2", "gemini", "It was dyed with woad."));
    write(&path, serde_json::to_string_pretty(&chat).unwrap());
    assert_eq!(home.json(&repo.path, &["import", "gemini"])["imported"], 1);
    assert_eq!(texts(&home, &repo, "message"), ["It was dyed with woad.", "Why is it blue?"]);
}

/// A line of 200 MB used to hide its message; here it is a little too long to keep.
#[test]
fn the_text_beside_a_huge_picture_is_kept() {
    let (home, repo) = home();
    let cwd = repo.path.canonicalize().unwrap();
    let folder = cwd.to_str().unwrap().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(33 << 20)}});
    let mut line = claude_says("s", "00000001", &cwd, "");
    line["message"]["content"] = json!([picture, {"type": "text", "text": "What is in this picture?"}]);
    let path = home.path().join("home/.claude/projects").join(folder).join("s.jsonl");
    write(
        &path,
        lines(&[
            claude_says("s", "00000000", &cwd, "Look."),
            line,
            claude_says("s", "00000002", &cwd, "And now?"),
        ]),
    );
    let imported = home.json(&repo.path, &["import", "claude-code"]);
    assert_eq!((&imported["imported"], &imported["shortened"]), (&json!(3), &json!(1)), "{imported}");
    let found = texts(&home, &repo, "message");
    assert!(found.iter().any(|text| text.contains("What is in this picture?")), "{found:?}");
}

#[test]
fn what_forks_repeat_is_stored_once_in_any_order() {
    for first in ["orig", "fork"] {
        let (home, repo) = home();
        let cwd = repo.path.canonicalize().unwrap();
        let folder = cwd.to_str().unwrap().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let folder = home.path().join("home/.claude/projects").join(folder);
        let says = |session: &str, uuid: &str, text: &str| claude_says(session, uuid, &cwd, text);
        let copied = |session: &str, uuid: &str, text: &str, from: (&str, &str)| {
            let mut line = says(session, uuid, text);
            let original = format!("{}-0000-4000-8000-000000000000", from.1);
            line["forkedFrom"] = json!({"sessionId": from.0, "messageUuid": original});
            line
        };
        let one = [says("orig", "0000000a", "The hull is red.")];
        let two = [
            copied("fork", "0000000b", "The hull is red.", ("orig", "0000000a")),
            says("fork", "0000000c", "The mast."),
        ];
        let three = [
            copied("again", "0000000d", "The hull is red.", ("fork", "0000000b")),
            copied("again", "0000000e", "The mast.", ("fork", "0000000c")),
            says("again", "0000000f", "The keel."),
        ];
        let mut files = [("orig", lines(&one)), ("fork", lines(&two)), ("again", lines(&three))];
        files.sort_by_key(|(name, _)| *name != first);
        for (name, text) in files.iter().filter(|(name, _)| *name != "again" || first == "orig") {
            write(&folder.join(format!("{name}.jsonl")), text);
            home.json(&repo.path, &["import", "claude-code"]);
        }
        let mut expected = vec!["The hull is red.", "The keel.", "The mast."];
        expected.retain(|text| first == "orig" || *text != "The keel.");
        assert_eq!(texts(&home, &repo, "message"), expected, "{first}");
    }
}

#[test]
fn what_a_forked_thread_of_codex_repeats_is_stored_once() {
    for (order, is_dated_anew) in
        [(["p", "f"], true), (["p", "f"], false), (["f", "p"], true), (["f", "p"], false), (["f", "f"], true)]
    {
        let (home, repo) = home();
        let cwd = repo.path.canonicalize().unwrap();
        let parent = [
            meta("p", &cwd, "2026-09-01T10:00:00Z", json!({})),
            codex_says("2026-09-01T10:00:01Z", "user", "Which ring?"),
            codex_says("2026-09-01T10:00:02Z", "assistant", "Ring 7."),
            codex_says("2026-09-01T10:00:03Z", "user", "Go on."),
        ];
        let mut fork = vec![meta("f", &cwd, "2026-09-05T09:00:00Z", json!({"forked_from_id": "p"}))];
        fork.extend(parent.iter().cloned().map(|mut line| {
            if is_dated_anew {
                line["timestamp"] = json!("2026-09-05T09:00:00.100Z");
            }
            line
        }));
        fork.push(codex_says("2026-09-05T09:05:00Z", "user", "Go on."));
        fork.push(codex_says("2026-09-05T09:05:01Z", "assistant", "Rubber fenders."));
        let folder = home.path().join("home/.codex/sessions/2026/09");
        for name in order {
            let text = if name == "p" { lines(&parent) } else { lines(&fork) };
            write(&folder.join(format!("rollout-{name}.jsonl")), text);
            home.json(&repo.path, &["import", "codex"]);
        }
        let found = texts(&home, &repo, "message");
        for text in ["Which ring?", "Ring 7.", "Rubber fenders."] {
            assert_eq!(
                found.iter().filter(|found| *found == text).count(),
                1,
                "{order:?} {is_dated_anew} {found:?}"
            );
        }
    }
}

#[test]
fn sessions_of_specstory_are_imported_once() {
    let (home, repo) = home();
    assert!(!home.run(&repo.path, &["import", "specstory"]).is_ok);
    let text = "<!-- Generated by SpecStory -->\n\n# Blue crane (2026-03-01 10:00:00Z)\n\n_**User**_\n\nWhy is the crane blue?\n\n---\n\n";
    let path = repo.path.join(".specstory/history/2026-03-01_10-00Z-blue-crane.md");
    write(&path, text);
    let imported = home.json(&repo.path, &["import", "specstory"]);
    assert_eq!((&imported["imported"], &imported["sessions"]), (&json!(1), &json!(1)), "{imported}");
    assert_eq!(home.json(&repo.path, &["import", "specstory"])["imported"], 0);
    write(&path, format!("{text}_**Agent (model x)**_\n\nIt was the cheapest paint.\n\n---\n"));
    let imported = home.json(&repo.path, &["import", "specstory"]);
    assert_eq!((&imported["imported"], &imported["already_stored"]), (&json!(1), &json!(1)), "{imported}");
    assert_eq!(texts(&home, &repo, "message"), ["It was the cheapest paint.", "Why is the crane blue?"]);
    let exported = home.run(&repo.path, &["export"]).stdout;
    assert!(exported.contains("\"imported\""), "{exported}");
}

/// Whoever listed `.specstory/` in `.gitignore`, as SpecStory advises, used to get "0 messages".
#[test]
fn sessions_of_specstory_that_git_ignores_are_imported() {
    let (home, repo) = home();
    let said = |text: &str| format!("# Blue crane (2026-03-01 10:00:00Z)\n\n_**User**_\n\n{text}\n\n---\n");
    let folder = repo.path.join(".specstory/history");
    write(&repo.path.join(".gitignore"), ".specstory/\n");
    write(&repo.path.join(".tiroignore"), "*salary*\n");
    write(&folder.join("2026-03-01_10-00Z-blue-crane.md"), said("Why is the crane blue?"));
    write(&folder.join("2026-03-01_11-00Z-salary.md"), said("Who earns what?"));
    let imported = home.json(&repo.path, &["import", "specstory"]);
    assert_eq!((&imported["imported"], &imported["sessions"]), (&json!(1), &json!(1)), "{imported}");
    assert_eq!(texts(&home, &repo, "message"), ["Why is the crane blue?"]);
    let notices = imported["notices"].to_string();
    assert!(notices.contains("1 file that is ignored by .tiroignore"), "{notices}");
}

/// Cursor writes the session of a sub-agent as any other, with the prompt of the agent as the words of the user.
#[test]
fn a_session_of_a_sub_agent_of_cursor_is_left_out() {
    let (home, repo) = home();
    let id = "00d02bce-5f99-453f-992e-ea1075e40986";
    let session = |id: &str, said: &str, answer: &str| {
        format!(
            "<!-- Generated by SpecStory, Markdown v2.1.0 -->\n\n# 2026-03-01 10:00:00Z\n\n\
            <!-- Cursor IDE Session {id} (2026-03-01 10:00:00Z) -->\n\n\
            _**User**_\n\n{said}\n\n---\n\n_**Agent (default)**_\n\n{answer}\n"
        )
    };
    let caller = "1b3a77c0-58a2-4f7a-9a80-7f70c0b0d2a1";
    let call = |id: &str| {
        format!(
            "<tool-use data-tool-type=\"unknown\" data-tool-name=\"task_v2\"><details>\n\
        <summary>Tool use: **task_v2**</summary>\n\nParameters:\n\n```json\n{{\"name\": \"explore\"}}\n```\n\
        Additional data:\n\n```json\n{{\"status\": \"success\", \"subagentComposerId\": \"{id}\"}}\n```\n\
        </details></tool-use>"
        )
    };
    let folder = repo.path.join(".specstory/history");
    // The files are read in the order of their names.
    write(
        &folder.join("2026-03-01_09-58Z-explore.md"),
        session(id, "Search for date pickers.", "Two found."),
    );
    // A session that names itself is no sub-agent.
    let calls = call(id) + &call(caller);
    write(&folder.join("2026-03-01_10-00Z-picker.md"), session(caller, "Make one date picker.", &calls));
    let imported = home.json(&repo.path, &["import", "specstory"]);
    assert_eq!((&imported["sessions"], &imported["left_out"]), (&json!(1), &json!(2)), "{imported}");
    let found = texts(&home, &repo, "message");
    assert!(found.contains(&"Make one date picker.".to_owned()) && found.len() == 3, "{found:?}");
}

#[test]
fn json_lines_of_messages_are_imported_once() {
    let (home, repo) = home();
    let file = home.path().join("notes.jsonl");
    write(
        &file,
        "{\"role\":\"user\",\"text\":\"Why is it blue?\",\"time\":\"2026-03-01T10:00:00Z\",\"session\":\"talk\"}\n\n\
        no json\n{\"role\":\"assistant\",\"content\":\"DB_PASSWORD=qZxWvKjPhRtLmNbYcDgF is the key.\",\"session\":\"talk\"}\n\
        {\"role\":\"user\"}\n{\"from\":\"human\",\"value\":\"go on\"}\n{\"from\":\"human\",\"value\":\"go on\"}",
    );
    let name = file.to_str().unwrap();
    let imported = home.json(&repo.path, &["import", name]);
    assert_eq!((&imported["imported"], &imported["sessions"]), (&json!(4), &json!(2)), "{imported}");
    let unread = imported["unread"].to_string();
    assert!(unread.contains("line 3 is not JSON") && unread.contains("line 5 has no text"), "{unread}");
    let again = home.json(&repo.path, &["import", name]);
    assert_eq!((&again["imported"], &again["already_stored"]), (&json!(0), &json!(4)), "{again}");
    let found = texts(&home, &repo, "message");
    assert!(!found.concat().contains("qZxWvKjPhRtLmNbYcDgF"), "{found:?}");
}

#[test]
fn sessions_of_scripts_are_listed_last() {
    let (home, repo) = home();
    let cwd = repo.path.canonicalize().unwrap();
    let folder = home.path().join("home/.codex/sessions/2026/09");
    let of_user = [
        meta("mine", &cwd, "2026-09-01T10:00:00Z", json!({})),
        codex_says("2026-09-01T10:00:01Z", "user", "Why?"),
    ];
    let of_script = [
        meta("script", &cwd, "2026-09-02T10:00:00Z", json!({"originator": "codex_exec", "source": "exec"})),
        codex_says("2026-09-02T10:00:01Z", "user", "Review this."),
    ];
    write(&folder.join("rollout-1.jsonl"), lines(&of_user));
    write(&folder.join("rollout-2.jsonl"), lines(&of_script));
    home.json(&repo.path, &["import", "codex"]);
    let listed = home.json(&repo.path, &["sessions"]);
    let names: Vec<&Value> =
        listed["sessions"].as_array().unwrap().iter().map(|each| &each["session_id"]).collect();
    assert_eq!(names, ["mine", "script"], "{listed}");
    assert_eq!(listed["sessions"][1]["headless"], true);
}
