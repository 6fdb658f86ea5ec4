//! What the processes of an installation tell each other: that a store changed. They do so by `LISTEN` and `NOTIFY` in the
//! first database, whichever database the store is in ([`tell`], [`follow`]).
//!
//! A notice says only which store changed. It is sent after the commit, by a task of its own, at most once a second for
//! each store: transactions that use `NOTIFY` commit one after the other in the whole cluster, so a write must not
//! contain it. A notice may be lost with its process or its connection, and nobody may be there to hear it. Those who
//! follow a store also look by themselves.

pub(crate) mod follow;
mod listener;
pub(crate) mod tell;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use tiro_base::scope::{ProjectId, TenantId};

/// The least time between two notices about a store.
const PAUSE: Duration = Duration::from_secs(1);

/// How many stores are remembered of which this process told something. Arbitrary: some hundred kilobytes.
const MOST_TOLD: usize = 4096;

/// Selects the number of the newest change in the parts `$1` of a store.
pub(crate) const NEWEST: &str = "SELECT coalesce(max(greatest(
        (SELECT max(changed) FROM exchange WHERE owner = o),
        (SELECT max(changed) FROM absent WHERE owner = o))), 0) FROM unnest($1::bigint[]) o";

/// Which store changed: a hash of its tenant and its project, so that others who listen in the same database learn no
/// name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 16]);

impl Key {
    /// Returns the key of the tenant's store of the project.
    pub fn of(tenant: &TenantId, project: &ProjectId) -> Key {
        let store = format!("{}\u{1f}{}", tenant.as_str(), project.as_str());
        let hash = blake3::derive_key("tiro 2026 key of a store that changed", store.as_bytes());
        Key(std::array::from_fn(|place| hash[place]))
    }

    /// Returns the key as the text of a notice.
    fn text(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }

    /// Reads the text of a notice; `None` if it is none of Tiro's.
    fn read(text: &str) -> Option<Key> {
        let is_key = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_key.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(|number| Key(number.to_be_bytes()))
    }
}

/// Returns the channel of the notices. Each schema has its own.
fn channel(schema: &str) -> String {
    format!("{schema}_changes")
}

/// What this process tells others, and hears from them.
#[derive(Default)]
pub(crate) struct News {
    /// The stores that somebody in this process follows.
    followed: Mutex<HashMap<Key, watch::Sender<()>>>,
    /// The stores of which this process told something.
    told: Mutex<HashMap<Key, Told>>,
    /// Whether the task that listens was started.
    is_started: AtomicBool,
}

/// What this process told of a store.
#[derive(Default)]
struct Told {
    /// When it last looked whether there is something to tell.
    at: Option<Instant>,
    /// The number of the newest change then.
    newest: i64,
    /// Whether it is going to look again.
    is_due: bool,
    /// The parts that were written since then.
    parts: BTreeSet<i64>,
}

impl News {
    /// Returns what notices a change of the store after this call.
    fn follow(&self, key: Key) -> watch::Receiver<()> {
        let mut followed = lock(&self.followed);
        followed.retain(|other, sender| *other == key || sender.receiver_count() > 0);
        followed.entry(key).or_default().subscribe()
    }

    /// Wakes those who follow a store.
    fn wake(&self, key: Key) {
        if let Some(sender) = lock(&self.followed).get(&key) {
            sender.send_replace(());
        }
    }

    /// Wakes everybody, because notices may have been lost.
    fn wake_all(&self) {
        lock(&self.followed).values().for_each(|sender| sender.send_replace(()));
    }

    /// Notes that `parts` of a store were written. Returns after what time to look whether there is something to tell;
    /// `None` if that is going to happen anyway.
    fn note(&self, key: Key, parts: &[i64]) -> Option<Duration> {
        let mut told = lock(&self.told);
        if told.len() >= MOST_TOLD && !told.contains_key(&key) {
            told.retain(|_, told| told.is_due);
        }
        let told = told.entry(key).or_default();
        told.parts.extend(parts);
        let is_new = !std::mem::replace(&mut told.is_due, true);
        is_new.then(|| told.at.map_or(Duration::ZERO, |at| PAUSE.saturating_sub(at.elapsed())))
    }

    /// Begins to look. Returns the parts that were written since the last look.
    fn take(&self, key: Key) -> Vec<i64> {
        let mut told = lock(&self.told);
        let told = told.entry(key).or_default();
        (told.at, told.is_due) = (Some(Instant::now()), false);
        std::mem::take(&mut told.parts).into_iter().collect()
    }

    /// Returns whether the change with the number `newest` was not told yet. From now on, it counts as told.
    fn is_new(&self, key: Key, newest: i64) -> bool {
        let mut told = lock(&self.told);
        let told = told.entry(key).or_default();
        let is_new = newest > told.newest;
        told.newest = told.newest.max(newest);
        is_new
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
