//! What a client compacts is stashed once the transcript shows that it was compacted, whatever its hooks say.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Home, Ran, Repo, Server, strings};
use crate::talk::Talk;

/// A home with a repository whose sessions are followed, and a server.
fn followed() -> (Home, Repo, Server) {
    let home = Home::new();
    let repo = home.repo("project");
    repo.commit("a.txt", "a\n", "Begin");
    home.run(&repo.path, &["import", "git"]);
    home.json(&repo.path, &["import", "claude-code"]);
    let server = home.serve(&repo.path);
    (home, repo, server)
}

/// Returns the texts of the stash that answer the query.
fn stashed(server: &mut Server, query: &str) -> Vec<String> {
    let found = server.data("retrieve_stashed_context", json!({"query": query, "top_k": 50}));
    let mut texts = strings(found["segments"].as_array().map_or(&[], |it| &it[..]), "text");
    texts.sort();
    texts
}

/// Appends lines to a transcript and runs a hook of the client until it has left a reference.
fn goes_on(home: &Home, client: &str, (path, directory): (&Path, &Path), lines: &[Value], event: &str) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let before = std::fs::read_to_string(path).unwrap_or_default();
    std::fs::write(path, before + &text).unwrap();
    let payload =
        json!({"session_id": "s-1", "transcript_path": path, "cwd": directory, "hook_event_name": event});
    let is_left = (0..50).any(|_| {
        let Ran { is_ok, .. } = home.feed(directory, &["hook", client], payload.to_string().as_bytes());
        assert!(is_ok);
        home.waiting() > 0
    });
    assert!(is_left, "no reference was left");
}

#[test]
fn what_claude_code_compacts_is_stashed_and_the_next_session_is_told() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, "41799f8d", &repo.path, "main");
    talk.says("user", 1, "why does the grommet rattle?");
    talk.says("assistant", 2, "because the sprocket is loose");
    // The hook runs before a compaction, which may fail.
    talk.hook(&home, "PreCompact");
    assert!(stashed(&mut server, "loose sprocket").is_empty());
    let mut boundary = talk.line("system", 1_700_000_003_000, json!(""));
    boundary["subtype"] = json!("compact_boundary");
    talk.put(&boundary);
    let mut summary = talk.line("user", 1_700_000_003_100, json!("The grommet was examined."));
    summary["isCompactSummary"] = json!(true);
    talk.put(&summary);
    talk.says("user", 4, "and the other grommet?");
    talk.hook(&home, "Stop");
    let both = ["because the sprocket is loose", "why does the grommet rattle?"];
    assert_eq!(stashed(&mut server, "grommet sprocket"), both);
    assert_eq!(home.waiting(), 0);
    // The file is replaced by one that begins with another line, so it is read once more.
    let text = std::fs::read_to_string(&talk.path).unwrap();
    std::fs::write(&talk.path, format!("{}\n{text}", json!({"type": "tag"}))).unwrap();
    talk.hook(&home, "Stop");
    assert_eq!(stashed(&mut server, "grommet sprocket"), both);
    // After the compaction, the context of the session still has what the client's window lost.
    let context = server.text("retrieve_context", json!({"query": "grommet", "session_id": "41799f8d"}));
    assert!(context.contains("sprocket is loose"), "{context}");
    server.end();
    let pointer = Talk::new(&home, "another", &repo.path, "main").begins(&home);
    let told = pointer.contains("2 stashed segments") && pointer.contains("retrieve_stashed_context");
    assert!(told, "{pointer}");
}

/// Gemini CLI fires `PreCompress` before every request, so each chat used to be stashed whole.
#[test]
fn a_chat_of_gemini_is_stashed_only_when_it_was_compressed() {
    let (home, repo, mut server) = followed();
    let folder = home.dir("home/.gemini/tmp/project");
    std::fs::write(folder.join(".project_root"), repo.path.to_str().unwrap()).unwrap();
    let path: PathBuf = folder.join("chats/session-1.jsonl");
    let message = |id: &str, second: u32, kind: &str, text: &str| {
        let time = format!("2026-03-01T09:00:{second:02}.000Z");
        json!({"id": id, "timestamp": time, "type": kind, "content": text})
    };
    let place = (path.as_path(), repo.path.as_path());
    let begun = json!({"sessionId": "s-1", "projectHash": "x", "startTime": "2026-03-01T09:00:00.000Z",
        "lastUpdated": "2026-03-01T09:00:00.000Z", "kind": "main"});
    let said = [
        begun,
        message("g1", 1, "user", "why does the grommet rattle?"),
        message("g2", 2, "gemini", "because the sprocket is loose"),
    ];
    goes_on(&home, "gemini", place, &said, "PreCompress");
    assert!(!server.search("loose sprocket").is_empty());
    assert!(stashed(&mut server, "loose sprocket").is_empty());
    // The chat is resumed.
    goes_on(&home, "gemini", place, &[message("g3", 3, "user", "and the other grommet?")], "PreCompress");
    assert!(stashed(&mut server, "grommet").is_empty());
    let kept = json!({"$set": {"messages": [
        message("n1", 4, "user", "<state_snapshot>The grommet was examined.</state_snapshot>"),
        message("n2", 4, "gemini", "Got it."),
    ]}});
    goes_on(&home, "gemini", place, &[kept, message("g4", 5, "gemini", "it is fine")], "AfterAgent");
    let all = ["and the other grommet?", "because the sprocket is loose", "why does the grommet rattle?"];
    assert_eq!(stashed(&mut server, "grommet sprocket"), all);
    assert!(!stashed(&mut server, "it is fine").contains(&"it is fine".to_owned()));
}

/// The summary of a compaction of Codex may be encrypted, so that the line has no text.
#[test]
fn what_codex_compacts_is_stashed_even_if_its_summary_is_not_shown() {
    let (home, repo, mut server) = followed();
    let path = home.dir("home/.codex/sessions/2026/03/01").join("rollout-2026-03-01T09-00-00-s-1.jsonl");
    let line = |second: u32, kind: &str, payload: Value| json!({"timestamp": format!("2026-03-01T09:00:{second:02}.000Z"), "type": kind, "payload": payload});
    let says = |second: u32, role: &str, kind: &str, text: &str| {
        let content = json!([{"type": kind, "text": text}]);
        line(second, "response_item", json!({"type": "message", "role": role, "content": content}))
    };
    let place = (path.as_path(), repo.path.as_path());
    let meta = line(
        0,
        "session_meta",
        json!({"id": "s-1", "cwd": repo.path, "timestamp": "2026-03-01T09:00:00.000Z"}),
    );
    let said = [
        meta,
        says(1, "user", "input_text", "why does the grommet rattle?"),
        says(2, "assistant", "output_text", "because the sprocket is loose"),
    ];
    goes_on(&home, "codex", place, &said, "Stop");
    assert!(stashed(&mut server, "loose sprocket").is_empty());
    let after = [
        line(3, "compacted", json!({"message": "", "replacement_history": []})),
        says(4, "user", "input_text", "and the other grommet?"),
    ];
    goes_on(&home, "codex", place, &after, "Stop");
    assert_eq!(
        stashed(&mut server, "grommet sprocket"),
        ["because the sprocket is loose", "why does the grommet rattle?"]
    );
}

/// A session of the past is imported as it was: its window is gone anyway.
#[test]
fn an_import_stashes_nothing() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, "41799f8d", &repo.path, "main");
    talk.says("user", 1, "why does the grommet rattle?");
    let mut summary = talk.line("user", 1_700_000_003_100, json!("The grommet was examined."));
    summary["isCompactSummary"] = json!(true);
    talk.put(&summary);
    home.json(&repo.path, &["import", "claude-code"]);
    assert!(!server.search("grommet rattle").is_empty());
    assert_eq!(server.data("retrieve_stashed_context", json!({}))["total_found"], json!(0));
}
