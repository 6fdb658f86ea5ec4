//! `tiro show`: shows a memory, a commit, a conversation or a summary, with the memories linked to it.

use std::process::ExitCode;

use crate::cli::print::Out;
use crate::cli::terminal::{Page, Screen, Span, Style, number};
use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_base::memory::{Millis, marked};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::summaries::levels::Depth;
use tiro_tools::common::short_sha;
use tiro_tools::consult::show_thread;
use tiro_tools::memory::beside::linked::{self, Linked};
use tiro_tools::memory::expand_detail;
use tiro_tools::memory::hits::SupersededBy;
use tiro_tools::memory::named;
use tiro_tools::memory::show::{self, Brief, Conversation, Opened, Output};

/// The arguments of `tiro show`.
#[derive(clap::Args)]
pub struct Args {
    /// An id or its beginning, SESSION#NUMBER, a commit (seven or more digits of its id, HEAD, a branch or a tag), the
    /// name, its beginning or the title of a session, a thread (SESSION@ASSISTANT), or a quarter
    id: String,
    /// Show all messages of a conversation or of a summary; the same as --level messages
    #[arg(long, conflicts_with = "level")]
    messages: bool,
    /// The level of detail
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// Show one level less of detail: for a message, the summary of its part of the conversation
    #[arg(long)]
    collapse: bool,
    /// Show only what is about this topic
    #[arg(long)]
    focus: Option<String>,
    /// Show N messages before the memory, 0 to 20
    #[arg(long, value_name = "N")]
    before: Option<usize>,
    /// Show N messages after the memory, 0 to 20
    #[arg(long, value_name = "N")]
    after: Option<usize>,
    /// In a conversation, the number of the first message to show
    #[arg(long, value_name = "N")]
    from: Option<i64>,
    /// In a conversation, the number of the last message to show
    #[arg(long, value_name = "N")]
    to: Option<i64>,
    /// Continue at this cursor of the last answer
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Level {
    Brief,
    Standard,
    Detailed,
    Messages,
}

/// Finds the memory or conversation and prints it.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let Args { id, messages, level, collapse, focus, before, after, from, to, cursor } = args;
    let mut no_thread = None;
    if let Some((session, assistant)) = show_thread::parse(&id) {
        match show_thread::run(engine, caller, session, assistant).await {
            Ok(output) => return out.answer(&output, &output.text()),
            // The name or title of a session may also have an `@`.
            Err(error) => no_thread = Some(error),
        }
    }
    let level = level.or(messages.then_some(Level::Messages)).map(|level| match level {
        Level::Brief => Depth::Brief,
        Level::Standard => Depth::Standard,
        Level::Detailed => Depth::Detailed,
        Level::Messages => Depth::Messages,
    });
    let id = named::in_full(engine, caller, &id).await?;
    let args = show::Args { id, level, collapse, focus, before, after, from, to, cursor };
    let output = show::run(engine, caller, args).await.map_err(|error| no_thread.unwrap_or(error))?;
    let now = engine.now();
    out.view(&output, |screen| page(&output, screen, now))
}

/// Returns the page of what was found.
pub fn page(output: &Output, screen: Screen, now: Millis) -> Page {
    match output {
        Output::Memory(opened) => memory(opened, screen, now),
        Output::Session(shown) => session(shown, screen, now),
    }
}

/// Returns the page of a memory.
fn memory(opened: &Opened, screen: Screen, now: Millis) -> Page {
    let detail = &opened.detail;
    let mut page = Page::new(screen, now);
    let mut heading = match (detail.kind.as_str(), &detail.source_id) {
        ("commit", Some(sha)) => {
            vec![Span::new(Style::Strong, "commit "), Span::new(Style::Id, sha)]
        }
        (kind, _) => vec![Span::new(Style::Strong, format!("{kind} ")), Span::new(Style::Id, &detail.id)],
    };
    if opened.important {
        heading.push(Span::new(Style::Strong, " · important"));
    }
    page.line(0, heading);
    fields(&mut page, opened);
    page.gap();
    page.text(3, Style::Plain, &marked(detail.text.clone(), detail.is_damaged));
    if let Some(cursor) = &detail.next_cursor {
        page.line(0, [Span::new(Style::Faint, format!("More of the text: --cursor {cursor}"))]);
    }
    neighbours(&mut page, detail);
    links(&mut page, &detail.linked);
    list(&mut page, "replaced", &opened.supersedes);
    list(&mut page, "refers to", &opened.refers_to);
    list(&mut page, "referred to by", &opened.referred_to_by);
    if !detail.notices.is_empty() {
        page.gap();
    }
    page.notices(&detail.notices);
    page
}

/// Adds a line for each property of a memory.
fn fields(page: &mut Page, opened: &Opened) {
    let detail = &opened.detail;
    let origin = match (&detail.session_id, opened.number) {
        (Some(session), Some(number)) => Some(format!("{session}#{number}")),
        (session, _) => session.clone(),
    };
    let is_commit = detail.kind == "commit";
    let fields = [
        ("id", Some(detail.id.clone()).filter(|_| is_commit), Style::Id),
        ("by", opened.speaker.clone(), Style::Name),
        ("state", detail.superseded.as_ref().map(SupersededBy::sentence), Style::Match),
        ("shared", detail.author.as_ref().map(|author| format!("by {author}")), Style::Name),
        ("when", Some(page.at(&detail.time)), Style::Plain),
        ("session", origin, Style::Id),
        ("branch", opened.branch.clone(), Style::Plain),
        ("file", opened.path.clone(), Style::Plain),
        ("topic", opened.topic.clone(), Style::Plain),
        ("for", opened.is_owners.then(|| "all your projects".to_owned()), Style::Plain),
        ("from", Some(detail.provenance.replace('_', " ")), Style::Plain),
        ("size", Some(counted(detail.tokens, "token", "tokens")), Style::Plain),
    ];
    for (name, value, style) in fields {
        if let Some(value) = value {
            page.line(0, [Span::new(Style::Faint, format!("{name:8}")), Span::new(style, value)]);
        }
    }
}

/// Adds the messages before and after a memory, if there are any.
fn neighbours(page: &mut Page, detail: &expand_detail::Output) {
    if !detail.neighbours.is_empty() {
        heading_of(page, "before and after");
    }
    for neighbour in &detail.neighbours {
        let speaker = neighbour.speaker.as_deref().unwrap_or("?");
        let mut line = vec![Span::new(Style::Name, speaker)];
        line.extend(neighbour.author.as_deref().map(shared_by));
        line.extend([Span::new(Style::Plain, " "), Span::new(Style::Id, &neighbour.id)]);
        page.line(1, line);
        page.text(3, Style::Plain, &neighbour.text);
    }
    if detail.dropped > 0 {
        let dropped = counted(detail.dropped, "neighbour", "neighbours");
        page.line(0, [Span::new(Style::Faint, format!("{dropped} omitted: too long"))]);
    }
}

/// Adds the sessions in which a commit was made, or the commits to which a session led.
fn links(page: &mut Page, all: &[Linked]) {
    for (kind, name) in [("session", "made in"), ("commit", "led to")] {
        let linked: Vec<&Linked> = all.iter().filter(|linked| linked.kind == kind).collect();
        if linked.is_empty() {
            continue;
        }
        heading_of(page, name);
        for linked in linked {
            let what = if kind == "session" { &linked.name } else { &linked.open };
            let mut line = vec![Span::new(Style::Id, what)];
            line.extend(linked.title.as_ref().map(|title| Span::new(Style::Plain, format!("  {title}"))));
            let certainty = format!("  {}{}", page.day(&linked.date), sure(linked.confidence));
            line.push(Span::new(Style::Faint, certainty));
            line.extend(linked.more.map(|more| Span::new(Style::Faint, format!("  and {more} more"))));
            page.line(1, line);
        }
    }
}

/// Returns the page of a conversation.
fn session(shown: &Conversation, screen: Screen, now: Millis) -> Page {
    let mut page = Page::new(screen, now);
    page.line(0, [Span::new(Style::Strong, "session "), Span::new(Style::Id, &shown.session_id)]);
    let size = format!(
        "{}, {} tokens",
        counted(shown.messages as u64, "message", "messages"),
        number(shown.tokens as u64)
    );
    let fields = [
        ("title", shown.title.clone(), Style::Strong),
        ("shared", shown.author.as_ref().map(|author| format!("by {author}")), Style::Name),
        ("held in", shown.client.clone(), Style::Plain),
        ("began", Some(page.at(&shown.first)), Style::Plain),
        ("ended", Some(page.at(&shown.last)), Style::Plain),
        ("branch", shown.branch.clone(), Style::Plain),
        ("size", Some(size), Style::Plain),
    ];
    for (name, value, style) in fields {
        if let Some(value) = value {
            page.line(0, [Span::new(Style::Faint, format!("{name:8}")), Span::new(style, value)]);
        }
    }
    if let Some(summary) = &shown.summary {
        page.gap();
        page.text(3, Style::Plain, summary);
    }
    list(&mut page, "commits", &shown.commits);
    if !shown.said.is_empty() {
        page.gap();
    }
    for said in &shown.said {
        let when = page.when(&said.time);
        let number = Span::new(Style::Id, format!("#{} ", said.number));
        let mut line = vec![number, Span::new(Style::Name, &said.speaker)];
        line.extend(said.author.as_deref().map(shared_by));
        line.push(Span::new(Style::Faint, format!(" · {when}")));
        page.line(0, line);
        page.text(3, Style::Plain, &said.text);
    }
    if shown.said.is_empty() && shown.messages > 0 {
        page.gap();
        page.line(0, [Span::new(Style::Faint, "All messages: --messages")]);
    }
    page.notices(&shown.notices);
    page
}

/// Returns the name of the person who shared a memory, as it stands in a heading.
pub(super) fn shared_by(author: &str) -> Span {
    Span::new(Style::Name, format!(" · shared by {author}"))
}

fn heading_of(page: &mut Page, name: &str) {
    page.gap();
    page.line(0, [Span::new(Style::Strong, name)]);
}

/// Returns the confidence of a link in the form ` (62% sure)`, or an empty text if the link is almost certain.
pub(super) fn sure(confidence: f64) -> String {
    match linked::sure(confidence).trim_start_matches(", ") {
        "" => String::new(),
        sure => format!(" ({sure})"),
    }
}

/// Adds a heading and a line for each of `briefs`, if there are any.
fn list(page: &mut Page, name: &str, briefs: &[Brief]) {
    if briefs.is_empty() {
        return;
    }
    heading_of(page, name);
    for brief in briefs {
        let is_commit = brief.kind == "commit";
        let sha = brief.source_id.as_ref().filter(|_| is_commit);
        let id = sha.map_or(brief.id.as_str(), |sha| short_sha(sha));
        let when = page.when(&brief.time);
        let mut line = vec![Span::new(Style::Plain, format!("{} ", brief.kind)), Span::new(Style::Id, id)];
        line.extend(brief.author.as_deref().map(shared_by));
        line.push(Span::new(Style::Faint, format!(" · {when}  ")));
        line.push(Span::new(Style::Plain, &brief.line));
        page.line(1, line);
    }
}
