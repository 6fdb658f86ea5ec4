//! `evals latency`: how long an agent waits for an answer, and how much memory the server uses.
//!
//! The corpus is synthetic and the same every time. It takes minutes to store and embed 100,000 messages; with `--keep`
//! the store is kept, and the next run reuses it. Every question is different and asked once, so that no cache helps.
//! The first search, which loads the model and the index, is a separate figure.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::assembly;
use crate::calls::{self, LONG};
use crate::client::{Era, Place, Tiro};
use crate::corpus::{self, Corpus};
use crate::stats::{Goal, Report, median};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Messages in the memory
    #[arg(long, default_value_t = 100_000)]
    docs: usize,
    /// Questions to ask
    #[arg(long, default_value_t = 500)]
    queries: usize,
    /// Hits to ask for
    #[arg(long, default_value_t = 10)]
    k: usize,
    /// Directory of the store, which the next run reuses
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Threads that embed while the store is built
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Process starts for each protocol era
    #[arg(long, default_value_t = 20)]
    starts: usize,
    /// Messages of the session whose context is assembled; 0 skips this part
    #[arg(long, default_value_t = 10_000)]
    session: usize,
    /// Measure only the context of a session
    #[arg(long)]
    only_assembly: bool,
    /// Do not embed: measures lexical search
    #[arg(long)]
    no_embeddings: bool,
}

/// How many messages the small project has.
const SMALL: usize = 300;

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let temporary = tempfile::tempdir().context("making a temporary directory")?;
    let root = args.keep.clone().unwrap_or_else(|| temporary.path().join("large"));
    let corpus = Corpus::new(20_260_101);
    let mut report = Report::default();
    if args.session > 0 {
        let place = Place::create(&temporary.path().join("session"))?;
        assembly::measure(args.session, args.queries.min(200), tiro, &place, &corpus, &mut report)?;
    }
    if args.only_assembly {
        return Ok(report);
    }
    let place = build(&root, args.docs, args, &corpus, tiro, &mut report)?;
    let small = build(&temporary.path().join("small"), SMALL, args, &corpus, tiro, &mut Report::default())?;

    for (name, era) in
        [("initialize and tools/list", Era::Session), ("tools/list alone, stateless", Era::Stateless)]
    {
        let starts =
            (0..args.starts.max(1)).map(|_| cold_start(tiro, &place, era)).collect::<Result<Vec<_>>>()?;
        report.aim(format!("process start to {name}, median"), median(&starts), "ms", Goal::AtMost(15.0));
    }
    let mut server = tiro.serve(&small, Era::Session)?;
    calls::search(&mut server, &corpus.query(0, SMALL), args.k)?;
    add_memory(&mut report, &format!("RSS after search, {SMALL} messages"), server.resident_mib(), 150.0);
    drop(server);
    searches(args, tiro, &place, &corpus, &mut report)?;
    Ok(report)
}

/// Asks every question once and adds the figures.
fn searches(args: &Args, tiro: &Tiro, place: &Place, corpus: &Corpus, report: &mut Report) -> Result<()> {
    let mut server = tiro.serve(place, Era::Session)?;
    server.request("tools/list", json!({}))?;
    thread::sleep(Duration::from_millis(500));
    add_memory(report, "RSS before any search", server.resident_mib(), 20.0);
    let arguments = |index: usize| json!({"query": corpus.query(index, args.docs), "k": args.k});
    let first = server.tool("search_project_memory", arguments(args.queries))?;
    report.add("first search", first.ms(), "ms");
    report.add("RSS after the first search", server.resident_mib().unwrap_or(f64::NAN), "MiB");
    if let Some(pending) = first.pending().filter(|pending| *pending > 0) {
        report.add("still pending", pending as f64, "");
    }
    let mut elapsed = Vec::with_capacity(args.queries);
    let mut stages: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut empty = 0;
    for index in 0..args.queries {
        let answer = server.tool("search_project_memory", arguments(index))?;
        elapsed.push(answer.ms());
        empty += usize::from(answer.hits().is_empty());
        add_stages(&answer.structured()["timings"], String::new(), &mut stages);
    }
    let bound = |large, other| if args.docs >= 100_000 { large } else { other };
    report.aim("search over stdio, p50", crate::stats::percentile(&elapsed, 0.50), "ms", Goal::AtMost(15.0));
    report.aim("search over stdio, p99", crate::stats::percentile(&elapsed, 0.99), "ms", Goal::AtMost(40.0));
    report.add("search over stdio, max", crate::stats::percentile(&elapsed, 1.0), "ms");
    for (stage, values) in &stages {
        report.add(format!("  {stage}, p50"), crate::stats::percentile(values, 0.50), "ms");
        report.add(format!("  {stage}, p99"), crate::stats::percentile(values, 0.99), "ms");
    }
    add_memory(report, "RSS after all searches", server.resident_mib(), bound(220.0, 150.0));
    report.add("answers without a hit", empty as f64, "");
    let gone = server.close()?;
    report.aim("from closed input to gone", gone.as_secs_f64(), "s", Goal::AtMost(2.0));
    report.detail = json!({"docs": args.docs, "queries": args.queries, "k": args.k, "search_ms": elapsed});
    Ok(())
}

fn add_memory(report: &mut Report, name: &str, resident: Option<f64>, bound: f64) {
    report.aim(name, resident.unwrap_or(f64::NAN), "MiB", Goal::AtMost(bound));
}

/// Collects every number of a tree of timings. Its key is the path of names that leads to it.
fn add_stages(timings: &Value, path: String, stages: &mut BTreeMap<String, Vec<f64>>) {
    match timings {
        Value::Number(number) => stages.entry(path).or_default().push(number.as_f64().unwrap_or(f64::NAN)),
        Value::Object(fields) => {
            for (name, inner) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                add_stages(inner, path, stages);
            }
        }
        _ => {}
    }
}

/// Returns how many milliseconds pass from starting the process until the answer to `tools/list` is read.
fn cold_start(tiro: &Tiro, place: &Place, era: Era) -> Result<f64> {
    let started = Instant::now();
    let mut server = tiro.start(place, era)?;
    server.open()?;
    let answer = server.request("tools/list", json!({}))?;
    let elapsed = started.elapsed().as_secs_f64() * 1000.0;
    if answer["tools"].as_array().is_none_or(Vec::is_empty) {
        bail!("`tools/list` names no tools");
    }
    Ok(elapsed)
}

/// Builds the store in `root` unless it already contains the same corpus.
fn build(
    root: &Path,
    docs: usize,
    args: &Args,
    corpus: &Corpus,
    tiro: &Tiro,
    report: &mut Report,
) -> Result<Place> {
    let place = Place::create(root)?;
    let embeddings = !args.no_embeddings && tiro.model_dir.is_some();
    let made = json!({"docs": docs, "corpus": corpus::VERSION, "embeddings": embeddings}).to_string();
    let note = root.join("made.json");
    match std::fs::read_to_string(&note) {
        Ok(found) if found == made => return Ok(place),
        Ok(found) => bail!("`{}` holds another store: {found}; name another directory", root.display()),
        Err(_) => {}
    }
    let started = Instant::now();
    let mut server = tiro.serve(&place, Era::Session)?;
    for start in (0..docs).step_by(1000) {
        let messages: Vec<_> = (start..docs.min(start + 1000)).map(|index| corpus.message(index)).collect();
        calls::save_messages(&mut server, &messages)?;
        if docs > SMALL && start % 10_000 == 0 {
            eprintln!("saved {start} of {docs} messages in {:.0} s", started.elapsed().as_secs_f64());
        }
    }
    server.close()?;
    let saving = started.elapsed().as_secs_f64();
    report.add("saving", saving, "s");
    report.add("saving", docs as f64 / saving, "messages/s");
    if embeddings {
        let project = calls::path_text(&place.project)?;
        let threads = args.threads.to_string();
        tiro.run(&place, &["index", "--project", project, "--threads", &threads], LONG)?;
        let embedding = started.elapsed().as_secs_f64() - saving;
        report.add("embedding", embedding, "s");
    }
    std::fs::write(&note, made).with_context(|| format!("writing `{}`", note.display()))?;
    Ok(place)
}
