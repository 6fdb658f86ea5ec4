//! Tests clients against a service of our own. It speaks six dialects, and can also misbehave.

mod behaviour;
mod conversations;
mod dialects;
mod live;
mod streams;

use crate::testing::Step;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::client::Keys;
use super::request::TOKENS_OF_IMAGE;
use super::*;
use tiro_base::error::Result;

const KEY: &str = "sk-numbat_key";

/// Long enough for tests that don't measure time.
const AMPLE: Duration = Duration::from_secs(30);

fn provider(service: Service, endpoint: &str) -> Provider {
    Provider {
        name: "mock".into(),
        service,
        endpoint: Some(endpoint.to_owned()),
        model: "some-model".into(),
        key: Key::Variable("MOCK_KEY".into()),
        max_output: None,
        temperature: None,
        window: None,
        price: None,
    }
}

fn client(service: Service, endpoint: &str) -> Client {
    let keys: Keys = Arc::new(|key| {
        assert_eq!(key, &Key::Variable("MOCK_KEY".into()));
        Ok(Some(KEY.to_owned()))
    });
    Client::new(provider(service, endpoint), keys).unwrap().pause(Duration::from_millis(10))
}

fn question() -> Request {
    Request {
        system: "You count wombats.".into(),
        turns: vec![Turn::user("How many wombats are there?")],
        max_output: 300,
        temperature: Some(0.3),
        ..Request::default()
    }
}

/// Returns an answer in OpenAI's dialect.
fn completion(text: &str) -> Step {
    let body = json!({
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3},
    });
    Step::Answer(200, "Content-Type: application/json\r\n", body.to_string())
}
