//! Records the work trees of all projects, because nothing else shows to which project a removed work tree belonged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::FOLDER;
use super::looks::{read, write};
use tiro_base::error::Result;
use tiro_base::file::{path_of, text_of};

/// All work trees that were ever seen.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Trees {
    /// The id of the project, keyed by the root of the work tree as text.
    seen: BTreeMap<String, String>,
    /// Directories that no longer exist and were not proven to belong to a project. The value is the state of knowledge
    /// at that time.
    unproven: BTreeMap<String, String>,
    #[serde(skip)]
    path: Option<PathBuf>,
    #[serde(skip)]
    is_changed: bool,
}

impl Trees {
    /// Reads the file in `data_dir`.
    pub fn of(data_dir: &Path) -> Trees {
        let path = data_dir.join(FOLDER).join("trees.json");
        Trees { path: Some(path.clone()), ..read(&path) }
    }

    /// Records that `roots` are work trees of the project with the id `project`.
    pub fn add(&mut self, roots: &[PathBuf], project: &str) {
        for root in roots {
            let before = self.seen.insert(text_of(root), project.to_owned());
            self.is_changed |= before.as_deref() != Some(project);
        }
    }

    /// Returns the recorded work trees that no longer exist. The first list contains those of `project`, the second
    /// those of other projects.
    pub fn gone(&self, project: Option<&str>) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut ours, mut others) = (Vec::new(), Vec::new());
        for (root, id) in &self.seen {
            let root = path_of(root);
            if root.symlink_metadata().is_err() {
                if Some(id.as_str()) == project { ours.push(root) } else { others.push(root) }
            }
        }
        (ours, others)
    }

    /// Returns whether an earlier check with the same state of knowledge, `known`, failed to prove that `directory` was
    /// a work tree of `project`.
    pub fn is_unproven(&self, directory: &str, project: &str, known: &str) -> bool {
        self.unproven.get(&format!("{project} {directory}")).is_some_and(|before| before == known)
    }

    /// Records that a check with the state of knowledge `known` did not prove that `directory` was a work tree of
    /// `project`.
    pub fn add_unproven(&mut self, directory: &str, project: &str, known: &str) {
        self.unproven.insert(format!("{project} {directory}"), known.to_owned());
        self.is_changed = true;
    }

    /// Writes the file, unless nothing changed.
    ///
    /// # Errors
    ///
    /// [`Kind::Io`](tiro_base::error::Kind::Io) if it can't be written.
    pub fn keep(&self) -> Result<()> {
        match &self.path {
            Some(path) if self.is_changed => write(path, self),
            _ => Ok(()),
        }
    }
}
