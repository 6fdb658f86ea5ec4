//! Lists the requests to providers: the time, the destination, the purpose, and the memories and files in them. No text
//! of the requests is shown.

use std::collections::HashMap;

use serde::Serialize;

use super::providers::{configured_name, read};
use tiro_base::envelope::{name, one_line};
use tiro_base::error::{Error, Result};
use tiro_base::humanize::{counted, thousands};
use tiro_base::times;
use tiro_host::engine::Engine;
use tiro_store::{Purpose, SentFilter, SentRow, Sources};

/// The number of requests that are listed if the caller names no number.
pub const LISTED: usize = 20;

/// The maximum number of names of each kind that the text shows for a request. The data contain all of them.
const NAMED: usize = 8;

/// The arguments.
#[derive(Debug, Default)]
pub struct Args {
    /// The provider whose requests are listed. It need not be configured any more.
    pub provider: Option<String>,
    /// The time from which on requests are listed.
    pub since: Option<String>,
    /// The maximum number of requests to list. The newest requests are listed.
    pub limit: Option<usize>,
}

/// The answer of `tiro provider sent`.
#[derive(Debug, Serialize)]
pub struct Output {
    /// The requests, the newest first.
    pub sent: Vec<Sent>,
    /// The number of further requests, all of which are older.
    pub more: i64,
}

/// A request that was sent, with its repetitions.
#[derive(Debug, Serialize)]
pub struct Sent {
    /// When it was first sent.
    pub at: String,
    /// The provider.
    pub provider: String,
    /// Its model.
    pub model: String,
    /// The host that it was sent to, or `this machine`.
    pub place: String,
    /// Whether the request stayed on this machine.
    pub is_local: bool,
    /// The purpose: `consultation`, `functions`, `summary`, `commit`, `texts`, `question` or `test`.
    pub purpose: String,
    /// The id of the project.
    pub project: String,
    /// The name of the project, if the project is still known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_name: Option<String>,
    /// The session that it belonged to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The thread that the request belonged to, in the form that `tiro show` accepts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The files whose content was in it.
    pub files: Vec<String>,
    /// The memories whose content was in it.
    pub memories: Vec<String>,
    /// Whether the names of the request's session, files and memories were purged. In this case, only their numbers are
    /// known.
    pub is_purged: bool,
    /// How many files there were.
    pub file_count: i64,
    /// How many memories there were.
    pub memory_count: i64,
    /// The number of times that the request was sent. It is repeated if it fails.
    pub requests: i64,
    /// The total number of tokens that were sent. While there is no answer, this is an upper bound.
    pub tokens: i64,
    /// The tokens of the answer.
    pub received: i64,
    /// The number of places at which a secret was replaced before the request was sent.
    pub secrets_replaced: i64,
    /// Whether an answer came.
    pub answered: bool,
    /// Whether it is unknown if an answer will come, because the request is still under way or its process died.
    pub is_open: bool,
}

/// Lists the requests. Sends and changes nothing.
///
/// Errors with [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if `since` is not a time or `limit` is 0.
pub async fn run(engine: &Engine, args: Args) -> Result<Output> {
    let limit = args.limit.unwrap_or(LISTED);
    if limit == 0 {
        return Err(Error::bad_input("`--limit` is 0").hint("give at least 1"));
    }
    let (since, _) = times::range(("--since", args.since.as_deref()), ("", None), engine.now())?;
    let (_, providers) = read(engine)?;
    let provider = args.provider.map(|name| configured_name(&providers, &name).0);
    let registry = &engine.installation().await?.registry;
    let (rows, all) = registry.sent(SentFilter { provider, since, limit }).await?;
    let projects = registry.all().await?;
    let names: HashMap<&str, &str> =
        projects.iter().map(|row| (row.id.as_str(), row.name.as_str())).collect();
    let more = all - rows.len() as i64;
    let sent = |row: SentRow| {
        let project_name = names.get(row.project.as_str()).map(|name| (*name).to_owned());
        Sent::of(row, project_name)
    };
    Ok(Output { sent: rows.into_iter().map(sent).collect(), more })
}

impl Sent {
    fn of(row: SentRow, project_name: Option<String>) -> Sent {
        let is_purged = row.sources.is_none();
        let Sources { memories, files } = row.sources.unwrap_or_default();
        let thread = row.session.as_ref().zip(row.assistant.as_ref());
        Sent {
            at: times::show_time(row.at),
            thread: thread.map(|(session, assistant)| format!("{session}@{assistant}")),
            provider: row.provider,
            model: row.model,
            place: row.place,
            is_local: row.is_local,
            purpose: row.purpose,
            project: row.project,
            project_name,
            session: row.session,
            files,
            memories,
            is_purged,
            file_count: row.files,
            memory_count: row.memories,
            requests: row.requests,
            tokens: row.tokens,
            received: row.received,
            secrets_replaced: row.secrets,
            answered: row.answered == Some(true),
            is_open: row.answered.is_none(),
        }
    }

    /// Returns the purpose of the request, in words.
    pub fn purpose(&self) -> &str {
        match Purpose::parse(&self.purpose) {
            Some(Purpose::Consultation) => "a question to an assistant",
            Some(Purpose::Functions) => "results of the functions that an assistant called",
            Some(Purpose::Summary) => "a summary of messages",
            Some(Purpose::Commit) => "a summary of a commit",
            Some(Purpose::Texts) => "embeddings of stored texts",
            Some(Purpose::Question) => "the embedding of a question",
            Some(Purpose::Test) => "a test of the provider",
            // A newer Tiro may know more purposes.
            None => &self.purpose,
        }
    }

    /// Returns the purpose of the request with its thread or session and its project.
    fn about(&self) -> String {
        let said = self.purpose();
        let place = match (&self.thread, &self.session) {
            (Some(thread), _) => format!(", thread {}", name(thread)),
            (None, Some(session)) => format!(", session {}", name(session)),
            (None, None) => String::new(),
        };
        let project = self.project_name.as_deref().map(|name| format!(", project {}", one_line(name)));
        format!("{said}{place}{}", project.unwrap_or_default())
    }

    /// Returns the request as lines of text.
    fn text(&self) -> String {
        let Sent { at, provider, model, tokens, received, requests, .. } = self;
        let place = match self.is_local {
            true => "stayed on this machine".to_owned(),
            false => format!("to {}", self.place),
        };
        let times = if *requests > 1 { format!(" in {requests} requests") } else { String::new() };
        let ended = match (self.answered, self.is_open) {
            (true, _) => format!("answered with {} tokens", thousands(received.unsigned_abs())),
            (false, true) => "no answer so far".to_owned(),
            (false, false) => "no answer".to_owned(),
        };
        let most = if self.is_open { "at most " } else { "" };
        let mut text = format!(
            "{at}  {provider} ({model}), {place}\n  for {}\n  {most}{} tokens sent{times}, {}; {ended}",
            self.about(),
            thousands(tokens.unsigned_abs()),
            counted(self.secrets_replaced, "secret replaced", "secrets replaced"),
        );
        for (count, one, several, names) in [
            (self.file_count, "file", "files", &self.files),
            (self.memory_count, "memory", "memories", &self.memories),
        ] {
            if count == 0 {
                continue;
            }
            let shown: Vec<_> = names.iter().take(NAMED).map(|each| name(each)).collect();
            let rest = count - shown.len() as i64;
            let said = match (shown.is_empty(), rest) {
                (true, _) => "the names were purged".to_owned(),
                (false, 0) => shown.join(", "),
                (false, more) => format!("{} and {more} more", shown.join(", ")),
            };
            text += &format!("\n  {}: {said}", counted(count, one, several));
        }
        text
    }
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        if self.sent.is_empty() {
            return "Nothing was sent to a provider.".to_owned();
        }
        let mut texts: Vec<String> = self.sent.iter().map(Sent::text).collect();
        if self.more > 0 {
            texts.push(format!("{} earlier: `--limit` lists more.", self.more));
        }
        texts.join("\n\n")
    }
}
