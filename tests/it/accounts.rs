//! An import finds the sessions of a project by what is in them, and accounts for all of a client's transcripts.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Home, Repo};
use crate::talk::{BEGAN, Talk};

/// Returns a session in `directory` with a question and an answer about `word`.
fn talk(home: &Home, number: u32, directory: &Path, word: &str) -> Talk {
    let talk = Talk::new(home, &format!("{number:08x}-5af3-46fb-8473-94dff3a77ff6"), directory, "main");
    talk.says("user", 0, &format!("why is the {word} blue?"));
    talk.says("assistant", 1, &format!("the {word} was dyed with woad"));
    talk
}

fn import(home: &Home, directory: &Path) -> Value {
    home.json(directory, &["import", "claude-code"])
}

/// Returns whether the project at `directory` contains something about `word`.
fn has(home: &Home, directory: &Path, word: &str) -> bool {
    home.run(directory, &["export"]).stdout.contains(&format!("the {word} was dyed"))
}

/// Returns the account in an answer: seen, of this project, elsewhere, left out. Checks that the numbers add up.
fn account(answer: &Value) -> (u64, u64, u64, u64) {
    let account = &answer["account"];
    let number = |name: &str| account[name].as_u64().unwrap_or_else(|| panic!("`{name}` in {account}"));
    let left_out = account["left_out"].as_array().unwrap();
    let left_out = left_out.iter().map(|each| each["sessions"].as_u64().unwrap()).sum();
    let (seen, here, elsewhere) = (number("seen"), number("here"), number("elsewhere"));
    assert_eq!(seen, here + elsewhere + left_out, "{account}");
    assert_eq!(here, number("imported") + number("new"), "{account}");
    (seen, here, elsewhere, left_out)
}

fn moved(from: &Path, to: PathBuf) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::rename(from, to).unwrap();
}

/// Transcripts in the folder of another project, behind links, with damaged bytes, or in folders with cut names used to
/// be missed, and nothing said so.
#[cfg(unix)]
#[test]
fn every_transcript_of_a_home_of_all_shapes_is_accounted_for() {
    use std::os::unix::fs::symlink;
    let home = Home::new();
    let app = home.repo("työ/🚢 app");
    app.commit("a.txt", "a\n", "Begin");
    let other = home.repo("other");
    other.commit("a.txt", "a\n", "Begin");
    let projects = home.dir("home/.claude/projects");

    talk(&home, 1, &app.path, "hull");
    let filed = talk(&home, 2, &app.path.join("src/removed"), "mast");
    moved(&filed.path, projects.join("-somewhere-else/mast.jsonl"));
    let linked = talk(&home, 3, &app.path, "keel");
    moved(&linked.path, home.dir("kept").join("keel.jsonl"));
    symlink(home.path().join("kept"), projects.join("kept")).unwrap();
    symlink(home.path().join("kept/keel.jsonl"), projects.join("again.jsonl")).unwrap();
    symlink("..", projects.join("kept/loop")).unwrap();
    let damaged = talk(&home, 4, &app.path, "sail");
    let good = fs::read(&damaged.path).unwrap();
    let mut bad = b"{\"type\":\"progress\",\"data\":\"\xc3\x28\"}\n".to_vec();
    bad.extend_from_slice(&good);
    fs::write(&damaged.path, bad).unwrap();
    symlink(&app.path, home.path().join("typed")).unwrap();
    talk(&home, 5, &home.path().join("typed"), "boom");
    let worked = talk(&home, 6, &home.path(), "quay");
    worked.edits(2, app.path.join("a.txt").to_str().unwrap());

    talk(&home, 10, &other.path, "crane");
    let reads = talk(&home, 11, &other.path, "dock");
    reads.calls(2, "Read", json!({"file_path": app.path.join("a.txt")}), "a");
    talk(&home, 12, &home.path().join("home"), "shed");

    talk(&home, 20, Path::new("/never/there"), "ghost");
    symlink("nothing", projects.join("lost.jsonl")).unwrap();
    fs::write(projects.join("empty.jsonl"), "").unwrap();
    fs::write(projects.join("notes.txt"), "no transcript").unwrap();

    let before = home.json(&app.path, &["import", "claude-code", "--dry-run"]);
    assert_eq!(account(&before), (12, 6, 3, 3), "{before}");
    let first = import(&home, &app.path);
    assert_eq!(account(&first), (12, 6, 3, 3), "{first}");
    assert_eq!((&first["account"]["new"], &first["account"]["in_part"]), (&json!(6), &json!(1)), "{first}");
    for word in ["hull", "mast", "keel", "sail", "boom"] {
        assert!(has(&home, &app.path, word), "{word}");
    }
    assert!(home.run(&app.path, &["export"]).stdout.contains("a.txt"), "the tool call of the quay");
    for word in ["crane", "dock", "shed", "ghost"] {
        assert!(!has(&home, &app.path, word), "{word}");
    }
    let reasons: Vec<&str> = first["account"]["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["why"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["unreadable", "no-directory", "directory-gone"]);
    let text = home.run(&app.path, &["import", "claude-code"]).stdout;
    assert!(
        text.contains("12 sessions seen; 6 of this project (6 imported before, 0 now; 1 began"),
        "{text}"
    );
    assert!(
        text.contains("/never/there") && text.contains("lost.jsonl") && text.contains("empty.jsonl"),
        "{text}"
    );
    let doctor = home.run(&app.path, &["doctor"]).stdout;
    assert!(doctor.contains("sessions: Claude Code: 12 sessions seen; 6 of this project"), "{doctor}");

    // What was found by looking is only a help.
    let looks = home.data().join("looks/claude-code.json");
    assert!(looks.is_file());
    for damage in ["", "{", "{\"version\":1,\"known\":7}"] {
        fs::write(&looks, damage).unwrap();
        let again = import(&home, &app.path);
        assert_eq!((account(&again), &again["bytes"]), ((12, 6, 3, 3), &json!(0)), "{damage:?}: {again}");
    }
    talk(&home, 1, &app.path, "hull").says("user", 9, "and the hull was dyed once more");
    let grown = import(&home, &app.path);
    assert_eq!((&grown["grown"], &grown["account"]["new"]), (&json!(1), &json!(1)), "{grown}");
    assert_eq!(account(&import(&home, &other.path)), (12, 2, 7, 3));
}

/// A session used to belong as a whole to the project in which it began.
#[test]
fn a_message_belongs_to_the_project_in_which_the_agent_was() {
    let home = Home::new();
    let (one, two) = (home.repo("one"), home.repo("two"));
    one.commit("a.txt", "a\n", "Begin");
    two.commit("b.txt", "b\n", "Begin");
    let talk = talk(&home, 1, &one.path, "hull");
    let says_in = |directory: &Path, role: &str, at: i64, text: &str| {
        let mut line = talk.line(role, (BEGAN + at) * 1000, json!(text));
        line["cwd"] = json!(directory);
        talk.put(&line);
    };
    talk.edits(5, two.path.join("b.txt").to_str().unwrap());
    says_in(&two.path, "user", 10, "why is the mast blue?");
    says_in(&two.path, "assistant", 11, "the mast was dyed with woad");
    says_in(&home.dir("scratch"), "assistant", 12, "the boom was dyed with woad");
    says_in(&one.path, "assistant", 13, "the keel was dyed with woad");
    moved(&talk.path, home.dir("home/.claude/projects").join("-two/moved.jsonl"));
    for (directory, here, elsewhere) in [
        (&one.path, ["hull", "boom", "keel"].as_slice(), ["mast"].as_slice()),
        (&two.path, &["mast"], &["hull", "boom", "keel"]),
    ] {
        let imported = import(&home, directory);
        assert_eq!(account(&imported), (1, 1, 0, 0), "{imported}");
        here.iter().for_each(|word| assert!(has(&home, directory, word), "{word} in {directory:?}"));
        elsewhere.iter().for_each(|word| assert!(!has(&home, directory, word), "{word} in {directory:?}"));
        assert!(home.run(directory, &["export"]).stdout.contains("b.txt"), "the edit belongs to both");
    }
}

/// Returns a repository with a work tree beside it, on a branch that is merged after `work`. Then the work tree is
/// removed.
fn removed(home: &Home, work: impl FnOnce(&Repo)) -> (Repo, PathBuf) {
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    let tree = home.path().join("repo-fix");
    repo.git(&["worktree", "add", "-q", tree.to_str().unwrap(), "-b", "fix"]);
    work(&home.repo_at(tree.clone()));
    repo.git(&["merge", "-q", "fix"]);
    repo.git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    repo.git(&["branch", "-qD", "fix"]);
    assert!(!tree.exists());
    (repo, tree)
}

/// The sessions of a removed work tree used to be missed, unless it lay inside the repository.
#[test]
fn a_removed_work_tree_is_known_by_the_commits_of_its_sessions() {
    let home = Home::new();
    let (repo, tree) = removed(&home, |tree| {
        let sha = tree.commit("a.txt", "b\n", "Mend it");
        let talk = talk(&home, 1, &tree.path.join("src"), "buoy");
        talk.calls(
            2,
            "Bash",
            json!({"command": "git commit -qam x"}),
            &format!("[fix {}] Mend it", &sha[..8]),
        );
        self::talk(&home, 2, &tree.path.with_file_name("repo-other"), "ghost");
    });
    let imported = import(&home, &repo.path);
    assert_eq!(account(&imported), (2, 1, 0, 1), "{imported}");
    assert!(has(&home, &repo.path, "buoy") && !has(&home, &repo.path, "ghost"));
    // From now on, the directory is known.
    talk(&home, 3, &tree.join("src"), "anchor");
    import(&home, &repo.path);
    assert!(has(&home, &repo.path, "anchor"));
}

#[test]
fn a_removed_work_tree_is_known_by_the_lines_that_its_sessions_wrote() {
    let lines =
        "let flange = gasket.measure();\nlet grommet = flange.tighten(7);\nassert!(grommet.is_tight());\n";
    let home = Home::new();
    let (repo, _) = removed(&home, |tree| {
        tree.commit("src/gasket.rs", lines, "Tighten it");
        let talk = talk(&home, 1, &tree.path, "buoy");
        let path = tree.path.join("src/gasket.rs");
        talk.calls(2, "Write", json!({"file_path": path, "content": lines}), "ok");
        let chance = self::talk(&home, 2, Path::new("/never/there"), "ghost");
        chance.calls(
            2,
            "Write",
            json!({"file_path": "/never/there/src/gasket.rs", "content": "let flange = gasket.measure();\n"}),
            "ok",
        );
    });
    home.json(&repo.path, &["import", "git"]);
    let imported = import(&home, &repo.path);
    assert_eq!(account(&imported), (2, 1, 0, 1), "{imported}");
    assert!(has(&home, &repo.path, "buoy") && !has(&home, &repo.path, "ghost"));
    let writes = home.run(&repo.path, &["search", "gasket"]).stdout;
    assert!(writes.contains("src/gasket.rs"), "{writes}");
}

#[test]
fn a_removed_work_tree_that_was_seen_is_known_and_belongs_to_no_other_project() {
    let home = Home::new();
    let around = home.repo("around");
    around.commit("x.txt", "x\n", "Begin");
    let (repo, tree) = (home.repo("repo"), home.path().join("around/trees/fix"));
    repo.commit("a.txt", "a\n", "Begin");
    repo.git(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    import(&home, &repo.path);
    talk(&home, 1, &tree, "buoy");
    repo.git(&["worktree", "remove", "--force", tree.to_str().unwrap()]);
    fs::remove_dir(tree.parent().unwrap()).unwrap();
    assert_eq!(account(&import(&home, &around.path)), (1, 0, 1, 0));
    assert!(!has(&home, &around.path, "buoy"));
    assert_eq!(account(&import(&home, &repo.path)), (1, 1, 0, 0));
    assert!(has(&home, &repo.path, "buoy"));
}

/// A removed work tree of which nothing proves to whom it belonged is named.
#[test]
fn a_directory_that_is_gone_is_named_with_the_way_to_import_it() {
    let home = Home::new();
    let (repo, tree) = removed(&home, |tree| {
        talk(&home, 1, &tree.path, "buoy");
    });
    let text = home.run(&repo.path, &["import", "claude-code"]).stdout;
    let expected = format!(
        "1 in a directory that is gone, such as a removed worktree, so its project is unknown (`{}`; `tiro import",
        tree.display()
    );
    assert!(text.contains(&expected), "{text}");
    let command = text.split("`tiro import claude-code '").nth(1).and_then(|rest| rest.split('\'').next());
    home.json(&repo.path, &["import", "claude-code", command.unwrap()]);
    assert!(has(&home, &repo.path, "buoy"));
}

/// Sessions that ran before a directory was renamed used to be missed, unless they were imported before.
#[test]
fn sessions_under_a_former_name_are_found() {
    let home = Home::new();
    let repo = home.repo("harbour-old");
    repo.commit("a.txt", "a\n", "Begin");
    import(&home, &repo.path);
    let talk = talk(&home, 1, &repo.path, "crane");
    talk.edits(3, "a.txt");
    let (old, new) = (repo.path.clone(), home.path().join("harbour"));
    fs::rename(&old, &new).unwrap();
    assert_eq!(account(&import(&home, &new)), (1, 1, 0, 0));
    assert!(has(&home, &new, "crane"));
    let new = home.path().join("quays/harbour");
    moved(&home.path().join("harbour"), new.clone());
    self::talk(&home, 2, &old, "mast");
    import(&home, &new);
    assert!(has(&home, &new, "mast"));
    // Another project at the old path has its own sessions.
    let other = home.repo("harbour-old");
    self::talk(&home, 3, &other.path, "jetty");
    import(&home, &new);
    assert!(!has(&home, &new, "jetty"));
}

/// The chats of Gemini CLI in folders that are named by a hash belong to the directory with that hash, also if its
/// name has changed since.
#[test]
fn chats_without_a_directory_are_found_by_the_hash_of_their_directory() {
    use sha2::{Digest, Sha256};
    let home = Home::new();
    let repo = home.repo("old");
    repo.commit("a.txt", "a\n", "Begin");
    let chat = |folder: &str, directory: &Path, word: &str| {
        let digest = Sha256::digest(directory.to_str().unwrap().as_bytes());
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let chats =
            home.dir(&format!("home/.gemini/tmp/{}/chats", if folder.is_empty() { &hash } else { folder }));
        let lines = format!(
            "{}\n{}\n",
            json!({"sessionId": word, "projectHash": hash, "startTime": "2026-02-01T10:00:00.000Z"}),
            json!({"id": format!("{word}-1"), "timestamp": "2026-02-01T10:01:00.000Z", "type": "gemini", "content": format!("the {word} was dyed with woad")}),
        );
        fs::write(chats.join(format!("session-{word}.jsonl")), lines).unwrap();
    };
    chat("", &repo.path, "rope");
    chat("named", &repo.path, "cord");
    chat("", Path::new("/elsewhere"), "ghost");
    let imported = home.json(&repo.path, &["import", "gemini"]);
    assert_eq!(account(&imported), (3, 2, 0, 1), "{imported}");
    assert!(
        has(&home, &repo.path, "rope") && has(&home, &repo.path, "cord") && !has(&home, &repo.path, "ghost")
    );
    chat("", &repo.path, "line");
    let new = home.path().join("new");
    fs::rename(&repo.path, &new).unwrap();
    home.json(&new, &["import", "gemini"]);
    assert!(has(&home, &new, "line"));
}

/// Claude Code keeps the prompts of sessions whose transcripts it deleted.
#[test]
fn prompts_that_survive_only_in_the_list_are_imported_once() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    let kept = talk(&home, 1, &repo.path, "hull");
    let deleted = talk(&home, 2, &repo.path, "mast");
    import(&home, &repo.path);
    fs::remove_file(&deleted.path).unwrap();
    let at = |seconds: i64| (BEGAN + seconds) * 1000;
    let line = |text: &str, at: i64, session: Option<&str>| {
        let mut line = json!({"display": text, "pastedContents": {}, "timestamp": at, "project": repo.path});
        if let Some(session) = session {
            line["sessionId"] = json!(session);
        }
        line
    };
    let mut pasted = line("the keel was dyed: [Pasted text #1 +2 lines]", at(50), Some("lost-session"));
    pasted["pastedContents"] = json!({"1": {"id": 1, "type": "text", "content": "the anchor was dyed"}});
    let mut elsewhere = line("the crane was dyed", at(60), Some("lost-session"));
    elsewhere["project"] = json!("/elsewhere");
    let lines = [
        line("why is the hull blue?", at(0), Some(&kept.session)),
        line("why is the mast blue?", at(0), Some(&deleted.session)),
        line("why is the hull blue?", at(2), None),
        line("the boom was dyed", at(-90_000), None),
        line("/model", at(51), Some("lost-session")),
        line("<private>the vault was dyed</private> so the sail was dyed", at(52), Some("lost-session")),
        pasted,
        elsewhere,
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(home.path().join("home/.claude/history.jsonl"), text + "no JSON\n").unwrap();
    let imported = import(&home, &repo.path);
    assert_eq!(imported["prompts"], json!({"prompts": 3, "sessions": 2}), "{imported}");
    assert_eq!(imported["imported"], 3, "{imported}");
    for (word, expected) in
        [("boom", true), ("keel", true), ("anchor", true), ("sail", true), ("crane", false), ("vault", false)]
    {
        assert_eq!(has(&home, &repo.path, word), expected, "{word}");
    }
    let sessions = home.json(&repo.path, &["sessions"]);
    let lost = sessions["sessions"].as_array().unwrap().iter().find(|it| it["session_id"] == "lost-session");
    let title = "Prompts from history.jsonl; the transcript is deleted (2023-11-14T22:14:10Z)";
    assert_eq!(lost.unwrap()["title"], title, "two sessions have this title: {sessions}");
    assert_eq!(import(&home, &repo.path)["imported"], 0);
    // Prompts of a session that the user forgot don't come back.
    home.json(&repo.path, &["forget", "--session", &deleted.session]);
    assert_eq!(import(&home, &repo.path)["imported"], 0);
    assert!(!has(&home, &repo.path, "mast"));
}

/// Claude Code deletes transcripts after 30 days, and nothing said so.
#[test]
fn the_deletion_of_transcripts_is_reported_and_can_be_put_off() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    let settings = home.dir("home/.claude").join("settings.json");
    let before = "{\n  // Mine.\n  \"model\": \"opus\",\n  \"cleanupPeriodDays\": 20\n}\n";
    fs::write(&settings, before).unwrap();
    talk(&home, 1, &repo.path, "hull");
    let doctor = home.run(&repo.path, &["doctor"]).stdout;
    assert!(doctor.contains("deletes transcripts after 20 days (set by `cleanupPeriodDays`)"), "{doctor}");
    let shown = home.run(&repo.path, &["init", "--dry-run"]).stderr;
    assert!(shown.contains("after 20 days") && shown.contains("3653 (ten years)"), "{shown}");
    assert!(shown.contains("Claude Code: 1 session seen; 1 of this project (0 imported, 1 new)"), "{shown}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
    assert!(home.run(&repo.path, &["init", "--yes", "--ask-before-tools"]).is_ok);
    let after = fs::read_to_string(&settings).unwrap();
    assert_eq!(after, before.replace("20", "3653"));
    assert!(has(&home, &repo.path, "hull"), "init imports at once");
    let doctor = home.run(&repo.path, &["doctor"]).stdout;
    assert!(doctor.contains("after 3653 days") && !doctor.contains("offers to keep"), "{doctor}");
    let edited = after.replace("opus", "sonnet");
    fs::write(&settings, &edited).unwrap();
    assert!(home.run(&repo.path, &["init", "--remove"]).is_ok);
    assert_eq!(fs::read_to_string(&settings).unwrap(), before.replace("opus", "sonnet"));
    // Without a setting, the default counts, and a number of the user's own stays.
    for (text, days) in [("{}", "30 days (the default"), ("{\"cleanupPeriodDays\": 400}", "400 days (set")] {
        fs::write(&settings, text).unwrap();
        let doctor = home.run(&repo.path, &["doctor"]).stdout;
        assert!(doctor.contains(days), "{doctor}");
    }
    home.run(&repo.path, &["init", "--yes"]);
    assert!(fs::read_to_string(&settings).unwrap().contains("400"));
}

/// Two imports at the same time write the same files and the same memories.
#[test]
fn two_imports_at_the_same_time_store_each_message_once() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    for number in 0..40 {
        talk(&home, number, &repo.path, &format!("plank-{number}"));
    }
    let both: Vec<_> = (0..2)
        .map(|_| {
            let mut command = home.tiro(&repo.path, &["import", "claude-code", "--json"]);
            command.stdout(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let stored = both.into_iter().map(|child| {
        let output = child.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(account(&answer), (40, 40, 0, 0), "{answer}");
        answer["imported"].as_u64().unwrap()
    });
    assert_eq!(stored.sum::<u64>(), 80);
    let again = import(&home, &repo.path);
    assert_eq!((&again["imported"], &again["bytes"]), (&json!(0), &json!(0)), "{again}");
}
