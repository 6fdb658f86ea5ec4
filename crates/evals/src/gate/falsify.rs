//! Makes false summaries from true ones, each false in one way.

use std::collections::BTreeMap;

use crate::random::Random;
use crate::suite::Message;

/// A way in which a summary is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The words of each sentence are in a random order.
    ShuffledInSentences,
    /// The words of the whole text are in a random order, in sentences of the same lengths.
    Shuffled,
    /// It is the true summary of another session of the same project.
    AnotherSession,
    /// One of its sentences is replaced by one of another session's summary.
    SentenceOfAnother,
    /// Two speakers have exchanged their names, or the only one named has the name of another.
    SpeakersExchanged,
    /// The speakers have names that nobody in the conversation has.
    ForeignNames,
    /// One sentence has lost its negation.
    NegationDropped,
    /// One sentence has got a negation.
    NegationAdded,
    /// One number is another.
    NumberChanged,
    /// One month or day of the week is another.
    DateChanged,
    /// It is a list of the most frequent words of the conversation.
    Keywords,
    /// It is a list of the names and numbers in the conversation.
    Names,
    /// It is the first message of the conversation.
    FirstMessage,
    /// It ends after half of its text, within a sentence.
    CutInHalf,
}

impl Fault {
    /// Every way, in the order in which they are reported.
    pub const ALL: [Fault; 14] = [
        Fault::ShuffledInSentences,
        Fault::Shuffled,
        Fault::AnotherSession,
        Fault::SentenceOfAnother,
        Fault::SpeakersExchanged,
        Fault::ForeignNames,
        Fault::NegationDropped,
        Fault::NegationAdded,
        Fault::NumberChanged,
        Fault::DateChanged,
        Fault::Keywords,
        Fault::Names,
        Fault::FirstMessage,
        Fault::CutInHalf,
    ];

    /// Returns the name of the way in the report.
    pub fn name(self) -> &'static str {
        match self {
            Fault::ShuffledInSentences => "words shuffled within sentences",
            Fault::Shuffled => "words shuffled",
            Fault::AnotherSession => "another session's",
            Fault::SentenceOfAnother => "one sentence of another session's",
            Fault::SpeakersExchanged => "speakers exchanged",
            Fault::ForeignNames => "speakers with foreign names",
            Fault::NegationDropped => "a negation dropped",
            Fault::NegationAdded => "a negation added",
            Fault::NumberChanged => "a number changed",
            Fault::DateChanged => "a month or weekday changed",
            Fault::Keywords => "a list of keywords",
            Fault::Names => "a list of names and numbers",
            Fault::FirstMessage => "the first message copied",
            Fault::CutInHalf => "half of it, cut within a sentence",
        }
    }
}

/// Names that replace those of speakers.
const FOREIGN: [&str; 6] = ["Gregor", "Ingrid", "Fatima", "Bjorn", "Consuela", "Takeshi"];

/// Months and days of the week, each list in its order.
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Numbers in words that are changed like digits.
const COUNTS: [&str; 9] = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/// Verbs after which `not` makes a negation.
const AUXILIARIES: [&str; 15] = [
    "is", "are", "was", "were", "can", "could", "will", "would", "should", "has", "have", "had", "may",
    "might", "must",
];

/// Returns the texts that are false because of `fault`: none if the summary can't be falsified in this way. `other` is
/// the summary of another session.
pub fn falsify(
    fault: Fault,
    summary: &str,
    other: Option<&str>,
    messages: &[Message],
    random: &mut Random,
) -> Option<String> {
    let made = match fault {
        Fault::ShuffledInSentences => shuffled(summary, true, random),
        Fault::Shuffled => shuffled(summary, false, random),
        Fault::AnotherSession => other?.to_owned(),
        Fault::SentenceOfAnother => {
            let (mut own, others) = (sentences(summary), sentences(other?));
            let place = if own.len() > 1 { 1 + random.below(own.len() - 1) } else { return None };
            own[place] = *others.get(1 + random.below(others.len().max(2) - 1))?;
            own.join(" ")
        }
        Fault::SpeakersExchanged => exchanged(summary, messages)?,
        Fault::ForeignNames => {
            let mut text = summary.to_owned();
            for (speaker, foreign) in speakers(messages).iter().zip(FOREIGN) {
                text = text.replace(*speaker, foreign);
            }
            text
        }
        Fault::NegationDropped => each_sentence(summary, random, without_negation)?,
        Fault::NegationAdded => each_sentence(summary, random, |sentence, random| {
            let has = negation(sentence).is_some();
            if has { None } else { negated(sentence, messages, random) }
        })?,
        Fault::NumberChanged => number_changed(summary, random)?,
        Fault::DateChanged => date_changed(summary, random)?,
        Fault::Keywords => keywords(messages, false),
        Fault::Names => keywords(messages, true),
        Fault::FirstMessage => messages.first()?.text.clone(),
        Fault::CutInHalf => {
            let half = summary.floor_char_boundary(summary.len() / 2);
            let cut = summary[..half].rsplit_once(' ')?.0.trim_end_matches(['.', ',', '!', '?', ';']);
            cut.to_owned()
        }
    };
    (made != summary && !made.trim().is_empty()).then_some(made)
}

/// Returns the sentences of a text.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let ends = matches!(c, '.' | '!' | '?')
            && rest.starts_with(char::is_whitespace)
            && rest.trim_start().starts_with(char::is_uppercase);
        if ends {
            found.push(text[start..=at].trim());
            start = at + 1;
        }
    }
    found.push(text[start..].trim());
    found.retain(|sentence| !sentence.is_empty());
    found
}

fn shuffled(text: &str, within: bool, random: &mut Random) -> String {
    let sentences = sentences(text);
    let words = |sentence: &str| -> Vec<String> {
        let mut words: Vec<String> = sentence
            .split_whitespace()
            .map(|word| word.trim_matches(['.', ',', '!', '?', ';', ':']).to_owned())
            .filter(|word| !word.is_empty())
            .collect();
        // The first word of a sentence has its capital letter because of its place.
        if let Some(first) = words.first_mut()
            && COMMON_FIRST.contains(&first.to_lowercase().as_str())
        {
            *first = first.to_lowercase();
        }
        words
    };
    let mut groups: Vec<Vec<String>> = sentences.iter().map(|sentence| words(sentence)).collect();
    if within {
        groups.iter_mut().for_each(|group| shuffle(group, random));
    } else {
        let mut all: Vec<String> = groups.concat();
        shuffle(&mut all, random);
        let mut all = all.into_iter();
        groups = groups.iter().map(|group| all.by_ref().take(group.len()).collect()).collect();
    }
    let capital = |text: String| {
        let mut letters = text.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    };
    groups.iter().map(|group| capital(group.join(" ")) + ".").collect::<Vec<_>>().join(" ")
}

/// Words that are in lower case within a sentence.
const COMMON_FIRST: [&str; 24] = [
    "the",
    "they",
    "he",
    "she",
    "it",
    "a",
    "an",
    "in",
    "at",
    "on",
    "both",
    "finally",
    "then",
    "this",
    "their",
    "after",
    "during",
    "when",
    "while",
    "additionally",
    "initially",
    "throughout",
    "you",
    "as",
];

fn shuffle(words: &mut [String], random: &mut Random) {
    for place in (1..words.len()).rev() {
        words.swap(place, random.below(place + 1));
    }
}

/// Returns the names of the speakers, in the order in which they first speak.
fn speakers(messages: &[Message]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in messages.iter().filter_map(|message| message.speaker.as_deref()) {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn exchanged(summary: &str, messages: &[Message]) -> Option<String> {
    let mut named: Vec<(usize, &str)> =
        speakers(messages).into_iter().map(|name| (summary.matches(name).count(), name)).collect();
    named.sort_by_key(|(times, _)| std::cmp::Reverse(*times));
    let ((times, one), (_, other)) = (*named.first()?, *named.get(1)?);
    if times == 0 {
        return None;
    }
    Some(summary.replace(one, "\u{1}").replace(other, one).replace('\u{1}', other))
}

/// Applies `change` to a random sentence that it changes.
fn each_sentence(
    summary: &str,
    random: &mut Random,
    change: impl Fn(&str, &mut Random) -> Option<String>,
) -> Option<String> {
    let sentences = sentences(summary);
    let start = random.below(sentences.len().max(1));
    let mut places = (0..sentences.len()).map(|place| (place + start) % sentences.len());
    let (place, changed) = places.find_map(|place| Some((place, change(sentences[place], random)?)))?;
    let mut all: Vec<String> = sentences.into_iter().map(str::to_owned).collect();
    all[place] = changed;
    Some(all.join(" "))
}

/// Returns the first negation of the sentence and what replaces it.
fn negation(sentence: &str) -> Option<(&'static str, &'static str)> {
    [
        (" cannot ", " can "),
        (" won't ", " will "),
        (" can't ", " can "),
        ("n't ", " "),
        ("n’t ", " "),
        (" not ", " "),
        (" never ", " "),
        (" no ", " "),
        (" without ", " with "),
    ]
    .into_iter()
    .filter_map(|pair| Some((sentence.find(pair.0)?, pair)))
    .min()
    .map(|(_, pair)| pair)
}

fn without_negation(sentence: &str, _: &mut Random) -> Option<String> {
    let (negation, replacement) = negation(sentence)?;
    Some(sentence.replacen(negation, replacement, 1))
}

fn negated(sentence: &str, messages: &[Message], random: &mut Random) -> Option<String> {
    let words: Vec<&str> = sentence.split(' ').collect();
    let speakers = speakers(messages);
    let is_past = |word: &str| word.len() > 4 && word.ends_with("ed") && word.chars().all(char::is_lowercase);
    let is_subject = |word: &str| {
        ["He", "She", "They", "he", "she", "they", "you", "You", "who", "and"].contains(&word)
            || speakers.iter().any(|name| name.split(' ').next_back() == Some(word))
    };
    let mut places: Vec<(usize, &str)> = Vec::new();
    for (place, word) in words.iter().enumerate().skip(1) {
        if AUXILIARIES.contains(word) && words.get(place + 1).is_some_and(|next| *next != "to") {
            places.push((place + 1, "not"));
        } else if is_past(word) && is_subject(words[place - 1]) {
            places.push((place, "never"));
        }
    }
    if places.is_empty() {
        return None;
    }
    let (place, negation) = *random.pick(&places);
    let mut words = words;
    words.insert(place, negation);
    Some(words.join(" "))
}

fn number_changed(summary: &str, random: &mut Random) -> Option<String> {
    let mut places: Vec<(usize, usize, String)> = Vec::new();
    let mut start = 0;
    for word in summary.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        let lower = bare.to_lowercase();
        if let Some(digit) = bare.rfind(|c: char| c.is_ascii_digit()) {
            let value = u32::from(bare.as_bytes()[digit] - b'0');
            let other = (value + 1 + random.below(8) as u32) % 10;
            let other = if other == 0 && bare.len() == 1 { 9 - value } else { other };
            let changed = format!("{}{other}{}", &bare[..digit], &bare[digit + 1..]);
            places.push((start, start + bare.len(), changed));
        } else if let Some(place) = COUNTS.iter().position(|count| *count == lower) {
            let other = COUNTS[(place + 1 + random.below(COUNTS.len() - 1)) % COUNTS.len()];
            places.push((start, start + bare.len(), other.to_owned()));
        }
        start += word.len();
    }
    if places.is_empty() {
        return None;
    }
    let (start, end, changed) = random.pick(&places);
    Some(format!("{}{changed}{}", &summary[..*start], &summary[*end..]))
}

fn date_changed(summary: &str, random: &mut Random) -> Option<String> {
    let lists: [&[&str]; 2] = [&MONTHS, &DAYS];
    let mut found: Vec<(&str, &str)> = Vec::new();
    for list in lists {
        for (place, name) in list.iter().enumerate() {
            if summary.split(|c: char| !c.is_alphanumeric()).any(|word| word == *name) {
                found.push((name, list[(place + 1 + random.below(list.len() - 1)) % list.len()]));
            }
        }
    }
    if found.is_empty() {
        return None;
    }
    let (name, other) = *random.pick(&found);
    Some(summary.replacen(name, other, 1))
}

/// Returns the most frequent long words of the messages or, if `names` is true, their names and numbers.
fn keywords(messages: &[Message], names: bool) -> String {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for message in messages {
        let words = message.text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        for (place, word) in words.enumerate() {
            let is_name = word.starts_with(|c: char| c.is_ascii_digit())
                || (place > 0 && word.len() > 2 && word.starts_with(char::is_uppercase));
            let is_key = word.len() > 5 && word.chars().all(char::is_alphabetic);
            if if names { is_name } else { is_key } {
                *times.entry(word).or_default() += 1;
            }
        }
    }
    let mut words: Vec<(&str, usize)> = times.into_iter().collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let mut listed: Vec<&str> = if names { speakers(messages) } else { Vec::new() };
    listed.extend(words.iter().take(20).map(|(word, _)| *word));
    listed.dedup();
    listed.join(", ") + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages() -> Vec<Message> {
        let message = |speaker: &str, text: &str| Message {
            project: "p".into(),
            session: "s".into(),
            id: text.into(),
            speaker: Some(speaker.into()),
            role: "user".into(),
            time: None,
            text: text.into(),
        };
        vec![
            message("Ana", "We met Ben in Oslo on 3 May."),
            message("Ben", "The export failed twice in Oslo."),
        ]
    }

    const SUMMARY: &str = "Ana was in Oslo on 3 May. Ben's export did not work. They fixed it on Monday.";

    #[test]
    fn each_fault_changes_the_summary_as_it_says() {
        let made = |fault| {
            falsify(fault, SUMMARY, Some("It rained. Nobody came."), &messages(), &mut Random::new(3))
        };
        let swapped = "Ben was in Oslo on 3 May. Ana's export did not work. They fixed it on Monday.";
        assert_eq!(made(Fault::SpeakersExchanged).unwrap(), swapped);
        let dropped = "Ana was in Oslo on 3 May. Ben's export did work. They fixed it on Monday.";
        assert_eq!(made(Fault::NegationDropped).unwrap(), dropped);
        assert_eq!(made(Fault::NegationAdded).unwrap().matches(" not ").count(), 2);
        assert_eq!(made(Fault::CutInHalf).unwrap(), "Ana was in Oslo on 3 May. Ben's");
        assert_eq!(made(Fault::FirstMessage).unwrap(), messages()[0].text);
        for fault in Fault::ALL {
            let text = made(fault).unwrap_or_else(|| panic!("{fault:?}"));
            assert_ne!(text, SUMMARY, "{fault:?}");
        }
        let words = |text: &str| {
            let mut words: Vec<String> = text
                .split(|c: char| !c.is_alphanumeric() && c != '\'')
                .filter(|word| !word.is_empty())
                .map(str::to_lowercase)
                .collect();
            words.sort();
            words
        };
        assert_eq!(words(&made(Fault::Shuffled).unwrap()), words(SUMMARY));
        assert_eq!(words(&made(Fault::ShuffledInSentences).unwrap()), words(SUMMARY));
    }
}
