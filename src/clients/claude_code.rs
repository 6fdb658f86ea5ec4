//! Sets up Claude Code: a plugin in `skills/tiro` of its configuration directory.
//!
//! Claude Code loads a directory there with a `plugin.json` as the plugin `tiro@skills-dir` when the next session
//! starts, with its server and hooks. So no settings are edited and nothing is registered; removing the directory
//! removes Tiro. A marketplace would need two entries in `settings.json` and files that Claude Code writes itself,
//! without any benefit. The timeout of tools is not set: the default is half an hour. What a user adds to the plugin's
//! files belongs to the user, and keeps the plugin when our part is removed.

use std::path::{Path, PathBuf};

use super::edit::{Entries, Hook, Member, Ours, When, insert, json, object, pretty, value};
use super::{Client, Places, Plan, SERVE, Setup, cut};
use crate::error::{Result, quoted};
use crate::file::user_file;

/// Identifies our entries.
const OURS: Ours = Ours { members: &[&["mcpServers", "tiro"]], command: " hook claude-code" };

/// The files of the plugin; the last one makes the directory a plugin.
pub const FILES: [&str; 3] = [SERVERS, HOOKS, PLUGIN];
const SERVERS: &str = ".mcp.json";
const HOOKS: &str = "hooks/hooks.json";
const PLUGIN: &str = ".claude-plugin/plugin.json";

/// The timeout of a hook in seconds. Ours take a tenth of a second.
const HOOK_TIMEOUT: u32 = 5;

/// The events at which a transcript has grown or a session begins.
const EVENTS: &[&str] = &["SessionStart", "Stop", "SubagentStop", "PreCompact", "SessionEnd"];

/// Adds the files for Claude Code to `plan`.
pub fn plan(setup: &Setup<'_>, plan: &mut Plan) {
    let directory = setup.places.claude_code.join("skills/tiro");
    // With `args` the command runs as it is, without a shell.
    let hook = json!([{
        "type": "command",
        "command": (setup.binary),
        "args": ["hook", "claude-code"],
        "timeout": HOOK_TIMEOUT,
    }]);
    let group = object([("hooks", hook)]);
    let hook = |event| Hook { event, command: setup.binary.to_owned(), group: group.clone() };
    let member = |key, value| Member::new(&["mcpServers", "tiro", key], value, When::Always);
    let servers = Entries {
        members: vec![member("command", setup.binary.into()), member("args", json!([(SERVE[0])]))],
        hooks: Vec::new(),
    };
    let hooks = Entries { members: Vec::new(), hooks: EVENTS.iter().copied().map(hook).collect() };
    let plugin = json!({
        "name": "tiro",
        "version": (env!("CARGO_PKG_VERSION")),
        "description": "Searchable memory of conversations and commits",
        "author": { "name": "Tiro" },
    });
    for (name, reason, entries) in [
        (SERVERS, "the MCP server `tiro`", Some(servers)),
        (HOOKS, "hooks that note where conversations are kept", Some(hooks)),
        (PLUGIN, "makes a plugin of the two", None),
    ] {
        plan.edit(setup, (Client::ClaudeCode, &directory.join(name), reason), 0o644, |text| match &entries {
            Some(entries) => insert(text.unwrap_or_default(), entries, &OURS),
            None => Ok(pretty(plugin.clone())),
        });
    }
}

/// Returns the path of the plugin's file of servers.
pub fn servers(places: &Places) -> PathBuf {
    places.claude_code.join("skills/tiro").join(SERVERS)
}

/// Returns `text` without our entries; empty if nothing else is left.
pub fn without(path: &Path, text: &str, before: Option<&str>) -> Result<String> {
    if !path.ends_with(PLUGIN) {
        return cut::remove(text, before, &OURS);
    }
    let is_ours = value(text)?["author"]["name"] == "Tiro";
    Ok(if is_ours { before.unwrap_or_default() } else { text }.to_owned())
}

/// Returns whether the file at `path` must stay, because a user added something to the other files of the plugin.
pub fn is_needed(path: &Path) -> bool {
    let directory = path.ancestors().nth(2).filter(|_| path.ends_with(PLUGIN));
    let is_theirs = |path: &Path| {
        let Some(now) = user_file::look(path).ok().and_then(|target| target.state) else { return false };
        let left = std::str::from_utf8(&now.bytes.0).map(|text| cut::remove(text, None, &OURS));
        // A file that can't be read may contain anything.
        !matches!(left, Ok(Ok(left)) if matches!(left.trim(), "" | "{}"))
    };
    directory.is_some_and(|directory| [SERVERS, HOOKS].iter().any(|name| is_theirs(&directory.join(name))))
}

/// Returns the note about a file that must stay.
pub fn needed(path: &Path) -> String {
    format!(
        "`{}` stays, because a user added something to the other files of the plugin.",
        quoted(path.display())
    )
}
