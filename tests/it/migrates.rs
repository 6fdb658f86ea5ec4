//! A store of an older version is migrated once, by whichever process comes first, and survives a kill at any time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::json;

use crate::harness::Home;

/// The frozen schema of an older version.
const OLD: [&str; 3] = [
    include_str!("../../crates/sqlite/migrations/0001_memories.sql"),
    include_str!("../../crates/sqlite/migrations/0002_sessions.sql"),
    include_str!("../../crates/sqlite/migrations/0003_context.sql"),
];

/// How many messages the older store has: enough that copying it takes a moment.
const MESSAGES: i64 = 6000;

/// A project whose store is of an older version.
struct Old {
    home: Home,
    project: PathBuf,
    store: PathBuf,
    /// The older file.
    file: PathBuf,
}

impl Old {
    fn new() -> Old {
        let home = Home::new();
        let project = home.dir("project");
        home.serve(&project).save("s", "0", "a quince");
        let store = home.store();
        let sql = "SELECT owner FROM memories";
        let owner: String = Connection::open(&store).unwrap().query_row(sql, [], |row| row.get(0)).unwrap();
        let file = home.path().join("old.db");
        let old = Connection::open(&file).unwrap();
        old.pragma_update(None, "journal_mode", "WAL").unwrap();
        OLD.iter().for_each(|sql| old.execute_batch(sql).unwrap());
        old.execute_batch(
            "INSERT INTO meta (key, value) VALUES ('min_reader', 1), ('min_writer', 1);
             PRAGMA user_version = 3; PRAGMA application_id = 1416196719",
        )
        .unwrap();
        old.execute("INSERT INTO sessions (owner, name) VALUES (?1, 'old')", [&owner]).unwrap();
        old.execute(
            "INSERT INTO memories (owner, id, kind, provenance, session, ordinal, role, time, stored_at, tokens,
                 text_hash, text)
             WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n + 1 < ?2)
             SELECT ?1, 'm' || printf('%013d', n), 'message', 'user_said', 1, n, 'user', 1700000000000 + n, 0, 9,
                 zeroblob(32), 'message ' || n || ' ' || hex(randomblob(900)) FROM n",
            (&owner, MESSAGES),
        )
        .unwrap();
        drop(old);
        Old { home, project, store, file }
    }

    /// Replaces the store with the older file, without backups.
    fn put(&self) {
        for beside in ["tiro.db-wal", "tiro.db-shm"] {
            let _ = std::fs::remove_file(self.store.with_file_name(beside));
        }
        let _ = std::fs::remove_dir_all(self.backups());
        std::fs::copy(&self.file, &self.store).unwrap();
    }

    fn backups(&self) -> PathBuf {
        self.store.with_file_name("tiro.db.backups")
    }

    /// Checks that each backup is complete, and returns their number.
    fn whole_backups(&self) -> usize {
        let entries = std::fs::read_dir(self.backups()).into_iter().flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        let backups: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|it| it == "db")).collect();
        for backup in &backups {
            assert_eq!(state(backup), ("ok".into(), 3, MESSAGES), "{backup:?}");
        }
        backups.len()
    }
}

/// Returns SQLite's check of a file, its version and the number of its messages.
fn state(file: &Path) -> (String, i64, i64) {
    let database = Connection::open(file).unwrap();
    (
        database.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).unwrap(),
        database.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap(),
        database.query_row("SELECT count(*) FROM memories", [], |row| row.get(0)).unwrap(),
    )
}

/// Calls used to fail if six servers started at once, because each made a backup and removed those of the others.
#[test]
fn six_servers_that_start_together_on_an_older_store_all_answer() {
    let old = Old::new();
    for round in 0..4 {
        old.put();
        std::thread::scope(|scope| {
            for server in 0..6 {
                let old = &old;
                scope.spawn(move || {
                    let id = format!("{round}-{server}");
                    let mut server = old.home.serve(&old.project);
                    server.save("s", &id, &format!("a pomelo {id}"));
                    assert!(!server.search(&format!("pomelo {id}")).is_empty());
                });
            }
        });
        let (checked, version, messages) = state(&old.store);
        assert_eq!((checked.as_str(), messages), ("ok", MESSAGES + 6));
        assert!(version > 3);
        assert_eq!(old.whole_backups(), 1, "one migrates, the others wait");
    }
}

/// A backup could be unusable, because it used to get its name before it was finished.
#[test]
fn a_killed_migration_leaves_a_usable_store_and_complete_backups() {
    let old = Old::new();
    for round in 0..14 {
        old.put();
        for delay in [round * 9, round * 4 + 30] {
            let mut server = old.home.serve(&old.project);
            let message = json!([{"id": "k", "role": "user", "text": "a fig"}]);
            let arguments = json!({"session_id": "s", "messages": message});
            server.ask("tools/call", json!({"name": "save_messages", "arguments": arguments}));
            std::thread::sleep(Duration::from_millis(delay));
            // Dropping it kills it.
            drop(server);
            let backups = old.whole_backups();
            let (checked, version, messages) = state(&old.store);
            assert_eq!(checked, "ok");
            assert!(messages >= MESSAGES && (version == 3 || backups > 0), "{version}, {backups} backups");
        }
        old.home.serve(&old.project).save("s", "1", "a pomelo");
        assert!((1..=2).contains(&old.whole_backups()));
        let left = std::fs::read_dir(old.backups()).unwrap().map(|entry| entry.unwrap().file_name());
        let unfinished = left.filter(|name| name.to_string_lossy().contains(".part")).count();
        assert_eq!(unfinished, 0, "what was left unfinished is removed by the next");
    }
}

/// A backup used to start again at every write, and to have its name from the beginning.
#[test]
fn a_backup_made_during_writes_gets_its_name_once_it_is_complete() {
    let old = Old::new();
    old.put();
    old.home.serve(&old.project).save("s", "1", "a pomelo");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (old, stop) = (&old, &stop);
        scope.spawn(move || {
            let mut server = old.home.serve(&old.project);
            for number in 0.. {
                server.save("s", &format!("w{number}"), "written meanwhile");
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
        });
        for round in 0..3 {
            let target = old.home.path().join(format!("backup {round}.db"));
            let mut backup =
                old.home.tiro(&old.project, &["backup", target.to_str().unwrap()]).spawn().unwrap();
            let ended = loop {
                let is_there = target.exists();
                let ended = backup.try_wait().unwrap();
                if is_there {
                    let (checked, version, messages) = state(&target);
                    assert_eq!((checked.as_str(), version > 3), ("ok", true));
                    assert!(messages > MESSAGES);
                }
                if let Some(ended) = ended {
                    break ended;
                }
            };
            assert!(ended.success());
            assert!(target.exists());
        }
        // A backup that was killed has not got its name.
        let target = old.home.path().join("killed.db");
        let mut backup = old.home.tiro(&old.project, &["backup", target.to_str().unwrap()]).spawn().unwrap();
        let is_begun = || {
            let names = std::fs::read_dir(old.home.path()).unwrap().map(|entry| entry.unwrap().file_name());
            names.into_iter().any(|name| name.to_string_lossy().starts_with("killed.db."))
        };
        while !is_begun() {
            assert!(backup.try_wait().unwrap().is_none(), "it ended before it could be killed");
        }
        backup.kill().unwrap();
        backup.wait().unwrap();
        assert!(!target.exists() || state(&target).0 == "ok");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
