//! Whether a memory in files and one in PostgreSQL give the same answers.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Sizes;
use super::ground::Ground;
use crate::calls;
use crate::client::{Era, Place, Server, Tiro};
use crate::corpus::Corpus;
use crate::stats::Report;
use crate::suite::Message;

/// How many hits are compared.
const K: usize = 10;

/// By how much scores may differ: answers show three decimals, and the last may be rounded either way.
const TOLERANCE: f64 = 0.0011;

/// How long `tiro stats` may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is compared of a hit.
#[derive(Debug, PartialEq)]
struct Hit {
    source: String,
    text: String,
    score: f64,
}

/// Measures, and adds the figures. The questions with other answers are returned.
pub fn measure(sizes: &Sizes, url: &str, tiro: &Tiro, report: &mut Report) -> Result<Vec<Value>> {
    let ground = Ground::new("parity", url, tiro)?;
    let files = tempfile::tempdir().context("making a temporary directory")?;
    let of_files = Place::create(files.path())?;
    let corpus = Corpus::new(sizes.seed);
    let messages: Vec<_> = (0..sizes.messages).map(|index| corpus.message(index)).collect();
    let without = Tiro { environment: Vec::new(), ..tiro.clone() };
    fill(&without, &of_files, &messages)?;
    fill(&ground.tiro, &ground.place, &stored(&without, &of_files, messages)?)?;
    let both = [(&without, &of_files), (&ground.tiro, &ground.place)];
    let [of_files, of_database] = both.map(|(tiro, place)| counts(tiro, place));
    let (of_files, of_database) = (of_files?, of_database?);
    if of_files != of_database {
        bail!("the two memories are not alike: {of_files} in files, {of_database} in PostgreSQL");
    }
    let [first, second] = both.map(|(tiro, place)| tiro.serve(place, Era::Session));
    let (first, second) = (&mut first?, &mut second?);
    let (mut different, mut hits, mut contexts) = (Vec::new(), 0, 0);
    for index in 0..sizes.compared {
        let question = corpus.query(index, sizes.messages);
        let (one, other) = (found(first, &question)?, found(second, &question)?);
        hits += one.len();
        if !are_same(&one, &other) {
            let shown = |hits: &[Hit]| format!("{hits:?}");
            different.push(json!({"question": question, "files": shown(&one), "PostgreSQL": shown(&other)}));
        }
        if index % 5 == 0 {
            let [one, other] = [&mut *first, &mut *second].map(|server| context(server, &question));
            contexts += usize::from(one? != other?);
        }
    }
    if hits == 0 {
        bail!("no question had a hit: nothing was compared");
    }
    report.add("questions to files and to PostgreSQL", sizes.compared as f64, "");
    report.add("  hits", hits as f64, "");
    report.must_be_zero("  questions with other hits, order or scores", different.len());
    report.must_be_zero("  contexts with other lines", contexts);
    Ok(different)
}

/// Returns the messages with the texts that a memory has of them. Where a text seemed to have a secret, there is a mark,
/// which another installation leaves as it is, but would have made another one of.
fn stored(tiro: &Tiro, place: &Place, messages: Vec<Message>) -> Result<Vec<Message>> {
    let lines = tiro.run(place, &["export", "--project", calls::path_text(&place.project)?], calls::LONG)?;
    let mut texts: HashMap<(String, String), String> = HashMap::new();
    for line in lines.lines() {
        let memory: Value = serde_json::from_str(line).with_context(|| format!("`{line}` is no JSON"))?;
        let field = |name: &str| memory[name].as_str().map(str::to_owned);
        if let (Some(session), Some(id), Some(text)) =
            (field("session_id"), field("source_id"), field("text"))
        {
            texts.insert((session, id), text);
        }
    }
    let stored = |message: Message| {
        let text = texts.remove(&(message.session.clone(), message.id.clone()));
        Ok(Message {
            text: text.with_context(|| format!("no message `{}` was stored", message.id))?,
            ..message
        })
    };
    messages.into_iter().map(stored).collect()
}

/// Saves the messages, and does everything that a server would do later, while nobody calls: summaries are memories, too,
/// so they change the scores of others.
fn fill(tiro: &Tiro, place: &Place, messages: &[Message]) -> Result<()> {
    let mut server = tiro.serve(place, Era::Session)?;
    calls::save_messages(&mut server, messages)?;
    server.close()?;
    match tiro.has_model() {
        true => calls::index(tiro, place),
        // Without a model, the command summarises, but ends with an error since nothing can be embedded.
        false => {
            tiro.run_to_end(place, &["index", "--project", calls::path_text(&place.project)?], calls::LONG)?;
            Ok(())
        }
    }
}

/// Returns how many memories of each kind there are.
fn counts(tiro: &Tiro, place: &Place) -> Result<Value> {
    let stats =
        tiro.run(place, &["stats", "--json", "--project", calls::path_text(&place.project)?], PATIENCE)?;
    let stats: Value = serde_json::from_str(&stats).context("`tiro stats` answers with JSON")?;
    let kinds = stats["kinds"].as_array().context("`tiro stats` counts kinds")?;
    Ok(kinds.iter().map(|kind| json!([kind["kind"], kind["memories"], kind["tokens"]])).collect())
}

/// Returns the hits of a question.
fn found(server: &mut Server, question: &str) -> Result<Vec<Hit>> {
    let answer = calls::search(server, question, K)?;
    let text = |hit: &Value, name: &str| hit[name].as_str().unwrap_or_default().to_owned();
    let hit = |hit: &Value| Hit {
        source: text(hit, "source_id"),
        text: text(hit, "text"),
        score: hit["score"].as_f64().unwrap_or(f64::NAN),
    };
    Ok(answer.hits().iter().map(hit).collect())
}

fn are_same(one: &[Hit], other: &[Hit]) -> bool {
    let is_same = |(a, b): (&Hit, &Hit)| {
        a.source == b.source && a.text == b.text && (a.score - b.score).abs() < TOLERANCE
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

/// Returns the lines of a context, without what differs between two memories with the same content: the marks of the
/// envelopes, which depend on a secret.
fn context(server: &mut Server, question: &str) -> Result<String> {
    let answer = calls::patiently(server, "retrieve_context", json!({"query": question}))?;
    let context = answer.structured()["context"].as_str().context("a context has lines")?;
    let lines = context.lines().filter(|line| !line.starts_with("[data ") && !line.starts_with("[/data "));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}
