//! Makes the summary of a range of messages. It reads the messages, asks a model or chooses sentences, and stores the
//! result.
//!
//! A summary of the usual length and without a focus is stored as a new version of the summary of its messages. Any
//! other summary is only cached. Both kinds are found by a hash of their messages, so a summary is never used after one
//! of its messages was forgotten or changed.

mod alone;
pub mod given;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::ask::{self, Answered, Bill};
use crate::caller::Caller;
use crate::config::{Configured, Use};
use crate::engine::Engine;
use crate::project::{OpenProject, WritableProject};
use crate::summaries::keep::{cache, keep, keep_as, living};
use crate::summaries::messages::{self, blocking, count};
use crate::summaries::notes::corrections::corrections;
use crate::summaries::wanted::{Made, UNKNOWN_WINDOW, Wanted};
use crate::summaries::{deadline, enqueue};
use tiro_base::error::{Error, Kind, Result};
use tiro_digest::summarize::{self, Wish};
use tiro_llm::{Reply, Request, catalogue};
use tiro_store::{AskedBy, Attempt, Matter, MessageRow, Purpose, Sources, Summary};

use alone::{WhoAsked, alone};
use given::{PARTLY_CHECKED, by_agent, known};

pub use crate::summaries::keep::Keeping;
pub use crate::summaries::messages::range;

/// The maximum number of tokens that a second request adds to the first one, not counting the quoted first answer.
pub const AGAIN: usize = 1000;

/// A request is ended by force this long after its deadline. Even a request that ends by itself may be late on a busy
/// machine.
const SPARE: Duration = Duration::from_secs(1);

/// Returns the summary that an agent wrote or that is cached, or makes it.
pub async fn make(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    wanted: Wanted,
    keeping: Keeping<'_>,
) -> Result<Made> {
    let mut notices = Vec::new();
    let provider = writer(engine, &wanted).unwrap_or_else(|error| {
        notices.push(format!("sentences were chosen, and no model was asked: {}", error.with_hint()));
        None
    });
    let key = wanted.key(provider.as_ref(), engine.config().options.summary_temperature);
    if let Some(made) = known(engine, project, &wanted, key).await? {
        return Ok(Made { is_kept: true, notices, cost_usd: 0.0, ..made });
    }
    let texts = Arc::new(messages::texts(project, &wanted.rows).await?);
    let is_whole = !texts.iter().any(|(row, _)| row.is_damaged);
    let (bill, began) = (Bill::default(), engine.now());
    let (made, has_failed) = match &provider {
        Some(provider) => {
            let (texts, bill) = (&texts, &bill);
            let deadline = deadline::while_waiting(engine, provider);
            let asking = Asking { engine, caller, project, wanted: &wanted, texts, provider, deadline, bill };
            match alone(engine, project, key, deadline, asking.ask_or_choose(&mut notices)).await? {
                WhoAsked::Ours(asked) => asked?,
                WhoAsked::Made(made) => return Ok(Made { is_kept: true, notices, cost_usd: 0.0, ..*made }),
                WhoAsked::Taken => {
                    notices.push(
                        "sentences were chosen, since another call is asking for the same summary".into(),
                    );
                    (None, true)
                }
            }
        }
        None => (None, false),
    };
    let mut made = match made {
        Some(made) => made,
        None => extracted(&wanted, texts).await?,
    };
    if has_failed {
        made = Made { cost_usd: bill.total().dollars(), is_silent: !bill.is_answered(), ..made };
    }
    if wanted.max_tokens.is_none() && wanted.focus.is_empty() && !made.text.is_empty() {
        made.id = match keep_as(keeping, (engine, caller), project, &wanted, &made, began).await {
            Ok(id) => id,
            Err(error) => {
                notices.push(format!("the summary is not stored: {}", error.with_hint()));
                None
            }
        };
    }
    made.notices.extend(notices);
    match living(project, &wanted).await? {
        0 => return Err(Error::not_found("the messages were forgotten while they were summarised")),
        left if left < wanted.rows.len() => {
            let gone = wanted.rows.len() - left;
            made.notices.push(format!(
                "{} of its messages {} forgotten while it was made, and the summary may still mention them",
                gone,
                if gone == 1 { "was" } else { "were" }
            ));
            return Ok(made);
        }
        _ => {}
    }
    // After a failure nothing is cached. So the idle server or the next call, whichever comes first, asks a model
    // again.
    match has_failed {
        true if made.id.is_some() => {
            if let Err(error) = enqueue::after_failure(engine, project, &wanted).await {
                made.notices
                    .push(format!("the summary is not queued for another try: {}", error.with_hint()));
            }
        }
        false if is_whole => cache(engine, project, &wanted, key, &made).await?,
        // A damaged text may be repaired later.
        _ => {}
    }
    Ok(made)
}

/// Has a model write the summary in the background, and stores it, unless an agent wrote one. If the model fails, sentences are not chosen
/// instead. If the summary was requested by the program and not by the user, the model gets only instructions and
/// answers.
///
/// Errors with [`Kind::NotFound`] if none of the messages exists any more.
pub async fn make_by_model(
    engine: &Engine,
    caller: &Caller,
    project: &WritableProject,
    wanted: &Wanted,
    asked_by: AskedBy,
) -> Result<Made> {
    let unnamed = || Error::new(Kind::Provider, "no provider is configured for summaries");
    let provider = writer(engine, wanted)?.ok_or_else(unnamed)?;
    if let Some(made) = by_agent(project, wanted).await? {
        return Ok(made);
    }
    let texts = messages::texts(project, &wanted.rows).await?;
    let texts = match asked_by {
        AskedBy::User => texts,
        AskedBy::Program => messages::instructions_and_answers(&texts),
    };
    if texts.is_empty() {
        return Err(Error::not_found("nothing is left to summarise"));
    }
    let mut notices = Vec::new();
    let began = engine.now();
    let (texts, bill) = (&Arc::new(texts), &Bill::default());
    let deadline = deadline::in_background(engine, project, &provider, wanted).await?;
    let asking = Asking { engine, caller, project, wanted, texts, provider: &provider, deadline, bill };
    let key = wanted.key(Some(&provider), engine.config().options.summary_temperature);
    let mut made = match alone(engine, project, key, Duration::ZERO, asking.ask(&mut notices)).await? {
        WhoAsked::Ours(made) => made?,
        WhoAsked::Made(made) => *made,
        WhoAsked::Taken => return Err(Error::new(Kind::Busy, "another call is asking for the same summary")),
    };
    made.notices = notices;
    made.id = keep(engine, project, wanted, &made, began).await?;
    if made.id.is_none() {
        return Err(Error::new(Kind::Busy, "messages were forgotten while they were summarised"));
    }
    cache(engine, project, wanted, key, &made).await?;
    Ok(made)
}

/// Returns the provider that writes the summary. Returns `None` if the user named no provider, or if a model may not
/// write this summary.
///
/// Errors if the configuration can't be read.
pub(super) fn writer(engine: &Engine, wanted: &Wanted) -> Result<Option<Configured>> {
    match wanted.by_model {
        true => ask::first(engine, Use::Summarize),
        false => Ok(None),
    }
}

/// Returns a summary made of chosen sentences.
async fn extracted(wanted: &Wanted, texts: Arc<Vec<(MessageRow, String)>>) -> Result<Made> {
    let (level, most, focus) = (wanted.level, wanted.most(), wanted.focus.clone());
    blocking(move || {
        let corrected = corrections(&texts);
        let sources = messages::corrected(&texts, &corrected);
        let mut summary = summarize::extract_to_the_end(&sources, level, most, &focus, &count);
        let mut notices = Vec::new();
        if summary.unread > 0 {
            notices.push(format!(
                "{} of {} messages were not read in full: they are too long, or too many",
                summary.unread,
                sources.len()
            ));
        }
        if summary.text.is_empty() {
            notices.push(format!("no whole sentence fits into {most} tokens; `max_tokens` allows more"));
        }
        let quality = summarize::quality(&summary.text, &sources);
        summary.text = messages::without_damaged(summary.text, &texts);
        Made {
            id: None,
            tokens: count(&summary.text),
            quality,
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

/// A request to a model for a summary.
struct Asking<'a> {
    engine: &'a Engine,
    caller: &'a Caller,
    project: &'a OpenProject,
    wanted: &'a Wanted,
    /// The messages, with their texts.
    texts: &'a Arc<Vec<(MessageRow, String)>>,
    provider: &'a Configured,
    /// The time that all requests together may take.
    deadline: Duration,
    /// Adds up the cost of all requests.
    bill: &'a Bill,
}

/// A request to the model, and the channel for its answer. The thread that writes the summary sends both.
type Question = (Request, oneshot::Sender<Result<Reply>>);

/// A model's summary, or the reason why there is none.
type Written = Result<summarize::WrittenSummary>;

impl Asking<'_> {
    /// Returns the summary, and whether the model failed. After a failure, the summary consists of chosen sentences. It
    /// is `None` if they are not chosen yet.
    async fn ask_or_choose(&self, notices: &mut Vec<String>) -> Result<(Option<Made>, bool)> {
        let mut chosen = None;
        // After three fifths of the model's time, sentences are chosen too, so that they are ready if the model fails.
        let ahead = async {
            tokio::time::sleep(self.deadline * 3 / 5).await;
            extracted(self.wanted, Arc::clone(self.texts)).await
        };
        let asked = {
            let asking = self.ask(notices);
            tokio::pin!(ahead, asking);
            tokio::select! {
                asked = &mut asking => asked,
                made = &mut ahead => {
                    chosen = Some(made?);
                    asking.await
                }
            }
        };
        Ok(match asked {
            Ok(made) => (Some(made), false),
            Err(error) => {
                let (name, why) = (&self.provider.provider.name, error.with_hint());
                notices.push(format!("sentences were chosen, since `{name}` made no summary: {why}"));
                (chosen, true)
            }
        })
    }

    /// Returns the model's summary. If the provider has already summarised the beginning of the range, the request
    /// contains this summary and the messages after it.
    async fn ask(&self, notices: &mut Vec<String>) -> Result<Made> {
        let began = Instant::now();
        let deadline = self.deadline;
        let secret = self.engine.installation().await?.secret;
        let previous = previous(self.project, self.wanted, &self.provider.provider.name).await?;
        let matter = self.matter(previous.as_ref());
        let (questions, asked) = mpsc::channel(1);
        let writing = self.write(secret, previous, questions);
        let mut answered: Vec<Answered> = Vec::new();
        let work = self.answer(writing, asked, deadline, began, &matter, &mut answered);
        let late = || Err(Error::new(Kind::Provider, format!("no summary after {} s", deadline.as_secs())));
        let made = tokio::time::timeout(deadline + SPARE, work).await.unwrap_or_else(|_| late());
        notices.extend(answered.iter().flat_map(|answer| answer.notices.clone()));
        notices.extend(self.bill.disclosures());
        let attempt = self.attempt(&made, &answered, began);
        let (name, model) = (attempt.provider.clone(), attempt.model.clone());
        let cost_usd = self.bill.total().dollars();
        self.project.books.attempt(&self.project.scope, attempt).await?;
        let written = made?;
        if written.is_cut {
            notices.push(format!(
                "the model's answer was longer than {} tokens, and was cut after a sentence",
                self.wanted.most()
            ));
        }
        if written.is_partial {
            notices.push(PARTLY_CHECKED.to_owned());
        }
        let redacted = self.project.redactor.redact(&written.text).text.into_owned();
        let redacted = messages::without_damaged(redacted, self.texts);
        Ok(Made {
            id: None,
            tokens: count(&redacted),
            text: redacted,
            provider: name,
            model,
            quality: written.quality,
            cited: written.cited,
            cost_usd,
            is_kept: false,
            is_silent: false,
            notices: Vec::new(),
        })
    }

    /// Returns the purpose of the requests and their messages. Each request names all messages of the summary that are
    /// sent, even if a long range is sent in parts. If the summary continues `previous`, these are the messages after
    /// it.
    fn matter(&self, previous: Option<&(i64, String)>) -> Matter {
        let known = previous.map_or(i64::MIN, |(last, _)| *last);
        let sent = self.texts.iter().filter(|(row, _)| row.ordinal > known);
        let ids = sent.map(|(row, _)| row.id.as_str().to_owned());
        let session = Some(self.wanted.session.as_str().to_owned());
        Matter { session, ..Matter::of(Purpose::Summary, Sources::memories(ids)) }
    }

    /// Makes the summary on another thread, because rating answers takes long. The other thread sends its requests to
    /// `questions`.
    fn write(
        &self,
        secret: [u8; 32],
        previous: Option<(i64, String)>,
        questions: mpsc::Sender<Question>,
    ) -> impl Future<Output = Result<Written>> + use<> {
        let window = catalogue::window(&self.provider.provider).unwrap_or(UNKNOWN_WINDOW);
        let Wanted { level, focus, .. } = self.wanted;
        let (level, max_tokens, focus) = (*level, self.wanted.most(), focus.clone());
        let (texts, thread) = (Arc::clone(self.texts), Handle::current());
        blocking(move || {
            let (known, previous) = previous.map_or((i64::MIN, None), |(last, text)| (last, Some(text)));
            let previous = previous.as_deref();
            let wish = Wish { level, max_tokens, focus: &focus, previous, window, secret: &secret };
            let ask = |request: Request| {
                let questions = &questions;
                async move {
                    let over = || Error::new(Kind::Provider, "the call that wanted the summary ended");
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
                // A sentence may come from the previous summary. Its source is then among the messages of that summary,
                // so all messages are searched.
                made.cited = summarize::cite(&made.text, &all);
            }
            Ok(made)
        })
    }

    /// Sends the requests of `writing` to the provider until `writing` ends, and collects the answers in `answered`. If
    /// the call is cancelled, the requests are cancelled too.
    async fn answer(
        &self,
        writing: impl Future<Output = Result<Written>>,
        mut asked: mpsc::Receiver<Question>,
        deadline: Duration,
        began: Instant,
        matter: &Matter,
        answered: &mut Vec<Answered>,
    ) -> Written {
        let (temperature, usual_temperature) = self.engine.config().options.summary_temperatures();
        tokio::pin!(writing);
        loop {
            let (request, reply) = tokio::select! {
                made = &mut writing => return made?,
                Some(question) = asked.recv() => question,
            };
            let request = Request { temperature, usual_temperature, ..request };
            let left = deadline.saturating_sub(began.elapsed());
            let answer =
                ask::ask(self.engine, self.caller, Use::Summarize, matter, &request, left, self.bill).await;
            // Sending fails if `writing` stopped early and dropped the receiver.
            let _ = reply.send(answer.map(|answer| {
                let reply = answer.reply.clone();
                answered.push(answer);
                reply
            }));
        }
    }

    /// Returns the record of this attempt: its requests, their cost, and whether it resulted in a summary.
    fn attempt(&self, made: &Written, answered: &[Answered], began: Instant) -> Attempt {
        let (wanted, provider) = (self.wanted, &self.provider.provider);
        let last = answered.last();
        let output = answered.iter().map(|answer| answer.reply.usage.output).sum::<u64>();
        Attempt {
            session: wanted.session.clone(),
            level: wanted.level,
            first: wanted.rows.first().map_or(0, |row| row.ordinal),
            last: wanted.rows.last().map_or(0, |row| row.ordinal),
            provider: last.map_or_else(|| provider.name.clone(), |answer| answer.provider.clone()),
            model: last.map_or_else(|| provider.model.clone(), |answer| answer.model.clone()),
            input_tokens: i64::try_from(self.bill.tokens()).unwrap_or(i64::MAX),
            output_tokens: i64::try_from(output).unwrap_or(i64::MAX),
            cost_micros: i64::try_from(self.bill.total().0).unwrap_or(i64::MAX),
            took_ms: i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX),
            quality: made.as_ref().ok().map(|written| written.quality),
            error: made.as_ref().err().map(ToString::to_string),
            at: self.engine.now(),
        }
    }
}

/// Returns the newest summary that the same provider made of the beginning of the range, and the ordinal of the last
/// message that the summary covers.
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
