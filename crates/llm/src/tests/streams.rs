//! Tests the reading of answers that come in pieces: wherever they are cut, and whatever is wrong with them.

use std::fmt::Write as _;
use std::sync::Mutex;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::dialects::{Asked, Dialect, Misread};
use super::super::reading::{LARGEST_ANSWER, Reading, Stuck};
use super::super::reply::reply;
use super::*;

/// A stream of a service that thinks, says something with letters of several bytes, and calls two functions.
struct Stream {
    provider: Provider,
    events: Vec<Value>,
    /// What it needs back.
    kept: Value,
}

impl Stream {
    fn bytes(&self) -> Vec<u8> {
        let mut stream = String::new();
        for event in &self.events {
            match self.provider.service {
                Service::Ollama => writeln!(stream, "{event}").unwrap(),
                _ => write!(stream, ": ping\nevent: x\ndata: {event}\n\n").unwrap(),
            }
        }
        if matches!(self.provider.service, Service::Openai | Service::OpenaiCompatible) {
            stream += "data: [DONE]\n\n";
        }
        stream.into_bytes()
    }
}

fn streams() -> Vec<Stream> {
    vec![chat(), responses(), anthropic(), gemini(), ollama()]
}

fn of(service: Service) -> Provider {
    provider(service, "http://localhost:8080")
}

fn chat() -> Stream {
    let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let call = |index: u64, id: Value, name: Value, arguments: &str| {
        delta(json!({"tool_calls": [{"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": arguments}}]}))
    };
    Stream {
        provider: of(Service::OpenaiCompatible),
        events: vec![
            delta(json!({"role": "assistant", "content": "", "reasoning_content": "Hm"})),
            delta(json!({"reasoning_content": "m."})),
            delta(json!({"content": "Wömbats "})),
            delta(json!({"content": "🐾 here."})),
            call(0, json!("c1"), json!("look"), ""),
            call(0, Value::Null, Value::Null, "{\"at\":"),
            call(1, json!("c2"), json!("look"), "{\"at\""),
            call(0, Value::Null, Value::Null, "\"bürrow\"}"),
            call(1, Value::Null, Value::Null, ":\"hill\"}"),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 60}}}),
        ],
        kept: json!({"reasoning_content": "Hmm."}),
    }
}

fn responses() -> Stream {
    let thought = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e1"});
    let message = json!({"type": "message", "id": "m", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Wömbats 🐾 here."}]});
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "id": "fc", "call_id": id, "name": "look", "arguments": arguments});
    let (one, two) = (call("c1", "{\"at\":\"bürrow\"}"), call("c2", "{\"at\":\"hill\"}"));
    let text = |delta: &str| json!({"type": "response.output_text.delta", "output_index": 1, "delta": delta});
    let item = |kind: &str, place: u64, item: &Value| json!({"type": format!("response.output_item.{kind}"), "output_index": place, "item": item});
    let piece = |place: u64, delta: &str| json!({"type": "response.function_call_arguments.delta", "output_index": place, "delta": delta});
    let usage =
        json!({"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 60}});
    let without_ids = |item: &Value| {
        let mut item = item.clone();
        item.as_object_mut().unwrap().retain(|name, _| name != "id" && name != "status");
        item
    };
    Stream {
        provider: of(Service::OpenaiResponses),
        events: vec![
            json!({"type": "response.created", "response": {"status": "in_progress"}}),
            item("added", 0, &json!({"type": "reasoning", "id": "rs", "summary": []})),
            item("done", 0, &thought),
            text("Wömbats "),
            text("🐾 here."),
            item("done", 1, &message),
            item("added", 2, &call("c1", "")),
            piece(2, "{\"at\":"),
            item("added", 3, &call("c2", "")),
            piece(2, "\"bürrow\"}"),
            item("done", 2, &one),
            // These pieces are incomplete, but the item is not.
            piece(3, "{\"at\""),
            item("done", 3, &two),
            json!({"type": "response.completed", "response": {"status": "completed", "output": [], "usage": usage}}),
        ],
        kept: [&thought, &message, &one, &two].into_iter().map(without_ids).collect(),
    }
}

fn anthropic() -> Stream {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let json_delta =
        |index: u64, text: &str| delta(index, json!({"type": "input_json_delta", "partial_json": text}));
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {}});
    let filled =
        |id: &str, at: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {"at": at}});
    Stream {
        provider: of(Service::Anthropic),
        events: vec![
            json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 30,
                "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output_tokens": 1}}}),
            json!({"type": "ping"}),
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "Hm"})),
            delta(0, json!({"type": "thinking_delta", "thinking": "m."})),
            delta(0, json!({"type": "signature_delta", "signature": "s1"})),
            stop(0),
            start(1, json!({"type": "text", "text": ""})),
            delta(1, json!({"type": "text_delta", "text": "Wömbats "})),
            delta(1, json!({"type": "text_delta", "text": "🐾 here."})),
            stop(1),
            start(2, call("c1")),
            json_delta(2, ""),
            json_delta(2, "{\"at\":"),
            json_delta(2, "\"bürrow\"}"),
            stop(2),
            start(3, call("c2")),
            json_delta(3, "{\"at\":\"hill\"}"),
            stop(3),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
            json!({"type": "message_stop"}),
        ],
        kept: json!([
            {"type": "thinking", "thinking": "Hmm.", "signature": "s1"},
            {"type": "text", "text": "Wömbats 🐾 here."},
            filled("c1", "bürrow"),
            filled("c2", "hill"),
        ]),
    }
}

fn gemini() -> Stream {
    let parts = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}}]});
    let call = |id: &str, at: &str| json!({"functionCall": {"id": id, "name": "look", "args": {"at": at}}});
    let mut signed = call("c1", "bürrow");
    signed["thoughtSignature"] = json!("s1");
    let mut end = parts(json!([call("c2", "hill")]));
    end["candidates"][0]["finishReason"] = json!("STOP");
    end["usageMetadata"] = json!({"promptTokenCount": 100, "cachedContentTokenCount": 60,
        "candidatesTokenCount": 15, "thoughtsTokenCount": 5});
    Stream {
        provider: of(Service::Gemini),
        events: vec![
            parts(json!([{"text": "Hmm.", "thought": true}])),
            parts(json!([{"text": "Wömbats "}])),
            parts(json!([{"text": "🐾 here."}, signed])),
            end,
        ],
        kept: json!([{"text": "Wömbats 🐾 here."}, signed, call("c2", "hill")]),
    }
}

fn ollama() -> Stream {
    let piece = |message: Value| json!({"message": message, "done": false});
    let call = |id: &str, at: &str| json!({"id": id, "function": {"name": "look", "arguments": {"at": at}}});
    Stream {
        provider: of(Service::Ollama),
        events: vec![
            piece(json!({"role": "assistant", "content": "", "thinking": "Hm"})),
            piece(json!({"role": "assistant", "content": "", "thinking": "m."})),
            piece(json!({"role": "assistant", "content": "Wömbats "})),
            piece(json!({"role": "assistant", "content": "🐾 here.", "tool_calls": [call("c1", "bürrow")]})),
            json!({"message": {"role": "assistant", "content": "", "tool_calls": [call("c2", "hill")]}, "done": true,
                "done_reason": "stop", "prompt_eval_count": 100, "prompt_eval_cached_count": 60, "eval_count": 20}),
        ],
        kept: json!("Hmm."),
    }
}

/// Reads pieces of a stream. Returns the reply, and the text that was passed on.
fn read<'p>(
    provider: &Provider,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (Result<Option<Reply>, Stuck>, String) {
    let request = question();
    let dialect = Dialect::of(provider, &request);
    let asked = Asked::new(provider, &request, true, None);
    let said = Mutex::new(String::new());
    let on_text = |text: &str| said.lock().unwrap().push_str(text);
    let mut reading = Reading::new(dialect.reader(&asked), Some(&on_text));
    let pushed = pieces.into_iter().try_for_each(|piece| reading.push(piece));
    let ended = pushed.and_then(|()| reading.end());
    let reply = ended.map(|ended| {
        ended.map(|(answer, kept)| reply(provider, dialect, &request, answer, kept).unwrap_or_default())
    });
    (reply, said.into_inner().unwrap())
}

fn whole(stream: &Stream) -> Reply {
    let (reply, said) = read(&stream.provider, [&stream.bytes()[..]]);
    let reply = reply.unwrap().unwrap();
    assert_eq!(said, reply.text);
    reply
}

#[test]
fn every_service_streams_text_calls_thoughts_and_tokens() {
    for stream in streams() {
        let service = stream.provider.service;
        let reply = whole(&stream);
        assert_eq!(reply.text, "Wömbats 🐾 here.", "{service:?}");
        let calls: Vec<_> =
            reply.calls.iter().map(|call| (call.id.as_str(), &call.arguments["at"])).collect();
        assert_eq!(calls, [("c1", &json!("bürrow")), ("c2", &json!("hill"))], "{service:?}");
        let written = if service == Service::Anthropic { 10 } else { 0 };
        let expected = Usage { input: 100, cached: 60, written, output: 20, is_estimate: false };
        assert_eq!(reply.usage, expected, "{service:?}");
        assert_eq!(reply.kept.unwrap()["parts"], stream.kept, "{service:?}");
        assert!(!reply.is_cut);
    }
}

#[test]
fn a_stream_is_read_the_same_wherever_it_is_cut() {
    for stream in streams() {
        let bytes = stream.bytes();
        let expected = whole(&stream);
        for cut in 0..=bytes.len() {
            let (reply, said) = read(&stream.provider, [&bytes[..cut], &bytes[cut..]]);
            assert_eq!(reply.unwrap().as_ref(), Some(&expected), "{:?} at {cut}", stream.provider.service);
            assert_eq!(said, expected.text);
        }
        let (reply, _) = read(&stream.provider, bytes.chunks(1));
        assert_eq!(reply.unwrap(), Some(expected));
    }
}

#[test]
fn lines_may_end_as_they_do_on_any_system() {
    for stream in streams() {
        let expected = whole(&stream);
        for end in ["\r\n", "\r"] {
            let bytes = String::from_utf8(stream.bytes()).unwrap().replace('\n', end).into_bytes();
            for pieces in [vec![&bytes[..]], bytes.chunks(1).collect()] {
                let (reply, _) = read(&stream.provider, pieces);
                assert_eq!(reply.unwrap().as_ref(), Some(&expected), "{:?} {end:?}", stream.provider.service);
            }
        }
    }
}

#[test]
fn a_stream_that_ends_early_is_broken_off_unless_everything_has_come() {
    for stream in streams() {
        let bytes = stream.bytes();
        let expected = whole(&stream);
        let mut broken = 0;
        for end in 0..bytes.len() {
            let (reply, said) = read(&stream.provider, [&bytes[..end]]);
            assert!(expected.text.starts_with(&said));
            match reply {
                Ok(Some(reply)) => {
                    assert_eq!((&reply.text, &reply.calls), (&expected.text, &expected.calls), "{end}");
                }
                Ok(None) => broken += 1,
                Err(stuck) => panic!("{:?} at {end}: {stuck:?}", stream.provider.service),
            }
        }
        assert!(broken * 3 > bytes.len() * 2, "{:?}: {broken} of {}", stream.provider.service, bytes.len());
    }
}

#[test]
fn an_error_inside_a_stream_is_reported() {
    let error = json!({"type": "overloaded_error", "message": "wombats"});
    for stream in streams() {
        let event = match stream.provider.service {
            Service::OpenaiResponses => {
                json!({"type": "response.failed", "response": {"status": "failed", "error": error}})
            }
            Service::Anthropic => json!({"type": "error", "error": error}),
            Service::Ollama => json!({"error": "wombats"}),
            _ => json!({"error": error}),
        };
        for place in 0..stream.events.len() {
            let mut events = stream.events.clone();
            events.insert(place, event.clone());
            let broken = Stream { events, provider: stream.provider.clone(), kept: Value::Null };
            let (reply, _) = read(&broken.provider, [&broken.bytes()[..]]);
            assert!(matches!(reply, Err(Stuck::Misread(Misread::Reported(_)))), "{reply:?}");
        }
    }
}

#[test]
fn arguments_that_are_no_json_are_a_text() {
    for (stream, from, to) in [
        (chat(), r#""\"bürrow\"}""#, r#""bürrow""#),
        (responses(), r#"{\"at\":\"bürrow\"}"#, r#"{\"at\":bürrow"#),
        (anthropic(), r#""\"bürrow\"}""#, r#""bürrow""#),
    ] {
        let bytes = String::from_utf8(stream.bytes()).unwrap().replace(from, to);
        let (reply, _) = read(&stream.provider, [bytes.as_bytes()]);
        let reply = reply.unwrap().unwrap();
        assert_eq!(reply.calls[0].arguments, json!("{\"at\":bürrow"), "{:?}", stream.provider.service);
        assert_eq!(reply.calls[1].arguments, json!({"at": "hill"}));
        // In the next request the arguments are an object, as every service demands.
        let request = Request { turns: vec![Turn::answer(&reply)], ..question() };
        let other = of(Service::Ollama);
        let asked = Asked::new(&other, &request, false, None);
        let sent = Dialect::Ollama.post(&asked, "").body;
        let arguments = sent.pointer("/messages/1/tool_calls/0/function/arguments").unwrap();
        assert_eq!(*arguments, json!({"arguments": "{\"at\":bürrow"}));
    }
}

#[test]
fn a_limit_of_tokens_or_a_filter_ends_an_answer() {
    for stream in streams() {
        let text = String::from_utf8(stream.bytes()).unwrap();
        let (reason, cut, filtered) = match stream.provider.service {
            Service::OpenaiResponses => (
                r#""status":"completed","output":[],"usage""#,
                r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[],"usage""#,
                r#""status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[],"usage""#,
            ),
            Service::Anthropic => {
                (r#""stop_reason":"tool_use""#, r#""stop_reason":"max_tokens""#, r#""stop_reason":"refusal""#)
            }
            Service::Gemini => (r#""STOP""#, r#""MAX_TOKENS""#, r#""PROHIBITED_CONTENT""#),
            Service::Ollama => (r#""done_reason":"stop""#, r#""done_reason":"length""#, ""),
            _ => (
                r#""finish_reason":"tool_calls""#,
                r#""finish_reason":"length""#,
                r#""finish_reason":"content_filter""#,
            ),
        };
        assert!(text.contains(reason), "{text}");
        let (reply, _) = read(&stream.provider, [text.replace(reason, cut).as_bytes()]);
        assert!(reply.unwrap().unwrap().is_cut, "{:?}", stream.provider.service);
        if !filtered.is_empty() {
            // A withheld answer is no reply, which `read` shows as an empty one.
            let (reply, _) = read(&stream.provider, [text.replace(reason, filtered).as_bytes()]);
            assert_eq!(reply.unwrap(), Some(Reply::default()), "{:?}", stream.provider.service);
        }
    }
}

#[test]
fn what_is_no_stream_of_the_dialect_is_unreadable() {
    for stream in streams() {
        for foreign in [
            &b"<html>\n<p>It works!</p>\n"[..],
            b"data: <html>\n\n",
            b"data: \xff\xfe\n\n",
            b"\xc3(\n",
            b"data: [1, 2]\n\n",
            b"data: null\n\n",
            b"{\"message\": }\n",
        ] {
            let (reply, _) = read(&stream.provider, [foreign]);
            assert_eq!(reply, Err(Stuck::Misread(Misread::Unreadable)), "{foreign:?}");
        }
    }
    let nested = format!("data: {}{}\n\n", "{\"a\":[".repeat(10_000), "]}".repeat(10_000));
    let (reply, _) = read(&of(Service::Gemini), [nested.as_bytes()]);
    assert_eq!(reply, Err(Stuck::Misread(Misread::Unreadable)));
}

#[test]
fn an_endless_stream_is_too_large() {
    let provider = of(Service::OpenaiCompatible);
    let line = vec![b'x'; 1 << 20];
    let (reply, _) = read(&provider, (0..=LARGEST_ANSWER >> 20).map(|_| &line[..]));
    assert_eq!(reply, Err(Stuck::TooLarge));
    let data = [&b"data: "[..], &line, b"\n"].concat();
    let (reply, _) = read(&provider, (0..=LARGEST_ANSWER >> 20).map(|_| &data[..]));
    assert_eq!(reply, Err(Stuck::TooLarge));
    let text = "y".repeat(1 << 16);
    let event = format!("data: {}\n\n", json!({"choices": [{"delta": {"content": text}}]}));
    let (reply, said) = read(&provider, (0..1_000).map(|_| event.as_bytes()));
    assert_eq!(reply, Err(Stuck::TooLarge));
    assert!(said.len() <= LARGEST_ANSWER + text.len());
    let calls = (0..1_000).map(|index| {
        format!(
            "data: {}\n\n",
            json!({"choices": [{"delta": {"tool_calls": [{"index": index, "function": {}}]}}]})
        )
    });
    let calls: Vec<String> = calls.collect();
    let (reply, _) = read(&provider, calls.iter().map(String::as_bytes));
    assert_eq!(reply, Err(Stuck::Misread(Misread::Unreadable)));
}

/// Returns `value` without one of its members, chosen by `nth`, counted through all levels.
fn without(value: &mut Value, nth: &mut usize) -> bool {
    match value {
        Value::Object(members) => {
            let names: Vec<String> = members.keys().cloned().collect();
            for name in names {
                if *nth == 0 {
                    members.remove(&name);
                    return true;
                }
                *nth -= 1;
                if without(&mut members[&name], nth) {
                    return true;
                }
            }
            false
        }
        Value::Array(items) => items.iter_mut().any(|item| without(item, nth)),
        _ => false,
    }
}

#[test]
fn a_missing_member_makes_no_more_of_an_answer() {
    for stream in streams() {
        let expected = whole(&stream);
        for place in 0..stream.events.len() {
            for member in 0.. {
                let mut events = stream.events.clone();
                if !without(&mut events[place], &mut { member }) {
                    break;
                }
                let broken = Stream { events, provider: stream.provider.clone(), kept: Value::Null };
                if let (Ok(Some(reply)), said) = read(&broken.provider, [&broken.bytes()[..]]) {
                    // A thought that has lost its mark is the only text that may be added.
                    assert!(said.len() <= expected.text.len() + "Hmm.".len(), "{said}");
                    assert!(reply.calls.len() <= 3, "{reply:?}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn nothing_in_a_stream_makes_reading_it_panic(
        which in 0..5usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let stream = streams().swap_remove(which);
        let mut bytes = stream.bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        ends.extend([0, bytes.len()]);
        ends.sort_unstable();
        let pieces = ends.windows(2).map(|ends| &bytes[ends[0]..ends[1]]);
        let (in_pieces, _) = read(&stream.provider, pieces);
        let (at_once, _) = read(&stream.provider, [&bytes[..]]);
        prop_assert_eq!(in_pieces, at_once);
    }
}
