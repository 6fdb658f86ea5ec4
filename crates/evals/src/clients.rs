//! `evals clients`: whether real clients work with Tiro, and how many tokens of an answer their models receive. They use
//! a mock model, so no key is needed.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::calls::{LONG, path_text};
use crate::client::{Tiro, last_chars, run_to_end};
use crate::stats::{Goal, Report};

/// The clients to run and their directories.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Clients, separated by commas; also qwen, copilot and opencode, which are set up by hand
    #[arg(long, default_value = "claude-code,codex,gemini")]
    clients: String,
    /// Directory for the clients, their homes and repositories; temporary by default
    #[arg(long)]
    root: Option<PathBuf>,
    /// Directory where npm installs, kept between runs
    #[arg(long)]
    npm: Option<PathBuf>,
    /// Python interpreter, standard library only
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Directory with clients.py
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/peers"))]
    peers: PathBuf,
}

/// Runs the clients through their steps and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    let temporary = tempfile::tempdir().context("making a temporary directory")?;
    let root = args.root.clone().unwrap_or_else(|| temporary.path().to_owned());
    let mut command = std::process::Command::new(&args.python);
    command.arg(args.peers.join("clients.py"));
    command.args([
        "--tiro",
        path_text(&tiro.program)?,
        "--root",
        path_text(&root)?,
        "--clients",
        &args.clients,
    ]);
    let models = tiro.model_dir.clone().unwrap_or_else(|| root.join("models"));
    command.args(["--model-dir", path_text(&models)?]);
    if let Some(npm) = &args.npm {
        command.args(["--npm", path_text(npm)?]);
    }
    let (_, stdout, stderr) = run_to_end(command, LONG)?;
    let answer: Value = serde_json::from_str(stdout.lines().last().unwrap_or_default())
        .with_context(|| format!("clients.py gave no answer: {}", last_chars(&stderr, 2000)))?;
    let mut report = Report::default();
    for (client, steps) in answer["steps"].as_object().into_iter().flatten() {
        let steps = steps.as_object().map(|steps| steps.values().collect::<Vec<_>>()).unwrap_or_default();
        let passed = steps.iter().filter(|step| step["ok"] == true).count();
        let name = format!("{client}, of {} steps passed", steps.len());
        report.aim(&name, passed as f64, "", Goal::AtLeast(steps.len() as f64));
    }
    for (client, tools) in answer["received"].as_object().into_iter().flatten() {
        let tools = || tools.as_object().into_iter().flatten();
        let most = tools().filter_map(|(_, tool)| tool["ratio"].as_f64()).fold(0.0, f64::max);
        if tools().count() > 0 {
            let name = format!("{client}, tokens received per token of max_tokens, at most");
            report.aim(&name, most, "", Goal::AtMost(1.05));
            let previews = tools().filter(|(_, tool)| tool["preview"] == true).count();
            report.must_be_zero(format!("{client}, answers replaced by a preview"), previews);
        }
    }
    report.broken |= answer["failed"].as_u64() != Some(0);
    eprint!("{stderr}");
    report.detail = answer;
    Ok(report)
}
