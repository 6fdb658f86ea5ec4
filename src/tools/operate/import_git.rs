//! Imports the commits of the project's repository.

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Result;
use crate::humanize::{self, counted};
use crate::ingest::commits;
use crate::tools::common;

pub use crate::ingest::commits::{Args, Imported as Output};

/// Stores every commit that the store doesn't have; calls `progress` with the commits done and their total.
///
/// Can be interrupted and repeated. Errors with [`Kind::Git`](crate::error::Kind::Git) if the project is not a
/// repository.
pub async fn run(
    engine: &Engine,
    caller: &Caller,
    args: Args,
    progress: impl FnMut(usize, usize) + Send,
) -> Result<Output> {
    commits::import(engine, caller, args, progress).await
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let mut text = format!("Imported {}", counted(self.imported, "commit", "commits"));
        if self.already_stored > 0 {
            text += &format!(", {} stored before", counted(self.already_stored, "was", "were"));
        }
        if self.forgotten > 0 {
            let one = "was forgotten before and stays forgotten";
            let several = "were forgotten before and stay forgotten";
            text += &format!(", {}", counted(self.forgotten, one, several));
        }
        text.push('.');
        if self.ignored > 0 {
            let one = "commit was left out: it changes";
            let several = "commits were left out: they change";
            text += &format!(
                "\n{} nothing but files that `ignore.paths` names.",
                counted(self.ignored, one, several)
            );
        }
        if !self.unreadable.is_empty() {
            text += &format!(
                "\n{} can't be read: {}.",
                counted(self.unreadable.len(), "commit", "commits"),
                humanize::some(&self.unreadable)
            );
        }
        if !self.flags.is_empty() {
            let flags: Vec<String> =
                self.flags.iter().map(|each| format!("{} {}", each.count, each.rule)).collect();
            text += &format!("\nIncomplete or special: {}.", flags.join(", "));
        }
        if let Some(summaries) = &self.summaries {
            text += &format!("\n{}", summaries.text());
        }
        text + &common::footnotes(&self.redactions, self.pending, &self.notices)
    }
}
