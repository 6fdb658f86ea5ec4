//! A session: what it was about, what came of it, and what was said.
//!
//! Messages are shown in pages. Calls of tools are folded, since a person reads what was said first. A long message is
//! cut; its own page has the whole text.

use maud::{Markup, html};

use crate::pages::layout::{View, line, properties, shared_by, to_memory, when};
use crate::pages::request::{Request, address};
use crate::pages::text::{LONGEST, markdown, plain, verbatim};
use crate::pages::views::memory::briefs;
use tiro_base::error::{Kind, Result};
use tiro_base::humanize::{counted, thousands};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_text::words::Marks;
use tiro_tools::consult::describe_session::{self, Described};
use tiro_tools::context::summarize_conversation::{self as summarize, Detail};
use tiro_tools::memory::list_memories::{self, Listed};
use tiro_tools::memory::show::page::{self, Message, Output};
use tiro_tools::stash::retrieve_stashed_context as stash;

/// The messages of a page.
const PAGE: usize = 50;

/// The most bytes of all messages of a page. The messages after this are shown with their beginnings.
const ROOM: usize = 60 * 1024;

/// The bytes of a message that are shown when there is no more room.
const LITTLE: usize = 300;

/// The most memories of a session that is summarised when it is opened. A longer one is summarised when one asks.
const SUMMARISED: i64 = 300;

/// What was noted in a session: the kinds that are listed.
const NOTED: [&str; 5] = ["decision", "fact", "finding", "preference", "task_state"];

/// The levels of a summary.
const LEVELS: [(&str, &str, Detail); 3] = [
    ("brief", "Brief", Detail::Brief),
    ("standard", "Standard", Detail::Standard),
    ("detailed", "Detailed", Detail::Detailed),
];

/// What a session's page shows.
struct Session {
    page: Output,
    level: &'static str,
    summary: Option<String>,
    noted: Vec<Listed>,
    threads: Vec<Described>,
    stashed: usize,
}

/// Shows a session.
pub async fn show(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<View> {
    let from = request.get("from").and_then(|from| from.parse().ok());
    let args =
        page::Args { session: request.get("id").unwrap_or_default().to_owned(), from, limit: Some(PAGE) };
    let mut page = page::run(engine, caller, args).await?;
    let id = page.session_id.clone();
    let is_first = page.previous.is_none();
    let level = LEVELS.iter().find(|(name, ..)| request.get("level") == Some(name));
    let is_asked = level.is_some();
    let (level, _, detail) = level.unwrap_or(&LEVELS[0]);
    let mut summary = None;
    if is_first && (is_asked || page.memories <= SUMMARISED) && !page.messages.is_empty() {
        // The pages send nothing to a model.
        let args = summarize::Args {
            session_id: id.clone(),
            level: Some(*detail),
            use_provider: Some(false),
            ..summarize::Args::default()
        };
        let made = summarize::run(engine, caller, args).await?;
        page.notices.extend(made.notices);
        summary = Some(made.summary);
    }
    let (mut noted, mut threads, mut stashed) = (Vec::new(), Vec::new(), 0);
    if is_first {
        let args = list_memories::Args {
            kinds: NOTED.map(str::to_owned).to_vec(),
            sessions: vec![id.clone()],
            limit: Some(40),
            ..list_memories::Args::default()
        };
        noted = list_memories::run(engine, caller, args).await?.memories;
        threads = threads_of(engine, caller, &id).await?;
        stashed = stashed_of(engine, caller, &id).await?;
    }
    let notices = std::mem::take(&mut page.notices);
    let title = page.title.clone().unwrap_or_else(|| id.clone());
    let session = Session { page, level, summary, noted, threads, stashed };
    Ok(View::new("/timeline", title, body(&session)).with_notices(notices))
}

async fn threads_of(engine: &Engine, caller: &WritingCaller, id: &str) -> Result<Vec<Described>> {
    let args = describe_session::Args { session_id: Some(id.to_owned()) };
    match describe_session::run(engine, caller, args).await {
        Ok(found) => Ok(found.threads),
        // Most sessions have no thread.
        Err(error) if matches!(error.kind(), Kind::NotFound | Kind::BadInput) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

async fn stashed_of(engine: &Engine, caller: &WritingCaller, id: &str) -> Result<usize> {
    let filters = stash::Filters { session_id: Some(id.to_owned()), ..stash::Filters::default() };
    let args = stash::Args { filters: Some(filters), ..stash::Args::default() };
    Ok(stash::run(engine, caller, args).await?.total_found)
}

fn body(session: &Session) -> Markup {
    let Session { page, noted, threads, stashed, .. } = session;
    let id = page.session_id.as_str();
    html! {
        h1 { (plain(page.title.as_deref().unwrap_or(id))) }
        @if page.previous.is_none() {
            (about(page))
            (summary(session))
            @if !noted.is_empty() {
                section aria-label="What was noted" {
                    h2 { "Decisions and other notes" }
                    ul.links {
                        @for memory in noted {
                            li {
                                (to_memory(&memory.id, &memory.line))
                                span.about { (plain(&memory.kind.replace('_', " "))) ", " (when(&memory.time)) }
                            }
                        }
                    }
                }
            }
            (briefs("Commits that it led to", &page.commits))
            @if !threads.is_empty() {
                section aria-label="Threads" {
                    h2 { "Threads with assistants" }
                    ul.links { @for thread in threads { li { (super::threads::to_thread(thread)) } } }
                }
            }
            @if *stashed > 0 {
                p {
                    a href=(address("/stash", &[("session", id)])) {
                        (counted(*stashed, "segment of it is", "segments of it are")) " stashed"
                    }
                }
            }
        }
        section aria-labelledby="messages" {
            h2 id="messages" { "What was said" }
            (pager(page))
            @if page.messages.is_empty() { p.none { "No messages." } }
            (messages(&page.messages))
            (pager(page))
        }
    }
}

fn about(page: &Output) -> Markup {
    let text = |text: &Option<String>| text.as_deref().map(|text| html! { (plain(text)) });
    let client = match page.headless {
        true => Some(html! { (plain(page.client.as_deref().unwrap_or_default())) ", run by a script" }),
        false => text(&page.client),
    };
    properties(&[
        ("Held in", client),
        ("Began", Some(when(&page.first))),
        ("Ended", Some(when(&page.last))),
        ("Branch", text(&page.branch)),
        (
            "Size",
            Some(html! {
                (counted(page.memories, "memory", "memories")) ", "
                (thousands(page.tokens.unsigned_abs())) " tokens"
            }),
        ),
        ("Name", Some(html! { code { (plain(&page.session_id)) } })),
    ])
}

/// Returns what the session was about: the account of requests and outcomes, and a summary at the chosen level.
fn summary(session: &Session) -> Markup {
    let Session { page, level, summary, .. } = session;
    let none = Marks::default();
    html! {
        @if let Some(account) = &page.account {
            section aria-label="Goal and outcome" {
                h2 { "Goal, outcome, what is open" }
                ul.account { @for said in account.lines().filter(|line| !line.trim().is_empty()) { li { (line(said, &none)) } } }
            }
        }
        section aria-labelledby="summary" {
            h2 id="summary" { "Summary" }
            ul.tabs {
                @for (name, title, _) in LEVELS {
                    @let is_shown = summary.is_some() && name == *level;
                    li {
                        a href=(address("/session", &[("id", &page.session_id), ("level", name)]))
                            aria-current=[is_shown.then_some("true")] { (title) }
                    }
                }
            }
            @match summary {
                Some(summary) => (markdown(summary, &none)),
                None => p.none { "This session is long. Choose a level to summarise it." },
            }
        }
    }
}

fn pager(page: &Output) -> Markup {
    let to = |from: i64| {
        format!("{}#messages", address("/session", &[("id", &page.session_id), ("from", &from.to_string())]))
    };
    html! {
        @if page.previous.is_some() || page.next.is_some() {
            p.pager {
                @if let Some(from) = page.previous { a rel="prev" href=(to(from)) { "Earlier" } }
                @if let (Some(first), Some(last)) = (page.messages.first(), page.messages.last()) {
                    span { "Messages " (first.number) " to " (last.number) }
                }
                @if let Some(from) = page.next { a rel="next" href=(to(from)) { "Later" } }
            }
        }
    }
}

fn messages(all: &[Message]) -> Markup {
    let mut room = ROOM;
    html! {
        @for message in all {
            @let most = if room > LITTLE { room.min(LONGEST) } else { LITTLE };
            @let text = &message.text[..message.text.floor_char_boundary(most)];
            ({ room = room.saturating_sub(text.len()); one(message, text) })
        }
    }
}

fn one(message: &Message, text: &str) -> Markup {
    let none = Marks::default();
    let is_tool = message.role.as_deref() == Some("tool");
    let class = message.role.as_deref().unwrap_or_default();
    let is_cut = text.len() < message.text.len();
    html! {
        article.message.tool[is_tool].user[class == "user"] id=(format!("m{}", message.number)) {
            @if is_tool {
                details {
                    summary { span.speaker { (plain(&message.speaker)) } " " span.first { (line(first(text, &message.speaker), &none)) } }
                    (verbatim(text, &none))
                    @if is_cut { p { (to_memory(&message.id, "Whole text")) } }
                    p.about { (to_memory(&message.id, &format!("message {}", message.number))) (when(&message.time)) }
                }
            } @else {
                p.speaker {
                    (plain(&message.speaker)) (shared_by(message.author.as_deref()))
                    @if message.important { " " span.badge { "important" } }
                }
                (markdown(text, &none))
                @if is_cut { p { (to_memory(&message.id, "Whole text")) } }
                @if let Some(superseded) = &message.superseded {
                    p.warn {
                        @if let Some(statement) = &superseded.statement { "“" (plain(statement)) "” is superseded" }
                        @else { "Superseded" }
                        " by " (to_memory(&superseded.by, "a later memory")) " of " (plain(&superseded.date)) "."
                    }
                }
                p.about { (to_memory(&message.id, &format!("message {}", message.number))) (when(&message.time)) }
            }
        }
    }
}

/// Returns the beginning of a text, for the line that opens it, without the name of the tool.
fn first<'t>(text: &'t str, tool: &str) -> &'t str {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line = line.strip_prefix(tool).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(line);
    &line[..line.floor_char_boundary(120)]
}
