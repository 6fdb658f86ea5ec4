//! What of a long conversation is shown: segments, tiers, importance, key facts, and how they share a budget.
//!
//! A session is cut into immutable [`segment`]s, and a whole segment changes [`tier`] when another one closes: so what
//! stands before a question changes seldom, and a provider's cache of it holds. [`importance`] says which messages stay
//! whatever their age, [`facts`] finds what was decided and said to be so without a model, and [`assemble`] lets it all
//! share a budget.
//!
//! Everything here is pure: it takes values and `now`, returns values and breaks ties by id. It is not: summaries, which
//! are `summarize`, nor finding what a question asks for, which is `retrieve`.

pub mod assemble;
pub mod facts;
pub mod importance;
pub mod render;
pub mod segment;
pub mod tier;
mod words;

use crate::memory::{Millis, Role};

/// A message of a session, as far as its place, its cost and its words decide what is shown of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its place in the session, from 0; places may be missing.
    pub ordinal: i64,
    /// Who speaks.
    pub role: Option<Role>,
    /// When it was said.
    pub time: Millis,
    /// Its tokens (o200k).
    pub tokens: usize,
    /// What was said; empty where only place and cost matter.
    pub text: &'a str,
}
