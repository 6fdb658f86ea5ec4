//! Claude Code: a plugin in `skills/tiro` of its configuration directory.
//!
//! A directory there that has a `plugin.json` is loaded as the plugin `tiro@skills-dir` from the next session on, with
//! its server and hooks. So no settings are edited and nothing is registered; who removes the directory has removed
//! Tiro. A marketplace would take two entries in `settings.json` and files that Claude Code writes about it, and gains
//! nothing here. Timeouts of tools are left alone: the default is half an hour.

use super::edit::{json, object, pretty};
use super::{Client, Plan, Setup};

/// How long a hook may take, in seconds. Ours take a tenth of one.
const HOOK_TIMEOUT: u32 = 5;

/// When the transcript has grown, or a session begins.
const EVENTS: &[&str] = &["SessionStart", "Stop", "SubagentStop", "PreCompact", "SessionEnd"];

/// Adds what Claude Code needs to `plan`.
pub fn plan(setup: &Setup<'_>, plan: &mut Plan) {
    let directory = setup.places.claude_code.join("skills/tiro");
    for (file, reason, text) in plugin(setup) {
        plan.edit(setup, (Client::ClaudeCode, &directory.join(file), reason), 0o644, |_| Ok(text));
    }
}

/// Returns the files of the plugin, the one last that makes it a plugin.
fn plugin(setup: &Setup<'_>) -> [(&'static str, &'static str, String); 3] {
    let servers = json!({
        "mcpServers": { "tiro": { "command": (setup.binary), "args": ["serve", "--toolsets", (setup.toolsets)] } },
    });
    // With `args` the command is run as it is, without a shell.
    let hook = json!([{
        "hooks": [{
            "type": "command",
            "command": (setup.binary),
            "args": ["hook", "claude-code"],
            "timeout": HOOK_TIMEOUT,
        }],
    }]);
    let hooks = object(EVENTS.iter().map(|event| (*event, hook.clone())));
    let plugin = json!({
        "name": "tiro",
        "version": (env!("CARGO_PKG_VERSION")),
        "description": "Searchable memory of conversations and commits",
        "author": { "name": "Tiro" },
    });
    [
        (".mcp.json", "the MCP server `tiro`", pretty(servers)),
        (
            "hooks/hooks.json",
            "hooks that note where conversations are kept",
            pretty(object([("hooks", hooks)])),
        ),
        (".claude-plugin/plugin.json", "makes a plugin of the two", pretty(plugin)),
    ]
}
