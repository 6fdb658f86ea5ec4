//! What Tiro knows about each client, in one file per client: where it is installed, how it is set up and set back, and
//! where it keeps transcripts.

mod claude_code;
pub(super) mod codex;
mod copilot;
pub(super) mod gemini;
mod opencode;
mod qwen;

use std::path::{Path, PathBuf};

use super::{Client, Places, Plan, Setup};
use tiro_base::error::Result;

/// A client with an agent. Everything that differs between the clients is here; the code that reads, edits and records
/// files, and that searches transcripts, is the same for all.
pub trait Agent: Sync {
    /// Returns the word for the client on the command line and in the store.
    fn word(&self) -> &'static str;

    /// Returns the product name.
    fn name(&self) -> &'static str;

    /// Returns the environment variables by which the user moves the client's files.
    fn variables(&self) -> &'static [&'static str];

    /// Returns the folder of the client's configuration. The client is installed if this folder exists.
    fn folder(&self, places: &Places) -> PathBuf;

    /// Returns the name of the folder in a project that contains the project's configuration of the client.
    fn project_folder(&self) -> &'static str;

    /// Returns the files in which `tiro init` writes entries, in the order in which it writes them.
    fn files(&self, places: &Places) -> Vec<PathBuf>;

    /// Returns the folders that `tiro init` makes for its files, each before the folders that contain it.
    fn made(&self, _places: &Places) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns the files in which the client looks for the server of `tiro init`: those of the user, and those of the
    /// project in `root`.
    fn server_files(&self, places: &Places, root: Option<&Path>) -> Vec<PathBuf>;

    /// Adds the changes for the client to `plan`.
    fn plan(&self, setup: &Setup<'_>, plan: &mut Plan);

    /// Returns `text`, the content of the file at `path`, without our entries. Returns `None` if the file is ours as a
    /// whole. `before` is the former content, `wrote` the content that we wrote, if it is known.
    fn without(
        &self,
        path: &Path,
        text: &str,
        before: Option<&str>,
        wrote: Option<&str>,
    ) -> Result<Option<String>>;

    /// Returns whether the file at `path` must stay, because a user added something to another file that needs it.
    fn is_needed(&self, _path: &Path) -> bool {
        false
    }

    /// Returns the folders with transcripts, and transcripts that stand alone.
    fn transcripts(&self, places: &Places) -> Vec<PathBuf>;

    /// Returns the database whose sessions are the transcripts, if the client has one.
    fn database(&self, _places: &Places) -> Option<PathBuf> {
        None
    }

    /// Returns whether the client also writes transcripts with the extension `json`.
    fn writes_documents(&self) -> bool {
        false
    }

    /// Returns whether `folder` is the name of the folder in which the client keeps the transcripts of `root`.
    fn is_named_after(&self, _folder: &str, _root: &Path) -> bool {
        false
    }

    /// Returns the directory to which `folder`, which contains transcripts, belongs according to a file in it.
    fn recorded_directory(&self, _folder: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the transcript of a session. Only clients whose hooks don't name the transcript need this.
    fn transcript_of(&self, _places: &Places, _session: &str) -> Option<PathBuf> {
        None
    }

    /// Returns a word in the name by which the client introduces itself to servers, in small letters.
    fn introduces_itself(&self) -> &'static str {
        self.word()
    }

    /// Returns what the user has to do after the setup, if anything.
    fn next_step(&self) -> Option<&'static str> {
        None
    }
}

impl Client {
    /// Returns what is known about the client. Returns `None` for git, which has no agent, and for clients that get only
    /// the server.
    pub(super) fn agent(self) -> Option<&'static dyn Agent> {
        match self {
            Client::ClaudeCode => Some(&claude_code::ClaudeCode),
            Client::Codex => Some(&codex::Codex),
            Client::Gemini => Some(&gemini::Gemini),
            Client::Qwen => Some(&qwen::Qwen),
            Client::Copilot => Some(&copilot::Copilot),
            Client::Opencode => Some(&opencode::Opencode),
            Client::Git | Client::Mcp(_) => None,
        }
    }
}
