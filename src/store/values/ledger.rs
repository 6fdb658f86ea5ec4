//! Spending on models: limits, planned calls and amounts.

use crate::memory::Millis;
use crate::money::Money;

/// The most that may be spent; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendLimits {
    /// The limit for one call.
    pub call: Option<Money>,
    /// The limit for one provider on one day.
    pub provider_day: Option<Money>,
    /// The limit for one day, for all providers together.
    pub day: Option<Money>,
    /// The limit for one project, for all days together.
    pub project: Option<Money>,
    /// The limit for all projects and days together.
    pub total: Option<Money>,
}

/// A call that a caller is about to make.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The id of the project that the call is for.
    pub project: String,
    /// The provider's name.
    pub provider: String,
    /// The provider's model.
    pub model: String,
    /// The most that one request of the call may cost.
    pub most: Money,
    /// The limits that apply to it.
    pub limits: SpendLimits,
    /// The call's deadline.
    pub until: Millis,
}

/// An amount that is reserved for one call, until [`Registry::settle`](crate::store::Registry::settle) is
/// called.
#[derive(Debug)]
pub struct Reservation {
    pub(in crate::store) id: i64,
    pub(in crate::store) day: i64,
    pub(in crate::store) planned: Planned,
    pub(in crate::store) held: Money,
}

impl Reservation {
    /// Returns the reserved amount.
    pub fn held(&self) -> Money {
        self.held
    }
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Its cost.
    pub cost: Money,
    /// Tokens sent.
    pub input: i64,
    /// Tokens received.
    pub output: i64,
    /// Whether it failed.
    pub has_failed: bool,
}

/// The spending of one project on one model on one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingRow {
    /// The day, as the number of days since 1970-01-01 UTC.
    pub day: i64,
    /// The project's id.
    pub project: String,
    /// The provider's name.
    pub provider: String,
    /// The provider's model.
    pub model: String,
    /// Calls made.
    pub calls: i64,
    /// Calls that failed.
    pub failed: i64,
    /// The amount spent.
    pub spent: Money,
    /// Tokens sent.
    pub input: i64,
    /// Tokens received.
    pub output: i64,
}
