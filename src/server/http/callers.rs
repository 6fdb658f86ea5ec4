//! The callers of a server over HTTP, and what each is offered.
//!
//! A request names its project and its principal, and the server keeps nothing else about the one who sent it. So any
//! server with the same stores answers any request. What is kept here only saves time: the open project, the table of
//! tools, and an idle worker.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::super::Offer;
use super::super::handler::Handler;
use super::super::requests::Requests;
use tiro_base::error::Result;
use tiro_base::scope::ProjectId;
use tiro_host::caller::{Form, Toolsets, WritingCaller, most_tokens};
use tiro_host::engine::Engine;
use tiro_host::idle;
use tiro_host::principals::{Principal, Rights, rights};
use tiro_store::ProjectRights;
use tiro_tools::operate::projects;

/// The most tables that are kept. Arbitrary: a table takes some tens of kilobytes, and teams are smaller.
const MOST: usize = 256;

/// The callers of one owner's server. Clones are not needed, because everything is behind locks.
pub(super) struct Callers {
    engine: Arc<Engine>,
    /// The owner in the directory of the server.
    own: Arc<WritingCaller>,
    toolsets: Toolsets,
    form: Form,
    /// Runs the idle workers.
    workers: Handle,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The owner in the directories of other projects.
    owners: HashMap<ProjectId, Kept<Arc<WritingCaller>>>,
    seats: HashMap<Key, Kept<Seat>>,
    /// Counts the uses, so that the one that was used longest ago is given up first.
    uses: u64,
}

/// What decides what a caller is offered.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// `None` for the project of the server's directory.
    project: Option<ProjectId>,
    /// `None` for the owner.
    principal: Option<Principal>,
    /// What the principal may do in the project; `None` if the project is not shared with the principal.
    rights: Option<Rights>,
    most_tokens: usize,
}

/// A caller, and what answers the caller's requests.
#[derive(Clone)]
struct Seat {
    caller: Arc<WritingCaller>,
    handler: Arc<Handler>,
}

struct Kept<T> {
    value: T,
    worker: Option<AbortHandle>,
    used: u64,
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            worker.abort();
        }
    }
}

impl Callers {
    /// Returns the callers of the server of `own`, who is offered `toolsets`. `workers` runs the idle workers.
    pub(super) fn new(
        engine: Arc<Engine>,
        own: Arc<WritingCaller>,
        toolsets: Toolsets,
        workers: Handle,
    ) -> Callers {
        let form = own.form();
        let callers = Callers { engine, own, toolsets, form, workers, known: Mutex::default() };
        callers.work(&callers.own);
        callers
    }

    /// Returns what answers `principal`, or the owner, in the project called `project`, or that of the server's
    /// directory. `client` is the name of the client. Returns `None` if there is no such project, or if it is not shared
    /// with the principal. Rights are looked up each time, so that a change by another process counts at once.
    pub(super) async fn handler(
        &self,
        principal: Option<Principal>,
        project: Option<&str>,
        client: &str,
    ) -> Result<Option<Arc<Handler>>> {
        let (project, rights) = match (project, &principal) {
            (None, None) => (None, None),
            (None, Some(principal)) => (None, self.rights(principal).await?),
            (Some(name), None) => (Some(name.to_owned()), None),
            (Some(name), Some(principal)) => {
                let registry = self.engine.installation().await?.registry;
                let Some(found) = rights::project(registry.as_ref(), principal, name).await? else {
                    return Ok(None);
                };
                (Some(found.project.as_str().to_owned()), Some(found.rights))
            }
        };
        let seat = self.seat(principal, project.as_deref(), rights, client).await?;
        Ok(seat.map(|seat| seat.handler))
    }

    /// Returns the caller for `principal` in a project that is shared with the principal. Returns `None` if the project
    /// is no longer there.
    pub(super) async fn guest(
        &self,
        principal: &Principal,
        shared: &ProjectRights,
    ) -> Result<Option<Arc<WritingCaller>>> {
        let (project, rights) = (shared.project.as_str(), Some(shared.rights.clone()));
        let seat = self.seat(Some(principal.clone()), Some(project), rights, "tiro").await?;
        Ok(seat.map(|seat| seat.caller))
    }

    async fn seat(
        &self,
        principal: Option<Principal>,
        project: Option<&str>,
        rights: Option<Rights>,
        client: &str,
    ) -> Result<Option<Seat>> {
        let project = match project {
            None => None,
            Some(name) => match self.find(name).await? {
                None => return Ok(None),
                Some(found) => found,
            },
        };
        let owner = match &project {
            None => Arc::clone(&self.own),
            Some((id, directory)) => self.owner(id, directory.as_deref()),
        };
        let project = project.map(|(id, _)| id);
        let key = Key { project, principal, rights, most_tokens: most_tokens(client) };
        Ok(Some(self.known(key, &owner)))
    }

    /// Returns the principal's rights in the project of the server's directory.
    async fn rights(&self, principal: &Principal) -> Result<Option<Rights>> {
        let own = self.own.project(&self.engine).await?;
        let registry = self.engine.installation().await?.registry;
        rights::rights(registry.as_ref(), principal, &own.scope.project).await
    }

    /// Returns the callers who may have a project open, the server's own first.
    pub(super) fn owners(&self) -> Vec<Arc<WritingCaller>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let others = known.owners.values().map(|kept| Arc::clone(&kept.value));
        std::iter::once(Arc::clone(&self.own)).chain(others).collect()
    }

    /// Returns the id of a registered project, and its directory if it has one on this machine. The inner `None` stands
    /// for the project of the server's own directory.
    async fn find(&self, name: &str) -> Result<Option<Option<(ProjectId, Option<PathBuf>)>>> {
        let Some((id, directory)) = projects::directory(&self.engine, name).await? else { return Ok(None) };
        let own = self.own.project(&self.engine).await;
        let is_own = own.is_ok_and(|own| own.scope.project == id);
        Ok(Some((!is_own).then_some((id, directory))))
    }

    /// Returns the owner in another project, which has `directory`, or no directory on this machine.
    fn owner(&self, id: &ProjectId, directory: Option<&Path>) -> Arc<WritingCaller> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.uses += 1;
        let used = known.uses;
        if let Some(kept) = known.owners.get_mut(id) {
            kept.used = used;
            return Arc::clone(&kept.value);
        }
        let caller = match directory {
            Some(directory) => self.own.in_directory(directory, true),
            None => self.own.in_registered(id),
        };
        let caller = Arc::new(caller.with_toolsets(self.toolsets.clone()).with_form(self.form));
        let worker = Some(self.work(&caller));
        make_room(&mut known.owners);
        known.owners.insert(id.clone(), Kept { value: Arc::clone(&caller), worker, used });
        caller
    }

    fn known(&self, key: Key, owner: &Arc<WritingCaller>) -> Seat {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.uses += 1;
        let used = known.uses;
        if let Some(kept) = known.seats.get_mut(&key) {
            kept.used = used;
            return kept.value.clone();
        }
        let principal = key.principal.as_ref().map(|principal| (principal, key.rights.as_ref()));
        let caller = Arc::new(owner.joined_by(principal, key.most_tokens));
        // What a principal saved is for the principal alone, so that the owner's worker can't work on it.
        let worker = key.principal.is_some().then(|| self.work(&caller));
        let handler = Arc::new(Handler::new(self.offer(&caller), Requests::default()));
        let seat = Seat { caller, handler };
        make_room(&mut known.seats);
        known.seats.insert(key, Kept { value: seat.clone(), worker, used });
        seat
    }

    /// Returns what the caller is offered. The client is known from each request, so nothing is noted about it.
    fn offer(&self, caller: &Arc<WritingCaller>) -> Offer {
        let mut resources = tiro_tools::resources(&self.engine, caller);
        resources.met = Box::new(|_| {});
        let noting = Some((Arc::clone(&self.engine), Arc::clone(caller)));
        Offer { tools: tiro_tools::offered(&self.engine, caller), resources, form: self.form, noting }
    }

    /// Starts the idle worker of a caller.
    fn work(&self, caller: &Arc<WritingCaller>) -> AbortHandle {
        let (engine, caller) = (Arc::clone(&self.engine), Arc::clone(caller));
        self.workers.spawn(async move { idle::keep_up(&engine, &caller).await }).abort_handle()
    }
}

/// Removes the value that was used longest ago if there are too many.
fn make_room<K: Clone + Eq + std::hash::Hash, T>(kept: &mut HashMap<K, Kept<T>>) {
    if kept.len() >= MOST {
        let oldest = kept.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone());
        oldest.and_then(|key| kept.remove(&key));
    }
}
