//! Finds statements of values in a person's messages, and decides which of them are about the same thing. Also reads
//! how a person [`replies`] to an earlier message.
//!
//! A statement is a value, together with the words that say what it belongs to. The value is a number with its unit
//! ("45 sources" in "my Zotero library has 45 sources"), a percentage, an amount of money, a date, or a chosen name
//! ("Redis" in "use Redis"). If one voice makes two statements about the same thing, the later statement is valid.
//!
//! Nothing here uses a model. Two statements are about the same thing if they have the same unit, enough rare words in
//! common, and either a word of change ("now", "moved to") or nearly the same wording. A wrong match would hide a
//! statement that is still valid, so unclear pairs don't match. The lists of words are English. In other languages,
//! only numbers with the same unit and the same wording match.

mod asked;
mod dates;
mod lists;
mod names;
mod read;
pub mod replies;
mod subjects;
mod takes_back;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::BTreeSet;
use std::ops::Range;

pub use asked::{Question, Replaced, Told, concerns, replaced};
pub use read::of_message;
pub use subjects::Subjects;

/// A statement of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// The byte of the text at which the sentence begins.
    pub start: usize,
    /// The byte of the text at which the sentence ends.
    pub end: usize,
    /// The value. Two values are equal if their texts are equal.
    pub value: String,
    /// The topic of the value.
    pub about: About,
}

/// The topic of a value: the words around it, and the manner in which it is stated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The unit: a noun, `%`, `$`, `date`, or `name`. A rate has two parts, such as `call/day`. Empty for a bare number.
    pub unit: String,
    /// Words between the number and its unit.
    pub modifiers: BTreeSet<String>,
    /// The other words of the clause.
    pub context: BTreeSet<String>,
    /// The other words of the message.
    pub rest: BTreeSet<String>,
    /// For a bare number, the words before it in its clause, the nearest last. For a name, the names that it replaces.
    pub before: Vec<String>,
    /// The manner in which the value is stated.
    pub manner: Manner,
}

/// The manner in which a value is stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// A word of change is near: "now", "improved", "moved".
    pub is_change: bool,
    /// The value is the result of the change: "to 250 ms", "the new deadline".
    pub is_result: bool,
    /// The value is a bound: "under 250 ms".
    pub is_bound: bool,
    /// The value is a goal: "aim for 10 problems".
    pub is_goal: bool,
    /// The value is one of several with the same unit: "sides of 7 cm, 24 cm and 25 cm".
    pub is_listed: bool,
    /// The speakers refer to themselves: "I", "my", "our".
    pub is_own: bool,
    /// The speaker takes back an earlier statement: "forget that".
    pub is_taken_back: bool,
}

/// A value that was read in a sentence.
struct Value {
    /// The value.
    value: String,
    /// The unit of the value.
    unit: String,
    /// Words between the number and its unit.
    modifiers: Vec<String>,
    /// The tokens of the value and of its unit.
    tokens: Range<usize>,
    /// The names that the value replaces.
    replaced: Vec<String>,
}

impl Value {
    /// Returns a value that has no modifiers and replaces no names.
    pub fn plain(value: String, unit: &str, tokens: Range<usize>) -> Value {
        Value { value, unit: unit.to_owned(), modifiers: Vec::new(), tokens, replaced: Vec::new() }
    }
}

/// The letters under which [`About::line`] writes the fields of [`Manner`].
const MANNERS: [char; 7] = ['c', 'r', 'b', 'g', 'l', 'o', 't'];

/// A line keeps at most this many of the message's other words. Arbitrary.
const MOST_REST: usize = 80;

impl About {
    /// Returns the value as one line of text, which [`About::parse`] reads.
    pub fn line(&self) -> String {
        let Manner { is_change, is_result, is_bound, is_goal, is_listed, is_own, is_taken_back } =
            self.manner;
        let flags = [is_change, is_result, is_bound, is_goal, is_listed, is_own, is_taken_back];
        let manner: String =
            MANNERS.iter().zip(flags).filter(|(_, is)| *is).map(|(letter, _)| *letter).collect();
        let set = |words: &BTreeSet<String>| words.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let rest = self.rest.iter().take(MOST_REST).map(String::as_str).collect::<Vec<_>>().join(" ");
        let parts = [
            self.unit.clone(),
            set(&self.modifiers),
            set(&self.context),
            rest,
            self.before.join(" "),
            manner,
        ];
        parts.join("|")
    }

    /// Reads a line that [`About::line`] wrote. Parts that are missing are empty.
    pub fn parse(line: &str) -> About {
        let mut parts = line.split('|');
        let mut next = || parts.next().unwrap_or_default();
        let set = |words: &str| words.split_whitespace().map(str::to_owned).collect::<BTreeSet<String>>();
        let unit = next().to_owned();
        let (modifiers, context, rest) = (set(next()), set(next()), set(next()));
        let before = next().split_whitespace().map(str::to_owned).collect();
        let manner = next();
        let is = |place: usize| manner.contains(MANNERS[place]);
        let manner = Manner {
            is_change: is(0),
            is_result: is(1),
            is_bound: is(2),
            is_goal: is(3),
            is_listed: is(4),
            is_own: is(5),
            is_taken_back: is(6),
        };
        About { unit, modifiers, context, rest, before, manner }
    }

    /// Returns the unit without its rate.
    fn base(&self) -> &str {
        self.unit.split('/').next().unwrap_or_default()
    }

    /// Returns the rate of the unit, if it has one.
    fn rate(&self) -> Option<&str> {
        self.unit.split_once('/').map(|(_, rate)| rate)
    }

    /// Returns the words that describe the topic of the value, including the unit if it is a noun.
    fn key(&self) -> BTreeSet<&str> {
        let words = self.modifiers.iter().chain(&self.context).map(String::as_str);
        let noun = (!lists::is_measure(self.base())).then(|| self.base());
        words.chain(noun).chain(self.rate()).collect()
    }

    /// Returns whether `word` is in [`About::key`].
    fn is_about(&self, word: &str) -> bool {
        self.modifiers.contains(word)
            || self.context.contains(word)
            || (self.base() == word && !lists::is_measure(word))
            || self.rate() == Some(word)
    }
}
