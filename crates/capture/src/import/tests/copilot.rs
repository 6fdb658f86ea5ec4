//! Tests with events of Copilot CLI 1.0.102: `fixtures/copilot.jsonl` was captured from two sessions and cut, others were
//! written to match the schema of its events.

use serde_json::{Value, json};

use super::{file, lines_of, read};
use crate::import::transcript::Format;

pub const CAPTURED: &str = include_str!("fixtures/copilot.jsonl");

fn event(kind: &str, data: Value) -> Value {
    json!({"type": kind, "data": data, "id": format!("{kind}-1"), "timestamp": "2026-12-01T12:19:07.594Z"})
}

#[test]
fn a_captured_session_is_read_in_order() {
    let (said, about, counts) = read(Format::Copilot, CAPTURED.as_bytes());
    insta::assert_snapshot!(lines_of(&said).join("\n"), @r###"
    User: Why is it so? Commit @larder.txt please.
    Assistant: I commit.
    Tool: bash: git commit -q -a -m "jam: stir the marmalade before it is flushed" && git rev-parse HEAD
    ok:
    596b6fe6c6a14f4548eddd3b5e9bc1d700a5799d
    <shellId: 0 completed with exit code 0>
    Assistant: I write.
    Tool: create: /home/ada/larder/x.txt: 2 lines, `hello`
    ok
    Assistant: I edit.
    Tool: edit: /home/ada/larder/x.txt: `hello` → `bye`
    ok
    Assistant: I read.
    Tool: view: /home/ada/larder/larder.txt
    ok:
    quince
    jam
    Assistant: Done, it is noted.
    User: How many?
    Assistant: Nine crates.
    User: Recap: the larder was stirred and jars remain open.
    Assistant: I will note it.
    Assistant: I will look.
    Assistant: I commit.
    Tool: bash: git commit -q -a -m "jam: stir the marmalade before it is flushed" && git rev-parse HEAD
    failed:
    On branch main
    nothing to commit, working tree clean
    <shellId: 1 completed with exit code 1>
    Assistant: I delegate
    Tool: task: Look · Look at the jars · jars
    failed:
    Tool 'task' does not exist.
    Assistant: Done.
    "###);
    assert_eq!(about.session.as_deref(), Some("11111111-2222-4333-8444-555555555555"));
    assert_eq!(
        (about.worktree.as_deref(), about.branch.as_deref()),
        (Some("/home/ada/larder"), Some("main"))
    );
    assert_eq!((counts.unknown.len(), counts.unreadable, counts.compactions), (0, 0, 1));
    assert!(said.iter().all(|said| said.time.is_some() && !said.text.contains("current_datetime")));
    // What the sub-agent was asked is in the call of the agent that asked it.
    let agent = said.iter().find(|said| said.text == "I will note it.").unwrap();
    assert!(agent.is_subagent && !said[0].is_subagent);
    let edit = said.iter().find(|said| said.text.starts_with("edit:")).unwrap();
    assert_eq!(edit.written[0].path, "/home/ada/larder/x.txt");
}

#[test]
fn the_place_follows_the_session() {
    let place =
        |cwd: &str, branch: &str| json!({"cwd": cwd, "gitRoot": cwd, "branch": branch, "headCommit": "9455"});
    let prompt = |text: &str| {
        json!({"type": "user.message", "data": {"content": text, "transformedContent": "HIDDEN"},
        "id": text, "timestamp": "2026-12-01T12:19:07.594Z"})
    };
    let lines = [
        event(
            "session.start",
            json!({"sessionId": "c1", "startTime": "2026-12-01T12:19:07.406Z", "context": place("/w/a", "main")}),
        ),
        prompt("one"),
        event("session.context_changed", place("/w/b", "topic")),
        prompt("two"),
        event("session.resume", json!({"context": {"cwd": "/tmp/x"}})),
        prompt("three"),
    ];
    let (said, about, _) = read(Format::Copilot, &file(&lines));
    let places: Vec<_> = said.iter().map(|said| (said.worktree.as_deref(), said.branch.as_deref())).collect();
    assert_eq!(places, [(Some("/w/a"), Some("main")), (Some("/w/b"), Some("topic")), (Some("/tmp/x"), None)]);
    assert_eq!((about.session.as_deref(), about.began), (Some("c1"), Some(1_796_127_547_406)));
}

#[test]
fn prompts_that_no_person_wrote_are_skipped() {
    let mut lines =
        vec![event("user.message", json!({"content": "HIDDEN", "isAutopilotContinuation": true}))];
    for origin in ["skill-pdf", "agent-7"] {
        lines.push(event("user.message", json!({"content": "HIDDEN", "source": origin})));
    }
    assert_eq!(read(Format::Copilot, &file(&lines)).0, []);
}

#[test]
fn a_refused_call_has_no_start_and_failed() {
    let asked = json!({"content": "", "toolRequests": [{"toolCallId": "t1", "name": "bash", "arguments": {"command": "rm x"}}]});
    let refused = json!({"toolCallId": "t1", "success": false, "error": {"message": "Permission denied"}});
    let lines = [event("assistant.message", asked), event("tool.execution_complete", refused)];
    let (said, ..) = read(Format::Copilot, &file(&lines));
    assert_eq!(lines_of(&said), ["Tool: bash: rm x\nfailed:\nPermission denied"]);
}

#[test]
fn tiros_own_answers_are_not_remembered() {
    let call = json!({"toolCallId": "t1", "toolName": "tiro-store_memory", "arguments": {"text": "x"}});
    let ended = json!({"toolCallId": "t1", "success": true, "result": {"content": "ANSWER"}});
    let lines = [
        event("tool.execution_start", call),
        event("tool.execution_complete", ended),
        event("brand.new", json!({})),
    ];
    let (said, _, counts) = read(Format::Copilot, &file(&lines));
    assert_eq!(said, []);
    assert_eq!(counts.unknown.keys().collect::<Vec<_>>(), ["brand.new"]);
}
