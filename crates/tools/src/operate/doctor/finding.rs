//! The result of one check of `tiro doctor`.

use serde::Serialize;

use tiro_base::error::Error;

/// The result of one check.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The part that was checked.
    pub what: &'static str,
    /// Whether the check found no fault.
    pub ok: bool,
    /// The state that was found.
    pub found: String,
    /// The command or step that repairs or improves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

/// Returns the finding that the check of `what` failed with `error`.
pub fn failed(what: &'static str, error: &Error) -> Finding {
    Finding { what, ok: false, found: error.to_string(), mend: error.way_out().map(str::to_owned) }
}
