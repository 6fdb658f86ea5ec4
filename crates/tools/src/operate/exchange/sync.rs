//! Exchanges memories with the server that the project is connected with.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use tiro_base::envelope;
use tiro_base::error::{Result, quoted};
use tiro_base::humanize::counted;
use tiro_base::memory::MemoryId;
use tiro_base::scope::ProjectId;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::exchange::connection;
use tiro_host::exchange::run::{self, Synced};

/// The most memories that are named in the text of the answer.
const MOST_NAMED: usize = 5;

/// How long the command waits if another process exchanges now.
const PATIENCE: Duration = Duration::from_secs(20);

/// The answer of `tiro sync`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The address of the server.
    pub server: String,
    /// The name of the project on the server.
    pub project: String,
    /// What was sent.
    pub sent: Counts,
    /// What was received.
    pub received: Counts,
    /// How many of our changes the server refused, by the reason.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, usize>,
    /// How many memories are too long to be sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub too_long: usize,
    /// How many changes were left out because a later version of Tiro made them.
    #[serde(skip_serializing_if = "is_zero")]
    pub of_later_versions: usize,
    /// How many changes were left out because they are malformed.
    #[serde(skip_serializing_if = "is_zero")]
    pub malformed: usize,
    /// Whether the user may only read the project, so that nothing was sent.
    pub only_reads: bool,
}

/// How many memories of one direction are new, changed or in conflict.
#[derive(Debug, Default, Serialize)]
pub struct Counts {
    /// Memories that are new on the other side.
    pub added: usize,
    /// Memories that were marked, forgotten or restored there.
    pub changed: usize,
    /// The ids of memories with another text there, on the way. A commit has this id on every machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Exchanges all changes now.
///
/// Errors as [`run::run`] does.
pub async fn run(engine: &Engine, caller: &WritingCaller) -> Result<Output> {
    let Synced { project, server, sent, got, shares_nothing, .. } =
        run::run(engine, caller, PATIENCE).await?;
    Ok(Output {
        server,
        project,
        sent: Counts { added: sent.added, changed: sent.changed, conflicts: names(&sent.conflicts) },
        received: Counts { added: got.added, changed: got.changed, conflicts: names(&got.conflicts) },
        refused: sent.refused,
        too_long: sent.too_long,
        of_later_versions: got.later,
        malformed: got.malformed,
        only_reads: shares_nothing,
    })
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let way = |verb: &str, counts: &Counts| {
            let Counts { added, changed, .. } = *counts;
            match (added, changed) {
                (0, 0) => format!("nothing new was {verb}"),
                (_, 0) => format!("{verb}: {}", counted(added, "new memory", "new memories")),
                (0, _) => format!("{verb}: {}", counted(changed, "changed memory", "changed memories")),
                (_, _) => {
                    format!("{verb}: {}, {changed} changed", counted(added, "new memory", "new memories"))
                }
            }
        };
        let sent =
            if self.only_reads { "you may only read there".to_owned() } else { way("sent", &self.sent) };
        let received = way("received", &self.received);
        let mut text = format!("With `{}` at {}: {sent}; {received}.", quoted(&self.project), self.server);
        let mut note = |count: usize, what: String| {
            if count > 0 {
                text += &format!("\n{what}");
            }
        };
        for (why, count) in &self.refused {
            note(*count, format!("The server refused {}: {}.", changes(*count), quoted(why)));
        }
        let apart: Vec<&str> =
            self.sent.conflicts.iter().chain(&self.received.conflicts).map(String::as_str).collect();
        let others = apart.len().saturating_sub(MOST_NAMED);
        let others = if others > 0 { format!(", and {others} more") } else { String::new() };
        let named = apart[..apart.len().min(MOST_NAMED)].join(", ");
        let what = format!("{} another text on the other side: {named}{others}.", have(apart.len()));
        note(
            apart.len(),
            format!("{what} Each side keeps its own; only who sent the other text can forget it."),
        );
        note(self.too_long, format!("{} too long to be sent.", are(self.too_long)));
        note(
            self.of_later_versions,
            format!("{} of a later version of Tiro: upgrade to get them.", are(self.of_later_versions)),
        );
        note(self.malformed, format!("{} malformed, and left out.", are(self.malformed)));
        text
    }
}

/// The answer of `tiro sync --all`.
#[derive(Debug, Serialize)]
pub struct All {
    /// The connected projects, by name.
    pub projects: Vec<OfProject>,
    /// How many of them failed.
    pub failed: usize,
}

/// What became of one project.
#[derive(Debug, Serialize)]
pub struct OfProject {
    /// The name of the project on this machine, or its id if it is not registered any more.
    pub name: String,
    /// What was exchanged; `None` if that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchanged: Option<Output>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Exchanges all changes of all connected projects of the caller's machine, one after the other. If one fails, the others
/// follow nevertheless.
///
/// Errors if the connections can't be listed.
pub async fn all(engine: &Engine, caller: &WritingCaller) -> Result<All> {
    let connected = connection::projects(&engine.config().data_dir)?;
    let known =
        if connected.is_empty() { Vec::new() } else { engine.installation().await?.registry.all().await? };
    let name_of = |id: ProjectId| {
        let row = known.iter().find(|row| row.id == id);
        (row.map_or(id.as_str().to_owned(), |row| envelope::escape(&row.name).into_owned()), id)
    };
    let mut named: Vec<(String, ProjectId)> = connected.into_iter().map(name_of).collect();
    named.sort();
    let mut all = All { projects: Vec::with_capacity(named.len()), failed: 0 };
    for (name, id) in named {
        let (exchanged, error) = match run(engine, &caller.in_registered(&id)).await {
            Ok(output) => (Some(output), None),
            Err(error) => (None, Some(error.with_hint())),
        };
        all.failed += usize::from(error.is_some());
        all.projects.push(OfProject { name, exchanged, error });
    }
    Ok(all)
}

impl All {
    /// Returns the answer as text: a line for each project. More lines say what did not happen.
    pub fn text(&self) -> String {
        if self.projects.is_empty() {
            return "No project of this machine is connected with a server. `tiro connect URL` connects one."
                .to_owned();
        }
        let line = |project: &OfProject| {
            let what = project.exchanged.as_ref().map(Output::text).or_else(|| project.error.clone());
            format!("{}: {}", project.name, what.unwrap_or_default().replace('\n', "\n  "))
        };
        self.projects.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

fn names(ids: &[MemoryId]) -> Vec<String> {
    ids.iter().map(MemoryId::to_string).collect()
}

fn changes(count: usize) -> String {
    counted(count, "change", "changes")
}

fn have(count: usize) -> String {
    let verb = if count == 1 { "has" } else { "have" };
    format!("{} {verb}", counted(count, "memory", "memories"))
}

fn are(count: usize) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(count, "memory", "memories"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output() -> Output {
        Output {
            server: "https://memory.test".into(),
            project: "web".into(),
            sent: Counts::default(),
            received: Counts::default(),
            refused: BTreeMap::new(),
            too_long: 0,
            of_later_versions: 0,
            malformed: 0,
            only_reads: false,
        }
    }

    #[test]
    fn the_answer_says_what_happened_in_a_line_and_what_did_not_in_others() {
        assert_eq!(
            output().text(),
            "With `web` at https://memory.test: nothing new was sent; nothing new was received."
        );
        let some = Output {
            sent: Counts { added: 2, changed: 1, conflicts: Vec::new() },
            received: Counts { added: 0, changed: 1, conflicts: vec!["m0000000000001".into()] },
            refused: BTreeMap::from([("its time is in the future".to_owned(), 2)]),
            too_long: 1,
            of_later_versions: 2,
            malformed: 1,
            ..output()
        };
        assert_eq!(
            some.text(),
            "With `web` at https://memory.test: sent: 2 new memories, 1 changed; received: 1 changed memory.\n\
             The server refused 2 changes: its time is in the future.\n\
             1 memory has another text on the other side: m0000000000001. Each side keeps its own; only who sent the \
             other text can forget it.\n\
             1 memory is too long to be sent.\n\
             2 memories are of a later version of Tiro: upgrade to get them.\n\
             1 memory is malformed, and left out."
        );
        assert!(Output { only_reads: true, ..output() }.text().contains("only read"));
    }
}
