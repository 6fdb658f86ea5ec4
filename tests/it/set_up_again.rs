//! Tests what is captured after setting up again, in another project or after a failure, and what is not.

use std::process::Command;

use serde_json::json;

use crate::harness::{Home, Repo, Server, feed};
use crate::talk::Talk;

fn init(home: &Home, repo: &Repo, args: &[&str]) {
    let ran = home.run(&repo.path, &[&["init", "--yes", "--no-backfill"], args].concat());
    assert!(ran.is_ok, "{ran:?}");
}

fn commits(server: &mut Server, query: &str) -> usize {
    server.hits(json!({"query": query, "kinds": ["commit"]})).len()
}

/// Commits of a project used to be imported after the user had chosen another project, or had removed Tiro.
#[test]
fn commits_of_a_project_that_is_no_longer_captured_are_not_imported() {
    for imports in [false, true] {
        let home = Home::new();
        home.dir("home/.claude");
        let (repo, other) = (home.repo("repo"), home.repo("other"));
        other.commit("a.txt", "a\n", "Lay the keel");
        init(&home, &other, &[]);
        if imports {
            assert_eq!(home.json(&other.path, &["import", "git"])["imported"], 1);
        }
        let mut server = home.serve(&other.path);
        other.commit("b.txt", "b\n", "Grease the yardarm");
        assert_eq!(commits(&mut server, "yardarm"), 1);

        init(&home, &repo, &["--scope", "project"]);
        other.commit("c.txt", "c\n", "Splice the halyard");
        assert_eq!(commits(&mut server, "halyard"), 0, "imported: {imports}");
        // When the project is chosen again, the commits of the time in between stay out, unless its history is
        // imported.
        init(&home, &other, &[]);
        other.commit("d.txt", "d\n", "Trim the spinnaker");
        assert_eq!(commits(&mut server, "spinnaker"), 1);
        assert_eq!(commits(&mut server, "halyard"), usize::from(imports));
        if !imports {
            assert!(home.run(&other.path, &["init", "--remove", "--all"]).is_ok);
            other.commit("e.txt", "e\n", "Caulk the bilge");
            assert_eq!(commits(&mut server, "bilge"), 0);
        }
    }
}

/// When the user removed Tiro, all clients used to stay set up because of a project that the user had chosen earlier.
#[test]
fn remove_works_if_one_project_was_captured_before_all_were() {
    let home = Home::new();
    home.dir("home/.claude");
    let (repo, other) = (home.repo("repo"), home.repo("other"));
    init(&home, &repo, &["--scope", "project"]);
    init(&home, &repo, &["--scope", "machine"]);
    init(&home, &other, &[]);
    let removed = home.run(&other.path, &["init", "--remove"]);
    assert!(removed.is_ok && !removed.stdout.contains("Clients stay set up"), "{removed:?}");
    assert!(!home.path().join("home/.claude/skills").exists());
    assert!(!home.data().join("spool/scope").exists());
}

/// If the question whether to import could not be asked or got no answer, new commits used not to be followed either.
#[test]
fn commits_are_followed_before_it_is_asked_whether_to_import() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Lay the keel");
    init(&home, &repo, &[]);
    let connection = rusqlite::Connection::open(home.store()).unwrap();
    connection.execute_batch("DELETE FROM imports").unwrap();
    drop(connection);
    let ran = home.run(&repo.path, &["init"]);
    assert!(!ran.is_ok && ran.stderr.contains("no terminal"), "{ran:?}");
    repo.commit("b.txt", "b\n", "Grease the yardarm");
    let mut server = home.serve(&repo.path);
    assert_eq!((commits(&mut server, "yardarm"), commits(&mut server, "keel")), (1, 0));
}

/// `init` used to report success although no memory could be created.
#[test]
fn setup_fails_if_the_memory_cannot_be_created() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Lay the keel");
    std::fs::write(home.data().join("projects"), "").unwrap();
    let ran = home.run(&repo.path, &["init", "--yes", "--no-backfill"]);
    assert!(!ran.is_ok && ran.stderr.contains("projects"), "{ran:?}");
}

/// Imported transcripts used to count as left to import: `init` asked for them again, and failed without a terminal.
#[test]
fn init_does_not_ask_about_imported_sessions() {
    let home = Home::new();
    home.dir("home/.claude");
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Lay the keel");
    let talk = Talk::new(&home, "one", &repo.path, "main");
    talk.says("user", 0, "why does the yardarm creak?");
    let ran = home.run(&repo.path, &["init", "--yes"]);
    assert!(ran.is_ok && ran.stderr.contains("1 transcript"), "{ran:?}");
    let again = home.run(&repo.path, &["init"]);
    assert!(again.is_ok && again.stdout.contains("nothing was changed"), "{again:?}");
    assert!(again.stderr.contains("is left to import"), "{again:?}");
    talk.says("user", 60, "and the halyard?");
    let looked = home.run(&repo.path, &["init", "--dry-run"]);
    assert!(looked.stderr.contains("1 transcript"), "{looked:?}");
}

/// An earlier version recorded a declined history as imported. If following new commits took more than one call, the
/// next call imported all of that history.
#[test]
fn a_history_declined_with_an_earlier_version_stays_out_when_following_takes_several_calls() {
    let home = Home::new();
    let repo = home.repo("repo");
    for number in 0..3 {
        repo.commit("a.txt", &format!("{number}\n"), &format!("Turn the capstan {number}"));
    }
    repo.commit("b.txt", "b\n", "Grease the yardarm");
    init(&home, &repo, &[]);
    assert_eq!(home.json(&repo.path, &["import", "git", "--limit", "1"])["imported"], 1);
    let connection = rusqlite::Connection::open(home.store()).unwrap();
    // This is the state that version 0.1 left: only the newest commits are imported, but the whole history is recorded
    // as complete.
    let formerly = "DELETE FROM imports WHERE source LIKE 'git%'; \
        INSERT INTO imports (owner, source, cursor, at) SELECT DISTINCT owner, 'git', 'complete', 0 FROM memories";
    connection.execute_batch(formerly).unwrap();
    drop(connection);
    let mut stream = String::new();
    for number in 0..600 {
        let from = if number == 0 { "from refs/heads/main^0\n" } else { "" };
        let (message, text) = (format!("Sail {number}"), format!("{number}\n"));
        stream += &format!(
            "commit refs/heads/main\ncommitter A <a@example.org> {} +0000\ndata {}\n{message}\n{from}M 644 inline c.txt\ndata \
             {}\n{text}\n",
            1_700_000_100 + number,
            message.len(),
            text.len(),
        );
    }
    let mut import = Command::new("git");
    import.args(["fast-import", "--quiet"]).current_dir(&repo.path);
    assert!(feed(import, stream.as_bytes()).is_ok);
    let mut server = home.serve(&repo.path);
    for _ in 0..6 {
        server.search("sail");
    }
    server.end();
    let connection = rusqlite::Connection::open(home.store()).unwrap();
    let count = |pattern: &str| -> i64 {
        let counted = "SELECT count(*) FROM memories WHERE kind = 'commit' AND title LIKE ?1";
        connection.query_row(counted, [pattern], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("Sail %"), count("Turn the capstan %")), (600, 0));
}
