//! Makes summaries of messages and commits, by choosing sentences or by asking a model.
//!
//! [`extract()`] needs only the messages and quotes whole sentences of them. A user's conversation with an assistant
//! becomes an account of the user's requests and their outcomes. [`extract()`] always returns the same text for the
//! same messages. It is used whenever a model can't be asked or fails. [`by_model`] asks a model, in several requests
//! if the messages don't fit into its window. It rejects an answer that fails one of the checks of `quality`.
//!
//! This module does no input or output. To ask a model, it runs a closure of the caller. It doesn't store summaries. It
//! doesn't decide which provider may be asked, or how much may be spent.

mod account;
mod assisted;
mod commit;
mod conclusions;
mod exchanges;
mod extract;
mod model;
mod quality;
mod reading;
mod specificity;
mod talk;
#[cfg(test)]
mod tests;
mod title;
mod topics;
mod word_keys;

use std::ops::Range;

use crate::tuning::summaries;
use tiro_base::memory::{Level, Millis, Role};

pub use account::to_do::OPEN;
pub use commit::{Commit, commit_by_model, commit_request};
pub use extract::{NO_SENTENCE, extract, extract_to_the_end};
pub use model::{SHOWN_AGAIN, Wish, WrittenSummary, by_model, requests};
pub use quality::{Verdict, cite, judge, quality};
pub use title::{shown_title, title};
pub use topics::topics;

/// A message, a commit or another text to summarise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// The ordinal of the source in its session.
    pub ordinal: i64,
    /// The speaker's name; may be empty.
    pub speaker: &'a str,
    /// The speaker's role.
    pub role: Role,
    /// The time when it was written, in milliseconds.
    pub time: Millis,
    /// The text.
    pub text: &'a str,
    /// The statements in the text that a later source corrected.
    pub corrected: &'a [Corrected],
}

/// A statement that a later statement replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrected {
    /// The bytes of the statement's sentence in the text.
    pub range: Range<usize>,
    /// The ordinal of the source with the later statement.
    pub by: i64,
}

/// A summary, and the sources that it cites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The text. It is empty if the sources are empty or if not even one word fits.
    pub text: String,
    /// The ordinals of the sources from which the summary's sentences come, ascending.
    pub cited: Vec<i64>,
    /// The number of sources that were not read in full, because they were too long or too many.
    pub unread: usize,
}

/// A topic, which is a word that several sources contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// The most frequent spelling of the word.
    pub name: String,
    /// The ordinals of the sources that contain the word, ascending.
    pub ordinals: Vec<i64>,
}

/// Returns the default length, in tokens, of a summary at `level` whose sources have `tokens` tokens.
pub fn length(level: Level, tokens: usize) -> usize {
    let share = (tokens as f64 * summaries::LENGTH_SHARE) as usize;
    match level {
        Level::Brief => summaries::BRIEF_TOKENS,
        Level::Standard => share.clamp(summaries::STANDARD_TOKENS.0, summaries::STANDARD_TOKENS.1),
        Level::Detailed => share.clamp(summaries::DETAILED_TOKENS.0, summaries::DETAILED_TOKENS.1),
    }
}

/// Returns the maximum length, in tokens, of a summary at `level`, however long its sources are.
pub fn longest(level: Level) -> usize {
    match level {
        Level::Brief => summaries::BRIEF_TOKENS,
        Level::Standard => summaries::STANDARD_TOKENS.1,
        Level::Detailed => summaries::DETAILED_TOKENS.1,
    }
}
