//! Removes secrets from text.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//! Removing secrets is the first step of every write, and the last step before text leaves the program.
//!
//! [`Redactor::redact`] replaces each secret by a mark, `[REDACTED:<rule>:<digits>]`. A table lists the kinds of
//! secrets ([`rules()`]). One pass over the text finds the literals of all rules, and a rule is checked only at its
//! literals (`engine`).
//!
//! Equal secrets in one conversation get equal digits. So someone could test a guess by storing it and comparing the
//! marks. Two properties limit this. First, the digits are a keyed hash. The key is derived from the installation's
//! secret, the project and the conversation (or from the memory's name, if the memory belongs to no conversation). So
//! marks of different conversations agree only by chance, once in 4,096 times. Second, there are only three digits, so
//! within a conversation one wrong guess in 4,096 has the right digits. Still, someone who can write to a conversation
//! and read its marks can rule out most wrong guesses there. Text that leaves the program without being stored (errors,
//! requests to models) has marks with the digits `000`. Marks of eight digits, which an earlier version wrote, are
//! recognised.
//!
//! This crate has four promises, and a test checks each of them: redacting a text again changes nothing; a secret is
//! replaced as a whole, for example a key with its body; the time is linear in the length of any text; all other bytes
//! stay unchanged.
//!
//! If a random-looking secret occurs again in the text, this copy is replaced too, even if nothing beside the copy says
//! that it is a secret (`copies`).
//!
//! If a name and its value are not next to each other, the structure of the text (a table, an object, the output of a
//! command, a login, a sentence) says where a secret may be (`structure`). The shape of a value decides whether it is a
//! secret (`shape`).
//!
//! This crate does not judge meaning. If only the meaning of a text is private, its author has to mark it with
//! `<private>` … `</private>`. Secrets are found even if they contain invisible characters, or are encoded once in
//! base64 or hexadecimal. Secrets that are encoded twice, compressed or encrypted are not found.

mod assignment;
mod blocks;
mod copies;
mod counts;
mod edges;
mod encoded;
mod engine;
mod form;
mod invisible;
mod mark;
mod provided;
mod rules;
mod scanners;
mod shape;
mod stream;
mod structure;
mod template;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use copies::Places;
pub use counts::{Redaction, add, redactions};
pub use provided::{remember, remembered};
#[cfg(test)]
use rules::Before;
pub use rules::rules;
use rules::{Scanner, Shape};
pub use stream::Stream;

/// Returns the number of marks of secrets in `text`.
pub fn marks(text: &str) -> usize {
    let starts = text.match_indices(mark::MARK).map(|(start, _)| start);
    starts.filter(|start| mark::mark_at(text.as_bytes(), *start).is_some()).count()
}

/// Returns `text` with each secret replaced by a mark that names only its rule, as in `[REDACTED:github-token]`. Errors
/// and logs show no digits, because a reader could compare them with the digits of guessed secrets.
pub fn without_secrets(text: &str) -> String {
    mark::naming_rules(&Redactor::blank().redact(text).text)
}

/// Replaces secrets by marks that can be compared within one conversation.
///
/// A redactor is cheap to make and to clone, because the rules are compiled only once per process, at their first use.
#[derive(Clone)]
pub struct Redactor {
    /// The key of the hash from which the digits are taken; `None` if all marks have the digits `000`.
    key: Option<Arc<[u8; 32]>>,
}

impl Redactor {
    /// Returns a redactor whose marks are keyed with `secret`. Use [`Redactor::within`] for text that is stored.
    pub fn new(secret: [u8; 32]) -> Redactor {
        Redactor { key: Some(Arc::new(secret)) }
    }

    /// Returns a redactor for text that is not stored, such as errors. The marks of this redactor show only the rule,
    /// with the digits `000`.
    pub fn blank() -> Redactor {
        Redactor { key: None }
    }

    /// Returns a redactor for `place`, such as a conversation. The marks of this redactor can't be compared with those
    /// of other places.
    pub fn within(&self, place: &str) -> Redactor {
        let key = self.key.as_ref().map(|key| {
            let mut hasher = blake3::Hasher::new_keyed(key);
            hasher.update(b"tiro 2026 marks within ").update(place.as_bytes());
            Arc::new(*hasher.finalize().as_bytes())
        });
        Redactor { key }
    }

    /// Returns `text` with its secrets replaced, and how many secrets each rule found. If the text has no secrets, it
    /// is borrowed.
    ///
    /// Redacting the result again changes nothing.
    pub fn redact<'t>(&self, text: &'t str) -> Redacted<'t> {
        self.redact_at(text, Places::All)
    }

    /// Like [`Redactor::redact`], but replaces copies of secrets only at `places`.
    fn redact_at<'t>(&self, text: &'t str, places: Places) -> Redacted<'t> {
        let mut redacted = Cow::Borrowed(text);
        let mut counts = BTreeMap::new();
        // After a replacement, the text beside the mark can look like a secret, for example if only a part of the value
        // after `password=` was replaced. A second pass finds such a text. The number of passes is limited because
        // someone could craft a text that needs many.
        for _ in 0..PASSES {
            let spans = engine::scan(&redacted, places);
            if spans.is_empty() {
                break;
            }
            let mut text = String::with_capacity(redacted.len());
            let mut end = 0;
            for span in &spans {
                *counts.entry(span.rule.id).or_insert(0) += 1;
                text.push_str(&redacted[end..span.range.start]);
                self.mark(&mut text, span, &redacted);
                end = span.range.end;
            }
            text.push_str(&redacted[end..]);
            redacted = Cow::Owned(text);
        }
        let found = counts.into_iter().map(|(rule, count)| Finding { rule, count }).collect();
        Redacted { text: redacted, found }
    }

    /// Appends the mark of the secret at `span` of `text`.
    fn mark(&self, to: &mut String, span: &mark::Span, text: &str) {
        to.push_str(mark::MARK);
        to.push_str(span.rule.id);
        to.push(':');
        match &self.key {
            None => to.push_str(&"0".repeat(mark::DIGITS)),
            Some(key) => {
                let secret = &text.as_bytes()[span.range.clone()];
                let secret = match span.rule.shape {
                    Shape::Scanned(Scanner::Private) => blocks::private_content(secret),
                    _ => secret,
                };
                to.push_str(&blake3::keyed_hash(key, secret).to_hex()[..mark::DIGITS]);
            }
        }
        to.push(']');
    }
}

/// The version of the engine. The version is increased if the scanners or the engine find other secrets than before.
/// Changes of the rules need no new version, because the table of rules is hashed.
const ENGINE_VERSION: u8 = 4;

/// Returns a number that changes whenever the rules change. A text that was redacted under another number may still
/// contain a secret.
pub fn version() -> u32 {
    static VERSION: LazyLock<u32> = LazyLock::new(|| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[ENGINE_VERSION]).update(env!("CARGO_PKG_VERSION").as_bytes());
        for rule in rules() {
            hasher.update(format!("{rule:?}").as_bytes());
        }
        let hash = hasher.finalize();
        u32::from_le_bytes([hash.as_bytes()[0], hash.as_bytes()[1], hash.as_bytes()[2], hash.as_bytes()[3]])
    });
    *VERSION
}

/// Returns whether two redacted texts are equal except for the digits of their marks. The digits differ between
/// conversations, versions of Tiro, and keys.
pub fn alike(one: &str, other: &str) -> bool {
    one == other || (one.contains(mark::MARK) && without_digits(one) == without_digits(other))
}

/// Returns `text` without the digits of its marks.
fn without_digits(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut end = 0;
    for (start, _) in text.match_indices(mark::MARK) {
        if let Some(mark) = mark::mark_at(text.as_bytes(), start) {
            let digits = text[start..mark.end].rfind(':').map_or(mark.end, |colon| start + colon);
            left.push_str(&text[end..digits]);
            end = mark.end;
        }
    }
    left + &text[end..]
}

/// The debug output doesn't contain the key.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// A redacted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'t> {
    /// The text, each secret replaced by `[REDACTED:<rule>:<hash>]`.
    pub text: Cow<'t, str>,
    /// How many secrets each rule found, in the order of the rules' ids.
    pub found: Vec<Finding>,
}

/// The number of secrets that a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The [`Rule::id`](rules::Rule::id) of the rule.
    pub rule: &'static str,
    /// How many secrets the rule found; at least one.
    pub count: usize,
}

/// The maximum number of passes over a text. Two passes have been enough for every text so far.
const PASSES: usize = 8;
