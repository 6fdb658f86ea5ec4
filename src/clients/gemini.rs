//! Sets up Gemini CLI: the server and the hooks in `settings.json`.

use super::edit::{Entries, Hook, Member, Ours, When, insert, json};
use super::{Client, Plan, SERVE, Setup, quoted};

/// Identifies our entries.
pub const OURS: Ours = Ours { members: &[&["mcpServers", "tiro"]], command: " hook gemini" };

/// The timeout of a tool in milliseconds: a tool that asks another agent takes minutes.
pub(super) const TOOL_TIMEOUT: u32 = 600_000;

/// The timeout of a hook in milliseconds. Our hooks take a tenth of a second.
const HOOK_TIMEOUT: u32 = 5_000;

/// The events that run our hook: at each of them, a transcript may have grown or a prompt is sent. The start of
/// a session is not one of them, because text that a hook adds at that time becomes part of the first prompt,
/// and is lost when the session is resumed.
const EVENTS: [&str; 4] = ["BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"];

/// Adds the changes for Gemini CLI to `plan`.
pub fn plan(setup: &Setup<'_>, plan: &mut Plan) {
    let path = setup.places.gemini.join("settings.json");
    let reason = "the MCP server `tiro` and hooks that note where conversations are kept";
    let entries = entries(setup.binary);
    plan.edit(setup, (Client::Gemini, &path, reason), 0o600, |text| {
        insert(text.unwrap_or_default(), &entries, &OURS)
    });
}

/// Returns our entries in the settings.
pub fn entries(binary: &str) -> Entries {
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
            member("timeout", json!(TOOL_TIMEOUT), When::Absent),
        ],
        hooks: EVENTS.into_iter().map(hook).collect(),
    }
}
