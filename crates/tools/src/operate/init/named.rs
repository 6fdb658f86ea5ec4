//! Connects the clients that the user names, of which Tiro reads no transcripts: `tiro init --client NAME`.
//!
//! Only these clients are set up. Which projects are captured, hooks and the import of the history stay as they are.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use super::{record, text};
use tiro_base::envelope;
use tiro_base::error::{Kind, Result};
use tiro_capture::clients::mcp::{self, Here, McpClient, Pasted, Planned};
use tiro_capture::clients::{self, Applied, Client, Finding, by_hand};
use tiro_capture::sources::known_clients;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;

/// The changes that connect the named clients.
#[derive(Debug)]
pub struct Prepared {
    clients: Vec<McpClient>,
    planned: Planned,
    /// Servers of Tiro that were configured by hand, in addition to the ones that `tiro init` writes.
    additional: Vec<Finding>,
}

/// The answer of `tiro init --client`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The named clients.
    pub clients: Vec<Client>,
    /// The files that were written.
    pub written: Vec<PathBuf>,
    /// The files that were not changed, each with the reason and the remedy.
    pub findings: Vec<Finding>,
    /// The texts that the user must paste.
    pub paste: Vec<Pasted>,
    /// What to do next.
    pub next: Vec<String>,
    /// Whether a client could not be connected.
    #[serde(skip)]
    pub is_refused: bool,
}

/// Returns the changes that would connect `clients`. Changes nothing and does not register the project.
///
/// # Errors
///
/// The errors of [`mcp::plan`].
pub async fn prepare(engine: &Engine, caller: &Caller, clients: &[McpClient]) -> Result<Prepared> {
    let places = known_clients(engine.config().clients.as_ref())?;
    let project = match caller.look(engine).await {
        Ok(project) => Some(project),
        // Most clients can be connected outside a project, too.
        Err(error) if error.kind() == Kind::NoProject && caller.named().is_none() => None,
        Err(error) => return Err(error),
    };
    let root = project.as_ref().map(|project| project.root.as_path());
    let here = Here { root, is_named: caller.named().is_some() };
    let planned = mcp::plan(places, &engine.config().program()?, clients, &here)?;
    let additional = by_hand::look(places, root, Some(&planned.plan));
    let is_named = |finding: &Finding| clients.iter().any(|client| finding.client == Client::Mcp(*client));
    let additional = additional.into_iter().filter(is_named).collect();
    // A client that is named twice is connected once.
    let clients = clients.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    Ok(Prepared { clients, planned, additional })
}

/// Writes the prepared changes, and records the previous content of each file.
///
/// # Errors
///
/// The errors of [`clients::apply`].
pub fn apply(engine: &Engine, prepared: &Prepared) -> Result<Output> {
    let Prepared { clients, planned, additional } = prepared;
    let Applied { written, mut findings } = clients::apply(&planned.plan.changes, &record(engine))?;
    findings.extend(planned.plan.findings.iter().cloned());
    let is_failed = |client: &McpClient| findings.iter().any(|each| each.client == Client::Mcp(*client));
    let next = clients.iter().filter(|client| !is_failed(client)).map(|client| client.next().to_owned());
    Ok(Output {
        is_refused: !findings.is_empty(),
        next: next.collect(),
        clients: clients.iter().copied().map(Client::Mcp).collect(),
        written,
        findings: findings.iter().chain(additional).cloned().collect(),
        paste: planned.pasted.clone(),
    })
}

impl Prepared {
    /// Returns whether a file would change. In this case, the user has to confirm it.
    pub fn is_new(&self) -> bool {
        !self.planned.plan.changes.is_empty()
    }

    /// Returns the changes that would be made, as text.
    pub fn text(&self) -> String {
        let additional = self.additional.iter().map(text::additional);
        self.planned.plan.text() + &additional.collect::<String>()
    }

    /// Returns the texts that the user must paste.
    pub fn pasted(&self) -> &[Pasted] {
        &self.planned.pasted
    }
}

impl Output {
    /// Returns the answer as text, without the texts to paste. It is empty if no client has a file.
    pub fn text(&self) -> String {
        if self.clients.len() == self.paste.len() {
            return String::new();
        }
        let unchanged = if self.is_refused { "Nothing was changed." } else { text::COMPLETE };
        text::outcome(&self.written, &self.findings, unchanged)
    }
}

/// Returns the line that says where to paste a text.
pub fn heading(pasted: &Pasted) -> String {
    format!("{}: paste this into {}:\n", pasted.client.name(), envelope::one_line(&pasted.place))
}
