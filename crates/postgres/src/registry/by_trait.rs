//! Implements the trait `Registry` by calling methods of the same names, which are in the files of their subjects.

use std::sync::Arc;

use async_trait::async_trait;

use crate::PostgresRegistry;
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::{ProjectId, Scope};
use tiro_store::{Planned, ProjectRow, Reservation, SentFilter, SentRow, SpendingRow, Spent, Store};

#[async_trait]
impl tiro_store::Registry for PostgresRegistry {
    fn memories(&self) -> &Arc<dyn Store> {
        PostgresRegistry::memories(self)
    }

    fn scope(&self) -> &Scope {
        PostgresRegistry::scope(self)
    }

    fn blank_store(&self, id: &ProjectId, name: &str) -> Result<Arc<dyn Store>> {
        PostgresRegistry::blank_store(self, id, name)
    }

    async fn store(&self, id: &ProjectId) -> Result<Arc<dyn Store>> {
        PostgresRegistry::store(self, id).await
    }

    async fn existing_store(&self, id: &ProjectId) -> Result<Option<Arc<dyn Store>>> {
        PostgresRegistry::existing_store(self, id).await
    }

    async fn reserve(&self, planned: Planned, now: Millis) -> Result<Reservation> {
        PostgresRegistry::reserve(self, planned, now).await
    }

    async fn reserve_again(&self, reservation: &mut Reservation, now: Millis) -> Result<()> {
        PostgresRegistry::reserve_again(self, reservation, now).await
    }

    async fn settle(&self, reservation: Reservation, outcome: Spent) -> Result<()> {
        PostgresRegistry::settle(self, reservation, outcome).await
    }

    async fn spending(&self) -> Result<Vec<SpendingRow>> {
        PostgresRegistry::spending(self).await
    }

    async fn note_retry_after(&self, provider: &str, until: Millis) -> Result<()> {
        PostgresRegistry::note_retry_after(self, provider, until).await
    }

    async fn retry_after(&self, provider: &str) -> Result<Option<Millis>> {
        PostgresRegistry::retry_after(self, provider).await
    }

    async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32]> {
        PostgresRegistry::secret(self, fresh).await
    }

    async fn by_id(&self, id: &ProjectId) -> Result<Option<ProjectRow>> {
        PostgresRegistry::by_id(self, id).await
    }

    async fn by_place(&self, place: &str) -> Result<Option<ProjectRow>> {
        PostgresRegistry::by_place(self, place).await
    }

    async fn all(&self) -> Result<Vec<ProjectRow>> {
        PostgresRegistry::all(self).await
    }

    async fn strays(&self) -> Result<Vec<ProjectRow>> {
        PostgresRegistry::strays(self).await
    }

    async fn note_copy(&self, copy: &ProjectId, original: &ProjectId) -> Result<()> {
        PostgresRegistry::note_copy(self, copy, original).await
    }

    async fn original(&self, copy: &ProjectId) -> Result<Option<ProjectRow>> {
        PostgresRegistry::original(self, copy).await
    }

    async fn record(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<()> {
        PostgresRegistry::record(self, id, name, place, now).await
    }

    async fn claim(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<ProjectRow> {
        PostgresRegistry::claim(self, id, name, place, now).await
    }

    async fn register(&self, id: &ProjectId, name: &str, now: Millis) -> Result<ProjectRow> {
        PostgresRegistry::register_named(self, id, name, now).await
    }

    async fn forget_place(&self, place: &str) -> Result<()> {
        PostgresRegistry::forget_place(self, place).await
    }

    async fn absorb(&self, from: &ProjectId, to: &ProjectId) -> Result<()> {
        PostgresRegistry::absorb(self, from, to).await
    }

    async fn remove(&self, id: &ProjectId) -> Result<()> {
        PostgresRegistry::remove(self, id).await
    }

    async fn note_sent_again(&self, reservation: &Reservation) -> Result<()> {
        PostgresRegistry::note_sent_again(self, reservation).await
    }

    async fn sent(&self, filter: SentFilter) -> Result<(Vec<SentRow>, i64)> {
        PostgresRegistry::sent(self, filter).await
    }

    async fn forget_sent(&self, project: &ProjectId, sessions: &[String]) -> Result<()> {
        PostgresRegistry::forget_sent(self, project, sessions).await
    }
}
