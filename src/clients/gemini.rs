//! Gemini CLI: `settings.json` names the server and the hooks.

use super::edit::{Entries, Hook, Member, Ours, When, insert, json};
use super::{Client, Plan, SERVE, Setup, quoted};

/// How our entries are found again.
pub const OURS: Ours = Ours { members: &[&["mcpServers", "tiro"]], command: " hook gemini" };

/// How long a tool may take, in milliseconds: asking an agent takes minutes.
pub(super) const TOOL_TIMEOUT: u32 = 600_000;

/// How long a hook may take, in milliseconds. Ours take a tenth of a second.
const HOOK_TIMEOUT: u32 = 5_000;

/// When the transcript has grown, or a prompt is on its way: what a hook adds at the start of a session stands in the
/// first prompt, which a resumed session then drops.
const EVENTS: [&str; 4] = ["BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"];

/// Adds what Gemini CLI needs to `plan`.
pub fn plan(setup: &Setup<'_>, plan: &mut Plan) {
    let path = setup.places.gemini.join("settings.json");
    let reason = "the MCP server `tiro` and hooks that note where conversations are kept";
    let entries = entries(setup.binary);
    plan.edit(setup, (Client::Gemini, &path, reason), 0o600, |text| {
        insert(text.unwrap_or_default(), &entries, &OURS)
    });
}

/// Returns what stands in the settings for us.
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
