//! The clients that Tiro is set up in, and the git hook: finding them and editing their configuration.
//!
//! Three steps, so that nothing is written that was not shown: [`plan`] looks and returns what would change,
//! [`apply`] writes it and keeps a record of what was there, [`remove`] puts that back, and takes out what is ours
//! beyond doubt where nothing was recorded. What a client wants is in its
//! file; what is common to them (looking, replacing, recording, editing JSON) is beside.
//!
//! A configuration that cannot be edited without losing something is left alone and reported as a [`Finding`]. It is
//! not a way to configure the clients otherwise: only our own entries are known here.

pub mod by_hand;
mod claude_code;
mod codex;
mod cut;
mod edit;
mod gemini;
mod git_hook;
mod leftover;
mod record;
#[cfg(test)]
mod tests;
pub mod transcripts;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::envelope;
use crate::error::{Error, Result};
use crate::file::user_file::{self, State};

pub use record::{Applied, Removed, apply, lost, was_applied};

/// Something that is told to use Tiro.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// Anthropic's.
    ClaudeCode,
    /// OpenAI's.
    Codex,
    /// Google's Gemini CLI.
    Gemini,
    /// A repository's hook, which is no client but is set up and taken back like one.
    Git,
}

/// Where clients keep their configuration.
#[derive(Clone, Debug)]
pub struct Places {
    /// The home directory; a link may lead anywhere beneath it.
    pub home: PathBuf,
    /// Claude Code's: `CLAUDE_CONFIG_DIR`, else `.claude`.
    pub claude_code: PathBuf,
    /// Codex's: `CODEX_HOME`, else `.codex`.
    pub codex: PathBuf,
    /// Gemini CLI's: `.gemini`, beneath `GEMINI_CLI_HOME` if that is set.
    pub gemini: PathBuf,
}

/// Where a repository's hooks are.
#[derive(Clone, Debug)]
pub struct GitPlace {
    /// The directory that git looks in: `core.hooksPath`, else `hooks` in the common directory.
    pub hooks: PathBuf,
    /// The git directory that all worktrees share.
    pub common: PathBuf,
    /// The root of the work tree, unless the repository is bare.
    pub work_tree: Option<PathBuf>,
    /// Whether the hook is part of the repository: everybody would get what is written there.
    pub is_tracked: bool,
    /// Where its git directory was seen before.
    pub formerly: Vec<PathBuf>,
}

/// What would be done, and what cannot be.
#[derive(Debug, Default)]
pub struct Plan {
    /// The clients that are here.
    pub found: Vec<Client>,
    /// What would be written, in this order. Empty once everything is as it should be.
    pub changes: Vec<Change>,
    /// What is left alone, and why.
    pub findings: Vec<Finding>,
}

/// One file that would change.
#[derive(Clone, Debug)]
pub struct Change {
    /// Whose it is.
    pub client: Client,
    /// The file by the name people know; it may be a link.
    pub path: PathBuf,
    /// What is there; `None` if there is no file.
    pub before: Option<State>,
    /// What will be there.
    pub after: State,
    /// What it is for, in a line for people.
    pub reason: String,
}

/// Something about a client that we leave alone.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Whose it is.
    pub client: Client,
    /// The file by the name people know.
    pub path: PathBuf,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub mend: String,
}

/// The arguments that the program is started with as a server: it offers every tool.
const SERVE: [&str; 1] = ["serve"];

/// What stays where the rest is taken back.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// Whether the clients stay set up.
    pub clients: bool,
    /// Hooks of repositories.
    pub hooks: Vec<PathBuf>,
}

impl Keep {
    fn keeps(&self, client: Client, path: &Path) -> bool {
        match client {
            Client::Git => self.hooks.iter().any(|hook| hook == path),
            _ => self.clients,
        }
    }
}

/// What is to be set up.
struct Setup<'a> {
    places: &'a Places,
    /// The program, absolute.
    binary: &'a str,
}

/// Returns what has to be written so that every client that is here uses `binary`. Writes nothing.
///
/// # Errors
///
/// [`crate::error::Kind::BadInput`] if the path of the binary is relative or no text: configuration files are text.
pub fn plan(places: &Places, binary: &Path, project: Option<&GitPlace>) -> Result<Plan> {
    let binary = binary.to_str().filter(|text| binary.is_absolute() && !text.contains(['\n', '\r']));
    let binary = binary.ok_or_else(|| {
        Error::bad_input("the program's path can't be written in configuration files")
            .hint("install it at an absolute path of plain text")
    })?;
    let setup = Setup { places, binary };
    let mut plan = Plan::default();
    if is_directory(&places.claude_code) {
        plan.found.push(Client::ClaudeCode);
        claude_code::plan(&setup, &mut plan);
    }
    if is_directory(&places.codex) {
        plan.found.push(Client::Codex);
        codex::plan(&setup, &mut plan);
    }
    if is_directory(&places.gemini) {
        plan.found.push(Client::Gemini);
        gemini::plan(&setup, &mut plan);
    }
    if let Some(project) = project {
        plan.found.push(Client::Git);
        git_hook::plan(&setup, project, &mut plan);
    }
    Ok(plan)
}

/// Takes back what is recorded in `dir`, and what is ours beyond doubt where nothing is; `repositories` are those that
/// are known, wherever they were before.
///
/// # Errors
///
/// [`crate::error::Kind::Io`] if the record cannot be read or kept, [`crate::error::Kind::Busy`] if somebody else is
/// at it.
pub fn remove(
    dir: &Path,
    places: Option<&Places>,
    repositories: &[GitPlace],
    keep: &Keep,
) -> Result<Removed> {
    let mut removed = record::remove(dir, repositories, keep)?;
    leftover::remove(places, repositories, keep, &mut removed);
    Ok(removed)
}

/// Returns the hooks in which our lines stand, recorded in `dir` or those of `repositories`, by path.
///
/// # Errors
///
/// [`crate::error::Kind::Io`] if the record cannot be read.
pub fn hooks(dir: &Path, repositories: &[GitPlace]) -> Result<Vec<PathBuf>> {
    let mut hooks = record::hooks(dir, repositories)?;
    hooks.extend(repositories.iter().filter_map(git_hook::own));
    hooks.sort();
    hooks.dedup();
    Ok(hooks)
}

/// Returns the hook of a repository in which our lines stand, where there is one.
pub fn hook_of(repository: &GitPlace) -> Option<PathBuf> {
    git_hook::own(repository)
}

impl Plan {
    /// Returns whether `client` is here and set up as it would be now.
    pub fn is_set_up(&self, client: Client) -> bool {
        self.found.contains(&client)
            && !self.changes.iter().any(|change| change.client == client)
            && !self.findings.iter().any(|finding| finding.client == client)
    }

    /// Returns what would be written and captured, and what is left alone, for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for client in &self.found {
            text += &format!("{}\n", client.name());
            for Change { path, before, after, reason, .. } in
                self.changes.iter().filter(|change| change.client == *client)
            {
                let after = after.bytes.0.len();
                let sizes = match before {
                    None => format!("new, {after} bytes"),
                    Some(before) => format!("{} -> {after} bytes", before.bytes.0.len()),
                };
                text +=
                    &format!("  write {} ({sizes}): {reason}\n", envelope::one_line(&path.to_string_lossy()));
            }
            for Finding { path, found, mend, .. } in
                self.findings.iter().filter(|finding| finding.client == *client)
            {
                text += &format!(
                    "  leave {}: {found}\n        {mend}\n",
                    envelope::one_line(&path.to_string_lossy())
                );
            }
            if self.is_set_up(*client) {
                text += "  is set up\n";
            }
            text += &format!("  captured: {}\n", client.captured());
        }
        text
    }

    /// Adds what has to be written so that `path` is as `edit` returns it, or why that cannot be. A file that is new
    /// gets `mode`; one that is there keeps its own.
    fn edit(
        &mut self,
        setup: &Setup<'_>,
        (client, path, reason): (Client, &Path, &str),
        mode: u32,
        edit: impl FnOnce(Option<&str>) -> Result<String>,
    ) {
        let edited = || -> Result<Option<Change>> {
            let target = user_file::look(path)?;
            let before = target.state.as_ref();
            let text = before
                .map(|state| std::str::from_utf8(&state.bytes.0))
                .transpose()
                .map_err(|error| Error::bad_input("it is not UTF-8").source(error))?;
            let after = State {
                bytes: user_file::Bytes(edit(text)?.into_bytes()),
                mode: before.map_or(mode, |before| before.mode),
            };
            if Some(&after) == before {
                return Ok(None);
            }
            user_file::check(path, &target, &setup.places.home)?;
            let (path, reason) = (path.to_owned(), reason.to_owned());
            Ok(Some(Change { client, path, before: target.state, after, reason }))
        };
        match edited() {
            Ok(change) => self.changes.extend(change),
            Err(error) => self.findings.push(Finding::new(client, path, &error)),
        }
    }
}

impl Client {
    /// Returns the client that `word` names, as [`Client::word`] spells it.
    pub fn of(word: &str) -> Option<Client> {
        [Client::ClaudeCode, Client::Codex, Client::Gemini, Client::Git]
            .into_iter()
            .find(|client| client.word() == word)
    }

    /// Returns the word it goes by on the command line and in the store.
    pub fn word(self) -> &'static str {
        match self {
            Client::ClaudeCode => "claude-code",
            Client::Codex => "codex",
            Client::Gemini => "gemini",
            Client::Git => "git",
        }
    }

    /// Returns the name people know it by.
    pub fn name(self) -> &'static str {
        match self {
            Client::ClaudeCode => "Claude Code",
            Client::Codex => "Codex",
            Client::Gemini => "Gemini CLI",
            Client::Git => "git",
        }
    }

    /// Returns what will be remembered of it, in words.
    pub fn captured(self) -> &'static str {
        match self {
            Client::ClaudeCode | Client::Codex | Client::Gemini => {
                "what you and the agent say, and its tool calls in short, after secrets are removed; not what `tiro pause` or \
                 `<private>` keeps out"
            }
            Client::Git => "messages, paths and changed words of commits, after secrets are removed",
        }
    }
}

impl Finding {
    fn new(client: Client, path: &Path, error: &Error) -> Finding {
        let mend = error.way_out().unwrap_or("mend the file, then run `tiro init` again").to_owned();
        Finding { client, path: path.to_owned(), found: error.to_string(), mend }
    }
}

/// Returns `text` without what is ours, or `None` if the file has nothing else and was not there before.
///
/// Knows the files of all clients, since what was recorded may be older than what is planned now.
fn without(client: Client, path: &Path, text: &str, before: Option<&str>) -> Result<Option<String>> {
    match client {
        Client::ClaudeCode => claude_code::without(path, text, before).map(Some),
        Client::Codex => codex::without(path, text, before).map(Some),
        Client::Gemini => cut::remove(text, before, &gemini::OURS).map(Some),
        Client::Git => git_hook::without(text),
    }
    .map(|left| {
        let is_empty = |text: &String| matches!(text.trim(), "" | "{}");
        left.filter(|text| before.is_some() || !is_empty(text))
    })
}

/// Returns `text` as one word of a shell, quoted where it has to be.
fn quoted(text: &str) -> String {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._+-".contains(c)) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn is_directory(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_dir())
}
