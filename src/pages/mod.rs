//! The local pages: what is remembered, in a browser of the same machine (`tiro open`).
//!
//! The server renders whole pages of HTML. Each view has a file in [`views`], which calls operations with the engine and
//! the caller, and shows their answers; a view opens no store. Links and forms do everything, so that the pages work
//! without JavaScript. One short script of our own searches as one types, and fetches what takes long.
//!
//! [`guard`] decides which requests are answered: those of the user's own browser, from the page itself. Nothing is
//! loaded from elsewhere. All texts are escaped ([`text`]).
//!
//! The server of `tiro open` ends with Ctrl-C or SIGTERM, or when nobody used it for a while. `tiro serve --http` serves
//! the pages too. They keep no state of a reader apart from the cookie, so that any number of windows, and several
//! servers, work side by side.

mod assets;
mod error;
mod guard;
mod layout;
mod plot;
mod request;
#[cfg(test)]
mod tests;
mod text;
mod views;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{ConnectInfo, Form, Query, RawQuery, Request as Asked, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, LOCATION, SET_COOKIE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::guard::{Admitted, Guard, Refused};
use self::layout::View;
use self::request::{FORM_TOKEN, Request};
use crate::web::connections::{self, Bound};
use crate::web::metrics::Metrics;
use crate::web::peer::{Owner, Peer};
use tiro_base::error::{Error, Kind, Result};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;

pub use self::request::address;

/// The largest form, in bytes. Arbitrary: longer than any note.
const LARGEST_FORM: usize = 1 << 20;

/// Binds a server to the loopback address: to `port`, or to any free port.
///
/// Errors with [`Kind::Io`] if the port is taken.
pub fn bind(port: Option<u16>) -> Result<Bound> {
    Bound::to((Ipv4Addr::LOCALHOST, port.unwrap_or(0)).into()).map_err(|error| {
        let message = match port {
            Some(port) => format!("cannot listen on port {port}"),
            None => "cannot listen on any port".to_owned(),
        };
        Error::new(Kind::Io, message)
            .source(error)
            .hint("`--port` names another port; without it, a free one is used")
    })
}

/// The pages of a caller's project.
pub struct Pages {
    engine: Arc<Engine>,
    caller: Arc<WritingCaller>,
    guard: Guard,
    used: Mutex<Instant>,
}

impl Pages {
    /// Returns the pages of the server on `port` of the loopback address. `random` are the server's secrets.
    pub fn new(engine: Arc<Engine>, caller: Arc<WritingCaller>, port: u16, random: [u8; 48]) -> Arc<Pages> {
        let guard = Guard::new(port, random);
        Arc::new(Pages { engine, caller, guard, used: Mutex::new(Instant::now()) })
    }

    /// Returns the address that opens `path` in a browser. It works once.
    pub fn address(&self, path: &str) -> String {
        self.guard.address(path)
    }
}

/// Answers until `stop` completes, or until nobody asked for `idle`.
pub async fn serve(
    bound: Bound,
    pages: Arc<Pages>,
    idle: Duration,
    stop: impl Future<Output = ()> + Send,
) -> Result<()> {
    let (ended, is_ended) = watch::channel(false);
    let until_end = async {
        tokio::select! {
            () = stop => {}
            () = unused(&pages, idle) => {}
        }
        let _ = ended.send(true);
    };
    let served = connections::serve(bound, routes(&pages), None, Metrics::default(), is_ended, || {});
    let mut served = std::pin::pin!(served);
    tokio::select! {
        served = served.as_mut() => served,
        () = until_end => served.await,
    }
}

/// Waits until nobody asked for `idle`.
async fn unused(pages: &Pages, idle: Duration) {
    loop {
        let since = pages.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        match idle.checked_sub(since) {
            None | Some(Duration::ZERO) => return,
            Some(rest) => tokio::time::sleep(rest).await,
        }
    }
}

/// Makes the handler of a view that shows something.
macro_rules! show {
    ($view:path) => {
        get(|State(pages): State<Arc<Pages>>, Query(fields): Query<Fields>| async move {
            let request = Request::new(fields, pages.guard.form_token());
            let view = $view(&pages.engine, &pages.caller, &request).await;
            pages.page(view).await
        })
    };
}

/// Makes the handler of a view that changes something.
macro_rules! change {
    ($view:path) => {
        post(|State(pages): State<Arc<Pages>>, Form(fields): Form<Fields>| async move {
            let request = Request::new(fields, pages.guard.form_token());
            if let Err(why) = pages.guard.check_form(request.get(FORM_TOKEN)) {
                return refused(why);
            }
            match $view(&pages.engine, &pages.caller, &request).await {
                Ok(address) => see(&address),
                Err(error) => pages.page(Err(error)).await,
            }
        })
    };
}

/// Makes the handler of what the script asks for.
macro_rules! json {
    ($view:path) => {
        get(|State(pages): State<Arc<Pages>>, Query(fields): Query<Fields>| async move {
            let request = Request::new(fields, "");
            let kind = [(CONTENT_TYPE, "application/json")];
            match $view(&pages.engine, &pages.caller, &request).await {
                Ok(answer) => (kind, answer).into_response(),
                Err(error) => {
                    let (status, text) = error::in_json(&error);
                    (status, kind, text).into_response()
                }
            }
        })
    };
}

/// The fields of a request.
type Fields = Vec<(String, String)>;

/// Returns the routes of the pages.
pub fn routes(pages: &Arc<Pages>) -> Router {
    use self::views::{file, memory, privacy, project, search, session, stash, threads, timeline};

    Router::new()
        .route("/", show!(project::show))
        .route("/doctor", show!(project::check))
        .route("/doctor.json", json!(project::check_in_json))
        .route("/timeline", show!(timeline::show))
        .route("/session", show!(session::show))
        .route("/search", show!(search::show))
        .route("/search.json", json!(search::typed))
        .route("/file", show!(file::show))
        .route("/threads", show!(threads::show))
        .route("/thread", show!(threads::one))
        .route("/privacy", show!(privacy::show))
        .route("/stash", show!(stash::show))
        .route("/memory", show!(memory::show))
        .route("/memory/purge", show!(memory::ask_to_purge).merge(change!(memory::purge)))
        .route("/memory/edit", change!(memory::edit))
        .route("/memory/mark", change!(memory::mark))
        .route("/memory/forget", change!(memory::forget))
        .route("/forgotten", show!(memory::forgotten))
        .route("/undo", change!(memory::undo))
        .fallback(other)
        .method_not_allowed_fallback(not_so)
        .layer(axum::extract::DefaultBodyLimit::max(LARGEST_FORM))
        .layer(middleware::from_fn_with_state(Arc::clone(pages), admit))
        .with_state(Arc::clone(pages))
}

/// Answers only requests of the user's own browser, and adds the headers of every answer.
async fn admit(
    State(pages): State<Arc<Pages>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    RawQuery(query): RawQuery,
    request: Asked,
    next: Next,
) -> Response {
    let admitted = match peer.owner() {
        Owner::Other => Err(Refused::OtherUser),
        // Unknown: the cookie guards against it.
        Owner::User | Owner::Unknown => {
            pages.guard.check(request.method(), request.headers(), query.as_deref().unwrap_or_default())
        }
    };
    let mut response = match admitted {
        Err(why) => refused(why),
        Ok(admitted) => {
            *pages.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            match (admitted, assets::at(request.uri().path())) {
                (Admitted::First, _) => first(&pages.guard, request.uri().path(), query.as_deref()),
                (_, Some(asset)) => file(asset),
                (_, None) => answer(next.run(request)).await,
            }
        }
    };
    let headers = response.headers_mut();
    for (name, value) in guard::HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Returns the answer of a view, or a page that says that the view panicked. A view whose reader went away is ended.
async fn answer(view: impl Future<Output = Response> + Send + 'static) -> Response {
    let mut task = JoinSet::new();
    task.spawn(view);
    match task.join_next().await {
        Some(Ok(answer)) => answer,
        _ => {
            let why = "This view panicked, which is a bug in Tiro. The terminal says where. Nothing else is affected.";
            html(StatusCode::INTERNAL_SERVER_ERROR, layout::bare("That did not work", why).into_string())
        }
    }
}

/// Answers the first address: sets the cookie, and leads to the same address without the token.
///
/// The page leads there itself instead of being redirected: if a link of another program opened the address, a browser
/// would not send a `SameSite=Strict` cookie with the redirected request.
fn first(guard: &Guard, path: &str, query: Option<&str>) -> Response {
    let rest: Vec<&str> = query
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.starts_with("token=") && !pair.is_empty())
        .collect();
    let address = if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) };
    let mut response = html(StatusCode::OK, layout::first(&address).into_string());
    let cookie = HeaderValue::from_str(&guard.set_cookie()).expect("a cookie of letters and digits");
    response.headers_mut().insert(SET_COOKIE, cookie);
    response
}

fn refused(why: Refused) -> Response {
    html(StatusCode::FORBIDDEN, layout::bare("Not allowed", why.sentence()).into_string())
}

fn file(asset: &assets::Asset) -> Response {
    let headers = [
        (CONTENT_TYPE, asset.kind),
        (CACHE_CONTROL, "private, max-age=31536000, immutable"),
        (ETAG, asset.tag.as_str()),
    ];
    (headers, asset.content).into_response()
}

fn html(status: StatusCode, text: String) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// Leads to another address after a change, so that loading the page again repeats nothing.
fn see(address: &str) -> Response {
    match HeaderValue::from_str(address) {
        Ok(address) => (StatusCode::SEE_OTHER, [(LOCATION, address)]).into_response(),
        Err(_) => (StatusCode::SEE_OTHER, [(LOCATION, HeaderValue::from_static("/"))]).into_response(),
    }
}

/// Answers an address that is none of the pages.
async fn other(State(pages): State<Arc<Pages>>) -> Response {
    pages.page(Err(Error::not_found("there is no such page").hint("the views are listed above"))).await
}

/// Answers a request that a page doesn't take, such as a change that was asked for by a link.
async fn not_so(State(pages): State<Arc<Pages>>) -> Response {
    let error = Error::bad_input("this page can't be asked for in this way").hint("go back and use its form");
    let mut response = pages.page(Err(error)).await;
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

impl Pages {
    /// Returns the answer with a view, or with an error.
    async fn page(&self, view: Result<View>) -> Response {
        let (status, mut view) = match view {
            Ok(view) => (StatusCode::OK, view),
            Err(error) => error::page(&error),
        };
        let project = self.caller.project(&self.engine).await;
        let name = project.as_ref().map_or("no project", |project| project.name.as_str());
        view.notices.extend(self.caller.take_news(&self.engine));
        html(status, layout::page(&view, name).into_string())
    }
}
