//! The frame of every page: the name of the project, the search, the ways to the views, and notices.

use maud::{DOCTYPE, Markup, html};

use super::assets;
use super::request::{Request, address};
use super::text::plain;
use tiro_base::error::partial;
use tiro_base::times;
use tiro_text::words::Marks;
use tiro_tools::common::subcommands::without_tools;

/// The views to which every page leads: the path and the name.
const WAYS: [(&str, &str); 7] = [
    ("/", "Project"),
    ("/timeline", "Timeline"),
    ("/search", "Search"),
    ("/file", "Files"),
    ("/threads", "Threads"),
    ("/stash", "Stash"),
    ("/privacy", "Privacy"),
];

/// What a view shows.
pub struct View {
    /// The title of the page.
    pub title: String,
    /// The path of the view to which it belongs, for the list of views.
    pub way: &'static str,
    /// The content.
    pub body: Markup,
    /// Remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
    /// The question in the field of the search.
    pub question: String,
}

impl View {
    /// Returns the view of `way` with this title and content.
    pub fn new(way: &'static str, title: impl Into<String>, body: Markup) -> View {
        View { title: title.into(), way, body, notices: Vec::new(), question: String::new() }
    }

    /// Adds remarks of an operation.
    pub fn with_notices(self, notices: Vec<String>) -> View {
        View { notices, ..self }
    }
}

/// Returns the whole page of `view`. `project` is the name of the project.
pub fn page(view: &View, project: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (plain(&view.title)) " · " (plain(project)) " · Tiro" }
                link rel="icon" href=(assets::ICON.path) type="image/svg+xml";
                link rel="stylesheet" href=(assets::STYLE.path);
                script src=(assets::SCRIPT.path) defer {}
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header.top {
                    a.name href="/" { span.tiro { "Tiro" } " " span.project { (plain(project)) } }
                    (search(&view.question))
                }
                nav aria-label="Views" {
                    ul {
                        @for (path, name) in WAYS {
                            li { a href=(path) aria-current=[(path == view.way).then_some("page")] { (name) } }
                        }
                    }
                }
                main id="content" tabindex="-1" {
                    (notices(&view.notices))
                    (view.body)
                }
            }
        }
    }
}

/// Returns a page that only leads to `address`.
pub fn first(address: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0; url=" (address) };
                link rel="icon" href=(assets::ICON.path) type="image/svg+xml";
                title { "Tiro" }
            }
            body { main { p { a href=(address) { "Continue" } } } }
        }
    }
}

/// Returns a page without the ways to the views, for readers who may not see them.
pub fn bare(title: &str, text: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Tiro" }
            }
            body { main { h1 { (title) } p { (text) } } }
        }
    }
}

fn search(question: &str) -> Markup {
    html! {
        form.search role="search" action="/search" method="get" {
            label for="question" { "Search" }
            input id="question" name="q" type="search" value=(plain(question)) autocomplete="off" spellcheck="false"
                placeholder="What was said, decided, committed";
            button type="submit" { "Search" }
            div id="typed" hidden { }
            p id="typed-count" class="unseen" role="status" { }
        }
    }
}

/// Returns the remarks of an operation, with the one about what is missing first.
pub fn notices(notices: &[String]) -> Markup {
    html! {
        @if !notices.is_empty() {
            div role="status" {
                ul.notices {
                    @if partial::any(notices) { li.partial { (plain(&without_tools(partial::line(notices).trim()))) } }
                    @for notice in partial::others(notices) { li { (plain(&sentence(&without_tools(notice)))) } }
                }
            }
        }
    }
}

/// Returns `text` as a sentence: with a capital and a full stop.
pub fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}

/// Returns an RFC 3339 time, to the minute in the zone of the user. Any other text stays as it is.
pub fn when(time: &str) -> Markup {
    match time.parse::<jiff::Timestamp>() {
        Ok(at) => html! { time datetime=(time) { (times::minute(at.as_millisecond())) } },
        Err(_) => html! { (plain(time)) },
    }
}

/// Returns the hour and minute of an RFC 3339 time in the zone of the user.
pub fn clock(time: &str) -> Markup {
    let at = time.parse::<jiff::Timestamp>().ok().map(|at| times::minute(at.as_millisecond()));
    match at.as_deref().and_then(|at| at.split_once(' ')) {
        Some((_, clock)) => html! { time datetime=(time) { (clock) } },
        None => when(time),
    }
}

/// Returns a link to the memory, commit or message `id`, with `text`.
pub fn to_memory(id: &str, text: &str) -> Markup {
    html! { a href=(address("/memory", &[("id", id)])) { (plain(text)) } }
}

/// Returns a link to the session `id`, with its title if it has one.
pub fn to_session(id: &str, title: Option<&str>) -> Markup {
    html! { a href=(address("/session", &[("id", id)])) { (plain(title.unwrap_or(id))) } }
}

/// Returns a link to the view of the file `path`.
pub fn to_file(path: &str) -> Markup {
    html! { a.path href=(address("/file", &[("path", path)])) { (plain(path)) } }
}

/// Returns a list of properties. Properties without a value are left out.
pub fn properties(all: &[(&str, Option<Markup>)]) -> Markup {
    html! {
        dl.properties {
            @for (name, value) in all {
                @if let Some(value) = value { div { dt { (name) } dd { (value) } } }
            }
        }
    }
}

/// Returns the name of the person who shared a memory; nothing for the reader's own.
pub fn shared_by(author: Option<&str>) -> Markup {
    html! { @if let Some(author) = author { " " span.shared { "shared by " (plain(author)) } } }
}

/// Returns a form with a single button that makes a change.
pub fn button(request: &Request, action: &str, fields: &[(&str, &str)], name: &str, class: &str) -> Markup {
    html! {
        form.change action=(action) method="post" {
            (request.token())
            @for (name, value) in fields { input type="hidden" name=(name) value=(plain(value)); }
            button type="submit" class=(class) { (name) }
        }
    }
}

/// Returns `text` on one line, with the words of `marks` marked.
pub fn line(text: &str, marks: &Marks) -> Markup {
    super::text::marked(&text.split_whitespace().collect::<Vec<_>>().join(" "), marks)
}
