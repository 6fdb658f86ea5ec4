//! Sets up Qwen Code: the server, the hooks and the permission to call the read-only tools, all in `settings.json`.
//!
//! Qwen Code began as a copy of Gemini CLI. Its settings have the same form, except that hooks are named as in Claude
//! Code, count their timeout in seconds, and that permissions are rules in a list. What a hook adds at the start of a
//! session goes into the system instructions, so it doesn't change the first prompt.

use std::fs;
use std::path::{Path, PathBuf};

use super::Agent;
use crate::clients::edit::{Entries, Hook, Member, Ours, When, insert, json};
use crate::clients::{Client, Places, Plan, SERVE, Setup, TOOL_TIMEOUT, allows, cut, quoted};
use tiro_base::error::Result;

/// Identifies our entries.
const OURS: Ours = Ours {
    members: &[&["mcpServers", "tiro"]],
    command: " hook qwen",
    list: Some((&["permissions", "allow"], RULE)),
};

/// The beginning of a rule about one of our tools.
const RULE: &str = "mcp__tiro__";

const SETTINGS: &str = "settings.json";

/// The timeout of a hook in seconds. Our hooks take a tenth of a second.
const HOOK_TIMEOUT: u32 = 5;

/// The events that run our hook. At each of them, a transcript may have grown or a session begins.
const EVENTS: [&str; 5] = ["SessionStart", "Stop", "SubagentStop", "PreCompact", "SessionEnd"];

/// Qwen Code by Alibaba.
pub struct Qwen;

impl Agent for Qwen {
    fn word(&self) -> &'static str {
        "qwen"
    }

    fn name(&self) -> &'static str {
        "Qwen Code"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["QWEN_HOME", "QWEN_RUNTIME_DIR"]
    }

    fn folder(&self, places: &Places) -> PathBuf {
        places.set_or("QWEN_HOME", ".qwen")
    }

    fn project_folder(&self) -> &'static str {
        ".qwen"
    }

    fn files(&self, places: &Places) -> Vec<PathBuf> {
        vec![self.folder(places).join(SETTINGS)]
    }

    fn server_files(&self, places: &Places, root: Option<&Path>) -> Vec<PathBuf> {
        let project = root.map(|root| root.join(self.project_folder()));
        let folders = [Some(self.folder(places)), project];
        folders.into_iter().flatten().map(|folder| folder.join(SETTINGS)).collect()
    }

    fn plan(&self, setup: &Setup<'_>, plan: &mut Plan) {
        let path = self.folder(setup.places).join(SETTINGS);
        let reason = "the MCP server `tiro` and hooks that note where conversations are kept";
        let entered =
            |entries: Entries| move |text: Option<&str>| insert(text.unwrap_or_default(), &entries, &OURS);
        plan.edit(setup, (Client::Qwen, &path, reason), 0o600, entered(entries(setup.binary)));
        if !setup.reading.is_empty() {
            let elements = setup.reading.iter().map(|name| format!("{RULE}{name}")).collect();
            let rules = Entries { elements, ..entries(setup.binary) };
            plan.offer(setup, (Client::Qwen, &path, &allows(setup.reading)), 0o600, entered(rules));
        }
    }

    fn without(
        &self,
        _path: &Path,
        text: &str,
        before: Option<&str>,
        _wrote: Option<&str>,
    ) -> Result<Option<String>> {
        cut::remove(text, before, &OURS).map(Some)
    }

    /// The name of a project's folder says nothing: it is that of the directory with each special character replaced,
    /// and every line names the directory.
    fn transcripts(&self, places: &Places) -> Vec<PathBuf> {
        let sessions = match places.variables.get("QWEN_RUNTIME_DIR") {
            Some(folder) => folder.clone(),
            None => self.folder(places),
        };
        let entries = fs::read_dir(sessions.join("projects")).into_iter().flatten().flatten();
        let in_each = |entry: fs::DirEntry| ["chats", "subagents"].map(|name| entry.path().join(name));
        let mut folders: Vec<PathBuf> = entries.flat_map(in_each).collect();
        folders.sort();
        folders
    }
}

/// Returns our entries in the settings.
fn entries(binary: &str) -> Entries {
    let command = format!("{}{}", quoted(binary), OURS.command);
    let member = |key: &str, value, when| Member::new(&["mcpServers", "tiro", key], value, when);
    let hook = |event| {
        let hook = json!({
            "name": "tiro",
            "type": "command",
            "command": (command.clone()),
            "timeout": HOOK_TIMEOUT,
        });
        Hook { event, command: command.clone(), group: json!({ "hooks": [hook] }) }
    };
    Entries {
        members: vec![
            member("command", binary.into(), When::Always),
            member("args", json!([(SERVE[0])]), When::Always),
            member("timeout", (TOOL_TIMEOUT * 1000).into(), When::Absent),
        ],
        hooks: EVENTS.into_iter().map(hook).collect(),
        ..Entries::default()
    }
}
