//! Asking a model, for whatever operation needs one: who may be asked, what it may cost, and who is asked instead.
//!
//! The configuration is read for each question, so that what the user changes holds from the next one on. Money is
//! reserved before anything is sent; secrets are replaced once more on the way out; the answer says who was sent how
//! much. Nobody is asked for a purpose that the user's configuration doesn't name them for, and an external model
//! without a known price is not asked at all: nobody could hold its limits.

mod meter;
mod place;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::meter::{Meter, counted};
use crate::caller::Caller;
use crate::config::{self, Configured, External, Options, Use};
use crate::engine::Engine;
use crate::error::{Error, Kind, Result};
use crate::llm::{self, Provider, Reply, Request, Turn};
use crate::memory::Millis;
use crate::money::Money;
use crate::store::{Planned, SpendLimits};

pub(crate) use self::meter::Bill;
pub(crate) use self::place::place;

/// Tokens of an answer where neither question nor provider bounds them.
const MOST_OUTPUT: usize = 4096;

/// The longest that a provider is left alone, whatever it asks for, in milliseconds: six hours.
pub(crate) const LONGEST_WAIT: Millis = 6 * 60 * 60 * 1000;

/// An answer, from whom, and what it took.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    /// What was answered.
    pub reply: Reply,
    /// Who answered.
    pub provider: String,
    /// With which model.
    pub model: String,
    /// Who was not asked, or did not answer, and why.
    pub notices: Vec<String>,
}

/// Returns who would be asked first for `purpose`; `None` where the user named nobody for it, or the configuration can't be
/// read.
pub(crate) fn may_ask(engine: &Engine, purpose: Use) -> Option<Configured> {
    first(engine, purpose).ok().flatten()
}

/// Returns who would be asked first for `purpose`; `None` where the user named nobody for it.
///
/// Errors where the configuration can't be read.
pub(crate) fn first(engine: &Engine, purpose: Use) -> Result<Option<Configured>> {
    Ok(candidates(engine, purpose)?.1.into_iter().next())
}

/// Returns whether everybody who would be asked for `purpose` may be asked now: nobody wants to be left alone.
pub(crate) async fn is_welcome(engine: &Engine, purpose: Use) -> Result<bool> {
    let (_, candidates) = candidates(engine, purpose)?;
    let registry = &engine.begin_installation().await?.registry;
    let now = engine.now();
    for candidate in candidates {
        let until = registry.retry_after(&candidate.provider.name).await?;
        // Further ahead than anybody is left alone, it was noted by a clock that was wrong.
        if until.is_some_and(|until| (1..=LONGEST_WAIT).contains(&until.saturating_sub(now))) {
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
    caller: &Caller,
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
        match ask_one(engine, caller, &options, candidate, request, share, bill).await {
            Ok(mut answered) => {
                let told = |error: &Error| {
                    format!("{}; `{}` was asked instead", error.with_hint(), answered.provider)
                };
                let before: Vec<String> = failures.iter().map(told).collect();
                answered.notices.splice(0..0, before);
                return Ok(answered);
            }
            Err(error) => failures.push(error),
        }
    }
    let Some(last) = failures.pop() else {
        return Err(match options.external {
            External::Never => {
                Error::new(Kind::Provider, "no provider on this machine is named, and `external` is `never`")
                    .hint("`tiro provider show` says who is configured")
            }
            External::Allowed => Error::new(Kind::Provider, "no provider is named for this")
                .hint("`tiro provider add NAME --use summarize` names one"),
        });
    };
    let before: String = failures.iter().map(|error| format!("; before, {}", error.with_hint())).collect();
    let wait = failures.iter().chain([&last]).filter_map(Error::retry_after).max();
    let error = Error::new(last.kind(), format!("{last}{before}")).with_retry_after(wait);
    Err(match last.way_out() {
        Some(hint) => error.hint(hint),
        None => error,
    })
}

/// Asks `configured` and nobody else, whatever it is named for.
pub(crate) async fn ask_one(
    engine: &Engine,
    caller: &Caller,
    options: &Options,
    configured: &Configured,
    request: &Request,
    deadline: Duration,
    bill: &Bill,
) -> Result<Answered> {
    let provider = &configured.provider;
    if !configured.is_allowed(options) {
        let message =
            format!("provider `{}` is outside this machine, and `external` is `never`", provider.name);
        return Err(Error::new(Kind::Provider, message));
    }
    configured.check_encryption()?;
    let installation = engine.begin_installation().await?;
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
    let tokens = request.tokens() as u64;
    let client = llm::Client::new(provider.clone(), Arc::new(config::key))?.retries(options.max_retries);
    let planned = Planned {
        project: caller
            .project(engine)
            .await
            .map_or_else(|_| String::new(), |it| it.scope.project.as_str().into()),
        provider: provider.name.clone(),
        model: provider.model.clone(),
        most,
        limits: limits(options, configured),
        until: engine.now().saturating_add(i64::try_from(deadline.as_millis()).unwrap_or(i64::MAX)),
    };
    let meter = Arc::new(Meter::start(engine, configured, planned, tokens, bill).await?);
    let on_failure: llm::OnFailure = {
        let meter = Arc::clone(&meter);
        Arc::new(move |failed| {
            let meter = Arc::clone(&meter);
            Box::pin(async move { meter.failed(failed).await })
        })
    };
    // Dropped in the middle, it stays reserved, and counts in full once it has expired.
    let asked = client.on_failure(on_failure).ask(&request, deadline, None).await;
    if let Some(wait) = asked.as_ref().err().and_then(Error::retry_after) {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX).min(LONGEST_WAIT);
        installation.registry.note_retry_after(&provider.name, engine.now() + wait).await?;
    }
    let reply = match asked {
        Ok(reply) => reply,
        Err(error) => {
            meter.gave_up(&error).await?;
            return Err(error);
        }
    };
    let (usage, doubt) = counted(provider, &request, tokens, &reply);
    meter.answered(&usage, cost(provider, &usage).map_or(most, |cost| cost.min(most))).await?;
    Ok(Answered {
        reply: Reply { usage, ..reply },
        provider: provider.name.clone(),
        model: provider.model.clone(),
        notices: doubt.into_iter().collect(),
    })
}

/// Returns the options as they are now, and who may be asked for `purpose`, the first choice first.
///
/// These are the default and the fallback; where neither may be asked, the first by name that is on this machine, since it is
/// named for that as soon as it is configured, and nothing leaves for it.
pub(crate) fn candidates(engine: &Engine, purpose: Use) -> Result<(Options, Vec<Configured>)> {
    let sources = &engine.config().sources;
    let options = sources.options()?;
    let mut providers = sources.providers(&options)?;
    providers.retain(|each| each.may(purpose, &options));
    let mut chosen: Vec<Configured> = Vec::new();
    for name in [&options.default_provider, &options.fallback_provider] {
        let found = named(&providers, name);
        if let Some(found) = found
            && !chosen.contains(found)
        {
            chosen.push(found.clone());
        }
    }
    if chosen.is_empty() {
        chosen.extend(providers.into_iter().find(Configured::is_local));
    }
    Ok((options, chosen))
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

/// What being asked may cost at most: repeated as often as it may be, and asked of the fallback too.
#[derive(Clone, Debug)]
pub(crate) struct Dearest {
    times: u64,
    providers: Vec<Provider>,
}

/// Returns what being asked for `purpose` may cost.
pub(crate) fn dearest(engine: &Engine, purpose: Use) -> Result<Dearest> {
    let (options, candidates) = candidates(engine, purpose)?;
    let providers = candidates.into_iter().map(|each| each.provider).collect();
    Ok(Dearest { times: u64::from(options.max_retries) + 1, providers })
}

impl Dearest {
    /// Returns what requests of so many tokens, and answers of so many, cost at most together, and what those that are likely
    /// cost where the first who has a price answers each of them at once, in US dollars; `None` where nobody knows. Whoever
    /// has no price isn't asked.
    pub fn costs(&self, most: (usize, usize), likely: (usize, usize)) -> (Option<f64>, Option<f64>) {
        let of = |(input, output): (usize, usize)| {
            let each =
                self.providers.iter().filter_map(move |each| llm::catalogue::estimate(each, input, output));
            each.map(Money::from_dollars)
        };
        let costs: Vec<u64> = of(most).map(|money| money.0.saturating_mul(self.times)).collect();
        let most = (!costs.is_empty()).then(|| Money(costs.into_iter().sum()).dollars());
        (most, of(likely).next().map(Money::dollars))
    }
}

/// Returns the most that `request` may cost.
///
/// Errors with [`Kind::Limit`] where nobody knows.
pub(crate) fn estimate(provider: &Provider, request: &Request) -> Result<Money> {
    let dollars = llm::catalogue::estimate(provider, request.tokens(), request.max_output);
    dollars.map(Money::from_dollars).ok_or_else(|| {
        let message = format!("nobody said what `{}` of provider `{}` costs", provider.model, provider.name);
        let name = &provider.name;
        Error::new(Kind::Limit, message).hint(format!(
            "set it with `tiro provider add {name} --price INPUT,OUTPUT`, in dollars per million tokens (0,0 for your own server)"
        ))
    })
}

fn cost(provider: &Provider, usage: &llm::Usage) -> Option<Money> {
    llm::catalogue::cost(provider, usage).map(Money::from_dollars)
}

/// Returns the provider that a person means by `name`: of that name, else of the one that is usual for it.
pub(crate) fn named<'a>(providers: &'a [Configured], name: &str) -> Option<&'a Configured> {
    let of = |name: &str| providers.iter().find(|each| each.provider.name == name);
    of(name).or_else(|| of(&config::usual_name(name)))
}
