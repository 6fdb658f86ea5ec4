//! `evals retrieval`: how much of the evidence for a question search finds among the messages of a conversation.
//!
//! Every conversation gets its own memory, so that ids may be the same in several conversations and a search can't find
//! another one. Messages are stored and questions are asked through the server, as an agent does.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;

use crate::calls;
use crate::client::{Era, Place, Tiro};
use crate::score::{self, ADVERSARIAL};
use crate::stats::{Goal, Report};
use crate::suite::{self, Message, Query, Ranking};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory with messages.jsonl and queries.jsonl
    #[arg(long)]
    suite: PathBuf,
    /// File to write the rankings to, one JSON object a line
    #[arg(long)]
    out: Option<PathBuf>,
    /// Hits to ask for
    #[arg(long, default_value_t = 50)]
    k: usize,
    /// Conversations to work on in parallel; more than one raises the latencies
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Only these conversations
    #[arg(long)]
    only: Vec<String>,
}

/// A conversation with the questions about it.
struct Conversation {
    messages: Vec<Message>,
    queries: Vec<Query>,
}

/// How many seconds each part of the work on a conversation took.
#[derive(Default)]
struct Spent {
    saving: f64,
    embedding: f64,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let conversations: Vec<Conversation> = read(args)?.into_values().collect();
    let next = AtomicUsize::new(0);
    let done = Mutex::new((Vec::new(), Spent::default()));
    thread::scope(|scope| -> Result<()> {
        let work = || -> Result<()> {
            while let Some(conversation) = conversations.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (rankings, spent) = answer(conversation, args.k, tiro)?;
                let mut done = done.lock().expect("no holder panics");
                done.0.extend(rankings);
                done.1.saving += spent.saving;
                done.1.embedding += spent.embedding;
            }
            Ok(())
        };
        let workers: Vec<_> = (0..args.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let (mut rankings, spent) = done.into_inner().expect("no holder panics");
    let queries: Vec<Query> =
        conversations.iter().flat_map(|conversation| conversation.queries.clone()).collect();
    rankings.sort_by(|a, b| a.qid.cmp(&b.qid));
    if let Some(out) = &args.out {
        suite::write_lines(out, &rankings)?;
    }
    report(&queries, &rankings, &spent, &conversations)
}

fn report(
    queries: &[Query],
    rankings: &[Ranking],
    spent: &Spent,
    conversations: &[Conversation],
) -> Result<Report> {
    let scores = score::score(queries, rankings);
    scores.print();
    println!();
    let mut report = Report::default();
    let is_chat = scores.categories.contains_key("event_ordering");
    let goal = if is_chat { 55.0 } else { 78.0 };
    report.aim("R@10, all but adversarial", scores.recall_at_10(), "%", Goal::AtLeast(goal));
    if let Some(adversarial) = scores.categories.get(ADVERSARIAL) {
        report.aim("R@10, adversarial", 100.0 * adversarial.recall[2], "%", Goal::AtLeast(86.0));
    }
    report.add("of the first 10, by the assistant", of_assistant(rankings, queries, conversations), "%");
    let ms: Vec<f64> = rankings.iter().map(|ranking| ranking.ms).collect();
    report.add_spread("search over stdio", &ms, "ms");
    let tokens: Vec<f64> = rankings.iter().map(|ranking| ranking.tokens as f64).collect();
    report.add("tokens an answer, p50", crate::stats::median(&tokens), "");
    let messages: usize = conversations.iter().map(|conversation| conversation.messages.len()).sum();
    report.add("messages", messages as f64, "");
    report.add("saving, all conversations", spent.saving, "s");
    report.add("waiting for embeddings, all conversations", spent.embedding, "s");
    report.detail = json!({ "scores": scores });
    Ok(report)
}

/// Returns how many of the first ten hits of all questions are messages of an assistant, in per cent.
fn of_assistant(rankings: &[Ranking], queries: &[Query], conversations: &[Conversation]) -> f64 {
    let messages = conversations.iter().flat_map(|conversation| &conversation.messages);
    let roles: BTreeMap<(&str, &str), &str> = messages
        .map(|message| ((message.project.as_str(), message.id.as_str()), message.role.as_str()))
        .collect();
    let projects: BTreeMap<&str, &str> =
        queries.iter().map(|query| (query.qid.as_str(), query.project.as_str())).collect();
    let first = rankings.iter().flat_map(|ranking| {
        let project = projects.get(ranking.qid.as_str()).copied().unwrap_or_default();
        ranking.ranked.iter().take(10).map(move |id| (project, id))
    });
    let known: Vec<&str> =
        first.filter_map(|(project, id)| roles.get(&(project, id.as_str())).copied()).collect();
    100.0 * known.iter().filter(|role| **role == "assistant").count() as f64 / known.len().max(1) as f64
}

/// Reads the suite and groups it by conversation.
fn read(args: &Args) -> Result<BTreeMap<String, Conversation>> {
    let mut conversations: BTreeMap<String, Conversation> = BTreeMap::new();
    let empty = || Conversation { messages: Vec::new(), queries: Vec::new() };
    for message in suite::read_lines::<Message>(&args.suite.join("messages.jsonl"))? {
        conversations.entry(message.project.clone()).or_insert_with(empty).messages.push(message);
    }
    for query in suite::read_lines::<Query>(&args.suite.join("queries.jsonl"))? {
        conversations.entry(query.project.clone()).or_insert_with(empty).queries.push(query);
    }
    conversations.retain(|name, _| args.only.is_empty() || args.only.contains(name));
    Ok(conversations)
}

/// Stores one conversation in a fresh memory and asks its questions.
fn answer(conversation: &Conversation, k: usize, tiro: &Tiro) -> Result<(Vec<Ranking>, Spent)> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let mut server = tiro.serve(&place, Era::Session)?;
    let started = Instant::now();
    calls::save_messages(&mut server, &conversation.messages)?;
    let saving = started.elapsed().as_secs_f64();
    // The memory that represents a whole session can be a hit in addition to the session's messages.
    if tiro.has_model() {
        calls::index(tiro, &place)?;
        calls::settle(tiro, &place, &mut server)?;
    }
    let embedding = started.elapsed().as_secs_f64() - saving;
    let mut rankings = Vec::with_capacity(conversation.queries.len());
    for query in &conversation.queries {
        let answer =
            calls::search(&mut server, &query.query, k).with_context(|| format!("asking `{}`", query.qid))?;
        rankings.push(calls::ranking(&query.qid, &answer));
    }
    Ok((rankings, Spent { saving, embedding }))
}
