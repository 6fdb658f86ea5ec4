//! Summarises a conversation in which all speakers count alike, or a text without speakers. The summary consists of the
//! sentences whose words are worth most for their tokens. Each word counts only in the first chosen sentence that
//! contains it.
//!
//! A rare word is worth more than a frequent word. Names, numbers and words that occur more than once are worth more
//! than others. When more sentences are chosen, the gain of the remaining sentences can only shrink. So the next best
//! sentence is found without computing all gains again (`evals summaries` compares this with TextRank and with the
//! first sentences).

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};

use super::reading::{Reading, Sentence, recurring, roughly, spelling};
use super::{Source, Summary};
use crate::tuning::summaries::{
    BRIEF_SENTENCES, LATE_IN_BRIEF, LEAST_OF_TOPIC, NUMBER_IN_BRIEF, SENTENCE_COST, SOURCES_FOR_TOPICS,
    TOKENS_FOR_TOPICS, TOPICS,
};
use tiro_base::memory::Level;
use tiro_base::times::day;

/// The number of rounds in which sentences are chosen. The first round reserves tokens for labels and spaces. Later
/// rounds use those reserved tokens that were not needed. Arbitrary.
const ROUNDS: usize = 3;

/// Choosing stops after this many sentences in a row that are too long for the remaining budget. Arbitrary: counting
/// their tokens takes time.
const MISFITS: usize = 200;

/// The maximum number of characters of a speaker's name that are shown. Arbitrary.
const LONGEST_NAME: usize = 40;

/// The heading of the sentences that belong to no topic.
const REST: &str = "…";

/// Returns sentences of `sources` in their order. Where the speaker changes, a new line begins with the speaker's name.
/// At [`Level::Brief`] there are at most two sentences, otherwise as many as fit into `max_tokens`. At
/// [`Level::Detailed`], each message begins a new line with the message's number, and each day has a heading. If there
/// are many sources, their sentences are grouped under the names of their topics, as far as there is room for the
/// names.
pub(super) fn talk(
    reading: &Reading,
    sources: &[Source<'_>],
    level: Level,
    max_tokens: usize,
    count: &dyn Fn(&str) -> usize,
) -> Summary {
    let mut choice = Choice::of(reading, sources, level);
    let by_topic =
        level == Level::Detailed && sources.len() >= SOURCES_FOR_TOPICS && max_tokens >= TOKENS_FOR_TOPICS;
    let topics = Topics::of(reading, if by_topic { TOPICS } else { 0 });
    let mut spent = 0;
    let mut chosen = Vec::new();
    for _ in 0..ROUNDS {
        let more = choice.choose(max_tokens - spent, count);
        if more.is_empty() {
            break;
        }
        chosen.extend(more);
        spent = loop {
            let spent = count(&render(sources, reading, &chosen, level, &topics).text);
            if spent <= max_tokens || chosen.pop().is_none() {
                break spent.min(max_tokens);
            }
        };
    }
    render(sources, reading, &chosen, level, &topics)
}

/// The state of choosing sentences.
struct Choice<'r> {
    reading: &'r Reading,
    /// The worth of each word. It counts only in the first chosen sentence that contains the word.
    weights: Vec<f64>,
    is_covered: Vec<bool>,
    /// The sentences that are not chosen yet, ordered by the rate that was last computed for each. The sentence with
    /// the highest rate is on top.
    heap: BinaryHeap<(Rate, Reverse<usize>)>,
    /// The speaker of each source; `None` if all sources have the same speaker.
    labels: Option<Vec<&'r str>>,
    has_label: BTreeSet<usize>,
    /// The number of sentences that may still be chosen.
    left: usize,
    is_brief: bool,
}

/// The gain of a sentence relative to its length.
#[derive(Clone, Copy, PartialEq)]
struct Rate(f64);

impl Eq for Rate {}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Rate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Rate) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl<'r> Choice<'r> {
    fn of(reading: &'r Reading, sources: &'r [Source<'r>], level: Level) -> Choice<'r> {
        let is_brief = level == Level::Brief;
        // Two sentences can't cover everything, so a brief summary prefers sentences with frequent words.
        let weight = |word: &super::reading::Word| match is_brief {
            true if word.has_digit => word.weight * NUMBER_IN_BRIEF,
            true => word.weight * (1.0 + f64::from(word.sentences)).ln(),
            false => word.weight,
        };
        let weights: Vec<f64> = reading.words.iter().map(weight).collect();
        let mut choice = Choice {
            reading,
            is_covered: vec![false; weights.len()],
            weights,
            heap: BinaryHeap::new(),
            labels: has_labels(sources).then(|| sources.iter().map(|source| source.speaker).collect()),
            has_label: BTreeSet::new(),
            left: if is_brief { BRIEF_SENTENCES } else { usize::MAX },
            is_brief,
        };
        let rated = reading.sentences.iter().enumerate();
        choice.heap = rated.map(|(place, each)| (choice.rate(each), Reverse(place))).collect();
        choice
    }

    fn rate(&self, sentence: &Sentence) -> Rate {
        let fresh = sentence.words.iter().filter(|word| !self.is_covered[**word as usize]);
        let gain = sentence.worth * fresh.map(|word| self.weights[*word as usize]).sum::<f64>();
        if !self.is_brief {
            return Rate(Reading::rate(gain, &sentence.text));
        }
        // Outcomes are mostly stated late in a conversation.
        let last = self.reading.sentences.last().map_or(0, |last| last.source).max(1);
        let late = 1.0 + LATE_IN_BRIEF * sentence.source as f64 / last as f64;
        Rate(late * gain / (roughly(&sentence.text) as f64 + SENTENCE_COST).sqrt())
    }

    /// Returns the best sentences that fit into `budget` more tokens, best first.
    fn choose(&mut self, mut budget: usize, count: &dyn Fn(&str) -> usize) -> Vec<usize> {
        let mut chosen = Vec::new();
        let mut too_long = Vec::new();
        let mut misfits = 0;
        while self.left > 0
            && budget > 0
            && misfits < MISFITS
            && let Some((rate, Reverse(place))) = self.heap.pop()
        {
            let sentence = &self.reading.sentences[place];
            let now = self.rate(sentence);
            if now != rate {
                self.heap.push((now, Reverse(place)));
                continue;
            }
            if now.0 <= 0.0 {
                // This is the best remaining sentence and it is worth nothing, so the others are worth nothing either.
                self.heap.push((now, Reverse(place)));
                break;
            }
            let label = match &self.labels {
                Some(labels) if !self.has_label.contains(&sentence.source) => {
                    count(labels[sentence.source]) + 2
                }
                _ => 0,
            };
            // A token has at most 128 bytes. If a sentence has more than 128 bytes for each token of the budget, it
            // doesn't fit, and its tokens need not be counted.
            let cost = match sentence.text.len() > budget * 128 {
                true => usize::MAX,
                false => count(&sentence.text) + 2 + label,
            };
            if cost > budget {
                too_long.push((now, Reverse(place)));
                misfits += 1;
                continue;
            }
            misfits = 0;
            budget -= cost;
            self.left -= 1;
            self.has_label.insert(sentence.source);
            sentence.words.iter().for_each(|word| self.is_covered[*word as usize] = true);
            chosen.push(place);
        }
        self.heap.extend(too_long);
        chosen
    }
}

fn has_labels(sources: &[Source<'_>]) -> bool {
    let first = sources.first().map_or("", |source| source.speaker);
    sources.iter().any(|source| source.speaker != first)
}

/// The topics, each of which is a word. A topic contains the number of the word, its spelling, and the indexes of the
/// sources that contain it.
struct Topics(Vec<(u32, String, Vec<usize>)>);

impl Topics {
    fn of(reading: &Reading, most: usize) -> Topics {
        let named = |(number, places)| (number, spelling(reading, number), places);
        Topics(recurring(reading, most).into_iter().map(named).collect())
    }

    /// Returns the chosen sentences in groups, each with its heading. The sentences of a group are in order, and the
    /// groups are in the order of their first sentences. If fewer than two groups would have a heading, returns a
    /// single group without a heading.
    fn groups(&self, reading: &Reading, chosen: &[usize]) -> Vec<(Option<&str>, Vec<usize>)> {
        let mut places = chosen.to_vec();
        places.sort_unstable();
        let mut of_topic: Vec<Vec<usize>> = vec![Vec::new(); self.0.len()];
        let mut rest = Vec::new();
        for place in &places {
            let sentence = &reading.sentences[*place];
            let has_word =
                |(number, ..): &(u32, String, Vec<usize>)| sentence.words.binary_search(number).is_ok();
            let has_source =
                |(_, _, sources): &(u32, String, Vec<usize>)| sources.binary_search(&sentence.source).is_ok();
            let topic = self.0.iter().position(has_word).or_else(|| self.0.iter().position(has_source));
            topic.map_or(&mut rest, |topic| &mut of_topic[topic]).push(*place);
        }
        let mut groups = Vec::new();
        for ((_, name, _), places) in self.0.iter().zip(of_topic) {
            match places.len() < LEAST_OF_TOPIC {
                true => rest.extend(places),
                false => groups.push((Some(name.as_str()), places)),
            }
        }
        if groups.len() < 2 {
            return vec![(None, places)];
        }
        groups.sort_by_key(|(_, places)| places[0]);
        rest.sort_unstable();
        if !rest.is_empty() {
            groups.push((Some(REST), rest));
        }
        groups
    }
}

/// Renders the chosen sentences in their order, grouped if there are topics.
fn render(
    sources: &[Source<'_>],
    reading: &Reading,
    chosen: &[usize],
    level: Level,
    topics: &Topics,
) -> Summary {
    let labels = has_labels(sources);
    let mut summary = Summary::default();
    for (head, places) in topics.groups(reading, chosen) {
        if let Some(head) = head {
            let before = if summary.text.is_empty() { "" } else { "\n\n" };
            summary.text += &format!("{before}{head}:\n");
        }
        let (mut speaking, mut said_on) = (None, String::new());
        for place in places {
            let sentence = &reading.sentences[place];
            let source = &sources[sentence.source];
            let today = day(source.time);
            if level == Level::Detailed && source.time != 0 && labels && today != said_on {
                start_line(&mut summary.text);
                summary.text += &today;
                summary.text.push('\n');
                (speaking, said_on) = (None, today);
            }
            let place = (level == Level::Detailed).then_some(source.ordinal);
            let is_new = labels && speaking != Some((source.speaker, place));
            if is_new {
                // The words of another speaker begin a new line, so that they can't be mistaken for those of the
                // previous speaker.
                start_line(&mut summary.text);
            }
            if is_new && level == Level::Detailed {
                summary.text += &format!("#{} ", source.ordinal);
            } else if !summary.text.is_empty() && !summary.text.ends_with('\n') {
                summary.text.push(' ');
            }
            if is_new && !source.speaker.is_empty() {
                summary.text += &name(source.speaker);
                summary.text += ": ";
            }
            speaking = Some((source.speaker, place));
            summary.text += &quote(sentence);
            summary.cited.push(source.ordinal);
        }
    }
    summary.cited.sort_unstable();
    summary.cited.dedup();
    summary
}

/// Returns a speaker's name in one line, shortened if it is long.
pub(super) fn name(speaker: &str) -> String {
    let mut line = String::new();
    push_in_a_line(&mut line, &speaker.chars().take(LONGEST_NAME).collect::<String>());
    line
}

/// Returns the text that quotes a sentence. A missing end mark is replaced by a full stop. If a later message corrected
/// the sentence, the number of that message is added.
pub(super) fn quote(sentence: &Sentence) -> String {
    let text = &sentence.text;
    let is_ended = text
        .ends_with(|c: char| !c.is_alphanumeric() && !matches!(c, ')' | ']' | '\'' | '`' | '"' | '+' | '%'));
    let is_spaceless = text.chars().next_back().is_some_and(super::word_keys::is_spaceless);
    let stop = if is_ended || is_spaceless { "" } else { "." };
    let corrected = sentence.corrected.map_or(String::new(), |by| format!(" [corrected in #{by}]"));
    format!("{text}{stop}{corrected}")
}

/// Ends the last line of `text`, if it has one.
pub(super) fn start_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Appends `text`, and replaces each run of white space in it by a single space.
fn push_in_a_line(to: &mut String, text: &str) {
    for (place, word) in text.split_whitespace().enumerate() {
        if place > 0 {
            to.push(' ');
        }
        *to += word;
    }
}
