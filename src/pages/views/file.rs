//! A file: its lines, coloured by how well their reason is known, with the reason beside them.

use maud::{Markup, html};

use crate::pages::layout::{View, shared_by, to_memory, to_session};
use crate::pages::request::{Request, address};
use crate::pages::text::plain;
use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::common::short_sha;
use tiro_tools::memory::explain_lines::listing::{self, Line, Listing};
use tiro_tools::memory::explain_lines::{Explained, Reason};

/// The lines of a page.
const PAGE: usize = 200;

/// How well the reason of lines is known, as the style names it and as a person reads it.
const KNOWN: [(&str, &str); 4] = [
    ("reason", "A reason is known"),
    ("session", "Only the session or commit is known"),
    ("new", "Not committed yet"),
    ("nothing", "Nothing is known"),
];

/// Shows a page of a file, or asks which file.
pub async fn show(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<View> {
    let Some(path) = request.get("path") else {
        let body = html! {
            h1 { "Files" }
            p.note { "Shows the lines of a file, and beside them why they were written: what was asked, decided and committed." }
            (chooser(""))
        };
        return Ok(View::new("/file", "Files", body));
    };
    let from = request.number("from").unwrap_or(1);
    let found = listing::read(engine, caller, path, from, PAGE).await?;
    let body = html! {
        h1.path { (plain(&found.path)) }
        (chooser(&found.path))
        (page(&found))
    };
    Ok(View::new("/file", found.path.clone(), body).with_notices(found.notices))
}

fn chooser(path: &str) -> Markup {
    html! {
        form.filters action="/file" method="get" {
            div.wide {
                label for="path" { "Path in the project" }
                input id="path" name="path" value=(plain(path)) placeholder="src/main.rs";
                button type="submit" { "Show" }
            }
        }
    }
}

fn page(found: &Listing) -> Markup {
    html! {
        p.about { (counted(found.lines_of_file, "line", "lines")) }
        @if !found.groups.is_empty() {
            ul.legend { @for (name, title) in KNOWN { li { span class=(format!("key known-{name}")) {} (title) } } }
        }
        (pager(found))
        div.listing { @for block in blocks(&found.lines) { (one(block, &found.groups)) } }
        (pager(found))
    }
}

/// Divides lines into runs of one group.
fn blocks(lines: &[Line]) -> impl Iterator<Item = &[Line]> {
    lines.chunk_by(|one, other| one.group == other.group)
}

fn one(block: &[Line], groups: &[Explained]) -> Markup {
    let group = block[0].group.and_then(|place| groups.get(place));
    let (first, last) = (block[0].number, block[block.len() - 1].number);
    let known = known(group);
    // Only the first run of a group has the reasons; the others lead there.
    let is_first = group.is_none_or(|group| group.runs.iter().map(|run| run.start).min() == Some(first));
    let name = if first == last { format!("Line {first}") } else { format!("Lines {first} to {last}") };
    html! {
        section class=(format!("block known-{known}")) aria-label=(name) id=(format!("L{first}")) {
            pre { code { @for line in block { span.line-number { (format!("{:>5} ", line.number)) } (plain(&line.text)) "\n" } } }
            div.reason {
                @match group {
                    None => p.note { "No origin." },
                    Some(group) if is_first => (explained(group)),
                    Some(group) => {
                        @let start = group.runs.iter().map(|run| run.start).min().unwrap_or(first);
                        p.note { "As " a href=(format!("#L{start}")) { "line " (start) } "." }
                    }
                }
            }
        }
    }
}

/// Returns how well the reason of a group is known.
fn known(group: Option<&Explained>) -> &'static str {
    match group {
        Some(group) if !group.reasons.is_empty() => "reason",
        Some(group) if group.state == "uncommitted" => "new",
        Some(group) if group.commit.is_some() || group.session.is_some() => "session",
        _ => "nothing",
    }
}

fn explained(group: &Explained) -> Markup {
    let Explained { state, commit, subject, author, time, session, title, link, reasons, .. } = group;
    html! {
        @for reason in reasons { (because(reason)) }
        @if reasons.is_empty() { p { "Why is not known." } }
        p.about {
            @match (*state, commit) {
                ("uncommitted", _) => span { "not committed yet" },
                (state, Some(sha)) => {
                    @let short = short_sha(sha);
                    span {
                        @if state == "older" { "as old as " }
                        (to_memory(sha, subject.as_deref().unwrap_or(short)))
                    }
                    @if let Some(author) = author { span { (plain(author)) } }
                    @if let Some(time) = time { span { (plain(time)) } }
                }
                _ => span { "the commit was not found" },
            }
        }
        p.about {
            @if let Some(session) = session { span { (to_session(session, title.as_deref())) } }
            span { (plain(link)) }
        }
    }
}

fn because(reason: &Reason) -> Markup {
    let Reason { part, text, speaker, author, time, open, superseded } = reason;
    html! {
        blockquote {
            p { (plain(text)) }
            p.about {
                span { (part) }
                @if let Some(speaker) = speaker { span { (plain(speaker)) } }
                (shared_by(author.as_deref()))
                span { (to_memory(open, time)) }
                @if let Some(by) = superseded { span.warn { "superseded by " (to_memory(by, "a later memory")) } }
            }
        }
    }
}

fn pager(found: &Listing) -> Markup {
    let to = |from: usize| address("/file", &[("path", &found.path), ("from", &from.to_string())]);
    let (first, last) =
        (found.lines.first().map_or(1, |line| line.number), found.lines.last().map_or(0, |line| line.number));
    html! {
        @if found.lines.len() < found.lines_of_file {
            p.pager {
                @if first > 1 { a rel="prev" href=(to(first.saturating_sub(PAGE).max(1))) { "Before" } }
                span { "Lines " (first) " to " (last) }
                @if last < found.lines_of_file { a rel="next" href=(to(last + 1)) { "After" } }
            }
        }
    }
}
