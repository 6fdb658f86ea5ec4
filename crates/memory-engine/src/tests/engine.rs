//! The engine in plain collections, as promises see it, and SQLite, with which it is compared.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{MemoryRegistry, MemoryStore};
use tiro_base::scope::TenantId;
use tiro_conformance::subject::{Engine, OWNER, project};
use tiro_sqlite::{SqliteRegistry, SqliteStore};
use tiro_store::{Flavour, Registry, Store};

/// An engine that keeps its data in RAM. The folder is for backups, which are empty files.
pub struct InMemory {
    store: MemoryStore,
    registry: MemoryRegistry,
    folder: tempfile::TempDir,
}

impl InMemory {
    /// Returns an engine without data.
    pub fn new() -> InMemory {
        let registry = MemoryRegistry::new(&TenantId::new(OWNER));
        InMemory { store: MemoryStore::new(project()), registry, folder: tempfile::tempdir().unwrap() }
    }
}

impl Engine for InMemory {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.store.handle())
    }

    fn open_copy(&self, copy: &Path) -> Arc<dyn Store> {
        Arc::new(MemoryStore::open_copy(copy, project()).unwrap())
    }

    fn registry(&self) -> Arc<dyn Registry> {
        Arc::new(self.registry.handle())
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn holds(&self, text: &str) -> bool {
        self.store.holds(text)
    }
}

/// SQLite with its files in a temporary folder.
pub struct Sqlite {
    folder: tempfile::TempDir,
}

impl Sqlite {
    /// Returns an engine without data.
    pub fn new() -> Sqlite {
        Sqlite { folder: tempfile::tempdir().unwrap() }
    }
}

impl Engine for Sqlite {
    fn open(&self) -> Arc<dyn Store> {
        self.open_copy(&self.folder().join("store").join("tiro.db"))
    }

    fn open_copy(&self, copy: &Path) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(copy, Flavour::Project, project()).unwrap())
    }

    fn registry(&self) -> Arc<dyn Registry> {
        let folder = self.folder().join("registry");
        Arc::new(SqliteRegistry::open(&folder, &TenantId::new(OWNER)).unwrap())
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn holds(&self, text: &str) -> bool {
        let files = std::fs::read_dir(self.folder().join("store")).unwrap();
        let mut all = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        all.any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
    }
}
