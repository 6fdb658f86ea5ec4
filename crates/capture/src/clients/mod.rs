//! Sets Tiro up in the agents on this machine, and in git's hooks.
//!
//! Setup has three steps, so that only changes that the user has seen are written: [`plan`] returns the changes,
//! [`apply`] writes them and records the former content, and [`remove`] restores that content. Without a record,
//! `remove` removes only what is certainly ours. Everything that is peculiar to a client is in its file in `agents/`.
//! The code that reads, replaces, records and edits files is shared.
//!
//! A configuration that can't be edited without a loss is not changed but reported as a [`Finding`]. Only our own
//! entries are changed.

mod agents;
pub mod by_hand;
mod client;
mod cut;
mod edit;
mod git_hook;
mod leftover;
pub mod mcp;
mod programs;
mod record;
pub mod retention;
mod servers;
#[cfg(test)]
mod tests;
pub mod transcripts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use tiro_base::envelope;
use tiro_base::error::{Error, Result};
use tiro_base::file::user_file::{self, FileSnapshot};

pub use client::Client;
pub use programs::{ConfiguredProgram, written};
use programs::{quoted, unquoted};
pub use record::{Applied, Removed, apply, lost, was_applied};

/// The variable that names the folder in which programs keep their settings.
const SETTINGS: &str = if cfg!(windows) { "APPDATA" } else { "XDG_CONFIG_HOME" };

/// The places in which the clients keep their files.
#[derive(Clone, Debug)]
pub struct Places {
    /// The home directory. Configuration files may be links to any place below it.
    pub home: PathBuf,
    /// The environment variables by which the user moved files of clients.
    variables: BTreeMap<&'static str, PathBuf>,
}

impl Places {
    /// Returns the places in the home directory `home`. `variable` returns the value of an environment variable, if it
    /// is set.
    pub fn new(home: PathBuf, variable: impl Fn(&str) -> Option<PathBuf>) -> Places {
        let agents = Client::AGENTS.iter().filter_map(|client| client.agent());
        let names = agents.flat_map(|agent| agent.variables()).chain([&SETTINGS]);
        let variables = names.filter_map(|name| Some((*name, variable(name)?))).collect();
        Places { home, variables }
    }

    /// Returns the value of an environment variable, or the path `otherwise` in the home directory.
    fn set_or(&self, variable: &str, otherwise: &str) -> PathBuf {
        self.variables.get(variable).cloned().unwrap_or_else(|| self.home.join(otherwise))
    }

    /// Returns the folder in which programs keep their settings.
    fn settings(&self) -> PathBuf {
        self.set_or(SETTINGS, if cfg!(windows) { "AppData/Roaming" } else { ".config" })
    }

    /// Returns the folder of the client's configuration. Returns `None` for git.
    pub fn folder(&self, client: Client) -> Option<PathBuf> {
        client.agent().map(|agent| agent.folder(self))
    }

    /// Returns the files in which `tiro init` writes entries, in the order in which it writes them.
    fn files(&self) -> Vec<(Client, PathBuf)> {
        let of = |client: Client| client.agent().map(|agent| agent.files(self)).unwrap_or_default();
        Client::AGENTS
            .into_iter()
            .flat_map(|client| of(client).into_iter().map(move |path| (client, path)))
            .collect()
    }

    /// Returns the file in which the client lists the prompts of all sessions, including sessions whose transcripts it
    /// has deleted. Only Claude Code has such a file.
    pub fn prompts(&self, client: Client) -> Option<PathBuf> {
        self.folder(client)
            .filter(|_| client == Client::ClaudeCode)
            .map(|folder| folder.join("history.jsonl"))
    }

    /// Returns the transcript of the session with the id `session`. Only clients whose hooks don't name the transcript
    /// need this.
    pub fn transcript_of(&self, client: Client, session: &str) -> Option<PathBuf> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let is_name = !session.is_empty() && session.chars().all(is_plain);
        client.agent().filter(|_| is_name)?.transcript_of(self, session)
    }
}

/// The directories of a repository and its hooks.
#[derive(Clone, Debug)]
pub struct GitPlace {
    /// The directory of hooks: `core.hooksPath`, otherwise `hooks` in the common directory.
    pub hooks: PathBuf,
    /// The git directory that all worktrees share.
    pub common: PathBuf,
    /// The root of the work tree, unless the repository is bare.
    pub work_tree: Option<PathBuf>,
    /// Whether the hook is part of the repository, so that every clone would get our change.
    pub is_tracked: bool,
    /// The former paths of the repository's git directory.
    pub formerly: Vec<PathBuf>,
}

/// The changes to be made, and the findings about configuration that can't be changed.
#[derive(Debug, Default)]
pub struct Plan {
    /// The clients that are installed on this machine.
    pub found: Vec<Client>,
    /// The changes, in the order in which they are made; empty if everything is set up.
    pub changes: Vec<Change>,
    /// Changes that are made only if the user agrees. They let agents call the read-only tools without asking, and make
    /// a client trust the folder.
    pub offers: Vec<Change>,
    /// The parts of the configuration that can't be changed, with the reasons.
    pub findings: Vec<Finding>,
}

/// A change of one file.
#[derive(Clone, Debug)]
pub struct Change {
    /// The client that the file belongs to.
    pub client: Client,
    /// The path as users know it. The path may be a link.
    pub path: PathBuf,
    /// The current content; `None` if there is no file.
    pub before: Option<FileSnapshot>,
    /// The content after the change.
    pub after: FileSnapshot,
    /// The purpose of the change, in one line for people.
    pub reason: String,
}

/// A part of a client's configuration that can't be changed.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The client that the file belongs to.
    pub client: Client,
    /// The path as users know it.
    pub path: PathBuf,
    /// The problem.
    pub found: String,
    /// What the user can do about it.
    pub mend: String,
}

/// The arguments of the server, which offers every tool.
const SERVE: [&str; 1] = ["serve"];

/// The timeout of a tool in seconds: a tool that asks another agent takes minutes.
const TOOL_TIMEOUT: u32 = 600;

/// The entries that [`remove`] keeps.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// Whether all clients stay set up.
    pub clients: bool,
    /// The hooks of repositories that stay.
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

/// The program for which clients are set up.
struct Setup<'a> {
    places: &'a Places,
    /// The absolute path of the program.
    binary: &'a str,
    /// The names of the read-only tools. The user may let agents call them without asking.
    reading: &'a [String],
    /// The folder in which agents work; `None` outside a work tree.
    folder: Option<&'a Path>,
}

/// Returns the changes that make every installed client use `binary`, and the offer to let agents call the tools named
/// in `reading` without asking. Writes nothing.
///
/// # Errors
///
/// [`tiro_base::error::Kind::BadInput`] if the path of the binary is relative or not UTF-8.
pub fn plan(places: &Places, binary: &Path, project: Option<&GitPlace>, reading: &[String]) -> Result<Plan> {
    let binary = writable(binary)?;
    let folder = project.and_then(|project| project.work_tree.as_deref());
    let setup = Setup { places, binary, reading, folder };
    let mut plan = Plan::default();
    for client in Client::AGENTS {
        if let Some(agent) = client.agent().filter(|agent| is_directory(&agent.folder(places))) {
            plan.found.push(client);
            agent.plan(&setup, &mut plan);
        }
    }
    mcp::refresh(&setup, &mut plan);
    if let Some(project) = project {
        plan.found.push(Client::Git);
        git_hook::plan(&setup, project, &mut plan);
    }
    Ok(plan)
}

/// Returns the path of the program as text, if it can be written in configuration files.
fn writable(binary: &Path) -> Result<&str> {
    let text = binary.to_str().filter(|text| binary.is_absolute() && !text.contains(['\n', '\r']));
    text.ok_or_else(|| {
        Error::bad_input("the program's path can't be written in configuration files")
            .hint("install it at an absolute path that is valid UTF-8")
    })
}

/// Restores the contents that are recorded in `dir`, and removes all other entries that are certainly ours.
/// `repositories` are all known repositories, with their former paths.
///
/// # Errors
///
/// [`tiro_base::error::Kind::Io`] if the record can't be read or written, [`tiro_base::error::Kind::Busy`] if another process
/// is working on it.
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

/// Returns the sorted paths of all hooks with our lines: those that are recorded in `dir`, and those of
/// `repositories`.
///
/// # Errors
///
/// [`tiro_base::error::Kind::Io`] if the record can't be read.
pub fn hooks(dir: &Path, repositories: &[GitPlace]) -> Result<Vec<PathBuf>> {
    let mut hooks = record::hooks(dir, repositories)?;
    hooks.extend(repositories.iter().filter_map(git_hook::own));
    hooks.sort();
    hooks.dedup();
    Ok(hooks)
}

/// Returns the path of the repository's hook if it contains our lines.
pub fn hook_of(repository: &GitPlace) -> Option<PathBuf> {
    git_hook::own(repository)
}

impl Plan {
    /// Returns whether `client` is installed and completely set up.
    pub fn is_set_up(&self, client: Client) -> bool {
        self.found.contains(&client)
            && !self.changes.iter().any(|change| change.client == client)
            && !self.findings.iter().any(|finding| finding.client == client)
    }

    /// Returns a readable report with the changes, the findings, and the data that Tiro captures from each client.
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
            for Change { path, reason, .. } in self.offers.iter().filter(|offer| offer.client == *client) {
                text += &format!("  offer {}: {reason}\n", envelope::one_line(&path.to_string_lossy()));
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

    /// Adds the offers to the changes. If a file has a change and an offer, the offer contains the change too.
    pub fn accept_offers(&mut self) {
        for offer in std::mem::take(&mut self.offers) {
            match self.changes.iter_mut().find(|change| change.path == offer.path) {
                Some(change) => *change = offer,
                None => self.changes.push(offer),
            }
        }
    }

    /// Plans to replace the content of `path` with the result of `edit`. If `edit` fails, adds a finding with the
    /// reason instead. A new file gets the mode `mode`, and an existing file keeps its mode.
    fn edit(
        &mut self,
        setup: &Setup<'_>,
        about: (Client, &Path, &str),
        mode: u32,
        edit: impl FnOnce(Option<&str>) -> Result<String>,
    ) {
        match edited(setup, about, mode, edit) {
            Ok(change) => self.changes.extend(change),
            Err(error) => self.findings.push(Finding::new(about.0, about.1, &error)),
        }
    }

    /// Offers to replace the content of `path`, as [`Plan::edit`] plans it.
    fn offer(
        &mut self,
        setup: &Setup<'_>,
        about: (Client, &Path, &str),
        mode: u32,
        edit: impl FnOnce(Option<&str>) -> Result<String>,
    ) {
        match edited(setup, about, mode, edit) {
            Ok(change) => self.offers.extend(change),
            Err(error) => self.findings.push(Finding::new(about.0, about.1, &error)),
        }
    }
}

/// Returns the change that gives `path` the content that `edit` returns; `None` if it already has that content.
fn edited(
    setup: &Setup<'_>,
    (client, path, reason): (Client, &Path, &str),
    mode: u32,
    edit: impl FnOnce(Option<&str>) -> Result<String>,
) -> Result<Option<Change>> {
    let target = user_file::look(path)?;
    let before = target.state.as_ref();
    let text = before
        .map(|state| std::str::from_utf8(&state.bytes.0))
        .transpose()
        .map_err(|error| Error::bad_input("it is not UTF-8").source(error))?;
    let after = FileSnapshot {
        bytes: user_file::Bytes(edit(text)?.into_bytes()),
        mode: before.map_or(mode, |before| before.mode),
    };
    if Some(&after) == before {
        return Ok(None);
    }
    user_file::check(path, &target, &setup.places.home)?;
    let (path, reason) = (path.to_owned(), reason.to_owned());
    Ok(Some(Change { client, path, before: target.state, after, reason }))
}

/// Returns a text that says what an offer allows.
fn allows(reading: &[String]) -> String {
    format!("lets the agent call the tools that only read without asking: {}", reading.join(", "))
}

impl Finding {
    fn new(client: Client, path: &Path, error: &Error) -> Finding {
        let mend = error.way_out().unwrap_or("correct the file, then run `tiro init` again").to_owned();
        Finding { client, path: path.to_owned(), found: error.to_string(), mend }
    }
}

/// Returns `text` without our entries. Returns `None` if the file did not exist before and nothing else is left in it.
///
/// This function knows the files of all clients, because the record may be older than the current plan. `wrote` is the
/// content that we wrote, if that is known.
fn without(
    client: Client,
    path: &Path,
    text: &str,
    before: Option<&str>,
    wrote: Option<&str>,
) -> Result<Option<String>> {
    match (client, client.agent()) {
        (_, Some(agent)) => agent.without(path, text, before, wrote),
        (Client::Mcp(client), None) => client.without(text, before).map(Some),
        (_, None) => git_hook::without(text),
    }
    .map(|left| {
        let is_empty = |text: &String| matches!(text.trim(), "" | "{}");
        left.filter(|text| before.is_some() || !is_empty(text))
    })
}

fn is_directory(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_dir())
}
