//! Checks the connection with a team's server, without asking the server.

use super::{Finding, failed};
use tiro_base::error::quoted;
use tiro_base::times;
use tiro_host::engine::Engine;
use tiro_host::exchange::connect::connected;
use tiro_host::exchange::connection::Failing;
use tiro_host::project::OpenProject;

/// The name of the check.
const WHAT: &str = "server";

/// Returns how the connection is doing; `None` if the project has none.
pub(super) fn check(engine: &Engine, open: &OpenProject) -> Option<Finding> {
    let connected = match connected(engine, open) {
        Ok(connected) => connected?,
        Err(error) => return Some(failed(WHAT, &error)),
    };
    let connection = connected.connection;
    let name = format!("{} as `{}`", connection.server, quoted(&connection.user));
    let finding = |ok, found, mend| Some(Finding { what: WHAT, ok, found, mend });
    match (connected.progress.failing, connected.progress.complete_at) {
        // Without a network everything works, so it is no fault.
        (Some(Failing { since, why, hint, is_passing, .. }), _) => {
            finding(is_passing, format!("{name}; no exchange since {}: {why}", times::minute(since)), hint)
        }
        (None, Some(time)) => finding(true, format!("{name}; last exchange {}", times::minute(time)), None),
        (None, None) => {
            finding(true, format!("{name}; nothing exchanged yet"), Some("`tiro sync`".to_owned()))
        }
    }
}
