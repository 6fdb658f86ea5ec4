//! `tiro serve --http`: runs the MCP server and the pages over HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::runtime::Builder;
use tokio::sync::watch;

use super::background::{close, finish, idle_workers};
use crate::cli::print::{self, Out};
use crate::pages::{self, Pages};
use crate::server;
use crate::server::http::{self, Admission, Http};
use crate::web::address::{self, Protection};
use crate::web::connections::{self, Bound};
use crate::web::health::{self, Ready};
use crate::web::hosts::Hosts;
use crate::web::metrics::Metrics;
use crate::web::rates::Rates;
use crate::web::{Routes, peer, tls};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_host::caller::{Toolsets, WritingCaller};
use tiro_host::engine::Engine;
use tiro_host::principals::keys;

/// The arguments of `tiro serve` for HTTP.
#[derive(clap::Args)]
pub struct HttpArgs {
    /// Serve over HTTP on ADDR instead, such as 8137; without a host, only programs of this machine can connect
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Also answer to this name of the machine
    #[arg(long, value_name = "NAME", requires = "http")]
    host: Vec<String>,
    /// The certificate chain for TLS, a file in PEM
    #[arg(long, value_name = "FILE", requires = "http", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a file in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy in front of the server does TLS and passes requests on
    #[arg(long, requires = "http")]
    behind_proxy: bool,
    /// Start a throw-away PostgreSQL for a look, which is removed when the server ends
    #[arg(long = "try", requires = "http")]
    is_trial: bool,
    /// Serve counts for monitoring programs on ADDR, at /metrics
    #[arg(long, value_name = "ADDR", requires = "http")]
    metrics: Option<String>,
}

/// A server that is ready to run.
struct Listening {
    bound: Bound,
    tls: Option<tls::Acceptor>,
    counts: Option<Bound>,
    hosts: Hosts,
    /// Whether the server is used only by programs of this machine, and without TLS.
    is_local: bool,
}

impl HttpArgs {
    /// Returns the address of the server, if it shall serve over HTTP.
    pub fn address(&self) -> Option<&str> {
        self.http.as_deref()
    }

    /// Returns whether the memory shall be in a throw-away database.
    pub fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// Checks the arguments and binds the server.
    async fn listen(&self, engine: &Engine) -> Result<Listening> {
        let address = address::read(self.http.as_deref().unwrap_or_default())?;
        let installation = engine.existing_installation().await?;
        let has_keys = match &installation {
            Some(installation) => keys::are_needed(installation.registry.as_ref()).await?,
            None => false,
        };
        let protection =
            Protection { has_keys, has_tls: self.tls_cert.is_some(), is_behind_proxy: self.behind_proxy };
        address::check(address, protection, peer::TELLS_USERS)?;
        if let Some(name) = self.host.iter().find(|name| name.contains([':', '/'])) {
            return Err(Error::bad_input(format!("`{}` is no name of a machine", quoted(name)))
                .hint("write the name alone, without a port, such as memory.example.org"));
        }
        let mut names = self.host.clone();
        match (address.ip().is_unspecified(), self.host.is_empty()) {
            (true, true) => {
                return Err(Error::bad_input(format!("`{address}` is every address of the machine"))
                    .hint("name the machine as its users do, by `--host NAME`"));
            }
            (true, false) => {}
            (false, _) if address.is_ipv6() => names.push(format!("[{}]", address.ip())),
            (false, _) => names.push(address.ip().to_string()),
        }
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Some(tls::acceptor(certificate, key)?),
            _ => None,
        };
        let bound = Bound::to(address)?;
        let counts = self.metrics.as_deref().map(|text| Bound::to(address::read(text)?)).transpose()?;
        let port = (!self.behind_proxy).then(|| bound.address().port());
        let is_loopback = address::is_loopback(address) && !self.behind_proxy;
        let hosts = Hosts::new(&names, port, tls.is_some(), is_loopback);
        let is_local = is_loopback && tls.is_none();
        Ok(Listening { bound, tls, counts, hosts, is_local })
    }
}

/// Serves until Ctrl-C or SIGTERM, and does pending work in the background.
pub fn run(
    engine: Arc<Engine>,
    caller: Arc<WritingCaller>,
    toolsets: Toolsets,
    args: &HttpArgs,
    out: Out,
) -> Result<ExitCode> {
    let cannot = || "cannot start the server".to_owned();
    let runtime =
        Builder::new_multi_thread().worker_threads(2).enable_all().build().context(Kind::Io, cannot)?;
    let listening = runtime.block_on(args.listen(&engine))?;
    // On stdio, the client starts the server in its project. Here, a person does, and reads the error.
    caller.directory()?;
    let workers = idle_workers()?;
    let metrics = Metrics::default();
    let Listening { bound, tls, counts, hosts, is_local } = listening;
    let address = bound.address();
    let rates = Rates::of(engine.config())?;
    let admission = Admission { hosts, rates, is_open_to_owner: is_local && peer::TELLS_USERS };
    let http = Http::new(&engine, &caller, toolsets, admission, metrics.clone(), workers);
    let ready = ready(&engine);
    let pages = is_local.then(|| {
        let (engine, caller) = (Arc::clone(&engine), Arc::clone(&caller));
        let random = engine.random();
        Pages::new(engine, caller, address.port(), random)
    });
    // Whoever has read the addresses may end the server.
    let stop = {
        let _within = runtime.enter();
        server::termination()
    };
    announce((args.host.first(), address), tls.is_some(), pages.as_deref(), counts.as_ref(), out)?;
    let mut router = http::routes(&http).merge(health::routes(Arc::clone(&ready)));
    if let Some(pages) = &pages {
        router = router.merge(pages::routes(pages));
    }
    let served = runtime.block_on(async {
        let (ended, is_ended) = watch::channel(false);
        let given_up = Arc::clone(&http);
        let main = connections::serve(bound, router, tls, metrics.clone(), is_ended.clone(), move || {
            given_up.give_up();
        });
        let beside = counting(counts, health::counts(metrics.clone()).merge(health::routes(ready)), is_ended);
        let told = async {
            stop.await;
            http.end_waits();
            let _ = ended.send(true);
        };
        let both = async { tokio::try_join!(main, beside) };
        let mut both = std::pin::pin!(both);
        tokio::select! {
            served = both.as_mut() => served,
            () = told => both.await,
        }
    });
    runtime.shutdown_background();
    finish(&engine, &http.owners());
    close(engine, http.owners());
    served.map(|_| ExitCode::SUCCESS)
}

/// Serves the counts until the server ends.
async fn counting(counts: Option<Bound>, router: Routes, is_ended: watch::Receiver<bool>) -> Result<()> {
    match counts {
        Some(bound) => connections::serve(bound, router, None, Metrics::default(), is_ended, || {}).await,
        None => Ok(()),
    }
}

/// Returns what asks whether the store answers.
fn ready(engine: &Arc<Engine>) -> Ready {
    let engine = Arc::clone(engine);
    Arc::new(move || {
        let engine = Arc::clone(&engine);
        Box::pin(async move {
            match engine.installation().await {
                Ok(installation) => installation.registry.all().await.is_ok(),
                Err(_) => false,
            }
        })
    })
}

/// Prints the addresses. `host` is the name of the machine, if it has one for its users.
fn announce(
    (host, address): (Option<&String>, SocketAddr),
    is_tls: bool,
    pages: Option<&Pages>,
    counts: Option<&Bound>,
    out: Out,
) -> Result<()> {
    let scheme = if is_tls { "https" } else { "http" };
    let mcp = match host {
        Some(host) => format!("{scheme}://{host}:{}/mcp", address.port()),
        None => format!("{scheme}://{address}/mcp"),
    };
    let pages = pages.map(|pages| pages.address("/"));
    let counts = counts.map(|bound| format!("http://{}/metrics", bound.address()));
    if out.json {
        let addresses = serde_json::json!({ "mcp": mcp, "pages": pages, "metrics": counts });
        return out.line(&addresses.to_string());
    }
    let mut text = "Serving MCP at the address below; Ctrl-C ends it.\n".to_owned();
    if let Some(pages) = pages {
        text += &format!("Pages for your browser, an address that works once: {pages}\n");
    }
    if let Some(counts) = counts {
        text += &format!("Counts for monitoring programs: {counts}\n");
    }
    print::aside(&text);
    out.line(&mcp)
}
