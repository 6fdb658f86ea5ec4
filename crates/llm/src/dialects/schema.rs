//! Adapts JSON schemas to services that accept only some schemas.

use serde_json::{Map, Value};

/// Keywords whose members are schemas.
const OF_NAMES: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Keywords whose items are schemas.
const OF_LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

/// Keywords that OpenAI refuses in a strict schema.
const UNSTRICT: [&str; 8] =
    ["allOf", "oneOf", "not", "if", "then", "else", "patternProperties", "dependentSchemas"];

/// Returns `schema` with every object closed, so that it allows only the members that it names. Anthropic and OpenAI
/// demand this.
pub(super) fn closed(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut closed: Map<String, Value> = Map::new();
    for (name, member) in members {
        let member = match member {
            Value::Object(of) if OF_NAMES.contains(&name.as_str()) => {
                Value::Object(of.iter().map(|(name, schema)| (name.clone(), self::closed(schema))).collect())
            }
            Value::Array(of) if OF_LISTS.contains(&name.as_str()) => of.iter().map(self::closed).collect(),
            Value::Object(_) if name == "items" => self::closed(member),
            other => other.clone(),
        };
        closed.insert(name.clone(), member);
    }
    if closed.contains_key("properties") {
        closed.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    Value::Object(closed)
}

/// Returns whether OpenAI accepts `schema` as strict. A strict schema is an object. Every object in it is closed and
/// requires all its properties, and the only condition in it is `anyOf`.
pub(super) fn is_strict(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object") && is_strict_within(schema)
}

fn is_strict_within(schema: &Value) -> bool {
    let Value::Object(members) = schema else { return false };
    if UNSTRICT.iter().any(|word| members.contains_key(*word)) {
        return false;
    }
    if members.get("type").is_some_and(|kind| kind == "object") || members.contains_key("properties") {
        let required: Vec<&str> = members
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let is_closed = members.get("additionalProperties") == Some(&Value::Bool(false));
        let properties = members.get("properties").and_then(Value::as_object);
        let is_full = properties
            .is_some_and(|properties| properties.keys().all(|name| required.contains(&name.as_str())));
        if !is_closed || !is_full {
            return false;
        }
    }
    members.iter().all(|(name, member)| match member {
        Value::Object(of) if OF_NAMES.contains(&name.as_str()) => of.values().all(is_strict_within),
        Value::Array(of) if OF_LISTS.contains(&name.as_str()) => of.iter().all(is_strict_within),
        Value::Object(_) if name == "items" => is_strict_within(member),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_strict_if_its_objects_are_closed_and_require_everything() {
        let item = json!({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]});
        let full = json!({"type": "object", "properties": {"a": {"type": "array", "items": item}},
            "required": ["a"]});
        assert!(!is_strict(&full) && is_strict(&closed(&full)));
        assert_eq!(closed(&full)["properties"]["a"]["items"]["additionalProperties"], false);
        assert_eq!(closed(&closed(&full)), closed(&full));
        let mut optional = full.clone();
        optional["required"] = json!([]);
        let mut open = full.clone();
        open["properties"]["a"]["items"]["additionalProperties"] = json!(true);
        let mut either = full.clone();
        either["properties"]["a"] = json!({"oneOf": [{"type": "string"}]});
        let map = json!({"type": "object", "properties": {"m": {"type": "object"}}, "required": ["m"]});
        let list = json!({"type": "array", "items": {"type": "string"}});
        for lax in [optional, open, either, map, list, json!(true), json!({})] {
            assert!(!is_strict(&closed(&lax)), "{lax}");
        }
        // A property may have the name of a keyword.
        let named = json!({"type": "object", "properties": {"not": {"type": "string"}}, "required": ["not"]});
        assert!(is_strict(&closed(&named)));
    }
}
