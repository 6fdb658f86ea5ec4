//! The words with which a sentence names what no longer holds.

use std::collections::BTreeSet;

use super::Replaced;
use super::takes_back;
use super::words::{Token, stem, tokens};
use tiro_text::words::Language;

/// A part of a sentence that names what no longer holds.
#[derive(Clone, Debug)]
pub(super) struct Cue {
    /// The byte of the sentence at which the part begins.
    pub at: usize,
    /// What no longer holds.
    pub replaced: Replaced,
}

/// Phrases before a value that another value replaces.
const INSTEAD_OF: &[&str] = &[
    "instead of",
    "rather than",
    "in place of",
    "statt",
    "anstatt",
    "anstelle von",
    "au lieu de",
    "en lugar de",
    "en vez de",
    "invece di",
    "in plaats van",
    "em vez de",
    "вместо",
    "而不是",
];

/// Phrases before a value that the speaker excludes at the end of a clause: "on Thursdays, not Tuesdays".
const NOT: &[&str] = &[", not", ", nicht", ", pas", " and not", " und nicht", " et pas"];

/// Phrases in a clause that denies what held before: "we no longer deploy by hand".
const NO_LONGER: &[&str] =
    &["no longer", "anymore", "any more", "nicht mehr", "ya no", "non più", "niet meer", "больше не", "不再"];

/// Stems of verbs after which "from … to …" tells a change of a value: "moved from Tuesdays to Thursdays".
const CHANGES: &[&str] = &[
    "bump",
    "chang",
    "change",
    "decreas",
    "extend",
    "go",
    "grow",
    "grew",
    "improv",
    "increas",
    "low",
    "lower",
    "migrat",
    "mov",
    "move",
    "moved",
    "postpon",
    "push",
    "rais",
    "raise",
    "reduc",
    "renam",
    "reschedul",
    "revis",
    "shift",
    "shorten",
    "switch",
    "updat",
    "upgrad",
    "went",
];

/// Forms of these verbs that tell what happened, but don't end with "ed".
const TOLD: &[&str] = &["went", "grew"];

/// Words that begin an English question that states nothing.
const ASKS: &[&str] = &[
    "should", "can", "could", "would", "do", "does", "did", "is", "are", "was", "were", "will", "shall",
    "may", "what", "why", "how", "when", "where", "which", "who", "whose",
];

/// Words of attempts and thoughts: a sentence with one of them corrects nothing, unless it also tells what happened.
const ATTEMPTS: &[&str] = &[
    "consider",
    "considering",
    "think",
    "thinking",
    "wonder",
    "wondering",
    "try",
    "trying",
    "tried",
    "suggest",
    "hoping",
];

/// Words of suppositions: a sentence with one of them neither corrects nor is corrected.
const SUPPOSES: &[&str] = &[
    "if",
    "whether",
    "would",
    "could",
    "might",
    "may",
    "maybe",
    "perhaps",
    "suppose",
    "wish",
    "falls",
    "wenn",
    "ob",
    "vielleicht",
    "könnte",
    "könnten",
    "würde",
    "würden",
    "si",
    "peut-être",
    "quizás",
];

/// The maximum number of tokens between a verb of change and "from", and between "from" and "to". Arbitrary.
const MOVED_WITHIN: usize = 8;

/// The maximum number of words of a value. Arbitrary: a longer run of words is no name of a value.
const LONGEST_VALUE: usize = 4;

/// A message takes something back only with its first words. Arbitrary: half a line.
const BEGINNING: usize = 8;

/// Returns whether a sentence states nothing, because it is a supposition or nothing but a question. A sentence such as
/// "my score is 60%, can you help?" states something.
pub(super) fn states_nothing(sentence: &str) -> bool {
    let tokens = tokens(sentence);
    let asks = |token: &Token<'_>| ASKS.contains(&token.lower().as_str());
    let is_only_question = is_question(sentence)
        && (Language::of(sentence).is_some()
            || !tokens.iter().any(Token::is_word)
            || tokens.first().is_some_and(asks));
    is_only_question || tokens.iter().any(|token| SUPPOSES.contains(&token.lower().as_str()))
}

/// Returns whether a sentence only asks for something, supposes it or attempts it.
fn is_unsure(sentence: &str) -> bool {
    let attempts = |token: &Token<'_>| ATTEMPTS.contains(&token.lower().as_str());
    is_question(sentence) || states_nothing(sentence) || tokens(sentence).iter().any(attempts)
}

fn is_question(sentence: &str) -> bool {
    sentence.trim_end().ends_with(['?', '？'])
}

/// Returns the parts of a sentence that name what no longer holds, in order. A supposition has none, and a question only if
/// it tells what happened.
pub(super) fn read(sentence: &str) -> Vec<Cue> {
    let tokens = tokens(sentence);
    let lower = sentence.to_ascii_lowercase();
    let language = Language::of(sentence);
    let mut found: Vec<Cue> = Vec::new();
    let is_sure = !is_unsure(sentence);
    if is_sure || !states_nothing(sentence) {
        found.extend((0..tokens.len()).filter_map(|place| moved_from(&tokens, place, language, is_sure)));
    }
    if is_sure {
        for phrase in INSTEAD_OF.iter().chain(NOT) {
            let value = |(_, end)| value(&tokens, end, language, NOT.contains(phrase));
            found.extend(places(&lower, phrase).filter_map(value));
        }
        for phrase in NO_LONGER {
            let clause = |(start, end)| denied(&tokens, start, end, language);
            found.extend(places(&lower, phrase).filter_map(clause));
        }
    }
    found.retain(|cue| !is_in_quotes(sentence, cue.at));
    let taken_back = takes_back::phrase(sentence, BEGINNING);
    let taken_back = taken_back.filter(|phrase| !is_in_quotes(sentence, phrase.start));
    found.extend(taken_back.map(|phrase| Cue { at: phrase.start, replaced: Replaced::MessageBefore }));
    found.sort_by_key(|cue| cue.at);
    found.dedup_by_key(|cue| cue.at);
    found
}

/// Returns where `phrase` stands in `lower` as whole words: the bytes of its beginning and of its end.
fn places<'a>(lower: &'a str, phrase: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    // Words of Chinese stand without spaces.
    let is_open = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() || !c.is_ascii());
    let is_edge = move |at: usize, end: usize| {
        let is_latin = phrase.starts_with(|c: char| c.is_ascii());
        !is_latin || is_open(lower[..at].chars().next_back()) && is_open(lower[end..].chars().next())
    };
    let of = move |(at, phrase): (usize, &str)| (at, at + phrase.len());
    lower
        .match_indices(phrase)
        .map(of)
        .filter(move |(at, end)| phrase.starts_with([',', ' ']) || is_edge(*at, *end))
}

/// Returns the value that is named after the byte `from`: the first words that are no stopwords. If `ends_clause` is
/// true, nothing may follow the value in its clause.
fn value(tokens: &[Token<'_>], from: usize, language: Option<Language>, ends_clause: bool) -> Option<Cue> {
    let after = &tokens[tokens.partition_point(|token| token.start < from)..];
    let is_word = |token: &Token<'_>| token.is_word() || token.is_number();
    let leading = after.iter().take_while(|token| is_word(token) && token.stems(language).is_empty()).count();
    let mut stems = BTreeSet::new();
    let mut place = leading;
    for token in after[leading..].iter().take(LONGEST_VALUE) {
        let own = token.stems(language);
        if own.is_empty() {
            break;
        }
        stems.extend(own);
        place += 1;
    }
    let first = after.get(leading)?;
    let is_end = after.get(place).is_none_or(|next| !is_word(next));
    let is_value = !stems.is_empty() && (is_end || !ends_clause);
    is_value.then_some(Cue { at: first.start, replaced: Replaced::Value(stems) })
}

/// Returns the old value if the token at `place` is the "from" of "moved from … to …". Unless `is_sure` is true, the verb
/// must tell what happened.
fn moved_from(tokens: &[Token<'_>], place: usize, language: Option<Language>, is_sure: bool) -> Option<Cue> {
    if tokens[place].lower() != "from" {
        return None;
    }
    let before = &tokens[place.saturating_sub(MOVED_WITHIN)..place];
    let is_change = |token: &Token<'_>| CHANGES.contains(&stem(token.text).as_str());
    let verb = before.iter().rev().find(|token| is_change(token))?.lower();
    if !is_sure && !verb.ends_with("ed") && !TOLD.contains(&verb.as_str()) {
        return None;
    }
    let after = &tokens[place + 1..tokens.len().min(place + 1 + MOVED_WITHIN)];
    let to = after.iter().position(|token| token.lower() == "to")?;
    let stems: BTreeSet<String> = after[..to].iter().flat_map(|token| token.stems(language)).collect();
    (!stems.is_empty()).then(|| Cue { at: after[0].start, replaced: Replaced::Value(stems) })
}

/// Returns what the clause around the bytes `start` to `end` denies, without the words between these bytes.
fn denied(tokens: &[Token<'_>], start: usize, end: usize, language: Option<Language>) -> Option<Cue> {
    let is_edge = |token: &Token<'_>| {
        matches!(token.text, "," | ";" | ":" | "." | "(" | ")" | "—" | "–" | "and" | "but" | "und" | "aber")
    };
    let before: Vec<&Token<'_>> = tokens
        .iter()
        .rev()
        .skip_while(|token| token.end > start)
        .take_while(|token| !is_edge(token))
        .collect();
    let after = tokens.iter().skip_while(|token| token.start < end).take_while(|token| !is_edge(token));
    let stems: BTreeSet<String> =
        before.into_iter().chain(after).flat_map(|token| token.stems(language)).collect();
    (stems.len() > 1).then_some(Cue { at: start, replaced: Replaced::Clause(stems) })
}

/// Returns whether the byte `at` of a sentence stands within double quotation marks.
fn is_in_quotes(sentence: &str, at: usize) -> bool {
    let before = &sentence[..at];
    let opened = before.matches(['“', '„', '«', '「']).count();
    let closed = before.matches(['”', '»', '」']).count();
    before.matches('"').count() % 2 == 1 || opened > closed
}
