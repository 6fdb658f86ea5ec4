//! Tests with lines of Qwen Code 0.24: `fixtures/qwen.jsonl` was captured from two sessions and cut, others were written
//! to match its source code.

use serde_json::{Value, json};

use super::{file, lines_of, read};
use crate::import::transcript::Format;

pub const CAPTURED: &str = include_str!("fixtures/qwen.jsonl");

fn line(kind: &str, more: Value) -> Value {
    let mut line = json!({"uuid": "u1", "sessionId": "q1", "timestamp": "2026-12-01T12:18:15.290Z", "type": kind,
        "cwd": "/w/app", "gitBranch": "main"});
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

fn said(role: &str, text: &str) -> Value {
    json!({"message": {"role": role, "parts": [{"text": text}]}})
}

#[test]
fn a_captured_session_is_read_in_order() {
    let (said, about, counts) = read(Format::Qwen, CAPTURED.as_bytes());
    insta::assert_snapshot!(lines_of(&said).join("\n"), @r###"
    User: Why is the marmalade so?
    Assistant: I will look.
    Assistant: I will note it.
    Assistant: I commit.
    Tool: run_shell_command: git commit -q -a -m "jam: stir the marmalade before it is flushed" && git rev-parse HEAD
    ok:
    Command: git commit -q -a -m "jam: stir the marmalade before it is flushed" && git rev-parse HEAD
    Directory: (root)
    Output: d98158471d1cb81db263c964fec3f867a540775b
    Error: (none)
    Exit Code: 0
    Signal: (none)
    Process Group PGID: (none)
    Assistant: Done.
    User: How many?
    Assistant: Nine.
    User: Why is it so? Commit @larder.txt please.
    User: OK.
    "###);
    assert_eq!(about.session.as_deref(), Some("11111111-2222-4333-8444-555555555555"));
    assert_eq!(
        (about.worktree.as_deref(), about.branch.as_deref()),
        (Some("/home/ada/larder"), Some("main"))
    );
    assert!(said.iter().all(|said| said.time.is_some() && !said.is_subagent));
    assert_eq!(said.iter().filter(|said| said.is_summary).count(), 1);
    assert_eq!((counts.unknown.len(), counts.unreadable, counts.compactions), (0, 0, 1));
    let commits = said.iter().find_map(|said| said.commits.clone());
    assert!(commits.is_some(), "the call that made a commit is recognised");
}

#[test]
fn what_the_client_wrote_as_the_user_is_no_prompt() {
    let hidden = |more: Value| {
        let mut line = line("user", said("user", "HIDDEN"));
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let lines = [
        hidden(json!({"provenance": "system", "subtype": "notification"})),
        hidden(json!({"provenance": "goal_runtime"})),
        hidden(
            json!({"uuid": "u2", "subtype": "mid_turn_user_message", "systemPayload": {"displayText": "as typed"}}),
        ),
    ];
    assert_eq!(lines_of(&read(Format::Qwen, &file(&lines)).0), ["User: as typed"]);
}

#[test]
fn sub_agents_and_copies_say_so() {
    let agent = line(
        "assistant",
        json!({"isSidechain": true, "agentName": "explorer", "message": {"parts": [{"text": "x"}]}}),
    );
    let (said_by_agent, ..) = read(Format::Qwen, &file(&[agent]));
    assert!(said_by_agent[0].is_subagent);
    assert_eq!(said_by_agent[0].speaker.as_deref(), Some("explorer"));
    let mut copy = line("user", said("user", "hello"));
    copy["forkedFrom"] = json!({"sessionId": "orig", "messageUuid": "u1"});
    let (copied, about, _) = read(Format::Qwen, &file(&[copy]));
    assert_eq!(copied[0].copy_of.as_ref().unwrap().session, "orig");
    assert_eq!(about.aliases, ["orig"]);
    let spawned =
        line("system", json!({"subtype": "parent_session", "systemPayload": {"parentSessionId": "p"}}));
    let title = line("system", json!({"subtype": "custom_title", "systemPayload": {"customTitle": "Jam"}}));
    let (_, about, _) = read(Format::Qwen, &file(&[spawned, title]));
    assert!(about.is_subagent);
    assert_eq!((about.aliases, about.title.as_deref()), (vec!["p".to_owned()], Some("Jam")));
}

#[test]
fn a_refused_call_failed_and_a_running_one_waits() {
    let call = |id: &str| {
        json!({"message": {"parts": [{"functionCall": {"id": id, "name": "write_file",
        "args": {"file_path": "/w/app/a.txt", "content": "x\n"}}}]}})
    };
    let refused = json!({"message": {"parts": [{"functionResponse": {"id": "c1", "name": "write_file",
        "response": {"error": "permission was declined"}}}]}, "toolCallResult": {"status": "error"}});
    let (said, ..) = read(
        Format::Qwen,
        &file(&[line("assistant", call("c1")), line("tool_result", refused), line("assistant", call("c2"))]),
    );
    let texts = lines_of(&said);
    assert!(texts[0].contains("failed:\npermission was declined"), "{texts:?}");
    assert!(texts[1].contains("no outcome recorded"), "{texts:?}");
    assert_eq!(said[0].files, ["/w/app/a.txt"]);
    assert!(said[0].written.is_empty(), "a failed call wrote nothing");
}
