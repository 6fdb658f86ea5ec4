//! Takes secrets out of text: the first step of every write, the last of every exit.
//!
//! [`Redactor::redact`] replaces each secret by `[REDACTED:<rule>:<hash>]`. The hash is keyed with a secret of the
//! installation, so that the same secret gives the same mark, redacted texts stay comparable, and nobody can try
//! guesses against it. What counts as a secret is a table ([`rules()`]); how it is found is one pass over the text with
//! all the table's literals, and a rule's own check only where its literal stands (`engine`).
//!
//! The promises, each held by a test: redacting again changes nothing; a secret is taken whole, a key with its body;
//! time is linear in the text whatever the text is; everything else stays byte for byte.
//!
//! It is not: a judge of prose. What is secret only by its meaning is for its author to mark, with
//! `<private>` … `</private>`. Secrets broken by invisible characters, or encoded other than by JSON, URL or base64 in
//! the usual places, are not looked for.

mod assignment;
mod blocks;
mod credentials;
mod edges;
mod engine;
mod form;
mod rules;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use rules::{Before, Edge, RULESET_VERSION, Rule, Scanner, Shape, rules};

/// Takes secrets out of text, marking them with hashes under one key.
///
/// Making one costs nothing and cloning one a counter: what is compiled is compiled once a process, at first use.
#[derive(Clone)]
pub struct Redactor {
    key: Arc<[u8; 32]>,
}

impl Redactor {
    /// Returns a redactor whose marks are keyed with `secret`, the installation's own.
    pub fn new(secret: [u8; 32]) -> Redactor {
        Redactor { key: Arc::new(secret) }
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
    fn mark(&self, to: &mut String, span: &engine::Span, text: &str) {
        let secret = &text.as_bytes()[span.range.clone()];
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        match span.rule.shape {
            Shape::Scanned(Scanner::Private) => hasher.update(blocks::private_content(secret)),
            _ => hasher.update(secret),
        };
        to.push_str(engine::MARK);
        to.push_str(span.rule.id);
        to.push(':');
        to.push_str(&hasher.finalize().to_hex()[..8]);
        to.push(']');
    }
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
