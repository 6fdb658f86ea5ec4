//! Creates files and folders that no other user can read, whatever the umask is.
//!
//! Tiro's files contain everything that was said, and the secret key for the marks that replace secrets. So Tiro's
//! folders have the mode 0700, and its files the mode 0600, from the moment they exist: Tiro creates a file with its
//! mode before a library writes to the file. If an older version or another program made a file or folder of Tiro
//! readable to others, Tiro never uses it as it is. If such a file or folder belongs to this user, Tiro removes the
//! access of others; otherwise Tiro refuses the file or folder.
//!
//! These modes protect the files neither from root nor from another program of the same user. On platforms without
//! modes, such as Windows, the folders in a user's profile are private, so nothing is checked.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::error::{Context, Error, Kind, Result, quoted};

/// The private files and folders in a data directory, by name.
const OWN_NAMES: [&str; 7] = [OWNER_STORE, "projects", "spool", "init", "demo", "looks", "connections"];

/// The folders in a data directory that are not private: models, and a copy of the program.
const PUBLIC: [&str; 2] = ["models", "bin"];

/// The database that marks a folder as a data directory.
const OWNER_STORE: &str = "owner.db";

/// The suffixes of files that belong to a database.
const BESIDE: [&str; 5] = ["-wal", "-shm", "-journal", ".lock", ".open"];

/// The maximum number of folders and files that are made private if a data directory is open to others. Arbitrary.
const MOST_CLOSED: usize = 100_000;

/// Creates `path` and its missing parents, private to this user. If `path` exists, makes it private; it must be a
/// folder that only Tiro uses.
///
/// # Errors
///
/// [`Kind::Store`] if the folder can't be created or made private, or belongs to another user.
pub fn create_dir(path: &Path) -> Result<()> {
    make_dir(path).map_err(|error| unmade(path, error))?;
    close(path, DIR_MODE)
}

/// Creates the data directory if it is missing. If the directory is open to other users, makes it and everything of
/// Tiro in it private, and returns a message about that.
///
/// # Errors
///
/// [`Kind::Store`] if the directory can't be created or made private, if it belongs to another user, or if it is open
/// to others and contains things that are not Tiro's. In this last case, nothing is changed.
pub fn data_dir(path: &Path) -> Result<Option<String>> {
    make_dir(path).map_err(|error| unmade(path, error))?;
    let store = path.join(OWNER_STORE);
    let is_open =
        |path: &Path| matches!(look(path), Some(found) if found.mode & OTHERS != 0 && found.is_ours);
    if is_open(path) && !store.exists() && !holds_only_ours(path) {
        let mode = look(path).map_or(0, |found| found.mode);
        let message = format!(
            "`{}` is open to other users (mode {mode:04o}) and isn't Tiro's own",
            quoted(path.display())
        );
        return Err(Error::new(Kind::Store, message).hint(format!(
            "set TIRO_DATA_DIR to a folder that only Tiro uses, or make this folder private: `chmod 700 '{}'`",
            quoted(path.display())
        )));
    }
    if !is_open(path) && !is_open(&store) {
        return close(path, DIR_MODE).map(|()| None);
    }
    let found = open_to_others(path);
    close(path, DIR_MODE)?;
    close_all(path)?;
    Ok(found.first().map(|(first, how)| {
        let others = match found.len() - 1 {
            0 => String::new(),
            1 => ", and so can one more file or folder in the data directory".into(),
            more => format!(", and so can {more} more files and folders in the data directory"),
        };
        format!("`{}` {how}{others}. Now only this user can access them.", quoted(first.display()))
    }))
}

/// Creates the file `path`, private to this user, if it is missing. If the file exists, makes it and the other files of
/// the same database private.
///
/// # Errors
///
/// [`Kind::Store`] if the file can't be created or made private, or belongs to another user.
pub fn create(path: &Path) -> Result<()> {
    match options().write(true).create_new(true).open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(error).context(Kind::Store, || format!("cannot make `{}`", quoted(path.display())));
        }
    }
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        let message = format!("`{}` is not a regular file", quoted(path.display()));
        return Err(Error::new(Kind::Store, message).hint("move it elsewhere"));
    }
    close(path, FILE_MODE)?;
    for beside in BESIDE {
        let mut name = path.as_os_str().to_owned();
        name.push(beside);
        close(Path::new(&name), FILE_MODE)?;
    }
    Ok(())
}

/// Returns what other users may do with the file or folder at `path`, in words; `None` if they may do nothing.
pub fn openness(path: &Path) -> Option<String> {
    let found = look(path)?;
    if !found.is_ours {
        return Some("belongs to another user".into());
    }
    let does = match found.mode & OTHERS {
        0 => return None,
        bits if bits & 0o022 != 0 => "can be changed by other users",
        _ => "can be read by other users",
    };
    Some(format!("{does} (mode {:04o})", found.mode))
}

/// Returns the paths of Tiro in the data directory that other users can read or change, each with a description of what
/// they can do. The data directory itself comes first if it is one of these paths.
pub fn open_to_others(data_dir: &Path) -> Vec<(PathBuf, String)> {
    let below = OWN_NAMES.into_iter().flat_map(|name| beneath(&data_dir.join(name)));
    let all = std::iter::once(data_dir.to_owned()).chain(below).take(MOST_CLOSED);
    all.filter_map(|path| openness(&path).map(|how| (path, how))).collect()
}

/// Returns a folder above `path` that lets another user replace the entry that leads to `path`. Returns `None` if
/// there is no such folder.
pub fn replaceable(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    path.ancestors().skip(1).find(|above| is_replaceable_in(above)).map(Path::to_owned)
}

/// Creates the folder and its missing parents, private to this user. Folders that exist already are not changed.
///
/// # Errors
///
/// The errors of the file system.
pub fn make_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, DIR_MODE);
    builder.create(path)
}

fn unmade(path: &Path, error: io::Error) -> Error {
    Error::new(Kind::Store, format!("cannot create the data directory `{}`", quoted(path.display())))
        .source(error)
        .hint("make it writable, or name another one in TIRO_DATA_DIR")
}

fn options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, FILE_MODE);
    options
}

/// Returns whether the folder contains only things that Tiro creates.
fn holds_only_ours(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else { return false };
    entries.into_iter().all(|entry| {
        let name = entry.map(|entry| entry.file_name().to_string_lossy().into_owned()).unwrap_or_default();
        // While a database is created, it has a temporary name that begins with the database's name.
        let is_beside =
            |rest: &str| BESIDE.contains(&rest) || (rest.starts_with('.') && rest.contains(".part"));
        let is_own = |own: &str| name == own || name.strip_prefix(own).is_some_and(is_beside);
        PUBLIC.contains(&&*name) || OWN_NAMES.iter().any(|own| is_own(own))
    })
}

/// Returns `path`, the other files of the same database, and everything below `path`. Links are not followed.
fn beneath(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    for beside in BESIDE {
        let mut name = path.as_os_str().to_owned();
        name.push(beside);
        found.push(name.into());
    }
    let mut next = 0;
    while next < found.len() && found.len() < MOST_CLOSED {
        let is_dir = found[next].symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        if is_dir && let Ok(entries) = fs::read_dir(&found[next]) {
            found.extend(entries.flatten().map(|entry| entry.path()));
        }
        next += 1;
    }
    found
        .retain(|path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir() || metadata.is_file()));
    found
}

/// Makes everything of Tiro in the data directory private. Called for a directory that was open to others, because
/// files that older versions created in it may be open too.
fn close_all(data_dir: &Path) -> Result<()> {
    for path in OWN_NAMES.into_iter().flat_map(|name| beneath(&data_dir.join(name))) {
        let mode = if path.is_dir() { DIR_MODE } else { FILE_MODE };
        close(&path, mode)?;
    }
    Ok(())
}

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The bits of a mode that give other users access.
const OTHERS: u32 = 0o077;

/// The access rights to a file or folder.
struct AccessRights {
    mode: u32,
    is_ours: bool,
}

#[cfg(unix)]
fn look(path: &Path) -> Option<AccessRights> {
    use std::os::unix::fs::MetadataExt;
    let found = fs::metadata(path).ok()?;
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    Some(AccessRights { mode: found.mode() & 0o7777, is_ours })
}

#[cfg(not(unix))]
fn look(path: &Path) -> Option<AccessRights> {
    fs::metadata(path).ok().map(|_| AccessRights { mode: 0, is_ours: true })
}

/// Removes the access of other users to `path`, if `path` exists.
#[cfg(unix)]
fn close(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let Some(found) = look(path) else { return Ok(()) };
    if found.is_ours && found.mode & OTHERS == 0 {
        return Ok(());
    }
    let hint = "run Tiro as the user who owns it, or name another folder in TIRO_DATA_DIR";
    if !found.is_ours {
        let message = format!("`{}` belongs to another user", quoted(path.display()));
        return Err(Error::new(Kind::Store, message).hint(hint));
    }
    let closed = fs::set_permissions(path, fs::Permissions::from_mode(mode));
    // Another process may have removed the file: SQLite, for example, removes the WAL of a database.
    let left = look(path).map_or(0, |found| found.mode);
    if left & OTHERS == 0 {
        return Ok(());
    }
    let message = format!(
        "`{}` is open to other users (mode {left:04o}) and can't be made private",
        quoted(path.display())
    );
    let error = Error::new(Kind::Store, message)
        .hint("name a folder in TIRO_DATA_DIR on a file system that keeps permissions");
    Err(match closed {
        Ok(()) => error,
        Err(cause) => error.source(cause),
    })
}

#[cfg(not(unix))]
fn close(_path: &Path, _mode: u32) -> Result<()> {
    Ok(())
}

/// Returns whether another user could replace the files in the folder.
#[cfg(unix)]
fn is_replaceable_in(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    let Ok(found) = fs::metadata(folder) else { return false };
    let is_trusted = found.uid() == 0 || found.uid() == rustix::process::geteuid().as_raw();
    !is_trusted || (found.mode() & 0o022 != 0 && found.mode() & STICKY == 0)
}

#[cfg(not(unix))]
fn is_replaceable_in(_folder: &Path) -> bool {
    false
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Guards against a former fault: in an open data directory, another user could read the installation's secret.
    #[test]
    fn an_open_data_directory_is_closed_with_all_of_it() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        fs::create_dir_all(data.join("projects/a-1/tiro.db.backups")).unwrap();
        let files = ["owner.db", "owner.db-wal", "projects/a-1/tiro.db", "projects/a-1/tiro.db.backups/1.db"];
        for file in files {
            fs::write(data.join(file), "x").unwrap();
            set(&data.join(file), 0o644);
        }
        fs::write(data.join("notes.txt"), "not Tiro's").unwrap();
        set(&data.join("notes.txt"), 0o644);
        set(&data, 0o755);
        assert!(open_to_others(&data).len() >= 5);
        let said = data_dir(&data).unwrap().unwrap();
        assert!(
            said.contains("can be read by other users (mode 0755)") && said.contains("more files"),
            "{said}"
        );
        assert_eq!(data_dir(&data).unwrap(), None, "it is said once");
        assert_eq!(open_to_others(&data), []);
        assert_eq!((mode(&data), mode(&data.join("projects/a-1"))), (0o700, 0o700));
        assert!(files.iter().all(|file| mode(&data.join(file)) == 0o600));
        assert_eq!(mode(&data.join("notes.txt")), 0o644);
        // An older version of the program may run at the same time and create files that others can read.
        set(&data.join("owner.db"), 0o644);
        data_dir(&data).unwrap();
        assert_eq!(mode(&data.join("owner.db")), 0o600);
    }

    #[test]
    fn an_open_folder_of_others_things_is_refused_and_left_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        fs::create_dir(&data).unwrap();
        set(&data, 0o755);
        data_dir(&data).unwrap();
        assert_eq!(mode(&data), 0o700, "an empty one is taken");
        fs::write(data.join("thesis.tex"), "").unwrap();
        set(&data, 0o755);
        let error = data_dir(&data).unwrap_err();
        assert!(error.to_string().contains("mode 0755"), "{error:?}");
        assert!(error.way_out().unwrap().contains("chmod 700"), "{error:?}");
        assert_eq!(mode(&data), 0o755);
    }

    #[test]
    fn a_file_is_private_from_its_first_moment_and_closed_where_it_was_not() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a.db");
        create(&file).unwrap();
        assert_eq!(mode(&file), 0o600);
        let log = root.path().join("a.db-wal");
        fs::write(&log, "").unwrap();
        for path in [&file, &log] {
            set(path, 0o666);
        }
        create(&file).unwrap();
        assert_eq!((mode(&file), mode(&log)), (0o600, 0o600));
    }

    #[test]
    fn a_folder_that_others_write_to_is_named() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("shared/data");
        create_dir(&data).unwrap();
        let named = |data: &Path| replaceable(data).filter(|above| above.ends_with("shared"));
        assert_eq!(named(&data), None);
        set(&root.path().join("shared"), 0o777);
        assert!(named(&data).is_some());
        set(&root.path().join("shared"), 0o1777);
        assert_eq!(named(&data), None, "there only its owner can move it");
    }
}
