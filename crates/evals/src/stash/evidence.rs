//! How much of the evidence the best segments of the stash restore, and what they cost.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Args;
use super::sweep::{self, Asked, Found};
use crate::calls;
use crate::client::{Era, Place, Server, Tiro};
use crate::corpus::{self, rfc3339};
use crate::score::ADVERSARIAL;
use crate::stats::{Goal, Report, median, percentile};
use crate::suite::{self, Message, Query};

/// How many messages at the end of a conversation are not stashed.
const RECENT: usize = 10;
/// The default weight of relevance in a score.
const RELEVANCE: f64 = 0.9;
/// How many segments are found for the sweep of weights.
const FOUND: usize = 50;

/// What the questions about all conversations gave.
#[derive(Default)]
struct Seen {
    /// For each question: its category, the share of its evidence that came back, and the tokens added.
    questions: Vec<(String, f64, f64)>,
    asked: Vec<Asked>,
    ms: Vec<f64>,
    merge_ms: Vec<f64>,
    history_tokens: Vec<f64>,
}

/// Measures and returns the report.
pub(super) fn run(suite: &Path, args: &Args, tiro: &Tiro) -> Result<Report> {
    let mut conversations: BTreeMap<String, (Vec<Message>, Vec<Query>)> = BTreeMap::new();
    for message in suite::read_lines::<Message>(&suite.join("messages.jsonl"))? {
        conversations.entry(message.project.clone()).or_default().0.push(message);
    }
    for query in suite::read_lines::<Query>(&suite.join("queries.jsonl"))? {
        conversations.entry(query.project.clone()).or_default().1.push(query);
    }
    conversations.retain(|name, _| args.only.is_empty() || args.only.contains(name));
    let mut seen = Seen::default();
    for (name, (messages, queries)) in &mut conversations {
        if args.fresh {
            end_now(messages);
        }
        conversation(messages, queries, args, tiro, &mut seen)
            .with_context(|| format!("in conversation `{name}`"))?;
    }
    report(args, &seen)
}

/// Moves the times so that the last message was said now.
fn end_now(messages: &mut [Message]) {
    let seconds = |message: &Message| message.time.as_deref().and_then(|time| corpus::seconds_of(time).ok());
    let Some(last) = messages.iter().filter_map(seconds).max() else { return };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs() as i64);
    for message in messages {
        if let Some(time) = seconds(message) {
            message.time = Some(rfc3339(now - (last - time)));
        }
    }
}

fn conversation(
    messages: &[Message],
    queries: &[Query],
    args: &Args,
    tiro: &Tiro,
    seen: &mut Seen,
) -> Result<()> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let mut server = tiro.serve(&place, Era::Session)?;
    calls::save_messages(&mut server, messages)?;
    calls::index(tiro, &place)?;
    calls::settle(tiro, &place, &mut server)?;
    // Messages are numbered within their sessions, in the order of saving.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut ids: HashMap<(String, i64), &str> = HashMap::new();
    let mut stashed: Vec<String> = Vec::new();
    let mut kept: HashSet<&str> = HashSet::new();
    for (place, message) in messages.iter().enumerate() {
        let number = numbers.entry(&message.session).or_insert(0);
        ids.insert((message.session.clone(), *number as i64), &message.id);
        match place + RECENT < messages.len() {
            true => stashed.push(format!("{}#{number}", message.session)),
            false => drop(kept.insert(&message.id)),
        }
        *number += 1;
    }
    let answer = server.tool("stash_context", json!({"segment_ids": stashed}))?;
    seen.history_tokens.push(answer.structured()["tokens"].as_f64().unwrap_or(0.0));
    for query in queries {
        let gold: HashSet<&str> =
            query.gold.iter().map(String::as_str).filter(|id| !kept.contains(id)).collect();
        if !gold.is_empty() {
            ask(&mut server, query, &gold, &ids, args, seen)
                .with_context(|| format!("asking `{}`", query.qid))?;
        }
    }
    Ok(())
}

fn ask(
    server: &mut Server,
    query: &Query,
    gold: &HashSet<&str>,
    ids: &HashMap<(String, i64), &str>,
    args: &Args,
    seen: &mut Seen,
) -> Result<()> {
    let id_of = |segment: &Value| {
        let place =
            (segment["session_id"].as_str().unwrap_or_default().to_owned(), segment["number"].as_i64()?);
        ids.get(&place).copied()
    };
    let best = server.tool("retrieve_stashed_context", json!({"query": query.query, "top_k": args.top}))?;
    seen.ms.push(best.ms());
    let segments = best.structured()["segments"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = segments.iter().filter_map(|segment| segment["id"].as_str()).collect();
    let (mut came, mut tokens) = (HashSet::new(), 0.0);
    if !names.is_empty() {
        let merged = server.tool("merge_stashed_context", json!({"segment_ids": names}))?;
        seen.merge_ms.push(merged.ms());
        let merged = merged.structured();
        tokens = merged["tokens_added"].as_f64().unwrap_or(0.0);
        came.extend(merged["segments"].as_array().into_iter().flatten().filter_map(id_of));
    }
    let share = gold.iter().filter(|id| came.contains(**id)).count() as f64 / gold.len() as f64;
    seen.questions.push((query.category.clone(), share, tokens));
    let all = server.tool("retrieve_stashed_context", json!({"query": query.query, "top_k": FOUND}))?;
    let found = all.structured()["segments"].as_array().cloned().unwrap_or_default();
    let found = found.iter().filter_map(|segment| {
        Some(Found {
            is_gold: gold.contains(id_of(segment)?),
            relevance: segment["score"]["relevance"].as_f64()? / RELEVANCE,
            similarity: segment["similarity"].as_f64(),
            age_days: sweep::age_days(segment["time"].as_str()?)?,
        })
    });
    seen.asked.push(Asked { gold: gold.len(), found: found.collect() });
    Ok(())
}

fn report(args: &Args, seen: &Seen) -> Result<Report> {
    let mut by_category: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (category, share, _) in &seen.questions {
        by_category.entry(category).or_default().push(*share);
    }
    let mean = |shares: &[f64]| 100.0 * shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let of_all: Vec<f64> = seen
        .questions
        .iter()
        .filter(|(category, ..)| category != ADVERSARIAL)
        .map(|(_, share, _)| *share)
        .collect();
    let mut report = Report::default();
    let name = format!("evidence restored by the top {}", args.top);
    report.aim(name, mean(&of_all), "%", Goal::AtLeast(66.0));
    for (category, shares) in &by_category {
        report.add(format!("  {category} ({} questions)", shares.len()), mean(shares), "%");
    }
    let tokens: Vec<f64> = seen.questions.iter().map(|(_, _, tokens)| *tokens).collect();
    report.add("tokens added by a merge, p50", median(&tokens), "");
    report.add("tokens of the stashed history, p50", median(&seen.history_tokens), "");
    report.add("retrieve over stdio, p50", percentile(&seen.ms, 0.5), "ms");
    report.add("retrieve over stdio, p95", percentile(&seen.ms, 0.95), "ms");
    report.add("merge over stdio, p50", percentile(&seen.merge_ms, 0.5), "ms");
    report.add("questions", seen.questions.len() as f64, "");
    let tables = sweep::print(&seen.asked, args.top);
    report.detail = json!({"by_category": by_category.keys().collect::<Vec<_>>(), "sweep": tables});
    Ok(report)
}
