//! `tiro why`: says why lines of a file are as they are.

use std::process::ExitCode;

use super::show::shared_by;
use crate::cli::print::Out;
use crate::cli::progress::waiting;
use crate::cli::terminal::{Page, Screen, Span, Style};
use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_base::memory::Millis;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_tools::common::short_sha;
use tiro_tools::memory::explain_lines::{self, Explained, Output, Reason};

/// The arguments of `tiro why`.
#[derive(clap::Args)]
pub struct Args {
    /// The file, and the lines that are meant: src/a.rs, src/a.rs:12 or src/a.rs:12-20
    #[arg(value_name = "FILE[:LINE[-LINE]]")]
    place: String,
    /// The commit, branch or tag whose version of the file is meant
    #[arg(long)]
    rev: Option<String>,
    /// The most tokens that the answer may have
    #[arg(long, default_value_t = 6000)]
    max_tokens: usize,
}

/// Finds the origins of the lines and prints them with their reasons.
pub async fn run(engine: &Engine, caller: &Caller, args: Args, out: Out) -> Result<ExitCode> {
    let args = explain_lines::Args {
        path: args.place,
        lines: None,
        rev: args.rev,
        max_tokens: Some(args.max_tokens),
    };
    let spinner = waiting("Reading the history");
    let output = explain_lines::run(engine, caller, args).await;
    spinner.finish_and_clear();
    let output = output?;
    let now = engine.now();
    out.view(&output, |screen| page(&output, screen, now))
}

fn page(output: &Output, screen: Screen, now: Millis) -> Page {
    let mut page = Page::new(screen, now);
    page.incomplete(&output.notices);
    for group in &output.groups {
        page.gap();
        add_group(&mut page, group);
    }
    if !output.others.is_empty() {
        page.gap();
        page.line(0, [Span::new(Style::Strong, "Also said about these lines")]);
    }
    for other in &output.others {
        page.text(2, Style::Plain, &other.text);
        let mut source = vec![
            Span::new(Style::Faint, format!("{}, {}  ", other.kind, page.when(&other.time))),
            Span::new(Style::Id, &other.open),
        ];
        source.extend(other.author.as_deref().map(shared_by));
        page.line(2, source);
    }
    page.gap();
    if output.left_out > 0 {
        let groups = counted(output.left_out as i64, "group of lines is", "groups of lines are");
        page.line(
            0,
            [Span::new(
                Style::Faint,
                format!("{groups} left out; ask for fewer lines, or with --max-tokens for more tokens."),
            )],
        );
    }
    page.notices(&output.notices);
    page
}

fn add_group(page: &mut Page, group: &Explained) {
    let Explained { lines, state, commit, subject, author, time, session, title, link, reasons, .. } = group;
    let noun = if lines.contains(['-', ',']) { "lines" } else { "line" };
    let mut heading = vec![Span::new(Style::Strong, format!("{noun} {lines}  "))];
    match (*state, commit) {
        ("committed" | "older", Some(sha)) => {
            heading.push(Span::new(Style::Id, short_sha(sha)));
            let about = [author.clone(), time.as_deref().map(|time| page.when(time))];
            let about: Vec<String> = about.into_iter().flatten().collect();
            heading.push(Span::new(Style::Faint, format!("  {}", about.join(", "))));
        }
        ("uncommitted", _) => heading.push(Span::new(Style::Faint, "not committed yet")),
        _ => heading.push(Span::new(Style::Faint, "the commit was not found")),
    }
    page.line(0, heading);
    if let Some(subject) = subject.as_deref().filter(|subject| !subject.is_empty()) {
        page.text(2, Style::Faint, subject);
    }
    if *state == "older" {
        page.text(2, Style::Faint, "This shallow clone ends at the commit; the line may be older.");
    }
    for reason in reasons {
        add_reason(page, reason);
    }
    if reasons.is_empty() {
        page.text(2, Style::Strong, "Why is not known.");
    }
    let session = session.as_ref().map(|session| match title {
        Some(title) => format!("session {session} \"{title}\": "),
        None => format!("session {session}: "),
    });
    page.text(2, Style::Faint, &format!("{}{link}", session.unwrap_or_default()));
}

fn add_reason(page: &mut Page, reason: &Reason) {
    let Reason { part, text, speaker, author, time, open, superseded } = reason;
    page.text(2, Style::Plain, &format!("{part}: {text}"));
    let mut source = vec![Span::new(Style::Faint, "  ")];
    if let Some(speaker) = speaker {
        source.push(Span::new(Style::Name, format!("{speaker}, ")));
    }
    source.push(Span::new(Style::Faint, page.when(time)));
    source.extend(author.as_deref().map(shared_by));
    if *part != "committed" {
        source.push(Span::new(Style::Id, format!("  {open}")));
    }
    if let Some(by) = superseded {
        source.push(Span::new(Style::Strong, format!("  superseded by {by}")));
    }
    page.line(2, source);
}
