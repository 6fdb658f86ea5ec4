//! `evals nothing`: how often Tiro says that the memory has nothing about a question, and how often that is right.
//!
//! Each conversation of the suite gets its own memory. It is asked its own questions, its adversarial questions (their
//! words occur, but what they ask was never said), and the questions of the next conversation, which are far from it.
//! A far question must get the notice. For an adversarial question, the notice is right, but it isn't expected: the
//! nearest texts share most of its words.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::budget::{BUDGET, Suite};
use crate::calls;
use crate::client::{Answer, Era, Place, Server, Tiro};
use crate::score::ADVERSARIAL;
use crate::stats::{Report, mean, print_table, share_with_interval};
use crate::suite::Query;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory with messages.jsonl and queries.jsonl
    #[arg(long)]
    suite: PathBuf,
    /// Budget of the contexts in tokens
    #[arg(long, default_value_t = BUDGET)]
    budget: usize,
    /// Ask only every n-th question of each kind
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Only these conversations; far questions come from all
    #[arg(long)]
    only: Vec<String>,
}

/// The words of the notice, which are a part of the program's promise to agents.
const NOTICE: &str = "nothing here is about this";

/// How far a question is from the conversation that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distance {
    Answerable,
    Near,
    Far,
}

/// Every distance with its name in the table.
const DISTANCES: [(Distance, &str); 3] = [
    (Distance::Answerable, "answerable"),
    (Distance::Near, "near miss (adversarial)"),
    (Distance::Far, "far (of another conversation)"),
];

/// What one question got.
struct Got {
    distance: Distance,
    /// Whether the search has the notice.
    search: bool,
    /// Whether the context has the notice or no passage.
    context: bool,
    /// Whether the context has no passage.
    is_empty: bool,
    tokens: [f64; 2],
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let suite = Suite::read(&args.suite)?;
    let all: Vec<_> = suite.conversations.into_iter().collect();
    let mut got = Vec::new();
    for (place, (name, (messages, own))) in all.iter().enumerate() {
        if !args.only.is_empty() && !args.only.contains(name) {
            continue;
        }
        let others: &[Query] = if all.len() > 1 { &all[(place + 1) % all.len()].1.1 } else { &[] };
        let root = tempfile::tempdir().context("making a temporary directory")?;
        let memory = Place::create(root.path())?;
        let mut server = tiro.serve(&memory, Era::Session)?;
        calls::save_messages(&mut server, messages)?;
        calls::index(tiro, &memory)?;
        calls::settle(tiro, &memory, &mut server)?;
        for (distance, query) in asked(own, others, args.every.max(1)) {
            let one = ask(&mut server, &query.query, args.budget);
            let (search, context) = one.with_context(|| format!("asking `{}`", query.qid))?;
            got.push(judged(distance, &search, &context));
        }
    }
    ensure!(!got.is_empty(), "no questions in `{}`", args.suite.display());
    Ok(report(args, &got))
}

/// Returns every n-th question of each distance.
fn asked<'q>(own: &'q [Query], others: &'q [Query], every: usize) -> Vec<(Distance, &'q Query)> {
    let is_adversarial = |query: &&Query| query.category == ADVERSARIAL;
    let answerable =
        |queries: &'q [Query]| queries.iter().filter(move |query| !is_adversarial(query)).step_by(every);
    (answerable(own).map(|query| (Distance::Answerable, query)))
        .chain(own.iter().filter(is_adversarial).step_by(every).map(|query| (Distance::Near, query)))
        .chain(answerable(others).map(|query| (Distance::Far, query)))
        .collect()
}

fn ask(server: &mut Server, question: &str, budget: usize) -> Result<(Answer, Answer)> {
    let search = calls::search(server, question, 10)?;
    let context =
        calls::patiently(server, "retrieve_context", json!({"query": question, "max_tokens": budget}))?;
    Ok((search, context))
}

fn judged(distance: Distance, search: &Answer, context: &Answer) -> Got {
    let says = |answer: &Answer| {
        let notices = answer.structured()["notices"].as_array().into_iter().flatten();
        notices.filter_map(|notice| notice.as_str()).any(|notice| notice.contains(NOTICE))
    };
    let is_empty = context.structured()["context"].as_str().unwrap_or_default().is_empty();
    let tokens = [search, context].map(|answer| answer.structured()["tokens_used"].as_f64().unwrap_or(0.0));
    Got { distance, search: says(search), context: says(context) || is_empty, is_empty, tokens }
}

fn report(args: &Args, got: &[Got]) -> Report {
    let header =
        ["question", "n", "search says so, % (95%)", "tokens", "context says so, % (95%)", "empty", "tokens"];
    let mut rows = vec![header.map(String::from).to_vec()];
    let mut report = Report::default();
    for (distance, name) in DISTANCES {
        let own: Vec<&Got> = got.iter().filter(|each| each.distance == distance).collect();
        if own.is_empty() {
            continue;
        }
        let count = |is: &dyn Fn(&Got) -> bool| own.iter().filter(|each| is(each)).count();
        let tokens = |which: usize| mean(&own.iter().map(|each| each.tokens[which]).collect::<Vec<_>>());
        let (search, context) = (count(&|each| each.search), count(&|each| each.context));
        rows.push(vec![
            name.into(),
            own.len().to_string(),
            share_with_interval(search, own.len()),
            format!("{:.0}", tokens(0)),
            share_with_interval(context, own.len()),
            count(&|each| each.is_empty).to_string(),
            format!("{:.0}", tokens(1)),
        ]);
        let share = |part: usize| 100.0 * part as f64 / own.len() as f64;
        report.add(format!("{name}: search says so"), share(search), "%");
        report.add(format!("{name}: context says so"), share(context), "%");
    }
    for (what, says) in
        [("search", (|each| each.search) as fn(&Got) -> bool), ("context", |each| each.context)]
    {
        let said: Vec<&Got> = got.iter().filter(|each| says(each)).collect();
        let right = said.iter().filter(|each| each.distance != Distance::Answerable).count();
        let share = 100.0 * right as f64 / said.len().max(1) as f64;
        report.add(format!("of the notices of a {what}, to a question without an answer"), share, "%");
        report.add(format!("notices of a {what}"), said.len() as f64, "");
    }
    print_table(&rows);
    println!();
    report.detail = json!({"budget": args.budget, "every": args.every});
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_is_thinned_alone() {
        let query = |qid: &str, category: &str| Query {
            qid: qid.into(),
            project: String::new(),
            query: String::new(),
            gold: Vec::new(),
            category: category.into(),
            answer: None,
        };
        let own = [query("1", "x"), query("2", ADVERSARIAL), query("3", "x"), query("4", ADVERSARIAL)];
        let others = [query("5", ADVERSARIAL), query("6", "x"), query("7", "x")];
        let drawn = asked(&own, &others, 2);
        let short: Vec<_> = drawn.iter().map(|(distance, query)| (*distance, query.qid.as_str())).collect();
        assert_eq!(short, [(Distance::Answerable, "1"), (Distance::Near, "2"), (Distance::Far, "6")]);
    }
}
