//! Recognises messages in which a person takes back an earlier statement.

use std::ops::Range;

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
    "i take it back",
    "ignore what i said",
    "ignore my last",
    "disregard that",
    "undo that decision",
    "changed my mind",
    "i was wrong",
];

/// Words before such a phrase that reverse its meaning: "don't forget that the limit is 40".
const TURNS: &[&str] = &[
    "always", "can't", "cannot", "didn't", "don't", "dont", "haven't", "i'll", "not", "never", "to", "won't",
    "you", "if", "unless", "that",
];

/// Returns whether the speaker of `text` takes back an earlier statement. Only the first `most` words are read.
pub fn takes_back(text: &str, most: usize) -> bool {
    phrase(text, most).is_some()
}

/// Returns the bytes of the phrase with which the speaker of `text` takes back an earlier statement. The phrase stands
/// among the first `most` words.
pub fn phrase(text: &str, most: usize) -> Option<Range<usize>> {
    let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’');
    let mut words: Vec<(Range<usize>, String)> = Vec::new();
    let mut rest = 0;
    while let Some(start) = text[rest..].find(is_of_word).map(|at| rest + at).filter(|_| words.len() < most) {
        let end = text[start..].find(|c| !is_of_word(c)).map_or(text.len(), |at| start + at);
        words.push((start..end, text[start..end].to_lowercase().replace('’', "'")));
        rest = end;
    }
    let is_at = |at: usize, phrase: &str| {
        let mut own = words[at..].iter().map(|(_, word)| word.as_str());
        let is_whole = phrase.split(' ').all(|word| own.next() == Some(word));
        is_whole && !at.checked_sub(1).is_some_and(|before| TURNS.contains(&words[before].1.as_str()))
    };
    let found = (0..words.len()).find_map(|at| {
        let phrase = PHRASES.iter().find(|phrase| is_at(at, phrase))?;
        Some((at, at + phrase.split(' ').count() - 1))
    });
    found.map(|(first, last)| words[first].0.start..words[last].0.end)
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
        let text = "Actually, scratch that: no.";
        assert_eq!(&text[phrase(text, 12).unwrap()], "scratch that");
    }
}
