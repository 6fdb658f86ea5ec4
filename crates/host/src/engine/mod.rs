//! The engine of a user in the process. It contains the settings with keys and limits, and the installation with the
//! ledger of spending. It also gives access to everything that all users of the process share, above all the embedding
//! model.
//!
//! All callers of a user share the engine. Data of a single caller is in [`Caller`](crate::caller::Caller). A process
//! for several users has an engine for each of them, and these engines share the [`Process`]. Everything is opened when
//! it is first needed: a server answers its first requests without a store, and loads the model for the first search.
//! If opening fails, the next call tries again.

mod latest;
mod process;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, watch};

pub use self::latest::Latest;
use self::process::Process;
pub use self::process::{Duty, Ending, LetGo, MOST_OPEN, Opened, Running, Working};
use crate::config::{Config, Encoding};
use tiro_base::error::{Error, Kind, Result, partial};
use tiro_base::memory::{Content, Millis};
use tiro_base::private;
use tiro_embed::{Embedder, Loaded, Model};
use tiro_files::Extractor;
use tiro_git::Repository;

use crate::project::OpenProject;
use tiro_base::scope::ProjectId;
use tiro_capture::spool::Spool;
use tiro_redact::Redactor;
use tiro_store::clock::Clock;
use tiro_store::{NextChange, Registry, Stores};

/// The longest time that closing a store waits for a call that is still writing. Arbitrary: about thirty times
/// as long as a write takes.
pub const PATIENCE_OF_CLOSING: Duration = Duration::from_millis(250);

/// The settings of a user, and everything that was opened for the user so far. Several calls can use an engine at the
/// same time.
pub struct Engine {
    config: Config,
    stores: Arc<dyn Stores>,
    process: Arc<Process>,
    installation: Latest<Installation>,
    /// The empty installation in memory that is used while there is no installation on the disk.
    blank_installation: OnceCell<Installation>,
    /// Counts the writes.
    written: watch::Sender<u64>,
    notices: Notices,
}

/// The data that all projects of an owner have in common. Clones share the open resources.
#[derive(Clone)]
pub struct Installation {
    /// The registered projects, and the owner's memories that belong to no project.
    pub registry: Arc<dyn Registry>,
    /// The secret key of the hashes in envelopes and in the marks that replace secrets.
    pub secret: [u8; 32],
    /// Redacts texts that leave the machine. Its marks reveal nothing about the secrets. For texts that are stored, use
    /// [`Installation::redactor_of`].
    pub redactor: Redactor,
}

impl Installation {
    /// Returns the redactor for texts that are stored in `project`, or with the owner's memories if `project` is
    /// [`ProjectId::owner_wide`].
    pub fn redactor_of(&self, project: &ProjectId) -> Redactor {
        Redactor::new(self.secret).within(&format!("project {}", project.as_str()))
    }
}

/// The embedder, or the reason why there is none.
pub enum Embedding {
    /// The model is loaded.
    Ready(Arc<Embedder>),
    /// The model isn't available. The notice describes the effect on the answer, and what the user can do.
    Missing(String),
}

/// A list of notices, each of which is taken only once.
#[derive(Default)]
pub struct Notices(Mutex<Vec<String>>);

impl Notices {
    /// Keeps a notice until it is taken, and logs it.
    pub fn add(&self, notice: String) {
        tracing::warn!("{notice}");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    /// Returns the notices that were added since the last call, in order.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Engine {
    /// Returns an engine that has opened nothing yet, and keeps memories in `stores`.
    pub fn new(config: Config, stores: Arc<dyn Stores>) -> Engine {
        let process = Arc::new(Process::new(config.models.clone(), random()));
        Engine::within(process, config, stores)
    }

    /// Returns the engine of another user of this process, with the settings and stores of that user. It uses the
    /// models of this process, even if `config` names another directory for models.
    pub fn of_another(&self, config: Config, stores: Arc<dyn Stores>) -> Engine {
        Engine::within(Arc::clone(&self.process), config, stores)
    }

    fn within(process: Arc<Process>, config: Config, stores: Arc<dyn Stores>) -> Engine {
        Engine {
            config,
            stores,
            process,
            installation: Latest::default(),
            blank_installation: OnceCell::new(),
            notices: Notices::default(),
            written: watch::Sender::default(),
        }
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the stores, in which memories are kept.
    pub fn stores(&self) -> &dyn Stores {
        self.stores.as_ref()
    }

    /// Returns the list of callers that have a project open.
    pub fn opened(&self) -> &Opened {
        &self.process.opened
    }

    /// Returns the name under which this process takes leases.
    pub fn process(&self) -> &str {
        &self.process.name
    }

    /// Returns the time, in milliseconds since 1970 UTC.
    pub fn now(&self) -> Millis {
        self.process.clock.now()
    }

    /// Returns the clock, which a test can set.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.process.clock
    }

    /// Returns the extractor of the text of documents. It also stores the extracted texts.
    pub fn extractor(&self) -> &Extractor {
        &self.process.extractor
    }

    /// Returns random bytes from the operating system.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        random()
    }

    /// Returns the installation. The first call opens it. If there is no installation on the disk, returns an empty one
    /// in memory.
    pub async fn installation(&self) -> Result<Installation> {
        // If the file of an opened installation was removed, it is created again, like the stores of projects.
        if self.installation.last().is_some() {
            return self.begin_installation().await;
        }
        if let Some(installation) = self.existing_installation().await? {
            return Ok(installation);
        }
        let blank = self.blank_installation.get_or_try_init(async || {
            // Engines of several users must not share it, so the name of the process is not enough.
            let name = format!("{}-{:08x}", self.process(), u32::from_le_bytes(self.random()));
            let registry = self.stores.blank_registry(&self.config.owner, &name)?;
            Ok(Installation { registry, secret: self.random(), redactor: Redactor::blank() })
        });
        blank.await.cloned()
    }

    /// Returns the installation for writing. Creates it if there is none. Opens it again if its file was replaced.
    pub async fn begin_installation(&self) -> Result<Installation> {
        let holds = |opened: &Installation| {
            let holds = opened.registry.memories().is_current();
            if !holds {
                opened.registry.memories().leave();
            }
            holds
        };
        let open = async || {
            if let Some(closed) = private::data_dir(&self.config.data_dir)? {
                self.notices.add(closed);
            }
            let registry = self.stores.registry(&self.config.owner).await?;
            let secret = registry.secret(self.random()).await?;
            Ok(Installation { registry, secret, redactor: Redactor::blank() })
        };
        self.installation.get_or_open(holds, open).await
    }

    /// Returns the installation if there is one on the disk. Never creates one.
    pub async fn existing_installation(&self) -> Result<Option<Installation>> {
        match self.stores.is_begun().await {
            false => Ok(None),
            true => self.begin_installation().await.map(Some),
        }
    }

    /// Closes the installation. Calls that still use it fail. The last process that closes it moves the write-ahead log
    /// into the database file.
    pub fn close(&self) {
        if let Some(installation) = self.installation.last() {
            installation.registry.memories().close(PATIENCE_OF_CLOSING);
        }
    }

    /// Begins work for which the process waits before it ends, but for no longer than the time for closing.
    ///
    /// Errors with [`Kind::Busy`] if the process is ending.
    pub fn begin_to_finish(&self) -> Result<Running<'_>> {
        self.process.ending.begin().ok_or_else(|| Error::new(Kind::Busy, "this process is ending"))
    }

    /// Gives the right to do the work `duty` for the project. Returns `None` while another worker of this process does
    /// this work. Leases prevent other processes from doing the same work at the same time.
    pub fn works_on(&self, project: &ProjectId, duty: Duty) -> Option<Working<'_>> {
        self.process.works_on((&self.config.owner, project), duty)
    }

    /// Prevents further work of this kind from beginning, and returns when none is running any more.
    pub async fn finish(&self) {
        self.process.ending.finish().await;
    }

    /// Returns a new id of an operation.
    pub fn operation(&self) -> String {
        format!("f{:012x}", u64::from_le_bytes(self.random()) >> 16)
    }

    /// Keeps a notice until the next answer reports it.
    pub fn notify(&self, notice: String) {
        self.notices.add(notice);
    }

    /// Returns the notices that were added since the last call. They are about files that all callers share.
    pub fn take_notices(&self) -> Vec<String> {
        self.notices.take()
    }

    /// Returns the spool of the project, in which hooks leave references.
    pub fn spool(&self, project: &OpenProject) -> Spool {
        self.spool_of(&project.root, project.repository.as_deref())
    }

    /// Returns the spool of the project that `repository` belongs to. If `repository` is `None`, returns the
    /// spool of the project in the directory `root`.
    pub fn spool_of(&self, root: &Path, repository: Option<&Repository>) -> Spool {
        Spool::of_project(&self.config.data_dir, root, repository)
    }

    /// Returns the embedder of the installed model. The first call loads it.
    ///
    /// A missing or damaged model is not an error, because searches then work by words.
    pub async fn embedding(&self) -> Embedding {
        self.embedding_by(self.process.models.chosen()).await
    }

    /// Returns the embedder of `model`. The first call loads it.
    pub async fn embedding_by(&self, model: Model) -> Embedding {
        let folder = self.process.models.folder(model);
        let place = folder.clone();
        let loaded = self.process.embedders[model as usize]
            .get_or_try_init(async || {
                let load = tokio::task::spawn_blocking(move || Embedder::load(model, &folder));
                let model = load
                    .await
                    .map_err(|error| Error::new(Kind::Model, "loading stopped").source(error))??;
                Ok::<Arc<Embedder>, Error>(Arc::new(model))
            })
            .await;
        match loaded {
            Ok(embedder) => Embedding::Ready(Arc::clone(embedder)),
            Err(error) => {
                let hint = error.way_out().unwrap_or(model.installation());
                let notice = format!("lexical search only: {error}; {hint}");
                // If no model is installed, the search by words is the usual search. Only a model that can't be read is
                // reported as missing.
                let is_installed =
                    !matches!(place.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
                Embedding::Missing(if is_installed { partial::notice(notice) } else { notice })
            }
        }
    }

    /// Returns the model on this machine that is called `name`. Without a name, returns the installed model.
    ///
    /// # Errors
    ///
    /// [`Kind::BadInput`] if there is no such model.
    pub fn model(&self, name: Option<&str>) -> Result<Model> {
        let Some(name) = name else { return Ok(self.process.models.chosen()) };
        Model::parse(name).ok_or_else(|| {
            Error::bad_input(format!("nothing embeds as `{}`", tiro_base::error::quoted(name)))
                .hint("set `embedding.prose` and `embedding.code` to `english`, `multilingual`, `local` or a provider")
        })
    }

    /// Returns the embedders that are already loaded. Writes use this method, so that they never wait for a model.
    pub fn loaded_embedders(&self) -> Loaded {
        let sources = &self.config.sources;
        let Ok(options) = sources.options() else { return Loaded::default() };
        let loaded = |content| match sources.encoding(&options, content) {
            Ok(Encoding::Local(name)) => {
                let model = self.model(name.as_deref()).ok()?;
                self.process.embedders[model as usize].get().cloned()
            }
            Ok(Encoding::Provider(_)) | Err(_) => None,
        };
        if self.process.embedders.iter().all(|embedder| embedder.get().is_none()) {
            return Loaded::default();
        }
        Loaded { prose: loaded(Content::Prose), code: loaded(Content::Code) }
    }

    /// Wakes the idle workers after a write, because new chunks may have to be embedded.
    pub fn wrote(&self) {
        self.written.send_modify(|count| *count += 1);
    }

    /// Returns a future that is ready once the store of the user's project may have changed after this call. If the stores
    /// hear nothing of other processes, each write of this process makes it ready.
    pub fn next_change(&self, project: &ProjectId) -> NextChange {
        if let Some(next) = self.stores.next_change(&self.config.owner, project) {
            return next;
        }
        let mut writes = self.writes();
        Box::pin(async move {
            if writes.changed().await.is_err() {
                // The engine is gone.
                std::future::pending::<()>().await;
            }
        })
    }

    /// Returns a channel with the number of writes so far. The number changes with each write.
    pub fn writes(&self) -> watch::Receiver<u64> {
        self.written.subscribe()
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}
