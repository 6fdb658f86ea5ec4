//! Sets up Copilot CLI: the server in `mcp-config.json`, and the hooks in a file of their own, which Copilot CLI reads
//! together with the user's other files of hooks.
//!
//! The names of events are written with a capital letter, because then the payloads have the names that Claude Code
//! uses and name the event. Copilot CLI calls a tool without asking if the tool declares that it only reads, so no
//! permission has to be written. It doesn't show the instructions of a server to its model, so the text that the hook
//! adds at the start of a session is all that the model is told.

use std::fs;
use std::path::{Path, PathBuf};

use super::Agent;
use crate::clients::edit::{Entries, Hook, Member, Ours, When, insert, json};
use crate::clients::{Client, Places, Plan, SERVE, Setup, TOOL_TIMEOUT, cut, quoted};
use tiro_base::error::Result;

/// Identifies our entries.
const OURS: Ours = Ours { members: &[&["mcpServers", "tiro"]], command: " hook copilot", list: None };

const SERVERS: &str = "mcp-config.json";

/// Our file of hooks.
const HOOKS: &str = "hooks/tiro.json";

/// The folder with a folder for each session.
const SESSIONS: &str = "session-state";

/// The file of a session's events.
const EVENTS_FILE: &str = "events.jsonl";

/// The timeout of a hook in seconds. Our hooks take a tenth of a second.
const HOOK_TIMEOUT: u32 = 5;

/// The events that run our hook. At each of them, a transcript may have grown or a session begins.
const EVENTS: [&str; 5] = ["SessionStart", "Stop", "SubagentStop", "PreCompact", "SessionEnd"];

/// Copilot CLI by GitHub.
pub struct Copilot;

impl Agent for Copilot {
    fn word(&self) -> &'static str {
        "copilot"
    }

    fn name(&self) -> &'static str {
        "Copilot CLI"
    }

    fn variables(&self) -> &'static [&'static str] {
        &["COPILOT_HOME"]
    }

    fn folder(&self, places: &Places) -> PathBuf {
        places.set_or("COPILOT_HOME", ".copilot")
    }

    fn project_folder(&self) -> &'static str {
        ".github"
    }

    fn files(&self, places: &Places) -> Vec<PathBuf> {
        [SERVERS, HOOKS].map(|name| self.folder(places).join(name)).into()
    }

    fn made(&self, places: &Places) -> Vec<PathBuf> {
        self.folder(places).join(HOOKS).parent().map(Path::to_owned).into_iter().collect()
    }

    fn server_files(&self, places: &Places, _root: Option<&Path>) -> Vec<PathBuf> {
        vec![self.folder(places).join(SERVERS)]
    }

    fn plan(&self, setup: &Setup<'_>, plan: &mut Plan) {
        let entered =
            |entries: Entries| move |text: Option<&str>| insert(text.unwrap_or_default(), &entries, &OURS);
        let mut edit = |name: &str, reason: &str, entries| {
            let path = self.folder(setup.places).join(name);
            plan.edit(setup, (Client::Copilot, &path, reason), 0o600, entered(entries));
        };
        edit(SERVERS, "the MCP server `tiro`", server(setup.binary));
        edit(HOOKS, "hooks that note where conversations are kept", hooks(setup.binary));
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

    fn transcripts(&self, places: &Places) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder(places).join(SESSIONS)).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path().join(EVENTS_FILE)).collect();
        files.retain(|file| file.symlink_metadata().is_ok());
        files.sort();
        files
    }

    fn transcript_of(&self, places: &Places, session: &str) -> Option<PathBuf> {
        Some(self.folder(places).join(SESSIONS).join(session).join(EVENTS_FILE))
    }
}

fn server(binary: &str) -> Entries {
    let member = |key: &str, value, when| Member::new(&["mcpServers", "tiro", key], value, when);
    Entries {
        members: vec![
            member("type", "local".into(), When::Absent),
            member("command", binary.into(), When::Always),
            member("args", json!([(SERVE[0])]), When::Always),
            member("tools", json!(["*"]), When::Absent),
            member("timeout", (TOOL_TIMEOUT * 1000).into(), When::Absent),
        ],
        ..Entries::default()
    }
}

fn hooks(binary: &str) -> Entries {
    let command = format!("{}{}", quoted(binary), OURS.command);
    let hook = |event| {
        let hook = json!({ "type": "command", "command": (command.clone()), "timeoutSec": HOOK_TIMEOUT });
        Hook { event, command: command.clone(), group: json!({ "hooks": [hook] }) }
    };
    Entries { hooks: EVENTS.into_iter().map(hook).collect(), ..Entries::default() }
}
