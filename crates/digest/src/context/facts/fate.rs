//! Follows what becomes of facts: a speaker takes a fact back, or later states its opposite or another choice.

use super::own::Stated;
use super::{Fact, Said, TakenBack};
use crate::statements::words::{has, words};
use std::collections::{BTreeMap, BTreeSet};

/// A speaker takes back only what they said in one of this many own messages before. Arbitrary.
const TAKEN_BACK_WITHIN: usize = 3;

/// Two opposite sentences share this percentage of the words of the longer one. Arbitrary.
const OPPOSITE: usize = 75;

/// A choice and the choice that replaces it share this percentage of the words of the shorter sentence. Arbitrary: in
/// "use A for the queue" and "use B for the queue instead", it is half of the words.
const REPLACED: usize = 50;

/// Words that reverse the meaning of a sentence.
const NEGATIONS: &str = "never not no don't dont doesn't won't can't cannot mustn't shouldn't against";

/// Words that show that a choice replaces another choice.
const REPLACES: &str = "instead actually correction";

/// Words that say nothing about the topic of a sentence.
const COMMON: &str = "a an the to of for in on at and or but we i you it is are be must should may can will
    shall always longer decided use using only that from now";

/// The facts that were found so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    facts: Vec<Held>,
    /// How many messages of each speaker were heard.
    heard: BTreeMap<String, usize>,
}

/// A fact and its speaker.
#[derive(Debug)]
struct Held {
    fact: Fact,
    /// The sentence that states the fact.
    claim: String,
    speaker: String,
    /// How many messages of the speaker came before the message of the fact.
    at: usize,
    /// Whether the message says nothing else.
    is_message: bool,
    fate: Fate,
}

/// What became of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Holds,
    /// A later fact replaced the fact.
    Superseded,
    /// The speaker took the fact back and stated nothing else.
    Gone,
}

impl Found {
    /// Adds what `message`, which `speaker` said or accepted, states. `taken_back` are the places of the facts that
    /// the message takes back.
    pub(super) fn add(
        &mut self,
        speaker: &str,
        message: &Said<'_>,
        stated: Vec<Stated>,
        mut taken_back: Vec<usize>,
    ) {
        let heard = self.heard.entry(speaker.to_owned()).or_default();
        *heard += 1;
        let at = *heard;
        for place in &taken_back {
            self.facts[*place].fate = Fate::Gone;
        }
        for Stated { kind, claim, text } in stated {
            taken_back.extend(self.facts.iter().enumerate().filter_map(|(place, held)| {
                let is_own = held.fate == Fate::Holds && held.speaker == speaker;
                (is_own && replaces(&claim, &held.claim)).then_some(place)
            }));
            let takes_back = taken_back.drain(..).map(|place| {
                self.facts[place].fate = Fate::Superseded;
                let Fact { kind, text, ordinal, .. } = &self.facts[place].fact;
                TakenBack {
                    kind: *kind,
                    text: text.clone(),
                    ordinal: *ordinal,
                    is_message: self.facts[place].is_message,
                }
            });
            let is_message = words(message.text) == words(&text);
            let ordinal = message.ordinal;
            let fact = Fact { kind, takes_back: takes_back.collect(), text, ordinal };
            let speaker = speaker.to_owned();
            self.facts.push(Held { fact, claim, speaker, at, is_message, fate: Fate::Holds });
        }
    }

    /// Returns the places of the facts that `speaker` takes back with `text`: the facts of their last message that
    /// stated something, or only those of them that the text names.
    pub(super) fn taken_back(&self, speaker: &str, text: &str) -> Vec<usize> {
        let from =
            (self.heard.get(speaker).copied().unwrap_or_default() + 1).saturating_sub(TAKEN_BACK_WITHIN);
        let own = |held: &&Held| held.speaker == speaker && held.fate == Fate::Holds && held.at >= from;
        let Some(last) = self.facts.iter().rev().find(own).map(|held| held.at) else { return Vec::new() };
        let of_message: Vec<usize> = (0..self.facts.len())
            .filter(|place| own(&&self.facts[*place]) && self.facts[*place].at == last)
            .collect();
        let topic = topic(text);
        let is_named = |place: &usize| !topic.is_disjoint(&self::topic(&self.facts[*place].fact.text));
        let named: Vec<usize> = of_message.iter().copied().filter(is_named).collect();
        if named.is_empty() { of_message } else { named }
    }

    /// Returns the facts that were not taken back without another fact in their place, in order.
    pub(super) fn facts(self) -> impl Iterator<Item = Fact> {
        self.facts.into_iter().filter(|held| held.fate != Fate::Gone).map(|held| held.fact)
    }
}

/// Returns whether a later sentence says the opposite of an earlier one, or replaces its choice.
fn replaces(later: &str, earlier: &str) -> bool {
    let (new, old) = (topic(later), topic(earlier));
    let shared = new.intersection(&old).count() * 100;
    let count = |text: &str, list: &str| words(text).iter().filter(|word| has(list, word)).count();
    let is_opposite = (count(later, NEGATIONS) + count(earlier, NEGATIONS)) % 2 == 1;
    let is_opposite = is_opposite && shared >= new.len().max(old.len()) * OPPOSITE;
    let is_replaced = count(later, REPLACES) > 0 && shared >= new.len().min(old.len()) * REPLACED;
    new.len() > 1 && !old.is_empty() && (is_opposite || is_replaced)
}

/// Returns the words of a sentence that say what it is about.
fn topic(text: &str) -> BTreeSet<String> {
    words(text)
        .into_iter()
        .filter(|word| !has(COMMON, word) && !has(NEGATIONS, word) && !has(REPLACES, word))
        .collect()
}
