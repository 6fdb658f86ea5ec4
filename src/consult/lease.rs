//! The lease of a thread: only one call at a time may add to it, in all processes.

use std::time::Duration;

use crate::engine::Engine;
use crate::error::{Error, Kind, Result};
use crate::memory::Millis;
use crate::project::OpenProject;
use crate::thread::ThreadName;

/// How long a lease lasts without being renewed, in milliseconds. A call whose process died blocks its thread for this
/// long.
const LASTS: Millis = 30_000;

/// How often a lease is renewed.
const RENEWED: Duration = Duration::from_secs(10);

/// A lease that this call holds.
pub(crate) struct Lease<'a> {
    project: &'a OpenProject,
    name: String,
    holder: String,
    is_held: bool,
}

/// Takes the lease of the thread.
///
/// Errors with [`Kind::Busy`] if another call has it.
pub(crate) async fn take<'a>(
    engine: &Engine,
    project: &'a OpenProject,
    name: &ThreadName,
) -> Result<Lease<'a>> {
    let ThreadName { session, assistant } = name;
    let hash = blake3::hash(format!("{}\n{assistant}", session.as_str()).as_bytes()).to_hex();
    let lease = Lease {
        project,
        name: format!("consult {}", &hash[..32]),
        holder: format!("{} {:016x}", engine.process(), u64::from_le_bytes(engine.random())),
        is_held: true,
    };
    if project.store.lease(&project.scope, &lease.name, &lease.holder, LASTS).await? {
        return Ok(lease);
    }
    let said = format!("another call is asking `{assistant}` in session `{}`", crate::error::quoted(session));
    Err(Error::new(Kind::Busy, said).hint(
        "wait for its answer, or ask in another session, whose thread is separate; if the process that asked was killed, \
         the thread is free again after 30 s",
    ))
}

impl Lease<'_> {
    /// Waits for `work`, and renews the lease meanwhile.
    pub async fn hold_during<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                () = tokio::time::sleep(RENEWED) => {
                    // If the renewal fails, recording finds out whether another call was faster.
                    drop(self.project.store.lease(&self.project.scope, &self.name, &self.holder, LASTS).await);
                }
            }
        }
    }

    /// Gives the lease back.
    pub async fn release(mut self) {
        self.is_held = false;
        // If that fails, the lease expires.
        drop(self.project.store.release(&self.project.scope, &self.name, &self.holder).await);
    }
}

/// A call that is cancelled gives its lease back too.
impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.is_held {
            let (store, scope) = (self.project.store.clone(), self.project.scope.clone());
            let (name, holder) = (self.name.clone(), self.holder.clone());
            runtime.spawn(async move { drop(store.release(&scope, &name, &holder).await) });
        }
    }
}
