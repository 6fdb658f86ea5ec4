//! The offer of `tiro init` to keep transcripts longer than Claude Code does.

use super::{Prepared, record};
use tiro_base::error::Result;
use tiro_capture::clients::Applied;
use tiro_capture::clients::retention::{self, OFFERED, Retention, SETTING};
use tiro_capture::sources::known_clients;
use tiro_host::engine::Engine;

impl Prepared {
    /// Returns how long Claude Code keeps transcripts, if it deletes them so early that it is worth an offer.
    pub fn short_retention(&self) -> Option<&Retention> {
        self.retention.as_ref().filter(|retention| retention.is_short())
    }

    /// Returns what the user must know of the deletion of transcripts, as text; empty if there is nothing.
    pub(super) fn retention_text(&self) -> String {
        self.short_retention().map_or_else(String::new, |retention| {
            format!("{}. Tiro can set `{SETTING}` to {OFFERED} (ten years).\n", retention.text())
        })
    }
}

/// Returns how long Claude Code keeps transcripts; `None` if it is not installed.
pub fn retention(engine: &Engine) -> Option<Retention> {
    retention::of(engine.config().clients.as_ref()?)
}

/// Makes Claude Code keep transcripts for ten years, and records the former setting.
///
/// # Errors
///
/// If the record of the set-up can't be written.
pub fn keep_transcripts(engine: &Engine) -> Result<Applied> {
    retention::raise(known_clients(engine.config().clients.as_ref())?, &record(engine))
}
