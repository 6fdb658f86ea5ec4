//! Makes files that get their name only when they are complete.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use tempfile::TempPath;

use crate::connection::LOOK_AGAIN;
use crate::error::{Error, Result};
use tiro_base::error::{Context, Kind, quoted};
use tiro_base::file::{self, unfinished};

/// The word that marks the name of a file that isn't complete yet.
pub(crate) const UNFINISHED: &str = "part";

/// Makes the file `target`, readable only by this user. `fill` gets a temporary path and writes the file
/// there. When the file is on the disk, it is renamed to `target`.
///
/// Errors with [`Kind::BadInput`] if `target` exists. After this error, and after an error of `fill`, no temporary file
/// is left.
pub(crate) fn make(target: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if target.symlink_metadata().is_ok() {
        return Err(exists(target));
    }
    let unwritten = || format!("cannot write `{}`", quoted(target.display()));
    let begun = empty_beside(target)
        .context(Kind::Io, unwritten)
        .map_err(|error| error.hint("name a folder that exists and can be written"))?;
    fill(&begun.path)?;
    // Windows syncs a file only through a handle that can write.
    let written = OpenOptions::new().write(true).open(&begun.path);
    written.and_then(|written| written.sync_all()).context(Kind::Io, unwritten)?;
    begun.path.persist_noclobber(target).map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(target),
        _ => Error::new(Kind::Io, unwritten()).source(error.error),
    })?;
    file::sync_folder(folder_of(target));
    Ok(())
}

/// Like [`make`], but doesn't sync the file. Does nothing if another process makes the file first, or if no
/// file can be made there.
pub(crate) fn begin(target: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let Ok(file) = empty_beside(target) else { return Ok(()) };
    fill(&file.path)?;
    match file.path.persist_noclobber(target) {
        Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => {
            let message = format!("cannot make `{}`", quoted(target.display()));
            Err(Error::new(Kind::Store, message).source(error.error))
        }
        _ => Ok(()),
    }
}

/// A file that isn't complete yet. This process holds a lock on the file, so that no other process removes it.
struct Begun {
    path: TempPath,
    _held: File,
}

/// Makes an empty file beside `target`, readable only by this user. Removes such files of killed processes.
fn empty_beside(target: &Path) -> std::io::Result<Begun> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    unfinished::remove_abandoned(folder_of(target), |other| {
        let rest = other.strip_prefix(&*name).and_then(|rest| rest.strip_prefix('.'));
        rest.is_some_and(|rest| rest.contains(&format!(".{UNFINISHED}")))
    });
    let mut prefix = target.file_name().unwrap_or_default().to_owned();
    prefix.push(".");
    let suffix = format!(".{UNFINISHED}");
    let file = tempfile::Builder::new().prefix(&prefix).suffix(&suffix).tempfile_in(folder_of(target))?;
    let (held, path) = file.into_parts();
    unfinished::hold(&held);
    Ok(Begun { path, _held: held })
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Copies the pages of the database of `source`, as they are at one moment, into the empty file `target`.
/// Writes of other connections don't restart the copy.
pub(crate) fn copy_pages(source: &Connection, target: &Path) -> Result<()> {
    let mut copy = Connection::open(target)?;
    // The copy gets its name when it is complete and synced.
    copy.pragma_update(None, "synchronous", "OFF")?;
    let backup = Backup::new(source, &mut copy)?;
    while backup.step(-1)? != StepResult::Done {
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// Removes the unfinished files that dead processes left in `folder`.
pub(crate) fn remove_unfinished(folder: &Path) {
    for path in unfinished(folder) {
        if std::fs::remove_file(&path).is_err() {
            tracing::warn!("an unfinished copy of the store can't be removed");
        }
    }
}

/// Removes the unfinished files that dead processes left for `target`.
pub(crate) fn remove_unfinished_of(target: &Path) {
    let mut prefix = target.file_name().unwrap_or_default().to_owned();
    prefix.push(".");
    let prefix = prefix.to_string_lossy();
    for path in unfinished(folder_of(target)) {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&*prefix)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Returns the unfinished files in `folder`, and the files that SQLite keeps beside them.
pub(crate) fn unfinished(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_unfinished = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().contains(&format!(".{UNFINISHED}")))
    };
    entries.map(|entry| entry.path()).filter(is_unfinished).collect()
}

fn exists(target: &Path) -> Error {
    Error::bad_input(format!("`{}` exists already", quoted(target.display())))
        .hint("name a file that doesn't exist; nothing was overwritten")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole_and_leaves_nothing_where_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.db");
        make(&target, |file| {
            assert!(!target.exists());
            std::fs::write(file, "whole").unwrap();
            Ok(())
        })
        .unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"whole");
        #[cfg(unix)]
        assert_eq!(tiro_base::private::openness(&target), None);
        let again = make(&target, |_| panic!("nothing is made"));
        assert!(again.unwrap_err().to_string().contains("exists already"));
        make(&folder.path().join("b.db"), |_| Err(Error::bad_input("no"))).unwrap_err();
        assert_eq!(names(folder.path()), ["a.db"]);
        // A file gets its name only after it is filled. If another file gets the name first, that file stays.
        let begun = folder.path().join("d.db");
        begin(&begun, |_| Err(Error::bad_input("no"))).unwrap_err();
        begin(&begun, |file| {
            assert!(!begun.exists());
            std::fs::write(file, "first").unwrap();
            begin(&begun, |file| {
                std::fs::write(file, "second").unwrap();
                Ok(())
            })
        })
        .unwrap();
        assert_eq!(std::fs::read(&begun).unwrap(), b"second");
        std::fs::write(folder.path().join("d.db.x1.part"), "half").unwrap();
        remove_unfinished_of(&folder.path().join("a.db"));
        assert_eq!(names(folder.path()), ["a.db", "d.db", "d.db.x1.part"]);
        remove_unfinished_of(&begun);
        std::fs::remove_file(&begun).unwrap();
        // A process that was killed while it made a file leaves such files.
        std::fs::write(folder.path().join("c.db.x1.part"), "half").unwrap();
        std::fs::write(folder.path().join("c.db.x1.part-journal"), "half").unwrap();
        remove_unfinished(folder.path());
        assert_eq!(names(folder.path()), ["a.db"]);
    }
}
