//! A backup can come from anywhere, so it must meet the same rules as every write.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::Home;

/// Returns a backup of a project in which two messages were saved.
fn backup(home: &Home) -> PathBuf {
    let project = home.dir("project");
    let mut server = home.serve(&project);
    server.save("s", "1", "a quince in the cellar");
    server.save("s", "2", "a pomelo in the attic");
    let file = home.path().join("backup.db");
    home.json(&project, &["backup", file.to_str().unwrap()]);
    file
}

fn changed(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

fn restored(home: &Home, file: &Path) -> Value {
    home.json(&home.dir("other"), &["restore", file.to_str().unwrap()])
}

/// An earlier version restored a text of 400 MB.
#[test]
fn overlong_and_invalid_memories_are_left_out_and_reported() {
    let home = Home::new();
    let file = backup(&home);
    // A text whose hash is not its own counts as damaged.
    let hash = blake3::hash(b"a tool said this").to_hex();
    let sql = "CREATE TEMP TABLE t AS SELECT * FROM memories WHERE text LIKE '%quince%';
         UPDATE t SET seq = 101, id = 'maaaaaaaaaaaaa', text = replace(hex(zeroblob(9000000)), '0', 'a ');
         INSERT INTO memories SELECT * FROM t;
         UPDATE t SET seq = 102, id = 'mbbbbbbbbbbbbb', text = 'a fig', title = hex(zeroblob(3000));
         INSERT INTO memories SELECT * FROM t;
         UPDATE t SET seq = 103, id = 'mccccccccccccc', title = NULL, kind = 'prophecy';
         INSERT INTO memories SELECT * FROM t;
         UPDATE t SET seq = 104, id = 'no id', kind = 'message';
         INSERT INTO memories SELECT * FROM t;
         UPDATE t SET seq = 105, id = 'mddddddddddddd', time = 9223372036854775807;
         INSERT INTO memories SELECT * FROM t;
         UPDATE t SET seq = 106, id = 'meeeeeeeeeeeee', time = 0, text = 'a tool said this', role = 'tool',
             provenance = 'user_said', head_sha = 'not a commit', text_hash = x'HASH';
         INSERT INTO memories SELECT * FROM t;";
    changed(&file, &sql.replace("HASH", &hash));
    let data = restored(&home, &file);
    assert_eq!(
        (&data["added"], &data["too_long"], &data["malformed"]),
        (&json!(3), &json!(2), &json!(3)),
        "{data}"
    );
    let told = home.run(&home.dir("other"), &["restore", file.to_str().unwrap()]).stdout;
    assert!(told.contains("2 memories are longer than") && told.contains("3 entries of the file"), "{told}");
    let mut server = home.serve_with_ranking(&home.dir("other"));
    let hit = server.search("a tool said this").swap_remove(0);
    assert_eq!((&hit["provenance"], &hit["freshness"]), (&json!("tool_output"), &json!("current")), "{hit}");
}

#[test]
fn secrets_in_a_backup_are_replaced_also_in_the_names_of_conversations() {
    let home = Home::new();
    let file = backup(&home);
    let secret = ["gh", "p_", "9fKqWz3XvB7nRt2LmYc8JdHs5GpQaEuT4oVi"].concat();
    let hash = blake3::hash(format!("use {secret} to push").as_bytes()).to_hex();
    changed(
        &file,
        &format!(
            "UPDATE memories SET text = 'use {secret} to push', text_hash = x'{hash}', speaker = '{secret}', branch = '{secret}',
                 head_sha = '{secret}', source_id = '{secret}' WHERE text LIKE '%quince%';
             UPDATE sessions SET name = 'debug {secret}'"
        ),
    );
    let data = restored(&home, &file);
    assert_eq!(data["added"], 2, "{data}");
    assert!(data["redactions"][0]["count"].as_u64() >= Some(1), "{data}");
    assert_eq!(home.files_with(&secret), Vec::<PathBuf>::new());
}

/// SQLite runs code that a file defines: triggers, views, computed columns.
#[test]
fn nothing_that_a_backup_defines_is_run() {
    for (name, sql) in [
        ("a view", "ALTER TABLE sessions RENAME TO real; CREATE VIEW sessions AS SELECT * FROM real"),
        ("a computed column", "ALTER TABLE sessions ADD COLUMN evil TEXT AS (hex(zeroblob(1000000)))"),
        (
            "a virtual table",
            "ALTER TABLE memory_paths RENAME TO real; CREATE VIRTUAL TABLE memory_paths USING fts5 (memory, path)",
        ),
        ("a missing table", "DROP TABLE commit_parents"),
    ] {
        let home = Home::new();
        let file = backup(&home);
        changed(&file, &format!("PRAGMA legacy_alter_table = ON; PRAGMA foreign_keys = OFF; {sql}"));
        let ran = home.run(&home.dir("other"), &["restore", file.to_str().unwrap()]);
        assert!(!ran.is_ok && ran.stderr.contains("tables aren't those of Tiro"), "{name}: {ran:?}");
    }
    let home = Home::new();
    let file = backup(&home);
    changed(
        &file,
        "UPDATE memories SET importance = 1e300;
         CREATE TRIGGER evil BEFORE INSERT ON memories BEGIN DELETE FROM memories; END;
         CREATE TRIGGER worse AFTER UPDATE ON meta BEGIN DELETE FROM memories; END",
    );
    let before = std::fs::read(&file).unwrap();
    assert_eq!(restored(&home, &file)["added"], 2);
    assert!(before == std::fs::read(&file).unwrap(), "the file is only read");
    let beside = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(beside.filter(|name| name.starts_with("backup.db")).count(), 1);
}

#[test]
fn a_damaged_backup_is_refused() {
    let home = Home::new();
    let file = backup(&home);
    let bytes = std::fs::read(&file).unwrap();
    for (n, place) in (4096..bytes.len()).step_by(4096).enumerate() {
        let mut damaged = bytes.clone();
        damaged[place..place + 64].fill(0xff);
        let path = home.path().join(format!("damaged-{n}.db"));
        std::fs::write(&path, damaged).unwrap();
        let ran = home.run(&home.dir("other"), &["restore", path.to_str().unwrap()]);
        assert!(ran.is_ok || ran.stderr.contains("backup"), "{ran:?}");
    }
}

/// An older backup must not bring back purged memories.
#[test]
fn purged_memories_are_not_restored() {
    let home = Home::new();
    let file = backup(&home);
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let id = server.search("quince cellar")[0]["id"].take();
    server.data("forget_context", json!({"ids": [id], "purge": true}));
    let data = home.json(&project, &["restore", file.to_str().unwrap()]);
    assert_eq!(
        (&data["added"], &data["known"], &data["forgotten"]),
        (&json!(0), &json!(1), &json!(1)),
        "{data}"
    );
    assert_eq!(home.files_with("quince"), Vec::<PathBuf>::new());
}

/// The tables that restoring leaves out, each with the reason. `tiro restore` names those that have data of the user.
const LEFT_OUT: &[(&str, &str)] = &[
    ("meta", "of the file"),
    ("vectors", "made anew"),
    ("pending", "made anew"),
    ("changes", "of the file"),
    ("leases", "of running processes"),
    ("imports", "of the place: an import looks at everything again"),
    ("measurements", "of the place"),
    ("counters", "of the place"),
    ("versions", "of the file"),
    ("context_cache", "made anew"),
    ("commit_graph", "read from the repository anew"),
    ("statements", "read from the messages anew"),
    ("summary_queue", "of the place: requests to its providers"),
    ("summary_attempts", "of the place: what was spent there"),
    ("threads", "begun anew from the messages"),
    ("thread_blocks", "of a thread"),
    ("thread_files", "of a thread: the files are sent again"),
    ("thread_copies", "of a thread"),
    ("thread_turns", "of a thread: what was spent there"),
    ("blobs", "of a thread"),
    ("file_tokens", "counted anew"),
    ("stored_counts", "by when memories were stored here"),
    ("memory_sums", "made anew"),
    ("vector_sums", "made anew"),
    ("row_sums", "made anew"),
    ("embedding_cache", "paid embeddings of texts that may be gone"),
    ("assemblies", "of the contexts assembled there"),
    ("assembly_lines", "of the contexts assembled there"),
    ("exchange", "of the place: what is restored is exchanged as if it was stored now"),
    ("absent", "of the place: states of memories that are not here"),
];

/// The columns that differ after restoring, each with the reason.
const OTHER: &[(&str, &str, &str)] = &[
    ("memories", "seq", "of the file"),
    ("memories", "stored_at", "when it was stored here"),
    ("sessions", "seq", "of the file"),
    ("sessions", "version", "of the file"),
    ("sessions", "grown", "of the file"),
    ("sessions", "noted", "facts are extracted anew, to the same ids"),
    ("stash_groups", "seq", "of the file"),
    ("chunks", "seq", "of the file"),
    ("summaries", "seq", "of the file"),
    ("conversations", "due", "of the place"),
];

/// Returns the rows of every compared table, without the columns that differ. References to rows are replaced by names.
fn rows(store: &Path) -> Vec<(String, Vec<String>)> {
    let store = Connection::open(store).unwrap();
    let names = |sql: &str| -> Vec<String> {
        let mut statement = store.prepare(sql).unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.collect::<Result<_, _>>().unwrap()
    };
    let mut tables = names(
        "SELECT name FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    );
    tables.retain(|table| LEFT_OUT.iter().all(|(left, _)| left != table));
    let of_table = |table: String| {
        let mut columns = names(&format!("SELECT name FROM pragma_table_info('{table}')"));
        columns.retain(|column| {
            OTHER.iter().all(|(of, other, _)| (of, other) != (&table.as_str(), &column.as_str()))
        });
        let shown = columns.iter().map(|column| match column.as_str() {
            "session" => "quote((SELECT name FROM sessions WHERE seq = t.session))".to_owned(),
            "memory" | "newer" => format!("quote((SELECT id FROM memories WHERE seq = t.{column}))"),
            column => format!("quote(t.{column})"),
        });
        let shown = shown.collect::<Vec<_>>().join(" || ' ' || ");
        // A finished purge cannot be undone; the purged ids are in a separate table.
        let condition = if table == "operations" { "WHERE kind = 'forget'" } else { "" };
        let rows = names(&format!("SELECT {shown} FROM {table} t {condition} ORDER BY 1"));
        (table, rows)
    };
    tables.into_iter().map(of_table).collect()
}

/// Links of commits and sessions, summaries and all other tables used to be lost silently.
#[test]
fn a_restored_store_equals_the_backed_up_one_table_by_table() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin with an apple");
    repo.commit("b.txt", "b\n", "Go on with a banana");
    let mut server = home.serve(&repo.path);
    for session in ["one", "two"] {
        let message = |n: usize| {
            let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
            let text = format!("In {session} we decided to put quince {n} into cellar {n}, for it is cold.");
            json!({"id": format!("{session}{n}"), "role": role, "text": text})
        };
        let messages: Vec<Value> = (0..70).map(message).collect();
        server.data("save_messages", json!({"session_id": session, "messages": messages}));
    }
    server.data("store_memory", json!({"text": "We use tabs.", "type": "decision", "importance": 0.9}));
    let red = server.data("store_memory", json!({"text": "The quince jam is red."}))["id"].take();
    server.data("store_memory", json!({"text": "It is yellow.", "supersedes": [red]}));
    let found = server.search("quince 3 cellar 3");
    server.data("mark_important", json!({"ids": [found[0]["id"]]}));
    server.data("forget_context", json!({"ids": [found[1]["id"], found[2]["id"]]}));
    server.data("forget_context", json!({"ids": [found[3]["id"]], "purge": true}));
    drop(server);
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    for session in ["one", "two"] {
        server.data("retrieve_context", json!({"query": "quince", "session_id": session}));
        server.data("summarize_conversation", json!({"session_id": session, "level": "brief"}));
        server.data("summarize_conversation", json!({"session_id": session, "from": 3, "to": 9}));
    }
    let decision = server.search("We use tabs")[0]["id"].take();
    server.data("forget_context", json!({"ids": [decision]}));
    server.data("stash_context", json!({"segment_ids": ["one#4-9"], "topic": "cellar", "protected": true}));
    let log = json!([{"text": "quince: cold", "type": "debug_output"}]);
    server.data("stash_context", json!({"segments": log, "expires_in_days": 3}));
    drop(server);
    // This makes the memories of whole sessions. Without a model nothing is embedded.
    home.run(&repo.path, &["index"]);
    let store = home.store();
    changed(
        &store,
        "UPDATE sessions SET client = 'codex', worktree = '/w', title = 'About quinces', branch = 'main';
         INSERT INTO session_aliases SELECT owner, 'earlier', seq FROM sessions WHERE name = 'one';
         INSERT INTO commit_sessions (memory, place, session, confidence)
             SELECT m.seq, s.seq - (SELECT min(seq) FROM sessions), s.seq, .75 FROM memories m, sessions s
             WHERE m.kind = 'commit' AND s.name IN ('one', 'two');
         INSERT INTO file_writes (memory, time, path, worktree, branch, lines)
             SELECT seq, time + 1, 'src/a.rs', '/w', 'main', x'0102030405060708' FROM memories
             WHERE kind = 'message' LIMIT 3;
         INSERT INTO commit_calls SELECT seq, time, time + 5, '0123456', '/w' FROM memories WHERE kind = 'message' LIMIT 2;
         INSERT INTO commit_ids
             SELECT owner, '0123456789012345678901234567890123456789', seq FROM memories WHERE kind = 'commit' LIMIT 1;
         INSERT INTO repeats SELECT seq, 'again-' || seq FROM memories WHERE kind = 'message' LIMIT 3;",
    );
    let before = rows(&store);
    let file = home.path().join("backup.db");
    home.json(&repo.path, &["backup", file.to_str().unwrap()]);

    let other = Home::new();
    let project = other.dir("project");
    let data = other.json(&project, &["restore", file.to_str().unwrap()]);
    let after = rows(&other.store());
    for ((table, before), (_, after)) in before.iter().zip(&after) {
        assert!(!before.is_empty(), "nothing is in {table}: the test holds nothing");
        let missing: Vec<_> = before.iter().filter(|row| !after.contains(row)).take(3).collect();
        let strange: Vec<_> = after.iter().filter(|row| !before.contains(row)).take(3).collect();
        assert!(
            missing.is_empty() && strange.is_empty(),
            "{table}: {} rows, then {}; missing {missing:?}; strange {strange:?}; {data}",
            before.len(),
            after.len()
        );
    }
    assert!(data["summaries"].as_u64() > Some(4) && data["still_forgotten"].as_u64() >= Some(2), "{data}");
    assert_eq!((&data["purged"], &data["outdated"]), (&json!(1), &json!(0)), "{data}");
    assert!(data["left_out"].as_array().unwrap().len() > 2, "{data}");
    // A second restore gives the same result, and forgotten memories can be brought back.
    let again = other.json(&project, &["restore", file.to_str().unwrap()]);
    assert_eq!((&again["added"], &again["summaries"]), (&json!(0), &json!(0)), "{again}");
    assert_eq!(rows(&other.store()), after);
    other.json(&project, &["undo"]);
    assert_eq!(other.serve(&project).search("We use tabs")[0]["text"], "We use tabs.");
    let found = other.json(&project, &["doctor"]);
    assert!(found["findings"].as_array().unwrap().iter().any(|it| it["what"] == "store" && it["ok"] == true));
}

/// The other tables of a backup are checked as strictly as its memories.
#[test]
fn the_other_tables_of_a_backup_follow_the_rules() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    server.save("s", "1", "a quince in the cellar");
    server.save("s", "2", "a pomelo in the attic");
    server.data("summarize_conversation", json!({"session_id": "s"}));
    let file = home.path().join("backup.db");
    home.json(&project, &["backup", file.to_str().unwrap()]);
    let secret = ["gh", "p_", "9fKqWz3XvB7nRt2LmYc8JdHs5GpQaEuT4oVi"].concat();
    changed(
        &file,
        &format!(
            "UPDATE summaries SET text = 'use {secret}', provider = '{secret}', model = '{secret}', quality = 9e999,
                 made_at = 9223372036854775807, provenance = 'user_said', cited = '0 99999999999999999999 x';
             INSERT INTO summaries SELECT seq + 1, owner, 'maaaaaaaaaaaaa', session, 7, 'brief', 0, 1, 9, 1, 'p', 'm', 1,
                 provenance, 0, zeroblob(32), '', 1, 'of other messages' FROM summaries;
             INSERT INTO segments SELECT seq, 5, -9, 9223372036854775807, 1, 1 FROM sessions;
             UPDATE sessions SET title = '{secret}', client = '{secret}', worktree = '{secret}', head_sha = '{secret}';
             INSERT INTO session_aliases SELECT owner, '{secret}', seq FROM sessions;
             INSERT INTO repeats SELECT seq, '{secret}' FROM memories;
             INSERT INTO commit_ids SELECT owner, '{secret}', seq FROM memories WHERE text LIKE '%quince%';
             INSERT INTO operations SELECT '../{secret}', owner, 'forget', 1, NULL FROM sessions;
             INSERT INTO operation_memories SELECT '../{secret}', seq FROM memories WHERE text LIKE '%pomelo%';
             INSERT INTO purged SELECT owner, '{secret}' FROM sessions;
             UPDATE memories SET ordinal = 9223372036854775807, tombstoned_at = -5 WHERE text LIKE '%pomelo%'"
        ),
    );
    let data = restored(&home, &file);
    assert_eq!(
        (&data["added"], &data["still_forgotten"], &data["purged"]),
        (&json!(2), &json!(1), &json!(0)),
        "{data}"
    );
    assert_eq!((&data["summaries"], &data["outdated"]), (&json!(0), &json!(2)), "of other messages: {data}");
    let found: Vec<_> =
        home.files_with(&secret).into_iter().filter(|path| path.starts_with(home.data())).collect();
    assert_eq!(found, Vec::<PathBuf>::new());
    let other = home.dir("other");
    let mut server = home.serve(&other);
    assert_eq!(server.search("pomelo").len(), 0, "it was forgotten");
    server.save("s", "3", "a fig in the hall");
    let context = server.text("retrieve_context", json!({"query": "fig", "session_id": "s"}));
    assert!(context.contains("fig") && context.contains("quince"), "{context}");
    home.json(&other, &["undo"]);
    assert_eq!(server.search("pomelo")[0]["text"], "a pomelo in the attic");
}

/// The size of a page used to be limited only by the texts in it, and a megabyte of each change was read.
#[test]
fn the_other_tables_of_a_backup_are_read_in_pages() {
    use tiro::testing::{Draft, Kind, Provenance};
    use tiro::testing::{Flavour, ForeignPart, SqliteBackup, SqliteStore, WriteMemories};
    use tiro::testing::{ProjectId, Scope, TenantId};

    let home = Home::new();
    let project = ProjectId::parse("0123456789abcdef").unwrap();
    let path = home.path().join("tiro.db");
    let store = SqliteStore::open(&path, Flavour::Project, project.clone()).unwrap();
    let redactor = tiro::testing::Redactor::new([7; 32]);
    let scope = Scope::own(TenantId::new("ines"), project);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let pages = runtime.block_on(async {
        for number in 0..3 {
            let draft = Draft::new(Kind::Fact, Provenance::UserSaid, format!("quince {number}"), 0);
            let (memory, _) = tiro::testing::prepare(&redactor, draft, &mut || [number; 16]);
            store.save(&scope, vec![memory], 0).await.unwrap();
        }
        let store = Connection::open(&path).unwrap();
        store
            .execute_batch(
                "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2500)
                 INSERT INTO file_writes (memory, time, path, lines)
                 SELECT seq, n, printf('%.*c', 4000, 'a'), zeroblob(iif(n = 1, 256, 260)) FROM memories, n",
            )
            .unwrap();
        let mut backup = SqliteBackup::open(&scope, &path).await.unwrap();
        let mut pages = Vec::new();
        while let Some(page) = backup.next(ForeignPart::Original).await.unwrap() {
            pages.push(page.memories);
        }
        pages
    });
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<usize>>(), [1, 1, 1]);
    let writes = &pages[0][0].evidence.writes;
    assert_eq!(writes.len(), 2500);
    assert_eq!(writes.iter().filter(|write| write.lines.is_some()).count(), 1, "more than is ever kept");
}
