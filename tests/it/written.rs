//! What people and agents have written already is used: documents of the repository, plans and to-do lists. What names
//! code says whether the code is still there.

use serde_json::json;

use crate::harness::{Home, Server, strings};
use crate::talk::Talk;

const ID: &str = "5af30000-5af3-46fb-8473-94dff3a77ff6";

#[test]
fn a_note_that_names_code_says_what_became_of_the_code() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.write("src/quince.rs", "fn press_quince() {}\n");
    repo.commit("src/damson.rs", "fn stone_damson() {}\n", "Begin");
    let mut server = home.serve(&repo.path);
    for text in [
        "Quinces are pressed by `press_quince` in the mill",
        "Damsons are stoned in src/damson.rs, one by one",
        "Medlars are bletted before frost",
    ] {
        server.data("store_memory", json!({"text": text, "type": "decision"}));
    }
    let freshness = |server: &mut Server, query: &str| {
        let hit = server.search(query)[0].clone();
        (hit["freshness"].as_str().unwrap().to_owned(), hit["stale_names"].clone())
    };
    for query in ["how are quinces pressed", "how are damsons stoned", "medlars bletted"] {
        assert_eq!(freshness(&mut server, query).0, "current", "{query}");
    }
    repo.commit("a.txt", "a", "What was being written");
    let before = server.text("retrieve_context", json!({"query": "how are quinces pressed"}));
    assert!(before.contains("press_quince") && !before.contains("gone"), "{before}");

    repo.write("src/damson.rs", "fn stone_damson() { /* faster */ }\n");
    repo.commit("src/quince.rs", "fn mill() {}\n", "Rename the press");
    assert_eq!(freshness(&mut server, "how are quinces pressed"), ("gone".into(), json!(["press_quince"])));
    let changed = ("file_changed".to_owned(), json!(["src/damson.rs"]));
    assert_eq!(freshness(&mut server, "how are damsons stoned"), changed);
    assert_eq!(freshness(&mut server, "medlars bletted").0, "current");
    let text = server.text("search_project_memory", json!({"query": "how are quinces pressed"}));
    assert!(text.contains("[press_quince is gone from the code]"), "{text}");
    let context = server.text("retrieve_context", json!({"query": "how are quinces pressed"}));
    assert!(context.contains("press_quince is gone from the code"), "{context}");
    assert!(home.run(&repo.path, &["search", "quinces", "pressed"]).stdout.contains("gone from the code"));
}

#[test]
fn documents_of_the_repository_are_found_and_replaced_by_their_new_versions() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.write("AGENTS.md", "# Rules for agents\n\nQuince code is written in Fortran.\n");
    repo.write(
        "docs/adr/0001-press.md",
        "# Press by hand\n\nWe press quinces by hand, since machines bruise them.\n",
    );
    repo.commit("README.md", "Quince code is described here.\n", "Begin");
    let answer = home.json(&repo.path, &["import", "git"]);
    assert_eq!(answer["documents"], 2);
    let mut server = home.serve(&repo.path);
    let hits = server.hits(json!({"query": "why are quinces pressed by hand", "kinds": ["document"]}));
    assert!(hits[0]["text"].as_str().unwrap().contains("machines bruise them"), "{hits:?}");
    assert_eq!((&hits[0]["kind"], &hits[0]["freshness"]), (&json!("document"), &json!("current")));

    // The next call after a commit sees the new version, and only the new one.
    repo.git(&["rm", "-q", "docs/adr/0001-press.md"]);
    repo.commit("AGENTS.md", "# Rules for agents\n\nQuince code is written in Ada.\n", "Change the rules");
    let hits =
        server.hits(json!({"query": "in which language is quince code written", "kinds": ["document"]}));
    let texts = strings(&hits, "text");
    assert!(texts[0].contains("Ada") && !texts.iter().any(|text| text.contains("Fortran")), "{texts:?}");
    let removed = |server: &mut Server| {
        let hits = server.hits(json!({"query": "why are quinces pressed by hand", "kinds": ["document"]}));
        !strings(&hits, "text").iter().any(|text| text.contains("machines bruise them"))
    };
    assert!(removed(&mut server));

    // On another branch, its own versions are shown, and a version may come back.
    repo.git(&["checkout", "-q", "-b", "older", "HEAD~1"]);
    let language = json!({"query": "in which language is quince code written", "kinds": ["document"]});
    let texts = strings(&server.hits(language.clone()), "text");
    assert!(texts[0].contains("Fortran") && !texts.iter().any(|text| text.contains("in Ada")), "{texts:?}");
    assert!(!removed(&mut server));
    repo.commit("AGENTS.md", "", "Empty the rules");
    repo.commit("AGENTS.md", "# Rules for agents\n\nQuince code is written in Ada.\n", "Bring them back");
    let texts = strings(&server.hits(language), "text");
    assert!(texts[0].contains("in Ada"), "{texts:?}");
}

#[test]
fn ignored_documents_are_not_read() {
    let home = Home::new();
    let repo = home.repo("repo");
    std::fs::write(home.dir("home/.config/tiro").join("config.toml"), "[ignore]\npaths = [\"AGENTS.md\"]\n")
        .unwrap();
    repo.commit("AGENTS.md", "# Rules\n\nQuince code is written in Fortran.\n", "Begin");
    assert_eq!(home.json(&repo.path, &["import", "git"])["documents"], 0);
    assert!(!home.run(&repo.path, &["export"]).stdout.contains("Fortran"));
}

#[test]
fn the_open_items_of_a_to_do_list_are_part_of_what_was_last() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("AGENTS.md", "# Rules\n\nWrite down where we leave off.\n", "Begin");
    assert_eq!(home.json(&repo.path, &["import", "git"])["documents"], 1);
    let talk = Talk::new(&home, ID, &repo.path, "main");
    talk.says("user", 0, "Please port the quince press to the new mill, with its tests.");
    let list = |one: &str, two: &str| {
        json!({"todos": [
            {"content": "Port the quince press", "status": one, "activeForm": "Porting"},
            {"content": "Oil the linseed shaft", "status": two, "activeForm": "Oiling"}]})
    };
    talk.calls(1, "TodoWrite", list("in_progress", "pending"), "Todos have been modified successfully.");
    talk.calls(2, "TodoWrite", list("completed", "pending"), "Todos have been modified successfully.");
    talk.calls(
        3,
        "ExitPlanMode",
        json!({"plan": "# Plan\n\n1. Take the old shaft out of the barn.\n2. Oil it."}),
        "ok",
    );
    talk.says("assistant", 4, "The quince press runs on the new mill now, and its 12 tests pass.");
    home.json(&repo.path, &["import", "claude-code"]);
    home.run(&repo.path, &["index"]);
    let mut server = home.serve(&repo.path);
    let text = server.text("retrieve_context", json!({"query": "where did we leave off?"}));
    assert!(text.contains("Open in the to-do list: Oil the linseed shaft."), "{text}");
    assert!(!text.contains("modified successfully") && !text.contains("AGENTS.md"), "{text}");
    let hits = server.search("take the old shaft out of the barn");
    assert_eq!(hits[0]["speaker"], "assistant", "{hits:?}");
}

/// The session ends with the answer, so nothing that a person writes follows it.
#[test]
fn what_the_user_chose_in_a_dialog_is_remembered_as_a_decision() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("mill.txt", "oak", "Begin");
    let talk = Talk::new(&home, ID, &repo.path, "main");
    talk.says("user", 0, "Please build the queue of the quince importer.");
    let question = "Which store should the queue of the importer use?";
    let asked = json!({"questions": [{"question": question, "header": "Store", "multiSelect": false,
        "options": [{"label": "Redis Streams", "description": "fast"}, {"label": "Postgres", "description": "there"}]}]});
    let answered = format!(
        "User has answered your questions: \"{question}\"=\"Postgres\". You can now continue with the user's answers in mind."
    );
    talk.calls(1, "AskUserQuestion", asked, &answered);
    // What a program prints is no answer.
    talk.calls(2, "Bash", json!({"command": "cat log"}), &answered.replace("Postgres", "Kafka"));
    home.json(&repo.path, &["import", "claude-code"]);
    home.run(&repo.path, &["index"]);
    let mut server = home.serve(&repo.path);
    let found = server.hits(json!({"query": "store of the importer's queue", "kinds": ["decision"]}));
    let texts = strings(&found, "text");
    assert_eq!(texts, [format!("{question} – Postgres")], "{found:?}");
}

#[test]
fn a_plan_that_the_user_approved_is_remembered_as_a_decision() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("mill.txt", "oak", "Begin");
    let talk = Talk::new(&home, ID, &repo.path, "main");
    talk.says("user", 0, "Please plan the queue of the quince importer.");
    let plan = |title: &str| json!({"plan": format!("# Plan: {title}\n\nThe importer waits in Postgres.\n\n1. Add it.")});
    let refused = "The user doesn't want to proceed with this tool use. The tool use was rejected.";
    talk.calls(1, "ExitPlanMode", plan("A queue in Redis"), refused);
    talk.calls(
        2,
        "ExitPlanMode",
        plan("A queue in Postgres"),
        "User has approved your plan. You can now start coding.",
    );
    home.json(&repo.path, &["import", "claude-code"]);
    home.run(&repo.path, &["index"]);
    // Another process finds the same.
    for _ in 0..2 {
        let found = home
            .serve(&repo.path)
            .hits(json!({"query": "queue of the quince importer", "kinds": ["decision"]}));
        let decision = "Approved plan: A queue in Postgres. The importer waits in Postgres.";
        assert_eq!(strings(&found, "text"), [decision], "{found:?}");
    }
}
