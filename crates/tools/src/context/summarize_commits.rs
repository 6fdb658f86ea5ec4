//! Summarises commits with the model that is configured for summaries, or only estimates tokens and cost.

use std::fmt::Write;

use crate::common;
use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_host::caller::WritingCaller;
use tiro_host::engine::Engine;
use tiro_host::summaries::of_commits;

pub use tiro_host::summaries::of_commits::{Args, Summarised as Output};

/// The maximum number of failures that the text shows. The JSON contains all of them.
const SHOWN: usize = 5;

/// Summarises the newest commits that have no summary yet. In a dry run, only estimates requests, tokens and cost.
/// Calls `progress` with the number of commits done and the number of all commits.
///
/// Errors with [`Kind::Provider`](tiro_base::error::Kind::Provider) if no provider is configured for summaries. An
/// interrupted run can be repeated. It continues with the commits that have no summary yet.
pub async fn run(
    engine: &Engine,
    caller: &WritingCaller,
    args: Args,
    progress: impl FnMut(usize, usize) + Send,
) -> Result<Output> {
    of_commits::summarise(engine, caller, args, progress).await
}

/// Returns the answer as text.
pub fn text(output: &Output) -> String {
    let provider = &output.provider;
    let of = counted(output.commits, "commit", "commits");
    let mut text = match &output.at_most {
        Some(at_most) if output.summarised > 0 => {
            format!("Would summarise {of}: {provider} would get {at_most}.")
        }
        _ if output.commits == 0 => "Every commit has a summary.".to_owned(),
        _ => {
            let cost = output.cost_usd;
            let mut text = format!("{} of {of} summarised by {provider}, cost ${cost:.4}", output.summarised);
            let _ = match output.disclosed_tokens {
                0 => write!(text, "; no data left this machine."),
                sent => write!(text, "; {sent} tokens were sent there."),
            };
            text
        }
    };
    for failed in output.failed.iter().take(SHOWN) {
        let _ = write!(text, "\nFailed: {failed}.");
    }
    if output.failed.len() > SHOWN {
        let _ = write!(text, "\nFailed: {} more.", output.failed.len() - SHOWN);
    }
    text + &common::footnotes(&[], output.pending, &output.notices)
}
