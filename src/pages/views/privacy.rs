//! Privacy: what left the machine, when, to whom and for what; what is kept out of the memory; and where the files are.

use maud::{Markup, html};

use crate::pages::layout::{View, properties, sentence, to_file, to_memory, to_session, when};
use crate::pages::request::{Request, address};
use crate::pages::text::plain;
use tiro_base::error::Result;
use tiro_base::humanize::{counted, thousands};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::operate::projects;
use tiro_tools::provider::providers::{self, word};
use tiro_tools::provider::sent::{self, Sent};

/// The requests that are listed at first, and how many more each click adds.
const LISTED: usize = 30;

/// The most requests of a page.
const MOST: usize = 300;

/// The most names of files or memories that are shown of a request.
const NAMED: usize = 12;

/// Shows the ledger of requests, the rules, and the places.
pub async fn show(engine: &Engine, caller: &WritingCaller, request: &Request) -> Result<View> {
    let limit = request.number("limit").unwrap_or(LISTED).clamp(1, MOST);
    let args =
        sent::Args { provider: request.text("provider"), since: request.text("since"), limit: Some(limit) };
    let ledger = sent::run(engine, args).await?;
    let providers = providers::show(engine, None, false).await?;
    let stores = projects::list(engine).await?;
    let name = caller.project(engine).await?.scope.project.as_str().to_owned();
    let store =
        stores.projects.iter().find(|project| project.id == name).map(|project| project.store.as_str());
    let body = html! {
        h1 { "Privacy" }
        (receivers(&providers))
        section aria-labelledby="sent" {
            h2 id="sent" { "What was sent to providers" }
            (filters(request))
            (requests(&ledger, &name))
            @if ledger.more > 0 && limit == MOST {
                p.note { (ledger.more) " earlier: " code { "tiro provider sent --limit N" } " lists them." }
            } @else if ledger.more > 0 {
                @let more = (limit + LISTED).to_string();
                @let provider = request.get("provider").unwrap_or_default();
                @let since = request.get("since").unwrap_or_default();
                p { a.more href=(address("/privacy", &[("provider", provider), ("since", since), ("limit", &more)])) { (ledger.more) " earlier" } }
            }
        }
        (kept_out(engine))
        (places(engine, store))
    };
    Ok(View::new("/privacy", "Privacy", body))
}

fn receivers(found: &providers::Output) -> Markup {
    html! {
        section aria-label="Who may be asked" {
            h2 { "Who may be asked" }
            @if found.providers.is_empty() {
                p { "No provider is configured: nothing leaves this machine, and summaries are made without a model." }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Providers" {
                    table {
                        thead { tr { th scope="col" { "Provider" } th scope="col" { "Place" } th scope="col" { "Asked for" } th scope="col" { "Leaves this machine" } } }
                        tbody {
                            @for each in &found.providers {
                                tr {
                                    th scope="row" { (plain(&each.name)) br; span.about { (plain(&each.model)) } }
                                    td { (plain(&each.place)) }
                                    td {
                                        @let uses: Vec<&str> = each.uses.iter().map(|purpose| word(*purpose)).collect();
                                        (if uses.is_empty() { "nothing".to_owned() } else { uses.join(", ") })
                                    }
                                    td { (plain(&each.discloses)) }
                                }
                            }
                        }
                    }
                }
            }
            @for fault in &found.idle { p.warn { (plain(&sentence(fault))) } }
        }
    }
}

fn filters(request: &Request) -> Markup {
    html! {
        form.filters action="/privacy" method="get" {
            div.fields {
                div { label for="provider" { "Provider" } input id="provider" name="provider" value=(request.shown("provider")); }
                div { label for="since" { "Since" } input id="since" name="since" value=(request.shown("since")) placeholder="2026-03-01, yesterday, 7d"; }
            }
            button type="submit" { "Show" }
        }
    }
}

fn requests(ledger: &sent::Output, project: &str) -> Markup {
    html! {
        @if ledger.sent.is_empty() { p.none { "Nothing was sent to a provider." } }
        ol.hits { @for sent in &ledger.sent { li { (one(sent, sent.project == project)) } } }
    }
}

/// Returns a request. Files, memories and sessions are links only if they are of the project that is shown.
fn one(sent: &Sent, is_own: bool) -> Markup {
    let place =
        if sent.is_local { "stayed on this machine".to_owned() } else { format!("to {}", sent.place) };
    let ended = match (sent.answered, sent.is_open) {
        (true, _) => format!("answered with {} tokens", thousands(sent.received.unsigned_abs())),
        (false, true) => "no answer so far".to_owned(),
        (false, false) => "no answer".to_owned(),
    };
    html! {
        h3 { (when(&sent.at)) " " (plain(&sent.provider)) ", " span class=[(!sent.is_local).then_some("warn")] { (plain(&place)) } }
        p.about {
            span { "for " (plain(sent.purpose())) }
            span { (plain(&sent.model)) }
            span {
                (if sent.is_open { "at most " } else { "" }) (thousands(sent.tokens.unsigned_abs())) " tokens sent"
                @if sent.requests > 1 { " in " (sent.requests) " requests" }
            }
            span { (counted(sent.secrets_replaced, "secret replaced", "secrets replaced")) }
            span { (ended) }
            @if !is_own { span { "for project " (plain(sent.project_name.as_deref().unwrap_or(&sent.project))) } }
            @if let Some(session) = &sent.session {
                span { "session " @if is_own { (to_session(session, None)) } @else { (plain(session)) } }
            }
        }
        @if sent.file_count + sent.memory_count > 0 {
            details {
                summary { (counted(sent.file_count, "file", "files")) ", " (counted(sent.memory_count, "memory", "memories")) }
                @if sent.is_purged { p.note { "Their names were purged." } }
                ul.plain {
                    @for path in sent.files.iter().take(NAMED) { li { @if is_own { (to_file(path)) } @else { (plain(path)) } } }
                    @for id in sent.memories.iter().take(NAMED) { li { @if is_own { (to_memory(id, id)) } @else { (plain(id)) } } }
                    @let more = sent.files.len().saturating_sub(NAMED) + sent.memories.len().saturating_sub(NAMED);
                    @if more > 0 { li.note { "and " (more) " more" } }
                }
            }
        }
    }
}

/// Returns what the configuration keeps out of the memory.
fn kept_out(engine: &Engine) -> Markup {
    let options = &engine.config().options;
    let list = |list: &tiro_host::config::List| {
        let text = list.0.join(", ");
        (!text.is_empty()).then(|| html! { code { (plain(&text)) } })
    };
    html! {
        section aria-label="What is kept out" {
            h2 { "What is kept out" }
            p { "Secrets are replaced before anything is stored or sent. Private passages and ignored files are never read." }
            (properties(&[
                ("Ignored sessions", list(&options.ignore_sessions).or_else(|| Some(html! { "none" }))),
                ("Ignored paths", list(&options.ignore_paths).or_else(|| Some(html! { "none" }))),
                ("Sessions of scripts", Some(html! { (if options.ignore_headless { "ignored" } else { "remembered" }) })),
            ]))
        }
    }
}

/// Returns where the files are.
fn places(engine: &Engine, store: Option<&str>) -> Markup {
    let config = engine.config();
    let path = |path: &std::path::Path| Some(html! { code { (plain(&path.display().to_string())) } });
    html! {
        section aria-label="Where the files are" {
            h2 { "Where the files are" }
            (properties(&[
                ("Memory of this project", Some(html! { @if let Some(store) = store { code { (plain(store)) } } @else { "not made yet" } })),
                ("All data", path(&config.data_dir)),
                ("Configuration", config.sources.file.as_deref().and_then(path)),
                ("Models", path(&config.models.folder(config.models.chosen()))),
            ]))
            p.note { "Only you can read them. " code { "tiro projects remove" } " deletes a project, " code { "tiro init --remove" } " disconnects Tiro." }
        }
    }
}
