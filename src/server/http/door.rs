//! Decides who may send a request, and answers the others.

use std::sync::Arc;
use std::time::Instant;

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::web::body::Unread;
use crate::web::bounds::{Bounds, Limits, Permit, TooMuch};
use crate::web::hosts::{Hosts, Wrong};
use crate::web::peer::{Owner, Peer};
use crate::web::rates::Rates;
use tiro_base::error::{Error, Kind};
use tiro_base::memory::Millis;
use tiro_host::engine::Engine;
use tiro_host::principals::{Denied, Principal, keys};

/// Who may send requests to a server.
pub(super) struct Door {
    engine: Arc<Engine>,
    hosts: Hosts,
    /// Whether the owner needs no key, as long as there is none.
    is_open_to_owner: bool,
    bounds: Bounds,
    waits: Bounds,
    rates: Rates,
    began: Instant,
}

/// Why a request is refused.
pub(super) enum Refusal {
    OtherUser,
    Header(Wrong),
    Key(Denied),
    TooMuch(TooMuch),
    Body(Unread),
    NoProject,
    /// The request is malformed, or of another version. The text says why.
    Request(StatusCode, &'static str),
    /// Too many machines wait, of the caller or in all.
    Waits,
    Failed(Error),
}

/// A request that is answered: who sent it, or `None` for the owner, and the right to one call.
pub(super) type Admitted = (Option<Principal>, Permit);

impl Door {
    /// Returns the door of a server. `is_open_to_owner` says whether the owner needs no key while there is none.
    pub(super) fn new(engine: Arc<Engine>, hosts: Hosts, rates: Rates, is_open_to_owner: bool) -> Door {
        let (bounds, waits) = (Bounds::new(Limits::default()), Bounds::new(Limits::of_waits()));
        Door { engine, hosts, is_open_to_owner, bounds, waits, rates, began: Instant::now() }
    }

    /// Decides whether a request is answered at the time `now`, by its headers alone.
    pub(super) async fn admit(
        &self,
        peer: &Peer,
        uri: &Uri,
        headers: &HeaderMap,
        now: Millis,
    ) -> Result<Admitted, Refusal> {
        self.hosts.check(headers, uri.authority().map(|it| it.as_str())).map_err(Refusal::Header)?;
        let principal = match self.principal(peer, headers, now).await {
            Err(denied @ Refusal::Key(_)) => {
                // Whoever tries keys is slowed down.
                let caller = format!("address {}", peer.ip());
                return Err(self.begin(&caller).await.map_or_else(Refusal::TooMuch, |_| denied));
            }
            other => other?,
        };
        let permit = self.begin(&name(principal.as_ref())).await.map_err(Refusal::TooMuch)?;
        Ok((principal, permit))
    }

    /// Gives the right to wait to who was admitted. It ends when the permit is dropped.
    pub(super) fn admit_wait(&self, principal: Option<&Principal>) -> Result<Permit, Refusal> {
        self.waits.begin(&name(principal), self.began.elapsed()).map_err(|_| Refusal::Waits)
    }

    /// Returns who sent a request that was admitted a while ago. The key may have been revoked since then.
    pub(super) async fn readmit(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        now: Millis,
    ) -> Result<Option<Principal>, Refusal> {
        self.principal(peer, headers, now).await
    }

    async fn begin(&self, caller: &str) -> Result<Permit, TooMuch> {
        let permit = self.bounds.begin(caller, self.began.elapsed())?;
        self.rates.begin(caller).await?;
        Ok(permit)
    }

    /// Returns who sent a request: the principal whose key it has, or `None` for the owner. Everything that finds out who
    /// sends a request is here.
    async fn principal(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        now: Millis,
    ) -> Result<Option<Principal>, Refusal> {
        let given = bearer(headers);
        let installation = self.engine.existing_installation().await.map_err(Refusal::Failed)?;
        // Without a registry, there are no keys.
        let Some(installation) = installation else {
            return match given {
                None if self.is_open_to_owner => is_user(peer).await.map(|()| None),
                _ => Err(Refusal::Key(Denied::Unknown)),
            };
        };
        let registry = installation.registry.as_ref();
        if given.is_none() && self.is_open_to_owner {
            let are_needed = keys::are_needed(registry).await.map_err(Refusal::Failed)?;
            if !are_needed {
                return is_user(peer).await.map(|()| None);
            }
        }
        let found = keys::principal(registry, given.as_deref().unwrap_or_default(), now).await;
        found.map_err(Refusal::Failed)?.map(Some).map_err(Refusal::Key)
    }
}

/// Returns the name under which the calls of a principal, or of the owner, are counted.
fn name(principal: Option<&Principal>) -> String {
    principal.map_or("owner".to_owned(), |principal| format!("author {}", principal.author.as_str()))
}

/// Checks that a request comes from the user who started the server.
async fn is_user(peer: &Peer) -> Result<(), Refusal> {
    let peer = peer.clone();
    // Reads files of the system.
    let is_user = tokio::task::spawn_blocking(move || peer.owner() == Owner::User).await;
    match is_user {
        Ok(true) => Ok(()),
        Ok(false) => Err(Refusal::OtherUser),
        Err(_) => Err(Refusal::Failed(Error::new(Kind::Io, "the check of the user panicked"))),
    }
}

/// Returns the key of a request, or `None` if it has no `Authorization`. What is no single key is an empty one, which
/// nobody has.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let first = given.next()?;
    let key = first.to_str().ok().filter(|_| given.next().is_none()).and_then(|text| {
        let (scheme, key) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| key.trim().to_owned())
    });
    Some(key.unwrap_or_default())
}

impl Refusal {
    /// Returns the reason in a word, for counts.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Refusal::OtherUser => "other user",
            Refusal::Header(Wrong::Host) => "host",
            Refusal::Header(Wrong::Origin) => "origin",
            Refusal::Key(Denied::Unknown) => "key",
            Refusal::Key(Denied::Expired) => "expired key",
            Refusal::TooMuch(TooMuch::Often(_)) => "rate",
            Refusal::TooMuch(TooMuch::Open) => "open calls of a caller",
            Refusal::TooMuch(TooMuch::Busy) => "open calls",
            Refusal::Body(Unread::TooLarge) => "body too large",
            Refusal::Body(Unread::TooSlow) => "slow body",
            Refusal::Body(Unread::Ended) => "body ended",
            Refusal::NoProject => "no project",
            Refusal::Request(..) => "request",
            Refusal::Waits => "waits",
            Refusal::Failed(_) => "failure",
        }
    }

    /// Returns the answer.
    pub(super) fn answer(&self) -> Response {
        let (status, text) = match self {
            Refusal::OtherUser => (
                StatusCode::FORBIDDEN,
                "This server answers only the user who started it. `tiro user add NAME` makes keys for others.",
            ),
            Refusal::Header(wrong) => (StatusCode::FORBIDDEN, wrong.sentence()),
            Refusal::Key(Denied::Unknown) => {
                (StatusCode::UNAUTHORIZED, "A valid key is needed: `Authorization: Bearer tiro_…`.")
            }
            Refusal::Key(Denied::Expired) => {
                (StatusCode::UNAUTHORIZED, "This key has expired. Ask for a new one.")
            }
            Refusal::TooMuch(TooMuch::Busy) => {
                (StatusCode::SERVICE_UNAVAILABLE, "The server is busy. Repeat the call later.")
            }
            Refusal::TooMuch(_) => (StatusCode::TOO_MANY_REQUESTS, "Too many calls. Repeat the call later."),
            Refusal::Body(Unread::TooLarge) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "A request may have at most 4 MiB. Use several calls.")
            }
            Refusal::Body(_) => (StatusCode::REQUEST_TIMEOUT, "The body of the request did not arrive."),
            Refusal::NoProject => (StatusCode::NOT_FOUND, "There is no such project."),
            Refusal::Request(status, text) => (*status, *text),
            Refusal::Waits => {
                (StatusCode::SERVICE_UNAVAILABLE, "Too many machines wait. Ask for changes without waiting.")
            }
            Refusal::Failed(error) => {
                tracing::error!(error = error.with_hint(), "a request failed");
                error.log();
                (StatusCode::INTERNAL_SERVER_ERROR, "The server can't answer. Its log says why.")
            }
        };
        let mut response = (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response();
        let mut add = |name: HeaderName, value: String| {
            response.headers_mut().insert(name, value.parse().expect("ASCII"));
        };
        match self {
            Refusal::TooMuch(too_much) => add(RETRY_AFTER, too_much.retry_after().to_string()),
            Refusal::Waits => add(RETRY_AFTER, "60".to_owned()),
            Refusal::Key(Denied::Unknown) => add(WWW_AUTHENTICATE, "Bearer".to_owned()),
            Refusal::Key(Denied::Expired) => {
                let why = "Bearer error=\"invalid_token\", error_description=\"the key has expired\"";
                add(WWW_AUTHENTICATE, why.to_owned());
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_single_bearer_token_is_a_key() {
        let given = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_static(value));
            }
            bearer(&headers)
        };
        assert_eq!(given(&[]), None);
        assert_eq!(given(&["Bearer tiro_1"]).as_deref(), Some("tiro_1"));
        assert_eq!(given(&["bearer  tiro_1 "]).as_deref(), Some("tiro_1"));
        for wrong in [&["Basic tiro_1"][..], &["tiro_1"], &["Bearer"], &["Bearer a", "Bearer b"], &[""]] {
            assert_eq!(given(wrong).as_deref(), Some(""), "{wrong:?}");
        }
    }
}
