//! The topics of a conversation: words that several messages have.

use std::collections::HashSet;

use super::cues::verbs_of_requests;
use super::exchanges::is_assisted;
use super::reading::{Reading, recurring, spelling};
use super::word_keys;
use super::{Source, Topic};
use tiro_base::memory::Role;

/// Returns up to `most` topics of `sources`. Prefers words that have a high weight and occur in many sources. If a user
/// speaks with an assistant, the user has these words, too.
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

/// Takes the words that the user does not have, and the verbs of requests, out of all sentences.
fn keep_asked(reading: &mut Reading, sources: &[Source<'_>]) {
    let asked = reading.sentences.iter().filter(|sentence| sources[sentence.source].role == Role::User);
    let asked: HashSet<u32> = asked.flat_map(|sentence| sentence.words.iter().copied()).collect();
    let verbs: HashSet<u32> =
        verbs_of_requests().filter_map(|verb| reading.numbers.get(&word_keys::key(verb)).copied()).collect();
    for sentence in &mut reading.sentences {
        sentence.words.retain(|word| asked.contains(word) && !verbs.contains(word));
    }
}
