//! Recognises messages in which a person takes back an earlier statement.

/// Phrases that take back an earlier statement.
const PHRASES: &[&str] = &[
    "forget that",
    "forget it",
    "forget what i said",
    "scratch that",
    "never mind that",
    "nevermind that",
    "cancel that",
    "i take that back",
    "ignore what i said",
    "ignore my last",
    "disregard that",
    "undo that decision",
    "changed my mind",
];

/// Words before such a phrase that reverse its meaning: "don't forget that the limit is 40".
const TURNS: &[&str] = &[
    "always", "can't", "cannot", "didn't", "don't", "dont", "haven't", "i'll", "not", "never", "to", "won't",
    "you",
];

/// Returns whether the speaker of `text` takes back an earlier statement. Only the first `most` words are read.
pub fn takes_back(text: &str, most: usize) -> bool {
    let lower = text.to_lowercase().replace('’', "'");
    let words = lower.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(most).collect();
    let is_at = |at: usize, phrase: &str| {
        let mut own = words[at..].iter();
        let is_whole = phrase.split(' ').all(|word| own.next() == Some(&word));
        is_whole && !at.checked_sub(1).is_some_and(|before| TURNS.contains(&words[before]))
    };
    PHRASES.iter().any(|phrase| (0..words.len()).any(|at| is_at(at, phrase)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_to_be_forgotten_is_not_taken_back() {
        for taken in ["Forget that, we stay with Redis.", "Hm, I changed my mind.", "No. Scratch that!"] {
            assert!(takes_back(taken, 12), "{taken}");
        }
        for kept in [
            "Don't forget that the API limit is 40.",
            "Never forget that.",
            "I won't forget it.",
            "Forget me not.",
        ] {
            assert!(!takes_back(kept, 12), "{kept}");
        }
    }
}
