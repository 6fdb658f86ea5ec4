//! An open folder. The entries of the folder are listed and opened by their names, without following links.
//!
//! A path is opened folder by folder, one name at a time. So an opened entry really lies at this path, even if another
//! program replaces folders by links at the same time. The kind of an entry is looked up before it is opened, because
//! opening a pipe wakes its writer, and opening a device can have effects. Between looking and opening, a pipe can
//! still take the place of a file. So opening never blocks, and the kind is checked again through the handle.
//!
//! On platforms other than Unix, each path is checked just before it is opened.

use std::ffi::OsString;
use std::fs::{File, Metadata};

use super::refusal::Refusal;
use tiro_base::thread::Stat;

/// The kind of an entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket, a device.
    Special,
}

/// The entries of a folder with their kinds.
pub(super) type Entries = Vec<(OsString, Entry)>;

/// The identity of a file, independent of its name: its device and its inode.
pub(super) type FileId = (u64, u64);

/// Returns the identity of `file`, if it has more than one name.
#[cfg(unix)]
pub(super) fn linked(file: &File) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata().ok()?;
    (metadata.nlink() > 1).then(|| (metadata.dev(), metadata.ino()))
}

/// Always returns `None`, because hard links are not recognised on this system.
#[cfg(not(unix))]
pub(super) fn linked(_: &File) -> Option<FileId> {
    None
}

/// Returns the metadata of `file`, if it is a regular file.
pub(super) fn stat(file: &File) -> Result<Stat, Refusal> {
    let metadata = file.metadata().map_err(|error| Refusal::of(&error))?;
    match metadata.file_type() {
        kind if kind.is_file() => Ok(stat_of(&metadata)),
        kind if kind.is_dir() => Err(Refusal::Folder),
        _ => Err(Refusal::Special),
    }
}

/// Returns whether every change of `file` sooner or later changes its times. On a file system in memory (tmpfs), pages
/// are never written to a disk, so a program can write through a memory mapping without changing the times.
#[cfg(target_os = "linux")]
pub(super) fn keeps_times(file: &File) -> bool {
    /// See `TMPFS_MAGIC` in <https://man7.org/linux/man-pages/man2/statfs.2.html>.
    const MEMORY: rustix::fs::FsWord = 0x0102_1994;
    !rustix::fs::fstatfs(file).is_ok_and(|found| found.f_type == MEMORY)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn keeps_times(_: &File) -> bool {
    true
}

#[cfg(unix)]
fn stat_of(metadata: &Metadata) -> Stat {
    use std::os::unix::fs::MetadataExt;
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Stat {
        size: metadata.len(),
        mtime_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        ctime_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        inode: metadata.ino(),
    }
}

#[cfg(not(unix))]
fn stat_of(metadata: &Metadata) -> Stat {
    let since = metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let at = since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
    Stat { size: metadata.len(), mtime_ns: at, ctime_ns: at, inode: 0 }
}

#[cfg(unix)]
mod relative {
    use std::ffi::{OsStr, OsString};
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStringExt;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
    use rustix::io::Errno;

    use super::{Entries, Entry, FileId, Refusal, stat};
    use tiro_base::thread::Stat;

    /// An open folder.
    #[derive(Debug)]
    pub struct Folder {
        folder: OwnedFd,
    }

    impl Folder {
        /// Opens the folder at `path`. Links in `path` are followed.
        pub fn at(path: &Path) -> Result<Folder, Refusal> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = openat(CWD, path, flags, Mode::empty()).map_err(refusal)?;
            Ok(Folder { folder })
        }

        /// Opens the same folder once more, even if its path leads elsewhere now.
        pub fn again(&self) -> Result<Folder, Refusal> {
            self.folder.try_clone().map(|folder| Folder { folder }).map_err(|error| Refusal::of(&error))
        }

        /// Opens the folder `name` of this folder.
        pub fn enter(&self, name: &OsStr) -> Result<Folder, Refusal> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(&self.folder, name, flags, Mode::empty()) {
                Ok(folder) => Ok(Folder { folder }),
                // Depending on the system, opening a link fails with one of these errors.
                Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => Err(match self.look(name)? {
                    Entry::Link => Refusal::Replaced,
                    _ => Refusal::Missing,
                }),
                Err(error) => Err(refusal(error)),
            }
        }

        /// Opens the regular file `name` of this folder.
        pub fn open(&self, name: &OsStr) -> Result<(File, Stat), Refusal> {
            match self.look(name)? {
                Entry::File => {}
                Entry::Folder => return Err(Refusal::Folder),
                Entry::Link => return Err(Refusal::Replaced),
                Entry::Special => return Err(Refusal::Special),
            }
            let flags =
                OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let file = match openat(&self.folder, name, flags, Mode::empty()) {
                Ok(file) => File::from(file),
                Err(Errno::LOOP | Errno::MLINK) => return Err(Refusal::Replaced),
                Err(error) => return Err(refusal(error)),
            };
            let stat = stat(&file)?;
            Ok((file, stat))
        }

        /// Returns the metadata of the regular file `name` without opening it. Returns `None` if `name` is not a
        /// regular file.
        pub fn stat(&self, name: &OsStr) -> Option<Stat> {
            let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            if entry(FileType::from_raw_mode(found.st_mode)) != Entry::File {
                return None;
            }
            let nanos =
                |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
            Some(Stat {
                size: u64::try_from(found.st_size).ok()?,
                mtime_ns: nanos(found.st_mtime, i64::try_from(found.st_mtime_nsec).ok()?),
                ctime_ns: nanos(found.st_ctime, i64::try_from(found.st_ctime_nsec).ok()?),
                inode: found.st_ino,
            })
        }

        /// Returns the identity of the regular file `name`, if it has more than one name.
        #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
        pub fn linked(&self, name: &OsStr) -> Option<FileId> {
            let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_file = entry(FileType::from_raw_mode(found.st_mode)) == Entry::File;
            (is_file && found.st_nlink > 1).then_some((found.st_dev as u64, found.st_ino as u64))
        }

        /// Returns the kind of the entry `name`.
        pub fn look(&self, name: &OsStr) -> Result<Entry, Refusal> {
            let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(refusal)?;
            Ok(entry(FileType::from_raw_mode(found.st_mode)))
        }

        /// Returns the entries in no particular order, or `None` if there are more than `most`.
        pub fn entries(&self, most: usize) -> Result<Option<Entries>, Refusal> {
            let mut entries = Vec::new();
            for found in Dir::read_from(&self.folder).map_err(refusal)? {
                let found = found.map_err(refusal)?;
                let name = found.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                if entries.len() == most {
                    return Ok(None);
                }
                let name = OsString::from_vec(name.to_vec());
                let kind = match found.file_type() {
                    // Some file systems don't list the kinds of entries.
                    FileType::Unknown => match self.look(&name) {
                        Ok(kind) => kind,
                        // The entry was removed just now.
                        Err(_) => continue,
                    },
                    kind => entry(kind),
                };
                entries.push((name, kind));
            }
            Ok(Some(entries))
        }
    }

    fn entry(kind: FileType) -> Entry {
        match kind {
            FileType::RegularFile => Entry::File,
            FileType::Directory => Entry::Folder,
            FileType::Symlink => Entry::Link,
            _ => Entry::Special,
        }
    }

    fn refusal(error: Errno) -> Refusal {
        Refusal::of(&error.into())
    }
}

#[cfg(not(unix))]
mod paths {
    use std::ffi::OsStr;
    use std::fs::{self, File};
    use std::io;
    use std::path::{Path, PathBuf};

    use super::{Entries, Entry, FileId, Refusal, stat};
    use tiro_base::thread::Stat;

    /// The path of a folder. The methods do the same as in the Unix version.
    #[derive(Debug)]
    pub struct Folder {
        path: PathBuf,
    }

    impl Folder {
        pub fn at(path: &Path) -> Result<Folder, Refusal> {
            match fs::metadata(path).map_err(refusal)?.is_dir() {
                true => Ok(Folder { path: path.to_owned() }),
                false => Err(Refusal::Missing),
            }
        }

        pub fn again(&self) -> Result<Folder, Refusal> {
            Ok(Folder { path: self.path.clone() })
        }

        pub fn enter(&self, name: &OsStr) -> Result<Folder, Refusal> {
            match self.look(name)? {
                Entry::Folder => Ok(Folder { path: self.path.join(name) }),
                Entry::Link => Err(Refusal::Replaced),
                _ => Err(Refusal::Missing),
            }
        }

        pub fn open(&self, name: &OsStr) -> Result<(File, Stat), Refusal> {
            match self.look(name)? {
                Entry::File => {}
                Entry::Folder => return Err(Refusal::Folder),
                Entry::Link => return Err(Refusal::Replaced),
                Entry::Special => return Err(Refusal::Special),
            }
            let file = File::open(self.path.join(name)).map_err(refusal)?;
            let stat = stat(&file)?;
            Ok((file, stat))
        }

        pub fn look(&self, name: &OsStr) -> Result<Entry, Refusal> {
            let found = fs::symlink_metadata(self.path.join(name)).map_err(refusal)?;
            Ok(entry(found.file_type()))
        }

        /// Always returns `None`, so that every file is opened on this system.
        pub fn stat(&self, _name: &OsStr) -> Option<Stat> {
            None
        }

        /// Always returns `None`, because hard links are not recognised on this system.
        pub fn linked(&self, _name: &OsStr) -> Option<FileId> {
            None
        }

        pub fn entries(&self, most: usize) -> Result<Option<Entries>, Refusal> {
            let mut entries = Vec::new();
            for found in fs::read_dir(&self.path).map_err(refusal)? {
                let found = found.map_err(refusal)?;
                if entries.len() == most {
                    return Ok(None);
                }
                entries.push((found.file_name(), entry(found.file_type().map_err(refusal)?)));
            }
            Ok(Some(entries))
        }
    }

    fn entry(kind: fs::FileType) -> Entry {
        match () {
            () if kind.is_symlink() => Entry::Link,
            () if kind.is_dir() => Entry::Folder,
            () if kind.is_file() => Entry::File,
            () => Entry::Special,
        }
    }

    fn refusal(error: io::Error) -> Refusal {
        Refusal::of(&error)
    }
}

#[cfg(not(unix))]
pub(super) use paths::Folder;
#[cfg(unix)]
pub(super) use relative::Folder;
