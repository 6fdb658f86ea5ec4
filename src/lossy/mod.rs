//! Reads JSON whose strings are not valid text. Such strings may have bytes that are not UTF-8, or escapes of half a
//! surrogate pair. Models and clients write such an escape when an emoji is cut in two.

use std::borrow::Cow;

/// Returns a line of JSON with U+FFFD in place of each invalid byte sequence and each escape that is not a character.
pub fn json(line: &[u8]) -> Cow<'_, [u8]> {
    let line = match String::from_utf8_lossy(line) {
        Cow::Borrowed(_) => Cow::Borrowed(line),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    let has_surrogate = |bytes: &[u8]| {
        bytes.windows(3).any(|window| window[..2] == *b"\\u" && window[2].eq_ignore_ascii_case(&b'd'))
    };
    match has_surrogate(&line) {
        true => Cow::Owned(paired(&line)),
        false => line,
    }
}

/// Returns `line` with U+FFFD in place of each escape of a surrogate that is not part of a pair.
fn paired(line: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(place) = rest.iter().position(|byte| *byte == b'\\') {
        whole.extend_from_slice(&rest[..place]);
        rest = &rest[place..];
        let length = match (escaped(rest), rest.get(6..).and_then(escaped)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => 12,
            (Some(0xD800..0xE000), _) => {
                whole.extend_from_slice(b"\\ufffd");
                rest = &rest[6..];
                continue;
            }
            (Some(_), _) => 6,
            (None, _) => 2.min(rest.len()),
        };
        whole.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
    whole.extend_from_slice(rest);
    whole
}

/// Returns the code unit of the escape at the beginning of `text`, such as `\u00e9`. Returns `None` if there is no
/// escape.
fn escaped(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_no_character_is_replaced() {
        for same in
            ["", "{}", r#"{"a":"\ud83d\udca1 \u00e9 \\ud83d \" é"}"#, r#"{"a":"\u12"#, "\\", "{\"a\":\"\\u"]
        {
            assert_eq!(json(same.as_bytes()), same.as_bytes(), "{same}");
        }
        for (given, read) in [
            (&br#"{"a":"\ud83d"}"#[..], r#"{"a":"\ufffd"}"#),
            (br#"{"\uDCA1 x":"\uD83D\u0041"}"#, r#"{"\ufffd x":"\ufffd\u0041"}"#),
            (br#"["\ud83d\ud83d\udca1\udca1"]"#, r#"["\ufffd\ud83d\udca1\ufffd"]"#),
            (br#"["\\\ud83d"]"#, r#"["\\\ufffd"]"#),
            (b"[\"a\xffb\"]", "[\"a\u{fffd}b\"]"),
            (b"[\"\xed\xa0\xbd\"]", "[\"\u{fffd}\u{fffd}\u{fffd}\"]"),
        ] {
            assert_eq!(json(given), read.as_bytes(), "{read}");
        }
    }
}
