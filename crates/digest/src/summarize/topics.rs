//! Finds the topics of a conversation. A topic is a word that several messages contain.

use std::collections::HashSet;

use super::assisted::is_assisted;
use super::reading::{Reading, recurring, spelling};
use super::specificity::verbs_of_requests;
use super::word_keys;
use super::{Source, Topic};
use tiro_base::memory::Role;

/// Returns up to `most` topics of `sources`. Words that have a high weight and occur in many sources are preferred. If
/// a user speaks with an assistant, only words that the user also uses are returned.
pub fn topics(sources: &[Source<'_>], most: usize) -> Vec<Topic> {
    let mut reading = Reading::of(sources, "");
    if is_assisted(sources) {
        keep_asked(&mut reading, sources);
    }
    let topic = |(number, places): (u32, Vec<usize>)| Topic {
        name: spelling(&reading, number),
        ordinals: places.into_iter().map(|place| sources[place].ordinal).collect(),
    };
    recurring(&reading, most).into_iter().map(topic).collect()
}

/// Removes from all sentences the words that the user does not use, and the verbs of requests.
fn keep_asked(reading: &mut Reading, sources: &[Source<'_>]) {
    let asked = reading.sentences.iter().filter(|sentence| sources[sentence.source].role == Role::User);
    let asked: HashSet<u32> = asked.flat_map(|sentence| sentence.words.iter().copied()).collect();
    let verbs: HashSet<u32> =
        verbs_of_requests().filter_map(|verb| reading.numbers.get(&word_keys::key(verb)).copied()).collect();
    for sentence in &mut reading.sentences {
        sentence.words.retain(|word| asked.contains(word) && !verbs.contains(word));
    }
}
