//! The formats of transcripts, one file for each client.

mod claude_code;
mod codex;
mod copilot;
mod gemini;
mod opencode;
mod qwen;

use super::fields::Fields;
use super::session::Session;

/// Programs whose transcripts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `~/.claude/projects/<folder>/<session>.jsonl`, with sub-agents in subfolders.
    ClaudeCode,
    /// `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`.
    Codex,
    /// `~/.gemini/tmp/<project>/chats/session-*.jsonl`; an older `.json` file is read as a single line.
    Gemini,
    /// `~/.qwen/projects/<folder>/chats/<session>.jsonl`, with sub-agents in `subagents`.
    Qwen,
    /// `~/.copilot/session-state/<session>/events.jsonl`.
    Copilot,
    /// The lines that are made of the rows of a session in opencode's database.
    Opencode,
}

impl Format {
    /// Returns whether the client writes a message again as a new line after the message has grown. The new line has
    /// the time of the message's first line.
    pub(in crate::import) fn rewrites(self) -> bool {
        self == Format::Gemini
    }

    /// Reads the fields of a line and adds its content to `session`.
    pub(in crate::import) fn line(self, session: &mut Session, fields: &Fields<'_>) {
        match self {
            Format::ClaudeCode => claude_code::line(session, fields),
            Format::Codex => codex::line(session, fields),
            Format::Gemini => gemini::line(session, fields),
            Format::Qwen => qwen::line(session, fields),
            Format::Copilot => copilot::line(session, fields),
            Format::Opencode => opencode::line(session, fields),
        }
    }
}
