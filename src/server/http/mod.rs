//! The MCP server over HTTP: streamable HTTP without sessions.
//!
//! Every request is complete: its headers say who sends it, and its address names the project. The server remembers no
//! client, so any number of servers with the same stores answer for each other. rmcp checks the headers of MCP and
//! answers as JSON, or as a stream of events if there is progress to tell. Our own code decides who may send a request
//! ([`door`]), reads messages as liberally as on stdio ([`mod@message`]), and knows what each caller is offered
//! ([`callers`]).
//!
//! - `/mcp` is the project of the server's directory, and `/mcp/PROJECT` a registered project, by its id or name.
//! - `/sync` is for the machines of users that have memories of their own ([`sync`]).
//! - A request whose client goes away is cancelled. So `notifications/cancelled` is not needed, and ignored.
//! - The end of the server cancels open calls, after they had as much time as on stdio.

mod callers;
mod client;
mod door;
mod message;
mod sync;
mod wait;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::header::ALLOW;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use rmcp::RoleServer;
use rmcp::service::RxJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::runtime::Handle;
use tokio::sync::watch;

use self::callers::Callers;
use self::door::{Door, Refusal};
use self::sync::{Asked, Desk};
use super::handler::{Handler, METHODS};
use crate::web::body;
use crate::web::hosts::Hosts;
use crate::web::metrics::{Counted, Metrics};
use crate::web::peer::Peer;
use crate::web::rates::Rates;
use tiro_host::caller::{Toolsets, WritingCaller};
use tiro_host::engine::Engine;

/// The MCP server of one owner over HTTP.
pub struct Http {
    engine: Arc<Engine>,
    callers: Callers,
    door: Door,
    desk: Desk,
    /// Whether machines may no longer wait, because the server ends.
    is_ending: watch::Sender<bool>,
    metrics: Metrics,
    config: StreamableHttpServerConfig,
}

/// Who may use a server.
pub struct Admission {
    /// The names of the server.
    pub hosts: Hosts,
    /// The rates of its users, where servers share them.
    pub rates: Rates,
    /// Whether the owner needs no key as long as there is none. Only for a server on the loopback address.
    pub is_open_to_owner: bool,
}

impl Http {
    /// Returns the server of `caller`, who is offered `toolsets`. `workers` runs the idle workers.
    pub fn new(
        engine: &Arc<Engine>,
        caller: &Arc<WritingCaller>,
        toolsets: Toolsets,
        admission: Admission,
        metrics: Metrics,
        workers: Handle,
    ) -> Arc<Http> {
        super::keep_texts_out_of_panics();
        tiro_embed::give_back_freed();
        let Admission { hosts, rates, is_open_to_owner } = admission;
        // The door checks the headers and the length of a request.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(usize::MAX);
        Arc::new(Http {
            engine: Arc::clone(engine),
            callers: Callers::new(Arc::clone(engine), Arc::clone(caller), toolsets, workers),
            door: Door::new(Arc::clone(engine), hosts, rates, is_open_to_owner),
            desk: Desk::new(engine),
            is_ending: watch::Sender::default(),
            metrics,
            config,
        })
    }

    /// Answers the machines that wait for changes. From now on, none waits any longer.
    pub fn end_waits(&self) {
        self.is_ending.send_replace(true);
    }

    /// Cancels all open calls.
    pub fn give_up(&self) {
        self.config.cancellation_token.cancel();
    }

    /// Returns the callers who may have a project open.
    pub fn owners(&self) -> Vec<Arc<WritingCaller>> {
        self.callers.owners()
    }

    /// Answers a request, and counts it.
    async fn answer(&self, peer: Peer, target: Target, request: Request) -> Response {
        let began = Instant::now();
        let counted = match target {
            Target::Sync(Asked::Wait(_)) => self.metrics.begin_wait(),
            Target::Mcp(_) | Target::Sync(_) => self.metrics.begin(),
        };
        let mut method = "other";
        let (is_sync, mut is_closed) = (matches!(target, Target::Sync(_)), false);
        let mut answer = match self.pass(peer, target, request, &mut method).await {
            Ok(answer) => answer,
            Err(refusal) => {
                self.metrics.refused(refusal.reason());
                is_closed = matches!(refusal, Refusal::OtherUser | Refusal::Header(_));
                refusal.answer()
            }
        };
        if is_sync {
            sync::mark(&mut answer, is_closed);
        }
        let status = answer.status().as_u16();
        let ending = Ending { metrics: self.metrics.clone(), method, status, began, counted };
        answer.map(|body| body::holding(body, ending))
    }

    /// Passes a request on if it may be answered. Sets `method` to the method of its message.
    async fn pass(
        &self,
        peer: Peer,
        target: Target,
        request: Request,
        method: &mut &'static str,
    ) -> Result<Response, Refusal> {
        let (mut parts, content) = request.into_parts();
        let admitted = self.door.admit(&peer, &parts.uri, &parts.headers, self.engine.now()).await;
        let (principal, permit) = admitted?;
        let project = match target {
            Target::Mcp(project) => project,
            Target::Sync(asked) => {
                *method = asked.words();
                if parts.method != asked.method() {
                    let allowed = [(ALLOW, asked.method().to_string())];
                    return Ok((StatusCode::METHOD_NOT_ALLOWED, allowed).into_response());
                }
                if let Asked::Wait(project) = asked {
                    // Who waits makes no call.
                    drop(permit);
                    return self.wait(&peer, principal, &project, &parts).await;
                }
                let answer = self.desk.answer(&self.callers, principal, asked, &parts, content).await?;
                return Ok(answer.map(|body| body::holding(body, permit)));
            }
        };
        if parts.method != Method::POST {
            return Ok((StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "POST")]).into_response());
        }
        message::accept_answers(&mut parts.headers);
        let content = body::read(content).await.map_err(Refusal::Body)?;
        let messages = match message::read(&content, &parts.headers) {
            Ok(messages) => messages,
            Err(answer) => return Ok(*answer),
        };
        drop(content);
        let Some(first) = messages.first() else {
            return Ok(StatusCode::ACCEPTED.into_response());
        };
        *method = client::method(first, METHODS);
        let client = client::name(first, &parts.headers);
        let handler = self.callers.handler(principal, project.as_deref(), &client).await;
        let handler = handler.map_err(Refusal::Failed)?.ok_or(Refusal::NoProject)?;
        let answer = match messages.is_batch() {
            false => self.serve(&handler, &parts, first).await,
            true => {
                let mut answers = message::Answers::default();
                for message in messages.iter() {
                    answers.add(self.serve(&handler, &parts, message).await).await;
                }
                answers.whole(messages)
            }
        };
        Ok(answer.map(|body| body::holding(body, permit)))
    }

    /// Has rmcp answer a message.
    async fn serve(
        &self,
        handler: &Arc<Handler>,
        parts: &axum::http::request::Parts,
        message: &RxJsonRpcMessage<RoleServer>,
    ) -> Response {
        let handler = Arc::clone(handler);
        let service = StreamableHttpService::new(
            move || Ok(Arc::clone(&handler)),
            Arc::new(NeverSessionManager::default()),
            self.config.clone(),
        );
        let content = serde_json::to_vec(message).expect("a message is JSON");
        let request = Request::from_parts(parts.clone(), Body::from(content));
        service.handle(request).await.map(Body::new)
    }
}

/// What a request is sent to.
enum Target {
    /// MCP, in the project of this name or that of the server's directory.
    Mcp(Option<String>),
    /// The exchange of memories.
    Sync(Asked),
}

/// Counts a request when its answer was sent or given up.
struct Ending {
    metrics: Metrics,
    method: &'static str,
    status: u16,
    began: Instant,
    counted: Counted,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.metrics.answered(&self.counted, self.method, self.status, self.began.elapsed());
    }
}

/// Returns the routes of the server.
pub fn routes(http: &Arc<Http>) -> Router {
    let whole = |target: fn() -> Target| {
        any(
            move |State(http): State<Arc<Http>>, ConnectInfo(peer): ConnectInfo<Peer>, request: Request| async move {
                http.answer(peer, target(), request).await
            },
        )
    };
    let named = |target: fn(String) -> Target| {
        any(
            move |State(http): State<Arc<Http>>,
                  ConnectInfo(peer): ConnectInfo<Peer>,
                  Path(project): Path<String>,
                  request: Request| async move { http.answer(peer, target(project), request).await },
        )
    };
    Router::new()
        .route("/mcp", whole(|| Target::Mcp(None)))
        .route("/mcp/{project}", named(|project| Target::Mcp(Some(project))))
        .route("/sync", whole(|| Target::Sync(Asked::Greeting)))
        .route("/sync/{project}/push", named(|project| Target::Sync(Asked::Push(project))))
        .route("/sync/{project}/pull", named(|project| Target::Sync(Asked::Pull(project))))
        .route("/sync/{project}/wait", named(|project| Target::Sync(Asked::Wait(project))))
        .with_state(Arc::clone(http))
}
