//! Decides which parts of a long conversation are shown. The choice depends on segments, tiers, importance, key facts,
//! and shares of a budget.
//!
//! A session is cut into immutable [`segment`]s. A segment changes its [`tier`] only as a whole, and only when a later
//! segment closes. So the beginning of a context seldom changes, and a provider's prompt cache stays valid.
//! [`importance`] decides which messages are shown regardless of their age. [`facts`] finds decisions and facts without
//! a model, and [`assemble`] divides the budget.
//!
//! Everything here is pure: functions get all data, even the time, as arguments. Equally good candidates are ordered by
//! id. The store is read in `assembly`, summaries are made in `summarize`, and searches are in `retrieve`.

pub mod assemble;
pub mod entities;
pub mod facts;
pub mod importance;
pub mod render;
pub mod segment;
pub mod tier;
mod topic_words;

use tiro_base::memory::{Millis, Role};

/// A message of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The ordinal of the message in the session. Ordinals begin with 0, and some may be missing.
    pub ordinal: i64,
    /// The speaker's role.
    pub role: Option<Role>,
    /// The time of the message.
    pub time: Millis,
    /// The number of tokens (o200k) of the message.
    pub tokens: usize,
    /// The text. It may be empty if the caller needs only the ordinal and the number of tokens.
    pub text: &'a str,
}
