//! Opens the project of a caller, and shows it as the caller sees it.

use std::sync::Arc;

use super::Caller;
use super::found::{Around, FoundProject};
use crate::engine::{Engine, LetGo};
use crate::principals::rights;
use crate::project::{self, OpenProject, Placement, WritableProject};
use tiro_base::error::{Error, Result, quoted};
use tiro_base::scope::{ProjectId, Scope};
use tiro_git::Repository;
use tiro_store::{Bookkeeping, ReadStore};

impl Caller {
    /// Returns the caller's project for reading. The first call opens the project. If its store or its repository was
    /// replaced, the project is opened again. A project without a store gets an empty store in memory.
    pub(super) async fn found(&self, engine: &Engine) -> Result<FoundProject> {
        let found = self.found_whole(engine).await?;
        self.placed(engine, found).await
    }

    /// Returns the caller's project for writing. Makes its store if there is none.
    pub(super) async fn begin(&self, engine: &Engine) -> Result<FoundProject> {
        let found = self.begin_whole(engine).await?;
        self.placed(engine, found).await
    }

    /// Returns the project as this caller sees it, and with the rule by which what the caller saves is shared or private.
    /// The rule is looked up at each call, because other processes may change it.
    async fn placed(&self, engine: &Engine, found: FoundProject) -> Result<FoundProject> {
        if !self.has_files() {
            return Ok(self.seen(found));
        }
        if found.project.is_blank {
            return Ok(found);
        }
        let registry = engine.installation().await?.registry;
        let kinds = rights::shared_kinds(registry.as_ref(), &found.project.scope.project).await?;
        Ok(match kinds {
            None => found,
            Some(kinds) => {
                let project = found.project.placing(found.project.scope.clone(), Placement::ByKind(kinds));
                FoundProject { project: Arc::new(project), ..found }
            }
        })
    }

    /// Returns the project of another caller as this caller sees it.
    pub(super) fn seen(&self, found: FoundProject) -> FoundProject {
        if self.has_files() {
            return found;
        }
        let rights = self.state.rights.as_ref().filter(|rights| rights.may_write);
        let placement = rights.map_or(Placement::Alone, |rights| Placement::ByKind(rights.kinds.clone()));
        let id = found.project.scope.project.clone();
        let scope = match &self.state.rights {
            Some(_) => self.shared_scope_of(id),
            None => self.scope_of(id),
        };
        FoundProject { project: Arc::new(found.project.read_by(scope, placement)), ..found }
    }

    async fn found_whole(&self, engine: &Engine) -> Result<FoundProject> {
        if let Some(origin) = &self.state.origin {
            return Box::pin(origin.found_whole(engine)).await;
        }
        if self.state.project.last().is_some() || self.state.registered.is_some() {
            return self.begin_whole(engine).await;
        }
        let directory = self.directory()?;
        let existing = match engine.existing_installation().await? {
            // In this case the registry was lost, but the stores of projects still exist.
            None if engine.stores().has_projects().await => Some(engine.begin_installation().await?),
            existing => existing,
        };
        let registry = existing.as_ref().map(|installation| installation.registry.as_ref());
        let around = Arc::new(Around::of(&directory));
        let seen = project::look(&directory, engine.config(), self.named(), registry).await?;
        // A registered project is opened as usual, even if its store was lost. A project for which hooks left
        // references is opened too, because the references have to be stored.
        if seen.known.is_some() || !engine.spool_of(&seen.root, seen.repository.as_ref()).is_empty() {
            return self.begin_whole(engine).await;
        }
        let installation = engine.installation().await?;
        engine.opened().used(&(Arc::clone(&self.state) as Arc<dyn LetGo>));
        let blank = async || {
            let id = ProjectId::from_random(engine.random());
            let name = format!("{}-{}", engine.process(), id.as_str());
            let store = installation.registry.blank_store(&id, &name)?;
            let project = OpenProject {
                redactor: installation.redactor_of(&id),
                trouble: seen.trouble.as_ref().map(unread),
                name: seen.name,
                root: seen.root,
                repository: seen.repository.map(Arc::new),
                store: Arc::clone(&store) as Arc<dyn ReadStore>,
                books: Arc::clone(&store) as Arc<dyn Bookkeeping>,
                scope: Scope::own(self.state.owner.clone(), id),
                is_blank: true,
                placement: Placement::default(),
                original: seen.original,
                formerly: seen.formerly,
            };
            let registered_in = Arc::clone(installation.registry.memories());
            let project = Arc::new(WritableProject::new(project, store));
            Ok(FoundProject { project, registered_in, keeps_id: None, around })
        };
        self.state.blank_project.get_or_open(|found| found.holds(engine.config(), self.named()), blank).await
    }

    async fn begin_whole(&self, engine: &Engine) -> Result<FoundProject> {
        if let Some(origin) = &self.state.origin {
            return Box::pin(origin.begin_whole(engine)).await;
        }
        engine.opened().used(&(Arc::clone(&self.state) as Arc<dyn LetGo>));
        let open = async || {
            if let Some(id) = &self.state.registered {
                return self.open_registered(engine, id).await;
            }
            let directory = self.directory()?;
            let around = Arc::new(Around::of(&directory));
            let installation = engine.begin_installation().await?;
            let registry = installation.registry.as_ref();
            let fresh = ProjectId::from_random(engine.random());
            let found =
                project::find(&directory, engine.config(), self.named(), registry, fresh, engine.now())
                    .await?;
            let store = registry.store(&found.id).await?;
            let before = self.state.project.last().map(|found| found.project.store.identity());
            if before.is_some_and(|before| before != store.identity()) {
                let news = format!(
                    "The store or the repository of this server was replaced; the server now uses `{}`.",
                    quoted(store.place())
                );
                self.add_notice(news);
            }
            self.state.following.forget();
            let keeps_id = found.repository.as_ref().map(Repository::common_dir);
            let keeps_id = keeps_id.filter(|place| project::keeps(place, &found.id));
            let redactor = installation.redactor_of(&found.id);
            let scope = Scope::own(self.state.owner.clone(), found.id);
            let project = OpenProject {
                redactor,
                is_blank: false,
                placement: Placement::default(),
                original: None,
                trouble: found.trouble.as_ref().map(unread),
                formerly: found.formerly,
                name: found.name,
                root: found.root,
                repository: found.repository.map(Arc::new),
                store: Arc::clone(&store) as Arc<dyn ReadStore>,
                books: Arc::clone(&store) as Arc<dyn Bookkeeping>,
                scope,
            };
            let registered_in = Arc::clone(registry.memories());
            let project = Arc::new(WritableProject::new(project, store));
            Ok(FoundProject { project, registered_in, keeps_id, around })
        };
        self.state.project.get_or_open(|found| found.holds(engine.config(), self.named()), open).await
    }

    /// Opens a registered project that has no directory on this machine.
    async fn open_registered(&self, engine: &Engine, id: &ProjectId) -> Result<FoundProject> {
        let installation = engine.begin_installation().await?;
        let registry = installation.registry.as_ref();
        let row = registry.by_id(id).await?;
        let row = row.ok_or_else(|| Error::not_found(format!("no project has the id `{}`", id.as_str())))?;
        let store = registry.store(id).await?;
        // Nothing is at this path, so that nothing is read there.
        let root = engine.config().data_dir.join("projects").join(id.as_str());
        let around = Arc::new(Around::of(&root));
        let project = OpenProject {
            redactor: installation.redactor_of(id),
            is_blank: false,
            original: None,
            trouble: None,
            formerly: Vec::new(),
            name: row.name,
            root,
            repository: None,
            store: Arc::clone(&store) as Arc<dyn ReadStore>,
            books: Arc::clone(&store) as Arc<dyn Bookkeeping>,
            scope: Scope::own(self.state.owner.clone(), id.clone()),
            placement: Placement::default(),
        };
        let registered_in = Arc::clone(registry.memories());
        let project = Arc::new(WritableProject::new(project, store));
        Ok(FoundProject { project, registered_in, keeps_id: None, around })
    }
}

/// Returns the notice that the repository can't be read, with the reason.
pub(super) fn unread(error: &Error) -> String {
    let hint = error.way_out().map_or(String::new(), |hint| format!(" ({hint})"));
    format!("memory works without git: {error}{hint}")
}
