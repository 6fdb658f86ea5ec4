//! Threads with assistants: what an assistant has in its prompt, what each turn added to it, and what it cost.

use maud::{Markup, html};

use crate::pages::layout::{View, properties, to_file, to_memory, to_session, when};
use crate::pages::plot::{Plot, Series, Shape};
use crate::pages::request::{Request, address};
use crate::pages::text::{markdown, plain};
use tiro_base::error::Result;
use tiro_base::humanize::{counted, thousands};
use tiro_host::caller::WritingCaller;
use tiro_host::consult::Files;
use tiro_host::engine::Engine;
use tiro_text::words::Marks;
use tiro_tools::consult::describe_session::{self, Described};
use tiro_tools::consult::show_thread;

/// Lists the threads.
pub async fn show(engine: &Engine, caller: &WritingCaller, _: &Request) -> Result<View> {
    let found = describe_session::run(engine, caller, describe_session::Args::default()).await?;
    let body = html! {
        h1 { "Threads" }
        p.note { "A thread is a session's conversation with an assistant, who keeps what was sent before." }
        @if found.threads.is_empty() {
            p.none { "No assistant was asked in this project yet. An agent asks one with " code { "chat_with_NAME" } ", a person with " code { "tiro chat" } "." }
        }
        ul.links { @for thread in &found.threads { li { (to_thread(thread)) } } }
        @if found.dropped > 0 { p.note { (found.dropped) " older threads are not listed." } }
    };
    Ok(View::new("/threads", "Threads", body))
}

/// Returns a line that leads to a thread.
pub fn to_thread(thread: &Described) -> Markup {
    let Described { session_id, assistant, turns, saved, cost, last, .. } = thread;
    html! {
        a href=(address("/thread", &[("session", session_id), ("assistant", assistant)])) {
            (plain(assistant)) " in " (plain(session_id))
        }
        span.about {
            (counted(*turns, "turn", "turns")) ", " (thousands(*saved)) " tokens saved, " (plain(cost)) ", last " (when(last))
        }
    }
}

/// Shows a thread.
pub async fn one(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<View> {
    let (session, assistant) =
        (request.get("session").unwrap_or_default(), request.get("assistant").unwrap_or_default());
    let found = show_thread::run(engine, caller, session, assistant).await?;
    let title = format!("{} in {}", found.thread.assistant, found.thread.session_id);
    Ok(View::new("/threads", title.clone(), body(&found, &title)))
}

fn body(found: &show_thread::Output, title: &str) -> Markup {
    let Described {
        session_id,
        turns,
        epoch,
        tokens,
        window,
        inline,
        overflow,
        context,
        saved,
        reported,
        cost,
        first,
        last,
        ..
    } = &found.thread;
    let none = Marks::default();
    html! {
        h1 { (plain(title)) }
        (properties(&[
            ("Session", Some(to_session(session_id, None))),
            ("Turns", Some(html! { (turns) ", in epoch " (epoch) })),
            ("Next prompt", Some(html! { (thousands(*tokens)) " of " (thousands(u64::from(*window))) " tokens" })),
            ("Not sent again", Some(html! { (thousands(*saved)) " tokens" })),
            (
                "Counted by the provider",
                Some(html! {
                    (thousands(reported.input)) " sent, " (thousands(reported.cached)) " of them from its cache, "
                    (thousands(reported.output)) " received"
                }),
            ),
            ("Cost", Some(html! { (plain(cost)) })),
            ("Began", Some(when(first))),
            ("Last used", Some(when(last))),
        ]))
        (plot(&found.turns))
        (files("In the prompt", inline))
        (files("Searched instead", overflow))
        @if !context.is_empty() {
            section aria-label="Context" {
                h2 { "Context that callers named" }
                ul.plain { @for path in context { li { (to_file(path)) } } }
            }
        }
        section aria-label="Turns" {
            h2 { "The latest turns" }
            @for turn in &found.turns {
                article.message {
                    p.speaker { "Turn " (turn.number) }
                    p.about {
                        (when(&turn.time))
                        span { (thousands(turn.prompt)) " tokens sent, " (thousands(turn.added)) " of them new" }
                        span { (plain(&turn.cost)) }
                        @if let Some(id) = &turn.question { (to_memory(id, "question")) }
                        @if let Some(id) = &turn.answer { (to_memory(id, "answer")) }
                    }
                    (markdown(&turn.text, &none))
                    @if let Some(receipt) = &turn.receipt {
                        details { summary { "Receipt" } pre { code { (plain(&receipt.text())) } } }
                    }
                }
            }
        }
    }
}

/// Returns the plot of the tokens that each turn added, against sending everything again.
fn plot(turns: &[show_thread::Turn]) -> Markup {
    let mut turns: Vec<&show_thread::Turn> = turns.iter().collect();
    turns.sort_by_key(|turn| turn.number);
    let values = |of: fn(&show_thread::Turn) -> u64| turns.iter().map(|turn| of(turn) as f64).collect();
    let (added, whole): (u64, u64) = turns
        .iter()
        .fold((0, 0), |(added, whole), turn| (added + turn.added, whole + turn.whole.max(turn.added)));
    Plot {
        title: "Tokens per turn",
        description: format!(
            "The turns shown added {} tokens; sending all files again would have taken {}.",
            thousands(added),
            thousands(whole)
        ),
        axis: "Turn",
        labels: turns.iter().map(|turn| turn.number.to_string()).collect(),
        series: vec![
            Series { name: "added".to_owned(), values: values(|turn| turn.added) },
            Series {
                name: "everything sent again".to_owned(),
                values: values(|turn| turn.whole.max(turn.added)),
            },
        ],
        shape: Shape::Lines,
    }
    .show()
}

fn files(name: &str, files: &Files) -> Markup {
    html! {
        @if !files.is_empty() {
            section aria-label=(name) {
                h2 { (name) ": " (counted(files.count, "file", "files")) }
                ul.plain {
                    @for path in &files.paths { li { (to_file(path)) } }
                    @if files.count > files.paths.len() { li.note { "and " (files.count - files.paths.len()) " more" } }
                }
            }
        }
    }
}
