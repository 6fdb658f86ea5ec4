//! Asks running servers, which are other implementations of the dialects. This is run by hand, and by
//! `tests/clients/aimock.sh` if Cargo is installed.

use serde_json::json;

use super::*;

/// Asks the servers that `TIRO_LIVE` lists: `service endpoint model key` each, separated by commas.
#[tokio::test]
#[ignore = "needs servers, named in TIRO_LIVE"]
async fn a_running_server_answers() {
    #[expect(clippy::disallowed_methods, reason = "no setting of the program, but of this test")]
    let servers = std::env::var("TIRO_LIVE").expect("TIRO_LIVE names servers");
    for server in servers.split(',') {
        let [service, endpoint, model, key] =
            server.split_whitespace().collect::<Vec<_>>().try_into().unwrap();
        let provider =
            Provider { model: model.into(), ..provider(Service::parse(service).unwrap(), endpoint) };
        let key = key.to_owned();
        let client = Client::new(provider, Arc::new(move |_| Ok(Some(key.clone())))).unwrap();
        let whole = client.ask(&question(), AMPLE, None).await.unwrap();
        assert!(whole.usage.input > 0 && whole.usage.output > 0, "{server}: {whole:?}");
        let said = std::sync::Mutex::new(String::new());
        let on_text = |text: &str| said.lock().unwrap().push_str(text);
        let streamed = client.ask(&question(), AMPLE, Some(&on_text)).await.unwrap();
        assert_eq!(streamed.text, *said.lock().unwrap(), "{server}");
        let called = client.ask(&with_function(), AMPLE, None).await.unwrap();
        eprintln!("{server}\n  {whole:?}\n  {streamed:?}\n  {called:?}");
    }
}

fn with_function() -> Request {
    let look = Function {
        name: "look".into(),
        description: "Looks for wombats.".into(),
        parameters: json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}),
    };
    Request { functions: vec![look], ..question() }
}
