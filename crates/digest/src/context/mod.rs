//! Decides what to show of a long conversation, by segments, tiers, importance, key facts, and shares of a budget.
//!
//! A session is cut into immutable [`segment`]s. A segment changes its [`tier`] only as a whole, and only when a later
//! segment closes. So the beginning of a context seldom changes, and a provider's prompt cache stays valid.
//! [`importance`] decides which messages are shown whatever their age, [`facts`] finds decisions and facts without a
//! model, and [`assemble`] divides the budget.
//!
//! Everything here is pure: functions get all they need, even the time, as arguments. Equally good candidates are
//! ordered by id. The store is read in `assembly`, summaries are made in `summarize`, and search is in `retrieve`.

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
    /// Its ordinal in the session. Ordinals begin with 0, and some may be missing.
    pub ordinal: i64,
    /// The speaker's role.
    pub role: Option<Role>,
    /// Its time.
    pub time: Millis,
    /// Its tokens (o200k).
    pub tokens: usize,
    /// Its text; empty if the caller needs only ordinal and tokens.
    pub text: &'a str,
}
