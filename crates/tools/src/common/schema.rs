//! JSON Schemas that every client accepts and that cost few tokens: short, flat, without unions.
//!
//! A model reads every token of a schema in every conversation, and several model APIs reject the default output of
//! schemars (`["integer", "null"]`, `format: "uint"`, `$ref`). So the generated schema is rewritten. An optional field
//! is left out of `required` and not made nullable. An enum of documented variants becomes a plain list. Titles,
//! formats and empty defaults are removed. Minimums and maximums stay, because arguments are checked against the input
//! schema.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value, json};

/// Returns the schema of the arguments `T`: an object schema with `properties` and `required`.
pub fn input_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = generated::<T>(SchemaSettings::draft2020_12().for_deserialize());
    simplify(&mut schema);
    schema.remove("description");
    schema.entry("properties").or_insert_with(|| json!({}));
    schema
}

/// Returns `schema` in the form in which clients list it. Minimums of 0 are removed, because they cost tokens and say
/// little.
pub fn listed(schema: &Map<String, Value>) -> Map<String, Value> {
    let fields = schema.iter().filter(|(name, value)| *name != "minimum" || value.as_f64() != Some(0.0));
    let inner = |value: &Value| match value {
        Value::Object(inner) => Value::Object(listed(inner)),
        other => other.clone(),
    };
    fields.map(|(name, value)| (name.clone(), inner(value))).collect()
}

/// Returns the schema of the answer `T`. The schema lists the top-level fields of `T` with their types. A field that
/// may have several types is listed without a type.
///
/// No field is required. The answer of a failed call has only the field `error`, and some clients also check such an
/// answer against this schema.
pub fn output_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = generated::<T>(SchemaSettings::draft2020_12().for_serialize());
    simplify(&mut schema);
    let fields = match schema.remove("properties") {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let only_type = |(name, field): (String, Value)| match field.get("type") {
        Some(kind) => (name, json!({ "type": kind })),
        None => (name, json!({})),
    };
    let fields: Map<String, Value> = fields.into_iter().map(only_type).collect();
    Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), Value::Object(fields))])
}

/// Returns the schema of an argument that is one of `words`.
pub fn one_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

fn generated<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    match settings.into_generator().into_root_schema_for::<T>().to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Rewrites `schema` and everything in it.
fn simplify(schema: &mut Map<String, Value>) {
    for noise in ["title", "format", "$schema", "examples"] {
        schema.remove(noise);
    }
    if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
        schema.remove("additionalProperties");
    }
    if schema.get("default").is_some_and(is_empty) {
        schema.remove("default");
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    // If the name of an argument is clear enough, the description is empty and is removed here. The doc comment of the
    // argument is then only for readers of the code.
    if schema.get("description").is_some_and(is_empty) {
        schema.remove("description");
    }
    without_null(schema);
    for key in ["properties", "$defs"] {
        if let Some(Value::Object(properties)) = schema.get_mut(key) {
            properties.values_mut().filter_map(Value::as_object_mut).for_each(simplify);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = schema.get_mut(key) {
            simplify(inner);
        }
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get_mut(key) {
            branches.iter_mut().filter_map(Value::as_object_mut).for_each(simplify);
        }
        one_branch(schema, key);
        one_enum(schema, key);
    }
}

fn is_empty(default: &Value) -> bool {
    match default {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Removes `null` from a list of types, from an enum and from alternatives.
fn without_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [kind] = types.as_slice() {
            let kind = kind.clone();
            schema.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get_mut(key) {
            branches.retain(|branch| branch.get("type").is_none_or(|kind| kind != "null"));
        }
    }
}

/// If `key` lists only one alternative, replaces the list with the keys of that alternative. Keys that the schema
/// already has take precedence.
fn one_branch(schema: &mut Map<String, Value>, key: &str) {
    if schema.get(key).and_then(Value::as_array).is_none_or(|branches| branches.len() != 1) {
        return;
    }
    if let Some(Value::Array(mut branches)) = schema.remove(key)
        && let Some(Value::Object(branch)) = branches.pop()
    {
        for (name, value) in branch {
            schema.entry(name).or_insert(value);
        }
    }
}

/// If all alternatives are fixed strings, replaces them with one enum. This is needed because schemars writes
/// documented variants as separate alternatives.
fn one_enum(schema: &mut Map<String, Value>, key: &str) {
    let Some(Value::Array(branches)) = schema.get(key) else { return };
    let names = |branch: &Value| -> Option<Vec<Value>> {
        match (branch.get("const"), branch.get("enum")) {
            (Some(name), None) if name.is_string() => Some(vec![name.clone()]),
            (None, Some(Value::Array(names))) if names.iter().all(Value::is_string) => Some(names.clone()),
            _ => None,
        }
    };
    let Some(names) = branches.iter().map(names).collect::<Option<Vec<_>>>() else { return };
    schema.remove(key);
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), Value::Array(names.concat()));
}
