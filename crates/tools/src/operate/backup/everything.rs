//! Copies all data of this installation to one file: the stores of all projects, the owner's memories, the registry,
//! the records of spending and of sent requests, and the configuration without keys.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::archive::{ArchiveEntry, ArchiveReader, ArchiveWriter};
use tiro_base::error::{Context, Error, Kind, Result, quoted};
use tiro_base::file::unfinished::{self, UNFINISHED, Workshop};
use tiro_base::file::{self, Links};
use tiro_base::humanize::{self, counted, thousands};
use tiro_base::scope::Scope;
use tiro_base::times;
use tiro_host::engine::{Engine, Installation};
use tiro_llm::Key;
use tiro_redact::Redactor;
use tiro_store::{Contents, ProjectRow, Store};

/// The name of the owner's store, both in the archive and in the data directory.
pub(super) const OWNERS: &str = "owner.db";

/// The largest configuration that is copied, in bytes. Larger configurations are not read either.
const LARGEST_CONFIGURATION: u64 = 1 << 20;

/// The longest time that closing a store waits for a call that still reads.
const PATIENCE: Duration = Duration::from_millis(250);

/// The data that is never in a backup of everything, because it belongs to the machine or can be made again.
pub const NOT_INCLUDED: [&str; 4] = [
    "keys of providers and environment variables",
    "embedding models: `tiro model install`",
    "the connections with agents and servers: `tiro init`, `tiro connect`",
    "cached answers, and what hooks left that no call has read yet",
];

/// The answer of `tiro backup --all`.
#[derive(Debug, Serialize)]
pub struct Everything {
    /// The file written.
    pub file: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// How many projects it has.
    pub projects: usize,
    /// The number of memories in the backup, including forgotten ones.
    pub memories: u64,
    /// How many threads with assistants it has.
    pub threads: u64,
    /// Whether the configuration is in it.
    pub configuration: bool,
    /// The places of the keys of the configured providers. The keys are not in the backup.
    pub keys: Vec<String>,
    /// How many secrets in the configuration were replaced.
    pub secrets_replaced: usize,
    /// The stores that have damaged parts, each with the ids of damaged memories.
    pub damaged: Vec<String>,
    /// The projects that could not be copied, each with the reason.
    pub left_out: Vec<String>,
    /// The data that is never in such a backup.
    pub not_included: Vec<&'static str>,
}

/// Copies everything to the new file `file`. Other processes may read and write during the copy. Each store is copied
/// in its state at one moment. The file gets its name when it is complete and was verified.
pub async fn back_up(engine: &Engine, file: &Path) -> Result<Everything> {
    let Some(installation) = engine.existing_installation().await? else {
        return Err(Error::not_found("nothing is stored yet, so there is nothing to back up"));
    };
    if file.symlink_metadata().is_ok() {
        return Err(Error::bad_input(format!("`{}` exists already", quoted(file.display())))
            .hint("name a file that doesn't exist; nothing was overwritten"));
    }
    let unwritten = || format!("cannot write the backup `{}`", quoted(file.display()));
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    unfinished::remove_abandoned(folder, |other| {
        other.strip_prefix(&name).is_some_and(|rest| rest.starts_with('.') && rest.ends_with(UNFINISHED))
    });
    let workshop = Workshop::make(folder, &name)
        .context(Kind::Io, unwritten)
        .map_err(|error| error.hint("name a folder that exists and can be written"))?;
    let written = workshop.path().join("backup");
    let mut writer = ArchiveWriter::begin(&written, times::show_time(engine.now()))?;
    let mut answer = copy_stores(engine, &installation, workshop.path(), &mut writer).await?;
    add_configuration(engine, &mut writer, &mut answer)?;
    writer.finish()?;
    verify(engine, &written, workshop.path()).await?;
    answer.bytes = written.metadata().map_or(0, |found| found.len());
    let written = tempfile::TempPath::try_from_path(written).context(Kind::Io, unwritten)?;
    written.persist_noclobber(file).map_err(|error| Error::new(Kind::Io, unwritten()).source(error.error))?;
    file::sync_folder(folder);
    answer.file = file.display().to_string();
    Ok(answer)
}

/// Copies the stores into the archive, one after the other.
async fn copy_stores(
    engine: &Engine,
    installation: &Installation,
    workshop: &Path,
    writer: &mut ArchiveWriter,
) -> Result<Everything> {
    let registry = &installation.registry;
    let mut answer = Everything {
        file: String::new(),
        bytes: 0,
        projects: 0,
        memories: 0,
        threads: 0,
        configuration: false,
        keys: Vec::new(),
        secrets_replaced: 0,
        damaged: Vec::new(),
        left_out: Vec::new(),
        not_included: NOT_INCLUDED.to_vec(),
    };
    let mut rows = registry.all().await?;
    rows.extend(registry.strays().await?);
    let owners = copy(engine, registry.memories().as_ref(), registry.scope(), workshop).await?;
    add(writer, &mut answer, None, owners, workshop)?;
    for row in rows {
        let copied = async {
            let Some(store) = registry.existing_store(&row.id).await? else { return Ok(None) };
            let scope = Scope::own(engine.config().owner.clone(), row.id.clone());
            let copied = copy(engine, store.as_ref(), &scope, workshop).await;
            store.close(PATIENCE);
            copied.map(Some)
        };
        match copied.await {
            Ok(None) => {}
            Ok(Some(contents)) => add(writer, &mut answer, Some(&row), contents, workshop)?,
            // The cause is in the log, and `tiro doctor` in the project's directory reports it.
            Err(cause) => {
                tracing::warn!(error = %cause, "a store is not copied");
                let (name, id) = (quoted(&row.name), row.id.as_str());
                answer.left_out.push(format!(
                    "project `{name}` ({id}), whose store `{}` can't be read",
                    row.file.display()
                ));
            }
        }
    }
    Ok(answer)
}

/// The file in the working folder to which one store after the other is copied.
const COPY: &str = "store";

/// Copies a store into the working folder, and returns the contents of the copy.
async fn copy(engine: &Engine, store: &dyn Store, scope: &Scope, workshop: &Path) -> Result<Contents> {
    let target = workshop.join(COPY);
    // This file exists if the previous copy could not be read.
    drop(std::fs::remove_file(&target));
    store.copy_whole(scope, &target).await?;
    engine.stores().files().contents(&target).await
}

/// Adds the copy in the working folder to the archive.
fn add(
    writer: &mut ArchiveWriter,
    answer: &mut Everything,
    row: Option<&ProjectRow>,
    contents: Contents,
    workshop: &Path,
) -> Result<()> {
    let (name, what) = match row {
        None => (OWNERS.to_owned(), "the memories for all projects".to_owned()),
        Some(row) => {
            (format!("projects/{}/tiro.db", row.id.as_str()), format!("project `{}`", quoted(&row.name)))
        }
    };
    let entry = ArchiveEntry {
        name,
        project: row.map(|row| row.id.as_str().to_owned()),
        project_name: row.map(|row| row.name.clone()).unwrap_or_default(),
        bytes: 0,
        hash: String::new(),
        memories: contents.memories,
        threads: contents.threads,
    };
    let copied = workshop.join(COPY);
    writer.add_store(entry, &copied)?;
    std::fs::remove_file(&copied).context(Kind::Io, || "cannot remove a temporary copy".to_owned())?;
    answer.projects += usize::from(row.is_some());
    answer.memories += contents.memories;
    answer.threads += contents.threads;
    answer.damaged.extend(damaged(&what, &contents));
    Ok(())
}

/// Returns a text about the damage in a store. Returns `None` if nothing is damaged.
pub(super) fn damaged(what: &str, contents: &Contents) -> Option<String> {
    let damage = &contents.damage;
    let mut parts = Vec::new();
    if !damage.memories.is_empty() {
        let memories = counted(damage.memories.len(), "memory", "memories");
        parts.push(format!("{memories}: {}", humanize::some(&damage.memories)));
    }
    if damage.vectors > 0 {
        parts.push(counted(damage.vectors, "embedding", "embeddings"));
    }
    if damage.copies > 0 {
        parts.push(counted(damage.copies, "text of a thread", "texts of threads"));
    }
    if damage.rows > 0 {
        parts.push(counted(damage.rows, "other row", "other rows"));
    }
    (!parts.is_empty()).then(|| format!("{what}: {}", parts.join("; ")))
}

/// Adds the configuration, with secrets replaced, and records the places of the providers' keys.
fn add_configuration(engine: &Engine, writer: &mut ArchiveWriter, answer: &mut Everything) -> Result<()> {
    let sources = &engine.config().sources;
    let Some(path) = sources.file.as_deref().filter(|path| path.exists()) else { return Ok(()) };
    let text = file::read_to_string(path, Links::Followed, LARGEST_CONFIGURATION)
        .context(Kind::Io, || format!("cannot read the configuration `{}`", quoted(path.display())))?;
    let redactor = Redactor::blank();
    let redacted = redactor.redact(&text);
    writer.add_configuration(&redacted.text)?;
    answer.configuration = true;
    answer.secrets_replaced = redacted.found.iter().map(|found| found.count).sum();
    for each in sources.providers(&engine.config().options)? {
        let name = quoted(&each.provider.name);
        match &each.provider.key {
            Key::None => {}
            Key::Variable(variable) => answer.keys.push(format!("`{name}`: the variable {variable}")),
            Key::File(file) => answer.keys.push(format!("`{name}`: the file `{}`", quoted(file.display()))),
        }
    }
    Ok(())
}

/// Reads the archive `written` again and compares every store with the list.
async fn verify(engine: &Engine, written: &Path, workshop: &Path) -> Result<()> {
    let mut reader = ArchiveReader::open(written)?;
    reader.configuration()?;
    for entry in reader.list.stores.clone() {
        let target = workshop.join(COPY);
        reader.take_store(&entry, &target)?;
        let contents = engine.stores().files().contents(&target).await?;
        if (contents.memories, contents.threads) != (entry.memories, entry.threads) {
            let message = format!("`{}` in the backup is not what was copied", entry.name);
            return Err(Error::new(Kind::Io, message).hint("check the disk, then repeat the command"));
        }
        std::fs::remove_file(&target).context(Kind::Io, || "cannot remove a temporary copy".to_owned())?;
    }
    Ok(())
}

impl Everything {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if !self.left_out.is_empty() {
            text += &format!("Not complete. Left out: {}.\n", self.left_out.join("; "));
        }
        if !self.damaged.is_empty() {
            text += &format!("Damaged, and copied as it is: {}.\n", self.damaged.join("; "));
        }
        text += &format!(
            "Wrote {} ({} bytes) and read it again: {}, {}, {}.\n",
            self.file,
            thousands(self.bytes),
            counted(self.projects, "project", "projects"),
            counted(self.memories, "memory", "memories"),
            counted(self.threads, "thread with an assistant", "threads with assistants"),
        );
        text += match self.configuration {
            true => "The configuration is in it",
            false => "There is no configuration file to copy",
        };
        if self.secrets_replaced > 0 {
            let secrets = counted(self.secrets_replaced, "secret was", "secrets were");
            text += &format!("; {secrets} replaced in it");
        }
        if !self.keys.is_empty() {
            text += &format!("; the keys are not: {}", self.keys.join(", "));
        }
        text + &format!(
            ".\nNever in it: {}.\n`tiro restore {}` brings it back, also on another machine.",
            self.not_included.join("; "),
            self.file
        )
    }
}
