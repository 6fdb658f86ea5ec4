//! Lets `tiro bench` and a Python package do the same work in alternating rounds.
//!
//! Both are processes that time themselves, so that the time to start and load does not count. The rounds alternate
//! because the speed of a shared machine varies: so the medians of both sides cover the same minutes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::calls::LONG;
use crate::client::{Place, Tiro, last_chars, run_to_end};

/// The Python side.
#[derive(clap::Args, Debug)]
pub struct PeerArgs {
    /// Python interpreter with the packages to compare with
    #[arg(long, default_value = "python3")]
    pub python: PathBuf,
    /// Directory with embed.py, tokens.py and vectors.py
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/peers"))]
    pub peers: PathBuf,
    /// Leave the Python side out
    #[arg(long)]
    pub alone: bool,
    /// Rounds of each side
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
}

/// Runs `tiro bench` with `arguments` and returns the JSON object it prints.
pub fn bench(tiro: &Tiro, place: &Place, arguments: &[&str]) -> Result<Value> {
    let arguments: Vec<&str> = std::iter::once("bench").chain(arguments.iter().copied()).collect();
    parse(&tiro.run(place, &arguments, LONG)?)
        .with_context(|| format!("reading `tiro {}`", arguments.join(" ")))
}

impl PeerArgs {
    /// Runs the script `name` with `arguments` on one core and returns the JSON object it prints.
    pub fn run(&self, name: &str, arguments: &[&str]) -> Result<Value> {
        let script = self.peers.join(name);
        let mut command = Command::new(&self.python);
        command.arg(&script).args(arguments);
        for variable in ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"] {
            command.env(variable, "1");
        }
        command.env("TOKENIZERS_PARALLELISM", "false").env("HF_HUB_OFFLINE", "1");
        let (status, stdout, stderr) = run_to_end(command, LONG)?;
        if !status.success() {
            bail!("`{}` ended with {status}: {}", script.display(), last_chars(&stderr, 2000));
        }
        parse(&stdout).with_context(|| format!("reading `{}`", script.display()))
    }
}

/// Returns the JSON object in the last line of the output that is one. Packages print other lines before it.
fn parse(output: &str) -> Result<Value> {
    if let Ok(whole) = serde_json::from_str::<Value>(output) {
        return Ok(whole);
    }
    let mut objects = output.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
    objects.find(Value::is_object).with_context(|| format!("no JSON object in `{}`", last_chars(output, 300)))
}

/// Returns how many seconds the last round took. The rounds before it warm up the process.
pub fn last_round(answer: &Value) -> Result<f64> {
    let rounds = numbers(answer, if answer["rounds"].is_array() { "rounds" } else { "seconds" });
    rounds.last().copied().context("the answer names no `rounds`")
}

/// Returns the numbers that `answer` has under `name`, or an empty list if it has none.
pub fn numbers(answer: &Value, name: &str) -> Vec<f64> {
    answer[name].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// Reads a file of little-endian 32-bit floats.
pub fn read_floats(path: &Path) -> Result<Vec<f32>> {
    let bytes = std::fs::read(path).with_context(|| format!("reading `{}`", path.display()))?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}
