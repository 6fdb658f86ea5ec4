//! Follows transcripts and commits. It reads the transcripts that hooks reported, and imports the commits that are not
//! stored yet.
//!
//! Tiro runs no background process, so each call first catches up for a limited time and then answers. The idle server
//! or the next call imports the rest. Commits are followed if the user imported the history or chose to capture the
//! project. Sessions are followed if hooks are installed.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clients::Client;
use crate::follow::commits::authors;
use crate::follow::history::{Stored, Wanted, follow_from};
use crate::follow::in_time::in_time;
use crate::follow::link::{self, WorkTrees};
use crate::follow::reading::Importer;
use crate::follow::sessions::Imported;
use crate::follow::share::{self, FoundBy};
use crate::follow::{commits, documents, graph, pointer};
use crate::sources::Sources;
use crate::spool::{Spool, Taken};
use tiro_base::error::{Error, Kind, Result, partial};
use tiro_base::humanize::counted;
use tiro_git::Sha;
use tiro_intake::Intake;

/// The longest time that a call reads transcripts before it answers.
const BEFORE_A_CALL: Duration = Duration::from_millis(600);

/// The longest time that a call waits for other writers. After that, it answers from what is stored.
const TURN: Duration = Duration::from_millis(250);

/// The longest time that a call waits for another round of catching up. Arbitrary: most rounds take only some
/// hundredths of this time.
const OTHER_ROUND: Duration = Duration::from_secs(1);

/// The longest time that a call waits for git. Arbitrary: about twenty times as long as an ordinary commit takes on a
/// slow machine.
const GIT_BEFORE_A_CALL: Duration = Duration::from_secs(2);

/// The longest time that a call reads the graph of commits. The rest is read when a later call needs the graph.
const GRAPH_BEFORE_A_CALL: Duration = Duration::from_millis(200);

/// The longest time that a call waits for git to tell which replaced commits are checked out again. Arbitrary.
const HEAD_BEFORE_A_CALL: Duration = Duration::from_millis(300);

/// The longest time that the idle server waits for git. Arbitrary: ten times as long as git takes for a million
/// commits.
const WHILE_IDLE: Duration = Duration::from_secs(120);

/// The notice of a call that did not wait for a round of the idle server.
const OTHERS_READ: &str =
    "the server is reading new commits and transcripts, so some may be missing: ask again";

/// The notice of a call for which git took too long.
const LATE: &str = "git took too long, so new commits may be missing: the server imports them when it is idle, \
    or run `tiro import git`";

/// The notice of a call in which not all names were brought up to date.
const NAMES_LATE: &str = "`.mailmap` changed, and some commits still show the former names of their authors: the server \
    updates them when it is idle, or run `tiro import git`";

/// The notice of a call for which git took too long to tell which commits are replaced and which sessions led to them.
const UNLINKED: &str = "git took too long, so commits, and sessions that led to them, may be missing: the server finds \
    them when it is idle";

/// The maximum number of commits that a call imports before it answers. They take about a quarter of a second.
const COMMITS_BEFORE_A_CALL: usize = 256;

/// The greatest age, in seconds, of commits that count as new when Tiro first sees their project: a day.
const FIRST_SEEN: i64 = 24 * 60 * 60;

/// The name of the import cursor that contains the digest of git's references (branches, `HEAD`). It is set only when
/// all commits that these references lead to are stored.
const HEADS: &str = "git heads";

/// The result of one round of catching up.
#[derive(Debug, Default)]
pub struct Followed {
    /// The number of commits and entries of sessions that were stored.
    pub imported: usize,
    /// Notices about what is missing from the answer that follows, with the reasons.
    pub notices: Vec<String>,
    /// Notices for the next answer, from a round for which no call waited.
    pub for_next_answer: Vec<String>,
}

/// The state that a process keeps in memory for following one project.
#[derive(Default)]
pub struct Following {
    /// The digest of git's references that lead only to stored commits.
    refs: Mutex<Option<String>>,
    /// The lock that is held by the current round.
    turn: tokio::sync::Mutex<()>,
}

impl Following {
    /// Forgets which references were followed. Called when the project's store was opened again.
    pub fn forget(&self) {
        *self.refs.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn has_seen(&self, stamp: &str) -> bool {
        self.refs.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(stamp)
    }

    fn saw(&self, stamp: String) {
        *self.refs.lock().unwrap_or_else(PoisonError::into_inner) = Some(stamp);
    }
}

/// Catches up for as long as a call may wait. Imports only the newest commits.
pub async fn before_a_call(
    (sources, intake): (&Sources, &dyn Intake),
    following: &Following,
) -> Result<Followed> {
    let limits = (BEFORE_A_CALL, Some(COMMITS_BEFORE_A_CALL));
    follow((sources, intake), following, limits, GIT_BEFORE_A_CALL).await
}

/// Catches up while no call waits: imports all new commits, and reads transcripts for at most `patience`.
pub async fn while_idle(
    (sources, intake): (&Sources, &dyn Intake),
    following: &Following,
    patience: Duration,
) -> Result<Followed> {
    follow((sources, intake), following, (patience, None), WHILE_IDLE).await
}

/// Returns the notice that following failed because of `error`.
pub fn unfollowed(error: &Error) -> String {
    partial::notice(format!("new commits and transcripts may be missing: {error}"))
}

async fn follow(
    (sources, intake): (&Sources, &dyn Intake),
    following: &Following,
    (patience, limit): (Duration, Option<usize>),
    of_git: Duration,
) -> Result<Followed> {
    let began = Instant::now();
    let (until, followed) = (began + of_git, Followed::default());
    let mut catch_up = CatchUp { sources, intake, following, began, patience, limit, until, followed };
    catch_up.run().await?;
    Ok(catch_up.followed)
}

/// The state of one round of catching up.
struct CatchUp<'a> {
    sources: &'a Sources,
    intake: &'a dyn Intake,
    following: &'a Following,
    began: Instant,
    /// The time after which this round stops reading transcripts.
    patience: Duration,
    /// The maximum number of commits to import; the newest ones are chosen. `None` imports all, which only the idle
    /// server does.
    limit: Option<usize>,
    /// The time at which this round stops waiting for git.
    until: Instant,
    followed: Followed,
}

/// The references (branches, `HEAD`) of the repository, as they are now.
struct Refs {
    /// A digest of the references; `None` if there is no repository.
    stamp: Option<String>,
    /// Whether the references changed since they were last followed.
    moved: bool,
}

impl CatchUp<'_> {
    /// Follows commits, then sessions, and then links commits to sessions.
    async fn run(&mut self) -> Result<()> {
        let both = (self.sources, self.intake);
        let spool = self.sources.spool();
        // Rounds of one server take turns. Otherwise a second round could find nothing left to import, and its call
        // would be answered before the first round has linked its imports. But a call doesn't wait for a long round of
        // the idle server.
        let patience = if self.is_idle() { WHILE_IDLE } else { OTHER_ROUND };
        let turn = tokio::time::timeout(patience, self.following.turn.lock()).await;
        if turn.is_err() && !self.is_idle() {
            self.followed.notices.push(OTHERS_READ.to_owned());
        }
        // The stamp is taken before the commits are read. So if a commit is made during the reading, the next call
        // notices it.
        let Some(Refs { stamp, moved }) = self.refs().await? else {
            self.followed.notices.push(LATE.to_owned());
            return Ok(());
        };
        let is_due = self.is_idle() && link::is_due(self.intake).await?;
        if !moved && spool.is_empty() && !is_due {
            return Ok(());
        }

        self.intake.await_turn(TURN).await?;
        let (nudges, grown): (Vec<_>, Vec<_>) =
            spool.take().into_iter().partition(|each| each.reference.client == "git");
        let mut is_whole = match moved || !nudges.is_empty() {
            true => self.follow_commits(nudges).await?,
            false => false,
        };
        let work_trees = WorkTrees::of(self.sources);
        let mut importer = Importer::new(self.sources, self.intake, &work_trees);
        let read = self.follow_sessions(grown, &spool, &mut importer).await?;
        let Importer { output, span, .. } = importer;
        link::link_span(both, &work_trees, &span, (!self.is_idle()).then_some(GIT_BEFORE_A_CALL)).await?;
        // The references are removed only now. If this process dies before this point, another process finds the
        // references, and reads and links the same content.
        read.into_iter().for_each(Taken::done);
        let mut is_linked = !link::is_unfinished(self.intake).await?;
        if moved {
            let is_told = self.read_graph().await?;
            (is_whole, is_linked) = (is_whole && is_told, is_linked && is_told);
        }
        if !is_linked && !self.is_idle() {
            self.followed.notices.push(UNLINKED.to_owned());
        }
        // The cursor is set only after the links are made. Until then, another round that runs at the same time makes
        // the missing links.
        if let Some(stamp) = stamp.filter(|_| is_whole) {
            self.intake.keep_cursor(HEADS, &stamp).await?;
            self.following.saw(stamp);
        }
        self.report(&output);
        pointer::point(self.sources, self.intake).await
    }

    /// Returns whether the idle server runs this round. No call waits for such a round.
    fn is_idle(&self) -> bool {
        self.limit.is_none()
    }

    /// Returns the references of the repository, or `None` if git takes too long.
    async fn refs(&self) -> Result<Option<Refs>> {
        let Some(repository) = self.sources.repository.clone() else {
            return Ok(Some(Refs { stamp: None, moved: false }));
        };
        let stamp = in_time(Some(self.until), move |_| repository.heads_stamp()).await;
        let Some(stamp) = stamp else { return Ok(None) };
        let stamp = self.sources.redactor.redact(&stamp).text.into_owned();
        let mut moved = false;
        if !self.following.has_seen(&stamp) {
            // Another process, or an earlier run of this server, may have followed these references.
            let followed = self.intake.cursor(HEADS).await?;
            moved = followed.as_ref() != Some(&stamp);
            if !moved {
                self.following.saw(stamp.clone());
            }
        }
        Ok(Some(Refs { stamp: Some(stamp), moved }))
    }

    /// Imports new commits, and also the commits in `nudges`, which hooks reported. Returns whether no commit is left to
    /// import.
    async fn follow_commits(&mut self, nudges: Vec<Taken>) -> Result<bool> {
        let also =
            nudges.iter().filter_map(|nudge| nudge.reference.commit.as_deref()?.parse().ok()).collect();
        let is_whole = self.import_commits(also).await?;
        let is_left_out = |nudge: &Taken| !is_whole && nudge.reference.commit.is_some();
        nudges.into_iter().filter(|nudge| !is_left_out(nudge)).for_each(Taken::done);
        Ok(is_whole)
    }

    /// Imports new commits and the commits in `also`, if the user wants commits of this project. Returns whether no
    /// wanted commit is left to import.
    async fn import_commits(&mut self, also: Vec<Sha>) -> Result<bool> {
        let (sources, intake, until) = (self.sources, self.intake, self.until);
        let Some(repository) = sources.repository.clone() else { return Ok(true) };
        let stored = Stored::of(intake).await?;
        let spool = sources.spool();
        let is_wanted = match stored.is_imported() {
            true => spool.is_captured(),
            // The history wasn't imported, so new commits are wanted only if the user chose this project or all
            // projects.
            false => spool.is_followed(),
        };
        if !is_wanted {
            // Capture is off. The commits made until now are marked as seen, so that they are not imported when capture
            // is switched on again.
            if stored.is_followed() && !stored.is_imported() {
                let tips = in_time(Some(until), move |_| repository.tips()).await;
                let Some(tips) = tips else { return Ok(false) };
                let tips: Vec<Sha> = tips.found.iter().map(|tip| tip.sha).collect();
                follow_from(intake, &tips).await?;
            }
            return Ok(true);
        }
        if !stored.is_followed() {
            // Commits of the last day count as new, because the first session in this project may have made some of
            // them.
            let since = sources.now() / 1000 - FIRST_SEEN;
            let seen = in_time(Some(until), move |stop| repository.before(since, stop)).await;
            let Some(seen) = seen else {
                self.followed.notices.push(LATE.to_owned());
                return Ok(false);
            };
            follow_from(intake, &seen?).await?;
        }
        let (wanted, limit) = (Wanted::New, self.limit);
        let args = commits::Args { threads: 1, limit, also, until: Some(until), wanted };
        let output = commits::import((sources, intake), args, |_, _| {}).await?;
        self.followed.imported += output.imported;
        if output.left_out > 0 {
            self.followed.notices.push(format!(
                "{} not imported yet: the server imports the rest when it is idle, or run `tiro import git`",
                counted(output.left_out, "commit is", "commits are")
            ));
        }
        if output.is_unfinished {
            self.followed.notices.push(LATE.to_owned());
        }
        let documents = documents::follow((sources, intake), Some(until)).await?;
        self.followed.imported += documents.stored;
        let is_named = authors::follow(sources, intake, Some(until)).await?;
        if !is_named {
            self.followed.notices.push(NAMES_LATE.to_owned());
        }
        Ok(output.left_out == 0 && !output.is_unfinished && is_named && !documents.is_unfinished)
    }

    /// Reads the transcripts that are named by the references from hooks. Stops if this process has to wait too long
    /// for another writer. Returns the references of the transcripts that were read to their end.
    async fn follow_sessions(
        &mut self,
        grown: Vec<Taken>,
        spool: &Spool,
        importer: &mut Importer<'_>,
    ) -> Result<Vec<Taken>> {
        let mut read = Vec::new();
        for taken in grown {
            if let Err(error) = self.intake.await_turn(TURN).await {
                let missing = format!("new transcripts may be missing: {error}");
                self.followed.notices.push(partial::notice(missing));
                break;
            }
            read.extend(self.follow_session(taken, spool, importer).await?);
        }
        Ok(read)
    }

    /// Reads one transcript. Returns the reference to the transcript if the whole transcript was read.
    async fn follow_session(
        &mut self,
        taken: Taken,
        spool: &Spool,
        importer: &mut Importer<'_>,
    ) -> Result<Option<Taken>> {
        let left = self.patience.saturating_sub(self.began.elapsed());
        let (Some(client), Some(path)) =
            (Client::of(&taken.reference.client), taken.reference.transcript.clone())
        else {
            taken.done();
            return Ok(None);
        };
        let is_shared = taken.reference.event == share::SHARED;
        if let Some(other) = share::elsewhere(self.sources, importer.work_trees, client, &path) {
            // The session runs in another project, and the agent changed into this project's directory before the hook
            // ran. Or the session runs in a copy of this project, which has the same id until a call opens the copy.
            if other == *spool {
                if taken.is_given_up(self.sources.now()) {
                    taken.done();
                }
                return Ok(None);
            }
            // The reference is passed on to the other project too, so that both projects get their part of the session.
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
        Ok(match read {
            Ok(()) if importer.output.bytes_left > before => None,
            Ok(()) => Some(taken),
            Err(error) => {
                // If the transcript is gone, there is nothing left to read. In all other cases, messages may be missing
                // from the answer.
                if !is_gone(&path) {
                    let missing = format!("a new transcript was not read: {error}");
                    self.followed.notices.push(partial::notice(missing));
                }
                put_aside(self.sources, taken, &path, &error)
            }
        })
    }

    /// Reads the graph of commits. If a replaced commit is checked out again, removes the record that it was replaced.
    /// This is done last, because answers are complete without the graph. Returns whether git could tell in time which
    /// commits are checked out.
    async fn read_graph(&self) -> Result<bool> {
        let patience = if self.is_idle() { WHILE_IDLE } else { GRAPH_BEFORE_A_CALL };
        if let Err(error) = graph::learn(self.sources, self.intake, Some(Instant::now() + patience)).await {
            tracing::warn!(%error, "the graph of commits is not stored");
        }
        let patience = if self.is_idle() { WHILE_IDLE } else { HEAD_BEFORE_A_CALL };
        let is_told = link::take_back(self.sources, self.intake, patience).await?;
        Ok(is_told || self.is_idle())
    }

    /// Counts the stored entries of sessions, and adds notices about entries that were left out.
    fn report(&mut self, output: &Imported) {
        self.followed.imported += output.imported;
        if output.too_much > 0 {
            let entries = counted(output.too_much, "entry of a session is", "entries of sessions are");
            let notice =
                format!("{entries} not stored: beyond the limit of a session (16 MB) or of an entry");
            match self.is_idle() {
                true => self.followed.for_next_answer.push(notice),
                false => self.followed.notices.push(notice),
            }
        }
        if output.bytes_left > 0 {
            let notice = format!("{} bytes of transcripts are not read yet", output.bytes_left);
            self.followed.notices.push(notice);
        }
    }
}

/// Handles a transcript that can't be read. Keeps its reference for another try, or removes the reference if another
/// try is pointless. Always returns `None`, because the transcript was not read to its end.
fn put_aside(sources: &Sources, taken: Taken, path: &Path, error: &Error) -> Option<Taken> {
    // If the failure is caused by the store and not by the transcript, the reference stays for the next round.
    if matches!(error.kind(), Kind::Busy | Kind::Store) {
        tracing::warn!(%error, "a transcript is not stored yet");
        return None;
    }
    tracing::warn!(%error, "a transcript was not read");
    match error.kind() == Kind::Io && !is_gone(path) && !taken.is_given_up(sources.now()) {
        true => taken.keep(error.to_string()),
        false => taken.done(),
    }
    None
}

fn is_gone(path: &Path) -> bool {
    matches!(path.metadata(), Err(error) if error.kind() == ErrorKind::NotFound)
}
