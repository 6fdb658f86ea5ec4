//! Connects the project with a team's server, and shows the connection.

use serde::Serialize;

use tiro_base::envelope;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::memory::Millis;
use tiro_base::times;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::exchange::connect::{self, Asked, Connected};
use tiro_host::exchange::connection::{Connection, Failing, Progress};

/// The answer of `tiro connect`.
#[derive(Debug, Serialize)]
pub struct State {
    /// The connection; `None` if there is none.
    pub connection: Option<Shown>,
    /// The project of this machine.
    pub project: String,
}

/// A connection, as it is shown.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// The address of the server.
    pub server: String,
    /// The user's name on the server.
    pub user: String,
    /// The name of the project on the server.
    pub project: String,
    /// Whether memories that are private on the server are exchanged, too.
    pub private: bool,
    /// The kinds of memories that are shared; empty until the server has been asked.
    pub kinds: Vec<String>,
    /// Whether the user may share memories; `None` until the server has been asked.
    pub may_write: Option<bool>,
    /// When the last exchange was complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sync: Option<String>,
    /// How many changes the server refused.
    pub refused: u64,
    /// What went wrong since then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
}

/// What went wrong since the last exchange.
#[derive(Debug, Serialize)]
pub struct Trouble {
    /// Since when.
    pub since: String,
    /// How often.
    pub failures: u32,
    /// What happened last.
    pub why: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// When the next try by itself is made.
    pub next: String,
}

/// The answer of `tiro connect --off`.
#[derive(Debug, Serialize)]
pub struct Disconnected {
    /// Whether there was a connection.
    pub removed: bool,
    /// The project of this machine.
    pub project: String,
}

/// Connects the caller's project. `key` is the key for the server.
///
/// Errors as [`connect::connect`] does.
pub async fn connect(engine: &Engine, caller: &WritingCaller, asked: Asked<'_>, key: &str) -> Result<State> {
    let connected = connect::connect(engine, caller, asked, key).await?;
    let project = caller.project(engine).await?.name.clone();
    Ok(State { connection: Some(shown(connected)), project })
}

/// Returns the caller's connection. Asks no server.
pub async fn state(engine: &Engine, caller: &WritingCaller) -> Result<State> {
    let project = caller.writable_project(engine).await?;
    let connected = connect::connected(engine, &project)?;
    Ok(State { connection: connected.map(shown), project: project.name.clone() })
}

/// Removes the caller's connection and its key.
pub async fn disconnect(engine: &Engine, caller: &WritingCaller) -> Result<Disconnected> {
    let project = caller.writable_project(engine).await?;
    let removed = connect::disconnect(engine, &project)?;
    Ok(Disconnected { removed, project: project.name.clone() })
}

/// Returns the error for a key that wasn't given.
pub fn no_key() -> Error {
    Error::bad_input("no key was given")
        .hint("set TIRO_KEY, or write the key to stdin; it is never an argument")
}

fn shown(connected: Connected) -> Shown {
    let Connected { connection, progress, shared } = connected;
    let Connection { server, user, name, is_private, .. } = connection;
    let Progress { ground, complete_at, failing, refused, .. } = progress;
    let is_asked = shared.is_some() || !ground.server.is_empty();
    let (kinds, may_write) = match shared {
        Some(shared) => (shared.kinds, shared.may_write),
        None => (ground.kinds, ground.may_write),
    };
    Shown {
        server,
        user,
        project: name,
        private: is_private,
        kinds,
        may_write: is_asked.then_some(may_write),
        last_sync: complete_at.map(times::minute),
        refused,
        trouble: failing.map(trouble),
    }
}

fn trouble(failing: Failing) -> Trouble {
    let Failing { since, count, next, why, hint, .. } = failing;
    let minute = |time: Millis| times::minute(time);
    Trouble { since: minute(since), failures: count, why, hint, next: minute(next) }
}

impl State {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let project = envelope::one_line(&self.project);
        let Some(shown) = &self.connection else {
            return format!(
                "The project `{project}` is connected with no server. `tiro connect URL` connects it."
            );
        };
        let Shown { server, user, project: name, private, kinds, may_write, last_sync, refused, trouble } =
            shown;
        let mut text =
            format!("`{project}` is connected with `{}` at {server}, as `{}`.", quoted(name), quoted(user));
        match (may_write, private) {
            (None, _) => {}
            (Some(false), false) => text += "\nYou may read there: nothing of yours is sent.",
            (Some(false), true) => {
                text += "\nYou may read there. What you save is sent for your other machines."
            }
            (Some(true), _) => {
                let kinds: Vec<_> = kinds.iter().map(quoted).collect();
                text += &format!("\nShared: {}.", kinds.join(", "));
                if *private {
                    text += " All other memories are sent for your other machines alone.";
                }
            }
        }
        match last_sync {
            None => {
                text += "\nNothing was exchanged yet. `tiro sync` does it now; a running server does it by itself."
            }
            Some(time) => text += &format!("\nLast exchange: {time}."),
        }
        if *refused > 0 {
            text += &format!("\nThe server refused {refused} changes; `tiro sync` says why when it happens.");
        }
        if let Some(Trouble { since, failures, why, hint, next }) = trouble {
            let times = if *failures == 1 { String::new() } else { format!(", {failures} times") };
            text += &format!("\nNo exchange since {since}{times}: {why}. Next try: {next}.");
            hint.iter().for_each(|hint| text += &format!("\n{hint}"));
        }
        text
    }
}

impl Disconnected {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let project = envelope::one_line(&self.project);
        match self.removed {
            true => format!("`{project}` is connected with no server now. What was exchanged stays here."),
            false => format!("`{project}` was connected with no server."),
        }
    }
}
