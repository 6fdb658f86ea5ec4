//! How good a summary is, as far as that can be told without reading: what it has of the names, decisions and numbers,
//! beside the most that as many tokens can have.

use std::collections::{BTreeMap, BTreeSet};

use super::Source;
use super::reading::{Reading, roughly, spelling};
use super::sentences::sentences;
use super::words::{self, words};

/// The share of a summary's words that its sources have, below which it speaks of something else. A model that puts
/// things in its own words keeps well above half of them; arbitrary beyond that.
const ON_TOPIC: f64 = 0.5;

/// How much more words count in a sentence that tells a decision.
const DECISION: f64 = 0.3;

/// The share of the tokens in which the most is counted: prose needs some to hold names together, and to say who spoke.
const DENSE: f64 = 0.8;

/// Returns how much `summary` has of the names, decisions and numbers in `sources`, 0 to 1, where 1 is what a choice of
/// their sentences in `max_tokens` can have.
///
/// 0 for an empty one; less for one that speaks of other things, or has names and numbers that the sources don't.
pub fn quality(summary: &str, sources: &[Source<'_>], max_tokens: usize) -> f64 {
    quality_beside(summary, sources, "", max_tokens)
}

/// Returns [`quality`] where the words of `beside` may be told too, but needn't.
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
    // An empty sum of floats is -0, which would be shown.
    let has: f64 = said.iter().map(|number| weights[*number as usize]).fold(0.0, |sum, weight| sum + weight);
    let on_topic = (known / all / ON_TOPIC).min(1.0);
    let honest = if named > 0.0 { 1.0 - invented / named } else { 1.0 };
    (has / best).min(1.0) * on_topic * honest
}

/// Returns some of what counts most in `sources` and isn't in `summary`, as it is written there.
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
    // As many as there is room to name.
    lacking.truncate((max_tokens / 8).clamp(3, 20));
    lacking.into_iter().map(|number| spelling(&reading, number)).collect()
}

/// Returns the ordinals of the sources that the sentences of `text` have most words of, ascending.
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
        // A sentence may have two sources that say as much; a word in common is no source.
        cited.extend(
            shared
                .iter()
                .filter(|(_, weight)| **weight > 0.7 * most)
                .map(|(place, _)| sources[*place].ordinal),
        );
    }
    cited.into_iter().collect()
}

/// Tells whether the word at `start` begins a sentence.
fn begins(text: &str, start: usize) -> bool {
    let before = text[..start].trim_end_matches(['"', '\'', '(', '“', '‘', '*', '-', '#', ' ']);
    before.is_empty() || before.ends_with(['.', '!', '?', ':', '\n'])
}

/// Returns what each word counts: names and numbers by how often they come, words of decisions a little, others
/// nothing; all of them where there are neither.
fn weights(reading: &Reading<'_>) -> Vec<f64> {
    let often = |sentences: u32| (1.0 + f64::from(sentences)).ln();
    let of = |known: &super::reading::Known| if known.is_key() { often(known.sentences) } else { 0.0 };
    let mut weights: Vec<f64> = reading.words.iter().map(of).collect();
    for sentence in reading.sentences.iter().filter(|sentence| sentence.decides) {
        for number in &sentence.words {
            let weight = &mut weights[*number as usize];
            *weight = weight.max(DECISION);
        }
    }
    if weights.iter().sum::<f64>() < 3.0 {
        weights = reading.words.iter().map(|known| often(known.sentences)).collect();
    }
    weights
}

/// Returns what the best sentences for `max_tokens` have together.
fn attainable(reading: &Reading<'_>, weights: &[f64], max_tokens: usize) -> f64 {
    let mut covered = vec![false; weights.len()];
    let mut left = max_tokens;
    let mut total = 0.0;
    let mut rated: std::collections::BinaryHeap<(u64, std::cmp::Reverse<usize>)> = Default::default();
    let gain = |place: usize, covered: &[bool]| -> f64 {
        let fresh = reading.sentences[place].words.iter().filter(|word| !covered[**word as usize]);
        fresh.map(|word| weights[*word as usize]).sum()
    };
    // A rate above 0 orders like its bits.
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
