//! Sends one request to a service and receives the answer.
//!
//! A request is posted with the key. Redirects are not followed. The answer is read piece by piece, and its bytes are
//! counted and limited. If the service refuses a request, only the status, the code of the error and the time to wait
//! are kept. Dropping the future ends the connection.
//!
//! This module knows only one thing about the dialects: the header that contains the key.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::time::timeout;

use super::dialects::{Answer, Misread, Post, Read};
use super::failure::{self, Failure};
use super::reading::{LARGEST_ANSWER, OnText, Reading, Stuck, whole};
use super::thoughts::answer_begins;
use super::{Request, Service};

/// The maximum number of bytes of an answer in pieces that are read. Arbitrary: services send some 300 bytes around
/// each token, so an answer of 128,000 tokens, the longest one, has about 40 MB.
const LARGEST_STREAM: u64 = 64 << 20;

/// The maximum number of bytes of a refusal that are read. Arbitrary: enough, because the code of the error is near the
/// beginning.
const LARGEST_REFUSAL: usize = 64 << 10;

/// The connection parameters of a request.
pub(super) struct Route<'a> {
    /// The client.
    pub http: &'a reqwest::Client,
    /// The service.
    pub service: Service,
    /// The base address, to which the path of the dialect is appended.
    pub base: &'a Url,
    /// The key to send.
    pub key: Option<&'a str>,
    /// The request, as the caller made it. The request is used only to keep its texts out of errors.
    pub request: &'a Request,
    /// How many bytes were received so far.
    pub received: &'a AtomicU64,
    /// The maximum time during which the service may send nothing.
    pub silence: Option<Duration>,
}

impl Route<'_> {
    /// Posts a request and reads the answer. Returns the answer and its kept data. `on_text` gets the text as it
    /// arrives.
    pub async fn exchange(
        &self,
        post: &Post,
        reader: Box<dyn Read>,
        on_text: OnText<'_>,
    ) -> Result<(Answer, Option<Value>), Failure> {
        let sent = self
            .http
            .post(address(self.base, &post.path))
            .headers(self.headers(post)?)
            .body(post.body.to_string());
        let response = self.heard(sent.send()).await?;
        let response = response.map_err(|error| Failure::Unreachable(unreachable(&error)))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let kind =
            response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
        let is_declared = kind.contains("event-stream") || kind.contains("ndjson");
        // Some servers send a whole answer although pieces were requested, or pieces although a whole answer was
        // requested.
        if is_declared || (on_text.is_some() && !kind.contains("json")) {
            return self.pieces(response, reader, on_text).await;
        }
        let body = self.body(response).await?;
        let (answer, kept) = whole(reader, &body).map_err(|misread| self.misread(misread))?;
        let said = &answer.text[answer_begins(&answer.text, true).unwrap_or(0)..];
        if let Some(on_text) = on_text.filter(|_| !said.is_empty()) {
            on_text(said);
        }
        Ok((answer, kept))
    }

    /// Waits for the next bytes of the service. Errors if the service sends nothing for too long.
    async fn heard<T>(&self, next: impl Future<Output = T>) -> Result<T, Failure> {
        match self.silence {
            Some(silence) => timeout(silence, next).await.map_err(|_| Failure::Silent(silence)),
            None => Ok(next.await),
        }
    }

    /// Reads an answer that comes in pieces.
    async fn pieces(
        &self,
        mut response: reqwest::Response,
        reader: Box<dyn Read>,
        on_text: OnText<'_>,
    ) -> Result<(Answer, Option<Value>), Failure> {
        let stuck = |stuck: Stuck| match stuck {
            Stuck::TooLarge => Failure::TooLarge(LARGEST_ANSWER as u64),
            Stuck::Misread(misread) => self.misread(misread),
        };
        let mut reading = Reading::new(reader, on_text);
        while !reading.is_over() {
            // If the connection breaks, the answer is nevertheless complete if the service has already said why the
            // answer ends.
            let Ok(Some(piece)) = self.heard(response.chunk()).await? else { break };
            let size = piece.len() as u64;
            if self.received.fetch_add(size, Ordering::Relaxed) + size > LARGEST_STREAM {
                return Err(Failure::TooLarge(LARGEST_STREAM));
            }
            reading.push(&piece).map_err(stuck)?;
        }
        reading.end().map_err(stuck)?.ok_or(Failure::BrokenOff)
    }

    /// Reads an answer that comes as a whole.
    async fn body(&self, mut response: reqwest::Response) -> Result<Vec<u8>, Failure> {
        let too_large = Failure::TooLarge(LARGEST_ANSWER as u64);
        if response.content_length().is_some_and(|length| length > LARGEST_ANSWER as u64) {
            return Err(too_large);
        }
        let mut body = Vec::new();
        loop {
            let Ok(piece) = self.heard(response.chunk()).await? else { return Err(Failure::BrokenOff) };
            let Some(piece) = piece else { return Ok(body) };
            self.received.fetch_add(piece.len() as u64, Ordering::Relaxed);
            if body.len() + piece.len() > LARGEST_ANSWER {
                return Err(too_large);
            }
            body.extend_from_slice(&piece);
        }
    }

    fn misread(&self, misread: Misread) -> Failure {
        match misread {
            Misread::Unreadable => Failure::Unreadable,
            Misread::Reported(body) => Failure::Reported(failure::word(&body, self.key, self.request)),
        }
    }

    /// Returns the headers, with the key.
    fn headers(&self, post: &Post) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in post.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if let Some(key) = self.key {
            let (name, value) = match self.service {
                Service::Anthropic => ("x-api-key", key.to_owned()),
                Service::Gemini => ("x-goog-api-key", key.to_owned()),
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

    async fn refusal(&self, mut response: reqwest::Response) -> Failure {
        let status = response.status().as_u16();
        let wait = retry_after(response.headers());
        let mut body = Vec::new();
        while let Ok(Some(piece)) = response.chunk().await {
            self.received.fetch_add(piece.len() as u64, Ordering::Relaxed);
            body.extend_from_slice(&piece[..piece.len().min(LARGEST_REFUSAL - body.len())]);
            if body.len() == LARGEST_REFUSAL {
                break;
            }
        }
        let body: Option<Value> = serde_json::from_slice(&body).ok();
        // Gemini puts the error of a stream into a list.
        let error = body.as_ref().map(|body| body.get(0).unwrap_or(body));
        let word = error.and_then(|error| failure::word(error, self.key, self.request));
        Failure::of_status(status, word, error.and_then(failure::parameter), wait)
    }
}

/// Returns the address of the request: the base address, followed by the path of the dialect, with the queries of both.
fn address(base: &Url, target: &str) -> Url {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut address = base.clone();
    address.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    let queries: Vec<&str> =
        [base.query().unwrap_or(""), query].into_iter().filter(|query| !query.is_empty()).collect();
    address.set_query((!queries.is_empty()).then(|| queries.join("&")).as_deref());
    address
}

/// Returns the reason why there is no answer. The reason contains no text of the request.
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
