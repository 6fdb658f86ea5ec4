//! Measures a summary by the names, decisions and numbers that it keeps, relative to the most that sentences of the
//! sources can keep in the same number of tokens.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;
use super::reading::{Reading, roughly, spelling};
use super::sentences::sentences;
use super::words::{self, words};
use crate::tuning::summaries::{CITED_SHARE, DECISION_WORD, DENSE, FEW_NAMES, ON_TOPIC};

/// Returns the share of the names, decisions and numbers of `sources` that the summary keeps, from 0 to 1. It is 1 if
/// the summary keeps as many as the best sentences that fit into `max_tokens`.
///
/// An empty summary has 0. Words, names and numbers that the sources don't have lower the quality.
pub fn quality(summary: &str, sources: &[Source<'_>], max_tokens: usize) -> f64 {
    quality_beside(summary, sources, "", max_tokens)
}

/// Returns the [`quality`] of a summary that may also use words of `beside`. Such words don't lower the quality, and
/// their absence doesn't either.
pub(super) fn quality_beside(summary: &str, sources: &[Source<'_>], beside: &str, max_tokens: usize) -> f64 {
    let beside: BTreeSet<String> = words(beside).iter().map(|word| words::key(word.text)).collect();
    let reading = Reading::of(sources, "");
    let weights = weights(&reading);
    let best = attainable(&reading, &weights, (max_tokens as f64 * DENSE) as usize);
    let mut said: BTreeSet<u32> = BTreeSet::new();
    let (mut known, mut all) = (0.0, 0.0);
    let (mut named, mut invented) = (0.0, 0.0);
    for (place, word) in words(summary).into_iter().enumerate() {
        let key = words::key(word.text);
        let number = reading.numbers.get(&key);
        said.extend(number);
        if words::is_common(word.text, &key) {
            continue;
        }
        let is_speaker = sources.iter().take(1000).any(|source| source.speaker.contains(word.text));
        let is_found = number.is_some() || is_speaker || beside.contains(&key);
        all += 1.0;
        known += f64::from(u8::from(is_found));
        let is_capital =
            place > 0 && word.text.starts_with(char::is_uppercase) && !begins(summary, word.start);
        if words::has_digit(word.text) || is_capital || words::is_identifier(word.text) {
            named += 1.0;
            invented += f64::from(u8::from(!is_found));
        }
    }
    if all == 0.0 || best == 0.0 {
        return f64::from(u8::from(all > 0.0 && known / all >= ON_TOPIC));
    }
    // `sum` would give -0 if there are no floats to add, and answers would show it.
    let has: f64 = said.iter().map(|number| weights[*number as usize]).fold(0.0, |sum, weight| sum + weight);
    let on_topic = (known / all / ON_TOPIC).min(1.0);
    let honest = if named > 0.0 { 1.0 - invented / named } else { 1.0 };
    (has / best).min(1.0) * on_topic * honest
}

/// Returns the words with the highest weights that `sources` have and `summary` lacks, each in its most frequent
/// spelling.
pub(super) fn missing(summary: &str, sources: &[Source<'_>], max_tokens: usize) -> Vec<String> {
    let reading = Reading::of(sources, "");
    let weights = weights(&reading);
    let said: BTreeSet<u32> = words(summary)
        .iter()
        .filter_map(|word| reading.numbers.get(&words::key(word.text)).copied())
        .collect();
    let lacks = |number: &u32| weights[*number as usize] > 0.0 && !said.contains(number);
    let mut lacking: Vec<u32> = (0..weights.len() as u32).filter(lacks).collect();
    lacking.sort_by(|a, b| weights[*b as usize].total_cmp(&weights[*a as usize]).then(a.cmp(b)));
    // The model gets only as many words as an answer of that length has room for.
    lacking.truncate((max_tokens / 8).clamp(3, 20));
    lacking.into_iter().map(|number| spelling(&reading, number)).collect()
}

/// Finds for each sentence of `text` the sources that have most of its words, by weight. Returns the ordinals of these
/// sources, ascending.
pub fn cite(text: &str, sources: &[Source<'_>]) -> Vec<i64> {
    let reading = Reading::of(sources, "");
    let mut cited = BTreeSet::new();
    for (range, _) in sentences(text) {
        let said: BTreeSet<u32> = words(&text[range])
            .iter()
            .filter_map(|word| reading.numbers.get(&words::key(word.text)).copied())
            .collect();
        let mut shared: BTreeMap<usize, f64> = BTreeMap::new();
        for sentence in &reading.sentences {
            let common = sentence.words.iter().filter(|number| said.contains(number));
            let weight: f64 = common.map(|number| reading.words[*number as usize].weight).sum();
            if weight > 0.0 {
                *shared.entry(sentence.source).or_default() += weight;
            }
        }
        let most = shared.values().copied().fold(0.0, f64::max);
        // Cites every source that has nearly as much in common with the sentence as the best source has.
        cited.extend(
            shared
                .iter()
                .filter(|(_, weight)| **weight > CITED_SHARE * most)
                .map(|(place, _)| sources[*place].ordinal),
        );
    }
    cited.into_iter().collect()
}

/// Returns whether the word at `start` begins a sentence.
fn begins(text: &str, start: usize) -> bool {
    let before = text[..start].trim_end_matches(['"', '\'', '(', '“', '‘', '*', '-', '#', ' ']);
    before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n'])
}

/// Returns the weight of each word for the quality. The weight of names and numbers grows with the number of sentences
/// that have them; words of decisions have a small weight, and other words none. If there are few names and numbers,
/// every word has a weight.
fn weights(reading: &Reading<'_>) -> Vec<f64> {
    let often = |sentences: u32| (1.0 + f64::from(sentences)).ln();
    let of = |word: &super::reading::Word| if word.is_key() { often(word.sentences) } else { 0.0 };
    let mut weights: Vec<f64> = reading.words.iter().map(of).collect();
    for sentence in reading.sentences.iter().filter(|sentence| sentence.decides) {
        for number in &sentence.words {
            let weight = &mut weights[*number as usize];
            *weight = weight.max(DECISION_WORD);
        }
    }
    if weights.iter().sum::<f64>() < FEW_NAMES {
        weights = reading.words.iter().map(|word| often(word.sentences)).collect();
    }
    weights
}

/// Returns the total weight of the words in the best sentences that fit into `max_tokens`.
fn attainable(reading: &Reading<'_>, weights: &[f64], max_tokens: usize) -> f64 {
    let mut covered = vec![false; weights.len()];
    let mut left = max_tokens;
    let mut total = 0.0;
    let mut rated: std::collections::BinaryHeap<(u64, std::cmp::Reverse<usize>)> = Default::default();
    let gain = |place: usize, covered: &[bool]| -> f64 {
        let fresh = reading.sentences[place].words.iter().filter(|word| !covered[**word as usize]);
        fresh.map(|word| weights[*word as usize]).sum()
    };
    // Positive floats have the same order as their bits, read as integers.
    let rate = |place: usize, gain: f64| Reading::rate(gain, reading.sentences[place].text).to_bits();
    for place in 0..reading.sentences.len() {
        rated.push((rate(place, gain(place, &covered)), std::cmp::Reverse(place)));
    }
    while let Some((bits, std::cmp::Reverse(place))) = rated.pop() {
        let gained = gain(place, &covered);
        let now = rate(place, gained);
        let cost = roughly(reading.sentences[place].text);
        if gained <= 0.0 || cost > left {
            continue;
        }
        if now != bits {
            rated.push((now, std::cmp::Reverse(place)));
            continue;
        }
        left -= cost;
        total += gained;
        reading.sentences[place].words.iter().for_each(|word| covered[*word as usize] = true);
        if left == 0 {
            break;
        }
    }
    total
}
