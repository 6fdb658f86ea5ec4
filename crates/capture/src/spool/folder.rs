//! A folder of the spool. The folder is opened only once, and all reading, writing and removing happens in the opened
//! folder.
//!
//! If the folder is replaced by a link, the target of the link is not the spool, and nothing there may be read, moved
//! or removed. So no path is resolved twice. The folder is opened without following a link and must belong to the
//! current user, and every file is opened relative to the folder. On platforms without such system calls, paths are
//! checked before each use.

use std::io;
use std::path::Path;

#[cfg(not(unix))]
pub(super) use paths::Folder;
#[cfg(unix)]
pub(super) use relative::Folder;

/// The longest file that is read, in bytes. A reference is shorter, because it contains two paths and a few words.
pub(super) const LIMIT: u64 = 64 * 1024;

fn name_below<'p>(root: &Path, folder: &'p Path) -> Option<&'p str> {
    folder.strip_prefix(root).ok()?.to_str().filter(|name| !name.is_empty())
}

fn unfinished() -> io::Result<String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
    Ok(format!(".unfinished-{:016x}", u64::from_ne_bytes(random)))
}

#[cfg(unix)]
mod relative {
    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{
        AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, statat, unlinkat,
    };

    use super::{LIMIT, name_below, unfinished};
    use tiro_base::error::RefusedFile;
    use tiro_base::file::{read_all, regular};

    /// An open folder.
    #[derive(Debug)]
    pub struct Folder {
        folder: OwnedFd,
    }

    impl Folder {
        /// Opens `folder`, which is `root` itself or a folder in it.
        ///
        /// # Errors
        ///
        /// The call fails if `folder` does not exist. It also fails if `folder` or `root` is a link, is not a folder,
        /// or belongs to another user.
        pub fn open(root: &Path, folder: &Path) -> io::Result<Folder> {
            let root_folder = own(openat(CWD, root, FOLDER, Mode::empty()))?;
            let folder = match name_below(root, folder) {
                None => root_folder,
                Some(name) => own(openat(&root_folder, name, FOLDER, Mode::empty()))?,
            };
            Ok(Folder { folder })
        }

        /// Opens `folder` in the existing folder `root`. Creates `folder` if it is missing.
        pub fn make(root: &Path, folder: &Path) -> io::Result<Folder> {
            if let Some(name) = name_below(root, folder) {
                let root_folder = own(openat(CWD, root, FOLDER, Mode::empty()))?;
                match mkdirat(&root_folder, name, Mode::RWXU) {
                    Err(error) if error != rustix::io::Errno::EXIST => return Err(error.into()),
                    _ => {}
                }
            }
            Folder::open(root, folder)
        }

        /// Returns the names of the regular files in the folder.
        pub fn names(&self) -> Vec<String> {
            let Ok(entries) = Dir::read_from(&self.folder) else { return Vec::new() };
            let is_file = |name: &str| {
                let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
                found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
            };
            let names =
                entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
            names.filter(|name| is_file(name)).collect()
        }

        /// Returns the text of the regular file `name`; `None` if there is no such file or it is too large.
        pub fn read(&self, name: &str) -> Option<String> {
            let flags =
                OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let file = File::from(openat(&self.folder, name, flags, Mode::empty()).ok()?);
            regular(&file, LIMIT).ok()?;
            String::from_utf8(read_all(file, LIMIT).ok()?).ok()
        }

        /// Returns whether `name` exists. If this can't be determined, returns true.
        pub fn has(&self, name: &str) -> bool {
            let found = statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
            !matches!(found, Err(rustix::io::Errno::NOENT))
        }

        /// Renames the file `from` to `to`; replaces an existing file `to`.
        pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            Ok(renameat(&self.folder, from, &self.folder, to)?)
        }

        /// Removes the file or the link `name`.
        pub fn remove(&self, name: &str) -> io::Result<()> {
            Ok(unlinkat(&self.folder, name, AtFlags::empty())?)
        }

        /// Writes the file `name` atomically.
        pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
            let new = unfinished()?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(openat(&self.folder, &new, flags, Mode::RUSR | Mode::WUSR)?);
            let written = file.write_all(bytes).and_then(|()| self.rename(&new, name));
            if written.is_err() {
                let _ = self.remove(&new);
            }
            written
        }

        /// Writes a file and removes it, to test whether writing works.
        pub fn probe(&self) -> io::Result<()> {
            let new = unfinished()?;
            self.put(&new, b"")?;
            self.remove(&new)
        }
    }

    const FOLDER: OFlags =
        OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    /// Returns the folder if it belongs to the current user, or if the current user is root.
    fn own(opened: rustix::io::Result<OwnedFd>) -> io::Result<OwnedFd> {
        let opened = match opened {
            // The error for opening a link depends on the system.
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR | rustix::io::Errno::MLINK) => {
                return Err(RefusedFile::NoFolder.into());
            }
            opened => opened?,
        };
        let user = rustix::process::geteuid();
        match user.is_root() || fstat(&opened)?.st_uid == user.as_raw() {
            true => Ok(opened),
            false => Err(RefusedFile::NotOwn.into()),
        }
    }
}

#[cfg(not(unix))]
mod paths {
    use std::fs;
    use std::io::{self, Write};
    use std::path::{Path, PathBuf};

    use super::{LIMIT, name_below, unfinished};
    use tiro_base::error::RefusedFile;
    use tiro_base::file::{self, Links};

    /// A folder whose path was checked. Its methods do the same as those of the Unix version.
    #[derive(Debug)]
    pub struct Folder {
        folder: PathBuf,
    }

    impl Folder {
        pub fn open(root: &Path, folder: &Path) -> io::Result<Folder> {
            match root.symlink_metadata()?.is_dir() && folder.symlink_metadata()?.is_dir() {
                true => Ok(Folder { folder: folder.to_owned() }),
                false => Err(RefusedFile::NoFolder.into()),
            }
        }

        pub fn make(root: &Path, folder: &Path) -> io::Result<Folder> {
            if name_below(root, folder).is_some() && root.symlink_metadata()?.is_dir() {
                fs::create_dir_all(folder)?;
            }
            Folder::open(root, folder)
        }

        pub fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
            let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
            files.filter_map(|entry| entry.file_name().into_string().ok()).collect()
        }

        pub fn read(&self, name: &str) -> Option<String> {
            file::read_to_string(&self.folder.join(name), Links::Refused, LIMIT).ok()
        }

        pub fn has(&self, name: &str) -> bool {
            let found = self.folder.join(name).symlink_metadata();
            !matches!(found, Err(error) if error.kind() == io::ErrorKind::NotFound)
        }

        pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            fs::rename(self.folder.join(from), self.folder.join(to))
        }

        pub fn remove(&self, name: &str) -> io::Result<()> {
            fs::remove_file(self.folder.join(name))
        }

        pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
            let new = unfinished()?;
            let mut file = fs::File::create_new(self.folder.join(&new))?;
            let written = file.write_all(bytes);
            drop(file);
            let written = written.and_then(|()| self.rename(&new, name));
            if written.is_err() {
                let _ = self.remove(&new);
            }
            written
        }

        pub fn probe(&self) -> io::Result<()> {
            let new = unfinished()?;
            self.put(&new, b"")?;
            self.remove(&new)
        }
    }
}
