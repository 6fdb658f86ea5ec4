//! The configured model summarises a commit only once, from the message and the changes, without secrets. A search
//! finds the summary, and forgetting the commit forgets the summary too.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Home, Ran, Repo, Server, feed};
use crate::mock::{Manner, Mock};

/// The text of the commit, and the model's summary of it.
const MESSAGE: &str = "cache: keep answers for 30 minutes\n\nPostgres was asked again for each of them.";
const GOOD: &str = "Answers are kept in a cache for 30 minutes through the new Pantry type, because Postgres was asked again \
    for each of them.";
const SECRET: &str = "AKIAQZ7RX2LM5TNVB3KD";

/// Returns a home with a repository of one commit. `mock`, if given, is the provider for summaries.
fn begin(mock: Option<&Mock>) -> (Home, Repo) {
    let home = Home::new();
    let repo = home.repo("project");
    repo.commit("src/cache.rs", &format!("struct Pantry;\nconst KEY: &str = \"{SECRET}\";\n"), MESSAGE);
    if let Some(mock) = mock {
        let file = home.dir("home/.config/tiro").join("config.toml");
        let config = format!(
            "default_provider = 'mock'\n[providers.mock]\nservice = 'openai-compatible'\nendpoint = '{}'\nmodel = 'm'\n\
             uses = ['summarize']\nprice = {{ input = 10, output = 100 }}\n",
            mock.endpoint()
        );
        std::fs::write(file, config).unwrap();
        mock.behaves(&Manner::Says(GOOD.into()));
    }
    (home, repo)
}

fn summaries(home: &Home) -> i64 {
    let connection = rusqlite::Connection::open(home.store()).unwrap();
    let sql = "SELECT count(*) FROM memories WHERE kind = 'summary' AND provenance = 'derived'";
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Returns the text of a commit at a level.
fn opened(server: &mut Server, sha: &str, level: &str) -> String {
    let data = server.data("expand_detail", json!({"id": sha, "level": level}));
    data["text"].as_str().unwrap().to_owned()
}

/// Every file beneath `path` with its bytes.
fn files(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push((path.clone(), std::fs::read(&path).unwrap())),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_commit_is_summarised_once_and_found_by_its_summary() {
    let mock = Mock::start();
    let (home, repo) = begin(Some(&mock));
    let told = home.json(&repo.path, &["import", "git", "--summarize"]);
    assert_eq!((&told["imported"], &told["summaries"]["summarised"]), (&json!(1), &json!(1)), "{told}");
    assert_eq!(told["summaries"]["cost_usd"], json!(mock.billed(10, 100)), "{told}");
    let sent = mock.seen.lock().unwrap()[0].1.to_string();
    assert!(sent.contains("Postgres was asked again") && sent.contains("+struct Pantry;"), "{sent}");
    assert!(!sent.contains(SECRET) && sent.contains("[REDACTED:"), "{sent}");
    let again = home.json(&repo.path, &["summarize", "--commits"]);
    assert_eq!((&again["commits"], mock.requests(), summaries(&home)), (&json!(0), 1, 1), "{again}");

    let mut server = home.serve_with_ranking(&repo.path);
    let hits = server.hits(json!({"query": "pantry kept through", "kinds": ["summary"]}));
    assert_eq!((hits.len(), &hits[0]["provenance"]), (1, &json!("derived")), "{hits:?}");
    let commit = repo.head();
    for level in ["brief", "standard"] {
        assert_eq!(opened(&mut server, &commit, level), GOOD);
    }
    assert!(opened(&mut server, &commit, "messages").starts_with(MESSAGE));
    let summary = server.data("expand_detail", json!({"id": hits[0]["id"]}));
    let id = server.data("expand_detail", json!({"id": commit}))["id"].clone();
    assert_eq!(summary["references"], json!([id]), "it refers to its commit");

    // The summary is forgotten, restored and purged with the commit.
    let forgotten = server.data("forget_context", json!({"ids": [id]}));
    assert_eq!(forgotten["count"], 2, "{forgotten}");
    assert!(server.hits(json!({"query": "pantry", "kinds": ["summary"]})).is_empty());
    server.data("forget_context", json!({"undo": forgotten["operation"]}));
    assert_eq!(server.hits(json!({"query": "pantry", "kinds": ["summary"]})).len(), 1);
    server.data("forget_context", json!({"ids": [id], "purge": true}));
    server.end();
    assert_eq!(summaries(&home), 0);
    assert_eq!(home.files_with("through the new Pantry"), Vec::<PathBuf>::new());
    assert!(home.run(&repo.path, &["import", "git", "--summarize"]).is_ok);
    assert_eq!(mock.requests(), 1, "what was purged is not asked for");
}

#[test]
fn an_unusable_answer_is_requested_again_and_leaves_the_commit_unchanged() {
    let mock = Mock::start();
    let (home, repo) = begin(Some(&mock));
    mock.behaves(&Manner::Says("They spoke of football in Brazil, and of Pele.".into()));
    let told = home.json(&repo.path, &["import", "git", "--summarize"]);
    let summaries_told = &told["summaries"];
    assert_eq!((&told["imported"], &summaries_told["summarised"]), (&json!(1), &json!(0)), "{told}");
    assert!(summaries_told["failed"][0].as_str().unwrap().contains("the model's answer"), "{told}");
    assert_eq!((mock.requests(), summaries(&home)), (2, 0));
    let spent = home.json(&repo.path, &["stats"])["spending"][0]["cost"].as_f64().unwrap();
    let billed = mock.billed(10, 100);
    assert!((spent - billed).abs() < 1e-9 && summaries_told["cost_usd"] == json!(billed), "{told}");
    let mut server = home.serve(&repo.path);
    for level in ["brief", "standard"] {
        let shown = opened(&mut server, &repo.head(), level);
        assert!(shown.contains("30 minutes") && !shown.contains("football"), "{level}: {shown}");
    }
    server.end();
    // A model that fails is not asked again for every commit.
    for number in 0..6 {
        repo.commit("a.txt", &format!("{number}\n"), &format!("Correct parser {number}"));
    }
    mock.behaves(&Manner::Refuses(401, ""));
    let before = mock.requests();
    let told = home.json(&repo.path, &["import", "git", "--summarize"]);
    assert_eq!((&told["imported"], mock.requests() - before), (&json!(6), 3), "{told}");
    // The newest commits are summarised first, as many as requested.
    mock.behaves(&Manner::Says("Corrects parser 5.".into()));
    let told = home.json(&repo.path, &["summarize", "--commits", "--limit", "1"]);
    assert_eq!((&told["summarised"], summaries(&home)), (&json!(1), 1), "{told}");
    let refused = home.run(&repo.path, &["summarize", "--commits", "--set", "limits.total=0"]);
    assert!(refused.is_ok && refused.stdout.contains("the limit of"), "{refused:?}");
    assert_eq!(summaries(&home), 1);
}

#[test]
fn only_configured_models_are_asked() {
    let (home, repo) = begin(None);
    let told = home.json(&repo.path, &["import", "git", "--summarize"]);
    assert_eq!(told["imported"], 1, "{told}");
    assert!(told["notices"].to_string().contains("no provider is configured for summaries"), "{told}");
    let refused = home.run(&repo.path, &["summarize", "--commits"]);
    assert!(!refused.is_ok && refused.stderr.contains("hint: `tiro provider add"), "{refused:?}");
}

#[test]
fn a_dry_run_writes_nothing_and_asks_no_model() {
    let mock = Mock::start();
    let (home, repo) = begin(Some(&mock));
    let before = files(&home.path());
    let dry = home.json(&repo.path, &["import", "git", "--dry-run", "--summarize"]);
    assert_eq!((&dry["commits"], &dry["summaries"]["commits"]), (&json!(1), &json!(1)), "{dry}");
    let most = dry["summaries"]["at_most"].clone();
    assert_eq!(most["requests"], 2, "{most}");
    assert!(most["input"].as_u64().unwrap() > 200 && most["output"].as_u64().unwrap() > 100, "{most}");
    assert!(most["cost_usd"].as_f64().unwrap() > 0.01, "{most}");
    let talk = crate::talk::Talk::new(&home, "s1", &repo.path, "main");
    talk.says("user", 1, "The wombat digs.");
    talk.says("assistant", 2, "I see.");
    let with_talk = files(&home.path());
    let sessions = home.json(&repo.path, &["import", "claude-code", "--dry-run"]);
    assert_eq!((&sessions["transcripts"], &sessions["entries"]), (&json!(1), &json!(2)), "{sessions}");
    assert!(sessions["tokens"].as_u64().unwrap() >= 6, "{sessions}");
    assert_eq!((files(&home.path()) == with_talk, mock.requests()), (true, 0));
    assert!(before.iter().all(|file| with_talk.contains(file)));

    // Imported commits are not imported again, but can still be summarised.
    assert!(home.run(&repo.path, &["import", "git"]).is_ok);
    assert!(home.run(&repo.path, &["import", "claude-code"]).is_ok);
    let dry = home.json(&repo.path, &["import", "git", "--dry-run", "--summarize"]);
    assert_eq!((&dry["commits"], &dry["summaries"]["commits"]), (&json!(0), &json!(1)), "{dry}");
    let most = dry["summaries"]["at_most"].clone();
    let dry = home.json(&repo.path, &["summarize", "--commits", "--dry-run"]);
    assert_eq!((&dry["summarised"], &dry["at_most"]), (&json!(1), &most), "the same costs the same: {dry}");
    assert_eq!(home.json(&repo.path, &["import", "claude-code", "--dry-run"])["entries"], 0);
    assert_eq!((mock.requests(), summaries(&home)), (0, 0));
}

#[test]
fn two_parallel_processes_store_one_summary() {
    let mock = Mock::start();
    let (home, repo) = begin(Some(&mock));
    assert!(home.run(&repo.path, &["import", "git"]).is_ok);
    mock.behaves(&Manner::SaysLate(GOOD.into(), Duration::from_millis(1500)));
    let summarise = || -> Ran { feed(home.tiro(&repo.path, &["summarize", "--commits", "--json"]), b"") };
    let told: Vec<Ran> = std::thread::scope(|scope| {
        let both = [scope.spawn(summarise), scope.spawn(summarise)];
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(told.iter().all(|ran| ran.is_ok), "{told:?}");
    assert_eq!((mock.requests(), summaries(&home)), (2, 1));
    for ran in told {
        let data: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(data["summarised"], 1, "{data}");
    }
}
