//! `evals pages`: whether a page costs its own size, or the size of the store.
//!
//! Two stores get the same kind of messages and stashed segments, the large store ten times as many. The figures are
//! the medians of the times of the first page of sessions, of the stash's list and of `tiro stats`, and their ratios.
//! Nothing is embedded. The time to save is a figure too, because the counts that pages read are kept by writes. The
//! views of `tiro open` are measured on the large store ([`views`]).

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::calls;
use crate::client::{Era, Place, Tiro};
use crate::corpus::Corpus;
use crate::stats::{Goal, Report, median};
use crate::views;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Messages in the large store; the small store has a tenth
    #[arg(long, default_value_t = 100_000)]
    docs: usize,
    /// Segments in the stash of the large store; the stash of the small store has a tenth
    #[arg(long, default_value_t = 20_000)]
    stashed: usize,
    /// How often each page is read
    #[arg(long, default_value_t = 30)]
    rounds: usize,
    /// The folder of node modules with playwright-core, to measure in Chromium when the views are painted
    #[arg(long, value_name = "FOLDER")]
    browser: Option<PathBuf>,
}

/// How much longer a page may take in the large store.
const RATIO: f64 = 1.5;

/// The seed of the texts.
const SEED: u64 = 20_260_101;

/// How many topics the stash has.
const TOPICS: usize = 10;

/// How many calls stash the segments of one topic.
const CALLS: usize = 4;

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let tiro = &tiro.without_model(root.path())?;
    let mut report = Report::default();
    let small = times(&root.path().join("small"), args, 10, tiro, &mut report)?;
    let large = times(&root.path().join("large"), args, 1, tiro, &mut report)?;
    for ((name, small), (_, large)) in small.iter().zip(&large) {
        report.add(format!("{name}, {} messages, p50", args.docs / 10), *small, "ms");
        report.add(format!("{name}, {} messages, p50", args.docs), *large, "ms");
        report.aim(format!("{name}, times longer"), large / small, "×", Goal::AtMost(RATIO));
    }
    let (place, corpus) = (Place::create(&root.path().join("large"))?, Corpus::new(SEED));
    let decision = views::fill(&place, tiro, &corpus, args.docs)?;
    let counts = (args.docs, args.rounds);
    views::measure(&place, tiro, &corpus, &decision, counts, args.browser.as_deref(), &mut report)?;
    Ok(report)
}

/// Builds a store with the share `1/part` of the messages and segments. Returns the median time of each page.
fn times(
    root: &Path,
    args: &Args,
    part: usize,
    tiro: &Tiro,
    report: &mut Report,
) -> Result<Vec<(&'static str, f64)>> {
    let (docs, stashed) = (args.docs / part, args.stashed / part);
    let place = Place::create(root)?;
    calls::git(&place.project, &["init", "--quiet"])?;
    let corpus = Corpus::new(SEED);
    let mut server = tiro.serve(&place, Era::Session)?;
    let began = Instant::now();
    for start in (0..docs).step_by(1000) {
        let messages: Vec<_> = (start..docs.min(start + 1000)).map(|index| corpus.message(index)).collect();
        calls::save_messages(&mut server, &messages)?;
    }
    report.add(format!("saving {docs} messages"), began.elapsed().as_secs_f64(), "s");
    // Both stashes have the same topics, so their lists show as many groups.
    let at_once = (stashed / TOPICS / CALLS).max(1);
    for (call, start) in (0..stashed).step_by(at_once).enumerate() {
        let range = start..stashed.min(start + at_once);
        let segments: Vec<Value> =
            range.map(|index| json!({"text": corpus.text(index, index / 50, 20)})).collect();
        let topic = format!("topic {}", call % TOPICS);
        server.tool("stash_context", json!({"segments": segments, "topic": topic}))?;
    }
    let mut pages = Vec::new();
    for (name, tool) in
        [("list_sessions", "list_sessions"), ("list of the stash", "retrieve_stashed_context")]
    {
        let mut ms = Vec::with_capacity(args.rounds);
        for _ in 0..args.rounds.max(1) {
            ms.push(server.tool(tool, json!({}))?.ms());
        }
        pages.push((name, median(&ms)));
    }
    server.close()?;
    let project = calls::path_text(&place.project)?.to_owned();
    let mut ms = Vec::with_capacity(args.rounds);
    for _ in 0..args.rounds.max(1) {
        let began = Instant::now();
        tiro.run(&place, &["stats", "--json", "--project", &project], calls::LONG)?;
        ms.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    pages.push(("tiro stats", median(&ms)));
    Ok(pages)
}
