//! Faults of summaries, their queue, leases, the cache and cursors.

use super::super::fixture::HOUR;
use super::{BrokenStore, Fault};
use tiro_base::error::Result;
use tiro_base::memory::{Kind, Level, MemoryId, Millis};
use tiro_base::scope::{Scope, SessionId};
use tiro_store::*;

impl BrokenStore {
    pub async fn source_state(&self, scope: &Scope) -> Result<SourceState> {
        let state = self.inner.source_state(&self.scope(scope)).await?;
        Ok(self.stale(Fault::ServesStaleCache, format!("version {scope:?}"), state))
    }

    pub async fn context_parts(
        &self,
        scope: &Scope,
        session: &SessionId,
        mut query: ContextQuery,
    ) -> Result<ContextParts> {
        (query.important, query.facts) = (self.limit(query.important), self.limit(query.facts));
        query.texts = self.limit(query.texts);
        let mut parts = self.inner.context_parts(&self.scope(scope), session, query).await?;
        if self.is(Fault::HoldsOutNothing) {
            parts.stashed.clear();
        }
        if self.is(Fault::ForgetsPending) {
            parts.pending = 0;
        }
        parts.important = self.ordered(parts.important);
        parts.texts = self.ordered(parts.texts);
        Ok(ContextParts { facts: self.ordered(parts.facts), ..parts })
    }

    pub async fn grown_sessions(&self, scope: &Scope, limit: usize) -> Result<Vec<GrownSession>> {
        Ok(self.ordered(self.inner.grown_sessions(&self.scope(scope), self.limit(limit)).await?))
    }

    pub async fn worked_off(&self, scope: &Scope, grown: GrownSession) -> Result<()> {
        let scope = &self.scope(scope);
        if self.is(Fault::WorksOffNothing) {
            return Ok(());
        }
        if self.is(Fault::WorksOffAlways) {
            let newest = self.inner.grown_sessions(scope, 100).await?;
            let newest = newest.into_iter().find(|newest| newest.session == grown.session);
            return self.inner.worked_off(scope, newest.unwrap_or(grown)).await;
        }
        self.inner.worked_off(scope, grown).await
    }

    pub async fn segments(&self, scope: &Scope, session: &SessionId) -> Result<Vec<SegmentRow>> {
        let mut found = self.inner.segments(&self.scope(scope), session).await?;
        if self.is(Fault::WidensRanges) {
            found.iter_mut().for_each(|row| row.last += 1);
        }
        Ok(self.ordered(found))
    }

    pub async fn save_summary(&self, scope: &Scope, summary: Summary, now: Millis) -> Result<Saved> {
        self.save_version(scope, summary, Millis::MIN, now).await
    }

    pub async fn save_version(
        &self,
        scope: &Scope,
        summary: Summary,
        since: Millis,
        now: Millis,
    ) -> Result<Saved> {
        let made = Saved::Made(MemoryId::derive(Kind::Summary, Some(&summary.session), &summary.text));
        if self.is(Fault::LosesSummaries) {
            return Ok(made);
        }
        let saved = self.inner.save_version(&self.scope(scope), summary, since, now).await?;
        Ok(self.made(saved, made))
    }

    /// Returns `saved`; but if the fault is to report every summary as made, returns that the summary was made.
    fn made(&self, saved: Saved, made: Saved) -> Saved {
        match saved {
            Saved::AlreadyMade(id) if self.is(Fault::TakesLateSummaries) => Saved::Made(id),
            Saved::SourcesChanged if self.is(Fault::TakesLateSummaries) => made,
            saved => saved,
        }
    }

    pub async fn summaries(
        &self,
        scope: &Scope,
        session: &SessionId,
        level: Option<Level>,
    ) -> Result<Vec<SummaryRow>> {
        let level = level.filter(|_| !self.is(Fault::IgnoresLevel));
        let mut found = self.inner.summaries(&self.scope(scope), session, level).await?;
        if self.is(Fault::WidensRanges) {
            found.iter_mut().for_each(|row| row.summary.last += 1);
        }
        if found.is_empty() && !self.first.lock().unwrap().contains_key(session.as_str()) {
            return Ok(found);
        }
        Ok(self.stale(Fault::ServesStaleSummaries, session.to_string(), self.ordered(found)))
    }

    pub async fn conversation(&self, scope: &Scope, session: &SessionId) -> Result<Option<ConversationRow>> {
        let found = self.inner.conversation(&self.scope(scope), session).await?;
        let question = format!("conversation {session}");
        if found.is_none() && !self.first.lock().unwrap().contains_key(&question) {
            return Ok(None);
        }
        Ok(self.stale(Fault::ServesStaleSummaries, question, found))
    }

    pub async fn save_conversation(
        &self,
        scope: &Scope,
        memory: PreparedMemory,
        last: i64,
        source_hash: [u8; 32],
        now: Millis,
    ) -> Result<Saved> {
        let made = Saved::Made(memory.id.clone());
        let saved = self.inner.save_conversation(&self.scope(scope), memory, last, source_hash, now).await?;
        Ok(self.made(saved, made))
    }

    pub async fn postpone_conversation(&self, scope: &Scope, session: &SessionId, due: Millis) -> Result<()> {
        if self.is(Fault::LosesDues) {
            return Ok(());
        }
        self.inner.postpone_conversation(&self.scope(scope), session, due).await
    }

    pub async fn due_conversations(
        &self,
        scope: &Scope,
        now: Millis,
        limit: usize,
    ) -> Result<Vec<SessionId>> {
        Ok(self.ordered(self.inner.due_conversations(&self.scope(scope), now, self.limit(limit)).await?))
    }

    pub async fn save_quarter(
        &self,
        scope: &Scope,
        mut memory: PreparedMemory,
        now: Millis,
    ) -> Result<Outcome> {
        if self.is(Fault::IgnoresSources) {
            memory.draft.references.clear();
        }
        self.inner.save_quarter(&self.scope(scope), memory, now).await
    }

    pub async fn enqueue(
        &self,
        scope: &Scope,
        mut wanted: Wanted,
        not_before: Millis,
        now: Millis,
    ) -> Result<()> {
        let scope = &self.scope(scope);
        if self.is(Fault::AsksForAll) {
            wanted.asked_by = AskedBy::User;
        }
        let mut key = wanted.clone();
        key.asked_by = AskedBy::User;
        let is_known = {
            let mut known = self.shared.wanted.lock().unwrap();
            let is_known = known.contains(&key);
            known.push(key);
            is_known
        };
        if self.is(Fault::QueuesOnce) && is_known {
            return Ok(());
        }
        let queued = self.inner.enqueue(scope, wanted, not_before, now).await;
        if self.is(Fault::QueuesAnything) { Ok(()) } else { queued }
    }

    /// Returns the date to pass on as `now`, which the fault may change.
    fn due(&self, now: Millis) -> Millis {
        if self.is(Fault::IgnoresDue) { now + 12 * HOUR } else { now }
    }

    pub async fn is_queue_due(&self, scope: &Scope, now: Millis) -> Result<bool> {
        self.inner.is_queue_due(&self.scope(scope), self.due(now)).await
    }

    pub async fn next_queued(
        &self,
        scope: &Scope,
        holder: &str,
        lease: Millis,
        now: Millis,
    ) -> Result<Option<Queued>> {
        let lease = if self.is(Fault::LeaseNeverExpires) { HOUR } else { lease };
        let last = self.shared.last.lock().unwrap().clone();
        if self.is(Fault::TakesTwice) && last.is_some() {
            return Ok(last);
        }
        let taken = self.inner.next_queued(&self.scope(scope), holder, lease, self.due(now)).await?;
        if let Some(queued) = &taken {
            let entry = (queued.clone(), holder.to_owned());
            self.shared.taken.lock().unwrap().insert(queued.key, entry);
            *self.shared.last.lock().unwrap() = Some(queued.clone());
        }
        Ok(taken)
    }

    /// Returns the holder of an entry to pass on, which the fault may change.
    fn holder(&self, entry: QueueKey, holder: &str) -> String {
        let taken = self.shared.taken.lock().unwrap();
        let last = taken.get(&entry).filter(|_| self.is(Fault::IgnoresHolder));
        last.map_or(holder.to_owned(), |(_, last)| last.clone())
    }

    pub async fn finish(&self, scope: &Scope, entry: QueueKey, holder: &str, now: Millis) -> Result<()> {
        if self.is(Fault::FinishesNothing) {
            return Ok(());
        }
        self.inner.finish(&self.scope(scope), entry, &self.holder(entry, holder), now).await
    }

    pub async fn fail(
        &self,
        scope: &Scope,
        entry: QueueKey,
        holder: &str,
        error: &str,
        not_before: Millis,
        now: Millis,
    ) -> Result<()> {
        let scope = &self.scope(scope);
        if self.is(Fault::TriesForever) {
            self.inner.drop_queued(scope, entry, holder).await?;
            let taken = self.shared.taken.lock().unwrap().get(&entry).cloned();
            let Some((queued, _)) = taken else { return Ok(()) };
            return self.inner.enqueue(scope, queued.wanted, not_before, now).await;
        }
        let not_before = if self.is(Fault::RetriesAtOnce) { 0 } else { not_before };
        self.inner.fail(scope, entry, &self.holder(entry, holder), error, not_before, now).await
    }

    pub async fn drop_queued(&self, scope: &Scope, entry: QueueKey, holder: &str) -> Result<()> {
        if self.is(Fault::FinishesNothing) {
            return Ok(());
        }
        self.inner.drop_queued(&self.scope(scope), entry, &self.holder(entry, holder)).await
    }

    /// Returns the name of a lease to pass on, which the fault may change.
    fn lease_name<'a>(&self, name: &'a str) -> &'a str {
        if self.is(Fault::OneLeaseForAll) { "lease" } else { name }
    }

    pub async fn lease(&self, scope: &Scope, name: &str, holder: &str, lasts: Millis) -> Result<bool> {
        let name = self.lease_name(name);
        let lasts = if self.is(Fault::LeaseNeverExpires) { HOUR } else { lasts };
        let last = self.shared.holders.lock().unwrap().get(name).cloned();
        if self.is(Fault::RenewsNothing) && last.as_deref() == Some(holder) {
            return Ok(true);
        }
        let is_taken = self.inner.lease(&self.scope(scope), name, holder, lasts).await?;
        if is_taken {
            self.shared.holders.lock().unwrap().insert(name.to_owned(), holder.to_owned());
        }
        Ok(is_taken || self.is(Fault::LeaseIsShared))
    }

    pub async fn release(&self, scope: &Scope, name: &str, holder: &str) -> Result<()> {
        let name = self.lease_name(name);
        let last = self.shared.holders.lock().unwrap().get(name).cloned();
        let holder = last.filter(|_| self.is(Fault::AnyoneReleases)).unwrap_or(holder.to_owned());
        if self.is(Fault::ReleasesNothing) {
            return Ok(());
        }
        self.inner.release(&self.scope(scope), name, &holder).await
    }

    pub async fn import_cursor(&self, scope: &Scope, source: &str) -> Result<Option<String>> {
        let source = if self.is(Fault::OneCursorForAll) { "source" } else { source };
        self.inner.import_cursor(&self.scope(scope), source).await
    }

    pub async fn set_import_cursor(
        &self,
        scope: &Scope,
        source: &str,
        cursor: &str,
        now: Millis,
    ) -> Result<()> {
        let source = if self.is(Fault::OneCursorForAll) { "source" } else { source };
        if self.is(Fault::LosesCursors) {
            return Ok(());
        }
        self.inner.set_import_cursor(&self.scope(scope), source, cursor, now).await
    }

    pub async fn cached(&self, scope: &Scope, key: [u8; 32], now: Millis) -> Result<Option<String>> {
        let found = self.inner.cached(&self.scope(scope), key, now).await?;
        let question = format!("cached {scope:?} {key:?}");
        if found.is_none() && !self.first.lock().unwrap().contains_key(&question) {
            return Ok(None);
        }
        Ok(self.stale(Fault::ServesStaleCache, question, found))
    }

    pub async fn cache(
        &self,
        scope: &Scope,
        key: [u8; 32],
        body: String,
        now: Millis,
        ttl: Millis,
        max_bytes: i64,
    ) -> Result<()> {
        if self.is(Fault::LosesAnswers) {
            return Ok(());
        }
        let max_bytes = if self.is(Fault::IgnoresRoom) { i64::MAX } else { max_bytes };
        self.inner.cache(&self.scope(scope), key, body, now, ttl, max_bytes).await
    }

    pub async fn cache_stats(&self, scope: &Scope) -> Result<CacheStats> {
        let stats = self.inner.cache_stats(&self.scope(scope)).await?;
        Ok(match self.fault {
            Fault::CountsNoUse => CacheStats { hits: 0, misses: 0, ..stats },
            _ => stats,
        })
    }

    pub async fn expired(&self, scope: &Scope, now: Millis, before: Millis) -> Result<Expired> {
        if self.is(Fault::ExpiresNothing) {
            return Ok(Expired::default());
        }
        self.inner.expired(&self.scope(scope), now, before).await
    }

    pub async fn remove_expired(&self, scope: &Scope, now: Millis, before: Millis) -> Result<Expired> {
        if self.is(Fault::ExpiresNothing) {
            return Ok(Expired::default());
        }
        self.inner.remove_expired(&self.scope(scope), now, before).await
    }
}
