//! Removes secrets from text: the first step of every write, and the last before text leaves the program.
//!
//! [`Redactor::redact`] replaces each secret by a mark, `[REDACTED:<rule>:<digits>]`. The kinds of secrets are a table
//! ([`rules()`]). One pass over the text finds the literals of all rules, and a rule is checked only where one of its
//! literals is (`engine`).
//!
//! Equal secrets of one conversation have equal digits, so marks could be used to test guesses: save a guess, and compare
//! its mark. Two things limit that. The digits are a hash whose key is derived from the installation's secret, the project,
//! and the conversation, or the name of a memory that belongs to none; so marks of different conversations agree only by
//! chance, once in 4,096 times. And there are only three digits; so within a conversation one wrong guess in 4,096 agrees
//! too. A writer who can read the marks of a conversation can still rule out most wrong guesses there. Text that leaves
//! without being stored (errors, requests to models) has marks with the digits `000`. Marks of eight digits, which an
//! earlier version wrote, are recognised.
//!
//! It promises, each with a test: redacting again changes nothing; a secret is replaced as a whole, a key with its body;
//! the time is linear in the text, for any text; all other bytes stay as they are.
//!
//! It is not: a judge of prose. Text that is private only by its meaning has to be marked by its author, with `<private>` …
//! `</private>`. Secrets are also found with invisible characters inside, and in one layer of base64 or hexadecimal, but
//! not where they are encoded twice, compressed or encrypted.

mod assignment;
mod blocks;
mod counts;
mod edges;
mod encoded;
mod engine;
mod form;
mod invisible;
mod mark;
mod rules;
mod scanners;
mod template;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use counts::{Redaction, add, redactions};
#[cfg(test)]
use rules::Before;
pub use rules::rules;
use rules::{Scanner, Shape};

/// Replaces secrets by marks that can be compared within one conversation.
///
/// Cheap to make and to clone: the rules are compiled once per process, at first use.
#[derive(Clone)]
pub struct Redactor {
    /// The key of the digits; `None` for the digits `000`.
    key: Option<Arc<[u8; 32]>>,
}

impl Redactor {
    /// Returns a redactor whose marks are keyed with `secret`. Use [`Redactor::within`] for text that is stored.
    pub fn new(secret: [u8; 32]) -> Redactor {
        Redactor { key: Some(Arc::new(secret)) }
    }

    /// Returns a redactor whose marks show the rule only, with the digits `000`: for text that is not stored, such as errors.
    pub fn blank() -> Redactor {
        Redactor { key: None }
    }

    /// Returns a redactor for `place`, such as a conversation. Its marks can't be compared with those of other places.
    pub fn within(&self, place: &str) -> Redactor {
        let key = self.key.as_ref().map(|key| {
            let mut hasher = blake3::Hasher::new_keyed(key);
            hasher.update(b"tiro 2026 marks within ").update(place.as_bytes());
            Arc::new(*hasher.finalize().as_bytes())
        });
        Redactor { key }
    }

    /// Returns `text` with its secrets replaced, borrowed where it has none, and how many each rule found.
    ///
    /// Redacting the result again changes nothing.
    pub fn redact<'t>(&self, text: &'t str) -> Redacted<'t> {
        let mut redacted = Cow::Borrowed(text);
        let mut counts = BTreeMap::new();
        // After a replacement, the text beside the mark may be a secret: `password=` before one that was split. A second pass
        // finds it; the bound is for texts made to need more.
        for _ in 0..PASSES {
            let spans = engine::scan(&redacted);
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

/// Returns whether two redacted texts are equal except for the digits of their marks, which differ between
/// conversations, versions of Tiro, and secrets.
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

/// Doesn't show the key.
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
    /// The secrets found, by rule id.
    pub found: Vec<Finding>,
}

/// The number of secrets that a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The [`Rule::id`](rules::Rule::id).
    pub rule: &'static str,
    /// At least one.
    pub count: usize,
}

/// Passes over a text, at most. Two are enough for every text seen so far.
const PASSES: usize = 8;
