//! Decides whether the spending limits allow a request, and how a finished call is counted.
//!
//! An amount that may have been spent stays counted: if the process of a call dies, the whole reserved amount counts as
//! spent. If the clock goes back by a few days, the day of the ledger stays.

use crate::{Planned, SpendLimits, Spent};
use tiro_base::error::{Error, Kind};
use tiro_base::money::Money;

/// A limit on what may be spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The limit for one call.
    Call,
    /// The limit for the provider on one day.
    ProviderDay,
    /// The limit for all providers and projects on one day.
    Day,
    /// The limit for the project over all time.
    Project,
    /// The limit for all providers and projects over all time.
    Total,
}

impl Limit {
    /// All limits, in the order they are checked.
    pub const ALL: [Limit; 5] = [Limit::Call, Limit::ProviderDay, Limit::Day, Limit::Project, Limit::Total];

    /// Returns the amount that `limits` sets for this limit; `None` if it sets none.
    pub fn of(self, limits: &SpendLimits) -> Option<Money> {
        match self {
            Limit::Call => limits.call,
            Limit::ProviderDay => limits.provider_day,
            Limit::Day => limits.day,
            Limit::Project => limits.project,
            Limit::Total => limits.total,
        }
    }

    /// Returns the name of the limit in errors.
    pub fn as_str(self) -> &'static str {
        match self {
            Limit::Call => "one call",
            Limit::ProviderDay => "the provider on a day",
            Limit::Day => "a day",
            Limit::Project => "a project",
            Limit::Total => "everything",
        }
    }

    /// Returns whether the limit applies to one day, so that counting starts from zero on the next day.
    pub fn is_daily(self) -> bool {
        matches!(self, Limit::ProviderDay | Limit::Day)
    }
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The limit that the request would exceed.
    pub limit: Limit,
    /// The amount of that limit.
    pub amount: Money,
    /// The amount that already counts against the limit: what was spent and what is reserved.
    pub before: Money,
}

impl Refusal {
    /// Returns the error for the request. `ahead` is the number of days by which the ledger's day is ahead of today.
    pub fn error(self, planned: &Planned, ahead: i64) -> Error {
        let Refusal { limit, amount, before } = self;
        let (provider, most) = (&planned.provider, planned.most);
        let message = format!(
            "asking `{provider}` may cost {most}, and the limit of {} is {amount}, of which {before} is spent",
            limit.as_str()
        );
        let ahead = match ahead {
            1.. if limit.is_daily() => {
                let days = if ahead == 1 { "a day".to_owned() } else { format!("{ahead} days") };
                format!("; the clock was {days} ahead before, and the ledger stays at the later day")
            }
            _ => String::new(),
        };
        let hint =
            format!("`tiro provider show` shows the spending; the configuration sets the limits{ahead}");
        Error::new(Kind::Limit, message).hint(hint)
    }
}

/// Returns the first limit that a request might exceed if its cost may reach `most`. `before` has the amount that
/// already counts against each limit, in the order of [`Limit::ALL`]. A free request is never refused.
pub fn refusal(limits: &SpendLimits, most: Money, before: [Money; 5]) -> Option<Refusal> {
    if most == Money(0) {
        return None;
    }
    Limit::ALL.into_iter().zip(before).find_map(|(limit, before)| {
        let amount = limit.of(limits)?;
        (before.0.saturating_add(most.0) > amount.0).then_some(Refusal { limit, amount, before })
    })
}

/// The maximum number of days that the ledger may be ahead of today. A ledger that is further ahead was written with a
/// wrong clock. Arbitrary.
pub const FARTHEST: i64 = 7;

/// Returns the day on which spending is counted. If `known`, the latest day in the ledger, is later than `today`, the
/// clock went back, and `known` is returned. But if `known` is more than a week later, it was written with a wrong
/// clock, and `today` is returned. Everything that was spent on later days then counts for today too, so no limit can
/// be evaded.
pub fn day(known: Option<i64>, today: i64) -> i64 {
    match known {
        Some(known) if known - today <= FARTHEST => known.max(today),
        _ => today,
    }
}

/// The amounts that a finished call adds to the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// How many calls to add.
    pub calls: i64,
    /// How many failed calls to add. The number is -1 if the call succeeded but was already counted as failed.
    pub failed: i64,
    /// How much to add to the amount spent.
    pub spent: Money,
}

/// Returns the amounts to add for a call that reserved `held` and ended with `outcome`. `is_open` is true if its
/// reservation still exists. If the reservation has expired, the call was already counted as failed, at a cost of
/// `held`, so only the cost beyond `held` is added.
pub fn settled(is_open: bool, held: Money, outcome: &Spent) -> Settled {
    match is_open {
        true => Settled { calls: 1, failed: outcome.has_failed.into(), spent: outcome.cost },
        false => Settled {
            calls: 0,
            failed: if outcome.has_failed { 0 } else { -1 },
            spent: Money(outcome.cost.0.saturating_sub(held.0)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_limit_without_room_refuses() {
        let none = SpendLimits::default();
        let some = |amount| Some(Money(amount));
        for (limits, most, before, expected) in [
            (none, 9, [0, 9, 9, 9, 9], None),
            (SpendLimits { call: some(10), ..none }, 10, [0; 5], None),
            (SpendLimits { call: some(10), ..none }, 10, [1, 0, 0, 0, 0], Some((Limit::Call, 1))),
            (
                SpendLimits { day: some(10), total: some(10), ..none },
                5,
                [0, 0, 6, 0, 7],
                Some((Limit::Day, 6)),
            ),
            (SpendLimits { project: some(10), ..none }, u64::MAX, [0; 5], Some((Limit::Project, 0))),
            (SpendLimits { total: some(0), ..none }, 0, [0, 0, 0, 0, 5], None),
        ] {
            let found = refusal(&limits, Money(most), before.map(Money));
            assert_eq!(found.map(|found| (found.limit, found.before.0)), expected, "{limits:?}");
        }
    }

    #[test]
    fn a_day_never_goes_back() {
        assert_eq!((day(None, 5), day(Some(4), 5), day(Some(7), 5)), (5, 5, 7));
        assert_eq!(day(Some(3_650), 5), 5, "but a clock that was ten years ahead doesn't keep it there");
    }

    #[test]
    fn a_call_counts_once_and_nothing_is_given_back() {
        let outcome = |cost, has_failed| Spent { cost: Money(cost), has_failed, ..Spent::default() };
        for (is_open, outcome, expected) in [
            (true, outcome(30, false), (1, 0, 30)),
            (true, outcome(30, true), (1, 1, 30)),
            (false, outcome(30, false), (0, -1, 0)),
            (false, outcome(30, true), (0, 0, 0)),
            (false, outcome(90, false), (0, -1, 20)),
        ] {
            let Settled { calls, failed, spent } = settled(is_open, Money(70), &outcome);
            assert_eq!((calls, failed, spent.0), expected, "{is_open} {outcome:?}");
        }
    }
}
