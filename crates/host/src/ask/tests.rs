//! Asks a service of our own through everything that watches over requests: redactor, limits, ledger and bill.

use crate::caller::WritingCaller;
use std::sync::Arc;

use std::path::Path;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::config::{Config, Origin};
use tiro_llm::testing::{Mock, Step};
use tiro_llm::{Function, Key, Price, Service, Turn};
use tiro_sqlite::SqliteFiles;
use tiro_store::{Purpose, SentFilter};

const AMPLE: Duration = Duration::from_secs(30);

/// A secret of a form that the redactor knows. It is put together here, so that no scanner takes it for a real one.
fn secret() -> String {
    ["ghp_", "R7kQ2mXw9LbT4vYc8NzH", "3sPd6FgJ1aUe5tKo"].concat()
}

fn configured(mock: &Mock) -> Configured {
    let provider = Provider {
        name: "lab".into(),
        service: Service::OpenaiCompatible,
        endpoint: Some(mock.endpoint.clone()),
        model: "m".into(),
        key: Key::None,
        max_output: None,
        temperature: None,
        window: None,
        price: Some(Price { input: 1.0, output: 2.0 }),
    };
    Configured {
        provider,
        uses: Vec::new(),
        memory: false,
        limits: Default::default(),
        origin: Origin::File,
        place: None,
    }
}

fn matter() -> Matter {
    Matter::of(
        Purpose::Test,
        Sources { memories: vec!["m1".into()], files: vec!["src/a.rs".into(), secret()] },
    )
}

fn engine(folder: &Path) -> (Engine, WritingCaller) {
    let config = Config::of_test(folder);
    let caller = WritingCaller::of_process(&config);
    (Engine::new(config.clone(), Arc::new(SqliteFiles::new(config.data_dir))), caller)
}

fn stream(delta: &Value, reason: &str) -> Step {
    let events = [
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 200, "completion_tokens": 50}}),
    ];
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Step::Answer(200, "Content-Type: text/event-stream\r\n", format!("{events}data: [DONE]\n\n"))
}

#[tokio::test]
async fn rounds_of_functions_add_to_one_bill_and_no_text_of_them_has_a_secret() {
    let secret = secret();
    let arguments = json!({"at": format!("burrow {secret}")}).to_string();
    let call = json!({"index": 0, "id": "c1", "function": {"name": "look", "arguments": arguments}});
    let said = json!({"content": format!("I look for {secret}. "), "tool_calls": [call]});
    let mock =
        Mock::start(vec![stream(&said, "tool_calls"), stream(&json!({"content": "Seven."}), "stop")]).await;
    let folder = tempfile::tempdir().unwrap();
    let (engine, caller) = engine(folder.path());
    let (options, configured, bill) = (Options::default(), configured(&mock), Bill::default());
    let parameters =
        json!({"type": "object", "properties": {"at": {"type": "string", "description": secret}}});
    let mut request = Request {
        system: format!("You count wombats with {secret}."),
        turns: vec![Turn::user(format!("How many wombats are at {secret}?"))],
        functions: vec![Function {
            name: "look".into(),
            description: format!("Looks. {secret}"),
            parameters,
        }],
        schema: Some(("count".into(), json!({"type": "object", "description": secret}))),
        max_output: 100,
        ..Request::default()
    };
    let text = Mutex::new(String::new());
    let on_text = |piece: &str| text.lock().unwrap().push_str(piece);
    let ask = async |request: &Request| {
        ask_one(&engine, &caller, &options, &configured, &matter(), request, AMPLE, &bill, Some(&on_text))
            .await
            .unwrap()
    };
    let first = ask(&request).await;
    request.turns.push(Turn::answer(&first.reply));
    request.turns.push(Turn::Result {
        call: first.reply.calls[0].id.clone(),
        text: format!("Seven wombats and {secret}."),
        is_error: false,
    });
    let second = ask(&request).await;

    assert_eq!((first.reply.calls.len(), second.reply.text.as_str()), (1, "Seven."));
    assert_eq!(*text.lock().unwrap(), format!("I look for {secret}. Seven."));
    let seen = mock.seen();
    let sent: Vec<String> = seen.iter().map(|seen| seen.body.to_string()).collect();
    assert!(sent.iter().all(|body| !body.contains(&secret)), "{sent:?}");
    for kept in ["You count wombats with", "at ", "I look for", "burrow", "Seven wombats and", "Looks."] {
        assert!(sent[1].contains(kept), "{kept} in {}", sent[1]);
    }
    // 200 tokens sent and 50 received cost 300 millionths, twice.
    assert_eq!((bill.total(), bill.tokens(), bill.disclosures().len()), (Money(600), 400, 2));
    let registry = &engine.begin_installation().await.unwrap().registry;
    let spent: Vec<(i64, u64)> =
        registry.spending().await.unwrap().iter().map(|row| (row.calls, row.spent.0)).collect();
    assert_eq!(spent, [(2, 600)]);
    // Both requests are listed with the names of their sources, and without the text or the secret.
    let (sent, all) = registry.sent(SentFilter { limit: 9, ..SentFilter::default() }).await.unwrap();
    assert_eq!((sent.len(), all), (2, 2));
    let newest = &sent[0];
    assert_eq!((newest.tokens, newest.received, newest.answered), (200, 50, Some(true)));
    // The second request has secrets in these: prompt, question, function with its schema, schema, answer with its
    // call, and result.
    assert!(newest.secrets > sent[1].secrets && sent[1].secrets >= 5, "{sent:?}");
    assert_eq!(newest.sources.as_ref().unwrap().files, ["src/a.rs", "[REDACTED:github-token:000]"]);
    assert!(!format!("{sent:?}").contains(&secret) && !format!("{sent:?}").contains("wombat"));
}

#[tokio::test]
async fn each_round_is_held_to_the_limits_by_itself() {
    let mock = Mock::start(vec![stream(&json!({"content": "Seven."}), "stop")]).await;
    let folder = tempfile::tempdir().unwrap();
    let (engine, caller) = engine(folder.path());
    let options = Options { limit_call: Some(Money(600)), ..Options::default() };
    let (configured, bill) = (configured(&mock), Bill::default());
    let mut request = Request { turns: vec![Turn::user("How many?")], max_output: 100, ..Request::default() };
    let ask = async |request: &Request| {
        ask_one(&engine, &caller, &options, &configured, &matter(), request, AMPLE, &bill, Some(&|_| {}))
            .await
    };
    let first = ask(&request).await.unwrap();
    let spent = bill.total();
    request.turns.push(Turn::answer(&first.reply));
    request.turns.push(Turn::user("wombat ".repeat(1_000)));
    let error = ask(&request).await.unwrap_err();
    assert_eq!((error.kind(), mock.seen().len()), (Kind::Limit, 1), "{error}");
    assert_eq!(bill.total(), spent);
}

#[tokio::test]
async fn dropping_a_round_ends_its_request_and_leaves_its_cost_reserved() {
    let mock = Mock::start(vec![Step::Drip]).await;
    let folder = tempfile::tempdir().unwrap();
    let (engine, caller) = engine(folder.path());
    let (options, configured, bill) = (Options::default(), configured(&mock), Bill::default());
    let request = Request { turns: vec![Turn::user("How many?")], max_output: 100, ..Request::default() };
    let matter = matter();
    let asking =
        ask_one(&engine, &caller, &options, &configured, &matter, &request, AMPLE, &bill, Some(&|_| {}));
    tokio::select! {
        answered = asking => panic!("{answered:?}"),
        () = mock.asked.notified() => {}
    }
    tokio::time::timeout(Duration::from_secs(2), mock.left.notified())
        .await
        .expect("the connection stayed open");
    assert!(bill.total().0 >= 200 && bill.disclosures().len() == 1, "{bill:?}");
}
