//! Summaries of messages and commits, by choosing sentences or by a model.
//!
//! [`extract()`] needs nothing but the messages: it chooses the sentences whose words are worth most for their tokens,
//! in their order. It works in any language, gives the same text each time, and is the fallback of every other way.
//! [`by_model`] asks a model, in parts if its window is too small, and rejects an answer if [`quality()`] finds too few
//! of the names, decisions and numbers in it.
//!
//! Everything here is pure or asks through a closure. It doesn't store summaries, and it doesn't decide which provider may
//! be asked or what may be spent.

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
use crate::tuning::summaries;

pub use commit::{Commit, commit_by_model, commit_request};
pub use extract::extract;
pub use model::{SHOWN_AGAIN, Wish, by_model, requests};
pub use quality::{cite, quality};
pub use reading::topics;

/// A message, a commit or another text to summarise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// Its ordinal in the session.
    pub ordinal: i64,
    /// The speaker's name; may be empty.
    pub speaker: &'a str,
    /// The speaker's role.
    pub role: Role,
    /// When it was written, in milliseconds.
    pub time: Millis,
    /// The text.
    pub text: &'a str,
}

/// A summary, and the sources that it cites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The text; empty if the sources are, or if no word fits.
    pub text: String,
    /// The ordinals of the sources that its sentences come from, ascending.
    pub cited: Vec<i64>,
    /// How many sources were not read in full, because they were too long or too many.
    pub unread: usize,
}

/// A topic of a range: a word that several of its sources have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The word in its most frequent spelling.
    pub name: String,
    /// The ordinals of the sources with it, ascending.
    pub ordinals: Vec<i64>,
}

/// Returns the default length, in tokens, of a summary at `level` of sources with `tokens`.
pub fn length(level: Level, tokens: usize) -> usize {
    let share = (tokens as f64 * summaries::LENGTH_SHARE) as usize;
    match level {
        Level::Brief => summaries::BRIEF_TOKENS,
        Level::Standard => share.clamp(summaries::STANDARD_TOKENS.0, summaries::STANDARD_TOKENS.1),
        Level::Detailed => share.clamp(summaries::DETAILED_TOKENS.0, summaries::DETAILED_TOKENS.1),
    }
}
