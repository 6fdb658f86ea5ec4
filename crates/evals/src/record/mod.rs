//! `evals record`: the answers to some 500 calls over MCP and 100 command lines, in a file, so that those of two versions of
//! the program can be compared byte by byte.
//!
//! The program is unchanged. A library that is preloaded into it (`fixed.c`) sets the time of day and the random bytes, and
//! the repository, the conversations and the directories are always the same. What is said about how long something took is
//! replaced. The answers that differ between two recordings of one version depend on chance, such as on which thread came
//! first; `--against` counts the others that differ.

mod calls;
mod ground;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::client::Tiro;
use crate::stats::Report;

/// What to record, and where.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// File to write the recording to
    #[arg(long)]
    out: PathBuf,
    /// Recordings of one earlier version to compare with
    #[arg(long)]
    against: Vec<PathBuf>,
    /// Folder of repository, home and memories; it is emptied. Its path is a part of the answers
    #[arg(long, default_value = "/tmp/tiro-record")]
    dir: PathBuf,
}

/// A call or a command line, and what came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    /// The tool with its arguments, or the command line.
    asked: String,
    /// The whole result, or the exit status with both outputs.
    answered: String,
}

/// Records, and compares.
///
/// # Errors
///
/// Fails if the program can't be started, or if a recording that is compared asked something else.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let lines = calls::record(&mut ground::Ground::new(&args.dir, tiro)?)?;
    let text: Vec<String> =
        lines.iter().map(|line| serde_json::to_string(line).expect("texts are JSON")).collect();
    std::fs::write(&args.out, text.join("\n") + "\n")
        .with_context(|| format!("writing `{}`", args.out.display()))?;
    let mut report = Report::default();
    let commands = lines.iter().filter(|line| line.asked.starts_with("tiro ")).count();
    report.add("calls over MCP", (lines.len() - commands) as f64, "");
    report.add("command lines", commands as f64, "");
    compare(&lines, &args.against, &mut report)?;
    Ok(report)
}

/// Adds how many of `lines` differ from all of the recordings `against`, without those that differ between these.
fn compare(lines: &[Line], against: &[PathBuf], report: &mut Report) -> Result<()> {
    let mut known: Vec<Vec<Line>> = Vec::new();
    for path in against {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading `{}`", path.display()))?;
        let recording = text.lines().map(serde_json::from_str).collect::<Result<Vec<Line>, _>>()?;
        if recording.len() != lines.len() || recording.iter().zip(lines).any(|(a, b)| a.asked != b.asked) {
            bail!("`{}` asked something else", path.display());
        }
        known.push(recording);
    }
    let Some((first, others)) = known.split_first() else { return Ok(()) };
    let (mut by_chance, mut different) = (0, BTreeMap::new());
    for (index, line) in lines.iter().enumerate() {
        if others.iter().any(|other| other[index] != first[index]) {
            by_chance += 1;
        } else if first[index] != *line {
            different.insert(index + 1, format!("{}: {}", line.asked, first_difference(&first[index], line)));
        }
    }
    report.add("that depend on chance", by_chance as f64, "");
    report.must_be_zero("other answers that differ", different.len());
    report.detail = serde_json::json!({ "different": different });
    for (number, text) in different.iter().take(20) {
        eprintln!("{number}. {text}");
    }
    Ok(())
}

/// Returns both answers from shortly before the place where they part.
fn first_difference(before: &Line, after: &Line) -> String {
    let pairs = before.answered.chars().zip(after.answered.chars());
    let same = pairs.take_while(|(a, b)| a == b).count();
    let part =
        |line: &Line| line.answered.chars().skip(same.saturating_sub(60)).take(160).collect::<String>();
    format!("`{}` became `{}`", part(before), part(after))
}
