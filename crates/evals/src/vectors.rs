//! `evals vectors`: how fast the ten nearest of many vectors are found, compared with the exact index of faiss.
//!
//! Both sides use one thread or, for a million vectors and more, as many threads as the store uses.

use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::calls::path_text;
use crate::client::{Place, Tiro};
use crate::peer::{self, PeerArgs};
use crate::random::Random;
use crate::stats::{Goal, Report, percentile};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Vectors to search
    #[arg(long, default_value_t = 100_000)]
    n: usize,
    /// Vectors to search for
    #[arg(long, default_value_t = 200)]
    queries: usize,
    #[command(flatten)]
    peer: PeerArgs,
}

const DIMENSIONS: usize = 384;
const CLUSTERS: usize = 500;

/// How many threads the store's searches use.
const STORE_THREADS: usize = 2;

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let (data, queries) = (root.path().join("data.f32"), root.path().join("queries.f32"));
    let mut random = Random::new(11);
    let centres: Vec<Vec<f32>> = (0..CLUSTERS).map(|_| unit_vector(None, &mut random)).collect();
    write_vectors(&data, args.n, &centres, &mut random)?;
    write_vectors(&queries, args.queries, &centres, &mut random)?;
    let threads = if args.n < 1_000_000 { 1 } else { STORE_THREADS };
    let threads_text = threads.to_string();
    let mut files = vec!["--data", path_text(&data)?, "--queries", path_text(&queries)?];
    files.extend(["--k", "10", "--rounds", "2", "--threads", &threads_text]);

    let (mut ours, mut filtered, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut our_top, mut their_top) = (Value::Null, Value::Null);
    for _ in 0..args.peer.rounds.max(1) {
        let arguments: Vec<&str> = std::iter::once("vectors").chain(files.iter().copied()).collect();
        let mut answer = peer::bench(tiro, &place, &arguments)?;
        ours.extend(peer::numbers(&answer, "per_query_ms"));
        filtered.extend(peer::numbers(&answer, "filtered_ms"));
        our_top = answer["top"].take();
        if !args.peer.alone {
            let mut answer = args.peer.run("vectors.py", &files)?;
            theirs.extend(peer::numbers(&answer, "per_query_ms"));
            their_top = answer["top"].take();
        }
    }
    let mut report = Report::default();
    let middle = percentile(&ours, 0.5);
    match args.n {
        1_000_000.. => report.aim("search, p50", middle, "ms", Goal::AtMost(20.0)),
        _ => report.add("search, p50", middle, "ms"),
    }
    report.add("search, p99", percentile(&ours, 0.99), "ms");
    if !args.peer.alone {
        report.add("faiss IndexFlatIP, p50", percentile(&theirs, 0.5), "ms");
        report.aim("times faster", percentile(&theirs, 0.5) / middle, "×", Goal::AtLeast(4.0));
        report.aim("recall@10", recall(&our_top, &their_top), "", Goal::AtLeast(0.99));
    }
    match args.n {
        ..=100_000 => report.aim("1% filter, p50", percentile(&filtered, 0.5), "ms", Goal::AtMost(0.6)),
        _ => report.add("1% filter, p50", percentile(&filtered, 0.5), "ms"),
    }
    report.add("threads", threads as f64, "");
    report.detail =
        json!({"n": args.n, "dimensions": DIMENSIONS, "queries": args.queries, "threads": threads});
    Ok(report)
}

/// Returns the share of the exact nearest vectors that were found.
fn recall(found: &Value, exact: &Value) -> f64 {
    let lists = |lists: &Value| lists.as_array().cloned().unwrap_or_default();
    let (mut hits, mut wanted) = (0, 0);
    for (found, exact) in lists(found).iter().zip(lists(exact)) {
        let (found, exact) = (lists(found), lists(&exact));
        wanted += exact.len();
        hits += exact.iter().filter(|id| found.contains(id)).count();
    }
    hits as f64 / f64::from(wanted.max(1) as u32)
}

/// Writes `count` vectors of length 1 as little-endian 32-bit floats. They are grouped around `centres`, as texts are
/// around topics.
fn write_vectors(path: &Path, count: usize, centres: &[Vec<f32>], random: &mut Random) -> Result<()> {
    let file = std::fs::File::create(path).with_context(|| format!("creating `{}`", path.display()))?;
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    for _ in 0..count {
        let centre = &centres[random.zipf(centres.len())];
        for value in unit_vector(Some(centre), random) {
            writer.write_all(&value.to_le_bytes())?;
        }
    }
    writer.flush().with_context(|| format!("writing `{}`", path.display()))
}

/// Returns a random vector of length 1. If `centre` is given, the vector is near it.
fn unit_vector(centre: Option<&Vec<f32>>, random: &mut Random) -> Vec<f32> {
    let spread = 1.2 / (DIMENSIONS as f64).sqrt();
    let mut vector: Vec<f32> = (0..DIMENSIONS).map(|_| (spread * random.normal()) as f32).collect();
    if let Some(centre) = centre {
        vector.iter_mut().zip(centre).for_each(|(value, centre)| *value += centre);
    }
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_is_the_share_of_the_exact_ones() {
        assert_eq!(recall(&json!([[1, 2], [3, 4]]), &json!([[2, 9], [4, 3]])), 0.75);
    }
}
