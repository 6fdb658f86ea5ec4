//! The language of a text, and the stems and stopwords of languages other than English.
//!
//! The crate `whichlang` names the likeliest language of a text. The crate names a language for any text, even for a
//! line of code. So a text in the Latin script counts as being in another language than English only if it has more
//! stopwords of that language than of English.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use frostem::{Algorithm, Stemmer};
use whichlang::Lang;

use super::STEM;
use super::bigrams::{Script, scripts};

/// The number of bytes of a text that are read to find its language. Arbitrary: a few sentences suffice.
const MOST_READ: usize = 1024;

/// A language that is neither English nor unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::missing_docs_in_private_items, reason = "each is named after its language")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Language {
    Arabic,
    Chinese,
    Dutch,
    French,
    German,
    Hindi,
    Italian,
    Japanese,
    Korean,
    Portuguese,
    Russian,
    Spanish,
    Swedish,
    Turkish,
}

/// The languages in the Latin script. Each language has the code of its list of stopwords, and question words that are
/// missing from the list.
const LATIN: [(Language, &str, &str); 8] = [
    (Language::Dutch, "nl", "waarom wanneer waar wie wat hoe welke hoeveel"),
    (Language::French, "fr", "pourquoi quand où comment combien quel quelle quels quelles quoi qui est-ce"),
    (
        Language::German,
        "de",
        "warum wieso weshalb wann wer wem wen wessen was wie wo woher wohin womit wodurch worüber wofür welche \
         welcher welches welchem welchen wurde wurden",
    ),
    (Language::Italian, "it", "perché quando dove come quanto quale quali chi cosa"),
    (Language::Portuguese, "pt", "porque quando onde como quanto qual quais quem"),
    (Language::Spanish, "es", "por qué cuándo dónde cómo cuánto cuánta cuántos cuántas cuál cuáles quién"),
    (Language::Swedish, "sv", "varför när var hur vem vilken vilket vilka"),
    (Language::Turkish, "tr", "neden niçin nasıl nerede ne kim hangi kaç"),
];

/// The languages in other scripts that have stopwords.
const OTHERS: [(Language, &str, &str); 2] = [
    (Language::Arabic, "ar", ""),
    (
        Language::Russian,
        "ru",
        "почему зачем когда где куда как кто что какой какая какое какие каким какую сколько чем чего",
    ),
];

/// The bit of English in a set of languages.
const ENGLISH: u32 = 1 << 31;

/// For each stopword, the set of the languages that have it. Each language has one bit; the index of the bit is the
/// number of the language.
static STOPWORDS: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| {
    let mut languages: HashMap<&str, u32> = HashMap::new();
    for (language, code, more) in LATIN.iter().chain(&OTHERS) {
        let listed = stop_words::lookup(code).unwrap_or_default().iter().copied();
        for word in listed.chain(more.split_whitespace()) {
            *languages.entry(word).or_default() |= language.bit();
        }
    }
    for word in stop_words::lookup("en").unwrap_or_default() {
        *languages.entry(word).or_default() |= ENGLISH;
    }
    languages
});

impl Language {
    /// Returns the language of `text`; `None` if the language is English or unclear. Reads only the beginning of a long
    /// text.
    pub fn of(text: &str) -> Option<Language> {
        let text = &text[..text.floor_char_boundary(MOST_READ)];
        if text.is_ascii() && !text.contains(' ') {
            return None;
        }
        let (mut latin, mut han, mut kana, mut hangul) = (0, 0, 0, 0);
        let (mut cyrillic, mut arabic, mut devanagari) = (0, 0, 0);
        for (script, part) in scripts(text) {
            let letters = part.chars().filter(|c| c.is_alphabetic());
            match script {
                Some(Script::Han) => han += letters.count(),
                Some(Script::Hiragana | Script::Katakana) => kana += letters.count(),
                Some(Script::Hangul) => hangul += letters.count(),
                None => letters.for_each(|c| match u32::from(c) {
                    0x400..=0x52f => cyrillic += 1,
                    0x600..=0x6ff => arabic += 1,
                    0x900..=0x97f => devanagari += 1,
                    _ => latin += 1,
                }),
            }
        }
        // A character of Chinese, Japanese or Korean carries about as much meaning as three letters, and a question
        // often names identifiers in the Latin script.
        match () {
            () if 6 * (han + kana) > latin && 8 * kana > han + kana => Some(Language::Japanese),
            () if 6 * han > latin => Some(Language::Chinese),
            () if 6 * hangul > latin => Some(Language::Korean),
            () if 2 * cyrillic > latin => Some(Language::Russian),
            () if 2 * arabic > latin => Some(Language::Arabic),
            () if 2 * devanagari > latin => Some(Language::Hindi),
            () if latin > 0 => Language::of_latin(text),
            () => None,
        }
    }

    /// Returns the language of a text in the Latin script: the language with the most stopwords in the text. The
    /// language must have more stopwords in the text than English. The language that the detector names needs fewer
    /// stopwords than others.
    fn of_latin(text: &str) -> Option<Language> {
        let mut hits = [0; LATIN.len()];
        let mut english = 0;
        let mut words = 0;
        for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()) {
            words += 1;
            let Some(languages) = STOPWORDS.get(word.to_lowercase().as_str()) else { continue };
            english += usize::from(languages & ENGLISH != 0);
            for (place, (language, ..)) in LATIN.iter().enumerate() {
                hits[place] += usize::from(languages & language.bit() != 0);
            }
        }
        if words < 3 {
            return None;
        }
        let named = named(whichlang::detect_language(text));
        if named.is_none() {
            english += 1;
        }
        let points = |place: usize| 2 * hits[place] + usize::from(named == Some(LATIN[place].0));
        let best = (0..LATIN.len()).rev().max_by_key(|place| points(*place))?;
        let is_named = named == Some(LATIN[best].0);
        let least = if is_named { 1 } else { 3 };
        // English shares words such as `for` and `use` with other languages, so at least one word must not be English.
        (hits[best] >= least && hits[best] > english && points(best) > 2 * english).then_some(LATIN[best].0)
    }

    /// Returns the stem of `word`, which is in lower case, as a word of the index; `None` if the language has no
    /// stemmer, or if the word is a stopword or too short to have endings.
    pub fn stem(self, word: &str) -> Option<String> {
        let algorithm = self.algorithm()?;
        if word.chars().nth(2).is_none() || self.is_stopword(word) || !word.chars().all(char::is_alphabetic) {
            return None;
        }
        let mut stem = Stemmer::new(algorithm).stem(word).into_owned();
        stem.push(STEM);
        Some(stem)
    }

    /// Returns whether `word`, which is in lower case, is a stopword of the language.
    pub fn is_stopword(self, word: &str) -> bool {
        Language::is_stopword_of(Some(self), word)
    }

    /// Returns whether `word`, which is in lower case, is a stopword of `language`, or of English if it is `None`.
    pub fn is_stopword_of(language: Option<Language>, word: &str) -> bool {
        let bit = language.map_or(ENGLISH, Language::bit);
        STOPWORDS.get(word).is_some_and(|languages| languages & bit != 0)
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }

    fn algorithm(self) -> Option<Algorithm> {
        Some(match self {
            Language::Arabic => Algorithm::Arabic,
            Language::Dutch => Algorithm::Dutch,
            Language::French => Algorithm::French,
            Language::German => Algorithm::German,
            Language::Hindi => Algorithm::Hindi,
            Language::Italian => Algorithm::Italian,
            Language::Portuguese => Algorithm::Portuguese,
            Language::Russian => Algorithm::Russian,
            Language::Spanish => Algorithm::Spanish,
            Language::Swedish => Algorithm::Swedish,
            Language::Turkish => Algorithm::Turkish,
            Language::Chinese | Language::Japanese | Language::Korean => return None,
        })
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Returns the language in the Latin script that the detector names; `None` if that is English, or a language whose
/// texts get no stems.
fn named(lang: Lang) -> Option<Language> {
    match lang {
        Lang::Nld => Some(Language::Dutch),
        Lang::Fra => Some(Language::French),
        Lang::Deu => Some(Language::German),
        Lang::Ita => Some(Language::Italian),
        Lang::Por => Some(Language::Portuguese),
        Lang::Spa => Some(Language::Spanish),
        Lang::Swe => Some(Language::Swedish),
        Lang::Tur => Some(Language::Turkish),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_their_language() {
        for (text, expected) in [
            ("Warum mussten wir Bibliotheken wegen ihrer Lizenzen ersetzen?", Language::German),
            ("Quel journal a rempli nos disques ?", Language::French),
            ("¿Dónde traducimos un mensaje de error?", Language::Spanish),
            ("Waarom is de wachttijd van de verbinding verhoogd?", Language::Dutch),
            ("Каким способом мы хешируем пароль в auth.rs?", Language::Russian),
            ("为什么 rateLimiter 用 redis？", Language::Chinese),
            ("rateLimiterの設定はどこ？", Language::Japanese),
            ("캐시 키를 왜 바꿨나요?", Language::Korean),
        ] {
            assert_eq!(Language::of(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn english_code_and_single_words_have_none() {
        for text in [
            "never use grep for JSON, use jq",
            "Fix CI",
            "Formatting",
            "Bump clap from 4.5.20 to 4.5.23",
            "fix(tests): restrict 'cat' tests to unix environments. Fixes #776 (#777)",
            "Multiple output policies",
            "Basic scheduler test",
            "Preparations for v1.19",
            "let x = self.rate_limiter.check(&key)?;",
            "why did we change the timeout of database connections?",
            "die alone",
            "",
        ] {
            assert_eq!(Language::of(text), None, "{text}");
        }
    }

    #[test]
    fn inflected_words_have_the_same_stem() {
        let stem = |language: Language, word: &str| language.stem(word).unwrap();
        assert_eq!(stem(Language::German, "sicherungen"), stem(Language::German, "sicherung"));
        assert_eq!(stem(Language::French, "traduits"), stem(Language::French, "traduit"));
        assert_eq!(stem(Language::Spanish, "conexiones"), stem(Language::Spanish, "conexión"));
        assert_eq!(stem(Language::Russian, "пароли"), stem(Language::Russian, "пароль"));
        assert_eq!(Language::German.stem("und"), None, "a stopword");
        assert_eq!(Language::Chinese.stem("缓存键"), None);
    }
}
