//! Converts single values to the type that a schema asks for, if their meaning is clear. Other values stay unchanged,
//! and the caller refuses them.

use serde_json::{Map, Value};

/// The texts that models write for an argument that they leave out.
const NOTHING: [&str; 9] = ["null", "Null", "NULL", "None", "none", "undefined", "nil", "N/A", "n/a"];

/// The arguments that take texts of any length. Several texts, or messages with their parts, are joined to one text.
const TEXTS: [&str; 7] = ["text", "query", "instructions", "recent", "task", "focus", "output_format"];

/// Words for an importance from 0 to 1. Arbitrary: the values are evenly spaced.
const IMPORTANCE: [(&str, f64); 6] =
    [("low", 0.25), ("medium", 0.5), ("normal", 0.5), ("high", 0.75), ("critical", 1.0), ("highest", 1.0)];

/// Returns the JSON value in `text`. Also accepts JSON that is written in the way in which Python prints it. Returns
/// `None` if `text` is not JSON.
pub(super) fn json(text: &str) -> Option<Value> {
    let text = text.trim();
    serde_json::from_str(text).ok().or_else(|| {
        if text.contains('"') {
            return None;
        }
        let mut python = text.replace('\'', "\"");
        for (word, json) in [("True", "true"), ("False", "false"), ("None", "null")] {
            for before in [": ", ", ", "["] {
                python = python.replace(&format!("{before}{word}"), &format!("{before}{json}"));
            }
        }
        serde_json::from_str(&python).ok()
    })
}

/// Returns whether `value` means that the argument was left out. Some models must give every argument. In place of an
/// argument that they leave out, they give `null`, an empty value, or 0 for a number whose minimum is larger.
pub(super) fn is_left_out(value: &Value, schema: &Map<String, Value>, is_required: bool) -> bool {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_nothing = |text: &str| {
        let is_choice = schema
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(|choices| choices.iter().any(|choice| choice == text));
        let is_empty =
            matches!((kind, text), ("array", "[]" | "[null]" | r#"[""]"#) | ("array" | "object", "{}"));
        text.is_empty() || is_empty || NOTHING.contains(&text) && !is_choice
    };
    match value {
        Value::Null => true,
        Value::String(text) if is_required => kind != "string" && is_nothing(text.trim()),
        Value::Array(_) | Value::Object(_) | Value::Number(_) | Value::Bool(_) if is_required => false,
        Value::String(text) => is_nothing(text.trim()) || is_zero_for_nothing(value, schema),
        Value::Array(items) => items.iter().all(is_blank),
        Value::Object(fields) => fields.values().all(Value::is_null),
        Value::Number(_) => is_zero_for_nothing(value, schema),
        Value::Bool(_) => false,
    }
}

/// Returns whether `value` is 0 although the minimum is larger.
fn is_zero_for_nothing(value: &Value, schema: &Map<String, Value>) -> bool {
    let is_zero = match value {
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => number(text).is_some_and(|number| number.as_f64() == Some(0.0)),
        _ => false,
    };
    is_zero && schema.get("minimum").and_then(Value::as_f64).is_some_and(|least| least > 0.0)
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Object(fields) => fields.values().all(is_blank),
        _ => false,
    }
}

/// Converts `value` to a list, if possible. `value` is the argument `name` or an item of it. It may be JSON in a text,
/// a single value, or several words with commas. Empty items are left out.
pub(super) fn make_list(value: &mut Value, name: &str, items: Option<&Map<String, Value>>) {
    let kind = items.and_then(|items| items.get("type")).and_then(Value::as_str).unwrap_or_default();
    match value.take() {
        Value::Array(mut list) => {
            list.retain(|item| !(item.is_null() || item.as_str().is_some_and(|text| text.trim().is_empty())));
            *value = Value::Array(list);
        }
        Value::Object(mut fields) => {
            let wrapper = ["item", "items", name].into_iter().find(|wrapper| {
                fields.len() == 1
                    && fields.get(*wrapper).is_some_and(|inner| inner.is_array() || kind == "string")
            });
            match wrapper.and_then(|wrapper| fields.remove(wrapper)) {
                Some(inner) => {
                    *value = inner;
                    make_list(value, name, items);
                }
                None if kind == "object" => *value = Value::Array(vec![Value::Object(fields)]),
                None => *value = Value::Object(fields),
            }
        }
        Value::String(text) => match listed(&text, kind, items) {
            Some(Value::Array(list)) => *value = Value::Array(list),
            Some(inner) => {
                *value = inner;
                make_list(value, name, items);
            }
            None => *value = Value::String(text),
        },
        one @ Value::Number(_) if kind != "object" => *value = Value::Array(vec![one]),
        other => *value = other,
    }
}

/// Returns the list that `text` means, or a value that can be converted to a list. Returns `None` if the meaning is
/// unclear.
fn listed(text: &str, kind: &str, items: Option<&Map<String, Value>>) -> Option<Value> {
    let text = text.trim();
    if text.starts_with(['[', '{', '"'])
        && let Some(inner) = json(text)
        && inner.as_str() != Some(text)
    {
        return Some(match inner {
            Value::String(word) if kind != "object" => Value::Array(vec![Value::String(word)]),
            inner => inner,
        });
    }
    if kind == "object" {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let objects: Option<Vec<Value>> = lines.map(|line| json(line).filter(Value::is_object)).collect();
        let takes_text = || items?.get("required").filter(|names| **names == serde_json::json!(["text"]));
        return match objects.filter(|objects| !objects.is_empty()) {
            Some(objects) => Some(Value::Array(objects)),
            None => takes_text().map(|_| serde_json::json!([{ "text": text }])),
        };
    }
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let words = |text: &str| -> Vec<Value> {
        let words = text.split([',', '\n']).map(unquoted).filter(|word| !word.is_empty());
        words.map(|word| Value::String(word.to_owned())).collect()
    };
    // A name may contain a comma. So a text is divided only if the parts are words without spaces, or if it is in
    // brackets.
    let is_word = |word: &str| {
        let word = word.trim();
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "_-.#@/:+~".contains(c))
    };
    Some(Value::Array(match inner {
        Some(inner) => words(inner),
        None if text.contains([',', '\n']) && text.trim_end_matches(',').split([',', '\n']).all(is_word) => {
            words(text)
        }
        None => vec![Value::String(text.to_owned())],
    }))
}

/// Converts `value`, the argument `name`, to a text, if possible. It may be a number or a list of one text. If `name`
/// takes a long text, it may also be the parts of a message. Lines may be two numbers.
pub(super) fn make_text(value: &mut Value, name: &str) {
    let text = match &*value {
        Value::Number(number) => Some(number.to_string()),
        Value::Array(items) => match &items[..] {
            [Value::String(text)] => Some(text.clone()),
            [Value::Number(number)] => Some(number.to_string()),
            [Value::Number(first), Value::Number(last)] if name == "lines" => Some(format!("{first}-{last}")),
            _ => Some(name).filter(|name| TEXTS.contains(name)).and_then(|_| parts(value)),
        },
        Value::Object(fields) if name == "lines" => {
            let bound = |name| fields.get(name).filter(|bound| bound.is_number());
            bound("start").zip(bound("end")).map(|(first, last)| format!("{first}-{last}"))
        }
        Value::Object(_) => Some(name).filter(|name| TEXTS.contains(name)).and_then(|_| parts(value)),
        _ => None,
    };
    if let Some(text) = text {
        *value = Value::String(text);
    }
}

/// Returns the text of a message or of its parts. Returns `None` if a part has no text.
fn parts(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let texts: Option<Vec<String>> = items.iter().map(parts).collect();
            texts.filter(|texts| !texts.is_empty()).map(|texts| texts.join("\n"))
        }
        Value::Object(fields) => {
            let text = parts(fields.get("text").or(fields.get("content"))?)?;
            Some(match fields.get("role").and_then(Value::as_str) {
                Some(role) => format!("{role}: {text}"),
                None => text,
            })
        }
        _ => None,
    }
}

/// Converts `value`, the argument `name`, to a number, if possible. It may be a text with a number, or a list of one
/// number.
pub(super) fn make_number(value: &mut Value, name: &str) {
    let one = match &*value {
        Value::Array(items) if items.len() == 1 => &items[0],
        one => one,
    };
    let number = match one {
        Value::Number(_) => Some(one.clone()),
        Value::String(text) if name == "importance" => {
            let word = text.trim().to_ascii_lowercase();
            let known = IMPORTANCE.iter().find(|(known, _)| *known == word);
            known.map(|(_, importance)| Value::from(*importance)).or_else(|| number(text))
        }
        Value::String(text) => number(text),
        _ => None,
    };
    if let Some(number) = number {
        *value = number;
    }
}

/// Returns the number in `text`, which may contain separators of thousands.
fn number(text: &str) -> Option<Value> {
    let text = unquoted(text);
    let mut digits = text.replace('_', "");
    let mut groups = text.trim_start_matches(['+', '-']).split(',');
    let is_digits = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    if groups.next().is_some_and(|first| first.len() <= 3 && is_digits(first))
        && groups.all(|group| group.len() == 3 && is_digits(group))
    {
        digits = digits.replace(',', "");
    }
    let whole = digits.parse::<i64>().ok().map(Value::from);
    whole.or_else(|| digits.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from))
}

/// Converts a number such as `10.0` to a whole number.
pub(super) fn make_whole(value: &mut Value) {
    if let Some(number) = value.as_f64()
        && value.is_f64()
        && number.fract() == 0.0
        && number.abs() < 9e15
    {
        *value = Value::from(number as i64);
    }
}

/// Converts `value` to a boolean, if possible. It may be a word, 0 or 1, or a list of one of these.
pub(super) fn make_bool(value: &mut Value) {
    let one = match &*value {
        Value::Array(items) if items.len() == 1 => &items[0],
        one => one,
    };
    let known = match one {
        Value::Bool(known) => Some(*known),
        Value::Number(number) if number.as_f64() == Some(1.0) => Some(true),
        Value::Number(number) if number.as_f64() == Some(0.0) => Some(false),
        Value::String(text) => match unquoted(text).to_ascii_lowercase().as_str() {
            "true" | "yes" | "y" | "on" | "1" => Some(true),
            "false" | "no" | "n" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    };
    if let Some(known) = known {
        *value = Value::Bool(known);
    }
}

/// Converts `value` to an object, if possible. It may be JSON in a text, or a list of one object. Two texts become the
/// start and the end of a range if `properties` contains these.
pub(super) fn make_object(value: &mut Value, properties: Option<&Map<String, Value>>) {
    let is_range = properties
        .is_some_and(|properties| properties.contains_key("start") && properties.contains_key("end"));
    if let Value::String(text) = &*value {
        let object = json(text).filter(|inner| inner.is_object() || inner.is_array());
        let ends = || ["..", " to ", "/", ","].iter().find_map(|between| text.split_once(between));
        match (object, ends()) {
            (Some(object), _) => *value = object,
            (None, Some((start, end))) if is_range => {
                *value = serde_json::json!([start.trim_matches('.').trim(), end.trim_matches('.').trim()]);
            }
            _ => {}
        }
    }
    if let Value::Array(items) = value {
        match &items[..] {
            [one] if one.is_object() => *value = one.clone(),
            [start, end] if is_range && !start.is_object() => {
                *value = serde_json::json!({ "start": start, "end": end });
            }
            _ => {}
        }
    }
}

/// Returns `text` without white space and quotation marks around it.
pub(super) fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    inner('"').or_else(|| inner('\'')).or_else(|| inner('`')).unwrap_or(text).trim()
}
