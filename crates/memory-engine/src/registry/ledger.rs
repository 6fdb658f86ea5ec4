//! The ledger of spending on models, and what was sent to them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::MemoryRegistry;
use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::Millis;
use tiro_base::money::Money;
use tiro_base::scope::ProjectId;
use tiro_store::decide::spending::{self, Limit, Settled};
use tiro_store::{Planned, Reservation, SentFilter, SentRow, SpendingRow, Spent};

/// How long a reservation still counts as open after its deadline.
const GRACE: Millis = 60_000;

const DAY: Millis = 86_400_000;

/// How many requests are kept.
const MOST_ROWS: usize = 50_000;

/// The day, the project, the provider and the model that amounts are of.
type Account = (i64, String, String, String);

/// What was spent, and what may still be.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    /// The number of the last reservation.
    last: i64,
    /// The latest day on which spending was counted.
    day: Option<i64>,
    reservations: BTreeMap<i64, Reserved>,
    spending: BTreeMap<Account, Amounts>,
    sent: BTreeMap<i64, SentRow>,
}

#[derive(Clone)]
struct Reserved {
    account: Account,
    amount: Money,
    expires: Millis,
}

#[derive(Clone, Copy, Default)]
struct Amounts {
    calls: i64,
    failed: i64,
    spent: u64,
    input: i64,
    output: i64,
}

impl Amounts {
    fn add(&mut self, more: Amounts) {
        self.calls += more.calls;
        self.failed = (self.failed + more.failed).max(0);
        self.spent = self.spent.saturating_add(more.spent);
        self.input += more.input;
        self.output += more.output;
    }
}

impl MemoryRegistry {
    /// Does as [`Registry::reserve`](tiro_store::Registry::reserve).
    pub(crate) async fn reserve(&self, planned: Planned, now: Millis) -> Result<Reservation> {
        self.write(|state| {
            let ledger = &mut state.ledger;
            ledger.count_expired(now);
            let today = now.div_euclid(DAY);
            let day = ledger.counted_day(today);
            ledger.check(&planned, Money(0), day, today)?;
            ledger.last += 1;
            let id = ledger.last;
            let account = account(&planned, day);
            let expires = planned.until.saturating_add(GRACE);
            ledger.reservations.insert(id, Reserved { account, amount: planned.most, expires });
            ledger.sent.insert(id, sent_row(&planned, now));
            while ledger.sent.len() > MOST_ROWS {
                ledger.sent.pop_first();
            }
            let held = planned.most;
            Ok(Reservation { id, day, planned, held })
        })
    }

    /// Does as [`Registry::reserve_again`](tiro_store::Registry::reserve_again).
    pub(crate) async fn reserve_again(&self, reservation: &mut Reservation, now: Millis) -> Result<()> {
        let Reservation { id, day, ref planned, held } = *reservation;
        self.write(|state| {
            state.ledger.check(planned, held, day, now.div_euclid(DAY))?;
            let Some(reserved) = state.ledger.reservations.get_mut(&id) else {
                return Err(Error::new(Kind::Limit, "the call took longer than its reservation lasts"));
            };
            reserved.amount = Money(reserved.amount.0.saturating_add(planned.most.0));
            state.ledger.repeat(id, planned);
            Ok(())
        })?;
        reservation.held = Money(held.0.saturating_add(reservation.planned.most.0));
        Ok(())
    }

    /// Does as [`Registry::settle`](tiro_store::Registry::settle).
    pub(crate) async fn settle(&self, reservation: Reservation, outcome: Spent) -> Result<()> {
        self.write(|state| {
            let Reservation { id, day, planned, held } = reservation;
            state.ledger.settle_sent(id, &outcome);
            let was_open = state.ledger.reservations.remove(&id).is_some();
            let Settled { calls, failed, spent } = spending::settled(was_open, held, &outcome);
            let Spent { input, output, .. } = outcome;
            let more = Amounts { calls, failed, spent: spent.0, input, output };
            state.ledger.spending.entry(account(&planned, day)).or_default().add(more);
            Ok(())
        })
    }

    /// Does as [`Registry::spending`](tiro_store::Registry::spending).
    pub(crate) async fn spending(&self) -> Result<Vec<SpendingRow>> {
        let all = self.read(|state| {
            let mut all = state.ledger.spending.clone();
            for reserved in state.ledger.reservations.values() {
                let open = Amounts { calls: 1, spent: reserved.amount.0, ..Amounts::default() };
                all.entry(reserved.account.clone()).or_default().add(open);
            }
            all
        });
        let row = |((day, project, provider, model), amounts): (Account, Amounts)| {
            let Amounts { calls, failed, spent, input, output } = amounts;
            SpendingRow { day, project, provider, model, calls, failed, spent: Money(spent), input, output }
        };
        let mut rows: Vec<SpendingRow> = all.into_iter().map(row).collect();
        rows.sort_by_key(|row| {
            (Reverse(row.day), row.provider.clone(), row.model.clone(), row.project.clone())
        });
        Ok(rows)
    }

    /// Does as [`Registry::note_sent_again`](tiro_store::Registry::note_sent_again).
    pub(crate) async fn note_sent_again(&self, reservation: &Reservation) -> Result<()> {
        self.write(|state| {
            state.ledger.repeat(reservation.id, &reservation.planned);
            Ok(())
        })
    }

    /// Does as [`Registry::forget_sent`](tiro_store::Registry::forget_sent).
    pub(crate) async fn forget_sent(&self, project: &ProjectId, sessions: &[String]) -> Result<()> {
        self.write(|state| {
            let is_meant = |session: Option<&String>| session.is_some_and(|name| sessions.contains(name));
            state.ledger.forget_names(project.as_str(), is_meant);
            Ok(())
        })
    }

    /// Does as [`Registry::sent`](tiro_store::Registry::sent).
    pub(crate) async fn sent(&self, filter: SentFilter) -> Result<(Vec<SentRow>, i64)> {
        let is_admitted = |row: &&SentRow| {
            filter.provider.as_ref().is_none_or(|provider| row.provider == *provider)
                && filter.since.is_none_or(|since| row.at >= since)
        };
        Ok(self.read(|state| {
            let rows: Vec<SentRow> = state.ledger.sent.values().rev().filter(is_admitted).cloned().collect();
            let all = rows.len() as i64;
            (rows.into_iter().take(filter.limit).collect(), all)
        }))
    }
}

fn account(planned: &Planned, day: i64) -> Account {
    (day, planned.project.clone(), planned.provider.clone(), planned.model.clone())
}

fn sent_row(planned: &Planned, now: Millis) -> SentRow {
    let parcel = planned.parcel.clone();
    let matter = parcel.matter;
    SentRow {
        at: now,
        project: planned.project.clone(),
        provider: planned.provider.clone(),
        model: planned.model.clone(),
        place: parcel.place,
        is_local: parcel.is_local,
        purpose: matter.purpose.as_str().to_owned(),
        requests: 1,
        tokens: parcel.tokens,
        received: 0,
        secrets: parcel.secrets,
        answered: None,
        memories: matter.sources.memories.len() as i64,
        files: matter.sources.files.len() as i64,
        session: matter.session,
        assistant: matter.assistant,
        sources: Some(matter.sources),
    }
}

impl Ledger {
    /// Counts expired reservations as spent in full: their processes died.
    fn count_expired(&mut self, now: Millis) {
        let expired = self.reservations.extract_if(.., |_, reserved| reserved.expires < now);
        for (_, reserved) in expired {
            let dead = Amounts { calls: 1, failed: 1, spent: reserved.amount.0, ..Amounts::default() };
            self.spending.entry(reserved.account).or_default().add(dead);
        }
    }

    /// Returns the day on which spending is counted. What a clock that was ahead recorded on later days counts on it
    /// too.
    fn counted_day(&mut self, today: i64) -> i64 {
        let day = spending::day(self.day, today);
        if self.day.is_some_and(|known| known > day) {
            for ((later, project, provider, model), amounts) in std::mem::take(&mut self.spending) {
                let account = (later.min(day), project, provider, model);
                self.spending.entry(account).or_default().add(amounts);
            }
            for reserved in self.reservations.values_mut() {
                reserved.account.0 = reserved.account.0.min(day);
            }
        }
        self.day = Some(day);
        day
    }

    /// Errors with `Kind::Limit` if one more request would exceed a limit.
    fn check(&self, planned: &Planned, held: Money, day: i64, today: i64) -> Result<()> {
        let before = Limit::ALL.map(|limit| match limit {
            Limit::Call => held,
            _ => self.counted(limit, planned, day),
        });
        match spending::refusal(&planned.limits, planned.most, before) {
            None => Ok(()),
            Some(refusal) => Err(refusal.error(planned, day - today)),
        }
    }

    /// Returns the amount that counts against a limit: what is spent plus what is reserved.
    fn counted(&self, limit: Limit, planned: &Planned, day: i64) -> Money {
        let counts = |(of, project, provider, _): &Account| match limit {
            Limit::Call => false,
            Limit::ProviderDay => *of == day && *provider == planned.provider,
            Limit::Day => *of == day,
            Limit::Project => *project == planned.project,
            Limit::Total => true,
        };
        let spent = self.spending.iter().filter(|(account, _)| counts(account)).map(|(_, own)| own.spent);
        let reserved = self.reservations.values().filter(|reserved| counts(&reserved.account));
        let all = spent.chain(reserved.map(|reserved| reserved.amount.0));
        Money(all.fold(0, u64::saturating_add))
    }

    /// Records that a request is sent once more.
    fn repeat(&mut self, id: i64, planned: &Planned) {
        if let Some(sent) = self.sent.get_mut(&id) {
            sent.requests += 1;
            sent.tokens += planned.parcel.tokens;
            sent.secrets += planned.parcel.secrets;
        }
    }

    /// Records how a request ended. If it never left, its row is removed.
    fn settle_sent(&mut self, id: i64, outcome: &Spent) {
        if outcome.requests == 0 {
            self.sent.remove(&id);
        } else if let Some(row) = self.sent.get_mut(&id) {
            row.secrets = row.secrets / row.requests.max(1) * outcome.requests;
            (row.requests, row.tokens, row.received) = (outcome.requests, outcome.input, outcome.output);
            row.answered = Some(!outcome.has_failed);
        }
    }

    /// Changes the records of requests for the project `from` into records for the project `to`.
    pub(super) fn absorb(&mut self, from: &str, to: &str) {
        for row in self.sent.values_mut().filter(|row| row.project == from) {
            to.clone_into(&mut row.project);
        }
    }

    /// In the records of requests for a project, in the sessions that `is_meant` accepts, removes the names of the
    /// session, the memories and the files.
    pub(super) fn forget_names(&mut self, project: &str, is_meant: impl Fn(Option<&String>) -> bool) {
        let rows = self.sent.values_mut().filter(|row| row.project == project);
        for row in rows.filter(|row| is_meant(row.session.as_ref())) {
            (row.session, row.assistant, row.sources) = (None, None, None);
        }
    }
}
