//! Tests with lines of Claude Code, captured from version 2.1.329 and shortened.

use serde_json::{Value, json};

use super::{file, lines_of, read};
use crate::import::transcript::{About, Format, Transcript, TranscriptEntry};
use tiro_base::memory::Role;

fn user(uuid: &str, content: Value) -> Value {
    json!({"parentUuid": null, "isSidechain": false, "promptId": "p", "type": "user",
        "message": {"role": "user", "content": content}, "uuid": uuid,
        "timestamp": "2026-11-20T13:54:20.735Z", "permissionMode": "default", "userType": "external",
        "cwd": "/home/dev/project", "sessionId": "s1", "version": "2.1.329", "gitBranch": "main"})
}

fn assistant(uuid: &str, block: Value) -> Value {
    json!({"isSidechain": false, "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "content": [block], "model": "claude-opus-5-5", "usage": {"input_tokens": 1}}, "type": "assistant",
        "uuid": uuid, "timestamp": "2026-11-20T13:54:20.845Z", "cwd": "/home/dev/project", "sessionId": "s1",
        "gitBranch": "main"})
}

fn call(id: &str, name: &str, input: Value) -> Value {
    assistant(&format!("u-{id}"), json!({"type": "tool_use", "id": id, "name": name, "input": input}))
}

fn result(id: &str, content: Value) -> Value {
    user(&format!("r-{id}"), json!([{"tool_use_id": id, "type": "tool_result", "content": content}]))
}

fn with(mut line: Value, name: &str, value: Value) -> Value {
    line[name] = value;
    line
}

fn all(lines: &[Value]) -> Vec<TranscriptEntry> {
    read(Format::ClaudeCode, &file(lines)).0
}

fn texts(lines: &[Value]) -> Vec<String> {
    lines_of(&all(lines))
}

/// Returns the text of the entry for one call with its result.
fn called(name: &str, input: Value, output: Value) -> String {
    let said = all(&[call("t1", name, input), result("t1", output)]);
    assert_eq!(said.len(), 1);
    said[0].text.clone()
}

#[test]
fn a_session_is_read_in_order() {
    let lines = [
        json!({"type": "queue-operation", "operation": "enqueue", "content": "hello there", "sessionId": "s1"}),
        json!({"type": "attachment", "uuid": "a", "attachment": {"type": "hook_additional_context",
            "content": ["RECALLED"]}, "rendered": [{"content": "<system-reminder>RECALLED</system-reminder>"}]}),
        user("1", json!("hello there")),
        json!({"type": "api-request-blob", "note": "the whole PROMPT"}),
        json!({"type": "api-request-of-the-future", "note": "the whole PROMPT"}),
        assistant("2", json!({"type": "thinking", "thinking": "HIDDEN", "signature": "x"})),
        assistant("3", json!({"type": "text", "text": "Hi from the mock."})),
        json!({"type": "system", "subtype": "stop_hook_summary", "uuid": "5"}),
        json!({"type": "brand-new", "text": "UNKNOWN"}),
        json!({"type": "custom-title", "customTitle": "Greeting", "sessionId": "s1"}),
        json!({"type": "ai-title", "aiTitle": "Other", "sessionId": "s1"}),
    ];
    let (said, about, counts) = read(Format::ClaudeCode, &file(&lines));
    assert_eq!(lines_of(&said), ["User: hello there", "Assistant: Hi from the mock."]);
    let first = TranscriptEntry {
        key: "1".into(),
        role: Role::User,
        speaker: None,
        text: "hello there".into(),
        time: Some(1_795_182_860_735),
        since: Some(1_795_182_860_735),
        until: Some(1_795_182_860_735),
        branch: Some("main".into()),
        worktree: Some("/home/dev/project".into()),
        files: vec![],
        written: Vec::new(),
        commits: None,
        is_summary: false,
        is_subagent: false,
        fingerprint: None,
        copy_of: None,
    };
    assert_eq!(said[0], first);
    assert_eq!((about.session.as_deref(), about.title.as_deref()), (Some("s1"), Some("Greeting")));
    assert_eq!(counts.unknown.into_iter().collect::<Vec<_>>(), [("brand-new".to_owned(), 1)]);
    assert_eq!(counts.skipped["api-request-of-the-future"], 1);
    assert_eq!((counts.skipped["thinking"], counts.skipped["attachment"], counts.lines), (1, 1, 11));
}

#[test]
fn the_title_of_another_session_at_the_beginning_of_a_file_is_no_title() {
    let title = |title: &str, of: &str| json!({"type": "summary", "summary": title, "leafUuid": of});
    let lines =
        [title("Paint of the crane", "0"), title("Oil for the winch", "1"), user("1", json!("Oil it."))];
    let found = |lines: &[Value]| read(Format::ClaudeCode, &file(lines)).1.title;
    assert_eq!(found(&lines).as_deref(), Some("Oil for the winch"));
    assert_eq!(found(&[lines[0].clone(), lines[2].clone()]), None);
}

#[test]
fn text_that_the_user_did_not_write_is_left_out() {
    let put_in = [
        "<system-reminder>\nHIDDEN\n</system-reminder>",
        "<system-reminder>\nHIDDEN, and never closed",
        "<local-command-caveat>HIDDEN</local-command-caveat>",
        "<local-command-stdout>HIDDEN</local-command-stdout>",
        "<bash-stdout>HIDDEN</bash-stdout><bash-stderr></bash-stderr>",
        "<task-notification>\n<task-id>HIDDEN</task-id>\n</task-notification>",
        "[Request interrupted by user for tool use]",
    ];
    for text in put_in {
        assert_eq!(texts(&[user("1", json!(text))]), Vec::<String>::new(), "{text}");
    }
    for flag in ["isMeta", "isVisibleInTranscriptOnly"] {
        assert_eq!(texts(&[with(user("1", json!("HIDDEN")), flag, json!(true))]), Vec::<String>::new());
    }
    let error =
        with(assistant("1", json!({"type": "text", "text": "API Error"})), "isApiErrorMessage", json!(true));
    assert_eq!(texts(&[error]), Vec::<String>::new());
    let around = "Why <T>?<system-reminder>\nHIDDEN</system-reminder> Tell me.";
    assert_eq!(texts(&[user("1", json!(around))]), ["User: Why <T>? Tell me."]);
}

#[test]
fn commands_and_shell_lines_are_kept_as_typed() {
    let compact = "<command-name>/compact</command-name>\n <command-message>compact</command-message>\n \
        <command-args>keep decisions</command-args>";
    assert_eq!(texts(&[user("1", json!(compact))]), ["User: /compact keep decisions"]);
    assert_eq!(texts(&[user("1", json!("<bash-input>git status</bash-input>"))]), ["User: ! git status"]);
}

#[test]
fn a_prompt_typed_while_the_assistant_worked_is_in_an_attachment_only() {
    let queued = |attachment: Value| {
        let mut line = with(user("q", json!("")), "type", json!("attachment"));
        line.as_object_mut().unwrap().remove("message");
        with(line, "attachment", attachment)
    };
    let typed = json!({"type": "queued_command", "prompt": "also on macOS", "commandMode": "prompt"});
    assert_eq!(texts(&[queued(typed.clone())]), ["User: also on macOS"]);
    let notified = with(typed, "commandMode", json!("task-notification"));
    assert_eq!(texts(&[queued(notified)]), Vec::<String>::new());
}

#[test]
fn a_compaction_leaves_one_summary_without_its_instructions() {
    let text = "This session is being continued from a previous conversation that ran out of context. The summary \
        below covers the earlier portion.\n\n<system-reminder>HIDDEN</system-reminder>\nSummary:\nWe chose SQLite.\n\n\
        If you need specific details from before compaction (like exact code), read HIDDEN.jsonl\nContinue the \
        conversation from where it left off.";
    let line = with(user("1", json!(text)), "isCompactSummary", json!(true));
    let said = all(&[with(line, "isVisibleInTranscriptOnly", json!(true))]);
    assert_eq!((said[0].text.as_str(), said[0].is_summary), ("We chose SQLite.", true));
}

#[test]
fn a_call_and_its_result_are_one_entry() {
    let output = "test a ... ok\ntest b ... FAILED";
    let lines = [
        call("t1", "Bash", json!({"command": "cargo test -p x", "description": "Run the tests"})),
        with(
            user(
                "r",
                json!([{"tool_use_id": "t1", "type": "tool_result", "content": output, "is_error": true}]),
            ),
            "toolUseResult",
            json!({"stdout": "AGAIN", "bashEditDiff": {"changedFiles": ["/p/Cargo.lock"]}}),
        ),
    ];
    let said = all(&lines);
    assert_eq!(said.len(), 1);
    assert_eq!(
        (said[0].key.as_str(), said[0].role, said[0].speaker.as_deref()),
        ("t1", Role::Tool, Some("Bash"))
    );
    assert_eq!(said[0].text, "Bash: cargo test -p x\nfailed:\ntest a ... ok\ntest b ... FAILED");
    assert_eq!(
        (said[0].files.as_slice(), !said[0].written.is_empty()),
        (&["/p/Cargo.lock".to_owned()][..], true)
    );
}

#[test]
fn the_gist_of_a_call_has_its_main_arguments() {
    let gist = |name: &str, input: Value| called(name, input, json!("")).lines().next().unwrap().to_owned();
    let edit =
        json!({"file_path": "/p/a.rs", "old_string": "\n  let x = 1;\n}", "new_string": "  let x = 2;"});
    assert_eq!(gist("Edit", edit), "Edit: /p/a.rs: `let x = 1;` → `let x = 2;`");
    let edits = json!([{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]);
    assert_eq!(
        gist("MultiEdit", json!({"file_path": "a", "edits": edits})),
        "MultiEdit: a: `a` → `b` and 1 more"
    );
    // Guards against a former fault: if only later lines differ, the same first line was shown twice.
    let edit = |old: &str, new: &str| json!({"file_path": "a", "old_string": old, "new_string": new});
    for (old, new, said) in [
        ("fn a() {\n    one();\n}", "fn a() {\n    two();\n}", "`one();` → `two();`"),
        ("fn a() {\n}", "fn a() {\n    two();\n}", "with `two();`"),
        ("fn a() {\n    one();\n}", "fn a() {\n}", "without `one();`"),
        ("a  b\n", " a  b", "only spaces differ"),
    ] {
        assert_eq!(gist("Edit", edit(old, new)), format!("Edit: a: {said}"));
    }
    let long = "word ".repeat(20);
    let said = gist("Edit", edit(&format!("{long}is one"), &format!("{long}is two")));
    assert_eq!(said, "Edit: a: `…one` → `…two`");
    assert_eq!(gist("Write", json!({"file_path": "a", "content": "# T\nx"})), "Write: a: 2 lines, `# T`");
    assert_eq!(gist("Grep", json!({"path": "src", "pattern": "fn main"})), "Grep: fn main · src");
    assert_eq!(
        gist("WebFetch", json!({"prompt": "why?", "url": "https://a.b"})),
        "WebFetch: https://a.b · why?"
    );
    let input = json!({"name": "D", "prompt": "C", "description": "B", "subagent_type": "A"});
    assert_eq!(gist("Agent", input), "Agent: A · B · C");
    let asked = json!({"questions": [{"question": "Which?", "options": [{"label": "A"}]}]});
    assert_eq!(gist("AskUserQuestion", asked), "AskUserQuestion: Which?");
    assert_eq!(gist("Strange", json!([1, null])), "Strange");
    let long = gist("Bash", json!({"command": "x ".repeat(9000)}));
    assert!(long.chars().count() <= 300 && long.ends_with('…'), "{long}");
}

#[test]
fn files_are_named_as_the_call_named_them() {
    let said = all(&[
        call("t1", "Read", json!({"file_path": "/p/a.rs"})),
        result("t1", json!("1\tfn a() {}")),
        call("t2", "Edit", json!({"file_path": "/p/b.rs", "old_string": "a", "new_string": "b"})),
        result("t2", json!("The file /p/b.rs has been updated. Here is all of it: fn a() {}")),
        call("t3", "Grep", json!({"pattern": "x", "path": "src"})),
        result("t3", json!("No matches")),
    ]);
    let files: Vec<_> = said.iter().map(|said| (said.files.join(" "), !said.written.is_empty())).collect();
    assert_eq!(files, [("/p/a.rs".to_owned(), false), ("/p/b.rs".to_owned(), true), (String::new(), false)]);
    assert!(said[0].text.ends_with("\nok:\n1\tfn a() {}"), "{}", said[0].text);
    assert!(said[1].text.ends_with("`a` → `b`\nok"), "{}", said[1].text);
}

#[test]
fn an_output_is_cut_in_the_middle_with_the_length_of_the_gap() {
    let lines: Vec<String> = (0..9000).map(|n| format!("line {n} of the log")).collect();
    let output = lines.join("\n");
    let text = called("Bash", json!({"command": "make"}), json!(output));
    let body = text.strip_prefix("Bash: make\nok:\n").unwrap();
    assert!(body.starts_with("line 0 of the log\n") && body.ends_with("\nline 8999 of the log"), "{body}");
    assert!(body.chars().count() < 1230, "{}", body.chars().count());
    let (head, rest) = body.split_once("\n[… ").unwrap();
    let (left, tail) = rest.split_once(" bytes]\n").unwrap();
    assert_eq!(left.parse::<usize>().unwrap() + head.len() + tail.len(), output.len());
    // The limit of an output is in characters, so an output with more bytes than that may still be shown whole.
    let short = "é".repeat(1200);
    assert!(called("Bash", json!({"command": "x"}), json!(short)).ends_with(&format!("\n{short}")));
    let reading = called("Read", json!({"file_path": "a"}), json!(lines.join("\n")));
    assert!(reading.chars().count() < 400, "{reading}");
}

#[test]
fn images_and_blobs_are_named_never_shown() {
    let blob = "iVBORw0KGgoAAAANSUhEUg0KGgoAAAANSUhEUg".repeat(20);
    let image =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": blob}});
    let prompt = user("1", json!([{"type": "text", "text": "Look:"}, image]));
    assert_eq!(texts(&[prompt]), ["User: Look:\n\n[image/png, 570 bytes]"]);
    assert_eq!(
        called("Read", json!({"file_path": "a.png"}), json!([image])),
        "Read: a.png\nok:\n[image/png, 570 bytes]"
    );
    let wrapped: Vec<&str> =
        blob.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    for blob in [blob.clone(), format!("data:image/png;base64,{blob}"), wrapped.join("\n")] {
        let text = called("Bash", json!({"command": "cat x"}), json!(format!("before {blob} after")));
        assert!(!text.contains("iVBOR") && text.contains("[blob, 7"), "{text}");
        assert!(text.contains("before ") && text.contains(" after"), "{text}");
    }
    let coloured =
        called("Bash", json!({"command": "x"}), json!("\u{1b}[32mok\u{1b}[0m\u{0}\n10%\r99%\rdone\r\n"));
    assert_eq!(coloured, "Bash: x\nok:\nok\ndone");
}

#[test]
fn private_passages_are_removed_wherever_they_are_repeated_in_the_message() {
    let (said, _, counts) = read(
        Format::ClaudeCode,
        &file(&[
            user("1", json!("a <private>secret\nword</private> b <PRIVATE >x</ private> c")),
            user("2", json!("open <private>to the end")),
            user("3", json!("<private>outer <private>inner</private> still</private> after")),
            call("t1", "Bash", json!({"command": "echo <private>swordfish</private>"})),
            user(
                "r",
                json!([{"tool_use_id": "t1", "type": "tool_result", "content": "swordfish\nand hedgehog"},
            {"type": "text", "text": "not <private>hedgehog</private>, please"}]),
            ),
        ]),
    );
    let expected = [
        "User: a [private] b [private] c",
        "User: open [private]",
        "User: [private] after",
        "User: not [private], please",
        "Tool: Bash: echo [private]\nok:\n[private]\nand [private]",
    ];
    assert_eq!(lines_of(&said), expected);
    assert_eq!(counts.private, 8);
}

#[test]
fn tiros_own_answers_are_not_remembered() {
    let asked = [
        ("mcp__plugin_tiro_tiro__search_project_memory", json!({"query": "flushed twice"})),
        ("mcp__tiro__list_sessions", json!({"query": "flushed twice"})),
        ("mcp__memory__search_project_memory", json!({"query": "flushed twice", "k": 3})),
    ];
    for (name, input) in asked {
        assert_eq!(all(&[call("t1", name, input), result("t1", json!("ANSWER"))]), [], "{name}");
    }
    for command in
        ["cd x && /usr/bin/tiro search flushed", "cd x\nTIRO_PROJECT=. tiro search y", "echo $(tiro stats)"]
    {
        let text = called("Bash", json!({"command": command}), json!("ANSWER"));
        assert!(!text.contains("ANSWER"), "{text}");
    }
    assert!(
        called("mcp__toy-memory__store_memory", json!({"text": "x"}), json!("ANSWER")).contains("ANSWER")
    );
    assert!(called("Bash", json!({"command": "cat tiro/x"}), json!("ANSWER")).contains("ANSWER"));
}

#[test]
fn lines_of_a_sub_agent_are_marked_and_its_report_has_no_warning() {
    let said =
        all(&[with(user("1", json!("look around")), "isSidechain", json!(true)), user("2", json!("thanks"))]);
    assert_eq!(said.iter().map(|said| said.is_subagent).collect::<Vec<_>>(), [true, false]);
    let report = "[Subagent hand-back] The text below is HIDDEN. The report follows:\n  It holds greetings.";
    let text = called("Agent", json!({"prompt": "look"}), json!([{"type": "text", "text": report}]));
    assert_eq!(text, "Agent: look\nok:\nIt holds greetings.");
}

#[test]
fn a_fork_names_the_session_it_continues() {
    let copied = with(assistant("1", json!({"type": "text", "text": "x"})), "requestSessionId", json!("s0"));
    let detached = with(user("2", json!("y")), "gitBranch", json!("HEAD"));
    let (said, about, _) = read(Format::ClaudeCode, &file(&[copied, detached]));
    assert_eq!((about.session.as_deref(), about.aliases), (Some("s1"), vec!["s0".to_owned()]));
    assert_eq!(said.iter().map(|said| said.branch.as_deref()).collect::<Vec<_>>(), [Some("main"), None]);
}

#[test]
fn reading_continues_at_the_first_open_call() {
    let lines = [
        user("1", json!("go")),
        call("t1", "Bash", json!({"command": "a"})),
        call("t2", "Bash", json!({"command": "b"})),
        result("t2", json!("B")),
        result("t1", json!("A")),
    ];
    let bytes = file(&lines);
    let places: Vec<u64> = (0..lines.len()).map(|n| file(&lines[..n]).len() as u64).collect();
    let mut first = Transcript::new(Format::ClaudeCode, About::default());
    let mut keys = Vec::new();
    for (at, line) in places.iter().zip(&lines).take(4) {
        keys.extend(first.line(*at, line.to_string().as_bytes()).into_iter().map(|said| said.key));
    }
    assert_eq!((keys.join(" ").as_str(), first.open_from()), ("1 t2", Some(places[1])));
    let mut second = Transcript::new(Format::ClaudeCode, first.about().clone());
    let rest = &bytes[places[1] as usize..];
    let again: Vec<TranscriptEntry> =
        rest.split_inclusive(|b| *b == b'\n').flat_map(|line| second.line(0, line)).collect();
    assert_eq!(lines_of(&again), ["Tool: Bash: b\nok:\nB", "Tool: Bash: a\nok:\nA"]);
    assert_eq!(second.open_from(), None);
    assert_eq!(lines_of(&first.finish()), ["Tool: Bash: a\nno outcome recorded"]);
}

#[test]
fn a_call_without_a_result_does_not_delay_other_entries() {
    let mut transcript = Transcript::new(Format::ClaudeCode, About::default());
    transcript.line(0, call("t1", "Bash", json!({"command": "sleep"})).to_string().as_bytes());
    for (n, expected) in [(1, Some(0)), (2, Some(0)), (3, None)] {
        let said = transcript.line(n, user(&n.to_string(), json!("next")).to_string().as_bytes());
        assert_eq!((said.len(), transcript.open_from()), (if n == 3 { 2 } else { 1 }, expected), "{n}");
    }
    // A call is also closed if its result is too long to be read.
    transcript.line(9, call("t2", "Bash", json!({"command": "yes"})).to_string().as_bytes());
    let said =
        transcript.cut(10, br#"{"type":"user","message":{"content":[{"tool_use_id":"t2","cont"#, 104_857_600);
    assert_eq!(lines_of(&said), ["Tool: Bash: yes\n[a line of 104857600 bytes, not read]"]);
    assert_eq!((transcript.open_from(), transcript.counts().cut), (None, 1));
}

#[test]
fn repeats_of_a_call_have_one_fingerprint() {
    let said = all(&[
        call("t1", "Bash", json!({"command": "cargo test"})),
        result("t1", json!("ok. 12 passed; finished in 1.27s")),
        call("t2", "Bash", json!({"command": "cargo test"})),
        result("t2", json!("ok. 13 passed; finished in 900ms")),
        call("t3", "Bash", json!({"command": "cargo test"})),
        result("t3", json!("error: could not compile")),
    ]);
    let prints: Vec<u64> = said.iter().map(|said| said.fingerprint.unwrap()).collect();
    assert!(prints[0] == prints[1] && prints[0] != prints[2], "{prints:?}");
}

#[test]
fn a_to_do_list_stays_a_list_and_a_plan_is_a_message() {
    let todos = json!({"todos": [
        {"content": "Write the parser", "status": "completed", "activeForm": "Writing"},
        {"content": "Test  it", "status": "in_progress", "activeForm": "Testing"},
        {"content": "Ship it", "status": "pending", "activeForm": "Shipping"}]});
    assert_eq!(
        called("TodoWrite", todos, json!("Todos have been modified successfully.")),
        "TodoWrite: 1 of 3 done\n[x] Write the parser\n[>] Test it\n[ ] Ship it\nok"
    );
    // Files or questions with a status are no list.
    let other = json!({"files": [{"status": "ok", "path": "a"}], "query": "where"});
    assert!(called("look", other, json!("here")).starts_with("look: where"));
    let plan = json!({"plan": "# Plan\n\n1. Write the parser.\n2. Test it."});
    let lines = [call("t1", "ExitPlanMode", plan), result("t1", json!("User has approved your plan."))];
    assert_eq!(
        texts(&lines),
        [
            "Assistant: # Plan\n\n1. Write the parser.\n2. Test it.",
            "Tool: ExitPlanMode\nok:\nUser has approved your plan."
        ]
    );
    let task = json!({"subject": "Fix login", "description": "The form fails", "activeForm": "Fixing"});
    let created = called("TaskCreate", task, json!("Task #1 created successfully: Fix login"));
    assert!(created.starts_with("TaskCreate: Fix login · The form fails\nok"), "{created}");
    let done = called("TaskUpdate", json!({"taskId": "1", "status": "completed"}), json!("Updated task #1"));
    assert!(done.starts_with("TaskUpdate: 1 · completed\n"), "{done}");
}

#[test]
fn a_generated_transcript_is_read_whole() {
    let made = super::generate::claude_code(3, 1 << 20);
    assert_eq!(made.bytes, super::generate::claude_code(3, 1 << 20).bytes);
    let (said, _, counts) = read(Format::ClaudeCode, &made.bytes);
    let count = |role| said.iter().filter(|said| said.role == role).count();
    let found = (count(Role::User), count(Role::Assistant), count(Role::Tool));
    assert_eq!(found, (made.prompts, made.answers, made.calls));
    assert!(counts.unknown.is_empty() && counts.unreadable == 0 && made.calls > 50, "{counts:?}");
}
