//! Providers that embed: only those that the user named, nothing paid for twice, no vectors of two models compared.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Home, Server, eventually, strings};
use crate::mock::{Manner, Mock};
use crate::spends::write;

/// Returns the configuration of a provider that embeds.
fn embedding(name: &str, mock: &Mock) -> String {
    format!(
        "[providers.{name}]\nservice = 'openai-compatible'\nendpoint = '{}'\nmodel = '{name}-small'\n\
         price = {{ input = 100, output = 0 }}\nuses = ['embed']\n",
        mock.endpoint()
    )
}

fn begin(mock: &Mock, dimensions: usize) -> (Home, PathBuf) {
    mock.behaves(&Manner::Embeds(dimensions));
    let home = Home::new();
    let project = home.dir("project");
    write(&home, &embedding("vectors", mock));
    (home, project)
}

/// Returns what `tiro provider show` says was spent, in dollars.
fn spent(home: &Home, project: &Path) -> f64 {
    let shown = home.json(project, &["provider", "show"]);
    shown["spending"].as_array().unwrap().iter().map(|day| day["cost"].as_f64().unwrap()).sum()
}

fn again(home: &Home, project: &Path, mut server: Server) -> Server {
    server.hang_up();
    server.wait();
    home.serve(project)
}

/// Returns all texts that were sent to be embedded.
fn sent(mock: &Mock) -> Vec<String> {
    let seen = mock.seen.lock().unwrap();
    let inputs = seen.iter().flat_map(|(_, body)| body["input"].as_array().cloned().unwrap_or_default());
    inputs.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

fn stash(server: &mut Server, segments: &Value) {
    let stashed = server.data("stash_context", json!({"segments": segments}));
    assert_eq!(stashed["stashed"].as_u64(), segments.as_array().map(|all| all.len() as u64), "{stashed}");
}

/// Returns the texts that the stash has for a query, and what the answer reports.
fn found(server: &mut Server, query: &str) -> (Vec<String>, String) {
    let found = server.data("retrieve_stashed_context", json!({"query": query, "top_k": 20}));
    let texts = strings(found["segments"].as_array().unwrap(), "text");
    (texts, found["notices"].to_string())
}

#[test]
fn a_provider_embeds_what_is_stashed_and_is_paid_once() {
    let mock = Mock::start();
    let (home, project) = begin(&mock, 96);
    let mut server = home.serve(&project);
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    stash(
        &mut server,
        &json!([{"text": "The cat sleeps on the warm kiln."}, {"text": format!("Deploy with {token} today.")}]),
    );
    server.hang_up();
    server.wait();
    assert!(home.run(&project, &["index"]).is_ok);
    // What the server asked when it ended counts in full if it could not wait for the answer.
    let reserved = spent(&home, &project) - mock.billed(100, 0);
    assert!(reserved > -1e-6, "{reserved}");
    let mut server = home.serve(&project);
    // No word of the question is in the text.
    let (texts, notices) = found(&mut server, "feline");
    assert_eq!(texts.first().map(String::as_str), Some("The cat sleeps on the warm kiln."), "{texts:?}");
    assert!(notices.contains("vectors (vectors-small)"), "the answer says what was asked: {notices}");
    let (sent_first, asked) = (sent(&mock), mock.requests());
    assert!(sent_first.iter().any(|text| text.contains("warm kiln")), "{sent_first:?}");
    assert!(!sent_first.iter().any(|text| text.contains(&token)), "{sent_first:?}");

    // The same question, in another process, and the same text, in another segment, cost nothing.
    let mut server = again(&home, &project, server);
    assert_eq!(found(&mut server, "feline").0, texts);
    server.hang_up();
    server.wait();
    assert!(home.run(&project, &["index"]).is_ok);
    assert_eq!(mock.requests(), asked);
    let doctor = home.run(&project, &["doctor"]).stdout;
    assert!(doctor.contains("`vectors-small` of provider `vectors`"), "{doctor}");
    let tried = home.run(&project, &["provider", "test", "vectors"]).stdout;
    assert!(tried.contains("a vector of 96 numbers"), "{tried}");
    let shown = home.json(&project, &["provider", "show"]);
    assert_eq!(shown["embeddings"], json!(["vectors (vectors-small)", "vectors (vectors-small)"]));
    assert!((spent(&home, &project) - mock.billed(100, 0) - reserved).abs() < 1e-6, "{shown}");
}

/// A server that ends while the provider answers waits for the answer and stores it. It waits 400 ms, which may be too short
/// on a busy machine.
#[test]
fn what_a_server_asked_when_it_ended_is_not_asked_again() {
    let is_kept = || {
        let mock = Mock::start();
        let (home, project) = begin(&mock, 64);
        mock.behaves(&Manner::EmbedsLate(64, Duration::from_millis(150)));
        let mut server = home.serve(&project);
        stash(&mut server, &json!([{"text": "The cat sleeps on the warm kiln."}]));
        eventually(|| mock.requests() > 0);
        server.hang_up();
        server.wait();
        let is_settled = (spent(&home, &project) - mock.billed(100, 0)).abs() < 1e-6;
        assert!(home.run(&project, &["index"]).is_ok);
        is_settled && sent(&mock).iter().filter(|text| text.contains("kiln")).count() == 1
    };
    assert!((0..5).any(|_| is_kept()));
}

#[test]
fn without_the_provider_words_are_searched_and_nothing_is_lost() {
    let mock = Mock::start();
    let (home, project) = begin(&mock, 64);
    mock.behaves(&Manner::Refuses(400, ""));
    let mut server = home.serve(&project);
    stash(&mut server, &json!([{"text": "The cat sleeps on the warm kiln."}]));
    let (texts, notices) = found(&mut server, "kiln");
    assert_eq!(texts, ["The cat sleeps on the warm kiln."]);
    assert!(notices.contains("no search by meaning") && notices.contains("vectors"), "{notices}");
    // A search waits for it only for a while.
    mock.behaves(&Manner::Hangs);
    assert_eq!(found(&mut server, "warm").0, ["The cat sleeps on the warm kiln."]);
    // It is embedded once the provider answers.
    mock.behaves(&Manner::Embeds(64));
    server.hang_up();
    server.wait();
    assert!(home.run(&project, &["index"]).is_ok);
    assert_eq!(found(&mut home.serve(&project), "feline").0, ["The cat sleeps on the warm kiln."]);
}

#[test]
fn nothing_leaves_the_machine_if_external_is_never() {
    let home = Home::new();
    let project = home.dir("project");
    let outside = "[providers.away]\nservice = 'openai-compatible'\nendpoint = 'https://embed.example/v1'\n\
        model = 'm'\nprice = { input = 1, output = 0 }\nuses = ['embed']\n";
    write(&home, &format!("external = 'never'\n[embedding]\nprose = 'away'\n{outside}"));
    let mut server = home.serve(&project);
    stash(&mut server, &json!([{"text": "The cat sleeps on the warm kiln."}]));
    let (texts, notices) = found(&mut server, "kiln");
    assert_eq!(texts, ["The cat sleeps on the warm kiln."]);
    assert!(notices.contains("`external` is `never`"), "{notices}");
    // A provider that is not named for it is not asked.
    write(&home, &format!("[embedding]\nprose = 'away'\n{}", outside.replace("'embed'", "'consult'")));
    let notices = found(&mut server, "kiln").1;
    assert!(notices.contains("`away`, which may not embed") && notices.contains("--use embed"), "{notices}");
}

#[test]
fn code_and_prose_have_models_of_their_own() {
    let (prose, code) = (Mock::start(), Mock::start());
    let (home, project) = begin(&prose, 64);
    code.behaves(&Manner::Embeds(48));
    let both = format!("[embedding]\nprose = 'vectors'\ncode = 'coder'\n{}", embedding("vectors", &prose));
    write(&home, &(both + &embedding("coder", &code)));
    let mut server = home.serve(&project);
    stash(
        &mut server,
        &json!([{"text": "The cat sleeps on the warm kiln."},
            {"text": "fn tomcat() -> Kiln { todo!() }", "type": "code_block"}]),
    );
    server.hang_up();
    server.wait();
    assert!(home.run(&project, &["index"]).is_ok);
    let (proses, codes) = (sent(&prose), sent(&code));
    assert!(
        proses.iter().any(|text| text.contains("sleeps")) && !proses.iter().any(|text| text.contains("fn "))
    );
    assert!(
        codes.iter().any(|text| text.contains("fn ")) && !codes.iter().any(|text| text.contains("sleeps"))
    );
    let (mut texts, _) = found(&mut home.serve(&project), "feline");
    texts.sort_unstable();
    assert_eq!(texts, ["The cat sleeps on the warm kiln.", "fn tomcat() -> Kiln { todo!() }"]);
}

#[test]
fn a_change_of_the_model_while_segments_are_stashed_loses_none() {
    let (first, second) = (Mock::start(), Mock::start());
    let (home, project) = begin(&first, 96);
    second.behaves(&Manner::Embeds(40));
    let mut server = home.serve(&project);
    let segments = |from: usize| -> Value {
        (from..from + 60)
            .map(|number| json!({"text": format!("Segment {number} is about quince{number}.")}))
            .collect()
    };
    stash(&mut server, &segments(0));
    server.hang_up();
    server.wait();
    assert!(home.run(&project, &["index"]).is_ok);
    let mut server = home.serve(&project);
    stash(&mut server, &segments(60));
    // The server runs on while the model changes; searches are answered before and after all is embedded again.
    write(&home, &embedding("other", &second));
    stash(&mut server, &segments(120));
    for number in [3, 63, 123] {
        assert!(found(&mut server, &format!("quince{number}")).0[0].contains(&format!("quince{number}.")));
    }
    let mut server = again(&home, &project, server);
    assert!(home.run(&project, &["index"]).is_ok);
    let stats = home.json(&project, &["stats"]);
    assert_eq!(stats["pending"], json!(0), "{stats}");
    assert_eq!(server.data("retrieve_stashed_context", json!({}))["total_found"], json!(180));
    for number in [3, 63, 123] {
        assert!(found(&mut server, &format!("quince{number}")).0[0].contains(&format!("quince{number}.")));
    }
    // All vectors are of the new model.
    let store = rusqlite::Connection::open(home.store()).unwrap();
    let of = |space: &str| -> i64 {
        store
            .query_row("SELECT count(*) FROM vectors WHERE space LIKE ?1", [space], |row| row.get(0))
            .unwrap()
    };
    assert_eq!((of("%"), of("%/other-small/40")), (180, 180));
    // Back to the first model: what it embedded is not paid for again.
    let asked = first.requests();
    write(&home, &embedding("vectors", &first));
    drop(store);
    assert!(home.run(&project, &["index"]).is_ok);
    let texts: usize = sent(&first)[..].len();
    // A request is sent again if the server ended before the answer was stored.
    let repeated = 3 * 32;
    assert!(first.requests() > asked && texts < 60 * 3 + 10 + repeated, "{texts}");
}
