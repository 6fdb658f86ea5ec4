//! Very long, large and odd conversations are answered within a few seconds, and answers say what they leave out.
//!
//! `evals long` measures a hundred thousand messages.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Home, Server, eventually};

/// Saves `count` messages in calls of 5,000.
fn save(server: &mut Server, session: &str, count: usize) {
    let message = |n: usize| {
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        let decided = if n % 500 == 7 { " We decided to keep lane" } else { " Nothing new in lane" };
        let text = format!("Remark {n} on quay {}.{decided} {}.", n % 97, n / 500);
        json!({"id": n.to_string(), "role": role, "text": text, "time": "2026-03-01T09:00:00Z"})
    };
    for start in (0..count).step_by(5000) {
        let messages: Vec<Value> = (start..count.min(start + 5000)).map(message).collect();
        let saved =
            server.data("save_messages", json!({"session_id": session, "messages": messages.clone()}));
        assert_eq!(saved["saved"], messages.len(), "{saved}");
    }
}

/// Makes every call about a session of `count` messages; no answer may take longer than `most`.
fn ask_all(server: &mut Server, session: &str, count: usize, most: Duration) {
    let mut ask = |tool: &str, arguments: Value| {
        let began = Instant::now();
        let (text, data) = server.both(tool, arguments.clone());
        let took = began.elapsed();
        assert!(took < most, "{tool} {arguments} took {took:?}");
        (text, data)
    };
    let (first, data) = ask("retrieve_context", json!({"query": "quay 42", "session_id": session}));
    let last = format!("Remark {} ", count - 1);
    assert!(first.contains(&last) && first.contains("on quay 42."), "{first}");
    // Answers report what is not processed yet and what did not fit.
    assert!(data["pending"].as_u64().unwrap() > 0, "{data}");
    assert!(!data["dropped"].as_object().unwrap().is_empty(), "{data}");
    let waits = |data: &Value| data["pending"].as_u64().unwrap();
    let (_, again) = ask("retrieve_context", json!({"query": "quay 42", "session_id": session}));
    assert!(waits(&again) <= waits(&data), "what is done stays done: {again}");
    let (text, _) = ask("retrieve_context", json!({"query": "on quay 42"}));
    assert!(text.contains("on quay 42."), "{text}");
    for level in ["brief", "standard", "detailed"] {
        let ask_for = json!({"session_id": session, "level": level, "use_provider": false});
        let (_, data) = ask("summarize_conversation", ask_for);
        assert_eq!((&data["messages"], &data["range"]), (&json!(count), &json!([0, count - 1])), "{data}");
        assert!(!data["summary"].as_str().unwrap().is_empty(), "{data}");
        let is_read = data["notices"].to_string().contains("not read in full");
        assert_eq!(is_read, count > 50_000, "what is passed over is told: {}", data["notices"]);
    }
    let place = format!("{session}#{}", count / 2);
    let (text, _) = ask("expand_detail", json!({"id": place}));
    assert!(text.contains(&format!("Remark {} ", count / 2)), "{text}");
    let (text, _) = ask("expand_detail", json!({"id": place, "level": "detailed"}));
    assert!(text.contains("quay"), "{text}");
}

#[test]
fn a_session_of_many_thousand_messages_is_answered_quickly() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    save(&mut server, "s", 15_000);
    ask_all(&mut server, "s", 15_000, Duration::from_secs(60));
}

#[test]
#[ignore = "takes minutes"]
fn a_session_of_more_messages_than_a_summary_reads_is_answered_too() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    save(&mut server, "s", 51_000);
    ask_all(&mut server, "s", 51_000, Duration::from_secs(60));
}

#[test]
fn a_message_of_five_megabytes_is_summarised_from_its_beginning() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let long = format!("We decided to ship on Friday.\n{}", "the same dull line of a log\n".repeat(190_000));
    server.save("s", "1", &long);
    server.save("s", "2", "What did we decide?");
    for level in ["brief", "standard", "detailed"] {
        let ask = json!({"session_id": "s", "level": level, "use_provider": false});
        let data = server.data("summarize_conversation", ask);
        assert!(data["summary"].as_str().unwrap().contains("ship on Friday"), "{data}");
        assert!(data["notices"].to_string().contains("1 of 2 messages were not read in full"), "{data}");
    }
    let opened = server.data("expand_detail", json!({"id": "s#0", "max_tokens": 500}));
    assert!(opened["text"].as_str().unwrap().starts_with("We decided"), "{opened}");
    assert!(!opened["next_cursor"].is_null(), "what is left is told: {opened}");
}

#[test]
fn tool_output_and_text_without_spaces_are_shown_and_summarised() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let mut say = |session: &str, role: &str, texts: &[&str]| {
        let message = |n: usize| json!({"id": n.to_string(), "role": role, "text": texts[n % texts.len()]});
        let messages: Vec<Value> = (0..60).map(message).collect();
        server.data("save_messages", json!({"session_id": session, "messages": messages}));
    };
    say("tools", "tool", &["exit code 3 of make", "warning: unused variable `x`", "42 tests passed"]);
    say("chinese", "user", &["我们决定使用SQLite。", "导出在Windows上失败了。", "周五之前完成测试。"]);
    say("thai", "user", &["เราตัดสินใจใช้ฐานข้อมูลใหม่", "การส่งออกล้มเหลวบนวินโดวส์", "ทดสอบให้เสร็จภายในวันศุกร์"]);
    for (session, query, [answer, told]) in [
        ("tools", "exit code", ["exit code 3", "60 tool calls"]),
        ("chinese", "导出为什么失败", ["导出在Windows上失败了"; 2]),
        ("thai", "การส่งออกล้มเหลว", ["การส่งออกล้มเหลวบนวินโดวส์"; 2]),
    ] {
        let text = server.text("retrieve_context", json!({"query": query, "session_id": session}));
        assert!(text.contains(answer), "{session}: {text}");
        let ask = json!({"session_id": session, "level": "standard", "use_provider": false});
        let data = server.data("summarize_conversation", ask);
        assert!(data["summary"].as_str().unwrap().contains(told), "{data}");
    }
}

#[test]
fn budgets_that_hold_no_answer_are_refused_and_huge_ones_are_limited() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    save(&mut server, "s", 60);
    let tools = [
        ("retrieve_context", json!({"query": "quay"})),
        ("get_relevant_snippets", json!({"query": "quay"})),
        ("get_context_summary", json!({"query": "quay"})),
        ("summarize_conversation", json!({"session_id": "s", "use_provider": false})),
        ("expand_detail", json!({"id": "s#3"})),
    ];
    for (tool, arguments) in tools {
        let mut asked = arguments.clone();
        asked["max_tokens"] = 1.into();
        let told = server.error(tool, asked.clone());
        assert!(told.contains("`max_tokens`"), "{tool}: {told}");
        // A model that must give every argument gives 0 for one that it would leave out.
        asked["max_tokens"] = 0.into();
        assert_eq!(server.call(tool, asked)["isError"], false);
        let mut asked = arguments.clone();
        asked["max_tokens"] = 1_000_000_000.into();
        let answer = server.call(tool, asked);
        let used = answer["structuredContent"]["tokens_used"].as_u64().unwrap_or(0);
        assert!(used <= 20_000 && answer["content"][0]["text"].as_str().is_some(), "{tool}: {answer}");
    }
}

/// Times may lie in the future or go backwards. Messages are in the order in which they were saved.
#[test]
fn a_clock_set_back_changes_no_order_and_loses_nothing() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let message = |n: usize| {
        let year = if n < 40 { 2190 } else { 2026 };
        json!({"id": n.to_string(), "role": if n.is_multiple_of(2) { "user" } else { "assistant" },
            "time": format!("{year}-01-01T10:{:02}:00Z", n % 60), "text": format!("Remark {n} on the harbour")})
    };
    let messages: Vec<Value> = (0..80).map(message).collect();
    server.data("save_messages", json!({"session_id": "s", "messages": messages}));
    let ask = json!({"query": "a remark on the harbour", "session_id": "s"});
    let text = server.text("retrieve_context", ask.clone());
    assert!(text.contains("#79 "), "{text}");
    assert_eq!(server.text("retrieve_context", ask), text);
    assert!(server.text("retrieve_context", json!({"query": "harbour"})).contains("on the harbour"));
    let data = server.data("summarize_conversation", json!({"session_id": "s", "use_provider": false}));
    assert_eq!(data["messages"], 80, "{data}");
    server.save("s", "new", "A last word on the harbour");
    let text = server.text("retrieve_context", json!({"query": "harbour", "session_id": "s"}));
    assert!(text.contains("A last word"), "{text}");
}

#[test]
fn tokens_saved_by_contexts_are_counted_in_all_processes() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    save(&mut server, "s", 200);
    let ask = json!({"query": "quay 42", "session_id": "s", "max_tokens": 600});
    // The idle server keeps the summaries that contexts needed. Until it has, contexts need other ones.
    let mut asked = 0;
    eventually(|| {
        server.data("retrieve_context", ask.clone());
        asked += 1;
        asked >= 3 && home.json(&project, &["stats"])["cache"]["hits"].as_i64() >= Some(1)
    });
    let answers = asked + 1;
    // A context across conversations has no number that says how many tokens would have been sent instead.
    server.data("retrieve_context", json!({"query": "quay 42"}));
    server.end();
    let ran = home.run(&project, &["context", "quay 42", "--session", "s", "--max-tokens", "600"]);
    assert!(ran.is_ok, "{ran:?}");
    let stats = home.json(&project, &["stats"]);
    let contexts = &stats["contexts"];
    let number = |field: &str| contexts[field].as_i64().unwrap();
    let messages = stats["kinds"].as_array().unwrap().iter().find(|kind| kind["kind"] == "message").unwrap();
    assert_eq!(number("answers"), answers, "{contexts}");
    assert_eq!(number("conversation_tokens"), answers * messages["tokens"].as_i64().unwrap(), "{contexts}");
    assert!((1..=answers * 600).contains(&number("sent_tokens")), "{contexts}");
    let saved = 1.0 - number("sent_tokens") as f64 / number("conversation_tokens") as f64;
    assert!((contexts["saved"].as_f64().unwrap() - saved).abs() < 1e-9 && saved > 0.5, "{contexts}");
    assert!(stats["cache"]["hits"].as_i64().unwrap() >= 1, "{}", stats["cache"]);
    let tiers: Vec<&str> =
        stats["tiers"].as_array().unwrap().iter().map(|tier| tier["tier"].as_str().unwrap()).collect();
    assert_eq!(tiers, ["recent", "medium", "long", "ancient"]);
    for tier in stats["tiers"].as_array().unwrap() {
        let saves = tier["saved"].as_f64().unwrap();
        assert!(if tier["tier"] == "recent" { saves == 0.0 } else { saves > 0.3 }, "{tier}");
    }
    for summary in stats["summaries"].as_array().unwrap() {
        assert_eq!(summary["provider"], "extractive", "{summary}");
    }
    let text = home.run(&project, &["stats"]).stdout;
    assert!(text.contains(&format!("{answers} contexts of conversations: ")), "{text}");
    assert!(
        text.contains("ancient messages of conversations, in ") && text.contains("brief, extractive: "),
        "{text}"
    );
}

#[path = "../../crates/evals/src/attack/texts.rs"]
mod hostile_texts;

/// `evals attack` measures the time; this test checks the size of the chunks.
#[test]
fn chunks_of_a_text_add_up_to_little_more_than_the_text() {
    use tiro::testing::prepare;
    use tiro::testing::{Draft, Kind, Provenance};

    const SIZE: usize = 3 << 10;
    let redactor = tiro::testing::Redactor::new([7; 32]);
    let literals: std::collections::BTreeSet<&str> =
        tiro::testing::rules().flat_map(|rule| rule.literals.iter().copied()).collect();
    let literals: Vec<&str> = literals.into_iter().collect();
    let texts = hostile_texts::all(SIZE);
    assert!(texts.len() >= 300, "{}", texts.len());
    for (name, text) in texts.into_iter().chain(hostile_texts::of_literals(SIZE, &literals)) {
        let draft = Draft::new(Kind::Message, Provenance::UserSaid, text.as_str(), 0);
        let (memory, _) = prepare(&redactor, draft, &mut || [1; 16]);
        let kept = memory.draft.text.len();
        let bytes = memory.chunks.iter().map(|chunk| chunk.end - chunk.start).sum::<usize>();
        // Chunks overlap a little; a chunk of the rarest characters has about forty of them.
        assert!(bytes <= kept + kept / 4, "{name}: {bytes} bytes in pieces of {kept}");
        assert!(memory.chunks.len() <= 1 + kept / 64, "{name}: {} pieces of {kept}", memory.chunks.len());
        assert!(kept <= 4 * text.len(), "{name}: {kept} of {}", text.len());
    }
}

/// Saving 400 KB of `password=` four times used to take 24 s and 544 MB.
#[test]
fn a_text_takes_a_small_multiple_of_its_size_on_disk() {
    const SIZE: usize = 200 << 10;
    for part in ["password=", "a", "語", "x ", "aB", "=", "<a>"] {
        let home = Home::new();
        let mut server = home.serve(&home.dir("project"));
        let text = part.repeat(SIZE / part.len());
        server.save("s", "0", "warm");
        let before = home.store().metadata().unwrap().len();
        for n in 1..=4 {
            server.save("s", &n.to_string(), &text);
        }
        server.end();
        let taken = home.store().metadata().unwrap().len() - before;
        let log = home.store().with_file_name("tiro.db-wal").metadata().map_or(0, |log| log.len());
        assert!(taken + log <= 4 * 4 * text.len() as u64 + (4 << 20), "{part:?}: {taken} + {log}");
    }
}
