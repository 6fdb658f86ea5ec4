//! Guesses the encoding of text whose encoding was not given, and refuses bytes that are not text.
//!
//! The detector `chardetng` names an encoding for any bytes, even those of an image. So the detector's answer is
//! checked: the bytes must be valid in that encoding, and the decoded text must look like something that people write.

use std::ops::RangeInclusive;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::Encoding;

/// How many bytes at the beginning of a text are searched for the name of its encoding. Arbitrary: enough for the first
/// lines.
const NAMED_WITHIN: usize = 1024;

/// In UTF-8 with a few damaged characters, valid characters of several bytes are at least this many times as frequent
/// as invalid bytes. In text of other encodings, less than a fifth of the bytes above 127 happen to be valid UTF-8.
const DAMAGED: usize = 2;

/// Returns whether `bytes`, which are not UTF-8 as a whole, are UTF-8 with a few damaged characters.
pub(super) fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        invalid += chunk.invalid().len();
    }
    valid > 0 && valid >= invalid * DAMAGED
}

/// Returns whether `text` is probably in the encoding `named`, which its author states, although its bytes are also
/// valid UTF-8. Text in ISO-2022-JP or UTF-16 is recognised by an escape character or a NUL. In the other multi-byte
/// encodings, the two bytes of one UTF-8 letter can also be an ideograph. If such a letter touches an ASCII letter, the
/// text is UTF-8: the letter is then an accented letter within a word.
pub(super) fn is_rather(named: &'static Encoding, text: &str) -> bool {
    if named == encoding_rs::ISO_2022_JP {
        return text.contains('\u{1b}');
    }
    if named == encoding_rs::UTF_16LE || named == encoding_rs::UTF_16BE {
        return text.contains('\0');
    }
    if named == encoding_rs::UTF_8 || named.is_single_byte() {
        return false;
    }
    let is_short = |c: char| c.is_ascii() || c.len_utf8() == 2;
    let pairs = text.chars().zip(text.chars().skip(1));
    let mut touching = pairs.filter(|(a, b)| {
        (a.is_ascii_alphabetic() && !b.is_ascii()) || (!a.is_ascii() && b.is_ascii_alphabetic())
    });
    !text.is_ascii() && text.chars().all(is_short) && touching.next().is_none()
}

/// Returns the encoding of `bytes`, which are not UTF-8, and the decoded text. Returns `None` if the bytes are not
/// text, or if their encoding is not clear.
pub(super) fn guess(bytes: &[u8], is_whole: bool) -> Option<(&'static Encoding, String)> {
    if has_controls(bytes) {
        return None;
    }
    let named = named_within(&bytes[..bytes.len().min(NAMED_WITHIN)]);
    let by_name = named.and_then(|encoding| Some((encoding, super::read(encoding, bytes, is_whole)?)));
    if let Some((encoding, text)) = by_name.filter(|(_, text)| !text.contains(is_nothing)) {
        return Some((encoding, text));
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, is_whole);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    let instead = if HARDLY_USED.contains(&encoding.name()) { INSTEAD } else { &[] };
    instead.iter().chain([&encoding]).find_map(|encoding| {
        let text = super::read(encoding, bytes, is_whole)?;
        is_plausible(bytes, &text, encoding).then_some((*encoding, text))
    })
}

/// Encodings that hardly anyone used, but that the detector often names for a few words of Korean or Dutch.
const HARDLY_USED: [&str; 2] = ["ISO-8859-4", "ISO-8859-5"];

/// The encodings that are more likely if the detector names one of [`HARDLY_USED`].
const INSTEAD: &[&Encoding] = &[encoding_rs::EUC_KR, encoding_rs::WINDOWS_1252];

/// Decodes UTF-16 without a byte order mark. Returns the encoding, which says the byte order, and the text.
pub(super) fn utf16(bytes: &[u8], is_whole: bool) -> Option<(&'static Encoding, String)> {
    let nul_at =
        |remainder: usize| bytes.iter().skip(remainder).step_by(2).filter(|byte| **byte == 0).count();
    let encoding = match (nul_at(0), nul_at(1)) {
        (0, 1..) => encoding_rs::UTF_16LE,
        (1.., 0) => encoding_rs::UTF_16BE,
        _ => return None,
    };
    if is_whole && bytes.len() % 2 == 1 {
        return None;
    }
    let text = super::read(encoding, bytes, is_whole)?;
    let (mut all, mut spaces, mut odd, mut ascii) = (0, 0, 0, 0);
    for c in text.chars() {
        all += 1;
        spaces += usize::from(c.is_whitespace());
        ascii += usize::from(c.is_ascii());
        odd += usize::from(!c.is_ascii() && !c.is_alphanumeric() && !is_mark(c));
        if c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c') {
            return None;
        }
    }
    // Binary tables of small numbers have no spaces, and images have characters of many scripts.
    let is_text =
        all >= 4 && spaces * 100 >= all && odd * 20 <= all && (ascii * 2 >= all || scripts(&text) <= 2);
    is_text.then_some((encoding, text))
}

/// Returns whether `bytes` have more control characters than text has. Text shorter than 500 bytes has none, and longer
/// text has at most one in 500 bytes.
pub(super) fn has_controls(bytes: &[u8]) -> bool {
    let is_control = |byte: &&u8| matches!(byte, 0..=6 | 0x0e..=0x19 | 0x1c..=0x1f | 0x7f);
    bytes.iter().filter(is_control).count() > bytes.len() / 500
}

/// If the beginning of a text declares an encoding in the notation of Emacs, Vim, Python, XML, HTML or CSS, returns
/// this encoding.
fn named_within(beginning: &[u8]) -> Option<&'static Encoding> {
    const MARKS: [&[u8]; 4] = [b"coding", b"charset", b"fenc", b"encoding"];
    let lower = beginning.to_ascii_lowercase();
    let find =
        |mark: &[u8]| lower.windows(mark.len()).position(|window| window == mark).map(|at| at + mark.len());
    MARKS.iter().filter_map(|mark| find(mark)).find_map(|after| {
        let rest = &beginning[after..];
        let skipped =
            rest.iter().take_while(|byte| matches!(byte, b' ' | b'=' | b':' | b'"' | b'\'')).count();
        if !rest[..skipped].iter().any(|byte| matches!(byte, b'=' | b':' | b' ')) {
            return None;
        }
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let length = rest[skipped..].iter().take_while(is_name).count();
        let name = &rest[skipped..skipped + length];
        // Emacs adds the kind of line ends to the name, as in `utf-8-unix`.
        let plain =
            [&b"-unix"[..], b"-dos", b"-mac"].iter().find_map(|end| name.strip_suffix(*end)).unwrap_or(name);
        let is_sure = |encoding: &&Encoding| {
            ![encoding_rs::UTF_8, encoding_rs::UTF_16LE, encoding_rs::UTF_16BE].contains(encoding)
        };
        super::names::encoding(plain).filter(is_sure)
    })
}

/// Returns whether `text`, decoded from `bytes` as `encoding`, looks like something that people write.
fn is_plausible(bytes: &[u8], text: &str, encoding: &'static Encoding) -> bool {
    let is_wide = !encoding.is_single_byte();
    if is_wide && !is_common(bytes, encoding) {
        return false;
    }
    let (mut high, mut latin, mut odd, mut run) = (0, 0, 0, 0);
    let mut before = ' ';
    for c in text.chars() {
        if c.is_ascii() {
            (before, run) = (c, 0);
            continue;
        }
        high += 1;
        run = if c.is_alphabetic() { run + 1 } else { 0 };
        let is_join = before.is_alphabetic() && c.is_alphabetic();
        let own = script(c);
        latin += usize::from(matches!(own, None | Some(Script::Latin)));
        odd += usize::from(match own {
            _ if is_nothing(c) => true,
            None => !is_mark(c),
            // A word is in one script, has capitals only at its beginning, and doesn't consist only of accents or of
            // one letter.
            Some(own) if !is_wide => {
                let is_mixed = is_join && script(before).is_some_and(|other| other != own);
                let is_capital = is_join && c.is_uppercase() && before.is_lowercase();
                let is_repeated = c == before && run > 3;
                is_mixed || is_capital || is_repeated || (own == Script::Latin && run > 3)
            }
            Some(_) => false,
        });
        before = c;
    }
    // In most texts, accented letters and signs stand among plain letters.
    let is_amid_ascii = latin * 3 <= text.len();
    high > 0 && odd * 8 <= high && (is_wide || is_amid_ascii)
}

/// Returns whether the characters of several bytes are common in the language of the encoding. In the encodings of
/// several bytes, any two bytes above 127 are a character, but nine of ten such characters are rare.
fn is_common(bytes: &[u8], encoding: &'static Encoding) -> bool {
    // The bytes with which common characters begin: one range for signs and syllables, then one for frequent
    // ideographs.
    let rows: &[RangeInclusive<u8>] = match encoding.name() {
        "GBK" | "gb18030" => &[0xa1..=0xa9, 0xb0..=0xd7],
        "Shift_JIS" => &[0x81..=0x84, 0x88..=0x97],
        "EUC-JP" => &[0xa1..=0xa8, 0xb0..=0xcf],
        "EUC-KR" => &[0xa1..=0xac, 0xb0..=0xc8],
        "Big5" => &[0xa1..=0xc6],
        _ => return true,
    };
    let is_kana = |byte: u8| encoding == encoding_rs::SHIFT_JIS && (0xa1..=0xdf).contains(&byte);
    let (mut all, mut common, mut at) = (0, 0, 0);
    while at < bytes.len() {
        let first = bytes[at];
        if first < 0x80 {
            at += 1;
            continue;
        }
        all += 1;
        common += usize::from(rows.iter().any(|row| row.contains(&first)) && !is_kana(first));
        at += if is_kana(first) { 1 } else { 2 };
    }
    all > 0 && common * 10 >= all * 7
}

/// The scripts that are not mixed within a word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Script {
    Latin,
    Greek,
    Cyrillic,
    Hebrew,
    Arabic,
    Thai,
    EastAsian,
}

fn script(c: char) -> Option<Script> {
    Some(match c {
        'a'..='z' | 'A'..='Z' | 'ª' | 'º' | 'À'..='Ö' | 'Ø'..='ö' | 'ø'..='ɏ' | 'Ḁ'..='ỿ' => {
            Script::Latin
        }
        'Ͱ'..='Ͽ' => Script::Greek,
        'Ѐ'..='ӿ' => Script::Cyrillic,
        '\u{590}'..='\u{5ff}' => Script::Hebrew,
        '\u{600}'..='\u{6ff}' => Script::Arabic,
        '\u{e00}'..='\u{e7f}' => Script::Thai,
        '\u{1100}'..='\u{11ff}'
        | '\u{3040}'..='\u{318f}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9d}' => Script::EastAsian,
        _ => return None,
    })
}

/// Returns how many scripts the letters of `text` are in. All letters of unknown scripts together count as one script.
fn scripts(text: &str) -> usize {
    let mut found: Vec<Option<Script>> = text.chars().filter(|c| c.is_alphabetic()).map(script).collect();
    found.sort_unstable();
    found.dedup();
    found.len()
}

/// Returns whether `c` is a control character or has no meaning (private use), so that no text contains it.
fn is_nothing(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}')
}

/// Returns whether `c`, which is not a letter, is usual in text, such as a quotation mark, a sign or a line of a table.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{a0}' | '¡' | '¢' | '£' | '¥' | '§' | '©' | '«' | '®' | '°' | '±' | '²' | '³' | '´' | 'µ' | '·' | '»' | '¼' | '½' | '¿' | '×' | '÷'
        | '‐'..='‧' | '‰' | '‹' | '›' | '※' | '€' | '№' | '™' | '←'..='⇿' | '∀'..='⋿' | '─'..='◿' | '★' | '☆'
        | '①'..='⓿' | 'Ⅰ'..='ⅿ' | '\u{3000}'..='〿' | '゛'..='゜' | '・' | 'ー' | '︰'..='﹏' | '！'..='･' | '￠'..='￦' | '\u{300}'..='\u{36f}')
}
