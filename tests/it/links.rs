//! Commits are linked to sessions by the changes, not by the time. Some commits replace others.

use serde_json::{Value, json};

use crate::harness::{Home, Repo, Server};
use crate::talk::{BEGAN, Talk};

/// A home with a repository of one commit, which is imported, and a server.
fn followed() -> (Home, Repo, Server) {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.write("src/valve.rs", "fn valve() {}\n");
    repo.commit("src/gauge.rs", "fn gauge() {}\n", "Begin");
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    server.search("settle");
    (home, repo, server)
}

/// Returns the hit of the commit with this subject.
fn commit(server: &mut Server, subject: &str) -> Value {
    let hits = server.hits(json!({"query": subject, "kinds": ["commit"]}));
    let hit = hits.iter().find(|hit| hit["text"].as_str().unwrap().contains(subject));
    hit.unwrap_or_else(|| panic!("no commit `{subject}` among {hits:?}")).clone()
}

fn behind(server: &mut Server, subject: &str) -> Value {
    commit(server, subject).get("conversations").cloned().unwrap_or(json!([]))
}

/// Makes a session add a line to a file, `at` seconds after the beginning.
fn adds(talk: &Talk, repo: &Repo, at: i64, file: &str, line: &str) {
    let path = repo.path.join(file);
    let input = json!({"file_path": path, "old_string": "", "new_string": line});
    talk.calls(at, "Edit", input, "The file has been updated.");
    appends(repo, file, line);
}

fn appends(repo: &Repo, file: &str, line: &str) {
    let before = std::fs::read_to_string(repo.path.join(file)).unwrap_or_default();
    repo.write(file, &format!("{before}{line}\n"));
}

fn commits(repo: &Repo, at: i64, subject: &str) {
    repo.git(&["add", "-A"]);
    repo.git_at(&["commit", "-q", "-m", subject], (BEGAN + at) as u64);
}

/// A commit used to be linked to the sessions of the two hours before it. So a session of the morning was missed, and a
/// session that only read files was named.
#[test]
fn a_session_that_wrote_hours_before_is_linked_and_one_that_read_is_not() {
    let (home, repo, mut server) = followed();
    let (writes, reads) =
        (Talk::new(&home, "writes", &repo.path, "main"), Talk::new(&home, "reads", &repo.path, "other"));
    writes.says("user", 0, "tighten the valve");
    adds(&writes, &repo, 60, "src/valve.rs", "fn tighten() {}");
    writes.hook(&home, "Stop");
    reads.calls(4 * 3600, "Read", json!({"file_path": repo.path.join("src/valve.rs")}), "fn valve() {}");
    reads.says("assistant", 4 * 3600 + 5, "It holds a valve.");
    reads.hook(&home, "Stop");
    commits(&repo, 4 * 3600 + 60, "Tighten the valve");
    let hit = commit(&mut server, "Tighten the valve");
    assert_eq!(hit["conversations"], json!(["writes"]), "{hit}");
    let sure = hit["confidences"][0].as_f64().unwrap();
    assert!((0.5..1.0).contains(&sure), "{hit}");
    let stats = home.json(&repo.path, &["stats"]);
    let counted = (&stats["sessions_committed"], &stats["sessions_linked"], &stats["join_rate"]);
    assert_eq!(counted, (&json!(1), &json!(1), &json!(1.0)), "{stats}");
}

/// A server of an earlier version that still runs links only by time, and replaces links by evidence.
#[test]
fn links_that_an_older_server_makes_by_time_are_replaced() {
    let (home, repo, mut server) = followed();
    let (writes, reads) =
        (Talk::new(&home, "writes", &repo.path, "main"), Talk::new(&home, "reads", &repo.path, "main"));
    writes.says("user", 0, "tighten the valve");
    adds(&writes, &repo, 60, "src/valve.rs", "fn tighten() {}");
    writes.hook(&home, "Stop");
    reads.says("user", 70, "what does a valve do?");
    reads.hook(&home, "Stop");
    commits(&repo, 120, "Tighten the valve");
    assert_eq!(behind(&mut server, "Tighten the valve"), json!(["writes"]));
    server.end();

    // The statements of such a server.
    let store = rusqlite::Connection::open(home.store()).unwrap();
    let seq = "(SELECT seq FROM memories WHERE kind = 'commit' AND text LIKE '%Tighten the valve%')";
    let read = "(SELECT seq FROM sessions WHERE name = 'reads')";
    store.execute(&format!("DELETE FROM commit_sessions WHERE memory = {seq}"), []).unwrap();
    let link = format!("INSERT INTO commit_sessions (memory, place, session) SELECT {seq}, 0, {read}");
    store.execute(&link, []).unwrap();
    let noted: i64 =
        store.query_row("SELECT count(*) FROM imports WHERE source = 'links'", [], |row| row.get(0)).unwrap();
    assert_eq!(noted, 0, "it is noted that links are to be made anew");
    drop(store);

    let mut server = home.serve(&repo.path);
    let found = behind(&mut server, "Tighten the valve");
    assert!(!found.to_string().contains("reads"), "nothing but the time speaks for it: {found}");
    // The server does that while idle.
    let is_made = (0..60).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(500));
        behind(&mut server, "Tighten the valve") == json!(["writes"])
    });
    assert!(is_made);
}

#[test]
fn reverted_changes_are_not_linked() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, "taken back", &repo.path, "main");
    adds(&talk, &repo, 0, "src/valve.rs", "fn tighten_by_force() {}");
    talk.hook(&home, "Stop");
    server.search("settle");
    repo.git(&["checkout", "-q", "--", "."]);
    appends(&repo, "src/valve.rs", "fn loosen_by_hand() {}");
    commits(&repo, 300, "Loosen the valve by hand");
    assert_eq!(behind(&mut server, "Loosen the valve by hand"), json!([]));
    let stats = home.json(&repo.path, &["stats"]);
    assert_eq!((&stats["sessions_committed"], &stats["sessions_linked"]), (&json!(1), &json!(0)), "{stats}");
}

#[test]
fn a_pulled_commit_of_a_colleague_is_linked_to_no_session() {
    let (home, repo, mut server) = followed();
    let there = home.path().join("there");
    repo.git(&["clone", "-q", repo.path.to_str().unwrap(), there.to_str().unwrap()]);
    let there = home.repo_at(there);
    let talk = Talk::new(&home, "here", &repo.path, "main");
    adds(&talk, &repo, 0, "src/valve.rs", "fn tighten() {}");
    talk.hook(&home, "Stop");
    there.write("src/valve.rs", "fn theirs() {}\nfn valve() {}\n");
    there.git(&["add", "-A"]);
    let author = "--author=Bea <bea@example.org>";
    there.git_at(&["commit", "-q", author, "-m", "Widen the valve elsewhere"], (BEGAN + 60) as u64);
    repo.git(&["stash", "-q"]);
    repo.git(&["pull", "-q", "--ff-only", there.path.to_str().unwrap(), "main"]);
    repo.git(&["stash", "pop", "-q"]);
    assert_eq!(behind(&mut server, "Widen the valve elsewhere"), json!([]));
    commits(&repo, 120, "Tighten the valve here");
    assert_eq!(behind(&mut server, "Tighten the valve here"), json!(["here"]));
}

/// If no call names a file, the session is known by the id that git printed, or by the time of the call that committed.
#[test]
fn a_commit_made_by_a_call_of_the_session_is_linked() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, "commits", &repo.path, "main");
    for (at, is_quiet) in [(0, false), (600, true)] {
        appends(&repo, "src/valve.rs", &format!("fn step_{at}() {{}}"));
        let subject = format!("Step {at} of the valve");
        commits(&repo, at, &subject);
        let output = match is_quiet {
            true => String::new(),
            false => format!("[main {}] {subject}\n 1 file changed", &repo.head()[..7]),
        };
        talk.calls(at, "Bash", json!({"command": format!("git commit -am '{subject}'")}), &output);
        talk.hook(&home, "Stop");
        assert_eq!(behind(&mut server, &subject), json!(["commits"]), "quiet: {is_quiet}");
    }
    // A call that only shows a commit did not make it.
    let other = Talk::new(&home, "shows", &repo.path, "main");
    let shown = format!("[main {}] Step 600 of the valve", &repo.head()[..7]);
    other.calls(700, "Bash", json!({"command": "cat ci.log"}), &shown);
    other.hook(&home, "Stop");
    assert_eq!(behind(&mut server, "Step 600 of the valve"), json!(["commits"]));
}

/// The old commit used to be shown in addition to the new one, and to rank before it.
#[test]
fn the_newest_version_replaces_an_amended_commit() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, "amends", &repo.path, "main");
    adds(&talk, &repo, 0, "src/valve.rs", "fn tighten() {}");
    talk.hook(&home, "Stop");
    commits(&repo, 60, "Tighten the valve with a wrench");
    let old = commit(&mut server, "Tighten the valve with a wrench");
    appends(&repo, "src/gauge.rs", "fn read() {}");
    repo.git_at(
        &["commit", "-q", "--amend", "-a", "-m", "Tighten the valve and read the gauge"],
        (BEGAN + 900) as u64,
    );
    for query in ["Tighten the valve with a wrench", "read the gauge", "tighten valve"] {
        let hits = server.hits(json!({"query": query, "kinds": ["commit"]}));
        let texts: Vec<&str> = hits.iter().map(|hit| hit["text"].as_str().unwrap()).collect();
        assert!(texts[0].starts_with("Tighten the valve and read the gauge"), "{query}: {texts:?}");
        assert!(texts.iter().all(|text| !text.contains("wrench")), "{query}: {texts:?}");
        assert_eq!(hits[0]["conversations"], json!(["amends"]), "{query}");
        let opened = server.data("expand_detail", json!({"id": hits[0]["id"]}));
        assert_eq!(opened["references"], json!([old["id"]]), "one step away: {opened}");
    }
    // Asking for it by name returns it.
    let named = server.hits(json!({"query": old["source_id"], "kinds": ["commit"]}));
    assert_eq!(
        (&named[0]["id"], &named[0]["freshness"], &named[0]["gone"]),
        (&old["id"], &json!("commit_gone"), &json!("in_reflog"))
    );
    // Once the new commit is reverted, it replaces nothing.
    repo.git(&["reset", "-q", "--hard", old["source_id"].as_str().unwrap()]);
    assert!(
        commit(&mut server, "Tighten the valve with a wrench")["text"].as_str().unwrap().contains("wrench")
    );
}

#[test]
fn a_squash_replaces_its_parts_and_has_their_sessions() {
    let (home, repo, mut server) = followed();
    repo.git(&["checkout", "-q", "-b", "topic"]);
    for (at, session, file) in [(0, "first", "src/valve.rs"), (600, "second", "src/gauge.rs")] {
        let talk = Talk::new(&home, session, &repo.path, "topic");
        adds(&talk, &repo, at, file, &format!("fn {session}_part() {{}}"));
        talk.hook(&home, "Stop");
        commits(&repo, at + 60, &format!("Fiddle with the {session} part"));
        server.search("settle");
    }
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "--squash", "topic"]);
    repo.git_at(&["commit", "-q", "-m", "Tighten valve and gauge"], (BEGAN + 9000) as u64);
    let hits = server.hits(json!({"query": "Fiddle with the first part", "kinds": ["commit"]}));
    assert!(hits[0]["text"].as_str().unwrap().starts_with("Tighten valve and gauge"), "{hits:?}");
    assert!(hits.iter().all(|hit| !hit["text"].as_str().unwrap().contains("Fiddle")), "{hits:?}");
    let mut sessions: Vec<String> = serde_json::from_value(hits[0]["conversations"].clone()).unwrap();
    sessions.sort();
    assert_eq!(sessions, ["first", "second"]);
    let opened = server.data("expand_detail", json!({"id": hits[0]["id"]}));
    assert_eq!(opened["references"].as_array().unwrap().len(), 2, "{opened}");
}

/// Two commits and their squash, and a server that knows them.
fn squashed(days: i64) -> (Home, Repo, Server, Value) {
    let (home, repo, mut server) = followed();
    let day = 24 * 3600;
    let talk = Talk::new(&home, "parts", &repo.path, "work");
    repo.git(&["checkout", "-q", "-b", "work"]);
    for (at, file, line) in [(0, "src/valve.rs", "fn tighten() {}"), (600, "src/gauge.rs", "fn read() {}")] {
        adds(&talk, &repo, 25 * day + at, file, line);
        commits(&repo, 25 * day + at + 60, &format!("Fiddle with {file}"));
    }
    talk.hook(&home, "Stop");
    server.search("fiddle");
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "--squash", "work"]);
    commits(&repo, days * day, "Tighten valve and gauge");
    repo.git(&["branch", "-q", "-D", "work"]);
    let squash = commit(&mut server, "Tighten valve and gauge");
    (home, repo, server, squash)
}

/// When work of another time was linked later, the squash used to be ignored, so that its parts were shown again.
#[test]
fn a_squash_still_replaces_its_parts_after_an_earlier_commit_is_linked() {
    let (home, repo, mut server, squash) = squashed(45);
    let parts = |server: &mut Server| {
        let opened = server.data("expand_detail", json!({"id": squash["id"]}));
        opened["references"].as_array().cloned().unwrap_or_default().len()
    };
    assert_eq!(parts(&mut server), 2);
    let talk = Talk::new(&home, "before", &repo.path, "main");
    talk.says("user", 0, "oil the hinge");
    talk.hook(&home, "Stop");
    assert!(!server.search("hinge").is_empty());
    assert_eq!(parts(&mut server), 2);
}

/// While git failed, commits used to be linked without git's data, and these links stayed until the server restarted.
#[test]
fn links_stay_while_git_fails_and_are_made_afterwards() {
    let (home, repo, server) = followed();
    server.end();
    let talk = Talk::new(&home, "takes back", &repo.path, "main");
    talk.says("user", 0, "loosen the valve");
    let path = repo.path.join("src/valve.rs");
    let input = json!({"file_path": path, "old_string": "", "new_string": "fn loosen() {}"});
    talk.calls(60, "Edit", input, "The file has been updated.");
    talk.hook(&home, "Stop");
    appends(&repo, "src/valve.rs", "fn tighten() {}");
    commits(&repo, 120, "Tighten the valve");
    let mut server = home.serve(&repo.path);
    assert_eq!(behind(&mut server, "Tighten the valve"), json!([]));
    server.end();

    let config = repo.path.join(".git/config");
    let sound = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, "[core\n").unwrap();
    let mut server = home.serve(&repo.path);
    talk.says("user", 180, "oil the hinge");
    talk.hook(&home, "Stop");
    let answer = server.data("search_project_memory", json!({"query": "hinge"}));
    assert!(answer["notices"].to_string().contains("memory works without git"), "{answer}");
    assert_eq!(behind(&mut server, "Tighten the valve"), json!([]), "judged without its lines");

    std::fs::write(&config, sound).unwrap();
    adds(&talk, &repo, 240, "src/gauge.rs", "fn read() {}");
    talk.hook(&home, "Stop");
    commits(&repo, 300, "Read the gauge");
    assert_eq!(behind(&mut server, "Read the gauge"), json!(["takes back"]));
    let answer = server.data("search_project_memory", json!({"query": "hinge"}));
    assert!(!answer["notices"].to_string().contains("without git"), "{answer}");
}

/// Every imported commit used to have `branch main`.
#[test]
fn a_commit_names_its_branch_only_if_that_is_known() {
    let home = Home::new();
    let origin = home.repo("origin");
    origin.commit("a.txt", "a\n", "Begin the origin");
    origin.git(&["checkout", "-q", "-b", "topic"]);
    origin.commit("b.txt", "b\n", "Work on the topic");
    origin.git(&["checkout", "-q", "main"]);
    origin.git(&["merge", "-q", "--no-ff", "-m", "Merge the topic", "topic"]);
    let clone = home.path().join("clone");
    origin.git(&["clone", "-q", origin.path.to_str().unwrap(), clone.to_str().unwrap()]);
    let clone = home.repo_at(clone);
    home.json(&clone.path, &["import", "git"]);
    let mut server = home.serve(&clone.path);
    for subject in ["Begin the origin", "Work on the topic", "Merge the topic"] {
        assert_eq!(commit(&mut server, subject)["branch"], Value::Null, "{subject}");
    }
    clone.git(&["checkout", "-q", "-b", "fix"]);
    clone.commit("c.txt", "c\n", "Mend it on a branch");
    clone.git(&["checkout", "-q", "main"]);
    clone.git(&["merge", "-q", "--ff-only", "fix"]);
    assert_eq!(commit(&mut server, "Mend it on a branch")["branch"], "fix");
}
