//! A relay between genai and the network, for one request.
//!
//! genai knows the dialects, but it reads a body to its end, however long that is, ignores the `Retry-After` of a
//! stream, and puts bodies into errors. This can't be changed from outside: genai's adapters are private, and so is
//! the type of connection that reqwest's connectors return. So genai is given an address on the loopback interface,
//! where this relay listens. The relay takes a single request there and sends it to the service with the key, which
//! genai never gets. It passes the answer back piece by piece, counts its bytes, limits it, and follows no redirects.
//! If the service refuses the request, genai doesn't get the refusal; the refusal becomes the [`Failure`].
//!
//! The address contains a new secret for each request, so no other process can use the relay. The relay lives as long
//! as the future that asks the model; dropping that future ends the connection to the service.
//!
//! The relay knows only two things about the dialects: which header has the key, and what genai leaves out for
//! Ollama.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request as Incomer, Response, StatusCode};
use hyper_util::rt::TokioIo;
use reqwest::Url;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::failure::{self, Failure};
use super::{Request, Service};

/// The largest answer that is read, in bytes: about a hundred times the longest answer of a model.
const LARGEST_ANSWER: u64 = 4 << 20;

/// The maximum number of bytes that are read of a refusal. Arbitrary; the code of the error is near the beginning.
const LARGEST_REFUSAL: usize = 64 << 10;

/// The destination of a request.
pub(super) struct Route {
    /// The service.
    pub service: Service,
    /// The base address, to which the path of genai's request is appended.
    pub base: Url,
    /// The key to send.
    pub key: Option<String>,
    /// The request, as the caller made it.
    pub request: Arc<Request>,
    /// The context window to request from Ollama.
    pub window: Option<usize>,
    /// How many bytes were received so far.
    pub received: Arc<AtomicU64>,
}

/// The relay of one request.
pub(super) struct Relay {
    listener: TcpListener,
    address: String,
    exchange: Arc<Exchange>,
}

impl Relay {
    /// Opens a local port for one request.
    pub(super) async fn open(http: reqwest::Client, route: Route) -> Result<Relay, Failure> {
        let mut secret = [0; 16];
        let opened = getrandom::fill(&mut secret).is_ok();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await;
        let (Ok(listener), true) = (listener, opened) else {
            return Err(Failure::Unreachable("no local port could be opened"));
        };
        let Ok(own) = listener.local_addr() else {
            return Err(Failure::Unreachable("no local port could be opened"));
        };
        let secret = format!("{:032x}", u128::from_le_bytes(secret));
        let address = format!("http://{own}/{secret}/");
        let exchange = Exchange {
            http,
            route,
            prefix: format!("/{secret}/"),
            is_taken: AtomicBool::new(false),
            failure: Mutex::new(None),
        };
        Ok(Relay { listener, address, exchange: Arc::new(exchange) })
    }

    /// Returns the base address that genai gets.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns why the exchange failed, if it did.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.exchange.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Passes the request to the service, and the answer to genai. The future never completes. Dropping it ends all
    /// connections.
    pub(super) async fn serve(&self) -> Infallible {
        let mut connections = JoinSet::new();
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let exchange = Arc::clone(&self.exchange);
            connections.spawn(async move {
                let pass = service_fn(|incoming| Arc::clone(&exchange).pass(incoming));
                // The result is ignored, because the exchange records why it failed.
                let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), pass).await;
            });
        }
    }
}

type Body = UnsyncBoxBody<Bytes, Interrupted>;

/// Interrupts the answer that genai is reading; the exchange records why.
#[derive(Debug)]
struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

struct Exchange {
    http: reqwest::Client,
    route: Route,
    prefix: String,
    is_taken: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

impl Exchange {
    async fn pass(self: Arc<Self>, incoming: Incomer<Incoming>) -> Result<Response<Body>, Infallible> {
        let target = incoming.uri().path_and_query().map_or("", |target| target.as_str());
        let Some(target) = target.strip_prefix(&self.prefix).map(str::to_owned) else {
            return Ok(nothing(StatusCode::NOT_FOUND));
        };
        if self.is_taken.swap(true, Ordering::Relaxed) {
            return Ok(nothing(StatusCode::CONFLICT));
        }
        Ok(Arc::clone(&self).exchange(&target, incoming).await.unwrap_or_else(|failure| {
            self.fail(failure);
            nothing(StatusCode::BAD_GATEWAY)
        }))
    }

    async fn exchange(
        self: Arc<Self>,
        target: &str,
        incoming: Incomer<Incoming>,
    ) -> Result<Response<Body>, Failure> {
        let (parts, body) = incoming.into_parts();
        let body =
            body.collect().await.map_err(|_| Failure::Unreachable("the request was not read"))?.to_bytes();
        let response = self
            .http
            .post(address(&self.route.base, target))
            .headers(self.headers(parts.headers)?)
            .body(self.completed(body))
            .send()
            .await
            .map_err(|error| Failure::Unreachable(unreachable(&error)))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        if response.content_length().is_some_and(|length| length > LARGEST_ANSWER) {
            return Err(Failure::TooLarge(LARGEST_ANSWER));
        }
        // Every answer that isn't a stream is declared as JSON, because some servers declare JSON as text. A body
        // that isn't JSON can't be parsed anyway.
        let is_stream = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| {
            kind.to_str().is_ok_and(|kind| kind.contains("event-stream") || kind.contains("ndjson"))
        });
        let kind = if is_stream { "text/event-stream" } else { "application/json" };
        let pieces =
            futures_util::stream::try_unfold((response, self), |(mut response, exchange)| async move {
                match response.chunk().await {
                    Ok(Some(piece)) => {
                        let size = piece.len() as u64;
                        if exchange.route.received.fetch_add(size, Ordering::Relaxed) + size > LARGEST_ANSWER
                        {
                            exchange.fail(Failure::TooLarge(LARGEST_ANSWER));
                            return Err(Interrupted);
                        }
                        Ok(Some((Frame::data(piece), (response, exchange))))
                    }
                    Ok(None) => Ok(None),
                    Err(_) => {
                        exchange.fail(Failure::BrokenOff);
                        Err(Interrupted)
                    }
                }
            });
        let mut answer = Response::new(StreamBody::new(pieces).boxed_unsync());
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        Ok(answer)
    }

    /// Returns the headers of genai's request, without those about the connection, and with the key.
    fn headers(&self, from: HeaderMap) -> Result<HeaderMap, Failure> {
        let mut headers: HeaderMap =
            from.into_iter().filter_map(|(name, value)| name.map(|name| (name, value))).collect();
        for name in [header::HOST, header::CONTENT_LENGTH, header::CONNECTION, header::ACCEPT_ENCODING] {
            headers.remove(name);
        }
        for name in ["authorization", "x-api-key", "x-goog-api-key"] {
            headers.remove(name);
        }
        if let Some(key) = &self.route.key {
            let (name, value) = match self.route.service {
                Service::Anthropic => ("x-api-key", key.clone()),
                Service::Gemini => ("x-goog-api-key", key.clone()),
                _ => ("authorization", format!("Bearer {key}")),
            };
            let Ok(mut value) = HeaderValue::from_str(&value) else {
                return Err(Failure::NoKey);
            };
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }

    /// Adds to the request what genai leaves out for Ollama: the schema of the answer, and a context window that is
    /// large enough. By default Ollama silently drops everything beyond the first 4,096 tokens.
    fn completed(&self, body: Bytes) -> Bytes {
        if self.route.service != Service::Ollama {
            return body;
        }
        let Ok(mut payload) = serde_json::from_slice::<Value>(&body) else { return body };
        if let Some((_, schema)) = &self.route.request.schema {
            payload["format"] = schema.clone();
        }
        if let Some(window) = self.route.window {
            if !payload["options"].is_object() {
                payload["options"] = json!({});
            }
            payload["options"]["num_ctx"] = json!(window);
        }
        payload.to_string().into()
    }

    async fn refusal(&self, mut response: reqwest::Response) -> Failure {
        let status = response.status().as_u16();
        let wait = retry_after(response.headers());
        let mut body = Vec::new();
        while let Ok(Some(piece)) = response.chunk().await {
            self.route.received.fetch_add(piece.len() as u64, Ordering::Relaxed);
            body.extend_from_slice(&piece[..piece.len().min(LARGEST_REFUSAL - body.len())]);
            if body.len() == LARGEST_REFUSAL {
                break;
            }
        }
        let body: Option<Value> = serde_json::from_slice(&body).ok();
        // Gemini puts the error of a stream into a list.
        let error = body.as_ref().map(|body| body.get(0).unwrap_or(body));
        let word =
            error.and_then(|error| failure::word(error, self.route.key.as_deref(), &self.route.request));
        Failure::of_status(status, word, wait)
    }

    /// Records why the exchange failed. If there are several reasons, only the first counts.
    fn fail(&self, failure: Failure) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }
}

/// Returns an empty response with a status.
fn nothing(status: StatusCode) -> Response<Body> {
    let body = Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
}

/// Returns the address of the request: the base address, followed by genai's path, with the queries of both.
fn address(base: &Url, target: &str) -> Url {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut address = base.clone();
    address.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    let queries: Vec<&str> =
        [base.query().unwrap_or(""), query].into_iter().filter(|query| !query.is_empty()).collect();
    address.set_query((!queries.is_empty()).then(|| queries.join("&")).as_deref());
    address
}

/// Returns the reason why there is no answer, without any text of the request.
fn unreachable(error: &reqwest::Error) -> &'static str {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            use std::io::ErrorKind as Io;
            match error.kind() {
                Io::ConnectionRefused => return "the connection was refused",
                Io::ConnectionReset | Io::ConnectionAborted | Io::BrokenPipe | Io::UnexpectedEof => {
                    return failure::CLOSED;
                }
                Io::HostUnreachable | Io::NetworkUnreachable => return "the network can't reach it",
                Io::TimedOut => return failure::TIMED_OUT,
                _ => {}
            }
        }
        cause = error.source();
    }
    let debug = format!("{error:?}");
    match () {
        () if error.is_timeout() => failure::TIMED_OUT,
        () if debug.contains("dns") => "its name could not be resolved",
        () if debug.contains("ertificate") => "its certificate is not trusted",
        () if error.is_connect() => "no connection could be made",
        () => failure::CLOSED,
    }
}

/// Returns how long the service asks us to wait before the next request. If `Retry-After` is a date, it is compared
/// with the `Date` that the service sends.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<u64>().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let after = text("retry-after")?;
    if let Ok(seconds) = after.parse::<f64>() {
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(if seconds < 0.0 {
            Duration::ZERO
        } else {
            Duration::MAX
        }));
    }
    let date = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp().as_second());
    let Some(then) = date(after) else {
        // The library's calendar ends during the year 9999; a later date counts as an endless wait.
        let is_far = |word: &str| word.parse::<u64>().is_ok_and(|year| year >= 9999);
        return after.split([' ', '-']).any(is_far).then_some(Duration::MAX);
    };
    let seconds = then - date(text("date")?)?;
    Some(Duration::from_secs(seconds.try_into().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_keeps_the_path_and_the_query_of_the_base() {
        let joined = |base: &str, target: &str| address(&Url::parse(base).unwrap(), target).to_string();
        assert_eq!(joined("https://a.test/v1", "chat/completions"), "https://a.test/v1/chat/completions");
        assert_eq!(joined("https://a.test/v1/?v=2", "m:x?alt=sse"), "https://a.test/v1/m:x?v=2&alt=sse");
        assert_eq!(joined("http://[::1]:80/", "api/chat"), "http://[::1]/api/chat");
    }

    #[test]
    fn services_say_in_three_ways_how_long_to_wait() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            pairs
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                .collect()
        };
        let wait = |pairs: &[(&'static str, &'static str)]| retry_after(&headers(pairs));
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(wait(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(
            wait(&[("retry-after", "9"), ("retry-after-ms", "250")]),
            Some(Duration::from_millis(250))
        );
        let dates =
            [("retry-after", "Fri, 02 Jan 2026 00:01:00 GMT"), ("date", "Fri, 02 Jan 2026 00:00:00 GMT")];
        assert_eq!(wait(&dates), Some(Duration::from_secs(60)));
        assert_eq!(wait(&[("retry-after", "99999999999999999999999")]), Some(Duration::MAX));
        assert_eq!(wait(&[("retry-after", "-5")]), Some(Duration::ZERO));
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        for far in ["Fri, 31 Dec 9999 23:59:59 GMT", "Sat, 01 Jan 10000 00:00:00 GMT"] {
            let dates = [("retry-after", far), ("date", "Fri, 02 Jan 2026 00:00:00 GMT")];
            assert_eq!(wait(&dates), Some(Duration::MAX), "{far}");
        }
    }
}
