//! `evals stash`: how much of the evidence for a question comes back if all but the last messages of a conversation are
//! stashed, and how fast the stash is.
//!
//! Every conversation gets its own memory. Its messages are saved and embedded, and all but the last ten are stashed.
//! Then each question is asked of the stash, and the segments that are found are merged. `--scale` measures time instead:
//! searches of a large stash, and stashing with embedding, compared with sentence-transformers and Chroma.

mod evidence;
mod scale;
mod sweep;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::client::Tiro;
use crate::peer::PeerArgs;
use crate::stats::Report;

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Directory with messages.jsonl and queries.jsonl
    #[arg(long)]
    suite: Option<PathBuf>,
    /// Segments to merge for a question
    #[arg(long, default_value_t = 5)]
    top: usize,
    /// Move the times of each conversation so that it ends now
    #[arg(long)]
    fresh: bool,
    /// Only these conversations
    #[arg(long)]
    only: Vec<String>,
    /// Measure the time of searches of a stash of this many segments, and of stashing a thousand
    #[arg(long, num_args = 0..=1, default_missing_value = "100000")]
    scale: Option<usize>,
    #[command(flatten)]
    peer: PeerArgs,
}

/// Measures and returns the report.
pub fn run(args: &Args, tiro: &Tiro) -> Result<Report> {
    match (&args.suite, args.scale) {
        (_, Some(segments)) => scale::run(segments, &args.peer, tiro),
        (Some(suite), None) => evidence::run(suite, args, tiro),
        (None, None) => bail!("give --suite DIR or --scale"),
    }
}
