//! `evals facts`: compares the facts that Tiro extracts with those that annotators extracted from the same conversations.
//!
//! A fact counts as right if an annotator took a fact from its message, too. An annotated fact counts as found if one of
//! its messages is the source of one of Tiro's facts. Both lists are compared at the same length: if Tiro's facts have
//! more characters than the annotated ones, the surplus is left out. The share of right facts is a precision only where
//! annotations exist. For conversations without annotations, the command counts the facts and says so; a reader measures
//! their precision with `evals read facts`.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::budget::Suite;
use crate::calls;
use crate::client::{Era, Place, Tiro};
use crate::stats::{Goal, Report, interval, print_table};
use crate::suite::Message;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory with messages.jsonl and queries.jsonl
    #[arg(long)]
    suite: PathBuf,
    /// File with the annotated conversations: a JSON list of objects with `sample_id` and `observation`, as in LoCoMo
    #[arg(long)]
    annotations: Option<PathBuf>,
    /// Only these conversations
    #[arg(long)]
    only: Vec<String>,
    /// Print each fact, with `+` if its message is annotated
    #[arg(long)]
    show: bool,
}

/// A conversation with its annotations.
#[derive(Deserialize)]
struct Annotated {
    sample_id: String,
    /// For each session, for each speaker, the facts: pairs of a text and the ids of its messages.
    observation: BTreeMap<String, BTreeMap<String, Vec<(String, Value)>>>,
}

/// A fact that Tiro extracted.
#[derive(Deserialize)]
struct Fact {
    kind: String,
    provenance: String,
    session_id: Option<String>,
    time: String,
    text: String,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let mut suite = Suite::read(&args.suite)?;
    suite.conversations.retain(|name, _| args.only.is_empty() || args.only.contains(name));
    let annotated: Vec<Annotated> = match &args.annotations {
        Some(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("reading `{}`", path.display()))?;
            serde_json::from_str(&text).context("reading the annotations")?
        }
        None => Vec::new(),
    };
    let mut rows = vec![
        ["conversation", "messages", "ours", "right %", "theirs", "found %", "characters, ours / theirs"]
            .map(String::from)
            .to_vec(),
    ];
    let (mut ours, mut right, mut theirs, mut found, mut unknown) = (0, 0, 0, 0, 0);
    for (name, (messages, _)) in &suite.conversations {
        let facts = extracted(tiro, messages)?;
        let Some(annotated) = annotated.iter().find(|each| each.sample_id == *name) else {
            rows.push(without_annotations(name, messages, &facts, args.show));
            unknown += facts.len();
            continue;
        };
        let observed: Vec<(&str, Vec<String>)> = annotated
            .observation
            .values()
            .flat_map(BTreeMap::values)
            .flatten()
            .map(|(text, ids)| (text.as_str(), message_ids(ids)))
            .collect();
        let sources: HashSet<&str> = observed.iter().flat_map(|(_, ids)| ids).map(String::as_str).collect();
        let length: usize = observed.iter().map(|(text, _)| text.len()).sum();
        let (mut own_length, mut own_sources, mut own_right) = (0, HashSet::new(), 0);
        let mut used = 0;
        for (text, source) in &facts {
            let is_right = source.is_some_and(|source| sources.contains(source));
            if args.show {
                println!("{} {} {text}", if is_right { "+" } else { "-" }, source.unwrap_or("?"));
            }
            own_right += usize::from(is_right);
            own_length += text.len();
            if own_length <= length {
                own_sources.extend(*source);
                used += 1;
            }
        }
        let own_found =
            observed.iter().filter(|(_, ids)| ids.iter().any(|id| own_sources.contains(id.as_str()))).count();
        rows.push(vec![
            name.clone(),
            messages.len().to_string(),
            format!("{} ({used} compared)", facts.len()),
            format!("{:.1}", share(own_right, facts.len())),
            observed.len().to_string(),
            format!("{:.1}", share(own_found, observed.len())),
            format!("{own_length} / {length}"),
        ]);
        ours += facts.len();
        right += own_right;
        theirs += observed.len();
        found += own_found;
    }
    print_table(&rows);
    println!();
    if unknown > 0 {
        println!(
            "{unknown} facts are of conversations without annotations: `evals read facts` measures their precision.\n"
        );
    }
    if ours + unknown == 0 {
        bail!("no facts were extracted");
    }
    let mut report = Report::default();
    if theirs > 0 {
        report.aim(
            "facts from annotated messages (precision by annotation)",
            share(right, ours),
            "%",
            Goal::AtLeast(70.0),
        );
        let (low, high) = interval(right, ours);
        report.add("  lower bound, 95%", 100.0 * low, "%");
        report.add("  upper bound, 95%", 100.0 * high, "%");
        report.add("annotated facts found (recall)", share(found, theirs), "%");
    }
    report.add("facts", (ours + unknown) as f64, "");
    report.add("facts without an annotation of their conversation", unknown as f64, "");
    report.detail = json!({"right": right, "theirs": theirs, "found": found});
    Ok(report)
}

/// Returns the row of a conversation without annotations, and prints its facts if `is_shown`.
fn without_annotations(
    name: &str,
    messages: &[Message],
    facts: &[(String, Option<&str>)],
    is_shown: bool,
) -> Vec<String> {
    if is_shown {
        facts.iter().for_each(|(text, source)| println!("? {} {text}", source.unwrap_or("?")));
    }
    let none = || "-".to_owned();
    vec![name.into(), messages.len().to_string(), facts.len().to_string(), none(), none(), none(), none()]
}

fn share(part: usize, all: usize) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

/// Returns the ids of messages, such as `D3:12`, in an annotation.
fn message_ids(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == ':'))
            .filter(|id| id.contains(':'))
            .map(str::to_owned)
            .collect(),
        Value::Array(values) => values.iter().flat_map(message_ids).collect(),
        _ => Vec::new(),
    }
}

/// Returns the facts that Tiro extracts from the messages, each with the id of its message.
fn extracted<'m>(tiro: &Tiro, messages: &'m [Message]) -> Result<Vec<(String, Option<&'m str>)>> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let mut server = tiro.serve(&place, Era::Session)?;
    calls::save_messages(&mut server, messages)?;
    server.close()?;
    let project = calls::path_text(&place.project)?.to_owned();
    // Without a model the command fails after it extracted the facts.
    let _ = tiro.run(&place, &["index", "--project", &project], calls::LONG);
    let exported = tiro.run(&place, &["export", "--project", &project], calls::LONG)?;
    let mut facts: Vec<(String, Option<&str>)> = Vec::new();
    for line in exported.lines() {
        let fact: Fact = serde_json::from_str(line).context("reading an exported memory")?;
        if fact.provenance != "derived" || !matches!(fact.kind.as_str(), "fact" | "decision") {
            continue;
        }
        facts.push((fact.text.clone(), source(&fact, messages)));
    }
    facts.reverse();
    Ok(facts)
}

/// Returns the id of the message that the fact was taken from: it has the fact's session and time, and most of its words.
fn source<'m>(fact: &Fact, messages: &'m [Message]) -> Option<&'m str> {
    let is_source = |message: &&Message| {
        let same_time = message.time.as_ref().is_none_or(|time| time.get(..19) == fact.time.get(..19));
        fact.session_id.as_deref() == Some(message.session.as_str())
            && same_time
            && holds_words(&fact.text, &message.text)
    };
    messages.iter().find(is_source).map(|message| message.id.as_str())
}

/// Returns whether `message` has all words of `fact`.
pub fn holds_words(fact: &str, message: &str) -> bool {
    let words = |text: &str| -> HashSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    words(fact).is_subset(&words(message))
}
