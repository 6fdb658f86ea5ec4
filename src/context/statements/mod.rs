//! Finds statements of values in what a person said, and decides which of them are about the same thing.
//!
//! A statement is a value with the words around it: "45 sources" in "my Zotero library has 45 sources", a percentage, an
//! amount of money, a date, or a name that was chosen ("use Redis"). Of two statements of one voice about the same thing,
//! the later holds. Nothing here uses a model: two statements are about the same thing if they have the same unit, enough
//! rare words in common, and either a word of change ("now", "moved to") or nearly the same wording. A wrong match hides
//! what still holds, so unclear pairs don't match. The lists of words are English: in other languages only numbers with
//! the same unit and the same wording match.

mod dates;
mod lists;
mod names;
mod read;
#[cfg(test)]
mod tests;
mod value;
mod words;

use std::collections::{BTreeSet, HashMap};

use crate::memory::MemoryKey;

pub use read::statements;

/// A statement of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// The bytes of its sentence in the text.
    pub start: usize,
    /// Where the sentence ends.
    pub end: usize,
    /// The value. Equal values are equal texts.
    pub value: String,
    /// What the value is about.
    pub about: About,
}

/// What a value is about: the words around it, and how it is stated.
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
    /// How the value is stated.
    pub manner: Manner,
}

/// How a value is stated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// A word of change is near: "now", "improved", "moved".
    pub is_change: bool,
    /// The value is the result of the change: "to 250 ms", "the new deadline".
    pub is_result: bool,
    /// It bounds the value: "under 250 ms".
    pub is_bound: bool,
    /// It is a goal: "aim for 10 problems".
    pub is_goal: bool,
    /// It stands among values of the same unit: "sides of 7 cm, 24 cm and 25 cm".
    pub is_listed: bool,
    /// The speaker speaks of themselves: "I", "my", "our".
    pub is_own: bool,
    /// It takes back what was said before: "forget that".
    pub is_taken_back: bool,
}

/// The letters under which [`About::line`] writes the fields of [`Manner`].
const MANNERS: [char; 7] = ['c', 'r', 'b', 'g', 'l', 'o', 't'];

/// The most words of the message that a line keeps. Arbitrary.
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

    /// Returns the words that say what the value is about, including the unit if it is a noun.
    fn key(&self) -> BTreeSet<&str> {
        let words = self.modifiers.iter().chain(&self.context).map(String::as_str);
        let noun = (!lists::is_measure(self.base())).then(|| self.base());
        words.chain(noun).chain(self.rate()).collect()
    }
}

/// A statement that was made before, with the subject under which it is stored.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// Its value.
    pub value: String,
    /// What the value is about.
    pub about: About,
    /// The memory that has it: statements of one memory are not compared.
    pub memory: MemoryKey,
    /// Its subject: equal for statements about the same thing.
    pub subject: usize,
}

/// The statements of one voice, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub struct Subjects {
    stated: Vec<Earlier>,
    by_unit: HashMap<String, Vec<usize>>,
    /// In how many subjects each word occurs.
    subjects_with: HashMap<String, usize>,
    words_of_subject: HashMap<usize, BTreeSet<String>>,
    subjects: usize,
}

/// How many statements of a subject a new statement is compared with. Arbitrary.
const COMPARED: usize = 5;

/// How many subjects are assumed in addition to the known ones, each word in one of a hundred of them. So the words of
/// the first few statements don't all count as common. Arbitrary.
const ASSUMED: f64 = 100.0;

impl Subjects {
    /// Adds a statement whose subject is known, or a statement about something new if `same_as` is `None`. Returns its
    /// place.
    pub fn add(&mut self, value: String, about: About, memory: MemoryKey, same_as: Option<usize>) -> usize {
        let subject = same_as.map_or_else(
            || {
                self.subjects += 1;
                self.subjects - 1
            },
            |place| self.stated[place].subject,
        );
        let known = self.words_of_subject.entry(subject).or_default();
        for word in about.key().into_iter().chain(about.rest.iter().map(String::as_str)) {
            if known.insert(word.to_owned()) {
                *self.subjects_with.entry(word.to_owned()).or_default() += 1;
            }
        }
        let place = self.stated.len();
        self.by_unit.entry(about.base().to_owned()).or_default().push(place);
        self.stated.push(Earlier { value, about, memory, subject });
        place
    }

    /// Returns the place of the earlier statement that is about the same thing as the new one, the best of several;
    /// `None` if there is none.
    pub fn same(&self, value: &str, about: &About, memory: MemoryKey) -> Option<usize> {
        let alike = |place: &usize| {
            let earlier = &self.stated[*place];
            let score = self.likeness(earlier, value, about).filter(|_| earlier.memory != memory)?;
            Some((score, *place))
        };
        let mut alike: Vec<(f64, usize)> = self.comparable(about).iter().filter_map(alike).collect();
        // Of equally good ones, the latest comes first.
        alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        alike.into_iter().map(|(_, place)| place).find(|place| self.is_of(*place, value, about, memory))
    }

    /// Returns whether the new statement resembles most of the latest statements of the subject of `place`. Without this
    /// check, a chain of similar statements could join different things.
    fn is_of(&self, place: usize, value: &str, about: &About, memory: MemoryKey) -> bool {
        let subject = self.stated[place].subject;
        let others = self.stated.iter().rev().filter(|each| each.subject == subject && each.memory != memory);
        let others: Vec<&Earlier> = others.take(COMPARED).collect();
        let alike = others.iter().filter(|each| self.likeness(each, value, about).is_some()).count();
        2 * alike >= others.len()
    }

    /// Returns the places of the statements that may be about the same thing, in order.
    fn comparable(&self, about: &About) -> Vec<usize> {
        let mut units: Vec<&str> = vec![about.base()];
        if about.unit.is_empty() {
            units.extend(about.before.iter().map(String::as_str));
            units.sort_unstable();
            units.dedup();
        }
        let mut places: Vec<usize> =
            units.into_iter().filter_map(|unit| self.by_unit.get(unit)).flatten().copied().collect();
        places.sort_unstable();
        places
    }

    /// Returns the rarity of a word: the fewer subjects have it, the higher.
    fn rarity(&self, word: &str) -> f64 {
        let with = self.subjects_with.get(word).copied().unwrap_or(0) as f64;
        ((self.subjects as f64 + ASSUMED + 1.0) / (with + ASSUMED / 100.0 + 0.5)).ln()
    }

    /// Returns how alike the statements are if they are about the same thing; otherwise `None`.
    fn likeness(&self, earlier: &Earlier, value: &str, later: &About) -> Option<f64> {
        let (a, b) = (&earlier.about, later);
        if a.unit == "name" {
            return self.likeness_of_names(earlier, value, later);
        }
        if a.manner.is_listed || b.manner.is_listed || b.manner.is_bound {
            return None;
        }
        let (a_key, b_key) = (a.key(), b.key());
        if !are_comparable(a, b, &a_key, &b_key) {
            return None;
        }
        let shared: Vec<&str> = a_key.intersection(&b_key).copied().collect();
        let is_topic = |word: &&str| *word != a.base() && *word != b.base();
        let weight: f64 = shared.iter().filter(|word| is_topic(word)).map(|word| self.rarity(word)).sum();
        let total = |key: &BTreeSet<&str>| key.iter().map(|word| self.rarity(word)).sum::<f64>();
        let all: f64 = shared.iter().map(|word| self.rarity(word)).sum();
        let share = all / total(&a_key).min(total(&b_key)).max(f64::MIN_POSITIVE);
        let found = Shared { count: shared.len(), weight, share, beyond: self.beyond(a, b, &shared) };
        let is_same_value = earlier.value == value;
        admits(a, b, is_same_value, &found).then_some(share * (1.0 + all))
    }

    /// Returns the weight of the rarest words that the messages share beyond the clauses of the statements.
    fn beyond(&self, a: &About, b: &About, shared: &[&str]) -> f64 {
        let words = |about: &'_ About| -> BTreeSet<String> {
            about.key().into_iter().map(str::to_owned).chain(about.rest.iter().cloned()).collect()
        };
        let (a_words, b_words) = (words(a), words(b));
        let mut rarities: Vec<f64> = a_words
            .intersection(&b_words)
            .filter(|word| !shared.contains(&word.as_str()) && *word != a.base() && *word != b.base())
            .map(|word| self.rarity(word))
            .collect();
        rarities.sort_by(|a, b| b.total_cmp(a));
        rarities.iter().take(4).sum()
    }

    /// Returns how alike two choices of a name are: the later one names the earlier one as replaced, or both have the
    /// same purpose and the later one has a word of change.
    fn likeness_of_names(&self, earlier: &Earlier, value: &str, later: &About) -> Option<f64> {
        let a = &earlier.about;
        let (a_key, b_key) = (a.key(), later.key());
        let shared: f64 = a_key.intersection(&b_key).map(|word| self.rarity(word)).sum();
        let count = a_key.intersection(&b_key).count();
        if later.before.contains(&earlier.value) && count >= 1 {
            return Some(100.0 + shared);
        }
        let is_alike = count >= 2 && shared >= lists::NAME_WEIGHT;
        let is_again = earlier.value == value && count >= 1;
        (is_again || (is_alike && later.manner.is_change)).then_some(shared)
    }
}

/// What two statements share.
struct Shared {
    /// How many words of their clauses.
    count: usize,
    /// The weight of these words without the units.
    weight: f64,
    /// The weight of these words as a share of all words of the clause that has fewer.
    share: f64,
    /// The weight of further words of their messages.
    beyond: f64,
}

/// Returns whether the units and modifiers of two statements allow that both are about the same thing.
fn are_comparable(a: &About, b: &About, a_key: &BTreeSet<&str>, b_key: &BTreeSet<&str>) -> bool {
    if b.unit.is_empty() {
        return match a.unit.is_empty() {
            // Two bare numbers: the word right before each must be the same.
            true => a.before.last().is_some() && a.before.last() == b.before.last(),
            false => b.manner.is_change && b.before.iter().any(|word| word == a.base()),
        };
    }
    let is_change = b.manner.is_change;
    let rates_fit = match (a.rate(), b.rate()) {
        (Some(one), Some(other)) => one == other,
        (Some(rate), None) => is_change || b_key.contains(rate),
        (None, Some(rate)) => is_change || a_key.contains(rate),
        (None, None) => true,
    };
    let one_has_other =
        |own: &BTreeSet<String>, key: &BTreeSet<&str>| own.iter().any(|word| key.contains(word.as_str()));
    let modifiers_fit = match (a.modifiers.is_empty(), b.modifiers.is_empty()) {
        (true, true) => true,
        (false, false) => a.modifiers.intersection(&b.modifiers).next().is_some(),
        (false, true) => is_change || one_has_other(&a.modifiers, b_key),
        (true, false) => one_has_other(&b.modifiers, a_key),
    };
    a.base() == b.base() && rates_fit && modifiers_fit
}

/// Returns whether `found` is enough for the statements to be about the same thing. The numbers are arbitrary: on chats
/// of users with an assistant, they find two of three updates of a value and few wrong ones.
fn admits(a: &About, b: &About, is_same_value: bool, found: &Shared) -> bool {
    let Shared { count, weight, share, beyond } = *found;
    let is_change = b.manner.is_change;
    let all = weight + 0.35 * beyond;
    if b.unit.is_empty() {
        return count >= 2 && (is_change || weight >= lists::BARE_WEIGHT);
    }
    if is_same_value {
        return count >= 3 && share >= 0.5;
    }
    if !is_change && (a.manner.is_bound || a.manner.is_goal != b.manner.is_goal) {
        return false;
    }
    match a.base() {
        "date" => is_change && b.manner.is_result && count >= 2 && all >= 6.0 && share >= 0.3,
        unit if lists::is_measure(unit) && is_change => {
            count >= 2 && all >= 6.0 && share >= 0.3 && b.manner.is_result
        }
        _ if is_change => (count >= 3 && all >= 3.5) || (count >= 2 && all >= 6.0),
        _ if !a.manner.is_own || !b.manner.is_own => false,
        unit if lists::is_measure(unit) => count >= 5 && weight >= 12.0 && share >= 0.7,
        _ => count >= 3 && weight >= 6.0 && share >= 0.4,
    }
}
