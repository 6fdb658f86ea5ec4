//! Reads the JSON arguments of a call as the argument type of a tool.
//!
//! Models and clients write calls in many ways. They give a list as a JSON string, a number as text, or one value in
//! place of a list. They write `""` or `null` for an argument that they leave out, or use another usual name for an
//! argument. If such a call is refused, it is mostly repeated in the same way. So each of these ways is accepted:
//! `values` reads single values, and `names` knows other names. The schema keeps plain types, and adapted values are
//! not reported.
//!
//! Serde's errors do not say which argument is wrong. So arguments are first checked against the tool's input schema.
//! If a value can't be read, the error names the argument and gives an example. Arguments that the tool doesn't have
//! are ignored and named in the answer.

mod names;
mod values;

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use tiro_base::error::{Error, Result, quoted};
use tiro_text::tokens;

/// The maximum number of names that an answer lists, and the maximum number of characters of each name. Arbitrary.
const MOST_NAMED: (usize, usize) = (5, 40);

/// The arguments of a call, after reading.
pub struct Given<T> {
    /// The arguments.
    pub args: T,
    /// A line for the answer. The line names the ignored arguments and the lowered numbers.
    pub remark: Option<String>,
}

/// The arguments that were ignored or changed.
#[derive(Default)]
struct Remarks {
    /// The arguments that the tool does not have.
    ignored: Vec<String>,
    /// The arguments that were too large, each with the largest allowed value.
    lowered: Vec<String>,
}

/// The path of a value in the arguments, displayed like `messages[3].role`.
enum Path<'a> {
    Root,
    Field(&'a Path<'a>, &'a str),
    /// A field with two names: the call used the first name, and the tool's own name is the second.
    Also(&'a Path<'a>, &'a str, &'a str),
    Item(&'a Path<'a>, usize),
}

/// Reads `arguments` as a `T`, the type that `schema` describes.
///
/// The remark is part of the answer. So if a budget is given, the tokens of the remark are taken from it.
pub fn read<T: DeserializeOwned>(schema: &Map<String, Value>, arguments: Value) -> Result<Given<T>> {
    let mut remarks = Remarks::default();
    let mut arguments = unwrapped(schema, arguments);
    settle(&mut arguments, schema, &Path::Root, &mut remarks).map_err(|error| remarks.added_to(error))?;
    let remark = remarks.line();
    if let Some(remark) = &remark {
        make_room(schema, &mut arguments, tokens::count(remark) + 1);
    }
    let args = serde_json::from_value(arguments)
        .map_err(|error| Error::bad_input("the arguments do not fit together").source(error))?;
    Ok(Given { args, remark })
}

/// Returns the arguments without the wrappers that clients put around them. A wrapper is a JSON string, a list of one
/// object, or an object with a single field such as `arguments`.
fn unwrapped(schema: &Map<String, Value>, arguments: Value) -> Value {
    let is_own =
        |name: &str| schema.get("properties").is_some_and(|properties| properties.get(name).is_some());
    match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => match values::json(&text) {
            Some(inner @ (Value::Object(_) | Value::Array(_))) => unwrapped(schema, inner),
            _ => Value::String(text),
        },
        Value::Array(items) if items.is_empty() => Value::Object(Map::new()),
        Value::Array(mut items) if items.len() == 1 && items[0].is_object() => items.swap_remove(0),
        Value::Object(mut fields) => {
            let only = (fields.len() == 1).then(|| fields.keys().next().cloned()).flatten();
            let wrapper = only.filter(|name| names::WRAPPERS.contains(&name.as_str()) && !is_own(name));
            let inner = wrapper.as_ref().and_then(|name| match &fields[name] {
                Value::String(text) => values::json(text),
                inner => Some(inner.clone()),
            });
            match (wrapper, inner.filter(Value::is_object)) {
                (Some(_), Some(inner)) => inner,
                _ => Value::Object(std::mem::take(&mut fields)),
            }
        }
        other => other,
    }
}

/// Lowers the budget that the call names by `tokens`. Changes nothing if the call names no budget, or if the lowered
/// budget would be below the least budget.
fn make_room(schema: &Map<String, Value>, arguments: &mut Value, tokens: usize) {
    let least = schema.get("properties").and_then(|properties| properties.get("max_tokens")?.get("minimum"));
    let (Some(least), Some(budget)) = (least.and_then(Value::as_u64), arguments.get_mut("max_tokens")) else {
        return;
    };
    if let Some(lower) = budget.as_u64().and_then(|budget| budget.checked_sub(tokens as u64))
        && lower >= least
    {
        *budget = Value::from(lower);
    }
}

/// Checks `value` against `schema`, and converts the value and the names of its fields to the form of the schema.
fn settle(value: &mut Value, schema: &Map<String, Value>, path: &Path, remarks: &mut Remarks) -> Result<()> {
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(branches)) = schema.get(key) {
            return settle_any(value, branches, path, remarks);
        }
    }
    let wrong = |value: &Value, wanted| Err(wrong_type(value, wanted, schema, path));
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => settle_object(value, schema, path, remarks),
        Some("array") => {
            let item_schema = schema.get("items").and_then(Value::as_object);
            values::make_list(value, path.name(), item_schema);
            let Value::Array(items) = value else { return wrong(value, "an array") };
            let Some(item_schema) = item_schema else { return Ok(()) };
            items
                .iter_mut()
                .enumerate()
                .try_for_each(|(index, item)| settle(item, item_schema, &Path::Item(path, index), remarks))
        }
        Some("string") => {
            values::make_text(value, path.name());
            let Value::String(text) = value else { return wrong(value, "a string") };
            settle_choice(text, schema, path)
        }
        Some("integer") => {
            values::make_number(value, path.name());
            values::make_whole(value);
            match value.is_i64() || value.is_u64() || is_above(value, schema) {
                true => settle_bounds(value, schema, path, remarks),
                false => wrong(value, "a whole number"),
            }
        }
        Some("number") => {
            values::make_number(value, path.name());
            match value.is_number() {
                true => settle_bounds(value, schema, path, remarks),
                false => wrong(value, "a number"),
            }
        }
        Some("boolean") => {
            values::make_bool(value);
            if value.is_boolean() { Ok(()) } else { wrong(value, "true or false") }
        }
        _ => Ok(()),
    }
}

/// Returns whether `value` is a whole number above the maximum of `schema`, even if it is too large for an integer
/// type.
fn is_above(value: &Value, schema: &Map<String, Value>) -> bool {
    let most = schema.get("maximum").and_then(Value::as_f64);
    value.as_f64().zip(most).is_some_and(|(number, most)| number.fract() == 0.0 && number > most)
}

fn settle_object(
    value: &mut Value,
    schema: &Map<String, Value>,
    path: &Path,
    remarks: &mut Remarks,
) -> Result<()> {
    let properties = schema.get("properties").and_then(Value::as_object);
    values::make_object(value, properties);
    let Value::Object(fields) = value else { return Err(wrong_type(value, "an object", schema, path)) };
    // An object without named properties is a map. The caller chooses its keys.
    let Some(properties) = properties else { return Ok(()) };
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|other| other == name))
    };
    let given = std::mem::take(fields);
    let (own, others): (Vec<_>, Vec<_>) =
        given.into_iter().partition(|(name, _)| properties.contains_key(name));
    for (name, field) in own {
        let Some(property) = properties[&name].as_object() else { continue };
        if !values::is_left_out(&field, property, required(&name)) {
            fields.insert(name, field);
        }
    }
    // If an argument is given under its own name and under another name, its own name takes precedence.
    let mut also = Vec::new();
    for (name, field) in others {
        match names::resolve(&name, properties) {
            Some(place) => also.push((name, place, field)),
            None => remarks.ignored.push(Path::Field(path, &name).to_string()),
        }
    }
    for (name, place, field) in also {
        let given = Path::Also(path, &name, place.name());
        if !adopt(fields, properties, place, field, (&given, &required), remarks)? {
            remarks.ignored.push(given.to_string());
        }
    }
    for (name, property) in properties {
        let (path, Value::Object(property)) = (Path::Field(path, name), property) else { continue };
        match fields.get_mut(name) {
            Some(Value::String(text)) if text.trim().is_empty() => {
                return Err(missing("empty", &path, property));
            }
            Some(field) => settle(field, property, &path, remarks)?,
            None if required(name) => return Err(missing("missing", &path, property)),
            None => {}
        }
    }
    Ok(())
}

/// Sets the argument at `place` to `field`, which was given under another name. Returns false if `field` must be
/// ignored, because the argument already has another value, or takes no value of this form.
fn adopt(
    fields: &mut Map<String, Value>,
    properties: &Map<String, Value>,
    place: names::NamedArgument,
    mut field: Value,
    (given, required): (&Path, &dyn Fn(&str) -> bool),
    remarks: &mut Remarks,
) -> Result<bool> {
    let (name, property, is_required, target) = match place {
        names::NamedArgument::Own(name) => {
            let Some(property) = properties[name].as_object() else { return Ok(false) };
            (name, property, required(name), fields)
        }
        names::NamedArgument::Inner(outer, name) => {
            let Some(outer_schema) = properties[outer].as_object() else { return Ok(false) };
            let inner = outer_schema.get("properties").and_then(Value::as_object);
            let Some(property) = inner.and_then(|inner| inner[name].as_object()) else { return Ok(false) };
            let target = fields.entry(outer).or_insert_with(|| Value::Object(Map::new()));
            values::make_object(target, inner);
            let Value::Object(target) = target else { return Ok(false) };
            (name, property, false, target)
        }
    };
    if values::is_left_out(&field, property, is_required) {
        return Ok(true);
    }
    let mut of_field = Remarks::default();
    match settle(&mut field, property, given, &mut of_field) {
        Ok(()) => {}
        Err(_) if !is_required && (field.is_array() || field.is_object()) => return Ok(false),
        Err(error) => return Err(error),
    }
    if let Some(known) = target.get(name) {
        let mut known = known.clone();
        let is_same = settle(&mut known, property, given, &mut Remarks::default()).is_ok() && known == field;
        return Ok(is_same);
    }
    remarks.ignored.append(&mut of_field.ignored);
    remarks.lowered.append(&mut of_field.lowered);
    target.insert(name.to_owned(), field);
    Ok(true)
}

/// Tries the alternatives in `branches` in order until `value` fits one of them.
fn settle_any(value: &mut Value, branches: &[Value], path: &Path, remarks: &mut Remarks) -> Result<()> {
    for branch in branches.iter().filter_map(Value::as_object) {
        let mut attempt = value.clone();
        if settle(&mut attempt, branch, path, remarks).is_ok() {
            *value = attempt;
            return Ok(());
        }
    }
    let forms: Vec<&str> = branches.iter().filter_map(|branch| branch.get("type")?.as_str()).collect();
    let none = Map::new();
    let schema = branches.first().and_then(Value::as_object).unwrap_or(&none);
    Err(wrong_type(value, &format!("one of: {}", forms.join(", ")), schema, path))
}

fn settle_choice(text: &mut String, schema: &Map<String, Value>, path: &Path) -> Result<()> {
    let Some(Value::Array(choices)) = schema.get("enum") else { return Ok(()) };
    let choices: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
    match names::choice(text, &choices) {
        Some(choice) => {
            choice.clone_into(text);
            Ok(())
        }
        None => {
            let choices: Vec<String> = choices.iter().map(|choice| format!("`{choice}`")).collect();
            Err(Error::bad_input(format!("argument `{path}` cannot be `{}`", quoted(text)))
                .hint(format!("choose from {}", choices.join(", "))))
        }
    }
}

/// Lowers a whole number above the maximum to the maximum. For example, a call may ask for more things than exist.
/// Errors for any other number out of range.
fn settle_bounds(
    value: &mut Value,
    schema: &Map<String, Value>,
    path: &Path,
    remarks: &mut Remarks,
) -> Result<()> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let number = value.as_f64().unwrap_or_default();
    let (least, most) = (bound("minimum"), bound("maximum"));
    let is_enough = least.is_none_or(|least| number >= least);
    if is_enough && most.is_none_or(|most| number <= most) {
        return Ok(());
    }
    if is_enough && schema.get("type").is_some_and(|kind| kind == "integer") {
        *value = schema["maximum"].clone();
        remarks.lowered.push(format!("`{path}` is {value} at most"));
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

fn wrong_type(value: &Value, wanted: &str, schema: &Map<String, Value>, path: &Path) -> Error {
    let given = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() != 0.0) => {
            "a fraction".to_owned()
        }
        Value::Number(number) if number.is_f64() => "a number too large to be counted".to_owned(),
        Value::Number(_) => "a number".to_owned(),
        Value::String(text) => format!("`{}`", quoted(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    };
    let example = names::example(path.name(), schema);
    match path {
        Path::Root => Error::bad_input(format!("the arguments are {given}, not {wanted}"))
            .hint(format!("give {wanted}, such as {example}")),
        path => Error::bad_input(format!("argument `{path}` is {given}"))
            .hint(format!("give `{path}` as {wanted}, such as {example}")),
    }
}

/// Returns the error for a required argument that is missing or empty.
fn missing(how: &str, path: &Path, property: &Map<String, Value>) -> Error {
    let example = names::example(path.name(), property);
    let error = Error::bad_input(format!("argument `{path}` is {how}"));
    match property.get("description").and_then(Value::as_str) {
        Some(description) => error.hint(format!("give `{path}`, such as {example}: {description}")),
        None => error.hint(format!("give `{path}`, such as {example}")),
    }
}

impl Remarks {
    /// Returns the remarks as one line. Returns `None` if there are no remarks.
    fn line(&self) -> Option<String> {
        let mut parts = self.lowered.clone();
        parts.extend(self.ignored_names().map(|names| format!("Ignored arguments: {names}")));
        (!parts.is_empty()).then(|| format!("{}.", parts.join(". ")))
    }

    fn ignored_names(&self) -> Option<String> {
        let (most, longest) = MOST_NAMED;
        let name = |name: &String| format!("`{}`", name.chars().take(longest).collect::<String>());
        let mut names: Vec<String> = self.ignored.iter().take(most).map(name).collect();
        if self.ignored.len() > most {
            names.push(format!("{} more", self.ignored.len() - most));
        }
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Adds the ignored arguments to the hint of `error`, because the caller may have meant one of them.
    fn added_to(&self, error: Error) -> Error {
        let Some(names) = self.ignored_names() else { return error };
        let hint = error.way_out().map_or(String::new(), |hint| format!("{hint}; "));
        error.hint(format!("{hint}there are no arguments {names}"))
    }
}

impl Path<'_> {
    /// Returns the name of the argument that the value belongs to. The name is empty if the value is the object with
    /// all arguments.
    fn name(&self) -> &str {
        match self {
            Path::Root => "",
            Path::Field(_, name) | Path::Also(_, _, name) => name,
            Path::Item(parent, _) => parent.name(),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(Path::Root, name) | Path::Also(Path::Root, name, _) => f.write_str(&quoted(name)),
            Path::Field(parent, name) | Path::Also(parent, name, _) => write!(f, "{parent}.{}", quoted(name)),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
