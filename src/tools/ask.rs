//! Asking a model, for whatever operation needs one: who may be asked, what it may cost, and who is asked instead.
//!
//! The configuration is read for each question, so that what the user changes holds from the next one on. Money is
//! reserved before anything is sent; secrets are replaced once more on the way out; the answer says who was sent how
//! much. Nobody is asked for a purpose that the user's configuration doesn't name them for, and an external model
//! without a known price is not asked at all: nobody could hold its limits.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::queue;
use crate::config::{self, Configured, External, Options, Use};
use crate::engine::Engine;
use crate::error::{Error, Kind, Result};
use crate::llm::{self, Failed, Fate, Llm, Provider, Reply, Request, Turn};
use crate::memory::Millis;
use crate::store::{Money, Planned, Registry, Reservation, SpendLimits, Spent};
use crate::tokens::{self, Tokenizer};

/// Tokens of an answer where neither question nor provider bounds them.
const MOST_OUTPUT: usize = 4096;

/// Tokens that the dialects put around each part of a request. From above.
const AROUND: usize = 16;

/// Bytes of a token at most, on average, in any script: what is sent has a token for so many at least. From above.
const LONGEST_TOKEN: usize = 12;

/// An answer, from whom, and what it took.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    /// What was answered.
    pub reply: Reply,
    /// Who answered.
    pub provider: String,
    /// With which model.
    pub model: String,
    /// What it cost, in US dollars; with the requests before it that may have to be paid.
    pub cost_usd: f64,
    /// Tokens that left this machine; none for a local model.
    pub disclosed_tokens: u64,
    /// Who was not asked, or did not answer, and why.
    pub notices: Vec<String>,
}

/// What asking comes to: who was sent what, and the cost as the ledger counts it. A call that failed, or was given up, has
/// the most that it may cost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bill(Arc<Mutex<Vec<Sent>>>);

/// What one provider was sent for one question.
#[derive(Clone, Debug)]
struct Sent {
    provider: String,
    model: String,
    place: String,
    is_local: bool,
    /// Requests that left, or are under way.
    requests: u64,
    /// Tokens of all of them, from above where nobody said how many.
    tokens: u64,
    cost: Money,
    is_answered: bool,
}

impl Bill {
    /// Returns what it comes to so far.
    pub fn total(&self) -> Money {
        Money(self.entries().iter().map(|sent| sent.cost.0).sum())
    }

    /// Returns the tokens that were sent so far, to whomever; from above where nobody said how many.
    pub fn tokens(&self) -> u64 {
        self.entries().iter().map(|sent| sent.tokens).sum()
    }

    /// Returns what was sent where, a line for each provider and question.
    pub fn disclosures(&self) -> Vec<String> {
        self.entries().iter().filter_map(Sent::disclosure).collect()
    }

    /// Returns whether anybody answered anything.
    pub fn is_answered(&self) -> bool {
        self.entries().iter().any(|sent| sent.is_answered)
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts down a question to a provider; returns its place.
    fn open(&self, sent: Sent) -> usize {
        let mut entries = self.entries();
        entries.push(sent);
        entries.len() - 1
    }
}

impl Sent {
    /// Returns what was sent where, in a line; nothing where nothing was, or what failed stayed here for nothing.
    fn disclosure(&self) -> Option<String> {
        let Sent { provider, model, place, requests, tokens, cost, .. } = self;
        let times = if *requests > 1 { format!(" in {requests} requests") } else { String::new() };
        let priced = if cost.0 > 0 { format!(", cost at most {cost}") } else { String::new() };
        Some(match (self.is_local, self.is_answered) {
            (_, false) if *requests == 0 => return None,
            (true, true) => format!("asked {provider} ({model}) on {place}: nothing left it"),
            (true, false) if cost.0 == 0 => return None,
            (true, false) => {
                format!(
                    "asked {provider} ({model}) on {place}{times}, without an answer: nothing left it{priced}"
                )
            }
            (false, true) => {
                format!("sent {tokens} tokens to {provider} ({model}) at {place}{times}, cost {cost}")
            }
            (false, false) => format!(
                "sent up to {tokens} tokens to {provider} ({model}) at {place}{times}, without an answer{priced}"
            ),
        })
    }
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
                let told =
                    |error: &Error| format!("{}; `{}` was asked instead", error.told(), answered.provider);
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
    let before: String = failures.iter().map(|error| format!("; before, {}", error.told())).collect();
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
    let tokens = tokens_of(&request) as u64;
    let client = llm::Client::new(provider.clone(), Arc::new(config::key))?.retries(options.max_retries);
    let planned = Planned {
        project: engine.project().await.map_or_else(|_| String::new(), |it| it.scope.project.as_str().into()),
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
    if let Some(wait) = asked.as_ref().err().and_then(Error::left_alone) {
        let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX).min(queue::LONGEST_WAIT);
        installation.registry.leave_alone(&provider.name, engine.now() + wait).await?;
    }
    let reply = match asked {
        Ok(reply) => reply,
        Err(error) => {
            meter.gave_up(&error).await?;
            return Err(error);
        }
    };
    let (usage, doubt) = counted(provider, &request, tokens, &reply);
    let cost = meter.answered(&usage, cost(provider, &usage).map_or(most, |cost| cost.min(most))).await?;
    Ok(Answered {
        reply: Reply { usage, ..reply },
        provider: provider.name.clone(),
        model: provider.model.clone(),
        cost_usd: cost.dollars(),
        disclosed_tokens: if configured.is_local() { 0 } else { meter.tokens() },
        notices: doubt.into_iter().collect(),
    })
}

/// Counts the requests of one question to one provider: as the ledger has it, and on the bill.
struct Meter {
    registry: Registry,
    held: tokio::sync::Mutex<Option<Reservation>>,
    bill: Bill,
    /// Its place on the bill.
    entry: usize,
    /// The most that a request may cost, and its tokens from above.
    most: Money,
    tokens: u64,
    began: Millis,
    start: Instant,
    has_failed: AtomicBool,
}

impl Meter {
    /// Puts aside what the first request may cost.
    async fn start(
        engine: &Engine,
        configured: &Configured,
        planned: Planned,
        tokens: u64,
        bill: &Bill,
    ) -> Result<Meter> {
        let registry = engine.installation().await?.registry.clone();
        let (began, start, most) = (engine.now(), Instant::now(), planned.most);
        let (provider, model) = (planned.provider.clone(), planned.model.clone());
        let held = registry.reserve(planned, began).await?;
        let (place, is_local) = (place(configured), configured.is_local());
        let (requests, cost, is_answered) = (1, most, false);
        let entry = bill.open(Sent { provider, model, place, is_local, requests, tokens, cost, is_answered });
        Ok(Meter {
            registry,
            held: tokio::sync::Mutex::new(Some(held)),
            bill: bill.clone(),
            entry,
            most,
            tokens,
            began,
            start,
            has_failed: AtomicBool::new(false),
        })
    }

    /// Notes that a request failed; for the next one it puts aside as much again, unless this one costs nothing.
    async fn failed(&self, Failed { fate, is_repeated }: Failed) -> Result<()> {
        self.has_failed.store(true, Ordering::Relaxed);
        if fate == Fate::Unsent {
            self.change(|sent| (sent.requests, sent.tokens) = (sent.requests - 1, sent.tokens - self.tokens));
        }
        let mut held = self.held.lock().await;
        let Some(held) = held.as_mut().filter(|_| is_repeated) else { return Ok(()) };
        if fate == Fate::Lost {
            let passed = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
            self.registry.reserve_again(held, self.began.saturating_add(passed)).await?;
        }
        let cost = held.held();
        self.change(|sent| {
            (sent.requests, sent.tokens, sent.cost) = (sent.requests + 1, sent.tokens + self.tokens, cost);
        });
        Ok(())
    }

    /// Counts what an answer took, of which the last request cost `cost`; returns what all of them cost.
    async fn answered(&self, usage: &llm::Usage, cost: Money) -> Result<Money> {
        let held = self.take().await;
        let cost = Money(held.held().0.saturating_sub(self.most.0).saturating_add(cost.0));
        self.change(|sent| {
            sent.tokens = (sent.tokens - self.tokens).saturating_add(usage.input);
            (sent.cost, sent.is_answered) = (cost, true);
        });
        let number = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let (input, output) = (number(self.tokens()), number(usage.output));
        self.registry.settle(held, Spent { cost, input, output, has_failed: false }).await?;
        Ok(cost)
    }

    /// Counts in full what brought no answer, since some bill what they didn't deliver; but not what was never sent.
    async fn gave_up(&self, why: &Error) -> Result<()> {
        let held = self.take().await;
        // There was no key to ask with.
        let is_unasked = why.kind() == Kind::BadInput && !self.has_failed.load(Ordering::Relaxed);
        self.change(|sent| {
            if is_unasked {
                (sent.requests, sent.tokens) = (0, 0);
            }
            sent.cost = if sent.requests == 0 { Money(0) } else { held.held() };
        });
        let cost = self.bill.entries()[self.entry].cost;
        let input = i64::try_from(self.tokens()).unwrap_or(i64::MAX);
        self.registry.settle(held, Spent { cost, input, output: 0, has_failed: true }).await
    }

    /// Returns the tokens sent so far.
    fn tokens(&self) -> u64 {
        self.bill.entries()[self.entry].tokens
    }

    fn change(&self, change: impl FnOnce(&mut Sent)) {
        change(&mut self.bill.entries()[self.entry]);
    }

    async fn take(&self) -> Reservation {
        self.held.lock().await.take().expect("a question is settled once")
    }
}

/// Returns what is counted of an answer: the numbers that its provider gives where they can be true, else ours, from above;
/// and what is to be said of that. `tokens` are those sent, from above.
fn counted(
    provider: &Provider,
    request: &Request,
    tokens: u64,
    reply: &Reply,
) -> (llm::Usage, Option<String>) {
    let said = reply.usage;
    let most = request.max_output as u64;
    let sent: usize = spoken(request).map(|text| text.len()).sum();
    // More of the answer can't cost more.
    let text =
        &reply.text[..reply.text.floor_char_boundary(request.max_output.saturating_mul(LONGEST_TOKEN))];
    // Others cut a text in other ways than we do, but none into half as many.
    let least = (Tokenizer::O200k.count(text).low as u64 / 2).min(most);
    let input = match ((sent / LONGEST_TOKEN) as u64..=tokens).contains(&said.input) {
        true => said.input,
        false => tokens,
    };
    let output = match said.output {
        few if few < least => (tokens::bounded(text).high as u64).min(most),
        number => number.min(most),
    };
    let is_doubted = !said.is_estimate && (input, output) != (said.input, said.output);
    let doubt = is_doubted.then(|| {
        let llm::Usage { input: told, output: back, .. } = said;
        format!(
            "`{}` reports {told} tokens sent and {back} received, which can't be: {input} and {output} are counted",
            provider.name
        )
    });
    (
        llm::Usage {
            input,
            output,
            cached: said.cached.min(input),
            is_estimate: said.is_estimate || is_doubted,
        },
        doubt,
    )
}

/// Returns the options as they are now, and who may be asked for `purpose`, the first choice first.
pub(crate) fn candidates(engine: &Engine, purpose: Use) -> Result<(Options, Vec<Configured>)> {
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
    let parts = request.turns.len() + 2 * request.functions.len() + 4;
    spoken(request).map(|text| tokens::bounded(&text).high).sum::<usize>() + parts * AROUND
}

/// Returns the texts that are sent with `request`.
fn spoken(request: &Request) -> impl Iterator<Item = Cow<'_, str>> {
    let turns = request.turns.iter().flat_map(|turn| match turn {
        Turn::User(text) | Turn::Result { text, .. } => vec![Cow::from(text)],
        Turn::Assistant { text, calls } => {
            let called = calls.iter().map(|call| Cow::from(call.arguments.to_string()));
            std::iter::once(Cow::from(text)).chain(called).collect()
        }
    });
    let functions = request
        .functions
        .iter()
        .flat_map(|each| [Cow::from(&each.description), each.parameters.to_string().into()]);
    let schema = request.schema.iter().map(|(_, schema)| Cow::from(schema.to_string()));
    std::iter::once(Cow::from(&request.system)).chain(turns).chain(functions).chain(schema)
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
    /// Returns what requests of so many tokens, and answers of so many, cost at most together, in US dollars; `None` where
    /// nobody knows. Whoever has no price isn't asked.
    pub fn most(&self, input: usize, output: usize) -> Option<f64> {
        let each = self.providers.iter().filter_map(|each| llm::catalogue::estimate(each, input, output));
        let costs: Vec<u64> = each.map(|dollars| money(dollars).0.saturating_mul(self.times)).collect();
        (!costs.is_empty()).then(|| Money(costs.into_iter().sum()).dollars())
    }
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
    // What floats add at the fifteenth digit is no millionth more.
    Money((dollars * 1e6 - 1e-6).ceil().clamp(0.0, 1e15) as u64)
}
