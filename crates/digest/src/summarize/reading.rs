//! Divides sources into sentences and words, and determines the worth of each word.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::assisted::{is_assisted, is_step, last_part, retracts};
use super::word_keys::{self, words};
use super::{Corrected, Source};
use crate::statements::own_words::own_words;
use crate::tuning::summaries;
use tiro_base::memory::Role;
use tiro_text::blocks::{self, Form, is_boilerplate};

/// The maximum number of bytes that are read of all sources together. Reading them takes a third of a second. If the
/// sources have more bytes, only a part of each source is read, or some sources are skipped.
const MOST_BYTES: usize = 1 << 20;

/// The maximum number of bytes that are read of one source. Three quarters of them are read from its beginning, and one
/// quarter from its end. Arbitrary.
const MOST_OF_ONE: usize = 32 << 10;

/// The minimum number of bytes that are read of a source, unless the source is shorter. If there are too many sources
/// for this minimum, some sources are skipped. Arbitrary.
const LEAST_OF_ONE: usize = 200;

/// Words that begin a greeting, thanks or praise. A short sentence that begins with such a word is worth less.
const OPENINGS: &str = "hey hi hello wow thanks thank thx yeah yes yep yup bye goodbye good great awesome amazing cool \
    congrats congratulations sure absolutely definitely haha lol glad nice sounds ok okay right hola gracias bonjour \
    merci hallo danke ciao grazie olá obrigado obrigada привет спасибо hej tack cześć dzięki";

/// Words that refer to an earlier sentence. They count at the beginning of a sentence. At the end of a sentence they
/// count too, except for the words for persons. Without the earlier sentence, such a sentence says less or means
/// something else.
const REFERENCES: [&str; 9] = ["it", "its", "this", "that", "these", "those", "they", "he", "she"];

/// Greetings and thanks in scripts without spaces.
const SPACELESS_OPENINGS: [&str; 8] =
    ["你好", "谢谢", "謝謝", "ありがとう", "こんにちは", "お疲れ", "สวัสดี", "ขอบคุณ"];

/// Words that show that a sentence states a decision, a result or an open task.
const DECISIONS: &str = "decide decided decision agree agreed chose chosen choose conclude concluded conclusion must \
    deadline todo fix fixed because instead cause caused settled approved rejected confirmed plan plans planning \
    entschieden beschlossen einigten décidé choisi decidido acordamos elegido deciso решили решено решение 결정 決定 \
    决定 決め 採用 选择 ตัดสินใจ";

/// The sentences and words that were read from the sources.
pub(super) struct Reading {
    /// The sentences that can be quoted, in order.
    pub(super) sentences: Vec<Sentence>,
    /// The words. Other fields identify a word by its index in this list, which is called the word's number.
    pub(super) words: Vec<Word>,
    /// Maps the key of each word to its index in `words`.
    pub(super) numbers: HashMap<String, u32>,
    /// The number of sources that were not read in full.
    pub(super) unread: usize,
}

/// A sentence.
pub(super) struct Sentence {
    /// The index of the sentence's source.
    pub(super) source: usize,
    /// The text of the sentence.
    pub(super) text: String,
    /// The form of the sentence.
    pub(super) form: Form,
    /// Whether the sentence is a list item.
    pub(super) is_item: bool,
    /// The ordinal of the later source that corrected the sentence, if there is one.
    pub(super) corrected: Option<i64>,
    /// Whether the sentence has no content of its own, like thanks and offers of help.
    pub(super) is_boilerplate: bool,
    /// The numbers of the sentence's words that are not common, ascending and without duplicates.
    pub(super) words: Vec<u32>,
    /// The factor by which the worth of the sentence's words is multiplied.
    pub(super) worth: f64,
    /// Whether the sentence is in the last part of an assistant's message.
    pub(super) is_last: bool,
}

/// A word of the sources.
#[derive(Clone, Debug, Default)]
pub(super) struct Word {
    /// The number of sentences that contain the word.
    pub(super) sentences: u32,
    /// The number of times that the word occurs.
    times: u32,
    /// The number of times that the word is written as a name. Uses as the first word of a sentence are not counted.
    as_name: u32,
    /// Whether the word contains a digit.
    pub(super) has_digit: bool,
    /// Whether the word is the name of a speaker. The labels show this name anyway.
    is_speaker: bool,
    /// The worth of the word.
    pub(super) weight: f64,
}

impl Word {
    /// Returns whether the word is a name or a number, but not a speaker's name.
    pub(super) fn is_key(&self) -> bool {
        !self.is_speaker && (self.has_digit || (self.as_name > 0 && self.as_name * 2 >= self.times))
    }
}

impl Reading {
    /// Reads `sources`. Sentences with words of `focus` are worth more, and sentences without such words are worth
    /// less.
    pub(super) fn of(sources: &[Source<'_>], focus: &str) -> Reading {
        let mut reading =
            Reading { sentences: Vec::new(), words: Vec::new(), numbers: HashMap::new(), unread: 0 };
        // Common words count only if the sources have no other words.
        for keep_common in [false, true] {
            reading.read(sources, keep_common);
            if reading.sentences.iter().any(|sentence| !sentence.words.is_empty()) {
                break;
            }
        }
        for source in sources {
            for word in words(source.speaker) {
                if let Some(number) = reading.numbers.get(&word_keys::key(word.text)) {
                    reading.words[*number as usize].is_speaker = true;
                }
            }
        }
        reading.drop_taken_back(sources);
        // A person whose messages have this role has a name.
        let is_worthless = |sentence: &Sentence| {
            let source = &sources[sentence.source];
            let is_program = source.speaker.is_empty() || source.speaker == Role::Assistant.as_str();
            source.role == Role::Assistant && is_program && is_step(&sentence.text)
        };
        reading.sentences.iter_mut().filter(|each| is_worthless(each)).for_each(|each| each.worth = 0.0);
        let all = reading.sentences.len() as f64;
        for word in &mut reading.words {
            let rare = (1.0 + all / f64::from(word.sentences.max(1))).ln().sqrt();
            let again = if word.sentences > 1 { summaries::REPEATED } else { 1.0 };
            let name = if word.is_key() { summaries::NAME } else { 1.0 };
            word.weight = if word.is_speaker { 0.0 } else { rare * again * name };
        }
        reading.focus_on(focus);
        reading
    }

    fn read(&mut self, sources: &[Source<'_>], keep_common: bool) {
        *self = Reading { sentences: Vec::new(), words: Vec::new(), numbers: HashMap::new(), unread: 0 };
        let bytes: usize = sources.iter().map(|source| source.text.len().min(MOST_OF_ONE)).sum();
        let share = match bytes > MOST_BYTES {
            true => (MOST_BYTES / sources.len()).clamp(LEAST_OF_ONE, MOST_OF_ONE),
            false => MOST_OF_ONE,
        };
        let step = (sources.len() * share.min(bytes / sources.len().max(1))).div_ceil(MOST_BYTES).max(1);
        let openings: Vec<&str> = OPENINGS.split_whitespace().collect();
        let decisions: HashSet<String> = DECISIONS.split_whitespace().map(word_keys::key).collect();
        let last = sources.len().saturating_sub(1);
        let is_assisted = is_assisted(sources);
        for (place, source) in sources.iter().enumerate() {
            if place % step != 0 && place != last {
                self.unread += 1;
                continue;
            }
            let parts = parts(source.text, share);
            self.unread += usize::from(parts.len() > 1);
            let is_open = place == last;
            let pasted_from = match source.role {
                Role::User if !is_assisted => blocks::pasted_from(parts[0]).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            let last_part = match source.role {
                Role::Assistant => last_part(source.text),
                _ => usize::MAX,
            };
            let offset = |part: &str| part.as_ptr() as usize - source.text.as_ptr() as usize;
            let said = parts.into_iter().flat_map(|part| {
                quotable(part, source.role, is_assisted)
                    .into_iter()
                    .map(move |sentence| (offset(part), sentence))
            });
            for (offset, blocks::Sentence { text, form, is_item, range, .. }) in said {
                let range = offset + range.start..offset + range.end;
                let meets = |each: &&Corrected| each.range.start < range.end && range.start < each.range.end;
                let corrected = source.corrected.iter().find(meets).map(|each| each.by);
                let is_boilerplate = is_boilerplate(&text);
                let (words, decides) = self.words_of(&text, keep_common, &decisions);
                let decides = decides && form != Form::Question;
                let factor = match (is_boilerplate, decides) {
                    (true, _) => 0.0,
                    _ if corrected.is_some() => summaries::CORRECTED,
                    _ if range.start >= pasted_from => summaries::PASTED,
                    (_, true) => summaries::DECISION,
                    _ => 1.0,
                };
                let worth = worth(&text, form, is_open, &openings) * factor;
                self.sentences.push(Sentence {
                    source: place,
                    text,
                    form,
                    is_item,
                    corrected,
                    is_boilerplate,
                    words,
                    worth,
                    is_last: range.start >= last_part,
                });
            }
        }
    }

    /// Makes the sentences of a message of the assistant worth nothing if the assistant takes them back in its next
    /// message.
    fn drop_taken_back(&mut self, sources: &[Source<'_>]) {
        let answers: Vec<usize> =
            (0..sources.len()).filter(|place| sources[*place].role == Role::Assistant).collect();
        let takes_back: HashSet<usize> = (self.sentences.iter())
            .filter(|sentence| retracts(&sentence.text))
            .map(|sentence| sentence.source)
            .collect();
        let is_taken_back = |pair: &&[usize]| takes_back.contains(&pair[1]);
        let taken_back: HashSet<usize> =
            answers.windows(2).filter(is_taken_back).map(|pair| pair[0]).collect();
        for sentence in self.sentences.iter_mut().filter(|each| taken_back.contains(&each.source)) {
            sentence.worth = 0.0;
        }
    }

    /// Adds the words of a sentence. Returns the numbers of the words that are not common, ascending. Also returns
    /// whether any word shows that the sentence states a decision.
    fn words_of(&mut self, text: &str, keep_common: bool, decisions: &HashSet<String>) -> (Vec<u32>, bool) {
        let mut numbers = Vec::new();
        let mut decides = false;
        for (place, word) in words(text).into_iter().enumerate() {
            let key = word_keys::key(word.text);
            decides |= decisions.contains(&key);
            if !keep_common && word_keys::is_common(word.text, &key) {
                continue;
            }
            let next = self.words.len() as u32;
            let number = *self.numbers.entry(key).or_insert(next);
            if number == next {
                self.words.push(Word { has_digit: word_keys::has_digit(word.text), ..Word::default() });
            }
            let known = &mut self.words[number as usize];
            known.times += 1;
            let is_capital = word.text.starts_with(char::is_uppercase) && place > 0;
            known.as_name += u32::from(!word.is_pair && (is_capital || word_keys::is_identifier(word.text)));
            if !numbers.contains(&number) {
                numbers.push(number);
                known.sentences += 1;
            }
        }
        numbers.sort_unstable();
        (numbers, decides)
    }

    /// Makes sentences with words of `focus` worth more than the others. Changes nothing if no sentence contains such a
    /// word.
    fn focus_on(&mut self, focus: &str) {
        let wanted: Vec<u32> = words(focus)
            .iter()
            .map(|word| (word_keys::key(word.text), word.text))
            .filter(|(key, word)| !word_keys::is_common(word, key))
            .filter_map(|(key, _)| self.numbers.get(&key).copied())
            .collect();
        if wanted.is_empty() {
            return;
        }
        let has = |sentence: &Sentence| {
            wanted.iter().filter(|number| sentence.words.binary_search(number).is_ok()).count()
        };
        // If a source contains words of the focus, its other sentences count too, but less.
        let mut near: HashMap<usize, usize> = HashMap::new();
        for sentence in &self.sentences {
            *near.entry(sentence.source).or_default() += has(sentence);
        }
        let factors: Vec<f64> = self
            .sentences
            .iter()
            .map(|sentence| match (has(sentence), near[&sentence.source]) {
                (0, 0) => summaries::OFF_FOCUS,
                (0, _) => summaries::NEAR_FOCUS,
                (hits, _) => summaries::ON_FOCUS + hits as f64,
            })
            .collect();
        self.sentences.iter_mut().zip(factors).for_each(|(sentence, factor)| sentence.worth *= factor);
    }

    /// Returns the gain of a sentence relative to its length. Sentences are compared by this value.
    pub(super) fn rate(gain: f64, text: &str) -> f64 {
        gain / (roughly(text) as f64 + summaries::SENTENCE_COST)
    }
}

/// Returns the parts of `text` that are read. This is all of it if it has at most `most` bytes, otherwise its beginning
/// and its end.
fn parts(text: &str, most: usize) -> Vec<&str> {
    if text.len() <= most {
        return vec![text];
    }
    let first = &text[..text.floor_char_boundary(most / 4 * 3)];
    let last = &text[text.ceil_char_boundary(text.len() - most / 4)..];
    // A part begins and ends at the border of a line or a sentence, unless the part has only one line or sentence.
    let end = first.rfind('\n').or_else(|| first.rfind(". ").map(|stop| stop + 1));
    let begin = last.find('\n').or_else(|| last.find(". ").map(|stop| stop + 1));
    vec![end.map_or(first, |end| &first[..end]), begin.map_or(last, |begin| &last[begin + 1..])]
}

/// Returns the sentences and list items that can be quoted from a message, and the message's asides. A tool's output
/// and a client's instructions contain none. From a message to an assistant, only the user's own words are returned.
fn quotable(text: &str, role: Role, is_assisted: bool) -> Vec<blocks::Sentence> {
    match role {
        Role::User if is_assisted => own_words(text),
        Role::User | Role::Assistant => blocks::quotable(text),
        Role::Tool | Role::System => Vec::new(),
    }
}

/// Returns the factor by which the worth of a sentence's words is multiplied. The factor depends on the form of the
/// sentence and on its first words.
fn worth(text: &str, form: Form, is_open: bool, openings: &[&str]) -> f64 {
    let form = match form {
        Form::Statement | Form::Introduction => 1.0,
        // A question in the last message has no answer yet, so it counts more.
        Form::Question if is_open => summaries::OPEN_QUESTION,
        Form::Question => summaries::QUESTION,
        Form::Aside => summaries::ASIDE,
    };
    let mut spoken = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = spoken.next().unwrap_or_default().to_lowercase();
    let opens = openings.contains(&first.as_str());
    let last = text.rsplit(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or_default();
    let refers =
        REFERENCES.contains(&first.as_str()) || matches!(last, "it" | "this" | "that" | "these" | "them");
    let is_fragment = spoken.next().is_none() && !text.chars().any(word_keys::is_spaceless);
    let is_short = spoken.nth(5).is_none();
    if text.len() < 40 && SPACELESS_OPENINGS.iter().any(|opening| text.starts_with(opening)) {
        return 0.0;
    }
    let alone = match () {
        () if is_fragment => summaries::FRAGMENT,
        () if opens && is_short => summaries::GREETING,
        () if refers => summaries::REFERENCE,
        () => 1.0,
    };
    form * alone
}

/// Estimates the number of tokens of `text`, without a tokenizer. The estimate is precise enough to compare sentences.
pub(super) fn roughly(text: &str) -> usize {
    let (mut tokens, mut run) = (0, 0);
    for c in text.chars() {
        if word_keys::is_spaceless(c) {
            (tokens, run) = (tokens + 1, 0);
        } else if c.is_alphanumeric() {
            run += c.len_utf8();
            tokens += usize::from(run % 8 == 1 || run == c.len_utf8());
        } else {
            run = 0;
            tokens += usize::from(!c.is_whitespace());
        }
    }
    tokens
}

/// Returns up to `most` words that several sources contain. Each word is returned as its number, with the indexes of
/// its sources.
pub(super) fn recurring(reading: &Reading, most: usize) -> Vec<(u32, Vec<usize>)> {
    let mut places: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for sentence in &reading.sentences {
        for number in &sentence.words {
            let known = &reading.words[*number as usize];
            if known.sentences >= 2 && !known.is_speaker && !known.has_digit {
                let places = places.entry(*number).or_default();
                if places.last() != Some(&sentence.source) {
                    places.push(sentence.source);
                }
            }
        }
    }
    let mut found: Vec<(f64, u32, Vec<usize>)> = places
        .into_iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(number, places)| (reading.words[number as usize].weight * places.len() as f64, number, places))
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    found.truncate(most);
    found.into_iter().map(|(_, number, places)| (number, places)).collect()
}

/// Returns the most frequent spelling of a word. If several are equally frequent, returns the first of them.
pub(super) fn spelling(reading: &Reading, number: u32) -> String {
    let mut spellings: Vec<(&str, usize)> = Vec::new();
    for sentence in reading.sentences.iter().filter(|each| each.words.binary_search(&number).is_ok()).take(50)
    {
        for word in words(&sentence.text) {
            if reading.numbers.get(&word_keys::key(word.text)) == Some(&number) {
                match spellings.iter_mut().find(|(known, _)| *known == word.text) {
                    Some((_, times)) => *times += 1,
                    None => spellings.push((word.text, 1)),
                }
            }
        }
    }
    let most = spellings.iter().map(|(_, times)| *times).max();
    let first = spellings.into_iter().find(|(_, times)| Some(*times) == most);
    first.map_or(String::new(), |(word, _)| word.to_owned())
}
