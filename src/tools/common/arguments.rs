//! Reads the JSON arguments of a call as the argument type of a tool.
//!
//! Serde's errors do not say which argument is wrong. So arguments are checked against the tool's input schema first,
//! and every error names the wrong argument and says what it should be. Unambiguous variants are accepted: `maxTokens`
//! for `max_tokens`, `null` for an optional argument without a value, `10.0` for `10`. Any other mistake is an error,
//! so that the agent learns from it.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Error, Result, quoted};

/// Reads `arguments` as a `T`, the type that `schema` describes.
pub(crate) fn read<T: DeserializeOwned>(schema: &Map<String, Value>, mut arguments: Value) -> Result<T> {
    if arguments.is_null() {
        arguments = Value::Object(Map::new());
    }
    settle(&mut arguments, schema, &Path::Root)?;
    serde_json::from_value(arguments)
        .map_err(|error| Error::bad_input("the arguments do not fit together").source(error))
}

/// Checks `value` against `schema` and renames its fields to the schema's spelling.
fn settle(value: &mut Value, schema: &Map<String, Value>, path: &Path) -> Result<()> {
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get(key) {
            return settle_any(value, branches, path);
        }
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => settle_object(value, schema, path),
        Some("array") => {
            let Value::Array(items) = value else { return Err(wrong_type(value, "an array", path)) };
            let Some(Value::Object(item_schema)) = schema.get("items") else { return Ok(()) };
            items
                .iter_mut()
                .enumerate()
                .try_for_each(|(index, item)| settle(item, item_schema, &Path::Item(path, index)))
        }
        Some("string") => {
            let Value::String(text) = value else { return Err(wrong_type(value, "a string", path)) };
            settle_choice(text, schema, path)
        }
        Some("integer") => {
            if let Some(number) = value.as_f64()
                && number.fract() == 0.0
                && number.abs() < 9e15
                && value.is_f64()
            {
                *value = Value::from(number as i64);
            }
            if !(value.is_i64() || value.is_u64()) {
                return Err(wrong_type(value, "a whole number", path));
            }
            settle_bounds(value, schema, path)
        }
        Some("number") if !value.is_number() => Err(wrong_type(value, "a number", path)),
        Some("number") => settle_bounds(value, schema, path),
        Some("boolean") if !value.is_boolean() => Err(wrong_type(value, "true or false", path)),
        _ => Ok(()),
    }
}

fn settle_object(value: &mut Value, schema: &Map<String, Value>, path: &Path) -> Result<()> {
    let Value::Object(fields) = value else { return Err(wrong_type(value, "an object", path)) };
    // An object without named properties is a map, whose keys the caller chooses.
    let Some(Value::Object(properties)) = schema.get("properties") else { return Ok(()) };
    let required = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|other| other == name))
    };

    let misspelled: Vec<String> =
        fields.keys().filter(|name| !properties.contains_key(*name)).cloned().collect();
    for name in misspelled {
        let known = snake_case(&name);
        if !properties.contains_key(&known) {
            return Err(unknown(&name, properties, path));
        }
        if fields.contains_key(&known) {
            let known = Path::Field(path, &known);
            return Err(Error::bad_input(format!(
                "argument `{known}` is given twice, once as `{}`",
                quoted(name)
            )));
        }
        if let Some(field) = fields.remove(&name) {
            fields.insert(known, field);
        }
    }
    fields.retain(|name, field| !field.is_null() || required(name));

    for (name, property) in properties {
        let (path, Value::Object(property)) = (Path::Field(path, name), property) else { continue };
        match fields.get_mut(name) {
            Some(field) => settle(field, property, &path)?,
            None if required(name) => return Err(missing(&path, property)),
            None => {}
        }
    }
    Ok(())
}

/// Tries the alternatives in `branches` in order until `value` fits one of them.
fn settle_any(value: &mut Value, branches: &[Value], path: &Path) -> Result<()> {
    for branch in branches.iter().filter_map(Value::as_object) {
        let mut attempt = value.clone();
        if settle(&mut attempt, branch, path).is_ok() {
            *value = attempt;
            return Ok(());
        }
    }
    let forms: Vec<&str> = branches.iter().filter_map(|branch| branch.get("type")?.as_str()).collect();
    Err(wrong_type(value, &format!("one of: {}", forms.join(", ")), path))
}

fn settle_choice(text: &str, schema: &Map<String, Value>, path: &Path) -> Result<()> {
    let Some(Value::Array(choices)) = schema.get("enum") else { return Ok(()) };
    if choices.iter().any(|choice| choice == text) {
        return Ok(());
    }
    let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
    Err(Error::bad_input(format!("argument `{path}` cannot be `{}`", quoted(text)))
        .hint(format!("choose from {}", list(choices.iter().copied()))))
}

fn settle_bounds(value: &Value, schema: &Map<String, Value>, path: &Path) -> Result<()> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let number = value.as_f64().unwrap_or_default();
    let (least, most) = (bound("minimum"), bound("maximum"));
    if least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most) {
        return Ok(());
    }
    let allowed = match (least, most) {
        (Some(least), Some(most)) => format!("from {least} to {most}"),
        (Some(least), None) => format!("{least} or more"),
        (None, Some(most)) => format!("{most} or less"),
        (None, None) => "another number".to_owned(),
    };
    Err(Error::bad_input(format!("argument `{path}` is {value}, out of range"))
        .hint(format!("give {allowed}")))
}

fn wrong_type(value: &Value, wanted: &str, path: &Path) -> Error {
    let given = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() != 0.0) => "a fraction",
        Value::Number(number) if number.is_f64() => "a number too large to be counted",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    match path {
        Path::Root => Error::bad_input(format!("the arguments are {given}, not {wanted}")),
        path => Error::bad_input(format!("argument `{path}` is {given}"))
            .hint(format!("give `{path}` as {wanted}")),
    }
}

fn missing(path: &Path, property: &Map<String, Value>) -> Error {
    let error = Error::bad_input(format!("argument `{path}` is missing"));
    match property.get("description").and_then(Value::as_str) {
        Some(description) => error.hint(format!("give `{path}`: {description}")),
        None => error.hint(format!("give `{path}`")),
    }
}

fn unknown(name: &str, properties: &Map<String, Value>, path: &Path) -> Error {
    let error = Error::bad_input(format!("there is no argument `{}`", Path::Field(path, name)));
    let normal = snake_case(name);
    let nearest = properties.keys().min_by_key(|known| (edits(&normal, known), known.len()));
    let known = list(properties.keys().map(String::as_str));
    match nearest {
        None => error.hint("call it without arguments"),
        Some(nearest) if edits(&normal, nearest) * 2 <= nearest.len() => {
            error.hint(format!("did you mean `{nearest}`? There are {known}"))
        }
        Some(_) => error.hint(format!("there are {known}")),
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Returns a camelCase or kebab-case name in snake_case. Several capitals in a row count as one word: `sessionID`
/// becomes `session_id`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    let mut previous = '_';
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && (previous.is_ascii_lowercase() || previous.is_ascii_digit()) {
            snake.push('_');
        }
        snake.push(if letter == '-' { '_' } else { letter.to_ascii_lowercase() });
        previous = letter;
    }
    snake
}

/// Returns the Levenshtein distance of `a` and `b`: how many letters must be inserted, deleted or replaced to turn one
/// into the other.
fn edits(a: &str, b: &str) -> usize {
    // Only the first 64 letters are compared: a caller can send a name of any length, and the time grows with the
    // length.
    let a: Vec<char> = a.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (i, letter) in b.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in a.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[a.len()]
}

/// The path of a value in the arguments, displayed like `messages[3].role`.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) => f.write_str(&quoted(name)),
            Path::Field(parent, name) => write!(f, "{parent}.{}", quoted(name)),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
