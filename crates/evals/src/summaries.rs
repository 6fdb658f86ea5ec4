//! `evals summaries`: how many words of answers a summary contains, compared with simpler ways to choose
//! sentences.
//!
//! Each session is summarised to a share of its tokens. For each single-hop question, the content words of the answer
//! are looked for in the summary of the session that has the evidence. Three simpler ways (the first sentences,
//! TextRank, and a random choice) get as many bytes as Tiro's summary has, including the names of speakers in it.
//! Tiro's quality score is computed for all four summaries and compared with how many of the words they contain.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::calls::{self, LONG};
use crate::client::{Era, Place, Tiro};
use crate::random::Random;
use crate::stats::{Goal, Report, percentile};
use crate::suite::{self, Message};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory with messages.jsonl and queries.jsonl
    #[arg(long)]
    suite: PathBuf,
    /// Tokens of a summary for 100 of its session
    #[arg(long, default_value_t = 22)]
    percent: usize,
    /// The kind of question whose answers are looked for
    #[arg(long, default_value = "single-hop")]
    category: String,
}

#[derive(Debug, Deserialize)]
struct Question {
    project: String,
    gold: Vec<String>,
    category: String,
    answer: Value,
}

/// How many tokens an answer has in addition to the summary, as the tool counts them.
const FRAME: usize = 180;

/// The ways to choose sentences, Tiro's first.
const WAYS: [&str; 4] = ["tiro", "textrank", "random", "lead"];

/// Words of answers that are not looked for.
pub const COMMON: &str = "a about after all also am an and any are as at be because been before but by can could did do \
    does for from get got had has have he her him his how i if in into is it its just me more my no not of on or our out \
    she so some than that the their them then there they this to too up was we were what when where which who will with \
    would you your";

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let messages = suite::read_lines::<Message>(&args.suite.join("messages.jsonl"))?;
    let mut questions = suite::read_lines::<Question>(&args.suite.join("queries.jsonl"))?;
    questions.retain(|question| question.category == args.category);
    let mut sessions: BTreeMap<(String, String), Vec<Message>> = BTreeMap::new();
    let mut places: BTreeMap<(String, String), String> = BTreeMap::new();
    for message in messages {
        places.insert((message.project.clone(), message.id.clone()), message.session.clone());
        sessions.entry((message.project.clone(), message.session.clone())).or_default().push(message);
    }
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let mut summaries: BTreeMap<&str, BTreeMap<&(String, String), String>> = BTreeMap::new();
    let mut by_level: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut took = Vec::new();
    let mut scored = String::new();
    let mut server = None;
    let mut current = String::new();
    for (key, messages) in &sessions {
        if *key.0 != *current || server.is_none() {
            current.clone_from(&key.0);
            let folder = root.path().join(format!("p{}", by_level.values().map(Vec::len).sum::<usize>()));
            std::fs::create_dir_all(&folder)?;
            let place = Place::create(&folder)?;
            server = Some(tiro.serve(&place, Era::Session)?);
        }
        let server = server.as_mut().expect("started above");
        calls::save_messages(server, messages)?;
        let mut ask = |level: &str, max_tokens: Option<usize>| -> Result<Value> {
            let mut arguments = json!({"session_id": key.1, "level": level, "use_provider": false});
            if let Some(most) = max_tokens {
                arguments["max_tokens"] = json!(most + FRAME);
            }
            let answer = server.tool("summarize_conversation", arguments)?;
            took.push(answer.ms());
            Ok(answer.structured().clone())
        };
        let mut tokens = 0;
        for level in ["brief", "standard", "detailed"] {
            let answer = ask(level, None)?;
            tokens = answer["tokens"].as_u64().unwrap_or(0) as usize;
            by_level.entry(level).or_default().push(answer["quality"].as_f64().unwrap_or(0.0));
        }
        let most = (tokens * args.percent / 100).max(20);
        let own = ask("detailed", Some(most))?["summary"].as_str().unwrap_or_default().to_owned();
        for way in WAYS {
            let text = match way {
                "tiro" => own.clone(),
                _ => choose(way, messages, own.len()),
            };
            let sources: Vec<Value> = messages
                .iter()
                .map(|each| json!({"speaker": each.speaker, "role": each.role, "text": each.text}))
                .collect();
            scored += &json!({"sources": sources, "summary": text, "max_tokens": most}).to_string();
            scored.push('\n');
            summaries.entry(way).or_default().insert(key, text);
        }
    }
    let file = root.path().join("scored.jsonl");
    std::fs::write(&file, scored)?;
    let place = Place::create(root.path())?;
    let output = tiro.run(&place, &["bench", "quality", "--summaries", calls::path_text(&file)?], LONG)?;
    let output: Value = serde_json::from_str(&output).context("reading the scores")?;
    let scores: Vec<f64> =
        output["quality"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();

    let mut kept: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut by_session: BTreeMap<(&str, &(String, String)), Vec<f64>> = BTreeMap::new();
    let keys: Vec<&(String, String)> = sessions.keys().collect();
    for question in &questions {
        let text = question.answer.as_str().map_or_else(|| question.answer.to_string(), str::to_owned);
        let wanted = content(&text);
        let session = |id: &String| places.get(&(question.project.clone(), id.clone()));
        let gold: BTreeSet<&String> = question.gold.iter().filter_map(session).collect();
        if wanted.is_empty() || gold.is_empty() {
            continue;
        }
        for way in WAYS {
            let mut words = BTreeSet::new();
            let within = keys.iter().filter(|key| key.0 == question.project && gold.contains(&key.1));
            let within: Vec<&(String, String)> = within.copied().collect();
            within.iter().for_each(|key| words.extend(content(&summaries[way][*key])));
            let share = wanted.intersection(&words).count() as f64 / wanted.len() as f64;
            kept.entry(way).or_default().push(share);
            within.iter().for_each(|key| by_session.entry((way, *key)).or_default().push(share));
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut report = Report::default();
    for way in WAYS {
        let share = 100.0 * mean(&kept[way]);
        match way {
            "tiro" => report.aim("words of answers kept", share, "%", Goal::AtLeast(57.0)),
            _ => report.add(format!("the same, {way}"), share, "%"),
        }
    }
    for (level, qualities) in &by_level {
        report.add(format!("quality, {level}"), mean(qualities), "");
    }
    for (place, way) in WAYS.iter().enumerate() {
        let own: Vec<f64> = scores.iter().skip(place).step_by(WAYS.len()).copied().collect();
        report.add(format!("quality at {} %, {way}", args.percent), mean(&own), "");
    }
    let mut pairs = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        for (place, way) in WAYS.iter().enumerate() {
            if let Some(shares) = by_session.get(&(*way, *key)) {
                pairs.push((scores[number * WAYS.len() + place], mean(shares)));
            }
        }
    }
    report.add("quality and words kept, rank correlation", rank_correlation(&pairs), "");
    report.add("a summary over stdio, p50", percentile(&took, 0.5), "ms");
    report.add("a summary over stdio, p99", percentile(&took, 0.99), "ms");
    report.add("answers", kept["tiro"].len() as f64, "");
    Ok(report)
}

/// Returns the content words of `text`.
fn content(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1);
    words.filter(|word| !COMMON.split(' ').any(|common| common == *word)).map(str::to_owned).collect()
}

/// Returns the sentences that `way` chooses, in their order and with at most `bytes` bytes in all.
fn choose(way: &str, messages: &[Message], bytes: usize) -> String {
    let sentences: Vec<&str> = messages.iter().flat_map(|message| sentences(&message.text)).collect();
    let mut order: Vec<usize> = (0..sentences.len()).collect();
    match way {
        "textrank" => {
            let ranks = textrank(&sentences);
            order.sort_by(|a, b| ranks[*b].total_cmp(&ranks[*a]).then(a.cmp(b)));
        }
        "random" => {
            let mut random = Random::new(1);
            for place in (1..order.len()).rev() {
                order.swap(place, random.below(place + 1));
            }
        }
        _ => {}
    }
    let mut left = bytes;
    let mut chosen = BTreeSet::new();
    for place in order {
        let cost = sentences[place].len() + 1;
        if cost <= left {
            left -= cost;
            chosen.insert(place);
        } else if way == "lead" {
            break;
        }
    }
    chosen.into_iter().map(|place| sentences[place]).collect::<Vec<_>>().join(" ")
}

/// Returns the sentences of `text`. A line ends a sentence.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let ends =
            matches!(byte, b'.' | b'!' | b'?') && bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace);
        if ends || *byte == b'\n' {
            found.push(text[start..=at].trim());
            start = at + 1;
        }
    }
    found.push(text[start..].trim());
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// Ranks sentences as TextRank does, by the words that they have in common relative to their lengths (Mihalcea and
/// Tarau, 2004).
fn textrank(sentences: &[&str]) -> Vec<f64> {
    let words: Vec<BTreeSet<String>> = sentences.iter().map(|sentence| content(sentence)).collect();
    let count = words.len();
    let mut edges = vec![vec![0.0; count]; count];
    for a in 0..count {
        for b in 0..a {
            let shared = words[a].intersection(&words[b]).count() as f64;
            let length = (words[a].len() as f64 + 1.0).ln() + (words[b].len() as f64 + 1.0).ln();
            if shared > 0.0 && length > 0.0 {
                edges[a][b] = shared / length;
                edges[b][a] = shared / length;
            }
        }
    }
    let sums: Vec<f64> = edges.iter().map(|row| row.iter().sum()).collect();
    let mut ranks = vec![1.0; count];
    for _ in 0..30 {
        let next = |to: usize| {
            let from = (0..count).filter(|from| sums[*from] > 0.0);
            0.15 + 0.85 * from.map(|from| edges[from][to] / sums[from] * ranks[from]).sum::<f64>()
        };
        ranks = (0..count).map(next).collect();
    }
    ranks
}

/// Returns Spearman's rank correlation. Equal values get the mean of their ranks.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let ranks = |values: Vec<f64>| -> Vec<f64> {
        let below = |value: f64| values.iter().filter(|other| **other < value).count() as f64;
        let equal = |value: f64| values.iter().filter(|other| **other == value).count() as f64;
        values.iter().map(|value| below(*value) + (equal(*value) - 1.0) / 2.0).collect()
    };
    let (a, b) =
        (ranks(pairs.iter().map(|pair| pair.0).collect()), ranks(pairs.iter().map(|pair| pair.1).collect()));
    let mean = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_orders_correlate_and_opposite_ones_do_not() {
        assert!((rank_correlation(&[(1.0, 2.0), (2.0, 3.0), (5.0, 9.0)]) - 1.0).abs() < 1e-9);
        assert!((rank_correlation(&[(1.0, 9.0), (2.0, 3.0), (5.0, 1.0)]) + 1.0).abs() < 1e-9);
    }

    #[test]
    fn textrank_prefers_what_shares_words() {
        let ranks = textrank(&["red barn door", "the barn has a red door", "sailing tomorrow"]);
        assert!(ranks[0] > ranks[2] && ranks[1] > ranks[2]);
    }
}
