//! What processes share: the queue of summaries, leases, and the cursors of imports.

use std::cmp::Reverse;

use super::MemoryStore;
use super::state::{State, Waiting};
use tiro_base::error::Result;
use tiro_base::memory::Millis;
use tiro_base::scope::{Scope, TenantId};
use tiro_store::decide::leases::{Held, may_take};
use tiro_store::decide::queue::{self, Next, QueueEntry};
use tiro_store::{AskedBy, Attempt, Pace, QueueCounts, QueueKey, Queued, SessionKey, Wanted};

impl MemoryStore {
    /// Does as [`Bookkeeping::enqueue`](tiro_store::Bookkeeping::enqueue).
    pub(crate) async fn enqueue(
        &self,
        scope: &Scope,
        wanted: Wanted,
        not_before: Millis,
        now: Millis,
    ) -> Result<()> {
        self.write(scope, |state| {
            let session = state.required_session(scope, &wanted.session)?;
            let Wanted { level, first, last, .. } = wanted;
            let is_users = wanted.asked_by == AskedBy::User;
            if !is_users {
                state.queue.retain(|_, waiting| {
                    let is_shorter = waiting.session == session
                        && (waiting.level, waiting.first) == (level, first)
                        && waiting.last < last;
                    let is_free =
                        !waiting.entry.by_user && waiting.entry.state != queue::QueueState::Processing;
                    !(is_shorter && is_free)
                });
            }
            let is_it = |waiting: &Waiting| {
                waiting.session == session
                    && (waiting.level, waiting.first, waiting.last) == (level, first, last)
                    && waiting.provider == wanted.provider
            };
            match state.queue.values_mut().find(|waiting| is_it(waiting)) {
                Some(waiting) => {
                    let entry = queue::requested(Some(waiting.entry), is_users, not_before);
                    // The end of the last lease stays.
                    waiting.entry = QueueEntry { expires: waiting.entry.expires, ..entry };
                    waiting.changed_at = now;
                }
                None => {
                    let key = QueueKey::from_store(state.number());
                    let entry = queue::requested(None, is_users, not_before);
                    let provider = wanted.provider;
                    let waiting = Waiting {
                        session,
                        level,
                        first,
                        last,
                        provider,
                        entry,
                        holder: None,
                        changed_at: now,
                    };
                    state.queue.insert(key, waiting);
                }
            }
            Ok(())
        })
    }

    /// Does as [`ReadQueue::is_queue_due`](tiro_store::ReadQueue::is_queue_due).
    pub(crate) async fn is_queue_due(&self, scope: &Scope, now: Millis) -> Result<bool> {
        let clock = self.clock.now();
        self.read(scope, |state| {
            Ok(state
                .queued(&scope.tenant)
                .any(|(_, waiting)| queue::next(waiting.entry, now, clock) != Next::Wait))
        })
    }

    /// Does as [`WorkQueue::next_queued`](tiro_store::WorkQueue::next_queued).
    pub(crate) async fn next_queued(
        &self,
        scope: &Scope,
        holder: &str,
        lease: Millis,
        now: Millis,
    ) -> Result<Option<Queued>> {
        let clock = self.clock.now();
        self.write(scope, |state| {
            let mut open: Vec<(QueueKey, Waiting)> =
                state.queued(&scope.tenant).map(|(key, waiting)| (key, waiting.clone())).collect();
            open.sort_by_key(|(key, waiting)| (Reverse(waiting.entry.by_user), *key));
            for (key, mut waiting) in open {
                let next = queue::next(waiting.entry, now, clock);
                let name = state.sessions.get(&waiting.session).map(|session| session.name.clone());
                match (next, name) {
                    (Next::GiveUp, _) => {
                        (waiting.entry.state, waiting.holder) = (queue::QueueState::Failed, None);
                        waiting.changed_at = now;
                        state.queue.insert(key, waiting);
                    }
                    (Next::Take, Some(name)) if state.find_session(scope, &name).is_some() => {
                        let Waiting { level, first, last, ref provider, entry, .. } = waiting;
                        let asked_by = if entry.by_user { AskedBy::User } else { AskedBy::Program };
                        let provider = provider.clone();
                        let wanted = Wanted { session: name, level, first, last, provider, asked_by };
                        waiting.entry.state = queue::QueueState::Processing;
                        waiting.entry.expires = clock.saturating_add(lease);
                        waiting.entry.tries += 1;
                        (waiting.holder, waiting.changed_at) = (Some(holder.to_owned()), now);
                        state.queue.insert(key, waiting);
                        return Ok(Some(Queued { key, wanted, tries: entry.tries }));
                    }
                    _ => {}
                }
            }
            Ok(None)
        })
    }

    /// Does as [`WorkQueue::finish`](tiro_store::WorkQueue::finish).
    pub(crate) async fn finish(
        &self,
        scope: &Scope,
        entry: QueueKey,
        holder: &str,
        now: Millis,
    ) -> Result<()> {
        self.write(scope, |state| {
            if let Some(waiting) = state.held(&scope.tenant, entry, holder) {
                waiting.entry.state = queue::QueueState::Completed;
                (waiting.holder, waiting.changed_at) = (None, now);
            }
            Ok(())
        })
    }

    /// Does as [`WorkQueue::fail`](tiro_store::WorkQueue::fail).
    pub(crate) async fn fail(
        &self,
        scope: &Scope,
        entry: QueueKey,
        holder: &str,
        _error: &str,
        not_before: Millis,
        now: Millis,
    ) -> Result<()> {
        self.write(scope, |state| {
            if let Some(waiting) = state.held(&scope.tenant, entry, holder) {
                waiting.entry.state = queue::after_failure(waiting.entry.tries);
                waiting.entry.not_before = not_before;
                (waiting.holder, waiting.changed_at) = (None, now);
            }
            Ok(())
        })
    }

    /// Does as [`WorkQueue::drop_queued`](tiro_store::WorkQueue::drop_queued).
    pub(crate) async fn drop_queued(&self, scope: &Scope, entry: QueueKey, holder: &str) -> Result<()> {
        self.write(scope, |state| {
            if state.held(&scope.tenant, entry, holder).is_some() {
                state.queue.remove(&entry);
            }
            Ok(())
        })
    }

    /// Does as [`ReadQueue::queue_counts`](tiro_store::ReadQueue::queue_counts).
    pub(crate) async fn queue_counts(&self, scope: &Scope) -> Result<QueueCounts> {
        self.read(scope, |state| {
            let mut counts = QueueCounts::default();
            for waiting in state.queue.values().filter(|waiting| state.is_queued_by(waiting, &scope.tenant)) {
                let count = match waiting.entry.state {
                    queue::QueueState::Pending => &mut counts.pending,
                    queue::QueueState::Processing => &mut counts.processing,
                    queue::QueueState::Completed => &mut counts.completed,
                    queue::QueueState::Failed => &mut counts.failed,
                };
                *count += 1;
            }
            Ok(counts)
        })
    }

    /// Does as [`Bookkeeping::attempt`](tiro_store::Bookkeeping::attempt).
    pub(crate) async fn attempt(&self, scope: &Scope, attempt: Attempt) -> Result<()> {
        self.write(scope, |state| {
            if let Some(session) = state.find_session(scope, &attempt.session) {
                state.attempts.push((session, attempt));
            }
            Ok(())
        })
    }

    /// Does as [`ReadQueue::paces`](tiro_store::ReadQueue::paces).
    pub(crate) async fn paces(
        &self,
        scope: &Scope,
        provider: String,
        model: String,
        most: usize,
    ) -> Result<Vec<Pace>> {
        self.read(scope, |state| {
            let is_own = |session: &SessionKey| {
                state.sessions.get(session).is_some_and(|session| session.owner == scope.tenant)
            };
            let own = state.attempts.iter().rev().filter(|(session, _)| is_own(session));
            let mut of_model: Vec<&Attempt> = own
                .map(|(_, attempt)| attempt)
                .filter(|attempt| (&attempt.provider, &attempt.model) == (&provider, &model))
                .collect();
            of_model.sort_by_key(|attempt| Reverse(attempt.at));
            let pace = |attempt: &Attempt| Pace {
                input: attempt.input_tokens,
                output: attempt.output_tokens,
                took: attempt.took_ms,
            };
            Ok(of_model.into_iter().take(most).map(pace).collect())
        })
    }

    /// Does as [`ReadQueue::is_leased`](tiro_store::ReadQueue::is_leased).
    pub(crate) async fn is_leased(&self, scope: &Scope, name: &str) -> Result<bool> {
        let now = self.clock.now();
        self.read(scope, |state| {
            let held = state.leases.get(&(scope.tenant.clone(), name.to_owned()));
            // Nobody is called so.
            Ok(!may_take(held.map(|(holder, expires)| Held { holder, expires: *expires }), "", now))
        })
    }

    /// Does as [`Bookkeeping::lease`](tiro_store::Bookkeeping::lease).
    pub(crate) async fn lease(&self, scope: &Scope, name: &str, holder: &str, lasts: Millis) -> Result<bool> {
        let now = self.clock.now();
        self.write(scope, |state| {
            let name = (scope.tenant.clone(), name.to_owned());
            let held = state.leases.get(&name).map(|(holder, expires)| Held { holder, expires: *expires });
            let is_granted = may_take(held, holder, now);
            if is_granted {
                state.leases.insert(name, (holder.to_owned(), now.saturating_add(lasts)));
            }
            Ok(is_granted)
        })
    }

    /// Does as [`Bookkeeping::release`](tiro_store::Bookkeeping::release).
    pub(crate) async fn release(&self, scope: &Scope, name: &str, holder: &str) -> Result<()> {
        self.write(scope, |state| {
            let is_it = |owner: &TenantId, other: &str| *owner == scope.tenant && other == name;
            state.leases.retain(|(owner, other), (by, _)| !(is_it(owner, other) && by == holder));
            Ok(())
        })
    }

    /// Does as [`ReadRecords::import_cursor`](tiro_store::ReadRecords::import_cursor).
    pub(crate) async fn import_cursor(&self, scope: &Scope, source: &str) -> Result<Option<String>> {
        self.read(scope, |state| Ok(state.cursors.get(&(scope.tenant.clone(), source.to_owned())).cloned()))
    }

    /// Does as [`ReadRecords::has_import_cursor`](tiro_store::ReadRecords::has_import_cursor).
    pub(crate) async fn has_import_cursor(&self, scope: &Scope, end: &str) -> Result<bool> {
        self.read(scope, |state| {
            let is_it =
                |(owner, source): &(TenantId, String)| *owner == scope.tenant && source.ends_with(end);
            Ok(state.cursors.keys().any(is_it))
        })
    }

    /// Does as [`WriteRecords::set_import_cursor`](tiro_store::WriteRecords::set_import_cursor).
    pub(crate) async fn set_import_cursor(
        &self,
        scope: &Scope,
        source: &str,
        cursor: &str,
        _now: Millis,
    ) -> Result<()> {
        self.write(scope, |state| {
            state.cursors.insert((scope.tenant.clone(), source.to_owned()), cursor.to_owned());
            Ok(())
        })
    }
}

impl State {
    /// Returns whether the entry is of a session of the owner.
    pub fn is_queued_by(&self, waiting: &Waiting, owner: &TenantId) -> bool {
        self.sessions.get(&waiting.session).is_some_and(|session| session.owner == *owner)
    }

    /// Returns the owner's entries, in the order of their keys.
    fn queued(&self, owner: &TenantId) -> impl Iterator<Item = (QueueKey, &Waiting)> {
        let owner = owner.clone();
        let own = self.queue.iter().filter(move |(_, waiting)| self.is_queued_by(waiting, &owner));
        own.map(|(key, waiting)| (*key, waiting))
    }

    /// Returns the owner's entry, if `holder` has it.
    fn held(&mut self, owner: &TenantId, entry: QueueKey, holder: &str) -> Option<&mut Waiting> {
        let is_own = self.queue.get(&entry).is_some_and(|waiting| self.is_queued_by(waiting, owner));
        let waiting = self.queue.get_mut(&entry).filter(|_| is_own);
        waiting.filter(|waiting| waiting.holder.as_deref() == Some(holder))
    }
}
