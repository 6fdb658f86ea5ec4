//! Reads JSON of unknown shape field by field. A field of an unexpected type counts as missing.
//!
//! The formats of clients change without notice, and a single field of a new type must not make the whole line
//! unreadable. So lines are not deserialized into structs. Instead, one pass over an object finds the names and the raw
//! text of the values, and only the values that are needed are parsed afterwards. The other values are skipped at the
//! speed of the scanner, and deep nesting needs no stack.

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

    /// Returns the value of a string field.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        string(self.raw(name)?)
    }

    /// Returns the value of a string field that contains more than white space.
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
    /// Borrows the string unless it contains escapes.
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    let text = raw.get().starts_with('"').then(|| serde_json::from_str::<Text<'_>>(raw.get()).ok())??;
    Some(text.0)
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
                    let Some(name) = map.next_key::<Name<'de>>()? else { return Ok(fields) };
                    fields.push((name.0, map.next_value()?));
                }
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Each).map(Fields)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

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
