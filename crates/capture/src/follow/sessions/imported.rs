//! The result of importing sessions.

use std::path::Path;

use serde::Serialize;

use super::accounting::Account;
use crate::clients::transcripts::End;
use crate::follow::reading::prompts::Prompts;
use crate::import::transcript::Counts;
use tiro_base::error::quoted;
use tiro_redact::{self, Redaction};
use tiro_store::{Outcome, Receipt};

/// The result of `tiro import CLIENT`.
#[derive(Debug, Default, Serialize)]
pub struct Imported {
    /// Transcripts read.
    pub transcripts: usize,
    /// Transcripts that grew since the last import.
    pub grown: usize,
    /// Entries stored by this call.
    pub imported: usize,
    /// Entries that were stored before.
    pub already_stored: usize,
    /// Tool calls that are nearly equal to an earlier call. Only their number is kept.
    pub repeated: usize,
    /// Entries that were forgotten before and stay forgotten.
    pub forgotten: usize,
    /// Entries that were left out because they exceed the limit of one session or entry, were made while capture was
    /// paused, or are ignored.
    pub left_out: usize,
    /// How many of the entries in `left_out` exceed the limit of one session or entry.
    pub too_much: usize,
    /// How many of the entries in `left_out` belong to sessions that a script ran, which the configuration leaves out.
    pub headless: usize,
    /// Private passages removed.
    pub private: usize,
    /// Lines of unknown types, by type.
    pub unknown: Vec<Redaction>,
    /// Lines that can't be read: invalid JSON, or too long.
    pub unreadable: usize,
    /// Lines that were read with some of their characters replaced.
    pub replaced: usize,
    /// Lines that are too long or unfinished, so that they were read without their longest texts or without their end.
    pub shortened: usize,
    /// Transcripts that can't be read, with the reason.
    pub failed: Vec<String>,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes left for the next import.
    pub bytes_left: u64,
    /// Commits that are now linked to at least one session.
    pub commits_linked: usize,
    /// Secrets replaced, by rule.
    pub redactions: Vec<Redaction>,
    /// Pieces of text that are not embedded yet.
    pub pending: usize,
    /// Prompts of sessions whose transcripts the client deleted.
    pub prompts: Prompts,
    /// The account of all transcripts of the client; absent if the user named the transcripts.
    pub account: Option<Account>,
    /// Further notices for the user.
    pub notices: Vec<String>,
}

impl Imported {
    /// Adds the counts of unreadable lines, of private passages and of unknown types.
    pub fn count_lines(&mut self, counts: &Counts) {
        self.unreadable += counts.unreadable + counts.cut;
        self.replaced += counts.replaced;
        self.shortened += counts.shortened;
        self.private += counts.private;
        for (kind, count) in &counts.unknown {
            tiro_redact::add(&mut self.unknown, kind, *count);
        }
    }

    /// Reports how the text of a compressed transcript ended, unless the whole text was read.
    pub fn count_end(&mut self, path: &Path, end: End) {
        let what = match end {
            End::Whole => return,
            End::Damaged => "damaged or not finished; what stands before that is imported",
            End::TooLarge => "too large when decompressed; its beginning is imported",
        };
        self.notices.push(format!("`{}` is {what}", quoted(path.display())));
    }

    /// Counts the results of storing the entries, and the secrets that were replaced in them, by rule.
    pub fn count_entries(&mut self, receipt: &Receipt, redactions: Vec<(String, usize)>) {
        self.imported += receipt.count(Outcome::Stored);
        self.already_stored += receipt.count(Outcome::AlreadyStored) + receipt.count(Outcome::Conflict);
        self.repeated += receipt.count(Outcome::Repeated);
        self.forgotten += receipt.count(Outcome::Forgotten);
        self.pending += receipt.pending;
        for (rule, count) in redactions {
            tiro_redact::add(&mut self.redactions, &rule, count);
        }
    }
}
