//! Estimates the requests, tokens and dollars that a model needs for summaries.

use serde::Serialize;

use crate::ask;
use crate::config::Use;
use crate::engine::Engine;
use crate::project::OpenProject;
use crate::summaries::make::{AGAIN, writer};
use crate::summaries::messages::{self, blocking, count};
use crate::summaries::wanted::{UNKNOWN_WINDOW, Wanted};
use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_digest::summarize::{self, Wish};
use tiro_llm::{Request, catalogue};

/// The maximum number of tokens of the instruction to merge summaries, not counting the summaries.
const MERGE: usize = 1500;

/// If this many summaries in a row get no answer, the remaining ones are not requested. Arbitrary: without such a
/// limit, a thousand summaries could each wait for the whole deadline.
pub const PATIENCE: usize = 3;

/// The maximum number of requests, tokens and dollars that are needed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtMost {
    /// Requests.
    pub requests: usize,
    /// Tokens sent.
    pub input: usize,
    /// Tokens received.
    pub output: usize,
    /// The highest cost in US dollars; absent if unknown.
    pub cost_usd: Option<f64>,
    /// The likely cost in US dollars. It assumes that no request fails, and that every answer is good enough and has
    /// the requested length. Absent if nothing is charged.
    #[serde(skip_serializing_if = "costs_nothing")]
    pub likely_usd: Option<f64>,
}

fn costs_nothing(cost: &Option<f64>) -> bool {
    cost.is_none_or(|cost| cost == 0.0)
}

impl Default for AtMost {
    fn default() -> AtMost {
        AtMost { requests: 0, input: 0, output: 0, cost_usd: Some(0.0), likely_usd: Some(0.0) }
    }
}

impl AtMost {
    /// Adds `other` to this estimate.
    pub fn add(&mut self, other: AtMost) {
        self.requests += other.requests;
        self.input += other.input;
        self.output += other.output;
        let sum = |one: Option<f64>, other: Option<f64>| one.zip(other).map(|(one, other)| one + other);
        self.cost_usd = sum(self.cost_usd, other.cost_usd);
        self.likely_usd = sum(self.likely_usd, other.likely_usd);
    }
}

/// Formats the estimate as the end of a sentence.
impl std::fmt::Display for AtMost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let AtMost { requests, input, output, .. } = self;
        let requests = counted(*requests, "request", "requests");
        write!(f, "{requests}, {input} tokens sent and {output} received at most, ")?;
        write!(f, "{}", cost(self.likely_usd, self.cost_usd))
    }
}

/// Returns the phrase that states a likely and a highest cost in US dollars.
pub fn cost(likely: Option<f64>, most: Option<f64>) -> String {
    match (likely, most) {
        (_, Some(0.0)) => "at no cost".to_owned(),
        (Some(likely), Some(most)) => format!("likely for ${likely:.4}, for ${most:.4} at most"),
        (None, Some(most)) => format!("for ${most:.4} at most"),
        (_, None) => "at an unknown cost".to_owned(),
    }
}

/// The requests, tokens and dollars that a summary would need.
#[derive(Clone, Debug, Default)]
pub struct Estimate {
    /// The provider that would be asked; `None` if no provider would be.
    pub provider: Option<String>,
    /// The maximum number of requests.
    pub requests: usize,
    /// The maximum number of tokens that are sent.
    pub input: usize,
    /// The maximum number of tokens that are received.
    pub output: usize,
    /// The highest cost in US dollars, if known.
    pub cost_usd: Option<f64>,
    /// The likely cost in US dollars. It assumes that each first answer is good enough.
    pub likely_usd: Option<f64>,
}

/// Returns the requests, tokens and dollars that the summary would need.
pub async fn of(engine: &Engine, project: &OpenProject, wanted: &Wanted) -> Result<Estimate> {
    let nothing = Estimate { cost_usd: Some(0.0), likely_usd: Some(0.0), ..Estimate::default() };
    let Some(provider) = writer(engine, wanted)? else { return Ok(nothing) };
    let secret = engine.installation().await?.secret;
    let texts = messages::texts(project, &wanted.rows).await?;
    let (level, most, focus) = (wanted.level, wanted.most(), wanted.focus.clone());
    let window = catalogue::window(&provider.provider).unwrap_or(UNKNOWN_WINDOW);
    let planned = blocking(move || {
        let wish = Wish { level, max_tokens: most, focus: &focus, previous: None, window, secret: &secret };
        summarize::requests(&messages::sources(&texts), &wish, &count)
    });
    let parts = planned.await??;
    let longest = parts.first().map_or(0, |part| part.max_output);
    let mut sent: Vec<usize> = parts.iter().map(Request::tokens).collect();
    if parts.len() > 1 {
        // If there are several parts, one more request merges their answers.
        sent.push(parts.len() * summarize::SHOWN_AGAIN * most + MERGE);
    }
    let likely = (sent.iter().sum(), sent.len() * most.min(longest));
    // If the last answer is rejected, the model is asked once more.
    sent.extend(sent.last().map(|last| last + summarize::SHOWN_AGAIN * most + AGAIN));
    let (requests, input, output) = (sent.len(), sent.iter().sum(), sent.len() * longest);
    let (cost_usd, likely_usd) = ask::dearest(engine, Use::Summarize)?.costs((input, output), likely);
    Ok(Estimate { provider: Some(provider.provider.name), requests, input, output, cost_usd, likely_usd })
}
