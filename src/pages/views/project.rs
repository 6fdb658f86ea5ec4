//! The project: what is remembered, what it saved and cost, and whether everything works.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::json;

use crate::pages::layout::{View, shared_by, to_memory, to_session, when};
use crate::pages::plot::{Plot, Series, Shape};
use crate::pages::request::Request;
use crate::pages::text::plain;
use tiro_base::error::Result;
use tiro_base::humanize::{bytes, counted, thousands};
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_tools::common::subcommands::without_tools;
use tiro_tools::memory::list_memories::{self, Listed};
use tiro_tools::memory::list_sessions;
use tiro_tools::operate::doctor::{self, Finding};
use tiro_tools::operate::growth;
use tiro_tools::operate::stats::{self, Output};

/// The sessions that are listed.
const SESSIONS: usize = 6;

/// The notes that are listed.
const NOTES: usize = 8;

/// The weeks of which the growth is shown.
const WEEKS: usize = 26;

/// The days of which the cost is shown.
const DAYS: usize = 60;

/// Shows the project.
pub async fn show(engine: &Engine, caller: &WritingCaller, _: &Request) -> Result<View> {
    let args = list_sessions::Args { limit: Some(SESSIONS), cursor: None };
    let of_notes = list_memories::Args {
        kinds: ["decision", "fact", "finding", "preference"].map(str::to_owned).to_vec(),
        limit: Some(NOTES),
        ..list_memories::Args::default()
    };
    let (sessions, found, grown, notes) = tokio::try_join!(
        list_sessions::run(engine, caller, args),
        stats::run(engine, caller),
        growth::run(engine, caller, growth::Args { weeks: Some(WEEKS) }),
        list_memories::run(engine, caller, of_notes),
    )?;
    let (grown, notes) = (grown.weeks, notes.memories);
    let body = html! {
        h1 { (plain(&found.project)) }
        (figures(&found))
        @if found.kinds.is_empty() { (empty()) }
        div.columns {
            (latest(&sessions.sessions))
            (noted(&notes))
        }
        h2 { "What is remembered" }
        div.columns {
            (kinds(&found))
            (reasons(&found))
        }
        (growth(&grown))
        h2 { "What it saves and costs" }
        div.columns {
            (savings(&found))
            (money(&found))
        }
        (pending(&found))
        (checks())
    };
    Ok(View::new("/", "Project", body).with_notices(sessions.notices))
}

/// Returns the largest numbers.
fn figures(found: &Output) -> Markup {
    let of = |kind: &str| found.kinds.iter().find(|each| each.kind == kind).map_or(0, |each| each.memories);
    let all: i64 = found.kinds.iter().map(|each| each.memories).sum();
    let figures = [
        ("memories", all),
        ("sessions", found.sessions),
        ("messages", of("message")),
        ("commits", of("commit")),
        ("decisions", of("decision")),
        ("stored this week", found.stored_lately),
    ];
    html! {
        dl.figures {
            @for (name, value) in figures { div { dt { (name) } dd { (thousands(value.unsigned_abs())) } } }
        }
    }
}

fn empty() -> Markup {
    html! {
        p.none {
            "Nothing is remembered of this project yet. " code { "tiro init" }
            " connects Tiro to your agents and imports their past sessions; "
            code { "tiro import git" } " imports the commits."
        }
    }
}

fn latest(sessions: &[list_sessions::Session]) -> Markup {
    html! {
        section aria-label="Latest sessions" {
            h2 { "Latest sessions" }
            @if sessions.is_empty() { p.none { "No sessions yet." } }
            ul.links {
                @for session in sessions {
                    li {
                        (to_session(&session.session_id, session.title.as_deref()))
                        span.about { (when(&session.last)) ", " (counted(session.memories, "memory", "memories")) }
                    }
                }
            }
            @if !sessions.is_empty() { p { a.more href="/timeline" { "All, by day" } } }
        }
    }
}

fn noted(notes: &[Listed]) -> Markup {
    html! {
        section aria-label="Latest notes" {
            h2 { "Latest decisions and facts" }
            @if notes.is_empty() { p.none { "Nothing was noted yet." } }
            ul.links {
                @for note in notes {
                    li {
                        (to_memory(&note.id, &note.line))
                        span.about {
                            (plain(&note.kind.replace('_', " "))) ", " (when(&note.time))
                            (shared_by(note.author.as_deref()))
                        }
                    }
                }
            }
        }
    }
}

fn kinds(found: &Output) -> Markup {
    html! {
        section aria-label="Kinds" {
            table {
                caption {
                    "Memories by kind"
                    @if found.bytes_on_disk > 0 { ", " (bytes(found.bytes_on_disk)) " on disk" }
                }
                thead { tr { th scope="col" { "Kind" } th.number scope="col" { "Memories" } th.number scope="col" { "Tokens" } } }
                tbody {
                    @for each in &found.kinds {
                        tr {
                            th scope="row" { (plain(&each.kind.replace('_', " "))) }
                            td.number { (thousands(each.memories.unsigned_abs())) }
                            td.number { (thousands(each.tokens.unsigned_abs())) }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the plots of what was remembered of each week.
fn growth(weeks: &[growth::Week]) -> Markup {
    let labels: Vec<String> = weeks.iter().map(|week| week.begins.clone()).collect();
    let mut groups: Vec<&str> =
        weeks.iter().flat_map(|week| week.memories.keys().map(String::as_str)).collect();
    groups.sort_unstable();
    groups.dedup();
    let memories = groups.iter().map(|group| Series {
        name: group.replace('_', " "),
        values: weeks.iter().map(|week| week.memories.get(*group).copied().unwrap_or(0) as f64).collect(),
    });
    let of = |name: &str, of: fn(&growth::Week) -> i64| Series {
        name: name.to_owned(),
        values: weeks.iter().map(|week| of(week) as f64).collect(),
    };
    let (sessions, commits) = (of("sessions", |week| week.sessions), of("commits", |week| week.commits));
    let sum = |series: &Series| series.values.iter().sum::<f64>() as i64;
    let all: i64 = weeks.iter().flat_map(|week| week.memories.values()).sum();
    html! {
        div.columns {
            (Plot {
                title: "Memories by week",
                description: format!("{} of the last {} weeks.", counted(all, "memory", "memories"), weeks.len()),
                axis: "Week",
                labels: labels.clone(),
                series: memories.collect(),
                shape: Shape::Bars,
            }.show())
            (Plot {
                title: "Sessions and commits by week",
                description: format!(
                    "{} and {} of the last {} weeks.",
                    counted(sum(&sessions), "session", "sessions"),
                    counted(sum(&commits), "commit", "commits"),
                    weeks.len()
                ),
                axis: "Week",
                labels,
                series: vec![sessions, commits],
                shape: Shape::Lines,
            }.show())
        }
    }
}

/// Returns the share of commits of which it is known why they were made.
fn reasons(found: &Output) -> Markup {
    let all = found.commits_since_sessions;
    let share = if all > 0 { found.commits_linked as f64 / all as f64 } else { 0.0 };
    html! {
        section aria-label="Reasons of commits" {
            h3 { "Commits with a known reason" }
            @if all == 0 {
                p.none { "No commit was made since the first session." }
            } @else {
                p.share { strong { (format!("{:.0}%", share * 100.0)) } " of " (thousands(all.unsigned_abs())) " commits since the first session lead to the session in which they were made." }
                meter min="0" max="1" value=(format!("{share:.3}")) aria-label="Share of commits with a known reason" { (format!("{:.0}%", share * 100.0)) }
            }
            @if let Some(rate) = found.join_rate {
                p.note { (format!("{:.0}%", rate * 100.0)) " of the sessions that changed a committed file are linked to a commit." }
            }
        }
    }
}

fn savings(found: &Output) -> Markup {
    let contexts = &found.contexts;
    let rows: Vec<(&str, i64, i64)> =
        found.tiers.iter().map(|tier| (tier.tier.as_str(), tier.tokens, tier.shown_tokens)).collect();
    html! {
        section aria-label="Tokens saved" {
            @match contexts.saved {
                // The frame of a context takes more than a very short conversation.
                Some(saved) if saved < 0.0 => p.none { "Only contexts of very short conversations were asked for yet; these save nothing." },
                Some(saved) => p.share {
                    strong { (format!("{:.0}%", saved * 100.0)) }
                    " of the tokens of whole conversations were saved by "
                    (counted(contexts.answers, "context", "contexts")) ": "
                    (thousands(contexts.sent_tokens.unsigned_abs())) " instead of "
                    (thousands(contexts.conversation_tokens.unsigned_abs())) "."
                },
                None => p.none { "No context of a conversation was asked for yet." },
            }
            (Plot {
                title: "Tokens of conversations, by age",
                description: "The older a part of a conversation is, the shorter contexts show it.".to_owned(),
                axis: "Age",
                labels: rows.iter().map(|(tier, ..)| (*tier).to_owned()).collect(),
                series: vec![
                    Series { name: "shown".to_owned(), values: rows.iter().map(|(.., shown)| *shown as f64).collect() },
                    Series { name: "saved".to_owned(), values: rows.iter().map(|(_, all, shown)| (all - shown).max(0) as f64).collect() },
                ],
                shape: Shape::Bars,
            }.show())
        }
    }
}

/// Returns the plot of the cost by day and provider.
fn money(found: &Output) -> Markup {
    let mut days: BTreeMap<&str, BTreeMap<&str, f64>> = BTreeMap::new();
    for row in &found.spending {
        *days.entry(&row.day).or_default().entry(&row.provider).or_default() += row.cost;
    }
    let days: Vec<(&str, BTreeMap<&str, f64>)> = days.into_iter().collect();
    let days = &days[days.len().saturating_sub(DAYS)..];
    let mut providers: Vec<&str> = days.iter().flat_map(|(_, of)| of.keys().copied()).collect();
    providers.sort_unstable();
    providers.dedup();
    let total: f64 = days.iter().flat_map(|(_, of)| of.values()).sum();
    let series = providers.iter().map(|provider| Series {
        name: (*provider).to_owned(),
        values: days.iter().map(|(_, of)| of.get(provider).copied().unwrap_or(0.0)).collect(),
    });
    html! {
        section aria-label="Cost" {
            (Plot {
                title: "Cost by day, US dollars, all projects",
                description: format!("{} with requests cost ${total:.4}.", counted(days.len(), "day", "days")),
                axis: "Day",
                labels: days.iter().map(|(day, _)| (*day).to_owned()).collect(),
                series: series.collect(),
                shape: Shape::Bars,
            }.show())
        }
    }
}

/// Returns the work that is not done yet.
fn pending(found: &Output) -> Markup {
    let queue = &found.queue;
    html! {
        section aria-label="Pending work" {
            h2 { "Pending work" }
            ul {
                li { (counted(found.pending, "piece has", "pieces have")) " no embedding yet, " (thousands(found.embedded.unsigned_abs())) " have one" }
                li { (counted(queue.pending + queue.processing, "summary waits", "summaries wait")) " for a provider, " (thousands(queue.failed.unsigned_abs())) " failed" }
                li { (counted(found.forgotten, "forgotten memory", "forgotten memories")) " can be brought back" }
            }
            p.note {
                @match &found.embedder {
                    Some(name) => { "Embeddings by " code { (plain(name)) } "." }
                    None => { "No embedding model: searches work by words. " code { "tiro model install" } " installs one." }
                }
            }
        }
    }
}

/// Returns the place of the checks. They read the whole store, so they are made after the page is shown.
fn checks() -> Markup {
    html! {
        section aria-label="Checks" {
            h2 { "Does everything work?" }
            div data-later="/doctor.json" data-caption="What tiro doctor says" {
                p { a href="/doctor" { "Check the installation" } }
            }
        }
    }
}

/// Shows what the checks found.
pub async fn check(engine: &Engine, caller: &WritingCaller, _: &Request) -> Result<View> {
    let found = doctor::run(engine, caller).await?;
    let body = html! {
        h1 { "Does everything work?" }
        p role="status" { (if found.ok { "No check found a fault." } else { "Some checks found a fault." }) }
        table.checks {
            caption { "What tiro doctor says" }
            tbody {
                @for finding in &found.findings {
                    @let (text, mend) = texts(finding);
                    tr class=[(!finding.ok).then_some("bad")] {
                        th scope="row" { (finding.what) }
                        td { (if finding.ok { "fine" } else { "fault" }) }
                        td { (text) @if let Some(mend) = mend { br; code { (mend) } } }
                    }
                }
            }
        }
    };
    Ok(View::new("/", "Checks", body))
}

/// Returns what the checks found, as JSON: the script makes a table of it.
pub async fn check_in_json(engine: &Engine, caller: &WritingCaller, _: &Request) -> Result<String> {
    let found = doctor::run(engine, caller).await?;
    let rows: Vec<_> = found
        .findings
        .iter()
        .map(|finding| {
            let (text, mend) = texts(finding);
            json!({ "what": finding.what, "ok": finding.ok, "found": text, "mend": mend })
        })
        .collect();
    Ok(serde_json::Value::Array(rows).to_string())
}

fn texts(finding: &Finding) -> (String, Option<String>) {
    let shown = |text: &str| plain(&without_tools(text)).into_owned();
    (shown(&finding.found), finding.mend.as_deref().map(shown))
}
