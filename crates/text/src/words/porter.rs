//! The words of a text, stemmed by the algorithm of Porter as the tokenizer of FTS5 does it
//! (<https://www.sqlite.org/fts5.html#porter_tokenizer>).

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::is_of_word;

/// Words with fewer or more bytes are not stemmed.
const STEMMED: std::ops::RangeInclusive<usize> = 3..=64;

/// Returns the stems of the words of a text, in order. Words are in lower case and without diacritics.
pub fn stems(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !is_of_word(c)).filter(|word| !word.is_empty());
    words.map(|word| stem(plain(word))).collect()
}

/// Returns the word in lower case, without diacritics.
fn plain(word: &str) -> String {
    let lower = word.to_lowercase();
    if lower.is_ascii() { lower } else { lower.nfd().filter(|c| !is_combining_mark(*c)).nfc().collect() }
}

fn stem(word: String) -> String {
    if !STEMMED.contains(&word.len()) {
        return word;
    }
    let mut word = Word(word.into_bytes());
    word.plural();
    word.past();
    if word.ends_with("y") && has_vowel(word.before(1)) {
        word.replace(1, "i");
    }
    word.suffix(&SECOND, is_long);
    word.suffix(&THIRD, is_long);
    word.fourth();
    word.last_e();
    String::from_utf8_lossy(&word.0).into_owned()
}

/// The suffixes of the second step, and what takes their place.
const SECOND: [(&str, &str); 21] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("logi", "log"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
];

/// The suffixes of the third step, and what takes their place.
const THIRD: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

/// The suffixes that the fourth step removes. Of `ion`, the letter before it counts too.
const FOURTH: [(&str, &str); 19] = [
    ("al", ""),
    ("ance", ""),
    ("ence", ""),
    ("er", ""),
    ("ic", ""),
    ("able", ""),
    ("ible", ""),
    ("ant", ""),
    ("ement", ""),
    ("ment", ""),
    ("ent", ""),
    ("ion", ""),
    ("ou", ""),
    ("ism", ""),
    ("ate", ""),
    ("iti", ""),
    ("ous", ""),
    ("ive", ""),
    ("ize", ""),
];

/// A word while it is stemmed.
struct Word(Vec<u8>);

impl Word {
    fn ends_with(&self, suffix: &str) -> bool {
        self.0.len() > suffix.len() && self.0.ends_with(suffix.as_bytes())
    }

    /// Returns the word without its last `count` bytes.
    fn before(&self, count: usize) -> &[u8] {
        &self.0[..self.0.len().saturating_sub(count)]
    }

    fn replace(&mut self, count: usize, by: &str) {
        self.0.truncate(self.0.len().saturating_sub(count));
        self.0.extend(by.as_bytes());
    }

    /// Removes the ending of a plural.
    fn plural(&mut self) {
        if self.ends_with("sses") || self.ends_with("ies") {
            self.replace(2, "");
        } else if self.0.ends_with(b"s") && !self.0.ends_with(b"ss") {
            self.replace(1, "");
        }
    }

    /// Removes `ed` and `ing`, and mends what is left.
    fn past(&mut self) {
        if self.ends_with("eed") {
            if is_long(self.before(3)) {
                self.replace(1, "");
            }
            return;
        }
        let ending = ["ed", "ing"].into_iter().find(|ending| self.ends_with(ending));
        let Some(ending) = ending.filter(|ending| has_vowel(self.before(ending.len()))) else { return };
        self.replace(ending.len(), "");
        if let Some(ending) = ["at", "bl", "iz"].into_iter().find(|ending| self.ends_with(ending)) {
            self.replace(ending.len(), &format!("{ending}e"));
            return;
        }
        match self.0[..] {
            [.., before, last]
                if before == last && !is_vowel(last, false) && !matches!(last, b'l' | b's' | b'z') =>
            {
                self.replace(1, "");
            }
            _ if measure(&self.0) == 1 && is_short(&self.0) => self.replace(0, "e"),
            _ => {}
        }
    }

    /// Replaces the longest of the suffixes, if `is_enough` holds for what is before it.
    fn suffix(&mut self, suffixes: &[(&str, &str)], is_enough: impl Fn(&[u8]) -> bool) {
        let fitting = suffixes.iter().filter(|(suffix, _)| self.ends_with(suffix));
        if let Some((suffix, by)) = fitting.max_by_key(|(suffix, _)| suffix.len())
            && is_enough(self.before(suffix.len()))
        {
            self.replace(suffix.len(), by);
        }
    }

    fn fourth(&mut self) {
        let is_ion = self.ends_with("ion");
        self.suffix(&FOURTH, |stem| {
            measure(stem) > 1 && (!is_ion || stem.ends_with(b"s") || stem.ends_with(b"t"))
        });
    }

    /// Removes an `e` at the end, and one of two `l`.
    fn last_e(&mut self) {
        let stem = self.before(1);
        if self.0.ends_with(b"e") && (measure(stem) > 1 || measure(stem) == 1 && !is_short(stem)) {
            self.replace(1, "");
        }
        if self.0.ends_with(b"ll") && measure(self.before(1)) > 1 {
            self.replace(1, "");
        }
    }
}

fn is_vowel(letter: u8, after_consonant: bool) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u') || after_consonant && letter == b'y'
}

/// Returns for each letter whether it is a consonant.
fn consonants(stem: &[u8]) -> Vec<bool> {
    let mut is_consonant = false;
    let mut each = Vec::with_capacity(stem.len());
    for letter in stem {
        is_consonant = !is_vowel(*letter, is_consonant);
        each.push(is_consonant);
    }
    each
}

fn has_vowel(stem: &[u8]) -> bool {
    stem.iter().enumerate().any(|(place, letter)| is_vowel(*letter, place > 0))
}

/// Returns how often consonants follow vowels.
fn measure(stem: &[u8]) -> usize {
    consonants(stem).windows(2).filter(|pair| !pair[0] && pair[1]).count()
}

fn is_long(stem: &[u8]) -> bool {
    measure(stem) > 0
}

/// Returns whether the stem ends with a vowel between two consonants, the last of which is no `w`, `x` or `y`.
fn is_short(stem: &[u8]) -> bool {
    let ends = consonants(stem).ends_with(&[true, false, true]);
    ends && !stem.ends_with(b"w") && !stem.ends_with(b"x") && !stem.ends_with(b"y")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples are those of Porter's paper.
    #[test]
    fn words_of_one_stem_are_one() {
        for (word, expected) in [
            ("caresses", "caress"),
            ("ties", "ti"),
            ("agreed", "agre"),
            ("bled", "bled"),
            ("sing", "sing"),
            ("conflated", "conflat"),
            ("sized", "size"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("failing", "fail"),
            ("happy", "happi"),
            ("sky", "sky"),
            ("relational", "relat"),
            ("conditional", "condit"),
            ("sensibiliti", "sensibl"),
            ("hopeful", "hope"),
            ("goodness", "good"),
            ("adjustment", "adjust"),
            ("adoption", "adopt"),
            ("probate", "probat"),
            ("rate", "rate"),
            ("controll", "control"),
            ("roll", "roll"),
            ("x", "x"),
        ] {
            assert_eq!(stems(word), [expected]);
        }
        assert_eq!(stems("No Colors, 7!"), ["no", "color", "7"]);
    }
}
