//! The registry of an installation: its projects, the ledger of spending, and its secret.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Members, Planned, ProjectRow, Reservation, SentFilter, SentRow, SpendingRow, Spent, Store};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::{ProjectId, Scope};

/// A handle on an owner's registry: the projects and where they were seen, the ledger of spending, the installation's
/// secret, the memories that belong to no project, and the [users](Members) of a server.
///
/// [The crate](crate) says what all methods promise.
#[async_trait]
pub trait Registry: Members {
    /// Returns the store of the memories that belong to the owner and to no project.
    fn memories(&self) -> &Arc<dyn Store>;

    /// Returns the scope of the memories that belong to the owner and to no project.
    fn scope(&self) -> &Scope;

    /// Opens the store of the project, and makes it if there is none.
    ///
    /// Errors with [`Kind::Store`](tiro_base::error::Kind::Store) if the store can't be opened, comes from a newer
    /// Tiro, or existed before and has lost its content. If such a store were opened as a new one, nobody would notice
    /// the loss.
    async fn store(&self, id: &ProjectId) -> Result<Arc<dyn Store>>;

    /// Opens the store of the project if there is one.
    ///
    /// Errors in the same cases as [`Registry::store`].
    async fn existing_store(&self, id: &ProjectId) -> Result<Option<Arc<dyn Store>>>;

    /// Returns an empty store for the project. The store is called `name` within this process, and disappears when the
    /// process ends.
    fn blank_store(&self, id: &ProjectId, name: &str) -> Result<Arc<dyn Store>>;

    /// Reserves the highest cost of one request of `planned`, and records what the request sends. The reservation and
    /// the record are durable when this method returns.
    ///
    /// First, reservations whose deadline was more than a minute before `now` are counted as spent. A reservation is
    /// made only if it fits into the limits together with all open and settled calls, even if several callers reserve
    /// at once. Errors with [`Kind::Limit`](tiro_base::error::Kind::Limit) if a limit would be exceeded; nothing is
    /// reserved then.
    async fn reserve(&self, planned: Planned, now: Millis) -> Result<Reservation>;

    /// Reserves the same amount once more, because the provider may bill the failed request too. Records that the
    /// request is sent again.
    ///
    /// Errors in the same cases as [`Registry::reserve`], and also if the reservation has been counted as spent. After
    /// an error, nothing more is reserved.
    async fn reserve_again(&self, reservation: &mut Reservation, now: Millis) -> Result<()>;

    /// Replaces a reservation by the real cost of its call, and records whether the call was answered. If the
    /// reservation expired, its amount was already counted as spent, so only the cost beyond this amount is added.
    async fn settle(&self, reservation: Reservation, outcome: Spent) -> Result<()>;

    /// Returns the spending, the latest day first. Open calls are included with the amounts that are reserved for them.
    async fn spending(&self) -> Result<Vec<SpendingRow>>;

    /// Notes that `provider` asked us to send no requests before `until` (`Retry-After`). If several callers store a
    /// time, the last one wins.
    async fn note_retry_after(&self, provider: &str, until: Millis) -> Result<()>;

    /// Returns the time until which `provider` last asked us to wait; `None` if it never asked. The time may be
    /// in the past.
    async fn retry_after(&self, provider: &str) -> Result<Option<Millis>>;

    /// Returns the installation's secret, 32 random bytes. If the installation has no secret yet, `fresh` is stored as
    /// the secret. All callers get the same secret, even if several are the first at once.
    async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32]>;

    /// Returns the registered project with the id `id`, or `None`.
    async fn by_id(&self, id: &ProjectId) -> Result<Option<ProjectRow>>;

    /// Returns the project last seen at `place`, or `None`.
    async fn by_place(&self, place: &str) -> Result<Option<ProjectRow>>;

    /// Returns every registered project, ordered by name, then by id.
    async fn all(&self) -> Result<Vec<ProjectRow>>;

    /// Returns the projects that have a store but are not in the registry, ordered by where they are kept. Such
    /// projects exist after the loss of the registry or after a merge of two projects. The places where these projects
    /// were seen are unknown.
    async fn strays(&self) -> Result<Vec<ProjectRow>>;

    /// Records that the repository of the project `copy` is a copy of the repository of `original`.
    async fn note_copy(&self, copy: &ProjectId, original: &ProjectId) -> Result<()>;

    /// Returns the original of the project `copy`, as [`Registry::note_copy`] stored it, or `None`.
    async fn original(&self, copy: &ProjectId) -> Result<Option<ProjectRow>>;

    /// Stores that the project was seen at `place` at the time `now`. If the project is new, it is registered
    /// with `name`. A place belongs to the project that was last seen there.
    async fn record(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<()>;

    /// Registers a new project at `place`, unless a project is already registered there. Returns the project that is
    /// registered there afterwards. If several callers register a project there at once, one of them succeeds, and all
    /// callers get its project.
    async fn claim(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<ProjectRow>;

    /// Registers a new project without a place, unless a project is called `name`. Returns the registered project of
    /// this name; of several, the first in the order of [`Registry::all`].
    async fn register(&self, id: &ProjectId, name: &str, now: Millis) -> Result<ProjectRow>;

    /// Removes a place from its project.
    async fn forget_place(&self, place: &str) -> Result<()>;

    /// Gives the places of the project `from` to the project `to`, and removes `from` from the registry. `from` is
    /// no longer shared. The store of `from` stays where it is.
    async fn absorb(&self, from: &ProjectId, to: &ProjectId) -> Result<()>;

    /// Removes a project and its places from the registry. It is no longer shared. In the records of requests to providers, also removes the
    /// names of the project's sessions, memories and files. The project's store stays where it is.
    async fn remove(&self, id: &ProjectId) -> Result<()>;

    /// Records that the request of `reservation` is sent once more, without a further reservation. The method is for a
    /// request that the provider refused, since providers don't bill refused requests.
    async fn note_sent_again(&self, reservation: &Reservation) -> Result<()>;

    /// Returns the requests that `filter` admits, the newest first. Also returns how many there would be without the
    /// filter's limit.
    async fn sent(&self, filter: SentFilter) -> Result<(Vec<SentRow>, i64)>;

    /// In the records of requests to providers that were made in `sessions` of the project, removes the names of the
    /// sessions, memories and files. The times, the receivers and the amounts stay. When this method returns, no file
    /// has these names any more.
    async fn forget_sent(&self, project: &ProjectId, sessions: &[String]) -> Result<()>;
}
