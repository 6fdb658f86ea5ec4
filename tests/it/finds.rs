//! A query by a memory's own words finds it first, and an answer without a good hit says so.

use serde_json::json;

use crate::harness::{Home, strings};

/// Memories for all projects used to have a tiny lexical score compared with those of a project, so they ranked below
/// all of the project's commits.
#[test]
fn a_memory_for_all_projects_is_found_beside_a_long_history() {
    let home = Home::new();
    let repo = home.repo("repo");
    for n in 0..60 {
        let text =
            format!("Change {n} of the error handling\n\nWraps errors in a type {n}, and tabs in indents.");
        repo.commit("a.txt", &format!("{n}\n"), &text);
    }
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    let text = "I prefer thiserror for error types in libraries";
    server.data("store_memory", json!({"text": text, "type": "fact", "scope": "owner"}));
    server.data("store_memory", json!({"text": "I use tabs for indents", "type": "fact", "scope": "owner"}));
    for (query, text) in [("prefer thiserror for error types", text), ("error types libraries", text)] {
        let hits = server.search(query);
        assert_eq!(
            (&hits[0]["text"], &hits[0]["scope"]),
            (&json!(text), &json!("owner")),
            "{query}: {hits:?}"
        );
    }
    // A word doesn't count as rarer because its store is small.
    let hits = server.search("change 7 of the error handling");
    assert!(hits[0]["text"].as_str().unwrap().starts_with("Change 7 "), "{hits:?}");
}

/// A search for `NO_COLOR` used to look only for `color`, and a search for an issue number only for the separate words.
#[test]
fn an_identifier_is_searched_as_a_whole() {
    let home = Home::new();
    let repo = home.repo("repo");
    repo.commit("a.txt", "a\n", "Honour NO_COLOR");
    for n in 0..40 {
        let text = format!(
            "Color the color of colors {n}\n\nThere is an issue with the color, which issue {} tells.",
            1000 + n
        );
        repo.commit("a.txt", &format!("{n}\n"), &text);
    }
    repo.commit("a.txt", "b\n", "Fix the crash of #2819");
    home.json(&repo.path, &["import", "git"]);
    let mut server = home.serve(&repo.path);
    for (query, text) in [
        ("NO_COLOR", "Honour NO_COLOR"),
        ("which color does NO_COLOR color?", "Honour NO_COLOR"),
        ("no-color", "Honour NO_COLOR"),
        ("issue 2819", "Fix the crash of #2819"),
        ("#2819", "Fix the crash of #2819"),
    ] {
        let hits = server.search(query);
        assert!(hits[0]["text"].as_str().unwrap().starts_with(text), "{query}: {:?}", strings(&hits, "text"));
    }
}

/// The index had no emoji and only pairs of Chinese characters, and a neighbour of a text could come before the text
/// that has the only word of the question.
#[test]
fn a_question_of_one_character_emoji_or_quantity_finds_its_text() {
    let home = Home::new();
    let repo = home.repo("repo");
    let mut server = home.serve(&repo.path);
    let texts = [
        "NAS 放在书房，路由器在走廊",
        "港の船は青い",
        "🚢 only on Mondays",
        "⚠️ never restart the lock gate",
        "step ½ is skipped",
        "값을 먼저 저장한다",
        "the limit is 8 MB per upload",
        "wait 250ms between tries",
        "the crane is blue",
        "barges wait upstream of the weir",
        "the keeper sleeps until noon",
        "ropes lie on the quay",
        "the bridge opens for tall masts",
    ];
    let messages: Vec<_> = texts.iter().map(|text| json!({"role": "user", "text": text})).collect();
    server.data("save_messages", json!({"session_id": "s", "messages": messages}));
    for (query, place) in
        [("书", 0), ("船", 1), ("🚢", 2), ("⚠", 3), ("½", 4), ("값", 5), ("8MB", 6), ("250 ms", 7)]
    {
        let hits = server.search(query);
        assert_eq!(hits[0]["text"], texts[place], "{query}: {:?}", strings(&hits, "text"));
    }
}

/// The best hit used to have the full score, whatever the question was.
#[test]
fn scores_measure_the_match_and_a_weak_answer_says_so() {
    let home = Home::new();
    let mut server = home.serve_with_ranking(&home.dir("project"));
    server.save("s", "1", "The sandpiper cache expires at noon because the timer is in local time.");
    server.save("s", "2", "Quinces are picked in October.");
    let ask = |query: &str| json!({"query": query});
    let (text, data) = server.both("search_project_memory", ask("why does the sandpiper cache expire?"));
    assert_eq!(data["hits"][0]["score_parts"]["lexical"], 1.0, "{data}");
    assert!(!text.contains("nothing here is about this"), "{text}");
    let (text, data) =
        server.both("search_project_memory", ask("sandpiper migrations to zanzibar beaches, tax forms"));
    let lexical = data["hits"][0]["score_parts"]["lexical"].as_f64().unwrap();
    assert!(lexical > 0.0 && lexical < 0.3, "{data}");
    assert!(text.contains("Note: nothing here is about this; these are the nearest"), "{text}");
    assert!(data["notices"].to_string().contains("nothing here is about this"), "{data}");
    let score = data["hits"][0]["score"].as_f64().unwrap();
    assert!((score - lexical).abs() < 0.002, "a score is the sum of its parts: {data}");
}

/// Ten full hits that have nothing to do with the question used to be shown below the remark that says so.
#[test]
fn an_answer_about_nothing_is_short_and_its_hits_can_be_asked_for() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    for n in 0..8 {
        let text =
            format!("Quince {n} is picked in October.\n\n{}", "It keeps until the spring. ".repeat(12));
        server.save("orchard", &n.to_string(), &text);
    }
    let query = "Is the sandpiper cache of the gateway flushed before October migrations to zanzibar?";
    let (text, data) = server.both("search_project_memory", json!({"query": query, "max_tokens": 8000}));
    assert!(text.contains("nothing here is about this"), "{text}");
    assert!(text.contains("Searched: 8 messages, 0 commits and 0 notes in 1 session."), "{text}");
    let shown: Vec<&str> = text.lines().filter(|line| line.starts_with("[message ")).collect();
    assert_eq!(shown.len(), 3, "{text}");
    assert!(shown.iter().all(|line| line.contains("] Quince ") && line.len() < 250), "{text}");
    assert_eq!(data["hits"].as_array().unwrap().len(), 8, "{data}");
    let asked = json!({"query": query, "max_tokens": 8000, "cursor": "0"});
    let whole = server.both("search_project_memory", asked).0;
    assert!(!whole.contains("nothing here is about this") && whole.matches("until the spring").count() > 50);
    let only = json!({"query": query, "sessions": ["orchard"], "kinds": ["message"]});
    let narrow = server.both("search_project_memory", only).0;
    assert!(narrow.contains("Searched: memories of the kind message in session orchard."), "{narrow}");
    let context = server.both("retrieve_context", json!({"query": query})).0;
    assert!(context.contains("nothing here is about this"), "{context}");
    assert_eq!(context.matches(": Quince ").count(), 3, "{context}");
    assert!(context.matches("until the spring").count() < 30, "{context}");
}

/// Clients show a model the JSON of an answer. It used to take twice the tokens of the text.
#[test]
fn a_hit_has_the_parts_of_its_score_only_if_they_are_asked_for() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    server.save("s", "1", "The sandpiper cache expires at noon because the timer is in local time.");
    let ask = json!({"query": "why does the sandpiper cache expire?"});
    let (text, data) = server.both("search_project_memory", ask.clone());
    let lean = &data["hits"][0];
    for field in ["score", "score_parts", "provenance", "commit", "scope", "tokens", "is_part"] {
        assert!(lean.get(field).is_none(), "{field}: {lean}");
    }
    assert_eq!(
        (&lean["kind"], &lean["speaker"], &lean["session_id"]),
        (&json!("message"), &json!("user"), &json!("s"))
    );
    assert!(exact(&data.to_string()) < 2 * exact(&text), "{data}\n{text}");
    server.end();
    let ranked = home.serve_with_ranking(&project).data("search_project_memory", ask)["hits"][0].clone();
    assert!(ranked["score_parts"]["lexical"].is_number() && ranked["provenance"] == "user_said", "{ranked}");
}

fn exact(text: &str) -> usize {
    tiro::testing::count(text)
}
