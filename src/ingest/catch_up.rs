//! Follows transcripts and commits: reads the references that hooks left, and imports commits that are not stored yet.
//!
//! Tiro runs no background process, so a call catches up before it answers, for a bounded time. The idle server and the
//! next call follow the rest. Commits are followed where the user imported the history or had the project captured;
//! sessions are followed where hooks are installed.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::clients::{Client, transcripts};
use crate::engine::Engine;
use crate::error::{Error, Kind, Result};
use crate::git::Sha;
use crate::humanize::counted;
use crate::ingest::history::{Stored, Wanted, follow_from};
use crate::ingest::imported::Imported;
use crate::ingest::in_time::in_time;
use crate::ingest::link::{self, Place};
use crate::ingest::reading::Importer;
use crate::ingest::share::{self, FoundBy};
use crate::ingest::{commits, graph, pointer};
use crate::memory::Millis;
use crate::project;
use crate::project::OpenProject;
use crate::spool::{Spool, Taken};

/// How long a call reads transcripts before it answers.
const BEFORE_A_CALL: Duration = Duration::from_millis(600);

/// How long to wait for other writers before a call answers from what is stored.
const TURN: Duration = Duration::from_millis(250);

/// How long a call waits for git. Arbitrary: some twenty times what an ordinary commit takes on a slow machine.
const GIT_BEFORE_A_CALL: Duration = Duration::from_secs(2);

/// How long a call reads the graph of commits. The rest is read when a later call needs the graph.
const GRAPH_BEFORE_A_CALL: Duration = Duration::from_millis(200);

/// How long the idle server waits for git. Arbitrary: ten times what a million commits take.
const WHILE_IDLE: Duration = Duration::from_secs(120);

/// The notice of a call that git kept waiting too long.
const LATE: &str = "git took too long, so new commits may be missing: the idle server imports them, \
    or run `tiro import git`";

/// How long reading a transcript is tried again after an error, in milliseconds: a week.
const GIVEN_UP: Millis = 7 * 24 * 60 * 60 * 1000;

/// Commits that a call imports before it answers; about a quarter of a second.
const COMMITS_BEFORE_A_CALL: usize = 256;

/// How old commits may be, in seconds, that count as new in a project that is first seen: a day.
const FIRST_SEEN: i64 = 24 * 60 * 60;

/// The name of the import cursor that has the stamp of the references once all their commits are stored.
const HEADS: &str = "git heads";

/// What one round of catching up did.
#[derive(Debug, Default)]
pub struct Followed {
    /// Commits and session entries stored.
    pub imported: usize,
    /// What the following answer lacks, and why.
    pub notices: Vec<String>,
}

/// Catches up for a bounded time and returns notices: what the answer lacks, and each change of the store's files once.
///
/// An error becomes a notice, and the call answers from what is stored.
pub async fn before_a_call(engine: &Engine, caller: &Caller) -> Vec<String> {
    let mut notices = before(engine, caller).await;
    // Opening the store may add news. An operation that only reads reports it here, within its budget.
    let news = caller.take_news_for_reading(engine).map(|news| news.trim_end_matches('.').to_owned());
    notices.splice(0..0, news);
    notices
}

async fn before(engine: &Engine, caller: &Caller) -> Vec<String> {
    // Without a project, the call itself reports the error. A project that isn't stored yet and has no references has
    // nothing to follow.
    let Ok(Some(project)) = to_follow(engine, caller).await else {
        return match caller.project(engine).await {
            Ok(project) => project.trouble.iter().cloned().collect(),
            Err(_) => Vec::new(),
        };
    };
    let followed = follow(engine, caller, project, BEFORE_A_CALL, Some(COMMITS_BEFORE_A_CALL)).await;
    let notices = followed.map_or_else(
        |error| vec![format!("transcripts and commits were not imported: {error}")],
        |each| each.notices,
    );
    project.trouble.iter().cloned().chain(notices).collect()
}

/// Returns the project if it has something to follow: it is stored, or hooks left references. In the second case the
/// project is created.
pub async fn to_follow<'a>(engine: &Engine, caller: &'a Caller) -> Result<Option<&'a OpenProject>> {
    let project = caller.project(engine).await?;
    match project.is_blank && engine.spool(project).is_empty() {
        true => Ok(None),
        false => caller.begin_project(engine).await.map(Some),
    }
}

/// Catches up within `patience`. Imports the newest `commits` commits, or all with `None`.
pub async fn follow(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    patience: Duration,
    commits: Option<usize>,
) -> Result<Followed> {
    let began = Instant::now();
    let until = began + if commits.is_some() { GIT_BEFORE_A_CALL } else { WHILE_IDLE };
    let followed = Followed::default();
    let mut catch_up = CatchUp { engine, caller, project, began, patience, limit: commits, until, followed };
    catch_up.run().await?;
    Ok(catch_up.followed)
}

/// The state of one round of catching up.
struct CatchUp<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
    project: &'a OpenProject,
    began: Instant,
    /// How long transcripts are read in this round.
    patience: Duration,
    /// The highest number of commits to import, newest first; `None` imports all, which only the idle server does.
    limit: Option<usize>,
    /// When to stop waiting for git.
    until: Instant,
    followed: Followed,
}

/// The references (branches, `HEAD`) of the repository, as they are now.
struct Refs {
    /// A digest of the references; `None` without a repository.
    stamp: Option<String>,
    /// Whether they changed since they were followed last.
    moved: bool,
}

impl CatchUp<'_> {
    /// Follows commits, then sessions, then links them.
    async fn run(&mut self) -> Result<()> {
        let (engine, project) = (self.engine, self.project);
        let spool = engine.spool(project);
        // The stamp is taken before the commits are read, so the next call notices a commit that is made meanwhile.
        let Some(Refs { stamp, moved }) = self.refs().await? else {
            self.followed.notices.push(LATE.to_owned());
            return Ok(());
        };
        let is_due = self.is_idle() && link::is_due(project).await?;
        if !moved && spool.is_empty() && !is_due {
            return Ok(());
        }

        project.store.await_turn(&project.scope, TURN).await?;
        let (nudges, grown): (Vec<_>, Vec<_>) =
            spool.take().into_iter().partition(|each| each.reference.client == "git");
        if moved || !nudges.is_empty() {
            self.follow_commits(nudges, stamp).await?;
        }
        let place = Place::of(project);
        let mut importer = Importer::new(engine, self.caller, project, &place);
        self.follow_sessions(grown, &spool, &mut importer).await?;
        let Importer { output, span, .. } = importer;
        link::link_span(project, &place, &span, (!self.is_idle()).then_some(GIT_BEFORE_A_CALL)).await?;
        if moved {
            self.read_graph().await?;
        }
        self.report(&output);
        if self.followed.imported > 0 {
            engine.wrote();
        }
        pointer::point(engine, project).await
    }

    /// Whether the idle server runs this round, so that no call waits for it.
    fn is_idle(&self) -> bool {
        self.limit.is_none()
    }

    /// Returns the references of the repository; `None` if git takes too long.
    async fn refs(&self) -> Result<Option<Refs>> {
        let project = self.project;
        let Some(repository) = project.repository.clone() else {
            return Ok(Some(Refs { stamp: None, moved: false }));
        };
        let stamp = in_time(Some(self.until), move |_| repository.heads_stamp()).await;
        let Some(stamp) = stamp else { return Ok(None) };
        let stamp = project.redactor.redact(&stamp).text.into_owned();
        let mut moved = false;
        if !self.caller.has_seen_refs(&stamp) {
            // Another process may have followed them, or an earlier run of this server.
            let followed = project.store.import_cursor(&project.scope, HEADS).await?;
            moved = followed.as_ref() != Some(&stamp);
            if !moved {
                self.caller.saw_refs(stamp.clone());
            }
        }
        Ok(Some(Refs { stamp: Some(stamp), moved }))
    }

    /// Imports new commits and those that the references `nudges` name. Stores `stamp` if no commit is left.
    async fn follow_commits(&mut self, nudges: Vec<Taken>, stamp: Option<String>) -> Result<()> {
        let also =
            nudges.iter().filter_map(|nudge| nudge.reference.commit.as_deref()?.parse().ok()).collect();
        let is_whole = self.import_commits(also).await?;
        let is_left_out = |nudge: &Taken| !is_whole && nudge.reference.commit.is_some();
        nudges.into_iter().filter(|nudge| !is_left_out(nudge)).for_each(Taken::done);
        if let Some(stamp) = stamp.filter(|_| is_whole) {
            let (store, scope) = (&self.project.store, &self.project.scope);
            store.set_import_cursor(scope, HEADS, &stamp, self.engine.now()).await?;
            self.caller.saw_refs(stamp);
        }
        Ok(())
    }

    /// Imports new commits and the commits in `also`, if the user wants commits of this project. Returns whether all
    /// are imported.
    async fn import_commits(&mut self, also: Vec<Sha>) -> Result<bool> {
        let (engine, caller, project, until) = (self.engine, self.caller, self.project, self.until);
        let Some(repository) = project.repository.clone() else { return Ok(true) };
        let stored = Stored::of(project).await?;
        let spool = engine.spool(project);
        let is_wanted = match stored.is_imported() {
            true => spool.is_captured(),
            // The user captured all projects and has not chosen this one by name.
            false => spool.is_followed(),
        };
        if !is_wanted {
            // Commits made while capture is off stay out when it is switched on again.
            if stored.is_followed() && !stored.is_imported() {
                let tips = in_time(Some(until), move |_| repository.tips()).await;
                let Some(tips) = tips else { return Ok(false) };
                let tips: Vec<Sha> = tips.found.iter().map(|tip| tip.sha).collect();
                follow_from(engine, caller, &tips).await?;
            }
            return Ok(true);
        }
        if !stored.is_followed() {
            // The first session in this project may have made commits already.
            let since = engine.now() / 1000 - FIRST_SEEN;
            let seen = in_time(Some(until), move |stop| repository.before(since, stop)).await;
            let Some(seen) = seen else {
                self.followed.notices.push(LATE.to_owned());
                return Ok(false);
            };
            follow_from(engine, caller, &seen?).await?;
        }
        let (wanted, limit) = (Wanted::New, self.limit);
        let args =
            commits::Args { threads: 1, limit, also, until: Some(until), wanted, ..Default::default() };
        let output = commits::import(engine, caller, args, |_, _| {}).await?;
        self.followed.imported += output.imported;
        if output.left_out > 0 {
            self.followed.notices.push(format!(
                "{} not imported yet: the idle server does it, or run `tiro import git`",
                counted(output.left_out, "commit is", "commits are")
            ));
        }
        if output.is_unfinished {
            self.followed.notices.push(LATE.to_owned());
        }
        Ok(output.left_out == 0 && !output.is_unfinished)
    }

    /// Reads the transcripts that hooks left references to, until another writer keeps this process waiting.
    async fn follow_sessions(
        &mut self,
        grown: Vec<Taken>,
        spool: &Spool,
        importer: &mut Importer<'_>,
    ) -> Result<()> {
        for taken in grown {
            if let Err(error) = self.project.store.await_turn(&self.project.scope, TURN).await {
                self.followed.notices.push(format!("some transcripts were not imported: {error}"));
                break;
            }
            self.follow_session(taken, spool, importer).await?;
        }
        Ok(())
    }

    /// Reads one transcript, and removes its reference once all of it is read.
    async fn follow_session(&self, taken: Taken, spool: &Spool, importer: &mut Importer<'_>) -> Result<()> {
        let engine = self.engine;
        let left = self.patience.saturating_sub(self.began.elapsed());
        let (Some(client), Some(path)) =
            (Client::of(&taken.reference.client), taken.reference.transcript.clone())
        else {
            taken.done();
            return Ok(());
        };
        let is_shared = taken.reference.event == share::SHARED;
        if let Some(other) = elsewhere(engine, self.caller, importer.place, client, &path) {
            // The agent changed into another project's directory before its hook ran, or into a copy of this project,
            // which keeps this one's id until a call opens it.
            if other == *spool {
                if is_old(engine, &taken) {
                    taken.done();
                }
                return Ok(());
            }
            // Both projects get their part of the session.
            if !is_shared && other.is_captured() {
                other.leave(&taken.reference)?;
            }
        }
        let found_by = match is_shared {
            true => FoundBy::Project,
            false => FoundBy::Hook(&taken.reference.directory),
        };
        let before = importer.output.bytes_left;
        let read = importer.follow((client, &path, found_by), Some(left), &mut |_| {}).await;
        match read {
            Ok(()) if importer.output.bytes_left > before => {}
            Ok(()) => taken.done(),
            Err(error) => put_aside(engine, taken, &path, &error),
        }
        Ok(())
    }

    /// Reads the graph of commits. It is read last: answers are complete without it.
    async fn read_graph(&self) -> Result<()> {
        let patience = if self.is_idle() { WHILE_IDLE } else { GRAPH_BEFORE_A_CALL };
        if let Err(error) = graph::learn(self.project, Some(Instant::now() + patience)).await {
            tracing::warn!(%error, "the graph of commits is not stored");
        }
        link::take_back(self.project).await
    }

    /// Adds what was read of sessions, and a notice of what was left out.
    fn report(&mut self, output: &Imported) {
        self.followed.imported += output.imported;
        if output.too_much > 0 {
            let entries = counted(output.too_much, "entry of a session is", "entries of sessions are");
            let notice =
                format!("{entries} not stored: beyond the limit of a session (16 MB) or of an entry");
            // No call waits for the idle server, so the answer of the next call reports it.
            match self.is_idle() {
                true => self.caller.add_notice(notice),
                false => self.followed.notices.push(notice),
            }
        }
        if output.bytes_left > 0 {
            let notice = format!("{} bytes of transcripts are not read yet", output.bytes_left);
            self.followed.notices.push(notice);
        }
    }
}

/// Handles a transcript that can't be read: keeps its reference for another try, or removes it if another try is
/// pointless.
fn put_aside(engine: &Engine, taken: Taken, path: &Path, error: &Error) {
    // The reference stays for the next time.
    if matches!(error.kind(), Kind::Busy | Kind::Store) {
        tracing::warn!(%error, "a transcript is not stored yet");
        return;
    }
    tracing::warn!(%error, "a transcript was not read");
    let is_gone = matches!(path.metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
    match error.kind() == Kind::Io && !is_gone && !is_old(engine, &taken) {
        true => taken.keep(error.to_string()),
        false => taken.done(),
    }
}

fn is_old(engine: &Engine, taken: &Taken) -> bool {
    engine.now().saturating_sub(taken.reference.at) > GIVEN_UP
}

/// Returns the spool of the project that the session was held in, if that is another project.
fn elsewhere(engine: &Engine, caller: &Caller, place: &Place, client: Client, path: &Path) -> Option<Spool> {
    let config = engine.config();
    let directory = transcripts::directory_of(client, path)?;
    if place.work_tree(&directory.to_string_lossy()).is_some() {
        // A repository within this one is a project of its own.
        let nested = project::place(&directory, config, caller.named()).ok().flatten();
        let own = project::place(&place.root, config, caller.named()).ok().flatten();
        if nested.is_none() || nested == own {
            return None;
        }
    }
    let other = project::place(&directory, config, caller.named()).ok().flatten()?;
    Some(Spool::of(&config.data_dir, &other))
}
