//! `evals commits` measures how often a line of a changelog finds its commit. `evals import` measures how long an
//! import takes until a search finds a commit.
//!
//! Both work on a clone in a temporary directory and write nothing into the repository itself.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::calls::{self, LONG};
use crate::client::{Era, Place, Tiro};
use crate::score;
use crate::stats::{Goal, Report};
use crate::suite::{self, Query};

/// What `evals commits` measures.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Repository whose history answers; may be bare
    #[arg(long)]
    repo: PathBuf,
    /// Directory with queries.jsonl
    #[arg(long)]
    suite: PathBuf,
    /// File to write the rankings to, one JSON object a line
    #[arg(long)]
    out: Option<PathBuf>,
    /// Hits to ask for
    #[arg(long, default_value_t = 50)]
    k: usize,
}

/// What `evals import` measures.
#[derive(clap::Args, Debug)]
pub struct ImportArgs {
    /// Repository to import; may be bare
    #[arg(long)]
    repo: PathBuf,
    /// Times to import it, each into a fresh memory
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// Imports the history, asks the questions and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let place = Place::create(root.path())?;
    let commits = clone(&args.repo, &place)?;
    let started = Instant::now();
    import(tiro, &place)?;
    let importing = started.elapsed().as_secs_f64();
    calls::index(tiro, &place)?;
    let embedding = started.elapsed().as_secs_f64() - importing;

    let queries: Vec<Query> = suite::read_lines(&args.suite.join("queries.jsonl"))?;
    let mut server = tiro.serve(&place, Era::Session)?;
    let mut rankings = Vec::with_capacity(queries.len());
    for query in &queries {
        let answer = calls::search(&mut server, &query.query, args.k)
            .with_context(|| format!("asking `{}`", query.qid))?;
        rankings.push(calls::ranking(&query.qid, &answer));
    }
    if let Some(out) = &args.out {
        suite::write_lines(out, &rankings)?;
    }
    let scores = score::score(&queries, &rankings);
    scores.print();
    println!();
    let mut report = Report::default();
    report.aim("R@10", scores.recall_at_10(), "%", Goal::AtLeast(80.0));
    report.add("commits", commits as f64, "");
    report.add("import", importing, "s");
    report.add("import", commits as f64 / importing, "commits/s");
    report.add("embedding what the import left", embedding, "s");
    let ms: Vec<f64> = rankings.iter().map(|ranking| ranking.ms).collect();
    report.add_spread("search over stdio", &ms, "ms");
    report.detail = json!({ "scores": scores });
    Ok(report)
}

/// Times imports until a search by words finds the oldest commit with a distinctive subject.
///
/// The program runs without the model, so that only lexical search is timed.
pub fn run_import(args: &ImportArgs, tiro: &Tiro) -> Result<Report> {
    let root = tempfile::tempdir().context("making a temporary directory")?;
    let source = Place::create(&root.path().join("source"))?;
    let commits = clone(&args.repo, &source)?;
    let lexical = tiro.without_model(root.path())?;
    let (sha, subject) = oldest_telling_commit(&source)?;

    let mut searchable = Vec::new();
    let mut imported = Vec::new();
    for round in 0..args.rounds.max(1) {
        let place =
            Place { data_dir: root.path().join(format!("data-{round}")), project: source.project.clone() };
        let started = Instant::now();
        import(&lexical, &place)?;
        imported.push(started.elapsed().as_secs_f64());
        let mut server = lexical.serve(&place, Era::Session)?;
        let answer = calls::search(&mut server, &subject, 20)?;
        searchable.push(started.elapsed().as_secs_f64());
        if !answer.hits().iter().any(|hit| hit["source_id"].as_str() == Some(sha.as_str())) {
            bail!("commit `{sha}` is not found by its subject `{subject}`");
        }
    }
    let seconds = crate::stats::median(&searchable);
    let mut report = Report::default();
    report.add("commits", commits as f64, "");
    report.add("import, median", crate::stats::median(&imported), "s");
    report.add("until a search finds the oldest, median", seconds, "s");
    report.aim("the same for 10,000 commits", seconds / commits as f64 * 10_000.0, "s", Goal::AtMost(20.0));
    report.add("rate", commits as f64 / crate::stats::median(&imported), "commits/s");
    report.detail = json!({"rounds_s": searchable, "found": {"commit": sha, "subject": subject}});
    Ok(report)
}

/// Clones `repository` as the project of `place` and returns how many commits its HEAD reaches.
fn clone(repository: &std::path::Path, place: &Place) -> Result<usize> {
    calls::clone_repository(repository, &place.project, None)?;
    let count = calls::git(&place.project, &["rev-list", "--count", "HEAD"])?;
    count.parse().with_context(|| format!("`{count}` is not a number of commits"))
}

fn import(tiro: &Tiro, place: &Place) -> Result<()> {
    tiro.run(place, &["import", "git", "--project", calls::path_text(&place.project)?], LONG).map(drop)
}

/// Returns the id and the subject of the oldest commit that is no merge and whose subject is unique and has at least
/// five words.
fn oldest_telling_commit(place: &Place) -> Result<(String, String)> {
    let log = calls::git(&place.project, &["log", "--no-merges", "--reverse", "--format=%H %s"])?;
    let lines: Vec<(&str, &str)> = log.lines().filter_map(|line| line.split_once(' ')).collect();
    let mut times = std::collections::HashMap::new();
    for (_, subject) in &lines {
        *times.entry(*subject).or_insert(0) += 1;
    }
    let telling = lines.iter().find(|(_, subject)| subject.split(' ').count() >= 5 && times[subject] == 1);
    let (sha, subject) = telling.context("no commit has a subject of five words that occurs once")?;
    Ok((sha.to_string(), subject.to_string()))
}
