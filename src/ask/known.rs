//! Remembers which long texts have no secrets, so that the beginning of a long conversation is not scanned again for each
//! request. A text is recognised by the hash of all its bytes.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::redact::Redactor;
use crate::thread::ContentHash;

/// Texts of fewer bytes are always scanned. Arbitrary: scanning them takes less than a tenth of a millisecond.
const LEAST: usize = 1024;

/// How many texts are remembered; then all are forgotten. Arbitrary: a hash takes 16 bytes.
const MOST: usize = 16_384;

static CLEAN: LazyLock<Mutex<HashSet<ContentHash>>> = LazyLock::new(Mutex::default);

/// Returns `text` with its secrets replaced.
pub(super) fn redacted(redactor: &Redactor, text: &str) -> String {
    if text.len() < LEAST {
        return redactor.redact(text).text.into_owned();
    }
    let hash = ContentHash::of(text.as_bytes());
    let clean = || CLEAN.lock().unwrap_or_else(PoisonError::into_inner);
    if clean().contains(&hash) {
        return text.to_owned();
    }
    let redacted = redactor.redact(text).text;
    if redacted == text {
        let mut clean = clean();
        if clean.len() >= MOST {
            clean.clear();
        }
        clean.insert(hash);
    }
    redacted.into_owned()
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
}
