//! Whether a model's summary is true and about the whole of its sources.
//!
//! [`judge`] runs checks over the text, each with a score from 0 to 1. Names, numbers, dates and negations must be in
//! the sources. A passage of the sources must support each statement, and the speaker whom a statement names must be the
//! one who said it. The text must be sentences, neither a list of words nor a copy of one message, and it must not stop
//! in the first part of the conversation. Other omissions are not punished, since a summary rightly leaves out the
//! older of two values.
//!
//! The checks compare words, with English lists of function words and verbs. They don't understand: a summary that
//! replaces a word by its opposite passes. In a language other than that of the sources only names and numbers can be
//! checked, and the verdict says so.

mod checks;
mod cite;
mod read;
#[cfg(test)]
mod tests;

pub use checks::{Verdict, judge, quality};
pub use cite::cite;
pub(super) use read::tokens::sentences;
