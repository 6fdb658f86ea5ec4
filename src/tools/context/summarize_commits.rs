//! Summarises commits with the model that is configured for summaries, or only estimates tokens and cost.

use std::fmt::Write;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Result;
use crate::humanize::counted;
use crate::summaries::of_commits;
use crate::tools::common;

pub use crate::summaries::of_commits::{Args, Summarised as Output};

/// The most failures that the text shows; the JSON has all of them.
const SHOWN: usize = 5;

/// Summarises the newest commits that have no summary yet; in a dry run, only estimates what that would take. Calls
/// `progress` with how many commits are done and how many there are.
///
/// Errors with [`Kind::Provider`](crate::error::Kind::Provider) if no provider is configured for summaries. An
/// interrupted run can be repeated: it continues with the commits that have no summary yet.
pub async fn run(
    engine: &Engine,
    caller: &Caller,
    args: Args,
    progress: impl FnMut(usize, usize) + Send,
) -> Result<Output> {
    of_commits::summarise(engine, caller, args, progress).await
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let provider = &self.provider;
        let of = counted(self.commits, "commit", "commits");
        let mut text = match &self.at_most {
            Some(at_most) if self.summarised > 0 => {
                format!("Would summarise {of}: {provider} would get {at_most}.")
            }
            _ if self.commits == 0 => "Every commit has a summary.".to_owned(),
            _ => {
                let cost = self.cost_usd;
                let mut text =
                    format!("{} of {of} summarised by {provider}, cost ${cost:.4}", self.summarised);
                let _ = match self.disclosed_tokens {
                    0 => write!(text, "; no data left this machine."),
                    sent => write!(text, "; {sent} tokens were sent there."),
                };
                text
            }
        };
        for failed in self.failed.iter().take(SHOWN) {
            let _ = write!(text, "\nFailed: {failed}.");
        }
        if self.failed.len() > SHOWN {
            let _ = write!(text, "\nFailed: {} more.", self.failed.len() - SHOWN);
        }
        text + &common::footnotes(&[], self.pending, &self.notices)
    }
}
