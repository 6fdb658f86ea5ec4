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

use super::Agent;
use crate::clients::edit::{Entries, Hook, Member, Ours, When, insert, json, object, pretty, value};
use crate::clients::retention::{self, SETTINGS};
use crate::clients::{Client, Places, Plan, SERVE, Setup, allows, cut};
use tiro_base::error::Result;
use tiro_base::file::user_file;

/// Identifies our entries in the plugin's files.
const OURS: Ours = Ours {
    members: &[&["mcpServers", "tiro"]],
    command: " hook claude-code",
    list: Some((&["permissions", "allow"], RULE)),
};

/// The beginning of a rule about one of our tools: Claude Code names them after the plugin and its server.
const RULE: &str = "mcp__plugin_tiro_tiro__";

/// The text of the skill, which the model reads.
const SKILL_TEXT: &str = include_str!("skill.md");

/// The line of the skill that marks the file as ours. All versions write this line.
const SKILL_MARK: &str =
    "<!-- Written by `tiro init`, which replaces this file; `tiro init --remove` deletes it. -->";

/// The files of the plugin. The directory is not a plugin until the last one exists.
const FILES: [&str; 4] = [SKILL, SERVERS, HOOKS, PLUGIN];
const SKILL: &str = "SKILL.md";
const SERVERS: &str = ".mcp.json";
const HOOKS: &str = "hooks/hooks.json";
const PLUGIN: &str = ".claude-plugin/plugin.json";

/// The timeout of a hook in seconds. Our hooks take a tenth of a second.
const HOOK_TIMEOUT: u32 = 5;

/// The events that run our hook. At each of them, a transcript may have grown or a session begins.
const EVENTS: &[&str] = &["SessionStart", "Stop", "SubagentStop", "PreCompact", "SessionEnd"];

/// The folder of the plugin in Claude Code's folder.
const PLUGIN_FOLDER: &str = "skills/tiro";

/// The longest name that Claude Code gives to a folder, in bytes. The hash that follows a longer name is not counted.
const LONGEST_NAME: usize = 200;

/// Claude Code by Anthropic.
pub struct ClaudeCode;

impl Agent for ClaudeCode {
    fn word(&self) -> &'static str {
        "claude-code"
    }

    fn name(&self) -> &'static str {
        "Claude Code"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["CLAUDE_CONFIG_DIR"]
    }

    fn folder(&self, places: &Places) -> PathBuf {
        places.set_or("CLAUDE_CONFIG_DIR", ".claude")
    }

    fn project_folder(&self) -> &'static str {
        ".claude"
    }

    fn files(&self, places: &Places) -> Vec<PathBuf> {
        let folder = self.folder(places);
        let plugin = FILES.map(|name| folder.join(PLUGIN_FOLDER).join(name));
        plugin.into_iter().chain([folder.join(SETTINGS)]).collect()
    }

    fn made(&self, places: &Places) -> Vec<PathBuf> {
        let plugin = self.folder(places).join(PLUGIN_FOLDER);
        [".claude-plugin", "hooks", ""].map(|name| plugin.join(name)).into()
    }

    fn server_files(&self, places: &Places, _root: Option<&Path>) -> Vec<PathBuf> {
        vec![self.folder(places).join(PLUGIN_FOLDER).join(SERVERS)]
    }

    fn plan(&self, setup: &Setup<'_>, plan: &mut Plan) {
        plan_files(setup, plan);
    }

    fn without(
        &self,
        path: &Path,
        text: &str,
        before: Option<&str>,
        _wrote: Option<&str>,
    ) -> Result<Option<String>> {
        let text = retention::without(path, text, before)?;
        without(path, &text, before).map(Some)
    }

    fn is_needed(&self, path: &Path) -> bool {
        is_needed(path)
    }

    fn transcripts(&self, places: &Places) -> Vec<PathBuf> {
        vec![self.folder(places).join("projects")]
    }

    fn is_named_after(&self, folder: &str, root: &Path) -> bool {
        folder == dashed(root)
    }

    fn introduces_itself(&self) -> &'static str {
        "claude"
    }
}

/// Adds the files for Claude Code to `plan`.
fn plan_files(setup: &Setup<'_>, plan: &mut Plan) {
    let folder = ClaudeCode.folder(setup.places);
    let directory = folder.join(PLUGIN_FOLDER);
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
        let path = folder.join(SETTINGS);
        let elements = setup.reading.iter().map(|name| format!("{RULE}{name}")).collect();
        let rules = Entries { elements, ..Entries::default() };
        plan.offer(setup, (Client::ClaudeCode, &path, &allows(setup.reading)), 0o600, entered(rules));
    }
}

/// Returns `text` without our entries. The result is empty if nothing else is left.
fn without(path: &Path, text: &str, before: Option<&str>) -> Result<String> {
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
fn is_needed(path: &Path) -> bool {
    let directory = path.ancestors().nth(2).filter(|_| path.ends_with(PLUGIN));
    let is_theirs = |path: &Path| {
        let Some(now) = user_file::look(path).ok().and_then(|target| target.state) else { return false };
        let left = std::str::from_utf8(&now.bytes.0).map(|text| cut::remove(text, None, &OURS));
        // A file that can't be read may contain an addition.
        !matches!(left, Ok(Ok(left)) if matches!(left.trim(), "" | "{}"))
    };
    directory.is_some_and(|directory| [SERVERS, HOOKS].iter().any(|name| is_theirs(&directory.join(name))))
}

/// Returns the name that Claude Code gives to the folder of a directory. Each special character is replaced by a dash.
/// A long name is cut and followed by a hash. Characters are counted as in UTF-16.
fn dashed(path: &Path) -> String {
    let units: Vec<u16> = path.to_string_lossy().encode_utf16().collect();
    let is_plain = |unit: &u16| char::from_u32(u32::from(*unit)).is_some_and(|c| c.is_ascii_alphanumeric());
    let name: String =
        units.iter().map(|unit| if is_plain(unit) { char::from(*unit as u8) } else { '-' }).collect();
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let step = |hash: i32, unit: &u16| hash.wrapping_mul(31).wrapping_add(i32::from(*unit));
    let mut hash = units.iter().fold(0_i32, step).unsigned_abs();
    let mut digits = Vec::new();
    while hash > 0 || digits.is_empty() {
        digits.push(char::from_digit(hash % 36, 36).expect("a digit"));
        hash /= 36;
    }
    let digits: String = digits.into_iter().rev().collect();
    format!("{}-{digits}", &name[..LONGEST_NAME])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_as_claude_code_names_them() {
        assert_eq!(dashed(Path::new("/w/my.app")), "-w-my-app");
        assert_eq!(dashed(Path::new("/ty\u{f6}/\u{1f6a2} x")), "-ty-----x");
        let long = PathBuf::from(format!("/{}", "a".repeat(250)));
        let name = dashed(&long);
        assert_eq!(&name[..201], format!("-{}-", "a".repeat(199)));
        assert_eq!(&name[201..], "feo44x");
    }
}
