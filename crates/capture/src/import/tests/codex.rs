//! Tests with lines of Codex, captured from version 0.169 and shortened, and with older forms of outputs.

use serde_json::{Value, json};

use super::{file, lines_of, read};
use crate::import::transcript::{Format, TranscriptEntry};

fn line(ordinal: u64, kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-11-20T13:58:52.243Z", "ordinal": ordinal, "type": kind, "payload": payload})
}

fn item(ordinal: u64, payload: Value) -> Value {
    line(ordinal, "response_item", payload)
}

fn message(ordinal: u64, role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    item(ordinal, json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
}

fn meta(id: &str) -> Value {
    line(
        0,
        "session_meta",
        json!({"id": id, "cwd": "/home/dev/project", "source": "exec",
        "base_instructions": {"text": "HIDDEN"}, "git": {"branch": "main", "commit_hash": "a"}}),
    )
}

fn all(lines: &[Value]) -> Vec<TranscriptEntry> {
    read(Format::Codex, &file(lines)).0
}

fn called(call: Value, output: Value) -> TranscriptEntry {
    let said = all(&[item(1, call), item(2, output)]);
    assert_eq!(said.len(), 1, "{said:?}");
    said[0].clone()
}

#[test]
fn a_session_is_read_in_order() {
    let put_in = json!({"type": "message", "id": "m1", "role": "user",
        "content": [{"type": "input_text", "text": "HIDDEN"}],
        "internal_chat_message_metadata_passthrough": {"content_item_metadata": [{"provenance": {"type": "harness"}}]}});
    let lines = [
        meta("s1"),
        line(1, "event_msg", json!({"type": "task_started", "turn_id": "t"})),
        message(2, "developer", "<permissions instructions>HIDDEN"),
        item(3, put_in),
        line(4, "world_state", json!({"state": {"host_skills": "HIDDEN"}})),
        line(5, "turn_context", json!({"cwd": "/home/dev/project/sub"})),
        item(
            7,
            json!({"type": "message", "id": "m7", "role": "user",
            "content": [{"type": "input_text", "text": "hello from codex"}],
            "internal_chat_message_metadata_passthrough": {"content_item_metadata": [{"provenance": {"type": "user"}}]}}),
        ),
        line(
            8,
            "event_msg",
            json!({"type": "item_completed", "item": {"type": "UserMessage",
            "content": [{"type": "text", "text": "hello from codex"}]}}),
        ),
        item(
            10,
            json!({"type": "reasoning", "id": "r", "summary": [{"text": "HIDDEN"}], "encrypted_content": "x"}),
        ),
        message(12, "assistant", "Hi from the mock."),
        line(13, "token_usage_record", json!({})),
        line(14, "event_msg", json!({"type": "thread_name_updated", "thread_name": "Greeting"})),
        line(
            15,
            "compacted",
            json!({"message": "We greeted.", "replacement_history": [{"type": "message"}]}),
        ),
        line(16, "brand_new", json!({})),
        item(17, json!({"type": "brand_new"})),
    ];
    let (said, about, counts) = read(Format::Codex, &file(&lines));
    assert_eq!(
        lines_of(&said),
        ["User: hello from codex", "Assistant: Hi from the mock.", "User: We greeted."]
    );
    let keys: Vec<&str> = said.iter().map(|said| said.key.as_str()).collect();
    assert_eq!(keys, ["m7", "ordinal:12", "ordinal:15"]);
    assert_eq!(said.iter().map(|said| said.is_summary).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!((said[0].branch.as_deref(), said[0].time), (Some("main"), Some(1_795_183_132_243)));
    assert_eq!(said[0].worktree.as_deref(), Some("/home/dev/project/sub"));
    assert_eq!((about.session.as_deref(), about.title.as_deref()), (Some("s1"), Some("Greeting")));
    assert_eq!(counts.unknown.keys().collect::<Vec<_>>(), ["brand_new", "item brand_new"]);
}

#[test]
fn text_that_the_user_did_not_write_is_left_out() {
    let put_in = [
        "<environment_context>\n  <cwd>HIDDEN</cwd>\n</environment_context>",
        "<user_instructions>\n\nHIDDEN\n\n</user_instructions>",
        "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nHIDDEN\n</INSTRUCTIONS>",
        "<permissions instructions>HIDDEN</permissions instructions>",
        "<turn_aborted>\nHIDDEN\n</turn_aborted>",
    ];
    for text in put_in {
        assert_eq!(lines_of(&all(&[message(1, "user", text)])), Vec::<String>::new(), "{text}");
    }
    let from_editor =
        "# Context from my IDE setup:\n\n## Open tabs:\n- HIDDEN\n\n## My request for Codex:\nfix it\n";
    assert_eq!(lines_of(&all(&[message(1, "user", from_editor)])), ["User: fix it"]);
}

#[test]
fn a_call_is_read_in_each_of_its_forms() {
    let shell = |arguments: Value| {
        json!({"type": "function_call", "name": "shell", "call_id": "c",
        "arguments": arguments.to_string()})
    };
    let output = |output: Value| json!({"type": "function_call_output", "call_id": "c", "output": output});
    let call = shell(json!({"command": ["bash", "-lc", "ls -a"], "workdir": "/p"}));
    let outputs = [
        (json!("{\"output\":\"a\\nb\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}"), "ok"),
        (json!("Exit code: 2\nWall time: 0.1 seconds\nOutput:\na\nb"), "failed"),
        (
            json!(
                "Chunk ID: x\nWall time: 0.1 seconds\nProcess exited with code 0\nOriginal token count: 9\nOutput:\na\nb"
            ),
            "ok",
        ),
        (json!("Wall time: 1 seconds\nOutput:\n[{\"type\":\"text\",\"text\":\"a\\nb\"}]"), "answered"),
        (json!({"content": "a\nb", "success": false}), "failed"),
        (json!([{"type": "input_text", "text": "a\nb"}]), "answered"),
        (json!("a\nb"), "answered"),
    ];
    for (given, word) in outputs {
        let said = called(call.clone(), output(given.clone()));
        assert_eq!(said.text, format!("shell: ls -a\n{word}:\na\nb"), "{given}");
    }
    let exec = shell(json!({"cmd": "ls"}));
    assert_eq!(called(exec, output(json!("x"))).text, "shell: ls\nanswered:\nx");
    let mcp = json!({"type": "function_call", "name": "look_up", "namespace": "mcp__docs__",
        "call_id": "c", "arguments": "{\"query\":\"why\"}"});
    assert_eq!(called(mcp, output(json!("x"))).text, "mcp__docs__look_up: why\nanswered:\nx");
    let broken = json!({"type": "function_call", "name": "f", "call_id": "c", "arguments": "not json"});
    assert_eq!(called(broken, output(json!(""))).text, "f: not json\nanswered");
    let searched = all(&[item(
        1,
        json!({"type": "web_search_call", "status": "completed",
        "action": {"type": "search", "query": "sqlite wal"}}),
    )]);
    assert_eq!(lines_of(&searched), ["Tool: web_search: sqlite wal\nok"]);
}

#[test]
fn a_patch_names_its_files() {
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-let x = 1;\n+let x = 2;\n*** Add File: b.md\n+# B\n\
        *** End Patch";
    let calls = [
        json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "c", "input": patch}),
        json!({"type": "function_call", "name": "apply_patch", "call_id": "c",
            "arguments": json!({"command": ["bash", "-lc", format!("apply_patch <<'E'\n{patch}\nE")]}).to_string()}),
    ];
    for call in calls {
        let said = called(
            call,
            json!({"type": "custom_tool_call_output", "call_id": "c",
            "output": "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated: M src/a.rs"}),
        );
        assert_eq!(said.text, "apply_patch: src/a.rs b.md: `let x = 1;` → `let x = 2;`\nok");
        assert_eq!((said.files.join(" "), !said.written.is_empty()), ("src/a.rs b.md".to_owned(), true));
    }
}

#[test]
fn the_event_of_a_calls_end_is_the_same_call() {
    let completed = |ordinal: u64, item: Value| {
        line(ordinal, "event_msg", json!({"type": "item_completed", "turn_id": "t", "item": item}))
    };
    let command = json!({"type": "CommandExecution", "id": "c1", "command": ["/bin/bash", "-lc", "make"],
        "status": "failed", "aggregated_output": "no rule\n", "exit_code": 2});
    let call = json!({"type": "function_call", "name": "exec_command", "call_id": "c1", "arguments": "{\"cmd\":\"make\"}"});
    let output = json!({"type": "function_call_output", "call_id": "c1", "output": "Process exited with code 2\nno rule"});
    let lines = [item(1, call), completed(2, command.clone()), item(3, output)];
    let (said, _, counts) = read(Format::Codex, &file(&lines));
    assert_eq!(lines_of(&said), ["Tool: exec_command: make\nfailed:\nno rule"]);
    assert_eq!(counts.unknown.get("result without a call"), None);

    // In code mode only the events contain the calls, and the output of the script repeats their results.
    let script =
        "const r = await tools.exec_command({cmd: 'make'}); text(await tools.mcp__tiro__x({query: 'why'}))";
    let tiro = json!({"type": "McpToolCall", "id": "c2", "server": "tiro", "tool": "x", "arguments": {"query": "why"},
        "status": "completed", "result": {"content": [{"type": "text", "text": "ANSWER"}], "isError": false}});
    let other = json!({"type": "McpToolCall", "id": "c3", "server": "x", "tool": "y", "arguments": {"n": 1},
        "status": "completed", "result": {"content": [{"type": "text", "text": "no"}], "isError": true}});
    let change = json!({"type": "FileChange", "id": "c4", "status": "completed", "stdout": "Success", "stderr": "",
        "changes": {"/p/a.txt": {"type": "update", "unified_diff": "@@ -1,2 +1,2 @@\n-hi\n+hello\n"}}});
    let lines = [
        item(1, json!({"type": "custom_tool_call", "call_id": "e", "name": "exec", "input": script})),
        completed(2, command),
        completed(3, tiro),
        completed(4, other),
        completed(5, change),
        item(6, json!({"type": "custom_tool_call_output", "call_id": "e", "output": "ANSWER"})),
    ];
    let said = all(&lines);
    let expected = [
        "Tool: exec_command: make\nfailed:\nno rule",
        "Tool: mcp__x__y\nfailed:\nno",
        "Tool: apply_patch: /p/a.txt: `hi` → `hello`\nok",
    ];
    assert_eq!(lines_of(&said), expected);
    assert_eq!(said[2].files, ["/p/a.txt"]);
}

#[test]
fn a_compaction_leaves_one_summary() {
    let mut output = message(1, "assistant", "We committed.");
    output["metadata"] = json!({"compaction_output": true});
    let introduced = "Another language model started to solve this problem. Here is the summary, \
        use the information in this summary to assist with your own analysis:\nWe committed.";
    let said = all(&[output, line(2, "compacted", json!({"message": introduced}))]);
    assert_eq!(lines_of(&said), ["User: We committed."]);
    assert!(said[0].is_summary);
}

#[test]
fn a_plan_of_steps_is_a_to_do_list() {
    let plan = r#"{"explanation":"so","plan":[{"step":"Read the code","status":"completed"},{"step":"Fix it","status":"pending"}]}"#;
    let call = json!({"type": "function_call", "name": "update_plan", "call_id": "c", "arguments": plan});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "Plan updated"});
    assert_eq!(
        called(call, output).text,
        "update_plan: 1 of 2 done\n[x] Read the code\n[ ] Fix it\nanswered"
    );
}

#[test]
fn a_dialog_states_what_was_chosen() {
    let asked = json!({"questions": [{"id": "color", "header": "Color", "question": "Which color?",
        "options": [{"label": "Blue", "description": "Cheap"}, {"label": "Red", "description": "Old"}]}]});
    let call = json!({"type": "function_call", "name": "request_user_input", "call_id": "c1",
        "arguments": asked.to_string()});
    let chosen = json!({"answers": {"color": {"answers": ["Blue", "user_note: light"]}}}).to_string();
    let said = called(call, json!({"type": "function_call_output", "call_id": "c1", "output": chosen}));
    let answered = "User has answered your questions: \"Which color?\"=\"Blue; user_note: light\".";
    assert!(said.text.ends_with(answered), "{}", said.text);
    assert_eq!(said.speaker.as_deref(), Some("request_user_input"));
}

#[test]
fn a_fork_and_a_sub_agent_name_where_they_come_from() {
    let mut fork = meta("s2");
    fork["payload"]["forked_from_id"] = json!("s1");
    let (said, about, _) =
        read(Format::Codex, &file(&[fork, meta("s1"), meta("s0"), message(1, "user", "x")]));
    assert_eq!((about.session.as_deref(), about.aliases.join(" ").as_str()), (Some("s2"), "s1 s0"));
    assert!(!said[0].is_subagent);
    let mut agent = meta("s3");
    agent["payload"]["source"] =
        json!({"subagent": {"thread_spawn": {"parent_thread_id": "s1", "depth": 1}}});
    let (said, about, _) = read(Format::Codex, &file(&[agent, message(1, "user", "x")]));
    assert!(said[0].is_subagent && about.aliases == ["s1"]);
}
