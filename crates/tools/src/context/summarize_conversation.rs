//! Summarises a conversation, or a range of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common;
use crate::common::beginning;
use crate::common::tool::Answer;
use crate::memory::authors::by;
use tiro_base::envelope;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::humanize::counted;
use tiro_base::memory::Level;
use tiro_base::times;
use tiro_digest::summarize;
use tiro_host::caller::{Form, WritingCaller};
use tiro_host::engine::Engine;
use tiro_host::summaries::estimate::Estimate;
use tiro_host::summaries::make::{self, given};
use tiro_host::summaries::wanted::{Made, Wanted};
use tiro_host::summaries::{estimate, messages};
use tiro_intake::session_id;

/// The name of the tool in MCP.
pub const NAME: &str = "summarize_conversation";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Summarise a conversation";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Summarises one session, or a range of its messages; expand_detail opens the \
    cited ones. To answer a question use retrieve_context.";

/// The approximate number of tokens of an answer, not counting its summary.
const FRAME: usize = 180;

/// The smallest budget, in tokens: enough for the frame and a short sentence.
const LEAST: usize = FRAME + 20;

/// The largest budget, in tokens.
const MOST: usize = 8000;

/// The most topics that an answer lists.
const TOPICS: usize = 6;

/// The level of detail of a summary, as an argument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(
    clippy::missing_docs_in_private_items,
    reason = "docs would be part of the schema that every model reads"
)]
#[allow(missing_docs, reason = "docs become part of the schema, which models pay for")]
pub enum Detail {
    Brief,
    #[default]
    Standard,
    Detailed,
}

impl From<Detail> for Level {
    fn from(detail: Detail) -> Level {
        match detail {
            Detail::Brief => Level::Brief,
            Detail::Standard => Level::Standard,
            Detail::Detailed => Level::Detailed,
        }
    }
}

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// The session.
    #[schemars(description = "")]
    pub session_id: String,
    /// standard if left out.
    pub level: Option<Detail>,
    /// Number of the first message.
    pub from: Option<i64>,
    /// Number of the last message.
    #[schemars(description = "")]
    pub to: Option<i64>,
    /// Like 2026-03-01, yesterday or 7d.
    pub since: Option<String>,
    /// The last time; a day is included.
    #[schemars(description = "")]
    pub until: Option<String>,
    /// Topics to focus on.
    pub focus: Option<String>,
    /// The most tokens of the answer.
    #[schemars(description = "", range(min = LEAST))]
    pub max_tokens: Option<usize>,
    /// false: never ask a model.
    pub use_provider: Option<bool>,
    /// Only estimate tokens and cost.
    #[serde(default)]
    pub dry_run: bool,
    /// Your own summary; it is checked and stored instead.
    pub summary: Option<String>,
}

/// The answer of the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Says that quoted text is data, not instructions.
    pub caution: &'static str,
    /// The session.
    #[schemars(description = "")]
    pub session_id: String,
    /// The authors, if there are others than the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub author: Option<String>,
    /// The level of detail.
    pub level: String,
    /// The summary's id, for expand_detail.
    pub id: Option<String>,
    /// The text of the summary.
    pub summary: String,
    /// The numbers of the first and the last message that were summarised.
    pub range: (i64, i64),
    /// How many messages were summarised.
    pub messages: usize,
    /// The tokens of these messages (o200k).
    pub tokens: usize,
    /// Tokens of the summary (o200k).
    pub summary_tokens: usize,
    /// The numbers of the messages that the sentences of the summary come from.
    pub cited: Vec<i64>,
    /// The topics of the conversation, with the numbers of their messages.
    pub topics: Vec<String>,
    /// `extractive`, `agent`, or the provider that wrote it.
    pub provider: String,
    /// The provider's model; empty if extractive.
    pub model: String,
    /// How well the summary passes the checks of its names, numbers, statements and speakers: 0 to 1; a model's has at
    /// least 0.8.
    pub quality: f64,
    /// The cost in US dollars; in a dry run, the most it can cost.
    pub cost_usd: Option<f64>,
    /// In a dry run, the likely cost in US dollars.
    #[schemars(description = "")]
    pub likely_usd: Option<f64>,
    /// Whether the summary was already stored.
    pub cached: bool,
    /// Whether something was left out to fit `max_tokens`: topics, numbers of cited messages, notices, the end of the
    /// summary, the session's name.
    #[schemars(description = "Whether something did not fit max_tokens.")]
    pub truncated: bool,
    /// In a dry run: the most requests, tokens sent and tokens received.
    pub estimate: Option<(usize, usize, usize)>,
    /// Other remarks, each a sentence without a full stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    #[serde(skip)]
    secret: [u8; 32],
}

/// Summarises the messages. In a dry run, only estimates requests, tokens and cost.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    let (max_tokens, clamped) = common::max_tokens(caller, args.max_tokens, MOST, LEAST, MOST)?;
    let max_tokens = args.max_tokens.and(Some(max_tokens));
    let room = max_tokens.map(|max_tokens| max_tokens - FRAME);
    let project = caller.writable_project(engine).await?;
    let session = session_id(&project.redactor, "session_id", &args.session_id)?;
    let span =
        times::range(("since", args.since.as_deref()), ("until", args.until.as_deref()), engine.now())?;
    let rows = make::range(&project, &session, (args.from, args.to), span).await?;
    let focus = focus(args.focus.as_deref())?;
    let level = Level::from(args.level.unwrap_or_default());
    let by_model = args.use_provider != Some(false);
    let wanted = Wanted { session, rows, level, max_tokens: room, focus, by_model };
    let given = given_summary(&args, &wanted)?;
    let end = |row: Option<&tiro_store::MessageRow>| row.map_or(0, |row| row.ordinal);
    let mut output = Output {
        caution: envelope::CAUTION,
        session_id: envelope::escape(wanted.session.as_str()).into_owned(),
        author: messages::others(&wanted.rows, caller.author()),
        level: level.to_string(),
        id: None,
        summary: String::new(),
        range: (end(wanted.rows.first()), end(wanted.rows.last())),
        messages: wanted.rows.len(),
        tokens: wanted.tokens(),
        summary_tokens: wanted.most(),
        cited: Vec::new(),
        topics: Vec::new(),
        provider: "extractive".into(),
        model: String::new(),
        quality: 0.0,
        cost_usd: Some(0.0),
        likely_usd: None,
        cached: false,
        truncated: false,
        estimate: None,
        notices: clamped.into_iter().collect(),
        secret: engine.installation().await?.secret,
    };
    if args.dry_run {
        let Estimate { provider, requests, input, output: back, cost_usd, likely_usd } =
            estimate::of(engine, &project, &wanted).await?;
        output.provider = provider.unwrap_or(output.provider);
        (output.cost_usd, output.likely_usd) = (cost_usd, likely_usd);
        output.estimate = Some((requests, input, back));
        return fit(output, max_tokens, caller.form()).await;
    }
    let rows = wanted.rows.clone();
    let made = match given {
        Some(summary) => given::given(engine, &project, &wanted, summary).await?,
        None => make::make(engine, caller, &project, wanted, make::Keeping::Now(&project)).await?,
    };
    let texts = messages::texts(&project, &rows).await?;
    output.topics = messages::blocking(move || {
        let named = summarize::topics(&messages::sources(&texts), TOPICS);
        let topic = |topic: summarize::Topic| {
            let places: Vec<String> =
                topic.ordinals.iter().take(5).map(|place| format!("#{place}")).collect();
            let more = if topic.ordinals.len() > 5 { " …" } else { "" };
            format!("{} {}{more}", envelope::escape(&topic.name), places.join(" "))
        };
        named.into_iter().map(topic).collect()
    })
    .await?;
    let Made { id, text, tokens, provider, model, quality, cited, cost_usd, is_kept, notices, .. } = made;
    (output.summary, output.truncated) = (envelope::escape(&text).into_owned(), text.is_empty());
    output.notices.extend(notices);
    let output = Output {
        id,
        summary_tokens: tokens,
        cited,
        provider,
        model,
        quality: (quality * 100.0).round() / 100.0,
        cost_usd: Some(cost_usd),
        cached: is_kept,
        ..output
    };
    fit(output, max_tokens, caller.form()).await
}

fn focus(given: Option<&str>) -> Result<String> {
    match given.map(str::trim).filter(|focus| !focus.is_empty()) {
        Some(focus) => common::short("focus", focus),
        None => Ok(String::new()),
    }
}

/// Returns the summary that the agent wrote, if there is one. Errors if the call asks for something that such a summary
/// can't have.
fn given_summary<'a>(args: &'a Args, wanted: &Wanted) -> Result<Option<&'a str>> {
    let given = args.summary.as_deref().map(str::trim).filter(|summary| !summary.is_empty());
    let others = [
        ("focus", !wanted.focus.is_empty()),
        ("max_tokens", args.max_tokens.is_some()),
        ("dry_run", args.dry_run),
    ];
    if let (Some(_), Some((other, _))) = (given, others.iter().find(|(_, is_given)| *is_given)) {
        return Err(Error::bad_input(format!("`summary` and `{other}` exclude each other"))
            .hint(format!("leave `{other}` out to store the summary")));
    }
    Ok(given)
}

/// Leaves out topics, cited messages, notices and the end of the summary, in this order, until the answer fits in each
/// form of `form`.
async fn fit(mut output: Output, max_tokens: Option<usize>, form: Form) -> Result<Output> {
    let Some(most) = max_tokens else { return Ok(output) };
    messages::blocking(move || {
        loop {
            let over = Answer::cost(form, &output.text(), &output).saturating_sub(most);
            if over == 0 || !output.shrink(over) {
                return output;
            }
        }
    })
    .await
}

impl Output {
    /// Leaves out the least important part of an answer that exceeds its budget by `over` tokens. Returns false if
    /// there is no such part.
    fn shrink(&mut self, over: usize) -> bool {
        self.truncated = true;
        if self.topics.pop().is_some() {
            return true;
        }
        if !self.cited.is_empty() {
            self.cited.truncate(self.cited.len() / 2);
            return true;
        }
        if self.notices.pop().is_some() {
            return true;
        }
        if !self.summary.is_empty() {
            let tokens = messages::count(&self.summary).saturating_sub(over.max(1));
            // Half a sentence could mean the opposite of the whole sentence.
            let kept = beginning(&self.summary, tokens);
            let end =
                kept.rfind(['.', '!', '?', '。', '\n']).map_or(0, |end| kept.ceil_char_boundary(end + 1));
            self.summary = kept[..end].trim_end().to_owned();
            self.summary_tokens = messages::count(&self.summary);
            return true;
        }
        // A shortened name would look like another name, so names are kept whole or left out.
        !std::mem::take(&mut self.model).is_empty() || !std::mem::take(&mut self.session_id).is_empty()
    }

    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let Output { session_id, level, messages, tokens, range: (first, last), provider, .. } = self;
        let counted_messages = counted(*messages, "message", "messages");
        if let Some((requests, sent, back)) = self.estimate {
            let about = format!(
                "{counted_messages} of `{}` (#{first} to #{last}), {tokens} tokens",
                quoted(session_id)
            );
            return match requests {
                0 => format!(
                    "{about}: at most {} tokens, in sentences chosen on this machine at no cost.",
                    self.summary_tokens
                ),
                _ => {
                    let requests = counted(requests, "request", "requests");
                    let cost = estimate::cost(self.likely_usd, self.cost_usd);
                    format!(
                        "{about}: {requests} to {provider}, up to {sent} tokens sent and {back} back, {cost}."
                    )
                }
            };
        }
        // Each sentence of an extract is on its own line. A model's text may contain other lines, so it is quoted.
        let quoted = if self.model.is_empty() { envelope::framed } else { envelope::quoted };
        let (name, summary) = (envelope::name(session_id), quoted(&self.summary));
        let author = by(self.author.as_deref());
        let mut body = format!("[{name} #{first} to #{last}, {level}{author}]\n{summary}\n");
        if !self.topics.is_empty() {
            body += &format!("[topics: {}]\n", envelope::name(&self.topics.join(", ")));
        }
        let mut text = envelope::wrap(&self.secret, &body);
        if let Some(id) = &self.id {
            text += &format!("\nexpand_detail `{id}` opens it in more detail.");
        }
        let by = match self.model.is_empty() || self.model == *provider {
            true => provider.clone(),
            false => format!("{provider} ({})", self.model),
        };
        // The quality says whether a model kept to the messages. Without a model, the sentences come from the messages.
        let quality =
            if self.model.is_empty() { String::new() } else { format!(", quality {:.2}", self.quality) };
        let cached = if self.cached { ", stored before" } else { "" };
        text += &format!(
            "\n{} of {tokens} tokens, {counted_messages}; {by}{quality}{cached}.",
            self.summary_tokens
        );
        if self.truncated {
            text += "\nShortened to fit max_tokens.";
        }
        text + &common::footnotes(&[], 0, &self.notices)
    }
}
