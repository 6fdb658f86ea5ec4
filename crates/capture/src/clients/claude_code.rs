//! Sets up Claude Code with a plugin, in `skills/tiro` of Claude Code's configuration directory.
//!
//! At the start of a session, Claude Code loads each directory in `skills` that has a `plugin.json` as a plugin. Our
//! directory becomes the plugin `tiro@skills-dir`, with a server, hooks and a skill. So Tiro is registered nowhere
//! else, and removing the directory removes Tiro. A plugin from a marketplace would need two entries in
//! `settings.json`, and files that Claude Code writes itself, without any benefit. The timeout of tools is not set,
//! because Claude Code's default of half an hour is enough. Additions to the plugin's files belong to the user. When
//! our part is removed, such an addition and the plugin stay.
//!
//! `settings.json` is edited only if the user allows agents to call the read-only tools without asking. Then the names
//! of these tools are added to `permissions.allow`.

use std::path::{Path, PathBuf};

use super::edit::{Entries, Hook, Member, Ours, When, insert, json, object, pretty, value};
use super::{Client, Places, Plan, SERVE, Setup, allows, cut};
use tiro_base::error::{Result, quoted};
use tiro_base::file::user_file;

/// Identifies our entries in the plugin's files.
const OURS: Ours = Ours {
    members: &[&["mcpServers", "tiro"]],
    command: " hook claude-code",
    list: Some((&["permissions", "allow"], RULE)),
};

/// The beginning of a rule about one of our tools: Claude Code names them after the plugin and its server.
const RULE: &str = "mcp__plugin_tiro_tiro__";

/// The file of the user's settings, in which Claude Code looks for rules.
pub const SETTINGS: &str = "settings.json";

/// The text of the skill, which the model reads.
const SKILL_TEXT: &str = include_str!("skill.md");

/// The line of the skill that marks the file as ours. All versions write this line.
const SKILL_MARK: &str =
    "<!-- Written by `tiro init`, which replaces this file; `tiro init --remove` deletes it. -->";

/// The files of the plugin. The directory is not a plugin until the last one exists.
pub const FILES: [&str; 4] = [SKILL, SERVERS, HOOKS, PLUGIN];
const SKILL: &str = "SKILL.md";
const SERVERS: &str = ".mcp.json";
const HOOKS: &str = "hooks/hooks.json";
const PLUGIN: &str = ".claude-plugin/plugin.json";

/// The timeout of a hook in seconds. Our hooks take a tenth of a second.
const HOOK_TIMEOUT: u32 = 5;

/// The events that run our hook. At each of them, a transcript may have grown or a session begins.
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
        ..Entries::default()
    };
    let hooks = Entries { hooks: EVENTS.iter().copied().map(hook).collect(), ..Entries::default() };
    let plugin = json!({
        "name": "tiro",
        "version": (env!("CARGO_PKG_VERSION")),
        "description": "Searchable memory of conversations and commits",
        "author": { "name": "Tiro" },
    });
    let entered =
        |entries: Entries| move |text: Option<&str>| insert(text.unwrap_or_default(), &entries, &OURS);
    let mut edit = |name: &str, reason: &str, edit: &dyn Fn(Option<&str>) -> Result<String>| {
        plan.edit(setup, (Client::ClaudeCode, &directory.join(name), reason), 0o644, edit);
    };
    edit(SKILL, "a skill that says when to look into the memory", &|_| Ok(SKILL_TEXT.to_owned()));
    edit(SERVERS, "the MCP server `tiro`", &entered(servers));
    edit(HOOKS, "hooks that note where conversations are kept", &entered(hooks));
    edit(PLUGIN, "turns the directory into a plugin", &|_| Ok(pretty(plugin.clone())));
    if !setup.reading.is_empty() {
        let path = setup.places.claude_code.join(SETTINGS);
        let elements = setup.reading.iter().map(|name| format!("{RULE}{name}")).collect();
        let rules = Entries { elements, ..Entries::default() };
        plan.offer(setup, (Client::ClaudeCode, &path, &allows(setup.reading)), 0o600, entered(rules));
    }
}

/// Returns the path of the file in which the plugin lists its servers.
pub fn servers(places: &Places) -> PathBuf {
    places.claude_code.join("skills/tiro").join(SERVERS)
}

/// Returns `text` without our entries. The result is empty if nothing else is left.
pub fn without(path: &Path, text: &str, before: Option<&str>) -> Result<String> {
    if path.ends_with(SKILL) {
        let is_ours = text.lines().any(|line| line == SKILL_MARK);
        return Ok(if is_ours { before.unwrap_or_default() } else { text }.to_owned());
    }
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
