//! Makes the texts for the indexes from a piece of text, its speaker, its date and the words around it.
//!
//! On real conversations, adding the speaker and the date to the index raised recall at 10 from 53% to 64%, and adding
//! the words of neighbouring turns raised it further, to 78%. So a row of the text index has a header, the text, and
//! its context at half weight. The embedded text has a header but no context, because the words of neighbours make
//! vectors less specific. The same memory always gives the same bytes.

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::tuning::NEIGHBOUR_WORDS;
use crate::words::{self, Language};
use tiro_base::memory::{Draft, Group, Kind, Millis, Role};

/// The version of the rows of the text index. The version is increased when rows get additional words.
pub const VERSION: i64 = 3;

/// The maximum number of bytes of a neighbouring turn that count as context. The limit has an effect only if the words
/// of the turn are long or the turn has no spaces. Arbitrary: twice the length of 80 words of code.
const NEIGHBOUR_BYTES: usize = 1024;

/// The maximum number of bytes of the context of a row: room for four neighbours.
const CONTEXT_BYTES: usize = 4 * (NEIGHBOUR_BYTES + 1);

/// How many of the first pieces of a text are indexed with their context. Arbitrary: most texts have fewer pieces. If
/// all pieces of a long text had context, the index would be many times as large as the text.
pub const WITH_CONTEXT: i64 = 16;

/// About how many bytes each kind of added words may add to a text. The kinds are parts of identifiers, exact forms of
/// identifiers, stems with pairs of characters, and characters with emoji. Arbitrary: this bounds the cost of hostile text.
const SPLIT_BYTES: usize = 4096;

/// An identifier with more parts than this is not divided. Arbitrary: a word with that many parts is base64 or
/// noise, whose parts would double the size of the index.
const MOST_PARTS: usize = 8;

/// The properties of a memory that the indexes contain.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The role of the speaker.
    pub role: Option<Role>,
    /// The speaker's or author's name.
    pub speaker: Option<&'a str>,
    /// Its title.
    pub title: Option<&'a str>,
    /// The tag of the memory.
    pub topic: Option<&'a str>,
    /// The file that it is about.
    pub path: Option<&'a str>,
    /// When it was made.
    pub time: Millis,
}

/// A row of the text index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexText {
    /// The speaker. The speaker has a separate column with a low weight, because a name is often a rare word and would
    /// otherwise outweigh the other words.
    pub speaker: String,
    /// The date and the tag.
    pub header: String,
    /// The text, with the added words: parts and exact forms of its identifiers, stems, and pairs of characters.
    pub text: String,
    /// The words around the piece.
    pub context: String,
}

impl About<'_> {
    /// Returns the row of the text index for `piece`. `context` is the text around the piece; its first 4 KB are
    /// indexed.
    pub fn indexed(&self, piece: &str, context: &str) -> IndexText {
        let topic = self.topic.map(|topic| format!(" {topic}")).unwrap_or_default();
        let paths = self.path.map(|path| format!(" {path}")).unwrap_or_default();
        let context = &context[..context.floor_char_boundary(CONTEXT_BYTES)];
        IndexText {
            speaker: self.name().to_owned(),
            header: date(self.time) + &topic,
            text: with_exact_forms(piece),
            context: context_with_parts(&format!("{context}{paths}")),
        }
    }

    /// Returns the text to embed for `piece`.
    pub fn embedded(&self, piece: &str) -> String {
        match self.kind.group() {
            Group::Message => format!("[{}] {}: {piece}", date(self.time), self.name()),
            Group::Commit => piece.to_owned(),
            _ => match self.title.or(self.topic) {
                Some(title) => format!("{title}: {piece}"),
                None => piece.to_owned(),
            },
        }
    }

    fn name(&self) -> &str {
        self.speaker.or(self.role.map(Role::as_str)).unwrap_or_default()
    }
}

impl<'a> From<&'a Draft> for About<'a> {
    fn from(draft: &'a Draft) -> About<'a> {
        About {
            kind: draft.kind,
            role: draft.role,
            speaker: draft.speaker.as_deref(),
            title: draft.title.as_deref(),
            topic: draft.topic.as_deref(),
            path: draft.path.as_deref(),
            time: draft.time,
        }
    }
}

/// Returns the context that consists of the words of the neighbouring turns `turns`, in their order.
pub fn neighbours<'t>(turns: impl Iterator<Item = &'t str>) -> String {
    let mut context = String::new();
    for turn in turns {
        let turn = turn.trim_start();
        let turn = &turn[..turn.floor_char_boundary(NEIGHBOUR_BYTES)];
        let end = turn.split_whitespace().nth(NEIGHBOUR_WORDS).map_or(turn.len(), |word| {
            // Each word is a slice of the turn, so the difference of the two addresses is the word's offset in the
            // turn.
            word.as_ptr() as usize - turn.as_ptr() as usize
        });
        context.push_str(turn[..end].trim_end());
        context.push('\n');
    }
    context
}

/// Returns the date of a time in UTC, such as `8 May 2023`.
fn date(time: Millis) -> String {
    let Ok(timestamp) = Timestamp::from_millisecond(time) else { return String::new() };
    timestamp.to_zoned(TimeZone::UTC).strftime("%-d %B %Y").to_string()
}

/// Returns whether a row for `piece` with `context` has words that an earlier version of the index lacked: exact forms
/// of identifiers, stems, pairs of characters, characters, emoji, or the parts of quantities.
pub fn is_outdated(piece: &str, context: &str) -> bool {
    let mut added = String::new();
    push_exact_forms(&mut added, piece);
    push_words_of_language(&mut added, piece);
    let context = &context[..context.floor_char_boundary(CONTEXT_BYTES)];
    context.lines().for_each(|turn| push_words_of_language(&mut added, turn));
    let words = || [piece, context].into_iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
    !added.is_empty() || words().any(|word| words::quantity(word).is_some())
}

/// Returns `text` followed by the words that [`with_parts`] adds, and by the exact forms of its identifiers.
fn with_exact_forms(text: &str) -> String {
    let mut extra = String::new();
    push_exact_forms(&mut extra, text);
    with_parts(text) + &extra
}

/// Returns `text` followed by the parts of its camel-case identifiers and quantities, and the joined forms of its
/// hyphenated identifiers. If the text is not in English, its stems and pairs of characters are added too. So a search for
/// `client` finds `HttpClient`, and a search for `squeezeblank` finds `squeeze-blank`. Parts at punctuation need not be
/// added, because FTS5 itself splits there.
pub fn with_parts(text: &str) -> String {
    let mut extra = String::new();
    push_parts(&mut extra, text);
    push_words_of_language(&mut extra, text);
    if extra.is_empty() { text.to_owned() } else { format!("{text}\n{extra}") }
}

/// Returns `context` followed by the words that [`with_parts`] adds. Each turn is on a line, and may be in another
/// language than the other turns.
fn context_with_parts(context: &str) -> String {
    let mut extra = String::new();
    push_parts(&mut extra, context);
    context.lines().for_each(|turn| push_words_of_language(&mut extra, turn));
    if extra.is_empty() { context.to_owned() } else { format!("{context}\n{extra}") }
}

/// Appends the exact forms of the identifiers of `text`.
fn push_exact_forms(extra: &mut String, text: &str) {
    let most = extra.len() + SPLIT_BYTES;
    words::exact_forms(text, |identifier| {
        if extra.len() < most {
            extra.push(' ');
            extra.push_str(&words::exact(identifier));
        }
    });
}

/// Appends the stems of `text` if it is in another language than English, its pairs of characters and its characters if
/// it is in Chinese, Japanese or Korean, and its emoji.
fn push_words_of_language(extra: &mut String, text: &str) {
    let most = extra.len() + SPLIT_BYTES;
    let language = Language::of(text);
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if extra.len() > most {
            break;
        }
        if let Some(stem) = language.and_then(|language| language.stem(&word.to_lowercase())) {
            extra.push(' ');
            extra.push_str(&stem);
        }
        if word.contains(words::is_cjk) {
            push_pairs(extra, word);
        }
    }
    let most = extra.len() + SPLIT_BYTES;
    let mut added = HashSet::new();
    let characters = words::characters(text).map(String::from);
    let signs = words::signs(text).map(|sign| words::exact(sign.encode_utf8(&mut [0; 4])));
    for word in characters.chain(signs) {
        if extra.len() > most {
            break;
        }
        if added.insert(word.clone()) {
            extra.push(' ');
            extra.push_str(&word);
        }
    }
}

/// Appends the pairs of characters of a word in Chinese, Japanese or Korean, and its parts in other scripts.
fn push_pairs(extra: &mut String, word: &str) {
    for (script, part) in words::scripts(word) {
        let is_single = part.chars().nth(1).is_none();
        match script {
            None => {
                extra.push(' ');
                extra.push_str(part);
            }
            // A single character that is a word is added with the others.
            Some(_) if is_single => {}
            Some(_) => {
                for pair in words::pairs(part).take(SPLIT_BYTES / 8) {
                    extra.push(' ');
                    extra.push_str(pair);
                }
            }
        }
    }
}

/// Appends the parts of camel-case identifiers and the joined forms of hyphenated ones.
fn push_parts(extra: &mut String, text: &str) {
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')) {
        if extra.len() > SPLIT_BYTES {
            break;
        }
        for identifier in word.split(['-', '_']) {
            push_camel_parts(extra, identifier);
        }
        let joins = word.trim_matches(['-', '_']).contains(['-', '_']);
        if joins && word.len() <= 64 {
            extra.push(' ');
            extra.extend(word.chars().filter(|c| c.is_alphanumeric()));
        }
    }
}

/// Appends the parts of a camel-case identifier or a quantity, if it has more than one part.
fn push_camel_parts(extra: &mut String, identifier: &str) {
    if let Some((number, unit)) = words::quantity(identifier) {
        extra.extend([" ", number, " ", unit]);
        return;
    }
    if identifier.len() > 64 || !identifier.is_ascii() {
        return;
    }
    let bytes = identifier.as_bytes();
    let starts_part = |at: usize| {
        let (before, here) = (bytes[at - 1], bytes[at]);
        let next_is_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        here.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit() || next_is_lower)
    };
    if (1..bytes.len()).filter(|at| starts_part(*at)).count() >= MOST_PARTS {
        return;
    }
    let mut start = 0;
    for at in 1..=bytes.len() {
        if at == bytes.len() && start == 0 {
            return;
        }
        if at == bytes.len() || starts_part(at) {
            extra.push(' ');
            extra.push_str(&identifier[start..at]);
            start = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(kind: Kind) -> About<'static> {
        About {
            kind,
            role: Some(Role::User),
            speaker: Some("Ines"),
            title: None,
            topic: None,
            path: None,
            time: 1_683_554_160_000,
        }
    }

    #[test]
    fn a_message_is_found_by_speaker_date_and_neighbours() {
        let row =
            about(Kind::Message).indexed("It was great.", &neighbours(["How was the trip?"].into_iter()));
        assert_eq!((row.speaker.as_str(), row.header.as_str()), ("Ines", "8 May 2023"));
        assert_eq!(row.text, "It was great.");
        assert_eq!(row.context, "How was the trip?\n");
        assert_eq!(about(Kind::Message).embedded("It was great."), "[8 May 2023] Ines: It was great.");
    }

    #[test]
    fn identifiers_are_found_by_their_parts_and_joined() {
        assert_eq!(
            with_parts("HttpClient and XMLParser2Go"),
            "HttpClient and XMLParser2Go\n Http Client XML Parser2 Go"
        );
        assert_eq!(with_parts("--squeeze-blank"), "--squeeze-blank\n squeezeblank");
        assert_eq!(with_parts("aB1Cd2Ef3Gh4Ij5Kl6Mn7Op8"), "aB1Cd2Ef3Gh4Ij5Kl6Mn7Op8", "base64 has no parts");
        assert_eq!(with_parts("plain words, nothing else"), "plain words, nothing else");
    }

    #[test]
    fn the_text_has_exact_forms_stems_and_pairs_and_the_context_has_no_exact_forms() {
        let row = about(Kind::Message).indexed("NO_COLOR", "see NO_COLOR");
        assert_eq!(row.text, format!("NO_COLOR\n NOCOLOR {}", words::exact("NO_COLOR")));
        assert_eq!(row.context, "see NO_COLOR\n NOCOLOR");
        let german = with_parts("Wir haben die Sicherungen verschlüsselt");
        let stem = Language::German.stem("sicherung").unwrap();
        assert!(german.contains(&format!(" {stem}")), "{german}");
        assert_eq!(with_parts("argon2做哈希"), "argon2做哈希\n argon2 做哈 哈希 做 哈 希");
        assert_eq!(with_parts("PDFを読む"), "PDFを読む\n PDF 読");
        assert_eq!(with_parts("at most 8MB"), "at most 8MB\n 8 MB");
        assert_eq!(with_parts("🚢 twice 🚢"), format!("🚢 twice 🚢\n {}", words::exact("🚢")));
        assert!(is_outdated("NO_COLOR", "") && is_outdated("", "缓存") && !is_outdated("plain", "words"));
    }

    #[test]
    fn a_long_text_of_identifiers_or_ideographs_adds_a_bounded_number_of_words() {
        let bounded = |text: String| with_exact_forms(&text).len() - text.len();
        assert!(bounded("NO_COLOR ".repeat(10_000)) <= 4 * SPLIT_BYTES);
        assert!(bounded("語".repeat(100_000)) <= 4 * SPLIT_BYTES);
        assert!(bounded("Die Sicherungen sind verschlüsselt. ".repeat(10_000)) <= 4 * SPLIT_BYTES);
    }

    #[test]
    fn a_long_neighbour_is_cut() {
        let long = "word ".repeat(500);
        assert_eq!(neighbours([long.as_str()].into_iter()).split_whitespace().count(), NEIGHBOUR_WORDS);
    }

    /// In an earlier version, a neighbour without spaces was used as context as a whole, for each piece of a text: four
    /// texts of 400 KB took 544 MB.
    #[test]
    fn a_neighbour_without_spaces_is_cut() {
        for long in
            ["password=".repeat(50_000), "語".repeat(50_000), " ".repeat(100_000) + &"x".repeat(9_000)]
        {
            let context = neighbours([long.as_str(); 4].into_iter());
            assert!(
                context.len() <= CONTEXT_BYTES && context.trim().len() > NEIGHBOUR_BYTES,
                "{}",
                context.len()
            );
        }
        let row = about(Kind::Commit).indexed("a", &"src/a.rs\n".repeat(5_000));
        assert!(row.context.len() <= 2 * CONTEXT_BYTES + SPLIT_BYTES);
    }
}
