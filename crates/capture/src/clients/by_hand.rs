//! Finds servers of Tiro that a user configured by hand, in addition to the one that `tiro init` sets up.
//!
//! A client with two servers of Tiro starts both, and its agent gets every tool twice. The servers that are found are
//! reported and not changed. If `tiro init` has set up no server, the user has set Tiro up by hand, and nothing is
//! reported. Only the configuration of the user and the configuration of this project are searched.

use std::path::{Path, PathBuf};

use super::mcp::{self, McpClient};
use super::servers::{self, Server};
use super::{Client, Finding, Places, Plan, edit};
use tiro_base::error::quoted;

/// The name of the server that `tiro init` sets up.
const OURS: &str = "tiro";

/// Returns a finding for each additional server of Tiro that the user configured, for all projects or for the project
/// in `root`. Searches only clients that have the server of `tiro init`, or to which `plan` adds it.
///
/// A file that is missing or can't be read counts as a file without servers.
pub fn look(places: &Places, root: Option<&Path>, plan: Option<&Plan>) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_planned =
        |client| plan.is_some_and(|plan| plan.changes.iter().any(|change| change.client == client));
    let mut add = |client: Client, path: &Path, servers: Vec<String>| {
        let offered = match (is_ours_there(places, root, client), is_planned(client)) {
            (true, _) => "the agent is offered every tool twice",
            (false, true) => "the agent will be offered every tool twice",
            (false, false) => return,
        };
        found.extend(servers.iter().map(|name| finding(client, path, name, offered)));
    };
    // Claude Code's file is inside its directory if the user chose that directory. Otherwise it is next to the
    // directory.
    let folder = places.folder(Client::ClaudeCode).unwrap_or_default();
    let user = match folder == places.home.join(".claude") {
        true => places.home.join(".claude.json"),
        false => folder.join(".claude.json"),
    };
    let settings = servers::read(&user).and_then(|text| edit::value(edit::split_mark(&text).1).ok());
    if let Some(settings) = settings {
        let mut names = names(servers::in_settings(&settings));
        let projects = settings["projects"].as_object().into_iter().flatten();
        let here = projects.filter(|(path, _)| root.is_some_and(|root| root.starts_with(path)));
        names.extend(here.flat_map(|(_, project)| self::names(servers::in_settings(project))));
        names.dedup();
        add(Client::ClaudeCode, &user, names);
    }
    // Claude Code gives the plugin's server a different name, so a server called `tiro` is an additional one.
    if let Some(path) = root.map(|root| root.join(".mcp.json")) {
        add(Client::ClaudeCode, &path, names(servers::in_file(&path)));
    }
    // The other clients start only one server for each name, so a server called `tiro` is ours.
    let agents = Client::AGENTS.into_iter().filter(|client| *client != Client::ClaudeCode);
    for client in agents.chain(McpClient::all().map(Client::Mcp)) {
        for path in files(places, root, client) {
            let others = names(servers::in_file(&path)).into_iter().filter(|name| name != OURS);
            add(client, &path, others.collect());
        }
    }
    found
}

/// Returns whether `client` has the server of `tiro init`; for Claude Code, that is the server of the plugin.
fn is_ours_there(places: &Places, root: Option<&Path>, client: Client) -> bool {
    let files = files(places, root, client);
    files.iter().any(|path| names(servers::in_file(path)).iter().any(|name| name == OURS))
}

/// Returns the configuration files in which `client` may have the server of `tiro init`: the user's file and the
/// project's file.
fn files(places: &Places, root: Option<&Path>, client: Client) -> Vec<PathBuf> {
    if let Client::Mcp(client) = client {
        let files = mcp::files(places, root).into_iter();
        return files.filter(|(each, _)| *each == client).map(|(_, path)| path).collect();
    }
    client.agent().map(|agent| agent.server_files(places, root)).unwrap_or_default()
}

/// Returns the names of the servers that start Tiro.
fn names(servers: Vec<Server>) -> Vec<String> {
    servers.into_iter().filter(|server| starts_tiro(&server.words)).map(|server| server.name).collect()
}

fn finding(client: Client, path: &Path, name: &str, offered: &str) -> Finding {
    let name = quoted(name);
    let mend = match client {
        Client::ClaudeCode => format!("`claude mcp remove {name}` removes it"),
        _ => format!("remove `{name}` from that file"),
    };
    let found = format!("the server `{name}` starts Tiro too: {offered}");
    Finding { client, path: path.to_owned(), found, mend }
}

/// Returns whether a command runs `tiro serve`, directly or through a shell, `env` or another program.
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
    fn a_server_of_tiro_is_recognised_by_its_command() {
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
    fn additional_servers_are_found_in_the_files_of_all_clients() {
        let home = Home::new();
        assert!(look(&home.places, None, None).is_empty());
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
        assert!(look(&home.places, Some(&root), None).is_empty(), "ours is not there: the user needs them");
        put(".claude/skills/tiro/.mcp.json", format!(r#"{{"mcpServers": {{"tiro": {tiro}}}}}"#));
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
            let found = look(&home.places, root, None);
            found.iter().map(|it| it.found.split('`').nth(1).unwrap().to_owned()).collect()
        };
        assert_eq!(names(Some(&root.join("src"))), ["tiro", "mine", "t2"]);
        assert_eq!(names(Some(&root)), ["tiro", "mine", "memory", "t2", "g"]);
        assert_eq!(names(None), ["tiro", "t2"]);
    }
}
