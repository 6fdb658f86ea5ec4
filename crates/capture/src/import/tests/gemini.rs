//! Tests with lines of Gemini CLI: some were captured from version 0.61, others were written to match its source code.

use serde_json::{Value, json};

use super::{file, lines_of, read};
use crate::import::transcript::{About, Format, Transcript};

fn session() -> Value {
    json!({"sessionId": "g1", "projectHash": "77", "startTime": "2026-11-20T13:55:48.323Z", "kind": "main"})
}

fn message(id: &str, kind: &str, content: Value) -> Value {
    json!({"id": id, "timestamp": "2026-11-20T13:55:48.324Z", "type": kind, "content": content})
}

fn with(mut line: Value, name: &str, value: Value) -> Value {
    line[name] = value;
    line
}

fn shell(status: &str, output: Value) -> Value {
    json!([{"id": "run-1", "name": "run_shell_command", "args": {"command": "ls", "description": "List"},
        "status": status, "timestamp": "2026-11-20T13:55:50Z",
        "result": [{"functionResponse": {"id": "run-1", "name": "run_shell_command", "response": output}}]}])
}

#[test]
fn a_session_is_read_in_order() {
    let called = message("3", "gemini", json!("I will look."));
    let lines = [
        session(),
        json!({"$set": {"messages": [message("1", "user", json!([{"text": "<session_context>\nHIDDEN"}]))]}}),
        message("2", "user", json!([{"text": "look around"}])),
        json!({"$set": {"lastUpdated": "2026-11-20T13:55:48.324Z"}}),
        with(called.clone(), "thoughts", json!([{"subject": "HIDDEN"}])),
        with(called.clone(), "toolCalls", shell("executing", json!(null))),
        with(called, "toolCalls", shell("success", json!({"output": "a\nb"}))),
        message("4", "info", json!("HIDDEN")),
        message("5", "gemini", json!([{"text": "Two files."}, {"thought": true, "text": "HIDDEN"}])),
        json!({"$set": {"summary": "Looked around"}}),
        json!({"$rewindTo": "5"}),
        message("6", "brand_new", json!("?")),
    ];
    let (said, about, counts) = read(Format::Gemini, &file(&lines));
    let expected = [
        "User: look around",
        "Assistant: I will look.",
        "Tool: run_shell_command: ls\nok:\na\nb",
        "Assistant: Two files.",
    ];
    assert_eq!(lines_of(&said), expected);
    assert_eq!(said.iter().map(|said| said.key.as_str()).collect::<Vec<_>>(), ["2", "3", "run-1", "5"]);
    assert_eq!((about.session.as_deref(), about.title.as_deref()), (Some("g1"), Some("Looked around")));
    assert_eq!(counts.unknown.keys().collect::<Vec<_>>(), ["brand_new"]);
}

#[test]
fn a_compaction_leaves_its_summary_and_repeats_nothing() {
    let kept = json!({"$set": {"messages": [
        message("n1", "user", json!([{"text": "<state_snapshot>\nEverything is in hand."}])),
        message("n2", "gemini", json!("Got it. Thanks for the additional context!")),
        message("n3", "user", json!([{"text": "look around"}])),
    ]}});
    let (said, _, counts) = read(
        Format::Gemini,
        &file(&[session(), message("2", "user", json!([{"text": "look around"}])), kept]),
    );
    assert_eq!(said.iter().map(|said| said.is_summary).collect::<Vec<_>>(), [false, true]);
    assert!(said[1].text.contains("Everything is in hand."), "{said:?}");
    assert_eq!(counts.skipped["$set.messages"], 2);
}

#[test]
fn a_running_call_waits_and_a_failed_one_says_so() {
    let running = with(message("3", "gemini", json!("")), "toolCalls", shell("executing", json!(null)));
    let failed = with(
        message("3", "gemini", json!("")),
        "toolCalls",
        shell("error", json!({"error": "no such file"})),
    );
    let mut transcript = Transcript::new(Format::Gemini, About::default());
    assert!(transcript.line(70, running.to_string().as_bytes()).is_empty());
    assert_eq!(transcript.open_from(), Some(70));
    // The grown message still has its first time, which doesn't say when the call ended. Only a later line shows that.
    assert!(transcript.line(90, failed.to_string().as_bytes()).is_empty());
    assert_eq!(transcript.open_from(), Some(70));
    let said = transcript.rest();
    assert_eq!((said[0].since, said[0].until), (said[0].time, None));
    assert_eq!(lines_of(&said), ["Tool: run_shell_command: ls\nfailed:\nno such file"]);
    assert_eq!(transcript.open_from(), None);
}

#[test]
fn a_prompt_comes_without_the_files_it_names_and_a_result_is_no_prompt() {
    let named = "explain @a.rs\n--- Content from referenced files ---\nHIDDEN";
    let shown = with(message("2", "user", json!("HIDDEN")), "displayContent", json!("as typed"));
    let result = json!([{"functionResponse": {"id": "x", "response": {"output": "HIDDEN"}}}]);
    let lines = [message("1", "user", json!(named)), shown, message("3", "user", result)];
    assert_eq!(lines_of(&read(Format::Gemini, &file(&lines)).0), ["User: explain @a.rs", "User: as typed"]);
    let replaced = message("4", "user", json!("<state_snapshot>we did it</state_snapshot>"));
    assert!(read(Format::Gemini, &file(&[replaced])).0[0].is_summary);
}

#[test]
fn an_older_file_is_one_value() {
    let whole = with(
        session(),
        "messages",
        json!([message("1", "user", json!("hi")), message("2", "gemini", json!("yes"))]),
    );
    let bytes = serde_json::to_vec_pretty(&with(whole, "kind", json!("subagent"))).unwrap();
    let mut transcript = Transcript::new(Format::Gemini, About::default());
    let said = transcript.line(0, &bytes);
    assert_eq!(lines_of(&said), ["User: hi", "Assistant: yes"]);
    assert!(said[0].is_subagent);
}

#[test]
fn tiros_own_answers_are_not_remembered() {
    let call = json!([{"id": "1", "name": "mcp_tiro_search_project_memory", "args": {"query": "why"},
        "status": "success", "result": [{"functionResponse": {"response": {"output": "ANSWER"}}}]}]);
    let said = read(Format::Gemini, &file(&[with(message("3", "gemini", json!("")), "toolCalls", call)])).0;
    assert_eq!(said, []);
}
