//! One exchange with the server, from the greeting to the last page.

use std::time::{Duration, Instant};

use super::connection::{Connection, Failing, Ground, Place, Progress};
use super::receive::{Got, Receiver};
use super::send::{Sender, Sent};
use crate::caller::WritingCaller;
use crate::engine::Engine;
use crate::project::{OpenProject, WritableProject};
use tiro_base::error::{Error, Kind as ErrorKind, Result, quoted};
use tiro_base::memory::{Kind, Millis};
use tiro_sync::Trouble;
use tiro_sync::greeting::{Greeting, Project};
use tiro_sync::remote::Remote;
use tiro_sync::server::Server;

/// The lease that one process has while it exchanges.
const LEASE: &str = "sync";

/// How long the lease lasts, in milliseconds. If the process is killed, others wait for as long.
const LEASE_LASTS: Millis = 15_000;

/// The time after which the lease is renewed.
const RENEWAL: Duration = Duration::from_secs(4);

/// How far the clocks of both machines may be apart, in milliseconds: an hour. Arbitrary: which of two changes is the
/// later one is decided by these clocks.
pub(super) const MOST_APART: Millis = 60 * 60 * 1000;

/// The pause after the first failure, in milliseconds. It doubles with each further one.
const FIRST_PAUSE: Millis = 10_000;

/// The longest pause after a failure that may pass by itself, in milliseconds: a quarter of an hour.
const LONGEST_PAUSE: Millis = 15 * 60 * 1000;

/// The pause after a failure that somebody has to mend, such as a revoked key, in milliseconds: an hour.
const LASTING_PAUSE: Millis = 60 * 60 * 1000;

/// The result of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// The name of the project on the server.
    pub project: String,
    /// The address of the server.
    pub server: String,
    /// What was sent.
    pub sent: Sent,
    /// What was received.
    pub got: Got,
    /// Whether it began with the first change, because the connection is new, what is shared has changed, or the server is an
    /// older copy of itself.
    pub began_anew: bool,
    /// Whether nothing is sent, because the user may only read the project.
    pub shares_nothing: bool,
}

/// Returns the files of the connection of `project`. Nothing is read yet.
pub fn place(engine: &Engine, project: &OpenProject) -> Place {
    Place::of(&engine.config().data_dir, &project.scope.project)
}

/// Exchanges all changes with the server. If another process does so now, waits up to `patience` for it.
///
/// # Errors
///
/// [`NotFound`](ErrorKind::NotFound) if the project has no connection or is no longer shared, [`Busy`](ErrorKind::Busy)
/// if another process exchanges, [`Server`](ErrorKind::Server) if the server can't be reached or refuses. What was
/// exchanged before the error stays, and the next exchange continues there.
pub async fn run(engine: &Engine, caller: &WritingCaller, patience: Duration) -> Result<Synced> {
    let project = caller.begin_project(engine).await?;
    let place = place(engine, &project);
    let connection = place.connection()?.ok_or_else(|| {
        Error::not_found(format!("the project `{}` is connected with no server", quoted(&project.name)))
            .hint("`tiro connect URL` connects it")
    })?;
    let (scope, holder) = (&project.scope, engine.process());
    take_turn(engine, &project, patience).await?;
    let exchange = Exchange { engine, project: &project, place: &place, connection: &connection };
    let mut progress = place.progress(&connection);
    let result = tokio::select! {
        result = exchange.all(&mut progress) => result,
        error = exchange.renew() => Err(error),
    };
    let now = engine.now();
    match &result {
        Ok(synced) => {
            progress.complete_at = Some(now);
            progress.failing = None;
            progress.refused += synced.sent.refusals() as u64;
        }
        Err(error) => progress.failing = Some(failing(progress.failing.take(), error, now)),
    }
    let kept = place.keep(&progress);
    project.store.release(scope, LEASE, holder).await?;
    kept.and(result)
}

/// Takes the lease. Waits up to `patience` if another process has it.
async fn take_turn(engine: &Engine, project: &WritableProject, patience: Duration) -> Result<()> {
    /// The time between two tries.
    const PAUSE: Duration = Duration::from_millis(200);
    let until = Instant::now() + patience;
    while !project.store.lease(&project.scope, LEASE, engine.process(), LEASE_LASTS).await? {
        if Instant::now() >= until {
            return Err(Error::new(ErrorKind::Busy, "another process exchanges with the server now")
                .hint("it does the same work; `tiro connect` shows how far it is"));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Returns the failure `error` at the time `now`, after the failures of `before`.
fn failing(before: Option<Failing>, error: &Error, now: Millis) -> Failing {
    let before = before.unwrap_or_else(|| Failing { since: now, ..Failing::default() });
    let doubled = FIRST_PAUSE.saturating_mul(1 << before.count.min(20)).min(LONGEST_PAUSE);
    let asked = error.retry_after().map_or(0, |wait| wait.as_millis() as Millis);
    let is_passing = match error.root::<Trouble>() {
        Some(trouble) => trouble.passes(),
        None => !matches!(error.kind(), ErrorKind::BadInput | ErrorKind::NotFound),
    };
    let pause = if is_passing { doubled.max(asked) } else { LASTING_PAUSE };
    Failing {
        since: before.since,
        count: before.count.saturating_add(1),
        next: now.saturating_add(pause),
        is_passing,
        why: error.to_string(),
        hint: error.way_out().map(str::to_owned),
    }
}

/// What an exchange needs.
struct Exchange<'a> {
    engine: &'a Engine,
    project: &'a WritableProject,
    place: &'a Place,
    connection: &'a Connection,
}

impl Exchange<'_> {
    async fn all(&self, progress: &mut Progress) -> Result<Synced> {
        let connection = self.connection;
        let server = Server::read(&connection.server)?;
        let remote = Remote::new(&server, &self.place.key()?)?;
        let greeting = remote.greet().await.map_err(|trouble| trouble.error(&server))?;
        check(&greeting, connection, &server, self.engine.now())?;
        progress.can_wait = greeting.waits;
        let shared = greeting.projects.iter().find(|project| project.id == connection.project);
        let shared = shared.ok_or_else(|| Trouble::NotShared.error(&server))?;
        progress.stand_on(self.ground(&greeting, shared), env!("CARGO_PKG_VERSION"));
        let mut synced = Synced {
            project: shared.name.clone(),
            server: server.to_string(),
            shares_nothing: !shared.may_write && !connection.is_private,
            ..Synced::default()
        };
        let (project, place) = (self.project, self.place);
        let sender = Sender { project, remote: &remote, connection, place, kinds: kinds(connection, shared) };
        sender.send(progress, &mut synced.sent).await?;
        let shared = shared_kinds(shared);
        let receiver = Receiver { engine: self.engine, project, remote: &remote, connection, place, shared };
        let reached = progress.sent;
        receiver.receive(progress, &mut synced.got).await?;
        if progress.sent < reached {
            sender.send(progress, &mut synced.sent).await?;
        }
        synced.began_anew = progress.has_begun_anew;
        Ok(synced)
    }

    /// Renews the lease until that fails, and returns why. It fails if the machine slept, and another process has taken
    /// the lease meanwhile.
    async fn renew(&self) -> Error {
        loop {
            tokio::time::sleep(RENEWAL).await;
            if let Err(error) = take_turn(self.engine, self.project, Duration::ZERO).await {
                return error;
            }
        }
    }

    /// Returns what the progress depends on.
    fn ground(&self, greeting: &Greeting, shared: &Project) -> Ground {
        let own = blake3::hash(self.project.store.identity().as_bytes()).to_hex().to_string();
        let mut kinds = shared.kinds.clone();
        kinds.sort();
        let server = greeting.server.clone();
        Ground { server, own, kinds, may_write: shared.may_write, puzzled: None }
    }
}

/// Returns the kinds of memories that are sent.
fn kinds(connection: &Connection, shared: &Project) -> Vec<Kind> {
    match (connection.is_private, shared.may_write) {
        (true, _) => Kind::ALL.to_vec(),
        (false, true) => shared_kinds(shared),
        (false, false) => Vec::new(),
    }
}

/// Returns the kinds of memories that are shared. A kind that this version doesn't know isn't stored here.
fn shared_kinds(shared: &Project) -> Vec<Kind> {
    shared.kinds.iter().filter_map(|kind| Kind::parse(kind)).collect()
}

/// Checks that the server knows the user by the same name, and that the clocks agree.
fn check(greeting: &Greeting, connection: &Connection, server: &Server, now: Millis) -> Result<()> {
    if greeting.user != connection.user {
        let (new, old) = (quoted(&greeting.user), quoted(&connection.user));
        return Err(Error::bad_input(format!(
            "the key at `{server}` is now that of `{new}`, not of `{old}`"
        ))
        .hint("run `tiro connect` again"));
    }
    clocks(greeting, server, now)
}

/// Checks that the clocks of both machines agree.
pub(super) fn clocks(greeting: &Greeting, server: &Server, now: Millis) -> Result<()> {
    let apart = now.saturating_sub(greeting.now);
    if apart.saturating_abs() <= MOST_APART {
        return Ok(());
    }
    let hours = apart.saturating_abs().saturating_add(MOST_APART / 2) / MOST_APART;
    let time = if hours < 48 { format!("{hours} h") } else { format!("{} days", hours / 24) };
    let which = if apart > 0 { "ahead of" } else { "behind" };
    Err(Error::bad_input(format!("the clock of this machine is {time} {which} that of `{server}`"))
        .hint("set the clock that is wrong; which change is the later one is decided by these clocks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(now: Millis) -> Greeting {
        Greeting {
            tiro: "0.1.0".into(),
            format: 1,
            oldest_format: 1,
            server: "s".into(),
            user: "ana".into(),
            now,
            waits: true,
            projects: Vec::new(),
        }
    }

    #[test]
    fn clocks_that_disagree_are_noticed_before_anything_is_sent() {
        const YEAR: Millis = 365 * 24 * MOST_APART;
        let server = Server::read("https://memory.test").unwrap();
        let tried = |now| clocks(&greeting(57 * YEAR), &server, now).map_err(|error| error.to_string());
        assert_eq!(tried(57 * YEAR + MOST_APART), Ok(()));
        assert_eq!(tried(57 * YEAR - MOST_APART), Ok(()));
        let ahead = tried(130 * YEAR).unwrap_err();
        assert!(ahead.contains("26645 days ahead of"), "{ahead}");
        assert!(tried(57 * YEAR - 3 * MOST_APART + 9).unwrap_err().contains("3 h behind"));
        assert!(tried(0).unwrap_err().contains("behind") && tried(i64::MAX).unwrap_err().contains("ahead"));
    }

    #[test]
    fn another_users_key_is_not_used_under_the_old_name() {
        let server = Server::read("https://memory.test").unwrap();
        let connection = Connection::new("https://memory.test".into(), "ben".into(), "d".into(), 0);
        let error = check(&greeting(5), &connection, &server, 5).unwrap_err();
        assert!(error.to_string().contains("`ana`, not of `ben`"), "{error}");
    }

    #[test]
    fn failures_are_repeated_ever_more_seldom() {
        let server = Server::read("https://memory.test").unwrap();
        let offline = || Trouble::Offline("the connection was refused").error(&server);
        let mut state = None;
        let mut pauses = Vec::new();
        for _ in 0..30 {
            let next = failing(state.take(), &offline(), 1_000);
            pauses.push(next.next - 1_000);
            state = Some(next);
        }
        assert!(pauses[..6].windows(2).all(|pair| pair[1] == 2 * pair[0]), "{pauses:?}");
        assert_eq!((pauses[0], *pauses.last().unwrap()), (FIRST_PAUSE, LONGEST_PAUSE));
        let state = state.unwrap();
        assert_eq!((state.since, state.count), (1_000, 30));
        assert!(state.why.contains("refused") && state.hint.is_some() && state.is_passing);
        let asked = Trouble::Busy(Some(Duration::from_secs(3_000))).error(&server);
        assert_eq!(failing(None, &asked, 0).next, 3_000_000);
        assert_eq!(failing(None, &Trouble::NotShared.error(&server), 0).next, LASTING_PAUSE);
        let revoked = failing(None, &Trouble::KeyRefused.error(&server), 0);
        assert_eq!((revoked.next, revoked.is_passing), (LASTING_PAUSE, false));
    }
}
