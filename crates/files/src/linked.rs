//! Hard links. Finds out whether a file has another name that says that it contains secrets.
//!
//! The names of a file can't be read from the file itself. So Tiro looks for the names in the folders that may be read,
//! and in the folders of the home directory that usually contain secrets. The search for such links is done once for
//! all files of a call, and only if a file has more than one name. A name elsewhere, or beyond the limit of entries, is
//! not found. In this case the file is read, and the redaction of its text is the second line of defence.

use std::collections::HashSet;
use std::path::Path;

use super::folder::{Entry, FileId, Folder};
use super::names;

/// The maximum number of entries of folders that are looked at for all roots together. Arbitrary: twice the limit of a
/// walk.
pub(super) const MOST_ENTRIES: usize = 200_000;

/// The maximum depth of this search, in folders.
const DEPTH: usize = 64;

/// The names that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// All names below the folder, except names in `.git` and in folders where tools install packages.
    Everything,
    /// The names in the folder itself, and everything in its folders of secrets, such as `.ssh`.
    Secrets,
}

/// Files with several names, of which at least one says that the file contains secrets.
#[derive(Debug, Default)]
pub(super) struct Linked {
    found: HashSet<FileId>,
    looked_at: usize,
}

impl Linked {
    /// Returns whether `file` has a name that says that the file contains secrets.
    pub fn has(&self, file: FileId) -> bool {
        self.found.contains(&file)
    }

    /// Adds such files of `folder`. `is_secret` decides whether a name says that a file contains secrets. The function
    /// gets the path relative to `folder`.
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
        // The files of a folder come before its subfolders, so that the nearest names are seen if there are too many.
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
