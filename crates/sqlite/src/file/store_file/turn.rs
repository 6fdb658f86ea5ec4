//! The lock that lets only one process at a time open, make or migrate a store.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use super::{FileId, beside};
use crate::error::{Error, Result};
use tiro_base::error::{Kind, quoted};
use tiro_base::private;

/// The time to wait for a process that migrates the store. Arbitrary: a migration copies the file and rewrites it,
/// which takes a minute for 10 GB.
const PATIENCE: Duration = Duration::from_secs(300);

/// The pause between two tries to take the lock.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The right to open, make or change the files of one store. The right ends when this value is dropped or the process
/// dies.
pub(crate) struct OpeningTurn {
    /// The locked file; `None` if no file can be locked, for example because the folder can't be written. In
    /// such a folder no process changes a store.
    lock: Option<File>,
}

impl OpeningTurn {
    /// Waits until no other process opens or migrates the store at `path`.
    ///
    /// Errors with [`Kind::Busy`] if that takes longer than five minutes.
    pub(crate) fn take(path: &Path) -> Result<OpeningTurn> {
        OpeningTurn::take_within(path, PATIENCE)
    }

    pub(super) fn take_within(path: &Path, patience: Duration) -> Result<OpeningTurn> {
        let began = Instant::now();
        loop {
            let Some(lock) = open_beside(path, ".lock") else { return Ok(OpeningTurn { lock: None }) };
            match lock.try_lock() {
                // The folder may have been replaced during the wait. In this case, the lock in the new folder must be
                // taken.
                Ok(()) if is_at(&lock, &beside(path, ".lock")) => {
                    return Ok(OpeningTurn { lock: Some(lock) });
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if began.elapsed() < patience => std::thread::sleep(LOOK_AGAIN),
                Err(TryLockError::WouldBlock) => {
                    let message = format!("another process upgrades the store `{}`", quoted(path.display()));
                    return Err(Error::new(Kind::Busy, message).hint("try again when it is done"));
                }
                // The file system has no locks.
                Err(TryLockError::Error(_)) => return Ok(OpeningTurn { lock: None }),
            }
        }
    }

    /// Returns whether this process holds the lock. Returns `false` if no file can be locked.
    pub(super) fn is_held(&self) -> bool {
        self.lock.is_some()
    }
}

/// Opens the file beside the store whose name ends in `suffix`, and makes it if it is missing. Returns `None` if this
/// fails.
pub(super) fn open_beside(path: &Path, suffix: &str) -> Option<File> {
    let name = beside(path, suffix);
    private::create(&name).ok()?;
    OpenOptions::new().read(true).write(true).open(&name).ok()
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.metadata()) {
        (Ok(open), Ok(there)) => FileId::of(&open) == FileId::of(&there),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_has_the_lock_also_in_a_new_folder() {
        let root = tempfile::tempdir().unwrap();
        let store = root.path().join("data/tiro.db");
        std::fs::create_dir(store.parent().unwrap()).unwrap();
        let turn = OpeningTurn::take(&store).unwrap();
        let Err(error) = OpeningTurn::take_within(&store, Duration::ZERO) else {
            panic!("two have their turn")
        };
        assert_eq!(error.kind(), Kind::Busy);
        drop(turn);
        let turn = OpeningTurn::take_within(&store, Duration::ZERO).unwrap();
        std::fs::remove_dir_all(store.parent().unwrap()).unwrap();
        std::fs::create_dir(store.parent().unwrap()).unwrap();
        assert!(
            OpeningTurn::take_within(&store, Duration::ZERO).unwrap().is_held(),
            "another folder, another turn"
        );
        drop(turn);
        let nowhere = root.path().join("nowhere/tiro.db");
        assert!(!OpeningTurn::take(&nowhere).unwrap().is_held());
    }
}
