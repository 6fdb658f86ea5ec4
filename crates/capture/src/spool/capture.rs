//! Stores which projects are captured. Hooks may write references only for these projects.
//!
//! The hooks of clients run in every project on the machine. Hooks must read the user's choice without a database. So
//! the scope is stored in a file next to all spools, and the spool of each chosen project contains the root of the
//! project. If the scope can't be read, the smaller scope, [`Scope::Project`], applies.

use std::path::{Path, PathBuf};

use super::Spool;
use super::folder::Folder;
use tiro_base::error::{Context, Kind, Result, quoted};
use tiro_base::file::{path_of, text_of};

const SCOPE: &str = "scope";
const CAPTURED: &str = "captured";

/// The projects that are captured, as the user chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Every project in which a client runs.
    Machine,
    /// Only the projects that the user chose.
    Project,
}

impl Scope {
    /// Returns the user's choice, or `None` if the user chose nothing.
    pub fn chosen(data_dir: &Path) -> Option<Scope> {
        let everywhere = Spool::everywhere(data_dir);
        let folder = Folder::open(&everywhere.root, &everywhere.root).ok()?;
        match folder.read(SCOPE) {
            Some(word) if word.trim() == "machine" => Some(Scope::Machine),
            Some(_) => Some(Scope::Project),
            None => folder.has(SCOPE).then_some(Scope::Project),
        }
    }

    /// Stores the choice.
    pub fn choose(self, data_dir: &Path) -> Result<()> {
        let word = match self {
            Scope::Machine => "machine",
            Scope::Project => "project",
        };
        Spool::everywhere(data_dir).put(SCOPE, word.as_bytes())
    }

    /// Removes the choice of the scope, and the choice of every project.
    pub fn forget(data_dir: &Path) {
        let everywhere = Spool::everywhere(data_dir);
        for (folder, _) in chosen_folders(&everywhere.root) {
            let _ = folder.remove(CAPTURED);
        }
        if let Ok(folder) = Folder::open(&everywhere.root, &everywhere.root) {
            let _ = folder.remove(SCOPE);
        }
    }
}

/// Returns the roots of the chosen projects, sorted.
pub fn chosen_projects(data_dir: &Path) -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> =
        chosen_folders(&Spool::everywhere(data_dir).root).into_iter().map(|(_, root)| root).collect();
    roots.sort();
    roots.dedup();
    roots
}

fn chosen_folders(root: &Path) -> Vec<(Folder, PathBuf)> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let chosen = entries.filter_map(|entry| {
        let folder = Folder::open(root, &entry.path()).ok()?;
        let root = folder.read(CAPTURED)?;
        Some((folder, path_of(&root)))
    });
    chosen.collect()
}

impl Spool {
    /// Returns whether work in the project is captured. Pauses are not considered.
    pub fn is_captured(&self) -> bool {
        self.scope() != Some(Scope::Project) || self.is_chosen()
    }

    /// Returns whether the user chose this project.
    pub fn is_chosen(&self) -> bool {
        self.folders().any(|folder| Folder::open(&self.root, folder).is_ok_and(|folder| folder.has(CAPTURED)))
    }

    /// Returns whether the user chose this project or all projects. If so, new commits are imported even if the
    /// earlier history was not imported.
    pub fn is_followed(&self) -> bool {
        match self.scope() {
            Some(Scope::Machine) => true,
            Some(Scope::Project) => self.is_chosen(),
            None => false,
        }
    }

    /// Chooses the project with the root `root`.
    pub fn choose(&self, root: &Path) -> Result<()> {
        self.put(CAPTURED, text_of(root).as_bytes())
    }

    /// Removes the choice of the project.
    pub fn unchoose(&self) -> Result<()> {
        for folder in self.folders() {
            let Ok(opened) = Folder::open(&self.root, folder) else { continue };
            if opened.has(CAPTURED) {
                opened
                    .remove(CAPTURED)
                    .context(Kind::Io, || format!("cannot write to `{}`", quoted(folder.display())))?;
            }
        }
        Ok(())
    }

    /// Removes the references, the marks and the pointer of this spool.
    pub fn clear(&self) {
        for folder in self.folders() {
            if let Ok(opened) = Folder::open(&self.root, folder) {
                for name in opened.names() {
                    let _ = opened.remove(&name);
                }
                let _ = std::fs::remove_dir(folder);
            }
        }
    }

    fn scope(&self) -> Option<Scope> {
        Scope::chosen(self.root.parent()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chosen_projects_are_captured() {
        let data = tempfile::tempdir().unwrap();
        let data = data.path();
        let (one, two) = (Spool::of(data, Path::new("/one")), Spool::of(data, Path::new("/two")));
        assert!(one.is_captured() && two.is_captured() && !one.is_followed());
        Scope::Machine.choose(data).unwrap();
        assert!(one.is_captured() && one.is_followed());
        Scope::Project.choose(data).unwrap();
        one.choose(Path::new("/one")).unwrap();
        assert!(one.is_captured() && !two.is_captured() && one.is_followed() && !two.is_followed());
        assert_eq!(chosen_projects(data), [Path::new("/one")]);
        std::fs::write(data.join("spool/scope"), [0xff, 0xfe]).unwrap();
        assert!(!two.is_captured(), "what can't be read counts as the smaller one");
        one.unchoose().unwrap();
        assert!(!one.is_captured() && chosen_projects(data).is_empty());
        one.choose(Path::new("/one")).unwrap();
        Scope::forget(data);
        assert_eq!((Scope::chosen(data), chosen_projects(data)), (None, vec![]));
    }
}
