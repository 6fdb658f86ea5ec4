//! Services that hang, drip, flood, refuse, redirect, break off, and repeat secrets in their errors.

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use tracing_subscriber::EnvFilter;

use super::*;
use crate::testing::{Mock, Step};
use tiro_base::error::{Error, Kind};

fn answer(status: u16, headers: &'static str, body: &str) -> Step {
    Step::Answer(status, headers, body.to_owned())
}

async fn ask(script: Vec<Step>, deadline: Duration) -> (Result<Reply>, Mock, Duration) {
    let mock = Mock::start(script).await;
    let client = client(Service::Openai, &mock.endpoint);
    let start = Instant::now();
    let reply = client.ask(&question(), deadline, None).await;
    (reply, mock, start.elapsed())
}

async fn fails(script: Vec<Step>) -> (Error, Mock) {
    let (reply, mock, _) = ask(script, AMPLE).await;
    let error = reply.unwrap_err();
    assert_eq!(error.kind(), Kind::Provider, "{error}");
    (error, mock)
}

#[tokio::test]
async fn a_deadline_holds_for_a_service_that_hangs_and_one_that_drips() {
    let deadline = Duration::from_secs(2);
    let (hanging, dripping) = tokio::join!(ask(vec![Step::Hang], deadline), ask(vec![Step::Drip], deadline));
    for ((reply, mock, took), said) in
        [(hanging, "did not answer within 2 s"), (dripping, "was still sending after 2 s")]
    {
        let error = reply.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert!(took >= deadline && took < 3 * deadline, "{took:?}");
        tokio::time::timeout(Duration::from_secs(5), mock.left.notified())
            .await
            .expect("the connection stayed open");
    }
}

/// A service that accepted a request and sent nothing used to hold it until the deadline.
#[tokio::test]
async fn a_service_that_sends_nothing_is_given_up_and_one_that_drips_is_not() {
    for (step, said) in [(Step::Hang, "sent nothing for 1 s"), (Step::Drip, "was still sending after 3 s")] {
        let mock = Mock::start(vec![step]).await;
        let client = client(Service::Openai, &mock.endpoint).silence(Duration::from_secs(1));
        let error = client.ask(&question(), Duration::from_secs(3), Some(&|_| {})).await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(mock.seen().len(), 1, "it is not asked again");
        tokio::time::timeout(Duration::from_secs(5), mock.left.notified())
            .await
            .expect("the connection stayed open");
    }
}

#[tokio::test]
async fn a_deadline_covers_all_repetitions() {
    let deadline = Duration::from_secs(2);
    let slow = answer(503, "Retry-After: 1.5\r\n", "");
    let (reply, mock, took) = ask(vec![slow], deadline).await;
    let error = reply.unwrap_err();
    // The second pause would end after the deadline, so the client doesn't wait.
    assert!(took < deadline && mock.seen().len() == 2, "{took:?}: {error}");
}

#[tokio::test]
async fn a_flood_is_cut_off() {
    for is_chunked in [false, true] {
        let flood = Step::Flood { bytes: 100_000_000, is_chunked };
        let (error, mock) = fails(vec![flood]).await;
        assert!(error.to_string().contains("more than 4 MiB"), "{error}");
        tokio::time::timeout(Duration::from_secs(5), mock.left.notified()).await.expect("the flood went on");
        // After the connection ended, only the content of a few buffers was still on the way.
        let sent = mock.record.lock().unwrap().bytes_sent;
        assert!(sent < 50_000_000, "{sent} bytes were taken");
        assert_eq!(mock.seen().len(), 1);
    }
    let mock = Mock::start(vec![Step::Flood { bytes: 100_000_000, is_chunked: true }]).await;
    let client = client(Service::Anthropic, &mock.endpoint);
    let error = client.ask(&question(), AMPLE, Some(&|_| {})).await.unwrap_err();
    assert!(
        error.to_string().contains("Anthropic's dialect") || error.to_string().contains("4 MiB"),
        "{error}"
    );
    tokio::time::timeout(Duration::from_secs(5), mock.left.notified()).await.expect("the flood went on");
}

#[tokio::test]
async fn dropping_the_future_ends_the_request() {
    let mock = Mock::start(vec![Step::Hang]).await;
    let client = client(Service::Openai, &mock.endpoint);
    let asking = tokio::spawn(async move { client.ask(&question(), AMPLE, None).await });
    mock.asked.notified().await;
    asking.abort();
    tokio::time::timeout(Duration::from_secs(2), mock.left.notified())
        .await
        .expect("the connection stayed open");
}

#[tokio::test]
async fn dropping_the_future_ends_an_answer_that_is_arriving() {
    for service in Service::ALL {
        let mock = Mock::start(vec![Step::Drip]).await;
        let client = client(service, &mock.endpoint);
        let asking = tokio::spawn(async move { client.ask(&question(), AMPLE, Some(&|_| {})).await });
        mock.asked.notified().await;
        tokio::time::sleep(Duration::from_millis(60)).await;
        asking.abort();
        tokio::time::timeout(Duration::from_secs(2), mock.left.notified())
            .await
            .expect("the connection stayed open");
    }
}

#[tokio::test]
async fn a_whole_answer_to_a_request_for_pieces_is_read_and_the_other_way_round() {
    let mock = Mock::start(vec![completion("Seven.")]).await;
    let said = Mutex::new(String::new());
    let on_text = |text: &str| said.lock().unwrap().push_str(text);
    let client = client(Service::Openai, &mock.endpoint);
    assert_eq!(client.ask(&question(), AMPLE, Some(&on_text)).await.unwrap().text, "Seven.");
    assert_eq!(*said.lock().unwrap(), "Seven.");
    let delta = r#"{"choices": [{"delta": {"content": "Seven."}, "finish_reason": "stop"}]}"#;
    let (reply, _, _) =
        ask(vec![answer(200, "Content-Type: text/event-stream\r\n", &format!("data: {delta}\n\n"))], AMPLE)
            .await;
    assert_eq!(reply.unwrap().text, "Seven.");
}

#[tokio::test]
async fn passing_failures_are_repeated_and_others_are_not() {
    let refused = |status| answer(status, "", r#"{"error": {"code": "some_reason"}}"#);
    for status in [408, 409, 429, 500, 502, 503, 529] {
        let (reply, mock, _) = ask(vec![refused(status), refused(status), completion("Seven.")], AMPLE).await;
        let reply = reply.unwrap();
        assert_eq!((reply.text.as_str(), reply.attempts, mock.seen().len()), ("Seven.", 3, 3), "{status}");
        let (error, mock) = fails(vec![refused(status)]).await;
        assert_eq!(mock.seen().len(), 4, "{status}");
        assert!(error.to_string().ends_with("4 requests in all"), "{error}");
    }
    for status in [400, 401, 402, 403, 404, 413, 422] {
        let (error, mock) = fails(vec![refused(status), completion("Seven.")]).await;
        assert_eq!(mock.seen().len(), 1, "{status}");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
        assert!(error.to_string().contains("some_reason"), "{error}");
    }
    let (reply, _, _) = ask(vec![Step::Close, completion("Seven.")], AMPLE).await;
    assert_eq!(reply.unwrap().attempts, 2);
    let (reply, _, _) = ask(vec![Step::BreakOff("{\"choices\":".into()), completion("Seven.")], AMPLE).await;
    assert_eq!(reply.unwrap().attempts, 2);
}

#[tokio::test]
async fn the_number_of_repetitions_can_be_set() {
    let mock = Mock::start(vec![answer(500, "", "")]).await;
    let client = client(Service::Openai, &mock.endpoint).retries(1);
    client.ask(&question(), AMPLE, None).await.unwrap_err();
    assert_eq!(mock.seen().len(), 2);
}

#[tokio::test]
async fn an_absurd_retry_after_fails_at_once() {
    let (reply, mock, took) =
        ask(vec![answer(429, "Retry-After: 86400\r\n", ""), completion("Seven.")], AMPLE).await;
    let error = reply.unwrap_err();
    assert!(error.to_string().contains("429 Too Many Requests"), "{error}");
    assert!(error.to_string().contains("86400 s") && error.way_out().is_some(), "{error}");
    assert!(took < Duration::from_secs(5) && mock.seen().len() == 1);
}

#[tokio::test]
async fn a_short_retry_after_is_kept() {
    let (reply, _, took) =
        ask(vec![answer(429, "Retry-After: 1\r\n", ""), completion("Seven.")], AMPLE).await;
    assert_eq!(reply.unwrap().attempts, 2);
    assert!(took >= Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn a_retry_after_in_the_past_does_not_remove_the_pause() {
    let pause = Duration::from_millis(400);
    for header in ["Retry-After: 0\r\n", "Retry-After: -5\r\n"] {
        let mock = Mock::start(vec![answer(429, header, ""), completion("Seven.")]).await;
        let client = client(Service::Openai, &mock.endpoint).pause(pause);
        let start = Instant::now();
        assert_eq!(client.ask(&question(), AMPLE, None).await.unwrap().attempts, 2);
        assert!(start.elapsed() >= pause.mul_f64(0.7), "{header}: {:?}", start.elapsed());
    }
    let endless = "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\r\n";
    let (error, mock) = fails(vec![answer(429, endless, ""), completion("Seven.")]).await;
    assert!(error.to_string().contains("the service asks to wait for more than a year"), "{error}");
    assert_eq!(mock.seen().len(), 1);
}

#[tokio::test]
async fn the_fate_of_each_request_is_reported_and_decides_whether_it_is_repeated() {
    let ask = |script: Vec<Step>, most: usize| async move {
        let mock = Mock::start(script).await;
        let seen: Arc<Mutex<Vec<Failed>>> = Arc::default();
        let on_failure: OnFailure = {
            let seen = seen.clone();
            Arc::new(move |failed| {
                let mut seen = seen.lock().unwrap();
                seen.push(failed);
                let is_enough = seen.len() == most;
                Box::pin(async move {
                    if is_enough { Err(Error::new(Kind::Limit, "no room").hint("wait")) } else { Ok(()) }
                })
            })
        };
        let client = client(Service::Openai, &mock.endpoint).on_failure(on_failure);
        let answered = client.ask(&question(), AMPLE, None).await;
        let seen = seen.lock().unwrap().clone();
        (answered, seen, mock.seen().len())
    };
    let failed = |fate, is_repeated| Failed { fate, is_repeated };
    let broken = || Step::BreakOff("{\"choices\":".into());
    let script = vec![answer(429, "", ""), broken(), answer(500, "", ""), completion("Seven.")];
    let (answered, seen, requests) = ask(script, 9).await;
    assert_eq!((answered.unwrap().attempts, requests), (4, 4));
    assert_eq!(seen, [failed(Fate::Refused, true), failed(Fate::Lost, true), failed(Fate::Lost, true)]);
    let (answered, seen, requests) = ask(vec![broken(), completion("Seven.")], 1).await;
    let error = answered.unwrap_err();
    assert_eq!((error.kind(), error.way_out(), requests, seen.len()), (Kind::Limit, Some("wait"), 1, 1));
    assert!(error.to_string().contains("broke off") && error.to_string().contains("no room"), "{error}");
    let (_, seen, _) = ask(vec![answer(404, "", "")], 9).await;
    assert_eq!(seen, [failed(Fate::Refused, false)]);
}

#[tokio::test]
async fn a_refused_key_is_read_once_more() {
    let mock = Mock::start(vec![answer(401, "", ""), completion("Seven.")]).await;
    let reads = Arc::new(AtomicU32::new(0));
    let keys: Keys = {
        let reads = reads.clone();
        Arc::new(move |_| Ok(Some(format!("key-{}", reads.fetch_add(1, Ordering::Relaxed)))))
    };
    let client = Client::new(provider(Service::Openai, &mock.endpoint), keys).unwrap();
    assert_eq!(client.ask(&question(), AMPLE, None).await.unwrap().attempts, 2);
    assert_eq!(reads.load(Ordering::Relaxed), 2);
    let seen = mock.seen();
    assert!(seen[0].head.contains("Bearer key-0") && seen[1].head.contains("Bearer key-1"));
}

#[tokio::test]
async fn an_unset_key_is_an_error_of_its_own_and_nothing_is_sent() {
    let mock = Mock::start(vec![completion("Seven.")]).await;
    let keys: Keys = Arc::new(|_| Err(Error::new(Kind::BadInput, "the variable `MOCK_KEY` is not set")));
    let client = Client::new(provider(Service::Openai, &mock.endpoint), keys).unwrap();
    let error = client.ask(&question(), AMPLE, None).await.unwrap_err();
    assert_eq!((error.kind(), mock.seen().len()), (Kind::BadInput, 0));
}

#[tokio::test]
async fn an_empty_or_foreign_answer_is_an_error() {
    for empty in ["", "  \n"] {
        let (error, mock) = fails(vec![completion(empty)]).await;
        assert!(error.to_string().contains("empty answer") && mock.seen().len() == 1, "{error}");
    }
    for foreign in ["", "null", "[]", "{}", "<html>It works!</html>", r#"{"choices": 7}"#, "\u{fffd}"] {
        let (error, _) = fails(vec![answer(200, "Content-Type: text/html\r\n", foreign)]).await;
        assert!(!error.to_string().contains("It works"), "{error}");
    }
    let withheld = r#"{"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}"#;
    let (error, _) = fails(vec![answer(200, "", withheld)]).await;
    assert!(error.to_string().contains("withheld"), "{error}");
}

#[tokio::test]
async fn a_dropped_model_is_named_with_a_way_out() {
    let (error, _) = fails(vec![answer(404, "", r#"{"error": {"code": "model_not_found"}}"#)]).await;
    let said = "provider `mock` has no model `some-model`: it answered 404 Not Found (`model_not_found`)";
    assert_eq!(error.to_string(), said);
    assert!(error.way_out().unwrap().starts_with("name a model that the service offers"));

    let mock = Mock::start(vec![answer(404, "", r#"{"error": "model 'some-model' not found"}"#)]).await;
    let error = client(Service::Ollama, &mock.endpoint).ask(&question(), AMPLE, None).await.unwrap_err();
    assert!(error.way_out().unwrap().starts_with("`ollama pull some-model`"));
}

#[tokio::test]
async fn redirections_are_not_followed() {
    let elsewhere = Mock::start(vec![completion("Seven.")]).await;
    let location: &'static str = format!("Location: {}/v1/chat/completions\r\n", elsewhere.endpoint).leak();
    for status in [301, 302, 307, 308] {
        let (error, _) = fails(vec![answer(status, location, "")]).await;
        assert!(error.to_string().contains("a redirection, which is not followed"), "{error}");
    }
    assert!(elsewhere.seen().is_empty());
}

#[tokio::test]
async fn an_unreachable_server_is_named_with_its_address() {
    let unused = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = client(Service::Ollama, &format!("http://{unused}")).retries(0);
    let error = client.ask(&question(), AMPLE, None).await.unwrap_err();
    let said = format!("provider `mock` could not be reached at {unused}: the connection was refused");
    assert_eq!(error.to_string(), said);
    assert_eq!(error.way_out(), Some("start it: `ollama serve`"));
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error_and_is_not_repeated_after_its_first_text() {
    let piece = "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Seven\"}}]}\n\n";
    // One stream breaks off in the middle; the other ends properly, but without a finish reason.
    let orderly = answer(200, "Content-Type: text/event-stream\r\n", piece);
    for step in [Step::BreakOff(piece.into()), orderly] {
        let mock = Mock::start(vec![step, completion("Eight.")]).await;
        let said = Mutex::new(String::new());
        let on_text = |text: &str| said.lock().unwrap().push_str(text);
        let client = client(Service::Openai, &mock.endpoint);
        let error = client.ask(&question(), AMPLE, Some(&on_text)).await.unwrap_err();
        assert!(error.to_string().contains("broke off"), "{error}");
        assert_eq!((said.lock().unwrap().as_str(), mock.seen().len()), ("Seven", 1));
    }
    // Before the first text, a request may be repeated.
    let done = format!(
        "{piece}data: {{\"choices\": [{{\"index\": 0, \"delta\": {{}}, \"finish_reason\": \"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let mock =
        Mock::start(vec![answer(500, "", ""), answer(200, "Content-Type: text/event-stream\r\n", &done)])
            .await;
    let client = client(Service::Openai, &mock.endpoint);
    let reply = client.ask(&question(), AMPLE, Some(&|_| {})).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.attempts), ("Seven", 2));
}

/// A writer that keeps what is logged.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn no_error_and_no_log_holds_a_key_a_question_or_an_answer() {
    let logged = Logged::default();
    let writer = logged.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(format!("trace,{QUIET}")))
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    tracing::trace!("the log is on");

    let telling = "The answer is 9c41.";
    let echo = |field: &str, value: &str| {
        format!(
            r#"{{"error": {{"message": "{KEY}: How many wombats are there? {telling}", "{field}": "{value}"}}}}"#
        )
    };
    let mut bodies =
        vec![format!("{KEY} wombats {telling}"), format!(r#"{{"error": "{KEY} wombats {telling}"}}"#)];
    for field in ["type", "code", "status"] {
        for value in [KEY, "numbat_key", "sk-numbat_key-and-more", "wombats", "9c41", telling] {
            bodies.push(echo(field, value));
        }
    }
    let mut said = String::new();
    for service in Service::ALL {
        for body in &bodies {
            // The body comes as a refusal, as an answer, and as an answer in pieces.
            let steps =
                [answer(400, "", body), answer(200, "", body), answer(200, "", &format!("data: {body}\n\n"))];
            for (nth, step) in steps.into_iter().enumerate() {
                let mock = Mock::start(vec![step]).await;
                let client = client(service, &mock.endpoint).retries(0);
                let on_text: Option<&(dyn Fn(&str) + Send + Sync)> =
                    if nth == 2 { Some(&|_| {}) } else { None };
                let error = client.ask(&question(), AMPLE, on_text).await.unwrap_err();
                said += &format!("{error} {error:?} {:?}\n", error.way_out());
            }
        }
        let mock = Mock::start(vec![completion(telling)]).await;
        let _ = client(service, &mock.endpoint).retries(0).ask(&question(), AMPLE, None).await;
    }
    let logged = String::from_utf8(logged.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("the log is on"));
    for secret in [KEY, "numbat", "wombats", "9c41"] {
        assert!(!said.contains(secret), "{secret} in {said}");
        assert!(!logged.contains(secret), "{secret} in {logged}");
    }
}

#[tokio::test]
async fn an_invalid_model_or_key_is_refused_before_anything_is_sent() {
    for model in ["", "openai::gpt", "../files", "m?key=1", "m#", "m\u{200b}", "m\n"] {
        let provider = Provider { model: model.into(), ..provider(Service::Gemini, "http://127.0.0.1:1") };
        let error = Client::new(provider, Arc::new(|_| Ok(None))).err().unwrap();
        assert_eq!(error.kind(), Kind::BadInput);
    }
    // A line feed in a key would begin another header.
    let mock = Mock::start(vec![completion("Seven.")]).await;
    let keys: Keys = Arc::new(|_| Ok(Some("sk-1\r\nX-Other: 2".into())));
    let client = Client::new(provider(Service::Openai, &mock.endpoint), keys).unwrap().retries(0);
    let error = client.ask(&question(), AMPLE, None).await.unwrap_err();
    assert!(!format!("{error:?}").contains("sk-1") && mock.seen().is_empty(), "{error}");
}
