//! Search: what was found, why, and with the words that were searched for marked.

use maud::{Markup, html};
use serde::Serialize;

use crate::pages::layout::{View, shared_by, to_file, to_memory, to_session, when};
use crate::pages::request::{Request, address};
use crate::pages::text::{beginning, markdown, plain, verbatim};
use tiro_base::error::{Result, partial};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_text::words::Marks;
use tiro_tools::common::short_sha;
use tiro_tools::memory::search_project_memory::{self as search, Hit, as_typed};

/// The hits of a page.
const PAGE: usize = 15;

/// The kinds by which a search can be narrowed, and what they are called.
const KINDS: [(&str, &str); 9] = [
    ("", "Everything"),
    ("message", "Messages"),
    ("commit", "Commits"),
    ("decision", "Decisions"),
    ("fact", "Facts"),
    ("finding", "Findings"),
    ("preference", "Preferences"),
    ("document", "Documents"),
    ("conversation", "Summaries of sessions"),
];

/// The filters besides the kind: the field, its label, and an example.
const FILTERS: [(&str, &str, &str); 6] = [
    ("session", "Session", "its name"),
    ("branch", "Branch", "main"),
    ("path", "File or directory", "src/"),
    ("topic", "Topic", "a tag"),
    ("since", "Since", "2026-03-01, yesterday, 7d"),
    ("until", "Until", "2026-03-31"),
];

/// Searches, and shows what was found.
pub async fn show(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<View> {
    let question = request.get("q").unwrap_or_default().to_owned();
    if question.is_empty() {
        return Ok(View::new(
            "/search",
            "Search",
            frame(request, html! { p.none { "What do you want to know?" } }),
        ));
    }
    let args = search::Args {
        k: Some(PAGE),
        max_tokens: Some(20_000),
        cursor: request.text("cursor"),
        ..args(request, &question)
    };
    let found = search::search(engine, caller, args).await?;
    let body = frame(request, hits(&found, request, &question));
    let view = View::new("/search", format!("{question} · Search"), body).with_notices(found.notices);
    Ok(View { question, ..view })
}

/// Answers a search as one types, as JSON: the script makes elements of it.
pub async fn typed(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<String> {
    // A space at the end says that the last word is complete.
    let question = request.raw("q").unwrap_or_default();
    let hits = as_typed::run(engine, caller, args(request, question)).await?;
    let marks = Marks::of(question);
    let typed: Vec<Typed> = hits.iter().map(|hit| Typed::of(hit, &marks)).collect();
    Ok(serde_json::to_string(&typed).expect("plain values"))
}

/// A hit of a search as one types.
#[derive(Serialize)]
struct Typed {
    /// The address that opens it.
    open: String,
    /// What it is.
    what: String,
    /// Its day.
    day: String,
    /// The beginning of its text, each part with whether it is a word of the question.
    text: Vec<(String, bool)>,
}

impl Typed {
    fn of(hit: &Hit, marks: &Marks) -> Typed {
        let text = plain(&hit.beginning()).into_owned();
        let parts = marks.parts(&text).into_iter().map(|(part, is_marked)| (part.to_owned(), is_marked));
        Typed {
            open: address("/memory", &[("id", &hit.id)]),
            what: plain(&what(hit)).into_owned(),
            day: hit.time.chars().take(10).collect(),
            text: parts.collect(),
        }
    }
}

/// Returns the arguments of the search that the request asks for.
fn args(request: &Request, question: &str) -> search::Args {
    search::Args {
        query: question.to_owned(),
        kinds: request.text("kind").map(|kind| vec![kind]),
        sessions: request.text("session").map(|session| vec![session]),
        branch: request.text("branch"),
        topic: request.text("topic"),
        path: request.text("path"),
        since: request.text("since"),
        until: request.text("until"),
        ..search::Args::default()
    }
}

/// Returns the search with its filters, and `found` below.
fn frame(request: &Request, found: Markup) -> Markup {
    let is_narrowed =
        FILTERS.iter().any(|(field, ..)| request.get(field).is_some()) || request.get("kind").is_some();
    html! {
        h1 { "Search" }
        form.filters action="/search" method="get" {
            div.wide {
                label for="q" { "Question or words" }
                input id="q" name="q" type="search" value=(request.shown("q"));
                button type="submit" { "Search" }
            }
            details open[is_narrowed] {
                summary { "Narrow the search" }
                div.fields {
                    div {
                        label for="kind" { "Kind" }
                        select id="kind" name="kind" {
                            @for (kind, name) in KINDS {
                                option value=(kind) selected[request.get("kind").unwrap_or_default() == kind] { (name) }
                            }
                        }
                    }
                    @for (field, name, example) in FILTERS {
                        div {
                            label for=(field) { (name) }
                            input id=(field) name=(field) value=(request.shown(field))
                                placeholder=(example);
                        }
                    }
                }
            }
        }
        (found)
    }
}

fn hits(found: &search::Output, request: &Request, question: &str) -> Markup {
    let marks = Marks::of(question);
    html! {
        @if let Some(searched) = &found.searched {
            p.none { "Nothing answers this. The nearest of " (plain(searched)) ":" }
        }
        @if found.hits.is_empty() {
            p.none { (partial::nothing(&found.notices, "Nothing found.")) }
        }
        ol.hits {
            @for hit in &found.hits { li { (one(hit, &marks)) } }
        }
        @if found.pending > 0 {
            p.note { (found.pending) " pieces have no embedding yet, so only words find them." }
        }
        @if let Some(cursor) = &found.next_cursor {
            p { a.more href=(further(request, cursor)) { "More" } }
        }
    }
}

/// Returns the address of the next page.
fn further(request: &Request, cursor: &str) -> String {
    let names = ["q", "kind"].into_iter().chain(FILTERS.iter().map(|(field, ..)| *field));
    let mut fields: Vec<(&str, &str)> = names.filter_map(|name| Some((name, request.get(name)?))).collect();
    fields.push(("cursor", cursor));
    address("/search", &fields)
}

/// Returns what a hit is, in words.
fn what(hit: &Hit) -> String {
    match (hit.kind.as_str(), &hit.source_id, &hit.speaker) {
        ("commit", Some(sha), Some(author)) => format!("commit {} by {author}", short_sha(sha)),
        ("commit", Some(sha), None) => format!("commit {}", short_sha(sha)),
        ("message", _, Some(speaker)) => speaker.clone(),
        (kind, ..) => kind.replace('_', " "),
    }
}

fn one(hit: &Hit, marks: &Marks) -> Markup {
    let (text, is_cut) = beginning(&hit.text);
    html! {
        article {
            h2 { (to_memory(&hit.id, &what(hit))) }
            p.about {
                (when(&hit.time))
                (shared_by(hit.author.as_deref()))
                @if let Some(session) = &hit.session_id {
                    span { "in " (to_session(session, hit.title.as_deref())) }
                }
                @if let Some(path) = &hit.path { span { (to_file(path)) } }
                @if let Some(branch) = &hit.branch { span { "on " (plain(branch)) } }
                @if hit.scope.is_some() { span { "for all projects" } }
                @if let Some(stale) = hit.stale() { span.warn { (plain(&stale)) } }
            }
            @if let Some(superseded) = &hit.superseded {
                p.warn { "Superseded by " (to_memory(&superseded.by, "a later memory")) " of " (plain(&superseded.date)) "." }
            }
            div.excerpt {
                @match hit.frame.provenance {
                    Some("tool_output") => (verbatim(text, marks)),
                    _ => (markdown(text, marks)),
                }
            }
            @if hit.is_part || is_cut { p { (to_memory(&hit.id, "Whole text")) } }
            @if let Some(behind) = &hit.behind {
                p.behind {
                    "Made in " (to_session(&behind.session_id, behind.title.as_deref())) ", " (plain(&behind.date))
                    (certainty(behind.confidence)) "; " (to_memory(&behind.open, "what was said")) "."
                }
                @if let Some(said) = &behind.said {
                    blockquote.said {
                        p.speaker {
                            (plain(said.speaker.as_deref().unwrap_or("?"))) (shared_by(said.author.as_deref()))
                        }
                        (markdown(beginning(&said.text).0, marks))
                    }
                }
            }
            (why(hit))
        }
    }
}

/// Returns how sure a link is, if it is not almost certain.
pub fn certainty(confidence: f64) -> String {
    if confidence >= 0.995 { String::new() } else { format!(" ({:.0}% sure)", confidence * 100.0) }
}

/// Returns why a hit was found: what its words, its meaning and other properties added to its score.
fn why(hit: &Hit) -> Markup {
    let parts = &hit.frame.parts;
    let all = [
        ("its words", parts.lexical),
        ("its meaning", parts.semantic),
        ("its speaker is named", parts.speaker),
        ("its importance", parts.importance),
        ("it answers a message", parts.exchange),
        ("it is long, or by a program", parts.prior),
    ];
    let sum: f64 = all.iter().map(|(_, part)| part).sum();
    html! {
        details.why {
            summary { "Why it was found" }
            table {
                caption { "Parts of its score" }
                thead { tr { th scope="col" { "Part" } th scope="col" { "Adds" } } }
                tbody {
                    @for (name, part) in all.iter().filter(|(_, part)| *part != 0.0) {
                        tr { th scope="row" { (name) } td { (format!("{part:+.3}")) } }
                    }
                    tr { th scope="row" { "together" } td { (format!("{sum:.3}")) } }
                }
            }
            @if hit.duplicates > 0 { p { (hit.duplicates) " more with the same text." } }
        }
    }
}
