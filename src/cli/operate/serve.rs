//! `tiro serve`: runs the MCP server on stdin and stdout.

use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::server;
use tiro_base::error::Result;
use tiro_host::caller::{Form, Toolsets, WritingCaller};
use tiro_host::engine::Engine;
use tiro_host::idle;

/// The arguments of `tiro serve`.
#[derive(clap::Args)]
pub struct Args {
    /// Serve only these groups of tools: memory, consult, context, stash, separated by commas
    #[arg(long, value_name = "NAMES")]
    toolsets: Option<Toolsets>,

    /// For programs: return each answer also as JSON data (`structuredContent`), and describe it in the list of tools
    #[arg(long)]
    structured: bool,
}

/// Serves until stdin is closed, and does pending work in the background.
pub fn run(engine: Arc<Engine>, caller: WritingCaller, args: Args) -> Result<ExitCode> {
    let form = if args.structured { Form::Both } else { Form::Text };
    let caller = Arc::new(caller.with_toolsets(args.toolsets.unwrap_or_default()).with_form(form));
    work_while_idle(&engine, &caller);
    let served = server::run_stdio(&engine, &caller);
    finish(&engine, &caller);
    close(engine, caller);
    served.map(|()| ExitCode::SUCCESS)
}

/// Does pending work in the background, on a thread of its own.
pub fn work_while_idle(engine: &Arc<Engine>, caller: &Arc<WritingCaller>) {
    let (engine, caller) = (Arc::clone(engine), Arc::clone(caller));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(idle::keep_up(&engine, &caller));
        }
    });
}

/// Waits for requests that are paid for, and stores measurements that are not stored yet. Gives up after 400 ms,
/// because a server must exit soon after its stdin is closed.
pub fn finish(engine: &Engine, caller: &WritingCaller) {
    const PATIENCE: Duration = Duration::from_millis(400);
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let finished = runtime.block_on(async {
        let both = async { tokio::join!(engine.finish(), caller.keep_measurements(engine)).1 };
        tokio::time::timeout(PATIENCE, both).await
    });
    if !matches!(finished, Ok(Ok(()))) {
        tracing::debug!("a request was given up, or measurements were not stored");
    }
    runtime.shutdown_background();
}

/// Closes the stores, so that their logs are merged into their files. Gives up after 200 ms; no data is lost in this
/// case.
pub fn close(engine: Arc<Engine>, caller: Arc<WritingCaller>) {
    const PATIENCE: Duration = Duration::from_millis(200);
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        caller.close();
        engine.close();
        // The receiver is gone if closing took too long.
        let _ = done.send(());
    });
    if is_done.recv_timeout(PATIENCE).is_err() {
        tracing::debug!("the store was not closed in time");
    }
}
