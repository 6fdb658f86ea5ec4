//! The clients of which Tiro reads no transcripts, with the place and the form of their configuration.
//!
//! The sources of the places and the forms:
//!
//! - VS Code: <https://code.visualstudio.com/docs/copilot/reference/mcp-configuration>, and for the folder of the user's
//!   settings <https://code.visualstudio.com/docs/configure/settings#_settings-file-locations>
//! - Cursor: <https://cursor.com/docs/mcp> (“STDIO server configuration”, “Config interpolation”)
//! - Zed: <https://zed.dev/docs/ai/mcp>, and for the file <https://zed.dev/docs/configuring-zed>
//! - Windsurf: <https://docs.windsurf.com/windsurf/cascade/mcp>
//! - Claude Desktop: <https://modelcontextprotocol.io/docs/develop/connect-local-servers>, for macOS and Windows
//! - Junie: <https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html> and
//!   <https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html>
//! - JetBrains AI Assistant: <https://www.jetbrains.com/help/ai-assistant/mcp.html>
//! - Goose: <https://block.github.io/goose/docs/guides/config-files>, and “Config Entry” in
//!   <https://block.github.io/goose/docs/getting-started/using-extensions>
//! - other clients: the form that most of them share, as in the page for Claude Desktop

use super::entry::{Entry, Form, MCP_SERVERS};
use super::paths::Paths;
use super::{Config, Description, McpClient, Starts};

/// The clients, in the order in which they are listed.
pub const CLIENTS: &[Description] = &[
    // VS Code starts the servers of a user outside the project, and resolves predefined variables in arguments.
    Description {
        client: McpClient::VsCode,
        word: "vscode",
        name: "VS Code",
        config: Config::File(
            Paths {
                linux: "$XDG_CONFIG_HOME/Code/User/mcp.json",
                mac: "~/Library/Application Support/Code/User/mcp.json",
                windows: "%APPDATA%/Code/User/mcp.json",
            },
            Entry::new("servers", &[&["servers", "tiro"]]).with_type(),
        ),
        starts: Starts::Replacing("${workspaceFolder}"),
        next: "In VS Code, open the folder of a project, then start `tiro` with the command `MCP: List Servers`.",
    },
    // Cursor resolves `${workspaceFolder}` in arguments.
    Description {
        client: McpClient::Cursor,
        word: "cursor",
        name: "Cursor",
        config: Config::File(Paths::everywhere("~/.cursor/mcp.json"), MCP_SERVERS.with_type()),
        starts: Starts::Replacing("${workspaceFolder}"),
        next: "In Cursor, open the folder of a project, and check in its settings that the server `tiro` is on.",
    },
    // Zed starts servers in the project (`create_context_server` in `crates/project/src/context_server_store.rs`).
    Description {
        client: McpClient::Zed,
        word: "zed",
        name: "Zed",
        config: Config::File(
            Paths {
                linux: "$XDG_CONFIG_HOME/zed/settings.json",
                mac: "~/.config/zed/settings.json",
                windows: "%APPDATA%/Zed/settings.json",
            },
            Entry::new("context_servers", &[&["context_servers", "tiro"]]),
        ),
        starts: Starts::InProject,
        next: "In Zed, check in the settings of the agent panel that the server `tiro` has a green dot.",
    },
    // Windsurf replaces environment variables in arguments, but knows no variable for the project.
    Description {
        client: McpClient::Windsurf,
        word: "windsurf",
        name: "Windsurf",
        config: Config::File(Paths::everywhere("~/.codeium/windsurf/mcp_config.json"), MCP_SERVERS),
        starts: Starts::Elsewhere,
        next: "In Windsurf, press the refresh button of the MCP servers in Cascade.",
    },
    // On Linux, this is the folder in which builds by other people keep their settings.
    Description {
        client: McpClient::ClaudeDesktop,
        word: "claude-desktop",
        name: "Claude Desktop",
        config: Config::File(
            Paths {
                linux: "$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",
                mac: "~/Library/Application Support/Claude/claude_desktop_config.json",
                windows: "%APPDATA%/Claude/claude_desktop_config.json",
            },
            MCP_SERVERS,
        ),
        starts: Starts::Elsewhere,
        next: "Quit Claude Desktop completely, and start it anew.",
    },
    // It is not documented where IDEs start servers. So the entry names the project, and is in the file of the project.
    Description {
        client: McpClient::Junie,
        word: "junie",
        name: "Junie",
        config: Config::File(Paths::everywhere("./.junie/mcp/mcp.json"), MCP_SERVERS),
        starts: Starts::Elsewhere,
        next: "The entry in `.junie/mcp/mcp.json` names paths of this machine, so don't commit it.",
    },
    // The servers are kept in the settings of each IDE.
    Description {
        client: McpClient::Jetbrains,
        word: "jetbrains",
        name: "JetBrains AI Assistant",
        config: Config::Pasted(
            Paths::everywhere(
                "Settings | Tools | AI Assistant | Model Context Protocol (MCP), Add, as JSON; choose the level of the project",
            ),
            Form::Json,
        ),
        starts: Starts::Elsewhere,
        next: "Press Apply; the status of the server `tiro` lists its tools.",
    },
    // Tiro edits no YAML: no library that keeps comments and layout is settled enough for files of other people. Goose
    // starts extensions in the working directory of the session.
    Description {
        client: McpClient::Goose,
        word: "goose",
        name: "Goose",
        config: Config::Pasted(
            Paths {
                linux: "~/.config/goose/config.yaml; if it has `extensions:`, paste only what follows that line, beneath it",
                mac: "~/.config/goose/config.yaml; if it has `extensions:`, paste only what follows that line, beneath it",
                windows: "%APPDATA%\\Block\\goose\\config\\config.yaml; if it has `extensions:`, paste only what follows \
                          that line, beneath it",
            },
            Form::Goose,
        ),
        starts: Starts::InProject,
        next: "Start Goose anew in a project.",
    },
    Description {
        client: McpClient::Other,
        word: "other",
        name: "Another client",
        config: Config::Pasted(
            Paths::everywhere("the configuration of the client's MCP servers"),
            Form::Json,
        ),
        starts: Starts::InProject,
        next: "If the client starts servers outside the project, run this again with `--project DIR`.",
    },
];
