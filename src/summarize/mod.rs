//! Summaries of messages and commits: by choosing sentences, or by a model.
//!
//! [`extract`] needs nothing but the messages: it takes the sentences whose words tell most for their tokens, in the
//! order in which they were said. It works in any language, is the same each time, and is what every other way falls
//! back to. [`by_model`] asks a model, in parts where its window is too small, and refuses what it answers where
//! [`quality`] finds too little of the names, decisions and numbers in it.
//!
//! Everything here is pure or asks through a closure. It is not: what is stored, what may be spent, and who may be
//! asked; `summaries/` knows that.

mod commit;
mod extract;
mod model;
mod quality;
mod reading;
mod sentences;
#[cfg(test)]
mod tests;
mod words;

use crate::memory::{Level, Millis, Role};

pub use commit::{Commit, commit_by_model, commit_request};
pub use extract::extract;
pub use model::{LEAST_QUALITY, SHOWN_AGAIN, Wish, by_model, requests};
pub use quality::{cite, quality};
pub use reading::topics;

/// A message, a commit or whatever else is summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// Its place in the session.
    pub ordinal: i64,
    /// Who speaks; empty where nobody does.
    pub speaker: &'a str,
    /// In which role.
    pub role: Role,
    /// When it was said.
    pub time: Millis,
    /// What was said.
    pub text: &'a str,
}

/// A summary, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The text; empty where there was nothing to say, or no room for a word of it.
    pub text: String,
    /// The ordinals its sentences come from, ascending.
    pub cited: Vec<i64>,
    /// How many of the sources were too long, or too many, to be read in full.
    pub unread: usize,
}

/// What a range is about: a word that runs through it, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The word, as it is written most often.
    pub name: String,
    /// The ordinals of the sources with it, ascending.
    pub ordinals: Vec<i64>,
}

/// The share of a source's tokens that its summary has at most: enough for six of ten words that answers need.
const SHARE: f64 = 0.22;

/// Returns how many tokens a summary of sources with `tokens` has at `level`, where nobody says otherwise.
///
/// The bounds are arbitrary but for the share: two sentences, a paragraph, a page and a half.
pub fn length(level: Level, tokens: usize) -> usize {
    let share = (tokens as f64 * SHARE) as usize;
    match level {
        Level::Brief => 50,
        Level::Standard => share.clamp(80, 300),
        Level::Detailed => share.clamp(160, 1500),
    }
}
