//! Escapes characters that hide text or control a terminal.
//!
//! Characters that are invisible or change how others are displayed can show one text to a model and another to a
//! person. Some of these characters also control a terminal. The characters are escaped wherever stored text leaves the
//! program: in answers, errors and logs, and on the command line. In JSON, these characters are written as JSON
//! escapes.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes the characters of `text` that are invisible or change how others are displayed. For example, a right-to-left
/// override becomes `\u{202e}`.
///
/// The escaped characters are the control characters except line feed and tab, the line and paragraph separators, and
/// Unicode's default ignorables, which include the bidirectional controls, zero-width characters and tags. Two kinds
/// are not escaped where scripts need them: joiners between two characters outside ASCII, and the selectors of text and
/// emoji style after such a character. A carriage return before a line feed is removed.
pub fn escape(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(may_hide) else { return Cow::Borrowed(text) };
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.push_str(&text[..first]);
    let mut before = text[..first].chars().next_back();
    let mut rest = text[first..].chars();
    while let Some(character) = rest.next() {
        let after = rest.clone().next();
        let in_script = |neighbour: Option<char>| neighbour.is_some_and(|c| !c.is_ascii() && !may_hide(c));
        let stays = match character {
            '\u{200c}' | '\u{200d}' => (in_script(before) || before == Some('\u{fe0f}')) && in_script(after),
            '\u{fe0e}' | '\u{fe0f}' => in_script(before),
            _ => !may_hide(character),
        };
        if stays {
            escaped.push(character);
        } else if (character, after) != ('\r', Some('\n')) {
            write!(escaped, "\\u{{{:x}}}", u32::from(character)).expect("writing to a string can't fail");
        }
        before = Some(character);
    }
    Cow::Owned(escaped)
}

/// Returns whether [`escape`] may escape `character`.
pub(super) fn may_hide(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        _ if character.is_control() => true,
        // Separators that act as line breaks, and marks of ruby text.
        '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' => true,
        // Default_Ignorable_Code_Point of Unicode 17.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Returns `text` [escaped](escape) and on one line: line feeds and tabs are replaced by spaces.
pub fn one_line(text: &str) -> Cow<'_, str> {
    match escape(text) {
        Cow::Borrowed(text) if !text.contains(['\n', '\t']) => Cow::Borrowed(text),
        escaped => Cow::Owned(escaped.replace(['\n', '\t'], " ")),
    }
}

/// Returns the JSON text `json` with every character that may hide text written as `\uXXXX`. The result has the same
/// value, but can't control a terminal.
///
/// Line feeds and tabs are not changed, since in JSON they occur unescaped only between values.
pub fn in_json(json: &str) -> Cow<'_, str> {
    if !json.contains(may_hide) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        match may_hide(character) {
            false => escaped.push(character),
            true => character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                write!(escaped, "\\u{unit:04x}").expect("writing to a string can't fail");
            }),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_are_written_out() {
        for (text, escaped) in [
            ("plain\n\ttext, naïve 語", "plain\n\ttext, naïve 語"),
            ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
            ("a\u{e0041}\u{e0042}", "a\\u{e0041}\\u{e0042}"),
            ("\0\u{1b}[31m\u{7f}\u{9b}", "\\u{0}\\u{1b}[31m\\u{7f}\\u{9b}"),
            ("one\r\ntwo\rthree", "one\ntwo\\u{d}three"),
            ("pass\u{200b}word\u{ad}\u{feff}", "pass\\u{200b}word\\u{ad}\\u{feff}"),
            ("a\u{200d}b", "a\\u{200d}b"),
            (
                "👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 می\u{200c}خواهم",
                "👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥 می\u{200c}خواهم",
            ),
            ("é\u{200d}\u{200d}é\u{fe0f}\u{fe0f}", "é\\u{200d}\\u{200d}é\u{fe0f}\\u{fe0f}"),
            ("a\u{e0100}\u{fe01}\u{2028}", "a\\u{e0100}\\u{fe01}\\u{2028}"),
        ] {
            assert_eq!(escape(text), escaped, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn json_reads_the_same_and_hides_nothing(text in any::<String>()) {
            let written = serde_json::to_string(&[&text, "a\u{9b}31m\u{202e}\u{e0041}"]).unwrap();
            let escaped = in_json(&written);
            prop_assert!(!escaped.contains(may_hide));
            let read: Vec<String> = serde_json::from_str(&escaped).unwrap();
            prop_assert_eq!(&read[0], &text);
            prop_assert_eq!(&read[1], "a\u{9b}31m\u{202e}\u{e0041}");
        }

        #[test]
        fn one_line_is_one(text in any::<String>()) {
            prop_assert_eq!(one_line(&text).lines().count(), usize::from(!text.is_empty() && text != "\r"));
            let line_breaks = ['\n', '\r', '\u{1b}'];
            prop_assert!(!one_line(&text).contains(line_breaks));
        }
    }
}
