//! `evals tiers`: how many tokens the context of one long conversation saves, and how much evidence it keeps.
//!
//! Each conversation of the suite is joined with the next one, and the last with the first, into one session in order
//! of time. Sessions that have fewer than a thousand messages are left out. A piece of evidence counts as kept if the
//! answer contains its full text. A fact counts as kept if the answer contains all those words of the question's short
//! answer that occur in the conversation. The part of the context that does not depend on the question, up to the end
//! of its envelope, must have the same bytes for every question.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::budget::{self, Asked, BUDGET, Suite};
use crate::calls;
use crate::client::{Era, Place, Tiro};
use crate::stats::{Goal, Report, print_table};
use crate::suite::{Message, Query};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory with messages.jsonl and queries.jsonl
    #[arg(long)]
    suite: PathBuf,
    /// Tokens of an answer
    #[arg(long, value_delimiter = ',', default_values_t = [BUDGET])]
    budgets: Vec<usize>,
    /// Ask only every n-th question
    #[arg(long, default_value_t = 2)]
    every: usize,
}

/// The minimum number of messages of a long conversation.
const LONG: usize = 1000;

/// The name of the joined session.
const SESSION: &str = "joined";

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let suite = Suite::read(&args.suite)?;
    let all: Vec<(Vec<Message>, Vec<Query>)> = suite.conversations.into_values().collect();
    ensure!(all.len() > 1, "there are no two conversations to join");
    let joined = (0..all.len()).map(|place| join(&all[place], &all[(place + 1) % all.len()]));
    let joined: Vec<(Vec<Message>, Vec<Query>)> =
        joined.filter(|(messages, _)| messages.len() >= LONG).collect();
    ensure!(!joined.is_empty(), "no two conversations have {LONG} messages together");
    let (mut asked, mut facts, mut whole) = (Vec::new(), BTreeMap::<usize, Vec<f64>>::new(), Vec::new());
    let mut prefixes = Prefixes::default();
    for (messages, queries) in &joined {
        let tokens = ask_all(messages, queries, args, tiro, &mut asked, &mut facts, &mut prefixes)?;
        whole.push(tokens as f64);
    }
    let mut report = Report::default();
    let mut rows = vec![budget::header()];
    let whole_mean = whole.iter().sum::<f64>() / whole.len() as f64;
    report.add("conversations", joined.len() as f64, "");
    report.add("tokens of a whole conversation", whole_mean, "");
    let mut best: Option<(f64, f64)> = None;
    for budget in &args.budgets {
        let own: Vec<&Asked> = asked.iter().filter(|asked| asked.budget == *budget).collect();
        let (kept, used) = budget::add_rows(&mut rows, &budget.to_string(), &own);
        let saved = 100.0 * (1.0 - used / whole_mean);
        report.add(format!("{budget}: tokens saved"), saved, "%");
        report.add(format!("{budget}: evidence kept"), kept, "%");
        report.add(format!("{budget}: tokens, mean"), used, "");
        let own_facts = &facts[budget];
        let kept_facts = 100.0 * own_facts.iter().sum::<f64>() / own_facts.len().max(1) as f64;
        report.add(format!("{budget}: facts kept"), kept_facts, "%");
        if kept >= 90.0 && best.is_none_or(|(most, _)| saved > most) {
            best = Some((saved, kept));
        }
    }
    print_table(&rows);
    println!();
    let (saved, kept) = best.unwrap_or((0.0, 0.0));
    report.aim("tokens saved at 90% of the evidence", saved, "%", Goal::AtLeast(77.0));
    report.add("  evidence there", kept, "%");
    report.aim(
        "answers that begin with the same bytes",
        100.0 * prefixes.same as f64 / prefixes.all.max(1) as f64,
        "%",
        Goal::AtLeast(100.0),
    );
    let over = asked.iter().filter(|asked| asked.tokens.iter().any(|tokens| *tokens > asked.budget)).count();
    report.must_be_zero("answers over their budget", over);
    let ms: Vec<f64> = asked.iter().map(|asked| asked.ms).collect();
    report.add_spread("assembly over stdio", &ms, "ms");
    report.detail = json!({"budgets": args.budgets, "every": args.every, "whole": whole});
    Ok(report)
}

/// Counts how often an answer began with the same bytes as the previous answer.
#[derive(Default)]
struct Prefixes {
    same: usize,
    all: usize,
}

/// Joins two conversations into one session, in order of time. Ids are prefixed with the conversation's name to keep
/// them distinct.
fn join(a: &(Vec<Message>, Vec<Query>), b: &(Vec<Message>, Vec<Query>)) -> (Vec<Message>, Vec<Query>) {
    let named = |project: &str, id: &str| format!("{project} {id}");
    let mut messages: Vec<Message> = [&a.0, &b.0]
        .into_iter()
        .flatten()
        .map(|message| Message {
            id: named(&message.project, &message.id),
            session: SESSION.into(),
            ..message.clone()
        })
        .collect();
    messages.sort_by(|a, b| a.time.cmp(&b.time));
    let queries = [&a.1, &b.1].into_iter().flatten().map(|query| Query {
        gold: query.gold.iter().map(|id| named(&query.project, id)).collect(),
        ..query.clone()
    });
    (messages, queries.collect())
}

/// Asks the questions and returns the tokens of the whole conversation.
fn ask_all(
    messages: &[Message],
    queries: &[Query],
    args: &Args,
    tiro: &Tiro,
    asked: &mut Vec<Asked>,
    facts: &mut BTreeMap<usize, Vec<f64>>,
    prefixes: &mut Prefixes,
) -> Result<usize> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let mut server = tiro.serve(&place, Era::Session)?;
    calls::save_messages(&mut server, messages)?;
    calls::settle(tiro, &place, &mut server)?;
    summarised(&mut server)?;
    let texts = budget::texts(messages);
    let said: HashSet<String> = messages.iter().flat_map(|message| words(&message.text)).collect();
    let mut answers = Vec::new();
    for budget in &args.budgets {
        let mut before: Option<String> = None;
        for query in queries.iter().step_by(args.every.max(1)) {
            let arguments = json!({"query": query.query, "session_id": SESSION, "max_tokens": budget});
            let answer =
                budget::ask(&mut server, arguments).with_context(|| format!("asking `{}`", query.qid))?;
            let prefix = first_envelope(&answer.text()).to_owned();
            if let Some(before) = before.replace(prefix) {
                prefixes.all += 1;
                prefixes.same += usize::from(before.len() > 200 && answer.text().starts_with(&before));
            }
            answers.push((query, *budget, answer));
        }
    }
    let tokens = budget::count(tiro, &place, answers.iter().map(|(.., answer)| answer))?;
    for ((query, budget, answer), tokens) in answers.iter().zip(tokens) {
        let text = answer.text();
        if let Some(kept) = fact(query, &said, &text) {
            facts.entry(*budget).or_default().push(kept);
        }
        asked.push(Asked {
            qid: query.qid.clone(),
            budget: *budget,
            category: query.category.clone(),
            kept: budget::kept(query, &texts, &text),
            users: None,
            user_share: 0.0,
            tokens,
            said: answer.structured()["tokens_used"].as_u64().unwrap_or(0) as usize,
            parts: budget::parts(answer),
            ms: answer.ms(),
        });
    }
    let whole: String = messages
        .iter()
        .map(|m| format!("{}: {}\n", m.speaker.as_deref().unwrap_or(&m.role), m.text))
        .collect();
    budget::count_text(tiro, &place, &whole)
}

/// Waits until the idle server has summarised everything.
fn summarised(server: &mut crate::client::Server) -> Result<()> {
    for _ in 0..240 {
        let arguments = json!({"query": "pending", "session_id": SESSION, "max_tokens": 1000});
        let answer = budget::ask(server, arguments)?;
        if answer.structured()["pending"].as_u64() == Some(0) {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(250));
    }
    anyhow::bail!("summaries stay pending")
}

/// Returns the text up to the end of its first envelope.
fn first_envelope(text: &str) -> &str {
    let end = text.find("\n[/data ").and_then(|at| Some(at + 1 + text[at + 1..].find('\n')? + 1));
    &text[..end.unwrap_or(text.len())]
}

/// Returns 1 if `text` contains all those words of the short answer that the conversation contains, otherwise 0. `None`
/// if there are no such words.
fn fact(query: &Query, said: &HashSet<String>, text: &str) -> Option<f64> {
    let answer = query.answer.as_ref()?;
    let answer = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
    let wanted: HashSet<String> = words(&answer).filter(|word| said.contains(word)).collect();
    let shown: HashSet<String> = words(text).collect();
    (!wanted.is_empty()).then(|| f64::from(u8::from(wanted.is_subset(&shown))))
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 2);
    words.map(str::to_lowercase)
}
