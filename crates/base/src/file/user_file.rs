//! Replaces the whole of a user's file, such as the configuration of a client.
//!
//! A finished file is renamed over the old one, so a client that reads at that moment sees either all the old bytes or
//! all the new ones. If the path is a link, the link stays, and the file that it leads to is replaced in its own
//! directory. Mode and owner stay the same.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Links, unfinished};
use crate::error::{Context, Error, Kind, Result, quoted};

/// The largest file that is edited, in bytes. Arbitrary: far more than the few thousand bytes that settings usually
/// have.
const LIMIT: u64 = 4 << 20;

/// The beginning of the names of temporary files beside a user's file. The temporary files of a killed process are
/// removed by the next process that replaces a file there, and by `tiro gc`.
pub const TEMPORARY: &str = ".tiro-";

/// The content and the mode of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSnapshot {
    /// The content.
    pub bytes: Bytes,
    /// The permission bits; 0 on a platform that has none.
    pub mode: u32,
}

/// Bytes that are serialized as text if they are valid UTF-8.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Bytes(pub Vec<u8>);

/// The file to which a path leads.
#[derive(Debug)]
pub struct Target {
    /// The path, or the target of the link.
    pub path: PathBuf,
    /// The content; `None` if there is no file.
    pub state: Option<FileSnapshot>,
}

/// Reads the file that `path` leads to.
///
/// # Errors
///
/// [`Kind::BadInput`] if the file can't be replaced, because it is a dangling link, a directory, or a file of more
/// than 4 MiB. [`Kind::Io`] if the file can't be read.
pub fn look(path: &Path) -> Result<Target> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Target { path: path.to_owned(), state: None });
        }
        Err(error) => return Err(error).context(Kind::Io, || "it can't be read".to_owned()),
    };
    let target = match metadata.is_symlink() {
        true => fs::canonicalize(path).map_err(|error| {
            Error::bad_input("it is a link that leads nowhere")
                .hint("remove the link, or restore its target")
                .source(error)
        })?,
        false => path.to_owned(),
    };
    let failed = || "it can't be read".to_owned();
    let opened = super::open(&target, Links::Followed, LIMIT).map_err(|error| {
        let kind = if error.kind() == ErrorKind::InvalidInput { Kind::BadInput } else { Kind::Io };
        Error::new(kind, failed()).source(error)
    })?;
    let metadata = opened.metadata().context(Kind::Io, failed)?;
    let bytes = super::read_all(opened, LIMIT).context(Kind::Io, failed)?;
    Ok(Target { state: Some(FileSnapshot { bytes: Bytes(bytes), mode: mode(&metadata) }), path: target })
}

/// Checks that `target`, the file that `path` leads to, may be changed: it is not read-only, and it lies below `home`
/// or below the directory of `path`.
///
/// # Errors
///
/// [`Kind::BadInput`] with the reason why it may not be changed.
pub fn check(path: &Path, target: &Target, home: &Path) -> Result<()> {
    if target.path != path {
        let is_beneath = |dir: &Path| fs::canonicalize(dir).is_ok_and(|dir| target.path.starts_with(dir));
        if !is_beneath(home) && !path.parent().is_some_and(is_beneath) {
            let elsewhere = format!("it is a link to `{}`, outside your home", quoted(target.path.display()));
            return Err(Error::bad_input(elsewhere).hint("replace the link with a copy, then run this again"));
        }
    }
    let is_read_only = |path: &Path| fs::metadata(path).is_ok_and(|found| found.permissions().readonly());
    let directory = target.path.ancestors().skip(1).find(|directory| directory.exists());
    if is_read_only(&target.path) || directory.is_some_and(is_read_only) {
        return Err(Error::bad_input("it is read-only")
            .hint(format!("make `{}` and its directory writable", quoted(target.path.display()))));
    }
    Ok(())
}

/// Writes `state` to the file at `target`, as a whole or not at all.
///
/// # Errors
///
/// [`Kind::Io`] if it can't be written.
pub fn replace(target: &Path, state: &FileSnapshot) -> Result<()> {
    let parent = target.parent().unwrap_or(Path::new("."));
    unfinished::remove_abandoned(parent, |name| {
        name.strip_prefix(TEMPORARY).is_some_and(|rest| rest.len() == 6)
    });
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(parent)?;
        unfinished::hold(file.as_file());
        file.write_all(&state.bytes.0)?;
        keep_owner(file.as_file(), target)?;
        set_mode(file.as_file(), state.mode)?;
        file.as_file().sync_all()?;
        file.persist(target).map_err(|error| error.error)?;
        sync(parent)
    };
    write().context(Kind::Io, || format!("cannot write `{}`", quoted(target.display())))
}

/// Removes the file at `target`, if there is one.
///
/// # Errors
///
/// [`Kind::Io`] if it cannot be removed.
pub fn delete(target: &Path) -> Result<()> {
    match fs::remove_file(target) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).context(Kind::Io, || format!("cannot remove `{}`", quoted(target.display())))
        }
        _ => sync(target.parent().unwrap_or(Path::new("."))).or(Ok(())),
    }
}

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o7777
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> u32 {
    0
}

#[cfg(unix)]
fn set_mode(file: &File, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: u32) -> std::io::Result<()> {
    Ok(())
}

/// Makes the owner of the file at `target` the owner of `file`, so that a run as root does not take settings away
/// from their user.
#[cfg(unix)]
fn keep_owner(file: &File, target: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let (Ok(old), new) = (fs::metadata(target), file.metadata()?) else {
        return Ok(());
    };
    match (old.uid(), old.gid()) == (new.uid(), new.gid()) {
        true => Ok(()),
        false => std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid())),
    }
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn sync(dir: &Path) -> std::io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(not(unix))]
fn sync(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// The serialized form of [`Bytes`].
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Raw(Vec<u8>),
}

impl From<Written> for Bytes {
    fn from(written: Written) -> Bytes {
        match written {
            Written::Text(text) => Bytes(text.into_bytes()),
            Written::Raw(bytes) => Bytes(bytes),
        }
    }
}

impl From<Bytes> for Written {
    fn from(Bytes(bytes): Bytes) -> Written {
        match String::from_utf8(bytes) {
            Ok(text) => Written::Text(text),
            Err(error) => Written::Raw(error.into_bytes()),
        }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}
