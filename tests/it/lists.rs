//! What a person does on the command line without a question: lists memories, sessions and commits by day, edits a
//! memory, names things in short, and searches all projects.

use std::fs;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::Command;

use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use crate::harness::Ran;
use crate::harness::{Home, Repo};
use crate::talk::{BEGAN, Talk};

fn ids(listed: &Value) -> Vec<&str> {
    listed["memories"].as_array().unwrap().iter().map(|each| each["id"].as_str().unwrap()).collect()
}

fn add(home: &Home, repo: &Repo, args: &[&str]) -> String {
    let added = home.json(&repo.path, &[&["add"], args].concat());
    assert_eq!(added["stored"], true, "{added}");
    added["id"].as_str().unwrap().to_owned()
}

#[test]
fn memories_are_listed_by_kind_tag_session_and_day() {
    let home = Home::new();
    let repo = home.repo("project");
    let mut server = home.serve(&repo.path);
    let messages = json!([
        {"role": "user", "text": "Why does the lantern go out?", "time": "2026-03-01T23:30:00Z"},
        {"role": "assistant", "text": "Its timer runs in local time.", "time": "2026-03-02T00:30:00Z"},
    ]);
    server.data("save_messages", json!({"session_id": "lantern-talk", "messages": messages}));
    let tagged = add(&home, &repo, &["The lantern keeps the time of the harbour.", "--tag", "harbour"]);
    let owners = add(&home, &repo, &["Ada drinks tea.", "--scope", "owner"]);

    let list = |args: &[&str]| home.json(&repo.path, &[&["list"], args].concat());
    assert_eq!(list(&[])["memories"].as_array().unwrap().len(), 4);
    assert_eq!(ids(&list(&["--tag", "harbour"])), [&tagged[..]]);
    assert_eq!(ids(&list(&["--kind", "fact"])), [&owners[..], &tagged]);
    // The owner's memories belong to no session.
    assert_eq!(list(&["--session", "lantern"])["memories"].as_array().unwrap().len(), 2);
    let in_utc = |args: &[&str]| list(&[args, &["--set", "zone=UTC"]].concat());
    let day = in_utc(&["--day", "2026-03-01"]);
    assert_eq!(day["memories"][0]["line"], "Why does the lantern go out?", "{day}");
    assert_eq!(day["memories"].as_array().unwrap().len(), 1);
    // In Kiribati, both messages are of the second day.
    let there = list(&["--day", "2026-03-02", "--set", "zone=Pacific/Kiritimati"]);
    assert_eq!(there["memories"].as_array().unwrap().len(), 2, "{there}");

    let shown = home.run(&repo.path, &["list", "--tag", "harbour"]);
    assert!(shown.stdout.contains(&tagged) && shown.stdout.contains("[harbour]"), "{shown:?}");
    let none = home.run(&repo.path, &["list", "--kind", "commit"]);
    assert!(none.is_ok && none.stdout.contains("Nothing to list."), "{none:?}");
    let wrong = home.run(&repo.path, &["list", "--day", "lastweek"]);
    assert!(!wrong.is_ok && wrong.stderr.contains("--day") && !wrong.stderr.contains("since"), "{wrong:?}");
}

/// Memories that were imported together often have the same time.
#[test]
fn pages_of_a_list_show_each_memory_once() {
    let home = Home::new();
    let repo = home.repo("project");
    let mut server = home.serve(&repo.path);
    let said: Vec<Value> = (0..7)
        .map(|number| {
            let time = if number < 5 { "2026-03-01T09:00:00Z" } else { "2026-03-02T09:00:00Z" };
            json!({"role": "user", "text": format!("Lantern number {number}."), "time": time})
        })
        .collect();
    server.data("save_messages", json!({"session_id": "s", "messages": said}));
    add(&home, &repo, &["Ada drinks tea.", "--scope", "owner"]);
    let (mut seen, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut args = vec!["list", "-n", "2"];
        args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
        let page = home.json(&repo.path, &args);
        seen.extend(page["memories"].as_array().unwrap().iter().map(|each| each["line"].clone()));
        cursor = page["next_cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    let order = ["Ada drinks tea.".to_owned()].into_iter();
    let order: Vec<Value> = order
        .chain([6, 5, 4, 3, 2, 1, 0].map(|number| format!("Lantern number {number}.")))
        .map(Value::from)
        .collect();
    assert_eq!(seen, order);
    let wrong = home.run(&repo.path, &["list", "--cursor", "soon"]);
    assert!(!wrong.is_ok && wrong.stderr.contains("--cursor"), "{wrong:?}");
}

#[test]
fn the_log_has_commits_beside_the_sessions_that_led_to_them() {
    let home = Home::new();
    let repo = home.repo("project");
    let talk = Talk::new(&home, "0d9f2c55-9f7e-4b6a-8a3e-0c1d2e3f4a5b", &repo.path, "main");
    let text = "the lantern keeps the time of the harbour\n";
    talk.says("user", 0, "Please make the lantern keep the time of the harbour.");
    let input = json!({"file_path": repo.path.join("lantern.txt"), "content": text});
    talk.calls(10, "Write", input, "File created.");
    talk.says("assistant", 20, "The lantern keeps the time of the harbour now.");
    let commit = |at: i64, path: &str, text: &str, subject: &str| {
        repo.write(path, text);
        repo.git(&["add", "-A"]);
        repo.git_at(&["commit", "-q", "-m", subject], u64::try_from(BEGAN + at).unwrap());
        repo.head()
    };
    let sha = commit(60, "lantern.txt", text, "lantern: keep the harbour's time");
    commit(120, "boat.txt", "a boat\n", "boat: a first one");
    assert!(home.run(&repo.path, &["import", "claude-code"]).is_ok);
    assert!(home.run(&repo.path, &["import", "git"]).is_ok);
    let log = home.json(&repo.path, &["log"]);
    let day = &log["days"][0];
    assert_eq!(day["sessions"][0]["commits"][0]["sha"], json!(sha), "{log}");
    assert_eq!(day["sessions"][0]["client"], "claude-code", "{log}");
    assert_eq!(day["commits"][0]["subject"], "boat: a first one", "{log}");

    let by = |args: &[&str]| home.json(&repo.path, &[&["log"], args].concat());
    assert_eq!(by(&["--client", "codex"])["days"], json!([]));
    assert_eq!(
        by(&["--client", "claude"])["days"][0]["commits"],
        json!([]),
        "the other commit is of no client"
    );
    assert_eq!(by(&["--author", "nobody"])["days"], json!([]));
    assert_eq!(by(&["--path", "boat.txt"])["days"][0]["sessions"], json!([]));
    assert_eq!(by(&["--until", "2001-01-01"])["days"], json!([]));
    let shown = home.run(&repo.path, &["log"]);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    let place = |text: &str| lines.iter().position(|line| line.contains(text)).expect(text);
    assert!(
        place("3 messages") < place(&sha[..10]) && place(&sha[..10]) < place("boat: a first one"),
        "{shown:?}"
    );
    let wrong = home.tiro(&repo.path, &["log", "--since", "soon"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

#[test]
fn an_edited_memory_supersedes_the_one_before() {
    let home = Home::new();
    let repo = home.repo("project");
    let old = add(&home, &repo, &["The lantern goes out at noon.", "--tag", "harbour", "--type", "decision"]);
    assert!(home.run(&repo.path, &["mark", &old]).is_ok);
    let edit = |id: &str, text: &str| home.json(&repo.path, &["edit", id, "--text", text]);

    let same = edit(&old, "The lantern goes out at noon.\n");
    assert_eq!(same["stored"], Value::Null, "{same}");
    let edited = edit(&old[..6], "The lantern goes out at one.");
    let new = edited["stored"]["id"].as_str().unwrap();
    assert_eq!(edited["stored"]["supersedes"], json!([old]), "{edited}");
    let shown = home.json(&repo.path, &["show", new]);
    let kept = ["kind", "topic", "important"].map(|name| shown[name].clone());
    assert_eq!(kept, [json!("decision"), json!("harbour"), json!(true)], "{shown}");
    assert_eq!(shown["supersedes"][0]["id"], json!(old), "{shown}");
    let found = home.json(&repo.path, &["search", "when does the lantern go out"]);
    assert_eq!(found["hits"][0]["id"], json!(new), "{found}");

    let failed = |args: &[&str]| home.run(&repo.path, &[&["edit"], args].concat());
    let back = failed(&[new, "--text", "The lantern goes out at noon."]);
    assert!(
        !back.is_ok && back.stderr.contains("already supersedes") && back.stderr.contains("forget"),
        "{back:?}"
    );
    assert!(failed(&[new, "--text", " "]).stderr.contains("nothing was changed"));
    assert!(failed(&[new]).stderr.contains("--text"), "there is no terminal");
    assert!(failed(&["mzzzzzzzzzzzzz", "--text", "x"]).stderr.contains("no memory is called"));
    let mut server = home.serve(&repo.path);
    let messages = json!([{"role": "user", "text": "Why does the lantern go out?"}]);
    server.data("save_messages", json!({"session_id": "lantern-talk", "messages": messages}));
    assert!(failed(&["lantern#0", "--text", "x"]).stderr.contains("what was said in a conversation"));
}

#[test]
fn things_are_named_in_short() {
    let home = Home::new();
    let repo = home.repo("project");
    let sha = repo.commit("lantern.txt", "on\n", "lantern: a first one");
    repo.git(&["tag", "v1"]);
    let head = repo.commit("lantern.txt", "off\n", "lantern: out at noon");
    assert!(home.run(&repo.path, &["import", "git"]).is_ok);
    let id = add(&home, &repo, &["The lantern goes out at noon."]);
    let shown = |name: &str| home.json(&repo.path, &["show", name]);
    assert_eq!(shown("HEAD")["source_id"], json!(head));
    assert_eq!(shown("main")["source_id"], json!(head));
    for name in ["HEAD~1", "v1", &sha[..7]] {
        assert_eq!(shown(name)["source_id"], json!(sha), "{name}");
    }
    assert_eq!(shown(&id[..5])["id"], json!(id));
    let mut server = home.serve(&repo.path);
    let messages = json!([{"role": "user", "text": "Why does the lantern go out?"}]);
    for session in ["lantern-talk", "boat-talk", "boat-race"] {
        server.data("save_messages", json!({"session_id": session, "messages": messages}));
    }
    assert_eq!(shown("lant#0")["session_id"], "lantern-talk");
    let found = home.json(&repo.path, &["search", "lantern", "--sessions", "lant"]);
    assert_eq!(found["covered"], json!(["lantern-talk"]), "{found}");
    let several = home.run(&repo.path, &["context", "the lantern", "--session", "boat"]);
    assert!(!several.is_ok && several.stderr.contains("`boat-race`"), "{several:?}");
    let forgotten = home.json(&repo.path, &["forget", "--session", "lant"]);
    assert_eq!(forgotten["count"], 1, "{forgotten}");
    assert_eq!(home.json(&repo.path, &["mark", &id[..6]])["ids"], json!([id]));
}

#[test]
fn only_a_person_searches_everywhere_unless_the_user_allows_it() {
    let home = Home::new();
    let (here, there) = (home.repo("here"), home.repo("there"));
    add(&home, &here, &["The boat is moored at the pier."]);
    let other = add(&home, &there, &["The lantern keeps the time of the harbour."]);
    let is_found =
        |found: &Value| found["hits"].as_array().unwrap().iter().any(|hit| hit["id"] == json!(other));
    let search = |args: &[&str]| home.json(&here.path, &[&["search", "lantern harbour"], args].concat());
    assert!(!is_found(&search(&[])));
    let everywhere = search(&["--everywhere"]);
    assert!(is_found(&everywhere), "{everywhere}");
    assert_eq!(everywhere["hits"][0]["project"]["name"], "there", "{everywhere}");
    let shown = home.run(&here.path, &["search", "lantern harbour", "--everywhere"]);
    let open = format!("tiro show --project {} {other}", there.path.display());
    assert!(shown.stdout.contains(&open), "{shown:?}");

    let query = json!({"query": "lantern harbour", "everywhere": true});
    assert!(!is_found(&home.serve(&here.path).data("search_project_memory", query.clone())));
    let config = home.dir("home/.config/tiro").join("config.toml");
    fs::write(&config, "search.everywhere = true\n").unwrap();
    assert!(is_found(&home.serve(&here.path).data("search_project_memory", query)));
    // A query never forgets memories of other projects.
    let kept = home.run(&here.path, &["forget", "--query", "lantern harbour", "--yes"]);
    assert!(!is_gone(&home, &there.path, &other), "{kept:?}");
}

fn is_gone(home: &Home, project: &Path, id: &str) -> bool {
    !home.run(project, &["show", id]).is_ok
}

/// Runs a shell command in a terminal of 60 columns and 10 rows.
#[cfg(target_os = "linux")]
fn in_a_terminal(home: &Home, repo: &Repo, command: &str) -> Ran {
    let line = format!(
        "stty cols 60 rows 10; {}",
        command.replace("tiro ", concat!(env!("CARGO_BIN_EXE_tiro"), " "))
    );
    let like = home.tiro(&repo.path, &[]);
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(&repo.path).env_clear();
    for (name, value) in like.get_envs() {
        script.env(name, value.unwrap_or_default());
    }
    Ran::of(script.env("TERM", "xterm").env("TIRO_LOG", "off"))
}

#[cfg(target_os = "linux")]
#[test]
fn long_answers_go_to_the_pager_and_an_editor_opens_the_memory() {
    let home = Home::new();
    let repo = home.repo("project");
    for number in 0..12 {
        add(&home, &repo, &[&format!("Lantern number {number} keeps the time of the harbour.")]);
    }
    let paged = in_a_terminal(&home, &repo, "TIRO_PAGER='sed s/Lantern/PAGED/' tiro list --color never");
    assert!(paged.is_ok && paged.stdout.contains("PAGED number 3"), "{paged:?}");
    let short = in_a_terminal(&home, &repo, "TIRO_PAGER='sed s/Lantern/PAGED/' tiro list -n 1 --color never");
    assert!(short.stdout.contains("Lantern number") && !short.stdout.contains("PAGED"), "{short:?}");
    let missing = in_a_terminal(&home, &repo, "TIRO_PAGER=no-such-pager tiro list --color never");
    assert!(missing.stdout.contains("Lantern number 3"), "{missing:?}");

    let id = add(&home, &repo, &["The boat is moored at the pier."]);
    let edited = in_a_terminal(&home, &repo, &format!("VISUAL='sed -i s/pier/quay/' tiro edit {id}"));
    assert!(edited.is_ok, "{edited:?}");
    let found = home.json(&repo.path, &["search", "boat moored"]);
    assert_eq!(found["hits"][0]["text"], "The boat is moored at the quay.", "{found}");
    let failed = in_a_terminal(&home, &repo, &format!("VISUAL=false tiro edit {id}"));
    assert!(!failed.is_ok && failed.stdout.contains("nothing was changed"), "{failed:?}");
}

/// Types into `tiro find` as a person does, with a moment for each answer.
#[cfg(target_os = "linux")]
#[test]
fn find_searches_while_typing_marks_forgets_and_restores() {
    let home = Home::new();
    let repo = home.repo("project");
    let lantern = add(&home, &repo, &["The lantern keeps the time of the harbour."]);
    let boat = add(&home, &repo, &["The boat is moored at the pier."]);
    let quince = add(&home, &repo, &["The quince press stands in the larder."]);
    let typed = |keys: &[&str]| {
        let keys: String = keys.iter().map(|key| format!("sleep 1; printf '{key}'; ")).collect();
        let line = format!(
            "({keys} sleep 1) | script -qec 'stty cols 80 rows 20; {} find' /dev/null",
            env!("CARGO_BIN_EXE_tiro")
        );
        let like = home.tiro(&repo.path, &[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(&repo.path).env_clear();
        for (name, value) in like.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        Ran::of(shell.env("TERM", "xterm").env("TIRO_LOG", "off"))
    };
    // Ctrl-T marks, Ctrl-D and `y` forget, Ctrl-Z restores, and Escape leaves.
    let marked = typed(&["lantern", "\\024", "\\033"]);
    assert!(marked.is_ok && marked.stdout.contains("harbour"), "{marked:?}");
    let shown = home.json(&repo.path, &["show", &lantern]);
    assert_eq!(shown["important"], true, "{shown}");
    assert!(typed(&["moored", "\\004", "y", "\\033"]).is_ok);
    assert!(is_gone(&home, &repo.path, &boat));
    assert!(!is_gone(&home, &repo.path, &lantern) && !is_gone(&home, &repo.path, &quince));
    assert!(typed(&["larder", "\\004", "y", "\\032", "\\033"]).is_ok);
    assert!(!is_gone(&home, &repo.path, &quince));
}
