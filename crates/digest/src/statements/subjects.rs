//! Decides which statements of a voice are about the same thing, which is called their subject.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{About, lists};
use tiro_base::memory::MemoryKey;

/// The statements of one voice, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub struct Subjects {
    stated: Vec<Told>,
    by_unit: HashMap<String, Vec<usize>>,
    /// The number of each word.
    numbers: HashMap<String, usize>,
    /// How many subjects contain each word. The index is the word's number.
    subjects_with: Vec<usize>,
    subjects: Vec<Subject>,
}

/// The place of a statement among the statements of its voice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The index of the statement, in the order in which the statements were made.
    pub place: usize,
    /// The index of the earlier statement about the same thing, if there is one.
    pub same_as: Option<usize>,
}

/// A thing that statements are about.
#[derive(Clone, Debug, Default)]
struct Subject {
    /// The indexes of its statements, in order.
    places: Vec<usize>,
    /// The numbers of its words.
    words: HashSet<usize>,
}

/// A statement, ready to be compared.
#[derive(Clone, Debug)]
struct Told {
    value: String,
    about: About,
    /// The memory that contains the statement. Statements of one memory are not compared.
    memory: MemoryKey,
    /// The numbers of the words of [`About::key`], in order.
    key: Vec<usize>,
    /// The numbers of all words of the statement's message, in order.
    words: Vec<usize>,
    /// The number of the word that names the unit. This word is not part of the topic.
    base: usize,
    /// The number of the statement's subject.
    subject: usize,
}

/// A new statement is compared with at most this many statements of a subject. Arbitrary.
const COMPARED: usize = 5;

/// A new statement is compared with at most this many of the latest statements with the same unit. Arbitrary: a
/// conversation has far fewer statements with one unit.
const COMPARABLE: usize = 500;

/// The number of subjects that are assumed in addition to the known subjects. Each word is assumed to occur in one
/// percent of these additional subjects. So the words of the first few statements don't all count as common. Arbitrary.
const ASSUMED: f64 = 100.0;

impl Subjects {
    /// Adds a statement. If `same_as` is given, the statement is about the same thing as the statement with this index,
    /// otherwise about something new. Returns its index.
    pub fn add(&mut self, value: String, about: About, memory: MemoryKey, same_as: Option<usize>) -> usize {
        let told = self.told(value, about, memory);
        self.push(told, same_as)
    }

    /// Adds a statement. If it is similar enough to earlier statements, it is about the same thing as the most similar
    /// one.
    pub fn compare(&mut self, value: String, about: About, memory: MemoryKey) -> Compared {
        let told = self.told(value, about, memory);
        let same_as = self.same(&told);
        Compared { place: self.push(told, same_as), same_as }
    }

    /// Returns the number of the subject of the statement at `place`.
    #[cfg(test)]
    pub fn subject(&self, place: usize) -> usize {
        self.stated[place].subject
    }

    fn told(&mut self, value: String, about: About, memory: MemoryKey) -> Told {
        let mut numbers = |words: BTreeSet<&str>| {
            let mut numbers: Vec<usize> = words.into_iter().map(|word| self.number(word)).collect();
            numbers.sort_unstable();
            numbers
        };
        let key = numbers(about.key());
        let words = numbers(about.key().into_iter().chain(about.rest.iter().map(String::as_str)).collect());
        let base = self.number(about.base());
        Told { value, about, memory, key, words, base, subject: 0 }
    }

    fn number(&mut self, word: &str) -> usize {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        self.subjects_with.push(0);
        self.numbers.insert(word.to_owned(), self.subjects_with.len() - 1);
        self.subjects_with.len() - 1
    }

    fn push(&mut self, mut told: Told, same_as: Option<usize>) -> usize {
        told.subject = same_as.map_or(self.subjects.len(), |place| self.stated[place].subject);
        if told.subject == self.subjects.len() {
            self.subjects.push(Subject::default());
        }
        let place = self.stated.len();
        let subject = &mut self.subjects[told.subject];
        subject.places.push(place);
        for word in &told.words {
            self.subjects_with[*word] += usize::from(subject.words.insert(*word));
        }
        self.by_unit.entry(told.about.base().to_owned()).or_default().push(place);
        self.stated.push(told);
        place
    }

    fn same(&self, told: &Told) -> Option<usize> {
        let alike = |place: usize| {
            let earlier = &self.stated[place];
            let is_other = earlier.memory != told.memory;
            let score = is_other.then(|| self.likeness(earlier, told)).flatten()?;
            Some((score, place))
        };
        let mut alike: Vec<(f64, usize)> =
            self.comparable(&told.about).into_iter().filter_map(alike).collect();
        // Among equally similar statements, the latest comes first.
        alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        alike.into_iter().map(|(_, place)| place).find(|place| self.is_of(*place, told))
    }

    /// Returns whether the new statement is similar to at least half of the latest statements of the subject of
    /// `place`. Without this check, a chain of similar statements could join different things.
    fn is_of(&self, place: usize, told: &Told) -> bool {
        let subject = &self.subjects[self.stated[place].subject];
        let others = subject.places.iter().rev().map(|place| &self.stated[*place]);
        let others: Vec<&Told> = others.filter(|each| each.memory != told.memory).take(COMPARED).collect();
        let alike = others.iter().filter(|each| self.likeness(each, told).is_some()).count();
        2 * alike >= others.len()
    }

    /// Returns the indexes of the latest statements that may be about the same thing, in order.
    fn comparable(&self, about: &About) -> Vec<usize> {
        let mut units: Vec<&str> = vec![about.base()];
        if about.unit.is_empty() {
            units.extend(about.before.iter().map(String::as_str));
            units.sort_unstable();
            units.dedup();
        }
        let latest = |places: &'_ Vec<usize>| places[places.len().saturating_sub(COMPARABLE)..].to_vec();
        let mut places: Vec<usize> =
            units.into_iter().filter_map(|unit| self.by_unit.get(unit)).flat_map(latest).collect();
        places.sort_unstable();
        places
    }

    /// Returns the rarity of a word. The fewer subjects contain the word, the higher is its rarity.
    fn rarity(&self, word: usize) -> f64 {
        let with = self.subjects_with[word] as f64;
        ((self.subjects.len() as f64 + ASSUMED + 1.0) / (with + ASSUMED / 100.0 + 0.5)).ln()
    }

    fn weight(&self, words: &[usize]) -> f64 {
        words.iter().map(|word| self.rarity(*word)).sum()
    }

    /// Returns the similarity of the statements if they are about the same thing; otherwise `None`.
    fn likeness(&self, earlier: &Told, later: &Told) -> Option<f64> {
        let (a, b) = (&earlier.about, &later.about);
        if a.unit == "name" {
            return self.likeness_of_names(earlier, later);
        }
        if a.manner.is_listed || b.manner.is_listed || b.manner.is_bound || !are_comparable(a, b) {
            return None;
        }
        let shared = common(&earlier.key, &later.key);
        let all = self.weight(&shared);
        let weight: f64 = shared
            .iter()
            .filter(|word| !is_base(**word, earlier, later))
            .map(|word| self.rarity(*word))
            .sum();
        let share = all / self.weight(&earlier.key).min(self.weight(&later.key)).max(f64::MIN_POSITIVE);
        let beyond = self.beyond(earlier, later, &shared);
        let found = Shared { count: shared.len(), weight, share, beyond };
        let is_same_value = earlier.value == later.value;
        admits(a, b, is_same_value, &found).then_some(share * (1.0 + all))
    }

    /// Returns the weight of the rarest words that the two messages share outside the clauses of the statements.
    fn beyond(&self, a: &Told, b: &Told, shared: &[usize]) -> f64 {
        let mut rarities: Vec<f64> = common(&a.words, &b.words)
            .into_iter()
            .filter(|word| shared.binary_search(word).is_err() && !is_base(*word, a, b))
            .map(|word| self.rarity(word))
            .collect();
        rarities.sort_by(|a, b| b.total_cmp(a));
        rarities.iter().take(4).sum()
    }

    /// Returns the similarity of two choices of a name. Returns `None` in all but two cases: the later choice names the
    /// earlier one as replaced, or both have the same purpose and the later choice contains a word of change.
    fn likeness_of_names(&self, earlier: &Told, later: &Told) -> Option<f64> {
        let shared = common(&earlier.key, &later.key);
        let weight = self.weight(&shared);
        if later.about.before.contains(&earlier.value) && !shared.is_empty() {
            return Some(100.0 + weight);
        }
        let is_alike = shared.len() >= 2 && weight >= lists::NAME_WEIGHT;
        let is_again = earlier.value == later.value && !shared.is_empty();
        (is_again || (is_alike && later.about.manner.is_change)).then_some(weight)
    }
}

/// Returns whether a word is the unit of one of the statements.
fn is_base(word: usize, a: &Told, b: &Told) -> bool {
    word == a.base || word == b.base
}

/// Returns the numbers that are in both lists. The lists and the result are sorted.
fn common(a: &[usize], b: &[usize]) -> Vec<usize> {
    a.iter().copied().filter(|number| b.binary_search(number).is_ok()).collect()
}

/// The words that two statements share.
struct Shared {
    /// The number of words that the clauses share.
    count: usize,
    /// The total weight of these words, without the units.
    weight: f64,
    /// The weight of these words, as a share of the weight of one clause: the clause with the lower weight.
    share: f64,
    /// The weight of other words that the messages share.
    beyond: f64,
}
/// Returns whether two statements can be about the same thing, judged by their units and modifiers.
fn are_comparable(a: &About, b: &About) -> bool {
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
        (Some(rate), None) => is_change || b.is_about(rate),
        (None, Some(rate)) => is_change || a.is_about(rate),
        (None, None) => true,
    };
    let one_has_other = |own: &BTreeSet<String>, other: &About| own.iter().any(|word| other.is_about(word));
    let modifiers_fit = match (a.modifiers.is_empty(), b.modifiers.is_empty()) {
        (true, true) => true,
        (false, false) => a.modifiers.intersection(&b.modifiers).next().is_some(),
        (false, true) => is_change || one_has_other(&a.modifiers, b),
        (true, false) => one_has_other(&b.modifiers, a),
    };
    a.base() == b.base() && rates_fit && modifiers_fit
}

/// Returns whether the statements share enough to be about the same thing. The numbers are arbitrary. On chats of users
/// with an assistant, they find two of three updates of a value, and few wrong updates.
fn admits(a: &About, b: &About, is_same_value: bool, found: &Shared) -> bool {
    let Shared { count, weight, share, beyond } = *found;
    let is_change = b.manner.is_change;
    let all = weight + 0.35 * beyond;
    if b.unit.is_empty() {
        return count >= 2 && share >= 0.4 && (is_change || weight >= lists::BARE_WEIGHT);
    }
    if is_same_value {
        return count >= 3 && share >= 0.5;
    }
    if !is_change && (a.manner.is_bound || a.manner.is_goal != b.manner.is_goal) {
        return false;
    }
    match a.base() {
        "date" => is_change && b.manner.is_result && count >= 2 && all >= 6.0 && share >= 0.4,
        unit if lists::is_measure(unit) && is_change => {
            count >= 2 && all >= 6.0 && share >= 0.4 && b.manner.is_result
        }
        _ if is_change => count >= 2 && all >= 6.0 && share >= 0.4,
        _ if !a.manner.is_own || !b.manner.is_own => false,
        unit if lists::is_measure(unit) => count >= 5 && weight >= 12.0 && share >= 0.7,
        _ => count >= 3 && weight >= 6.0 && share >= 0.4,
    }
}
