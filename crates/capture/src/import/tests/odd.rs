//! Tests that a message is not lost because part of it is odd, and that a prompt about the tags of clients stays a
//! prompt.

use serde_json::{Value, json};

use super::{file, lines_of, read};
use crate::import::transcript::{About, Format, Transcript};

fn claude(content: &Value) -> Value {
    json!({"type": "user", "uuid": "1", "message": {"role": "user", "content": content}})
}

fn codex(text: &str) -> Value {
    let content = json!([{"type": "input_text", "text": text}]);
    json!({"type": "response_item", "payload": {"type": "message", "id": "1", "role": "user", "content": content}})
}

fn gemini(content: &Value) -> Value {
    json!({"id": "1", "type": "user", "content": content})
}

fn texts(client: Format, line: &Value) -> Vec<String> {
    lines_of(&read(client, &file(std::slice::from_ref(line))).0)
}

#[test]
fn a_damaged_line_is_read_as_far_as_possible_and_counted() {
    let good = claude(&json!("hello")).to_string();
    let half = good.replace("hello", r"hel\ud83dlo");
    let (before, after) = good.split_once("lo\"").unwrap();
    let bytes = [before.as_bytes(), b"\xc3(lo\"", after.as_bytes()].concat();
    let control = good.replace("hello", "hel\u{1}lo");
    for (line, text, replaced, unreadable) in [
        (half.clone().into_bytes(), "hel\u{fffd}lo", 1, 0),
        (bytes, "hel\u{fffd}(lo", 1, 0),
        (control.into_bytes(), "hel lo", 1, 0),
        (format!("\0\0\0{good}").into_bytes(), "hello", 0, 0),
        (format!("{{\"type\":\"mode\"}}{good}").into_bytes(), "hello", 0, 0),
        (format!("[{good}]").into_bytes(), "hello", 0, 0),
        (format!("{}{good}", &good[..40]).into_bytes(), "hello", 0, 1),
        (format!("{good}{}", &good[..40]).into_bytes(), "hello", 0, 1),
    ] {
        let (said, _, counts) = read(Format::ClaudeCode, &line);
        let shown = String::from_utf8_lossy(&line);
        assert_eq!(lines_of(&said), [format!("User: {text}")], "{shown}");
        assert_eq!((counts.replaced, counts.unreadable), (replaced, unreadable), "{shown}");
    }
}

#[test]
fn half_a_character_in_the_arguments_of_a_call_is_replaced() {
    let call = r#"{"type":"response_item","payload":{"type":"function_call","call_id":"c","name":"shell","arguments":"{\"cmd\":\"echo \\ud83d hi\"}"}}"#;
    let (said, _, counts) = read(Format::Codex, call.as_bytes());
    assert!(said[0].text.contains("echo \u{fffd} hi"), "{said:?}");
    assert_eq!(counts.replaced, 1);
}

#[test]
fn values_of_other_types_are_read() {
    for (content, text) in [
        (json!(42), "42"),
        (json!(true), "true"),
        (json!({"type": "text", "text": "one"}), "one"),
        (json!(["plain", {"type": "text", "text": "one"}]), "plain\n\none"),
        (json!([{"type": "hologram"}, {"type": "text", "text": 7}]), "7"),
        (json!([{"type": "text", "text": {"text": "in"}}]), "in"),
    ] {
        assert_eq!(texts(Format::ClaudeCode, &claude(&content)), [format!("User: {text}")]);
    }
    let line = json!({"type": "user", "uuid": "1", "message": "plain", "timestamp": 1_770_000_000_000_i64});
    let (said, _, _) = read(Format::ClaudeCode, &file(&[line]));
    assert_eq!((said[0].text.as_str(), said[0].time), ("plain", Some(1_770_000_000_000)));
    let unknown = json!([{"type": "hologram", "data": 1}, {"type": "input_text", "text": "kept"}]);
    let line =
        json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": unknown}});
    let (said, _, counts) = read(Format::Codex, &file(&[line]));
    assert_eq!((lines_of(&said), counts.unknown["block hologram"]), (vec!["User: kept".to_owned()], 1));
    let (said, _, counts) =
        read(Format::Gemini, &file(&[gemini(&json!([{"hologram": 1}, {"text": "kept"}]))]));
    assert_eq!((lines_of(&said), counts.unknown["part hologram"]), (vec!["User: kept".to_owned()], 1));
    assert_eq!(texts(Format::Gemini, &gemini(&json!(5))), ["User: 5"]);
}

#[test]
fn a_line_that_is_too_long_is_read_as_far_as_it_is_kept() {
    let mut transcript = Transcript::new(Format::ClaudeCode, About::default());
    transcript.cut(0, claude(&json!("hello")).to_string().as_bytes(), 200_000_000);
    assert_eq!(lines_of(&transcript.rest()), ["User: hello"]);
    assert_eq!((transcript.counts().shortened, transcript.counts().cut), (1, 0));
    transcript.cut(1, b"{\"type\":\"user\",\"mess", 200_000_000);
    assert_eq!((transcript.counts().shortened, transcript.counts().cut), (1, 1));
}

#[test]
fn a_prompt_about_tags_stays_a_prompt() {
    for text in [
        "Our importer keeps <command-name>/clear</command-name>; use quick-xml.",
        "<command-name>/clear</command-name> is shown twice; use quick-xml.",
        "Show <bash-input>ls</bash-input> in teal.",
        "The log shows <system-reminder>x</system-reminder>, why?",
        "<system-reminder> is in my log, why?",
        "Keep this:\n```xml\n<system-reminder>\nx\n</system-reminder>\n<bash-input>\nls\n</bash-input>\n```\nas it is.",
        "[Request interrupted by user] is shown too often, hide it",
        "This session is being continued from a previous conversation: who writes that?",
    ] {
        assert_eq!(texts(Format::ClaudeCode, &claude(&json!(text))), [format!("User: {text}")]);
    }
    for text in [
        "Why does <environment_context> name zsh?",
        "Parse <environment_context><cwd>/x</cwd></environment_context> too.",
        "# AGENTS.md instructions are too long, shorten them",
        "<permissions instructions> is empty, why?",
        "What does <user_shell_command><command>ls</command></user_shell_command> do?",
        "# Context from my IDE setup is missing",
    ] {
        assert_eq!(texts(Format::Codex, &codex(text)), [format!("User: {text}")]);
    }
    for text in [
        "<state_snapshot> is shown in the chat, hide it",
        "Where does <state_snapshot>x</state_snapshot> go?",
    ] {
        let (said, _, _) = read(Format::Gemini, &file(&[gemini(&json!(text))]));
        assert_eq!((lines_of(&said), said[0].is_summary), (vec![format!("User: {text}")], false));
    }
}

#[test]
fn what_clients_add_around_a_prompt_is_left_out() {
    for (text, prompt) in [
        ("<ide_opened_file>HIDDEN</ide_opened_file>\nfix it", "fix it"),
        ("fix it\n<system-reminder>\nHIDDEN\n</system-reminder>\n", "fix it"),
        ("<bash-stdout>HIDDEN</bash-stdout><bash-stderr>HIDDEN</bash-stderr>\nfix it", "fix it"),
        ("[Request interrupted by user]\n\nfix it", "fix it"),
        ("<command-message>r</command-message>\n<command-name>/r</command-name>", "/r"),
    ] {
        assert_eq!(texts(Format::ClaudeCode, &claude(&json!(text))), [format!("User: {prompt}")]);
    }
}

#[test]
fn copies_name_their_originals() {
    let mut line = claude(&json!("hello"));
    line["sessionId"] = json!("fork");
    line["forkedFrom"] = json!({"sessionId": "orig", "messageUuid": "0"});
    let (said, about, _) = read(Format::ClaudeCode, &file(&[line]));
    let copy = said[0].copy_of.as_ref().unwrap();
    assert_eq!((said[0].key.as_str(), copy.session.as_str(), copy.own.as_deref()), ("0", "orig", Some("1")));
    assert_eq!(about.aliases, ["orig"]);
    let meta = |id: &str, more: Value| {
        let mut meta =
            json!({"type": "session_meta", "payload": {"id": id, "timestamp": "2026-01-01T00:00:00Z"}});
        meta["payload"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        meta
    };
    for lines in [
        vec![meta("fork", json!({"forked_from_id": "orig"}))],
        vec![meta("fork", json!({"source": {"subagent": {"thread_spawn": {"parent_thread_id": "orig"}}}}))],
        vec![meta("fork", json!({})), meta("orig", json!({"forked_from_id": "older"}))],
    ] {
        let forked = read(Format::Codex, &file(&lines)).1.forked.unwrap();
        assert_eq!((forked.from.as_str(), forked.at), ("orig", Some(1_767_225_600_000)));
    }
    assert_eq!(read(Format::Codex, &file(&[meta("s", json!({"session_id": "s"}))])).1.forked, None);
}
