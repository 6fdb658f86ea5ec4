//! A text in which a bit changed on the disk is never shown or sent without a word, and nothing is concluded from it.

use rusqlite::config::DbConfig;
use serde_json::{Value, json};

use crate::consults::{Ground, TOOL};
use crate::harness::{Server, eventually};
use crate::mock::Manner;

/// What stands before a damaged text.
const MARK: &str = "damaged: this is not what was stored";

/// What stands beside a damaged text whose exact bytes are returned.
const DATA: &str = r#"damaged":true"#;

/// What is said.
const RIGHT: &str = "473";

/// What the damaged text says instead.
const WRONG: &str = "673";

/// Saves a conversation of ten messages, the first of which has the number.
fn save(server: &mut Server, session: &str) -> Value {
    let text = |n: usize| match n {
        0 => format!("We decided that the valve opens at {RIGHT} kPa."),
        _ => format!("The pump number {n} was replaced by a new pump."),
    };
    let role = |n: usize| if n.is_multiple_of(2) { "user" } else { "assistant" };
    let messages: Vec<Value> =
        (0..10).map(|n| json!({"id": n.to_string(), "role": role(n), "text": text(n)})).collect();
    server.data("save_messages", json!({"session_id": session, "messages": messages}))
}

/// Changes the number in every stored text, and nothing else.
fn rot(ground: &Ground) {
    let store = rusqlite::Connection::open(ground.home.store()).unwrap();
    let sql =
        "UPDATE memories SET text = replace(text, ?1, ?2) WHERE instr(text, ?1) AND provenance <> 'derived'";
    assert!(store.execute(sql, [RIGHT, WRONG]).unwrap() > 2);
}

/// Session lists used to show such a text as the title, threads sent it to the assistant, and summaries
/// were made of it.
#[test]
fn a_damaged_text_is_marked_wherever_it_is_shown_or_sent() {
    let ground = Ground::new();
    let mut server = ground.serve();
    save(&mut server, "valves");
    let stashed = json!([{"text": format!("The stashed valve opens at {RIGHT}.")}]);
    let stashed = server.data("stash_context", json!({"segments": stashed}))["segment_ids"].take();
    ground.mock.behaves(&Manner::Says(format!("The valve opens at {RIGHT} kPa.")));
    let asked = json!({"session_id": "lease", "instructions": format!("Is it {RIGHT}?"), "call_id": "one"});
    server.data(TOOL, asked.clone());
    server.end();
    rot(&ground);

    let mut server = ground.serve();
    let mut said: Vec<(String, String)> = Vec::new();
    let calls = [
        ("list_sessions", json!({})),
        (TOOL, asked),
        ("search_project_memory", json!({"query": "valve opens"})),
        ("retrieve_stashed_context", json!({"query": "stashed valve"})),
        ("retrieve_stashed_context", json!({})),
        ("merge_stashed_context", json!({"segment_ids": stashed})),
        ("expand_detail", json!({"id": "valves#0"})),
        ("expand_detail", json!({"id": "valves#1"})),
        ("retrieve_context", json!({"query": "valve", "session_id": "valves"})),
        ("retrieve_context", json!({"query": "when does the valve open?"})),
        ("get_relevant_snippets", json!({"query": "valve opens"})),
        ("get_context_summary", json!({"conversation_ids": ["valves"]})),
        ("get_context_summary", json!({"conversation_ids": ["lease"]})),
        ("describe_session", json!({"session_id": "lease"})),
    ];
    for (tool, arguments) in calls {
        let answer = server.call(tool, arguments.clone());
        said.push((format!("{tool} {arguments}"), answer["content"][0]["text"].to_string()));
        said.push((format!("{tool} {arguments}: its data"), answer["structuredContent"].to_string()));
    }
    let read = server.request("resources/read", json!({"uri": "tiro://session/valves"}));
    said.push(("the resource".to_owned(), read.to_string()));
    let commands: [&[&str]; 8] = [
        &["sessions"],
        &["show", "lease@mock"],
        &["show", "valves"],
        &["show", "valves#0"],
        &["search", "valve"],
        &["stash", "list"],
        &["stash", "search", "valve"],
        &["context", "valve"],
    ];
    for args in commands {
        said.push((args.join(" "), ground.home.run(&ground.project.path, args).stdout));
    }
    let unmarked: Vec<&(String, String)> = said
        .iter()
        .filter(|(_, text)| text.contains(WRONG) && !text.contains(MARK) && !text.contains(DATA))
        .collect();
    assert!(unmarked.is_empty(), "{unmarked:#?}");
    let places: Vec<&str> =
        said.iter().filter(|(_, text)| text.contains(MARK)).map(|(place, _)| place.as_str()).collect();
    for place in
        ["list_sessions {}", "sessions", "show lease@mock", "search valve", "show valves#0", "the resource"]
    {
        assert!(places.contains(&place), "{place}: {said:#?}");
    }
    let exported = ground.home.run(&ground.project.path, &["export"]).stdout;
    let lines = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut wrong = lines.filter(|line| line["text"].to_string().contains(WRONG));
    assert!(wrong.all(|line| line["damaged"] == true), "{exported}");

    // The assistant gets it with the mark.
    server.data(TOOL, json!({"session_id": "lease", "instructions": "And now?"}));
    let (_, body) = ground.mock.seen.lock().unwrap().last().unwrap().clone();
    let messages = body["messages"].as_array().unwrap();
    let of_old: Vec<String> = messages
        .iter()
        .map(|message| message["content"].to_string())
        .filter(|text| text.contains(WRONG))
        .collect();
    assert_eq!(of_old.len(), 2, "{body}");
    assert!(of_old.iter().all(|text| text.contains(MARK)), "{body}");
}

#[test]
fn no_summary_is_made_of_a_damaged_text_and_the_right_text_is_summarised_again() {
    let ground = Ground::new();
    let mut server = ground.serve();
    save(&mut server, "valves");
    server.end();
    rot_one(&ground);
    let mut server = ground.serve();
    for depth in ["brief", "standard", "detailed"] {
        let text = server.text("summarize_conversation", json!({"session_id": "valves", "level": depth}));
        assert!(!text.contains(WRONG) && text.contains(MARK), "{depth}: {text}");
    }
    let brief = server.text("get_context_summary", json!({"conversation_ids": ["valves"]}));
    assert!(!brief.contains(WRONG), "{brief}");
    // The right text, saved again, is summarised.
    assert_eq!(save(&mut server, "valves")["already_stored"], 10);
    for depth in ["brief", "standard", "detailed"] {
        let text = server.text("summarize_conversation", json!({"session_id": "valves", "level": depth}));
        assert!(text.contains(RIGHT) && !text.contains(MARK), "{depth}: {text}");
    }
}

/// Changes the number in the first message.
fn rot_one(ground: &Ground) {
    let store = rusqlite::Connection::open(ground.home.store()).unwrap();
    let sql = "UPDATE memories SET text = replace(text, ?1, ?2) WHERE instr(text, ?1) AND source_id = '0'";
    assert_eq!(store.execute(sql, [RIGHT, WRONG]).unwrap(), 1);
}

/// Summaries had no hash.
#[test]
fn a_damaged_summary_is_noticed() {
    let ground = Ground::new();
    let mut server = ground.serve();
    save(&mut server, "valves");
    let made = server.data("summarize_conversation", json!({"session_id": "valves"}));
    let id = made["id"].as_str().unwrap().to_owned();
    let store = rusqlite::Connection::open(ground.home.store()).unwrap();
    // The idle server computes the sums.
    eventually(|| {
        let sql =
            "SELECT count(*) FROM summaries WHERE seq NOT IN (SELECT key FROM row_sums WHERE part = 10)";
        store.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() == 0
    });
    server.end();
    // Damage runs no triggers.
    store.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).unwrap();
    let changed =
        store.execute("UPDATE summaries SET text = replace(text, ?1, ?2) WHERE id = ?3", [RIGHT, WRONG, &id]);
    assert_eq!(changed.unwrap(), 1);
    let doctor = ground.home.run(&ground.project.path, &["doctor"]).stdout;
    assert!(doctor.contains("1 other row is damaged"), "{doctor}");
    let to = ground.home.path().join("backup.db");
    let backup = ground.home.run(&ground.project.path, &["backup", to.to_str().unwrap()]).stdout;
    assert!(backup.contains("1 other row is damaged"), "{backup}");
}
