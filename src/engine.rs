//! The opened parts that every operation works with.
//!
//! Nothing is opened before it is needed: a server answers its first requests without a store, and without a model
//! until the first search. What fails to open is tried again by the next call.

mod around;
mod found;
mod latest;
mod news;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, OnceCell};

use self::around::Around;
use self::found::Found;
use self::latest::Latest;
use crate::config::Config;
use crate::embed::{Embedder, install};
use crate::error::{Error, Kind, Result, quoted};
use crate::git::{Repository, identity};
use crate::memory::Millis;
use crate::private;
use crate::project;
use crate::redact::Redactor;
use crate::scope::{ProjectId, Scope};
use crate::spool::Spool;
use crate::store::{Flavour, Measurement, ProjectRow, Registry, Savings, Store};

/// The settings and whatever has been opened so far. Several calls may use it at once.
pub struct Engine {
    config: Config,
    process: String,
    installation: Latest<Installation>,
    project: Latest<Found>,
    /// What stands for them where nothing is kept yet.
    blank_installation: OnceCell<Installation>,
    blank_project: Latest<Found>,
    embedder: OnceCell<Arc<Embedder>>,
    written: Notify,
    refs: Mutex<Option<String>>,
    news: Mutex<Vec<String>>,
    measured: Mutex<Vec<Measurement>>,
    saved: Mutex<Savings>,
    said_pending: AtomicBool,
    serves_tools: AtomicBool,
}

/// What all projects of an owner share.
pub struct Installation {
    /// The projects, and the memories that belong to the owner.
    pub registry: Registry,
    /// The secret that marks and hashes are keyed with.
    pub secret: [u8; 32],
    /// Takes secrets out of what leaves: its marks tell nothing. What is stored has the redactor of its place.
    pub redactor: Redactor,
}

impl Installation {
    /// Returns what takes secrets out of texts that are stored in the project, or with the owner's memories.
    pub fn redactor_of(&self, project: &ProjectId) -> Redactor {
        Redactor::new(self.secret).within(&format!("project {}", project.as_str()))
    }
}

/// The project a process works on.
pub struct OpenProject {
    /// Its name.
    pub name: String,
    /// The root of the work tree, or the directory.
    pub root: PathBuf,
    /// Its repository, where it is one.
    pub repository: Option<Arc<Repository>>,
    /// Its memories.
    pub store: Store,
    /// All its sessions.
    pub scope: Scope,
    /// Takes secrets out of what is stored in it.
    pub redactor: Redactor,
    /// Whether nothing is kept of it, and nothing that is written will be: see [`Engine::project`].
    pub is_blank: bool,
    /// Why its repository can't be read, where it is one and can't: its memory works without.
    pub trouble: Option<String>,
    /// The project whose repository it is a copy of, where nothing is kept of it.
    pub original: Option<ProjectRow>,
}

/// A project as it stands: nothing was registered or made for it.
pub struct SeenProject {
    /// Its name.
    pub name: String,
    /// The root of the work tree, or the directory.
    pub root: PathBuf,
    /// Its repository, where it is one.
    pub repository: Option<Arc<Repository>>,
    /// Why its repository can't be read, where it is one and can't.
    pub trouble: Option<Error>,
    /// The project whose repository it is a copy of, where it has no id of its own yet.
    pub original: Option<ProjectRow>,
    /// It, where something is kept of it already.
    pub open: Option<OpenProject>,
}

/// The embedder, or why there is none.
pub enum Embedding {
    /// It is loaded.
    Ready(Arc<Embedder>),
    /// It isn't; the notice says what that means and what to do.
    Missing(String),
}

impl Engine {
    /// Returns an engine that has opened nothing yet.
    pub fn new(config: Config) -> Engine {
        let process = format!("{}-{:08x}", std::process::id(), u32::from_ne_bytes(random()));
        Engine {
            config,
            process,
            installation: Latest::default(),
            project: Latest::default(),
            blank_installation: OnceCell::new(),
            blank_project: Latest::default(),
            news: Mutex::default(),
            embedder: OnceCell::new(),
            written: Notify::new(),
            refs: Mutex::default(),
            measured: Mutex::default(),
            saved: Mutex::default(),
            said_pending: AtomicBool::new(false),
            serves_tools: AtomicBool::default(),
        }
    }

    /// Returns whether an answer says what is found by words only: the first of a process does.
    pub fn says_pending(&self) -> bool {
        !self.said_pending.swap(true, Ordering::Relaxed)
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the name this process holds leases under.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// Returns the time, in milliseconds since 1970 UTC.
    #[expect(clippy::disallowed_methods, reason = "this is where `now` comes from")]
    pub fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
    }

    /// Returns random bytes of the operating system.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        random()
    }

    /// Returns what all projects share, opened the first time it is asked for; where there is nothing, a blank that is
    /// kept nowhere.
    pub async fn installation(&self) -> Result<&Installation> {
        // One that was there and is gone is made anew, as its projects are.
        if self.installation.last().is_some() {
            return self.begin_installation().await;
        }
        if let Some(installation) = self.existing_installation().await? {
            return Ok(installation);
        }
        self.blank_installation
            .get_or_try_init(async || {
                let registry = Registry::blank(&self.config.owner, &self.process)?;
                Ok(Installation { registry, secret: self.random(), redactor: Redactor::blank() })
            })
            .await
    }

    /// Returns what all projects share, opened the first time it is asked for, and again where its file was replaced; made
    /// where it isn't there: for what is written.
    pub async fn begin_installation(&self) -> Result<&Installation> {
        let holds = |opened: &Installation| {
            let holds = opened.registry.memories().is_current();
            if !holds {
                opened.registry.memories().leave();
            }
            holds
        };
        let open = async || {
            if let Some(closed) = private::data_dir(&self.config.data_dir)? {
                self.tell(closed);
            }
            let registry = Registry::open(&self.config.data_dir, &self.config.owner)?;
            let secret = registry.secret(self.random()).await?;
            Ok(Installation { registry, secret, redactor: Redactor::blank() })
        };
        self.installation.get_or_open(holds, open).await
    }

    /// Opens what all projects share where it is there already; nothing is made.
    pub async fn existing_installation(&self) -> Result<Option<&Installation>> {
        match self.config.data_dir.join("owner.db").symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => self.begin_installation().await.map(Some),
        }
    }

    /// Looks at the project the process was started for; nothing is registered or made.
    ///
    /// Errors as [`Engine::project`] does.
    pub async fn look(&self) -> Result<SeenProject> {
        let directory = project::directory(&self.config)?;
        let installation = self.existing_installation().await?;
        let registry = installation.map(|installation| &installation.registry);
        let seen = project::look(&directory, &self.config, registry).await?;
        let known = self.kept(&seen);
        let repository = seen.repository.map(Arc::new);
        let trouble = seen.trouble.as_ref().map(unread);
        let open = match known.zip(installation) {
            None => None,
            Some(((id, path), installation)) => Some(OpenProject {
                store: {
                    installation.registry.refuse_emptied(&id, &path).await?;
                    Store::open(&path, Flavour::Project, id.clone())?
                },
                redactor: installation.redactor_of(&id),
                name: seen.name.clone(),
                root: seen.root.clone(),
                repository: repository.clone(),
                scope: Scope::project(self.config.owner.clone(), id),
                is_blank: false,
                trouble,
                original: None,
            }),
        };
        Ok(SeenProject {
            name: seen.name,
            root: seen.root,
            repository,
            trouble: seen.trouble,
            original: seen.original,
            open,
        })
    }

    /// Returns the id and the store of a project that something is kept of.
    fn kept(&self, seen: &project::Seen) -> Option<(ProjectId, PathBuf)> {
        let known = seen.known.as_ref().map(|(id, folder)| (id.clone(), self.store_path(folder)));
        known.filter(|(_, path)| path.symlink_metadata().is_ok())
    }

    /// Returns the project the process was started for, opened the first time it is asked for, and again where its store or
    /// its repository was replaced; where nothing is kept of it, a blank that is kept nowhere, so that looking makes nothing.
    ///
    /// Errors with [`Kind::NoProject`] where there is none, naming the way out.
    pub async fn project(&self) -> Result<&OpenProject> {
        if self.project.last().is_some() {
            return self.begin_project().await;
        }
        let directory = project::directory(&self.config)?;
        let existing = match self.existing_installation().await? {
            // The list of projects was lost, not their stores.
            None if self.config.data_dir.join("projects").is_dir() => Some(self.begin_installation().await?),
            existing => existing,
        };
        let registry = existing.map(|installation| &installation.registry);
        let around = Around::of(&directory);
        let seen = project::look(&directory, &self.config, registry).await?;
        // What is registered and has lost its store is opened as ever, and what a hook left is to be stored.
        if seen.known.is_some() || !self.spool_of(&seen.root, seen.repository.as_ref()).is_empty() {
            return self.begin_project().await;
        }
        let installation = self.installation().await?;
        let blank = async || {
            let id = ProjectId::from_random(self.random());
            let project = OpenProject {
                redactor: installation.redactor_of(&id),
                trouble: seen.trouble.as_ref().map(unread),
                name: seen.name,
                root: seen.root,
                repository: seen.repository.map(Arc::new),
                store: Store::blank(
                    &format!("{}-{}", self.process, id.as_str()),
                    Flavour::Project,
                    id.clone(),
                )?,
                scope: Scope::project(self.config.owner.clone(), id),
                is_blank: true,
                original: seen.original,
            };
            let registered_in = installation.registry.memories().clone();
            Ok(Found { project, registered_in, keeps_id: None, around })
        };
        Ok(&self.blank_project.get_or_open(|found| found.holds(&self.config), blank).await?.project)
    }

    /// Returns the project the process was started for, opened as [`Engine::project`] does, and made where nothing is kept of
    /// it: for what is written. A repository that was deleted and cloned again is another project.
    ///
    /// Errors as [`Engine::project`] does.
    pub async fn begin_project(&self) -> Result<&OpenProject> {
        let open = async || {
            let directory = project::directory(&self.config)?;
            let around = Around::of(&directory);
            let installation = self.begin_installation().await?;
            let registry = &installation.registry;
            let fresh = ProjectId::from_random(self.random());
            let found = project::find(&directory, &self.config, registry, fresh, self.now()).await?;
            let path = self.store_path(&found.folder);
            registry.refuse_emptied(&found.id, &path).await?;
            let store = Store::open(&path, Flavour::Project, found.id.clone())?;
            registry.note_made(&found.id).await;
            let before = self.project.last().map(|found| &found.project.store);
            if before.is_some_and(|before| !before.is_same_file(&store)) {
                let news = format!(
                    "The store or the repository that this server had open was replaced; it uses `{}` now.",
                    quoted(path.display())
                );
                self.tell(news);
            }
            *self.refs.lock().unwrap_or_else(PoisonError::into_inner) = None;
            let keeps_id = found.repository.as_ref().map(Repository::common_dir);
            let keeps_id = keeps_id.filter(|place| project::keeps(place, &found.id));
            let redactor = installation.redactor_of(&found.id);
            let scope = Scope::project(self.config.owner.clone(), found.id);
            let project = OpenProject {
                redactor,
                is_blank: false,
                original: None,
                trouble: found.trouble.as_ref().map(unread),
                name: found.name,
                root: found.root,
                repository: found.repository.map(Arc::new),
                store,
                scope,
            };
            Ok(Found { project, registered_in: registry.memories().clone(), keeps_id, around })
        };
        Ok(&self.project.get_or_open(|found| found.holds(&self.config), open).await?.project)
    }

    /// Returns the project where a call has opened it already, and it is still there.
    pub fn opened_project(&self) -> Option<&OpenProject> {
        self.project.last().filter(|found| found.holds(&self.config)).map(|found| &found.project)
    }

    /// Gives back all that is open: the process ends, and calls that are still under way fail. The last process to do so
    /// leaves files that hold everything by themselves.
    pub fn close(&self) {
        /// How long to wait for a call that writes. Arbitrary: some ten times what a write takes.
        const PATIENCE: Duration = Duration::from_millis(80);
        if let Some(found) = self.project.last() {
            found.project.store.close(PATIENCE);
        }
        if let Some(installation) = self.installation.last() {
            installation.registry.memories().close(PATIENCE);
        }
    }

    /// Returns what hooks left for the project.
    pub fn spool(&self, project: &OpenProject) -> Spool {
        self.spool_of(&project.root, project.repository.as_deref())
    }

    /// Returns what hooks left for the project of a repository, or of a directory that is none.
    pub fn spool_of(&self, root: &Path, repository: Option<&Repository>) -> Spool {
        let place = repository.map_or_else(
            || {
                // One that can't be read keeps the id all the same.
                let dot_git = root.join(".git");
                let is_kept = identity::read(&dot_git).is_ok_and(|id| id.is_some());
                if is_kept { dot_git } else { root.to_owned() }
            },
            Repository::common_dir,
        );
        Spool::of(&self.config.data_dir, &place)
    }

    /// Returns whether the project's refs are as they were when all that they lead to was stored.
    pub fn has_seen_refs(&self, stamp: &str) -> bool {
        self.refs.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(stamp)
    }

    /// Notes that all that the project's refs lead to is stored.
    pub fn saw_refs(&self, stamp: String) {
        *self.refs.lock().unwrap_or_else(PoisonError::into_inner) = Some(stamp);
    }

    /// Returns where the store of the project in `folder` lies.
    pub fn store_path(&self, folder: &str) -> PathBuf {
        self.config.data_dir.join("projects").join(folder).join("tiro.db")
    }

    /// Returns the embedder; where there is none, `notices` gets why.
    pub async fn embedder_or_say(&self, notices: &mut Vec<String>) -> Option<Arc<Embedder>> {
        match self.embedding().await {
            Embedding::Ready(embedder) => Some(embedder),
            Embedding::Missing(notice) => {
                notices.push(notice);
                None
            }
        }
    }

    /// Returns the embedder, loading it the first time it is asked for.
    ///
    /// A missing or damaged model is no error: everything works lexically without it.
    pub async fn embedding(&self) -> Embedding {
        let folder = install::folder(&self.config.model_dir);
        let loaded = self
            .embedder
            .get_or_try_init(async || {
                let load = tokio::task::spawn_blocking(move || Embedder::load(&folder));
                let model = load
                    .await
                    .map_err(|error| Error::new(Kind::Model, "loading stopped").source(error))??;
                Ok::<Arc<Embedder>, Error>(Arc::new(model))
            })
            .await;
        match loaded {
            Ok(embedder) => Embedding::Ready(Arc::clone(embedder)),
            Err(error) => {
                let hint = error.way_out().unwrap_or("run `tiro model install`");
                Embedding::Missing(format!("lexical search only: {error}; {hint}"))
            }
        }
    }

    /// Returns the embedder where it is loaded already: a write is never held up by loading one.
    pub fn loaded_embedder(&self) -> Option<Arc<Embedder>> {
        self.embedder.get().cloned()
    }

    /// Notes that `name` took `micros` microseconds; [`Engine::keep_measurements`] stores it.
    pub fn measured(&self, name: &str, micros: u64) {
        let new = Measurement::of(name, micros);
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        match measured.iter_mut().find(|each| each.name == new.name && each.bucket == new.bucket) {
            Some(each) => each.count += 1,
            None => measured.push(new),
        }
    }

    /// Notes that a context of `sent` tokens was answered for a conversation of `whole`.
    pub fn saved(&self, whole: i64, sent: i64) {
        let saved = Savings { answers: 1, whole, sent };
        self.saved.lock().unwrap_or_else(PoisonError::into_inner).add(saved);
    }

    /// Stores what was measured and saved since the last time, where a call has opened the project.
    pub async fn keep_measurements(&self) -> Result<()> {
        let Some(project) = self.opened_project() else { return Ok(()) };
        let measured = std::mem::take(&mut *self.measured.lock().unwrap_or_else(PoisonError::into_inner));
        let saved = std::mem::take(&mut *self.saved.lock().unwrap_or_else(PoisonError::into_inner));
        match measured.is_empty() && saved == Savings::default() {
            true => Ok(()),
            false => project.store.measure(&project.scope, measured, saved).await,
        }
    }

    /// Tells whoever waits for it that something was written that may be pending.
    pub fn wrote(&self) {
        self.written.notify_one();
    }

    /// Returns once something was written since the last time.
    pub async fn wait_for_writes(&self) {
        self.written.notified().await;
    }
}

/// Returns the notice that a repository can't be read.
fn unread(error: &Error) -> String {
    let hint = error.way_out().map_or(String::new(), |hint| format!(" ({hint})"));
    format!("memory works without git: {error}{hint}")
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}
