//! The entry that starts the server: its form, how it is written, and how it is recognised.

use std::path::Path;

use serde_json::Value;

use super::arguments;
use crate::clients::SERVE;
use crate::clients::cut;
use crate::clients::edit::{self, Entries, Member, Ours, When, json, object, pretty, split_mark};
use tiro_base::error::{Error, Result};

/// The timeout of a tool in Goose, in seconds: a tool that asks another agent takes minutes.
const TOOL_TIMEOUT: u32 = 600;

/// The end of no command, because these clients run no hooks of ours.
const NO_HOOK: &str = " hook none";

/// An entry in a file in JSON.
pub struct Entry {
    /// The key of the object with all servers.
    pub servers: &'static str,
    /// Whether the entry says that the server communicates over its standard input and output.
    has_type: bool,
    ours: Ours,
}

/// The entry in the file of most clients.
pub const MCP_SERVERS: Entry = Entry::new("mcpServers", &[&["mcpServers", "tiro"]]);

impl Entry {
    /// Returns an entry `tiro` in the object `servers`. `members` is its path.
    pub const fn new(servers: &'static str, members: &'static [&'static [&'static str]]) -> Entry {
        Entry { servers, has_type: false, ours: Ours { members, command: NO_HOOK, list: None } }
    }

    /// Returns this entry with the type of the server.
    pub const fn with_type(self) -> Entry {
        Entry { has_type: true, ..self }
    }

    /// Returns `text` with our entry, which names `project` if one is given. Other settings of the entry and other
    /// arguments of the server stay.
    ///
    /// # Errors
    ///
    /// [`tiro_base::error::Kind::BadInput`] if `text` is not a configuration of the client, or has another server with
    /// our name.
    pub fn insert(&self, text: &str, binary: &str, project: Option<&str>) -> Result<String> {
        let server = self.server(text)?;
        if server.as_ref().is_some_and(|server| program(server).is_none()) {
            return Err(Error::bad_input("it has a server `tiro` that starts another program")
                .hint("rename that server, then run this again"));
        }
        let former = words(server.as_ref().unwrap_or_default());
        let mut wanted = arguments(project);
        wanted.extend(others(former));
        let wanted = edit::array(wanted);
        let mut members = vec![self.member("command", binary.into()), self.member("args", wanted)];
        if self.has_type {
            members.insert(0, self.member("type", "stdio".into()));
        }
        self.with(text, members)
    }

    /// Returns `text`, in which our entry starts `binary`. Its arguments stay.
    ///
    /// # Errors
    ///
    /// [`tiro_base::error::Kind::BadInput`] if `text` is not a configuration of the client.
    pub fn refresh(&self, text: &str, binary: &str) -> Result<String> {
        self.with(text, vec![self.member("command", binary.into())])
    }

    /// Returns whether `text` has our entry, or can't be read and may have it.
    pub fn may_be_ours(&self, text: &str) -> bool {
        match self.server(text) {
            // A relative path was written by hand, because we write absolute paths.
            Ok(server) => {
                server.as_ref().and_then(program).is_some_and(|program| Path::new(program).is_absolute())
            }
            Err(_) => text.contains("\"tiro\""),
        }
    }

    /// Returns whether the entry in `text` has exactly the settings that we write.
    pub fn is_certainly_ours(&self, text: &str) -> bool {
        let Ok(Some(server)) = self.server(text) else { return false };
        let keys = server.as_object().into_iter().flat_map(|server| server.keys());
        let is_known = |key: &String| ["type", "command", "args"].contains(&key.as_str());
        self.may_be_ours(text) && keys.into_iter().all(is_known) && others(words(&server)).is_empty()
    }

    /// Returns `text` without our entry. A server that `before` had in its place is restored.
    ///
    /// # Errors
    ///
    /// [`tiro_base::error::Kind::BadInput`] if `text` is not valid JSON.
    pub fn without(&self, text: &str, before: Option<&str>) -> Result<String> {
        cut::remove(text, before, &self.ours)
    }

    /// Returns the settings of the server `tiro` in `text`.
    pub fn server(&self, text: &str) -> Result<Option<Value>> {
        let body = split_mark(text).1;
        if body.trim().is_empty() {
            return Ok(None);
        }
        let settings = edit::value(body)?;
        Ok(settings.get(self.servers).and_then(|servers| servers.get("tiro")).cloned())
    }

    fn member(&self, key: &str, value: edit::CstInputValue) -> Member {
        Member::new(&[self.servers, "tiro", key], value, When::Always)
    }

    fn with(&self, text: &str, members: Vec<Member>) -> Result<String> {
        edit::insert(text, &Entries { members, ..Entries::default() }, &self.ours)
    }
}

/// The form of a text that the user pastes.
pub enum Form {
    /// JSON that most clients understand.
    Json,
    /// An extension of Goose, in YAML.
    Goose,
}

impl Form {
    /// Returns the text of an entry that starts `binary`, and names `project` if one is given.
    pub fn text(&self, binary: &str, project: Option<&str>) -> String {
        let arguments = arguments(project);
        match self {
            Form::Json => {
                let server = object([("command", binary.into()), ("args", edit::array(arguments))]);
                pretty(json!({ "mcpServers": { "tiro": server } }))
            }
            Form::Goose => {
                // A text in JSON is also one in YAML.
                let quoted = |text: &str| Value::from(text).to_string();
                let arguments: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
                format!(
                    "extensions:\n  tiro:\n    type: stdio\n    name: tiro\n    \
                     description: Searchable memory of conversations and commits\n    cmd: {}\n    args: [{}]\n    \
                     envs: {{}}\n    enabled: true\n    timeout: {TOOL_TIMEOUT}\n",
                    quoted(binary),
                    arguments.join(", ")
                )
            }
        }
    }
}

/// Returns the program of `server` if it is Tiro's server.
fn program(server: &Value) -> Option<&str> {
    let program = server.get("command")?.as_str()?;
    let name = program.rsplit(['/', '\\']).next()?;
    (name.starts_with("tiro") && words(server).first() == Some(&SERVE[0])).then_some(program)
}

/// Returns the arguments of `server`.
fn words(server: &Value) -> Vec<&str> {
    server.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the arguments that we don't write.
fn others(words: Vec<&str>) -> Vec<String> {
    let mut words = words.into_iter().skip(SERVE.len());
    let mut others = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "--project" => drop(words.next()),
            word if word.starts_with("--project=") => {}
            word => others.push(word.to_owned()),
        }
    }
    others
}
