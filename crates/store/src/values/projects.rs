//! The two kinds of stores, and projects as the registry lists them.

use std::path::PathBuf;

use tiro_base::scope::ProjectId;

/// A registered project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    /// Its id.
    pub id: ProjectId,
    /// The name of the project, taken from the directory in which the project was first seen.
    pub name: String,
    /// The place of its store. For SQLite, the place is the path of the file, which may not exist.
    pub file: PathBuf,
    /// The canonical paths at which the project was seen, the latest first.
    pub places: Vec<String>,
}

/// The two kinds of store files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// `projects/<name>-<id>/tiro.db`: the memories of a project.
    Project,
    /// `owner.db`: the owner's memories, the registry of projects and the installation's secret.
    Owner,
}
