//! The registry in RAM: the owner's projects, the ledger of spending, and what was sent.

mod by_trait;
mod ledger;
mod members;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use self::ledger::Ledger;
use self::members::Users;
use super::{MemoryStore, lock};
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::memory::Millis;
use tiro_base::scope::{ProjectId, Scope, TenantId};
use tiro_store::{ProjectRow, Store};

/// A handle on a registry in RAM; clones share its data and the clock of its own memories.
#[derive(Clone)]
pub struct MemoryRegistry {
    installation: Arc<Installation>,
    scope: Scope,
    memories: Arc<dyn Store>,
}

/// What belongs together: a registry, the memories that belong to no project, and the stores of the projects.
pub(crate) struct Installation {
    state: Mutex<State>,
    memories: MemoryStore,
    /// The store of each project, with the name that the project had when it was made.
    stores: Mutex<BTreeMap<ProjectId, (String, MemoryStore)>>,
}

impl Installation {
    /// Returns one without data.
    pub(crate) fn blank() -> Arc<Installation> {
        let memories = MemoryStore::new(ProjectId::owner_wide());
        Arc::new(Installation { state: Mutex::default(), memories, stores: Mutex::default() })
    }

    /// Returns a further handle on the registry.
    pub(crate) fn registry(self: &Arc<Installation>, owner: &TenantId) -> MemoryRegistry {
        MemoryRegistry {
            installation: self.clone(),
            scope: Scope::own(owner.clone(), ProjectId::owner_wide()),
            memories: Arc::new(self.memories.handle()),
        }
    }

    /// Returns whether stores of projects were made.
    pub(crate) fn has_projects(&self) -> bool {
        !lock(&self.stores).is_empty()
    }
}

/// What a registry holds.
#[derive(Clone, Default)]
struct State {
    /// The name of each project.
    projects: BTreeMap<ProjectId, String>,
    /// The project that was last seen at each place, and when.
    places: BTreeMap<String, (ProjectId, Millis)>,
    /// The original of each copied project.
    originals: BTreeMap<ProjectId, ProjectId>,
    secret: Option<[u8; 32]>,
    retry_after: BTreeMap<String, Millis>,
    ledger: Ledger,
    users: Users,
}

impl MemoryRegistry {
    /// Returns a handle on the registry of a new installation.
    pub fn new(owner: &TenantId) -> MemoryRegistry {
        Installation::blank().registry(owner)
    }

    /// Returns a further handle on the same data, as another process would have it.
    pub fn handle(&self) -> MemoryRegistry {
        self.installation.registry(&self.scope.tenant)
    }

    /// Runs `work` on the data.
    fn read<T>(&self, work: impl FnOnce(&State) -> T) -> T {
        work(&lock(&self.installation.state))
    }

    /// Runs `work` on a copy of the data, and keeps the copy if `work` succeeds.
    fn write<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let mut state = lock(&self.installation.state);
        let mut changed = state.clone();
        let answer = work(&mut changed)?;
        *state = changed;
        Ok(answer)
    }

    /// Does as [`Registry::memories`](tiro_store::Registry::memories).
    pub(crate) fn memories(&self) -> &Arc<dyn Store> {
        &self.memories
    }

    /// Does as [`Registry::scope`](tiro_store::Registry::scope).
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Does as [`Registry::store`](tiro_store::Registry::store).
    pub(crate) async fn store(&self, id: &ProjectId) -> Result<Arc<dyn Store>> {
        let name = self.name_of(id)?;
        let new = || (name, MemoryStore::new(id.clone()));
        let mut stores = lock(&self.installation.stores);
        Ok(Arc::new(stores.entry(id.clone()).or_insert_with(new).1.handle()))
    }

    /// Does as [`Registry::existing_store`](tiro_store::Registry::existing_store).
    pub(crate) async fn existing_store(&self, id: &ProjectId) -> Result<Option<Arc<dyn Store>>> {
        self.name_of(id)?;
        let found = lock(&self.installation.stores).get(id).map(|(_, store)| store.handle());
        Ok(found.map(|store| Arc::new(store) as Arc<dyn Store>))
    }

    /// Makes a store that only its handles know, so that no name is needed.
    pub(crate) fn blank_store(&self, id: &ProjectId, _name: &str) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new(id.clone()))
    }

    /// Returns the name of a project that is registered or has a store.
    fn name_of(&self, id: &ProjectId) -> Result<String> {
        let registered = self.read(|state| state.projects.get(id).cloned());
        let stray = || lock(&self.installation.stores).get(id).map(|(name, _)| name.clone());
        registered
            .or_else(stray)
            .ok_or_else(|| Error::not_found(format!("no project has the id `{}`", id.as_str())))
    }

    /// Does as [`Registry::strays`](tiro_store::Registry::strays).
    pub(crate) async fn strays(&self) -> Result<Vec<ProjectRow>> {
        let known = self.read(|state| state.projects.clone());
        let stores = lock(&self.installation.stores);
        let row = |(id, (name, _)): (&ProjectId, &(String, MemoryStore))| ProjectRow {
            id: id.clone(),
            name: name.clone(),
            file: PathBuf::new(),
            places: Vec::new(),
        };
        let mut strays: Vec<ProjectRow> =
            stores.iter().filter(|(id, _)| !known.contains_key(id)).map(row).collect();
        strays.sort_by_key(|row| (row.name.clone(), row.id.clone()));
        Ok(strays)
    }

    /// Does as [`Registry::secret`](tiro_store::Registry::secret).
    pub(crate) async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32]> {
        self.write(|state| Ok(*state.secret.get_or_insert(fresh)))
    }

    /// Does as [`Registry::note_retry_after`](tiro_store::Registry::note_retry_after).
    pub(crate) async fn note_retry_after(&self, provider: &str, until: Millis) -> Result<()> {
        self.write(|state| {
            state.retry_after.insert(provider.to_owned(), until);
            Ok(())
        })
    }

    /// Does as [`Registry::retry_after`](tiro_store::Registry::retry_after).
    pub(crate) async fn retry_after(&self, provider: &str) -> Result<Option<Millis>> {
        Ok(self.read(|state| state.retry_after.get(provider).copied()))
    }

    /// Does as [`Registry::by_id`](tiro_store::Registry::by_id).
    pub(crate) async fn by_id(&self, id: &ProjectId) -> Result<Option<ProjectRow>> {
        Ok(self.read(|state| state.row(id)))
    }

    /// Does as [`Registry::by_place`](tiro_store::Registry::by_place).
    pub(crate) async fn by_place(&self, place: &str) -> Result<Option<ProjectRow>> {
        Ok(self.read(|state| state.row(&state.places.get(place)?.0)))
    }

    /// Does as [`Registry::all`](tiro_store::Registry::all).
    pub(crate) async fn all(&self) -> Result<Vec<ProjectRow>> {
        let mut all: Vec<ProjectRow> =
            self.read(|state| state.projects.keys().filter_map(|id| state.row(id)).collect());
        all.sort_by_key(|row| (row.name.clone(), row.id.clone()));
        Ok(all)
    }

    /// Does as [`Registry::record`](tiro_store::Registry::record).
    pub(crate) async fn record(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<()> {
        self.write(|state| {
            state.projects.entry(id.clone()).or_insert_with(|| name.to_owned());
            state.places.insert(place.to_owned(), (id.clone(), now));
            Ok(())
        })
    }

    /// Does as [`Registry::claim`](tiro_store::Registry::claim).
    pub(crate) async fn claim(
        &self,
        id: &ProjectId,
        name: &str,
        place: &str,
        now: Millis,
    ) -> Result<ProjectRow> {
        self.write(|state| {
            let first = state.places.get(place).and_then(|(first, _)| state.row(first));
            if let Some(first) = first {
                return Ok(ProjectRow { places: vec![place.to_owned()], ..first });
            }
            if state.projects.contains_key(id) {
                let id = quoted(id.as_str());
                return Err(Error::new(Kind::Store, format!("the project `{id}` is registered already")));
            }
            state.projects.insert(id.clone(), name.to_owned());
            state.places.insert(place.to_owned(), (id.clone(), now));
            let (id, name) = (id.clone(), name.to_owned());
            Ok(ProjectRow { id, name, file: PathBuf::new(), places: vec![place.to_owned()] })
        })
    }

    /// Does as [`Registry::register`](tiro_store::Registry::register).
    pub(crate) async fn register(&self, id: &ProjectId, name: &str, now: Millis) -> Result<ProjectRow> {
        // No place has a time here.
        let _ = now;
        self.write(|state| {
            let first = state.projects.iter().find(|(_, known)| *known == name).map(|(id, _)| id.clone());
            let id = first.unwrap_or_else(|| id.clone());
            state.projects.entry(id.clone()).or_insert_with(|| name.to_owned());
            Ok(state.row(&id).expect("it was registered"))
        })
    }

    /// Does as [`Registry::forget_place`](tiro_store::Registry::forget_place).
    pub(crate) async fn forget_place(&self, place: &str) -> Result<()> {
        self.write(|state| {
            state.places.remove(place);
            Ok(())
        })
    }

    /// Does as [`Registry::absorb`](tiro_store::Registry::absorb).
    pub(crate) async fn absorb(&self, from: &ProjectId, to: &ProjectId) -> Result<()> {
        self.write(|state| {
            for (project, _) in state.places.values_mut().filter(|(project, _)| project == from) {
                project.clone_from(to);
            }
            state.ledger.absorb(from.as_str(), to.as_str());
            state.users.unshare(from, None);
            state.projects.remove(from);
            Ok(())
        })
    }

    /// Does as [`Registry::remove`](tiro_store::Registry::remove).
    pub(crate) async fn remove(&self, id: &ProjectId) -> Result<()> {
        self.write(|state| {
            state.places.retain(|_, (project, _)| project != id);
            state.users.unshare(id, None);
            state.projects.remove(id);
            state.originals.remove(id);
            state.ledger.forget_names(id.as_str(), |_| true);
            Ok(())
        })
    }

    /// Does as [`Registry::note_copy`](tiro_store::Registry::note_copy).
    pub(crate) async fn note_copy(&self, copy: &ProjectId, original: &ProjectId) -> Result<()> {
        self.write(|state| {
            state.originals.insert(copy.clone(), original.clone());
            Ok(())
        })
    }

    /// Does as [`Registry::original`](tiro_store::Registry::original).
    pub(crate) async fn original(&self, copy: &ProjectId) -> Result<Option<ProjectRow>> {
        Ok(self.read(|state| state.row(state.originals.get(copy)?)))
    }
}

impl State {
    fn row(&self, id: &ProjectId) -> Option<ProjectRow> {
        let name = self.projects.get(id)?.clone();
        let mut places: Vec<(Reverse<Millis>, String)> = self
            .places
            .iter()
            .filter(|(_, (project, _))| project == id)
            .map(|(place, (_, seen))| (Reverse(*seen), place.clone()))
            .collect();
        places.sort();
        let places = places.into_iter().map(|(_, place)| place).collect();
        Some(ProjectRow { id: id.clone(), name, file: PathBuf::new(), places })
    }
}
