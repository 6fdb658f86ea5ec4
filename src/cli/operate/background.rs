//! The work of a server beside its answers, and the end of a server.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::runtime::{Builder, Handle};

use tiro_base::error::{Context, Error, Kind, Result};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::idle;

/// Does pending work in the background, on a thread of its own.
pub fn work_while_idle(engine: &Arc<Engine>, caller: &Arc<WritingCaller>) {
    let (engine, caller) = (Arc::clone(engine), Arc::clone(caller));
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(idle::keep_up(&engine, &caller));
        }
    });
}

/// Starts the thread for the idle workers of a server with several callers. It embeds and summarises, so it must not delay
/// answers.
pub fn idle_workers() -> Result<Handle> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context(Kind::Io, || "cannot start the server".to_owned())?;
    let workers = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    Ok(workers)
}

/// Waits for requests that are paid for, and stores measurements that are not stored yet. Gives up after 400 ms,
/// because a server must exit soon after its stdin is closed.
pub fn finish(engine: &Engine, callers: &[Arc<WritingCaller>]) {
    const PATIENCE: Duration = Duration::from_millis(400);
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
    let finished = runtime.block_on(async {
        let keep = async {
            for caller in callers {
                caller.keep_measurements(engine).await?;
            }
            Ok::<(), Error>(())
        };
        let both = async { tokio::join!(engine.finish(), keep).1 };
        tokio::time::timeout(PATIENCE, both).await
    });
    if !matches!(finished, Ok(Ok(()))) {
        tracing::debug!("a request was given up, or measurements were not stored");
    }
    runtime.shutdown_background();
}

/// Closes the stores, so that their logs are merged into their files. Gives up after 200 ms; no data is lost in this
/// case.
pub fn close(engine: Arc<Engine>, callers: Vec<Arc<WritingCaller>>) {
    const PATIENCE: Duration = Duration::from_millis(200);
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        callers.iter().for_each(|caller| caller.close());
        engine.close();
        // The receiver is gone if closing took too long.
        let _ = done.send(());
    });
    if is_done.recv_timeout(PATIENCE).is_err() {
        tracing::debug!("the store was not closed in time");
    }
}
