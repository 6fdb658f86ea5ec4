//! Asking a model, for whatever operation needs one: who may be asked, what it may cost, and who is asked instead.
//!
//! The configuration is read for each question, so that what the user changes holds from the next one on. Money is
//! reserved before anything is sent; secrets are replaced once more on the way out; the answer says who was sent how
//! much. Nobody is asked for a purpose that the user's configuration doesn't name them for, and an external model
//! without a known price is not asked at all: nobody could hold its limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::queue;
use crate::config::{self, Configured, Options, Use};
use crate::engine::Engine;
use crate::error::{Error, Kind, Result};
use crate::llm::{self, Llm, Provider, Reply, Request, Turn};
use crate::store::{Money, Planned, SpendLimits, Spent};
use crate::tokens;

/// Tokens of an answer where neither question nor provider bounds them.
const MOST_OUTPUT: usize = 4096;

/// Tokens that the dialects put around each part of a request. From above.
const AROUND: usize = 16;

/// An answer, from whom, and what it took.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    /// What was answered.
    pub reply: Reply,
    /// Who answered.
    pub provider: String,
    /// With which model.
    pub model: String,
    /// Where that is: `this machine`, or a host.
    pub place: String,
    /// What it cost, in US dollars.
    pub cost_usd: f64,
    /// Tokens that left this machine; none for a local model.
    pub disclosed_tokens: u64,
    /// Who was not asked, or did not answer, and why.
    pub notices: Vec<String>,
}

/// What asking comes to, as the ledger counts it: a call that failed, or was given up, with the most that it may cost.
#[derive(Debug, Default)]
pub(crate) struct Bill(AtomicU64);

impl Bill {
    /// Returns what it comes to so far.
    pub fn total(&self) -> Money {
        Money(self.0.load(Ordering::Relaxed))
    }

    fn reserve(&self, most: Money) {
        self.0.fetch_add(most.0, Ordering::Relaxed);
    }

    fn settle(&self, most: Money, cost: Money) {
        self.0.fetch_add(cost.0, Ordering::Relaxed);
        self.0.fetch_sub(most.0, Ordering::Relaxed);
    }
}

impl Answered {
    /// Returns what was sent where, in a line.
    pub fn disclosure(&self) -> String {
        let Answered { provider, model, place, .. } = self;
        let cost = Money((self.cost_usd * 1e6).round() as u64);
        match self.disclosed_tokens {
            0 => format!("asked {provider} ({model}) on {place}: nothing left it"),
            sent => format!("sent {sent} tokens to {provider} ({model}) at {place}, cost {cost}"),
        }
    }
}

/// Returns who would be asked first for `purpose`; `None` where the user named nobody for it.
pub(crate) fn may_ask(engine: &Engine, purpose: Use) -> Option<Configured> {
    let read = candidates(engine, purpose);
    // Whoever asks in earnest gets the error.
    read.ok().and_then(|(_, candidates)| candidates.into_iter().next())
}

/// Returns whether everybody who would be asked for `purpose` may be asked now: nobody wants to be left alone.
pub(crate) async fn is_welcome(engine: &Engine, purpose: Use) -> Result<bool> {
    let (_, candidates) = candidates(engine, purpose)?;
    let registry = &engine.installation().await?.registry;
    let now = engine.now();
    for candidate in candidates {
        let until = registry.left_alone(&candidate.provider.name).await?;
        // Further ahead than anybody is left alone, it was noted by a clock that was wrong.
        if until.is_some_and(|until| (1..=queue::LONGEST_WAIT).contains(&until.saturating_sub(now))) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Asks the default for `purpose`, then the fallback, within `deadline` in all; what that comes to is added to `bill`.
///
/// Errors with [`Kind::Provider`] where nobody is named or nobody answered, with [`Kind::Limit`] where nothing may be
/// spent any more: then the caller does without.
pub(crate) async fn ask(
    engine: &Engine,
    purpose: Use,
    request: &Request,
    deadline: Duration,
    bill: &Bill,
) -> Result<Answered> {
    let (options, candidates) = candidates(engine, purpose)?;
    let end = Instant::now() + deadline;
    let mut failures: Vec<Error> = Vec::new();
    for (place, candidate) in candidates.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        // Who stands behind gets a chance too.
        let share = if place + 1 < candidates.len() { left / 2 } else { left };
        match ask_one(engine, &options, candidate, request, share, bill).await {
            Ok(mut answered) => {
                let told = |error: &Error| format!("{error}; `{}` was asked instead", answered.provider);
                answered.notices = failures.iter().map(told).collect();
                return Ok(answered);
            }
            Err(error) => failures.push(error),
        }
    }
    let Some(last) = failures.pop() else {
        return Err(Error::new(Kind::Provider, "no provider is named for this")
            .hint("`tiro provider add NAME --use summarize` names one"));
    };
    let before: String = failures.iter().map(|error| format!("; before, {error}")).collect();
    let wait = failures.iter().chain([&last]).filter_map(Error::left_alone).max();
    let error = Error::new(last.kind(), format!("{last}{before}")).wait(wait);
    Err(match last.way_out() {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

/// Asks `configured` and nobody else, whatever it is named for.
pub(crate) async fn ask_one(
    engine: &Engine,
    options: &Options,
    configured: &Configured,
    request: &Request,
    deadline: Duration,
    bill: &Bill,
) -> Result<Answered> {
    let provider = &configured.provider;
    if !configured.may_at_all(options) {
        let message =
            format!("provider `{}` is outside this machine, and `external` is `never`", provider.name);
        return Err(Error::new(Kind::Provider, message));
    }
    let installation = engine.installation().await?;
    let redact = |text: &str| installation.redactor.redact(text).text.into_owned();
    let turns = request.turns.iter().map(|turn| match turn {
        Turn::User(text) => Turn::User(redact(text)),
        Turn::Result { call, text } => Turn::Result { call: call.clone(), text: redact(text) },
        said @ Turn::Assistant { .. } => said.clone(),
    });
    let bounds = [Some(request.max_output).filter(|most| *most > 0), provider.max_output];
    let max_output = bounds.into_iter().flatten().min().unwrap_or(MOST_OUTPUT);
    let request = Request { turns: turns.collect(), max_output, ..request.clone() };
    let most = estimate(provider, &request)?;
    let model = connect(provider, options.max_retries)?;
    let planned = Planned {
        project: engine.project().await.map_or_else(|_| String::new(), |it| it.scope.project.as_str().into()),
        provider: provider.name.clone(),
        model: provider.model.clone(),
        most,
        limits: limits(options, configured),
        until: engine.now().saturating_add(i64::try_from(deadline.as_millis()).unwrap_or(i64::MAX)),
    };
    let reservation = installation.registry.reserve(planned, engine.now()).await?;
    bill.reserve(most);
    // Dropped in the middle, it stays reserved, and counts in full once it has expired.
    let asked = model.ask(&request, deadline, None).await;
    let spent = match &asked {
        Ok(Reply { usage, .. }) => Spent {
            cost: cost(provider, usage).unwrap_or(most),
            input: usage.input.try_into().unwrap_or(i64::MAX),
            output: usage.output.try_into().unwrap_or(i64::MAX),
            has_failed: false,
        },
        // Nothing was sent: there is no key, or the address is none.
        Err(error) if error.kind() == Kind::BadInput => Spent { has_failed: true, ..Spent::default() },
        // Some bill what they didn't deliver.
        Err(_) => Spent { cost: most, has_failed: true, ..Spent::default() },
    };
    let input = spent.input;
    let paid = spent.cost;
    bill.settle(most, paid);
    installation.registry.settle(reservation, spent).await?;
    if let Some(wait) = asked.as_ref().err().and_then(Error::left_alone) {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX).min(queue::LONGEST_WAIT);
        installation.registry.leave_alone(&provider.name, engine.now() + wait).await?;
    }
    let reply = asked?;
    let is_local = configured.is_local();
    Ok(Answered {
        reply,
        provider: provider.name.clone(),
        model: provider.model.clone(),
        place: place(configured),
        cost_usd: paid.dollars(),
        disclosed_tokens: if is_local { 0 } else { input.unsigned_abs() },
        notices: Vec::new(),
    })
}

/// Returns the options as they are now, and who may be asked for `purpose`, the first choice first.
fn candidates(engine: &Engine, purpose: Use) -> Result<(Options, Vec<Configured>)> {
    let sources = &engine.config().sources;
    let options = sources.options()?;
    let mut providers = sources.providers(&options)?;
    providers.retain(|each| each.may(purpose, &options));
    let mut chosen: Vec<Configured> = Vec::new();
    for name in [&options.default_provider, &options.fallback_provider] {
        let found = providers.iter().find(|each| each.provider.name == *name);
        if let Some(found) = found
            && !chosen.contains(found)
        {
            chosen.push(found.clone());
        }
    }
    Ok((options, chosen))
}

/// Returns where `configured` is asked.
pub(crate) fn place(configured: &Configured) -> String {
    match configured.is_local() {
        true => "this machine".into(),
        false => configured.provider.host(),
    }
}

fn limits(options: &Options, configured: &Configured) -> SpendLimits {
    let call = [configured.limits.call, options.limit_call].into_iter().flatten().min();
    SpendLimits {
        call,
        provider_day: configured.limits.day,
        day: options.limit_day,
        project: options.limit_project,
        total: options.limit_total,
    }
}

/// Returns the tokens that are sent with `request`. From above.
pub(crate) fn tokens_of(request: &Request) -> usize {
    let spoken = request.turns.iter().map(|turn| match turn {
        Turn::User(text) | Turn::Result { text, .. } => tokens::bounded(text).high,
        Turn::Assistant { text, calls } => {
            let called = calls.iter().map(|call| tokens::bounded(&call.arguments.to_string()).high);
            tokens::bounded(text).high + called.sum::<usize>()
        }
    });
    let functions = request.functions.iter().map(|each| {
        tokens::bounded(&each.description).high + tokens::bounded(&each.parameters.to_string()).high
    });
    let schema = request.schema.iter().map(|(_, schema)| tokens::bounded(&schema.to_string()).high);
    let parts = request.turns.len() + 2 * request.functions.len() + 4;
    tokens::bounded(&request.system).high
        + spoken.chain(functions).chain(schema).sum::<usize>()
        + parts * AROUND
}

/// Returns the most that `request` may cost.
///
/// Errors with [`Kind::Limit`] where nobody knows.
pub(crate) fn estimate(provider: &Provider, request: &Request) -> Result<Money> {
    let dollars = llm::catalogue::estimate(provider, tokens_of(request), request.max_output);
    dollars.map(money).ok_or_else(|| {
        let message = format!("nobody said what `{}` of provider `{}` costs", provider.model, provider.name);
        let name = &provider.name;
        Error::new(Kind::Limit, message).hint(format!(
            "`tiro provider add {name} --price INPUT,OUTPUT` says it, in dollars for a million tokens"
        ))
    })
}

fn cost(provider: &Provider, usage: &llm::Usage) -> Option<Money> {
    llm::catalogue::cost(provider, usage).map(money)
}

fn money(dollars: f64) -> Money {
    Money((dollars * 1e6).ceil().clamp(0.0, 1e15) as u64)
}

fn connect(provider: &Provider, retries: u32) -> Result<Box<dyn Llm>> {
    let keys: llm::Keys = Arc::new(config::key);
    Ok(Box::new(llm::Client::new(provider.clone(), keys)?.retries(retries)))
}
