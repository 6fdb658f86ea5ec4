//! Counts the tokens of files, and estimates the cost of sending them to an assistant. For an assistant, a first
//! question about the files is prepared as it would be sent. So the answer shows what would leave the machine.

use std::collections::HashSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chat;
use super::preview::NO_MESSAGE;
use tiro_base::error::{Error, Result};
use tiro_base::humanize::{counted, thousands};
use tiro_base::money::Money;
use tiro_host::ask;
use tiro_host::caller::Caller;
use tiro_host::config::Configured;
use tiro_host::consult::{self, CountedFiles, Previewed, Skipped};
use tiro_host::engine::Engine;
use tiro_llm::catalogue;

/// The name of the tool in MCP.
pub const NAME: &str = "count_tokens";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Count tokens";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Counts the tokens of files and folders as they would be sent to an assistant, and \
    estimates the cost. Sends nothing.";

/// The number of files that are listed, the largest first.
const LISTED: usize = 20;

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Files or folders.
    #[schemars(description = "")]
    pub paths: Vec<String>,
    /// For its window and price.
    pub assistant: Option<String>,
}

/// The answer of the call.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// The tokens of all files.
    pub tokens: usize,
    /// Whether the count is exact for the assistant; otherwise `high` is an upper estimate.
    pub exact: bool,
    /// The most tokens that the assistant counts.
    pub high: usize,
    /// `o200k`, or how the upper estimate is made.
    pub method: String,
    /// How many files there are.
    pub files: usize,
    /// The largest files, with their tokens.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub largest: Vec<(String, usize)>,
    /// What was left out.
    #[schemars(with = "Vec<serde_json::Value>")]
    pub skipped: Vec<Skipped>,
    /// The assistant's window, in its own tokens.
    pub window: Option<usize>,
    /// How many tokens of files fit into a first prompt.
    pub fits: Option<usize>,
    /// The cost of sending all of it once, in dollars, without the answer.
    pub cost: Option<String>,
    /// The assistant's host, or `this machine`.
    pub place: Option<String>,
    /// How many files would be in a first prompt; the others could be searched.
    pub inline: Option<usize>,
    /// How many secrets are replaced first.
    pub secrets: usize,
    /// Remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
}

/// Counts.
pub async fn run(engine: &Arc<Engine>, caller: &Caller, args: Args) -> Result<Output> {
    if args.paths.is_empty() {
        return Err(Error::bad_input("`paths` is empty").hint("give files or folders"));
    }
    let assistant = match args.assistant.as_deref() {
        Some(name) => Some(chat::assistant(engine, name)?),
        None => None,
    };
    let project = caller.project(engine).await?;
    let previewed = match &assistant {
        Some(assistant) => Some(previewed(engine, caller, assistant, &args.paths).await?),
        None => None,
    };
    let counted = match &previewed {
        Some(previewed) => counted_of(previewed),
        None => consult::count(engine, &project, &engine.config().sources.options()?, &args.paths).await?,
    };
    let mut largest: Vec<(String, usize)> = counted.files;
    let (files, tokens) = (largest.len(), largest.iter().map(|(_, tokens)| tokens).sum());
    largest.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    largest.truncate(LISTED);
    let mut output = Output {
        tokens,
        exact: true,
        high: tokens,
        method: "o200k".to_owned(),
        files,
        largest,
        skipped: counted.skipped,
        secrets: counted.secrets,
        place: assistant.as_ref().map(ask::place),
        inline: previewed.as_ref().map(|previewed| files - previewed.prepared.plan.overflow.len().min(files)),
        notices: counted.notices,
        ..Output::default()
    };
    if let Some(assistant) = assistant {
        output.add(&assistant);
    }
    let mut seen = HashSet::new();
    output.notices.retain(|notice| seen.insert(notice.clone()));
    Ok(output)
}

/// Prepares a first question about `paths` in a thread that does not exist.
async fn previewed(
    engine: &Arc<Engine>,
    caller: &Caller,
    assistant: &Configured,
    paths: &[String],
) -> Result<Previewed> {
    let project = caller.project(engine).await?;
    let asked = chat::Args {
        session_id: format!("count-{:016x}", u64::from_le_bytes(engine.random())),
        instructions: NO_MESSAGE.to_owned(),
        context: paths.to_vec(),
        ..chat::Args::default()
    };
    let (question, ..) = chat::question(engine, &project, assistant, &asked)?;
    consult::preview(engine, &project, assistant, question, chat::functions(engine, caller, assistant)).await
}

/// Returns the files of a first question with their tokens.
fn counted_of(previewed: &Previewed) -> CountedFiles {
    let Previewed { prepared, foreseen, .. } = previewed;
    let files = prepared.plan.entries.iter().map(|entry| (entry.path.clone(), entry.tokens as usize));
    CountedFiles {
        files: files.collect(),
        skipped: prepared.receipt.skipped.clone(),
        secrets: foreseen.secrets,
        notices: prepared.receipt.notices.clone(),
    }
}

impl Output {
    /// Adds the numbers that depend on the assistant.
    fn add(&mut self, assistant: &Configured) {
        let window = consult::window(&assistant.provider, &[]);
        self.exact = window.is_exact();
        self.high = (self.tokens as f64 * window.ratio).ceil() as usize;
        if !self.exact {
            self.method = format!("o200k times {}, an upper estimate for this model", window.ratio);
        }
        self.window = Some(window.own);
        self.fits = Some(window.room());
        self.cost = catalogue::estimate(&assistant.provider, self.high, 0, true)
            .map(|dollars| Money::from_dollars(dollars).to_string());
        if self.cost.is_none() {
            self.notices.push(format!("the price of `{}` is unknown", assistant.provider.model));
        }
    }

    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let exact = if self.exact {
            String::new()
        } else {
            format!(" (at most {} for this model)", thousands(self.high as u64))
        };
        let mut text = format!(
            "{} have {} tokens{exact}",
            counted(self.files, "file", "files"),
            thousands(self.tokens as u64)
        );
        if let Some(fits) = self.fits {
            text += &format!("; a first prompt has room for about {}", thousands(fits as u64));
        }
        if let Some(cost) = &self.cost {
            text += &format!("; sending them once costs at most {cost}");
        }
        if let Some(inline) = self.inline {
            text += &format!("; it would have {inline} files whole, and {} to search", self.files - inline);
        }
        if let Some(place) = &self.place {
            text += &format!("; the assistant is on {place}");
        }
        if self.secrets > 0 {
            let secrets = counted(self.secrets as u64, "secret", "secrets");
            text += &format!("; {secrets} would be replaced first");
        }
        text.push('.');
        for (path, tokens) in &self.largest {
            text += &format!("\n{:>9}  {path}", thousands(*tokens as u64));
        }
        for Skipped { path, why } in self.skipped.iter().take(LISTED) {
            text += &format!("\nLeft out: {path}: {why}.");
        }
        if self.skipped.len() > LISTED {
            text += &format!("\nLeft out: {} more.", self.skipped.len() - LISTED);
        }
        for notice in &self.notices {
            text += &format!("\nNote: {notice}.");
        }
        text
    }
}
