//! Lists sessions and commits by day, the latest day first. A commit stands beside the session that led to it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::common;
use crate::memory::beside::{behind, linked};
use crate::memory::show;
use tiro_base::envelope;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Memory, Millis};
use tiro_base::scope::{AuthorId, SessionId};
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_intake::Capture;
use tiro_store::{About, ActivityRow, HEADLESS};

/// The most days on a page.
const PAGE: usize = 100;

/// The least number of days that are read at once. Arbitrary: about a week.
const DAYS_AT_ONCE: usize = 8;

/// The largest number of days that are read at once. Arbitrary: a quarter.
const MOST_DAYS_AT_ONCE: usize = 92;

/// The number of times that days are read for a page. A page of a project with long pauses may be shorter than asked.
const READS: usize = 24;

/// The most commits that are read at once. Arbitrary: more than a team makes in a month.
const MOST_COMMITS: usize = 2000;

/// The arguments of `tiro log`.
#[derive(Debug, Default)]
pub struct Args {
    /// Only days from this one on.
    pub since: Option<String>,
    /// Only days until this one, which is included.
    pub until: Option<String>,
    /// Only what was said or committed on this branch.
    pub branch: Option<String>,
    /// Only what is about this file or directory.
    pub path: Option<String>,
    /// Only commits by authors whose name contains this, and sessions that led to one.
    pub author: Option<String>,
    /// Only sessions of clients whose name contains this, and the commits to which they led.
    pub client: Option<String>,
    /// The most days on the page, 1 to 100; 14 if `None`. Days on which nothing happened don't count.
    pub days: Option<usize>,
    /// `next_cursor` of the answer before.
    pub cursor: Option<String>,
}

/// The result of `tiro log`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The days on which something happened, the latest first.
    pub days: Vec<Day>,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
    /// Other remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
}

/// What happened on a day.
#[derive(Debug, Serialize)]
pub struct Day {
    /// The day in the zone of the user, as `YYYY-MM-DD`.
    pub day: String,
    /// The sessions in which something was said, the latest first.
    pub sessions: Vec<DaySession>,
    /// The commits to which no session of the day led, the latest first.
    pub commits: Vec<DayCommit>,
}

/// What was said in a session on a day.
#[derive(Debug, Serialize)]
pub struct DaySession {
    /// Its name.
    pub session_id: String,
    /// Its title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The client in which it was held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Whether a script ran it, without a user.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub headless: bool,
    /// The time of its first message of the day, RFC 3339.
    pub first: String,
    /// The time of its last message of the day, RFC 3339.
    pub last: String,
    /// How many messages of the day there are.
    pub messages: i64,
    /// The tokens of these messages (o200k).
    pub tokens: i64,
    /// The commits of the day to which it led, the latest first.
    pub commits: Vec<DayCommit>,
}

/// A commit.
#[derive(Clone, Debug, Serialize)]
pub struct DayCommit {
    /// The id of its memory.
    pub id: String,
    /// Its full SHA.
    pub sha: String,
    /// Its subject.
    pub subject: String,
    /// Its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_by: Option<String>,
    /// Its branch, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// When it was made, RFC 3339.
    pub time: String,
    /// The likeliest session that led to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The confidence of this link, 0.5 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

/// Reads a page of days.
///
/// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if an argument can't be read.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let wanted = args.days.unwrap_or(14);
    if !(1..=PAGE).contains(&wanted) {
        return Err(Error::bad_input(format!("`days` is not between 1 and {PAGE}: {wanted}")));
    }
    let mut notices = match args.cursor {
        None => caller.capture(engine).catch_up().await,
        Some(_) => Vec::new(),
    };
    let project = caller.project(engine).await?;
    let filter = filter(&args, engine.now())?;
    let mut found = Found::default();
    let (mut until, mut is_over) = (filter.until, false);
    let mut at_once = DAYS_AT_ONCE.max(wanted + 1);
    for _ in 0..READS {
        // One day more than wanted is read, to tell whether there is a next page.
        if found.days().len() > wanted {
            break;
        }
        let Some((from, to)) = stretch(&project, &filter, until, at_once).await? else {
            is_over = true;
            break;
        };
        let mut more = Found::read(&project, &filter, (from, to), &mut notices).await?;
        more.narrow(&project, &args).await?;
        // After a time in which nothing is by the author, more days are read.
        if more.rows.is_empty() && more.commits.is_empty() {
            at_once = (2 * at_once).min(MOST_DAYS_AT_ONCE);
        }
        found.add(more);
        until = Some(from);
    }
    found.tell_about(&project, wanted).await?;
    let mut days = found.into_days(caller.author());
    let next_cursor = match days.len() > wanted {
        true => Some(days[wanted - 1].day.clone()),
        // After long pauses, or if little is by an author, the page may be short.
        false => until.filter(|_| !is_over).map(times::day),
    };
    days.truncate(wanted);
    if days.is_empty() && project.store.is_empty(&project.scope).await? {
        notices.insert(0, common::nothing_yet(engine, &project).await?);
    }
    Ok(Output { days, next_cursor, notices })
}

fn filter(args: &Args, now: Millis) -> Result<Filter> {
    let short =
        |name, text: &Option<String>| text.as_deref().map(|text| common::short(name, text)).transpose();
    let (since, mut until) =
        times::range(("since", args.since.as_deref()), ("until", args.until.as_deref()), now)?;
    if let Some(day) = args.cursor.as_deref() {
        let before = times::parse_time("cursor", day).map_err(|_| {
            Error::bad_input(format!("`cursor` was not returned by this list: `{}`", quoted(day)))
                .hint("leave it out to start at the last day")
        })?;
        until = Some(until.map_or(before, |until| until.min(before)));
    }
    let (branch, path) = (short("branch", &args.branch)?, short("path", &args.path)?);
    let kinds = Some(vec![Kind::Message, Kind::Commit]);
    Ok(Filter { kinds, branch, path, since, until, ..Filter::default() })
}

/// Returns the beginning and the end of the days that are read next: the `at_once` days before `until` that end with a day
/// on which something happened. Returns `None` if nothing happened before `until`.
async fn stretch(
    project: &OpenProject,
    filter: &Filter,
    until: Option<Millis>,
    at_once: usize,
) -> Result<Option<(Millis, Millis)>> {
    let filter = Filter { until, ..filter.clone() };
    if filter.since.zip(until).is_some_and(|(since, until)| since >= until) {
        return Ok(None);
    }
    let last = project.store.latest(&project.scope, &filter, 1).await?.pop();
    Ok(last.map(|last| {
        let from = times::days_ago(at_once as i64 - 1, last.time);
        let end = until.unwrap_or(Millis::MAX).min(times::days_ago(-1, last.time));
        (from.max(filter.since.unwrap_or(Millis::MIN)), end)
    }))
}

/// What was read.
#[derive(Default)]
struct Found {
    rows: Vec<ActivityRow>,
    commits: Vec<(Memory, Option<(SessionId, f64)>)>,
    about: HashMap<SessionId, About>,
}

impl Found {
    /// Reads what happened between two times.
    async fn read(
        project: &OpenProject,
        filter: &Filter,
        (from, to): (Millis, Millis),
        notices: &mut Vec<String>,
    ) -> Result<Found> {
        let (store, scope) = (&project.store, &project.scope);
        let mut found = Found::default();
        let filter = Filter { since: Some(from), until: Some(to), ..filter.clone() };
        let of_commits = Filter { kinds: Some(vec![Kind::Commit]), ..filter.clone() };
        let (rows, commits) =
            tokio::try_join!(store.activity(scope, &filter), store.latest(scope, &of_commits, MOST_COMMITS))?;
        if commits.len() == MOST_COMMITS {
            let (first, last) = (times::day(from), times::day(to - 1));
            notices.push(format!("from {first} to {last} only the last {MOST_COMMITS} commits are shown"));
        }
        let keys = commits.iter().map(|commit| commit.key).collect();
        let behind = store.sessions_behind(scope, keys).await?.into_iter().map(|all| all.into_iter().next());
        found.commits = commits.into_iter().zip(behind).collect();
        found.rows = rows;
        Ok(found)
    }

    fn add(&mut self, more: Found) {
        self.rows.extend(more.rows);
        self.commits.extend(more.commits);
        self.about.extend(more.about);
    }

    /// Returns the days on which something happened.
    fn days(&self) -> BTreeSet<String> {
        let said = self.rows.iter().map(|row| times::day(row.first));
        said.chain(self.commits.iter().map(|(commit, _)| times::day(commit.time))).collect()
    }

    /// Leaves out what is not by the author or not of the client that the arguments name.
    async fn narrow(&mut self, project: &OpenProject, args: &Args) -> Result<()> {
        if let Some(author) = &args.author {
            let is_by = |commit: &Memory| contains(commit.speaker.as_deref(), author);
            self.commits.retain(|(commit, _)| is_by(commit));
            let led: BTreeSet<&SessionId> =
                self.commits.iter().filter_map(|(_, behind)| behind.as_ref().map(|(it, _)| it)).collect();
            self.rows.retain(|row| led.contains(&row.session));
        }
        if let Some(client) = &args.client {
            let led = self.commits.iter().filter_map(|(_, behind)| behind.as_ref().map(|(it, _)| it));
            let all: BTreeSet<SessionId> =
                self.rows.iter().map(|row| &row.session).chain(led).cloned().collect();
            self.read_about(project, all).await?;
            let about = &self.about;
            let is_of = |session: &SessionId| {
                contains(about.get(session).and_then(|about| about.client.as_deref()), client)
            };
            self.rows.retain(|row| is_of(&row.session));
            self.commits.retain(|(_, behind)| behind.as_ref().is_some_and(|(session, _)| is_of(session)));
        }
        Ok(())
    }

    /// Reads titles and clients of the sessions of the last `wanted` days.
    async fn tell_about(&mut self, project: &OpenProject, wanted: usize) -> Result<()> {
        let days: BTreeSet<String> = self.days().into_iter().rev().take(wanted).collect();
        let rows = self.rows.iter().filter(|row| days.contains(&times::day(row.first)));
        let sessions = rows.map(|row| row.session.clone()).collect();
        self.read_about(project, sessions).await
    }

    /// Reads titles and clients of those of `sessions` that were not read before.
    async fn read_about(&mut self, project: &OpenProject, sessions: BTreeSet<SessionId>) -> Result<()> {
        let unread: Vec<SessionId> = sessions.into_iter().filter(|it| !self.about.contains_key(it)).collect();
        let about = project.store.about_sessions(&project.scope, unread.clone()).await?;
        self.about.extend(unread.into_iter().zip(about));
        Ok(())
    }

    /// Returns the days as `reader` sees them, the latest first.
    fn into_days(self, reader: &AuthorId) -> Vec<Day> {
        let mut said: BTreeMap<(String, SessionId), ActivityRow> = BTreeMap::new();
        for row in self.rows {
            match said.get_mut(&(times::day(row.first), row.session.clone())) {
                Some(sum) => {
                    (sum.first, sum.last) = (sum.first.min(row.first), sum.last.max(row.last));
                    sum.messages += row.messages;
                    sum.tokens += row.tokens;
                }
                None => drop(said.insert((times::day(row.first), row.session.clone()), row)),
            }
        }
        let mut days: BTreeMap<String, DayFound> = BTreeMap::new();
        for ((day, session), row) in &said {
            let session = day_session(row, self.about.get(session));
            days.entry(day.clone()).or_default().sessions.push((row.last, session));
        }
        for (commit, behind) in self.commits {
            let DayFound { sessions, commits } = days.entry(times::day(commit.time)).or_default();
            let shown = day_commit(&commit, behind.as_ref(), reader);
            let beside =
                sessions.iter_mut().find(|(_, it)| Some(&it.session_id) == shown.session_id.as_ref());
            match beside {
                Some((_, session)) => session.commits.push(shown),
                None => commits.push((commit.time, shown)),
            }
        }
        let day = |(day, DayFound { mut sessions, mut commits }): (String, DayFound)| {
            sessions.sort_by_key(|(last, _)| Reverse(*last));
            commits.sort_by_key(|(time, _)| Reverse(*time));
            let sessions = sessions.into_iter().map(|(_, session)| session).collect();
            Day { day, sessions, commits: commits.into_iter().map(|(_, commit)| commit).collect() }
        };
        days.into_iter().rev().map(day).collect()
    }
}

/// What was found of a day. Sessions come with the time of their last message, commits with their own.
#[derive(Default)]
struct DayFound {
    sessions: Vec<(Millis, DaySession)>,
    commits: Vec<(Millis, DayCommit)>,
}

/// Returns whether `text` contains `part`, in any case.
fn contains(text: Option<&str>, part: &str) -> bool {
    text.is_some_and(|text| text.to_lowercase().contains(&part.trim().to_lowercase()))
}

fn day_session(row: &ActivityRow, about: Option<&About>) -> DaySession {
    let escaped = |text: &str| envelope::escape(text).into_owned();
    let client = about.and_then(|about| about.client.as_deref());
    DaySession {
        session_id: escaped(row.session.as_str()),
        title: about.and_then(|about| about.title.as_deref()).and_then(show::line),
        headless: client.is_some_and(|client| client.ends_with(HEADLESS)),
        client: client.map(|client| escaped(client.trim_end_matches(HEADLESS))),
        first: times::show_time(row.first),
        last: times::show_time(row.last),
        messages: row.messages,
        tokens: row.tokens,
        commits: Vec::new(),
    }
}

fn day_commit(commit: &Memory, behind: Option<&(SessionId, f64)>, reader: &AuthorId) -> DayCommit {
    let escaped = |text: &str| envelope::escape(text).into_owned();
    DayCommit {
        id: commit.id.to_string(),
        sha: commit.source_id.as_deref().map(escaped).unwrap_or_default(),
        subject: commit
            .title
            .as_deref()
            .and_then(show::line)
            .or_else(|| show::line(&commit.text))
            .unwrap_or_default(),
        author: behind::speaker(commit),
        shared_by: commit.author.other_than(reader),
        branch: commit.branch.as_deref().map(escaped),
        time: times::show_time(commit.time),
        session_id: behind.map(|(session, _)| escaped(session.as_str())),
        confidence: behind.map(|(_, confidence)| linked::rounded(*confidence)),
    }
}
