//! The agent judges: it is told of memories near the one that it stores, and may write a session's summary itself.

use serde_json::{Value, json};

use crate::harness::{Home, Server, strings};

/// Decisions, decisions that change them, each in its own wording, and a question about each.
const CHANGED: [(&str, &str, &str); 30] = [
    ("We deploy on Tuesdays", "We deploy on Thursdays now, not Tuesdays", "when do we deploy"),
    (
        "The ledger runs on Postgres 14",
        "The ledger moved to Postgres 17",
        "which Postgres does the ledger use",
    ),
    (
        "Use tabs for indentation in the parser",
        "Actually, scratch that: use four spaces for indentation in the parser",
        "indentation in the parser",
    ),
    (
        "The API rate limit is 40 requests per minute",
        "The API rate limit is no longer 40 requests per minute but 60",
        "what is the API rate limit",
    ),
    (
        "Ottoline owns the billing module",
        "Zoë took over the billing module from Ottoline",
        "who owns the billing module",
    ),
    (
        "Uploads may be 10 MB at most",
        "We raised the maximum of uploads from 10 MB to 25 MB",
        "how large may uploads be",
    ),
    ("Logs are kept for 30 days", "Correction: logs are kept for 90 days", "how long are logs kept"),
    (
        "The frontend is written in Vue",
        "The frontend was rewritten in Svelte",
        "what is the frontend written in",
    ),
    (
        "Sessions expire after one hour",
        "Sessions expire after eight hours instead of one",
        "when do sessions expire",
    ),
    (
        "The staging server is called quince",
        "Staging was renamed: the server is called marmalade",
        "name of the staging server",
    ),
    (
        "We use npm to install packages",
        "Switch from npm to pnpm for installing packages",
        "how do we install packages",
    ),
    (
        "Never force-push to main",
        "Force-pushing to main is allowed for the release bot, everyone else still must not",
        "may one force-push to main",
    ),
    ("The retry limit is 3", "Retries: the limit is 5 as of today", "what is the retry limit"),
    ("Releases are tagged by hand", "Releases are tagged by CI from now on", "how are releases tagged"),
    (
        "The database password is rotated monthly",
        "Rotation of the database password is weekly now",
        "how often is the database password rotated",
    ),
    (
        "Mara prefers short answers",
        "Mara prefers long, detailed answers after all",
        "what answers does Mara prefer",
    ),
    (
        "The parser accepts YAML only",
        "The parser accepts YAML and TOML since last week",
        "what does the parser accept",
    ),
    ("Images are stored on S3", "Images are stored on R2, we left S3", "where are images stored"),
    (
        "Coverage must be at least 80 percent",
        "Coverage must be at least 70 percent; 80 was too strict",
        "how much coverage is required",
    ),
    ("The stand-up is at 10:00", "The stand-up moved to 9:30", "when is the stand-up"),
    (
        "Feature flags live in config/flags.toml",
        "Feature flags were moved to the admin page",
        "where do feature flags live",
    ),
    (
        "Search uses Elasticsearch",
        "Search is back on Postgres full text, Elasticsearch is gone",
        "what does search use",
    ),
    (
        "Python 3.9 is the oldest version we support",
        "We dropped Python 3.9; 3.11 is the oldest version we support",
        "oldest supported Python",
    ),
    (
        "Error messages are in English only",
        "Error messages are translated to German too",
        "which languages do error messages have",
    ),
    ("The cron job runs at midnight", "The cron job now runs at 4 am", "when does the cron job run"),
    ("Reviews need one approval", "Reviews need two approvals", "how many approvals do reviews need"),
    (
        "The mobile app supports offline mode",
        "We gave up offline mode in the mobile app",
        "does the mobile app support offline mode",
    ),
    (
        "Prices are shown without tax",
        "Prices are shown with tax, as the law demands",
        "are prices shown with tax",
    ),
    (
        "The cache is flushed on every deploy",
        "The cache survives deploys; it is flushed by hand",
        "when is the cache flushed",
    ),
    (
        "Docker images are based on Alpine",
        "Docker images are based on Debian slim, since Alpine broke DNS",
        "base of Docker images",
    ),
];

fn store(server: &mut Server, text: &str, kind: &str) -> Value {
    server.data("store_memory", json!({"text": text, "type": kind}))
}

#[test]
fn storing_names_the_memories_near_it_and_a_second_call_settles_it() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let old = store(&mut server, "The quince press is deployed on Tuesdays", "decision");
    store(&mut server, "Ottoline prefers glass jars to tin", "preference");
    assert!(old.get("near").is_none(), "nothing was stored before: {old}");

    let ask = json!({"text": "The quince press is deployed on Thursdays", "type": "decision"});
    let (text, new) = server.both("store_memory", ask);
    let (old, id) = (old["id"].as_str().unwrap(), new["id"].as_str().unwrap());
    let near = new["near"].as_array().unwrap();
    assert_eq!(strings(near, "id"), [old], "{new}");
    assert!(text.starts_with(&format!("Stored as decision `{id}` (project). Near it: `{old}`.\n")), "{text}");
    assert!(text.contains("is deployed on Tuesdays\n[/data ") && text.contains("`supersedes`"), "{text}");

    let settled = json!({"text": "The quince press is deployed on Thursdays", "type": "decision",
        "supersedes": [old]});
    let (text, settled) = server.both("store_memory", settled);
    assert_eq!((&settled["id"], settled.get("near")), (&json!(id), None), "{text}");
    server.hang_up();
    server.wait();
    let mut server = home.serve(&home.dir("project"));
    let hits = server.search("when is the quince press deployed");
    assert_eq!(hits[1]["superseded"]["by"], json!(id), "{hits:?}");
    // What was settled is not asked about again.
    let third = store(&mut server, "The quince press is deployed on Thursdays at noon", "decision");
    assert_eq!(strings(third["near"].as_array().unwrap(), "id"), [id], "{third}");
}

#[test]
fn most_changed_decisions_are_named_and_the_change_comes_first() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    for (old, ..) in CHANGED {
        let stored = store(&mut server, old, "decision");
        assert!(stored.get("near").is_none(), "{old}: {stored}");
    }
    let mut named = 0;
    for (old, new, _) in CHANGED {
        let stored = store(&mut server, new, "decision");
        let near = stored["near"].as_array().map_or(Vec::new(), |near| strings(near, "text"));
        assert!(near.iter().all(|text| text.as_str() == old), "{new}: {near:?}");
        named += near.len();
    }
    // By words alone; with the embedding model it is 30.
    assert!(named >= 27, "{named} of {} were named", CHANGED.len());
    let mut is_newest_first = |(old, new, question): &(&str, &str, &str)| {
        let texts = strings(&server.search(question), "text");
        let place = |text: &str| texts.iter().position(|each| each == text).unwrap_or(usize::MAX);
        place(new) < place(old)
    };
    let (first, others): (Vec<_>, Vec<_>) = CHANGED.into_iter().partition(|each| is_newest_first(each));
    assert!(first.len() >= 29, "not first: {others:?}");
}

#[test]
fn a_text_that_differs_only_in_case_stops_and_spaces_is_stored_once() {
    let home = Home::new();
    let mut server = home.serve(&home.dir("project"));
    let first = store(&mut server, "Deploys go out after the stand-up, at v1.2", "fact");
    for again in [
        "deploys go out after the stand-up, at v1.2.",
        "Deploys  go out after the stand-up at\nv1.2!",
        "DEPLOYS GO OUT AFTER THE STAND-UP; AT V1.2",
    ] {
        let stored = store(&mut server, again, "fact");
        assert_eq!((&stored["id"], &stored["stored"]), (&first["id"], &json!(false)), "{again}");
        assert!(stored.get("near").is_none(), "{stored}");
    }
    for other in ["Deploys go out after the stand-up, at v12", "Deploys go out after the stand-up, at -v1.2"]
    {
        assert_eq!(store(&mut server, other, "fact")["stored"], json!(true), "{other}");
    }
    let code = store(&mut server, "let Jar = 1;", "code_block");
    assert_ne!(store(&mut server, "let jar = 1", "code_block")["id"], code["id"]);
}

#[test]
fn an_agent_writes_a_summary_that_keeps_to_the_messages() {
    let home = Home::new();
    let project = home.dir("project");
    let mut server = home.serve(&project);
    let said = [
        ("user", "The quince press jams whenever the hopper holds more than 40 jars."),
        ("assistant", "I lowered the limit of the hopper to 35 jars and added a test for it."),
        ("user", "Good. Ottoline wants the limit in the configuration file."),
        ("assistant", "The limit is read from press.toml now, and the test passes."),
    ];
    let messages: Vec<Value> = said.iter().map(|(role, text)| json!({"role": role, "text": text})).collect();
    server.data("save_messages", json!({"session_id": "press", "messages": messages}));

    let wrong =
        json!({"session_id": "press", "summary": "The hopper of the quince press holds 90 jars now."});
    let refused = server.error("summarize_conversation", wrong);
    assert!(
        refused.contains("`summary` has a number or a date that the messages don't have: 90"),
        "{refused}"
    );
    assert!(refused.contains("nothing was stored"), "{refused}");
    let long = json!({"session_id": "press", "level": "brief", "summary": "The press jams. ".repeat(60)});
    assert!(server.error("summarize_conversation", long).contains("at level brief it may have 90"));
    let focused = json!({"session_id": "press", "focus": "jars", "summary": "The press jams."});
    assert!(server.error("summarize_conversation", focused).contains("`summary` and `focus`"));

    // A secret is no number that the messages lack.
    let token = "ghp_Zq8Lk2Vn5Xw1Rt7Yb4Mc9Pd3Hf6Jg0KsTu5w";
    let message =
        json!({"role": "user", "text": format!("The deployment of the press reads the token {token}.")});
    server.data("save_messages", json!({"session_id": "token", "messages": [message]}));
    let summary = format!("The deployment of the quince press reads the token {token}.");
    let given = server.data("summarize_conversation", json!({"session_id": "token", "summary": summary}));
    assert!(!given.to_string().contains(token), "{given}");

    let summary = "The quince press jammed with more than 40 jars in the hopper, so the limit was lowered to 35 jars. \
        The limit is read from press.toml, as Ottoline wanted, and the test passes.";
    let given = server.data("summarize_conversation", json!({"session_id": "press", "summary": summary}));
    assert_eq!((&given["summary"], &given["provider"]), (&json!(summary), &json!("agent")), "{given}");
    server.hang_up();
    server.wait();
    let mut server = home.serve(&project);
    let (text, again) = server.both("summarize_conversation", json!({"session_id": "press"}));
    assert_eq!(
        (&again["summary"], &again["id"], &again["cached"]),
        (&json!(summary), &given["id"], &json!(true))
    );
    assert!(text.contains("; agent, quality "), "{text}");
    let opened = server.text("expand_detail", json!({"id": given["id"]}));
    assert!(opened.contains("hopper"), "{opened}");
}
