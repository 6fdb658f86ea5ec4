//! Summaries have three levels, can be opened down to their messages, and contain no forgotten message.

use serde_json::{Value, json};
use tiro::testing::count;

use crate::harness::{Home, Server};

/// Saves sixty messages: greetings, and three relevant ones.
fn talk(server: &mut Server) {
    let message = |n: usize| {
        let text = match n {
            7 => "We decided to store sessions in SQLite 3.50, because Postgres needs a server.".to_owned(),
            31 => "The import of Parquet fails on Windows ARM since release 0.9.2.".to_owned(),
            59 => "Mira converts the paths by Friday. Open is who tests it?".to_owned(),
            _ => format!("Thanks, sounds good! See step {n} of the garden plan with roses and tulips."),
        };
        json!({"id": n.to_string(), "role": if n.is_multiple_of(2) { "user" } else { "assistant" },
            "time": format!("2026-03-01T09:{n:02}:00Z"), "text": text})
    };
    let messages: Vec<Value> = (0..60).map(message).collect();
    server.data("save_messages", json!({"session_id": "s", "messages": messages}));
}

fn summarise(server: &mut Server, level: &str) -> Value {
    server.data("summarize_conversation", json!({"session_id": "s", "level": level, "use_provider": false}))
}

#[test]
fn a_summary_opens_down_to_its_messages_and_collapses_again() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    talk(&mut server);
    // A summary isn't kept if others write to the store for a quarter of a second. On a busy machine they may.
    for level in ["brief", "standard"] {
        let kept = (0..50).any(|_| summarise(&mut server, level)["cached"] == true);
        assert!(kept, "{level}");
    }
    let brief = summarise(&mut server, "brief");
    let standard = summarise(&mut server, "standard");
    assert!(standard["summary"].as_str().unwrap().contains("SQLite 3.50"), "{standard}");
    assert!(standard["cited"].as_array().unwrap().contains(&json!(7)), "{standard}");
    assert!(count(brief["summary"].as_str().unwrap()) <= 80);
    server.end();
    // After a restart the ids are the same, and an existing summary is not made again.
    let mut server = home.serve(&project);
    assert_eq!(summarise(&mut server, "standard")["cached"], json!(true));
    let mut open = |id: &Value, more: Value| {
        let mut arguments = json!({"id": id});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.data("expand_detail", arguments)
    };
    let mut id = brief["id"].clone();
    for level in ["standard", "detailed", "messages"] {
        let opened = open(&id, json!({}));
        assert!(opened["text"].as_str().unwrap().starts_with(level), "{level}: {opened}");
        id = opened["id"].clone();
    }
    let up = open(&standard["id"], json!({"collapse": true}));
    assert!(up["text"].as_str().unwrap().starts_with("brief"), "{up}");
    let focused = open(&standard["id"], json!({"level": "messages", "focus": "Parquet"}));
    let text = focused["text"].as_str().unwrap();
    assert!(text.contains("#31 ") && !text.contains("#30 "), "{text}");
    assert!(open(&json!("s#7"), json!({}))["text"].as_str().unwrap().contains("decided to store"));
    assert!(open(&json!("s#7"), json!({"collapse": true}))["text"].as_str().unwrap().starts_with("detailed"));
}

#[test]
fn forgotten_messages_are_in_no_summary() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    talk(&mut server);
    let before = summarise(&mut server, "standard");
    assert!(before["summary"].as_str().unwrap().contains("Postgres"), "{before}");
    let hit = server.search("Postgres").remove(0);
    server.data("forget_context", json!({"ids": [hit["id"]]}));
    let after = summarise(&mut server, "standard");
    assert!(!after["summary"].as_str().unwrap().contains("Postgres"), "{after}");
    let gone = server.error("expand_detail", json!({"id": before["id"], "level": "standard"}));
    assert!(gone.contains("no memory is called"), "{gone}");
}

#[test]
fn a_context_summary_keeps_its_budget() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    talk(&mut server);
    for budget in [200, 300, 1000] {
        let (text, data) =
            server.both("get_context_summary", json!({"query": "Parquet on Windows", "maxTokens": budget}));
        assert!(count(&text) <= budget, "{text}");
        assert!(count(&data.to_string()) <= budget, "{data}");
        assert!(text.contains("0.9.2") && text.contains("s#"), "{text}");
    }
}

/// `open` used to name only a single message, and conversations that had only a word in common with the question used
/// up the budget.
#[test]
fn a_context_summary_opens_to_the_next_level() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    talk(&mut server);
    let other =
        json!([{"role": "user", "text": "On Fridays somebody cleans the windows of the harbour office."}]);
    server.data("save_messages", json!({"session_id": "other", "messages": other}));
    for (level, next) in [("brief", "standard"), ("standard", "detailed"), ("detailed", "messages")] {
        let arguments = json!({"query": "Parquet on Windows", "level": level});
        let (text, data) = server.both("get_context_summary", arguments);
        assert_eq!(data["summaries"].as_array().unwrap().len(), 1, "{data}");
        assert_eq!(data["dropped"], json!(0), "{text}");
        let first = &data["summaries"][0];
        assert_eq!((&first["session_id"], &first["level"]), (&json!("s"), &json!(level)), "{data}");
        assert_eq!(first["open_level"], json!(next));
        let open = first["open"].as_str().unwrap();
        assert!(text.contains(&format!("open {open} level {next}]")), "{text}");
        let opened = server.data("expand_detail", json!({"id": open, "level": next}));
        let opened = opened["text"].as_str().unwrap();
        assert!(opened.starts_with(next) && opened.contains("Parquet"), "{opened}");
    }
    // A conversation that is named explicitly is included.
    let named = json!({"query": "Parquet on Windows", "conversation_ids": ["other", "nobody"]});
    let (text, data) = server.both("get_context_summary", named);
    assert_eq!(data["summaries"][0]["session_id"], json!("other"), "{text}");
    assert!(text.contains("no session is called `nobody`"), "{text}");
}

/// A conversation in a language without spaces is found by its meaning. Until it is embedded, the answer says that it
/// is not.
#[test]
fn a_context_summary_counts_missing_embeddings() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let said = json!([{"role": "user", "text": "我们决定把会话保存在本地数据库里"}]);
    server.data("save_messages", json!({"session_id": "zh", "messages": said}));
    let (text, data) =
        server.both("get_context_summary", json!({"query": "存储", "conversation_ids": ["zh"]}));
    assert!(data["pending"].as_u64().unwrap() > 0, "{data}");
    assert!(text.contains("has no embedding yet"), "{text}");
}

#[test]
fn a_focus_without_a_match_is_reported() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    talk(&mut server);
    let id = summarise(&mut server, "standard")["id"].clone();
    for level in ["messages", "detailed", "brief"] {
        let told = server.error("expand_detail", json!({"id": id, "level": level, "focus": "zeppelin"}));
        assert!(
            told.contains("contains no word of `zeppelin`") && told.contains("`focus`"),
            "{level}: {told}"
        );
        server.data("expand_detail", json!({"id": id, "level": level, "focus": "Parquet"}));
    }
}

#[test]
fn a_dry_run_and_bad_arguments() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    talk(&mut server);
    let dry = server.data("summarize_conversation", json!({"session_id": "s", "dry_run": true}));
    assert_eq!((&dry["estimate"], &dry["summary"]), (&json!([0, 0, 0]), &json!("")));
    for (arguments, word) in [
        (json!({"session_id": "nobody"}), "no messages in session"),
        (json!({"session_id": "s", "max_tokens": 1}), "max_tokens"),
        (json!({"session_id": "s", "from": 99}), "in that range"),
        (json!({"session_id": "s", "since": "soon"}), "not a time"),
    ] {
        let text = server.error("summarize_conversation", arguments);
        assert!(text.contains(word), "{text}");
    }
}

/// A text that changed on the disk is left out of the summary, which says so.
#[test]
fn a_damaged_text_is_left_out_of_a_summary() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    server.save("three", "1", "The export fails on Windows since release 0.9.2.");
    server.save("three", "2", "It was the colon.");
    server.end();
    let store = rusqlite::Connection::open(home.store()).unwrap();
    let damage = "UPDATE memories SET text = CAST(x'ff' AS TEXT) WHERE text = 'It was the colon.'";
    assert_eq!(store.execute(damage, []).unwrap(), 1);
    assert_eq!(home.json(&project, &["summarize", "--all"])["summarised"], 1);
    let opened = home.json(&project, &["summarize", "three"]);
    let summary = opened["summary"].as_str().unwrap();
    assert!(summary.contains("0.9.2") && summary.contains("left out"), "{opened}");
}

#[test]
fn every_outdated_summary_is_updated_and_a_failure_stops_no_other() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    for session in ["one", "two", "three"] {
        let said = format!("The {session} export fails on Windows since release 0.9.2.");
        for (number, text) in [said.as_str(), "Mira fixes it by Friday."].into_iter().enumerate() {
            server.save(session, &number.to_string(), text);
        }
    }
    server.end();
    let all = |more: &[&str]| home.json(&project, &[&["summarize", "--all"], more].concat());
    let dry = all(&["--dry-run"]);
    assert_eq!((&dry["sessions"], &dry["summarised"]), (&json!(3), &json!(3)), "{dry}");
    let free = json!({"requests": 0, "input": 0, "output": 0, "cost_usd": 0.0});
    assert_eq!((&dry["at_most"], &dry["dry_run"]), (&free, &json!(true)), "{dry}");
    assert_eq!(all(&["--dry-run"])["summarised"], 3, "a dry run makes nothing");
    assert_eq!(all(&[])["extractive"], 3);
    let again = all(&[]);
    assert_eq!((&again["up_to_date"], &again["summarised"]), (&json!(3), &json!(0)), "{again}");
    assert_eq!(all(&["--level", "brief"])["summarised"], 3, "another level is another summary");
    // One session has new messages, and another can no longer be read.
    let mut server = home.serve(&project);
    server.save("two", "2", "It was the path separator.");
    server.save("three", "2", "It was the colon.");
    server.end();
    let store = rusqlite::Connection::open(home.store()).unwrap();
    store.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    let damage = "UPDATE memories SET provenance = 'unheard of' WHERE text = 'It was the colon.'";
    assert_eq!(store.execute(damage, []).unwrap(), 1);
    let ran = home.run(&project, &["summarize", "--all", "--json"]);
    assert!(!ran.is_ok, "{ran:?}");
    let data: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&data["summarised"], &data["up_to_date"]), (&json!(1), &json!(1)), "{data}");
    assert!(data["failed"][0].as_str().unwrap().starts_with("`three`: "), "{data}");
    let opened = home.json(&project, &["summarize", "two"]);
    assert_eq!((&opened["cached"], &opened["messages"]), (&json!(true), &json!(3)), "{opened}");
    let wrong = home.run(&project, &["summarize", "two", "--all"]);
    assert!(!wrong.is_ok && wrong.stderr.contains("cannot be used with"), "{wrong:?}");
}
