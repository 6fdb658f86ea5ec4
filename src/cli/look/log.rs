//! `tiro log`: lists sessions and commits by day.

use std::process::ExitCode;

use crate::cli::look::show::{shared_by, sure};
use crate::cli::print::Out;
use crate::cli::terminal::{Page, Screen, Span, Style, clock};
use tiro_base::error::{Result, partial};
use tiro_base::humanize::counted;
use tiro_base::memory::Millis;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_tools::common::short_sha;
use tiro_tools::memory::timeline::{self, Day, DayCommit, DaySession, Output};

/// The arguments of `tiro log`.
#[derive(clap::Args)]
pub struct Args {
    /// Nothing from before this day, such as 2026-03-01, yesterday, monday, 2026-03 or 7d
    #[arg(long)]
    since: Option<String>,
    /// Nothing from after this day
    #[arg(long)]
    until: Option<String>,
    /// Only this branch
    #[arg(long)]
    branch: Option<String>,
    /// Only what is about this file or directory
    #[arg(long)]
    path: Option<String>,
    /// Only commits by authors with this name or a part of it, and the sessions that led to them
    #[arg(long)]
    author: Option<String>,
    /// Only sessions of this client, such as codex, and the commits to which they led
    #[arg(long)]
    client: Option<String>,
    /// Number of days on which something happened, 1 to 100
    #[arg(short = 'n', long, default_value_t = 14)]
    days: usize,
    /// Continue at this cursor of the last answer
    #[arg(long)]
    cursor: Option<String>,
}

/// Reads a page of days and prints them.
pub async fn run(engine: &Engine, caller: &Caller, args: Args, out: Out) -> Result<ExitCode> {
    let args = timeline::Args {
        since: args.since,
        until: args.until,
        branch: args.branch,
        path: args.path,
        author: args.author,
        client: args.client,
        days: Some(args.days),
        cursor: args.cursor,
    };
    let output = timeline::run(engine, caller, args).await?;
    let now = engine.now();
    out.view(&output, |screen| page(&output, screen, now))
}

fn page(output: &Output, screen: Screen, now: Millis) -> Page {
    let mut page = Page::new(screen, now);
    page.incomplete(&output.notices);
    for day in &output.days {
        page.gap();
        add_day(&mut page, day);
    }
    if output.days.is_empty() {
        let since = output.next_cursor.as_ref().map(|day| format!(" since {day}")).unwrap_or_default();
        let nothing = format!("Nothing happened{since}.");
        page.line(0, [Span::new(Style::Plain, partial::nothing(&output.notices, &nothing))]);
    }
    if let Some(cursor) = &output.next_cursor {
        page.gap();
        page.line(0, [Span::new(Style::Faint, format!("Earlier days: --cursor {cursor}"))]);
    }
    page.notices(&output.notices);
    page
}

fn add_day(page: &mut Page, day: &Day) {
    let mut heading = vec![Span::new(Style::Strong, &day.day)];
    let ago = page.day(&day.day);
    heading.extend((ago != day.day).then(|| Span::new(Style::Faint, format!("  {ago}"))));
    page.line(0, heading);
    for session in &day.sessions {
        add_session(page, session);
    }
    for commit in &day.commits {
        let mut line = commit_line(commit);
        if let Some(session) = &commit.session_id {
            let sure = commit.confidence.map(sure).unwrap_or_default();
            line.push(Span::new(Style::Faint, format!("  from session {session}{sure}")));
        }
        page.line(2, line);
    }
}

fn add_session(page: &mut Page, session: &DaySession) {
    let title = session.title.as_ref().unwrap_or(&session.session_id);
    let mut line = vec![
        Span::new(Style::Faint, format!("{}-{}  ", clock(&session.first), clock(&session.last))),
        Span::new(Style::Plain, title),
    ];
    let mut about = vec![counted(session.messages, "message", "messages")];
    about.extend(session.client.clone());
    about.extend(session.headless.then(|| "run by a script".to_owned()));
    line.push(Span::new(Style::Faint, format!("  {}", about.join(", "))));
    line.extend(session.title.as_ref().map(|_| Span::new(Style::Id, format!("  {}", session.session_id))));
    page.line(2, line);
    for commit in &session.commits {
        let mut line = commit_line(commit);
        let sure = commit.confidence.map(sure).unwrap_or_default();
        line.extend((!sure.is_empty()).then(|| Span::new(Style::Faint, sure)));
        page.line(15, line);
    }
}

/// Returns the time, the id, the subject and the author of a commit.
fn commit_line(commit: &DayCommit) -> Vec<Span> {
    let sha = short_sha(&commit.sha);
    let mut line = vec![
        Span::new(Style::Faint, format!("{}  ", clock(&commit.time))),
        Span::new(Style::Id, sha),
        Span::new(Style::Plain, format!("  {}", commit.subject)),
    ];
    line.extend(commit.author.iter().map(|author| Span::new(Style::Name, format!("  {author}"))));
    line.extend(commit.shared_by.as_deref().map(shared_by));
    line
}
