//! Counts the cost of questions to models. Every request is counted in the ledger and on the bill of the answer, even
//! if it fails.
//!
//! The number of tokens that a provider reports is checked for plausibility, because the cost depends on it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::ask;
use crate::config::Configured;
use crate::engine::Engine;
use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::Millis;
use tiro_base::money::Money;
use tiro_llm::{Failed, Fate, Provider, Reply, Request, Usage};
use tiro_store::{Planned, Registry, Reservation, Spent};
use tiro_text::tokens;

/// The maximum number of bytes that the tokens of a text have on average, in any script. So the number of a text's
/// bytes divided by this number is a lower bound of its number of tokens.
const LONGEST_TOKEN: usize = 12;

/// A list of what was sent to which provider, with the cost as the ledger counts it. A call that failed or was
/// abandoned counts with the highest possible cost.
#[derive(Clone, Debug, Default)]
pub struct Bill(Arc<Mutex<Vec<Sent>>>);

/// The requests to one provider for one question.
#[derive(Clone, Debug)]
struct Sent {
    provider: String,
    model: String,
    place: String,
    is_local: bool,
    /// The number of requests that were sent or are being sent.
    requests: u64,
    /// The number of these requests that the provider may bill. A refused request is not billed.
    billable: u64,
    /// The number of tokens of all requests together, or an upper bound if the provider didn't report the number.
    tokens: u64,
    cost: Money,
    is_answered: bool,
}

impl Bill {
    /// Returns the cost so far.
    pub fn total(&self) -> Money {
        Money(self.entries().iter().map(|sent| sent.cost.0).sum())
    }

    /// Returns the number of tokens that were sent so far to all providers. If a provider didn't report a number, an
    /// upper bound is counted.
    pub fn tokens(&self) -> u64 {
        self.entries().iter().map(|sent| sent.tokens).sum()
    }

    /// Returns a line for each question and provider that says what was sent, and where.
    pub fn disclosures(&self) -> Vec<String> {
        self.entries().iter().filter_map(Sent::disclosure).collect()
    }

    /// Returns a line for each provider that says what was sent, and where. A line sums up all requests, those with and
    /// those without an answer.
    pub fn summed(&self) -> Vec<String> {
        let mut sums: Vec<Sent> = Vec::new();
        for sent in self.entries().iter() {
            match sums.iter_mut().find(|sum| sum.is_alike(sent)) {
                Some(sum) => {
                    sum.requests += sent.requests;
                    sum.tokens += sent.tokens;
                    sum.cost = Money(sum.cost.0.saturating_add(sent.cost.0));
                }
                None => sums.push(sent.clone()),
            }
        }
        sums.iter().filter_map(Sent::disclosure).collect()
    }

    /// Returns the number of tokens that left this machine so far, counted as in [`Bill::tokens`].
    pub fn disclosed(&self) -> u64 {
        self.entries().iter().filter(|sent| !sent.is_local).map(|sent| sent.tokens).sum()
    }

    /// Returns whether any request got an answer.
    pub fn is_answered(&self) -> bool {
        self.entries().iter().any(|sent| sent.is_answered)
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry for a question to a provider. Returns its index.
    fn open(&self, sent: Sent) -> usize {
        let mut entries = self.entries();
        entries.push(sent);
        entries.len() - 1
    }
}

impl Sent {
    /// Returns whether the requests of `other` went to the same model and ended in the same way.
    fn is_alike(&self, other: &Sent) -> bool {
        let to =
            |sent: &Sent| (sent.provider.clone(), sent.model.clone(), sent.place.clone(), sent.is_answered);
        to(self) == to(other)
    }

    /// Returns a line about what was sent. Returns `None` if nothing was sent, or if a provider on this machine failed
    /// at no cost.
    fn disclosure(&self) -> Option<String> {
        let Sent { provider, model, place, requests, tokens, cost, .. } = self;
        let times = if *requests > 1 { format!(" in {requests} requests") } else { String::new() };
        let priced = if cost.0 > 0 { format!(", cost at most {cost}") } else { String::new() };
        Some(match (self.is_local, self.is_answered) {
            (_, false) if *requests == 0 => return None,
            (true, true) => format!("asked {provider} ({model}) on {place}{times}; no data left {place}"),
            (true, false) if cost.0 == 0 => return None,
            (true, false) => {
                format!(
                    "asked {provider} ({model}) on {place}{times}, but got no answer{priced}; no data left \
                     {place}"
                )
            }
            (false, true) => {
                format!("sent {tokens} tokens to {provider} ({model}) at {place}{times}, cost {cost}")
            }
            (false, false) => format!(
                "sent up to {tokens} tokens to {provider} ({model}) at {place}{times}, but got no \
                 answer{priced}"
            ),
        })
    }
}

/// Counts the requests of one question to one provider, in the ledger and on the bill.
pub struct Meter {
    registry: Arc<dyn Registry>,
    held: tokio::sync::Mutex<Option<Reservation>>,
    bill: Bill,
    /// The index of the question's entry in the bill.
    entry: usize,
    /// The highest possible cost of a request. `tokens` is the highest possible number of the request's tokens, sent
    /// and received.
    most: Money,
    tokens: u64,
    began: Millis,
    start: Instant,
    has_failed: AtomicBool,
}

impl Meter {
    /// Reserves the highest possible cost of the first request.
    pub async fn start(
        engine: &Engine,
        configured: &Configured,
        planned: Planned,
        tokens: u64,
        bill: &Bill,
    ) -> Result<Meter> {
        let registry = engine.begin_installation().await?.registry.clone();
        let (began, start, most) = (engine.now(), Instant::now(), planned.most);
        let (provider, model) = (planned.provider.clone(), planned.model.clone());
        let held = registry.reserve(planned, began).await?;
        let (place, is_local) = (ask::place(configured), configured.is_local());
        let entry = bill.open(Sent {
            provider,
            model,
            place,
            is_local,
            requests: 1,
            billable: 1,
            tokens,
            cost: most,
            is_answered: false,
        });
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

    /// Records a failed request. If it will be repeated, reserves the same amount again for the repetition, unless the
    /// failed request cost nothing.
    pub async fn failed(&self, Failed { fate, is_repeated }: Failed) -> Result<()> {
        self.has_failed.store(true, Ordering::Relaxed);
        self.change(|sent| {
            if fate == Fate::Unsent {
                (sent.requests, sent.tokens) = (sent.requests - 1, sent.tokens - self.tokens);
            }
            sent.billable -= u64::from(fate != Fate::Lost);
        });
        let mut held = self.held.lock().await;
        let Some(held) = held.as_mut().filter(|_| is_repeated) else { return Ok(()) };
        match fate {
            Fate::Lost => {
                let passed = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
                self.registry.reserve_again(held, self.began.saturating_add(passed)).await?;
            }
            Fate::Refused => self.registry.note_sent_again(held).await?,
            Fate::Unsent => {}
        }
        let cost = held.held;
        self.change(|sent| {
            (sent.requests, sent.billable) = (sent.requests + 1, sent.billable + 1);
            (sent.tokens, sent.cost) = (sent.tokens + self.tokens, cost);
        });
        Ok(())
    }

    /// Records an answer. `cost` is the cost of the answered request.
    pub async fn answered(&self, usage: &Usage, cost: Money) -> Result<()> {
        let held = self.take().await;
        let cost = Money(held.held.0.saturating_sub(self.most.0).saturating_add(cost.0));
        self.change(|sent| {
            sent.tokens = (sent.tokens - self.tokens).saturating_add(usage.input);
            (sent.cost, sent.is_answered) = (cost, true);
        });
        let number = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let (input, output) = (number(self.tokens()), number(usage.output));
        let requests = self.requests();
        self.registry.settle(held, Spent { cost, requests, input, output, has_failed: false }).await
    }

    /// Records a question that got no answer. Its requests count at their full cost, because some providers bill such
    /// requests. Requests that were never sent or were refused don't count.
    pub async fn gave_up(&self, why: &Error) -> Result<()> {
        let held = self.take().await;
        // If this is true, there is no key for the provider, so nothing was sent.
        let is_unasked = why.kind() == Kind::BadInput && !self.has_failed.load(Ordering::Relaxed);
        self.change(|sent| {
            if is_unasked {
                (sent.requests, sent.billable, sent.tokens) = (0, 0, 0);
            }
            sent.cost = Money(self.most.0.saturating_mul(sent.billable)).min(held.held);
        });
        let cost = self.bill.entries()[self.entry].cost;
        let input = i64::try_from(self.tokens()).unwrap_or(i64::MAX);
        let requests = self.requests();
        self.registry.settle(held, Spent { cost, requests, input, output: 0, has_failed: true }).await
    }

    /// Returns the number of tokens that were sent so far.
    fn tokens(&self) -> u64 {
        self.bill.entries()[self.entry].tokens
    }

    /// Returns the number of requests that were sent so far.
    fn requests(&self) -> i64 {
        i64::try_from(self.bill.entries()[self.entry].requests).unwrap_or(i64::MAX)
    }

    fn change(&self, change: impl FnOnce(&mut Sent)) {
        change(&mut self.bill.entries()[self.entry]);
    }

    async fn take(&self) -> Reservation {
        self.held.lock().await.take().expect("a question is settled once")
    }
}

/// Returns the usage to count for an answer. These are the provider's numbers if they are plausible, otherwise Tiro's
/// own upper bounds. If a number is corrected, also returns a notice about the correction. `tokens` is an upper bound
/// of the number of tokens sent.
pub fn counted(
    provider: &Provider,
    request: &Request,
    tokens: u64,
    reply: &Reply,
) -> (Usage, Option<String>) {
    let said = reply.usage;
    let most = request.max_output as u64;
    let sent: usize = request.texts().map(|text| text.len()).sum();
    // The answer can't have more tokens than the request allows, so only this part of the answer is counted.
    let text =
        &reply.text[..reply.text.floor_char_boundary(request.max_output.saturating_mul(LONGEST_TOKEN))];
    // Other tokenizers divide text differently, but none yields fewer than half the tokens that Tiro's tokenizer does.
    let least = (tokens::count(text) as u64 / 2).min(most);
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
        let Usage { input: sent, output: received, .. } = said;
        format!(
            "`{}` reports {sent} tokens sent and {received} received, which is implausible: {input} and {output} are counted",
            provider.name
        )
    });
    (
        Usage {
            input,
            output,
            cached: said.cached.min(input),
            written: said.written.min(input - said.cached.min(input)),
            is_estimate: said.is_estimate || is_doubted,
        },
        doubt,
    )
}
