//! The stores of installations in RAM, so that a whole program can run on them.

mod handle;
pub(crate) mod parts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::lock;
use super::registry::{Installation, MemoryRegistry};
use tiro_base::error::{Error, Result, quoted};
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_store::{Backup, Contents, Files, Flavour, ProjectRow, Registry, Stores};

/// The installations whose registry was opened, each by the name of its folder, which need not exist.
type Installations = Arc<Mutex<BTreeMap<PathBuf, Arc<Installation>>>>;

/// The stores of an installation. Clones, and what [`Stores::in_folder`] makes of one, share all data.
#[derive(Clone, Default)]
pub struct MemoryStores {
    installations: Installations,
    folder: PathBuf,
}

impl MemoryStores {
    /// Returns the installation, if its registry was opened.
    fn installation(&self) -> Option<Arc<Installation>> {
        lock(&self.installations).get(&self.folder).cloned()
    }
}

#[async_trait]
impl Stores for MemoryStores {
    fn in_folder(&self, data_dir: &Path) -> Arc<dyn Stores> {
        Arc::new(MemoryStores { folder: data_dir.to_owned(), ..self.clone() })
    }

    async fn is_begun(&self) -> bool {
        self.installation().is_some()
    }

    async fn has_projects(&self) -> bool {
        self.installation().is_some_and(|installation| installation.has_projects())
    }

    async fn registry(&self, owner: &TenantId) -> Result<Arc<dyn Registry>> {
        let mut installations = lock(&self.installations);
        let installation = installations.entry(self.folder.clone()).or_insert_with(Installation::blank);
        Ok(Arc::new(installation.registry(owner)))
    }

    fn blank_registry(&self, owner: &TenantId, _name: &str) -> Result<Arc<dyn Registry>> {
        Ok(Arc::new(MemoryRegistry::new(owner)))
    }

    async fn backup(&self, _scope: &Scope, file: &Path) -> Result<Box<dyn Backup>> {
        if !file.exists() {
            return Err(Error::not_found(format!("no backup `{}`", quoted(file.display()))));
        }
        Err(without_files())
    }

    fn files(&self) -> &dyn Files {
        self
    }
}

#[async_trait]
impl Files for MemoryStores {
    fn folder(&self, name: &str, _id: &ProjectId) -> String {
        name.to_owned()
    }

    async fn assign(
        &self,
        _folder: &Path,
        _owner: &TenantId,
        _assigned: &[(ProjectId, String)],
    ) -> Result<Vec<ProjectRow>> {
        Err(without_files())
    }

    async fn contents(&self, _path: &Path) -> Result<Contents> {
        Err(without_files())
    }

    async fn settle(&self, _path: &Path, _flavour: Flavour, _owner: &TenantId) -> Result<()> {
        Err(without_files())
    }

    async fn put_in_place(&self, _staged: &Path, _path: &Path, _kept: &Path) -> Result<()> {
        Err(without_files())
    }
}

/// Returns the error of everything that needs the files of a store.
fn without_files() -> Error {
    Error::bad_input("the stores are in memory, and can't be read from files or written to them")
        .hint("use an engine that keeps files")
}
