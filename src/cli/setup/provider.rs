//! `tiro provider`: configures the providers of models, and shows what is sent to them and what it costs.

use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::print::Out;
use tiro_base::error::Result;
use tiro_base::money::Money;
use tiro_host::caller::Caller;
use tiro_host::config::{Change, Edit, Use, purpose};
use tiro_host::engine::Engine;
use tiro_tools::provider::{providers, sent};

/// The arguments of `tiro provider`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Add a provider of models, or change one
    Add(Box<Add>),
    /// List the providers
    List,
    /// Show what is sent to which provider and why, and what was spent
    Show {
        /// The provider [default: all]
        name: Option<String>,
    },
    /// List what was sent to providers: when, where to, for what, and which files and memories; never its text
    Sent {
        /// Only what was sent to this provider
        #[arg(long, value_name = "NAME")]
        provider: Option<String>,
        /// Only what was sent since this time, such as 2026-03-01, yesterday, monday, 2026-03 or 7d
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// How many requests to list, the newest first [default: 20]
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
    },
    /// Send a short test request without any memory
    Test {
        /// The provider [default: the provider for summaries and its fallback]
        name: Option<String>,
    },
    /// Remove a provider from the configuration
    Remove {
        /// The provider
        name: String,
    },
    /// Make a provider the one that is asked first for summaries
    Default {
        /// The provider
        name: String,
    },
}

#[derive(clap::Args)]
struct Add {
    /// The provider's name; openai, anthropic, gemini, ollama and llama.cpp need no other argument
    name: String,
    /// The provider's protocol: openai, openai-responses, anthropic, gemini, ollama or openai-compatible
    #[arg(long)]
    service: Option<String>,
    /// The model
    #[arg(long)]
    model: Option<String>,
    /// The provider's address [default: the service's own]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// The environment variable that holds the provider's key
    #[arg(long, value_name = "NAME", conflicts_with = "key_file")]
    key_variable: Option<String>,
    /// A file that holds the provider's key and that only you can read
    #[arg(long, value_name = "PATH")]
    key_file: Option<String>,
    /// What the provider may be used for: summarize, embed, consult, separated by commas
    #[arg(long = "use", value_name = "USES", value_delimiter = ',', value_parser = a_use)]
    uses: Vec<Use>,
    /// Whether the provider may search the memory while it is consulted
    #[arg(long, value_name = "BOOL")]
    memory: Option<bool>,
    /// The most tokens that an answer may have
    #[arg(long, value_name = "N")]
    max_output: Option<u64>,
    /// The sampling temperature, 0 to 2
    #[arg(long)]
    temperature: Option<f64>,
    /// The context window: the most tokens of a request and its answer together
    #[arg(long, value_name = "N")]
    window: Option<u64>,
    /// US dollars per million input tokens and per million output tokens
    #[arg(long, value_name = "IN,OUT", value_parser = a_price)]
    price: Option<(f64, f64)>,
    /// The most US dollars that one call may cost; none removes this limit
    #[arg(long, value_name = "USD", value_parser = a_limit)]
    limit_call: Option<Edit<f64>>,
    /// The most US dollars that the provider may cost on one day; none removes this limit
    #[arg(long, value_name = "USD", value_parser = a_limit)]
    limit_day: Option<Edit<f64>>,
    /// Make this provider the one that is asked first for summaries
    #[arg(long)]
    default: bool,
}

fn a_use(word: &str) -> std::result::Result<Use, String> {
    purpose(word).ok_or_else(|| "expected summarize, embed or consult".into())
}

fn a_price(words: &str) -> std::result::Result<(f64, f64), String> {
    let (input, output) = words.split_once(',').ok_or("expected IN,OUT")?;
    let dollars = |word: &str| word.trim().parse::<f64>().map_err(|_| format!("`{word}` is not an amount"));
    Ok((dollars(input)?, dollars(output)?))
}

fn a_limit(words: &str) -> std::result::Result<Edit<f64>, String> {
    match words {
        "none" => Ok(Edit::Remove),
        amount => match Money::parse(amount) {
            Some(money) => Ok(Edit::Set(money.dollars())),
            None => Err("expected an amount in dollars, 0 or at least 0.000001, or none".into()),
        },
    }
}

/// Runs the subcommand and prints its answer.
pub async fn run(engine: &Engine, caller: &Caller, args: Args, out: Out) -> Result<ExitCode> {
    match args.action {
        Action::Add(add) => {
            let Add { name, service, model, endpoint, key_variable, key_file, uses, memory, .. } = *add;
            // A key comes either from a variable or from a file. Setting one of them removes the other.
            let (variable, file): (Edit<String>, Edit<String>) = match (key_variable, key_file) {
                (Some(name), _) => (Edit::Set(name), Edit::Remove),
                (None, Some(path)) => (Edit::Remove, Edit::Set(path)),
                (None, None) => (Edit::Keep, Edit::Keep),
            };
            let change = Change {
                service,
                endpoint: endpoint.into(),
                model,
                key_variable: variable,
                key_file: file,
                uses: Some(uses).filter(|uses| !uses.is_empty()),
                memory,
                max_output: add.max_output,
                temperature: add.temperature,
                window: add.window,
                price: add.price,
                limit_call: add.limit_call.unwrap_or_default(),
                limit_day: add.limit_day.unwrap_or_default(),
                is_default: add.default,
            };
            let output = providers::add(engine, &name, change, |_| Ok(()))?;
            out.answer(&output, &output.text())
        }
        Action::List => {
            let output = providers::show(engine, None, true).await?;
            out.answer(&output, &output.text())
        }
        Action::Show { name } => {
            let output = providers::show(engine, name.as_deref(), false).await?;
            out.answer(&output, &output.text())
        }
        Action::Sent { provider, since, limit } => {
            let output = sent::run(engine, sent::Args { provider, since, limit }).await?;
            out.answer(&output, &output.text())
        }
        Action::Test { name } => {
            let output = providers::test(engine, caller, name.as_deref()).await?;
            out.answer(&output, &output.text())
        }
        Action::Remove { name } => {
            let output = providers::remove(engine, &name)?;
            out.answer(&output, &output.text())
        }
        Action::Default { name } => {
            let change = Change { is_default: true, ..Change::default() };
            let output = providers::set(engine, &name, change, |_| Ok(()))?;
            out.answer(&output, &output.text())
        }
    }
}
