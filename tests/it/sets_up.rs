//! Sets Tiro up as a new user does. Tests what it announces, what is captured after that, and what `--remove` restores.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Home, Ran, feed};
use crate::talk::Talk;

/// A Tiro server that the user had configured used to run beside the one that `init` set up, unnoticed.
#[test]
fn a_server_configured_by_hand_is_noticed_by_init_and_doctor() {
    let home = Home::new();
    for client in [".claude", ".codex"] {
        home.dir(&format!("home/{client}"));
    }
    let repo = home.repo("repo");
    let mine = json!({"mcpServers": {"memory": {"command": "tiro", "args": ["serve"]}}}).to_string();
    repo.write(".mcp.json", &mine);
    let codex = home.path().join("home/.codex/config.toml");
    std::fs::write(&codex, "[mcp_servers.notes]\ncommand = \"sh\"\nargs = [\"-c\", \"tiro serve\"]\n")
        .unwrap();
    let notices = |text: &str| {
        text.contains("`memory` starts Tiro too")
            && text.contains("claude mcp remove memory")
            && text.contains("`notes` starts Tiro too")
    };
    // Without Tiro's entries these are the only servers. An earlier version advised users who had set Tiro up by hand
    // to remove it.
    let told = home.run(&repo.path, &["doctor"]);
    assert!(!told.stdout.contains("starts Tiro too"), "{told:?}");
    let looked = home.run(&repo.path, &["init", "--dry-run"]);
    assert!(looked.is_ok && notices(&looked.stderr), "{looked:?}");
    assert!(looked.stderr.contains("will be offered every tool twice"), "{looked:?}");
    let ran = home.run(&repo.path, &["init", "--yes"]);
    assert!(ran.is_ok && notices(&ran.stdout), "{ran:?}");
    assert!(ran.stdout.contains("is offered every tool twice"), "{ran:?}");
    let told = home.run(&repo.path, &["doctor"]);
    assert!(told.is_ok && notices(&told.stdout), "{told:?}");
    assert_eq!(std::fs::read_to_string(repo.path.join(".mcp.json")).unwrap(), mine);
    std::fs::remove_file(repo.path.join(".mcp.json")).unwrap();
    let text = std::fs::read_to_string(&codex).unwrap();
    assert!(text.contains("[mcp_servers.notes]"), "{text}");
    std::fs::write(&codex, text.replace("tiro serve", "other")).unwrap();
    assert!(!home.run(&repo.path, &["doctor"]).stdout.contains("starts Tiro too"));
}

/// Runs a command of the program on a terminal with `keys` as input. Returns `None` if there is no terminal.
fn on_a_terminal(home: &Home, directory: &Path, args: &[&str], keys: &str) -> Option<Ran> {
    let ours = home.tiro(directory, args);
    let line: Vec<String> = [ours.get_program()]
        .into_iter()
        .chain(ours.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut command = Command::new("script");
    command.args(["-qec", &line.join(" "), "/dev/null"]).current_dir(directory).env_clear();
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("SHELL", "/bin/sh");
    if !cfg!(target_os = "linux") {
        eprintln!("skipped: there is no `script` of util-linux");
        return None;
    }
    Some(feed(command, keys.as_bytes()))
}

fn finding(home: &Home, directory: &Path, what: &str) -> Value {
    let ran = home.run(directory, &["doctor", "--json"]);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let findings = told["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["what"] == what).cloned().unwrap_or_default()
}

/// A declined import used to be recorded as done: `tiro import git` imported nothing afterwards, and `doctor` found
/// no fault.
#[test]
fn a_declined_history_can_be_imported_and_doctor_counts_stored_commits() {
    let home = Home::new();
    let repo = home.repo("repo");
    for number in 0..7 {
        repo.commit("a.txt", &format!("{number}\n"), &format!("Turn the capstan {number}"));
    }
    let ran = home.run(&repo.path, &["init", "--yes", "--no-backfill"]);
    assert!(ran.is_ok && ran.stderr.contains("Not imported; `tiro import git`"), "{ran:?}");
    repo.git(&["checkout", "-q", "-b", "fix", "HEAD~3"]);
    repo.commit("b.txt", "b\n", "Splice the halyard");
    // New commits are followed, whatever their parents are, but the history is not imported.
    let mut server = home.serve(&repo.path);
    assert_eq!(server.search("halyard").len(), 1);
    assert_eq!(server.search("capstan").len(), 0);
    repo.git(&["commit", "-q", "--amend", "-m", "Splice the halyard again"]);
    assert_eq!(server.search("again").len(), 1);
    assert_eq!(server.search("capstan").len(), 0);
    server.end();
    let told = finding(&home, &repo.path, "commits");
    assert!(told["found"].as_str().unwrap().starts_with("1 of 8 commits"), "{told}");
    assert_eq!(told["mend"], "`tiro import git` imports the others");

    let looked = home.json(&repo.path, &["import", "git", "--dry-run"]);
    assert_eq!(looked["commits"], 7, "{looked}");
    let some = home.json(&repo.path, &["import", "git", "--limit", "2"]);
    assert_eq!((&some["imported"], &some["left_out"]), (&json!(2), &json!(5)), "{some}");
    // The limit also applies to commits that calls follow.
    repo.git(&["branch", "another"]);
    home.json(&repo.path, &["search", "capstan"]);
    let looked = home.json(&repo.path, &["import", "git", "--dry-run", "--limit", "3"]);
    assert_eq!((&looked["commits"], &looked["left_out"]), (&json!(3), &json!(2)), "{looked}");
    let all = home.json(&repo.path, &["import", "git"]);
    assert_eq!(all["imported"], 5, "{all}");
    assert_eq!(home.json(&repo.path, &["import", "git"])["imported"], 0);
    let told = finding(&home, &repo.path, "commits");
    assert_eq!((&told["ok"], &told["found"]), (&json!(true), &json!("all 8 commits are imported")), "{told}");
}

/// An earlier version recorded a history as imported that it had not imported.
#[test]
fn a_history_wrongly_recorded_as_stored_is_found_and_imported() {
    let home = Home::new();
    let repo = home.repo("repo");
    for number in 0..4 {
        repo.commit("a.txt", &format!("{number}\n"), &format!("Turn the capstan {number}"));
    }
    assert!(home.run(&repo.path, &["init", "--yes", "--no-backfill"]).is_ok);
    rusqlite::Connection::open(home.store())
        .unwrap()
        .execute_batch("UPDATE imports SET source = 'git', cursor = 'complete' WHERE source = 'git followed'")
        .unwrap();
    let told = home.run(&repo.path, &["doctor"]);
    assert!(!told.is_ok && told.stdout.contains("FAIL commits: 0 of 4 commits are imported"), "{told:?}");
    assert!(told.stdout.contains("mend: `tiro import git` imports the others"), "{told:?}");
    assert_eq!(home.json(&repo.path, &["import", "git", "--dry-run"])["commits"], 4);
    assert_eq!(home.json(&repo.path, &["import", "git"])["imported"], 4);
    assert!(home.run(&repo.path, &["doctor"]).is_ok);
}

/// An empty line used to mean no, so the history of users who pressed Enter twice was not imported.
#[test]
fn enter_imports_the_history_and_no_declines_it() {
    for (keys, expected) in [("y\n\n", 3), ("y\nn\n", 0), ("y\ny\n", 3), ("y\n\u{4}", 0)] {
        let home = Home::new();
        let repo = home.repo("repo");
        for number in 0..3 {
            repo.commit("a.txt", &format!("{number}\n"), &format!("Turn the capstan {number}"));
        }
        let Some(ran) = on_a_terminal(&home, &repo.path, &["init"], keys) else { return };
        assert!(ran.is_ok && ran.stdout.contains("Import this now? [Y/n]"), "{ran:?}");
        let left = home.json(&repo.path, &["import", "git", "--dry-run"])["commits"].as_u64().unwrap();
        assert_eq!(3 - left, expected, "{keys:?}: {ran:?}");
    }
}

/// Runs a hook for a session. Returns whether it left a reference.
fn hook(home: &Home, talk: &Talk, directory: &Path) -> bool {
    let before = home.waiting();
    (0..50).any(|_| {
        feed(home.tiro(directory, &["hook", "claude-code"]), &talk.payload("Stop"));
        home.waiting() > before
    })
}

/// `init` in one repository used to capture the sessions of all other repositories without saying so, but not their
/// commits.
#[test]
fn init_says_what_is_captured_and_other_projects_get_sessions_and_commits() {
    let home = Home::new();
    home.dir("home/.claude");
    let (repo, other) = (home.repo("repo"), home.repo("other"));
    let old = "2026-01-02T03:04:05Z";
    other.write("a.txt", "a\n");
    other.git(&["add", "-A"]);
    other.git(&["commit", "-q", "-m", "Lay the keel", "--date", old]);
    let looked = home.run(&repo.path, &["init", "--dry-run"]);
    assert!(looked.stderr.contains("every project on this machine"), "{looked:?}");
    assert!(home.run(&repo.path, &["init", "--yes"]).is_ok);

    let talk = Talk::new(&home, "elsewhere", &other.path, "main");
    talk.says("user", 0, "why does the yardarm creak?");
    assert!(hook(&home, &talk, &other.path));
    let mut server = home.serve(&other.path);
    assert_eq!(server.search("yardarm").len(), 1);
    other.write("b.txt", "b\n");
    other.git(&["add", "-A"]);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    other.git_at(&["commit", "-q", "-m", "Grease the yardarm"], now);
    assert_eq!(server.hits(json!({"query": "grease", "kinds": ["commit"]})).len(), 1);
    assert_eq!(
        server.hits(json!({"query": "keel", "kinds": ["commit"]})).len(),
        0,
        "its history is left alone"
    );
}

/// It used to be impossible to capture only one project.
#[test]
fn with_one_project_only_its_sessions_and_commits_are_captured() {
    let home = Home::new();
    home.dir("home/.claude");
    let (repo, other) = (home.repo("repo"), home.repo("other"));
    repo.commit("a.txt", "a\n", "Begin");
    other.commit("a.txt", "a\n", "Begin");
    let ran = home.run(&repo.path, &["init", "--yes", "--scope", "project"]);
    assert!(ran.is_ok && ran.stderr.contains("nothing is captured there"), "{ran:?}");
    let plain = home.dir("home/plain");
    let refused = home.run(home.path().join("home").as_path(), &["init", "--yes", "--scope", "project"]);
    assert!(!refused.is_ok && refused.stderr.contains("not in a project"), "{refused:?}");
    for (directory, expected) in [(&repo.path, true), (&other.path, false), (&plain, false)] {
        let talk = Talk::new(
            &home,
            &format!("s{expected}{}", directory.display()).replace('/', "-"),
            directory,
            "main",
        );
        talk.says("user", 0, "why does the yardarm creak?");
        assert_eq!(hook(&home, &talk, directory), expected, "{directory:?}");
    }
    let mut server = home.serve(&other.path);
    server.data("store_memory", json!({"text": "the keel is of oak", "type": "fact"}));
    other.commit("b.txt", "b\n", "Grease the yardarm");
    assert_eq!(server.search("yardarm").len(), 0);
    assert_eq!(server.search("keel").len(), 1, "what the agent stores is stored");
    server.end();
    // Running `init` again keeps the choice until the user makes another one.
    let again = home.run(&repo.path, &["init", "--yes"]);
    assert!(again.is_ok && again.stdout.contains("nothing was changed"), "{again:?}");
    let talk = Talk::new(&home, "later", &other.path, "main");
    talk.says("user", 0, "why does the yardarm creak?");
    assert!(!hook(&home, &talk, &other.path));
    // A second project is added to the first; removing it keeps the first and the clients.
    assert!(home.run(&other.path, &["init", "--yes", "--no-backfill"]).is_ok);
    assert!(hook(&home, &talk, &other.path));
    let removed = home.run(&other.path, &["init", "--remove"]);
    assert!(removed.is_ok && removed.stdout.contains("Clients stay set up"), "{removed:?}");
    assert!(home.path().join("home/.claude/skills/tiro/.mcp.json").exists());
    home.json(&other.path, &["search", "yardarm"]);
    assert!(!hook(&home, &talk, &other.path));
    assert!(home.run(&repo.path, &["init", "--yes", "--scope", "machine"]).is_ok);
    assert!(hook(&home, &talk, &other.path));
}

/// `init --remove` in one repository used to remove the hooks of all others without asking.
#[test]
fn other_repositories_keep_their_hooks_until_all_is_given() {
    let home = Home::new();
    home.dir("home/.claude");
    let (repo, other) = (home.repo("repo"), home.repo("other"));
    let hook = |repo: &crate::harness::Repo| repo.path.join(".git/hooks/post-commit");
    let set_up = || {
        for repo in [&repo, &other] {
            assert!(home.run(&repo.path, &["init", "--yes"]).is_ok);
            assert!(hook(repo).exists());
        }
    };
    set_up();
    let removed = home.run(&repo.path, &["init", "--remove"]);
    assert!(removed.is_ok && removed.stdout.contains("1 hook of other repositories"), "{removed:?}");
    assert!(removed.stderr.contains(hook(&other).to_str().unwrap()), "{removed:?}");
    assert!(!hook(&repo).exists() && hook(&other).exists());
    assert!(!home.path().join("home/.claude/skills").exists());
    // The hook stays but does no harm, and `--all` removes it.
    assert!(home.run(&repo.path, &["doctor"]).is_ok);
    let removed = home.run(&repo.path, &["init", "--remove", "--all"]);
    assert!(removed.is_ok && !hook(&other).exists() && !home.data().join("init").exists(), "{removed:?}");

    for (keys, expected) in [("\n", true), ("y\n", false)] {
        set_up();
        let Some(ran) = on_a_terminal(&home, &repo.path, &["init", "--remove"], keys) else { return };
        assert!(ran.is_ok && ran.stdout.contains("Remove Tiro from these, too? [y/N]"), "{ran:?}");
        assert_eq!((hook(&repo).exists(), hook(&other).exists()), (false, expected), "{ran:?}");
    }
    // With `--yes` nothing is asked, but nothing that affects other repositories is agreed to.
    set_up();
    let Some(ran) = on_a_terminal(&home, &repo.path, &["init", "--remove", "--yes"], "y\n") else { return };
    assert!(ran.is_ok && !ran.stdout.contains("too? [y/N]"), "{ran:?}");
    assert_eq!((hook(&repo).exists(), hook(&other).exists()), (false, true), "{ran:?}");
    assert!(!home.run(&repo.path, &["init", "--all"]).is_ok);
}

/// Tests Enter, `y` and `p` as answers to the first question.
#[test]
fn init_offers_to_capture_only_this_project() {
    for (keys, expected) in
        [("\n", None), ("y\nn\nn\nn\n", Some("machine")), ("p\nn\nn\nn\n", Some("project"))]
    {
        let home = Home::new();
        home.dir("home/.claude");
        let repo = home.repo("repo");
        repo.commit("a.txt", "a\n", "Begin");
        let Some(ran) = on_a_terminal(&home, &repo.path, &["init"], keys) else { return };
        assert!(ran.is_ok && ran.stdout.contains("[p] for this project only"), "{ran:?}");
        let scope = std::fs::read_to_string(home.data().join("spool/scope")).ok();
        assert_eq!(scope.as_deref(), expected, "{ran:?}");
    }
}
