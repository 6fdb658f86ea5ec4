//! Leases that let one call at a time, in all processes, ask a model for something.

use std::time::Duration;

use crate::engine::Engine;
use crate::project::OpenProject;
use tiro_base::error::Result;
use tiro_base::memory::Millis;

/// How long a lease lasts if it isn't renewed, in milliseconds. If a process dies, other calls wait this long for its
/// lease.
const LASTS: Millis = 5_000;

/// The time after which a lease is renewed.
const RENEWED: Duration = Duration::from_secs(1);

/// A lease that this call holds.
pub struct Lease<'a> {
    project: &'a OpenProject,
    name: String,
    holder: String,
    is_held: bool,
}

impl<'a> Lease<'a> {
    /// Takes the lease `name` of the project. Returns `None` if another call, of this or another process, has it.
    pub async fn take(engine: &Engine, project: &'a OpenProject, name: String) -> Result<Option<Lease<'a>>> {
        let holder = format!("{} {:016x}", engine.process(), u64::from_le_bytes(engine.random()));
        let taken = project.books.lease(&project.scope, &name, &holder, LASTS).await?;
        Ok(taken.then(|| Lease { project, name, holder, is_held: true }))
    }

    /// Waits for `work`, and renews the lease during this time.
    pub async fn hold_during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                () = tokio::time::sleep(RENEWED) => {
                    // If the renewal fails, storing the result will show whether another call was faster.
                    drop(self.project.books.lease(&self.project.scope, &self.name, &self.holder, LASTS).await);
                }
            }
        }
    }

    /// Gives the lease back.
    pub async fn release(mut self) {
        self.is_held = false;
        // If this fails, the lease expires.
        drop(self.project.books.release(&self.project.scope, &self.name, &self.holder).await);
    }
}

/// If a call is cancelled, it gives its lease back too.
impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.is_held {
            let (store, scope) = (self.project.books.clone(), self.project.scope.clone());
            let (name, holder) = (self.name.clone(), self.holder.clone());
            runtime.spawn(async move { drop(store.release(&scope, &name, &holder).await) });
        }
    }
}
