//! Texts in Chinese, Japanese and Korean, which are searched by pairs of characters.
//!
//! The scripts of Chinese and Japanese have no blanks between words; Korean has blanks, but joins particles to words.
//! So each pair of neighbouring characters of the same script is a word of the index, as in Lucene's `CJKAnalyzer`. An
//! ideograph between characters of other scripts is a word by itself. In Japanese, such an ideograph is the stem of a
//! verb, as 送 is in 送ります and 送った.

/// A script that is searched by pairs of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Script {
    /// Chinese ideographs, which Japanese uses too.
    Han,
    /// The Japanese syllables of function words and endings.
    Hiragana,
    /// The Japanese syllables of foreign words.
    Katakana,
    /// Korean syllables.
    Hangul,
}

impl Script {
    fn of(c: char) -> Option<Script> {
        match u32::from(c) {
            0x3005 | 0x3007 | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x323af => {
                Some(Script::Han)
            }
            0x3041..=0x309f => Some(Script::Hiragana),
            0x30a1..=0x30fa | 0x30fc..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9d => Some(Script::Katakana),
            0x1100..=0x11ff | 0x3131..=0x318e | 0xac00..=0xd7a3 => Some(Script::Hangul),
            _ => None,
        }
    }
}

/// Returns whether `c` belongs to one of the scripts.
pub fn is_cjk(c: char) -> bool {
    Script::of(c).is_some()
}

/// Returns the parts of `text` that consist of characters of one script each, in order. Characters of other scripts
/// form parts without a script.
pub fn scripts(text: &str) -> impl Iterator<Item = (Option<Script>, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let script = Script::of(rest.chars().next()?);
        let end = rest.find(|c| Script::of(c) != script).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        Some((script, part))
    })
}

/// Returns the characters of `text` that are words by themselves in Chinese or Korean, such as 书 (book) and 값 (value).
/// Each is returned as often as the text contains it.
pub fn characters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| matches!(Script::of(*c), Some(Script::Han | Script::Hangul)))
}

/// Returns the pairs of neighbouring characters of `part`, or the whole part if it has fewer than three characters.
pub fn pairs(part: &str) -> impl Iterator<Item = &str> {
    let starts: Vec<usize> = part.char_indices().map(|(at, _)| at).collect();
    let count = starts.len().saturating_sub(1).max(1);
    (0..count).filter(|_| !part.is_empty()).map(move |place| {
        let end = starts.get(place + 2).copied().unwrap_or(part.len());
        &part[starts[place]..end]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let parts = scripts(text).filter(|(script, _)| script.is_some());
        parts.flat_map(|(_, part)| pairs(part)).collect()
    }

    #[test]
    fn a_text_is_divided_into_scripts_and_these_into_pairs() {
        assert_eq!(words("缓存的键"), ["缓存", "存的", "的键"]);
        assert_eq!(words("PDFライブラリを読む"), ["ライ", "イブ", "ブラ", "ラリ", "を", "読", "む"]);
        assert_eq!(words("데이터베이스"), ["데이", "이터", "터베", "베이", "이스"]);
        assert_eq!(words("plain größe слово"), Vec::<&str>::new());
        assert_eq!(pairs("").count(), 0);
        assert_eq!(characters("PDFを読む, 값").collect::<String>(), "読값");
        let parts: Vec<&str> = scripts("argon2做哈希").map(|(_, part)| part).collect();
        assert_eq!(parts, ["argon2", "做哈希"]);
    }
}
