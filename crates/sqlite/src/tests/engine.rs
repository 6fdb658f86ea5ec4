//! SQLite as the engine of promises.

use std::path::{Path, PathBuf};

use crate::{SqliteRegistry, SqliteStore};
use tiro_base::scope::OwnerId;
use tiro_conformance::subject::{Engine, OWNER, project};
use tiro_store::Flavour;

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
}

impl Engine for Sqlite {
    type Store = SqliteStore;
    type Registry = SqliteRegistry;

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.data().join("tiro.db"), Flavour::Project, project()).unwrap()
    }

    fn open_copy(&self, copy: &Path) -> SqliteStore {
        SqliteStore::open(copy, Flavour::Project, project()).unwrap()
    }

    fn registry(&self) -> SqliteRegistry {
        SqliteRegistry::open(&self.folder.path().join("registry"), &OwnerId::new(OWNER)).unwrap()
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
