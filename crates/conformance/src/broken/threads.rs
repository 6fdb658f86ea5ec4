//! Faults of threads with assistants, and of counts of tokens.

use std::collections::HashMap;

use super::{BrokenStore, Fault};
use tiro_base::error::Result;
use tiro_base::scope::{Scope, SessionId};
use tiro_base::thread::{ContentHash, Thread, ThreadName};
use tiro_store::*;

impl BrokenStore {
    pub async fn thread(&self, scope: &Scope, name: &ThreadName) -> Result<Option<Thread>> {
        let found = self.inner.thread(&self.scope(scope), name).await?;
        let Some(mut thread) = found else { return Ok(None) };
        if self.is(Fault::LosesBlocks) {
            thread.blocks.pop();
        }
        thread.ledger = self.ordered(thread.ledger);
        Ok(Some(self.stale(Fault::ServesStaleCache, format!("thread {name:?}"), thread)))
    }

    pub async fn copies(
        &self,
        scope: &Scope,
        name: &ThreadName,
        paths: Vec<String>,
    ) -> Result<HashMap<String, String>> {
        match self.is(Fault::LosesCopies) {
            true => Ok(HashMap::new()),
            false => self.inner.copies(&self.scope(scope), name, paths).await,
        }
    }

    pub async fn record_turn(
        &self,
        scope: &Scope,
        name: &ThreadName,
        mut turn: TurnRecord,
    ) -> Result<Recorded> {
        let scope = &self.scope(scope);
        if self.is(Fault::IgnoresRoom) {
            turn.max_blob_bytes = i64::MAX;
        }
        let (number, memories) = (turn.expected_turns + 1, turn.memories.clone());
        let recorded = self.inner.record_turn(scope, name, turn).await;
        match recorded {
            Err(_) if self.is(Fault::AcceptsAnyTurn) => {
                Ok(Recorded { turn: number, receipt: Receipt::default(), evicted: 0, evicted_bytes: 0 })
            }
            Err(error) if self.is(Fault::ShowsUnacknowledged) => {
                drop(self.inner.save(scope, memories, 1).await);
                Err(error)
            }
            recorded => recorded,
        }
    }

    pub async fn turn_by_call(
        &self,
        scope: &Scope,
        name: &ThreadName,
        call_id: &str,
    ) -> Result<Option<TurnRow>> {
        match self.is(Fault::LosesTurns) {
            true => Ok(None),
            false => self.inner.turn_by_call(&self.scope(scope), name, call_id).await,
        }
    }

    pub async fn turns(&self, scope: &Scope, name: &ThreadName, limit: usize) -> Result<Vec<TurnRow>> {
        Ok(self.ordered(self.inner.turns(&self.scope(scope), name, self.limit(limit)).await?))
    }

    pub async fn threads(&self, scope: &Scope, session: Option<&SessionId>) -> Result<Vec<ThreadRow>> {
        Ok(self.ordered(self.inner.threads(&self.scope(scope), session).await?))
    }

    pub async fn other_exchanges(
        &self,
        scope: &Scope,
        name: &ThreadName,
        limit: usize,
    ) -> Result<Vec<Exchange>> {
        let mut name = name.clone();
        if self.is(Fault::IgnoresRange) {
            name.assistant = "nobody".into();
        }
        let found = self.inner.other_exchanges(&self.scope(scope), &name, self.limit(limit)).await?;
        Ok(self.ordered(found))
    }

    pub async fn reset_thread(&self, scope: &Scope, name: &ThreadName, what: Reset) -> Result<ResetDone> {
        match self.is(Fault::ResetsNothing) {
            true => Ok(ResetDone { files: 1, blocks: 1, turns: 1 }),
            false => self.inner.reset_thread(&self.scope(scope), name, what).await,
        }
    }

    pub async fn token_counts(
        &self,
        scope: &Scope,
        hashes: &[ContentHash],
    ) -> Result<HashMap<ContentHash, u32>> {
        let mut counts = self.inner.token_counts(&self.scope(scope), hashes).await?;
        if self.is(Fault::IgnoresRoom) {
            counts.extend(
                hashes
                    .iter()
                    .filter(|hash| !counts.contains_key(hash))
                    .map(|hash| (*hash, 1))
                    .collect::<Vec<_>>(),
            );
        }
        Ok(counts)
    }

    pub async fn note_token_counts(&self, scope: &Scope, counts: &[(ContentHash, u32)]) -> Result<()> {
        match self.is(Fault::LosesAnswers) {
            true => Ok(()),
            false => self.inner.note_token_counts(&self.scope(scope), counts).await,
        }
    }
}
