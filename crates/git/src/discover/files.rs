//! Reads the control files of a repository. A file is read only if it is a regular file below a given directory, is
//! reached without following links, and is not larger than a given size.
//!
//! A repository can come from anywhere. A link in place of `HEAD` would make Tiro read and show a file from elsewhere;
//! reading a pipe would never end; a sparse file of gigabytes takes only a few bytes in an archive. On Unix, each
//! folder of a path is opened relative to the previous folder without following links. So even a link that is put there
//! during the reading is not followed. On other systems, each part of a path is checked just before the file is opened.
//! On those systems, a link that is created between the check and the opening is followed.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Why a file is not read. The messages of these faults never quote the content of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The file, or a folder on the path to it, is a link.
    Link,
    /// The path leads to a pipe, a device or a socket.
    Special,
    /// The path leads to a folder instead of a file.
    Folder,
    /// The file has this many bytes, more than a real file of this kind ever has.
    TooLarge(u64),
    /// The operating system refuses to read the file, with this error.
    Unreadable(ErrorKind),
    /// The content is not valid for such a file.
    Content,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Link => f.write_str("is a link, or is reached through one"),
            Fault::Special => f.write_str("is a pipe, a device or a socket instead of a file"),
            Fault::Folder => f.write_str("is a folder instead of a file"),
            Fault::TooLarge(bytes) => {
                write!(f, "has {bytes} bytes, more than a real file of this kind ever has")
            }
            Fault::Unreadable(kind) => write!(f, "cannot be read: {kind}"),
            Fault::Content => f.write_str("has invalid content"),
        }
    }
}

/// The kind of thing at a path. The kind is determined without opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathKind {
    /// Nothing.
    Nothing,
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket, a device.
    Special,
}

impl PathKind {
    /// Returns what is at `path`. A link is reported as a link, whatever it leads to.
    pub fn at(path: &Path) -> PathKind {
        match path.symlink_metadata() {
            Ok(metadata) => PathKind::of(metadata.file_type()),
            Err(_) => PathKind::Nothing,
        }
    }

    fn of(kind: fs::FileType) -> PathKind {
        match () {
            () if kind.is_symlink() => PathKind::Link,
            () if kind.is_file() => PathKind::File,
            () if kind.is_dir() => PathKind::Folder,
            () => PathKind::Special,
        }
    }
}

/// A directory whose files are read.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Whether links are followed, because the user trusts the repository.
    follows: bool,
    /// The directory's open handle, if it was opened once for reading several files.
    #[cfg(unix)]
    opened: Option<std::sync::Arc<std::os::fd::OwnedFd>>,
}

impl Folder {
    /// Returns the directory `path`. `path` itself may contain links: only the names below it are checked.
    pub fn new(path: PathBuf, follows: bool) -> Folder {
        Folder {
            path,
            follows,
            #[cfg(unix)]
            opened: None,
        }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether links are followed.
    pub fn follows(&self) -> bool {
        self.follows
    }

    /// Returns the subfolder `name`.
    pub fn within(&self, name: &str) -> Folder {
        Folder::new(self.path.join(name), self.follows)
    }

    /// Returns the subfolder `name`, opened once so that several files can be read from it. Returns `None` if there is
    /// no such subfolder.
    pub fn opened(&self, name: &str) -> Result<Option<Folder>, Fault> {
        #[cfg(unix)]
        if !self.follows {
            let folder = self.within(name);
            let opened = self.enter(name)?;
            return Ok(opened.map(|opened| Folder { opened: Some(opened.into()), ..folder }));
        }
        Ok(Some(self.within(name)))
    }

    /// Returns the content of the file `name`, a relative path separated by `/`. Returns `None` if there is no such
    /// file.
    pub fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, Fault> {
        let Some((file, metadata)) = self.open(name)? else { return Ok(None) };
        if metadata.len() > most {
            return Err(Fault::TooLarge(metadata.len()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
        // The file may have grown since its length was checked, so the limit is applied again.
        file.take(most).read_to_end(&mut bytes).map_err(|error| Fault::Unreadable(error.kind()))?;
        Ok(Some(bytes))
    }

    /// Returns the last `most` bytes of the file `name` as text, or `None` if there is no such file or it can't be
    /// read.
    pub fn end(&self, name: &str, most: u64) -> Option<String> {
        let (mut file, metadata) = self.open(name).ok()??;
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(most))).ok()?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the target of the link `name`, or `None` if `name` is no link.
    pub fn link(&self, name: &str) -> Option<PathBuf> {
        fs::read_link(self.path.join(name)).ok()
    }

    /// Returns what is at `name`. For a link, returns the kind of its target if links are followed.
    pub fn look(&self, name: &str) -> PathKind {
        let path = self.path.join(name);
        match PathKind::at(&path) {
            PathKind::Link if self.follows => {
                fs::metadata(&path).map_or(PathKind::Nothing, |it| PathKind::of(it.file_type()))
            }
            found => found,
        }
    }

    /// Returns at most `most` entries of the subfolder `name`, sorted by name, and whether the list is complete. If
    /// there is no such folder, returns no entries.
    pub fn list(&self, name: &str, most: usize) -> Result<(Vec<(String, PathKind)>, bool), Fault> {
        let Some(entries) = self.entries(name)? else { return Ok((Vec::new(), true)) };
        let mut found = Vec::new();
        for entry in entries {
            if found.len() == most {
                return Ok((found, false));
            }
            found.push(entry);
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok((found, true))
    }

    /// Opens the regular file `name`. Returns `None` if there is no such file.
    pub fn open(&self, name: &str) -> Result<Option<(File, Metadata)>, Fault> {
        let opened = if self.follows { follow(&self.path.join(name)) } else { self.open_itself(name) };
        let file = match opened {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(None),
            Err(fault) => return Err(fault),
        };
        let metadata = file.metadata().map_err(|error| Fault::Unreadable(error.kind()))?;
        match PathKind::of(metadata.file_type()) {
            PathKind::File => Ok(Some((file, metadata))),
            PathKind::Folder => Err(Fault::Folder),
            _ => Err(Fault::Special),
        }
    }
}

/// Opens the file that `path` leads to, and follows links on the way.
fn follow(path: &Path) -> Result<Option<File>, Fault> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(metadata) if metadata.is_dir() => return Err(Fault::Folder),
        Ok(_) => return Err(Fault::Special),
        Err(error) => return nothing_or(&error),
    }
    File::open(path).map(Some).or_else(|error| nothing_or(&error))
}

fn nothing_or<T>(error: &io::Error) -> Result<Option<T>, Fault> {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
        kind => Err(Fault::Unreadable(kind)),
    }
}

/// Returns the path that `bytes` represent, or `None` if they can't be a path.
#[cfg(unix)]
pub(super) fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let is_path = !bytes.is_empty() && !bytes.iter().any(|byte| matches!(byte, 0 | b'\n'));
    is_path.then(|| PathBuf::from(std::ffi::OsStr::from_bytes(bytes)))
}

/// Returns the path that `bytes` represent, or `None` if they can't be a path.
#[cfg(not(unix))]
pub(super) fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    let text = std::str::from_utf8(bytes).ok()?;
    (!text.is_empty() && !text.contains(['\0', '\n'])).then(|| PathBuf::from(text))
}

#[cfg(unix)]
mod by_steps {
    use std::os::fd::OwnedFd;

    use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
    use rustix::io::Errno;

    use super::*;

    impl Folder {
        /// Opens `name` without following any link below this folder.
        pub(super) fn open_itself(&self, name: &str) -> Result<Option<File>, Fault> {
            let (folders, last) = name.rsplit_once('/').unwrap_or(("", name));
            let entered;
            let folder = match &self.opened {
                Some(opened) if folders.is_empty() => &**opened,
                _ => {
                    let Some(folder) = self.enter(folders)? else { return Ok(None) };
                    entered = folder;
                    &entered
                }
            };
            match kind(folder, last)? {
                PathKind::Nothing => return Ok(None),
                PathKind::Link => return Err(Fault::Link),
                PathKind::Folder => return Err(Fault::Folder),
                PathKind::Special => return Err(Fault::Special),
                PathKind::File => {}
            }
            // A pipe or a link may replace the file at this very moment. With these flags, opening a pipe doesn't
            // block, and opening a link fails.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match openat(folder, last, flags, Mode::empty()) {
                Ok(file) => Ok(Some(File::from(file))),
                Err(Errno::LOOP) => Err(Fault::Link),
                Err(errno) => nothing_or(&errno.into()),
            }
        }

        /// Returns the entries of the subfolder `name`, or `None` if there is no such folder.
        pub(super) fn entries(
            &self,
            name: &str,
        ) -> Result<Option<impl Iterator<Item = (String, PathKind)> + use<>>, Fault> {
            let entered = match self.follows {
                true => enter_itself(&self.path.join(name)),
                false => self.enter(name),
            };
            let Some(folder) = entered? else { return Ok(None) };
            let entries =
                Dir::new(folder).map_err(|errno| Fault::Unreadable(io::Error::from(errno).kind()))?;
            let path = self.path.join(name);
            Ok(Some(entries.filter_map(move |entry| {
                let entry = entry.ok()?;
                let name = entry.file_name().to_string_lossy();
                if name == "." || name == ".." {
                    return None;
                }
                let found = match entry.file_type() {
                    FileType::RegularFile => PathKind::File,
                    FileType::Directory => PathKind::Folder,
                    FileType::Symlink => PathKind::Link,
                    // Some file systems don't list the types of entries, so the type is looked up.
                    FileType::Unknown => PathKind::at(&path.join(&*name)),
                    _ => PathKind::Special,
                };
                Some((name.into_owned(), found))
            })))
        }

        /// Opens the subfolder `name`, one path component at a time.
        pub(super) fn enter(&self, name: &str) -> Result<Option<OwnedFd>, Fault> {
            let Some(mut folder) = enter_itself(&self.path)? else { return Ok(None) };
            for step in name.split('/').filter(|step| !step.is_empty()) {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                folder = match openat(&folder, step, flags, Mode::empty()) {
                    Ok(inner) => inner,
                    Err(Errno::LOOP | Errno::NOTDIR) if kind(&folder, step)? == PathKind::Link => {
                        return Err(Fault::Link);
                    }
                    Err(errno) => return nothing_or(&errno.into()),
                };
            }
            Ok(Some(folder))
        }
    }

    fn enter_itself(path: &Path) -> Result<Option<OwnedFd>, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(folder) => Ok(Some(folder)),
            Err(errno) => nothing_or(&errno.into()),
        }
    }

    fn kind(folder: &OwnedFd, name: &str) -> Result<PathKind, Fault> {
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => PathKind::File,
                FileType::Directory => PathKind::Folder,
                FileType::Symlink => PathKind::Link,
                _ => PathKind::Special,
            }),
            Err(errno) => nothing_or(&errno.into()).map(|nothing| nothing.unwrap_or(PathKind::Nothing)),
        }
    }
}

#[cfg(not(unix))]
impl Folder {
    fn open_itself(&self, name: &str) -> Result<Option<File>, Fault> {
        match self.step_by_step(name)? {
            PathKind::Nothing => Ok(None),
            PathKind::Folder => Err(Fault::Folder),
            PathKind::Special | PathKind::Link => Err(Fault::Special),
            PathKind::File => File::open(self.path.join(name)).map(Some).or_else(|error| nothing_or(&error)),
        }
    }

    fn entries(&self, name: &str) -> Result<Option<impl Iterator<Item = (String, PathKind)> + use<>>, Fault> {
        if !self.follows && self.step_by_step(name)? != PathKind::Folder {
            return Ok(None);
        }
        let Ok(entries) = fs::read_dir(self.path.join(name)) else { return Ok(None) };
        Ok(Some(entries.filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.file_name().to_string_lossy().into_owned(), PathKind::of(entry.file_type().ok()?)))
        })))
    }

    /// Checks each component of `name`; returns the type of the last one.
    fn step_by_step(&self, name: &str) -> Result<PathKind, Fault> {
        let mut path = self.path.clone();
        let mut found = PathKind::Folder;
        for step in name.split('/').filter(|step| !step.is_empty()) {
            path.push(step);
            found = PathKind::at(&path);
            match found {
                PathKind::Link => return Err(Fault::Link),
                PathKind::Nothing => return Ok(PathKind::Nothing),
                _ => {}
            }
        }
        Ok(found)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_of_the_folder_itself_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("secret"), "secret").unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/file"), "content").unwrap();
        symlink(elsewhere.path().join("secret"), dir.path().join("a/link")).unwrap();
        symlink(elsewhere.path(), dir.path().join("a/folder")).unwrap();
        symlink("b/file", dir.path().join("a/inside")).unwrap();
        let folder = Folder::new(dir.path().to_owned(), false);
        assert_eq!(folder.read("a/b/file", 100), Ok(Some(b"content".to_vec())));
        assert_eq!(folder.read("a/b/file", 3), Err(Fault::TooLarge(7)));
        assert_eq!(folder.read("a/b", 100), Err(Fault::Folder));
        for link in ["a/link", "a/folder/secret", "a/inside"] {
            assert_eq!(folder.read(link, 100), Err(Fault::Link), "{link}");
        }
        for nothing in ["a/none", "none/file", "a/b/file/x"] {
            assert_eq!(folder.read(nothing, 100), Ok(None), "{nothing}");
        }
        assert_eq!(folder.list("a/folder", 9), Err(Fault::Link));
        let kinds = [
            ("b", PathKind::Folder),
            ("folder", PathKind::Link),
            ("inside", PathKind::Link),
            ("link", PathKind::Link),
        ];
        let kinds = kinds.map(|(name, kind)| (name.to_owned(), kind)).to_vec();
        assert_eq!(folder.list("a", 9), Ok((kinds, true)));
        assert!(!folder.list("a", 2).unwrap().1);
        let trusting = Folder::new(dir.path().to_owned(), true);
        assert_eq!(trusting.read("a/folder/secret", 100), Ok(Some(b"secret".to_vec())));
        assert_eq!(trusting.end("a/link", 3).as_deref(), Some("ret"));
    }

    #[test]
    fn a_sparse_file_and_a_pipe_cost_nothing() {
        let dir = tempfile::tempdir().unwrap();
        File::create(dir.path().join("sparse")).unwrap().set_len(3 << 30).unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let folder = Folder::new(dir.path().to_owned(), false);
        assert_eq!(folder.read("sparse", 1 << 20), Err(Fault::TooLarge(3 << 30)));
        assert_eq!(folder.read("pipe", 1 << 20), Err(Fault::Special));
    }
}
