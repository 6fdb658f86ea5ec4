//! What the process has opened: its configuration, the installation and the embedding model.
//!
//! It is the same for all callers; what belongs to one of them is in [`Caller`](crate::caller::Caller). Nothing is opened before it is needed: a server answers its first requests without a store, and without a model
//! until the first search. What fails to open is tried again by the next call.

mod latest;
mod notices;

use std::path::{Path, PathBuf};

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, OnceCell};

pub(crate) use self::latest::Latest;
pub(crate) use self::notices::Notices;
use crate::config::Config;
use crate::embed::{Embedder, install};
use crate::error::{Error, Kind, Result};
use crate::git::{Repository, identity};
use crate::memory::Millis;
use crate::private;

use crate::project::OpenProject;
use crate::redact::Redactor;
use crate::scope::ProjectId;
use crate::spool::Spool;
use crate::store::Registry;

/// How long closing a store waits for a call that writes. Arbitrary: some ten times what a write takes.
pub(crate) const PATIENCE_OF_CLOSING: Duration = Duration::from_millis(80);

/// The settings, and what the process has opened so far. Several calls use it at once.
pub struct Engine {
    config: Config,
    process: String,
    installation: Latest<Installation>,
    /// In place of an installation while none is on the disk.
    blank_installation: OnceCell<Installation>,
    embedder: OnceCell<Arc<Embedder>>,
    written: Notify,
    notices: Notices,
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
            blank_installation: OnceCell::new(),
            notices: Notices::default(),
            embedder: OnceCell::new(),
            written: Notify::new(),
        }
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
                self.notices.add(closed);
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

    /// Closes the installation: the process ends, and calls that are still under way fail. The last process to close it
    /// leaves a file that holds everything by itself.
    pub fn close(&self) {
        if let Some(installation) = self.installation.last() {
            installation.registry.memories().close(PATIENCE_OF_CLOSING);
        }
    }

    /// Returns what happened to the files that all callers share, since the last time.
    pub fn take_notices(&self) -> Vec<String> {
        self.notices.take()
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

    /// Tells whoever waits for it that something was written that may be pending.
    pub fn wrote(&self) {
        self.written.notify_one();
    }

    /// Returns once something was written since the last time.
    pub async fn wait_for_writes(&self) {
        self.written.notified().await;
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system has random bytes");
    bytes
}
