//! What `tiro doctor` says of one thing that it checked.

use serde::Serialize;

use crate::error::Error;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub what: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub found: String,
    /// The command or the step that mends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

/// Returns the finding that looking failed.
pub fn failed(what: &'static str, error: &Error) -> Finding {
    Finding { what, ok: false, found: error.to_string(), mend: error.way_out().map(str::to_owned) }
}
