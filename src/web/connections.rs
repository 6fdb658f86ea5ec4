//! Accepts connections and answers their requests.
//!
//! axum's own loop has no limit of time for the headers of a request, and none for the number of connections. So this
//! loop passes connections to hyper.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower_service::Service;

use super::metrics::Metrics;
use super::peer::Peer;
use super::tls::Acceptor;
use tiro_base::error::{Context, Kind, Result};

/// The time in which the headers of a request must arrive. A connection without requests is closed after the same
/// time. Arbitrary.
const HEADERS: Duration = Duration::from_secs(20);

/// The time for the handshake of TLS. Arbitrary.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The most connections at the same time. Further ones wait. Arbitrary: each takes some tens of kilobytes, and a client
/// holds a few.
const MOST: usize = 512;

/// The pause after a connection could not be accepted, as when the process has too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// How long open requests may take after the server was told to end, as on stdio.
const GRACE: Duration = Duration::from_millis(800);

/// The time in which connections end after their requests were given up.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A server that is bound to its address, but doesn't answer yet.
pub struct Bound {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

impl Bound {
    /// Binds a server to `address`. If the port is 0, it gets any free port.
    ///
    /// Errors with [`Kind::Io`] if the address is taken.
    pub fn to(address: SocketAddr) -> Result<Bound> {
        let cannot = || format!("cannot listen on `{address}`");
        let listener = std::net::TcpListener::bind(address).context(Kind::Io, cannot)?;
        listener.set_nonblocking(true).context(Kind::Io, cannot)?;
        let address = listener.local_addr().context(Kind::Io, cannot)?;
        Ok(Bound { listener, address })
    }

    /// Returns the address, with its port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Answers the requests of connections by `router`, which finds the other end of the connection as
/// [`ConnectInfo<Peer>`]. Ends when `is_ended` becomes true. Then open requests may take [`GRACE`], and `give_up` is
/// called when it is over.
pub async fn serve(
    bound: Bound,
    router: Router,
    tls: Option<Acceptor>,
    metrics: Metrics,
    is_ended: watch::Receiver<bool>,
    give_up: impl FnOnce(),
) -> Result<()> {
    let cannot = || "cannot start the server".to_owned();
    let listener = TcpListener::from_std(bound.listener).context(Kind::Io, cannot)?;
    let (free, mut connections) = (Arc::new(Semaphore::new(MOST)), JoinSet::new());
    let accepting = async {
        loop {
            let Ok(place) = Arc::clone(&free).acquire_owned().await else { return };
            let accepted = listener.accept().await;
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be accepted");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            while connections.try_join_next().is_some() {}
            let peer = Peer::of(peer, stream.local_addr().unwrap_or(bound.address));
            let connection = Connection {
                router: router.clone(),
                peer,
                metrics: metrics.clone(),
                is_ended: is_ended.clone(),
            };
            let tls = tls.clone();
            connections.spawn(async move {
                connection.serve(stream, tls).await;
                drop(place);
            });
        }
    };
    let mut told = is_ended.clone();
    tokio::select! {
        () = accepting => {}
        () = end(&mut told) => {}
    }
    drop(listener);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all_ended).await.is_err() {
        give_up();
        let rest = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_WORDS, rest).await.is_err() {
            tracing::warn!("some requests did not end in time and were abandoned");
        }
    }
    Ok(())
}

/// Waits until the server ends.
async fn end(is_ended: &mut watch::Receiver<bool>) {
    // If the sender is gone, the server has ended.
    let _ = is_ended.wait_for(|ended| *ended).await;
}

/// What serves one connection.
struct Connection {
    router: Router,
    peer: Peer,
    metrics: Metrics,
    is_ended: watch::Receiver<bool>,
}

impl Connection {
    async fn serve(self, stream: TcpStream, tls: Option<Acceptor>) {
        // Answers are short, so that waiting for more to send only delays them.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else { return self.answer(stream).await };
        match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.answer(stream).await,
            _ => self.metrics.refused("handshake"),
        }
    }

    async fn answer(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let Connection { router, peer, metrics, mut is_ended } = self;
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer.clone()));
            let answer = router.clone().call(request.map(Body::new));
            async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADERS);
        let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = end(&mut is_ended) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        match served {
            Err(error) if error.is_timeout() => metrics.refused("slow headers"),
            Err(error) if error.is_parse() => metrics.refused("malformed"),
            // The client is gone.
            Err(_) | Ok(()) => {}
        }
    }
}
