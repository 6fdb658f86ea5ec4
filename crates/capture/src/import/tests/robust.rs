//! Tests that whatever a file contains, reading goes on and reports what was skipped.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{file, lines_of, read};
use crate::import::transcript::{About, Format, Transcript};

const CLIENTS: [Format; 6] =
    [Format::ClaudeCode, Format::Codex, Format::Gemini, Format::Qwen, Format::Copilot, Format::Opencode];

fn prompt(uuid: &str, text: &str) -> Value {
    json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}})
}

#[test]
fn bad_lines_are_counted_and_the_rest_is_read() {
    let mut bytes = Vec::new();
    let good = prompt("1", "hello").to_string();
    let deep = format!("{{\"type\":\"user\",\"message\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    for line in [
        &good.as_bytes()[..30],
        b"[1,2]",
        b"\"text\"",
        b"",
        b"\0\0\0",
        b"{\"type\":7}",
        b"{\"type\":\"user\",\"message\":[]}",
        deep.as_bytes(),
        b"\xef\xbb\xbf{\"type\":\"user\",\"uuid\":\"2\",\"message\":{\"content\":\"caf\xe9\"}}\0\0",
    ] {
        bytes.extend_from_slice(line);
        bytes.push(b'\n');
    }
    bytes.extend(file(&[prompt("1", "hello"), prompt("1", "hello")]));
    let (said, _, counts) = read(Format::ClaudeCode, &bytes);
    assert_eq!(lines_of(&said), ["User: caf\u{fffd}", "User: hello"]);
    assert_eq!((counts.lines, counts.unreadable), (11, 3));
    assert_eq!((counts.skipped["repeated"], counts.unknown["7"], counts.replaced), (1, 1, 1));
}

#[test]
fn odd_types_cost_their_field_only() {
    let line = json!({"type": "user", "uuid": 7, "timestamp": {"a": 1}, "cwd": null, "gitBranch": [], "isMeta": "no",
        "sessionId": 1, "message": {"role": null, "content": [null, 1, {"type": "text", "text": "kept"},
        {"type": "text", "text": 5}, {"type": "tool_result"}, {"type": "tool_use", "id": null, "name": "x"}]}});
    let mut transcript = Transcript::new(Format::ClaudeCode, About::default());
    assert!(transcript.line(42, line.to_string().as_bytes()).is_empty(), "its time may be known later");
    let said = transcript.rest();
    assert_eq!(lines_of(&said), ["User: kept\n\n5"]);
    assert_eq!((said[0].key.as_str(), said[0].time), ("7", None));
    assert_eq!(*transcript.about(), About { session: Some("1".into()), ..About::default() });
}

#[test]
fn deep_arguments_and_long_lists_end() {
    let deep: String = format!("{}1{}", "{\"a\":[".repeat(20_000), "]}".repeat(20_000));
    let line = format!(
        r#"{{"type":"assistant","message":{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"X","input":{deep}}}]}}}}"#
    );
    let mut transcript = Transcript::new(Format::ClaudeCode, About::default());
    transcript.line(0, line.as_bytes());
    assert_eq!(lines_of(&transcript.finish()), ["Tool: X\nno outcome recorded"]);
    let many = format!(r#"{{"type":"user","message":{{"content":[{}0]}}}}"#, "0,".repeat(1_000_000));
    assert!(read(Format::ClaudeCode, many.as_bytes()).0.is_empty());
    let names: Vec<Value> = (0..500).map(|n| json!({"type": format!("type-{n}")})).collect();
    let counts = read(Format::ClaudeCode, &file(&names)).2;
    assert_eq!((counts.unknown.len(), counts.unknown["other"]), (65, 436));
}

#[test]
fn long_names_are_cut_and_too_many_open_calls_are_closed() {
    let long = "x".repeat(100_000);
    let call = |id: &str| {
        json!({"type": "assistant", "uuid": long, "message": {"role": "assistant", "content": [
            {"type": "text", "text": "here"},
            {"type": "tool_use", "id": id, "name": long, "input": {"file_path": long}}]}})
    };
    let (said, _, _) = read(Format::ClaudeCode, &file(&[call("t1")]));
    assert_eq!(lines_of(&said[..1]), ["Assistant: here"]);
    assert!(said.iter().all(|said| said.key.len() < 100 && said.text.len() < 1000), "{said:?}");
    assert!(said[1].files.is_empty() && said[1].speaker.as_ref().unwrap().len() == 512);
    let mut transcript = Transcript::new(Format::ClaudeCode, About::default());
    for at in 0..300 {
        transcript.line(at, call(&format!("t{at}")).to_string().as_bytes());
        transcript.rest();
    }
    assert_eq!((transcript.open_from(), transcript.finish().len()), (Some(44), 256));
}

/// Returns lines of all clients, chosen so that every part of the readers is run.
fn samples() -> Vec<String> {
    let made = super::generate::claude_code(5, 20_000).bytes;
    let mut lines: Vec<String> = String::from_utf8(made).unwrap().lines().map(str::to_owned).collect();
    let more = [
        prompt("9", "a <private>b <private>c</private> d <system-reminder>e</system-reminder> <bash-input>f"),
        json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": [{"type": "text", "text": "x"}]}}),
        json!({"type": "response_item", "payload": {"type": "function_call", "call_id": "c", "name": "shell",
            "arguments": "{\"command\":[\"bash\",\"-lc\",\"*** Begin Patch\\n*** Update File: é\\n-a\\n+b\"]}"}}),
        json!({"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c",
            "output": "Exit code: 1\nWall time: 1\nOutput:\n[{\"type\":\"text\",\"text\":\"é\"}]"}}),
        json!({"id": "1", "type": "gemini", "content": [{"text": "x"}, {"inlineData": {"mimeType": "a/b", "data": "AA"}}],
            "toolCalls": [{"id": "t", "name": "mcp_tiro_x", "args": {"query": "é"}, "status": "success",
            "result": [{"functionResponse": {"response": {"output": "\u{1b}[1mé\u{1b}]0;t\u{7}\r\n"}}}]}]}),
    ];
    lines.extend(more.iter().map(Value::to_string));
    lines.extend(
        [super::qwen::CAPTURED, super::copilot::CAPTURED].iter().flat_map(|it| it.lines()).map(str::to_owned),
    );
    lines.push(json!({"type": "message", "role": "assistant", "time": 1_796_127_648_657_i64, "summary": true, "parts": [
        {"type": "text", "text": "é <private>x</private>"}, {"type": "patch", "files": [{"path": "/a/é"}]},
        {"type": "tool", "id": "c1:1", "name": "edit", "status": "completed", "output": "ok",
            "input": {"filePath": "/a/é", "oldString": "é", "newString": "<private>"}}]}).to_string());
    lines
}

proptest! {
    #[test]
    fn nothing_makes_a_reader_panic(
        line in 0..1000_usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..6_u8, any::<u8>()), 0..12),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        let samples = samples();
        let mut bytes = samples[line % samples.len()].clone().into_bytes();
        for (place, what, byte) in edits {
            let place = place.index(bytes.len().max(1)).min(bytes.len());
            match what {
                0 if place < bytes.len() => bytes[place] = byte,
                1 if place < bytes.len() => { bytes.remove(place); }
                2 => bytes.insert(place, byte),
                3 => { bytes.splice(place..place, *b"<private>"); }
                4 => { bytes.splice(place..place, "é</PRIVATE>".bytes()); }
                _ => { bytes.splice(place..place, *b"\\u0000\",null,[{"); }
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len().max(1)));
        }
        for client in CLIENTS {
            let mut transcript = Transcript::new(client, About::default());
            let mut said = transcript.line(0, &bytes);
            said.extend(transcript.line(1, samples[line % samples.len()].as_bytes()));
            said.extend(transcript.cut(2, &bytes, 9));
            prop_assert_eq!(transcript.counts().lines, 3);
            said.extend(transcript.finish());
            for said in said {
                prop_assert!(!said.key.is_empty() && !said.text.is_empty());
            }
        }
    }

    #[test]
    fn a_private_word_never_gets_through(
        before in "[a-z <>/é\n]{0,40}",
        after in "[a-z <>/é\n]{0,40}",
        closed in any::<bool>(),
        open in prop::sample::select(vec!["<private>", "<Private>", "<PRIVATE >", "< private>"]),
    ) {
        let close = if closed { "</private>" } else { "" };
        let text = format!("{before}{open}xyzzy-17{close}{}", if closed { &after } else { "" });
        let call = json!({"type": "assistant", "uuid": "a", "message": {"role": "assistant", "content": [
            {"type": "text", "text": text},
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": text}}]}});
        let result = json!({"type": "user", "uuid": "b", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": format!("it said xyzzy-17: {text}")}]}});
        let (said, _, counts) = read(Format::ClaudeCode, &file(&[call, result]));
        for said in &said {
            prop_assert!(!said.text.contains("xyzzy-17"), "{}", said.text);
        }
        prop_assert!(said.len() == 2 && counts.private >= 3, "{said:?}");
    }
}

#[test]
fn an_entry_without_a_time_is_bounded_by_the_times_around_it() {
    let says = |id: &str, time: Option<&str>| {
        let mut line = json!({"type": "user", "uuid": id, "message": {"role": "user", "content": id}});
        if let Some(time) = time {
            line["timestamp"] = json!(format!("2026-01-01T00:00:{time}Z"));
        }
        line
    };
    let lines = [
        says("a", None),
        says("b", Some("10")),
        says("c", None),
        // The clock was set back here, so this time is no upper limit for the lines before it.
        says("d", Some("05")),
        says("e", Some("20")),
        says("f", None),
    ];
    let (said, _, _) = read(Format::ClaudeCode, &file(&lines));
    let begins = said[1].time.unwrap() - 10_000;
    let seconds = |time: Option<i64>| time.map(|time| (time - begins) / 1000);
    let bounds: Vec<_> =
        said.iter().map(|said| (said.key.as_str(), seconds(said.since), seconds(said.until))).collect();
    let expected = [
        ("a", None, Some(10)),
        ("b", Some(10), Some(10)),
        ("c", Some(10), Some(20)),
        ("d", Some(5), Some(5)),
        ("e", Some(20), Some(20)),
        ("f", Some(20), None),
    ];
    assert_eq!(bounds, expected);
}
