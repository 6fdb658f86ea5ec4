//! Asks models. This module decides which provider may be asked, how much this may cost, and which provider is asked
//! after a failure.
//!
//! The configuration is read for each question, so a change takes effect with the next question. Before a request is
//! sent, its cost is reserved and secrets in it are replaced once more. The answer lists what was sent, and where. A
//! provider is asked only for the purposes that the configuration names. An external model with an unknown price is not
//! asked, because spending limits could not be enforced.

mod encoders;
mod known;
mod lease;
mod meter;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::meter::{Meter, counted};
use crate::caller::Caller;
use crate::config::{self, Configured, External, Options, Use};
use crate::engine::Engine;
use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::Millis;
use tiro_base::money::Money;
use tiro_llm::{OnText, Provider, Reply, Request};
use tiro_redact::marks;
use tiro_store::{Matter, Parcel, Planned, Sources, SpendLimits};

pub use self::encoders::{encoders, may_ask_to_embed};
pub use self::lease::Lease;
pub use self::meter::Bill;

/// The maximum number of tokens of an answer if neither the question nor the provider sets a limit.
const MOST_OUTPUT: usize = 4096;

/// The longest wait that a provider may request, in milliseconds: six hours. If it requests more, this wait is used
/// instead.
pub const LONGEST_WAIT: Millis = 6 * 60 * 60 * 1000;

/// An answer with its provider and notices.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The answer.
    pub reply: Reply,
    /// The provider that answered.
    pub provider: String,
    /// The model that answered.
    pub model: String,
    /// The time that the provider took, including retries and the waits between them.
    pub waited: Duration,
    /// The providers that were not asked or that failed, each with the reason.
    pub notices: Vec<String>,
}

/// Returns the provider that is asked first for `purpose`. Returns `None` if the user named none or the configuration
/// can't be read.
pub fn may_ask(engine: &Engine, purpose: Use) -> Option<Configured> {
    first(engine, purpose).ok().flatten()
}

/// Returns the provider that is asked first for `purpose`; `None` if the user named none.
///
/// Errors if the configuration can't be read.
pub fn first(engine: &Engine, purpose: Use) -> Result<Option<Configured>> {
    Ok(candidates(engine, purpose)?.1.into_iter().next())
}

/// Returns whether all providers for `purpose` may be asked now, that is, whether none of them has requested a wait
/// (`Retry-After`) that isn't over.
pub async fn is_welcome(engine: &Engine, purpose: Use) -> Result<bool> {
    let (_, candidates) = candidates(engine, purpose)?;
    for candidate in candidates {
        if is_waiting(engine, &candidate.provider).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Asks the default provider for `purpose` and, if it fails, the fallback. Both together must answer within `deadline`.
/// `matter` contains the purpose of the request and the sources of its content. Adds tokens and cost to `bill`.
///
/// Errors with [`Kind::Provider`] if no provider is named or none answered, and with [`Kind::Limit`] if the spending
/// limits are reached. After such an error, the caller should continue without a model.
pub async fn ask(
    engine: &Engine,
    caller: &Caller,
    purpose: Use,
    matter: &Matter,
    request: &Request,
    deadline: Duration,
    bill: &Bill,
) -> Result<Answered> {
    let (options, candidates) = candidates(engine, purpose)?;
    let end = Instant::now() + deadline;
    let mut failures: Vec<Error> = Vec::new();
    for (place, candidate) in candidates.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        // If a fallback follows that can be asked, this provider gets only half of the time.
        let mut share = left;
        for fallback in &candidates[place + 1..] {
            if can_ask(engine, &options, fallback, request).await? {
                share = left / 2;
            }
        }
        match ask_one(engine, caller, &options, candidate, matter, request, share, bill, None).await {
            Ok(mut answered) => {
                let replaced = |error: &Error| {
                    format!("{}; `{}` was asked instead", error.with_hint(), answered.provider)
                };
                let before: Vec<String> = failures.iter().map(replaced).collect();
                answered.notices.splice(0..0, before);
                return Ok(answered);
            }
            Err(error) => failures.push(error),
        }
    }
    let Some(last) = failures.pop() else {
        return Err(match options.external {
            External::Never => {
                Error::new(Kind::Provider, "no local provider is configured, and `external` is `never`")
                    .hint("`tiro provider show` lists the configured providers")
            }
            External::Allowed => Error::new(Kind::Provider, "no provider is configured for this purpose")
                .hint("`tiro provider add NAME --use summarize` adds one"),
        });
    };
    let before: String = failures.iter().map(|error| format!("; before, {}", error.with_hint())).collect();
    let wait = failures.iter().chain([&last]).filter_map(Error::retry_after).max();
    Err(last.reworded(format!("{last}{before}")).with_retry_after(wait))
}

/// Returns whether a request can be sent to a provider. The provider must be allowed, its key must be available, its
/// price must be known, and it must not have requested a wait (`Retry-After`) that isn't over.
async fn can_ask(
    engine: &Engine,
    options: &Options,
    configured: &Configured,
    request: &Request,
) -> Result<bool> {
    let provider = &configured.provider;
    let is_ready = configured.is_allowed(options)
        && configured.check_encryption().is_ok()
        && config::key(&provider.key).is_ok()
        && estimate(provider, request, 0).is_ok()
        && provider.base().is_ok();
    Ok(is_ready && !is_waiting(engine, provider).await?)
}

/// Returns whether a provider has requested a wait that isn't over.
async fn is_waiting(engine: &Engine, provider: &Provider) -> Result<bool> {
    let registry = &engine.begin_installation().await?.registry;
    let until = registry.retry_after(&provider.name).await?;
    // A wait that is longer than the longest possible one was stored when a clock was wrong, so it is ignored.
    Ok(until.is_some_and(|until| (1..=LONGEST_WAIT).contains(&until.saturating_sub(engine.now()))))
}

/// Sends one request to the provider `configured` only, whatever purposes it is configured for. `on_text` gets the text
/// of the answer piece by piece. After the first piece, a failed request is not repeated.
///
/// Everything that is sent to a provider passes through this function. `matter` contains the purpose of the request and
/// the sources of its content. These are recorded together with the reservation, before anything is sent.
///
/// Secrets are replaced in every text of the request. If the model calls functions, the caller runs them and calls this
/// function again with the results. Each call reserves its own highest cost, and adds an entry to `bill`.
///
/// If this future is dropped, the request ends, and its highest cost stays reserved.
#[expect(clippy::too_many_arguments, reason = "each is another part of the question")]
pub async fn ask_one(
    engine: &Engine,
    caller: &Caller,
    options: &Options,
    configured: &Configured,
    matter: &Matter,
    request: &Request,
    deadline: Duration,
    bill: &Bill,
    on_text: OnText<'_>,
) -> Result<Answered> {
    let provider = &configured.provider;
    if !configured.is_allowed(options) {
        let message =
            format!("provider `{}` is outside this machine, and `external` is `never`", provider.name);
        return Err(Error::new(Kind::Provider, message));
    }
    configured.check_encryption()?;
    let installation = engine.begin_installation().await?;
    let redact = |text: &str| known::redacted(&installation.redactor, text);
    let request = outgoing(provider, request, &redact);
    let tokens = request.tokens_by(&known::high);
    let most = estimate(provider, &request, tokens)?;
    let tokens = tokens as u64;
    let client = tiro_llm::Client::new(provider.clone(), Arc::new(config::key))?
        .retries(options.max_retries)
        .silence(Duration::from_secs(options.consult_silence_s));
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
        parcel: parcel(configured, nameable(matter, &redact), &request, tokens),
    };
    let meter = Arc::new(Meter::start(engine, configured, planned, tokens, bill).await?);
    let on_failure: tiro_llm::OnFailure = {
        let meter = Arc::clone(&meter);
        Arc::new(move |failed| {
            let meter = Arc::clone(&meter);
            Box::pin(async move { meter.failed(failed).await })
        })
    };
    // If this future is dropped, the cost stays reserved, and counts in full once the reservation has expired.
    let began = Instant::now();
    let asked = client.on_failure(on_failure).ask(&request, deadline, on_text).await;
    let waited = began.elapsed();
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
    let unsent =
        |name: &&str| format!("`{name}` was not sent: `{}` refuses it as it is asked", provider.model);
    meter.answered(&usage, cost(provider, &usage).map_or(most, |cost| cost.min(most))).await?;
    Ok(Answered {
        notices: doubt.into_iter().chain(reply.left_out.iter().map(unsent)).collect(),
        reply: Reply { usage, ..reply },
        provider: provider.name.clone(),
        model: provider.model.clone(),
        waited,
    })
}

/// Returns `request` as it is sent: with its secrets replaced, and with the limit of its answer.
fn outgoing(provider: &Provider, request: &Request, redact: &dyn Fn(&str) -> String) -> Request {
    let bounds = [Some(request.max_output).filter(|most| *most > 0), provider.max_output];
    let max_output = match request.is_embedding {
        true => 0,
        false => bounds.into_iter().flatten().min().unwrap_or(MOST_OUTPUT),
    };
    Request { max_output, ..request.with_texts(redact) }
}

/// The size and cost of a request before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreseen {
    /// The maximum number of tokens that are sent.
    pub tokens: usize,
    /// The number of places at which a secret is replaced.
    pub secrets: usize,
    /// The highest cost, if the request succeeds at the first try. `None` if the price is unknown. Such a request is
    /// not sent.
    pub most: Option<Money>,
}

/// Returns the size and cost of sending `request` to `configured`. Sends and reserves nothing.
pub async fn foresee(engine: &Engine, configured: &Configured, request: &Request) -> Result<Foreseen> {
    let redactor = &engine.installation().await?.redactor;
    let request = outgoing(&configured.provider, request, &|text| known::redacted(redactor, text));
    let tokens = request.tokens_by(&known::high);
    let most = estimate(&configured.provider, &request, tokens).ok();
    Ok(Foreseen { tokens, secrets: secrets_in(&request), most })
}

/// Returns the number of places of `request` at which a secret is replaced.
fn secrets_in(request: &Request) -> usize {
    request.texts().map(|text| marks(&text)).sum()
}

/// Returns the record of `request`. Its secrets are replaced, and it has at most `tokens` tokens.
fn parcel(configured: &Configured, matter: Matter, request: &Request, tokens: u64) -> Parcel {
    Parcel {
        matter,
        place: place(configured),
        is_local: configured.is_local(),
        tokens: i64::try_from(tokens).unwrap_or(i64::MAX),
        secrets: secrets_in(request) as i64,
    }
}

/// Returns `matter` with the secrets in its names replaced.
fn nameable(matter: &Matter, redact: &dyn Fn(&str) -> String) -> Matter {
    let Matter { purpose, session, assistant, sources } = matter;
    // Line feeds in names are replaced, so that all names can be redacted as one text, which is faster than one by one.
    let files: Vec<String> = sources.files.iter().map(|path| path.replace(['\n', '\r'], " ")).collect();
    let redacted: Vec<String> = redact(&files.join("\n")).lines().map(str::to_owned).collect();
    let files = match redacted.len() == files.len() {
        true => redacted,
        false => files.iter().map(|path| redact(path)).collect(),
    };
    Matter {
        purpose: *purpose,
        session: session.as_deref().map(redact),
        assistant: assistant.clone(),
        sources: Sources { memories: sources.memories.clone(), files },
    }
}

/// Returns the current options, and the providers that may be asked for `purpose`, in the order in which they are
/// asked.
///
/// The providers are the default and the fallback. If neither of them may be asked, returns only the local provider
/// whose name sorts first. A local provider may be asked even if the user didn't choose it as the default, because
/// nothing leaves the machine.
pub fn candidates(engine: &Engine, purpose: Use) -> Result<(Options, Vec<Configured>)> {
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

/// The highest possible cost of a question, for the case that every retry is used and the fallback is asked too.
#[derive(Clone, Debug)]
pub struct Dearest {
    times: u64,
    providers: Vec<Provider>,
}

/// Returns the highest possible cost of a question for `purpose`.
pub fn dearest(engine: &Engine, purpose: Use) -> Result<Dearest> {
    let (options, candidates) = candidates(engine, purpose)?;
    let providers = candidates.into_iter().map(|each| each.provider).collect();
    Ok(Dearest { times: u64::from(options.max_retries) + 1, providers })
}

impl Dearest {
    /// Returns two costs in US dollars: the highest cost of `most` and the likely cost of `likely`. Both arguments are
    /// a number of tokens sent and a number of tokens received. The likely cost assumes that the first provider with a
    /// price answers each request without a retry. A cost is `None` if no price is known. Providers without a price are
    /// not asked.
    pub fn costs(&self, most: (usize, usize), likely: (usize, usize)) -> (Option<f64>, Option<f64>) {
        let of = |(input, output): (usize, usize)| {
            let each = self
                .providers
                .iter()
                .filter_map(move |each| tiro_llm::catalogue::estimate(each, input, output, false));
            each.map(Money::from_dollars)
        };
        let costs: Vec<u64> = of(most).map(|money| money.0.saturating_mul(self.times)).collect();
        let most = (!costs.is_empty()).then(|| Money(costs.into_iter().sum()).dollars());
        (most, of(likely).next().map(Money::dollars))
    }
}

/// Errors with [`Kind::Limit`] if the price of a provider's model is unknown.
pub fn check_price(provider: &Provider) -> Result<()> {
    estimate(provider, &Request::default(), 0).map(drop)
}

/// Returns the highest possible cost of `request`, which has `tokens` tokens.
///
/// Errors with [`Kind::Limit`] if the price is unknown.
fn estimate(provider: &Provider, request: &Request, tokens: usize) -> Result<Money> {
    let dollars = tiro_llm::catalogue::estimate(provider, tokens, request.max_output, request.keeps_prefix);
    dollars.map(Money::from_dollars).ok_or_else(|| {
        let message = format!("the price of model `{}` of provider `{}` is unknown", provider.model, provider.name);
        let name = &provider.name;
        Error::new(Kind::Limit, message).hint(format!(
            "set it with `tiro provider add {name} --price INPUT,OUTPUT`, in dollars per million tokens (0,0 for your own server)"
        ))
    })
}

fn cost(provider: &Provider, usage: &tiro_llm::Usage) -> Option<Money> {
    tiro_llm::catalogue::cost(provider, usage).map(Money::from_dollars)
}

/// Returns the provider that a user means by `name`. This is the provider with this name or, if there is none, the
/// provider of this kind.
pub fn named<'a>(providers: &'a [Configured], name: &str) -> Option<&'a Configured> {
    let of = |name: &str| providers.iter().find(|each| each.provider.name == name);
    of(name).or_else(|| of(&config::usual_name(name)))
}

/// Returns the place where `configured` runs, such as `this machine`.
pub fn place(configured: &Configured) -> String {
    match configured.is_local() {
        true => "this machine".into(),
        false => configured.provider.host(),
    }
}
