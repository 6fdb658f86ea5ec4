//! `tiro list`: lists memories, the latest first.

use std::process::ExitCode;

use super::show::shared_by;
use crate::cli::print::Out;
use crate::cli::terminal::{Page, Screen, Span, Style};
use tiro_base::error::{Result, partial};
use tiro_base::memory::Millis;
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_tools::common::short_sha;
use tiro_tools::memory::list_memories::{self, Listed, Output};

/// The arguments of `tiro list`.
#[derive(clap::Args)]
pub struct Args {
    /// Only these kinds: message, commit, decision, fact, …
    #[arg(long, value_delimiter = ',', value_name = "KINDS")]
    kind: Vec<String>,
    /// Only this day or month, such as 2026-03-01, yesterday, monday or 2026-03
    #[arg(long, conflicts_with_all = ["since", "until"])]
    day: Option<String>,
    /// Only memories of these sessions: names or their beginnings, or titles
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    session: Vec<String>,
    /// Only memories with this tag
    #[arg(long, visible_alias = "topic")]
    tag: Option<String>,
    /// Only memories of this branch
    #[arg(long)]
    branch: Option<String>,
    /// Only memories about this file or directory
    #[arg(long)]
    path: Option<String>,
    /// Nothing from before this time, such as 2026-03-01, yesterday, monday, 2026-03 or 7d
    #[arg(long)]
    since: Option<String>,
    /// Nothing from after this time; a day or month is included
    #[arg(long)]
    until: Option<String>,
    /// Number of memories, 1 to 200
    #[arg(short = 'n', long, default_value_t = 30)]
    limit: usize,
    /// Continue at this cursor of the last answer
    #[arg(long)]
    cursor: Option<String>,
}

/// Reads a page of memories and prints them.
pub async fn run(engine: &Engine, caller: &Caller, args: Args, out: Out) -> Result<ExitCode> {
    if let Some(day) = args.day.as_deref() {
        times::range(("day", Some(day)), ("day", Some(day)), engine.now())?;
    }
    let args = list_memories::Args {
        kinds: args.kind,
        sessions: args.session,
        branch: args.branch,
        topic: args.tag,
        path: args.path,
        since: args.since.or_else(|| args.day.clone()),
        until: args.until.or(args.day),
        limit: Some(args.limit),
        cursor: args.cursor,
    };
    let output = list_memories::run(engine, caller, args).await?;
    let now = engine.now();
    out.view(&output, |screen| page(&output, screen, now))
}

fn page(output: &Output, screen: Screen, now: Millis) -> Page {
    let mut page = Page::new(screen, now);
    page.incomplete(&output.notices);
    for memory in &output.memories {
        let line = line(&page, memory);
        page.line(0, line);
    }
    if output.memories.is_empty() {
        page.line(0, [Span::new(Style::Plain, partial::nothing(&output.notices, "Nothing to list."))]);
    }
    if let Some(cursor) = &output.next_cursor {
        page.gap();
        page.line(0, [Span::new(Style::Faint, format!("More: --cursor {cursor}"))]);
    }
    page.notices(&output.notices);
    page
}

/// Returns the line of a memory: its id, its time, its kind, who said it, and how it begins.
fn line(page: &Page, memory: &Listed) -> Vec<Span> {
    let faint = |text: String| Span::new(Style::Faint, text);
    let sha = memory.source_id.as_deref().filter(|_| memory.kind == "commit");
    let id = sha.map_or(memory.id.as_str(), |sha| short_sha(sha));
    let mut line = vec![
        Span::new(Style::Id, format!("{id:14}")),
        faint(format!("  {}  ", page.when(&memory.time))),
        Span::new(Style::Strong, &memory.kind),
    ];
    line.extend(memory.important.then(|| Span::new(Style::Match, " important")));
    line.extend(memory.speaker.iter().map(|speaker| Span::new(Style::Name, format!(" {speaker}"))));
    line.extend(memory.author.as_deref().map(shared_by));
    if let (Some(session), Some(number)) = (&memory.session_id, memory.number) {
        line.push(faint(format!(" in {session}#{number}")));
    }
    line.extend(memory.topic.iter().map(|topic| faint(format!(" [{topic}]"))));
    line.extend(memory.is_owners.then(|| faint(" · all projects".to_owned())));
    line.extend(memory.superseded.as_ref().map(|superseded| faint(format!(" · {}", superseded.sentence()))));
    line.push(Span::new(Style::Plain, format!(": {}", memory.line)));
    line
}
