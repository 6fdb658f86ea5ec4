//! The MCP door: tools and resources over a pair of streams, in practice stdin and stdout.
//!
//! This is the only place that knows MCP and JSON-RPC. It speaks both eras of the protocol: with an `initialize`
//! handshake (2025-06-18, 2025-11-25) and without (2026-07-28, where every request says who asks). rmcp gives the
//! types and the service loop; the line framing is ours (`stdio`), because a bad line must be answered and survived.
//!
//! The service starts without rmcp's opening phase, which ends the process on a notification or a failed handshake
//! before the session; `handler` keeps the one rule of that phase that protects anyone. Tools run on threads of
//! their own, so that the thread that reads and writes is never busy with anything else: it notices a cancellation,
//! the end of its input or a signal at once, whatever the tools are doing.
//!
//! Ending: input that ends and a signal are the same. Nothing more is read, calls in flight get 0.8 seconds to finish
//! and be answered, then they are dropped, and everything is over within two seconds. While a client doesn't read its
//! answers, no more than some thousand of its requests are read (`flights`): a cancellation behind them waits with them,
//! that the client went away is noticed all the same.
//!
//! It is not: sampling, roots, elicitation, subscriptions, prompts, or any state kept for a client beyond the
//! protocol version it chose.

mod calls;
mod flights;
mod handler;
mod line;
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

use crate::engine::Engine;
use crate::error::{Context, Kind, Result};
use crate::tools::{self, Resources, Tool, Toolsets};

/// How long calls in flight may go on once the client is gone or a signal asked to end.
const GRACE: Duration = Duration::from_millis(800);

/// How long dropped calls may take to be answered and written.
const LAST_WORDS: Duration = Duration::from_millis(400);

/// Serves on stdin and stdout until the input ends or a signal comes, on a runtime of its own.
///
/// Work that cannot be interrupted is left behind on its thread: return from `main` soon after.
pub fn run_stdio(engine: Arc<Engine>, toolsets: Toolsets) -> Result<()> {
    crate::embed::give_back_freed();
    // One thread for the protocol; calls get theirs from the blocking pool.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(Kind::Io, || "cannot start the server".to_owned())?;
    let end = runtime.block_on(serve_stdio(engine, toolsets));
    // An ordinary shutdown waits for blocking work, such as a read of stdin that never ends.
    runtime.shutdown_background();
    end
}

/// Serves the tools of `toolsets` on stdin and stdout until the input ends or SIGTERM or SIGINT comes.
///
/// Ends within two seconds of either. [`run_stdio`] says what to mind about the runtime.
pub async fn serve_stdio(engine: Arc<Engine>, toolsets: Toolsets) -> Result<()> {
    keep_texts_out_of_panics();
    let mut table = tools::all(&engine);
    table.retain(|tool| toolsets.offers(tool.toolset));
    let (input, output) = rmcp::transport::stdio_pipes();
    serve_while(table, tools::resources(&engine), input, output, asked_to_end(), nobody_writes).await
}

/// Serves `tools` and `resources` over any two streams until `input` ends or `stop` does.
pub async fn serve<R, W>(
    tools: Vec<Tool>,
    resources: Resources,
    input: R,
    output: W,
    stop: impl Future<Output = ()>,
) -> Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    serve_while(tools, resources, input, output, stop, || false).await
}

/// As [`serve`]; `is_gone` says whether the other end of `input` is closed, which reading does not say while none is done.
async fn serve_while<R, W>(
    tools: Vec<Tool>,
    resources: Resources,
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
    let flights = flights::Flights::default();
    let transport = stdio::Lines::new(input, output, flights.clone(), ended.clone(), is_gone);
    let running = serve_directly(handler::Handler::new(tools, resources, flights), transport, None);
    let calls = running.cancellation_token();
    let out_of_time = async {
        tokio::select! {
            () = stop => drop(ended.send(true)),
            _ = is_ended.wait_for(|ended| *ended) => {}
        }
        tokio::time::sleep(GRACE).await;
        calls.cancel();
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        end = running.waiting() => end.map(drop).context(Kind::Io, || "the server broke off".to_owned()),
        () = out_of_time => {
            tracing::warn!("some calls did not end in time and are left behind");
            Ok(())
        }
    }
}

/// Whether nobody has the other end of stdin open.
fn nobody_writes() -> bool {
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

/// Returns when the process is asked to end.
#[cfg(unix)]
async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};

    let signals =
        signal(SignalKind::terminate()).and_then(|term| Ok((term, signal(SignalKind::interrupt())?)));
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

/// Returns when the process is asked to end.
#[cfg(not(unix))]
async fn asked_to_end() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

/// Makes panics say where they happened and no more: a formatted message can quote the text of a memory.
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

/// Returns the message of a panic if it needed no formatting: then it is a literal of the program.
fn harmless_message(payload: &dyn Any) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("(message withheld)")
}
