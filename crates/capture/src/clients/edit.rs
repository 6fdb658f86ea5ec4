//! Edits settings in JSON that people wrote, with comments, trailing commas and their own layout.
//!
//! An edit changes only our entries. The syntax tree of `jsonc-parser` prints everything else byte for byte. The
//! result is parsed and compared with the expected values and comments; the edit is refused if it would lose
//! anything. A file is never written anew from its parsed values.

pub use jsonc_parser::cst::CstInputValue;
use jsonc_parser::cst::{CstNode, CstObject, CstRootNode};
use jsonc_parser::tokens::Token;
use jsonc_parser::{ParseOptions, Scanner, ScannerOptions, parse_to_serde_value};
use serde_json::{Map, Value};

use tiro_base::error::{Context, Error, Kind, Result};

pub use jsonc_parser::json;

/// Our entries in a settings file.
#[derive(Default)]
pub struct Entries {
    /// Members of objects; a parent comes before its children.
    pub members: Vec<Member>,
    /// Groups of hooks, each an element of an array in `hooks`.
    pub hooks: Vec<Hook>,
    /// Texts that are elements of the array [`Ours::list`].
    pub elements: Vec<String>,
}

/// A member of an object.
pub struct Member {
    /// The keys that lead to the member.
    pub path: Vec<String>,
    /// Our value.
    pub value: CstInputValue,
    /// Whether our value replaces a value of the user.
    pub when: When,
}

/// When a member is set to our value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// Only if it is missing, so that the user's value stays.
    Absent,
}

/// A group of hooks in the array `hooks.<event>`; all three clients have such groups.
pub struct Hook {
    /// The name of the event, which is the key in `hooks`.
    pub event: &'static str,
    /// The command of the only hook in `group`, without its arguments.
    pub command: String,
    /// The group that is added if `event` has no hook of ours yet.
    pub group: CstInputValue,
}

/// Identifies our entries, whatever values they have now.
#[derive(Clone, Copy)]
pub struct Ours {
    /// The paths of our members.
    pub members: &'static [&'static [&'static str]],
    /// The end of the command line of our hooks. It doesn't depend on the path of the program.
    pub command: &'static str,
    /// The path of an array of texts that contains elements of ours, and the prefix by which our elements are
    /// recognised.
    pub list: Option<(&'static [&'static str], &'static str)>,
}

impl Member {
    /// Returns a member that sets `path` to `value`.
    pub fn new(path: &[&str], value: CstInputValue, when: When) -> Member {
        Member { path: path.iter().map(|key| (*key).to_owned()).collect(), value, when }
    }
}

/// Returns `text` with `entries`. If it already contains them, the bytes stay the same.
///
/// # Errors
///
/// [`Kind::BadInput`] if `text` is not a JSON object, or has values of another type where our entries belong.
pub fn insert(text: &str, entries: &Entries, ours: &Ours) -> Result<String> {
    let (mark, body) = split_mark(text);
    let body = if body.trim().is_empty() { "{}\n" } else { body };
    let root = parse(body)?;
    let object = root.object_value().ok_or_else(|| Error::bad_input("the settings are not a JSON object"))?;
    let mut expected = value(body)?;
    for Member { path, value: new, when } in &entries.members {
        let (key, parents) = path.split_last().expect("a member has a key");
        let plain = plain(new);
        match lookup(&expected, path) {
            Some(now) if *when == When::Absent || *now == plain => continue,
            _ => {}
        }
        let parent = descend(&object, parents)?;
        match parent.get(key) {
            Some(member) => member.set_value(new.clone()),
            None => drop(parent.append(key, new.clone())),
        }
        objects(&mut expected, parents).insert(key.clone(), plain);
    }
    for hook in &entries.hooks {
        let parent = descend(&object, &["hooks".to_owned()])?;
        let groups = parent
            .array_value_or_create(hook.event)
            .ok_or_else(|| Error::bad_input(format!("`hooks.{}` is not an array", hook.event)))?;
        let commands = commands(&groups.elements(), ours);
        let expected = objects(&mut expected, &["hooks".to_owned()]);
        let expected = expected.entry(hook.event).or_insert_with(|| Value::Array(Vec::new()));
        if commands.is_empty() {
            groups.append(hook.group.clone());
            expected.as_array_mut().expect("the text has an array there").push(plain(&hook.group));
        }
        for command in commands {
            command.set_value(CstInputValue::String(hook.command.clone()));
        }
        for each in expected.as_array_mut().into_iter().flatten().flat_map(hooks_of) {
            if line_of(each).is_some_and(|line| is_ours(&line, ours)) {
                each["command"] = Value::String(hook.command.clone());
            }
        }
    }
    if let (Some((path, _)), false) = (ours.list, entries.elements.is_empty()) {
        let path: Vec<String> = path.iter().map(|key| (*key).to_owned()).collect();
        let (key, parents) = path.split_last().expect("a list has a key");
        let list = descend(&object, parents)?.array_value_or_create(key);
        let list = list.ok_or_else(|| Error::bad_input(format!("`{}` is not an array", path.join("."))))?;
        let expected = objects(&mut expected, parents);
        let expected = expected.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        let expected = expected.as_array_mut().expect("the text has an array there");
        for element in &entries.elements {
            if !expected.iter().any(|each| each == element) {
                list.append(element.as_str().into());
                expected.push(element.as_str().into());
            }
        }
    }
    let edited = root.to_string();
    if value(&edited)? != expected || comments(&edited)? != comments(body)? {
        return Err(Error::bad_input("the settings can't be edited without losing something"));
    }
    Ok(format!("{mark}{edited}"))
}

/// Returns `value` as the text of a new file.
pub fn pretty(value: CstInputValue) -> String {
    let root = CstRootNode::parse("{}\n", &STRICT).expect("this is JSON");
    root.set_value(value);
    root.to_string()
}

/// Returns an object with `members`, in order.
pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, CstInputValue)>) -> CstInputValue {
    CstInputValue::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Returns an array of texts.
pub fn array(texts: Vec<String>) -> CstInputValue {
    CstInputValue::Array(texts.into_iter().map(CstInputValue::String).collect())
}

/// Returns the parsed text. If a key occurs twice, its last value counts.
pub fn value(text: &str) -> Result<Value> {
    parse_to_serde_value(text, &STRICT)
        .context(Kind::BadInput, || "the settings are not valid JSON".to_owned())
}

/// JSON with comments and trailing commas, as the clients accept it.
pub const STRICT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn parse(text: &str) -> Result<CstRootNode> {
    CstRootNode::parse(text, &STRICT).context(Kind::BadInput, || "the settings are not valid JSON".to_owned())
}

/// Splits off a byte order mark, which some editors on Windows write.
pub fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 })
}

/// Returns the comments of `text`, in order.
fn comments(text: &str) -> Result<Vec<String>> {
    let mut scanner = Scanner::new(text, &ScannerOptions::default());
    let mut comments = Vec::new();
    while let Some(token) =
        scanner.scan().context(Kind::BadInput, || "the settings are not valid JSON".to_owned())?
    {
        if let Token::CommentLine(text) | Token::CommentBlock(text) = token {
            comments.push(text.to_owned());
        }
    }
    Ok(comments)
}

fn descend(object: &CstObject, path: &[String]) -> Result<CstObject> {
    let mut object = object.clone();
    for key in path {
        object = object
            .object_value_or_create(key)
            .ok_or_else(|| Error::bad_input(format!("`{key}` is not an object")))?;
    }
    Ok(object)
}

/// Returns the object at `path`; missing parents are created.
fn objects<'a>(value: &'a mut Value, path: &[String]) -> &'a mut Map<String, Value> {
    let mut object = value.as_object_mut().expect("the text is an object");
    for key in path {
        let next = object.entry(key).or_insert_with(|| Value::Object(Map::new()));
        if !next.is_object() {
            // This happens only if the key occurs twice and only its first value is an object. Then the comparison
            // refuses the edit.
            *next = Value::Object(Map::new());
        }
        object = next.as_object_mut().expect("just made sure");
    }
    object
}

fn lookup<'a>(value: &'a Value, path: &[impl AsRef<str>]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key.as_ref()))
}

/// Returns the `command` members of our hooks in `groups`.
fn commands(groups: &[CstNode], ours: &Ours) -> Vec<jsonc_parser::cst::CstObjectProp> {
    groups
        .iter()
        .filter_map(|group| group.as_object()?.array_value("hooks"))
        .flat_map(|hooks| hooks.elements())
        .filter(|hook| command(hook).is_some_and(|command| is_ours(&command, ours)))
        .filter_map(|hook| hook.as_object()?.get("command"))
        .collect()
}

/// Returns the command line of a hook: its command and its separate arguments, if it has any.
fn command(hook: &CstNode) -> Option<String> {
    line_of(&value(&hook.to_string()).ok()?)
}

fn line_of(hook: &Value) -> Option<String> {
    let arguments =
        hook.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<&str> = std::iter::once(hook.get("command")?.as_str()?).chain(arguments).collect();
    Some(words.join(" "))
}

fn hooks_of(group: &mut Value) -> impl Iterator<Item = &mut Value> {
    group.get_mut("hooks").and_then(Value::as_array_mut).into_iter().flatten()
}

/// Returns whether the command line of a hook is one of ours.
pub fn is_ours(command: &str, ours: &Ours) -> bool {
    // Other programs have hooks with the same name, so the program must be Tiro.
    let program =
        command.trim_end().strip_suffix(ours.command).map(|program| program.trim_matches(['"', '\'', ' ']));
    let name = program.and_then(|program| program.rsplit(['/', '\\']).next());
    name.is_some_and(|name| name.starts_with("tiro"))
}

fn plain(value: &CstInputValue) -> Value {
    match value {
        CstInputValue::Null => Value::Null,
        CstInputValue::Bool(value) => Value::Bool(*value),
        CstInputValue::Number(value) => serde_json::from_str(value).expect("our numbers are JSON"),
        CstInputValue::String(value) => Value::String(value.clone()),
        CstInputValue::Array(values) => Value::Array(values.iter().map(plain).collect()),
        CstInputValue::Object(members) => {
            Value::Object(members.iter().map(|(key, value)| (key.clone(), plain(value))).collect())
        }
    }
}
