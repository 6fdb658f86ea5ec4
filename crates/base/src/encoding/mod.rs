//! Reads text that is not in UTF-8: files, and the messages and names of commits.
//!
//! Valid UTF-8 is read as UTF-8. Other bytes are read in the encoding that was given with them or that they name
//! themselves. If no encoding is named, or the named one is wrong, the encoding is guessed. A guess must be plausible,
//! so that no image is read as text; otherwise the bytes count as having no text. The same bytes always give the same
//! text.

mod guess;
mod names;

use std::fmt;

use encoding_rs::DecoderResult;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An encoding other than UTF-8.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Encoding(&'static encoding_rs::Encoding);

impl Encoding {
    /// Returns the encoding called `name`, in any spelling that git, editors or people use.
    pub fn named(name: &[u8]) -> Option<Encoding> {
        names::encoding(name).map(Encoding)
    }
}

/// Shows the name of the encoding, such as `GBK`, `windows-1252` or `UTF-16`.
impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.name() {
            "UTF-16LE" | "UTF-16BE" => "UTF-16",
            name => name,
        })
    }
}

impl fmt::Debug for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Serialize for Encoding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.name())
    }
}

impl<'de> Deserialize<'de> for Encoding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Encoding, D::Error> {
        let name = String::deserialize(deserializer)?;
        Encoding::named(name.as_bytes()).ok_or_else(|| serde::de::Error::custom("no such encoding"))
    }
}

/// The text of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The text. A byte order mark at the beginning of a UTF-8 file stays in it.
    pub text: String,
    /// The encoding from which the text was converted; `None` if the file was UTF-8.
    pub from: Option<Encoding>,
    /// How many bytes of damaged UTF-8 were replaced by `U+FFFD`.
    pub replaced: usize,
}

/// The reason why bytes can't be read as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoText {
    /// The bytes are binary data.
    Binary,
    /// The bytes may be text, but their encoding is not clear.
    Unclear,
}

/// Returns the text of a file.
///
/// # Errors
///
/// [`NoText`] if the bytes are not text, or if their encoding is not clear.
pub fn text(bytes: Vec<u8>) -> Result<Text, NoText> {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) if is_plain(&text) => return Ok(Text { text, from: None, replaced: 0 }),
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    };
    convert(&bytes, true)
}

/// Returns whether a file that begins with `start` may be text. `is_whole` is true if `start` is the whole file.
pub fn may_be_text(start: &[u8], is_whole: bool) -> bool {
    let valid = match std::str::from_utf8(start) {
        Ok(text) => Some(text),
        // The last character is cut off.
        Err(error) if !is_whole && error.error_len().is_none() => {
            std::str::from_utf8(&start[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    valid.is_some_and(is_plain) || convert(start, is_whole) != Err(NoText::Binary)
}

/// Returns whether `bytes` are UTF-8 that needs no conversion.
pub fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(is_plain)
}

/// Returns whether `text`, which is valid UTF-8, really is UTF-8. The bytes of UTF-16 and ISO-2022-JP can be valid
/// UTF-8 too.
fn is_plain(text: &str) -> bool {
    !text.contains('\0') && !text.contains(JIS)
}

/// The escape sequence that switches to Japanese in ISO-2022-JP.
const JIS: &str = "\u{1b}$B";

fn convert(bytes: &[u8], is_whole: bool) -> Result<Text, NoText> {
    let converted = |(encoding, text)| Text { text, from: Some(Encoding(encoding)), replaced: 0 };
    if let Some((encoding, mark)) = encoding_rs::Encoding::for_bom(bytes)
        && encoding != encoding_rs::UTF_8
    {
        let text = read(encoding, &bytes[mark..], is_whole).ok_or(NoText::Unclear)?;
        // UTF-32 begins with the same bytes as UTF-16.
        return if text.contains('\0') { Err(NoText::Binary) } else { Ok(converted((encoding, text))) };
    }
    if bytes.contains(&0) {
        return guess::utf16(bytes, is_whole).map(converted).ok_or(NoText::Binary);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let japanese = read(encoding_rs::ISO_2022_JP, bytes, is_whole).filter(|text| !text.is_ascii());
        let plain = || Text { text: text.to_owned(), from: None, replaced: 0 };
        return Ok(japanese.map_or_else(plain, |text| converted((encoding_rs::ISO_2022_JP, text))));
    }
    if guess::has_controls(bytes) {
        return Err(NoText::Binary);
    }
    if guess::is_damaged_utf8(bytes) {
        let replaced = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
        return Ok(Text { text: String::from_utf8_lossy(bytes).into_owned(), from: None, replaced });
    }
    guess::guess(bytes, is_whole).map(converted).ok_or(NoText::Unclear)
}

/// Decodes `bytes` as `encoding`. Returns `None` if `bytes` are invalid in `encoding`. If `bytes` are only a part of
/// the text, an incomplete last character is left out.
fn read(encoding: &'static encoding_rs::Encoding, bytes: &[u8], is_whole: bool) -> Option<String> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let length = decoder.max_utf8_buffer_length_without_replacement(bytes.len())?;
    let mut text = String::with_capacity(length);
    let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, is_whole);
    (result == DecoderResult::InputEmpty).then_some(text)
}

/// How a text was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The text was in UTF-8, or in the encoding that was named.
    AsNamed,
    /// The encoding of the text was guessed.
    Guessed,
    /// Bytes that are not valid UTF-8 were replaced by `U+FFFD`.
    Replaced,
}

/// Decodes the fields of one record, such as the fields of a commit or the versions of a file. All fields are in the
/// same encoding, which the record may name. Some fields may be in UTF-8 nevertheless.
#[derive(Clone, Copy, Debug)]
pub struct RecordDecoder {
    named: Option<Encoding>,
    guessed: Option<Encoding>,
}

impl RecordDecoder {
    /// Returns the decoder of a record with these `fields`. `name` is the encoding that the record names.
    pub fn new(name: Option<&[u8]>, fields: &[&[u8]]) -> RecordDecoder {
        let named = name.and_then(Encoding::named);
        let is_clear = |field: &&&[u8]| {
            std::str::from_utf8(field).is_ok()
                || named.is_some_and(|encoding| read(encoding.0, field, true).is_some())
        };
        let unclear: Vec<&[u8]> = fields.iter().filter(|field| !is_clear(field)).copied().collect();
        let guessed = match unclear.is_empty() {
            true => None,
            // The fields together are longer than each alone, so the guess is better.
            false => guess::guess(&unclear.join(&b'\n'), false).map(|(encoding, _)| Encoding(encoding)),
        };
        RecordDecoder { named, guessed }
    }

    /// Decodes a field. Unless `bytes` are the whole field, their last character may be incomplete.
    pub fn read(&self, bytes: &[u8], is_whole: bool) -> (String, How) {
        let by = |encoding: Option<Encoding>| read(encoding?.0, bytes, is_whole);
        let valid = match std::str::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) if !is_whole && error.error_len().is_none() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        };
        if let Some(text) = valid {
            let is_japanese = text.is_ascii() && text.contains(JIS);
            let japanese = is_japanese.then_some(Encoding(encoding_rs::ISO_2022_JP));
            let named = by(self.named.filter(|named| guess::is_rather(named.0, text)).or(japanese));
            return (named.unwrap_or_else(|| text.to_owned()), How::AsNamed);
        }
        if let Some(text) = by(self.named) {
            return (text, How::AsNamed);
        }
        if !guess::is_damaged_utf8(bytes)
            && let Some(text) = by(self.guessed)
        {
            return (text, How::Guessed);
        }
        (String::from_utf8_lossy(bytes).into_owned(), How::Replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<(String, String), NoText> {
        let shown = |from: Option<Encoding>| from.map_or_else(|| "UTF-8".to_owned(), |from| from.to_string());
        text(bytes.to_vec()).map(|read| (read.text, shown(read.from)))
    }

    #[test]
    fn text_is_recognised_in_many_encodings() {
        for (encoding, said) in [
            ("windows-1252", "// Größe der Fähre über die Förde"),
            ("windows-1252", "(c) 1998 Æ. Øre © – all rights reserved for the ferry"),
            ("windows-1250", "// Příliš žluťoučký kůň úpěl ďábelské ódy"),
            ("windows-1251", "// Расписание парома хранится девять минут"),
            ("KOI8-U", "// Расписание парома хранится девять минут"),
            ("windows-1253", "// Το δρομολόγιο του πλοίου αποθηκεύεται"),
            ("GBK", "int tide; // 渡轮的时刻表每九分钟缓存一次"),
            ("Big5", "int tide; // 渡輪的時刻表快取九分鐘"),
            ("Shift_JIS", "int tide; // フェリーの時刻表は九分間キャッシュされる"),
            ("EUC-JP", "int tide; // フェリーの時刻表は九分間キャッシュされる"),
            ("EUC-KR", "int tide; // 연락선 시간표는 구 분 동안 저장된다"),
        ] {
            let encoding_of = encoding_rs::Encoding::for_label(encoding.as_bytes()).unwrap();
            let (bytes, _, _) = encoding_of.encode(said);
            assert_eq!(read(&bytes), Ok((said.to_owned(), encoding.to_owned())));
            assert!(may_be_text(&bytes, true) && may_be_text(&bytes[..bytes.len() - 1], false), "{encoding}");
        }
        let wide: Vec<u8> = "// Größe\n// der See\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(read(&wide), Ok(("// Größe\n// der See\n".to_owned(), "UTF-16".to_owned())));
        assert_eq!(read(b"\x1b$B9A\x1b(B"), Ok(("港".to_owned(), "ISO-2022-JP".to_owned())));
        assert_eq!(read("\u{1b}[1mbold\u{1b}[0m".as_bytes()).unwrap().1, "UTF-8");
    }

    #[test]
    fn a_name_in_the_text_decides() {
        let read = |bytes: &[u8]| read(bytes).unwrap().1;
        assert_eq!(read(b"# -*- coding: iso-8859-2 -*-\n# \xb3\xf3d\xbc"), "ISO-8859-2");
        assert_eq!(read(b"# vim: set fileencoding=cp1251 :\n# \xcc\xee\xf0\xe5"), "windows-1251");
        assert_eq!(read(b"<?xml version='1.0' encoding='GB2312'?><a>\xb8\xdb</a>"), "GBK");
        assert_eq!(read(b"<meta charset=\"shift_jis\"><p>\x8d`"), "Shift_JIS");
        // The name is wrong.
        assert_eq!(read(b"# coding: shift_jis\n# Gr\xf6\xdfe der F\xe4hre"), "windows-1252");
    }

    #[test]
    fn other_data_is_no_text() {
        let noise = |seed: u32, length: usize| -> Vec<u8> {
            let next = |state: &mut u32| {
                *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                Some((*state >> 24) as u8)
            };
            let mut state = seed;
            std::iter::from_fn(|| next(&mut state)).take(length).collect()
        };
        for seed in 0..200 {
            let bytes = noise(seed, 200);
            assert_eq!(read(&bytes), Err(NoText::Binary), "{seed}");
            // Without what gives it away most easily.
            let high: Vec<u8> = bytes.iter().map(|byte| byte | 0x80).collect();
            assert!(read(&high).is_err(), "{seed}: {:?}", read(&high));
            let small: Vec<u8> = bytes.iter().flat_map(|byte| [*byte, 0]).collect();
            assert_eq!(read(&small), Err(NoText::Binary), "{seed}");
        }
        // UTF-32 begins with the same bytes as UTF-16.
        assert_eq!(read(b"\xff\xfe\0\0h\0\0\0"), Err(NoText::Binary));
        assert_eq!(read(b"\xff\xfe=\xd8h\0"), Err(NoText::Unclear));
        assert_eq!(read(b"\x7fELF\x02\x01\x01\0"), Err(NoText::Binary));
    }

    /// The named encoding can be wrong, and can be that of the message alone.
    #[test]
    fn the_fields_of_a_record_are_read_each_as_it_is() {
        let gbk = b"\xb6\xc9\xc2\xd6";
        let reader = RecordDecoder::new(Some(b"GBK"), &[gbk, "Jörg".as_bytes()]);
        assert_eq!(reader.read(gbk, true), ("渡轮".to_owned(), How::AsNamed));
        assert_eq!(reader.read("Jörg".as_bytes(), true), ("Jörg".to_owned(), How::AsNamed));
        // These bytes are Latin letters in UTF-8 too.
        let (short, _, _) = encoding_rs::GBK.encode("眉");
        assert_eq!(reader.read(&short, true).0, "眉");
        assert_eq!(reader.read("für".as_bytes(), true).0, "für");
        assert_eq!(reader.read(&gbk[..3], false).0, "渡");
        // A name that doesn't fit.
        let cyrillic = b"\xca\xfd\xf8\xe8\xf0\xee\xe2\xe0\xf2\xfc \xf0\xe0\xf1\xef\xe8\xf1\xe0\xed\xe8\xe5";
        let reader = RecordDecoder::new(Some(b"ISO-2022-JP"), &[cyrillic]);
        assert_eq!(reader.read(cyrillic, true), ("Кэшировать расписание".to_owned(), How::Guessed));
        let reader = RecordDecoder::new(None, &["naïve déjà".as_bytes(), b"\xc3"]);
        assert_eq!(
            reader.read(b"na\xc3\xafve d\xc3\xa9j\xff", true),
            ("naïve déj\u{fffd}".to_owned(), How::Replaced)
        );
    }
}
