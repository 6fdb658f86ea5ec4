//! Makes the summary of a range of messages, as several tools need it: what is read, who writes it, what is kept.
//!
//! A summary of a range at its usual length is stored as a version of it, with the range; one of another length or with
//! a focus is kept in the cache alone. Both are found by the hash of which messages they are made of, so that nothing
//! is shown of what was forgotten, and of nothing that changed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::ask::{self, Answered, Bill};
use crate::caller::Caller;
use crate::config::{Configured, Use};
use crate::engine::Engine;
use crate::error::{Error, Kind, Result};
use crate::llm::{Reply, Request, catalogue};
use crate::project::OpenProject;
use crate::store::{AskedBy, Attempt, MessageRow, Summary};
use crate::summaries::enqueue;
use crate::summaries::keep::{cache, keep, living};
use crate::summaries::messages::{self, blocking, count};
use crate::summaries::wanted::{Made, UNKNOWN_WINDOW, Wanted};
use crate::summarize::{self, Wish};

pub(crate) use crate::summaries::messages::range;

/// Tokens by which a second request is larger than the first and what it shows of its answer: no more than bytes. From above.
pub(crate) const AGAIN: usize = 1000;

/// Tokens of an instruction to merge summaries, without them. From above, likewise.
const MERGE: usize = 1500;

/// What making a summary would take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Estimate {
    /// Who would be asked; `None` where nobody is.
    pub provider: Option<String>,
    /// Requests.
    pub requests: usize,
    /// Tokens sent, from above.
    pub input: usize,
    /// Tokens that come back, at most.
    pub output: usize,
    /// What it costs at most, in US dollars, where that is known.
    pub cost_usd: Option<f64>,
    /// What it will likely cost: every answer will do, and none has to be asked for again.
    pub likely_usd: Option<f64>,
}

/// Returns what making the summary would take.
pub(crate) async fn estimate(engine: &Engine, project: &OpenProject, wanted: &Wanted) -> Result<Estimate> {
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
        // The parts are merged by one more, of their answers.
        sent.push(parts.len() * summarize::SHOWN_AGAIN * most + MERGE);
    }
    let likely = (sent.iter().sum(), sent.len() * most.min(longest));
    // An answer that won't do is asked for once more.
    sent.extend(sent.last().map(|last| last + summarize::SHOWN_AGAIN * most + AGAIN));
    let (requests, input, output) = (sent.len(), sent.iter().sum(), sent.len() * longest);
    let (cost_usd, likely_usd) = ask::dearest(engine, Use::Summarize)?.costs((input, output), likely);
    Ok(Estimate { provider: Some(provider.provider.name), requests, input, output, cost_usd, likely_usd })
}

/// Makes the summary, or returns it as it was made before.
pub(crate) async fn make(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    wanted: Wanted,
) -> Result<Made> {
    let mut notices = Vec::new();
    let provider = writer(engine, &wanted).unwrap_or_else(|error| {
        notices.push(format!("sentences were chosen, and no model was asked: {}", error.with_hint()));
        None
    });
    let key = wanted.key(provider.as_ref(), engine.config().options.summary_temperature);
    let (store, scope) = (&project.store, &project.scope);
    if let Some(body) = store.cached(scope, key, engine.now()).await?
        && let Ok(made) = serde_json::from_str::<Made>(&body)
    {
        return Ok(Made { is_kept: true, notices, cost_usd: 0.0, ..made });
    }
    let texts = Arc::new(messages::texts(project, &wanted.rows).await?);
    let (mut made, mut chosen) = (None, None);
    let (mut has_failed, mut is_silent) = (false, false);
    let (bill, began) = (Bill::default(), engine.now());
    if let Some(provider) = &provider {
        // When its time draws to an end sentences are chosen meanwhile, for whoever gets nothing else.
        let ahead = async {
            tokio::time::sleep(deadline(engine, provider) * 3 / 5).await;
            extracted(&wanted, Arc::clone(&texts)).await
        };
        let asked = {
            let asking = ask_for(engine, caller, project, &wanted, &texts, provider, &bill, &mut notices);
            tokio::pin!(ahead, asking);
            tokio::select! {
                asked = &mut asking => asked,
                made = &mut ahead => {
                    chosen = Some(made?);
                    asking.await
                }
            }
        };
        match asked {
            Ok(summary) => made = Some(summary),
            Err(error) => {
                has_failed = true;
                is_silent = !bill.is_answered();
                let (name, why) = (&provider.provider.name, error.with_hint());
                notices.push(format!("sentences were chosen, since `{name}` made no summary: {why}"));
            }
        }
    }
    let mut made = match (made, chosen) {
        (Some(made), _) => made,
        (None, Some(chosen)) => chosen,
        (None, None) => extracted(&wanted, texts).await?,
    };
    if has_failed {
        made = Made { cost_usd: bill.total().dollars(), is_silent, ..made };
    }
    if wanted.max_tokens.is_none() && wanted.focus.is_empty() && !made.text.is_empty() {
        made.id = match keep(engine, project, &wanted, &made, began).await {
            Ok(id) => id,
            Err(error) => {
                notices.push(format!("the summary is not stored: {}", error.with_hint()));
                None
            }
        };
    }
    made.notices.extend(notices);
    match living(project, &wanted).await? {
        0 => return Err(Error::not_found("what was to be summarised was forgotten meanwhile")),
        left if left < wanted.rows.len() => {
            let gone = wanted.rows.len() - left;
            made.notices.push(format!(
                "{} of its messages {} forgotten while it was made, and it may still tell of them",
                gone,
                if gone == 1 { "was" } else { "were" }
            ));
            return Ok(made);
        }
        _ => {}
    }
    // What a model failed at is tried again by the next call, and before that by an idle server.
    match has_failed {
        true if made.id.is_some() => {
            if let Err(error) = enqueue::after_failure(engine, project, &wanted).await {
                made.notices.push(format!("it is not asked for again: {}", error.with_hint()));
            }
        }
        true => {}
        false => cache(engine, project, &wanted, key, &made).await?,
    }
    Ok(made)
}

/// Makes the summary by a model and no other way, and stores it; where nobody has asked for it yet, of instructions and
/// answers alone.
///
/// Errors with [`Kind::NotFound`] where there is nothing to make it of any more.
pub(crate) async fn make_by_model(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    wanted: &Wanted,
    asked_by: AskedBy,
) -> Result<Made> {
    let nobody = || Error::new(Kind::Provider, "no provider is named for summaries");
    let provider = writer(engine, wanted)?.ok_or_else(nobody)?;
    let texts = messages::texts(project, &wanted.rows).await?;
    let texts = match asked_by {
        AskedBy::User => texts,
        AskedBy::Nobody => messages::told(&texts),
    };
    if texts.is_empty() {
        return Err(Error::not_found("nothing is left to summarise"));
    }
    let mut notices = Vec::new();
    let began = engine.now();
    let mut made =
        ask_for(engine, caller, project, wanted, &Arc::new(texts), &provider, &Bill::default(), &mut notices)
            .await?;
    made.notices = notices;
    made.id = keep(engine, project, wanted, &made, began).await?;
    if made.id.is_none() {
        return Err(Error::new(Kind::Busy, "messages were forgotten while they were summarised"));
    }
    let key = wanted.key(Some(&provider), engine.config().options.summary_temperature);
    cache(engine, project, wanted, key, &made).await?;
    Ok(made)
}

/// Returns who writes it: a model, where the user named one for summaries.
///
/// Errors where the configuration can't be read.
fn writer(engine: &Engine, wanted: &Wanted) -> Result<Option<Configured>> {
    match wanted.by_model {
        true => ask::first(engine, Use::Summarize),
        false => Ok(None),
    }
}

/// Returns how long `provider` may take for a summary.
pub(crate) fn deadline(engine: &Engine, provider: &Configured) -> Duration {
    let options = &engine.config().options;
    Duration::from_secs(match provider.is_local() {
        true => options.summary_local_deadline_s,
        false => options.summary_external_deadline_s,
    })
}

/// Returns the summary that chooses sentences.
async fn extracted(wanted: &Wanted, texts: Arc<Vec<(MessageRow, String)>>) -> Result<Made> {
    let (level, most, focus) = (wanted.level, wanted.most(), wanted.focus.clone());
    blocking(move || {
        let sources = messages::sources(&texts);
        let summary = summarize::extract(&sources, level, most, &focus, &count);
        let mut notices = Vec::new();
        if summary.unread > 0 {
            notices.push(format!(
                "{} of {} messages were not read in full: they are too long, or too many",
                summary.unread,
                sources.len()
            ));
        }
        Made {
            id: None,
            tokens: count(&summary.text),
            quality: summarize::quality(&summary.text, &sources, most),
            text: summary.text,
            provider: "extractive".into(),
            model: String::new(),
            cited: summary.cited,
            cost_usd: 0.0,
            is_kept: false,
            is_silent: false,
            notices,
        }
    })
    .await
}

/// Returns the summary that a model wrote, from the one before where there is one and only what was said since.
async fn ask_for(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    wanted: &Wanted,
    texts: &Arc<Vec<(MessageRow, String)>>,
    provider: &Configured,
    bill: &Bill,
    notices: &mut Vec<String>,
) -> Result<Made> {
    let began = Instant::now();
    let options = &engine.config().options;
    let deadline = deadline(engine, provider);
    let secret = engine.installation().await?.secret;
    let previous = previous(project, wanted, &provider.provider.name).await?;
    let window = catalogue::window(&provider.provider).unwrap_or(UNKNOWN_WINDOW);
    let (level, max_tokens, focus) = (wanted.level, wanted.most(), wanted.focus.clone());
    let (texts, thread) = (Arc::clone(texts), Handle::current());
    let (questions, mut asked) = mpsc::channel::<(Request, oneshot::Sender<Result<Reply>>)>(1);
    // Answers are weighed where nothing else waits; what is asked is asked from here, and ends with this call.
    let writing = blocking(move || {
        let (known, previous) = previous.map_or((i64::MIN, None), |(last, text)| (last, Some(text)));
        let previous = previous.as_deref();
        let wish = Wish { level, max_tokens, focus: &focus, previous, window, secret: &secret };
        let ask = |request: Request| {
            let questions = &questions;
            async move {
                let over = || Error::new(Kind::Provider, "nobody waits for the summary any more");
                let (answer, answered) = oneshot::channel();
                questions.send((request, answer)).await.map_err(|_| over())?;
                answered.await.unwrap_or_else(|_| Err(over()))
            }
        };
        let all = messages::sources(&texts);
        let new: Vec<summarize::Source<'_>> =
            all.iter().filter(|source| source.ordinal > known).copied().collect();
        let mut made = thread.block_on(summarize::by_model(&new, &wish, &|text| count(text), ask))?;
        if previous.is_some() {
            // What it took over from the one before rests on messages of that.
            made.cited = summarize::cite(&made.text, &all);
        }
        let quality = summarize::quality(&made.text, &all, max_tokens);
        Ok((made, quality))
    });
    let mut answered: Vec<Answered> = Vec::new();
    let work = async {
        tokio::pin!(writing);
        loop {
            let (request, reply) = tokio::select! {
                made = &mut writing => return made?,
                Some(question) = asked.recv() => question,
            };
            let request = Request { temperature: Some(options.summary_temperature), ..request };
            let left = deadline.saturating_sub(began.elapsed());
            let answer = ask::ask(engine, caller, Use::Summarize, &request, left, bill).await;
            // Nobody takes it where weighing broke off.
            let _ = reply.send(answer.map(|answer| {
                let reply = answer.reply.clone();
                answered.push(answer);
                reply
            }));
        }
    };
    let late = || Err(Error::new(Kind::Provider, format!("no summary within {} s", deadline.as_secs())));
    // Who is late says so itself, and what was put aside for it is settled; this is for whoever doesn't.
    let made = tokio::time::timeout(deadline + deadline / 20, work).await.unwrap_or_else(|_| late());
    let cost = bill.total();
    let last = answered.last();
    let name = last.map_or_else(|| provider.provider.name.clone(), |answer| answer.provider.clone());
    let model = last.map_or_else(|| provider.provider.model.clone(), |answer| answer.model.clone());
    notices.extend(answered.iter().flat_map(|answer| answer.notices.clone()));
    notices.extend(bill.disclosures());
    let output = answered.iter().map(|answer| answer.reply.usage.output).sum::<u64>();
    let attempt = Attempt {
        session: wanted.session.clone(),
        level: wanted.level,
        first: wanted.rows.first().map_or(0, |row| row.ordinal),
        last: wanted.rows.last().map_or(0, |row| row.ordinal),
        provider: name.clone(),
        model: model.clone(),
        input_tokens: i64::try_from(bill.tokens()).unwrap_or(i64::MAX),
        output_tokens: i64::try_from(output).unwrap_or(i64::MAX),
        cost_micros: i64::try_from(cost.0).unwrap_or(i64::MAX),
        took_ms: i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX),
        quality: made.as_ref().ok().map(|(_, quality)| *quality),
        error: made.as_ref().err().map(ToString::to_string),
        at: engine.now(),
    };
    project.store.attempt(&project.scope, attempt).await?;
    let (summary, quality) = made?;
    let redacted = project.redactor.redact(&summary.text).text.into_owned();
    Ok(Made {
        id: None,
        tokens: count(&redacted),
        text: redacted,
        provider: name,
        model,
        quality,
        cited: summary.cited,
        cost_usd: cost.dollars(),
        is_kept: false,
        is_silent: false,
        notices: Vec::new(),
    })
}

/// Returns the newest summary by the same provider of the beginning of the range, and where that ends.
async fn previous(project: &OpenProject, wanted: &Wanted, provider: &str) -> Result<Option<(i64, String)>> {
    let (Some(first), Some(last)) = (wanted.rows.first(), wanted.rows.last()) else { return Ok(None) };
    if wanted.max_tokens.is_some() || !wanted.focus.is_empty() {
        return Ok(None);
    }
    let rows = project.store.summaries(&project.scope, &wanted.session, Some(wanted.level)).await?;
    let fits = |summary: &Summary| {
        summary.segment.is_none()
            && summary.first == first.ordinal
            && summary.last < last.ordinal
            && summary.provider == provider
    };
    let found = rows.into_iter().map(|row| row.summary).filter(fits).max_by_key(|summary| summary.last);
    Ok(found.map(|summary| (summary.last, summary.text)))
}
