//! The lease of a thread. In all processes together, only one call at a time may add to the thread.

use crate::ask::Lease;
use crate::engine::Engine;
use crate::project::OpenProject;
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::scope::SessionId;
use tiro_base::thread::ThreadName;

/// Takes the lease of the thread.
///
/// Errors with [`Kind::Busy`] if another call has it.
pub async fn take<'a>(engine: &Engine, project: &'a OpenProject, name: &ThreadName) -> Result<Lease<'a>> {
    let lease = Lease::take(engine, project, name_of(name)).await?;
    lease.ok_or_else(|| busy(name))
}

/// Returns the error for a missing thread. The error says either that the first answer of the thread with `assistant`
/// is not there yet, or that the session has no such thread.
pub async fn missing(
    engine: &Engine,
    project: &OpenProject,
    session: &SessionId,
    assistant: Option<&str>,
) -> Result<Error> {
    let sources = &engine.config().sources;
    let providers = sources.providers(&sources.options()?)?;
    let asked = providers.into_iter().map(|each| each.provider.name);
    for name in asked.filter(|name| assistant.is_none_or(|assistant| assistant == name)) {
        let name = ThreadName { session: session.clone(), assistant: name };
        if project.store.is_leased(&project.scope, &name_of(&name)).await? {
            return Ok(busy(&name));
        }
    }
    let with = assistant.map_or("an assistant".to_owned(), |name| format!("`{}`", quoted(name)));
    let message = format!("session `{}` has no thread with {with}", quoted(session));
    Ok(Error::not_found(message).hint("list_sessions shows which assistants were consulted in which session"))
}

/// Returns the name of the lease.
fn name_of(ThreadName { session, assistant }: &ThreadName) -> String {
    let hash = blake3::hash(format!("{}\n{assistant}", session.as_str()).as_bytes()).to_hex();
    format!("consult {}", &hash[..32])
}

fn busy(ThreadName { session, assistant }: &ThreadName) -> Error {
    let said = format!("another call is asking `{assistant}` in session `{}`", quoted(session));
    Error::new(Kind::Busy, said).hint(
        "wait for its answer, or ask in another session, whose thread is separate; if the process that asked was killed, \
         the thread is free again after 5 s",
    )
}
