//! Servers of Tiro that somebody configured beside the one that `tiro init` sets up.
//!
//! The client then starts two of them, and the agent reads every tool twice. They are reported and left alone. It is not
//! a search of all configurations that a client may have: those of the user and of this project are looked at.

use std::path::Path;

use serde_json::Value;
use toml_edit::DocumentMut;

use super::{Client, Finding, Places, edit, file};
use crate::error::quoted;

/// The name of the server that `tiro init` sets up.
const OURS: &str = "tiro";

/// Returns a finding for each server of Tiro that is configured besides ours, for the user or for the project in `root`.
///
/// A file that is missing or can't be read has none.
pub fn look(places: &Places, root: Option<&Path>) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |client: Client, path: &Path, servers: Vec<String>| {
        found.extend(servers.iter().map(|name| finding(client, path, name)));
    };
    // Where the user chose another directory, the file is in it, else beside it.
    let user = match places.claude_code == places.home.join(".claude") {
        true => places.home.join(".claude.json"),
        false => places.claude_code.join(".claude.json"),
    };
    if let Some(settings) = json(&user) {
        let mut servers = servers(&settings);
        let projects = settings["projects"].as_object().into_iter().flatten();
        let here = projects.filter(|(path, _)| root.is_some_and(|root| root.starts_with(path)));
        servers.extend(here.flat_map(|(_, project)| self::servers(project)));
        servers.dedup();
        add(Client::ClaudeCode, &user, servers);
    }
    let in_project = |name: &str| root.map(|root| root.join(name));
    // The server of a plugin has a name of its own: one that is called like ours is a second one.
    if let Some(path) = in_project(".mcp.json") {
        add(Client::ClaudeCode, &path, json(&path).map(|settings| servers(&settings)).unwrap_or_default());
    }
    // The other clients start one server of each name.
    let others = |servers: Vec<String>| servers.into_iter().filter(|name| name != OURS).collect();
    for path in
        [Some(places.codex.join("config.toml")), in_project(".codex/config.toml")].into_iter().flatten()
    {
        add(Client::Codex, &path, others(toml_servers(&path)));
    }
    for path in
        [Some(places.gemini.join("settings.json")), in_project(".gemini/settings.json")].into_iter().flatten()
    {
        add(
            Client::Gemini,
            &path,
            others(json(&path).map(|settings| servers(&settings)).unwrap_or_default()),
        );
    }
    found
}

fn finding(client: Client, path: &Path, name: &str) -> Finding {
    let name = quoted(name);
    let mend = match client {
        Client::ClaudeCode => format!("`claude mcp remove {name}` removes it"),
        _ => format!("take `{name}` out of that file"),
    };
    let found = format!("the server `{name}` starts Tiro too: the agent is offered every tool twice");
    Finding { client, path: path.to_owned(), found, mend }
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(file::look(path).ok()?.now?.bytes.0).ok()
}

fn json(path: &Path) -> Option<Value> {
    edit::value(edit::split_mark(&text(path)?).1).ok()
}

/// Returns the names of the servers in `settings` that start Tiro.
fn servers(settings: &Value) -> Vec<String> {
    let servers = settings["mcpServers"].as_object().into_iter().flatten();
    let words = |server: &Value| {
        let arguments = server["args"].as_array().into_iter().flatten();
        let words = std::iter::once(&server["command"]).chain(arguments);
        words.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    servers.filter(|(_, server)| starts_tiro(&words(server))).map(|(name, _)| name.clone()).collect()
}

fn toml_servers(path: &Path) -> Vec<String> {
    let document = text(path).and_then(|text| edit::split_mark(&text).1.parse::<DocumentMut>().ok());
    let Some(document) = document else { return Vec::new() };
    let servers = document.get("mcp_servers").and_then(|servers| servers.as_table_like());
    let words = |server: &toml_edit::Item| {
        let command = server.get("command").and_then(|it| it.as_str()).unwrap_or_default();
        let arguments = server.get("args").and_then(|it| it.as_array()).into_iter().flatten();
        std::iter::once(command)
            .chain(arguments.filter_map(|it| it.as_str()))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let servers = servers.into_iter().flat_map(|servers| servers.iter());
    servers.filter(|(_, server)| starts_tiro(&words(server))).map(|(name, _)| name.to_owned()).collect()
}

/// Whether a command is `tiro serve`, also behind a shell, `env` or another program that starts it.
fn starts_tiro(words: &[String]) -> bool {
    let mut words = words.iter().flat_map(|word| word.split_whitespace());
    let is_tiro = |word: &str| {
        let name = word.trim_matches(['"', '\'']).rsplit(['/', '\\']).next().unwrap_or_default();
        matches!(name, "tiro" | "tiro.exe")
    };
    words.any(is_tiro) && words.any(|word| word.trim_matches(['"', '\'']) == "serve")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::tests::Home;

    #[test]
    fn a_server_of_tiro_is_known_by_what_it_starts() {
        for (line, expected) in [
            ("tiro|serve", true),
            ("/opt/a b/tiro|--project|/x|serve", true),
            ("/opt/bin/tiro|serve|--toolsets|memory", true),
            ("sh|-c|exec tiro serve", true),
            ("env|TIRO_DATA_DIR=/x|tiro.exe|serve", true),
            ("npx|-y|@other/serve", false),
            ("tiro-like|serve", false),
            ("tiro|search", false),
        ] {
            let words: Vec<String> = line.split('|').map(str::to_owned).collect();
            assert_eq!(starts_tiro(&words), expected, "{line}");
        }
    }

    #[test]
    fn servers_beside_ours_are_found_where_clients_keep_them() {
        let home = Home::new();
        assert!(look(&home.places, None).is_empty());
        let root = home.dir.path().join("work/app");
        let tiro = r#"{"command": "tiro", "args": ["serve"]}"#;
        let other = r#"{"command": "other", "args": ["serve"]}"#;
        let put = |name: &str, text: String| {
            let path = home.dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let (root_text, elsewhere) = (root.to_str().unwrap(), "/elsewhere");
        put(
            ".claude.json",
            format!(
                r#"{{"mcpServers": {{"tiro": {tiro}, "o": {other}}}, "projects": {{
                "{root_text}": {{"mcpServers": {{"mine": {tiro}}}}}, "{elsewhere}": {{"mcpServers": {{"not": {tiro}}}}}}}}}"#
            ),
        );
        put("work/app/.mcp.json", format!(r#"{{"mcpServers": {{"memory": {tiro}}}}}"#));
        put(
            ".codex/config.toml",
            "[mcp_servers.tiro]\ncommand = \"/x/tiro\"\nargs = [\"serve\"]\n[mcp_servers.t2]\ncommand = \"tiro\"\nargs = [\"serve\"]\n"
                .into(),
        );
        put(
            "work/app/.gemini/settings.json",
            format!(r#"{{"mcpServers": {{"tiro": {tiro}, "g": {tiro}}}}}"#),
        );
        let names = |root: Option<&Path>| -> Vec<String> {
            let found = look(&home.places, root);
            found.iter().map(|it| it.found.split('`').nth(1).unwrap().to_owned()).collect()
        };
        assert_eq!(names(Some(&root.join("src"))), ["tiro", "mine", "t2"]);
        assert_eq!(names(Some(&root)), ["tiro", "mine", "memory", "t2", "g"]);
        assert_eq!(names(None), ["tiro", "t2"]);
    }
}
