//! The exchange of memories with the machines of users, beside MCP: the same door, keys and bounds.
//!
//! - `GET /sync` says who the server is, who asks, and which projects are shared with the user.
//! - `POST /sync/PROJECT/push` takes a page of changes, and says what became of each.
//! - `GET /sync/PROJECT/pull?after=NUMBER` gives a page of changes.
//! - `GET /sync/PROJECT/wait?after=NUMBER` says when there are changes ([`wait`](super::wait)).
//!
//! The last three name the id of the user's device, so that it doesn't get back what it sent. Each request is complete, so
//! any server with the same stores answers it. What a page and its answer mean is in `tiro_sync`, and who may change what
//! is decided in [`serve`].

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Query;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::callers::Callers;
use super::door::Refusal;
use crate::web::body;
use tiro_base::error::Result;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::exchange::serve::{self, Guest, Look, Touched};
use tiro_host::principals::{Denied, Principal, rights};
use tiro_store::{AuditRow, ProjectRights};
use tiro_sync::greeting::{HEADER, Project};
use tiro_sync::line;
use tiro_sync::page::{self, FORMAT, MEDIA_TYPE, Unreadable};

/// The most pages that are unpacked or packed at the same time. An unpacked page has up to 32 MiB, and what is made of it
/// as much again.
const MOST_PAGES: usize = 4;

/// The most looks for changes at the same time, for machines that wait. A notice wakes all machines that wait for a
/// project, and calls need connections to the database, too.
const MOST_LOOKS: usize = 4;

/// A request for the exchange.
pub(super) enum Asked {
    /// Who the server is.
    Greeting,
    /// To take a page of changes of the project with this id.
    Push(String),
    /// To give a page of changes of the project with this id.
    Pull(String),
    /// To say when there are changes of the project with this id.
    Wait(String),
}

impl Asked {
    /// Returns the method that such a request has.
    pub(super) fn method(&self) -> Method {
        match self {
            Asked::Greeting | Asked::Pull(_) | Asked::Wait(_) => Method::GET,
            Asked::Push(_) => Method::POST,
        }
    }

    /// Returns what is asked for in words, for counts.
    pub(super) fn words(&self) -> &'static str {
        match self {
            Asked::Greeting => "sync greeting",
            Asked::Push(_) => "sync push",
            Asked::Pull(_) => "sync pull",
            Asked::Wait(_) => "sync wait",
        }
    }
}

/// The parameters of a request.
#[derive(Deserialize)]
struct Parameters {
    device: String,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    after: i64,
    #[serde(default)]
    pages: u64,
}

/// Who asks for what in a project.
struct Visit {
    caller: Arc<WritingCaller>,
    guest: Guest,
    /// The number after which changes are asked for.
    after: i64,
}

/// What is wrong if the parameters of a request can't be read.
const PARAMETERS: &str = "The request needs `device`, and its `after` and `pages` must be numbers, and its `private` must be `true` or `false`.";

/// What is wrong with a page that is too large. The test of this module compares it with the bounds of a page.
const TOO_LARGE: &str =
    "A page may have at most 500 lines, and 32 MiB when it is unpacked. Send several pages.";

/// The refusal of a request in a later format.
const OLDER: Refusal =
    Refusal::Request(StatusCode::NOT_IMPLEMENTED, "This server speaks only older formats.");

/// Answers requests for the exchange.
pub(super) struct Desk {
    engine: Arc<Engine>,
    pages: Semaphore,
    looks: Semaphore,
}

impl Desk {
    /// Returns the desk of a server.
    pub(super) fn new(engine: &Arc<Engine>) -> Desk {
        Desk {
            engine: Arc::clone(engine),
            pages: Semaphore::new(MOST_PAGES),
            looks: Semaphore::new(MOST_LOOKS),
        }
    }

    /// Answers a request of `principal`. The owner needs a key for the exchange, too, because it has the name of the
    /// author.
    pub(super) async fn answer(
        &self,
        callers: &Callers,
        principal: Option<Principal>,
        asked: Asked,
        parts: &Parts,
        content: Body,
    ) -> Result<Response, Refusal> {
        let (is_push, project) = match asked {
            Asked::Greeting => return self.greeting(principal).await,
            Asked::Push(project) => (true, project),
            Asked::Pull(project) | Asked::Wait(project) => (false, project),
        };
        let Visit { caller, guest, after } = self.visit(callers, principal, &project, parts).await?;
        match is_push {
            true => self.push(&caller, &guest, content).await,
            false => self.pull(&caller, &guest, after).await.map_err(Refusal::Failed),
        }
    }

    /// Looks for changes of the project that `principal` may see and doesn't have.
    pub(super) async fn look(
        &self,
        callers: &Callers,
        principal: Option<Principal>,
        project: &str,
        parts: &Parts,
    ) -> Result<Look, Refusal> {
        let _look = self.looks.acquire().await.expect("nothing closes it");
        let Visit { caller, guest, after } = self.visit(callers, principal, project, parts).await?;
        serve::look(&self.engine, &caller, &guest, after).await.map_err(Refusal::Failed)
    }

    /// Returns the projects that are shared with `principal`.
    async fn shared(&self, principal: &Principal) -> Result<Vec<ProjectRights>, Refusal> {
        let installation = self.engine.begin_installation().await.map_err(Refusal::Failed)?;
        rights::projects(installation.registry.as_ref(), principal).await.map_err(Refusal::Failed)
    }

    /// Finds out who asks for what in the project with the id `project`.
    async fn visit(
        &self,
        callers: &Callers,
        principal: Option<Principal>,
        project: &str,
        parts: &Parts,
    ) -> Result<Visit, Refusal> {
        let principal = principal.ok_or(Refusal::Key(Denied::Unknown))?;
        let shared = self.shared(&principal).await?;
        if format_of(&parts.headers) > FORMAT {
            return Err(OLDER);
        }
        let shared = shared.into_iter().find(|row| row.project.as_str() == project);
        let shared = shared.ok_or(Refusal::NoProject)?;
        let wrong = |text| Refusal::Request(StatusCode::BAD_REQUEST, text);
        let parameters = Query::<Parameters>::try_from_uri(&parts.uri);
        let Query(parameters) = parameters.map_err(|_| wrong(PARAMETERS))?;
        if !serve::is_device(&parameters.device) {
            return Err(wrong("The device has no plain id."));
        }
        let guest = Guest {
            author: principal.author.clone(),
            access: principal.access,
            may_write: shared.rights.may_write,
            kinds: shared.rights.kinds.clone(),
            device: parameters.device,
            with_private: parameters.private,
            pages: parameters.pages,
        };
        let caller = callers.guest(&principal, &shared).await.map_err(Refusal::Failed)?;
        Ok(Visit { caller: caller.ok_or(Refusal::NoProject)?, guest, after: parameters.after.max(0) })
    }

    /// Adds a request to the record of calls, if it concerned any memory.
    async fn note(&self, caller: &WritingCaller, guest: &Guest, verb: &str, touched: Touched) -> Result<()> {
        if touched.count == 0 {
            return Ok(());
        }
        let project = caller.project(&self.engine).await?.scope.project.clone();
        let call = AuditRow {
            at: self.engine.now(),
            user: guest.author.as_str().to_owned(),
            verb: verb.to_owned(),
            project: Some(project.as_str().to_owned()),
            memories: touched.ids,
            count: touched.count as i64,
            authors: touched.authors.into_iter().collect(),
            outcome: "ok".to_owned(),
        };
        self.engine.begin_installation().await?.registry.note_call(call).await
    }

    async fn greeting(&self, principal: Option<Principal>) -> Result<Response, Refusal> {
        let principal = principal.ok_or(Refusal::Key(Denied::Unknown))?;
        let shared = self.shared(&principal).await?;
        let installation = self.engine.begin_installation().await.map_err(Refusal::Failed)?;
        let project = |row: ProjectRights| Project {
            id: row.project.as_str().to_owned(),
            name: row.name,
            may_write: row.rights.may_write,
            kinds: row.rights.kinds.iter().map(ToString::to_string).collect(),
        };
        let projects = shared.into_iter().map(project).collect();
        Ok(json(&serve::greet(&self.engine, &installation, &principal.author, projects)))
    }

    async fn push(&self, caller: &WritingCaller, guest: &Guest, content: Body) -> Result<Response, Refusal> {
        let content = body::read(content).await.map_err(Refusal::Body)?;
        let _page = self.pages.acquire().await.expect("nothing closes it");
        let unpacked = tokio::task::spawn_blocking(move || page::read(&content, line::read));
        let lines = match unpacked.await.unwrap_or(Err(Unreadable::Other)) {
            Ok(page) => page.lines,
            Err(Unreadable::TooLarge) => {
                return Err(Refusal::Request(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE));
            }
            Err(Unreadable::Later) => return Err(OLDER),
            Err(Unreadable::Other | Unreadable::BrokenOff) => {
                let text = "The body is no whole page of changes.";
                return Err(Refusal::Request(StatusCode::BAD_REQUEST, text));
            }
        };
        let taken = serve::take(&self.engine, caller, guest, lines).await.map_err(Refusal::Failed)?;
        let (received, touched) = taken;
        self.note(caller, guest, "sync push", touched).await.map_err(Refusal::Failed)?;
        Ok(json(&received))
    }

    async fn pull(&self, caller: &WritingCaller, guest: &Guest, after: i64) -> Result<Response> {
        let _page = self.pages.acquire().await.expect("nothing closes it");
        let (page, touched) = serve::give(&self.engine, caller, guest, after).await?;
        self.note(caller, guest, "sync pull", touched).await?;
        Ok((StatusCode::OK, [(CONTENT_TYPE, MEDIA_TYPE)], page).into_response())
    }
}

/// Marks an answer as one of a Tiro that can sync. `is_closed` says that it refuses the name of the server, or everybody
/// but the owner.
pub(super) fn mark(answer: &mut Response, is_closed: bool) {
    let value = if is_closed { HeaderValue::from_static("closed") } else { HeaderValue::from(FORMAT) };
    answer.headers_mut().insert(HeaderName::from_static(HEADER), value);
}

/// Returns the format of a request. A request that names none has the oldest.
fn format_of(headers: &HeaderMap) -> u32 {
    let format = headers.get(HEADER).and_then(|format| format.to_str().ok()?.trim().parse().ok());
    format.unwrap_or(FORMAT)
}

/// Returns an answer that is JSON.
pub(super) fn json(value: &impl Serialize) -> Response {
    let content = serde_json::to_vec(value).expect("plain values are JSON");
    (StatusCode::OK, [(CONTENT_TYPE, "application/json")], content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_too_large_is_told_its_bounds() {
        for bound in [format!("{} lines", page::MOST), format!("{} MiB", page::LARGEST >> 20)] {
            assert!(TOO_LARGE.contains(&bound), "{bound}");
        }
    }
}
