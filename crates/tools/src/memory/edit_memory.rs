//! Edits a memory: stores the new text as a memory that supersedes the old one.

use serde::Serialize;

use crate::memory::{named, store_memory};
use tiro_base::envelope;
use tiro_base::error::{Error, Result};
use tiro_base::memory::{Kind, Memory, MemoryId, Provenance};
use tiro_base::scope::Scope;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;
use tiro_host::project::Placement;
use tiro_host::summaries::levels;
use tiro_store::Store;

/// A memory that can be edited.
#[derive(Debug)]
pub struct Edited {
    memory: Memory,
    is_owners: bool,
}

/// The result of an edit.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The id of the memory that was edited.
    pub id: String,
    /// The new memory; `None` if the text is unchanged.
    pub stored: Option<store_memory::Output>,
}

/// Returns the memory `id`, an id or `SESSION#NUMBER`, of the project or of the owner.
///
/// Errors with [`NotFound`](tiro_base::error::Kind::NotFound) if there is no such memory, and with
/// [`BadInput`](tiro_base::error::Kind::BadInput) if it can't be edited: only what somebody noted can be.
pub async fn read(engine: &Engine, caller: &Caller, id: &str) -> Result<Edited> {
    let (ids, unknown) = levels::ids(engine, caller, "id", &[id.to_owned()]).await?;
    let Some(id) = ids.first() else { return Err(missing(unknown.first().map_or(id, String::as_str))) };
    let project = caller.project(engine).await?;
    let found = named::memory(engine, &project, id).await?;
    let Some((_, scope, memory)) = found else { return Err(missing(id.as_str())) };
    let is_owners = scope.project != project.scope.project;
    if let Some(reason) = fixed(&memory) {
        return Err(Error::bad_input(format!("`{id}` can't be edited: {reason}")).hint(format!(
            "store what holds instead with `tiro add --supersedes {id}`, or remove it with `tiro forget {id}`"
        )));
    }
    Ok(Edited { memory, is_owners })
}

fn missing(id: &str) -> Error {
    Error::not_found(format!("no memory is called `{id}`")).hint("`tiro list` and `tiro search` show ids")
}

/// Returns why a memory can't be edited; `None` if it can.
fn fixed(memory: &Memory) -> Option<&'static str> {
    match memory.kind {
        _ if memory.is_damaged => Some("its text is damaged"),
        _ if memory.provenance == Provenance::Derived => Some("it was derived from other memories"),
        Kind::Message => Some("it records what was said in a conversation"),
        Kind::Commit => Some("it records a commit"),
        Kind::Summary | Kind::Conversation => Some("it is a summary"),
        Kind::Document | Kind::FileContent => Some("it is the text of a file"),
        _ => None,
    }
}

impl Edited {
    /// Returns the text before the edit.
    pub fn text(&self) -> &str {
        &self.memory.text
    }
}

/// Stores `text` in place of the edited memory, unless it is the same. Kind, session, tag, file, references, importance
/// and mark stay. The change is durable when the call returns.
///
/// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if `text` is empty, or was forgotten before; the memory
/// then stays as it is.
pub async fn run(engine: &Engine, caller: &WritingCaller, edited: Edited, text: &str) -> Result<Output> {
    let Edited { memory, is_owners } = edited;
    let id = memory.id.to_string();
    if text.trim().is_empty() {
        return Err(Error::bad_input("the new text is empty; nothing was changed")
            .hint(format!("`tiro forget {id}` removes the memory")));
    }
    if text.trim() == memory.text.trim() {
        return Ok(Output { id, stored: None });
    }
    let project = caller.writable_project(engine).await?;
    let owners = &engine.installation().await?.registry;
    let owners_scope = project.scope.owner_wide();
    let (store, scope): (&dyn Store, &Scope) = match is_owners {
        true => (owners.memories().as_ref(), &owners_scope),
        false => (project.store.as_ref(), &project.scope),
    };
    let references = store.refers_to(scope, memory.key).await?;
    let references = store.memories(scope, references).await?;
    let args = store_memory::Args {
        text: text.trim_end().to_owned(),
        kind: Some(memory.kind.to_string()),
        importance: memory.importance,
        scope: Some(if is_owners { "owner" } else { "project" }.to_owned()),
        session_id: memory.session.as_ref().map(ToString::to_string),
        references: Some(references.iter().map(|memory| memory.id.to_string()).collect()),
        supersedes: Some(vec![id.clone()]),
        topic: memory.topic.clone(),
        source: memory.path.clone(),
    };
    // In a project that is shared with nobody, the new text is placed as any other.
    let visibility = (project.placement != Placement::Everyone).then_some(memory.visibility);
    let mut stored = store_memory::store_for(engine, caller, args, Provenance::UserSaid, visibility).await?;
    let new = MemoryId::read("id", &stored.id)?;
    if store.memory(scope, &new).await?.is_none() {
        return Err(Error::bad_input(
            "this text was forgotten before, so it was not stored; nothing was changed",
        )
        .hint("undo the forgetting with `tiro undo`, or write it in other words"));
    }
    if memory.marked {
        store.mark(scope, &[new], true, None).await?;
    }
    // The memory that was edited is similar, of course.
    stored.near.retain(|near| near.id != id);
    Ok(Output { id, stored: Some(stored) })
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let id = envelope::escape(&self.id);
        match &self.stored {
            None => format!("The text is the same; `{id}` stays as it is."),
            Some(stored) => stored.text(),
        }
    }
}
