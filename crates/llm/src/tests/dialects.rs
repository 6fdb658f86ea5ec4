//! Tests the normal answers of each service, whole and in pieces: text, a call and numbers of tokens.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::testing::{Mock, Step};

/// A dialect: its path, the header of its key, and the same answer whole and in pieces.
struct Dialect {
    service: Service,
    path: &'static str,
    stream_path: &'static str,
    key: &'static str,
    answer: Value,
    stream: String,
}

fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Returns events that repeat their type outside the data.
fn named_sse(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

fn openai(service: Service) -> Dialect {
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60}});
    let call = json!({"index": 0, "id": "c1", "type": "function",
        "function": {"name": "look", "arguments": "{\"at\":\"burrow\"}"}});
    let delta = |delta: Value, reason: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    Dialect {
        service,
        path: "/v1/chat/completions",
        stream_path: "/v1/chat/completions",
        key: "authorization: Bearer sk-numbat_key",
        answer: json!({
            "choices": [{"index": 0, "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": "Seven wombats.", "tool_calls": [call]}}],
            "usage": usage,
        }),
        stream: sse(&[
            delta(json!({"role": "assistant", "content": "Seven "}), Value::Null),
            delta(json!({"content": "wombats."}), Value::Null),
            delta(json!({"tool_calls": [call]}), Value::Null),
            delta(json!({}), json!("tool_calls")),
            json!({"choices": [], "usage": usage}),
        ]) + "data: [DONE]\n\n",
    }
}

fn responses() -> Dialect {
    let call = json!({"type": "function_call", "id": "f1", "call_id": "c1", "name": "look",
        "arguments": "{\"at\":\"burrow\"}", "status": "completed"});
    let answer = json!({
        "id": "r1", "object": "response", "model": "some-model", "status": "completed",
        "output": [
            {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Seven wombats.", "annotations": []}]},
            call,
        ],
        "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120,
            "input_tokens_details": {"cached_tokens": 60}, "output_tokens_details": {"reasoning_tokens": 0}},
    });
    let text = |text: &str| {
        json!({"type": "response.output_text.delta", "item_id": "m1", "output_index": 0,
        "content_index": 0, "delta": text})
    };
    let mut begun = call.clone();
    begun["arguments"] = json!("");
    Dialect {
        service: Service::OpenaiResponses,
        path: "/v1/responses",
        stream_path: "/v1/responses",
        key: "authorization: Bearer sk-numbat_key",
        stream: named_sse(&[
            text("Seven "),
            text("wombats."),
            json!({"type": "response.output_item.added", "output_index": 1, "item": begun}),
            json!({"type": "response.function_call_arguments.delta", "item_id": "f1", "output_index": 1,
                "delta": "{\"at\":\"burrow\"}"}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": call}),
            json!({"type": "response.completed", "response": answer}),
        ]),
        answer,
    }
}

fn anthropic() -> Dialect {
    let usage = json!({"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 20});
    Dialect {
        service: Service::Anthropic,
        path: "/v1/messages",
        stream_path: "/v1/messages",
        key: "x-api-key: sk-numbat_key",
        answer: json!({
            "id": "m1", "type": "message", "role": "assistant", "model": "some-model", "stop_reason": "tool_use",
            "content": [{"type": "text", "text": "Seven wombats."},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "burrow"}}],
            "usage": usage,
        }),
        stream: named_sse(&[
            json!({"type": "message_start", "message": {"id": "m1", "type": "message", "role": "assistant",
                "model": "some-model", "content": [], "usage": {"input_tokens": 40, "cache_read_input_tokens": 60,
                "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Seven "}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "wombats."}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "content_block_start", "index": 1,
                "content_block": {"type": "tool_use", "id": "c1", "name": "look", "input": {}}}),
            json!({"type": "content_block_delta", "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": "{\"at\":\"burrow\"}"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
            json!({"type": "message_stop"}),
        ]),
    }
}

fn gemini() -> Dialect {
    let usage = json!({"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 20,
        "totalTokenCount": 120});
    let parts = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}}]});
    let call = json!({"functionCall": {"name": "look", "args": {"at": "burrow"}}});
    let mut answer = parts(json!([{"text": "Seven wombats."}, call]));
    answer["candidates"][0]["finishReason"] = json!("STOP");
    answer["usageMetadata"] = usage.clone();
    let mut end = parts(json!([call]));
    end["candidates"][0]["finishReason"] = json!("STOP");
    end["usageMetadata"] = usage;
    Dialect {
        service: Service::Gemini,
        path: "/v1beta/models/some-model:generateContent",
        stream_path: "/v1beta/models/some-model:streamGenerateContent?alt=sse",
        key: "x-goog-api-key: sk-numbat_key",
        answer,
        stream: sse(&[parts(json!([{"text": "Seven "}])), parts(json!([{"text": "wombats."}])), end]),
    }
}

fn ollama() -> Dialect {
    let call = json!({"function": {"name": "look", "arguments": {"at": "burrow"}}});
    let end = |message: Value| {
        json!({"model": "some-model", "message": message, "done": true, "done_reason": "stop",
            "prompt_eval_count": 100, "prompt_eval_cached_count": 60, "eval_count": 20})
    };
    let piece = |text: &str| json!({"model": "some-model", "message": {"role": "assistant", "content": text}, "done": false});
    let lines = [
        piece("Seven "),
        piece("wombats."),
        json!({"model": "some-model", "message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": false}),
        end(json!({"role": "assistant", "content": ""})),
    ];
    Dialect {
        service: Service::Ollama,
        path: "/api/chat",
        stream_path: "/api/chat",
        key: "authorization: Bearer sk-numbat_key",
        answer: end(json!({"role": "assistant", "content": "Seven wombats.", "tool_calls": [call]})),
        stream: lines.iter().map(|line| format!("{line}\n")).collect(),
    }
}

fn dialects() -> [Dialect; 6] {
    [openai(Service::Openai), openai(Service::OpenaiCompatible), responses(), anthropic(), gemini(), ollama()]
}

fn with_all_there_is() -> Request {
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"],
        "additionalProperties": false});
    Request {
        turns: vec![
            Turn::user("Where did you look?"),
            Turn::Assistant {
                text: "In the burrow.".into(),
                calls: vec![Call {
                    id: "c0".into(),
                    name: "look".into(),
                    arguments: json!({"at": "entrance"}),
                }],
                kept: None,
            },
            Turn::Result { call: "c0".into(), text: "Two wombats at the entrance.".into(), is_error: false },
        ],
        functions: vec![Function {
            name: "look".into(),
            description: "Looks for wombats.".into(),
            parameters: schema.clone(),
        }],
        schema: Some(("count".into(), schema)),
        ..question()
    }
}

#[tokio::test]
async fn every_service_answers_with_text_calls_and_tokens() {
    for dialect in dialects() {
        let service = dialect.service;
        let answer = Step::Answer(200, "Content-Type: application/json\r\n", dialect.answer.to_string());
        let mock = Mock::start(vec![answer]).await;
        let reply = client(service, &mock.endpoint).ask(&with_all_there_is(), AMPLE, None).await.unwrap();
        check(service, &reply);

        let [seen] = mock.seen().try_into().unwrap();
        assert_eq!(seen.path, dialect.path, "{service:?}");
        assert!(seen.head.contains(dialect.key), "{service:?}: {}", seen.head);
        assert_eq!(seen.head.matches(KEY).count(), 1, "{service:?}: {}", seen.head);
        let body = seen.body.to_string();
        for sent in [
            "You count wombats.",
            "Where did you look?",
            "entrance",
            "Two wombats at the entrance.",
            "Looks for wombats.",
        ] {
            assert!(body.contains(sent), "{service:?}: no {sent} in {body}");
        }
        assert!(body.contains("300") && body.contains("0.3"), "{service:?}: no limits in {body}");
        // The schema appears in the parameters of the function, and as the form of the answer.
        // Ollama can't do both, so there it is in the system prompt.
        let body = body.replace('\\', "");
        assert!(body.matches(r#""required":["at"]"#).count() == 2, "{service:?}: no schema in {body}");
    }
}

#[tokio::test]
async fn every_service_streams_the_same() {
    for dialect in dialects() {
        let service = dialect.service;
        let kind = if service == Service::Ollama { "application/x-ndjson" } else { "text/event-stream" };
        let headers: &'static str = format!("Content-Type: {kind}\r\n").leak();
        let mock = Mock::start(vec![Step::Answer(200, headers, dialect.stream.clone())]).await;
        let pieces = Mutex::new(Vec::new());
        let on_text = |text: &str| pieces.lock().unwrap().push(text.to_owned());
        let reply =
            client(service, &mock.endpoint).ask(&with_all_there_is(), AMPLE, Some(&on_text)).await.unwrap();
        assert_eq!(*pieces.lock().unwrap(), ["Seven ", "wombats."], "{service:?}");
        check(service, &reply);
        assert_eq!(mock.seen()[0].path, dialect.stream_path, "{service:?}");
    }
}

fn check(service: Service, reply: &Reply) {
    assert_eq!(reply.text, "Seven wombats.", "{service:?}");
    let [call] = &reply.calls[..] else { panic!("{service:?}: {reply:?}") };
    assert_eq!((call.name.as_str(), &call.arguments), ("look", &json!({"at": "burrow"})), "{service:?}");
    assert!(!call.id.is_empty() && !reply.is_cut, "{service:?}: {reply:?}");
    let expected = Usage { input: 100, cached: 60, written: 0, output: 20, is_estimate: false };
    assert_eq!((reply.usage, reply.attempts), (expected, 1), "{service:?}");
}

#[tokio::test]
async fn a_model_keeps_its_name_and_the_service_keeps_nothing() {
    for (service, name) in
        [(Service::OpenaiCompatible, "qwen3-max"), (Service::OpenaiResponses, "some-model-high")]
    {
        let dialect = dialects().into_iter().find(|dialect| dialect.service == service).unwrap();
        let mock = Mock::start(vec![Step::Answer(200, "", dialect.answer.to_string())]).await;
        let provider = Provider { model: name.into(), ..provider(service, &mock.endpoint) };
        let client = Client::new(provider, Arc::new(|_| Ok(None))).unwrap();
        client.ask(&question(), AMPLE, None).await.unwrap();
        let [seen] = mock.seen().try_into().unwrap();
        assert_eq!(seen.body["model"], name);
        assert!(!seen.body.to_string().contains("effort"), "{}", seen.body);
        assert!(!seen.head.to_ascii_lowercase().contains("authorization"), "{}", seen.head);
        if service == Service::OpenaiResponses {
            assert_eq!(seen.body["store"], false);
        }
    }
}

#[tokio::test]
async fn a_temperature_is_sent_only_to_services_that_accept_it() {
    for (model, own, expected) in
        [("gpt-4.1", None, json!(0.3)), ("gpt-4.1", Some(0.9), json!(0.9)), ("o3", Some(0.9), Value::Null)]
    {
        let mock = Mock::start(vec![completion("Seven.")]).await;
        let provider =
            Provider { model: model.into(), temperature: own, ..provider(Service::Openai, &mock.endpoint) };
        Client::new(provider, Arc::new(|_| Ok(None))).unwrap().ask(&question(), AMPLE, None).await.unwrap();
        assert_eq!(mock.seen()[0].body["temperature"], expected, "{model}");
    }
}

#[tokio::test]
async fn a_model_that_nobody_knows_gets_no_temperature_that_nobody_set() {
    for (service, model, usual, expected) in [
        (Service::Openai, "gpt-4.1", Some(0.7), json!(0.7)),
        (Service::Openai, "gpt-99-preview", Some(0.7), Value::Null),
        (Service::OpenaiCompatible, "gpt-4.1", Some(0.7), Value::Null),
    ] {
        let mock = Mock::start(vec![completion("Seven.")]).await;
        let provider = Provider { model: model.into(), ..provider(service, &mock.endpoint) };
        let request = Request { temperature: None, usual_temperature: usual, ..question() };
        Client::new(provider, Arc::new(|_| Ok(None))).unwrap().ask(&request, AMPLE, None).await.unwrap();
        assert_eq!(mock.seen()[0].body["temperature"], expected, "{service:?} {model}");
    }
}

#[tokio::test]
async fn a_parameter_that_a_model_refuses_is_left_out_once_and_named() {
    let refusal = |error: Value| Step::Answer(400, "", json!({"error": error}).to_string());
    let temperature =
        json!({"message": "no such value", "param": "temperature", "code": "unsupported_value"});
    let effort = json!({"message": "Unknown parameter: 'reasoning_effort'."});
    let asked = Request { effort: Some(Effort::High), ..question() };

    let mock = Mock::start(vec![refusal(temperature.clone()), refusal(effort), completion("Seven.")]).await;
    let client = client(Service::OpenaiCompatible, &mock.endpoint);
    let reply = client.ask(&asked, AMPLE, None).await.unwrap();
    assert_eq!((reply.left_out, reply.attempts), (vec!["temperature", "reasoning_effort"], 3));
    let sent = |nth: usize, name: &str| !mock.seen()[nth].body[name].is_null();
    assert!(sent(0, "temperature") && sent(1, "reasoning_effort") && sent(2, "max_tokens"));
    assert!(!sent(1, "temperature") && !sent(2, "temperature") && !sent(2, "reasoning_effort"));

    // A service that keeps refusing a parameter that is no longer sent is not asked forever.
    let mock = Mock::start(vec![refusal(temperature)]).await;
    let error = self::client(Service::Openai, &mock.endpoint).ask(&asked, AMPLE, None).await.unwrap_err();
    assert!(error.to_string().contains("it refuses the parameter `temperature`"), "{error}");
    assert_eq!(mock.seen().len(), 2);

    // A message that has the word, but not as a parameter, names no parameter.
    let mock =
        Mock::start(vec![refusal(json!({"message": "The input is too long for a reasoning model."}))]).await;
    let error = self::client(Service::Openai, &mock.endpoint).ask(&asked, AMPLE, None).await.unwrap_err();
    assert!(!error.to_string().contains("parameter") && mock.seen().len() == 1, "{error}");

    // A parameter that a request can't do without is not left out, and the words of an error are not repeated.
    let mock = Mock::start(vec![refusal(json!({"message": "messages: wombats", "param": "messages"}))]).await;
    let error = self::client(Service::Openai, &mock.endpoint).ask(&asked, AMPLE, None).await.unwrap_err();
    assert!(!error.to_string().contains("messages") && mock.seen().len() == 1, "{error}");
}

#[tokio::test]
async fn an_effort_that_is_not_sent_is_told() {
    let asked = Request { effort: Some(Effort::High), ..question() };
    for (model, expected) in [("gpt-4.1", vec!["reasoning_effort"]), ("gpt-5.1", vec![]), ("gpt-99", vec![])]
    {
        let mock = Mock::start(vec![completion("Seven.")]).await;
        let provider = Provider { model: model.into(), ..provider(Service::Openai, &mock.endpoint) };
        let client = Client::new(provider, Arc::new(|_| Ok(None))).unwrap();
        assert_eq!(client.ask(&asked, AMPLE, None).await.unwrap().left_out, expected, "{model}");
    }
}

#[tokio::test]
async fn thoughts_in_the_text_are_not_the_answer() {
    let delta = |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    let events = ["<th", "ink>Six? ", "No.</think>", "\n\n", "Sev", "en."].map(delta);
    let stream = sse(&events) + "data: [DONE]\n\n";
    let streamed = Step::Answer(200, "Content-Type: text/event-stream\r\n", stream);
    let mock = Mock::start(vec![completion("<think>Six? No.</think>\n\nSeven."), streamed]).await;
    let client = client(Service::OpenaiCompatible, &mock.endpoint);
    assert_eq!(client.ask(&question(), AMPLE, None).await.unwrap().text, "Seven.");
    let shown = Mutex::new(Vec::new());
    let on_text = |text: &str| shown.lock().unwrap().push(text.to_owned());
    // The stream ends without a reason, which is no fault either.
    assert_eq!(client.ask(&question(), AMPLE, Some(&on_text)).await.unwrap().text, "Seven.");
    assert_eq!(*shown.lock().unwrap(), ["Sev", "en."]);
}

#[tokio::test]
async fn ollama_gets_a_window_that_fits_the_request() {
    let mock = Mock::start(vec![Step::Answer(200, "", ollama().answer.to_string())]).await;
    let long = Request { turns: vec![Turn::user("wombat ".repeat(5_000))], ..question() };
    for (window, request, expected) in
        [(None, question(), 4_096), (None, long.clone(), 16_384), (Some(8_192), long, 8_192)]
    {
        let provider = Provider { window, ..provider(Service::Ollama, &mock.endpoint) };
        let client = Client::new(provider, Arc::new(|_| Ok(None))).unwrap();
        client.ask(&request, AMPLE, None).await.unwrap();
        assert_eq!(mock.seen().last().unwrap().body["options"]["num_ctx"], expected);
    }
}

#[tokio::test]
async fn unreported_tokens_are_estimated_from_above() {
    let body = json!({"choices": [{"message": {"content": "Seven wombats."}, "finish_reason": "length"}]});
    let mock = Mock::start(vec![Step::Answer(200, "", body.to_string())]).await;
    let request = with_all_there_is();
    let reply = client(Service::Openai, &mock.endpoint).ask(&request, AMPLE, None).await.unwrap();
    let counted = |text: &str| tiro_text::tokens::count(text) as u64;
    assert!(reply.usage.is_estimate && reply.is_cut);
    assert!(reply.usage.input > request.texts().map(|text| counted(&text)).sum());
    assert!(reply.usage.output >= counted("Seven wombats.") && reply.usage.output < 100);
}
