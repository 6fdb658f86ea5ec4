//! Sets up Claude Code with a plugin, in `skills/tiro` of Claude Code's configuration directory.
//!
//! At the start of a session, Claude Code loads each directory in `skills` that has a `plugin.json` as a plugin.
//! Our directory becomes the plugin `tiro@skills-dir`, with a server and hooks. So Tiro edits no settings and
//! registers nothing; removing the directory removes Tiro. A plugin from a marketplace would need two entries in
//! `settings.json`, and files that Claude Code writes itself, without any benefit. The timeout of tools is not set,
//! because Claude Code's default of half an hour is enough. What a user adds to the plugin's files belongs to the
//! user: when our part is removed, the addition and the plugin stay.

use std::path::{Path, PathBuf};

use super::edit::{Entries, Hook, Member, Ours, When, insert, json, object, pretty, value};
use super::{Client, Places, Plan, SERVE, Setup, cut};
use crate::error::{Result, quoted};
use crate::file::user_file;

/// Identifies our entries in the plugin's files.
const OURS: Ours = Ours { members: &[&["mcpServers", "tiro"]], command: " hook claude-code" };

/// The files of the plugin. The directory is not a plugin until the last one exists.
pub const FILES: [&str; 3] = [SERVERS, HOOKS, PLUGIN];
const SERVERS: &str = ".mcp.json";
const HOOKS: &str = "hooks/hooks.json";
const PLUGIN: &str = ".claude-plugin/plugin.json";

/// The timeout of a hook in seconds. Our hooks take a tenth of a second.
const HOOK_TIMEOUT: u32 = 5;

/// The events that run our hook: at each of them, a transcript may have grown or a session begins.
const EVENTS: &[&str] = &["SessionStart", "Stop", "SubagentStop", "PreCompact", "SessionEnd"];

/// Adds the files for Claude Code to `plan`.
pub fn plan(setup: &Setup<'_>, plan: &mut Plan) {
    let directory = setup.places.claude_code.join("skills/tiro");
    // With `args`, Claude Code runs the command directly, without a shell.
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
        (PLUGIN, "turns the directory into a plugin", None),
    ] {
        plan.edit(setup, (Client::ClaudeCode, &directory.join(name), reason), 0o644, |text| match &entries {
            Some(entries) => insert(text.unwrap_or_default(), entries, &OURS),
            None => Ok(pretty(plugin.clone())),
        });
    }
}

/// Returns the path of the file in which the plugin lists its servers.
pub fn servers(places: &Places) -> PathBuf {
    places.claude_code.join("skills/tiro").join(SERVERS)
}

/// Returns `text` without our entries; it is empty if nothing else is left.
pub fn without(path: &Path, text: &str, before: Option<&str>) -> Result<String> {
    if !path.ends_with(PLUGIN) {
        return cut::remove(text, before, &OURS);
    }
    let is_ours = value(text)?["author"]["name"] == "Tiro";
    Ok(if is_ours { before.unwrap_or_default() } else { text }.to_owned())
}

/// Returns whether the file at `path` must stay, because a user added something to another file of the plugin.
pub fn is_needed(path: &Path) -> bool {
    let directory = path.ancestors().nth(2).filter(|_| path.ends_with(PLUGIN));
    let is_theirs = |path: &Path| {
        let Some(now) = user_file::look(path).ok().and_then(|target| target.state) else { return false };
        let left = std::str::from_utf8(&now.bytes.0).map(|text| cut::remove(text, None, &OURS));
        // A file that can't be read may contain an addition.
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
