//! A search by its own words finds each decision or fact that was extracted from messages, and shows it once.

use serde_json::{Value, json};

use crate::harness::{Home, Server, eventually, strings};

/// Saves a conversation long enough that its first segments close, with a decision among them.
fn decided(server: &mut Server) {
    let message = |n: usize| {
        let text = match n {
            5 => "We decided to keep the vellichorometer in the north shed.".to_owned(),
            9 => format!(
                "{} We agreed on Parquet for the ledger exports. {}",
                "Hm. ".repeat(40),
                "So. ".repeat(400)
            ),
            _ => format!("Remark {n} about olive trees and tides, number{n}."),
        };
        json!({"id": n.to_string(), "role": "user", "text": text,
            "time": format!("2026-03-{:02}T09:{:02}:00Z", 1 + n / 60, n % 60)})
    };
    let messages: Vec<Value> = (0..80).map(message).collect();
    server.data("save_messages", json!({"session_id": "s", "messages": messages}));
    // Segments close when a call needs them.
    server.data("retrieve_context", json!({"query": "olive trees", "session_id": "s"}));
    eventually(|| decisions(server, "Parquet exports").len() == 1);
}

fn decisions(server: &mut Server, query: &str) -> Vec<Value> {
    server.hits(json!({"query": query, "kinds": ["decision"]}))
}

/// `kinds=["decision"]` used to find nothing.
#[test]
fn a_decision_is_found_by_its_kind_and_shown_once_beside_its_message() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    decided(&mut server);
    let found = decisions(&mut server, "where is the vellichorometer?");
    assert_eq!(strings(&found, "text"), ["We decided to keep the vellichorometer in the north shed."]);
    assert_eq!(found[0]["session_id"], "s");
    let opened = server.text("expand_detail", json!({"id": found[0]["id"]}));
    assert!(opened.contains("[references m"), "{opened}");
    assert_eq!(decisions(&mut server, "Parquet exports").len(), 1);

    // The message has the same text and also a speaker. So the message is shown, and the extracted sentence is not
    // shown too.
    let all = server.search("vellichorometer north shed");
    let told = all.iter().filter(|hit| hit["text"].as_str().unwrap().contains("vellichorometer"));
    assert_eq!(told.map(|hit| hit["kind"].clone()).collect::<Vec<_>>(), [json!("message")]);

    // It is forgotten and restored with its message, and purging the message deletes it.
    server.data("forget_context", json!({"source": "5"}));
    assert_eq!(decisions(&mut server, "vellichorometer"), Vec::<Value>::new());
    server.data("forget_context", json!({"undo": "last"}));
    assert_eq!(decisions(&mut server, "vellichorometer").len(), 1);
    server.data("forget_context", json!({"source": "5", "purge": true}));
    assert_eq!(decisions(&mut server, "vellichorometer"), Vec::<Value>::new());
    server.hang_up();
    server.wait();
    assert_eq!(home.files_with("vellichorometer"), Vec::<std::path::PathBuf>::new());
}

/// How many sessions are made, with ten decisions each. Together they have more than one step updates.
const SESSIONS: usize = 75;

#[test]
fn a_store_of_an_earlier_version_is_updated_in_steps() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    for session in 0..SESSIONS {
        let decision =
            |n: usize| format!("We decided to keep the vellichorometer{session}x{n} in the north shed.");
        let text = |n: usize| {
            if n < 10 { decision(n) } else { format!("Remark {n} about olive trees and tides, number{n}.") }
        };
        let messages: Vec<Value> =
            (0..60).map(|n| json!({"id": n.to_string(), "role": "user", "text": text(n)})).collect();
        let session = format!("s{session}");
        server.data("save_messages", json!({"session_id": session, "messages": messages}));
        server.data("retrieve_context", json!({"query": "olive trees", "session_id": session}));
    }
    let store = rusqlite::Connection::open(home.store()).unwrap();
    let derived = "SELECT seq FROM memories WHERE kind IN ('fact', 'decision') AND provenance = 'derived'";
    let count = |sql: &str| -> i64 { store.query_row(sql, [], |row| row.get(0)).unwrap() };
    // The idle server extracts them.
    let all = SESSIONS as i64 * 10;
    eventually(|| count(&format!("SELECT count(*) FROM ({derived})")) == all);
    server.hang_up();
    server.wait();
    // This is what earlier versions left: memories without index entries.
    store
        .execute_batch(&format!(
            "DELETE FROM text_index WHERE rowid IN (SELECT seq FROM chunks WHERE memory IN ({derived}));
             DELETE FROM chunks WHERE memory IN ({derived});"
        ))
        .unwrap();
    let text = |order: &str| -> String {
        let sql = format!("SELECT text FROM memories WHERE seq IN ({derived}) ORDER BY seq {order} LIMIT 1");
        store.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    let texts = [text("ASC"), text("DESC")];
    let found = |server: &mut Server| -> Vec<bool> {
        let is_found = |text: &String, hits: Vec<Value>| hits.iter().any(|hit| hit["text"] == **text);
        texts.iter().map(|text| is_found(text, decisions(server, text))).collect()
    };
    let mut server = home.serve(&project);
    assert_eq!(found(&mut server), [false, false]);
    server.hang_up();
    server.wait();
    // The command updates everything that needs no model, and then reports that the model is missing.
    let ran = home.run(&project, &["index"]);
    assert!(!ran.is_ok && ran.stderr.contains("model"), "{ran:?}");
    assert_eq!(count(&format!("SELECT count(DISTINCT memory) FROM chunks WHERE memory IN ({derived})")), all);
    assert_eq!(found(&mut home.serve(&project)), [true, true]);
}
