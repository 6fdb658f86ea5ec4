//! Chooses the parts of a long conversation to show: segments, tiers, importance, key facts, and shares of a budget.
//!
//! A session is cut into immutable [`segment`]s, and a segment changes its [`tier`] as a whole when another one closes.
//! So the beginning of a context seldom changes, and a provider's prompt cache stays valid. [`importance`] decides
//! which messages are shown independent of their age, [`facts`] finds decisions and facts without a model, and
//! [`assemble`] divides the budget.
//!
//! Everything here is pure: it takes values and `now`, returns values and breaks ties by id. It is not: summaries, which
//! are in `summarize`, nor search, which is in `retrieve`.

pub mod assemble;
pub mod facts;
pub mod importance;
pub mod render;
pub mod segment;
pub mod tier;
mod words;

use crate::memory::{Millis, Role};

/// A message of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its ordinal in the session, from 0; some may be missing.
    pub ordinal: i64,
    /// The speaker's role.
    pub role: Option<Role>,
    /// Its time.
    pub time: Millis,
    /// Its tokens (o200k).
    pub tokens: usize,
    /// Its text; empty where only ordinal and tokens matter.
    pub text: &'a str,
}
