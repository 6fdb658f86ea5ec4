//! The lease of a thread: only one call at a time may add to it, in all processes.

use crate::ask::Lease;
use crate::engine::Engine;
use crate::error::{Error, Kind, Result};
use crate::project::OpenProject;
use crate::thread::ThreadName;

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
    let lease = Lease::take(engine, project, format!("consult {}", &hash[..32])).await?;
    lease.ok_or_else(|| busy(name))
}

fn busy(ThreadName { session, assistant }: &ThreadName) -> Error {
    let said = format!("another call is asking `{assistant}` in session `{}`", crate::error::quoted(session));
    Error::new(Kind::Busy, said).hint(
        "wait for its answer, or ask in another session, whose thread is separate; if the process that asked was killed, \
         the thread is free again after 5 s",
    )
}
