//! A memory: its text, its source, its links, and the changes that a person can make to it.
//!
//! An edit stores another memory that supersedes the old one, so the old text stays in the history. Forgetting can be
//! undone. A purge can't, so it asks a second time.

use maud::{Markup, html};

use crate::pages::layout::{View, button, line, properties, shared_by, to_file, to_memory, to_session, when};
use crate::pages::request::{Request, address};
use crate::pages::text::{markdown, plain, verbatim};
use crate::pages::views::search::certainty;
use tiro_base::envelope;
use tiro_base::error::{Error, Result};
use tiro_base::humanize::{counted, thousands};
use tiro_base::memory::marked;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_text::words::Marks;
use tiro_tools::common::short_sha;
use tiro_tools::memory::beside::linked::Linked;
use tiro_tools::memory::show::{self, Brief, Opened, Output};
use tiro_tools::memory::{
    edit_memory::{self, Edited},
    forget_context, mark_important,
};

/// The kinds of notes that a person can edit. What was said or committed stays as it was.
const NOTES: [&str; 7] =
    ["fact", "decision", "finding", "preference", "task_state", "code_block", "error_log"];

/// Shows a memory.
pub async fn show(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<View> {
    let opened = open(engine, caller, request).await?;
    let opened = match opened {
        Output::Memory(opened) => opened,
        Output::Session(session) => {
            return Err(Error::not_found("this is a session, not a memory")
                .hint(format!("search for it, or open the session {}", session.session_id)));
        }
    };
    let title = title(&opened);
    let notices = opened.detail.notices.clone();
    // The form has the text as it is stored, and all of it. What is shown has escapes, and may be a part.
    let text = match NOTES.contains(&opened.detail.kind.as_str()) {
        true => edit_memory::read(engine, caller, &opened.detail.id).await.ok(),
        false => None,
    };
    // A form would change hidden characters.
    let text = text.as_ref().map(Edited::text).filter(|text| envelope::escape(text) == *text);
    Ok(View::new("/search", title, page(&opened, text, request)).with_notices(notices))
}

async fn open(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<Output> {
    let id = request.get("id").unwrap_or_default().to_owned();
    let args = show::Args { id, cursor: request.text("cursor"), ..show::Args::default() };
    show::run(engine, caller, args).await
}

fn title(opened: &Opened) -> String {
    let detail = &opened.detail;
    match (detail.kind.as_str(), &detail.source_id, &opened.speaker) {
        ("commit", Some(sha), _) => format!("Commit {}", short_sha(sha)),
        ("message", _, Some(speaker)) => format!("Message by {speaker}"),
        (kind, ..) => {
            let name = kind.replace('_', " ");
            format!("{}{}", name[..1].to_uppercase(), &name[1..])
        }
    }
}

fn page(opened: &Opened, stored: Option<&str>, request: &Request) -> Markup {
    let detail = &opened.detail;
    let text = marked(detail.text.clone(), detail.is_damaged);
    let is_output =
        detail.provenance == "tool_output" || detail.kind == "error_log" || detail.kind == "code_block";
    let none = Marks::default();
    html! {
        h1 { (plain(&title(opened))) @if opened.important { " " span.badge { "important" } } }
        (about(opened))
        @if let Some(superseded) = &opened.detail.superseded {
            p.warn {
                "Superseded by " (to_memory(&superseded.by, "a later memory")) " of " (plain(&superseded.date)) "."
                @if let Some(statement) = &superseded.statement { " Only this: “" (plain(statement)) "”." }
            }
        }
        div.text { @if is_output { (verbatim(&text, &none)) } @else { (markdown(&text, &none)) } }
        @if let Some(cursor) = &detail.next_cursor {
            p { a.more href=(address("/memory", &[("id", &detail.id), ("cursor", cursor)])) { "The text continues" } }
        }
        (changes(opened, stored, request))
        (links(&detail.linked))
        (briefs("Earlier versions", &opened.supersedes))
        (briefs("It refers to", &opened.refers_to))
        (briefs("What refers to it", &opened.referred_to_by))
        @if !detail.neighbours.is_empty() {
            section aria-labelledby="around" {
                h2 id="around" { "Said before and after" }
                @for neighbour in &detail.neighbours {
                    article.message {
                        p.speaker {
                            (to_memory(&neighbour.id, neighbour.speaker.as_deref().unwrap_or("?")))
                            (shared_by(neighbour.author.as_deref()))
                        }
                        (markdown(crate::pages::text::beginning(&neighbour.text).0, &none))
                    }
                }
            }
        }
    }
}

/// Returns the properties of a memory.
fn about(opened: &Opened) -> Markup {
    let detail = &opened.detail;
    let session = detail.session_id.as_deref().map(|session| {
        html! {
            (to_session(session, None))
            @if let Some(number) = opened.number {
                " "
                a href=(address("/session", &[("id", session), ("from", &number.to_string())])) { "message " (number) }
            }
        }
    });
    let text = |text: &Option<String>| text.as_deref().map(|text| html! { (plain(text)) });
    properties(&[
        ("Title", text(&opened.title)),
        ("By", text(&opened.speaker)),
        ("Shared by", text(&detail.author)),
        ("When", Some(when(&detail.time))),
        ("Session", session),
        ("Branch", text(&opened.branch)),
        ("File", opened.path.as_deref().map(to_file)),
        ("Topic", text(&opened.topic)),
        ("For", opened.is_owners.then(|| html! { "all your projects" })),
        ("Source", Some(html! { (plain(&detail.provenance.replace('_', " "))) })),
        ("Commit or client's id", text(&detail.source_id)),
        ("Size", Some(html! { (thousands(detail.tokens.unsigned_abs())) " tokens" })),
        ("Id", Some(html! { code { (detail.id) } })),
    ])
}

/// Returns the forms that change a memory. `stored` is its whole text, if it can be edited.
fn changes(opened: &Opened, stored: Option<&str>, request: &Request) -> Markup {
    let detail = &opened.detail;
    let id = detail.id.as_str();
    let mark = if opened.important { ("off", "Not important") } else { ("on", "Mark as important") };
    html! {
        section.changes aria-label="Changes" {
            div.row {
                (button(request, "/memory/mark", &[("id", id), ("mark", mark.0)], mark.1, ""))
                (button(request, "/memory/forget", &[("id", id)], "Forget", ""))
                a.button href=(address("/memory/purge", &[("id", id)])) { "Purge…" }
            }
            @if let Some(stored) = stored {
                details {
                    summary { "Edit" }
                    form action="/memory/edit" method="post" {
                        (request.token())
                        input type="hidden" name="id" value=(id);
                        label for="text" { "New text" }
                        textarea id="text" name="text" rows="6" required { "\n" (stored) }
                        p.note { "The new text supersedes the old one, which stays in the history." }
                        button type="submit" { "Store" }
                    }
                }
            }
        }
    }
}

/// Returns the sessions that led to a commit, or the commits that a session led to.
fn links(all: &[Linked]) -> Markup {
    html! {
        @for (kind, name) in [("session", "Made in"), ("commit", "Led to")] {
            @if all.iter().any(|linked| linked.kind == kind) {
                section aria-label=(name) {
                    h2 { (name) }
                    ul.links {
                        @for linked in all.iter().filter(|linked| linked.kind == kind) {
                            li {
                                @if kind == "session" { (to_session(&linked.name, linked.title.as_deref())) }
                                @else { (to_memory(&linked.open, linked.title.as_deref().unwrap_or(&linked.open))) }
                                span.about { (plain(&linked.date)) (certainty(linked.confidence)) }
                                @if kind == "session" { " " (to_memory(&linked.open, "what was said")) }
                                @if let Some(more) = linked.more { span.about { "and " (more) " more" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns a list of memories in one line each.
pub fn briefs(name: &str, all: &[Brief]) -> Markup {
    html! {
        @if !all.is_empty() {
            section aria-label=(name) {
                h2 { (name) }
                ul.links {
                    @for brief in all {
                        li {
                            (to_memory(&brief.id, &brief.line))
                            span.about {
                                (plain(&brief.kind.replace('_', " "))) ", " (when(&brief.time)) " "
                                (shared_by(brief.author.as_deref()))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Stores a new text that supersedes the memory. Returns the address of the new memory.
pub async fn edit(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<String> {
    let edited = edit_memory::read(engine, caller, request.get("id").unwrap_or_default()).await?;
    // Browsers send line ends as two characters.
    let text = request.raw("text").unwrap_or_default().replace("\r\n", "\n");
    let done = edit_memory::run(engine, caller, edited, &text).await?;
    let id = done.stored.map_or(done.id, |stored| stored.id);
    Ok(address("/memory", &[("id", &id)]))
}

/// Marks the memory as important, or removes the mark.
pub async fn mark(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<String> {
    let id = request.get("id").unwrap_or_default().to_owned();
    let important = Some(request.get("mark") != Some("off"));
    let shown = address("/memory", &[("id", &id)]);
    mark_important::run(engine, caller, mark_important::Args { ids: vec![id], important, importance: None })
        .await?;
    Ok(shown)
}

/// Forgets the memory. Returns the address of the page that can undo it.
pub async fn forget(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<String> {
    let args = forget_context::Args { ids: Some(ids(request)), ..forget_context::Args::default() };
    let done = forget_context::run(engine, caller, args).await?;
    let (count, operation) = (done.count.to_string(), done.operation.unwrap_or_default());
    let ids = done.ids.first().filter(|_| done.count == 1).cloned().unwrap_or_default();
    Ok(address("/forgotten", &[("operation", &operation), ("count", &count), ("id", &ids)]))
}

/// Restores what an operation forgot. Returns the address of the memory, if there is only one.
pub async fn undo(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<String> {
    let undo = Some(request.get("operation").unwrap_or("last").to_owned());
    let done =
        forget_context::run(engine, caller, forget_context::Args { undo, ..Default::default() }).await?;
    Ok(match &done.ids[..] {
        [only] => address("/memory", &[("id", only)]),
        _ => "/".to_owned(),
    })
}

/// Removes the memory for good.
pub async fn purge(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<String> {
    let args = forget_context::Args { ids: Some(ids(request)), purge: Some(true), ..Default::default() };
    let done = forget_context::run(engine, caller, args).await?;
    Ok(address("/forgotten", &[("purged", &done.count.to_string())]))
}

fn ids(request: &Request) -> Vec<String> {
    request.text("id").into_iter().collect()
}

/// Asks whether to remove a memory for good.
pub async fn ask_to_purge(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<View> {
    let id = request.get("id").unwrap_or_default().to_owned();
    let args = forget_context::Args {
        ids: Some(ids(request)),
        purge: Some(true),
        dry_run: Some(true),
        ..forget_context::Args::default()
    };
    let would = forget_context::run(engine, caller, args).await?;
    if would.count == 0 {
        return Err(Error::not_found("there is no such memory").hint("it may have been purged before"));
    }
    let text = match open(engine, caller, request).await {
        Ok(Output::Memory(opened)) => Some(opened.detail.text.clone()),
        _ => None,
    };
    let body = html! {
        h1 { "Purge for good?" }
        p {
            (counted(would.count, "memory", "memories"))
            " would be removed from all files, with everything that was derived from it. This can't be undone."
        }
        @if let Some(text) = &text { blockquote { p { (line(crate::pages::text::beginning(text).0, &Marks::default())) } } }
        div.row {
            (button(request, "/memory/purge", &[("id", &id)], "Purge for good", "danger"))
            a.button href=(address("/memory", &[("id", &id)])) { "Keep it" }
        }
    };
    Ok(View::new("/search", "Purge for good?", body))
}

/// Says what was forgotten, and offers to undo it.
pub async fn forgotten(_: &Engine, _: &WritingCaller, request: &Request) -> Result<View> {
    let purged = request.number("purged");
    let count = request.number("count").unwrap_or(1);
    let body = html! {
        @if let Some(purged) = purged {
            h1 { "Purged" }
            p role="status" { (counted(purged, "memory was", "memories were")) " removed for good." }
        } @else {
            h1 { "Forgotten" }
            p role="status" {
                (counted(count, "memory is", "memories are")) " forgotten: no search and no context contains it."
            }
            div.row {
                @if let Some(operation) = request.get("operation") {
                    (button(request, "/undo", &[("operation", operation)], "Undo", ""))
                }
                @if let Some(id) = request.get("id") {
                    a.button href=(address("/memory/purge", &[("id", id)])) { "Purge…" }
                }
            }
        }
        p { a href="/" { "To the project" } }
    };
    Ok(View::new("/search", "Forgotten", body))
}
