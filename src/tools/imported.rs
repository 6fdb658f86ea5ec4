//! What an import of sessions answers.

use serde::Serialize;

use super::common::{self, counted};

/// What `tiro import claude-code|codex|gemini` answers.
#[derive(Debug, Default, Serialize)]
pub struct Output {
    /// Transcripts read.
    pub transcripts: usize,
    /// Transcripts that grew since they were read last.
    pub grown: usize,
    /// Entries stored by this call.
    pub imported: usize,
    /// Entries that were stored before.
    pub already_stored: usize,
    /// Outputs so like an earlier one that only their number is kept.
    pub repeated: usize,
    /// Entries that were forgotten before and stay forgotten.
    pub forgotten: usize,
    /// Entries left out: beyond what is kept of one session, said while capture was paused, or to be ignored.
    pub left_out: usize,
    /// Those of them that are beyond what is kept of one session or one entry.
    pub too_much: usize,
    /// Private passages taken out.
    pub private: usize,
    /// Lines of unknown types, by type.
    pub unknown: Vec<common::Redaction>,
    /// Lines that can't be read: no JSON, or too long.
    pub unreadable: usize,
    /// Transcripts that can't be read, with the reason.
    pub failed: Vec<String>,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes that are left for the next time.
    pub bytes_left: u64,
    /// Commits that have a session behind them now.
    pub commits_linked: usize,
    /// Secrets replaced, by rule.
    pub redactions: Vec<common::Redaction>,
    /// Pieces not embedded yet.
    pub pending: usize,
    /// What else there is to know.
    pub notices: Vec<String>,
}

impl Output {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        let mut text = format!(
            "Imported {} from {} ({} new bytes)",
            counted(self.imported, "entry", "entries"),
            counted(self.grown, "transcript", "transcripts"),
            self.bytes
        );
        for (count, what) in [
            (self.already_stored, "stored before"),
            (self.repeated, "like an earlier one and counted there"),
            (self.forgotten, "forgotten before and stay so"),
            (self.left_out, "left out"),
        ] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        text.push('.');
        if self.commits_linked > 0 {
            text += &format!("\n{} linked to sessions.", counted(self.commits_linked, "commit", "commits"));
        }
        if self.private > 0 {
            text += &format!("\n{} taken out.", counted(self.private, "private passage", "private passages"));
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
        if !self.failed.is_empty() {
            text += &format!("\nCan't be read: {}.", common::some(&self.failed));
        }
        if self.bytes_left > 0 {
            text += &format!("\n{} bytes are left for the next time.", self.bytes_left);
        }
        text + &common::footnotes(&self.redactions, self.pending, &self.notices)
    }
}
