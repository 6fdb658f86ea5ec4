//! The answers of `tiro init` as text.

use std::path::PathBuf;

use super::{Backfill, Held, Others, Output, Prepared};
use tiro_base::envelope;
use tiro_base::error::quoted;
use tiro_base::humanize::{counted, thousands};
use tiro_capture::clients::retention::{OFFERED, SETTING};
use tiro_capture::clients::{self, Client};
use tiro_capture::spool::capture::Scope;

/// Says that nothing had to be changed.
pub(super) const COMPLETE: &str = "Everything is set up; nothing was changed.";

impl Prepared {
    /// Returns the changes that would be made, as text.
    pub fn text(&self) -> String {
        let mut text = self.copies.text() + &self.plan.text();
        if self.plan.found.is_empty() {
            let names = Client::names();
            text += &format!("No client is installed ({names}), and this is not a repository.\n");
        }
        text += &self.captured();
        text.extend(self.additional.iter().map(additional));
        text += &self.backfill.text(self.project.as_deref());
        for key in &self.unused_keys {
            text += &format!(
                "{} is set but not used: `{}` makes an assistant of it.\n",
                key.variable,
                key.command()
            );
        }
        text += &self.retention_text();
        if !self.makes.is_empty() {
            text += &format!(
                "Nothing is stored yet: the first call that stores something creates {}.\n",
                self.makes.join(", ")
            );
        }
        text
    }

    /// Returns a text that says what the user must know about the deletion of transcripts. Returns an empty text if
    /// there is nothing to say.
    fn retention_text(&self) -> String {
        self.short_retention().map_or_else(String::new, |retention| {
            format!("{}. Tiro can set `{SETTING}` to {OFFERED} (ten years).\n", retention.text())
        })
    }

    /// Returns the next steps for the user.
    pub(super) fn next(&self) -> Vec<String> {
        let is_found = |client| self.plan.found.contains(&client);
        let names: Vec<&str> = self
            .plan
            .found
            .iter()
            .filter(|client| **client != Client::Git)
            .map(|client| client.name())
            .collect();
        let mut next = Vec::new();
        if !names.is_empty() {
            next.push(format!(
                "Start {} anew here, and ask it about the past: \"why is … as it is?\", \"where did we leave off?\"",
                names.join(" or ")
            ));
        }
        if is_found(Client::ClaudeCode) || is_found(Client::Gemini) {
            next.push(
                "Claude Code and Gemini CLI have two new commands: type /recall or /where-we-left-off."
                    .to_owned(),
            );
        }
        next.extend(self.plan.found.iter().filter_map(|client| client.next_step()).map(str::to_owned));
        if names.is_empty() {
            next.push("`tiro search WORDS` searches; `tiro serve` works with any MCP client.".to_owned());
        }
        next
    }

    /// Returns which projects are captured, as text.
    fn captured(&self) -> String {
        match (self.scope, self.project.as_deref()) {
            (Scope::Machine, _) => {
                "After setup, sessions and new commits are recorded for every project on this machine in \
                which one of these clients works (with `--scope project`, only for this one).\n"
                    .into()
            }
            (Scope::Project, Some(project)) => format!(
                "After setup, sessions and new commits are recorded for `{}` and for other projects where you chose \
                 `--scope project`. Elsewhere the agent can search and store; nothing is captured there.\n",
                quoted(project)
            ),
            (Scope::Project, None) => {
                "Only projects where you chose `--scope project` are recorded.\n".into()
            }
        }
    }
}

impl Backfill {
    /// Returns instructions for importing the history later, for a user who declines now.
    pub fn declined(&self) -> String {
        let mut commands = Vec::new();
        if self.commits > 0 {
            commands.push("`tiro import git`".to_owned());
        }
        commands.extend(self.sessions.iter().map(|held| format!("`tiro import {}`", held.client.word())));
        format!(
            "Not imported; {} can import it at any time. New sessions and commits are recorded from now on.\n",
            commands.join(", ")
        )
    }

    fn text(&self, project: Option<&str>) -> String {
        let Some(project) = project else {
            return "The working directory is not in a project: nothing to import.\n".into();
        };
        let mut parts = Vec::new();
        if self.commits > 0 {
            let word = if self.commits == 1 { "commit" } else { "commits" };
            parts.push(format!("{} {word}", thousands(self.commits)));
        }
        for Held { client, transcripts, bytes } in &self.sessions {
            let transcripts = counted(*transcripts, "transcript", "transcripts");
            parts.push(format!("{transcripts} of {} ({} bytes)", client.name(), thousands(*bytes)));
        }
        let accounts: String = self.accounts.iter().map(|account| account.text() + ".\n").collect();
        accounts
            + &match parts.is_empty() {
                true => format!("Nothing of `{}` is left to import.\n", quoted(project)),
                false => format!(
                    "{} of `{}` can be imported, in about {} s.\n",
                    parts.join(" and "),
                    quoted(project),
                    self.seconds
                ),
            }
    }
}

impl Others {
    /// Returns the hooks and projects as text; empty if there are none.
    pub fn text(&self) -> String {
        let list = |title: &str, paths: &[PathBuf]| match paths.is_empty() {
            true => String::new(),
            false => {
                let lines: Vec<String> =
                    paths.iter().map(|path| format!("  {}\n", quoted(path.display()))).collect();
                format!("{title}\n{}", lines.concat())
            }
        };
        list("Hooks of other repositories:", &self.hooks)
            + &list("Other projects that were chosen to be captured:", &self.projects)
    }
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        outcome(&self.written, &self.findings, COMPLETE)
    }
}

/// Returns a line about a server of Tiro that was configured by hand.
pub(super) fn additional(server: &clients::Finding) -> String {
    let clients::Finding { client, path, found, mend } = server;
    format!("In addition, {} in `{}`: {found}; {mend}\n", client.name(), quoted(path.display()))
}

/// Returns a text that says which files were written and which were not. It begins with `unchanged` if none was written.
pub(super) fn outcome(written: &[PathBuf], findings: &[clients::Finding], unchanged: &str) -> String {
    let mut text = match written.is_empty() {
        true => unchanged.to_owned(),
        false => {
            format!("Wrote {}. `tiro init --remove` undoes this.", counted(written.len(), "file", "files"))
        }
    };
    for finding in findings {
        text += &format!(
            "\nNot changed: {}: {}; {}",
            envelope::one_line(&finding.path.to_string_lossy()),
            finding.found,
            finding.mend
        );
    }
    text
}
