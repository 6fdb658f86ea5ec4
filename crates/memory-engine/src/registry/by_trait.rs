//! What a registry does, by the names of the trait. The methods are in the files of their subjects.

use std::sync::Arc;

use async_trait::async_trait;

use crate::MemoryRegistry;
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::{ProjectId, Scope};
use tiro_store::{Planned, ProjectRow, Reservation, SentFilter, SentRow, SpendingRow, Spent, Store};

#[async_trait]
impl tiro_store::Registry for MemoryRegistry {
    fn memories(&self) -> &Arc<dyn Store> {
        MemoryRegistry::memories(self)
    }

    fn scope(&self) -> &Scope {
        MemoryRegistry::scope(self)
    }

    fn blank_store(&self, id: &ProjectId, name: &str) -> Result<Arc<dyn Store>> {
        Ok(MemoryRegistry::blank_store(self, id, name))
    }

    async fn store(&self, id: &ProjectId) -> Result<Arc<dyn Store>> {
        MemoryRegistry::store(self, id).await
    }

    async fn existing_store(&self, id: &ProjectId) -> Result<Option<Arc<dyn Store>>> {
        MemoryRegistry::existing_store(self, id).await
    }

    async fn reserve(&self, planned: Planned, now: Millis) -> Result<Reservation> {
        MemoryRegistry::reserve(self, planned, now).await
    }

    async fn reserve_again(&self, reservation: &mut Reservation, now: Millis) -> Result<()> {
        MemoryRegistry::reserve_again(self, reservation, now).await
    }

    async fn settle(&self, reservation: Reservation, outcome: Spent) -> Result<()> {
        MemoryRegistry::settle(self, reservation, outcome).await
    }

    async fn spending(&self) -> Result<Vec<SpendingRow>> {
        MemoryRegistry::spending(self).await
    }

    async fn note_retry_after(&self, provider: &str, until: Millis) -> Result<()> {
        MemoryRegistry::note_retry_after(self, provider, until).await
    }

    async fn retry_after(&self, provider: &str) -> Result<Option<Millis>> {
        MemoryRegistry::retry_after(self, provider).await
    }

    async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32]> {
        MemoryRegistry::secret(self, fresh).await
    }

    async fn by_id(&self, id: &ProjectId) -> Result<Option<ProjectRow>> {
        MemoryRegistry::by_id(self, id).await
    }

    async fn by_place(&self, place: &str) -> Result<Option<ProjectRow>> {
        MemoryRegistry::by_place(self, place).await
    }

    async fn all(&self) -> Result<Vec<ProjectRow>> {
        MemoryRegistry::all(self).await
    }

    async fn strays(&self) -> Result<Vec<ProjectRow>> {
        MemoryRegistry::strays(self).await
    }

    async fn note_copy(&self, copy: &ProjectId, original: &ProjectId) -> Result<()> {
        MemoryRegistry::note_copy(self, copy, original).await
    }

    async fn original(&self, copy: &ProjectId) -> Result<Option<ProjectRow>> {
        MemoryRegistry::original(self, copy).await
    }

    async fn record(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<()> {
        MemoryRegistry::record(self, id, name, place, now).await
    }

    async fn claim(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<ProjectRow> {
        MemoryRegistry::claim(self, id, name, place, now).await
    }

    async fn register(&self, id: &ProjectId, name: &str, now: Millis) -> Result<ProjectRow> {
        MemoryRegistry::register(self, id, name, now).await
    }

    async fn forget_place(&self, place: &str) -> Result<()> {
        MemoryRegistry::forget_place(self, place).await
    }

    async fn absorb(&self, from: &ProjectId, to: &ProjectId) -> Result<()> {
        MemoryRegistry::absorb(self, from, to).await
    }

    async fn remove(&self, id: &ProjectId) -> Result<()> {
        MemoryRegistry::remove(self, id).await
    }

    async fn note_sent_again(&self, reservation: &Reservation) -> Result<()> {
        MemoryRegistry::note_sent_again(self, reservation).await
    }

    async fn sent(&self, filter: SentFilter) -> Result<(Vec<SentRow>, i64)> {
        MemoryRegistry::sent(self, filter).await
    }

    async fn forget_sent(&self, project: &ProjectId, sessions: &[String]) -> Result<()> {
        MemoryRegistry::forget_sent(self, project, sessions).await
    }
}
