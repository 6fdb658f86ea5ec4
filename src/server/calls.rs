//! Runs the work of requests on threads other than the one that serves the protocol.
//!
//! Tools block on SQLite and on the encoder. So each call gets a thread of the blocking pool, where its future is polled
//! and, when the client cancels, dropped. The call's permit is free again once its answer is written.

use std::fmt::Display;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::requests::Requests;
use crate::error::Result;
use crate::tools::Pending;

/// Calls that run at the same time; others wait. Arbitrary: enough that calls seldom wait for each other, and few enough
/// that their threads cost little.
const AT_ONCE: usize = 32;

/// Runs calls, a limited number at a time.
pub(super) struct Calls {
    permits: Arc<Semaphore>,
    /// For requests that need no work: they wait only for the client to read.
    ready: Arc<Semaphore>,
    requests: Requests,
}

/// The end of a call.
pub(super) enum Outcome<T> {
    /// It returned.
    Done(Result<T>),
    /// It panicked; stderr has the location.
    Panicked,
    /// The client cancelled it, or the server is ending.
    Cancelled,
}

impl Calls {
    /// Returns the calls that answer `requests`.
    pub(super) fn new(requests: Requests) -> Calls {
        let permits = || Arc::new(Semaphore::new(AT_ONCE));
        Calls { permits: permits(), ready: permits(), requests }
    }

    /// Waits until a request that needs no work may be answered.
    pub(super) async fn ready(&self, context: &RequestContext<RoleServer>) {
        if let Ok(permit) = Arc::clone(&self.ready).acquire_owned().await {
            self.requests.hold(&context.id, permit);
        }
    }

    /// Runs `work` until it returns or the request is cancelled.
    ///
    /// A part of `work` that can't be interrupted runs to its end on its thread; its result is dropped.
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
