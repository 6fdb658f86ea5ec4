//! Summarises the conversations that a question is about, each on its own, within one budget.
//!
//! Conversations are weighed against the question as for a context, and each gets its part of the budget by its weight.
//! What one leaves, the next may use. Each summary says how it is opened.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::assembly::across_sessions::{Hit, read, weigh};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::envelope;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::humanize::counted;
use crate::ingest::catch_up;
use crate::memory::{Kind, Level, Millis};
use crate::project::OpenProject;
use crate::retrieve;
use crate::retrieve::rank::Weights;
use crate::scope::{Scope, SessionId, Sessions};
use crate::summaries::levels::Depth;
use crate::summaries::wanted::Wanted;
use crate::summaries::{make, messages};
use crate::tools::common;
use crate::tools::context::retrieve_context::TimeRange;
use crate::tools::context::summarize_conversation::Detail;
use crate::tools::memory::search_project_memory::missing_sessions;
use crate::tuning::summaries::{RELATED_SCORE, RELATED_SESSIONS, RELATED_TOKENS, RELATED_WEIGHT};

/// The name agents call it by.
pub const NAME: &str = "get_context_summary";
/// The name people are shown.
pub const TITLE: &str = "Summarise context";
/// What agents are told of it.
pub const DESCRIPTION: &str = "For messages word by word use retrieve_context. Summarises the conversations that have to \
    do with a question, within a budget, and says how to open each.";

/// Tokens of an answer unless the caller says otherwise, at least, and at most.
const MAX_TOKENS: usize = 2000;
const LEAST_TOKENS: usize = 200;
const MOST_TOKENS: usize = 20_000;

/// Tokens that the frame of an answer, and the frame of each summary in it, take. From above.
const FRAME: usize = 90;
const FRAME_OF_ONE: usize = 54;

/// Messages of a conversation that its summary is chosen from at most, the last ones. Arbitrary.
const MOST_MESSAGES: usize = 2000;

/// What the call takes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// A question or key words.
    pub query: String,
    /// Only these sessions.
    pub conversation_ids: Option<Vec<String>>,
    /// From when to when.
    #[schemars(description = "")]
    pub time_range: Option<TimeRange>,
    /// 2000 if left out.
    #[schemars(range(min = LEAST_TOKENS))]
    pub max_tokens: Option<usize>,
    /// standard if left out.
    pub level: Option<Detail>,
}

/// What the call answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// How to take what is quoted.
    pub caution: &'static str,
    /// The summaries, what has most to do with the question first.
    pub summaries: Vec<OfSession>,
    /// Tokens of this answer (o200k).
    pub tokens_used: usize,
    /// Tokens of what was summarised.
    pub source_tokens: usize,
    /// Conversations found that there was no room for.
    pub dropped: usize,
    /// Pieces of text that are found by words only so far.
    pub pending: usize,
    /// What else there is to know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Whether the text says how many pieces are found by words only.
    #[serde(skip)]
    says_pending: bool,
    #[serde(skip)]
    rendered: String,
}

/// A conversation in short.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfSession {
    /// Its name.
    pub session_id: String,
    /// How much it has to do with the question, beside the best.
    pub relevance: f64,
    /// The first and the last message.
    pub range: (i64, i64),
    /// What it says.
    pub summary: String,
    /// What expand_detail opens first, at the level below.
    pub open: String,
    /// The next level.
    #[schemars(with = "String")]
    pub level: Depth,
}

/// Weighs the conversations against the question and summarises the best.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let query = args.query.trim().to_owned();
    if query.is_empty() {
        return Err(Error::bad_input("`query` is empty").hint("ask a question or give key words"));
    }
    let (budget, clamped) = common::max_tokens(args.max_tokens, MAX_TOKENS, LEAST_TOKENS, MOST_TOKENS)?;
    let (since, until) = args.time_range.unwrap_or_default().read()?;
    let mut notices = catch_up::before_a_call(engine, caller).await;
    notices.extend(clamped);
    let project = caller.project(engine).await?;
    let installation = engine.installation().await?;
    let sessions = named(project, args.conversation_ids.as_deref())?;
    let scope = Scope { sessions, ..project.scope.clone() };
    notices.extend(missing_sessions(project, &scope).await?);
    let embedder = engine.embedder_or_say(&mut notices).await;
    let kinds = vec![Kind::Message, Kind::Conversation, Kind::Summary];
    let filter = Filter { kinds: Some(kinds), since, until, ..Filter::default() };
    let places = [(&project.store, &scope)];
    let found = retrieve::search(&places, embedder, &query, &filter, &Weights::default()).await?;
    notices.extend(found.notices);
    if found.ranked.is_empty() && project.store.is_empty(&project.scope).await? {
        notices.insert(0, common::nothing_yet(engine, project).await?);
    }
    let hits = read(&places, found.ranked).await?;
    let mut order = by_weight(&hits, &scope);
    let all = order.len();
    order.truncate(RELATED_SESSIONS);

    let level = Level::from(args.level.unwrap_or_default());
    let question = Question { query, level, since, until };
    let room = budget - FRAME;
    let (summaries, source_tokens) =
        summarise(engine, caller, project, &question, &order, &hits, room).await?;
    let pending = project.store.pending(&scope).await?;
    let output = Output {
        caution: envelope::CAUTION,
        dropped: all - summaries.len(),
        summaries,
        tokens_used: 0,
        source_tokens,
        pending,
        says_pending: pending > 0 && caller.says_pending(),
        notices,
        rendered: String::new(),
    };
    let secret = installation.secret;
    messages::blocking(move || fit(output, budget, &secret)).await
}

/// Returns the sessions called `names`; all where none is named.
fn named(project: &OpenProject, names: Option<&[String]>) -> Result<Sessions> {
    let Some(names) = names.filter(|names| !names.is_empty()) else { return Ok(Sessions::All) };
    let ids = names.iter().map(|name| SessionId::read(&project.redactor, "conversation_ids", name));
    Ok(Sessions::Only(ids.collect::<Result<Vec<SessionId>>>()?))
}

/// Returns the conversations to summarise, each with its weight, the weightiest first: of all sessions, those that have
/// to do with the question.
fn by_weight(hits: &[Hit], scope: &Scope) -> Vec<(SessionId, f64)> {
    let best = hits.iter().map(|hit| hit.ranked.score).fold(0.0, f64::max);
    let mut order: Vec<(SessionId, f64)> =
        weigh(hits).into_iter().map(|(id, weighed)| (id, weighed.weight)).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if scope.sessions == Sessions::All {
        let answers = hits.iter().filter(|hit| hit.ranked.score >= RELATED_SCORE * best);
        let answering: BTreeSet<&SessionId> = answers.filter_map(|hit| hit.memory.session.as_ref()).collect();
        order.retain(|(session, weight)| *weight >= RELATED_WEIGHT || answering.contains(session));
    }
    order
}

/// What conversations are summarised for.
struct Question {
    query: String,
    level: Level,
    since: Option<Millis>,
    until: Option<Millis>,
}

/// Returns the summaries of the conversations in `order` that `room` tokens hold, and the tokens of what was summarised.
async fn summarise(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    question: &Question,
    order: &[(SessionId, f64)],
    hits: &[Hit],
    room: usize,
) -> Result<(Vec<OfSession>, usize)> {
    let Question { query, level, since, until } = question;
    let (level, mut left, mut source_tokens) = (*level, room, 0);
    let mut summaries: Vec<OfSession> = Vec::new();
    for place in 0..order.len() {
        let (session, weight) = &order[place];
        let waiting: f64 = order[place..].iter().map(|(_, weight)| weight).sum();
        let share = (left as f64 * weight / waiting.max(f64::MIN_POSITIVE)) as usize;
        // Of many, the weightiest get enough to say something.
        let most = share.max(RELATED_TOKENS + FRAME_OF_ONE).min(left).saturating_sub(FRAME_OF_ONE);
        if most < RELATED_TOKENS {
            break;
        }
        // What the filter has nothing of was found by another of its messages.
        let Ok(mut rows) = make::range(project, session, (None, None), (*since, *until)).await else {
            continue;
        };
        rows.drain(..rows.len().saturating_sub(MOST_MESSAGES));
        let usual =
            crate::summarize::length(level, rows.iter().map(|row| row.tokens.unsigned_abs() as usize).sum());
        let (first, last) = (rows[0].ordinal, rows[rows.len() - 1].ordinal);
        let wanted = Wanted {
            session: session.clone(),
            rows,
            level,
            max_tokens: Some(most.min(2 * usual)),
            focus: query.clone(),
            by_model: false,
        };
        source_tokens += wanted.tokens();
        let made = make::make(engine, caller, project, wanted).await?;
        if made.text.is_empty() {
            continue;
        }
        let text = envelope::escape(&made.text).into_owned();
        let name = envelope::escape(session.as_str()).into_owned();
        // Where the best of it was said, there the summary is opened.
        let mut own = hits.iter().filter(|hit| hit.memory.session.as_ref() == Some(session));
        let place = own.find_map(|hit| hit.memory.ordinal).or(made.cited.first().copied()).unwrap_or(first);
        let open = format!("{name}#{place}");
        let one = OfSession {
            session_id: name,
            relevance: round(*weight),
            range: (first, last),
            summary: text,
            open,
            level: Depth::of(level).deeper(),
        };
        left = left.saturating_sub(messages::count(&line(&one)).max(made.tokens) + 1);
        summaries.push(one);
    }
    Ok((summaries, source_tokens))
}

/// Leaves out what has least to do with the question until the answer keeps its budget, as text and as data.
fn fit(mut output: Output, budget: usize, secret: &[u8; 32]) -> Output {
    loop {
        output.rendered = render(&output, secret);
        let text = messages::count(&output.rendered);
        output.tokens_used = text;
        let data = messages::count(&serde_json::to_string(&output).expect("an answer serialises"));
        output.tokens_used = text.max(data);
        if output.tokens_used <= budget {
            return output;
        }
        // Notices are worth less than what was asked for, and a last summary more than none.
        if output.notices.pop().is_none() && output.summaries.pop().is_some() {
            output.dropped += 1;
        } else if output.summaries.is_empty() && output.notices.is_empty() {
            return output;
        }
    }
}

fn round(weight: f64) -> f64 {
    (weight * 100.0).round() / 100.0
}

fn line(of: &OfSession) -> String {
    let OfSession { session_id, range: (first, last), summary, open, level, .. } = of;
    let (name, open) = (envelope::name(session_id), envelope::name(open));
    format!("[{name} #{first} to #{last}, open {open} level {level}]\n{}\n", envelope::quoted(summary))
}

fn render(output: &Output, secret: &[u8; 32]) -> String {
    if output.summaries.is_empty() {
        let nothing = "No conversation has to do with that.".to_owned();
        return nothing + &common::footnotes(&[], output.said_pending(), &output.notices);
    }
    let body: String = output.summaries.iter().map(line).collect();
    let mut text = envelope::wrap(secret, &body);
    let tokens = output.source_tokens;
    text += &format!(
        "\nFrom {tokens} tokens; expand_detail opens each further, by what stands behind `open` and its level."
    );
    if output.dropped > 0 {
        let (one, several) = ("conversation more has", "conversations more have");
        text += &format!(" {} to do with it.", counted(output.dropped, one, several));
    }
    text + &common::footnotes(&[], output.said_pending(), &output.notices)
}

impl Output {
    /// Returns how many pieces the text says are found by words only: it does once a process.
    fn said_pending(&self) -> usize {
        if self.says_pending { self.pending } else { 0 }
    }

    /// Returns the answer in words.
    pub fn text(&self) -> String {
        self.rendered.clone()
    }
}
