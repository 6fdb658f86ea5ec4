//! Faults of the registry of projects and of the ledger.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use super::Fault;
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::money::Money;
use tiro_base::scope::{ProjectId, Scope};
use tiro_store::*;

/// A faulty handle on the registry of a sound engine.
pub struct BrokenRegistry {
    inner: Arc<dyn Registry>,
    fault: Fault,
}

impl BrokenRegistry {
    /// Returns the handle `inner` with the fault.
    pub fn new(inner: Arc<dyn Registry>, fault: Fault) -> BrokenRegistry {
        BrokenRegistry { inner, fault }
    }

    /// Returns whether the handle has this fault.
    pub fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Returns the sound handle.
    pub fn inner(&self) -> &dyn Registry {
        self.inner.as_ref()
    }
}

#[async_trait]
impl Registry for BrokenRegistry {
    fn memories(&self) -> &Arc<dyn Store> {
        self.inner.memories()
    }

    fn scope(&self) -> &Scope {
        self.inner.scope()
    }

    async fn store(&self, id: &ProjectId) -> Result<Arc<dyn Store>> {
        self.inner.store(id).await
    }

    async fn existing_store(&self, id: &ProjectId) -> Result<Option<Arc<dyn Store>>> {
        match self.is(Fault::LosesStores) {
            true => Ok(None),
            false => self.inner.existing_store(id).await,
        }
    }

    fn blank_store(&self, id: &ProjectId, name: &str) -> Result<Arc<dyn Store>> {
        self.inner.blank_store(id, name)
    }

    async fn strays(&self) -> Result<Vec<ProjectRow>> {
        match self.is(Fault::LosesStores) {
            true => Ok(Vec::new()),
            false => self.inner.strays().await,
        }
    }

    async fn note_sent_again(&self, reservation: &Reservation) -> Result<()> {
        match self.is(Fault::RepeatsForNothing) {
            true => Ok(()),
            false => self.inner.note_sent_again(reservation).await,
        }
    }

    async fn forget_sent(&self, project: &ProjectId, sessions: &[String]) -> Result<()> {
        match self.is(Fault::KeepsPlaces) {
            true => Ok(()),
            false => self.inner.forget_sent(project, sessions).await,
        }
    }

    async fn reserve(&self, mut planned: Planned, now: Millis) -> Result<Reservation> {
        match self.fault {
            Fault::ReservesWithoutLimit => planned.limits = SpendLimits::default(),
            Fault::WaitsForTheDead => planned.until = Millis::MAX,
            _ => {}
        }
        self.inner.reserve(planned, now).await
    }

    async fn reserve_again(&self, reservation: &mut Reservation, now: Millis) -> Result<()> {
        if self.is(Fault::RepeatsForNothing) {
            reservation.held = Money(reservation.held.0 + reservation.planned.most.0);
            return Ok(());
        }
        self.inner.reserve_again(reservation, now).await
    }

    async fn settle(&self, reservation: Reservation, outcome: Spent) -> Result<()> {
        if self.is(Fault::SettlesNothing) {
            return Ok(());
        }
        self.inner.settle(reservation, outcome).await
    }

    async fn spending(&self) -> Result<Vec<SpendingRow>> {
        let mut rows = self.inner.spending().await?;
        if self.is(Fault::ReordersResults) {
            rows.reverse();
        }
        Ok(rows)
    }

    async fn sent(&self, filter: SentFilter) -> Result<(Vec<SentRow>, i64)> {
        self.inner.sent(filter).await
    }

    async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32]> {
        if self.is(Fault::MakesSecretsAnew) {
            return Ok(fresh);
        }
        self.inner.secret(fresh).await
    }

    async fn note_retry_after(&self, provider: &str, until: Millis) -> Result<()> {
        if self.is(Fault::LosesProjects) {
            return Ok(());
        }
        self.inner.note_retry_after(provider, until).await
    }

    async fn retry_after(&self, provider: &str) -> Result<Option<Millis>> {
        self.inner.retry_after(provider).await
    }

    async fn by_id(&self, id: &ProjectId) -> Result<Option<ProjectRow>> {
        self.inner.by_id(id).await
    }

    async fn by_place(&self, place: &str) -> Result<Option<ProjectRow>> {
        self.inner.by_place(place).await
    }

    async fn all(&self) -> Result<Vec<ProjectRow>> {
        let mut rows = self.inner.all().await?;
        if self.is(Fault::ReordersResults) {
            rows.reverse();
        }
        Ok(rows)
    }

    async fn record(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<()> {
        let is_known = self.inner.by_place(place).await?.is_some();
        if self.is(Fault::LosesProjects) || self.is(Fault::KeepsFirstPlaces) && is_known {
            return Ok(());
        }
        self.inner.record(id, name, place, now).await
    }

    async fn claim(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<ProjectRow> {
        if self.is(Fault::ClaimsAlways) {
            self.inner.record(id, name, place, now).await?;
            let (name, places) = (name.to_owned(), vec![place.to_owned()]);
            return Ok(ProjectRow { id: id.clone(), name, file: PathBuf::new(), places });
        }
        self.inner.claim(id, name, place, now).await
    }

    async fn register(&self, id: &ProjectId, name: &str, now: Millis) -> Result<ProjectRow> {
        if self.is(Fault::ClaimsAlways) {
            self.inner.record(id, name, name, now).await?;
            self.inner.forget_place(name).await?;
            return Ok(ProjectRow {
                id: id.clone(),
                name: name.to_owned(),
                file: PathBuf::new(),
                places: Vec::new(),
            });
        }
        self.inner.register(id, name, now).await
    }

    async fn forget_place(&self, place: &str) -> Result<()> {
        if self.is(Fault::KeepsPlaces) {
            return Ok(());
        }
        self.inner.forget_place(place).await
    }

    async fn absorb(&self, from: &ProjectId, to: &ProjectId) -> Result<()> {
        if self.is(Fault::KeepsPlaces) {
            return Ok(());
        }
        self.inner.absorb(from, to).await
    }

    async fn remove(&self, id: &ProjectId) -> Result<()> {
        if self.is(Fault::KeepsPlaces) {
            return Ok(());
        }
        self.inner.remove(id).await
    }

    async fn note_copy(&self, copy: &ProjectId, original: &ProjectId) -> Result<()> {
        if self.is(Fault::LosesProjects) {
            return Ok(());
        }
        self.inner.note_copy(copy, original).await
    }

    async fn original(&self, copy: &ProjectId) -> Result<Option<ProjectRow>> {
        self.inner.original(copy).await
    }
}
