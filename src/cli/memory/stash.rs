//! `tiro stash`: shows the stash, searches it, and restores segments.

use std::process::ExitCode;

use crate::cli::print::Out;
use crate::cli::terminal::{Marks, Page, Screen, Span, Style, number};
use tiro_base::error::{Result, partial};
use tiro_base::humanize::counted;
use tiro_base::memory::Millis;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;
use tiro_tools::memory::authors::by;
use tiro_tools::memory::named;
use tiro_tools::stash::retrieve_stashed_context::{self as retrieve, Filters};
use tiro_tools::stash::{export_stash, merge_stashed_context as merge};

/// The arguments of `tiro stash`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List what is stashed, by topic and session
    List {
        #[command(flatten)]
        only: Only,
        /// Continue at this cursor of the last answer
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Search the stash
    Search {
        /// A question or keywords
        #[arg(required = true)]
        query: Vec<String>,
        /// Number of segments, 1 to 50
        #[arg(short, long, default_value_t = 5)]
        k: usize,
        /// Find only segments whose meaning is at least this similar, 0 to 1
        #[arg(long)]
        min_similarity: Option<f64>,
        #[command(flatten)]
        only: Only,
    },
    /// Print segments in full, and bring messages back into their conversation's context
    Restore {
        /// Ids, SESSION#3 for a message, or SESSION#0-49 for a range of messages
        #[arg(required = true)]
        ids: Vec<String>,
        /// Take the segments out of the stash
        #[arg(long)]
        remove: bool,
    },
    /// Print every segment, one JSON object per line
    Export,
}

#[derive(clap::Args)]
struct Only {
    /// Only segments of this type, such as decision or error_log
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only segments with this topic
    #[arg(long, visible_alias = "tag")]
    topic: Option<String>,
    /// Only segments of this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Only segments of this file
    #[arg(long)]
    source: Option<String>,
    /// Only segments from this time on, such as 2026-03-01, yesterday, monday, 2026-03 or 7d
    #[arg(long)]
    since: Option<String>,
    /// Only segments up to this time; a day or month is included
    #[arg(long)]
    until: Option<String>,
}

impl Only {
    async fn filters(self, engine: &Engine, caller: &Caller) -> Result<Option<Filters>> {
        let Only { kind, topic, session, source, since, until } = self;
        let session_id = named::optional_session(engine, caller, session).await?;
        Ok(Some(Filters { kind, topic, session_id, start_time: since, end_time: until, source }))
    }
}

/// Runs the subcommand.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let now = engine.now();
    match args.action {
        Action::List { only, cursor } => {
            let args = retrieve::Args {
                filters: only.filters(engine, caller).await?,
                cursor,
                ..retrieve::Args::default()
            };
            let output = retrieve::run(engine, caller, args).await?;
            out.view(&output, |screen| list(&output, screen, now))
        }
        Action::Search { query, k, min_similarity, only } => {
            let query = query.join(" ");
            let marks = Marks::of(&query);
            let args = retrieve::Args {
                query: Some(query),
                top_k: Some(k),
                min_similarity,
                filters: only.filters(engine, caller).await?,
                ..retrieve::Args::default()
            };
            let output = retrieve::run(engine, caller, args).await?;
            out.view(&output, |screen| hits(&output, &marks, screen, now))
        }
        Action::Restore { ids, remove } => {
            let ids = named::all_in_full(engine, caller, &ids).await?;
            let output = merge::restore(engine, caller, &ids, !remove).await?;
            out.view(&output, |screen| restored(&output, screen, now))
        }
        Action::Export => {
            let line = |segment: &_| serde_json::to_string(segment).expect("a segment is plain values");
            let out = Out { json: true };
            export_stash::run(engine, caller, |segment| out.line(&line(segment))).await?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn faint(text: impl Into<String>) -> Span {
    Span::new(Style::Faint, text.into())
}

fn list(found: &retrieve::Output, screen: Screen, now: Millis) -> Page {
    let mut page = Page::new(screen, now);
    page.incomplete(&found.notices);
    for group in &found.groups {
        page.gap();
        let topic = group.topic.as_deref().unwrap_or("(no topic)");
        let session = group.session_id.as_deref().map_or(String::new(), |name| format!("  session {name}"));
        let size =
            format!("  {}, {} tokens", counted(group.segments, "segment", "segments"), number(group.tokens));
        let when = format!("  {}", page.when(&group.last_stashed));
        page.line(0, [Span::new(Style::Strong, topic), faint(session), faint(size), faint(when)]);
        for example in &group.examples {
            page.line(3, [faint(format!("{}  ", example.id)), Span::new(Style::Plain, &example.text)]);
        }
    }
    page.gap();
    if found.total_found == 0 {
        page.line(0, [Span::new(Style::Plain, partial::nothing(&found.notices, "The stash is empty."))]);
    }
    if let Some(cursor) = &found.next_cursor {
        page.line(0, [faint(format!("More: --cursor {cursor}"))]);
    }
    page.notices(&found.notices);
    page
}

fn hits(found: &retrieve::Output, marks: &Marks, screen: Screen, now: Millis) -> Page {
    let mut page = Page::new(screen, now);
    page.incomplete(&found.notices);
    for segment in &found.segments {
        page.gap();
        let when = page.when(&segment.time);
        let session = match (&segment.session_id, segment.number) {
            (Some(session), Some(number)) => format!("  {session}#{number}"),
            (Some(session), None) => format!("  session {session}"),
            (None, _) => String::new(),
        };
        let more = [&segment.topic, &segment.source];
        let more: String = more.into_iter().flatten().map(|text| format!("  {text}")).collect();
        let size = format!("  {} tokens", number(segment.tokens));
        let id = Span::new(Style::Strong, &segment.id);
        let by = by(segment.author.as_deref());
        page.line(0, [id, faint(format!("  {}{by}{session}{more}  {when}{size}", segment.kind))]);
        page.marked(3, &segment.text, marks);
        for (what, ids) in [("refers to", &segment.references), ("referenced by", &segment.referenced_by)] {
            if !ids.is_empty() {
                page.line(3, [faint(format!("{what} {}", ids.join(", ")))]);
            }
        }
    }
    page.gap();
    match found.segments.first() {
        None => page.line(
            0,
            [Span::new(Style::Plain, partial::nothing(&found.notices, "Nothing in the stash fits."))],
        ),
        Some(first) => page.line(0, [faint(format!("In full: tiro stash restore {}", first.id))]),
    }
    page.notices(&found.notices);
    page
}

fn restored(merged: &merge::Output, screen: Screen, now: Millis) -> Page {
    let mut page = Page::new(screen, now);
    for segment in &merged.segments {
        page.gap();
        let when = page.when(&segment.time);
        let number = segment.number.map_or(String::new(), |number| format!("#{number}"));
        let session = segment.session_id.as_deref().unwrap_or_default();
        let who = segment.speaker.as_deref().unwrap_or_default();
        let id = Span::new(Style::Strong, &segment.id);
        let by = by(segment.author.as_deref());
        page.line(0, [id, faint(format!("  {} {who}{by} {session}{number}  {when}", segment.kind))]);
        page.marked(3, &segment.text, &Marks::of(""));
    }
    page.gap();
    for (pairs, what) in [(&merged.duplicates, "has the text of"), (&merged.conflicts, "is older than")] {
        for pair in pairs {
            page.line(0, [faint(format!("{} {what} {}", pair.id, pair.shown))]);
        }
    }
    page.notices(&merged.notices);
    page
}
