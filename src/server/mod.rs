//! The MCP server. The server offers tools and resources over two streams, usually stdin and stdout.
//!
//! No other module uses MCP or JSON-RPC. The server supports clients that send `initialize` first (2024-11-05 to
//! 2025-11-25) and clients that don't (2026-07-28, where every request names its client). rmcp provides the types and
//! the loop that serves requests. Our own code (`stdio`) divides the input into lines, because a malformed line must be
//! answered and must not end the server.
//!
//! The service starts without rmcp's opening phase, because that phase ends the process if a notification or a failed
//! handshake comes first. Only one rule of that phase is needed, and `handler` checks it. Tools run on other threads,
//! so that the thread that reads and writes can immediately notice a cancellation, the end of the input, or a signal.
//!
//! The server ends at the end of its input, or when it gets a signal. From then on, the server reads nothing more. Open
//! calls may continue for 0.8 seconds and are then dropped. The server ends within two seconds. While a client doesn't
//! read its answers, the server reads only a few thousand of the client's requests (see `requests`). Later lines wait,
//! including cancellations, but the server still notices when the client is gone.
//!
//! Sampling, roots, elicitation, subscriptions and prompts are not supported. The server remembers nothing about a
//! client except its protocol version.

mod batch;
mod calls;
mod handler;
pub mod http;
mod line;
mod progress;
mod prompts;
mod requests;
mod resources;
mod stdio;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::future::Future;
use std::sync::{Arc, Once};
use std::time::Duration;

use rmcp::service::serve_directly;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use tiro_base::error::{Context, Kind, Result};
use tiro_host::caller::{Form, WritingCaller};
use tiro_host::engine::Engine;
use tiro_tools::{Resources, Tool};

/// The time for which open calls may continue after the end of the input or a signal.
const GRACE: Duration = Duration::from_millis(800);

/// The maximum time for writing the answers to dropped calls.
const LAST_ANSWERS: Duration = Duration::from_millis(400);

/// Serves on stdin and stdout until the input ends or a signal arrives. Creates a runtime for this.
///
/// Work that can't be interrupted continues on its thread, so the caller should soon return from `main`.
pub fn run_stdio(engine: &Arc<Engine>, caller: &Arc<WritingCaller>) -> Result<()> {
    tiro_embed::give_back_freed();
    // One thread serves the protocol; calls run on the blocking pool.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(Kind::Io, || "cannot start the server".to_owned())?;
    let end = runtime.block_on(serve_stdio(engine, caller));
    // An ordinary shutdown would wait for blocking work, such as a read of stdin that never ends.
    runtime.shutdown_background();
    end
}

/// Serves the tools that the caller may use, on stdin and stdout. Returns within two seconds after the end of
/// the input, SIGTERM or SIGINT.
///
/// The caller must then shut the runtime down as [`run_stdio`] does.
pub async fn serve_stdio(engine: &Arc<Engine>, caller: &Arc<WritingCaller>) -> Result<()> {
    keep_texts_out_of_panics();
    let table = tiro_tools::offered(engine, caller);
    let (input, output) = rmcp::transport::stdio_pipes();
    let resources = tiro_tools::resources(engine, caller);
    let offer = Offer { tools: table, resources, form: caller.form(), noting: None };
    serve_while(offer, input, output, termination(), is_input_closed).await
}

/// The tools and resources that a server offers.
pub struct Offer {
    /// The tools.
    pub tools: Vec<Tool>,
    /// The reader of sessions and memories.
    pub resources: Resources,
    /// The forms in which clients get the answers of tools.
    pub form: Form,
    /// Whose calls are noted in the record of calls, if they are.
    pub noting: Option<(Arc<Engine>, Arc<WritingCaller>)>,
}

/// Serves `offer` over any two streams, until `input` ends or the future `stop` completes.
#[cfg(test)]
pub async fn serve<R, W>(offer: Offer, input: R, output: W, stop: impl Future<Output = ()>) -> Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    serve_while(offer, input, output, stop, || false).await
}

/// Serves `offer` until `input` ends or the future `stop` completes. `is_gone` returns whether the client closed its
/// end of `input`. The function is called while nothing is read.
async fn serve_while<R, W>(
    offer: Offer,
    input: R,
    output: W,
    stop: impl Future<Output = ()>,
    is_gone: fn() -> bool,
) -> Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (ended, mut is_ended) = watch::channel(false);
    let requests = requests::Requests::default();
    let transport = stdio::Lines::new(input, output, requests.clone(), ended.clone(), is_gone);
    let running = serve_directly(handler::Handler::new(offer, requests), transport, None);
    let calls = running.cancellation_token();
    let out_of_time = async {
        tokio::select! {
            () = stop => drop(ended.send(true)),
            _ = is_ended.wait_for(|ended| *ended) => {}
        }
        tokio::time::sleep(GRACE).await;
        calls.cancel();
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    tokio::select! {
        end = running.waiting() => end.map(drop).context(Kind::Io, || "the server stopped".to_owned()),
        () = out_of_time => {
            tracing::warn!("some calls did not end in time and were abandoned");
            Ok(())
        }
    }
}

/// Returns whether the other end of stdin is closed.
fn is_input_closed() -> bool {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, poll};

        let stdin = std::io::stdin();
        let mut looked = [PollFd::new(&stdin, PollFlags::empty())];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut looked, Some(&now)).is_ok()
            && looked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }
    #[cfg(not(unix))]
    false
}

/// Waits for SIGTERM or SIGINT. From the call on, they don't end the process. Must be called within a runtime.
#[cfg(unix)]
pub fn termination() -> impl Future<Output = ()> + Send {
    use tokio::signal::unix::{SignalKind, signal};

    let signals =
        signal(SignalKind::terminate()).and_then(|term| Ok((term, signal(SignalKind::interrupt())?)));
    async {
        match signals {
            Ok((mut terminate, mut interrupt)) => tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            },
            Err(error) => {
                tracing::warn!(%error, "cannot listen for signals; they end the process at once");
                std::future::pending().await
            }
        }
    }
}

/// Waits for Ctrl-C.
#[cfg(not(unix))]
pub async fn termination() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

/// Makes a panic print only its location, because its message could quote the text of a memory.
fn keep_texts_out_of_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let message = harmless_message(panic.payload());
            match panic.location() {
                Some(location) => eprintln!("tiro: panicked at {location}: {message}"),
                None => eprintln!("tiro: panicked: {message}"),
            }
        }));
    });
}

/// Returns the message of a panic if the message is a literal in the program; `None` if it was formatted.
fn harmless_message(payload: &dyn Any) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("(message withheld)")
}
