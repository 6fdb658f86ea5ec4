//! The project's id, kept in the git directory that all worktrees share.
//!
//! A file in this directory stays when the repository is moved or renamed. `git clean` does not remove it, and clones
//! don't get a copy of it. The file is written only once. If several processes write the file at the same time, all
//! processes get the id that the first one wrote. If the repository is read-only, the caller identifies the project by
//! its path instead.

use std::io::{ErrorKind, Write};
use std::path::Path;

use tiro_base::error::{Context, Error, Kind, Result};
use tiro_base::file::unfinished;

/// The name of the file in the git common directory.
pub const FILE: &str = "tiro-project-id";

/// The longest id that is accepted, in bytes.
const LIMIT: u64 = 128;

/// The result of writing an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenId {
    /// The id of the repository: the one that was given, or the one that was there before.
    Id(String),
    /// The repository is read-only; the text is the error of the operating system.
    ReadOnly(String),
}

/// Returns the id in `common_dir`, or `None` if there is none yet.
///
/// # Errors
///
/// [`Kind::Io`] if the file cannot be read. [`Kind::BadInput`] if its content is not an id, which consists of 8 to 128
/// letters, digits, `-` or `_`.
pub fn read(common_dir: &Path) -> Result<Option<String>> {
    let path = common_dir.join(FILE);
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context(Kind::Io, || format!("cannot read `{}`", path.display())),
    };
    let text = if metadata.is_file() && metadata.len() <= LIMIT {
        std::fs::read_to_string(&path).context(Kind::Io, || format!("cannot read `{}`", path.display()))?
    } else {
        String::new()
    };
    let id = text.trim();
    if !is_id(id) {
        let error = Error::bad_input(format!("`{}` does not contain a project id", path.display()));
        return Err(error.hint(
            "remove the file, so that the project gets a new id, then join the old project and the new one with \
             `tiro projects link`",
        ));
    }
    Ok(Some(id.to_owned()))
}

/// Writes `id` into `common_dir` unless there is an id already, and returns the id that is there afterwards.
///
/// The file is written whole or not at all.
///
/// # Errors
///
/// [`Kind::BadInput`] if `id` or the existing content is not an id. [`Kind::Io`] if writing fails for any reason other
/// than a read-only repository.
pub fn write(common_dir: &Path, id: &str) -> Result<WrittenId> {
    publish(common_dir, id, Replace::No)
}

/// Writes `id` into `common_dir` and replaces an existing id. The function is used for a copied repository, because a
/// copy must not share the memory of the original.
///
/// # Errors
///
/// The same as for [`write()`].
pub fn replace(common_dir: &Path, id: &str) -> Result<WrittenId> {
    publish(common_dir, id, Replace::Yes)
}

/// Removes the id from `common_dir`.
///
/// # Errors
///
/// [`Kind::Io`] if the file can't be removed.
pub fn remove(common_dir: &Path) -> Result<()> {
    let path = common_dir.join(FILE);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).context(Kind::Io, || format!("cannot remove `{}`", path.display()))
        }
        _ => Ok(()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Replace {
    Yes,
    No,
}

fn publish(common_dir: &Path, id: &str, replace: Replace) -> Result<WrittenId> {
    if !is_id(id) {
        return Err(Error::bad_input(format!("`{id}` is not a project id")));
    }
    let path = common_dir.join(FILE);
    let published =
        tempfile::Builder::new().prefix(".tiro-project-id").tempfile_in(common_dir).and_then(|mut file| {
            unfinished::hold(file.as_file());
            writeln!(file, "{id}")?;
            file.as_file().sync_all()?;
            match replace {
                Replace::Yes => file.persist(&path).map_err(|error| error.error),
                Replace::No => file.persist_noclobber(&path).map_err(|error| error.error),
            }
        });
    match published {
        Ok(_) => Ok(WrittenId::Id(id.to_owned())),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match read(common_dir)? {
            Some(id) => Ok(WrittenId::Id(id)),
            None => Err(error).context(Kind::Io, || format!("cannot write `{}`", path.display())),
        },
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
            Ok(WrittenId::ReadOnly(error.to_string()))
        }
        Err(error) => Err(error).context(Kind::Io, || format!("cannot write `{}`", path.display())),
    }
}

fn is_id(text: &str) -> bool {
    (8..=LIMIT as usize).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_id_stays_until_it_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), None);
        assert_eq!(write(dir.path(), "first-id").unwrap(), WrittenId::Id("first-id".to_owned()));
        assert_eq!(write(dir.path(), "second-id").unwrap(), WrittenId::Id("first-id".to_owned()));
        assert_eq!(read(dir.path()).unwrap().as_deref(), Some("first-id"));
        assert_eq!(replace(dir.path(), "second-id").unwrap(), WrittenId::Id("second-id".to_owned()));
        assert_eq!(read(dir.path()).unwrap().as_deref(), Some("second-id"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn processes_that_race_agree() {
        let dir = tempfile::tempdir().unwrap();
        let ids: Vec<WrittenId> = std::thread::scope(|scope| {
            let write = |n: usize| write(dir.path(), &format!("candidate-{n}")).unwrap();
            let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || write(n))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }

    #[test]
    fn invalid_ids_are_errors_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        for garbage in ["", "../../etc", "x".repeat(4000).as_str()] {
            std::fs::write(dir.path().join(FILE), garbage).unwrap();
            let error = read(dir.path()).unwrap_err();
            assert_eq!(error.kind(), Kind::BadInput);
            assert!(error.way_out().is_some());
        }
        assert!(write(dir.path(), "no").is_err());
    }
}
