//! `tiro context`: prints the context that an agent gets to answer a question.

use std::process::ExitCode;

use crate::cli::print::Out;
use crate::cli::terminal::{Marks, Page, Screen, Span, Style};
use tiro_base::envelope;
use tiro_base::error::{Result, partial};
use tiro_base::memory::Millis;
use tiro_host::assembly::IncludeLevel;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::context::retrieve_context as context;
use tiro_tools::memory::named;

/// The arguments of `tiro context`.
#[derive(clap::Args)]
pub struct Args {
    /// The question
    #[arg(required = true)]
    query: Vec<String>,
    /// Use this conversation [default: all]
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Use only these conversations
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    sessions: Vec<String>,
    /// Use nothing from before this time, such as 2026-03-01, yesterday, monday, 2026-03 or 7d
    #[arg(long)]
    since: Option<String>,
    /// Use nothing from after this time; a day or month is included
    #[arg(long)]
    until: Option<String>,
    /// Build the context from summaries (summary), from messages (full) or from both (mixed)
    #[arg(long, value_parser = level, default_value = "mixed")]
    level: IncludeLevel,
    /// The most tokens that the answer may have
    #[arg(long)]
    max_tokens: Option<usize>,
}

fn level(word: &str) -> Result<IncludeLevel, String> {
    match word {
        "summary" => Ok(IncludeLevel::Summary),
        "mixed" => Ok(IncludeLevel::Mixed),
        "full" => Ok(IncludeLevel::Full),
        _ => Err("expected summary, mixed or full".into()),
    }
}

/// Assembles and prints the context.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args, out: Out) -> Result<ExitCode> {
    let range = context::TimeRange { start: args.since, end: args.until };
    let session = named::optional_session(engine, caller, args.session).await?;
    let sessions = named::sessions_in_full(engine, caller, &args.sessions).await?;
    let args = context::Args {
        query: args.query.join(" "),
        session_id: session,
        conversation_ids: Some(sessions),
        time_range: Some(range),
        include_level: Some(args.level),
        max_tokens: args.max_tokens,
    };
    let marks = Marks::of(&args.query);
    let output = context::run(engine, caller, args).await?;
    if let Err(error) = caller.keep_measurements(engine).await {
        tracing::debug!("measurements not stored: {error}");
    }
    let now = engine.now();
    out.view(&output, |screen| page(&output, &marks, screen, now))
}

/// Returns the page of the context. The page shows the number of tokens, and the text without envelopes, which only
/// models need.
fn page(context: &context::Output, marks: &Marks, screen: Screen, now: Millis) -> Page {
    let mut page = Page::new(screen, now);
    page.incomplete(&context.notices);
    for line in envelope::within(&context.context) {
        match line.strip_prefix('#').and_then(|rest| rest.split_once(": ")) {
            Some((speaker, text)) if envelope::is_frame(line) => {
                let mut spans = vec![Span::new(Style::Name, format!("#{speaker}: "))];
                spans.extend(marks.spans(text));
                page.line(0, spans);
            }
            _ if envelope::is_frame(line) => {
                let (head, text) = line.split_once(']').map_or((line, ""), |(head, text)| (head, text));
                let mut spans = vec![Span::new(Style::Strong, format!("{head}]"))];
                spans.extend(marks.spans(text));
                page.line(0, spans);
            }
            _ if line.is_empty() => page.line(0, []),
            _ => page.marked(3, line, marks),
        }
    }
    if context.context.is_empty() {
        let nothing = partial::nothing(&context.notices, "Nothing is remembered about this.");
        page.line(0, [Span::new(Style::Plain, nothing)]);
    }
    page.gap();
    let listed = |counts: &std::collections::BTreeMap<String, usize>| {
        counts.iter().map(|(part, count)| format!("{part} {count}")).collect::<Vec<_>>().join(", ")
    };
    let mut cost =
        format!("Took {} of {} tokens: {}", context.tokens_used, context.budget, listed(&context.parts));
    if !context.dropped.is_empty() {
        cost += &format!("; left out: {}", listed(&context.dropped));
    }
    page.line(0, [Span::new(Style::Faint, cost)]);
    page.line(0, [Span::new(Style::Faint, "`tiro show SESSION#NUMBER` opens a message.")]);
    if context.pending > 0 {
        let pending = format!("Pieces or conversations not embedded or summarised yet: {}.", context.pending);
        page.line(0, [Span::new(Style::Faint, pending)]);
    }
    page.notices(&context.notices);
    page
}
