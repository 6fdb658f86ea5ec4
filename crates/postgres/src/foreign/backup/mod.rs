//! Writes a backup: a new file of SQLite with what the reader sees of a store.
//!
//! Everything is read in one transaction, page by page, and stored through the engine for SQLite, in the order in which
//! a backup is restored: sessions, original memories, what was made of whole sessions, derived memories, and what was
//! forgotten. Texts of files in threads, cached answers and import cursors are left out, because they are not restored.

mod memories;
mod sessions;

use std::path::Path;
use std::time::Duration;

use tiro_sqlite::SqliteStore;

use self::memories::Pages;
use crate::PostgresStore;
use crate::error::Result;
use crate::transactions::{Transaction, read};
use tiro_base::error::{self, Context, Kind, quoted};
use tiro_base::file;
use tiro_base::file::unfinished::{UNFINISHED, Workshop, remove_abandoned};
use tiro_base::scope::{ProjectId, Scope, Sessions};
use tiro_store::{Damage, Flavour, Restore};

/// The name of the file within the folder in which it is made.
const COPY: &str = "tiro.db";

/// How long closing the copy waits for the last call that uses it.
const PATIENCE: Duration = Duration::from_secs(10);

impl PostgresStore {
    /// Copies what the reader sees, as it is at one moment, to the new file `target`, which is a store of SQLite. The
    /// copy gets the name `target` only when it is complete and on the disk. Damaged memories are left out; returns
    /// their ids.
    ///
    /// Errors if `target` exists.
    pub(crate) async fn back_up(&self, scope: &Scope, target: &Path) -> error::Result<Damage> {
        let whole = Scope { sessions: Sessions::All, ..scope.clone() };
        let made = async {
            if target.symlink_metadata().is_ok() {
                return Err(exists(target));
            }
            let copied: error::Result<(Copy, Damage)> = read!(self, &whole, tx => {
                let copy = Copy::begin(target, self.project().clone(), &whole).await?;
                let damage = copy.fill(&tx).await?;
                Ok((copy, damage))
            });
            let (copy, damage) = copied?;
            copy.end(target).await.map(|()| damage)
        };
        made.await.map_err(|error| {
            let hint = error.way_out().unwrap_or("name a folder that can be written and has room").to_owned();
            let message = format!("cannot write the backup `{}`", quoted(target.display()));
            error::Error::new(error.kind(), message).source(error).hint(hint)
        })
    }
}

fn exists(target: &Path) -> error::Error {
    error::Error::bad_input(format!("`{}` exists already", quoted(target.display())))
        .hint("name a file that doesn't exist; nothing was overwritten")
}

/// Runs `work`, which reads or writes files, on a thread on which it may take long.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> error::Result<T> + Send + 'static,
) -> error::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| {
        error::Error::new(Kind::Store, "a call of the store ended unexpectedly").source(error)
    })?
}

/// A copy that is being made, in a folder of its own beside the target.
struct Copy {
    workshop: Workshop,
    store: SqliteStore,
    scope: Scope,
}

impl Copy {
    async fn begin(target: &Path, project: ProjectId, scope: &Scope) -> Result<Copy> {
        let (target, scope) = (target.to_owned(), scope.clone());
        let begun = blocking(move || {
            let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let folder = folder_of(&target);
            remove_abandoned(folder, |other| {
                other
                    .strip_prefix(&name)
                    .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(UNFINISHED))
            });
            let unwritten = || format!("cannot write `{}`", quoted(target.display()));
            let workshop = Workshop::make(folder, &name)
                .context(Kind::Io, unwritten)
                .map_err(|error| error.hint("name a folder that exists and can be written"))?;
            let store = SqliteStore::open(&workshop.path().join(COPY), Flavour::Project, project)?;
            Ok(Copy { workshop, store, scope })
        });
        Ok(begun.await?)
    }

    /// Copies everything. Returns the damage that was found.
    async fn fill(&self, tx: &Transaction) -> Result<Damage> {
        self.copy_origins(tx).await?;
        let mut damage = Damage::default();
        self.copy_memories(Pages::of_originals(tx), &mut damage).await?;
        self.copy_summaries(tx).await?;
        self.copy_memories(Pages::of_derived(tx), &mut damage).await?;
        self.copy_forgotten(tx).await?;
        Ok(damage)
    }

    /// Copies memories, and adds the ids of those that are damaged to `damage`.
    async fn copy_memories(&self, mut pages: Pages<'_>, damage: &mut Damage) -> Result<()> {
        while let Some(page) = pages.next().await? {
            damage.memories.extend(page.damaged);
            self.store.restore(&self.scope, page.memories, page.stored_at).await?;
        }
        Ok(())
    }

    /// Closes the copy, and gives it the name `target` when it is on the disk.
    async fn end(self, target: &Path) -> error::Result<()> {
        let Copy { workshop, store, .. } = self;
        let target = target.to_owned();
        blocking(move || {
            if !store.close(PATIENCE) {
                return Err(
                    error::Error::new(Kind::Store, "the copy can't be closed").hint("repeat the call")
                );
            }
            drop(store);
            let unwritten = || format!("cannot write `{}`", quoted(target.display()));
            let copy = workshop.path().join(COPY);
            // Windows syncs a file only through a handle that can write.
            let written = std::fs::OpenOptions::new().write(true).open(&copy);
            written.and_then(|written| written.sync_all()).context(Kind::Io, unwritten)?;
            let copy = tempfile::TempPath::try_from_path(copy).context(Kind::Io, unwritten)?;
            copy.persist_noclobber(&target).map_err(|error| match error.error.kind() {
                std::io::ErrorKind::AlreadyExists => exists(&target),
                _ => error::Error::new(Kind::Io, unwritten()).source(error.error),
            })?;
            file::sync_folder(folder_of(&target));
            Ok(())
        })
        .await
    }
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
