//! Remembers which long texts contain no secrets, and upper bounds of their token counts. So the beginning of a long
//! conversation is not searched again for each request. A text is recognised by the hash of all its bytes.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use tiro_base::thread::ContentHash;
use tiro_redact::{self, Redactor};
use tiro_text::tokens;

/// Texts with fewer bytes are always searched. Arbitrary: this takes less than a tenth of a millisecond.
const LEAST: usize = 1024;

/// The number of texts that are remembered. When it is reached, all are forgotten. Arbitrary: a hash takes 16 bytes.
const MOST: usize = 16_384;

/// Texts without secrets. Each comes with the number of provider keys that were known when the text was searched.
static CLEAN: LazyLock<Mutex<HashSet<(ContentHash, usize)>>> = LazyLock::new(Mutex::default);

static HIGH: LazyLock<Mutex<HashMap<ContentHash, usize>>> = LazyLock::new(Mutex::default);

/// Returns `text` with its secrets replaced.
pub(super) fn redacted(redactor: &Redactor, text: &str) -> String {
    if text.len() < LEAST {
        return redactor.redact(text).text.into_owned();
    }
    let hash = (ContentHash::of(text.as_bytes()), tiro_redact::remembered());
    if lock(&CLEAN).contains(&hash) {
        return text.to_owned();
    }
    let redacted = redactor.redact(text).text;
    if redacted == text {
        let mut clean = lock(&CLEAN);
        if clean.len() >= MOST {
            clean.clear();
        }
        clean.insert(hash);
    }
    redacted.into_owned()
}

/// Returns an upper bound of the number of tokens of `text`; see [`tokens::bounded`].
pub(super) fn high(text: &str) -> usize {
    if text.len() < LEAST {
        return tokens::bounded(text).high;
    }
    let hash = ContentHash::of(text.as_bytes());
    if let Some(high) = lock(&HIGH).get(&hash) {
        return *high;
    }
    let bound = tokens::bounded(text).high;
    let mut known = lock(&HIGH);
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(hash, bound);
    bound
}

fn lock<T>(known: &Mutex<T>) -> MutexGuard<'_, T> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_was_clean_is_scanned_again_as_soon_as_it_differs() {
        let redactor = Redactor::blank();
        let text = "a plain sentence without anything else. ".repeat(40);
        for _ in 0..2 {
            assert_eq!(redacted(&redactor, &text), text);
            let with = format!("{text}ghp_9sT2kLmQ4vXzR7bNwEyU1cJdHfGaPo3i5V8M");
            assert!(redacted(&redactor, &with).ends_with("[REDACTED:github-token:000]"));
        }
    }

    #[test]
    fn a_bound_is_the_same_when_it_is_remembered() {
        let text = "a plain sentence without anything else. ".repeat(40);
        for text in [text.as_str(), &text[..text.len() - 1], "short"] {
            for _ in 0..2 {
                assert_eq!(high(text), tokens::bounded(text).high);
            }
        }
    }
}
