//! Each call first imports what happened before it: sessions that hooks reported, and commits.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Home, Repo, Server, feed, strings};
use crate::talk::{BEGAN, Talk};

const SESSION: &str = "41799f8d-5af3-46fb-8473-94dff3a77ff6";
const OTHER: &str = "5d0c1a77-90d2-4f2b-8a55-0a3c6f1e2b44";

/// Returns a home with a repository whose only commit is imported, and a server that has answered a call.
fn followed() -> (Home, Repo, Server) {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("README.md", "# It\n", "Begin");
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    assert!(server.search("nothing of the kind").is_empty());
    (home, repo, server)
}

/// Returns the number of stored messages and commits.
fn counts(home: &Home, repo: &Repo) -> (u64, u64) {
    let stats = home.json(&repo.path, &["stats"]);
    let kinds = stats["kinds"].as_array().unwrap();
    let of = |name: &str| {
        kinds.iter().find(|kind| kind["kind"] == name).map_or(0, |kind| kind["memories"].as_u64().unwrap())
    };
    (of("message"), of("commit"))
}

/// Returns the sessions linked to the commit with this subject, in order.
fn behind(server: &mut Server, subject: &str) -> Vec<String> {
    let hits = server.hits(json!({"query": subject, "kinds": ["commit"]}));
    let hit = hits.iter().find(|hit| hit["text"].as_str().unwrap().contains(subject));
    let hit = hit.unwrap_or_else(|| panic!("no commit `{subject}` among {hits:?}"));
    let names = hit["conversations"].as_array().into_iter().flatten();
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_is_found_while_it_grows_and_after_a_restart() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    talk.says("user", 0, "why does the grommet rattle?");
    talk.hook(&home, "Stop");
    let hits = server.search("grommet rattle");
    assert_eq!(strings(&hits, "text"), ["why does the grommet rattle?"]);
    let hit = &hits[0];
    assert_eq!(hit["session_id"], SESSION);
    assert_eq!((&hit["kind"], &hit["speaker"]), (&json!("message"), &json!("user")), "{hit}");
    assert_eq!(home.waiting(), 0, "what was followed is not followed again");

    // An unfinished line is read only once the rest of it is written.
    let line = talk.line("assistant", (BEGAN + 5) * 1000, json!("because the sprocket is loose")).to_string();
    let (one, other) = line.split_at(line.len() - 20);
    talk.append(one);
    talk.hook(&home, "PreCompact");
    assert!(server.search("sprocket loose").is_empty());
    talk.append(&format!("{other}\n"));
    talk.hook(&home, "Stop");
    let found = server.search("sprocket loose");
    assert_eq!(strings(&found[..1], "text"), ["because the sprocket is loose"]);

    talk.calls(9, "Bash", json!({"command": "cargo test flange"}), "flange test result: ok");
    talk.put(&json!({"type": "brand-new-thing", "text": "quux"}));
    talk.append("this is no JSON\n");
    talk.says("assistant", 12, "the flange holds now");
    for _ in 0..2 {
        talk.hook(&home, "SessionEnd");
        assert_eq!(strings(&server.search("flange holds now")[..1], "text"), ["the flange holds now"]);
    }
    server.end();

    let mut server = home.serve(&repo.path);
    let (text, data) = server.both("search_project_memory", json!({"query": "sprocket loose"}));
    assert!(text.contains(&SESSION[..8]), "cited: {text}");
    let id = data["hits"][0]["id"].as_str().unwrap();
    let shown = server.text("expand_detail", json!({"id": id}));
    assert!(shown.contains("grommet") && shown.contains("flange"), "{shown}");
    assert!(home.files_with("quux").is_empty());
    assert_eq!(counts(&home, &repo), (4, 1));
    let again = home.json(&repo.path, &["import", "claude-code"]);
    assert_eq!((&again["imported"], &again["bytes"]), (&json!(0), &json!(0)), "{again}");
}

#[test]
fn a_rewound_or_replaced_transcript_loses_and_repeats_nothing() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    talk.says("user", 0, "the first plum");
    let kept = std::fs::read(&talk.path).unwrap();
    talk.says("user", 1, "the second plum");
    talk.says("user", 2, "the third plum, which is the longest by far of all of the plums");
    talk.hook(&home, "Stop");
    assert_eq!(server.search("plum").len(), 3);

    std::fs::write(&talk.path, &kept).unwrap();
    talk.says("user", 3, "the fourth plum");
    talk.hook(&home, "Stop");
    assert_eq!(server.search("plum").len(), 4);

    // Another session replaces the first in the same file and is longer. Neither the length of the file nor its name
    // shows that it was replaced.
    std::fs::remove_file(&talk.path).unwrap();
    let mut other = Talk::new(&home, SESSION, &repo.path, "main");
    other.session = OTHER.into();
    for at in 10..16 {
        other.says("user", at, &format!("the plum of minute {at}"));
    }
    other.hook(&home, "Stop");
    server.search("plum");
    server.end();
    let mut server = home.serve(&repo.path);
    let hits = server.hits(json!({"query": "plum", "k": 50, "max_tokens": 9000}));
    assert_eq!(hits.len(), 10);
    let sessions = strings(&hits, "session_id");
    assert_eq!(sessions.iter().filter(|session| *session == OTHER).count(), 6);
    assert_eq!(counts(&home, &repo).0, 10);
}

#[test]
fn a_fork_repeats_nothing() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    talk.says("user", 0, "which bearing do we take?");
    talk.calls(3, "Bash", json!({"command": "ls bearings"}), "ceramic bearing, steel bearing");
    for (at, seconds) in [(4, "1.25"), (5, "1.31")] {
        talk.calls(at, "Bash", json!({"command": "try bearing"}), &format!("it turned for {seconds} s"));
    }
    talk.says("assistant", 6, "the ceramic bearing");
    talk.hook(&home, "Stop");
    assert_eq!(server.search("bearing").len(), 4);

    let fork = Talk::new(&home, OTHER, &repo.path, "main");
    fork.append(&std::fs::read_to_string(&talk.path).unwrap().replace(SESSION, OTHER));
    fork.says("user", 60, "and if the bearing were steel?");
    fork.hook(&home, "Stop");
    server.search("bearing");
    server.end();
    let mut server = home.serve(&repo.path);
    // The messages are counted in the store, since a search shows only one of several equal texts.
    assert_eq!(counts(&home, &repo).0, 5);
    assert_eq!(server.search("bearing").len(), 5);
    assert_eq!(strings(&server.search("if the bearing were steel")[..1], "session_id"), [OTHER]);
}

#[test]
fn secrets_private_text_and_ignored_sessions_reach_no_file() {
    let (home, repo, mut server) = followed();
    let secret = ["gh", "p_"].concat() + "Zk3vQ9sT1xW7yB5nM2cR8dF4gH6jL0pK9aE3";
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    talk.says("user", 0, "print the quince <private>zanzibar-passage</private> of the environment");
    talk.calls(
        1,
        "Bash",
        json!({"command": "env"}),
        &format!("quince TOKEN={secret}\n<private>zanzibar too</private>"),
    );
    talk.hook(&home, "Stop");
    let hits = server.search("quince");
    assert_eq!(hits.len(), 2);
    let texts = strings(&hits, "text").concat();
    assert!(!texts.contains(&secret) && !texts.contains("zanzibar"), "{texts}");

    // A pause goes by time: messages written from now on are left out, whenever they are read.
    let paused = Talk::new(&home, OTHER, &repo.path, "main");
    let says_now = |text: &str| {
        let now = jiff::Timestamp::now().as_millisecond();
        paused.put(&paused.line("user", now, json!(text)));
    };
    says_now("before the pause a medlar");
    home.json(&repo.path, &["pause"]);
    says_now("within the pause a medlarsecret");
    assert_eq!(paused.nudge(&home, "Stop"), "");
    assert_eq!(paused.nudge(&home, "SessionStart"), "", "nothing is said while capture is paused");
    home.json(&repo.path, &["resume"]);
    says_now("after the pause a medlar");
    paused.hook(&home, "Stop");
    assert_eq!(server.search("medlar pause").len(), 2);
    server.end();

    // The pause also applies in every other project and to an explicit import.
    home.json(&repo.path, &["pause", "--all"]);
    says_now("within the second pause a medlarsecret");
    let imported = home.json(&repo.path, &["import", "claude-code"]);
    assert_eq!((&imported["imported"], &imported["left_out"]), (&json!(0), &json!(1)), "{imported}");
    home.json(&repo.path, &["resume", "--all"]);

    // Sessions are also ignored by patterns in the environment of the server.
    let ignored = Talk::new(&home, "scratch-17", &repo.path, "main");
    ignored.says("user", 30, "an ignored medlarsecret");
    talk.calls(31, "Read", json!({"file_path": repo.path.join("vault/key.txt")}), "a vaulted medlarsecret");
    ignored.hook(&home, "Stop");
    talk.hook(&home, "Stop");
    let mut command = home.tiro(&repo.path, &["serve"]);
    command.env("TIRO_IGNORE_SESSIONS", "scratch-*").env("TIRO_IGNORE_PATHS", "vault/**");
    let mut server = Server::start(command);
    assert_eq!(server.search("medlar pause").len(), 2);
    assert!(server.search("vaulted ignored medlarsecret").is_empty());
    server.end();

    for kept_out in [secret.as_str(), "zanzibar", "medlarsecret"] {
        assert_eq!(home.files_with(kept_out), Vec::<std::path::PathBuf>::new(), "{kept_out}");
    }
    assert_eq!(counts(&home, &repo).0, 4);
}

#[test]
fn a_commit_is_linked_to_its_session_without_a_hook() {
    let (home, repo, mut server) = followed();
    let early = Talk::new(&home, "early", &repo.path, "main");
    early.says("user", -8000, "an hour and more before");
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    talk.says("user", 0, "tighten the valve");
    talk.edits(60, "src/valve.rs");
    early.hook(&home, "Stop");
    talk.hook(&home, "Stop");
    repo.write("src/valve.rs", "fn valve() {}\n");
    repo.git(&["add", "-A"]);
    repo.git_at(&["commit", "-q", "-m", "Tighten the valve"], (BEGAN + 90) as u64);
    assert_eq!(behind(&mut server, "Tighten the valve"), [SESSION]);
    // The session continues and is read again. The link is kept.
    talk.says("assistant", 120, "the valve is tight");
    talk.hook(&home, "Stop");
    assert_eq!(behind(&mut server, "Tighten the valve"), [SESSION]);
    server.end();
    let mut server = home.serve(&repo.path);
    assert_eq!(behind(&mut server, "Tighten the valve"), [SESSION]);
    let hits = server.search("tighten the valve");
    assert_eq!(hits.iter().filter(|hit| hit["kind"] == "commit").count(), 1);
    assert_eq!(counts(&home, &repo).1, 2);
}

#[test]
fn two_parallel_sessions_in_two_work_trees_are_distinguished() {
    let (home, repo, mut server) = followed();
    let tree = home.path().join("tree");
    repo.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let tree = home.repo_at(tree);
    let (one, two) =
        (Talk::new(&home, SESSION, &repo.path, "main"), Talk::new(&home, OTHER, &tree.path, "side"));
    for minute in 0..10 {
        one.says("user", minute * 60, &format!("minute {minute} of the anvil"));
        two.says("user", minute * 60 + 30, &format!("minute {minute} of the bellows"));
    }
    one.edits(600, "same.rs");
    two.edits(630, "same.rs");
    one.hook(&home, "Stop");
    two.hook(&home, "Stop");
    for (repo, subject) in [(&repo, "Heat the anvil"), (&tree, "Mend the bellows")] {
        repo.write("same.rs", subject);
        repo.git(&["add", "-A"]);
        repo.git_at(&["commit", "-q", "-m", subject], (BEGAN + 700) as u64);
    }
    let first = |found: Vec<String>| found[0].clone();
    assert_eq!(first(behind(&mut server, "Heat the anvil")), SESSION);
    let mut beside = home.serve(&tree.path);
    assert_eq!(first(behind(&mut beside, "Mend the bellows")), OTHER);
    assert_eq!(first(behind(&mut beside, "Heat the anvil")), SESSION);
    server.end();
    beside.end();
    let mut server = home.serve(&repo.path);
    assert_eq!(first(behind(&mut server, "Mend the bellows")), OTHER);
    assert_eq!(counts(&home, &repo), (22, 3));
}

#[test]
fn an_amended_rebased_or_picked_commit_keeps_its_session_and_is_stored_once() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "topic");
    talk.says("user", 0, "pour the crucible");
    talk.edits(30, "pour.txt");
    talk.hook(&home, "Stop");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.write("pour.txt", "pour\n");
    repo.git(&["add", "-A"]);
    repo.git_at(&["commit", "-q", "-m", "Pour the crucible"], (BEGAN + 60) as u64);
    assert_eq!(behind(&mut server, "Pour the crucible"), [SESSION]);

    repo.git(&["checkout", "-q", "main"]);
    repo.commit("trunk.txt", "trunk\n", "Go on with the trunk");
    // The author's time stays the same, but the committer's time is days later.
    repo.git_at(&["rebase", "-q", "main", "topic"], (BEGAN + 300_000) as u64);
    let rebased = repo.head();
    let hits = server.hits(json!({"query": "Pour the crucible", "kinds": ["commit"]}));
    assert_eq!((&hits[0]["source_id"], &hits[0]["conversations"]), (&json!(rebased), &json!([SESSION])));

    repo.git(&["checkout", "-q", "-b", "release", "main~1"]);
    repo.git_at(&["cherry-pick", &rebased], (BEGAN + 400_000) as u64);
    assert_eq!(behind(&mut server, "Pour the crucible"), [SESSION]);
    assert_eq!(counts(&home, &repo).1, 3, "one memory for all of them");

    let date = format!("--date={} +0000", BEGAN + 60);
    repo.git_at(
        &["commit", "-q", "--amend", &date, "-m", "Pour the crucible slowly"],
        (BEGAN + 500_000) as u64,
    );
    assert_eq!(behind(&mut server, "Pour the crucible slowly"), [SESSION]);
    server.end();
    let mut server = home.serve(&repo.path);
    assert_eq!(behind(&mut server, "Pour the crucible slowly"), [SESSION]);
    assert_eq!(counts(&home, &repo).1, 4, "an amended message is another text");
}

#[test]
fn pulled_commits_are_found_by_the_next_call() {
    let (home, repo, mut server) = followed();
    let clone = home.path().join("clone");
    repo.git(&["clone", "-q", repo.path.to_str().unwrap(), clone.to_str().unwrap()]);
    let clone = home.repo_at(clone);
    repo.git(&["remote", "add", "there", clone.path.to_str().unwrap()]);
    clone.commit("theirs.txt", "1\n", "Oil the ratchet elsewhere");
    repo.git(&["fetch", "-q", "there"]);
    repo.git(&["merge", "-q", "--ff-only", "there/main"]);
    assert!(behind(&mut server, "Oil the ratchet elsewhere").is_empty());

    // Both branches have new commits, and a merge joins them.
    clone.commit("theirs.txt", "2\n", "Grease the pawl elsewhere");
    repo.commit("ours.txt", "1\n", "Polish the dial here");
    repo.git(&["fetch", "-q", "there"]);
    repo.git(&["merge", "-q", "--no-edit", "there/main"]);
    behind(&mut server, "Grease the pawl elsewhere");
    server.end();
    let mut server = home.serve(&repo.path);
    for subject in ["Oil the ratchet elsewhere", "Grease the pawl elsewhere", "Polish the dial here"] {
        behind(&mut server, subject);
    }
    let commits: u64 = repo.git(&["rev-list", "--count", "HEAD"]).parse().unwrap();
    assert_eq!(counts(&home, &repo).1, commits);
    let again: Value = home.json(&repo.path, &["import", "git"]);
    assert_eq!(again["imported"], 0);
}

/// If reflogs are turned off, a commit can't be noticed by `HEAD`, which names the same branch before and after it.
#[test]
fn a_commit_is_found_without_a_reflog() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.git(&["config", "core.logAllRefUpdates", "false"]);
    repo.commit("a.txt", "a\n", "Begin");
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    server.search("begin");
    repo.commit("b.txt", "b\n", "Solder the seam");
    behind(&mut server, "Solder the seam");
    repo.git(&["pack-refs", "--all"]);
    repo.commit("c.txt", "c\n", "File the burr");
    behind(&mut server, "File the burr");
}

/// A call in one work tree covers the whole project, so its answer includes commits of another work tree.
#[test]
fn a_commit_made_in_another_work_tree_is_found() {
    let (home, repo, mut server) = followed();
    let tree = home.path().join("tree");
    repo.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    server.search("settle");
    home.repo_at(tree).commit("b.txt", "b\n", "Braze the joint");
    behind(&mut server, "Braze the joint");
}

/// A call imports only as many commits as it can wait for; the idle server imports the rest.
#[test]
fn an_idle_server_imports_what_a_call_left_out() {
    let (home, repo, mut server) = followed();
    let mut history = String::new();
    for n in 1..=600 {
        let who = format!("Ada <ada@example.org> {} +0000", BEGAN + n);
        let message = format!("Turn the crank {n} times");
        history += &format!(
            "commit refs/heads/side\nauthor {who}\ncommitter {who}\ndata {}\n{message}\nM 100644 inline crank\n\
             data {}\n{n}\n",
            message.len(),
            n.to_string().len() + 1
        );
    }
    let mut import = std::process::Command::new("git");
    import.args(["fast-import", "--quiet"]).current_dir(&repo.path);
    assert!(feed(import, history.as_bytes()).is_ok);
    repo.git(&["checkout", "-q", "side"]);
    let data = server.data("search_project_memory", json!({"query": "turn the crank 600 times"}));
    let notices = data["notices"].to_string();
    assert!(notices.contains("not imported yet"), "{notices}");
    let all_are_there = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        counts(&home, &repo).1 == 601
    });
    assert!(all_are_there, "{:?}", counts(&home, &repo));
    server.end();
}

/// No commit and no session is lost if a writer locks the store longer than a call waits.
#[test]
fn what_could_not_be_stored_is_imported_again() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    talk.says("user", 0, "weld the bracket");
    talk.hook(&home, "SessionEnd");
    repo.commit("b.txt", "b\n", "Weld the bracket");
    let writer = rusqlite::Connection::open(home.store()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let data = server.data("search_project_memory", json!({"query": "weld the bracket"}));
    assert!(data["notices"].to_string().contains("may be missing"), "{data}");
    writer.execute_batch("ROLLBACK").unwrap();
    assert_eq!(server.search("weld the bracket").len(), 2);
}

#[test]
fn a_transcript_that_was_rewound_and_grew_past_its_cursor_is_read_again() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    let filler = "the same words at the beginning ".repeat(200);
    talk.says("user", 0, &filler);
    let kept = std::fs::read(&talk.path).unwrap();
    talk.says("user", 1, "the old ending of it");
    talk.hook(&home, "Stop");
    assert!(!server.search("old ending").is_empty());
    std::fs::write(&talk.path, &kept).unwrap();
    talk.says("user", 2, &format!("the gudgeon is new. {filler}"));
    talk.says("user", 3, "the pintle is new too");
    talk.hook(&home, "Stop");
    for word in ["gudgeon", "pintle"] {
        let found = strings(&server.search(word), "text");
        assert!(found.iter().any(|text| text.contains(word)), "{word}: {found:?}");
    }
}

#[test]
fn a_cancelled_call_delays_nothing() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    let call = json!([{"type": "tool_use", "id": "toolu_broken_off_00000001", "name": "Bash", "input": {"command": "sleep"}}]);
    talk.put(&talk.line("assistant", BEGAN * 1000, call));
    let filler = "the lathe turns and turns ".repeat(200);
    for at in 1..80 {
        talk.says("assistant", at, &format!("turn {at}: {filler}"));
    }
    talk.says("user", 90, "what of the zeppelin?");
    talk.hook(&home, "Stop");
    assert_eq!(strings(&server.search("zeppelin")[..1], "text"), ["what of the zeppelin?"]);
    server.end();
    // Reading continues after the last stored part, and stores nothing twice.
    let again = home.json(&repo.path, &["import", "claude-code"]);
    assert_eq!((&again["imported"], &again["bytes"]), (&json!(0), &json!(0)), "{again}");
}

#[test]
fn a_session_belongs_to_the_project_it_was_held_in() {
    let (home, repo, mut server) = followed();
    let other = home.repo("repo/vendor");
    other.commit("README.md", "# Other\n", "Begin");
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    talk.says("user", 0, "why does the yardarm creak?");
    // The agent is in the other repository when its hook runs.
    let mut payload: Value = serde_json::from_slice(&talk.payload("Stop")).unwrap();
    payload["cwd"] = json!(other.path);
    for _ in 0..50 {
        feed(home.tiro(&other.path, &["hook", "claude-code"]), payload.to_string().as_bytes());
        if home.waiting() > 0 {
            break;
        }
    }
    let mut there = home.serve(&other.path);
    let found = strings(&there.search("yardarm"), "text");
    assert!(!found.iter().any(|text| text.contains("yardarm")), "{found:?}");
    assert_eq!(strings(&server.search("yardarm")[..1], "text"), ["why does the yardarm creak?"]);
    assert_eq!(home.waiting(), 0);
}

#[test]
fn commits_are_followed_from_the_setup_on() {
    for (before, args) in [(false, ["init", "--yes"].as_slice()), (true, &["init", "--yes", "--no-backfill"])]
    {
        let home = Home::new();
        let repo = home.repo("repo");
        if before {
            repo.commit("README.md", "# It\n", "Begin with the capstan");
        }
        assert!(home.run(&repo.path, args).is_ok, "{args:?}");
        repo.commit("a.txt", "a\n", "Tighten the halyard");
        let mut server = home.serve(&repo.path);
        assert_eq!(server.search("halyard").len(), 1, "{args:?}");
    }
}
