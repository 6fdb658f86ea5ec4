//! Forgetting has a dry run, accepts messages by the names that contexts show, and does not block other writers.

use std::time::{Duration, Instant};

use rusqlite::OpenFlags;
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Home, Server, strings};

/// The number of messages in a conversation whose purge takes several transactions.
const MANY: usize = 2500;

/// How long a purge may take to reach the state for which a test waits. Arbitrary: far longer than it takes even on a
/// busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn talk(server: &mut Server) {
    let message =
        |n: usize| json!({"id": n.to_string(), "role": "user", "text": format!("zeppelin number {n}")});
    let messages: Vec<Value> = (0..MANY).map(message).collect();
    server.data("save_messages", json!({"session_id": "long", "messages": messages}));
}

/// Starts a purge of the conversation and waits until part of it is deleted.
fn half_purged(home: &Home, server: &mut Server) -> rusqlite::Connection {
    let store =
        rusqlite::Connection::open_with_flags(home.store(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    store.busy_timeout(PATIENCE).unwrap();
    let arguments = json!({"session_id": "long", "purge": true});
    server.ask("tools/call", json!({"name": "forget_context", "arguments": arguments}));
    let began = Instant::now();
    while left(&store) == MANY {
        assert!(began.elapsed() < PATIENCE, "nothing is removed");
    }
    assert!(left(&store) > 0, "all was removed by one transaction");
    store
}

/// Returns the number of messages of the conversation in the store, including forgotten ones.
fn left(store: &rusqlite::Connection) -> usize {
    let count = "SELECT count(*) FROM memories WHERE text LIKE 'zeppelin%'";
    store.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap() as usize
}

/// A dry run of undo used to perform the undo.
#[test]
fn a_dry_run_of_undo_changes_nothing() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    server.save("s", "1", "a zeppelin");
    server.save("s", "2", "another zeppelin");
    let forgotten = server.data("forget_context", json!({"session_id": "s"}));
    for undo in [&forgotten["operation"], &json!("last")] {
        let (text, would) = server.both("forget_context", json!({"undo": undo, "dry_run": true}));
        assert_eq!((&would["done"], &would["ids"]), (&json!("would_undo"), &forgotten["ids"]));
        assert!(
            text.starts_with("Would bring back 2 memories") && text.contains("Nothing was changed"),
            "{text}"
        );
    }
    let ran = home.json(&project, &["undo", "--dry-run"]);
    assert_eq!((&ran["done"], &ran["count"]), (&json!("would_undo"), &json!(2)));
    assert_eq!(server.search("zeppelin").len(), 0);
    assert_eq!(server.data("forget_context", json!({"undo": "last"}))["done"], json!("undone"));
    assert_eq!(server.search("zeppelin").len(), 2);
    assert!(
        server.error("forget_context", json!({"undo": "last", "dry_run": true})).contains("nothing to undo")
    );
}

/// A purge of a long conversation used to lock the store for half a minute, so that writes of other processes were
/// lost.
#[test]
fn other_writers_proceed_while_a_long_conversation_is_purged() {
    let home = Home::new();
    let project = home.dir("project");
    let (mut server, mut other) = (home.serve(&project), home.serve(&project));
    talk(&mut server);
    let store = half_purged(&home, &mut server);
    let began = Instant::now();
    other.save("live", "1", "said while others purge");
    let waited = began.elapsed();
    let were_left = left(&store);
    assert!(waited < Duration::from_secs(20), "{waited:?}");
    let purged = server.receive()["result"]["structuredContent"].take();
    assert_eq!(
        (&purged["done"], &purged["count"]),
        (&json!("purged"), &json!(MANY)),
        "{were_left} were left"
    );
    assert_eq!(home.files_with("zeppelin"), Vec::<std::path::PathBuf>::new());
    assert_eq!(strings(&other.search("said while"), "text"), ["said while others purge"]);
}

#[cfg(unix)]
#[test]
fn a_killed_purge_leaves_nothing_visible_and_can_be_resumed() {
    for again in ["call", "gc"] {
        let home = Home::new();
        let project = home.dir("project");
        let mut server = home.serve(&project);
        server.save("s", "1", "something else");
        talk(&mut server);
        let store = half_purged(&home, &mut server);
        kill_process(Pid::from_raw(server.pid()).unwrap(), Signal::KILL).unwrap();
        server.wait();
        let remain = left(&store);
        drop(store);
        assert!(remain > 0, "it was done before it was killed");
        let mut server = home.serve(&project);
        assert_eq!(server.search("zeppelin").len(), 0);
        assert_eq!(
            strings(server.data("list_sessions", json!({}))["sessions"].as_array().unwrap(), "session_id"),
            ["s"]
        );
        let undone = server.error("forget_context", json!({"undo": "last"}));
        assert!(undone.contains("nothing to undo"), "{undone}");
        if again == "call" {
            let purged = server.data("forget_context", json!({"session_id": "long", "purge": true}));
            assert_eq!((&purged["done"], &purged["count"]), (&json!("purged"), &json!(remain)));
        } else {
            home.json(&project, &["gc"]);
        }
        assert_eq!(home.files_with("zeppelin"), Vec::<std::path::PathBuf>::new(), "{again}");
        assert_eq!(server.search("something else").len(), 1);
    }
}

/// Contexts show messages as SESSION#NUMBER. A message could be opened by this name, but it could not be marked or
/// forgotten by it.
#[test]
fn messages_are_accepted_by_the_names_that_contexts_show() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let ids = [server.save("a#b", "1", "a zeppelin"), server.save("a#b", "2", "an airship")];
    let marked = server.data("mark_important", json!({"ids": ["a#b#1", "a#b#7"]}));
    assert_eq!((&marked["ids"], &marked["unknown"]), (&json!([ids[1]]), &json!(["a#b#7"])));
    let fact = json!({"text": "both fly", "references": ["a#b#0", ids[1], "a#b#9"]});
    assert_eq!(server.data("store_memory", fact)["unknown_references"], json!(["a#b#9"]));
    let opened = server.data("expand_detail", json!({"id": "a#b#0"}));
    assert_eq!(
        opened["references"].as_array().unwrap().len(),
        2,
        "the fact, and what it refers to: {opened}"
    );
    let would = server.data("forget_context", json!({"ids": ["a#b#0", "a#b#5"], "dry_run": true}));
    assert_eq!((&would["ids"], &would["unknown"]), (&json!([ids[0]]), &json!(["a#b#5"])));
    assert_eq!(server.data("forget_context", json!({"ids": ["a#b#0"]}))["ids"], json!([ids[0]]));
    assert!(server.search("zeppelin").is_empty());
    assert_eq!(server.search("both fly").len(), 1);
}

/// A dry run used to list twenty bare ids, whatever the number of matches.
#[test]
fn a_dry_run_shows_what_a_query_would_forget() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let long = format!("the zeppelin import fails on Fridays because {}", "of this and that and ".repeat(40));
    let id = server.save("s", "1", &long);
    server.save("t", "1", "we water the roses on Fridays");
    server.save("u", "1", "the harbour office is closed on Fridays");
    let query = json!({"query": "zeppelin import Fridays", "dry_run": true});
    let (text, would) = server.both("forget_context", query);
    assert_eq!((&would["ids"], &would["left_out"]), (&json!([id]), &json!(2)), "{text}");
    let shown = would["matches"][0]["text"].as_str().unwrap();
    assert!(
        shown.starts_with("the zeppelin import fails") && shown.ends_with('…') && shown.len() < 300,
        "{shown}"
    );
    let quoted = text.split_once("[data ").unwrap().1.split_once("[/data ").unwrap().0;
    assert!(quoted.contains(&format!("{id}: {shown}")), "{text}");
    assert!(text.contains("Not forgotten: 2 matches that fit less well"), "{text}");
    assert_eq!(
        server.data("forget_context", json!({"query": "zeppelin import Fridays"}))["ids"],
        json!([id])
    );
    assert_eq!(server.search("Fridays").len(), 2);
}

/// The most similar memory used to be forgotten even if it had nothing to do with the query.
#[test]
fn a_query_forgets_nothing_that_does_not_have_its_words() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    server.save("s", "1", "Anna owns billing");
    server.save("s", "2", "the roses are watered on Fridays");
    for purge in [false, true] {
        let query = json!({"query": "zebra quantum entanglement", "purge": purge});
        let told = server.error("forget_context", query.clone());
        assert!(told.contains("nothing"), "{query}: {told}");
    }
    assert!(server.search("billing").iter().any(|hit| hit["text"].as_str().unwrap().contains("Anna")));
    assert_eq!(server.data("forget_context", json!({"query": "who owns the billing"}))["count"], 1);
    assert!(server.search("billing").iter().all(|hit| !hit["text"].as_str().unwrap().contains("Anna")));
}

/// The numbers of sessions and saved tokens used to include sessions and segments whose messages were all forgotten.
#[test]
fn forgotten_memories_are_not_counted() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let message =
        |n: usize| json!({"id": n.to_string(), "role": "user", "text": format!("turn {n} of many words")});
    let messages: Vec<Value> = (0..120).map(message).collect();
    server.data("save_messages", json!({"session_id": "long", "messages": messages}));
    server.data("retrieve_context", json!({"query": "turn", "session_id": "long"}));
    let before = home.json(&project, &["stats"]);
    assert!(before["sessions"] == json!(1) && !before["tiers"].as_array().unwrap().is_empty(), "{before}");
    server.data("forget_context", json!({"session_id": "long"}));
    let after = home.json(&project, &["stats"]);
    assert_eq!((&after["sessions"], &after["tiers"]), (&json!(0), &json!([])));
}

/// A purge used not to find forgotten memories, so they stayed in the file and its backups.
#[test]
fn a_purge_also_deletes_forgotten_memories() {
    for (n, by) in ["ids", "place", "session_id", "source", "query", "owner"].into_iter().enumerate() {
        let home = Home::new();
        let project = home.dir("project");
        let mut server = home.serve(&project);
        let secret = format!("xylograph{n}");
        let is_owners = by == "owner";
        let id = match is_owners {
            false => {
                let id = server.save("s", "m1", &format!("we decided to keep the {secret} in the cellar"));
                server.save("s", "m2", "and what else is there?");
                server.save("s", "m3", "nothing else");
                // Data derived from the memory: facts, segments, summaries, answers.
                server.data("retrieve_context", json!({"query": "cellar", "session_id": "s"}));
                server.data("summarize_conversation", json!({"session_id": "s", "use_provider": false}));
                id
            }
            true => {
                // The project has a store in addition to the owner's.
                server.save("s", "m1", "what else is there?");
                let fact = json!({"text": format!("the {secret} is mine"), "scope": "owner"});
                server.data("store_memory", fact)["id"].as_str().unwrap().to_owned()
            }
        };
        home.run(&project, &["index"]);
        let backups = home.store().with_file_name("tiro.db.backups");
        std::fs::create_dir_all(&backups).unwrap();
        std::fs::copy(home.store(), backups.join("schema-0001-0001.db")).unwrap();
        server.data("forget_context", json!({"ids": [id]}));
        assert!(server.search(&secret).is_empty() && !home.files_with(&secret).is_empty());
        let what = match by {
            "place" => json!({"ids": ["s#0"]}),
            "session_id" => json!({"session_id": "s"}),
            "source" => json!({"source": "m1"}),
            "query" => json!({"query": format!("the {secret} in the cellar")}),
            _ => json!({"ids": [id]}),
        };
        let with = |key: &str| {
            let mut arguments = what.clone();
            arguments["purge"] = json!(true);
            arguments[key] = json!(true);
            arguments
        };
        let would = server.data("forget_context", with("dry_run"));
        assert!(would["ids"].as_array().unwrap().contains(&json!(id)), "{by}: {would}");
        let (text, purged) = server.both("forget_context", with("purge"));
        assert!(purged["ids"].as_array().unwrap().contains(&json!(id)), "{by}: {purged}");
        assert!(
            purged["forgotten_before"].as_u64() >= Some(1) && text.contains("forgotten before"),
            "{by}: {text}"
        );
        let undone = server.error("forget_context", json!({"undo": "last"}));
        assert!(undone.contains("nothing to undo"), "{by}: {undone}");
        if !is_owners {
            assert!(!backups.join("schema-0001-0001.db").exists());
        }
        assert_eq!(home.files_with(&secret), Vec::<std::path::PathBuf>::new(), "{by}");
        // Saving the purged memory again, by a call or from a backup, does not bring it back.
        if by == "ids" {
            server.data(
                "save_messages",
                json!({"session_id": "s", "messages": [{"id": "m1", "role": "user", "text": secret}]}),
            );
            assert_eq!(home.files_with(&secret), Vec::<std::path::PathBuf>::new());
        }
    }
}

/// A search does not find forgotten memories, so a purge by query used to miss them. Now the purge includes them and
/// reports what it left.
#[test]
fn a_purge_by_query_deletes_twenty_forgotten_memories_and_says_so() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    for n in 0..25 {
        server.save("s", &n.to_string(), &format!("the Xylograph number {n}"));
    }
    server.save("t", "1", "a xylophone");
    server.data("forget_context", json!({"session_id": "s"}));
    let (text, purged) = server.both("forget_context", json!({"query": "number xylograph", "purge": true}));
    assert_eq!((&purged["count"], &purged["forgotten_left_out"]), (&json!(20), &json!(5)), "{purged}");
    assert!(text.contains("Not removed yet: 5 forgotten memories with these words"), "{text}");
    server.data("forget_context", json!({"query": "number xylograph", "purge": true}));
    assert_eq!(home.files_with("ylograph"), Vec::<std::path::PathBuf>::new());
    assert_eq!(server.search("xylophone").len(), 1);
}
