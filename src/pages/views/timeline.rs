//! The timeline: sessions and commits by day, the latest day first. The commits to which a session led stand beside it.

use maud::{Markup, html};

use crate::pages::layout::{View, clock, shared_by, to_memory, to_session};
use crate::pages::request::{Request, address};
use crate::pages::text::plain;
use crate::pages::views::search::certainty;
use tiro_base::error::{Result, partial};
use tiro_base::humanize::{counted, thousands};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::common::short_sha;
use tiro_tools::memory::timeline::{self, Day, DayCommit, DaySession};

/// The days of a page.
const DAYS: usize = 14;

/// The most sessions and the most commits of a day that are shown; a script may make hundreds.
const SHOWN: usize = 40;

/// The filters: the field, its label, and an example.
const FILTERS: [(&str, &str, &str); 6] = [
    ("branch", "Branch", "main"),
    ("path", "File or directory", "src/"),
    ("author", "Author", "part of a name"),
    ("client", "Client", "claude"),
    ("since", "Since", "2026-03-01, yesterday, 7d"),
    ("until", "Until", "2026-03-31"),
];

/// Shows a page of days.
pub async fn show(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<View> {
    let args = timeline::Args {
        since: request.text("since"),
        until: request.text("until"),
        branch: request.text("branch"),
        path: request.text("path"),
        author: request.text("author"),
        client: request.text("client"),
        days: Some(DAYS),
        cursor: request.text("cursor"),
    };
    let found = timeline::run(engine, caller, args).await?;
    let body = html! {
        h1 { "Timeline" }
        (filters(request))
        @if found.days.is_empty() {
            @let since = found.next_cursor.as_ref().map(|day| format!(" since {day}")).unwrap_or_default();
            p.none { (partial::nothing(&found.notices, &format!("Nothing happened{since}."))) }
        }
        @for day in &found.days { (one(day)) }
        @if let Some(cursor) = &found.next_cursor { p { a.more href=(further(request, cursor)) { "Earlier" } } }
    };
    Ok(View::new("/timeline", "Timeline", body).with_notices(found.notices))
}

fn filters(request: &Request) -> Markup {
    let is_narrowed = FILTERS.iter().any(|(field, ..)| request.get(field).is_some());
    html! {
        details open[is_narrowed] {
            summary { "Narrow the timeline" }
            form.filters action="/timeline" method="get" {
                div.fields {
                    @for (field, label, example) in FILTERS {
                        div {
                            label for=(field) { (label) }
                            input id=(field) name=(field) value=(request.shown(field))
                                placeholder=(example);
                        }
                    }
                }
                button type="submit" { "Show" }
            }
        }
    }
}

/// Returns the address of the next page.
fn further(request: &Request, cursor: &str) -> String {
    let mut fields: Vec<(&str, &str)> =
        FILTERS.iter().filter_map(|(name, ..)| Some((*name, request.get(name)?))).collect();
    fields.push(("cursor", cursor));
    address("/timeline", &fields)
}

fn one(day: &Day) -> Markup {
    html! {
        section.day aria-label=(day.day) {
            h2 { (plain(&day.day)) }
            @for session in day.sessions.iter().take(SHOWN) { (held(session)) }
            @if day.sessions.len() > SHOWN { p.note { "and " (day.sessions.len() - SHOWN) " more sessions" } }
            @if !day.commits.is_empty() {
                @if !day.sessions.is_empty() { h3 { "Other commits" } }
                (commits(&day.commits))
            }
        }
    }
}

fn held(session: &DaySession) -> Markup {
    let DaySession { session_id, title, client, headless, first, last, messages, tokens, commits: led_to } =
        session;
    html! {
        article.held {
            div {
                h3 { (to_session(session_id, title.as_deref())) }
                p.about {
                    span { (clock(first)) " to " (clock(last)) }
                    span {
                        (counted(*messages, "message", "messages")) ", " (thousands(tokens.unsigned_abs())) " tokens"
                    }
                    @if let Some(client) = client { span { (plain(client)) } }
                    @if *headless { span { "run by a script" } }
                }
            }
            @if !led_to.is_empty() { (commits(led_to)) }
        }
    }
}

fn commits(all: &[DayCommit]) -> Markup {
    html! {
        ul.links {
            @for commit in all.iter().take(SHOWN) {
                li {
                    (to_memory(&commit.id, &commit.subject))
                    span.about {
                        code { (plain(short_sha(&commit.sha))) }
                        @if let Some(author) = &commit.author { " " (plain(author)) }
                        (shared_by(commit.shared_by.as_deref()))
                        @if let Some(confidence) = commit.confidence { (certainty(confidence)) }
                    }
                }
            }
            @if all.len() > SHOWN { li.note { "and " (all.len() - SHOWN) " more" } }
        }
    }
}
