//! The requests to a server.
//!
//! Each request has the key in a header that no log shows. Redirects are not followed, because the key would go with
//! them. An answer is read piece by piece up to a limit, and the whole request keeps to a deadline. Dropping the future
//! ends the request.

use std::time::Duration;

use reqwest::header::WWW_AUTHENTICATE;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, StatusCode, Url};
use serde::de::DeserializeOwned;

use crate::greeting::{Greeting, HEADER, Received, Waited};
use crate::page::{self, FORMAT, LARGEST, MEDIA_TYPE, Page, Unreadable};
use crate::server::Server;
use crate::trouble::{Trouble, of_formats};
use tiro_base::error::{Context, Error, Kind, Result};

/// The longest time for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The longest time in which nothing comes. Arbitrary.
const SILENCE: Duration = Duration::from_secs(30);

/// The longest time of a request. Arbitrary: at 300 kB/s, the largest page takes as long.
const DEADLINE: Duration = Duration::from_secs(120);

/// The longest time in which a server answers a machine that waits for changes. Servers answer after
/// [`LONGEST_WAIT`].
const PATIENCE: Duration = Duration::from_secs(75);

/// How long a server lets a machine wait for changes. Arbitrary: shorter than the minute after which most proxies give a
/// request up.
pub const LONGEST_WAIT: Duration = Duration::from_secs(50);

/// The largest answer that is no page, in bytes. Arbitrary: a greeting with some thousand projects has as many.
const LARGEST_ANSWER: usize = 4 << 20;

/// A server, and the key for it. Making one opens no connection.
pub struct Remote {
    server: Server,
    http: reqwest::Client,
    key: HeaderValue,
}

/// Where the pages of changes begin, and for whom they are.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The id of the project.
    pub project: &'a str,
    /// The id of this device. What it sent itself isn't sent back.
    pub device: String,
    /// Whether private memories of the same user are exchanged, too.
    pub private: bool,
    /// How many pages the device has counted. If the server has counted fewer, it lost some, and doesn't count this one.
    pub pages: u64,
}

impl Remote {
    /// Returns the requests to `server` with `key`.
    ///
    /// Errors with [`Kind::BadInput`] if the key can't be a key.
    pub fn new(server: &Server, key: &str) -> Result<Remote> {
        Remote::within(server, key, SILENCE, DEADLINE)
    }

    /// Returns the requests to `server` with `key`, for waiting: the server may be silent for as long as it lets machines
    /// wait.
    ///
    /// Errors as [`Remote::new`] does.
    pub fn waiting(server: &Server, key: &str) -> Result<Remote> {
        Remote::within(server, key, PATIENCE, PATIENCE)
    }

    fn within(server: &Server, key: &str, silence: Duration, deadline: Duration) -> Result<Remote> {
        let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
            Error::bad_input("the key has characters that no key has").hint("copy the whole key, on one line")
        })?;
        value.set_sensitive(true);
        // This fails if a cryptography provider was already installed in this process.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT)
            .read_timeout(silence)
            .timeout(deadline)
            .user_agent(concat!("tiro/", env!("CARGO_PKG_VERSION")));
        if server.is_local() {
            // The proxy may be on another machine.
            http = http.no_proxy();
        }
        if !server.is_encrypted() {
            // Reading the platform's certificates takes a while.
            http = http.tls_certs_only([]);
        }
        let http = http.build().context(Kind::Server, || format!("cannot make a client of `{server}`"))?;
        Ok(Remote { server: server.clone(), http, key: value })
    }

    /// Returns the server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Asks who the server is.
    pub async fn greet(&self) -> Result<Greeting, Trouble> {
        let answer = self.send(self.http.get(self.server.at(&["sync"]))).await?;
        let greeting: Greeting = json(answer).await?;
        match of_formats(greeting.oldest_format, greeting.format) {
            None => Ok(greeting),
            Some(trouble) => Err(trouble),
        }
    }

    /// Sends a page. Returns what became of each of its `lines`.
    pub async fn push(&self, wanted: Wanted<'_>, page: Vec<u8>, lines: usize) -> Result<Received, Trouble> {
        let mut address = self.address(&wanted, "push");
        address.query_pairs_mut().append_pair("pages", &wanted.pages.to_string());
        let request = self.http.post(address).header(CONTENT_TYPE, MEDIA_TYPE).body(page);
        let received: Received = json(self.send(request).await?).await?;
        // Otherwise nobody knows which change an outcome belongs to.
        match received.outcomes.len() == lines {
            true => Ok(received),
            false => Err(Trouble::Page(Unreadable::Other)),
        }
    }

    /// Returns the page of changes after the number `after`. `read` reads a line.
    pub async fn pull<T>(
        &self,
        wanted: Wanted<'_>,
        after: i64,
        read: impl FnMut(&[u8]) -> T,
    ) -> Result<Page<T>, Trouble> {
        let mut address = self.address(&wanted, "pull");
        let (after, pages) = (after.to_string(), wanted.pages.to_string());
        address.query_pairs_mut().append_pair("after", &after).append_pair("pages", &pages);
        let answer = self.send(self.http.get(address)).await?;
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind != Some(MEDIA_TYPE) {
            return Err(Trouble::Page(Unreadable::Other));
        }
        let body = body(answer, LARGEST).await?;
        page::read(&body, read).map_err(Trouble::Page)
    }

    /// Waits until the server has changes after the number `after`. Returns whether it has; false if it has had none for a
    /// while. For a remote of [`Remote::waiting`].
    pub async fn wait(&self, wanted: Wanted<'_>, after: i64) -> Result<bool, Trouble> {
        let mut address = self.address(&wanted, "wait");
        address.query_pairs_mut().append_pair("after", &after.to_string());
        let waited: Waited = json(self.send(self.http.get(address)).await?).await?;
        Ok(waited.changed)
    }

    fn address(&self, wanted: &Wanted<'_>, verb: &str) -> Url {
        let mut address = self.server.at(&["sync", wanted.project, verb]);
        let mut query = address.query_pairs_mut();
        query.append_pair("device", &wanted.device);
        if wanted.private {
            query.append_pair("private", "true");
        }
        drop(query);
        address
    }

    /// Sends a request. Returns the answer if it is one of a Tiro that can sync, and no refusal.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Trouble> {
        let format = HeaderValue::from(FORMAT);
        let request = request.header(AUTHORIZATION, self.key.clone()).header(HEADER, format);
        let answer = request.send().await.map_err(|error| Trouble::Offline(unreachable(&error)))?;
        let (status, headers) = (answer.status(), answer.headers());
        if status.is_redirection() {
            return Err(Trouble::Redirects);
        }
        let is_ours = headers.contains_key(HeaderName::from_static(HEADER));
        match status {
            StatusCode::OK if is_ours => Ok(answer),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(Trouble::Busy(retry_after(headers))),
            _ if !is_ours => Err(Trouble::NoTiro),
            StatusCode::UNAUTHORIZED if has_expired(headers) => Err(Trouble::KeyExpired),
            StatusCode::UNAUTHORIZED => Err(Trouble::KeyRefused),
            // The server's header says which formats it speaks.
            StatusCode::UPGRADE_REQUIRED => Err(Trouble::ServerIsLater),
            StatusCode::NOT_IMPLEMENTED => Err(Trouble::ServerIsOlder),
            StatusCode::FORBIDDEN if is_host_refused(headers) => Err(Trouble::Closed),
            StatusCode::FORBIDDEN => Err(Trouble::MayNot),
            StatusCode::NOT_FOUND => Err(Trouble::NotShared),
            StatusCode::INTERNAL_SERVER_ERROR | StatusCode::REQUEST_TIMEOUT => Err(Trouble::Busy(None)),
            other => Err(Trouble::Refused(other.as_u16())),
        }
    }
}

/// Reads an answer that is JSON.
async fn json<T: DeserializeOwned>(answer: Response) -> Result<T, Trouble> {
    let body = body(answer, LARGEST_ANSWER).await?;
    serde_json::from_slice(&body).map_err(|_| Trouble::Page(Unreadable::Other))
}

/// Reads the body of an answer, up to `largest` bytes.
async fn body(mut answer: Response, largest: usize) -> Result<Vec<u8>, Trouble> {
    let mut body = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(None) => return Ok(body),
            Ok(Some(piece)) if body.len() + piece.len() <= largest => body.extend_from_slice(&piece),
            Ok(Some(_)) => return Err(Trouble::Page(Unreadable::TooLarge)),
            Err(_) => return Err(Trouble::Offline(CLOSED)),
        }
    }
}

/// Why there is no answer if the connection ended.
const CLOSED: &str = "the connection was closed before the answer had come";

/// Returns why there is no answer.
fn unreachable(error: &reqwest::Error) -> &'static str {
    use std::io::ErrorKind;
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            match error.kind() {
                ErrorKind::ConnectionRefused => return "the connection was refused",
                ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                    return "there is no network that leads to it";
                }
                ErrorKind::TimedOut => return "the connection timed out",
                _ => {}
            }
        }
        cause = error.source();
    }
    let debug = format!("{error:?}");
    match () {
        () if error.is_timeout() => "the connection timed out",
        () if debug.contains("dns") => "its name could not be resolved",
        () if debug.contains("ertificate") => "its certificate is not trusted",
        () if error.is_connect() => "no connection could be made",
        () => CLOSED,
    }
}

/// Returns how long the server asks to wait, at most an hour.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(3600)))
}

/// Returns whether a refusal says that the key has expired.
fn has_expired(headers: &HeaderMap) -> bool {
    let why = headers.get(WWW_AUTHENTICATE).and_then(|why| why.to_str().ok());
    why.is_some_and(|why| why.contains("expired"))
}

/// Returns whether a refusal is about the machine's name or the user, rather than about the key.
fn is_host_refused(headers: &HeaderMap) -> bool {
    headers.get(HEADER).is_some_and(|value| value == "closed")
}
