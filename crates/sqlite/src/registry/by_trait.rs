//! Implements the trait `Registry` by calling methods of the same names, which are in the files of their subjects.

use std::sync::Arc;

use async_trait::async_trait;

use crate::SqliteRegistry;
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::{ProjectId, Scope};
use tiro_store::{Planned, ProjectRow, Reservation, SentFilter, SentRow, SpendingRow, Spent, Store};

#[async_trait]
impl tiro_store::Registry for SqliteRegistry {
    fn memories(&self) -> &Arc<dyn Store> {
        SqliteRegistry::memories(self)
    }

    fn scope(&self) -> &Scope {
        SqliteRegistry::scope(self)
    }

    fn blank_store(&self, id: &ProjectId, name: &str) -> Result<Arc<dyn Store>> {
        Ok(SqliteRegistry::blank_store(self, id, name)?)
    }

    async fn store(&self, id: &ProjectId) -> Result<Arc<dyn Store>> {
        SqliteRegistry::store(self, id).await
    }

    async fn existing_store(&self, id: &ProjectId) -> Result<Option<Arc<dyn Store>>> {
        SqliteRegistry::existing_store(self, id).await
    }

    async fn reserve(&self, planned: Planned, now: Millis) -> Result<Reservation> {
        SqliteRegistry::reserve(self, planned, now).await
    }

    async fn reserve_again(&self, reservation: &mut Reservation, now: Millis) -> Result<()> {
        SqliteRegistry::reserve_again(self, reservation, now).await
    }

    async fn settle(&self, reservation: Reservation, outcome: Spent) -> Result<()> {
        SqliteRegistry::settle(self, reservation, outcome).await
    }

    async fn spending(&self) -> Result<Vec<SpendingRow>> {
        SqliteRegistry::spending(self).await
    }

    async fn note_retry_after(&self, provider: &str, until: Millis) -> Result<()> {
        SqliteRegistry::note_retry_after(self, provider, until).await
    }

    async fn retry_after(&self, provider: &str) -> Result<Option<Millis>> {
        SqliteRegistry::retry_after(self, provider).await
    }

    async fn secret(&self, fresh: [u8; 32]) -> Result<[u8; 32]> {
        SqliteRegistry::secret(self, fresh).await
    }

    async fn by_id(&self, id: &ProjectId) -> Result<Option<ProjectRow>> {
        SqliteRegistry::by_id(self, id).await
    }

    async fn by_place(&self, place: &str) -> Result<Option<ProjectRow>> {
        SqliteRegistry::by_place(self, place).await
    }

    async fn all(&self) -> Result<Vec<ProjectRow>> {
        SqliteRegistry::all(self).await
    }

    async fn strays(&self) -> Result<Vec<ProjectRow>> {
        SqliteRegistry::strays(self).await
    }

    async fn note_copy(&self, copy: &ProjectId, original: &ProjectId) -> Result<()> {
        SqliteRegistry::note_copy(self, copy, original).await
    }

    async fn original(&self, copy: &ProjectId) -> Result<Option<ProjectRow>> {
        SqliteRegistry::original(self, copy).await
    }

    async fn record(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<()> {
        SqliteRegistry::record(self, id, name, place, now).await
    }

    async fn claim(&self, id: &ProjectId, name: &str, place: &str, now: Millis) -> Result<ProjectRow> {
        SqliteRegistry::claim(self, id, name, place, now).await
    }

    async fn register(&self, id: &ProjectId, name: &str, now: Millis) -> Result<ProjectRow> {
        SqliteRegistry::register(self, id, name, now).await
    }

    async fn forget_place(&self, place: &str) -> Result<()> {
        SqliteRegistry::forget_place(self, place).await
    }

    async fn absorb(&self, from: &ProjectId, to: &ProjectId) -> Result<()> {
        SqliteRegistry::absorb(self, from, to).await
    }

    async fn remove(&self, id: &ProjectId) -> Result<()> {
        SqliteRegistry::remove(self, id).await
    }

    async fn note_sent_again(&self, reservation: &Reservation) -> Result<()> {
        SqliteRegistry::note_sent_again(self, reservation).await
    }

    async fn sent(&self, filter: SentFilter) -> Result<(Vec<SentRow>, i64)> {
        SqliteRegistry::sent(self, filter).await
    }

    async fn forget_sent(&self, project: &ProjectId, sessions: &[String]) -> Result<()> {
        SqliteRegistry::forget_sent(self, project, sessions).await
    }
}
