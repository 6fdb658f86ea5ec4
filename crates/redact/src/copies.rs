//! Finds the copies of a secret in the same text.
//!
//! A text often contains a secret twice: once beside a name that says what it is, and once without a name, as in
//! output, in a table or in an answer. Copies are searched only for values that can't be words. Such values have at
//! least sixteen bytes and look random, and a rule recognised them by more than their place in a sentence. A copy must
//! begin and end like a word.
//!
//! The first sixteen bytes of each value are kept in a table. Wherever a word begins in the text, it is looked up in
//! this table. So the time is linear in the length of the text, and independent of the number of secrets.

use std::collections::HashMap;

use super::edges::{is_word, starts_word};
use super::form::{Makeup, is_generated, is_stand_in, looks_random};
use super::mark::Span;
use super::rules::{Scanner, Shape};

/// The places where copies of a secret are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Places {
    /// Copies in the whole text are replaced.
    All,
    /// Only copies after the first place where a rule recognises the secret are replaced.
    After,
}

/// The number of bytes of a value that are in the table.
const HEAD: usize = 16;

/// The maximum number of values with the same first [`HEAD`] bytes. The number is limited because someone could craft a
/// text with many such values.
const ALIKE: usize = 8;

/// The maximum number of bytes of a value.
const LONGEST: usize = 8192;

/// Returns the copies of the secrets at `spans`, except those within `spans`. `spans` must be in order.
pub(super) fn copies(text: &[u8], spans: &[Span], places: Places) -> Vec<Span> {
    let mut values: HashMap<[u8; HEAD], Vec<&Span>> = HashMap::new();
    for span in spans.iter().filter(|span| is_certain(span, &text[span.range.clone()])) {
        let alike = values.entry(head(text, span.range.start).expect("it has so many bytes")).or_default();
        let value = &text[span.range.clone()];
        if alike.len() < ALIKE && alike.iter().all(|other| text[other.range.clone()] != *value) {
            alike.push(span);
        }
    }
    let mut found = Vec::new();
    if values.is_empty() {
        return found;
    }
    let mut next = spans.iter().peekable();
    let mut at = 0;
    while let Some(head) = head(text, at) {
        while next.next_if(|span| span.range.end <= at).is_some() {}
        if let Some(span) = next.peek().filter(|span| span.range.start <= at) {
            at = span.range.end;
            continue;
        }
        let alike = is_word(head[0])
            .then(|| values.get(&head))
            .flatten()
            .filter(|_| starts_word(text, at))
            .and_then(|alike| copied(text, at, alike, places));
        match alike {
            Some(span) => {
                at = span.range.end;
                found.push(span);
            }
            None => at += 1,
        }
    }
    found
}

/// Returns the first bytes of the value at `at`.
fn head(text: &[u8], at: usize) -> Option<[u8; HEAD]> {
    text.get(at..at + HEAD)?.try_into().ok()
}

/// Returns the longest one of the values `alike` that has a copy at `at`.
fn copied(text: &[u8], at: usize, alike: &[&Span], places: Places) -> Option<Span> {
    let copy = |span: &&Span| {
        let value = &text[span.range.clone()];
        let range = at..at + value.len();
        let whole = text[at..].starts_with(value) && !text.get(range.end).is_some_and(|b| is_word(*b));
        (whole && (places == Places::All || span.range.start < at)).then_some(Span { range, rule: span.rule })
    };
    alike.iter().filter_map(copy).max_by_key(|span| span.range.len())
}

/// Returns whether `value`, the text of `span`, can be replaced wherever it occurs.
fn is_certain(span: &Span, value: &[u8]) -> bool {
    let block = matches!(
        span.rule.shape,
        Shape::Scanned(
            Scanner::Private
                | Scanner::PrivateKey
                | Scanner::KeyBody
                | Scanner::Putty
                | Scanner::WalletPhrase
        )
    );
    let drawn = |value: &[u8]| {
        let makeup = Makeup::of(value);
        let mixed = makeup.digits > 0 || makeup.lower > 0 && makeup.upper > 0;
        looks_random(value, HEAD) && mixed || is_generated(value, HEAD)
    };
    !block
        && !span.rule.guesses()
        && (HEAD..=LONGEST).contains(&value.len())
        && is_word(value[0])
        && value.iter().all(u8::is_ascii_graphic)
        && !value.windows(3).any(|signs| signs == b"://")
        && drawn(&value[..value.len().min(256)])
        && !is_stand_in(value)
}
