//! Checks whether a model's summary is true and covers its sources.
//!
//! [`judge`] runs checks on the text. Each check has a score from 0 to 1. Names, numbers, dates and negations must be
//! in the sources. Each statement must be supported by a passage of the sources. If a statement names a speaker, that
//! speaker must have said it. The text must consist of sentences: it must be neither a list of words nor a copy of one
//! message. It must cover more than the first part of the conversation. Other omissions don't lower a score, because an
//! omission can be right. For example, a summary rightly leaves out the older of two values.
//!
//! The checks compare words, with English lists of function words and verbs. They don't understand the meaning: a
//! summary that replaces a word by its opposite passes. If the summary is in another language than the sources, only
//! names and numbers can be checked, and the verdict says so.

mod checks;
mod cite;
mod read;
#[cfg(test)]
mod tests;

pub use checks::{Verdict, judge, quality};
pub use cite::cite;
pub(super) use read::tokens::sentences;
