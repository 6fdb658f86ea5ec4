//! A backup can come from anywhere: what it brings in is held to what holds for every write.

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

/// A text of 400 MB came in.
#[test]
fn what_is_too_long_or_no_memory_is_left_out_and_said() {
    let home = Home::new();
    let file = backup(&home);
    changed(
        &file,
        "CREATE TEMP TABLE t AS SELECT * FROM memories WHERE text LIKE '%quince%';
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
             provenance = 'user_said', head_sha = 'not a commit';
         INSERT INTO memories SELECT * FROM t;",
    );
    let data = restored(&home, &file);
    assert_eq!(
        (&data["added"], &data["too_long"], &data["malformed"]),
        (&json!(3), &json!(2), &json!(3)),
        "{data}"
    );
    let told = home.run(&home.dir("other"), &["restore", file.to_str().unwrap()]).stdout;
    assert!(told.contains("2 memories are longer than") && told.contains("3 entries of the file"), "{told}");
    let mut server = home.serve(&home.dir("other"));
    let hit = server.search("a tool said this").swap_remove(0);
    assert_eq!((&hit["provenance"], &hit["freshness"]), (&json!("tool_output"), &json!("current")), "{hit}");
}

#[test]
fn secrets_in_a_backup_are_replaced_also_in_the_names_of_conversations() {
    let home = Home::new();
    let file = backup(&home);
    let secret = ["gh", "p_", "9fKqWz3XvB7nRt2LmYc8JdHs5GpQaEuT4oVi"].concat();
    changed(
        &file,
        &format!(
            "UPDATE memories SET text = 'use {secret} to push', speaker = '{secret}', branch = '{secret}',
                 head_sha = '{secret}', source_id = '{secret}' WHERE text LIKE '%quince%';
             UPDATE sessions SET name = 'debug {secret}'"
        ),
    );
    let data = restored(&home, &file);
    assert_eq!(data["added"], 2, "{data}");
    assert!(data["redactions"][0]["count"].as_u64() >= Some(1), "{data}");
    assert_eq!(home.files_with(&secret), Vec::<PathBuf>::new());
}

/// SQLite runs what a file defines: triggers, views, computed columns.
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
        "CREATE TRIGGER evil BEFORE INSERT ON memories BEGIN DELETE FROM memories; END;
         CREATE TRIGGER worse AFTER UPDATE ON meta BEGIN DELETE FROM memories; END;
         UPDATE memories SET importance = 1e300",
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

/// Who purged something doesn't want it back with an older backup.
#[test]
fn what_was_purged_stays_away() {
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
