//! Sets up clients of which Tiro reads no transcripts, such as editors. They get the server and nothing else.
//!
//! Such a client is set up only if the user names it, because many people have an editor in which they use no agent.
//! From then on its entry is checked, repaired and removed like the entries of the other clients.
//!
//! A client is one row of the table in [`table`]: its names, the place of its configuration, the form of the entry, and
//! where the client starts servers. A client whose configuration Tiro can't edit gets a text to paste. The server of a
//! user that has our name and starts another program is not changed but reported.

mod entry;
mod paths;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use super::client::McpClient;
use super::{Client, Places, Plan, SERVE, Setup, is_directory, writable};
use entry::Entry;
use paths::{Paths, System};
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::file::user_file;

/// What Tiro knows of a client.
struct Description {
    client: McpClient,
    /// The word for the client on the command line and in the record.
    word: &'static str,
    /// The product name.
    name: &'static str,
    config: Config,
    starts: Starts,
    /// What the user does after setup.
    next: &'static str,
}

/// How a client is configured.
enum Config {
    /// By a file in JSON, in which Tiro writes an entry.
    File(Paths, Entry),
    /// By the user, who pastes a text at a place.
    Pasted(Paths, entry::Form),
}

/// Where a client starts servers.
#[derive(Clone, Copy)]
enum Starts {
    /// In the project, so that the entry need not name it.
    InProject,
    /// Elsewhere, but the client replaces this text in the arguments with the directory of the project.
    Replacing(&'static str),
    /// Elsewhere, so that the entry must name the project.
    Elsewhere,
}

/// The project of the working directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Here<'a> {
    /// The root of the project; `None` outside a project.
    pub root: Option<&'a Path>,
    /// Whether the user named the project. Then every entry names it.
    pub is_named: bool,
}

/// The changes that set up the clients that the user named.
#[derive(Debug, Default)]
pub struct Planned {
    /// The changes of files.
    pub plan: Plan,
    /// The texts that the user must paste.
    pub pasted: Vec<Pasted>,
}

/// A text that the user must paste, because Tiro can't edit the client's configuration.
#[derive(Clone, Debug, Serialize)]
pub struct Pasted {
    /// The client.
    pub client: Client,
    /// The place, in words that follow "into".
    pub place: String,
    /// The text.
    pub text: String,
}

/// The purpose of the entry, in one line for people.
const REASON: &str = "the MCP server `tiro`";

/// Returns the changes that make the named clients start `binary`. Writes nothing.
///
/// # Errors
///
/// - [`Kind::BadInput`] if the path of the binary can't be written in configuration files.
/// - [`Kind::NotFound`] if a client is not installed.
/// - [`Kind::NoProject`] if an entry must name a project and there is none.
pub fn plan(places: &Places, binary: &Path, clients: &[McpClient], here: &Here<'_>) -> Result<Planned> {
    let setup = Setup { places, binary: writable(binary)?, reading: &[], folder: here.root };
    let mut planned = Planned::default();
    for client in clients.iter().copied().collect::<BTreeSet<_>>() {
        let description = client.description();
        let project = description.project(here)?;
        match &description.config {
            Config::File(paths, entry) => {
                let path = description.installed(paths, places, here.root)?;
                planned.plan.found.push(Client::Mcp(client));
                planned.plan.edit(&setup, (Client::Mcp(client), &path, REASON), 0o600, |text| {
                    entry.insert(text.unwrap_or_default(), setup.binary, project.as_deref())
                });
            }
            Config::Pasted(paths, form) => planned.pasted.push(Pasted {
                client: Client::Mcp(client),
                place: paths.on(System::current()).to_owned(),
                text: form.text(setup.binary, project.as_deref()),
            }),
        }
    }
    Ok(planned)
}

/// Adds the changes that make existing entries of ours start the program of `setup`. The arguments of an entry stay,
/// because they may name another project.
pub(super) fn refresh(setup: &Setup<'_>, plan: &mut Plan) {
    for (client, path) in files(setup.places, setup.folder) {
        let Some(entry) = client.entry() else { continue };
        if !text(&path).is_some_and(|text| entry.may_be_ours(&text)) {
            continue;
        }
        plan.found.push(Client::Mcp(client));
        plan.edit(setup, (Client::Mcp(client), &path, REASON), 0o600, |text| {
            entry.refresh(text.unwrap_or_default(), setup.binary)
        });
    }
}

/// Returns the files in which Tiro writes entries for clients of this module: the files of the user, and the files of
/// the projects in `roots`.
pub(super) fn files<'a>(
    places: &Places,
    roots: impl IntoIterator<Item = &'a Path>,
) -> Vec<(McpClient, PathBuf)> {
    let roots: Vec<&Path> = roots.into_iter().collect();
    let mut files = Vec::new();
    for Description { client, config, .. } in table::CLIENTS {
        let Config::File(paths, _) = config else { continue };
        let system = System::current();
        let found = match paths.is_of_project(system) {
            true => roots.iter().filter_map(|root| paths.expand(system, places, Some(root))).collect(),
            false => Vec::from_iter(paths.expand(system, places, None)),
        };
        files.extend(found.into_iter().map(|path| (*client, path)));
    }
    files
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(user_file::look(path).ok()?.state?.bytes.0).ok()
}

impl McpClient {
    /// Returns all clients, in the order in which they are listed.
    pub fn all() -> impl Iterator<Item = McpClient> {
        table::CLIENTS.iter().map(|description| description.client)
    }

    /// Returns the client for the word `word`, which [`McpClient::word`] returns.
    pub fn of(word: &str) -> Option<McpClient> {
        McpClient::all().find(|client| client.word() == word)
    }

    /// Returns the word for the client on the command line and in the record.
    pub fn word(self) -> &'static str {
        self.description().word
    }

    /// Returns the product name.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// Returns what the user does after setup.
    pub fn next(self) -> &'static str {
        self.description().next
    }

    /// Returns `text`, a configuration of the client, without our entry. A server that `before` had in its place is
    /// restored.
    pub(super) fn without(self, text: &str, before: Option<&str>) -> Result<String> {
        self.entry().map_or_else(|| Ok(text.to_owned()), |entry| entry.without(text, before))
    }

    /// Returns whether the entry in `text` has exactly the settings that we write.
    pub(super) fn is_certainly_ours(self, text: &str) -> bool {
        self.entry().is_some_and(|entry| entry.is_certainly_ours(text))
    }

    fn entry(self) -> Option<&'static Entry> {
        match &self.description().config {
            Config::File(_, entry) => Some(entry),
            Config::Pasted(..) => None,
        }
    }

    fn description(self) -> &'static Description {
        table::CLIENTS
            .iter()
            .find(|description| description.client == self)
            .expect("a test proves that the table has all clients")
    }
}

impl Description {
    /// Returns the project that the entry names, if it names one.
    fn project(&self, here: &Here<'_>) -> Result<Option<String>> {
        let root = match (self.starts, here.root.filter(|_| here.is_named)) {
            (_, Some(named)) => named,
            (Starts::InProject, None) => return Ok(None),
            (Starts::Replacing(text), None) => return Ok(Some(text.to_owned())),
            (Starts::Elsewhere, None) => here.root.ok_or_else(|| self.without_project())?,
        };
        let root = root.to_str().ok_or_else(|| {
            Error::bad_input(format!("`{}` can't be written in JSON", quoted(root.display())))
                .hint("give the directory a name that is valid UTF-8")
        })?;
        Ok(Some(root.to_owned()))
    }

    /// Returns the path of the client's file, if the client is installed. The file need not exist.
    fn installed(&self, paths: &Paths, places: &Places, root: Option<&Path>) -> Result<PathBuf> {
        let system = System::current();
        let path = paths.expand(system, places, root).ok_or_else(|| self.without_project())?;
        let folder = path.parent().unwrap_or(&path);
        match paths.is_of_project(system) || is_directory(folder) {
            true => Ok(path),
            false => Err(Error::not_found(format!(
                "{} is not installed here: there is no directory `{}`",
                self.name,
                quoted(folder.display())
            ))
            .hint(format!(
                "start {} once, then run this again; `tiro init --client other` prints an entry to paste",
                self.name
            ))),
        }
    }

    fn without_project(&self) -> Error {
        let Description { name, word, .. } = self;
        Error::new(
            Kind::NoProject,
            format!("the entry of {name} must name a project, and the working directory is in none"),
        )
        .hint(format!("run `tiro init --client {word}` in a project, or name one with `--project`"))
    }
}

/// Returns the arguments of the server, which works on `project` if one is given.
fn arguments(project: Option<&str>) -> Vec<String> {
    let project = project.into_iter().flat_map(|project| ["--project", project]);
    SERVE.into_iter().chain(project).map(str::to_owned).collect()
}
