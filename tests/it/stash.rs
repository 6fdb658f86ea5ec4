//! What is stashed leaves the context, is found again from any session, and comes back byte for byte.

use std::path::Path;

use proptest::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Home, Server, strings};

/// Saves the texts as messages of the session.
fn say(server: &mut Server, session: &str, texts: &[&str]) {
    let message = |(number, text): (usize, &&str)| {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        json!({"id": format!("{session}{number}"), "role": role, "text": text,
            "time": format!("2026-03-01T09:{number:02}:00Z")})
    };
    let messages: Vec<Value> = texts.iter().enumerate().map(message).collect();
    server.data("save_messages", json!({"session_id": session, "messages": messages}));
}

const TALK: [&str; 6] = [
    "The quince press leaks at the lower valve.",
    "Replace the gasket of the lower valve with a nitrile one.",
    "The gasket is replaced and the quince press is dry.",
    "Good. Next is the bottling line.",
    "The bottling line jams on tall bottles.",
    "Raise the guide rail by four millimetres.",
];

/// Starts a server in another process on the same store.
fn again(home: &Home, project: &Path, mut server: Server) -> Server {
    server.hang_up();
    server.wait();
    home.serve(project)
}

#[test]
fn stashed_messages_leave_the_context_and_come_back() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    say(&mut server, "press", &TALK);
    let ask = json!({"query": "what about the bottling line?", "session_id": "press"});
    let whole = server.data("retrieve_context", ask.clone());
    assert!(whole["context"].as_str().unwrap().contains("gasket"));

    let stashed = server.data("stash_context", json!({"segment_ids": ["press#0-2"], "topic": "valve"}));
    assert_eq!((&stashed["stashed"], &stashed["already_stashed"]), (&json!(3), &json!(0)), "{stashed}");
    let mut server = again(&home, &project, server);
    let rest = server.data("retrieve_context", ask.clone());
    let context = rest["context"].as_str().unwrap();
    assert!(!context.contains("gasket") && context.contains("guide rail"), "{context}");
    let recent = |context: &Value| context["parts"]["recent"].as_i64().unwrap();
    assert_eq!(stashed["tokens_freed"], json!(recent(&whole) - recent(&rest)), "{whole} {rest}");

    // Stashing again frees nothing more.
    let twice = server.data("stash_context", json!({"segment_ids": ["press#0", "press#0-2"]}));
    assert_eq!((&twice["stashed"], &twice["already_stashed"]), (&json!(0), &json!(3)), "{twice}");
    assert_eq!(twice["tokens_freed"], json!(0));

    // Another session finds them.
    let found =
        server.data("retrieve_stashed_context", json!({"query": "which gasket does the lower valve need?"}));
    let hits = found["segments"].as_array().unwrap();
    assert_eq!(hits[0]["number"], json!(1), "{found}");
    assert_eq!((&hits[0]["topic"], &hits[0]["session_id"]), (&json!("valve"), &json!("press")));
    let ids = strings(hits, "id");
    let merged = server.data("merge_stashed_context", json!({"segment_ids": ids}));
    let texts = strings(merged["segments"].as_array().unwrap(), "text");
    assert_eq!(texts, TALK[..3], "in their original order");
    let mut server = again(&home, &project, server);
    let back = server.data("retrieve_context", ask);
    assert_eq!(back["context"], whole["context"]);
    let listed = server.data("retrieve_stashed_context", json!({}));
    assert_eq!(listed["total_found"], json!(3), "they are kept in the stash");
    server.data("merge_stashed_context", json!({"segment_ids": ["press#0-2"], "keep": false}));
    assert_eq!(server.data("retrieve_stashed_context", json!({}))["total_found"], json!(0));
}

#[test]
fn texts_are_stashed_with_types_references_and_filters() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let stashed = server.data(
        "stash_context",
        json!({"topic": "ovens", "segments": [
            {"text": "error[E0382]: borrow of moved value: `oven`", "type": "error_log", "references": ["#1"]},
            {"text": "fn bake(oven: Oven) {}", "type": "file_content", "source": "src/bake.rs", "references": ["#2"]},
            {"text": "Ovens are passed by reference, because they are shared.", "type": "decision", "references": ["#0"]},
        ]}),
    );
    let ids: Vec<String> =
        stashed["segment_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    assert_eq!(stashed["stashed"], json!(3));
    assert_eq!(stashed["tokens_freed"], json!(0));
    assert!(stashed["notices"][0].as_str().unwrap().contains("your own window"), "{stashed}");
    let mut server = again(&home, &project, server);
    let found = |server: &mut Server, arguments: Value| {
        let found = server.data("retrieve_stashed_context", arguments);
        let segments = found["segments"].as_array().cloned().unwrap_or_default();
        segments.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (filters, expected) in [
        (json!({"type": "error_log"}), &ids[0]),
        (json!({"source": "src/bake.rs"}), &ids[1]),
        (json!({"type": "decision", "topic": "ovens"}), &ids[2]),
    ] {
        assert_eq!(found(&mut server, json!({"query": "oven", "filters": filters})), [expected.as_str()]);
    }
    assert!(found(&mut server, json!({"query": "oven", "filters": {"topic": "pans"}})).is_empty());
    assert!(found(&mut server, json!({"query": "oven", "filters": {"session_id": "other"}})).is_empty());
    // The references form a circle; each segment is walked once, the nearest first.
    let walked = found(&mut server, json!({"from_segment": ids[0], "max_hops": 5}));
    assert_eq!(walked.len(), 3);
    assert_eq!(walked[0], ids[0]);
    assert_eq!(found(&mut server, json!({"from_segment": ids[0], "max_hops": 0})), [ids[0].as_str()]);
    let hit = &server.data("retrieve_stashed_context", json!({"from_segment": ids[1], "max_hops": 0}))["segments"]
        [0];
    assert_eq!((&hit["references"], &hit["referenced_by"]), (&json!([ids[2]]), &json!([ids[0]])));
    // Artifacts are no hits of an ordinary search.
    assert!(strings(&server.search("oven"), "kind").iter().all(|kind| *kind == "decision"));
}

#[test]
fn a_stash_that_cannot_be_whole_is_none() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    say(&mut server, "press", &TALK);
    let id = server.search("gasket nitrile")[0]["id"].as_str().unwrap().to_owned();
    for (arguments, expected) in [
        (json!({}), "neither `segment_ids` nor `segments`"),
        (json!({"segment_ids": [id, "m0000000000000"]}), "m0000000000000"),
        (json!({"segment_ids": [id, "press#99"]}), "press#99"),
        (json!({"segment_ids": [id, "press#5-2"]}), "ends before it begins"),
        (json!({"segment_ids": [id], "segments": [{"text": ""}, {"text": "x"}]}), "segments[0].text"),
        (json!({"segment_ids": [id], "segments": [{"text": "x", "type": "commit"}]}), "segments[0].type"),
        (json!({"segment_ids": [id], "segments": [{"text": "x", "references": ["#4"]}]}), "#4"),
        (json!({"segment_ids": [id], "expires_in_days": -1}), "expires_in_days"),
        (json!({"segment_ids": [id], "expires_in_days": 0}), "expires_in_days"),
    ] {
        let error = server.error("stash_context", arguments.clone());
        assert!(error.contains(expected), "{arguments}: {error}");
        let listed = server.data("retrieve_stashed_context", json!({}));
        assert_eq!(listed["total_found"], json!(0), "{arguments}");
    }
    // Memories of another project are unknown here.
    let mut other = home.serve(&home.dir("other"));
    say(&mut other, "elsewhere", &["The cellar is dry."]);
    assert!(other.error("stash_context", json!({"segment_ids": [id]})).contains(&id));
    assert!(server.error("merge_stashed_context", json!({"segment_ids": [id]})).contains("not in the stash"));
    assert!(server.error("merge_stashed_context", json!({"segment_ids": []})).contains("empty"));
    assert!(
        server
            .text("retrieve_stashed_context", json!({"query": "gasket"}))
            .contains("Nothing in the stash fits")
    );
}

#[test]
fn what_does_not_fit_is_named_and_comes_with_the_next_call() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let long: String =
        (0..4000).map(|n| format!("line {n}: the press runs at {} bar\n", n * 7 % 31)).collect();
    let stashed = server.data(
        "stash_context",
        json!({"segments": [{"text": long, "type": "debug_output"}, {"text": "short", "type": "research"}]}),
    );
    let ids = stashed["segment_ids"].clone();
    let first = server.data("merge_stashed_context", json!({"segment_ids": ids}));
    assert_eq!(strings(first["segments"].as_array().unwrap(), "text"), ["short"]);
    assert_eq!(first["left_out"][0]["id"], ids[0]);
    let (mut name, mut text, mut calls) = (ids[0].as_str().unwrap().to_owned(), String::new(), 0);
    loop {
        let part = server.data("merge_stashed_context", json!({"segment_ids": [name], "max_tokens": 8000}));
        assert!(part["tokens_used"].as_i64().unwrap() <= 8000);
        text += part["segments"][0]["text"].as_str().unwrap();
        calls += 1;
        match part["left_out"][0]["id"].as_str() {
            Some(rest) => name = rest.to_owned(),
            None => break,
        }
    }
    assert!(calls > 3 && text == long, "{calls} calls");
}

#[test]
fn segments_expire_and_messages_outlive_their_stash() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    say(&mut server, "press", &TALK);
    let soon = 0.000_001;
    server.data("stash_context", json!({"segment_ids": ["press#0"], "expires_in_days": soon}));
    let given = json!([{"text": "the boiler ticks", "type": "debug_output"}]);
    let stashed = server.data("stash_context", json!({"segments": given, "expires_in_days": soon}));
    let protected = json!([{"text": "the boiler hums", "type": "debug_output"}]);
    server.data("stash_context", json!({"segments": protected, "expires_in_days": soon, "protected": true}));
    // The time is over as soon as the next call asks for the time.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let listed = server.data("retrieve_stashed_context", json!({}));
    assert_eq!(listed["total_found"], json!(1), "{listed}");
    let found = server.data("retrieve_stashed_context", json!({"query": "boiler"}));
    assert_eq!(found["total_found"], json!(1), "{found}");
    let topic = json!({"query": "boiler", "filters": {"type": "debug_output"}});
    assert_eq!(server.data("retrieve_stashed_context", topic)["total_found"], json!(1));
    let near = json!({"from_segment": stashed["segment_ids"][0]});
    assert_eq!(server.data("retrieve_stashed_context", near)["total_found"], json!(0));
    assert!(server.search("lower valve leaks")[0]["text"].as_str().unwrap().contains("leaks"));
    assert_eq!(home.json(&project, &["gc"])["stashed_texts"].as_i64().unwrap().max(1), 1);
    assert!(
        server
            .hits(json!({"query": "boiler ticks", "kinds": ["debug_output"]}))
            .iter()
            .all(|hit| { !hit["text"].as_str().unwrap().contains("ticks") })
    );
    // The same text can be stashed again.
    let again = server.data("stash_context", json!({"segments": given}));
    assert_eq!((&again["stashed"], &again["segment_ids"]), (&json!(1), &stashed["segment_ids"]));
}

#[test]
fn a_forgotten_segment_is_in_no_stash_until_it_is_undone() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let stashed =
        server.data("stash_context", json!({"segments": [{"text": "the cask is oak", "type": "research"}]}));
    let ids = stashed["segment_ids"].clone();
    server.data("forget_context", json!({"ids": ids}));
    assert_eq!(server.data("retrieve_stashed_context", json!({}))["total_found"], json!(0));
    assert!(
        server.error("merge_stashed_context", json!({"segment_ids": ids})).contains("no segment is called")
    );
    server.data("forget_context", json!({"undo": "last"}));
    let merged = server.data("merge_stashed_context", json!({"segment_ids": ids}));
    assert_eq!(merged["segments"][0]["text"], json!("the cask is oak"));
}

#[test]
fn many_segments_are_stashed_in_one_call_and_too_many_in_none() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let segments = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|n| json!({"text": format!("reading {n} of the press"), "type": "debug_output"}))
            .collect()
    };
    let many = server.data("stash_context", json!({"segments": segments(10_000)}));
    assert_eq!(many["stashed"], json!(10_000));
    let error = server.error("stash_context", json!({"segments": segments(10_001)}));
    assert!(error.contains("10001 segments"), "{error}");
    assert_eq!(server.data("retrieve_stashed_context", json!({}))["total_found"], json!(10_000));
}

#[test]
fn a_message_without_room_and_summary_is_in_the_stash() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let long: Vec<String> =
        (0..9).map(|n| format!("Reading {n}: {}", "the press runs well. ".repeat(20))).collect();
    let texts: Vec<&str> = long.iter().map(String::as_str).collect();
    say(&mut server, "press", &texts);
    let ask = json!({"query": "what is the latest reading?", "session_id": "press", "max_tokens": 400});
    let context = server.data("retrieve_context", ask.clone());
    let shown = context["context"].as_str().unwrap();
    // The call only reads, so it leaves the work to the idle worker. A call about the stash waits for that.
    let listed = server.data("retrieve_stashed_context", json!({"query": "reading", "top_k": 50}));
    let numbers: Vec<i64> =
        listed["segments"].as_array().unwrap().iter().map(|hit| hit["number"].as_i64().unwrap()).collect();
    for number in 0..9 {
        let is_shown = shown.contains(&format!("#{number} "));
        assert!(is_shown != numbers.contains(&number), "#{number}: {shown} {numbers:?}");
    }
    // Contexts with more room still show it.
    let room = server.data(
        "retrieve_context",
        json!({"query": "what is the latest reading?", "session_id": "press", "max_tokens": 4000}),
    );
    assert!((0..9).all(|n| room["context"].as_str().unwrap().contains(&format!("Reading {n}:"))), "{room}");
}

#[test]
fn a_person_lists_searches_restores_and_exports() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    say(&mut server, "press", &TALK);
    server.data("stash_context", json!({"segment_ids": ["press#0-2"], "topic": "valve"}));
    server.hang_up();
    server.wait();
    let listed = home.run(&project, &["stash", "list"]).stdout;
    assert!(listed.contains("valve") && listed.contains("3 segments"), "{listed}");
    let found = home.run(&project, &["stash", "search", "nitrile", "gasket"]).stdout;
    assert!(found.contains("press#1") && found.contains("nitrile"), "{found}");
    let exported = home.run(&project, &["stash", "export"]).stdout;
    let segments: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(strings(&segments, "text"), TALK[..3]);
    let restored = home.json(&project, &["stash", "restore", "press#0-2", "--remove"]);
    assert_eq!(strings(restored["segments"].as_array().unwrap(), "text"), TALK[..3]);
    assert!(home.run(&project, &["stash", "list"]).stdout.contains("The stash is empty."));
}

#[test]
fn gc_removes_what_expired_and_lists_it_first() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let given = json!([{"text": "the boiler ticks", "type": "debug_output"}]);
    server.data("stash_context", json!({"segments": given, "expires_in_days": 3}));
    server.hang_up();
    server.wait();
    // A server that idles would remove it before the command could.
    Connection::open(home.store()).unwrap().execute("UPDATE stashed SET expires_at = 1", []).unwrap();
    assert_eq!(home.json(&project, &["gc", "--dry-run"])["stashed_texts"], json!(1));
    assert_eq!(home.json(&project, &["gc"])["stashed_texts"], json!(1));
    assert_eq!(home.json(&project, &["gc"])["stashed_texts"], json!(0));
    assert!(!home.run(&project, &["export"]).stdout.contains("boiler"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// What goes in comes out, byte for byte, after another process opened the store.
    #[test]
    fn texts_come_back_byte_for_byte(
        // A text of spaces alone is refused as empty.
        texts in prop::collection::vec(
            "(\\PC|[\\[\\]#\r\n\t \u{0}\u{1b}\u{202e}\u{85}a-z]){1,80}"
                .prop_filter("only spaces", |text| !text.trim().is_empty()),
            1..12,
        ),
    ) {
        let home = Home::new();
        let project = home.dir("project");
        let mut server = home.serve(&project);
        let kinds = ["message", "code_block", "error_log", "task_state", "research"];
        let segments: Vec<Value> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| json!({"text": text, "type": kinds[n % kinds.len()]}))
            .collect();
        let stashed = server.data("stash_context", json!({"segments": segments}));
        let mut server = again(&home, &project, server);
        let merged = server.data("merge_stashed_context", json!({"segment_ids": stashed["segment_ids"]}));
        let mut back = strings(merged["segments"].as_array().unwrap(), "text");
        let mut expected: Vec<&str> = texts.iter().map(String::as_str).collect();
        back.sort_unstable();
        back.dedup();
        expected.sort_unstable();
        expected.dedup();
        prop_assert_eq!(back, expected);
    }
}
