//! What an import of sessions did.

use serde::Serialize;

use crate::import::transcript::Counts;
use crate::redact::{self, Redaction};
use crate::remember::Remembered;
use crate::store::Outcome;

/// What `tiro import claude-code|codex|gemini` answers.
#[derive(Debug, Default, Serialize)]
pub struct Imported {
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
    pub unknown: Vec<Redaction>,
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
    pub redactions: Vec<Redaction>,
    /// Pieces not embedded yet.
    pub pending: usize,
    /// What else there is to know.
    pub notices: Vec<String>,
}

impl Imported {
    /// Adds what the lines of a transcript were, beside entries.
    pub(crate) fn count_lines(&mut self, counts: &Counts) {
        self.unreadable += counts.unreadable + counts.cut;
        self.private += counts.private;
        for (kind, count) in &counts.unknown {
            redact::add(&mut self.unknown, kind, *count);
        }
    }

    /// Adds what became of entries in the store.
    pub(crate) fn count_entries(&mut self, remembered: Remembered) {
        let receipt = &remembered.receipt;
        self.imported += receipt.count(Outcome::Stored);
        self.already_stored += receipt.count(Outcome::AlreadyStored) + receipt.count(Outcome::Conflict);
        self.repeated += receipt.count(Outcome::Repeated);
        self.forgotten += receipt.count(Outcome::Forgotten);
        self.pending += receipt.pending;
        for (rule, count) in remembered.redactions {
            redact::add(&mut self.redactions, &rule, count);
        }
    }
}
