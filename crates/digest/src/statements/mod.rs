//! Reads where people correct what they or others said before, and finds the sentence that is corrected. Also reads how
//! a person [`replies`] to an earlier message.
//!
//! A sentence corrects an earlier one only if it names what no longer holds: "on Thursdays, **not Tuesdays**", "from
//! **60%** to 85%", "instead of **Redis**", "we **no longer deploy by hand**". If a message takes back the message
//! before it ("scratch that"), the corrected sentence is the one about the same thing. A wrong correction would hide a
//! sentence that still holds, so a question, a supposition and an unclear pair correct nothing. The order of time shows
//! all other changes.
//!
//! Nothing here uses a model. The words that announce a correction are listed for a few languages ([`cues`]).

pub mod answers;
mod cues;
pub mod own_words;
pub mod replies;
mod same;
mod takes_back;
#[cfg(test)]
mod tests;
pub mod voice;
pub(crate) mod words;

use std::collections::BTreeSet;
use std::ops::Range;

use cues::Cue;
use tiro_text::blocks;

pub use same::{are_alike, concerns};
pub use words::{first_stem, stems};

/// Corrections are read from at most this many bytes of a message. Arbitrary.
const MOST_READ: usize = 16 * 1024;

/// At most this many corrections are read in a message. Arbitrary: a message with more is a list or a log.
const MOST_CORRECTIONS: usize = 6;

/// Sentences with more bytes than this are not read. Arbitrary: such sentences are tables or data.
const LONGEST_SENTENCE: usize = 1024;

/// A sentence that says that something said before no longer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The bytes of the sentence.
    pub sentence: Range<usize>,
    /// The byte at which the sentence names what no longer holds. It distinguishes the corrections of a message.
    pub at: usize,
    /// What no longer holds.
    replaced: Replaced,
    /// The stems of the sentence's other words. If the message before it is taken back, of all words of the message.
    topic: BTreeSet<String>,
}

/// What no longer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Replaced {
    /// A value with these stems.
    Value(BTreeSet<String>),
    /// What a clause with these stems denies.
    Clause(BTreeSet<String>),
    /// The speaker's message right before this one.
    MessageBefore,
}

/// The sentence that a correction corrects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrected {
    /// The bytes of the sentence.
    pub sentence: Range<usize>,
    /// The byte at which the sentence states what no longer holds.
    pub at: usize,
}

impl Correction {
    /// Returns whether it corrects the speaker's message right before it, whatever this message says.
    pub fn is_of_message_before(&self) -> bool {
        self.replaced == Replaced::MessageBefore
    }

    /// Returns the stems that name what no longer holds, separated by spaces. They are empty if the message before it is
    /// taken back.
    pub fn names(&self) -> String {
        match &self.replaced {
            Replaced::Value(stems) | Replaced::Clause(stems) => joined(stems),
            Replaced::MessageBefore => String::new(),
        }
    }

    /// Returns the words of `text` by which the corrected sentence can be searched for. `text` is the text from which
    /// the correction was read.
    pub fn searched<'t>(&self, text: &'t str) -> &'t str {
        &text[self.sentence.clone()]
    }

    /// Returns the sentence of an earlier message that this correction corrects, if it corrects one.
    pub fn corrected(&self, earlier: &Statements) -> Option<Corrected> {
        let found = earlier.sentences.iter().filter_map(|sentence| {
            let (share, at) = same::corrects(self, sentence)?;
            let range = sentence.range.clone();
            Some((share, Corrected { at: range.start + at, sentence: range }))
        });
        // Of sentences that fit equally well, the last is the speaker's last word.
        let best = found.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.at.cmp(&b.1.at)));
        match (best, earlier.sentences.as_slice()) {
            (Some((_, corrected)), _) => Some(corrected),
            // "Scratch that." alone takes back a message of one sentence.
            (None, [only]) if self.is_of_message_before() && self.topic.is_empty() => {
                Some(Corrected { at: only.range.start, sentence: only.range.clone() })
            }
            (None, _) => None,
        }
    }
}

/// The sentences of a message, ready to be compared with corrections.
#[derive(Clone, Debug, Default)]
pub struct Statements {
    sentences: Vec<Sentence>,
}

/// A sentence of a message.
#[derive(Clone, Debug)]
struct Sentence {
    /// Its bytes in the message.
    range: Range<usize>,
    /// Its text.
    text: String,
    /// The stems of its words, without stopwords.
    stems: BTreeSet<String>,
    /// What it says no longer holds.
    cues: Vec<Cue>,
}

impl Statements {
    /// Reads the sentences in the prose of a message. Questions and suppositions are left out, because they state
    /// nothing.
    pub fn of(text: &str) -> Statements {
        let sentence = |range: Range<usize>| {
            let own = &text[range.clone()];
            Sentence { range, text: own.to_owned(), stems: stems(own), cues: cues::read(own) }
        };
        let stating = sentences(text).into_iter().filter(|range| !cues::states_nothing(&text[range.clone()]));
        Statements { sentences: stating.map(sentence).collect() }
    }
}

/// Returns the stems of a sentence's words, separated by spaces, without stopwords. [`concerns`] reads them.
pub fn words_of(sentence: &str) -> String {
    joined(&stems(sentence))
}

fn joined(stems: &BTreeSet<String>) -> String {
    stems.iter().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// Returns the corrections in the prose of a message, in order.
pub fn corrections(text: &str) -> Vec<Correction> {
    let sentences = sentences(text);
    let mut found: Vec<Correction> = Vec::new();
    for sentence in &sentences {
        let own = &text[sentence.clone()];
        for Cue { at, replaced } in cues::read(own) {
            let topic = match &replaced {
                Replaced::Value(value) => stems(own).difference(value).cloned().collect(),
                Replaced::Clause(_) => BTreeSet::new(),
                Replaced::MessageBefore => sentences
                    .iter()
                    .flat_map(|sentence| stems(without_phrase(&text[sentence.clone()])))
                    .collect(),
            };
            found.push(Correction { sentence: sentence.clone(), at: sentence.start + at, replaced, topic });
        }
    }
    found.truncate(MOST_CORRECTIONS);
    found
}

/// Returns the words of a sentence after the phrase that takes something back, or the whole sentence.
fn without_phrase(sentence: &str) -> &str {
    takes_back::phrase(sentence, usize::MAX).map_or(sentence, |phrase| &sentence[phrase.end..])
}

/// Returns the sentences in the prose of a message, as ranges of bytes. Quotations, code and tables are left out.
fn sentences(text: &str) -> Vec<Range<usize>> {
    let text = &text[..text.floor_char_boundary(MOST_READ)];
    let said = blocks::blocks(text).into_iter().filter(blocks::Block::is_said);
    said.flat_map(|block| blocks::sentences(&block))
        .map(|sentence| sentence.range)
        .filter(|range| range.len() <= LONGEST_SENTENCE)
        .collect()
}
