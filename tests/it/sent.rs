//! Everything that is sent to a provider is listed, by any process, without its text: when, where to, for what, and from
//! which files and memories.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::consults::{Ground, TOOL};
use crate::mock::Manner;

/// A secret of a form that the redactor knows.
const SECRET: &str = "ghp_9sT2kLmQ4vXzR7bNwEyU1cJdHfGaPo3i5V8M";

fn list(ground: &Ground, args: &[&str]) -> Vec<Value> {
    let all = [&["provider", "sent"], args].concat();
    ground.home.json(&ground.project.path, &all)["sent"].as_array().unwrap().clone()
}

#[test]
fn what_a_question_sent_is_listed_by_another_process_and_nowhere_has_its_text() {
    let ground = Ground::new();
    ground.project.write("src/a.rs", &format!("const TOKEN: &str = \"{SECRET}\"; // wombat burrow\n"));
    std::fs::remove_file(ground.project.path.join("src/big.rs")).unwrap();
    assert_eq!(list(&ground, &[]), Vec::<Value>::new());
    let ask = json!({"session_id": "lease", "instructions": "Is it a zebra?", "context": ["src"]});
    ground.serve().data(TOOL, ask);
    let sent = list(&ground, &[]);
    assert_eq!(sent.len(), 1, "{sent:?}");
    let first = &sent[0];
    assert_eq!(
        (&first["provider"], &first["thread"], &first["files"], &first["secrets_replaced"]),
        (&json!("mock"), &json!("lease@mock"), &json!(["src/a.rs", "src/b.rs"]), &json!(1)),
        "{first}"
    );
    assert_eq!((&first["answered"], &first["is_local"]), (&json!(true), &json!(true)), "{first}");
    assert_eq!((&first["purpose"], &first["place"]), (&json!("consultation"), &json!("this machine")));
    assert!(first["tokens"].as_i64().unwrap() > 100 && first["project_name"] == "project", "{first}");
    let shown = ground.home.run(&ground.project.path, &["provider", "sent"]).stdout;
    for words in
        ["thread lease@mock", "2 files: src/a.rs, src/b.rs", "1 secret replaced", "stayed on this machine"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    for text in ["wombat", "zebra", "Keep the lease at", SECRET] {
        assert!(!shown.contains(text) && !first.to_string().contains(text), "{text}: {shown}");
    }
    let registry = std::fs::read(ground.home.data().join("owner.db")).unwrap();
    let log = std::fs::read(ground.home.data().join("owner.db-wal")).unwrap_or_default();
    let stored = String::from_utf8_lossy(&[registry, log].concat()).into_owned();
    assert!(!stored.contains("zebra") && !stored.contains("wombat"), "owner.db has the text");

    // The next turn sends the earlier exchange again, and names it; the question of a function is another request.
    ground.mock.behaves(&Manner::Calls(
        vec![("search_session_attachments", json!({"query": "fn f7"}))],
        "Seven.".into(),
    ));
    ground.project.write("notes.md", "fn f7 is the seventh.\n");
    let more = json!({"session_id": "lease", "instructions": "And f7?", "attachments": ["notes.md"]});
    ground.serve().data(TOOL, more);
    let sent = list(&ground, &["--limit", "2"]);
    assert_eq!((sent.len(), &sent[0]["purpose"]), (2, &json!("functions")), "{sent:?}");
    assert_eq!(sent[0]["files"], json!(["src/a.rs", "src/b.rs", "notes.md"]), "{sent:?}");
    assert_eq!(sent[1]["files"], json!(["src/a.rs", "src/b.rs"]), "an attachment leaves only as it is found");
    assert_eq!(sent[1]["memory_count"], 2, "{sent:?}");
    assert!(
        ground
            .home
            .run(&ground.project.path, &["provider", "sent", "--limit", "2"])
            .stdout
            .contains("1 earlier")
    );
    assert!(list(&ground, &["--provider", "nobody"]).is_empty());
    assert!(list(&ground, &["--since", "2099-01-01"]).is_empty());
    assert_eq!(list(&ground, &["--provider", "mock", "--since", "2020-01-01"]).len(), 3);
}

#[cfg(unix)]
#[test]
fn a_server_that_is_killed_leaves_what_it_sent_as_not_answered() {
    let dead =
        "[providers.dead]\nservice = 'openai-compatible'\nendpoint = 'http://127.0.0.1:9/v1'\nmodel = 'm'\n";
    let ground = Ground::with("window = 16000\n", dead);
    ground.mock.behaves(&Manner::Hangs);
    let mut killed = ground.serve();
    let arguments = json!({"session_id": "lease", "instructions": "Think", "context": ["src/a.rs"]});
    killed.ask("tools/call", json!({"name": TOOL, "arguments": arguments}));
    while ground.mock.requests() == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = Command::new("kill").args(["-KILL", &killed.pid().to_string()]).status().unwrap();
    assert!(status.success());
    let sent = list(&ground, &[]);
    assert_eq!(
        (sent.len(), &sent[0]["answered"], &sent[0]["is_open"]),
        (1, &json!(false), &json!(true)),
        "{sent:?}"
    );
    assert_eq!((&sent[0]["files"], &sent[0]["session"]), (&json!(["src/a.rs"]), &json!("lease")));
    // What a provider refuses was sent too; what never reached anybody was not.
    ground.mock.behaves(&Manner::Refuses(400, ""));
    assert!(!ground.home.run(&ground.project.path, &["provider", "test", "mock"]).is_ok);
    let sent = list(&ground, &[]);
    assert_eq!((sent.len(), &sent[0]["purpose"], &sent[0]["is_open"]), (2, &json!("test"), &json!(false)));
    assert_eq!(sent[0]["answered"], false, "{sent:?}");
    let unreached = ground.home.run(&ground.project.path, &["provider", "test", "dead"]);
    assert!(!unreached.is_ok, "{unreached:?}");
    assert_eq!(list(&ground, &[]).len(), 2);
}

#[test]
fn a_purge_of_a_session_takes_its_names_from_the_list() {
    let ground = Ground::new();
    let mut server = ground.serve();
    for session in ["hush-hush", "lease"] {
        let ask = json!({"session_id": session, "instructions": "Well?", "context": ["src/b.rs"]});
        server.data(TOOL, ask);
    }
    server.end();
    let run = |args: &[&str]| ground.home.run(&ground.project.path, args);
    assert!(run(&["forget", "--session", "hush-hush", "--purge"]).is_ok);
    let sent = list(&ground, &[]);
    assert_eq!((&sent[0]["thread"], &sent[0]["is_purged"]), (&json!("lease@mock"), &json!(false)));
    assert_eq!(
        (&sent[1]["is_purged"], &sent[1]["file_count"], &sent[1]["files"]),
        (&json!(true), &json!(1), &json!([]))
    );
    assert!(sent[1]["tokens"].as_i64().unwrap() > 100 && sent[1].get("session").is_none(), "{sent:?}");
    assert!(run(&["provider", "sent"]).stdout.contains("1 file: the names were purged"));
    assert_eq!(ground.home.files_with("hush-hush"), Vec::<std::path::PathBuf>::new());
    // Of a project that was removed, no names stay either.
    let project = run(&["projects", "list", "--json"]).stdout;
    let id =
        serde_json::from_str::<Value>(&project).unwrap()["projects"][0]["id"].as_str().unwrap().to_owned();
    let removed = run(&["projects", "remove", &id, "--yes"]);
    assert!(removed.is_ok, "{removed:?}");
    let other = ground.home.repo("other").path;
    let left = ground.home.json(&other, &["provider", "sent"]);
    let left = left["sent"].as_array().unwrap();
    assert!(left.len() == 2 && left.iter().all(|each| each["is_purged"] == true), "{left:?}");
}
