//! Faults of writing, reading and forgetting memories.

use std::time::Duration;

use super::{BrokenStore, Fault};
use tiro_base::error::Result;
use tiro_base::filter::Filter;
use tiro_base::memory::{Content, Draft, Memory, MemoryId, MemoryKey, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::*;

impl BrokenStore {
    pub async fn remove_extracts(&self, scope: &Scope, session: &SessionId, limit: usize) -> Result<usize> {
        match self.is(Fault::KeepsExtracts) {
            true => Ok(limit),
            false => self.inner.remove_extracts(&self.scope(scope), session, limit).await,
        }
    }

    pub async fn save_reporting(
        &self,
        scope: &Scope,
        mut memories: Vec<PreparedMemory>,
        now: Millis,
        on_batch: &mut (dyn FnMut(usize) + Send),
    ) -> Result<Receipt> {
        let scope = &self.scope(scope);
        for memory in &mut memories {
            let draft = &mut memory.draft;
            match self.fault {
                Fault::CountsNoRepeats => draft.occurrence = None,
                Fault::IgnoresSources => draft.references.clear(),
                Fault::SupersedesAnything => draft.supersedes.clear(),
                Fault::LosesEvidence => draft.work = Default::default(),
                Fault::DropsFields => {
                    draft.title.take();
                    draft.topic.take();
                    draft.path.take();
                    draft.branch.take();
                    draft.speaker.take();
                    draft.source_id.take();
                }
                Fault::StoresTwice if self.inner.memory(scope, &memory.id).await?.is_some() => {
                    let key = format!("{} again", memory.id);
                    memory.id = MemoryId::derive(draft.kind, draft.session.as_ref(), &key);
                }
                _ => {}
            }
        }
        self.own.lock().unwrap().extend(memories.iter().map(|memory| memory.id.clone()));
        let mut receipt = match self.fault {
            Fault::LosesWrites => {
                let lost = memories.pop();
                let mut receipt = self.inner.save(scope, memories, now).await?;
                receipt.outcomes.extend(lost.map(|memory| (memory.id, Outcome::Stored)));
                receipt
            }
            Fault::SplitsBatches => {
                let mut all = Receipt::default();
                for memory in memories {
                    let one = self.inner.save(scope, vec![memory], now).await?;
                    all.outcomes.extend(one.outcomes);
                    all.pending += one.pending;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                all
            }
            Fault::ShowsUnacknowledged => {
                let saved = self.inner.save(scope, memories.clone(), now).await;
                if saved.is_err() {
                    for memory in memories {
                        drop(self.inner.save(scope, vec![memory], now).await);
                    }
                }
                saved?
            }
            Fault::ReversesBatches => {
                memories.reverse();
                let mut receipt = self.inner.save(scope, memories, now).await?;
                receipt.outcomes.reverse();
                receipt
            }
            _ => self.inner.save(scope, memories, now).await?,
        };
        if self.is(Fault::HidesConflicts) {
            for (_, outcome) in receipt.outcomes.iter_mut().filter(|(_, met)| *met == Outcome::Conflict) {
                *outcome = Outcome::AlreadyStored;
            }
        }
        if self.is(Fault::ForgetsPending) {
            receipt.pending = 0;
        }
        receipt.outcomes = self.ordered(receipt.outcomes);
        if !self.is(Fault::ReportsNothing) {
            on_batch(receipt.outcomes.len());
        }
        Ok(receipt)
    }

    /// Returns whether the handle shows the memory, which a fault may hide.
    fn shows(&self, id: &MemoryId) -> bool {
        !self.is(Fault::SeesOwnWritesOnly) || self.own.lock().unwrap().contains(id)
    }

    pub async fn memory(&self, scope: &Scope, id: &MemoryId) -> Result<Option<Memory>> {
        let found = self.inner.memory(&self.scope(scope), id).await?;
        Ok(found.filter(|memory| self.shows(&memory.id)))
    }

    pub async fn memories(&self, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<Memory>> {
        Ok(self.ordered(self.inner.memories(&self.scope(scope), keys).await?))
    }

    pub async fn texts(&self, scope: &Scope, keys: Vec<MemoryKey>) -> Result<Vec<(MemoryKey, String)>> {
        Ok(self.ordered(self.inner.texts(&self.scope(scope), keys).await?))
    }

    pub async fn list(
        &self,
        scope: &Scope,
        filter: &Filter,
        after: Option<MemoryKey>,
        limit: usize,
    ) -> Result<Vec<Memory>> {
        let after = after.filter(|_| !self.is(Fault::IgnoresPage));
        let (filter, limit) = (self.filter(filter), self.limit(limit));
        let mut found = self.inner.list(&self.scope(scope), &filter, after, limit).await?;
        found.retain(|memory| self.shows(&memory.id));
        Ok(self.ordered(found))
    }

    pub async fn ids_beginning(&self, scope: &Scope, beginning: &str, limit: usize) -> Result<Vec<MemoryId>> {
        Ok(self.ordered(self.inner.ids_beginning(&self.scope(scope), beginning, self.limit(limit)).await?))
    }

    pub async fn latest(&self, scope: &Scope, filter: &Filter, limit: usize) -> Result<Vec<Memory>> {
        let (filter, limit) = (self.filter(filter), self.limit(limit));
        let mut found = self.inner.latest(&self.scope(scope), &filter, limit).await?;
        found.retain(|memory| self.shows(&memory.id));
        Ok(self.ordered(found))
    }

    pub async fn activity(&self, scope: &Scope, filter: &Filter) -> Result<Vec<ActivityRow>> {
        Ok(self.ordered(self.inner.activity(&self.scope(scope), &self.filter(filter)).await?))
    }

    pub(super) fn filter(&self, filter: &Filter) -> Filter {
        if self.is(Fault::IgnoresFilter) { Filter::default() } else { filter.clone() }
    }

    pub async fn surroundings(
        &self,
        scope: &Scope,
        session: &SessionId,
        ordinal: i64,
        before: usize,
        after: usize,
    ) -> Result<Vec<Memory>> {
        let (before, after) = (self.limit(before), self.limit(after));
        let found = self.inner.surroundings(&self.scope(scope), session, ordinal, before, after).await?;
        Ok(self.ordered(found))
    }

    pub async fn beside(
        &self,
        scope: &Scope,
        keys: Vec<MemoryKey>,
        before: Option<Before>,
    ) -> Result<(Vec<Memory>, Vec<Memory>)> {
        let (beside, before) = self.inner.beside(&self.scope(scope), keys, before).await?;
        Ok((self.ordered(beside), self.ordered(before)))
    }

    pub async fn session_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        from: i64,
    ) -> Result<Vec<MessageRow>> {
        let from = if self.is(Fault::IgnoresPage) { 0 } else { from };
        let mut rows = self.inner.session_messages(&self.scope(scope), session, from).await?;
        rows.retain(|row| self.shows(&row.id));
        if self.is(Fault::RenumbersMessages) {
            for (place, row) in rows.iter_mut().enumerate() {
                row.ordinal = from + place as i64;
            }
        }
        Ok(self.ordered(rows))
    }

    pub async fn pending(&self, scope: &Scope) -> Result<usize> {
        let pending = self.inner.pending(&self.scope(scope)).await?;
        Ok(if self.is(Fault::ForgetsPending) { 0 } else { pending })
    }

    pub async fn pending_chunks(
        &self,
        scope: &Scope,
        content: Option<Content>,
        limit: usize,
    ) -> Result<Vec<PendingChunk>> {
        let content = content.filter(|_| !self.is(Fault::MixesContents));
        let mut found = self.inner.pending_chunks(&self.scope(scope), content, self.limit(limit)).await?;
        if self.is(Fault::ForgetsPending) {
            found.clear();
        }
        Ok(self.ordered(found))
    }

    pub async fn save_embeddings(
        &self,
        scope: &Scope,
        space: &str,
        mut embeddings: Vec<(PendingChunk, Vec<f32>)>,
    ) -> Result<()> {
        if self.is(Fault::LosesEmbeddings) {
            embeddings.clear();
        }
        self.inner.save_embeddings(&self.scope(scope), space, embeddings).await
    }

    pub async fn mark_other_spaces_pending(&self, scope: &Scope, prose: &str, code: &str) -> Result<usize> {
        if self.is(Fault::KeepsOtherSpaces) {
            return Ok(0);
        }
        self.inner.mark_other_spaces_pending(&self.scope(scope), prose, code).await
    }

    pub async fn add_chunks(
        &self,
        scope: &Scope,
        mut found: Vec<(MemoryKey, Draft, Vec<PreparedChunk>)>,
    ) -> Result<()> {
        if self.is(Fault::LosesChunks) {
            found.clear();
        }
        self.inner.add_chunks(&self.scope(scope), found).await
    }

    pub async fn mark(
        &self,
        scope: &Scope,
        ids: &[MemoryId],
        marked: bool,
        importance: Option<f64>,
    ) -> Result<Vec<MemoryId>> {
        if self.is(Fault::MarksNothing) {
            return Ok(ids.to_vec());
        }
        self.inner.mark(&self.scope(scope), ids, marked, importance).await
    }

    fn selection(&self, selection: &Selection) -> Selection {
        match selection {
            Selection::Matching(filter) => Selection::Matching(self.filter(filter)),
            other => other.clone(),
        }
    }

    pub async fn forget(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        now: Millis,
    ) -> Result<Forgotten> {
        let (scope, selection) = (&self.scope(scope), &self.selection(selection));
        if self.is(Fault::ForgetsNothing) {
            let named = self.inner.selected(scope, selection, Reach::Living).await?;
            return Ok(Forgotten { operation: operation.to_owned(), ..named });
        }
        self.inner.forget(scope, selection, operation, now).await
    }

    pub async fn retire(
        &self,
        scope: &Scope,
        session: &SessionId,
        operation: &str,
        now: Millis,
    ) -> Result<Forgotten> {
        let scope = &self.scope(scope);
        if self.is(Fault::RetiresAsForgotten) {
            return self.inner.forget(scope, &Selection::Session(session.clone()), operation, now).await;
        }
        self.inner.retire(scope, session, operation, now).await
    }

    pub async fn undo(&self, scope: &Scope, operation: Option<&str>, now: Millis) -> Result<Forgotten> {
        let scope = &self.scope(scope);
        if self.is(Fault::UndoesNothing) {
            return self.inner.undoable(scope, operation).await;
        }
        let mut operation = operation.map(str::to_owned);
        if self.is(Fault::UndoesTheFirst) && operation.is_none() {
            let all = self.inner.operations(scope, 100).await?;
            operation = all.into_iter().rev().find(|one| !one.undone).map(|one| one.id);
        }
        let undone = self.inner.undo(scope, operation.as_deref(), now).await;
        if self.is(Fault::UndoesAgain) { Ok(undone.unwrap_or_default()) } else { undone }
    }

    pub async fn operations(&self, scope: &Scope, limit: usize) -> Result<Vec<Operation>> {
        Ok(self.ordered(self.inner.operations(&self.scope(scope), self.limit(limit)).await?))
    }

    pub async fn selected(&self, scope: &Scope, selection: &Selection, reach: Reach) -> Result<Forgotten> {
        let (scope, selection) = (&self.scope(scope), &self.selection(selection));
        if self.is(Fault::ForgetsWhenAsked) {
            let forgotten = self.inner.forget(scope, selection, "asked", 1).await?;
            return Ok(Forgotten { operation: String::new(), ..forgotten });
        }
        self.inner.selected(scope, selection, reach).await
    }

    pub async fn purge(&self, scope: &Scope, operation: &str, now: Millis) -> Result<Forgotten> {
        let scope = &self.scope(scope);
        if self.is(Fault::PurgesNothing) {
            return Ok(self.inner.undoable(scope, Some(operation)).await.unwrap_or_default());
        }
        self.inner.purge(scope, operation, now).await
    }

    pub async fn forget_for_good(
        &self,
        scope: &Scope,
        selection: &Selection,
        operation: &str,
        now: Millis,
    ) -> Result<Forgotten> {
        let (scope, selection) = (&self.scope(scope), &self.selection(selection));
        if self.is(Fault::PurgesNothing) {
            return self.inner.forget(scope, selection, operation, now).await;
        }
        self.inner.forget_for_good(scope, selection, operation, now).await
    }
}
