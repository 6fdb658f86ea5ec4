//! A misbehaving model prevents no answer: Tiro chooses sentences instead, in time, and names the provider and the
//! failure. A model's summary is stored and labelled as such, and is forgotten with its messages.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Home, Server};
use crate::mock::{Manner, Mock};

const KEY: &str = "plain-words-that-no-rule-knows-4242";

/// The summary that the mock returns.
const GOOD: &str = "It was settled to store sessions in SQLite 3.50, because Postgres needs a server. The import of \
    Parquet fails on Windows ARM since release 0.9.2. Mira converts the paths by Friday; who tests it is open.";

/// The deadline of a local model for a summary.
const DEADLINE: Duration = Duration::from_secs(5);

/// How much later an answer may come on a machine that is busy with other work. Without a deadline it would never come.
const BUSY: Duration = Duration::from_secs(20);

/// Saves twenty messages: greetings, and three relevant ones.
fn talk(server: &mut Server) {
    let message = |n: usize| {
        let text = match n {
            3 => "We decided to store sessions in SQLite 3.50, because Postgres needs a server.",
            11 => "The import of Parquet fails on Windows ARM since release 0.9.2.",
            19 => "Mira converts the paths by Friday. Open is who tests it?",
            _ => "Thanks, sounds good! The garden with the roses and tulips looks lovely.",
        };
        json!({"id": n.to_string(), "role": if n.is_multiple_of(2) { "user" } else { "assistant" },
            "time": format!("2025-03-01T09:{n:02}:00Z"), "text": text})
    };
    let messages: Vec<Value> = (0..20).map(message).collect();
    server.data("save_messages", json!({"session_id": "s", "messages": messages}));
}

/// A home in which `mock` is the provider for summaries.
fn begin(mock: &Mock) -> (Home, PathBuf) {
    let home = Home::new();
    let project = home.repo("project").path;
    let file = home.dir("home/.config/tiro").join("config.toml");
    let config = format!(
        "default_provider = 'mock'\n[providers.mock]\nservice = 'openai-compatible'\nendpoint = '{}'\nmodel = 'm'\n\
         key_variable = 'LAB_API_KEY'\nuses = ['summarize']\nprice = {{ input = 10, output = 100 }}\n",
        mock.endpoint()
    );
    std::fs::write(file, config).unwrap();
    (home, project)
}

/// A home in which `mock` is an external provider for summaries.
fn begin_external(mock: &Mock, more: &str) -> (Home, PathBuf) {
    let (home, project) = begin(mock);
    let file = home.path().join("home/.config/tiro/config.toml");
    let config = std::fs::read_to_string(&file).unwrap().replace("127.0.0.1", "0.0.0.0");
    // Only its address makes the provider external. It has no key, since a key is never sent unencrypted.
    let config = config.replace("key_variable = 'LAB_API_KEY'\n", "");
    std::fs::write(file, format!("{more}{config}")).unwrap();
    (home, project)
}

fn spent(home: &Home, project: &Path) -> f64 {
    home.json(project, &["stats"])["spending"][0]["cost"].as_f64().unwrap()
}

fn serve(home: &Home, project: &Path) -> Server {
    let mut command = home.tiro(project, &["serve"]);
    command.env("LAB_API_KEY", KEY);
    Server::start(command)
}

fn summarise(server: &mut Server) -> Value {
    server.data("summarize_conversation", json!({"session_id": "s"}))
}

/// Returns the number that a query of the store returns.
fn number(home: &Home, sql: &str) -> i64 {
    let connection = rusqlite::Connection::open(home.store()).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn notices(data: &Value) -> String {
    data["notices"].to_string()
}

#[test]
fn a_summary_arrives_in_time_whatever_the_model_does_and_names_the_failure() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    let mut server = serve(&home, &project);
    talk(&mut server);
    let began = Instant::now();
    let plain = server.data(
        "summarize_conversation",
        json!({"session_id": "s", "level": "detailed", "use_provider": false}),
    );
    let spare = 2 * began.elapsed() + BUSY;
    assert_eq!(mock.requests(), 0, "{plain}");
    let cases = [
        (Manner::Hangs, "did not answer within"),
        (Manner::Drips, "was still sending after"),
        (Manner::Floods, "sent more than 4 MiB"),
        (Manner::Says(String::new()), "gave an empty answer"),
        (Manner::Says("They spoke of football in Brazil, and of Pele.".into()), "the model's answer says"),
        (Manner::Says(GOOD.replace('.', ",").repeat(40)), "has no sentence that ends within"),
        (Manner::Refuses(401, ""), "401"),
        (Manner::Refuses(429, "retry-after: 86400\r\n"), "the service asks to wait for 86400 s"),
        (Manner::Refuses(404, ""), "has no model `m`"),
    ];
    let mut billed = 0.0;
    for (place, (manner, why)) in cases.iter().enumerate() {
        mock.behaves(manner);
        let before = mock.billed(10, 100);
        let began = Instant::now();
        let data = summarise(&mut server);
        let took = began.elapsed();
        assert!(took <= DEADLINE + DEADLINE / 10 + spare, "{manner:?} took {took:?}");
        assert_eq!(data["provider"], "extractive", "{manner:?}: {data}");
        assert!(data["summary"].as_str().unwrap().contains("SQLite 3.50"), "{data}");
        assert!(notices(&data).contains("`mock`") && notices(&data).contains(why), "{why}: {data}");
        let tries = number(&home, "SELECT count(*) FROM summary_attempts WHERE error IS NOT NULL");
        assert_eq!(tries, place as i64 + 1, "{manner:?} is in the history");
        let took = number(&home, "SELECT took_ms FROM summary_attempts ORDER BY seq DESC LIMIT 1");
        assert!(took <= 5500 + BUSY.as_millis() as i64, "{manner:?} took {took} ms");
        if matches!(manner, Manner::Says(text) if !text.is_empty()) {
            billed += mock.billed(10, 100) - before;
        }
    }
    // A bad answer costs what two requests used, a missing answer costs the full reservation, and a refusal costs
    // nothing.
    let paid = number(&home, "SELECT sum(cost_micros) FROM summary_attempts");
    let answered = "SELECT sum(cost_micros) FROM summary_attempts WHERE error LIKE '%model''s answer%'";
    assert_eq!(number(&home, answered), (billed * 1e6).round() as i64);
    assert_eq!(number(&home, "SELECT count(*) FROM summary_attempts WHERE cost_micros = 0"), 3);
    let spent = home.json(&project, &["stats"])["spending"][0]["cost"].as_f64().unwrap();
    assert_eq!((spent * 1e6).round() as i64, paid, "the history says what the ledger does");
    let log = server.end();
    assert!(!log.contains(KEY) && !log.contains("Postgres") && !log.contains("Pele"), "{log}");
    assert_eq!(number(&home, "SELECT count(*) FROM summaries WHERE provider <> 'extractive'"), 0);
    // The summary is in the queue only once, however often it was requested, and before sessions whose summaries nobody
    // requested.
    let waiting = "SELECT count(*) FROM summary_queue WHERE by_user AND state = 'pending'";
    assert_eq!(number(&home, waiting), 1);
    assert_eq!(home.json(&project, &["stats"])["queue"]["pending"], 1);
    let doctor = home.run(&project, &["doctor"]);
    assert!(doctor.stdout.contains("summaries by a model: 1 waiting, 0 given up"), "{doctor:?}");
    assert_eq!(home.files_with(KEY), Vec::<PathBuf>::new());

    let mut server = home.serve(&project);
    mock.behaves(&Manner::Says(GOOD.into()));
    let asked = mock.requests();
    let data = summarise(&mut server);
    assert!(data["provider"] == "extractive" && notices(&data).contains("LAB_API_KEY"), "{data}");
    assert_eq!(mock.requests(), asked, "nothing is sent without a key");
    server.end();
    assert_eq!(summarise(&mut serve(&home, &project))["provider"], "mock");
}

#[test]
fn a_models_summary_is_stored_once_and_labelled_as_such() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    let mut servers = [serve(&home, &project), serve(&home, &project)];
    talk(&mut servers[0]);
    mock.behaves(&Manner::SaysLate(GOOD.into(), Duration::from_millis(700)));
    let arguments = json!({"name": "summarize_conversation", "arguments": {"session_id": "s"}});
    for server in &mut servers {
        server.ask("tools/call", arguments.clone());
    }
    let answers: Vec<Value> = servers.iter_mut().map(Server::receive).collect();
    // One of them asks and pays, and the other gets its summary.
    assert_eq!(mock.requests(), 1);
    for answer in answers {
        let data = &answer["result"]["structuredContent"];
        assert_eq!((&data["provider"], &data["summary"]), (&json!("mock"), &json!(GOOD)), "{answer}");
        let has_asked = notices(data).contains("asked mock (m) on this machine");
        let cost = if has_asked { mock.billed(10, 100) } else { 0.0 };
        assert_eq!((&data["cost_usd"], &data["cached"]), (&json!(cost), &json!(!has_asked)), "{answer}");
    }
    assert_eq!(number(&home, "SELECT count(*) FROM summaries WHERE provider = 'mock'"), 1);
    assert_eq!(number(&home, "SELECT count(*) FROM summaries WHERE provenance = 'model_said'"), 1);
    let asked = mock.requests();
    servers.into_iter().for_each(|server| drop(server.end()));
    let kept = summarise(&mut serve(&home, &project));
    assert_eq!((&kept["summary"], &kept["cached"], mock.requests()), (&json!(GOOD), &json!(true), asked));
}

#[test]
fn an_updated_summary_still_cites_the_messages_of_the_previous_one() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    let mut server = serve(&home, &project);
    talk(&mut server);
    mock.behaves(&Manner::Says(GOOD.into()));
    assert_eq!(summarise(&mut server)["cited"], json!([3, 11, 19]));
    let later = json!([{"id": "20", "role": "user", "text": "Ines tests it on Windows from Monday on."}]);
    server.data("save_messages", json!({"session_id": "s", "messages": later}));
    mock.behaves(&Manner::Says(
        GOOD.replace("who tests it is open", "Ines tests it on Windows from Monday on"),
    ));
    assert_eq!(summarise(&mut server)["cited"], json!([3, 11, 19, 20]));
    let asked = mock.seen.lock().unwrap().last().unwrap().1.to_string();
    assert!(
        asked.contains("Ines tests it") && !asked.contains("roses and tulips"),
        "only what is new was sent: {asked}"
    );
}

#[test]
fn a_changed_temperature_requests_a_new_version() {
    const COOLER: &str = "Sessions are stored in SQLite 3.50: Postgres needs a server, so it was decided. Since release 0.9.2 \
        the import of Parquet fails on Windows ARM; Mira converts the paths by Friday, and who tests it is open.";
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    talk(&mut serve(&home, &project));
    let mut ids = Vec::new();
    for (temperature, text, asked) in [("0.9", GOOD, 1), ("0.1", COOLER, 2), ("0.9", GOOD, 2)] {
        mock.behaves(&Manner::Says(text.into()));
        let set = format!("summary.temperature={temperature}");
        let mut command = home.tiro(&project, &["serve", "--set", &set]);
        command.env("LAB_API_KEY", KEY);
        let mut server = Server::start(command);
        let made = summarise(&mut server);
        assert_eq!((&made["summary"], mock.requests()), (&json!(text), asked), "{made}");
        let opened = server.data("expand_detail", json!({"id": made["id"], "level": "standard"}));
        assert!(opened["text"].as_str().unwrap().contains(text), "{opened}");
        ids.push(made["id"].clone());
    }
    assert!(ids[0] != ids[1] && ids[0] == ids[2], "{ids:?}");
    let asked: Vec<Value> =
        mock.seen.lock().unwrap().iter().map(|(_, body)| body["temperature"].clone()).collect();
    assert_eq!(asked, [json!(0.9), json!(0.1)]);
}

#[test]
fn the_queue_respects_retry_after() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    let mut server = serve(&home, &project);
    talk(&mut server);
    mock.behaves(&Manner::Refuses(429, "retry-after: 7200\r\n"));
    assert_eq!(summarise(&mut server)["provider"], "extractive");
    assert_eq!(mock.requests(), 1);
    // The queued summary is due, and another process queued it.
    let hurry = || {
        let connection = rusqlite::Connection::open(home.store()).unwrap();
        connection.execute("UPDATE summary_queue SET not_before = 0", []).unwrap()
    };
    assert!(hurry() > 0);
    let other = serve(&home, &project);
    let began = Instant::now();
    server.search("garden");
    while began.elapsed() < Duration::from_secs(12) {
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(mock.requests(), 1, "it is left alone");
    }
    other.end();
    // The time of `Retry-After` has passed.
    let owner = rusqlite::Connection::open(home.data().join("owner.db")).unwrap();
    let past = "UPDATE meta SET value = 1 WHERE key = 'left_alone:mock'";
    assert_eq!(owner.execute(past, []).unwrap(), 1);
    hurry();
    while number(&home, "SELECT count(*) FROM summary_queue WHERE tries > 0 AND state = 'pending'") == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.end());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(mock.requests(), 2);
    let wait = number(&home, "SELECT max(not_before - changed_at) FROM summary_queue WHERE tries > 0");
    assert_eq!(wait, 7_200_000);
    server.end();
}

#[test]
fn all_sessions_are_summarised_as_the_dry_run_said_without_endless_retries() {
    const SAID: [&str; 2] = [
        "We decided to store sessions in SQLite 3.50, because Postgres needs a server.",
        "Mira tests it by Friday.",
    ];
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    mock.behaves(&Manner::Says(SAID.join(" ")));
    let mut server = serve(&home, &project);
    for session in 0..5 {
        for (number, text) in SAID.into_iter().enumerate() {
            server.save(&format!("s{session}"), &number.to_string(), text);
        }
    }
    server.end();
    let all = |more: &[&str]| -> Value {
        let mut command = home.tiro(&project, &[&["summarize", "--all", "--json"], more].concat());
        command.env("LAB_API_KEY", KEY);
        let ran = crate::harness::feed(command, b"");
        assert!(ran.is_ok, "{ran:?}");
        serde_json::from_str(&ran.stdout).unwrap()
    };
    let dry = all(&["--dry-run"]);
    assert_eq!((&dry["summarised"], &dry["at_most"]["requests"]), (&json!(5), &json!(10)), "{dry}");
    assert_eq!(mock.requests(), 0, "a dry run asks nobody");
    assert_eq!(all(&["--extractive"])["extractive"], 5);
    let made = all(&[]);
    assert_eq!(
        (&made["summarised"], &made["extractive"], mock.requests()),
        (&json!(5), &json!(0), 5),
        "{made}"
    );
    let cost = made["cost_usd"].as_f64().unwrap();
    assert!(
        (cost - mock.billed(10, 100)).abs() < 1e-9 && cost <= dry["at_most"]["cost_usd"].as_f64().unwrap(),
        "{made} {dry}"
    );
    assert_eq!(all(&[])["up_to_date"], 5);
    mock.behaves(&Manner::Refuses(401, ""));
    let made = all(&["--level", "brief"]);
    assert_eq!((&made["extractive"], mock.requests()), (&json!(5), 8), "{made}");
    assert!(made["notices"].to_string().contains("no model was asked from then on"), "{made}");
}

#[test]
fn failed_requests_are_reported_with_their_possible_cost_which_the_dry_run_covers() {
    let mock = Mock::start();
    let (home, project) = begin_external(&mock, "max_retries = 1\n");
    let mut server = serve(&home, &project);
    talk(&mut server);
    let dry = server.data("summarize_conversation", json!({"session_id": "s", "dry_run": true}));
    let most = dry["cost_usd"].as_f64().unwrap();
    let off_topic = "They spoke of football in Brazil, and of Pele.";
    let endless = GOOD.replace('.', ",").repeat(60);
    let mut before = 0.0;
    for (manner, said) in [
        (Manner::Refuses(401, ""), "sent up to"),
        (Manner::BreaksOff, "in 2 requests, but got no answer, cost at most $"),
        (Manner::Says(off_topic.into()), "tokens to mock (m) at 0.0.0.0"),
        (Manner::Says(endless.clone()), "tokens to mock (m) at 0.0.0.0"),
        (Manner::Claims(off_topic.into(), 1_000_000_000, 1_000_000_000), "which is implausible"),
        (Manner::Claims(endless.clone(), 1, 1), "which is implausible"),
    ] {
        mock.behaves(&manner);
        let asked = mock.requests();
        let data = summarise(&mut server);
        assert_eq!((&data["provider"], mock.requests() > asked), (&json!("extractive"), true), "{data}");
        assert!(notices(&data).contains(said), "{said}: {data}");
        let all = spent(&home, &project);
        let cost = data["cost_usd"].as_f64().unwrap();
        let is_paid = !matches!(manner, Manner::Refuses(..));
        assert!((all - before - cost).abs() < 1e-9, "{manner:?}: {before} to {all}: {data}");
        assert_eq!(cost > 0.0, is_paid, "{manner:?}: {data}");
        assert!(cost <= most, "{manner:?} cost {cost}, at most {most} was said");
        before = all;
        let sent = number(&home, "SELECT input_tokens FROM summary_attempts ORDER BY seq DESC LIMIT 1");
        assert!(sent > 100, "{manner:?}: {sent}");
    }
    // A request that did not reach the provider is neither charged nor reported.
    let file = home.path().join("home/.config/tiro/config.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let nowhere = config.replace(&mock.endpoint().replace("127.0.0.1", "0.0.0.0"), "http://0.0.0.0:1/v1");
    assert_ne!(nowhere, config);
    std::fs::write(&file, nowhere).unwrap();
    let data = summarise(&mut server);
    assert!(
        notices(&data).contains("could not be reached") && !notices(&data).contains("sent up to"),
        "{data}"
    );
    assert_eq!((&data["cost_usd"], spent(&home, &project)), (&json!(0.0), before), "{data}");
    // If the configuration becomes invalid while the server runs, that must be reported too.
    std::fs::write(&file, "[providers\n").unwrap();
    let data = summarise(&mut server);
    assert!(
        notices(&data).contains("no model was asked") && notices(&data).contains("config.toml"),
        "{data}"
    );
    server.end();
}

#[test]
fn a_notice_keeps_the_hint() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    let mut server = home.serve(&project);
    talk(&mut server);
    let data = summarise(&mut server);
    assert!(
        notices(&data).contains("LAB_API_KEY") && notices(&data).contains("set it where Tiro is started"),
        "{data}"
    );
    server.end();
}

#[test]
fn an_endless_answer_does_not_exceed_the_deadline() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    let mut server = serve(&home, &project);
    talk(&mut server);
    mock.behaves(&Manner::SaysLate(GOOD.replace('.', ",").repeat(12_000), Duration::from_millis(4600)));
    let began = Instant::now();
    let data = summarise(&mut server);
    let took = began.elapsed();
    assert_eq!(data["provider"], "extractive", "{data}");
    assert!(took <= DEADLINE + DEADLINE / 10 + BUSY, "{took:?}");
    server.end();
}

#[test]
fn a_session_forgotten_while_it_is_summarised_leaves_nothing() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    let (mut one, mut other) = (serve(&home, &project), serve(&home, &project));
    talk(&mut one);
    mock.behaves(&Manner::SaysLate(GOOD.into(), Duration::from_millis(2500)));
    one.ask("tools/call", json!({"name": "summarize_conversation", "arguments": {"session_id": "s"}}));
    let began = Instant::now();
    while mock.requests() == 0 && began.elapsed() < BUSY {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(mock.requests(), 1);
    other.data("forget_context", json!({"session_id": "s", "purge": true}));
    let answer = one.receive()["result"].take();
    assert!(answer["isError"] == true && answer.to_string().contains("forgotten while"), "{answer}");
    one.end();
    other.end();
    for table in ["summaries", "conversations", "summary_queue", "context_cache"] {
        assert_eq!(number(&home, &format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    assert_eq!(home.files_with("It was settled"), Vec::<PathBuf>::new());
}

#[test]
fn an_ended_session_is_summarised_only_by_the_configured_model() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    mock.behaves(&Manner::Says(GOOD.into()));
    let lone = Home::new();
    for (home, waits) in [(&lone, 0), (&home, 1)] {
        let project = home.repo("project").path;
        let mut server = home.serve(&project);
        talk(&mut server);
        server.end();
        // Without an embedding model, the idle work ends with this.
        home.run(&project, &["index"]);
        assert_eq!(number(home, "SELECT count(*) FROM conversations"), 1);
        assert_eq!(number(home, "SELECT count(*) FROM summary_queue"), waits);
    }
    assert_eq!(mock.requests(), 0, "only an idle server asks");
    let mut server = serve(&home, &project);
    assert!(server.search("settled").is_empty());
    let began = Instant::now();
    while number(&home, "SELECT count(*) FROM summary_queue WHERE state = 'completed'") == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.end());
        std::thread::sleep(Duration::from_millis(200));
    }
    let hits = server.search("settled");
    assert_eq!((hits.len(), &hits[0]["kind"]), (1, &json!("conversation")), "{hits:?}");
    assert_eq!(mock.requests(), 1);
    assert_eq!(number(&home, "SELECT count(*) FROM memories WHERE kind = 'conversation'"), 1);
}

#[test]
fn a_false_summary_is_refused_and_a_long_one_is_cut_after_a_sentence() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    let mut server = serve(&home, &project);
    talk(&mut server);
    for (bad, why) in [
        (GOOD.replace("3.50", "3.51"), "has a number or a date"),
        (GOOD.replace("Mira", "Greg"), "has a name"),
        (GOOD.replace("was settled", "was not settled").replace("fails", "never fails"), "negates"),
        (
            "SQLite, Postgres, server, Parquet, Windows, release, Mira, paths, Friday.".into(),
            "the model's answer is",
        ),
        (
            "Thanks, sounds good! The garden with the roses and tulips looks lovely.".into(),
            "is a copy of one message",
        ),
        (GOOD[..GOOD.len() / 2].to_owned(), "ends within a sentence"),
    ] {
        mock.behaves(&Manner::Says(bad.clone()));
        let data = summarise(&mut server);
        assert!(data["provider"] == "extractive" && notices(&data).contains(why), "{bad}: {data}");
        let asked = mock.seen.lock().unwrap().last().unwrap().1.to_string();
        assert!(asked.contains("Write the summary again"), "{asked}");
    }
    // The summary may have 120 tokens: GOOD has some 50.
    mock.behaves(&Manner::Says(format!("{GOOD} {GOOD} {GOOD}")));
    let asked = json!({"session_id": "s", "max_tokens": 280});
    let data = server.data("summarize_conversation", asked);
    assert_eq!(data["provider"], "mock", "{data}");
    let text = data["summary"].as_str().unwrap();
    assert!(text.starts_with(GOOD) && text.ends_with('.') && text.len() < 3 * GOOD.len(), "{text}");
    assert!(notices(&data).contains("was cut after a sentence"), "{data}");
    assert!(data["quality"].as_f64().unwrap() >= 0.8, "{data}");
    let french = "La session a décidé d'utiliser SQLite 3.50 à la place de Postgres. L'import de Parquet échoue sous Windows \
        ARM depuis la version 0.9.2, et Mira convertit les chemins.";
    mock.behaves(&Manner::Says(french.into()));
    let data = server.data("summarize_conversation", json!({"session_id": "s", "max_tokens": 300}));
    assert_eq!((&data["provider"], &data["summary"]), (&json!("mock"), &json!(french)), "{data}");
    assert!(notices(&data).contains("only its names and numbers were checked"), "{data}");
}

#[test]
fn in_the_background_a_slow_model_of_the_user_gets_the_time_that_it_needs() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    let mut command = home.tiro(&project, &["serve", "--set", "summary.local_deadline=1"]);
    command.env("LAB_API_KEY", KEY);
    let mut server = Server::start(command);
    talk(&mut server);
    mock.behaves(&Manner::SaysLate(GOOD.into(), Duration::from_millis(2500)));
    let data = summarise(&mut server);
    assert!(data["provider"] == "extractive" && notices(&data).contains("did not answer within"), "{data}");
    let connection = rusqlite::Connection::open(home.store()).unwrap();
    assert_eq!(connection.execute("UPDATE summary_queue SET not_before = 0", []).unwrap(), 1);
    let began = Instant::now();
    while number(&home, "SELECT count(*) FROM summaries WHERE provider = 'mock'") == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.end());
        std::thread::sleep(Duration::from_millis(200));
    }
    let took = number(&home, "SELECT took_ms FROM summary_attempts WHERE error IS NULL");
    assert!(took >= 2500, "{took}");
    assert_eq!(summarise(&mut server)["provider"], "mock");
}

#[test]
fn a_fallback_that_cannot_be_asked_reserves_no_time() {
    let mock = Mock::start();
    let (home, project) = begin(&mock);
    let file = home.path().join("home/.config/tiro/config.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    let spare = "[providers.spare]\nservice = 'openai-compatible'\nendpoint = 'http://127.0.0.1:9/v1'\nmodel = 'm'\n\
        key_variable = 'SPARE_API_KEY'\nuses = ['summarize']\nprice = { input = 1, output = 1 }\n";
    std::fs::write(&file, format!("fallback_provider = 'spare'\n{config}{spare}")).unwrap();
    let mut server = serve(&home, &project);
    talk(&mut server);
    // The model needs more than half of the five seconds. The fallback has no key.
    mock.behaves(&Manner::SaysLate(GOOD.into(), Duration::from_millis(3200)));
    let data = summarise(&mut server);
    assert_eq!((&data["provider"], mock.requests()), (&json!("mock"), 1), "{data}");
}
