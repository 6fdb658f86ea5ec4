//! Names the clients: for the command line, for people, and as servers hear them.

use serde::{Deserialize, Serialize};

/// A program that is set up to use Tiro.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// Claude Code by Anthropic.
    ClaudeCode,
    /// Codex by OpenAI.
    Codex,
    /// Gemini CLI by Google.
    Gemini,
    /// Qwen Code by Alibaba.
    Qwen,
    /// Copilot CLI by GitHub.
    Copilot,
    /// opencode by Anomaly.
    Opencode,
    /// A repository's git hook, which is set up and removed like a client.
    Git,
    /// A client that gets only the server.
    #[serde(untagged)]
    Mcp(McpClient),
}

/// A client that gets only the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum McpClient {
    /// Visual Studio Code by Microsoft.
    #[serde(rename = "vscode")]
    VsCode,
    /// Cursor by Anysphere.
    Cursor,
    /// Zed by Zed Industries.
    Zed,
    /// Windsurf by Cognition.
    Windsurf,
    /// Claude Desktop by Anthropic.
    ClaudeDesktop,
    /// Junie by JetBrains, in its IDEs and in the terminal.
    Junie,
    /// AI Assistant by JetBrains.
    Jetbrains,
    /// Goose by Block.
    Goose,
    /// Any other client that starts MCP servers.
    Other,
}

impl Client {
    /// The clients with an agent, in the order in which they are set up and reported.
    pub const AGENTS: [Client; 6] =
        [Client::ClaudeCode, Client::Codex, Client::Gemini, Client::Qwen, Client::Copilot, Client::Opencode];

    /// Returns the client for the word `word`, which [`Client::word`] returns.
    pub fn of(word: &str) -> Option<Client> {
        Client::AGENTS.into_iter().chain([Client::Git]).find(|client| client.word() == word)
    }

    /// Returns the client that introduces itself to servers as `name`.
    pub fn introduced(name: &str) -> Option<Client> {
        let name = name.to_lowercase();
        let is_named =
            |client: &Client| client.agent().is_some_and(|it| name.contains(it.introduces_itself()));
        Client::AGENTS.into_iter().find(is_named)
    }

    /// Returns the word for the client on the command line and in the store.
    pub fn word(self) -> &'static str {
        if let Client::Mcp(client) = self {
            return client.word();
        }
        self.agent().map_or("git", |agent| agent.word())
    }

    /// Returns the product name.
    pub fn name(self) -> &'static str {
        if let Client::Mcp(client) = self {
            return client.name();
        }
        self.agent().map_or("git", |agent| agent.name())
    }

    /// Returns the names of all clients with an agent, as a list for people.
    pub fn names() -> String {
        let names = Client::AGENTS.map(Client::name);
        let (last, others) = names.split_last().expect("there are clients");
        format!("{} and {last}", others.join(", "))
    }

    /// Returns what the user has to do in the client after the setup, if anything.
    pub fn next_step(self) -> Option<&'static str> {
        self.agent()?.next_step()
    }

    /// Returns the name of the folder in a project that contains the project's configuration of the client.
    pub fn project_folder(self) -> Option<&'static str> {
        self.agent().map(|agent| agent.project_folder())
    }

    /// Returns a text for people that says what Tiro captures of this client.
    pub fn captured(self) -> &'static str {
        match self {
            Client::Mcp(_) => "nothing; the agent searches and saves through the server",
            Client::Git => "messages, paths and changed words of commits, after secrets are removed",
            _ => {
                "what you and the agent say, and its tool calls in short, after secrets are removed; not what `tiro pause` or \
                 `<private>` keeps out"
            }
        }
    }
}
