//! A store in plain collections, as slow and as clear as it likes.
//!
//! It is the second engine: it proves that nothing outside an engine depends on SQLite, and it is the model with which
//! random calls on SQLite are compared (`tests/compared/`). It is for tests, and no part of the program. All handles
//! share one `State` behind a mutex. A read looks at the state; a write changes a copy of it, which takes the place
//! of the state if nothing failed. So each write takes effect as a whole or not at all, without a journal. Rows of the
//! text index are made when they are searched, and vectors are compared one by one.
//!
//! It is not:
//!
//! - durable: the data are gone with the last handle;
//! - shared by processes: handles on the same data are made from one another ([`MemoryStore::handle`]);
//! - fast: a write copies everything, and a search reads everything.
//!
//! Words are stemmed as the text index of SQLite stems them, but letters keep their marks (`é` is not `e`).

mod cache;
mod changes;
mod exchange;
mod forget;
mod links;
mod queue;
mod read;
mod registry;
mod restore;
mod search;
mod sessions;
mod stash;
mod state;
mod stores;
mod summaries;
mod superseded;
#[cfg(test)]
mod tests;
mod threads;
mod view;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::state::State;
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::scope::{ProjectId, Scope};
use tiro_store::clock::Clock;

pub use registry::MemoryRegistry;
pub use stores::MemoryStores;

/// The backups that this process made, by path.
static BACKUPS: Mutex<BTreeMap<PathBuf, State>> = Mutex::new(BTreeMap::new());

/// A handle on a store in RAM; clones share its clock, and are left together.
#[derive(Clone)]
pub struct MemoryStore {
    /// The data, which other handles share.
    state: Arc<Mutex<State>>,
    /// The clock that leases are measured by.
    clock: Arc<Clock>,
    /// The project whose memories they are.
    project: ProjectId,
    /// Whether the handle was left: then it answers no call.
    has_left: Arc<AtomicBool>,
}

impl MemoryStore {
    /// Returns an empty store of the project.
    pub fn new(project: ProjectId) -> MemoryStore {
        MemoryStore::of(State::default(), project)
    }

    /// Returns a store with these data.
    fn of(state: State, project: ProjectId) -> MemoryStore {
        MemoryStore {
            state: Arc::new(Mutex::new(state)),
            clock: Arc::default(),
            project,
            has_left: Arc::default(),
        }
    }

    /// Returns a further handle on the same data, as another process would have it: with a clock of its own.
    pub fn handle(&self) -> MemoryStore {
        MemoryStore { clock: Arc::default(), has_left: Arc::default(), ..self.clone() }
    }

    /// Opens a backup that this process made at `path`, as a store of its own.
    pub fn open_copy(path: &Path, project: ProjectId) -> Result<MemoryStore> {
        match lock(&BACKUPS).get(path) {
            Some(state) => Ok(MemoryStore::of(state.clone(), project)),
            None => Err(Error::not_found(format!("no backup `{}`", quoted(path.display())))),
        }
    }

    /// Returns whether any text of the data contains `text`, which must be a word.
    pub fn holds(&self, text: &str) -> bool {
        format!("{:?}", lock(&self.state)).contains(text)
    }

    /// Runs `work` on what the reader of the scope sees of the data.
    fn read<T>(&self, scope: &Scope, work: impl FnOnce(&State) -> Result<T>) -> Result<T> {
        self.read_all(scope, |state| match state.is_whole(scope) {
            true => work(state),
            false => work(&state.seen(scope)),
        })
    }

    /// Runs `work` on all data, whoever sees it.
    fn read_all<T>(&self, scope: &Scope, work: impl FnOnce(&State) -> Result<T>) -> Result<T> {
        self.admit(scope)?;
        work(&lock(&self.state))
    }

    /// Runs `work` on a copy of what the reader of the scope sees, and keeps the copy if `work` succeeds.
    fn write<T>(&self, scope: &Scope, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        self.admit(scope)?;
        let mut state = lock(&self.state);
        let is_whole = state.is_whole(scope);
        let seen = (!is_whole).then(|| state.seen(scope));
        let before = seen.as_ref().unwrap_or(&state);
        let mut changed = before.clone();
        let answer = work(&mut changed)?;
        let kept = match is_whole && !changed.has_private() {
            true => changed,
            false => state.kept(scope, before, changed),
        };
        *state = kept;
        Ok(answer)
    }

    /// Errors with [`Kind::NotFound`] if the scope is of another project, and with [`Kind::Store`] if the handle was
    /// left.
    fn admit(&self, scope: &Scope) -> Result<()> {
        if self.has_left.load(Ordering::Relaxed) {
            return Err(Error::new(Kind::Store, "the store was closed").hint("repeat the call"));
        }
        tiro_store::decide::scope::admits(&self.project, scope)
    }
}

/// Locks data that no panic can leave half changed, since writes change copies.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
