//! What asking models costs: limits, plans and amounts.

use crate::memory::Millis;
use crate::money::Money;

/// The most that may be spent; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendLimits {
    /// On one call.
    pub call: Option<Money>,
    /// On the provider, on a day.
    pub provider_day: Option<Money>,
    /// On a day, in all.
    pub day: Option<Money>,
    /// On the project, ever.
    pub project: Option<Money>,
    /// Ever, in all.
    pub total: Option<Money>,
}

/// A call that is about to be made.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The project that asks.
    pub project: String,
    /// Who is asked.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// The most that it may cost.
    pub most: Money,
    /// What holds for it.
    pub limits: SpendLimits,
    /// When an answer is no longer waited for.
    pub until: Millis,
}

/// Money that is put aside for one call.
#[derive(Debug)]
pub struct Reservation {
    pub(in crate::store) id: i64,
    pub(in crate::store) day: i64,
    pub(in crate::store) planned: Planned,
    pub(in crate::store) held: Money,
}

impl Reservation {
    /// Returns how much that is.
    pub fn held(&self) -> Money {
        self.held
    }
}

/// What a call came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// What it cost.
    pub cost: Money,
    /// Tokens sent.
    pub input: i64,
    /// Tokens received.
    pub output: i64,
    /// Whether it gave no answer.
    pub has_failed: bool,
}

/// What was spent on a model by a project on a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingRow {
    /// Days since 1970 UTC.
    pub day: i64,
    /// The project's id.
    pub project: String,
    /// Who was asked.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// How often.
    pub calls: i64,
    /// How often in vain.
    pub failed: i64,
    /// What it cost.
    pub spent: Money,
    /// Tokens sent.
    pub input: i64,
    /// Tokens received.
    pub output: i64,
}
