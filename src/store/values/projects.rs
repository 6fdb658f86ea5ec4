//! Projects as the registry lists them.

use crate::scope::ProjectId;

/// A registered project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    /// Its id.
    pub id: ProjectId,
    /// Its name, from the directory it was first seen in.
    pub name: String,
    /// The folder of its store beneath `projects/` in the data directory.
    pub folder: String,
    /// Where it was seen, latest first: canonical paths.
    pub places: Vec<String>,
}
