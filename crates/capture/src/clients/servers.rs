//! Reads the servers that a configuration file names. All clients name them in one of two ways: as tables of
//! TOML, or below one of a few keys of JSON, with a command and its arguments or with the words of a command line.

use std::path::Path;

use serde_json::Value;
use toml_edit::{DocumentMut, Item};

use super::edit;
use tiro_base::file::user_file;

/// The keys under which clients list their servers.
const KEYS: [&str; 4] = ["mcpServers", "mcp", "servers", "context_servers"];

/// A server in a configuration file.
pub struct Server {
    /// The name that the user or Tiro gave to it.
    pub name: String,
    /// The words of its command line.
    pub words: Vec<String>,
    /// The timeout of its tools, in the unit of the client.
    pub timeout: Option<i64>,
}

/// Returns the servers in the file at `path`. A file that is missing or can't be read has none.
pub fn in_file(path: &Path) -> Vec<Server> {
    read(path).map(|text| in_text(path, &text)).unwrap_or_default()
}

/// Returns the text of the file at `path`, if it can be read.
pub fn read(path: &Path) -> Option<String> {
    String::from_utf8(user_file::look(path).ok()?.state?.bytes.0).ok()
}

/// Returns the servers in `text`, the content of the file at `path`. A text that can't be parsed has none.
pub fn in_text(path: &Path, text: &str) -> Vec<Server> {
    let text = edit::split_mark(text).1;
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => in_toml(text),
        Some("json" | "jsonc") => {
            edit::value(text).map(|settings| in_settings(&settings)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Returns the servers in settings that were parsed.
pub fn in_settings(settings: &Value) -> Vec<Server> {
    let named = KEYS.iter().filter_map(|key| settings[key].as_object()).flatten();
    named
        .map(|(name, server)| {
            let line = match &server["command"] {
                Value::Array(words) => words.iter().collect(),
                command => vec![command],
            };
            let arguments = server["args"].as_array().into_iter().flatten();
            let words = line.into_iter().chain(arguments);
            Server {
                name: name.clone(),
                words: words.map(|word| word.as_str().unwrap_or_default().to_owned()).collect(),
                timeout: server["timeout"].as_i64(),
            }
        })
        .collect()
}

fn in_toml(text: &str) -> Vec<Server> {
    let Ok(document) = text.parse::<DocumentMut>() else { return Vec::new() };
    let servers = document.get("mcp_servers").and_then(Item::as_table_like);
    let servers = servers.into_iter().flat_map(|servers| servers.iter());
    servers
        .map(|(name, server)| {
            let command = server.get("command").and_then(Item::as_str).unwrap_or_default();
            let arguments = server.get("args").and_then(Item::as_array).into_iter().flatten();
            let arguments = arguments.map(|word| word.as_str().unwrap_or_default());
            Server {
                name: name.to_owned(),
                words: std::iter::once(command).chain(arguments).map(str::to_owned).collect(),
                timeout: server.get("tool_timeout_sec").and_then(Item::as_integer),
            }
        })
        .collect()
}
