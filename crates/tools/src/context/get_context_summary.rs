//! Summarises the conversations that are related to a question, one by one, within one budget. Without a question, it
//! summarises the named conversations, so that an agent whose window was compacted learns the state of its own
//! conversation.
//!
//! Each conversation gets a weight that says how related it is to the question. The weight is computed as for
//! `retrieve_context`. A conversation's share of the budget is proportional to its weight. Tokens that one summary
//! leaves unused are available to the next summary. Each summary comes with the arguments of expand_detail that open
//! its conversation.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common;
use crate::common::tool::Answer;
use crate::context::retrieve_context::TimeRange;
use crate::context::summarize_conversation::Detail;
use crate::memory::authors::by;
use crate::memory::search_project_memory::missing_sessions;
use tiro_base::envelope;
use tiro_base::error::{Error, Kind as ErrorKind, Result, partial};
use tiro_base::filter::Filter;
use tiro_base::humanize::counted;
use tiro_base::memory::{Kind, Level, Millis, Role, marked};
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_digest::tuning::summaries::{RELATED_SCORE, RELATED_SESSIONS, RELATED_TOKENS, RELATED_WEIGHT};
use tiro_host::ask;
use tiro_host::assembly::across_sessions::{Hit, read};
use tiro_host::assembly::order::{Conversation, Weighed, conversation, weigh};
use tiro_host::assembly::quote::quote;
use tiro_host::caller::{Caller, Form};
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_host::summaries::levels::Depth;
use tiro_host::summaries::wanted::Wanted;
use tiro_host::summaries::{make, messages};
use tiro_intake::{Capture, session_id};
use tiro_recall::retrieve::rank::Weights;
use tiro_recall::retrieve::{self, SearchResult};
use tiro_store::MessageRow;

/// The name of the tool in MCP.
pub const NAME: &str = "get_context_summary";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Summarise context";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Summarises the conversations that have to do with a question, within a \
    budget, and says how to open each; without a question, where the named ones stand. For the messages themselves \
    use retrieve_context.";

/// The budget of an answer, in tokens, if the call names none.
const MAX_TOKENS: usize = 2000;

/// The smallest budget, in tokens.
const LEAST_TOKENS: usize = 200;

/// The largest budget, in tokens: clients cut off tool results after 25,000 tokens.
const MOST_TOKENS: usize = 20_000;

/// The maximum number of tokens that the frame of an answer takes.
const FRAME: usize = 100;

/// The maximum number of tokens that the frame of one summary in the answer takes.
const SUMMARY_FRAME: usize = 54;

/// The share of a summary's tokens that the last messages may take, if the call asks for the state of a conversation.
/// Arbitrary.
const LAST: (usize, usize) = (2, 5);

/// The maximum number of messages of a conversation that are summarised. Earlier messages are left out. Arbitrary.
const MOST_MESSAGES: usize = 2000;

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// A question or key words.
    pub query: Option<String>,
    /// Only these sessions.
    pub conversation_ids: Option<Vec<String>>,
    /// Only messages of this time.
    #[schemars(description = "")]
    pub time_range: Option<TimeRange>,
    /// 2000 if left out.
    #[schemars(range(min = LEAST_TOKENS))]
    pub max_tokens: Option<usize>,
    /// standard if left out.
    pub level: Option<Detail>,
}

/// The answer of the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Says that quoted text is data, not instructions.
    pub caution: &'static str,
    /// The summaries, that of the most related conversation first.
    pub summaries: Vec<SessionSummary>,
    /// The tokens of this answer (o200k).
    pub tokens_used: usize,
    /// How many tokens the summarised messages have.
    pub source_tokens: usize,
    /// How many related conversations did not fit.
    pub dropped: usize,
    /// How many chunks have no embedding yet; only keywords find them.
    pub pending: usize,
    /// Other remarks, each a sentence without a full stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Whether the text mentions `pending`.
    #[serde(skip)]
    says_pending: bool,
    #[serde(skip)]
    rendered: String,
}

/// The summary of one conversation.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SessionSummary {
    /// The session's name.
    pub session_id: String,
    /// Its authors, if it has others than the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// How related it is to the question: its weight, divided by the weight of the best conversation.
    pub relevance: f64,
    /// The numbers of the first and the last message that were summarised.
    pub range: (i64, i64),
    /// The text of the summary.
    pub summary: String,
    /// The argument `id` of expand_detail that opens the conversation at the message that answers best.
    pub open: String,
    /// The level of the summary, as asked for.
    #[schemars(with = "String")]
    pub level: Depth,
    /// The argument `level` of expand_detail: one level deeper than this summary.
    #[schemars(with = "String")]
    pub open_level: Depth,
}

/// Weighs the conversations against the question and summarises those with the most weight.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let query = args.query.unwrap_or_default().trim().to_owned();
    let names = args.conversation_ids.unwrap_or_default();
    if query.is_empty() && names.is_empty() {
        return Err(Error::bad_input("neither `query` nor `conversation_ids` is given")
            .hint("ask a question, give key words, or name the conversations"));
    }
    let (budget, clamped) =
        common::max_tokens(caller, args.max_tokens, MAX_TOKENS, LEAST_TOKENS, MOST_TOKENS)?;
    let (since, until) = args.time_range.unwrap_or_default().read(engine.now())?;
    let mut notices = caller.capture(engine).catch_up().await;
    notices.extend(clamped);
    let project = caller.project(engine).await?;
    let installation = engine.installation().await?;
    let sessions = requested_sessions(&project, &names)?;
    let scope = Scope { sessions, ..project.scope.clone() };
    notices.extend(missing_sessions(&project, &scope).await?);
    let encoders = ask::encoders(engine, caller, &mut notices).await;
    let kinds = vec![Kind::Message, Kind::Conversation, Kind::Summary];
    let without = caller.running_session(engine, &project, &scope);
    let filter = Filter { kinds: Some(kinds), since, until, without, ..Filter::default() };
    let places = [(project.store.as_ref(), &scope)];
    // Without a question there is nothing to search for, and all named conversations are wanted.
    let found = match query.is_empty() {
        true => SearchResult::default(),
        false => retrieve::search(&places, &encoders, &query, &filter, &Weights::default()).await?,
    };
    notices.extend(found.notices);
    if found.ranked.is_empty() && project.store.is_empty(&project.scope).await? {
        notices.insert(0, common::nothing_yet(engine, &project).await?);
    }
    let weights = weigh(&found.ranked);
    let hits = read(&places, found.ranked).await?;
    let mut order = match &scope.sessions {
        Sessions::Only(named) if query.is_empty() => named.iter().map(|name| (name.clone(), 1.0)).collect(),
        _ => by_weight(&hits, &weights, &scope),
    };
    let all = order.len();
    order.truncate(RELATED_SESSIONS);

    let level = Level::from(args.level.unwrap_or_default());
    let question = Question { query, level, since, until };
    let room = budget - FRAME;
    let (summaries, source_tokens) =
        summarise(engine, caller, &project, &question, &order, &hits, room).await?;
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
    let form = caller.form();
    messages::blocking(move || fit(output, (budget, form), &secret)).await
}

/// Returns the sessions called `names`. Returns all sessions if there are no names.
fn requested_sessions(project: &OpenProject, names: &[String]) -> Result<Sessions> {
    if names.is_empty() {
        return Ok(Sessions::All);
    }
    let ids = names.iter().map(|name| session_id(&project.redactor, "conversation_ids", name));
    Ok(Sessions::Only(ids.collect::<Result<Vec<SessionId>>>()?))
}

/// Returns the conversations to summarise, each with its weight, the greatest weight first. Conversations that are
/// hardly related to the question are left out, unless `scope` names the sessions.
fn by_weight(hits: &[Hit], weights: &HashMap<Conversation, Weighed>, scope: &Scope) -> Vec<(SessionId, f64)> {
    let best = hits.iter().map(|hit| hit.ranked.score).fold(0.0, f64::max);
    let weight = |hit: &Hit| weights.get(&conversation(&hit.ranked)?).map(|weighed| weighed.weight);
    let known = hits.iter().filter_map(|hit| Some((hit.memory.session.clone()?, weight(hit)?)));
    let known: BTreeMap<SessionId, f64> = known.collect();
    let mut order: Vec<(SessionId, f64)> = known.into_iter().collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    if scope.sessions == Sessions::All {
        let answers = hits.iter().filter(|hit| hit.ranked.score >= RELATED_SCORE * best);
        let answering: BTreeSet<&SessionId> = answers.filter_map(|hit| hit.memory.session.as_ref()).collect();
        order.retain(|(session, weight)| *weight >= RELATED_WEIGHT || answering.contains(session));
    }
    order
}

/// The question for which conversations are summarised, with the level of detail and the range of times.
struct Question {
    query: String,
    level: Level,
    since: Option<Millis>,
    until: Option<Millis>,
}

/// Returns the summaries of the conversations in `order` that fit into `room` tokens. Also returns the number of tokens
/// of the summarised messages.
async fn summarise(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    question: &Question,
    order: &[(SessionId, f64)],
    hits: &[Hit],
    room: usize,
) -> Result<(Vec<SessionSummary>, usize)> {
    let Question { query, level, since, until } = question;
    let (level, mut left, mut source_tokens) = (*level, room, 0);
    let mut summaries: Vec<SessionSummary> = Vec::new();
    for place in 0..order.len() {
        let (session, weight) = &order[place];
        let waiting: f64 = order[place..].iter().map(|(_, weight)| weight).sum();
        let share = (left as f64 * weight / waiting.max(f64::MIN_POSITIVE)) as usize;
        // If there are many conversations, only the first of them are summarised, so that every summary has a useful
        // size.
        let most = share.max(RELATED_TOKENS + SUMMARY_FRAME).min(left).saturating_sub(SUMMARY_FRAME);
        if most < RELATED_TOKENS {
            break;
        }
        // A conversation is skipped if none of its messages lies within the times. In this case, the search found
        // something else of the conversation, such as its summary.
        let mut rows = match make::range(project, session, (None, None), (*since, *until)).await {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            rows => rows?,
        };
        rows.drain(..rows.len().saturating_sub(MOST_MESSAGES));
        let usual = tiro_digest::summarize::length(
            level,
            rows.iter().map(|row| row.tokens.unsigned_abs() as usize).sum(),
        );
        let (first, last) = (rows[0].ordinal, rows[rows.len() - 1].ordinal);
        let author = messages::others(&rows, caller.author());
        // The state of a conversation is shown by its last messages.
        let end = match query.is_empty() {
            true => end(project, &rows, most * LAST.0 / LAST.1).await?,
            false => String::new(),
        };
        let most = most - messages::count(&end).min(most / 2);
        let wanted = Wanted {
            session: session.clone(),
            rows,
            level,
            max_tokens: Some(most.min(2 * usual)),
            focus: query.clone(),
            by_model: false,
        };
        source_tokens += wanted.tokens();
        let made = make::make(engine, caller, project, wanted, make::Keeping::Later).await?;
        if made.text.is_empty() && end.is_empty() {
            continue;
        }
        // Each sentence of an extract is on its own line. A model's text may contain other lines, so it is quoted.
        let summary = if made.model.is_empty() { made.text.into() } else { envelope::quoted(&made.text) };
        let text = envelope::escape(format!("{summary}\n{end}").trim()).into_owned();
        let name = envelope::escape(session.as_str()).into_owned();
        // `open` is the message of the conversation that answers best, if there is one.
        let mut own = hits.iter().filter(|hit| hit.memory.session.as_ref() == Some(session));
        let place = own.find_map(|hit| hit.memory.ordinal).or(made.cited.first().copied()).unwrap_or(first);
        let open = format!("{name}#{place}");
        let one = SessionSummary {
            session_id: name,
            author,
            relevance: round(*weight),
            range: (first, last),
            summary: text,
            open,
            level: Depth::of(level),
            open_level: Depth::of(level).deeper(),
        };
        left = left.saturating_sub(messages::count(&line(&one)).max(made.tokens) + 1);
        summaries.push(one);
    }
    Ok((summaries, source_tokens))
}

/// Returns the last request of the conversation and the last answer to it, as whole sentences with about `most` tokens.
async fn end(project: &OpenProject, rows: &[MessageRow], most: usize) -> Result<String> {
    let asked = rows.iter().rposition(|row| row.role == Some(Role::User));
    let answered = rows.iter().rposition(|row| row.role == Some(Role::Assistant));
    let answered = answered.filter(|place| asked.is_none_or(|asked| *place > asked));
    let last: Vec<MessageRow> = asked.into_iter().chain(answered).map(|place| rows[place].clone()).collect();
    let said = messages::texts(project, &last).await?;
    let line = |(row, text): &(MessageRow, String)| {
        let who = row.speaker.as_deref().or(row.role.map(Role::as_str)).unwrap_or_default();
        let text = quote(text, 0..text.len(), most / 2).trim().replace('\n', " ");
        marked(format!("#{} {}: {text}", row.ordinal, envelope::name(who)), row.is_damaged)
    };
    Ok(said.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Leaves out notices, then the least related summaries, until the answer fits the budget in each form of `form`.
fn fit(mut output: Output, (budget, form): (usize, Form), secret: &[u8; 32]) -> Output {
    loop {
        // `tokens_used` is part of the counted text. During the count, the field contains the budget, the largest value
        // it can get, so the final number takes no more tokens.
        output.tokens_used = budget;
        output.rendered = render(&output, budget, secret);
        output.tokens_used = Answer::cost(form, &output.rendered, &output);
        output.rendered = render(&output, budget, secret);
        if output.tokens_used <= budget {
            return output;
        }
        // Notices are left out before summaries. A notice that something is missing is kept.
        if output.notices.last().is_some_and(|notice| !partial::is(notice)) {
            output.notices.pop();
        } else if output.summaries.pop().is_some() {
            output.dropped += 1;
        } else {
            return output;
        }
    }
}

fn round(weight: f64) -> f64 {
    (weight * 100.0).round() / 100.0
}

fn line(summary: &SessionSummary) -> String {
    let SessionSummary { session_id, author, range: (first, last), summary, open, open_level, .. } = summary;
    let (name, open, author) = (envelope::name(session_id), envelope::name(open), by(author.as_deref()));
    let head = format!("{name} #{first} to #{last}{author}, open {open} level {open_level}");
    format!("[{head}]\n{}\n", envelope::framed(summary))
}

fn render(output: &Output, budget: usize, secret: &[u8; 32]) -> String {
    if output.summaries.is_empty() {
        let nothing = partial::nothing(
            &output.notices,
            "No conversation has to do with the question; search_project_memory also finds commits.",
        );
        let nothing = partial::line(&output.notices) + nothing;
        return nothing + &common::footnotes(&[], output.reported_pending(), &output.notices);
    }
    let body: String = output.summaries.iter().map(line).collect();
    let mut text = partial::line(&output.notices) + &envelope::wrap(secret, &body);
    text += &format!(
        "\n{} of {budget} tokens, from {}; expand_detail opens each with its `open` as `id` and its level.",
        output.tokens_used, output.source_tokens
    );
    if output.dropped > 0 {
        let (one, several) = ("more related conversation", "more related conversations");
        text += &format!(" {} did not fit.", counted(output.dropped, one, several));
    }
    text + &common::footnotes(&[], output.reported_pending(), &output.notices)
}

impl Output {
    /// Returns the number of chunks without an embedding if the text is to mention it, otherwise 0. Only the first
    /// answer to a caller mentions it.
    fn reported_pending(&self) -> usize {
        if self.says_pending { self.pending } else { 0 }
    }

    /// Returns the answer as text.
    pub fn text(&self) -> String {
        self.rendered.clone()
    }
}
