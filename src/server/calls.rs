//! Runs the work of requests on separate threads. Another thread reads and writes messages.
//!
//! Tools block their thread while they wait for SQLite or the encoder. So each call runs on a thread of the blocking
//! pool. The call's future is polled on this thread, and dropped there if the client cancels the call. The call's
//! permit becomes free when the answer is written.

use std::fmt::Display;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::requests::Requests;
use tiro_base::error::Result;
use tiro_tools::Pending;

/// The maximum number of calls that run at the same time; further calls wait. Arbitrary: enough that calls seldom wait
/// for each other, and few enough that their threads cost little.
const AT_ONCE: usize = 32;

/// Runs calls, up to a limited number at a time.
pub(super) struct Calls {
    permits: Arc<Semaphore>,
    /// Permits for requests that need no work. Such a request waits only until the client has read earlier answers.
    ready: Arc<Semaphore>,
    requests: Requests,
}

/// How a call ended.
pub(super) enum Outcome<T> {
    /// The call returned.
    Done(Result<T>),
    /// The call panicked. The log on stderr says where.
    Panicked,
    /// The client cancelled the call, or the server is ending.
    Cancelled,
}

impl Calls {
    /// Returns the runner of the calls that belong to `requests`.
    pub(super) fn new(requests: Requests) -> Calls {
        let permits = || Arc::new(Semaphore::new(AT_ONCE));
        Calls { permits: permits(), ready: permits(), requests }
    }

    /// Waits until the client has read enough earlier answers. Called before a request that needs no work is answered.
    pub(super) async fn ready(&self, context: &RequestContext<RoleServer>) {
        if let Ok(permit) = Arc::clone(&self.ready).acquire_owned().await {
            self.requests.hold(&context.id, permit);
        }
    }

    /// Runs `work` until it returns or the request is cancelled.
    ///
    /// A part of `work` that can't be interrupted continues to its end on its thread, and its result is dropped.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        what: impl Display,
        context: &RequestContext<RoleServer>,
        work: Pending<T>,
    ) -> Outcome<T> {
        let started = std::time::Instant::now();
        let cancelled = context.ct.clone();
        let outcome = tokio::select! {
            biased;
            () = cancelled.cancelled() => Outcome::Cancelled,
            outcome = self.run_on_thread(context, work) => outcome,
        };
        let ended = match &outcome {
            Outcome::Done(Ok(_)) => "done",
            Outcome::Done(Err(_)) => "failed",
            Outcome::Panicked => "panicked",
            Outcome::Cancelled => "cancelled",
        };
        tracing::debug!(%what, ended, milliseconds = started.elapsed().as_millis() as u64);
        outcome
    }

    async fn run_on_thread<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: Pending<T>,
    ) -> Outcome<T> {
        let Ok(permit) = Arc::clone(&self.permits).acquire_owned().await else { return Outcome::Cancelled };
        self.requests.hold(&context.id, permit);
        let cancelled = context.ct.clone();
        let runtime = Handle::current();
        let thread = tokio::task::spawn_blocking(move || {
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = cancelled.cancelled() => None,
                    result = work => Some(result),
                }
            })
        });
        match thread.await {
            Ok(Some(result)) => Outcome::Done(result),
            Ok(None) => Outcome::Cancelled,
            Err(error) if error.is_panic() => Outcome::Panicked,
            Err(_) => Outcome::Cancelled,
        }
    }
}
