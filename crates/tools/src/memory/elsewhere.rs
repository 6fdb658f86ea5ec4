//! The user's other projects, for a search over all projects.

use std::sync::Arc;

use crate::memory::hits::OfProject;
use tiro_base::envelope;
use tiro_base::error::{Result, partial};
use tiro_base::scope::{ProjectId, Scope};
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_store::{ProjectRow, ReadStore};

/// A project other than the caller's.
pub struct Elsewhere {
    /// Its name.
    pub name: String,
    /// The directory at which it was seen last, if any is known.
    pub place: Option<String>,
    /// Its memories.
    pub store: Arc<dyn ReadStore>,
    /// The scope of all of them.
    pub scope: Scope,
}

impl Elsewhere {
    /// Returns the project as hits show it.
    pub fn shown(&self) -> OfProject {
        let place = self.place.as_deref().map(|place| envelope::escape(place).into_owned());
        OfProject { name: self.name.clone(), place }
    }
}

/// Returns the caller's projects other than `project`, ordered by name. To an author with a personal key, only projects
/// that are shared with the author are known. If the store of a project can't be opened, a
/// notice is added to `notices`.
pub async fn projects(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    notices: &mut Vec<String>,
) -> Result<Vec<Elsewhere>> {
    let registry = &engine.installation().await?.registry;
    let shared = match caller.has_files() {
        true => None,
        false => Some(registry.rights(caller.author().as_str()).await?),
    };
    let is_known =
        |id: &ProjectId| shared.as_ref().is_none_or(|shared| shared.iter().any(|row| row.project == *id));
    let mut others = Vec::new();
    for ProjectRow { id, name, places, .. } in registry.all().await? {
        if id == project.scope.project || !is_known(&id) {
            continue;
        }
        let name = envelope::escape(&name).into_owned();
        match registry.existing_store(&id).await {
            Ok(None) => {}
            Ok(Some(store)) => others.push(Elsewhere {
                name,
                // Directories are those of the owner's machine.
                place: places
                    .first()
                    .filter(|_| caller.has_files())
                    .map(|place| place.strip_suffix("/.git").unwrap_or(place).to_owned()),
                store,
                scope: caller.shared_scope_of(id),
            }),
            Err(error) => {
                let reason = error.with_hint();
                notices.push(partial::notice(format!("project `{name}` was not searched: {reason}")));
            }
        }
    }
    Ok(others)
}
