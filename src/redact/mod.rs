//! Takes secrets out of text: the first step of every write, the last of every exit.
//!
//! [`Redactor::redact`] replaces each secret by `[REDACTED:<rule>:<digits>]`. What counts as a secret is a table
//! ([`rules()`]); how it is found is one pass over the text with all the table's literals, and a rule's own check only
//! where its literal stands (`engine`).
//!
//! The digits say whether two marks stand for the same secret, and so could be used to try guesses: a guess is saved, and
//! its mark compared. Therefore they are a hash keyed for one place, derived from the installation's secret, the project
//! and, within it, the conversation, or the commit or whatever else names a memory that belongs to none; a mark of another
//! place agrees by chance, one time in 4,096. And they are three: within one conversation, a guess that agrees is one of
//! every 4,096 that do. What stays possible: who can save to a conversation and read its marks can rule out guesses there,
//! and is left with the right one and a 4,096th of the wrong ones. What leaves without being stored (errors, questions to
//! models) has marks with the digits `000`. Marks of eight digits, which an earlier version made, are known as marks.
//!
//! The promises, each held by a test: redacting again changes nothing; a secret is taken whole, a key with its body;
//! time is linear in the text whatever the text is; everything else stays byte for byte.
//!
//! It is not: a judge of prose. What is secret only by its meaning is for its author to mark, with
//! `<private>` … `</private>`. Invisible characters and one layer of base64 or hexadecimal are seen through; what is
//! encoded twice, compressed or encrypted is not looked for.

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
pub use rules::{Before, Edge, RULESET_VERSION, Rule, Scanner, Shape, rules};

/// Takes secrets out of text, and leaves marks that can be compared within one place.
///
/// Making one costs nothing and cloning one a counter: what is compiled is compiled once a process, at first use.
#[derive(Clone)]
pub struct Redactor {
    /// `None` where no mark is to be compared with another.
    key: Option<Arc<[u8; 32]>>,
}

impl Redactor {
    /// Returns a redactor whose marks are keyed with `secret`; what is stored has one that is narrowed to its place by
    /// [`Redactor::within`].
    pub fn new(secret: [u8; 32]) -> Redactor {
        Redactor { key: Some(Arc::new(secret)) }
    }

    /// Returns a redactor all of whose marks are the same but for the rule: for texts that leave and are compared with no
    /// others, such as errors.
    pub fn blank() -> Redactor {
        Redactor { key: None }
    }

    /// Returns a redactor for the `place` within what this one is for: its marks compare with no others.
    pub fn within(&self, place: &str) -> Redactor {
        let key = self.key.as_ref().map(|key| {
            let mut hasher = blake3::Hasher::new_keyed(key);
            hasher.update(b"tiro 2026 marks within ").update(place.as_bytes());
            Arc::new(*hasher.finalize().as_bytes())
        });
        Redactor { key }
    }

    /// Returns `text` without its secrets, borrowed when it has none, and what was found.
    ///
    /// Redacting what this returns changes nothing.
    pub fn redact<'t>(&self, text: &'t str) -> Redacted<'t> {
        let mut redacted = Cow::Borrowed(text);
        let mut counts = BTreeMap::new();
        // A mark can make a secret of what stands beside it: `password=` before one that was split. The second
        // pass settles it; the bound is there for texts made to need more.
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

/// Whether two redacted texts are the same but for the digits of their marks: those of two places, of two versions of
/// Tiro, or of a secret that was changed.
pub fn alike(one: &str, other: &str) -> bool {
    one == other || (one.contains(mark::MARK) && without_digits(one) == without_digits(other))
}

/// Returns `text` with the digits of its marks left out.
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

/// Shows no key.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// Text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'t> {
    /// The text, each secret replaced by `[REDACTED:<rule>:<hash>]`.
    pub text: Cow<'t, str>,
    /// What was found, by rule id.
    pub found: Vec<Finding>,
}

/// How many secrets of a kind were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The [`Rule::id`].
    pub rule: &'static str,
    /// At least one.
    pub count: usize,
}

/// How often a text is scanned at most; two settle every text seen.
const PASSES: usize = 8;
