//! What a question would send is shown before it is sent, and a file of secrets is sent only if the user allows it on the
//! terminal.

use std::path::Path;

use serde_json::{Value, json};

use crate::consults::{Ground, TOOL};

/// A secret of a form that the redactor knows.
const SECRET: &str = "ghp_9sT2kLmQ4vXzR7bNwEyU1cJdHfGaPo3i5V8M";

/// Returns how many rows each table of the databases in `folder` has.
fn rows(folder: &Path) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(rows(&path));
        }
        if path.extension().is_none_or(|end| end != "db") {
            continue;
        }
        let database = rusqlite::Connection::open(&path).unwrap();
        let mut names = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
        let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let count = |name: &String| {
            database.query_row(&format!("SELECT count(*) FROM \"{name}\""), [], |row| row.get(0)).unwrap()
        };
        found.extend(names.iter().map(|name| (format!("{} {name}", path.display()), count(name))));
    }
    found.sort();
    found
}

#[test]
fn a_preview_shows_what_would_leave_and_sends_and_stores_nothing() {
    let ground = Ground::with("window = 16000\nprice = { input = 1, output = 2 }\n", "");
    ground.project.write("src/a.rs", &format!("const TOKEN: &str = \"{SECRET}\";\n"));
    ground.project.write("src/prod.env", &format!("TOKEN={SECRET}\n"));
    ground.project.write("notes.md", "Mind the wombat.\n");
    let args = ["chat", "--preview", "--context", "src", "--attach", "notes.md", "Is it long enough?"];
    let preview = |args: &[&str]| {
        let ran = ground.home.run(&ground.project.path, &[args, &["--json"]].concat());
        assert!(ran.is_ok, "{ran:?}");
        serde_json::from_str::<Value>(&ran.stdout).unwrap()
    };
    let data = preview(&args);
    let paths = |data: &Value| {
        let of =
            |file: &Value| format!("{} {}", file["path"].as_str().unwrap(), file["how"].as_str().unwrap());
        let of = |list: &str| data[list].as_array().unwrap().iter().map(of).collect::<Vec<_>>();
        (of("inline"), of("searchable"))
    };
    let expected = (
        vec!["src/a.rs whole".to_owned(), "src/b.rs whole".to_owned()],
        vec!["src/big.rs searched".to_owned(), "notes.md attached".to_owned()],
    );
    assert_eq!(paths(&data), expected);
    assert_eq!(
        (&data["secrets_replaced"], &data["place"], &data["turn"]),
        (&json!(1), &json!("this machine"), &json!(1))
    );
    let left_out = data["left_out"].to_string();
    assert!(
        left_out.contains("src/prod.env") && left_out.contains("its name says that it holds secrets"),
        "{left_out}"
    );
    assert!(data["cost"].as_str().unwrap().starts_with("$0.0"), "{data}");
    let text = ground.home.run(&ground.project.path, &args).stdout;
    for words in [
        "Nothing was sent.",
        "turn 1 of thread terminal@mock",
        "1 secret replaced",
        "In the prompt: 2 files",
        "at most $0.0",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains(SECRET) && !text.contains("wombat"), "{text}");
    assert_eq!(ground.mock.requests(), 0);
    assert_eq!(rows(&ground.home.data()), Vec::new());

    // In a thread with a turn, nothing changes either, and the files that were sent before are named.
    let ran = ground.home.run(&ground.project.path, &["chat", "--context", "src", "Is it?"]);
    assert!(ran.is_ok, "{ran:?}");
    let before = rows(&ground.home.data());
    assert!(before.iter().any(|(name, count)| name.ends_with("thread_turns") && *count == 1), "{before:?}");
    ground.project.write("src/b.rs", "fn new() {}\n");
    let data = preview(&["chat", "--preview", "And now?"]);
    assert_eq!(rows(&ground.home.data()), before);
    assert_eq!((&data["turn"], &data["messages"]), (&json!(2), &json!(2)), "{data}");
    assert_eq!(paths(&data).0, ["src/a.rs sent before", "src/b.rs whole"], "{data}");
    assert_eq!((&data["secrets_replaced"], ground.mock.requests()), (&json!(1), 1), "{data}");
    let unasked = ground.home.run(&ground.project.path, &["chat", "--preview"]);
    assert!(unasked.is_ok && unasked.stdout.contains("turn 2"), "{unasked:?}");
}

#[test]
fn a_file_of_secrets_is_sent_only_if_the_user_allows_it_on_the_terminal() {
    let ground = Ground::new();
    ground.project.write("deploy/prod.env", &format!("PORT=8181\nTOKEN={SECRET}\n"));
    let deploy = ground.project.path.join("deploy");
    let chat = |more: &[&str]| {
        let ran = ground.home.run(&deploy, &[&["chat", "--context", "prod.env"], more, &["Well?"]].concat());
        assert!(ran.is_ok, "{ran:?}");
        (ran.stderr, ground.mock.seen.lock().unwrap().last().unwrap().1.to_string())
    };
    let (told, sent) = chat(&["--session", "refused"]);
    assert!(told.contains("its name says that it holds secrets") && !sent.contains("8181"), "{told}");
    let (told, sent) = chat(&["--session", "allowed", "--allow-secret-file", "prod.env"]);
    assert!(told.contains("deploy/prod.env") && sent.contains("PORT=8181"), "{told}");
    assert!(!sent.contains(SECRET) && sent.contains("[REDACTED:"), "{sent}");
    // It was allowed for that call alone, and no argument of a tool allows it.
    let arguments = json!({"session_id": "tool", "instructions": "Well?", "context": ["deploy/prod.env"],
        "allow_secret_file": ["deploy/prod.env"], "allowed": ["deploy/prod.env"]});
    let data = ground.serve().data(TOOL, arguments);
    assert_eq!(data["receipt"]["skipped"][0]["path"], "deploy/prod.env", "{data}");
    let sent = ground.mock.seen.lock().unwrap().last().unwrap().1.to_string();
    assert!(!sent.contains("8181"), "{sent}");
}
