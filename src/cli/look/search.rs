//! `tiro search`: searches the project's memory in the same way as an agent.

use std::process::ExitCode;

use super::show::{shared_by, sure};
use crate::cli::print::Out;
use crate::cli::terminal::{Marks, Page, Screen, Span, Style};
use tiro_base::error::{Result, partial};
use tiro_base::humanize::counted;
use tiro_base::memory::Millis;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_tools::common::short_sha;
use tiro_tools::memory::named;
use tiro_tools::memory::search_project_memory::{self as search, Hit};

/// The arguments of `tiro search`.
#[derive(clap::Args)]
pub struct Args {
    /// A question or keywords
    #[arg(required = true)]
    query: Vec<String>,
    /// Number of hits, 1 to 50
    #[arg(short, long, default_value_t = 10)]
    k: usize,
    /// Find only these kinds: message, commit, fact, …
    #[arg(long, value_delimiter = ',', value_name = "KINDS")]
    kinds: Vec<String>,
    /// Find only memories of these sessions
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    sessions: Vec<String>,
    /// Find only memories of this branch
    #[arg(long)]
    branch: Option<String>,
    /// Find only memories with this tag
    #[arg(long, visible_alias = "tag")]
    topic: Option<String>,
    /// Find only memories about this file or directory
    #[arg(long)]
    path: Option<String>,
    /// Find nothing from before this time, such as 2026-03-01, yesterday, monday, 2026-03 or 7d
    #[arg(long)]
    since: Option<String>,
    /// Find nothing from after this time; a day or month is included
    #[arg(long)]
    until: Option<String>,
    /// Search all of your projects
    #[arg(long, conflicts_with = "sessions")]
    everywhere: bool,
    /// The most tokens that the answer may have
    #[arg(long, default_value_t = 2000)]
    max_tokens: usize,
    /// Continue at this cursor of the last answer
    #[arg(long)]
    cursor: Option<String>,
}

/// Searches and prints the answer.
pub async fn run(engine: &Engine, caller: &Caller, args: Args, out: Out) -> Result<ExitCode> {
    let sessions = named::sessions_in_full(engine, caller, &args.sessions).await?;
    let args = search::Args {
        query: args.query.join(" "),
        k: Some(args.k),
        kinds: Some(args.kinds),
        sessions: Some(sessions),
        branch: args.branch,
        topic: args.topic,
        path: args.path,
        since: args.since,
        until: args.until,
        max_tokens: Some(args.max_tokens),
        cursor: args.cursor,
        everywhere: args.everywhere,
    };
    let marks = Marks::of(&args.query);
    let output = search::search(engine, caller, args).await?;
    let now = engine.now();
    out.view(&output, |screen| page(&output, &marks, screen, now))
}

fn page(found: &search::Output, marks: &Marks, screen: Screen, now: Millis) -> Page {
    let mut page = Page::new(screen, now);
    page.incomplete(&found.notices);
    for (place, hit) in found.shown().iter().enumerate() {
        page.gap();
        let heading = heading(&page, place + 1, hit);
        page.line(0, heading);
        if found.searched.is_some() {
            page.marked(3, &hit.beginning(), marks);
            continue;
        }
        page.marked(3, &hit.text, marks);
        let place = hit.project.as_ref().and_then(|project| project.place.as_ref());
        let place = place.map_or(String::new(), |place| format!(" --project {place}"));
        match (hit.is_part, hit.project.is_some()) {
            (true, _) => {
                let open = format!("(excerpt; in full: tiro show{place} {})", hit.id);
                page.line(3, [Span::new(Style::Faint, open)]);
            }
            (false, true) => {
                page.line(3, [Span::new(Style::Faint, format!("(open: tiro show{place} {})", hit.id))]);
            }
            (false, false) => {}
        }
        if let Some(superseded) = &hit.superseded {
            page.line(3, [Span::new(Style::Warning, superseded.sentence())]);
        }
        made_in(&mut page, hit, marks);
    }
    page.gap();
    let faint = |text: String| [Span::new(Style::Faint, text)];
    match (found.hits.is_empty(), found.dropped) {
        (true, 0) => {
            page.line(0, [Span::new(Style::Plain, partial::nothing(&found.notices, "Nothing found."))])
        }
        (true, count) => {
            let none = match count {
                1 => "The one hit doesn't fit".to_owned(),
                count => format!("None of the {count} hits fits"),
            };
            page.line(0, faint(format!("{none} --max-tokens; ask again with a larger one.")));
        }
        (false, 0) => {}
        (false, count) => page.line(0, faint(format!("Omitted to fit --max-tokens: {count} more."))),
    }
    match (&found.searched, &found.next_cursor) {
        (Some(searched), _) => {
            page.line(0, faint(format!("Searched: {searched}. The nearest in full: --cursor 0")));
        }
        (None, Some(cursor)) => page.line(0, faint(format!("More: --cursor {cursor}"))),
        (None, None) => {}
    }
    if found.pending > 0 {
        // This line must not begin with a number, because a number at the margin marks a hit.
        let pieces = counted(found.pending as u64, "piece", "pieces");
        page.line(
            0,
            faint(format!("No embedding yet (run `tiro index`), so found by keywords only: {pieces}.")),
        );
    }
    page.notices(&found.notices);
    page
}

/// Adds the conversation in which a commit was made, with the confidence, the argument of `tiro show` that opens the
/// conversation, and its best message.
fn made_in(page: &mut Page, hit: &Hit, marks: &Marks) {
    let faint = |text: String| Span::new(Style::Faint, text);
    let Some(behind) = &hit.behind else {
        let confidences = hit.confidences.iter().map(|confidence| sure(*confidence));
        let all = confidences.chain(std::iter::repeat(String::new()));
        let named: Vec<String> =
            hit.conversations.iter().zip(all).map(|(session, sure)| format!("{session}{sure}")).collect();
        if !named.is_empty() {
            page.line(3, [faint(format!("made in {}", named.join(", ")))]);
        }
        return;
    };
    let title = match &behind.title {
        Some(title) => format!("\"{title}\""),
        None => behind.session_id.clone(),
    };
    let more = match hit.conversations.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let (day, sure) = (page.day(&behind.date), sure(behind.confidence));
    page.line(
        3,
        [
            faint(format!("made in {title}, {day}{sure}{more} · tiro show ")),
            Span::new(Style::Id, &behind.open),
        ],
    );
    if let Some(said) = &behind.said {
        let speaker = said.speaker.as_deref().unwrap_or("?");
        let author = said.author.as_deref().map(shared_by);
        page.line(6, std::iter::once(Span::new(Style::Name, speaker)).chain(author));
        page.marked(6, &said.text, marks);
    }
}

/// Returns the heading of a hit: its speaker or kind, session, time and id.
fn heading(page: &Page, place: usize, hit: &Hit) -> Vec<Span> {
    let plain = |text: &str| Span::new(Style::Plain, text);
    let mut line = vec![Span::new(Style::Faint, format!("{place}. "))];
    let commit = hit.source_id.as_ref().filter(|_| hit.kind == "commit");
    match (commit, hit.kind.as_str()) {
        (Some(sha), _) => {
            line.extend([plain("commit "), Span::new(Style::Id, short_sha(sha))]);
            let author = hit.speaker.as_ref();
            line.extend(author.into_iter().flat_map(|name| [plain(" by "), Span::new(Style::Name, name)]));
        }
        (None, "message") => line.push(Span::new(Style::Name, hit.speaker.as_deref().unwrap_or("?"))),
        (None, kind) => {
            line.push(Span::new(Style::Strong, kind));
            line.extend(hit.path.iter().flat_map(|path| [plain(" "), Span::new(Style::Name, path)]));
        }
    }
    if let Some(session) = &hit.session_id {
        line.extend([plain(" in "), Span::new(Style::Strong, session)]);
    }
    line.push(Span::new(Style::Faint, format!(" · {}", page.when(&hit.time))));
    line.extend(hit.author.as_deref().map(shared_by));
    match &hit.project {
        Some(project) => line.push(Span::new(Style::Name, format!(" · project {}", project.name))),
        None if hit.scope.is_some() => line.push(Span::new(Style::Faint, " · all projects")),
        None => {}
    }
    let standing = hit.stale();
    line.extend(standing.map(|standing| Span::new(Style::Warning, format!(" · {standing}"))));
    line.extend([Span::new(Style::Faint, " · "), Span::new(Style::Id, &hit.id)]);
    line
}
