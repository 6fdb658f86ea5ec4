//! Runs the work of a request away from the thread that serves the protocol.
//!
//! Tools are written as straight lines over SQLite and the encoder and may hold their thread for as long as they
//! like. Each call therefore gets a thread of the blocking pool, where its future is polled and, when the client
//! cancels, dropped. Its place among those at work is free again once its answer has left.

use std::fmt::Display;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::flights::Flights;
use crate::error::Result;
use crate::tools::Pending;

/// How many calls work at the same time; more wait. Arbitrary: enough that nobody waits for a sleeping call, few
/// enough that their threads cost little.
const AT_ONCE: usize = 32;

/// The places there are for calls to work in.
pub(super) struct Calls {
    places: Arc<Semaphore>,
    /// For what is answered without any work: it waits for its client only.
    ready: Arc<Semaphore>,
    flights: Flights,
}

/// How a call ended.
pub(super) enum Outcome<T> {
    /// It ran to its end.
    Done(Result<T>),
    /// It panicked; the place of the panic is on stderr.
    Panicked,
    /// The client cancelled it, or the server is ending.
    Cancelled,
}

impl Calls {
    /// Returns the places for the requests of `flights`.
    pub(super) fn new(flights: Flights) -> Calls {
        let places = || Arc::new(Semaphore::new(AT_ONCE));
        Calls { places: places(), ready: places(), flights }
    }

    /// Waits until the answer to a request that takes no work may be made.
    pub(super) async fn ready(&self, context: &RequestContext<RoleServer>) {
        if let Ok(place) = Arc::clone(&self.ready).acquire_owned().await {
            self.flights.keep(&context.id, place);
        }
    }

    /// Runs `work` to its end or to the cancellation of the request.
    ///
    /// `work` is called on the thread that it runs on. What cannot be interrupted there runs on, unheard.
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
            outcome = self.run_in_place(context, work) => outcome,
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

    async fn run_in_place<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: Pending<T>,
    ) -> Outcome<T> {
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return Outcome::Cancelled };
        self.flights.keep(&context.id, place);
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
