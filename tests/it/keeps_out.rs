//! Hooks and the import leave out what must not be stored, and delay nothing.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Home, Repo, Server, feed, strings};
use crate::talk::Talk;

const SESSION: &str = "41799f8d-5af3-46fb-8473-94dff3a77ff6";

/// A home with a repository of one imported commit, and a server that has answered a call.
fn followed() -> (Home, Repo, Server) {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("README.md", "# It\n", "Begin");
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    assert!(server.search("nothing of the kind").is_empty());
    (home, repo, server)
}

fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn says(talk: &Talk, at: i64, text: &str) {
    talk.put(&talk.line("user", at, json!(text)));
}

/// Adds a message without a time to the transcript.
fn says_without_time(talk: &Talk, text: &str) {
    let mut line = talk.line("user", 0, json!(text));
    line.as_object_mut().unwrap().remove("timestamp");
    talk.put(&line);
}

/// A pause used to be stored under the path of the project, so it ended when the path changed.
#[test]
fn a_pause_survives_a_move_and_applies_to_every_work_tree() {
    let (home, repo, server) = followed();
    server.end();
    home.json(&repo.path, &["pause"]);
    let moved = home.path().join("moved");
    std::fs::rename(&repo.path, &moved).unwrap();
    let moved = home.repo_at(moved);
    let tree = home.path().join("tree");
    moved.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    let places = [moved.path.clone(), tree];
    let talks: Vec<Talk> = ["one", "two"]
        .iter()
        .zip(&places)
        .map(|(name, place)| {
            let talk = Talk::new(&home, name, place, "main");
            says(&talk, now(), "a medlarsecret within the pause");
            assert_eq!(talk.nudge(&home, "SessionStart"), "", "{place:?}");
            talk.hook(&home, "Stop");
            let doctor = home.run(place, &["doctor"]).stdout;
            assert!(doctor.contains("capture is paused in this project"), "{place:?}: {doctor}");
            talk
        })
        .collect();
    let mut server = home.serve(&moved.path);
    assert!(server.search("medlarsecret").is_empty());
    home.json(&places[1], &["resume"]);
    for talk in &talks {
        says(talk, now() + 1000, &format!("a medlar of {} after it", talk.session));
        talk.hook(&home, "Stop");
    }
    assert_eq!(server.search("medlar after").len(), 2);
    assert!(home.files_with("medlarsecret").is_empty());
}

/// A message without a time used to get the time of the line before it, and a summary the time at which it was written.
/// So both could escape a pause.
#[test]
fn messages_of_a_pause_and_summaries_of_them_are_left_out() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    let began = now() - 60_000;
    says_without_time(&talk, "a medlar of no time at all, but before");
    says(&talk, began, "a medlar of before");
    says_without_time(&talk, "another medlar of before");
    says(&talk, began + 1000, "a third medlar of before");
    talk.put(&json!({"type": "ai-title", "aiTitle": "Medlar talk", "sessionId": SESSION}));
    let call = json!([{"type": "tool_use", "id": "toolu_runs_into_the_pause_01", "name": "Bash", "input": {"command": "ls"}}]);
    talk.put(&talk.line("assistant", began + 2000, call));
    home.json(&repo.path, &["pause"]);
    let result = json!([{"type": "tool_result", "tool_use_id": "toolu_runs_into_the_pause_01",
        "content": "medlarsecret.txt"}]);
    talk.put(&talk.line("user", now(), result));
    says_without_time(&talk, "a medlarsecret of some time");
    says(&talk, now(), "a medlarsecret");
    talk.put(&json!({"type": "ai-title", "aiTitle": "The medlarsecret", "sessionId": SESSION}));
    home.json(&repo.path, &["resume"]);
    says_without_time(&talk, "another medlarsecret of some time");
    let after = now() + 1000;
    says(&talk, after, "a medlar of after");
    says_without_time(&talk, "another medlar of after");
    let mut summary = talk.line("user", after + 1000, json!("They spoke of a medlarsecret."));
    summary["isCompactSummary"] = json!(true);
    talk.put(&summary);
    says(&talk, after + 2000, "a last medlar");
    // Another session continues that one.
    let next = Talk::new(&home, "next", &repo.path, "main");
    let mut summary = next.line("user", after + 3000, json!("They had spoken of a medlarsecret."));
    summary["isCompactSummary"] = json!(true);
    next.put(&summary);
    says(&next, after + 4000, "a medlar of the next session");

    let imported = home.json(&repo.path, &["import", "claude-code"]);
    assert_eq!((&imported["imported"], &imported["left_out"]), (&json!(8), &json!(6)), "{imported}");
    assert!(home.files_with("medlarsecret").is_empty());
    assert_eq!(server.hits(json!({"query": "medlar", "k": 20, "kinds": ["message"]})).len(), 8);
    // A session without a pause gets its summary.
    home.json(&repo.path, &["pause"]);
    home.json(&repo.path, &["resume"]);
    let later = Talk::new(&home, "later", &repo.path, "main");
    says(&later, after + 100_000, "what of the quince?");
    let mut summary = later.line("user", after + 101_000, json!("They spoke of a quince."));
    summary["isCompactSummary"] = json!(true);
    later.put(&summary);
    assert_eq!(home.json(&repo.path, &["import", "claude-code"])["imported"], 2);
}

/// A hook used to leave nothing during a pause, so that messages from just before it were never read.
#[test]
fn messages_from_before_a_pause_are_imported_during_it() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    says(&talk, now() - 1000, "a medlar before the pause");
    home.json(&repo.path, &["pause"]);
    says(&talk, now(), "a medlarsecret within it");
    talk.hook(&home, "SessionEnd");
    assert_eq!(strings(&server.search("medlar"), "text"), ["a medlar before the pause"]);
    assert!(home.files_with("medlarsecret").is_empty());
}

/// The spool used to store the text of a payload unchanged.
#[test]
fn the_text_of_a_hook_payload_reaches_no_file() {
    let (home, repo, server) = followed();
    server.end();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    says(&talk, now(), "a medlar");
    let secret = "sk-ant-api03-Zk3vQ9sT1xW7yB5nM2cR8dF4gH6jL0pK9aE3";
    let mut payload: Value = serde_json::from_slice(&talk.payload("Stop")).unwrap();
    payload["session_id"] = json!(secret);
    payload["hook_event_name"] = json!(secret);
    (0..50).find(|_| {
        feed(home.tiro(&repo.path, &["hook", "claude-code"]), payload.to_string().as_bytes());
        home.waiting() == 1
    });
    assert_eq!(home.waiting(), 1);
    for path in [format!("/tmp/{secret}.jsonl"), "/dev/zero".into(), home.path().display().to_string()] {
        payload["transcript_path"] = json!(path);
        payload["session_id"] = json!("another");
        for _ in 0..3 {
            let began = Instant::now();
            let ran = feed(home.tiro(&repo.path, &["hook", "claude-code"]), payload.to_string().as_bytes());
            assert!(ran.is_ok && ran.stdout.is_empty() && began.elapsed() < Duration::from_secs(5));
        }
    }
    assert_eq!(home.waiting(), 1, "what is no transcript is not waited for");
    assert!(home.files_with(secret).is_empty());
}

/// An unreadable transcript used to be dropped at once.
#[cfg(unix)]
#[test]
fn an_unreadable_transcript_is_read_once_it_is_readable() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    says(&talk, now(), "a medlar for later");
    talk.hook(&home, "SessionEnd");
    // Root can read every file, but not a link to itself.
    let aside = home.path().join("aside.jsonl");
    std::fs::rename(&talk.path, &aside).unwrap();
    std::os::unix::fs::symlink(&talk.path, &talk.path).unwrap();
    assert!(server.search("medlar").is_empty());
    let doctor = home.run(&repo.path, &["doctor"]).stdout;
    assert!(doctor.contains("1 transcript waits to become readable"), "{doctor}");
    std::fs::rename(&aside, &talk.path).unwrap();
    assert_eq!(strings(&server.search("medlar"), "text"), ["a medlar for later"]);
    assert!(!home.run(&repo.path, &["doctor"]).stdout.contains("to become readable"));
    // A missing transcript is dropped.
    talk.hook(&home, "SessionEnd");
    std::fs::remove_file(&talk.path).unwrap();
    server.search("medlar");
    assert!(home.run(&repo.path, &["doctor"]).stdout.contains("spool: empty"));
}

/// Each call used to read an unfinished line again, from its beginning.
#[test]
fn a_line_without_an_end_is_read_in_steps() {
    let (home, repo, mut server) = followed();
    let talk = Talk::new(&home, SESSION, &repo.path, "main");
    says(&talk, now(), "a medlar before the line");
    let length = std::fs::metadata(&talk.path).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&talk.path).unwrap().set_len(length + (300 << 20)).unwrap();
    talk.append("\n");
    says(&talk, now(), "a medlar behind the line");
    talk.hook(&home, "Stop");
    let data = server.data("search_project_memory", json!({"query": "medlar"}));
    assert_eq!(data["hits"].as_array().unwrap().len(), 1, "{data}");
    assert!(data["notices"].to_string().contains("bytes of transcripts are not read yet"), "{data}");
    assert!((0..9).any(|_| server.search("medlar").len() == 2));
}

/// Only the `HEAD` of the work tree led to the commit, and it has moved on since.
#[test]
fn a_commit_that_no_branch_reaches_is_remembered() {
    let (home, repo, mut server) = followed();
    repo.git(&["checkout", "-q", "--detach"]);
    repo.commit("a.txt", "a\n", "Oil the ratchet first");
    let last = repo.commit("b.txt", "b\n", "Oil the ratchet next");
    let left = (0..50).any(|_| {
        feed(home.tiro(&repo.path, &["hook", "git-post-commit"]), b"");
        home.waiting() == 1
    });
    assert!(left);
    repo.git(&["checkout", "-q", "main"]);
    let found = server.hits(json!({"query": "oil the ratchet", "kinds": ["commit"]}));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(strings(&found, "source_id").contains(&last));
    assert_eq!(home.waiting(), 0);
}

/// An earlier version checked only `HEAD`.
#[test]
fn commits_fetched_into_another_branch_are_found_by_the_next_call() {
    let (home, repo, mut server) = followed();
    let clone = home.path().join("clone");
    repo.git(&["clone", "-q", repo.path.to_str().unwrap(), clone.to_str().unwrap()]);
    let clone = home.repo_at(clone);
    for (branch, subject) in [("side", "Grease the pawl"), ("side", "Grease the pawl again")] {
        clone.commit("theirs.txt", subject, subject);
        repo.git(&["fetch", "-q", clone.path.to_str().unwrap(), &format!("main:{branch}")]);
        let found = server.hits(json!({"query": subject, "kinds": ["commit"]}));
        assert!(strings(&found, "text").iter().any(|text| text.starts_with(subject)), "{found:?}");
    }
}

/// A call used to wait ten seconds for a writer before it answered.
#[test]
fn a_call_is_answered_while_another_process_writes() {
    let (home, repo, mut server) = followed();
    repo.commit("b.txt", "b\n", "Weld the bracket");
    let writer = rusqlite::Connection::open(home.store()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    let data = server.data("search_project_memory", json!({"query": "begin"}));
    assert!(began.elapsed() < Duration::from_secs(6), "it waited for the writer: {:?}", began.elapsed());
    assert_eq!(data["hits"].as_array().unwrap().len(), 1, "{data}");
    assert!(data["notices"].to_string().contains("may be missing"), "{data}");
    writer.execute_batch("ROLLBACK").unwrap();
    assert_eq!(server.search("weld the bracket").len(), 1);
}

/// `ignore.sessions` used to apply only to transcripts.
#[test]
fn an_ignored_conversation_is_not_stored_by_any_path() {
    let home = Home::new();
    let project = home.dir("project");
    let mut command = home.tiro(&project, &["serve"]);
    command.env("TIRO_IGNORE_SESSIONS", "scratch-*");
    let mut server = Server::start(command);
    let messages = json!([{"id": "1", "role": "user", "text": "a medlarsecret"},
        {"id": "2", "role": "assistant", "text": "another medlarsecret"}]);
    let (text, data) =
        server.both("save_messages", json!({"session_id": "scratch-1", "messages": messages.clone()}));
    assert_eq!((&data["saved"], &data["left_out"], &data["ids"]), (&json!(0), &json!(2), &json!([])));
    assert!(text.contains("2 were left out") && text.contains("`ignore.sessions`"), "{text}");
    let told = server.error("store_memory", json!({"text": "a medlarsecret", "session_id": "scratch-1"}));
    assert!(told.contains("nothing was stored") && told.contains("`ignore.sessions`"), "{told}");
    // Errors in a message of an ignored session are still reported.
    let wrong = json!([{"role": "nobody", "text": "a medlarsecret"}]);
    let told = server.error("save_messages", json!({"session_id": "scratch-1", "messages": wrong}));
    assert!(told.contains("is not a role"), "{told}");
    server.save("work-1", "1", "a medlar");
    assert_eq!(strings(&server.search("medlar"), "text"), ["a medlar"]);
    assert_eq!(server.data("list_sessions", json!({}))["sessions"].as_array().unwrap().len(), 1);
    assert!(home.files_with("medlarsecret").is_empty() && home.files_with("scratch-1").is_empty());
}

/// `ignore.paths` used to apply only to transcripts.
#[test]
fn commits_and_memories_about_ignored_files_are_not_stored() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("README.md", "# It\n", "Begin");
    repo.commit("secrets/medlarpath.txt", "medlarsecret of one line\n", "Plant the medlartree");
    repo.write("secrets/medlarpath.txt", "medlarsecret of another line\n");
    repo.commit("a.rs", "fn quince() {}\n", "Add the quince");
    repo.git(&["mv", "secrets/medlarpath.txt", "medlarmoved.txt"]);
    repo.commit("b.rs", "fn sloe() {}\n", "Add the sloe");
    let run = |args: &[&str]| {
        let mut command = home.tiro(&repo.path, args);
        command.env("TIRO_IGNORE_PATHS", "secrets/**");
        let ran = feed(command, b"");
        assert!(ran.is_ok, "{ran:?}");
        ran.stdout
    };
    let imported: Value = serde_json::from_str(&run(&["import", "git", "--json"])).unwrap();
    assert_eq!((&imported["imported"], &imported["ignored"]), (&json!(3), &json!(1)), "{imported}");
    assert_eq!(imported["flags"], json!([{"rule": "files_ignored", "count": 2}]), "{imported}");
    let text = run(&["import", "git"]);
    assert!(!text.contains("`ignore.paths`"), "a finished import has nothing to leave out: {text}");
    for hidden in ["medlarsecret", "medlarpath", "medlarmoved", "medlartree"] {
        assert!(home.files_with(hidden).is_empty(), "{hidden}: {imported}");
    }

    let mut command = home.tiro(&repo.path, &["serve"]);
    command.env("TIRO_IGNORE_PATHS", "secrets/**");
    let mut server = Server::start(command);
    let found = server.search("quince").remove(0);
    let text = server.text("expand_detail", json!({"id": found["id"]}));
    assert!(text.contains("a.rs") && text.contains("1 ignored"), "what is left of it: {text}");
    // The next call finds a new commit and leaves it out too.
    repo.commit("secrets/more.txt", "medlarsecret of a third line\n", "Water the medlartree");
    assert!(server.search("medlartree").is_empty());
    let whole = repo.path.join("secrets/more.txt");
    for source in ["secrets/more.txt", "./secrets/more.txt", whole.to_str().unwrap()] {
        let told = server.error("store_memory", json!({"text": "a medlarsecret", "source": source}));
        assert!(told.contains("`ignore.paths`"), "{source}: {told}");
    }
    server.data("store_memory", json!({"text": "a quince", "source": "a.rs"}));
    assert!(home.files_with("medlarsecret").is_empty() && home.files_with("medlartree").is_empty());
}
