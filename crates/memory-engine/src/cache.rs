//! The cache of answers, what expires, counts and measurements.

use std::collections::{BTreeMap, BTreeSet};

use super::MemoryStore;
use super::state::{Answer, State, Stored};
use super::summaries::is_newer;
use tiro_base::error::Result;
use tiro_base::memory::{Kind, Millis, Provenance};
use tiro_base::scope::{Scope, TenantId};
use tiro_store::decide::{queue, retention};
use tiro_store::{
    CacheStats, Check, DayCount, Expired, Growth, KindCount, Measurement, Savings, Sizes, Stats,
};

/// How long after now an answer can have been used: a day. A later use was dated by a clock that was ahead.
const FARTHEST: Millis = 24 * 60 * 60 * 1000;

/// The longest time between a change of a file and the commit that has it: a month.
const MONTH: Millis = 30 * 24 * 60 * 60 * 1000;

/// How much earlier than a change the commit that has it can be dated: git counts in seconds.
const SECOND: Millis = 999;

/// The length of a day in milliseconds.
const DAY: Millis = 24 * 60 * 60 * 1000;

const WEEK: Millis = 7 * 24 * 60 * 60 * 1000;

/// The counters of uses of the cache.
const USES: [&str; 2] = ["cache hit", "cache miss"];

impl MemoryStore {
    /// Does as [`ReadRecords::cached`](tiro_store::ReadRecords::cached).
    pub(crate) async fn cached(&self, scope: &Scope, key: [u8; 32], now: Millis) -> Result<Option<String>> {
        self.write(scope, |state| {
            let now = state.latest_use(&scope.tenant, now);
            let answer = state.answers.get_mut(&(scope.tenant.clone(), key));
            let answer = answer.filter(|answer| answer.expires > now && !is_ahead(answer, now));
            let body = answer.map(|answer| {
                answer.used = now;
                answer.body.clone()
            });
            state.count(&scope.tenant, USES[usize::from(body.is_none())], 1);
            Ok(body)
        })
    }

    /// Does as [`Bookkeeping::cache`](tiro_store::Bookkeeping::cache).
    pub(crate) async fn cache(
        &self,
        scope: &Scope,
        key: [u8; 32],
        body: String,
        now: Millis,
        ttl: Millis,
        max_bytes: i64,
    ) -> Result<()> {
        self.write(scope, |state| {
            let now = state.latest_use(&scope.tenant, now);
            if body.len() as i64 > max_bytes || ttl <= 0 {
                return Ok(());
            }
            let new = state.number();
            let place = (scope.tenant.clone(), key);
            let number = state.answers.get(&place).map_or(new, |answer| answer.number);
            state.answers.insert(place, Answer { number, expires: now.saturating_add(ttl), used: now, body });
            let is_own = |owner: &TenantId| *owner == scope.tenant;
            state.answers.retain(|(owner, _), answer| {
                !is_own(owner) || (answer.expires > now && !is_ahead(answer, now))
            });
            let own = state.answers.iter().filter(|((owner, _), _)| is_own(owner));
            let mut own: Vec<_> = own.map(|(place, answer)| (place.clone(), answer.clone())).collect();
            own.sort_by_key(|(_, answer)| (answer.used, answer.body.len(), answer.number));
            let bytes = || own.iter().map(|(_, answer)| answer.body.len() as i64);
            let surplus = retention::surplus(bytes().sum(), max_bytes, bytes());
            own.iter().take(surplus).for_each(|(place, _)| drop(state.answers.remove(place)));
            Ok(())
        })
    }

    /// Does as [`ReadRecords::cache_stats`](tiro_store::ReadRecords::cache_stats).
    pub(crate) async fn cache_stats(&self, scope: &Scope) -> Result<CacheStats> {
        self.read(scope, |state| {
            let own = || state.answers.iter().filter(|((owner, _), _)| *owner == scope.tenant);
            Ok(CacheStats {
                entries: own().count() as i64,
                bytes: own().map(|(_, answer)| answer.body.len() as i64).sum(),
                hits: state.counted(&scope.tenant, USES[0]),
                misses: state.counted(&scope.tenant, USES[1]),
            })
        })
    }

    /// Does as [`ReadRecords::expired`](tiro_store::ReadRecords::expired).
    pub(crate) async fn expired(&self, scope: &Scope, now: Millis, before: Millis) -> Result<Expired> {
        self.read(scope, |state| Ok(state.clone().remove_expired(&scope.tenant, now, before)))
    }

    /// Does as [`WriteRecords::remove_expired`](tiro_store::WriteRecords::remove_expired).
    pub(crate) async fn remove_expired(&self, scope: &Scope, now: Millis, before: Millis) -> Result<Expired> {
        self.write(scope, |state| Ok(state.remove_expired(&scope.tenant, now, before)))
    }

    /// Does as [`ReadRecords::sizes`](tiro_store::ReadRecords::sizes).
    pub(crate) async fn sizes(&self, scope: &Scope) -> Result<Sizes> {
        self.read(scope, |state| {
            let mut sizes = Sizes { sessions: state.living_sessions(&scope.tenant), ..Sizes::default() };
            for (_, memory) in state.owned(&scope.tenant).filter(|(_, memory)| memory.is_living()) {
                sizes.stashed += i64::from(memory.stashed.is_some());
                // Derived memories repeat their sources.
                if memory.kind != Kind::Message && memory.provenance == Provenance::Derived {
                    continue;
                }
                *match memory.kind {
                    Kind::Commit => &mut sizes.commits,
                    Kind::Message | Kind::Summary => &mut sizes.messages,
                    _ => &mut sizes.notes,
                } += 1;
            }
            Ok(sizes)
        })
    }

    /// Does as [`ReadRecords::is_empty`](tiro_store::ReadRecords::is_empty).
    pub(crate) async fn is_empty(&self, scope: &Scope) -> Result<bool> {
        self.read(scope, |state| Ok(!state.owned(&scope.tenant).any(|(_, memory)| memory.is_living())))
    }

    /// Does as [`WriteRecords::measure`](tiro_store::WriteRecords::measure).
    pub(crate) async fn measure(
        &self,
        scope: &Scope,
        measurements: Vec<Measurement>,
        savings: Savings,
    ) -> Result<()> {
        self.write(scope, |state| {
            let saved = [savings.answers, savings.whole, savings.sent];
            for (name, count) in Savings::COUNTERS.into_iter().zip(saved) {
                state.count(&scope.tenant, name, count.max(0));
            }
            for Measurement { name, bucket, count } in measurements {
                *state.measurements.entry((scope.tenant.clone(), name, bucket)).or_default() += count;
            }
            Ok(())
        })
    }

    /// Does as [`ReadRecords::measurements`](tiro_store::ReadRecords::measurements).
    pub(crate) async fn measurements(&self, scope: &Scope) -> Result<Vec<Measurement>> {
        self.read(scope, |state| {
            let own = state.measurements.iter().filter(|((owner, ..), _)| *owner == scope.tenant);
            let row = |((_, name, bucket), count): (&(TenantId, String, u32), &u64)| Measurement {
                name: name.clone(),
                bucket: *bucket,
                count: *count,
            };
            Ok(own.map(row).collect())
        })
    }

    /// Does as [`ReadRecords::savings`](tiro_store::ReadRecords::savings).
    pub(crate) async fn savings(&self, scope: &Scope) -> Result<Savings> {
        self.read(scope, |state| {
            let [answers, whole, sent] = Savings::COUNTERS.map(|name| state.counted(&scope.tenant, name));
            Ok(Savings { answers, whole, sent })
        })
    }

    /// Does as [`ReadRecords::stats`](tiro_store::ReadRecords::stats).
    pub(crate) async fn stats(&self, scope: &Scope, now: Millis) -> Result<Stats> {
        self.read(scope, |state| Ok(state.stats(&scope.tenant, now)))
    }

    /// Does as [`ReadRecords::growth`](tiro_store::ReadRecords::growth).
    pub(crate) async fn growth(&self, scope: &Scope) -> Result<Growth> {
        self.read(scope, |state| {
            let mut memories: BTreeMap<(i64, &str), (i64, i64)> = BTreeMap::new();
            for (_, memory) in state.owned(&scope.tenant).filter(|(_, memory)| memory.is_living()) {
                let count = memories.entry((memory.time.div_euclid(DAY), memory.kind.as_str())).or_default();
                *count = (count.0 + 1, count.1 + memory.tokens);
            }
            let mut sessions: BTreeMap<i64, i64> = BTreeMap::new();
            for first in state.beginnings(&scope.tenant) {
                *sessions.entry(first.div_euclid(DAY)).or_default() += 1;
            }
            let day_count = |((day, kind), (memories, tokens)): ((i64, &str), (i64, i64))| DayCount {
                day,
                kind: kind.to_owned(),
                memories,
                tokens,
            };
            let memories = memories.into_iter().map(day_count).collect();
            Ok(Growth { memories, sessions: sessions.into_iter().collect() })
        })
    }

    /// Finds no fault: nothing can be damaged.
    pub(crate) async fn check(&self, scope: &Scope) -> Result<Check> {
        self.read(scope, |_| Ok(Check::default()))
    }
}

/// Returns whether the answer was used so late that the clock was ahead.
fn is_ahead(answer: &Answer, now: Millis) -> bool {
    answer.used > now.saturating_add(FARTHEST)
}

impl State {
    /// Returns `now`, or the latest time at which the owner used an answer, if that is later because the clock went
    /// back.
    fn latest_use(&self, owner: &TenantId, now: Millis) -> Millis {
        let own = self.answers.iter().filter(|((of, _), _)| of == owner).map(|(_, answer)| answer);
        own.filter(|answer| !is_ahead(answer, now)).map(|answer| answer.used).max().unwrap_or(now).max(now)
    }

    fn count(&mut self, owner: &TenantId, name: &'static str, more: i64) {
        *self.counters.entry((owner.clone(), name)).or_default() += more;
    }

    fn counted(&self, owner: &TenantId, name: &'static str) -> i64 {
        self.counters.get(&(owner.clone(), name)).copied().unwrap_or(0)
    }

    /// Removes expired answers, and old entries and summaries. Returns how many.
    fn remove_expired(&mut self, owner: &TenantId, now: Millis, before: Millis) -> Expired {
        let mut expired = Expired::default();
        self.answers.retain(|(of, _), answer| {
            let is_over = of == owner && answer.expires <= now;
            expired.answers += i64::from(is_over);
            expired.answer_bytes += if is_over { answer.body.len() as i64 } else { 0 };
            !is_over
        });
        let own: BTreeSet<_> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.owner == *owner)
            .map(|(key, _)| *key)
            .collect();
        self.queue.retain(|_, waiting| {
            let is_old = own.contains(&waiting.session) && waiting.changed_at < before;
            let (is_made, is_given_up) = (
                is_old && waiting.entry.state == queue::QueueState::Completed,
                is_old && waiting.entry.state == queue::QueueState::Failed,
            );
            expired.made += i64::from(is_made);
            expired.given_up += i64::from(is_given_up);
            !is_made && !is_given_up
        });
        for session in self.sessions.values_mut().filter(|session| session.owner == *owner) {
            let all = session.summaries.clone();
            session
                .summaries
                .retain(|row| row.made_at >= before || !all.iter().any(|other| is_newer(other, row)));
            expired.superseded += (all.len() - session.summaries.len()) as i64;
        }
        expired
    }

    fn stats(&self, owner: &TenantId, now: Millis) -> Stats {
        let living = || self.owned(owner).map(|(_, memory)| memory).filter(|memory| memory.is_living());
        let mut kinds: BTreeMap<&str, KindCount> = BTreeMap::new();
        for memory in living() {
            let kind = memory.kind.as_str();
            let new = KindCount { kind: kind.to_owned(), memories: 0, bytes: 0, tokens: 0 };
            let count = kinds.entry(kind).or_insert(new);
            count.memories += 1;
            count.bytes += memory.text.len() as i64;
            count.tokens += memory.tokens;
        }
        let chunks = || {
            let memories = self.chunks.values().map(|chunk| (chunk, self.memories.get(&chunk.memory)));
            memories.filter(|(_, memory)| memory.is_some_and(|memory| memory.owner == *owner))
        };
        let all = || self.owned(owner).map(|(_, memory)| memory);
        let in_sessions = all().filter(|memory| memory.session.is_some());
        let began = in_sessions.map(|memory| memory.time).min();
        let since = |commit: &&Stored| began.is_some_and(|began| commit.time >= began);
        let commits = || self.commits(owner).map(|(_, commit)| commit).filter(since);
        let changes_file_of_commit = |memory: &&Stored| {
            memory.writes.keys().any(|(time, path)| {
                let in_time = time.saturating_sub(SECOND)..=time.saturating_add(MONTH);
                self.commits(owner)
                    .any(|(_, commit)| commit.paths.contains(path) && in_time.contains(&commit.time))
            })
        };
        let committed: BTreeSet<_> =
            living().filter(changes_file_of_commit).filter_map(|memory| memory.session).collect();
        let linked: BTreeSet<_> =
            self.memories.values().flat_map(|memory| &memory.links).map(|(session, _)| *session).collect();
        Stats {
            kinds: kinds.into_values().collect(),
            sessions: self.living_sessions(owner),
            embedded: chunks().filter(|(chunk, _)| chunk.embedding.is_some()).count() as i64,
            pending: chunks().filter(|(chunk, _)| chunk.embedding.is_none()).count() as i64,
            tombstoned: all().filter(|memory| !memory.is_living()).count() as i64,
            file_bytes: 0,
            commits_since: commits().count() as i64,
            commits_linked: commits().filter(|commit| !commit.links.is_empty()).count() as i64,
            sessions_committed: committed.len() as i64,
            sessions_linked: committed.intersection(&linked).count() as i64,
            repeats: all().map(|memory| memory.repeats.len().saturating_sub(1) as i64).sum(),
            stored_lately: living().filter(|memory| memory.stored_at > now.saturating_sub(WEEK)).count()
                as i64,
        }
    }
}
