//! The stash: what is held out of contexts, by topic and session, with a search.

use maud::{Markup, html};

use crate::pages::layout::{View, shared_by, to_memory, to_session, when};
use crate::pages::request::{Request, address};
use crate::pages::text::{beginning, markdown, plain};
use tiro_base::error::{Result, partial};
use tiro_base::humanize::{counted, thousands};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_text::words::Marks;
use tiro_tools::stash::retrieve_stashed_context as stash;

/// The hits of a search.
const HITS: usize = 20;

/// Lists the stash, or searches it.
pub async fn show(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<View> {
    let filters = stash::Filters {
        session_id: request.text("session"),
        topic: request.text("topic"),
        ..stash::Filters::default()
    };
    let is_narrowed = filters.session_id.is_some() || filters.topic.is_some();
    let query = request.text("words");
    let args = stash::Args {
        top_k: query.is_some().then_some(HITS),
        query,
        filters: is_narrowed.then_some(filters),
        cursor: request.text("cursor"),
        ..stash::Args::default()
    };
    let found = stash::run(engine, caller, args).await?;
    let body = html! {
        h1 { "Stash" }
        p.note {
            "Stashed text is kept, but left out of the contexts of its session. It is found from any session, and comes back unchanged."
        }
        (search(request))
        (content(&found, request))
    };
    Ok(View::new("/stash", "Stash", body).with_notices(found.notices))
}

fn search(request: &Request) -> Markup {
    html! {
        form.filters action="/stash" method="get" {
            div.fields {
                @for (name, label) in [("words", "Search the stash"), ("session", "Session"), ("topic", "Topic")] {
                    div {
                        label for=(name) { (label) }
                        input id=(name) name=(name) value=(request.shown(name));
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

fn content(found: &stash::Output, request: &Request) -> Markup {
    let marks = Marks::of(request.get("words").unwrap_or_default());
    html! {
        @if found.total_found == 0 { p.none { (partial::nothing(&found.notices, "Nothing is stashed here.")) } }
        @for group in &found.groups {
            section {
                h2 { (plain(group.topic.as_deref().unwrap_or("Without a topic"))) }
                p.about {
                    span {
                        (counted(group.segments, "segment", "segments")) ", "
                        (thousands(group.tokens.unsigned_abs())) " tokens"
                    }
                    @if let Some(session) = &group.session_id { span { "of " (to_session(session, None)) } }
                    span { "stashed last " (when(&group.last_stashed)) }
                }
                ul.links { @for example in &group.examples { li { (to_memory(&example.id, &example.text)) } } }
            }
        }
        ol.hits {
            @for segment in &found.segments {
                li {
                    h2 { (to_memory(&segment.id, &segment.kind.replace('_', " "))) }
                    p.about {
                        (when(&segment.time))
                        @if let Some(session) = &segment.session_id { span { "in " (to_session(session, None)) } }
                        @if let Some(speaker) = &segment.speaker { span { (plain(speaker)) } }
                        (shared_by(segment.author.as_deref()))
                        span { (thousands(segment.tokens.unsigned_abs())) " tokens" }
                        @if let Some(expires) = &segment.expires_at { span { "expires " (when(expires)) } }
                    }
                    (markdown(beginning(&segment.text).0, &marks))
                }
            }
        }
        @if let Some(cursor) = &found.next_cursor {
            @let session = request.get("session").unwrap_or_default();
            @let topic = request.get("topic").unwrap_or_default();
            p { a.more href=(address("/stash", &[("session", session), ("topic", topic), ("cursor", cursor)])) { "More" } }
        }
    }
}
