//! Opens files that other people or programs may have placed. Only regular files are opened, up to a maximal size,
//! and without blocking.
//!
//! A path can lead to a pipe that nothing writes to, to a device, or to a sparse file of gigabytes. The file can also
//! be replaced between a check and the read. So a file is opened without blocking, checked through its handle, and read
//! only up to the maximal size. The caller decides whether links are followed: a user's own settings are often links,
//! but a file that Tiro wrote never is.
//!
//! Which files of the user a model may read is decided in `files`.

pub mod unfinished;
pub mod user_file;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::RefusedFile;

/// How a link at the end of a path is treated. Links elsewhere in the path are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The target of the link is opened.
    Followed,
    /// The link is refused.
    Refused,
}

/// Fills `buffer` from the file, starting at the byte `start`. Afterwards the file's own position is undefined.
///
/// # Errors
///
/// The errors of reading, and [`io::ErrorKind::UnexpectedEof`] if the file ends before the buffer is full.
pub fn read_at(file: &File, buffer: &mut [u8], start: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, start);
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < buffer.len() {
            match std::os::windows::fs::FileExt::seek_read(file, &mut buffer[done..], start + done as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }
}

/// Opens the regular file at `path` without blocking. The file may have at most `most` bytes.
///
/// # Errors
///
/// The errors of opening a file, and [`RefusedFile`].
pub fn open(path: &Path, links: Links, most: u64) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let nofollow = if links == Links::Refused { OFlags::NOFOLLOW } else { OFlags::empty() };
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY | nofollow;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits() as i32);
    }
    if links == Links::Refused && path.symlink_metadata()?.is_symlink() {
        return Err(RefusedFile::NotRegular.into());
    }
    let file = match options.open(path) {
        // A socket can't be opened at all, so it is recognised by its metadata.
        Err(_) if path.metadata().is_ok_and(|metadata| !metadata.is_file()) => {
            return Err(RefusedFile::NotRegular.into());
        }
        opened => opened?,
    };
    regular(&file, most)?;
    Ok(file)
}

/// Syncs a folder to the disk, so that a new entry in it is durable, if the system supports this.
pub fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if File::open(folder).and_then(|folder| folder.sync_all()).is_err() {
        tracing::warn!("the folder of a new file can't be synced");
    }
    #[cfg(not(unix))]
    let _ = folder;
}

/// Checks that `file` is a regular file of at most `most` bytes.
///
/// # Errors
///
/// [`RefusedFile`] otherwise.
pub fn regular(file: &File, most: u64) -> io::Result<()> {
    let metadata = file.metadata()?;
    match metadata.is_file() {
        false => Err(RefusedFile::NotRegular.into()),
        true if metadata.len() > most => Err(RefusedFile::TooLarge(most).into()),
        true => Ok(()),
    }
}

/// Reads the regular file at `path`; see [`open`].
pub fn read(path: &Path, links: Links, most: u64) -> io::Result<Vec<u8>> {
    read_all(open(path, links, most)?, most)
}

/// Reads the regular file at `path` as text; see [`open`].
pub fn read_to_string(path: &Path, links: Links, most: u64) -> io::Result<String> {
    let bytes = read(path, links, most)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads the rest of `file`. Fails if the file has grown beyond `most` bytes since it was opened.
pub fn read_all(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(RefusedFile::TooLarge(most).into()) } else { Ok(bytes) }
}

/// The prefix of a path that is serialized as bytes; no canonical path begins with it.
const BYTES: &str = "bytes:";

/// Returns a text that is unique for `path`: the path itself if it is valid UTF-8, otherwise a prefix followed by its
/// bytes.
pub fn text_of(path: &Path) -> String {
    if let Some(text) = path.to_str().filter(|text| !text.starts_with(BYTES)) {
        return text.to_owned();
    }
    let mut text = BYTES.to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'%' | 0..=b' ' | 0x7f.. => text += &format!("%{byte:02X}"),
            plain => text.push(char::from(plain)),
        }
    }
    text
}

/// Returns the path that [`text_of`] turned into `text`.
pub fn path_of(text: &str) -> PathBuf {
    let Some(written) = text.strip_prefix(BYTES) else { return PathBuf::from(text) };
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let [first, more @ ..] = rest {
        let pair = more.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.filter(|_| *first == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    path_of_bytes(bytes)
}

#[cfg(unix)]
fn path_of_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(not(unix))]
fn path_of_bytes(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(&bytes).into_owned())
}

/// Serializes a path as [`text_of`] does: `#[serde(with = "crate::file::as_text")]`.
pub mod as_text {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serializer};

    /// Serializes the path.
    pub fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::text_of(path))
    }

    /// Deserializes the path.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        String::deserialize(deserializer).map(|text| super::path_of(&text))
    }
}

/// Serializes an optional path as [`text_of`] does.
pub mod as_optional_text {
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Serializes the path.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(super::text_of).serialize(serializer)
    }

    /// Deserializes the path.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(|text| super::path_of(&text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(error: io::Error) -> Option<RefusedFile> {
        error.get_ref()?.downcast_ref::<RefusedFile>().copied()
    }

    #[test]
    fn only_a_regular_file_of_the_right_size_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "twelve bytes").unwrap();
        for links in [Links::Followed, Links::Refused] {
            assert_eq!(read(&path, links, 12).unwrap(), b"twelve bytes");
            assert_eq!(refused(read(&path, links, 11).unwrap_err()), Some(RefusedFile::TooLarge(11)));
            assert_eq!(refused(read(folder.path(), links, 12).unwrap_err()), Some(RefusedFile::NotRegular));
            assert_eq!(
                read(&folder.path().join("none"), links, 1).unwrap_err().kind(),
                io::ErrorKind::NotFound
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_a_socket_and_a_device_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&pipe, &socket, Path::new("/dev/zero"), Path::new("/dev/tty")] {
            let error = read(path, Links::Followed, 100).unwrap_err();
            assert_eq!(refused(error), Some(RefusedFile::NotRegular), "{}", path.display());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_only_where_that_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&path, "x").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read(&link, Links::Followed, 1).unwrap(), b"x");
        assert_eq!(refused(read(&link, Links::Refused, 1).unwrap_err()), Some(RefusedFile::NotRegular));
    }
}
