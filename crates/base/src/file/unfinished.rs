//! Files and folders that aren't complete yet. The process that makes them holds a lock on them. The unfinished files
//! of a process that died are found by their names and removed later.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The end of the name of a file or folder that isn't complete yet.
pub const UNFINISHED: &str = ".part";

/// The name of the lock file in an unfinished folder. The process that makes the folder holds a lock on it.
const LOCK: &str = "lock";

/// The minimum age of an unfinished file that is removed. On a file system without locks, the process that makes a
/// younger file may still live.
const AGE: Duration = Duration::from_secs(60 * 60);

/// A private folder for files that aren't complete yet. When the value is dropped, the folder is removed with
/// everything that is still in it.
pub struct Workshop {
    folder: tempfile::TempDir,
    _lock: File,
}

impl Workshop {
    /// Makes a folder in `parent` whose name begins with `name`.
    ///
    /// # Errors
    ///
    /// The errors of the file system.
    pub fn make(parent: &Path, name: &str) -> io::Result<Workshop> {
        let prefix = format!("{name}.");
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        builder.prefix(&prefix).suffix(UNFINISHED);
        // Another process may remove the folder while it is empty, so a second attempt is made.
        let made = || {
            let folder = builder.tempdir_in(parent)?;
            let lock = File::create(folder.path().join(LOCK))?;
            io::Result::Ok((folder, lock))
        };
        let (folder, lock) = made().or_else(|_| made())?;
        // The lock may fail: on a file system without locks, other processes rely on the age of the folder.
        drop(lock.try_lock());
        Ok(Workshop { folder, _lock: lock })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Returns the files and folders in `folder` that processes which died left there more than an hour ago. `is_ours` says
/// which names are considered.
pub fn abandoned(folder: &Path, is_ours: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.filter(|entry| entry.file_name().to_str().is_some_and(&is_ours));
    found.map(|entry| entry.path()).filter(|path| is_abandoned(path)).collect()
}

/// Returns the folders in `folder` whose process died. `is_ours` says which names are considered. Empty folders are
/// removed instead: their process died before it could lock them.
pub fn dead(folder: &Path, is_ours: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.filter(|entry| entry.file_name().to_str().is_some_and(&is_ours));
    let is_dead = |path: &PathBuf| match File::open(path.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(_) => {
            drop(fs::remove_dir(path));
            false
        }
    };
    found.map(|entry| entry.path()).filter(is_dead).collect()
}

/// Removes the files and folders that [`abandoned`] returns. Returns how many were removed.
pub fn remove_abandoned(folder: &Path, is_ours: impl Fn(&str) -> bool) -> usize {
    let removed = abandoned(folder, is_ours).into_iter().filter(|path| {
        let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.is_ok()
    });
    removed.count()
}

/// Locks an unfinished file. The lock is held as long as the file is open.
pub fn hold(file: &File) {
    // On Windows, a locked file can't be read through another handle.
    #[cfg(unix)]
    drop(file.try_lock());
    #[cfg(not(unix))]
    let _ = file;
}

#[expect(clippy::disallowed_methods, reason = "the age of a file is that of the file system")]
fn is_abandoned(path: &Path) -> bool {
    let Ok(found) = path.symlink_metadata() else { return false };
    let held = if found.is_dir() { path.join(LOCK) } else { path.to_owned() };
    let last = held.symlink_metadata().and_then(|held| held.modified()).or_else(|_| found.modified());
    let is_old = last.is_ok_and(|last| SystemTime::now().duration_since(last).is_ok_and(|age| age > AGE));
    let is_file = found.is_dir() || found.is_file();
    is_old && is_file && File::open(&held).map_or(true, |held| held.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aged(path: &Path) {
        File::open(path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }

    #[test]
    fn what_died_an_hour_ago_is_removed_and_what_lives_stays() {
        let root = tempfile::tempdir().unwrap();
        let (dead, young) = (root.path().join("a.db.x1.part"), root.path().join("b.db.x1.part"));
        fs::write(&dead, "half").unwrap();
        fs::write(&young, "half").unwrap();
        fs::write(root.path().join("notes.txt"), "not ours").unwrap();
        let living = Workshop::make(root.path(), "backup").unwrap();
        let lock = living.path().join(LOCK);
        for path in [&dead, &lock, &root.path().join("notes.txt")] {
            aged(path);
        }
        let locked = root.path().join("c.db.x1.part");
        let held = File::create(&locked).unwrap();
        hold(&held);
        aged(&locked);
        let is_ours = |name: &str| name.ends_with(UNFINISHED);
        assert_eq!(remove_abandoned(root.path(), is_ours), 1);
        assert!(!dead.exists() && young.exists() && living.path().exists() && locked.exists());
        // The folder of a process that was killed has its lock file, but nobody holds the lock.
        let left = root.path().join("restore.x2.part");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        aged(&left.join(LOCK));
        assert_eq!(remove_abandoned(root.path(), is_ours), 1);
        assert!(!left.exists());
        // A process can be killed between its making the folder and its locking it.
        fs::create_dir(&left).unwrap();
        assert_eq!(super::dead(root.path(), is_ours), Vec::<PathBuf>::new());
        assert!(!left.exists() && living.path().exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
