//! Whatever the input is, the answer says which value is wrong, why, and what to try. Nothing breaks and nothing is
//! lost.

#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Home, Server};

#[test]
fn a_bad_argument_is_named_with_a_hint() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let id = server.save("s", "1", "something");
    let long = "x".repeat(600);
    let message = |field: &str, value: Value| {
        let mut message = json!({"role": "user", "text": "t"});
        message[field] = value;
        json!({"session_id": "s", "messages": [{"role": "user", "text": "fine"}, message]})
    };
    let cases = [
        ("search_project_memory", json!({}), "`query`", "give `query`"),
        ("search_project_memory", json!({"query": ""}), "`query` is empty", "such as \"why"),
        ("search_project_memory", json!({"query": " \n\u{3000}"}), "`query` is empty", "such as \"why"),
        ("search_project_memory", json!({"query": {"not": 7}}), "`query`", "a string, such as"),
        ("search_project_memory", json!({"query": "x", "k": -1}), "`k`", "from 1 to 50"),
        (
            "search_project_memory",
            json!({"query": "x", "max_tokens": 99}),
            "`max_tokens` is 99",
            "100 or more",
        ),
        (
            "search_project_memory",
            json!({"query": "x", "max_tokens": -1}),
            "`max_tokens` is -1",
            "100 or more",
        ),
        (
            "search_project_memory",
            json!({"query": "x", "kinds": ["comit"]}),
            "`kinds` is not a kind: `comit`",
            "commit",
        ),
        ("search_project_memory", json!({"query": "x", "since": "soon"}), "`since`", "2026-03-01"),
        ("search_project_memory", json!({"query": "x", "until": "2026-13-45"}), "`until`", "2026-03-01"),
        ("search_project_memory", json!({"query": "x", "since": "\u{0}"}), "`since`", "2026-03-01"),
        ("search_project_memory", json!({"query": "x", "cursor": "../etc"}), "`cursor`", "leave it out"),
        ("search_project_memory", json!({"query": "x", "sessions": ["\u{0}"]}), "`sessions`", ""),
        ("search_project_memory", json!({"query": "x", "branch": long}), "`branch`", "shorten it"),
        ("search_project_memory", json!({"query": "x", "limit": "few"}), "`limit`", "such as 10"),
        ("expand_detail", json!({"id": "../../owner.db"}), "`id`", "search results"),
        (
            "expand_detail",
            json!({"id": "m0000000000000"}),
            "no memory is called `m0000000000000`",
            "search results",
        ),
        ("expand_detail", json!({"id": id, "cursor": "99999"}), "`cursor`", "leave it out"),
        ("expand_detail", json!({"id": id, "max_tokens": 3}), "`max_tokens` is 3", "150 or more"),
        ("expand_detail", json!({"id": "#1"}), "`id` is not the id of a memory: `#1`", "SESSION#NUMBER"),
        (
            "expand_detail",
            json!({"id": "abcdef1"}),
            "no stored commit has an id that begins with `abcdef1`",
            "tiro import git",
        ),
        ("expand_detail", json!({"id": "name"}), "`id` is not the id of a memory: `name`", "commit's id"),
        ("expand_detail", json!({"id": "s#9"}), "no message 9 in session `s`", "list_sessions"),
        ("get_context_summary", json!({"query": "x", "max_tokens": 1}), "`max_tokens` is 1", "200 or more"),
        ("get_relevant_snippets", json!({"query": "x", "max_tokens": 1}), "`max_tokens` is 1", "300 or more"),
        ("retrieve_context", json!({"query": "x", "max_tokens": -1}), "`max_tokens` is -1", "300 or more"),
        (
            "get_context_summary",
            json!({"query": "x", "time_range": {"start": "2026-03-02", "end": "2026-03-01"}}),
            "`time_range.end` is not after `time_range.start`",
            "the range is empty",
        ),
        (
            "summarize_conversation",
            json!({"session_id": "s", "since": "2026-03-02", "until": "2026-03-01"}),
            "`until` is not after `since`",
            "the range is empty",
        ),
        ("mark_important", json!({"ids": ["s#9"]}), "no memory is called `s#9`", "search results"),
        ("forget_context", json!({"ids": ["s#9"]}), "nothing matches", "search first"),
        ("expand_detail", json!({"id": id, "before": -1}), "`before`", "from 0 to 20"),
        ("save_messages", json!({"session_id": "s"}), "`messages`", "give `messages`"),
        ("save_messages", json!({"session_id": "s", "messages": []}), "`messages` is empty", "at least one"),
        (
            "save_messages",
            json!({"session_id": "", "messages": [{"role": "user", "text": "t"}]}),
            "`session_id` is empty",
            "such as \"auth\"",
        ),
        (
            "save_messages",
            json!({"session_id": "a\u{0}b", "messages": [{"role": "user", "text": "t"}]}),
            "`session_id`",
            "short plain name",
        ),
        (
            "save_messages",
            message("role", json!("robot")),
            "`messages[1].role` is not a role: `robot`",
            "user, assistant",
        ),
        ("save_messages", message("text", json!(" ")), "`messages[1].text` is empty", "such as \"The cache"),
        ("save_messages", message("time", json!("soon")), "`messages[1].time`", "2026-03-01"),
        ("save_messages", message("time", json!("-5000-01-01")), "`messages[1].time`", "2026-03-01"),
        ("save_messages", message("id", json!(long)), "`messages[1].id`", "shorten it"),
        ("save_messages", message("role", json!(null)), "`messages[1].role` is missing", "such as \"user\""),
        ("store_memory", json!({"text": ""}), "`text` is empty", "such as \"The cache"),
        (
            "store_memory",
            json!({"text": "t", "type": "rumour"}),
            "`type` is not a kind: `rumour`",
            "decision",
        ),
        ("store_memory", json!({"text": "t", "type": "commit"}), "`type` can't be commit", "tiro import git"),
        ("store_memory", json!({"text": "t", "importance": 1.5}), "`importance` is 1.5", "such as 0.8"),
        (
            "store_memory",
            json!({"text": "t", "scope": "world"}),
            "`scope` can't be `world`",
            "project or owner",
        ),
        ("store_memory", json!({"text": "t", "references": ["x"]}), "`references`", "search results"),
        ("mark_important", json!({"ids": []}), "`ids` is empty", "search results"),
        ("mark_important", json!({"ids": ["m0000000000000"]}), "`m0000000000000`", "search results"),
        ("forget_context", json!({}), "exactly one of", "`session_id`"),
        ("forget_context", json!({"ids": [id], "query": "x"}), "exactly one of", "`ids`"),
        ("forget_context", json!({"session_id": "nobody"}), "nothing matches", "search first"),
        ("forget_context", json!({"undo": "f123"}), "`f123`", "operation"),
        ("list_sessions", json!({"limit": -1}), "`limit`", "from 1 to 100"),
        ("list_sessions", json!({"cursor": "x"}), "`cursor`", "leave it out"),
    ];
    for (tool, arguments, names, hint) in cases {
        let shown = arguments.to_string();
        let told = server.error(tool, arguments);
        assert!(told.contains(names) && told.contains(hint), "{tool} {shown:.200}: {told}");
        assert!(told.len() < 1000, "{tool}: an error is short: {told}");
    }
    assert!(server.search("fine").is_empty(), "a call that fails stores nothing");
}

#[test]
fn unknown_names_find_nothing() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    assert_eq!(server.data("list_sessions", json!({}))["sessions"], json!([]));
    server.save("s", "1", "something");
    let found = server.data("search_project_memory", json!({"query": "something", "sessions": ["nobody"]}));
    assert_eq!((&found["hits"], &found["covered"]), (&json!([]), &json!(["nobody"])));
    assert!(server.search("-- \"' OR * NEAR( AND").is_empty());
    let gone = server.request("resources/read", json!({"uri": "tiro://session/nobody"}));
    assert!(gone["error"]["message"].as_str().unwrap().contains("nobody"), "{gone}");
}

/// A message with a time in the future or in another century is stored with that time.
#[test]
fn distant_times_are_stored() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    for (id, time) in
        [("old", "0001-01-01T00:00:00Z"), ("new", "9999-12-01T23:59:59Z"), ("epoch", "1970-01-01")]
    {
        let message = json!({"id": id, "role": "user", "text": "a message in time", "time": time});
        server.data("save_messages", json!({"session_id": id, "messages": [message]}));
        let hits = server.hits(json!({"query": "message in time", "sessions": [id]}));
        assert!(hits[0]["time"].as_str().unwrap().starts_with(&time[..10]), "{hits:?}");
    }
}

#[test]
fn a_query_of_a_megabyte_is_answered() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    server.save("s", "1", "the kumquat is ripe");
    let words: String = (0..).map(|n| format!("word{n} ")).take(100_000).collect();
    assert_eq!(server.search(&format!("kumquat {words}"))[0]["source_id"], "1");
    for query in [" ".repeat(1 << 20) + "kumquat", "kumquat ".repeat(1 << 17)] {
        assert_eq!(server.search(&query)[0]["source_id"], "1");
    }
    assert!(server.search(&"z".repeat(1 << 20)).is_empty());
}

#[test]
fn twenty_thousand_messages_in_one_call_are_all_stored() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let message =
        |n: usize| json!({"id": format!("m{n}"), "role": "user", "text": format!("number {n} of many")});
    let messages: Vec<Value> = (0..20_000).map(message).collect();
    let saved = server.data("save_messages", json!({"session_id": "s", "messages": messages}));
    assert_eq!((&saved["saved"], &saved["ids"]), (&json!(20_000), &json!([])));
    assert_eq!(server.search("19999")[0]["source_id"], "m19999");
    assert_eq!(server.data("list_sessions", json!({}))["sessions"][0]["memories"], 20_000);
}

#[test]
fn hidden_characters_come_back_escaped() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let hidden = "lychee\u{0}\u{202e}\u{2066}\u{e0041}\u{e0042}\u{200b}\u{feff}\u{1b}[31m\u{85} end";
    let message = json!({"id": hidden, "role": "user", "speaker": hidden, "text": hidden});
    server.call("save_messages", json!({"session_id": "see\u{202e}\u{e0041}", "messages": [message]}));
    server.call("store_memory", json!({"text": format!("more {hidden}"), "topic": "lychee"}));
    let found = server.call("search_project_memory", json!({"query": "lychee"}));
    let hits = found["structuredContent"]["hits"].as_array().unwrap().clone();
    assert_eq!(hits.len(), 2, "{found}");
    let mut answers = vec![found, server.call("list_sessions", json!({}))];
    for hit in &hits {
        answers.push(server.call("expand_detail", json!({"id": hit["id"]})));
    }
    answers.push(server.request(
        "resources/read",
        json!({"uri": format!("tiro://memory/{}", hits[0]["id"].as_str().unwrap())}),
    ));
    for answer in &answers {
        let mut shown = Vec::new();
        strings_in(answer, &mut shown);
        let is_hidden = |c: char| {
            (c.is_control() && c != '\n' && c != '\t')
                || "\u{202e}\u{2066}\u{e0041}\u{e0042}\u{200b}\u{feff}".contains(c)
        };
        let bad = shown.iter().find(|text| text.contains(is_hidden));
        assert!(bad.is_none(), "{:?} in {answer}", bad.unwrap());
    }
    assert!(answers[0].to_string().contains(r"\\u{202e}"), "{}", answers[0]);
}

fn strings_in(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings_in(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| strings_in(field, found)),
        _ => {}
    }
}

/// Makes a call that reads and one that writes, both of which must fail, and returns their errors.
fn refused(home: &Home, place: &Path) -> String {
    let mut server: Server = home.serve(place);
    let read = server.error("search_project_memory", json!({"query": "x"}));
    let write = server.error("store_memory", json!({"text": "x"}));
    let ran = home.run(place, &["stats"]);
    assert!(!ran.is_ok && ran.stderr.contains("hint: "), "{ran:?}");
    format!("{read}\n{write}")
}

/// Returns the bytes of a database, including its log.
fn whole(database: &Path) -> Vec<u8> {
    let connection = rusqlite::Connection::open(database).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    std::fs::read(database).unwrap()
}

/// Replaces a database and its log with `bytes`.
fn replace(database: &Path, bytes: &[u8]) {
    for end in ["-wal", "-shm"] {
        let mut beside = database.as_os_str().to_owned();
        beside.push(end);
        let _ = std::fs::remove_file(beside);
    }
    std::fs::write(database, bytes).unwrap();
}

#[test]
fn a_damaged_or_newer_store_is_refused_and_left_unchanged() {
    let home = Home::new();
    let project = home.dir("project");
    home.serve(&project).save("s", "1", "something");
    let (store, owners) = (home.store(), home.data().join("owner.db"));
    let (sound, sound_owners) = (whole(&store), whole(&owners));

    let future = rusqlite::Connection::open(&store).unwrap();
    future
        .execute_batch("PRAGMA user_version = 99; UPDATE meta SET value = 99 WHERE key = 'min_writer'")
        .unwrap();
    drop(future);
    let told = refused(&home, &project);
    assert!(told.contains("newer Tiro (schema 99)") && told.contains("update this Tiro"), "{told}");

    let mut damaged = sound.clone();
    damaged[..4096].fill(0x5a);
    for garbage in [b"garbage".repeat(1000), damaged] {
        replace(&store, &garbage);
        let told = refused(&home, &project);
        assert!(
            told.contains("is not a database, or its beginning is damaged") && told.contains("tiro doctor"),
            "{told}"
        );
        assert_eq!(std::fs::read(&store).unwrap(), garbage, "a damaged file is left as it is");
    }
    replace(&store, &sound);
    replace(&owners, &b"garbage".repeat(1000));
    assert!(refused(&home, &project).contains("owner.db"));
    replace(&owners, &sound_owners);

    let foreign_file = home.path().join("foreign.db");
    let foreign = rusqlite::Connection::open(&foreign_file).unwrap();
    foreign.execute_batch("CREATE TABLE cookies (name TEXT)").unwrap();
    drop(foreign);
    replace(&store, &std::fs::read(&foreign_file).unwrap());
    assert!(refused(&home, &project).contains("another program"));
    let told = home.run(&project, &["doctor"]);
    assert!(told.stdout.contains("FAIL") && told.stdout.contains("mend: "), "{told:?}");
}

#[test]
fn an_older_program_works_with_a_store_that_gained_a_column() {
    let home = Home::new();
    let project = home.dir("project");
    home.serve(&project).save("s", "1", "something");
    let newer = rusqlite::Connection::open(home.store()).unwrap();
    newer.execute_batch("ALTER TABLE memories ADD COLUMN mood TEXT; PRAGMA user_version = 99").unwrap();
    drop(newer);
    let mut server = home.serve(&project);
    server.save("s", "2", "something else");
    assert_eq!(server.search("something").len(), 2);
}

#[test]
fn a_locked_store_is_busy_and_works_again_once_it_is_free() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    server.save("s", "1", "something");
    let other = rusqlite::Connection::open(home.store()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(server.search("something").len(), 1, "reading goes on");
    let told = server.call("store_memory", json!({"text": "else"}));
    assert_eq!(told["structuredContent"]["error"]["kind"], "busy", "{told}");
    assert!(told["content"][0]["text"].as_str().unwrap().contains("try again"));
    other.execute_batch("COMMIT").unwrap();
    server.data("store_memory", json!({"text": "else"}));
}

/// That a folder without permission is reported too is in `unwritable.rs`, where the program runs as a user whom permissions
/// bind.
#[test]
fn a_data_directory_that_cannot_be_made_is_reported() {
    let home = Home::new();
    let project = home.dir("project");
    // A file where the directory should be stops every user.
    let blocked = home.path().join("blocked");
    std::fs::write(&blocked, "").unwrap();
    let mut command = home.tiro(&project, &["serve"]);
    command.env("TIRO_DATA_DIR", blocked.join("data"));
    let told = Server::start(command).error("store_memory", json!({"text": "x"}));
    assert!(told.contains("data directory") && told.contains("TIRO_DATA_DIR"), "{told}");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_memories() {
    let home = Home::new();
    std::fs::remove_dir(home.data()).unwrap();
    home.serve(&home.dir("project")).save("s", "1", "something");
    for folder in [home.data(), home.store().parent().unwrap().to_owned()] {
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{folder:?}");
    }
}

/// An earlier version accepted each of these files as an empty backup.
#[test]
fn a_file_that_is_not_a_backup_is_refused_and_named() {
    let home = Home::new();
    let project = home.dir("project");
    let foreign = home.path().join("foreign.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE cookies (name TEXT)").unwrap();
    let bare = home.path().join("bare.db");
    rusqlite::Connection::open(&bare).unwrap().execute_batch("PRAGMA user_version = 1").unwrap();
    let texts = [("empty", ""), ("short", "x"), ("text", "{\"memories\": []}\n")];
    for (name, text) in texts {
        std::fs::write(home.path().join(name), text).unwrap();
    }
    std::fs::write(home.path().join("long"), "no database ".repeat(1000)).unwrap();
    let cases = [
        ("empty", "an empty file"),
        ("short", "not a database"),
        ("text", "not a database"),
        ("long", "not a database"),
        ("bare.db", "an empty database"),
        ("foreign.db", "a database of another program"),
        ("missing", "no backup"),
        ("project", "no backup"),
    ];
    for (name, found) in cases {
        let path = home.path().join(name);
        let ran = home.run(&project, &["restore", path.to_str().unwrap()]);
        assert!(!ran.is_ok && ran.stdout.is_empty(), "{name}: {ran:?}");
        let told = [found, path.to_str().unwrap(), "`tiro backup FILE`"];
        assert!(told.iter().all(|part| ran.stderr.contains(part)), "{name}: {ran:?}");
    }
    home.serve(&project).save("s", "1", "something");
    let backup = home.path().join("backup.db");
    home.json(&project, &["backup", backup.to_str().unwrap()]);
    let restored = home.json(&home.dir("other"), &["restore", backup.to_str().unwrap()]);
    assert_eq!(restored["added"], 1);
}

/// The check of an earlier version wrote an empty file, which succeeds even on a full disk.
#[test]
fn doctor_reports_a_full_disk() {
    let home = Home::new();
    let project = home.dir("project");
    home.serve(&project).save("s", "1", "something");
    assert!(home.run(&project, &["doctor"]).is_ok);
    let mut limited = std::process::Command::new("sh");
    let tiro = home.tiro(&project, &[]);
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$0\" doctor"])
        .arg(tiro.get_program())
        .current_dir(&project)
        .env_clear()
        .envs(tiro.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("FAIL data directory"), "{output:?}");
}

#[test]
fn with_a_truncated_or_unknown_model_search_is_lexical_and_says_so() {
    let home = Home::new();
    let project = home.dir("project");
    home.serve(&project).save("s", "1", "the durian smells");
    let folder = home.dir("models/all-MiniLM-L6-v2");
    std::fs::write(folder.join("weights.tiro"), "cut short").unwrap();
    let (text, found) = home.serve(&project).both("search_project_memory", json!({"query": "durian"}));
    assert_eq!(found["hits"][0]["source_id"], "1");
    let notice = found["notices"][0].as_str().unwrap();
    assert!(notice.contains("lexical search only") && notice.contains("tiro model install"), "{notice}");
    assert!(text.contains("lexical search only"));
    assert_eq!(found["pending"], 1, "what isn't embedded is told");
    let ran = home.run(&project, &["index"]);
    assert!(!ran.is_ok && ran.stderr.contains("tiro model install"), "{ran:?}");
}

#[test]
fn without_a_home_the_data_directory_must_be_set() {
    let home = Home::new();
    let project = home.dir("project");
    let named = home.tiro(&project, &["stats"]).env_remove("HOME").output().unwrap();
    assert!(named.status.success(), "{named:?}");
    // The system may still know a home directory, whose content the test must not touch, so this command opens no
    // store.
    let unnamed =
        home.tiro(&project, &["model", "list"]).env("HOME", "").env_remove("TIRO_DATA_DIR").output().unwrap();
    let told = String::from_utf8_lossy(&unnamed.stderr).into_owned();
    assert!(unnamed.status.success() || told.contains("TIRO_DATA_DIR"), "{told}");
}

#[test]
fn wrong_usage_and_failure_have_different_exit_codes() {
    let home = Home::new();
    let project = home.dir("project");
    for (args, code) in
        [(&["serch", "x"][..], 2), (&["search"], 2), (&["search", "x", "--k", "0"], 2), (&["undo"], 1)]
    {
        let output = home.tiro(&project, args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}: {output:?}");
    }
}
