//! A memory that another one replaced is marked wherever it is shown, and the valid memory comes first.

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Home, Server, strings};

/// Stores a text; returns its id.
fn store(server: &mut Server, text: &str, supersedes: &[&str]) -> String {
    let stored = server.data("store_memory", json!({"text": text, "supersedes": supersedes}));
    stored["id"].as_str().unwrap().to_owned()
}

/// Says the texts in the session `s`, and waits until their facts are extracted.
fn say(home: &Home, project: &std::path::Path, texts: &[String]) -> Server {
    let mut server = home.serve(project);
    let message = |(number, text): (usize, &String)| {
        json!({"id": number.to_string(), "role": "user", "text": text,
            "time": format!("2026-03-{:02}T09:{:02}:00Z", 1 + number / 60, number % 60)})
    };
    let messages: Vec<Value> = texts.iter().enumerate().map(message).collect();
    server.data("save_messages", json!({"session_id": "s", "messages": messages}));
    server.hang_up();
    server.wait();
    // Without a model the command extracts facts, and then reports that the model is missing.
    home.run(project, &["index"]);
    home.serve(project)
}

#[test]
fn what_was_superseded_comes_after_what_holds_and_says_so() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let old = store(&mut server, "The quince press runs on port 8080.", &[]);
    let new =
        store(&mut server, "The quince press listens on port 9090 these days, behind the proxy.", &[&old]);
    let hits = server.search("quince press port");
    assert_eq!(strings(&hits, "id"), [new.as_str(), old.as_str()]);
    assert_eq!(hits[1]["superseded"]["by"], json!(new));
    assert!(hits[0].get("superseded").is_none());
    let text = server.text("search_project_memory", json!({"query": "quince press port"}));
    assert!(text.contains(&format!("[superseded by {new} of ")), "{text}");
    let before = server.search("what was the quince press port before?");
    assert_eq!(strings(&before, "id"), [old.as_str(), new.as_str()], "history comes in the order of time");
    let context = server.text("retrieve_context", json!({"query": "quince press port"}));
    let (now, was) = (context.find("port 9090").unwrap(), context.find("port 8080").unwrap());
    assert!(now < was && context.contains(&format!("{old}, superseded by {new}")), "{context}");

    // Opened alone or listed, it says so, too.
    let opened = server.text("expand_detail", json!({"id": old}));
    assert!(opened.contains(&format!("[superseded by {new} of ")), "{opened}");
    assert!(!server.text("expand_detail", json!({"id": new})).contains("superseded by"));
    for args in [&["show", &old][..], &["list"]] {
        let shown = home.run(&home.dir("project"), args).stdout;
        assert_eq!(shown.matches(&format!("superseded by {new} of ")).count(), 1, "{args:?}: {shown}");
    }

    // Only the old one has the word; what replaced it is shown, too.
    let hits = server.search("8080");
    assert_eq!(strings(&hits, "id"), [new.as_str(), old.as_str()]);

    // The older one is valid again if the newer one is forgotten, and not if that is undone.
    server.data("forget_context", json!({"ids": [new]}));
    assert!(server.search("quince")[0].get("superseded").is_none());
    server.data("forget_context", json!({"undo": "last"}));
    assert_eq!(server.search("quince")[1]["superseded"]["by"], json!(new));
}

#[test]
fn what_cannot_be_superseded_is_refused_and_nothing_is_stored() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let old = store(&mut server, "The quince press runs on port 8080.", &[]);
    let new = store(&mut server, "The quince press listens on port 9090.", &[&old]);
    let owners = json!({"text": "I use tabs", "scope": "owner"});
    let owners = server.data("store_memory", owners)["id"].as_str().unwrap().to_owned();
    let refused = |server: &mut Server, text: &str, id: &str| {
        server.error("store_memory", json!({"text": text, "supersedes": [id]}))
    };
    let error = refused(&mut server, "a pomelo", "m0000000000000");
    assert!(error.contains("no memory with id `m0000000000000` to supersede"), "{error}");
    let error = refused(&mut server, "a pomelo", &owners);
    assert!(error.contains("has the scope owner") && error.contains("nothing was stored"), "{error}");
    let error = refused(&mut server, "The quince press runs on port 8080.", &old);
    assert!(error.contains("can't supersede itself"), "{error}");
    let error = refused(&mut server, "The quince press runs on port 8080.", &new);
    assert!(error.contains(&format!("`{new}` already supersedes `{old}`")), "{error}");
    assert!(server.search("pomelo").is_empty());
    // A message is named by its place.
    server.save("s", "0", "the quince harvest begins in May");
    let moved = server.data(
        "store_memory",
        json!({"text": "The quince harvest begins in June.", "type": "finding", "supersedes": ["s#0"]}),
    );
    assert_eq!((&moved["kind"], moved["supersedes"].as_array().map(Vec::len)), (&json!("research"), Some(1)));
    let text = server.text("store_memory", json!({"text": "I like pears.", "type": "preference"}));
    assert!(text.starts_with("Stored as preference `m") && text.contains("kind fact"), "{text}");
}

#[test]
fn a_superseded_memory_is_restored_as_superseded() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let old = store(&mut server, "The quince press runs on port 8080.", &[]);
    let new = store(&mut server, "The quince press listens on port 9090.", &[&old]);
    server.hang_up();
    server.wait();
    let backup = home.path().join("backup.db");
    assert!(home.run(&project, &["backup", backup.to_str().unwrap()]).is_ok);
    let other = home.dir("other");
    assert!(home.run(&other, &["restore", backup.to_str().unwrap()]).is_ok);
    let hits = home.serve(&other).search("quince press port");
    assert_eq!((strings(&hits, "id"), &hits[1]["superseded"]["by"]), (vec![new.clone(), old], &json!(new)));
}

#[test]
fn of_a_hundred_corrections_one_holds() {
    let home = Home::new();
    let project = home.dir("project");
    let texts: Vec<String> = (100..200)
        .map(|number| format!("The retry limit went from {number} to {} tries.", number + 1))
        .collect();
    let mut server = say(&home, &project, &texts);
    let hits =
        server.hits(json!({"query": "retry limit", "k": 50, "max_tokens": 20000, "kinds": ["message"]}));
    assert_eq!(hits[0]["text"], json!("The retry limit went from 199 to 200 tries."));
    let marked = hits.iter().filter(|hit| hit.get("superseded").is_some()).count();
    assert_eq!(marked, hits.len() - 1);
    let context =
        server.text("retrieve_context", json!({"query": "what is the retry limit?", "session_id": "s"}));
    let lines: Vec<&str> = context.lines().filter(|line| line.contains("The retry limit went")).collect();
    assert!(lines[0].contains("to 200"), "{context}");
    let is_current = |line: &&&str| line.contains("to 200");
    let (current, old): (Vec<&&str>, Vec<&&str>) = lines.iter().partition(is_current);
    assert!(old.len() > 5 && old.iter().all(|line| line.contains("superseded by #99")), "{context}");
    assert!(!current.iter().any(|line| line.contains("superseded")), "{context}");
    // The sixth correction is valid again if all later ones are forgotten.
    let later: Vec<String> = (6..100).map(|number| format!("s#{number}")).collect();
    server.data("forget_context", json!({"ids": later}));
    let hits = server.hits(json!({"query": "retry limit", "kinds": ["message"]}));
    assert_eq!(hits[0]["text"], json!("The retry limit went from 105 to 106 tries."));
}

/// The marks are there when the write returns: nothing here waits for the idle worker.
#[test]
fn what_a_message_names_as_no_longer_valid_is_superseded_at_once() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    server.save("s", "0", "We deploy on Tuesdays. The logo is green.");
    server.save("s", "1", "The deploy script must never run on Fridays.");
    server.save("t", "0", "We deploy on Thursdays now, not Tuesdays.");
    let hits = server.search("when do we deploy");
    let old = hits.iter().find(|hit| hit["text"].as_str().unwrap().contains("green")).unwrap();
    assert_eq!(hits[0]["text"], json!("We deploy on Thursdays now, not Tuesdays."));
    assert_eq!(
        (&old["superseded"]["by"], &old["superseded"]["statement"]),
        (&hits[0]["id"], &json!("We deploy on Tuesdays."))
    );
    // A question about the other sentence gets no mark.
    assert!(server.search("which colour has the logo").iter().all(|hit| hit.get("superseded").is_none()));
    server.save(
        "s",
        "2",
        "Actually, scratch that: Fridays are fine, but the deploy script must never run on Mondays.",
    );
    let hits = server.search("on which days must the deploy script not run");
    let rule =
        hits.iter().find(|hit| hit["text"].as_str().unwrap().contains("never run on Fridays")).unwrap();
    assert!(rule.get("superseded").is_some(), "{hits:?}");

    // The same holds for notes, and a note that only differs corrects nothing.
    store(&mut server, "The larch cache is Redis.", &[]);
    store(&mut server, "The larch cache is Valkey instead of Redis.", &[]);
    store(&mut server, "The larch cache has 4 GB.", &[]);
    let hits = server.search("larch cache");
    let marked: Vec<bool> = hits.iter().map(|hit| hit.get("superseded").is_some()).collect();
    assert_eq!(marked.iter().filter(|is| **is).count(), 1, "{hits:?}");
}

#[test]
fn a_decision_that_is_taken_back_is_superseded() {
    let home = Home::new();
    let project = home.dir("project");
    let texts = ["We decided to use Postgres for the olive queue.", "Forget that, we stay with Redis."];
    let mut server = say(&home, &project, &texts.map(str::to_owned));
    let hits = server.hits(json!({"query": "olive queue Postgres", "kinds": ["decision"]}));
    let old = hits.iter().find(|hit| hit["text"] == texts[0]).unwrap();
    let new = hits.iter().find(|hit| hit["text"] == texts[1]).unwrap();
    assert_eq!(old["superseded"]["by"], new["id"]);
    assert!(new.get("superseded").is_none());
}

/// Makes the store one of schema 7, whose facts and decisions earlier versions had derived.
fn downgrade(home: &Home) {
    let store = Connection::open(home.store()).unwrap();
    without_counts(&store);
    let mut triggers = store.prepare("SELECT name FROM sqlite_schema WHERE name LIKE '%_sum_of_%'").unwrap();
    let triggers: Vec<String> =
        triggers.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for trigger in triggers {
        store.execute_batch(&format!("DROP TRIGGER {trigger}")).unwrap();
    }
    store
        .execute_batch(
            "DROP TABLE row_sums; DROP TABLE embedding_cache; DROP TABLE assembly_lines; DROP TABLE assemblies; DROP TABLE stashed;
             DROP TRIGGER quoted_message_removed; DROP TRIGGER quoted_message_forgotten; DROP TABLE thread_turns;
             DROP TABLE thread_copies; DROP TABLE thread_files; DROP TABLE thread_blocks; DROP TABLE blobs;
             DROP TABLE threads; DROP TABLE file_tokens;
             DROP TRIGGER replacement_removed; DROP TRIGGER superseded_added; DROP TRIGGER statement_added;
             DROP TRIGGER replacement_left_or_came_back; DROP TABLE superseded; DROP TABLE statements;
             DROP TRIGGER memory_sum_is_over; DROP TABLE memory_sums; DROP TRIGGER vector_sum_is_replaced;
             DROP TRIGGER vector_sum_is_over; DROP TABLE vector_sums;
             ALTER TABLE memories DROP COLUMN author; ALTER TABLE memories DROP COLUMN visibility;
             ALTER TABLE sessions DROP COLUMN noted; PRAGMA user_version = 7;
             UPDATE memories SET text = 'remark: turns out we keep' WHERE text LIKE '%north shed%' AND provenance = 'derived'",
        )
        .unwrap();
}

/// Takes back the migrations that keep counts, and what is exchanged.
fn without_counts(store: &Connection) {
    without(store, include_str!("../../crates/sqlite/migrations/0018_exchange.sql"));
    without(store, include_str!("../../crates/sqlite/migrations/0017_counts.sql"));
    store
        .execute_batch(
            "DELETE FROM meta WHERE key = 'changed';
             CREATE TRIGGER memory_added AFTER INSERT ON memories BEGIN SELECT 1; END;
             CREATE INDEX stashed_by_topic ON stashed (owner, topic);
             ALTER TABLE sessions DROP COLUMN memories; ALTER TABLE sessions DROP COLUMN tokens;
             ALTER TABLE sessions DROP COLUMN first_time; ALTER TABLE sessions DROP COLUMN last_time;
             ALTER TABLE stashed DROP COLUMN session",
        )
        .unwrap();
}

/// Drops what the migration `sql` makes.
fn without(store: &Connection, sql: &str) {
    let named = |what: &str| -> Vec<&str> {
        let lines = sql.lines().filter_map(|line| line.strip_prefix("CREATE ")?.strip_prefix(what));
        lines.map(|rest| rest.split_whitespace().next().unwrap()).collect()
    };
    for what in ["TRIGGER", "INDEX", "TABLE"] {
        // The index of a table is gone with it.
        named(what)
            .iter()
            .for_each(|name| store.execute_batch(&format!("DROP {what} IF EXISTS {name}")).unwrap());
    }
}

/// Earlier versions kept worse facts, and only of closed segments.
#[test]
fn the_facts_of_an_earlier_version_are_made_anew() {
    let home = Home::new();
    let project = home.dir("project");
    let texts = ["We moved to the new quince press in the north shed.", "Every quince must be washed twice."];
    let mut server = say(&home, &project, &texts.map(str::to_owned));
    let facts = |server: &mut Server| {
        let hits = server.hits(json!({"query": "quince press washed remark", "kinds": ["fact", "decision"]}));
        let mut texts = strings(&hits, "text");
        texts.sort_unstable();
        texts
    };
    let mut expected = texts.map(str::to_owned);
    expected.sort_unstable();
    assert_eq!(facts(&mut server), [expected[0].as_str(), expected[1].as_str()]);
    let marked = server.hits(json!({"query": "quince washed", "kinds": ["decision"]}))[0]["id"].clone();
    server.data("mark_important", json!({"ids": [marked]}));
    server.hang_up();
    server.wait();
    downgrade(&home);
    // The call that migrates the store changes nothing that it shows; the facts are made anew while it idles.
    home.run(&project, &["index"]);
    assert_eq!(facts(&mut home.serve(&project)), [expected[0].as_str(), expected[1].as_str()]);
    let store = Connection::open(home.store()).unwrap();
    let noted: i64 = store.query_row("SELECT noted FROM sessions", [], |row| row.get(0)).unwrap();
    assert_eq!(noted, 1);
}
