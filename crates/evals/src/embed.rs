//! `evals embed`: how fast texts of mixed lengths are embedded, compared with sentence-transformers. Each side uses one
//! core.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::calls::path_text;
use crate::client::{Place, Tiro};
use crate::corpus::Corpus;
use crate::peer::{self, PeerArgs};
use crate::stats::{Goal, Report, median, percentile};
use crate::suite;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// File with an object with `text` on each line; synthetic texts by default
    #[arg(long)]
    texts: Option<PathBuf>,
    /// Number of synthetic texts
    #[arg(long, default_value_t = 600)]
    count: usize,
    #[command(flatten)]
    peer: PeerArgs,
}

/// The length of an embedding.
const DIMENSIONS: usize = 384;

/// How many rounds each process runs: the first warms it up, and the last counts.
const ROUNDS: &str = "2";

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let texts = match &args.texts {
        Some(texts) => std::path::absolute(texts)?,
        None => {
            let path = root.path().join("texts.jsonl");
            let corpus = Corpus::new(7);
            // The lengths are spread evenly on a logarithmic scale: from three words to more words than the model
            // reads.
            let words = |index: usize| (3.0 * 80f64.powf((index * 37 % 100) as f64 / 100.0)) as usize;
            let rows = (0..args.count).map(|index| json!({"text": corpus.text(index, index, words(index))}));
            suite::write_lines(&path, rows)?;
            path
        }
    };
    let texts = path_text(&texts)?;
    let theirs_file = root.path().join("theirs.f32");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut our_query, mut their_query) = (Vec::new(), Vec::new());
    let (mut tokens, mut our_vectors, mut their_vectors) = (0.0, Vec::new(), Vec::new());
    for round in 0..args.peer.rounds.max(1) {
        let answer =
            peer::bench(tiro, &place, &["embed", "--texts", texts, "--rounds", ROUNDS, "--threads", "1"])?;
        ours.push(peer::last_round(&answer)?);
        our_query.extend(peer::numbers(&answer, "query_ms"));
        tokens = answer["tokens"].as_f64().unwrap_or(0.0);
        if let Some(file) = answer["vectors_file"].as_str().filter(|_| round == 0) {
            our_vectors = peer::read_floats(&place.project.join(file))?;
        }
        if args.peer.alone {
            continue;
        }
        let vectors = path_text(&theirs_file)?;
        let answer =
            args.peer.run("embed.py", &["--texts", texts, "--rounds", ROUNDS, "--vectors", vectors])?;
        theirs.push(peer::last_round(&answer)?);
        their_query.extend(peer::numbers(&answer, "query_ms"));
        if round == 0 && theirs_file.exists() {
            their_vectors = peer::read_floats(&theirs_file)?;
        }
    }
    let mut report = Report::default();
    report.add("texts, median of rounds", median(&ours), "s");
    report.add("tokens", tokens / median(&ours), "/s");
    if !args.peer.alone {
        report.add("sentence-transformers", median(&theirs), "s");
        report.add("sentence-transformers, tokens", tokens / median(&theirs), "/s");
        report.aim("times faster", median(&theirs) / median(&ours), "×", Goal::AtLeast(2.5));
        report.add("query, sentence-transformers, p50", percentile(&their_query, 0.5), "ms");
    }
    report.aim("query, p50", percentile(&our_query, 0.5), "ms", Goal::AtMost(3.0));
    if !our_vectors.is_empty() && !their_vectors.is_empty() {
        let cosines = cosines(&our_vectors, &their_vectors)?;
        report.aim("cosine to the reference, lowest", percentile(&cosines, 0.0), "", Goal::AtLeast(0.9999));
    }
    report.detail = json!({"rounds_s": ours, "peer_rounds_s": theirs, "tokens": tokens});
    Ok(report)
}

/// Returns the cosine of each pair of vectors.
fn cosines(ours: &[f32], theirs: &[f32]) -> Result<Vec<f64>> {
    if ours.len() != theirs.len() || !ours.len().is_multiple_of(DIMENSIONS) {
        bail!("{} floats here and {} there are not the same vectors", ours.len(), theirs.len());
    }
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let pairs = ours.chunks(DIMENSIONS).zip(theirs.chunks(DIMENSIONS));
    Ok(pairs.map(|(a, b)| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()).collect())
}
