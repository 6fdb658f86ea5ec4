//! SQLite as the engine of promises.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{SqliteRegistry, SqliteStore};
use tiro_base::scope::TenantId;
use tiro_conformance::fixture::Fixture;
use tiro_conformance::subject::{Engine, OWNER, project};
use tiro_store::{Flavour, Registry, Store};

/// An engine that keeps SQLite's files in a temporary folder.
pub(crate) struct Sqlite {
    folder: tempfile::TempDir,
}

impl Sqlite {
    /// Returns an engine without data.
    pub(crate) fn new() -> Sqlite {
        Sqlite { folder: tempfile::tempdir().unwrap() }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Opens another handle on the store.
    pub(crate) fn file(&self) -> SqliteStore {
        SqliteStore::open(&self.data().join("tiro.db"), Flavour::Project, project()).unwrap()
    }
}

impl Engine for Sqlite {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.file())
    }

    fn open_copy(&self, copy: &Path) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(copy, Flavour::Project, project()).unwrap())
    }

    fn registry(&self) -> Arc<dyn Registry> {
        Arc::new(SqliteRegistry::open(&self.folder.path().join("registry"), &TenantId::new(OWNER)).unwrap())
    }

    fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    fn holds(&self, text: &str) -> bool {
        std::fs::read_dir(self.data()).unwrap().any(|file| {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    }
}

/// A fixture whose store is known to be a file of SQLite.
pub(crate) struct OnFile {
    fixture: Fixture,
    /// A handle on the fixture's store.
    pub(crate) store: SqliteStore,
}

impl OnFile {
    /// Returns a fixture without data.
    pub(crate) fn new() -> OnFile {
        let engine = Sqlite::new();
        let store = engine.file();
        OnFile { fixture: Fixture::new(Box::new(engine)), store }
    }

    /// Closes the store; opens it again.
    pub(crate) fn reopened(self) -> OnFile {
        let OnFile { fixture, store } = self;
        let path = store.path().to_owned();
        drop(store);
        let fixture = fixture.reopened();
        OnFile { fixture, store: SqliteStore::open(&path, Flavour::Project, project()).unwrap() }
    }
}

impl Deref for OnFile {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}
