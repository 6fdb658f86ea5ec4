//! Hard links: whether a file has another name that says that it holds secrets.
//!
//! A file does not know its names, so they are looked for where they may be: in the folders that may be read, and where a
//! home directory keeps its secrets. That is done once for all files of a call, and only if a file has more than one
//! name. A name elsewhere, or beyond the number of entries that are looked at, is not found; then the file is read, and
//! the redaction of its text is the second line of defence.

use std::collections::HashSet;
use std::path::Path;

use super::folder::{Entry, FileId, Folder};
use super::names;

/// How many entries of folders are looked at for all roots together. Arbitrary: twice as many as a walk looks at.
pub(super) const MOST_ENTRIES: usize = 200_000;

/// How many folders deep names are looked for.
const DEPTH: usize = 64;

/// Which names are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// All names beneath the folder, except those in `.git` and in folders in which tools install packages.
    Everything,
    /// The names in the folder itself, and everything in its folders of secrets, such as `.ssh`.
    Secrets,
}

/// Files that have several names, one of which says that they hold secrets.
#[derive(Debug, Default)]
pub(super) struct Linked {
    found: HashSet<FileId>,
    looked_at: usize,
}

impl Linked {
    /// Returns whether `file` is one of these files.
    pub fn has(&self, file: FileId) -> bool {
        self.found.contains(&file)
    }

    /// Adds such files in `folder`. `is_secret` decides whether a name says that a file holds secrets; it gets the path
    /// relative to `folder`.
    pub fn look(&mut self, folder: &Folder, within: Within, is_secret: &dyn Fn(&Path) -> bool) {
        self.folder(folder, Path::new(""), within, is_secret, 0);
    }

    fn folder(
        &mut self,
        folder: &Folder,
        path: &Path,
        within: Within,
        is_secret: &dyn Fn(&Path) -> bool,
        depth: usize,
    ) {
        let Ok(Some(mut entries)) = folder.entries(MOST_ENTRIES - self.looked_at) else { return };
        self.looked_at += entries.len();
        // The files of a folder come before those of its folders, so the nearest names are seen if there are too many.
        entries.sort_by(|a, b| (a.1 == Entry::Folder, &a.0).cmp(&(b.1 == Entry::Folder, &b.0)));
        for (name, entry) in entries {
            let inner = path.join(&name);
            match entry {
                Entry::File if is_secret(&inner) => self.found.extend(folder.linked(&name)),
                Entry::Folder if depth < DEPTH => {
                    let is_left_out = match within {
                        Within::Everything => name == ".git" || names::is_built(&inner, true),
                        Within::Secrets => depth == 0 && !names::is_secret_folder(&name),
                    };
                    if !is_left_out && let Ok(entered) = folder.enter(&name) {
                        self.folder(&entered, &inner, within, is_secret, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }
}
