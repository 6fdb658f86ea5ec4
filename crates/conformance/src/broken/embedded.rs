//! Faults of the embeddings that providers made.

use super::{BrokenStore, Fault};
use tiro_base::error::Result;
use tiro_base::scope::Scope;

impl BrokenStore {
    pub async fn cached_embeddings(
        &self,
        scope: &Scope,
        keys: Vec<[u8; 32]>,
    ) -> Result<Vec<Option<Vec<f32>>>> {
        self.inner.cached_embeddings(&self.scope(scope), keys).await
    }

    pub async fn cache_embeddings(
        &self,
        scope: &Scope,
        mut entries: Vec<([u8; 32], Vec<f32>)>,
    ) -> Result<()> {
        if self.is(Fault::LosesPaidEmbeddings) {
            entries.pop();
        }
        self.inner.cache_embeddings(&self.scope(scope), entries).await
    }
}
