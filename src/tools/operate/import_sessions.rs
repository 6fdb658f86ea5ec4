//! Imports the sessions that a client keeps as transcripts.

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Result;
use crate::humanize::{self, counted};
use crate::ingest::sessions;
use crate::tools::common;

pub use crate::ingest::sessions::{Args, Imported as Output};

/// Stores the new entries of the project's transcripts. Calls `progress` with how many bytes are read and how many
/// there are.
///
/// The import can be interrupted and repeated: an entry has the same id each time.
pub async fn run(
    engine: &Engine,
    caller: &Caller,
    args: Args,
    progress: impl FnMut(u64, u64) + Send,
) -> Result<Output> {
    sessions::import(engine, caller, args, progress).await
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let mut text = format!(
            "Imported {} from {} ({} new bytes)",
            counted(self.imported, "entry", "entries"),
            counted(self.grown, "transcript", "transcripts"),
            self.bytes
        );
        for (count, what) in [
            (self.already_stored, "stored before"),
            (self.repeated, "repeats of an earlier one, only counted"),
            (self.forgotten, "forgotten before and not stored again"),
            (self.left_out, "left out"),
        ] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        text.push('.');
        if self.headless > 0 {
            let left_out = counted(self.headless, "entry is", "entries are");
            text += &format!("\n{left_out} left out because a script ran the session (`ignore.headless`).");
        }
        if self.commits_linked > 0 {
            text += &format!("\n{} linked to sessions.", counted(self.commits_linked, "commit", "commits"));
        }
        if self.private > 0 {
            text += &format!("\n{} left out.", counted(self.private, "private passage", "private passages"));
        }
        if !self.unknown.is_empty() || self.unreadable > 0 {
            let kinds: Vec<String> =
                self.unknown.iter().map(|each| format!("{} {}", each.count, each.rule)).collect();
            text += &format!(
                "\nSkipped lines: {} unreadable; unknown types: {}.",
                self.unreadable,
                match kinds.is_empty() {
                    true => "none".to_owned(),
                    false => kinds.join(", "),
                }
            );
        }
        if let Some(account) = &self.account {
            text += &format!("\n{}.", account.text());
        }
        if self.prompts.prompts > 0 {
            text += &format!(
                "\nOf {} whose transcripts are deleted, {} in `history.jsonl`.",
                counted(self.prompts.sessions, "session", "sessions"),
                counted(self.prompts.prompts, "prompt is left", "prompts are left"),
            );
        }
        for (count, how) in [
            (self.replaced, "with replaced characters"),
            (self.shortened, "in part, because of long texts or a missing end"),
        ] {
            if count > 0 {
                text += &format!("\n{} read {how}.", counted(count, "line", "lines"));
            }
        }
        if !self.failed.is_empty() {
            text += &format!("\nUnreadable: {}.", humanize::some(&self.failed));
        }
        if self.bytes_left > 0 {
            text += &format!("\n{} bytes are left for the next import.", self.bytes_left);
        }
        text + &common::footnotes(&self.redactions, self.pending, &self.notices)
    }
}
