//! Reads JSON of unknown shape field by field. A field of an unexpected type counts as missing.
//!
//! The formats of clients change without notice, and a single field of a new type must not make the whole line
//! unreadable. So lines are not deserialized into structs. Instead, one pass over an object finds the names and the raw
//! text of the values, and only the values that are needed are parsed afterwards. The other values are skipped at the
//! speed of the scanner, and deep nesting needs no stack.
//!
//! Clients cut texts in the middle of a character, so a string can contain half of a surrogate pair. Such a half is
//! read as U+FFFD.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The maximum number of fields of an object that are kept. Arbitrary.
const MOST_FIELDS: usize = 256;

/// The maximum number of elements of an array that are kept: more than a conversation has messages.
const MOST_ITEMS: usize = 100_000;

/// The names and raw values of an object, in order.
#[derive(Debug, Default)]
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Parses an object.
    pub(super) fn parse(json: &'a str) -> serde_json::Result<Fields<'a>> {
        serde_json::from_str(json)
    }

    /// Returns the fields of an object. Any other value has no fields.
    pub(super) fn of(raw: &'a RawValue) -> Fields<'a> {
        if raw.get().starts_with('{') {
            Fields::parse(raw.get()).unwrap_or_default()
        } else {
            Fields::default()
        }
    }

    /// Returns all fields in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, raw)| (name.as_ref(), *raw))
    }

    /// Returns the raw value of a field, unless it is missing or null.
    pub(super) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let (_, raw) = self.0.iter().find(|(each, _)| each == name)?;
        (raw.get() != "null").then_some(*raw)
    }

    /// Returns the value of a field that is a string, a number or a boolean, as text.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        scalar(self.raw(name)?)
    }

    /// Returns the value of a field as [`Fields::text`] does, if it contains more than white space.
    pub(super) fn filled(&self, name: &str) -> Option<Cow<'a, str>> {
        self.text(name).filter(|text| !text.trim().is_empty())
    }

    /// Returns whether a field is `true`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|raw| raw.get() == "true")
    }

    /// Returns the value of a field that is a whole number.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        self.raw(name)?.get().parse().ok()
    }

    /// Returns the fields of the object in the field `name`. Any other value has no fields.
    pub(super) fn object(&self, name: &str) -> Fields<'a> {
        self.raw(name).map(Fields::of).unwrap_or_default()
    }

    /// Returns the elements of the array in the field `name`. Any other value has no elements.
    pub(super) fn items(&self, name: &str) -> Vec<&'a RawValue> {
        self.raw(name).map(items).unwrap_or_default()
    }
}

/// Returns the value of a JSON string, or `None` for any other value.
pub(super) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let text = raw.get().starts_with('"').then(|| serde_json::from_str::<Text<'_>>(raw.get()).ok())??;
    Some(text.0)
}

/// Returns the text of a string, a number or a boolean, or `None` for any other value.
pub(super) fn scalar(raw: &RawValue) -> Option<Cow<'_, str>> {
    match raw.get().as_bytes().first()? {
        b'"' => string(raw),
        b'0'..=b'9' | b'-' | b't' | b'f' => Some(Cow::Borrowed(raw.get())),
        _ => None,
    }
}

/// Returns whether a JSON text contains half of a surrogate pair, which is read as U+FFFD.
pub(super) fn has_half_pairs(json: &str) -> bool {
    /// Returns the UTF-16 unit of the escape `\uXXXX` at the start of `text`.
    fn unit(text: &str) -> Option<u16> {
        u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
    }
    let mut paired = 0;
    json.match_indices("\\u").any(|(at, _)| {
        // If the backslash is preceded by another one that escapes it, it is a character, not the beginning of an
        // escape.
        let before = json[..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
        match unit(&json[at..]).filter(|_| before % 2 == 0 && at >= paired) {
            Some(0xd800..0xdc00) => {
                paired = at + 12;
                !matches!(unit(&json[at + 6..]), Some(0xdc00..0xe000))
            }
            Some(0xdc00..0xe000) => true,
            _ => false,
        }
    })
}

/// Returns the elements of an array. Any other value has no elements.
pub(super) fn items(raw: &RawValue) -> Vec<&RawValue> {
    if !raw.get().starts_with('[') {
        return Vec::new();
    }
    serde_json::from_str::<Items<'_>>(raw.get()).map(|items| items.0).unwrap_or_default()
}

struct Items<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(24);
                while fields.len() < MOST_FIELDS {
                    let Some(name) = map.next_key::<Text<'de>>()? else { return Ok(fields) };
                    fields.push((name.0, map.next_value()?));
                }
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Each).map(Fields)
    }
}

/// A string. It is borrowed unless it contains escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Text(std::str::from_utf8(bytes).map_or_else(|_| Cow::Owned(lossy(bytes)), Cow::Borrowed)))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(lossy(bytes))))
            }
        }
        deserializer.deserialize_bytes(Each)
    }
}

/// Returns `bytes` as text. The parser writes half of a surrogate pair as three bytes that no UTF-8 contains.
fn lossy(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let (mut text, mut rest) = (String::with_capacity(bytes.len()), bytes);
    while let Some(at) = rest.windows(3).position(|unit| unit[0] == 0xed && unit[1] >= 0xa0) {
        text += &String::from_utf8_lossy(&rest[..at]);
        text.push(char::REPLACEMENT_CHARACTER);
        rest = &rest[at + 3..];
    }
    text + &String::from_utf8_lossy(rest)
}

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Vec<&'de RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while items.len() < MOST_ITEMS {
                    let Some(item) = seq.next_element()? else { return Ok(items) };
                    items.push(item);
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(items)
            }
        }
        deserializer.deserialize_seq(Each).map(Items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_surrogate_pair_is_read_as_a_replacement() {
        for (json, text) in [
            (r#"{"a":"x \ud83d y"}"#, "x \u{fffd} y"),
            (r#"{"a":"\udc26\ud83d"}"#, "\u{fffd}\u{fffd}"),
            (r#"{"a":"\ud83d\ud83d\ude00é"}"#, "\u{fffd}\u{1f600}é"),
            (r#"{"a":"\ud83dA\u0041"}"#, "\u{fffd}AA"),
        ] {
            assert!(has_half_pairs(json), "{json}");
            assert_eq!(Fields::parse(json).unwrap().text("a").unwrap(), text, "{json}");
        }
        for json in [
            r#"{"a":"\ud83d\ude00"}"#,
            r#"{"a":"\\ud83d"}"#,
            r#"{"a":"\u00e9 \n"}"#,
            r#"{"a":"\\\ud83d\ude00"}"#,
        ] {
            assert!(!has_half_pairs(json), "{json}");
        }
        let fields = Fields::parse(r#"{"a\ud83d":1,"b":true,"c":[2],"d":null}"#).unwrap();
        assert_eq!(fields.text("a\u{fffd}").unwrap(), "1");
        assert_eq!(
            (fields.text("b").as_deref(), fields.text("c"), fields.text("d")),
            (Some("true"), None, None)
        );
    }
}
