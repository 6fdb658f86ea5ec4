//! The registry of an installation: its projects, the ledger of spending, and its secret.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Planned, ProjectRow, Reservation, SentFilter, SentRow, SpendingRow, Spent, Store};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::{ProjectId, Scope};

/// A handle on an owner's registry: the projects and where they were seen, the ledger of spending, the installation's
/// secret, and the memories that belong to no project.
///
/// [The crate](crate) says what all methods promise.
#[async_trait]
pub trait Registry: Send + Sync {
    /// Returns the store of the memories that belong to the owner and to no project.
    fn memories(&self) -> &Arc<dyn Store>;

    /// Returns the scope of the memories that belong to the owner and to no project.
    fn scope(&self) -> &Scope;

    /// Opens the store of the project, and makes it if there is none.
    ///
    /// Errors with [`Kind::Store`](tiro_base::error::Kind::Store) if it can't be opened, comes from a newer Tiro, or
    /// was made earlier and has lost its content: if it were opened as a new one, nobody would notice that.
    async fn store(&self, id: &ProjectId) -> Result<Arc<dyn Store>>;

    /// Opens the store of the project if there is one.
    ///
    /// Errors as [`Registry::store`] does.
    async fn existing_store(&self, id: &ProjectId) -> Result<Option<Arc<dyn Store>>>;

    /// Returns an empty store for the project that is called `name` within this process, and is gone when the process
    /// ends.
    fn blank_store(&self, id: &ProjectId, name: &str) -> Result<Arc<dyn Store>>;

    /// Reserves the most that one request of `planned` may cost, and records what it sends; both are durable when this
    /// returns.
    ///
    /// First, reservations of other calls whose deadline was more than a minute before `now` are counted as spent. If
    /// several callers reserve at once, each gets a reservation only if it fits into the limits together with all open
    /// and settled calls. Errors with [`Kind::Limit`](tiro_base::error::Kind::Limit) if a limit would be exceeded, and
    /// then reserves nothing.
    async fn reserve(&self, planned: Planned, now: Millis) -> Result<Reservation>;

    /// Reserves the same amount once more, and records that the request is sent again: the provider may bill the failed
    /// request too.
    ///
    /// Errors as [`Registry::reserve`] does, and also if the reservation has been counted as spent. After an
    /// error, nothing more is reserved.
    async fn reserve_again(&self, reservation: &mut Reservation, now: Millis) -> Result<()>;

    /// Replaces a reservation by the real cost of its call, and records whether it was answered. If the reservation
    /// expired, its amount was already counted as spent; then only the cost beyond that amount is added.
    async fn settle(&self, reservation: Reservation, outcome: Spent) -> Result<()>;

    /// Returns the spending, the latest day first. Open calls are included with their reserved amounts.
    async fn spending(&self) -> Result<Vec<SpendingRow>>;

    /// Notes that `provider` asked us to send no requests before `until` (`Retry-After`). If several callers store a
    /// time, the last one wins.
    async fn note_retry_after(&self, provider: &str, until: Millis) -> Result<()>;

    /// Returns the time until which `provider` last asked us to wait; `None` if it never asked. The time may be
    /// in the past.
    async fn retry_after(&self, provider: &str) -> Result<Option<Millis>>;

    /// Returns the installation's secret, 32 random bytes. If there is none yet, `fresh` is stored as the
    /// secret. All callers get the same secret, even if several are the first at once.
    async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32]>;

    /// Returns the registered project with the id `id`, or `None`.
    async fn by_id(&self, id: &ProjectId) -> Result<Option<ProjectRow>>;

    /// Returns the project last seen at `place`, or `None`.
    async fn by_place(&self, place: &str) -> Result<Option<ProjectRow>>;

    /// Returns every registered project, ordered by name, then by id.
    async fn all(&self) -> Result<Vec<ProjectRow>>;

    /// Returns the projects that have a store but are not in the registry, ordered by where they are kept. There are
    /// such projects after the loss of the registry or after a merge of two projects. Where these projects were seen
    /// isn't known.
    async fn strays(&self) -> Result<Vec<ProjectRow>>;

    /// Stores that the repository of the project `copy` is a copy of the repository of `original`.
    async fn note_copy(&self, copy: &ProjectId, original: &ProjectId) -> Result<()>;

    /// Returns the project of which `copy` is a copy, as [`Registry::note_copy`] stored it, or `None`.
    async fn original(&self, copy: &ProjectId) -> Result<Option<ProjectRow>>;

    /// Stores that the project was seen at `place` at the time `now`. If the project is new, it is registered
    /// with `name`. A place belongs to the project that was last seen there.
    async fn record(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<()>;

    /// Registers a new project at `place`, unless a project is already registered there. Returns the project
    /// that is registered there afterwards. If several callers do this at once, one of them registers its
    /// project, and all get that project.
    async fn claim(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<ProjectRow>;

    /// Removes a place from its project.
    async fn forget_place(&self, place: &str) -> Result<()>;

    /// Gives the places of the project `from` to the project `to`, and removes `from` from the registry. The
    /// store of `from` stays where it is.
    async fn absorb(&self, from: &ProjectId, to: &ProjectId) -> Result<()>;

    /// Removes a project and its places from the registry, and the names of what was sent for it. The project's store
    /// stays where it is.
    async fn remove(&self, id: &ProjectId) -> Result<()>;

    /// Records that the request of a reservation is sent once more although nothing more is reserved for it: the
    /// provider refused it, and bills no request that it refused.
    async fn note_sent_again(&self, reservation: &Reservation) -> Result<()>;

    /// Returns the requests that `filter` admits, the newest first, and how many it admits without its limit.
    async fn sent(&self, filter: SentFilter) -> Result<(Vec<SentRow>, i64)>;

    /// Removes the names of what was sent in `sessions` of the project: the sessions themselves, and the memories and
    /// files. When, where to and how much was sent stays. When this returns, no file has these names any more.
    async fn forget_sent(&self, project: &ProjectId, sessions: &[String]) -> Result<()>;
}
