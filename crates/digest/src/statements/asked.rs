//! Finds out which of several statements answers a question that asks for one value. The answer is the latest statement
//! about the thing that the question names.
//!
//! Without a question, two statements must be nearly alike to count as statements about the same thing. A question
//! names the thing and the unit, so each statement is compared only with the question.

use std::collections::{BTreeMap, BTreeSet};

use super::lists::has;
use super::read::topics;
use super::tokens::{Token, stem, tokens};
use super::{About, Stated};
use tiro_base::memory::{MemoryKey, Millis};

/// A question that asks for a number, an amount, a date or a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The units that the value may have.
    units: BTreeSet<String>,
    /// The stems of the words that name the topic of the question.
    topics: BTreeSet<String>,
}

/// A statement of a person that may answer a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The memory that contains the statement.
    pub memory: MemoryKey,
    /// The time when it was stated.
    pub time: Millis,
    /// The voice that stated it. Values of different voices don't replace each other.
    pub voice: String,
    /// The statement.
    pub stated: Stated,
}

/// The words that show the unit of the wanted value. Each list of words comes with its units. The words are stems, in
/// order.
const UNITS: &[(&[&str], &[&str])] = &[
    (&["accuracy", "coverag", "percent", "percentag", "rate", "scor", "shar"], &["%"]),
    (
        &[
            "allowanc", "amount", "budget", "cost", "expens", "fee", "much", "pay", "pric", "price", "rent",
            "salary", "spend",
        ],
        &["$"],
    ),
    (&["date", "day", "deadlin", "due", "schedul", "time", "when"], &["date", "time"]),
    (
        &["duration", "latency", "long", "tim", "time"],
        &["day", "h", "hour", "min", "minut", "month", "ms", "s", "second", "week", "year"],
    ),
];

/// A statement answers a question only if its message contains at least this share of the question's words. Arbitrary.
const LEAST_SHARE: f64 = 0.4;

/// The weight of a word that the message contains only outside the statement's clause. Arbitrary.
const BESIDE: f64 = 0.6;

/// A value is about the topic of a question only if its message contains at least this share of the question's words.
/// Arbitrary.
const CONCERNED: f64 = 0.3;

/// An earlier statement counts as replaced only if its share of the question's words is at least this part of the best
/// statement's share. Arbitrary.
const NEAR_BEST: f64 = 0.6;

/// A statement can be the valid one only if its share of the question's words is at least this part of the best
/// statement's share. Arbitrary: a later statement about a similar thing has fewer of the words that distinguish the
/// two things.
const LATEST_NEAR_BEST: f64 = 0.75;

/// The rarity of a word among the statements, times this factor, is added to the word's weight. The value is arbitrary.
/// It is small, because a word that is rare among only a few statements is hardly a better sign than other words.
const RARITY: f64 = 0.5;

/// The maximum number of words after "how many" that may name the counted thing. Arbitrary.
const LONGEST_COUNTED: usize = 4;

/// Words and phrases of questions about the time between two things, the order of things, or a sum or change of many
/// values.
const BETWEEN: &[&str] = &[
    "between",
    "passed",
    "elapsed",
    "apart",
    "happened first",
    "came first",
    "how long did it take",
    "days after",
    "days before",
    "weeks after",
    "weeks before",
    "months after",
    "months before",
    "across my",
    "across all",
    "how many different",
    "how many times",
    "how much did",
];

/// The words that begin a question.
const ASKS: &[&str] = &["how", "what", "what's", "when", "where", "which", "who", "why"];

impl Question {
    /// Returns the questions in a text that ask for a value; empty if there are none. For example, "How many problems
    /// did I solve, and what is my score?" asks for two. Only English questions are read. A question about the time
    /// between two things, or about a sum of many, asks for all of their values. None of these values replaces another,
    /// so such a question is not returned.
    pub fn read(text: &str) -> Vec<Question> {
        let tokens = tokens(text);
        let words: Vec<String> = tokens.iter().map(|token| token.lower()).collect();
        let all = format!(" {} ", words.join(" "));
        if BETWEEN.iter().any(|phrase| all.contains(&format!(" {phrase} "))) {
            return Vec::new();
        }
        let asks = |token: &Token<'_>| ASKS.contains(&token.lower().as_str());
        let begins: Vec<usize> = (0..tokens.len()).filter(|at| asks(&tokens[*at])).collect();
        let ends = begins.iter().skip(1).copied().chain([tokens.len()]);
        let mut questions: Vec<Question> = begins
            .iter()
            .zip(ends)
            .filter_map(|(begins, ends)| Question::of(&tokens[*begins..ends]))
            .collect();
        if begins.len() > 1 {
            // A part such as "when I began" contains too few words to be a question.
            questions.retain(|question| question.topics.len() > 1);
        }
        questions
    }

    /// Reads a question. Its first token is the question word.
    fn of(tokens: &[Token<'_>]) -> Option<Question> {
        let lower: Vec<String> = tokens.iter().map(|token| token.lower()).collect();
        let all: BTreeSet<String> = topics(tokens).into_iter().collect();
        let next = lower.get(1).map(String::as_str).unwrap_or_default();
        let mut units: BTreeSet<String> = BTreeSet::new();
        match (lower[0].as_str(), next) {
            ("how", "many" | "few") => {
                let counted = &tokens[2..tokens.len().min(2 + LONGEST_COUNTED)];
                let is_word = |token: &&Token<'_>| !topics(std::slice::from_ref(*token)).is_empty();
                units.extend(counted.iter().take_while(is_word).map(|token| stem(token.text)));
                units.extend(counted.first().map(|token| stem(token.text)));
            }
            ("how", "much" | "long" | "often" | "old" | "far" | "big" | "large" | "high" | "fast")
            | ("what" | "what's" | "when" | "which", _) => {
                let cues: BTreeSet<String> = lower.iter().map(|word| stem(word)).collect();
                let leads = |words: &[&str]| cues.iter().any(|cue| has(words, cue));
                units.extend(
                    UNITS
                        .iter()
                        .filter(|(words, _)| leads(words))
                        .flat_map(|(_, units)| units.iter().map(|unit| (*unit).to_owned())),
                );
                if lower[0] != "when" {
                    units.extend(all.iter().cloned());
                }
            }
            _ => return None,
        }
        (!all.is_empty() && !units.is_empty()).then_some(Question { units, topics: all })
    }

    /// Returns whether the statement states a value of the kind that the question asks for.
    fn asks_for(&self, stated: &Stated) -> bool {
        let about = &stated.about;
        if about.manner.is_listed || about.manner.is_bound || about.unit == "name" {
            return false;
        }
        let base = about.base();
        // "The number of sources is now 52" contains no unit.
        let is_counted = about.manner.is_change && about.before.iter().any(|word| self.topics.contains(word));
        self.units.contains(base) || (base.is_empty() && is_counted)
    }

    /// Returns the weight of those words of the question that the statement contains, as a share of the weight of all
    /// words of the question. Returns 0 if the statement's clause contains none. Words in the rest of the message count
    /// less. `rarity` returns the weight of a word.
    fn share(&self, stated: &Stated, rarity: impl Fn(&str) -> f64) -> f64 {
        let about = &stated.about;
        let weight = |is: &dyn Fn(&str) -> bool| -> f64 {
            self.topics.iter().filter(|word| *word != about.base() && is(word)).map(|word| rarity(word)).sum()
        };
        let (all, own) = (weight(&|_| true), weight(&|word| about.is_about(word)));
        match () {
            () if all == 0.0 => 1.0,
            () if own == 0.0 => 0.0,
            () => (own + BESIDE * weight(&|word| about.rest.contains(word))) / all,
        }
    }
}

fn has_word(stated: &Stated, word: &str) -> bool {
    stated.about.is_about(word) || stated.about.rest.contains(word)
}

/// Returns whether a value is about the topic of a question: its clause must contain one of the question's words, and
/// its message must contain enough of them. A question without such words is about any topic.
pub fn concerns(question: &str, about: &About) -> bool {
    let asked: BTreeSet<String> = topics(&tokens(question)).into_iter().collect();
    let is_in_clause = asked.is_empty() || asked.iter().any(|word| about.is_about(word));
    let with = asked.iter().filter(|word| about.is_about(word) || about.rest.contains(*word)).count();
    is_in_clause && with as f64 >= CONCERNED * asked.len() as f64
}

/// A value that a later value replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The index of the earlier statement.
    pub earlier: usize,
    /// The index of the later statement.
    pub by: usize,
}

/// Returns those of the statements `told` that answer the question with an earlier value. Each comes with the latest
/// statement of the same voice that answers the question. In each memory, only the statement with the best answer
/// counts.
pub fn replaced(question: &Question, told: &[Told]) -> Vec<Replaced> {
    let told: Vec<(usize, &Told)> =
        told.iter().enumerate().filter(|(_, told)| question.asks_for(&told.stated)).collect();
    let rarity = |word: &str| {
        let with = told.iter().filter(|(_, told)| has_word(&told.stated, word)).count() as f64;
        if with > 0.0 { 1.0 + RARITY * ((told.len() as f64 + 1.0) / (with + 0.5)).ln() } else { 1.0 }
    };
    let rarities: BTreeMap<&str, f64> =
        question.topics.iter().map(|word| (word.as_str(), rarity(word))).collect();
    let mut best: BTreeMap<(&str, MemoryKey), Answer> = BTreeMap::new();
    for (place, told) in told {
        let share = question.share(&told.stated, |word| rarities.get(word).copied().unwrap_or_default());
        let answer = Answer { share, place, told };
        let known = best.entry((told.voice.as_str(), told.memory)).or_insert(answer);
        if share > known.share {
            *known = answer;
        }
    }
    let mut by_voice: BTreeMap<&str, Vec<Answer>> = BTreeMap::new();
    for ((voice, _), answer) in best {
        by_voice.entry(voice).or_default().push(answer);
    }
    by_voice.into_values().flat_map(replaced_of_voice).collect()
}

/// A statement that may answer a question.
#[derive(Clone, Copy)]
struct Answer<'t> {
    share: f64,
    place: usize,
    told: &'t Told,
}

fn replaced_of_voice(mut answers: Vec<Answer<'_>>) -> Vec<Replaced> {
    let most = answers.iter().map(|answer| answer.share).fold(LEAST_SHARE, f64::max);
    answers.sort_by_key(|answer| (answer.told.time, answer.told.memory));
    let Some(at) = answers.iter().rposition(|answer| answer.share >= LATEST_NEAR_BEST * most) else {
        return Vec::new();
    };
    let by = answers[at];
    let is_earlier = |answer: &&Answer<'_>| {
        answer.share >= (NEAR_BEST * most).max(LEAST_SHARE)
            && answer.told.stated.value != by.told.stated.value
    };
    answers[..at]
        .iter()
        .filter(is_earlier)
        .map(|answer| Replaced { earlier: answer.place, by: by.place })
        .collect()
}
