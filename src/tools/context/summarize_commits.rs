//! Has commits summarised by the model that the user named for summaries, and says what that would take and cost.

use std::fmt::Write;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Result;
use crate::humanize::counted;
use crate::summaries::of_commits;
use crate::tools::common;

pub use crate::summaries::of_commits::{Args, Summarised as Output};

/// Failures that are told in words; the data has all.
const SHOWN: usize = 5;

/// Has the newest commits summarised that have no summary, or says what that would take; `progress` gets the commits done
/// and all there are.
///
/// Errors with [`Kind::Provider`](crate::error::Kind::Provider) where no provider is named for summaries. Can be interrupted
/// and repeated.
pub async fn run(
    engine: &Engine,
    caller: &Caller,
    args: Args,
    progress: impl FnMut(usize, usize) + Send,
) -> Result<Output> {
    of_commits::summarise(engine, caller, args, progress).await
}

impl Output {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        let provider = &self.provider;
        let of = counted(self.commits, "commit", "commits");
        let mut text = match &self.at_most {
            Some(at_most) if self.summarised > 0 => {
                format!("Would have {of} summarised: {provider} would get {at_most}.")
            }
            _ if self.commits == 0 => "Every commit has a summary.".to_owned(),
            _ => {
                let cost = self.cost_usd;
                let mut text =
                    format!("{} of {of} summarised by {provider}, cost ${cost:.4}", self.summarised);
                let _ = match self.disclosed_tokens {
                    0 => write!(text, "; nothing left this machine."),
                    sent => write!(text, "; {sent} tokens were sent there."),
                };
                text
            }
        };
        for failed in self.failed.iter().take(SHOWN) {
            let _ = write!(text, "\nStays as it is: {failed}.");
        }
        if self.failed.len() > SHOWN {
            let _ = write!(text, "\nStay as they are: {} more.", self.failed.len() - SHOWN);
        }
        text + &common::footnotes(&[], self.pending, &self.notices)
    }
}
