//! The file that `tiro backup --all` writes. It is a zip archive of stores with a list of its content. Any program can
//! open it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::{self, Links};
use tiro_base::private;

/// The entry with the list of the archive's content.
const LIST: &str = "tiro-backup.json";

/// The entry with the configuration.
const CONFIGURATION: &str = "config.toml";

/// The version of the format.
const FORMAT: u32 = 1;

/// The largest list and the largest configuration, in bytes. Arbitrary: a project takes 200 bytes of the list.
const LARGEST: u64 = 64 << 20;

/// The content of the archive.
#[derive(Debug, Deserialize, Serialize)]
pub struct List {
    /// The version of the format.
    pub format: u32,
    /// The version of the program that wrote it.
    pub program: String,
    /// When it was written.
    pub made_at: String,
    /// The stores, with the owner's store first.
    pub stores: Vec<ArchiveEntry>,
    /// Whether the configuration is in it.
    pub configuration: bool,
}

/// A store in the archive.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ArchiveEntry {
    /// The name of the entry in the archive.
    pub name: String,
    /// The project's id; `None` for the store of the owner.
    pub project: Option<String>,
    /// The project's name; empty for the store of the owner.
    pub project_name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The BLAKE3 hash of its bytes, in hexadecimal digits.
    pub hash: String,
    /// How many memories it has.
    pub memories: u64,
    /// How many threads with assistants it has.
    pub threads: u64,
}

/// An archive that is being written.
pub struct ArchiveWriter {
    archive: ZipWriter<BufWriter<File>>,
    list: List,
}

impl ArchiveWriter {
    /// Begins an archive in the new file `path`, which only this user can read.
    pub fn begin(path: &Path, made_at: String) -> Result<ArchiveWriter> {
        private::create(path)?;
        let file = File::options().write(true).open(path).context(Kind::Io, unwritten)?;
        let program = env!("CARGO_PKG_VERSION").to_owned();
        let list = List { format: FORMAT, program, made_at, stores: Vec::new(), configuration: false };
        Ok(ArchiveWriter { archive: ZipWriter::new(BufWriter::new(file)), list })
    }

    /// Adds the store at `path` as `entry`. The size and the hash of `entry` are computed here.
    pub fn add_store(&mut self, mut entry: ArchiveEntry, path: &Path) -> Result<()> {
        self.archive.start_file(&entry.name, options()).context(Kind::Io, unwritten)?;
        let source = File::open(path).context(Kind::Io, unwritten)?;
        let (bytes, hash) = copy(source, &mut self.archive).context(Kind::Io, unwritten)?;
        (entry.bytes, entry.hash) = (bytes, hash);
        self.list.stores.push(entry);
        Ok(())
    }

    /// Adds the text of the configuration.
    pub fn add_configuration(&mut self, text: &str) -> Result<()> {
        self.archive.start_file(CONFIGURATION, options()).context(Kind::Io, unwritten)?;
        self.archive.write_all(text.as_bytes()).context(Kind::Io, unwritten)?;
        self.list.configuration = true;
        Ok(())
    }

    /// Adds the list and syncs the file.
    pub fn finish(mut self) -> Result<()> {
        self.archive.start_file(LIST, options()).context(Kind::Io, unwritten)?;
        let list = serde_json::to_vec_pretty(&self.list).context(Kind::Io, unwritten)?;
        self.archive.write_all(&list).context(Kind::Io, unwritten)?;
        let file = self.archive.finish().context(Kind::Io, unwritten)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error).context(Kind::Io, unwritten)?;
        file.sync_all().context(Kind::Io, unwritten)
    }
}

/// An archive that is read. It is not trusted, because it may come from anywhere.
pub struct ArchiveReader {
    archive: ZipArchive<BufReader<File>>,
    /// What is in it.
    pub list: List,
}

impl ArchiveReader {
    /// Returns whether the file at `path` begins like an archive.
    pub fn is_archive(path: &Path) -> bool {
        let mut begin = [0; 4];
        let file = file::open(path, Links::Followed, u64::MAX);
        file.is_ok_and(|mut file| file.read_exact(&mut begin).is_ok()) && begin == *b"PK\x03\x04"
    }

    /// Opens the archive at `path` and reads its list.
    ///
    /// Errors with [`Kind::BadInput`] if the file is not a backup of everything, or if a later Tiro wrote it.
    pub fn open(path: &Path) -> Result<ArchiveReader> {
        let file = file::open(path, Links::Followed, u64::MAX)
            .context(Kind::Io, || format!("cannot read `{}`", quoted(path.display())))?;
        let unusable = |why: &str| {
            Error::bad_input(format!("`{}` is not a Tiro backup: {why}", quoted(path.display())))
                .hint("give a file that `tiro backup FILE` or `tiro backup --all FILE` wrote")
        };
        let mut archive = ZipArchive::new(BufReader::new(file))
            .map_err(|error| unusable("it is a damaged archive, or not complete").source(error))?;
        let mut text = String::new();
        archive
            .by_name(LIST)
            .map_err(|error| unusable("it is an archive of another program").source(error))?
            .take(LARGEST)
            .read_to_string(&mut text)
            .map_err(|error| unusable("its list is damaged").source(error))?;
        let list: List =
            serde_json::from_str(&text).map_err(|error| unusable("its list is damaged").source(error))?;
        if list.format > FORMAT {
            return Err(unusable("a newer Tiro wrote it").hint("update this Tiro"));
        }
        if list.stores.first().is_none_or(|first| first.project.is_some()) {
            return Err(unusable("it has no store of the owner"));
        }
        Ok(ArchiveReader { archive, list })
    }

    /// Writes the store `entry` to the new file `target`, and checks it.
    ///
    /// Errors with [`Kind::BadInput`] if the store is not the same as when it was written.
    pub fn take_store(&mut self, entry: &ArchiveEntry, target: &Path) -> Result<()> {
        let damaged = || format!("`{}` in the backup is damaged", quoted(&entry.name));
        let source = self.archive.by_name(&entry.name).context(Kind::BadInput, damaged)?;
        let file = File::create_new(target).context(Kind::Io, unwritten)?;
        let mut file = BufWriter::new(file);
        // At most the number of bytes in the list is written, even if the archive unpacks to more.
        let copied = copy(source.take(entry.bytes.saturating_add(1)), &mut file);
        let (bytes, hash) = copied.context(Kind::BadInput, damaged)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error).context(Kind::Io, unwritten)?;
        file.sync_all().context(Kind::Io, unwritten)?;
        match (bytes, &hash) == (entry.bytes, &entry.hash) {
            true => Ok(()),
            false => Err(Error::bad_input(damaged()).hint("restore an earlier backup; nothing was changed")),
        }
    }

    /// Returns the text of the configuration, if it is in the archive.
    pub fn configuration(&mut self) -> Result<Option<String>> {
        if !self.list.configuration {
            return Ok(None);
        }
        let damaged = || format!("`{CONFIGURATION}` in the backup is damaged");
        let mut text = String::new();
        let entry = self.archive.by_name(CONFIGURATION).context(Kind::BadInput, damaged)?;
        entry.take(LARGEST).read_to_string(&mut text).context(Kind::BadInput, damaged)?;
        Ok(Some(text))
    }
}

/// Returns the options with which entries are stored. Entries are lightly compressed, because a store is mostly
/// vectors. They are private and may have any size.
fn options() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_level(Some(1)).unix_permissions(0o600).large_file(true)
}

/// Copies all bytes. Returns their number and their hash.
fn copy(mut source: impl Read, target: &mut impl Write) -> io::Result<(u64, String)> {
    let (mut hasher, mut bytes, mut buffer) = (blake3::Hasher::new(), 0, vec![0; 1 << 18]);
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok((bytes, hasher.finalize().to_hex().to_string())),
            read => {
                hasher.update(&buffer[..read]);
                target.write_all(&buffer[..read])?;
                bytes += read as u64;
            }
        }
    }
}

fn unwritten() -> String {
    "cannot write the stores".to_owned()
}
