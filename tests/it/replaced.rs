//! A store may be removed, moved or replaced while a server uses it. Writes that are acknowledged after that are in the
//! new store.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::harness::{Home, Repo, Server, strings};

/// A change of the store while a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    RemoveData,
    RenameData,
    OlderCopy,
    CloneAgain,
    RemoveFile,
}

const MOVES: [Move; 5] =
    [Move::RemoveData, Move::RenameData, Move::OlderCopy, Move::CloneAgain, Move::RemoveFile];

/// Removes a folder in which a server may create files at the same time.
fn remove_folder(path: &Path) {
    while path.exists() {
        let _ = std::fs::remove_dir_all(path);
    }
}

struct Scene {
    home: Home,
    repo: Repo,
    origin: Repo,
    /// A copy of the store, and its texts.
    copy: PathBuf,
    copied: Vec<String>,
}

impl Scene {
    fn new() -> Scene {
        let home = Home::new();
        let origin = home.repo("origin");
        origin.commit("a.txt", "a\n", "Begin");
        let repo = home.repo_at(home.path().join("repo"));
        let scene = Scene { copy: home.path().join("copy.db"), copied: Vec::new(), home, repo, origin };
        scene.clone_again();
        scene
    }

    fn clone_again(&self) {
        remove_folder(&self.repo.path);
        let (from, to) = (self.origin.path.to_str().unwrap(), self.repo.path.to_str().unwrap());
        self.origin.git(&["clone", "-q", from, to]);
    }

    /// Returns the store of the repository, by the id in its name.
    fn store(&self) -> PathBuf {
        let id = std::fs::read_to_string(self.repo.path.join(".git/tiro-project-id")).unwrap();
        let mut folders = std::fs::read_dir(self.home.data().join("projects")).unwrap();
        let is_its = |folder: &Path| folder.to_str().unwrap().ends_with(id.trim());
        folders
            .find_map(|folder| Some(folder.unwrap().path()).filter(|path| is_its(path)))
            .unwrap()
            .join("tiro.db")
    }

    /// Makes the change and returns the texts in the store afterwards.
    fn make(&mut self, what: Move, round: usize) -> Vec<String> {
        match what {
            Move::RemoveData => remove_folder(&self.home.data()),
            Move::RenameData => {
                std::fs::rename(self.home.data(), self.home.path().join(format!("data {round}"))).unwrap();
            }
            Move::OlderCopy => {
                let (spare, store) = (self.copy.with_extension("spare"), self.store());
                std::fs::copy(&self.copy, &spare).unwrap();
                std::fs::rename(spare, store).unwrap();
                return self.copied.clone();
            }
            Move::CloneAgain => self.clone_again(),
            Move::RemoveFile => std::fs::remove_file(self.store()).unwrap(),
        }
        Vec::new()
    }

    /// Copies the store.
    fn copy(&mut self) {
        let _ = std::fs::remove_file(&self.copy);
        let store = Connection::open(self.store()).unwrap();
        store.busy_timeout(Duration::from_secs(10)).unwrap();
        store.execute("VACUUM INTO ?1", [self.copy.to_str().unwrap()]).unwrap();
        self.copied = self.stored();
    }

    /// Returns the texts that a new process finds.
    fn stored(&self) -> Vec<String> {
        let ran = self.home.run(&self.repo.path, &["export"]);
        assert!(ran.is_ok, "{ran:?}");
        let memories: Vec<Value> =
            ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        strings(&memories, "text")
    }

    fn check_soundness(&self) {
        let told = self.home.run(&self.repo.path, &["doctor", "--json"]).stdout;
        let told: Value = serde_json::from_str(&told).unwrap();
        let store = told["findings"].as_array().unwrap().iter().find(|each| each["what"] == "store");
        assert_eq!(store.unwrap()["ok"], true, "{told}");
    }
}

/// An acknowledged write, and the time of its request.
type Acknowledged = (Instant, String);

/// Writes until `stop` is set, and once more after that. Returns the acknowledged writes.
fn write_on(server: &mut Server, name: &str, stop: &AtomicBool) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    let mut number = 0;
    let mut refused = 0;
    loop {
        let is_last = stop.load(Ordering::Relaxed);
        let (text, asked) = (format!("apricot {name} {number}"), Instant::now());
        let message = json!({"id": format!("{name}-{number}"), "role": "user", "text": text});
        let result = server.call("save_messages", json!({"session_id": "s", "messages": [message]}));
        number += 1;
        if result["isError"] != true {
            acknowledged.push((asked, text));
            refused = 0;
        } else {
            // A refusal has a hint, and the write succeeds if the hint is followed.
            assert!(result["structuredContent"]["error"]["hint"].is_string(), "{result}");
            refused += 1;
        }
        assert!(!is_last || refused <= 20, "a server refuses for good: {result}");
        if is_last && refused == 0 {
            return acknowledged;
        }
    }
}

/// Makes five random changes while two servers write. A new process finds every write that was acknowledged after a
/// change, and the servers read the same store as it does.
#[test]
fn writes_acknowledged_after_a_replacement_are_in_the_new_store() {
    let mut scene = Scene::new();
    let mut servers = [scene.home.serve(&scene.repo.path), scene.home.serve(&scene.repo.path)];
    let mut dice = 7_u64;
    let mut roll = |sides: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) as usize % sides
    };
    let first = MOVES.iter().copied();
    for round in 0..15 {
        let what = first.clone().nth(round).unwrap_or_else(|| MOVES[roll(MOVES.len())]);
        servers[0].save("s", &format!("before {round}"), &format!("a plum before {round}"));
        if what == Move::OlderCopy {
            scene.copy();
            servers[1].save("s", &format!("after {round}"), &format!("a plum after {round}"));
        }
        let stop = AtomicBool::new(false);
        let is_busy = round % 3 != 0;
        let (mut kept, moved, acknowledged) = std::thread::scope(|scope| {
            let write = |(number, server)| {
                let (stop, name) = (&stop, format!("r{round}s{number}"));
                move || write_on(server, &name, stop)
            };
            let mut writers = Vec::new();
            if is_busy {
                writers.extend(servers.iter_mut().enumerate().map(|each| scope.spawn(write(each))));
                std::thread::sleep(Duration::from_millis(60));
                let kept = scene.make(what, round);
                let moved = Instant::now();
                std::thread::sleep(Duration::from_millis(40));
                stop.store(true, Ordering::Relaxed);
                let acknowledged: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
                return (kept, moved, acknowledged);
            }
            let kept = scene.make(what, round);
            let moved = Instant::now();
            if roll(2) == 0 {
                // A new process starts before the servers have noticed.
                scene.stored();
            }
            stop.store(true, Ordering::Relaxed);
            let acknowledged = servers.iter_mut().enumerate().map(|each| write(each)()).collect();
            (kept, moved, acknowledged)
        });
        for each in &acknowledged {
            let after: Vec<_> = each.iter().filter(|(asked, _)| *asked > moved).collect();
            assert!(!after.is_empty(), "round {round}, {what:?}: a server refuses for good");
            kept.extend(after.into_iter().map(|(_, text)| text.clone()));
        }
        let stored = scene.stored();
        let lost: Vec<&String> = kept.iter().filter(|text| !stored.contains(text)).collect();
        assert_eq!(lost, Vec::<&String>::new(), "round {round}, {what:?}");
        scene.check_soundness();
        for server in &mut servers {
            let found =
                strings(&server.hits(json!({"query": "apricot plum", "k": 50, "max_tokens": 9000})), "text");
            let gone: Vec<&String> = found.iter().filter(|text| !stored.contains(text)).collect();
            assert_eq!(gone, Vec::<&String>::new(), "round {round}, {what:?}: found in a file that is gone");
            assert!(!found.is_empty(), "round {round}, {what:?}");
        }
    }
}

/// A server used to answer from a deleted file without saying so.
#[test]
fn the_next_answer_reports_the_new_store() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    server.data("store_memory", json!({"text": "a quince"}));
    remove_folder(&home.data());
    let text = server.text("store_memory", json!({"text": "a pomelo"}));
    assert!(text.contains("was replaced"), "{text}");
    assert!(server.search("quince").is_empty(), "what is gone isn't found");
    let text = server.text("store_memory", json!({"text": "a fig"}));
    assert!(!text.contains("was replaced"), "it is said once: {text}");
    // A read reports the change too, within its budget and only once.
    for (tool, arguments) in [
        ("search_project_memory", json!({"query": "pomelo", "max_tokens": 400})),
        ("retrieve_context", json!({"query": "pomelo", "max_tokens": 400})),
    ] {
        remove_folder(&home.data());
        home.json(&project, &["add", "a pomelo"]);
        let (text, data) = server.both(tool, arguments.clone());
        assert!(text.contains("was replaced") && text.contains("a pomelo"), "{tool}: {text}");
        assert!(data["notices"].to_string().contains("was replaced"), "{tool}: {data}");
        assert!(data["tokens_used"].as_u64() <= Some(400), "{tool}: {data}");
        let text = server.text(tool, arguments);
        assert!(!text.contains("was replaced") && text.contains("a pomelo"), "it is said once: {text}");
    }
    assert_eq!(home.serve(&project).search("pomelo").len(), 1);
}

/// An older program used to go on writing to a file that a newer one had migrated, since it checked the version only at
/// its start.
#[test]
fn a_running_server_no_longer_writes_once_a_newer_one_changed_the_store() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    server.save("s", "1", "a quince");
    let newer = Connection::open(home.store()).unwrap();
    newer
        .execute_batch("PRAGMA user_version = 99; UPDATE meta SET value = 99 WHERE key = 'min_writer'")
        .unwrap();
    let message = json!([{"id": "2", "role": "user", "text": "a pomelo"}]);
    let error = server.error("save_messages", json!({"session_id": "s", "messages": message}));
    assert!(error.contains("newer Tiro") && error.contains("restart"), "{error}");
    let count: i64 = newer.query_row("SELECT count(*) FROM memories", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
    assert_eq!(server.search("quince").len(), 1, "it can still be read");
    newer.execute("UPDATE meta SET value = 1 WHERE key = 'min_writer'", []).unwrap();
    server.save("s", "2", "a pomelo");
}

/// A change of the log alone.
#[derive(Clone, Copy, Debug)]
enum LogMove {
    Remove,
    RemoveIndex,
    Replace,
    Cut,
}

impl LogMove {
    fn make(self, store: &Path) {
        let (wal, index) = (store.with_extension("db-wal"), store.with_extension("db-shm"));
        let older = store.with_extension("older");
        match self {
            LogMove::Remove => {
                [&wal, &index].into_iter().for_each(|file| std::fs::remove_file(file).unwrap())
            }
            LogMove::RemoveIndex => std::fs::remove_file(&index).unwrap(),
            LogMove::Replace => {
                std::fs::copy(&wal, &older).unwrap();
                std::fs::rename(&older, &wal).unwrap();
            }
            LogMove::Cut => cut_moved_log(store, &wal),
        }
    }
}

/// Cuts the log at `wal` once all its pages are in the store's file. A page that is only in the log is lost with the log,
/// and a server may be reading or writing in the background, so a lock keeps new pages out meanwhile.
fn cut_moved_log(store: &Path, wal: &Path) {
    let (lock, mover) = (Connection::open(store).unwrap(), Connection::open(store).unwrap());
    lock.busy_timeout(Duration::from_secs(10)).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    let is_moved = || {
        let row = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i64>(1)? <= row.get::<_, i64>(2)?);
        mover.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], row).unwrap()
    };
    while !is_moved() {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::OpenOptions::new().write(true).open(wal).unwrap().set_len(0).unwrap();
}

/// Saves a text, at most three times if it is refused.
fn save(server: &mut Server, text: &str) -> String {
    let message = json!({"id": text, "role": "user", "text": text});
    for _ in 0..3 {
        let saved = server.call("save_messages", json!({"session_id": "s", "messages": [message]}));
        if saved["isError"] != true {
            return text.to_owned();
        }
        let error = &saved["structuredContent"]["error"];
        assert!(error["message"].as_str().unwrap().contains("log of the store"), "{saved}");
    }
    panic!("`{text}` is refused for good")
}

/// Removing the log under two servers used to lose what both acknowledged from then on, and all that was only in the
/// log.
#[test]
fn nothing_acknowledged_is_lost_with_the_log() {
    for what in [LogMove::Remove, LogMove::RemoveIndex, LogMove::Replace, LogMove::Cut] {
        for (first, is_killed) in [(0, false), (1, false), (0, true)] {
            let scene = Scene::new();
            let mut servers = [scene.home.serve(&scene.repo.path), scene.home.serve(&scene.repo.path)];
            let mut kept = vec![save(&mut servers[0], "plum 0"), save(&mut servers[1], "plum 1")];
            let store = scene.store();
            // Someone reads an older state, so that what is written now stays in the log. A log that is cut loses that.
            let reader = Connection::open(&store).unwrap();
            let reads = |sql: &str| reader.execute_batch(sql).unwrap();
            if !matches!(what, LogMove::Cut) {
                reads("BEGIN; SELECT count(*) FROM memories");
            }
            kept.extend([save(&mut servers[0], "plum 2"), save(&mut servers[1], "plum 3")]);
            what.make(&store);
            if !matches!(what, LogMove::Cut) {
                reads("ROLLBACK");
            }
            for round in 0..3 {
                for (number, server) in servers.iter_mut().enumerate() {
                    kept.push(save(server, &format!("apricot {round} {number}")));
                }
            }
            let mut ends: Vec<Server> = servers.into();
            ends.rotate_left(first);
            let mut ends = ends.into_iter();
            let mut next = ends.next().unwrap();
            if is_killed {
                rustix::process::kill_process(
                    rustix::process::Pid::from_raw(next.pid()).unwrap(),
                    rustix::process::Signal::KILL,
                )
                .unwrap();
                next.wait();
            } else {
                next.end();
            }
            let mut last = ends.next().unwrap();
            kept.push(save(&mut last, "a fig"));
            last.end();
            let stored = scene.stored();
            let lost: Vec<&String> = kept.iter().filter(|text| !stored.contains(text)).collect();
            assert_eq!(lost, Vec::<&String>::new(), "{what:?}, {first}, {is_killed}");
            scene.check_soundness();
        }
    }
}

/// An idle server keeps what is in a removed log, and a process that starts meanwhile waits for it.
#[test]
fn a_process_that_starts_after_the_log_was_removed_finds_what_was_in_it() {
    let scene = Scene::new();
    let mut server = scene.home.serve(&scene.repo.path);
    save(&mut server, "plum 0");
    let store = scene.store();
    let reader = Connection::open(&store).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM memories").unwrap();
    save(&mut server, "plum 1");
    LogMove::Remove.make(&store);
    reader.execute_batch("ROLLBACK").unwrap();
    assert_eq!(scene.stored().iter().filter(|text| text.contains("plum")).count(), 2);
    assert_eq!(server.search("plum").len(), 2);
    scene.check_soundness();
}
