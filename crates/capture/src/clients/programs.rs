//! Finds the programs that our entries start. The entries are in the files of the clients and in hooks.
//!
//! An entry of an earlier version may start a program that is gone, because an upgrade removed the folder of that
//! version. Then the client reports that a server does not start, and the client's hooks do nothing.

use std::path::PathBuf;

use serde_json::Value;
use toml_edit::{DocumentMut, Item};

use super::edit::split_mark;
use super::{Client, GitPlace, Places, SERVE, edit, git_hook, mcp, servers};

/// The beginning of the line of a plugin that names the program.
pub const PROGRAM: &str = "const program = ";

/// A program that an entry of ours starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredProgram {
    /// The client that the file belongs to.
    pub client: Client,
    /// The file with the entry.
    pub path: PathBuf,
    /// The absolute path of the program.
    pub program: PathBuf,
}

/// Returns the programs that are started by our entries in the files of `places` and in the hooks of `repositories`. A
/// file that can't be read counts as a file without entries.
pub fn written(places: &Places, repositories: &[GitPlace]) -> Vec<ConfiguredProgram> {
    let hooks = repositories.iter().filter_map(git_hook::own).map(|path| (Client::Git, path));
    let roots = repositories.iter().filter_map(|repository| repository.work_tree.as_deref());
    let named = mcp::files(places, roots).into_iter().map(|(client, path)| (Client::Mcp(client), path));
    let mut found = Vec::new();
    for (client, path) in places.files().into_iter().chain(named).chain(hooks) {
        let Some(text) = servers::read(&path) else { continue };
        let hooks: Vec<String> = match (client, path.extension().and_then(|extension| extension.to_str())) {
            (Client::Git, _) => git_hook::program(&text).into_iter().collect(),
            (_, Some("toml")) => in_toml(&text),
            (_, Some("js")) => in_plugin(&text).into_iter().collect(),
            _ => in_json(&text),
        };
        let commands = servers::in_text(&path, &text).into_iter().filter_map(program_of_server).chain(hooks);
        let mut programs: Vec<PathBuf> = commands.map(PathBuf::from).collect();
        // Other programs may have hooks with the same arguments.
        programs.retain(|program| {
            let name = program.file_name().unwrap_or_default().to_string_lossy();
            program.is_absolute() && name.starts_with("tiro")
        });
        programs.sort();
        programs.dedup();
        found.extend(programs.into_iter().map(|program| ConfiguredProgram {
            client,
            path: path.clone(),
            program,
        }));
    }
    found
}

/// Returns the program of a server, if it is ours.
fn program_of_server(server: servers::Server) -> Option<String> {
    match server.words.as_slice() {
        [program, serve, ..] if server.name == "tiro" && serve == SERVE[0] => Some(program.clone()),
        _ => None,
    }
}

/// Returns the programs of the hooks in settings.
fn in_json(text: &str) -> Vec<String> {
    let Ok(settings) = edit::value(split_mark(text).1) else { return Vec::new() };
    let groups = settings["hooks"].as_object().into_iter().flat_map(|events| events.values());
    let groups = groups.filter_map(Value::as_array).flatten();
    let hooks = groups.filter_map(|group| group["hooks"].as_array()).flatten();
    let hooks = hooks.filter_map(|hook| {
        let arguments: Vec<&str> =
            hook["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        program_of_hook(hook["command"].as_str()?, &arguments)
    });
    hooks.collect()
}

/// Returns the program of a plugin that [`super::agents`] wrote.
fn in_plugin(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(PROGRAM))?;
    serde_json::from_str(line.trim_end().trim_end_matches(';')).ok()
}

/// Returns the program of a hook of ours. This is the whole command if the arguments are separate, otherwise the
/// command's first word.
fn program_of_hook(command: &str, arguments: &[&str]) -> Option<String> {
    match arguments {
        ["hook", _] => Some(command.to_owned()),
        [] => {
            let (program, client) = command.trim_end().rsplit_once(" hook ")?;
            Client::of(client).and_then(|_| unquoted(program))
        }
        _ => None,
    }
}

fn in_toml(text: &str) -> Vec<String> {
    let Ok(document) = split_mark(text).1.parse::<DocumentMut>() else { return Vec::new() };
    let events =
        document.get("hooks").and_then(Item::as_table_like).into_iter().flat_map(|events| events.iter());
    let groups =
        events.filter_map(|(_, groups)| groups.as_array_of_tables()).flat_map(|groups| groups.iter());
    let hooks = groups.filter_map(|group| group.get("hooks").and_then(Item::as_array_of_tables));
    let hooks = hooks
        .flat_map(|hooks| hooks.iter())
        .filter_map(|hook| program_of_hook(hook.get("command").and_then(Item::as_str)?, &[]));
    hooks.collect()
}

/// Returns `text` as a single word for a shell, quoted if necessary.
pub(super) fn quoted(text: &str) -> String {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._+-".contains(c)) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns the word that [`quoted`] quoted.
pub(super) fn unquoted(word: &str) -> Option<String> {
    let word = word.trim();
    match word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')) {
        Some(inner) => Some(inner.replace(r"'\''", "'")),
        None => (!word.is_empty() && !word.contains(char::is_whitespace)).then(|| word.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::tests::Home;

    #[test]
    fn quoting_a_path_can_be_undone() {
        for path in ["/opt/tiro", "/it's here/tiro", "/a b/ti'r'o", "/ü/tiro"] {
            assert_eq!(unquoted(&quoted(path)).as_deref(), Some(path));
        }
    }

    #[test]
    fn the_program_of_each_entry_is_found_and_other_commands_are_not() {
        let home = Home::new();
        let program = PathBuf::from("/opt/it's here/tiro");
        let other = r#"{"command": "/x/other", "args": ["serve"]}"#;
        std::fs::write(home.path(".gemini/settings.json"), format!(r#"{{"mcpServers": {{"o": {other}}}}}"#))
            .unwrap();
        assert_eq!(written(&home.places, &[]), []);
        home.set_up();
        let found = written(&home.places, &[]);
        assert!(found.iter().all(|each| each.program == program), "{found:?}");
        let files: Vec<String> = found
            .iter()
            .map(|each| each.path.strip_prefix(home.dir.path()).unwrap().display().to_string())
            .collect();
        assert_eq!(
            files,
            [
                ".claude/skills/tiro/.mcp.json",
                ".claude/skills/tiro/hooks/hooks.json",
                ".codex/config.toml",
                ".codex/hooks.json",
                ".gemini/settings.json",
                ".qwen/settings.json",
                ".copilot/mcp-config.json",
                ".copilot/hooks/tiro.json",
                ".config/opencode/opencode.json",
                ".config/opencode/plugin/tiro.js",
            ]
        );
    }
}
