//! Waits until the server that the project is connected with has something new, so that it arrives within seconds.
//!
//! The server answers when it has something, or after a while. A failure is told nowhere: the exchange of every minute
//! notices by itself what is wrong with the server. One process of the machine waits for each project.

use std::time::{Duration, Instant};

use crate::caller::WritingCaller;
use crate::engine::{Duty, Engine, Working};
use crate::exchange::connection::{Connection, Place, Progress};
use crate::exchange::run::place;
use tiro_base::error::Result;
use tiro_sync::remote::Remote;
use tiro_sync::server::Server;

/// The pause before a wait, so that an exchange that leads to another one leads to no flood of them.
const BEFORE: Duration = Duration::from_secs(1);

/// The time between two looks at whether there is a server to wait for, and the pause after a failure. The pause doubles
/// with each further failure.
const LOOK: Duration = Duration::from_secs(5);

/// The longest pause after failures: as long as the time between two exchanges.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A server that has nothing new answers no sooner. If it does, it is about to end, or doesn't let anybody wait.
const SHORTEST: Duration = Duration::from_secs(10);

/// What became of a wait.
enum Outcome {
    /// The server has changes after this number.
    Changed(i64),
    /// The server had nothing for a while.
    Nothing,
    /// There is no server to wait for, or another process waits.
    Left,
    /// The server gives no answer, or answers at once that it has nothing.
    Failed,
}

/// Returns once the server has something that the machine doesn't have: the number after which the changes come. `useless`
/// is the number at which the last exchange brought nothing although the server had promised something.
pub(super) async fn news(engine: &Engine, caller: &WritingCaller, useless: Option<i64>) -> i64 {
    let (mut pause, mut failures) = (BEFORE, 0_u32);
    loop {
        tokio::time::sleep(pause).await;
        let outcome = wait(engine, caller, useless).await;
        failures = if matches!(outcome, Outcome::Failed) { failures + 1 } else { 0 };
        pause = match outcome {
            Outcome::Changed(after) => return after,
            Outcome::Nothing => BEFORE,
            Outcome::Left => LOOK,
            Outcome::Failed => (LOOK * 2_u32.pow(failures.min(6) - 1)).min(LONGEST_PAUSE),
        };
    }
}

/// Waits once.
async fn wait(engine: &Engine, caller: &WritingCaller, useless: Option<i64>) -> Outcome {
    let Some((place, connection, _turn)) = begin(engine, caller) else { return Outcome::Left };
    let progress = place.progress(&connection);
    let after = progress.received;
    // After a failure, the exchange decides when the server is asked again.
    if !progress.can_wait || progress.failing.is_some() || useless == Some(after) {
        return Outcome::Left;
    }
    let Some(_waiting) = place.begin_waiting() else { return Outcome::Left };
    let began = Instant::now();
    match ask(&place, &connection, &progress).await {
        Ok(true) => Outcome::Changed(after),
        Ok(false) if began.elapsed() >= SHORTEST => Outcome::Nothing,
        Ok(false) => Outcome::Failed,
        Err(error) => {
            tracing::debug!(%error, "the server lets nobody wait now");
            Outcome::Failed
        }
    }
}

/// Returns the connection of the project if it is open and connected, and no other worker of this process waits. The
/// project may be closed meanwhile.
fn begin<'e>(engine: &'e Engine, caller: &WritingCaller) -> Option<(Place, Connection, Working<'e>)> {
    let project = caller.opened_project(engine)?;
    let place = place(engine, &project);
    let connection = place.connection().ok()??;
    let turn = engine.works_on(&project.scope.project, Duty::Waiting)?;
    Some((place, connection, turn))
}

/// Returns whether the server has something that isn't received yet, as soon as it has.
async fn ask(place: &Place, connection: &Connection, progress: &Progress) -> Result<bool> {
    let server = Server::read(&connection.server)?;
    let remote = Remote::waiting(&server, &place.key()?)?;
    let waited = remote.wait(progress.wanted(connection), progress.received).await;
    waited.map_err(|trouble| trouble.error(&server))
}
