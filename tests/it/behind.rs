//! The text of answers leads from a commit to its conversation and back.

use serde_json::json;

use crate::harness::{Home, strings};

/// A long conversation that led to a commit but shares no words with it.
#[test]
fn commits_and_conversations_link_to_each_other() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Begin");
    let mut server = home.serve(&repo.path);
    server.save("flux capacitor", "1", "the grommet overheats when the sprocket turns at noon");
    server.save("flux capacitor", "2", "thanks, go ahead");
    let sha = repo.commit("b.txt", "b\n", "Cool the grommet\n\nA fan blows on it.");
    home.json(&repo.path, &["import", "git"]);

    // Only the commit matches. The answer names its conversation and shows the conversation's best message.
    let question = json!({"query": "cool the grommet", "kinds": ["commit"]});
    let (text, data) = server.both("search_project_memory", question);
    let hit = &data["hits"][0];
    let behind = &hit["behind"];
    assert_eq!(
        (&behind["session_id"], &behind["open"]),
        (&json!("flux capacitor"), &json!("flux capacitor#0"))
    );
    assert!(text.contains("\n[said in session flux capacitor, "), "{text}");
    assert!(text.contains("expand_detail opens flux capacitor#0]\n"), "{text}");
    assert!(text.contains("\n[flux capacitor#0 user]\nthe grommet overheats when the sprocket"), "{text}");

    let opened = server.text("expand_detail", json!({"id": behind["open"]}));
    assert!(opened.contains("[this] user: the grommet overheats"), "{opened}");
    let short = &sha[..10];
    let line = format!("[led to commit {short} \"Cool the grommet\", ");
    assert!(
        opened.contains(&line) && opened.contains(&format!("expand_detail opens {short}]\n")),
        "{opened}"
    );

    let (opened, data) = server.both("expand_detail", json!({"id": short}));
    assert!(opened.contains("[said in session flux capacitor, "), "{opened}");
    let open = data["linked"][0]["open"].as_str().unwrap();
    let back = server.text("expand_detail", json!({"id": open}));
    assert!(back.contains(&line), "{back}");
    for (id, heading, named) in [("flux capacitor#0", "led to", short), (short, "made in", "flux capacitor")]
    {
        let shown = home.run(&repo.path, &["show", id]);
        assert!(shown.is_ok && shown.stdout.contains(&format!("{heading}\n {named}")), "{shown:?}");
    }

    // A person sees the same: the conversation, the confidence of the link, the id that opens the conversation, and its
    // best message.
    let found = home.run(&repo.path, &["search", "cool the grommet", "--kinds", "commit"]).stdout;
    let sure = hit["confidences"][0].as_f64().unwrap();
    assert!(sure < 0.99, "{hit}");
    let sure = format!("({:.0}% sure)", sure * 100.0);
    let lines = format!("{sure} · tiro show flux capacitor#0\n      user\n      the grommet overheats");
    assert!(found.contains("\n   made in flux capacitor, ") && found.contains(&lines), "{found}");
    for id in [short, "flux capacitor#0"] {
        let shown = home.run(&repo.path, &["show", id]).stdout;
        assert!(shown.contains(&sure), "{shown}");
    }

    // If that message is a hit too, it is not shown twice.
    let (text, data) = server.both("search_project_memory", json!({"query": "cool the grommet"}));
    assert_eq!(strings(data["hits"].as_array().unwrap(), "kind").last().unwrap(), "commit");
    assert_eq!(text.matches("the grommet overheats").count(), 1, "{text}");

    // If there is no room, the message is left out, but the conversation is still named.
    let with = |most: usize| json!({"query": "cool the grommet", "kinds": ["commit"], "max_tokens": most});
    let mut texts = (120..400).step_by(5).map(|most| server.text("search_project_memory", with(most)));
    let text = texts.find(|text| text.contains("flux capacitor")).unwrap();
    assert!(text.contains("Cool the grommet") && !text.contains("overheats"), "{text}");

    // No answer names a forgotten session.
    server.data("forget_context", json!({"session_id": "flux capacitor"}));
    let (text, _) = server.both("search_project_memory", json!({"query": "cool the grommet"}));
    assert!(text.contains(short) && !text.contains("flux"), "{text}");
    let opened = server.text("expand_detail", json!({"id": short}));
    assert!(!opened.contains("flux"), "{opened}");
}

/// In an earlier version, only the JSON said that a hit is part of a longer text.
#[test]
fn a_partial_hit_reports_the_size_of_the_whole() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    server.save("s", "1", "a short quince");
    let long = format!("{} quince {}", "apple ".repeat(200), "plum ".repeat(300));
    server.save("s", "2", &long);
    let (text, data) = server.both("search_project_memory", json!({"query": "quince"}));
    let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("[message")).collect();
    let hits = data["hits"].as_array().unwrap();
    assert_eq!(heads.len(), 2, "{text}");
    for (head, hit) in heads.iter().zip(hits) {
        assert_eq!(head.contains(", part of "), hit["is_part"] == true, "{head}");
    }
    let whole = server
        .data("expand_detail", json!({"id": hits.iter().find(|hit| hit["is_part"] == true).unwrap()["id"]}));
    assert!(text.contains(&format!(", part of {} tokens]", whole["tokens"])), "{text}");
}

/// Every call used to repeat this notice. Once per server process is enough; after that, only the JSON has a number.
#[test]
fn missing_embeddings_are_mentioned_once() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    server.save("s", "1", "a quince");
    for expected in [true, false, false] {
        let (text, data) = server.both("search_project_memory", json!({"query": "quince"}));
        assert_eq!(
            (text.contains("has no embedding yet"), &data["pending"]),
            (expected, &json!(1)),
            "{text}"
        );
    }
}
