//! Lists the conversations of the project.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common;
use crate::memory::show;
use tiro_base::envelope;
use tiro_base::error::{Error, Result, partial, quoted};
use tiro_base::humanize::counted;
use tiro_base::scope::SessionId;
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_intake::Capture;
use tiro_store::{About, HEADLESS, SessionRow};

/// The name of the tool in MCP.
pub const NAME: &str = "list_sessions";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "List sessions";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Lists the project's conversations, latest first, with their size, dates and \
    branch. To find what was said use search_project_memory.";

/// The most sessions on a page.
const PAGE: usize = 100;

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Page size; 20 if left out.
    #[schemars(range(min = 1, max = PAGE))]
    pub limit: Option<usize>,
    /// `next_cursor` of the answer before.
    pub cursor: Option<String>,
}

/// The answer of the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The conversations.
    pub sessions: Vec<Session>,
    /// The cursor of the next page.
    pub next_cursor: Option<String>,
    /// The project's name.
    pub project: String,
    /// Other remarks, each a sentence without a full stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    #[serde(skip)]
    secret: [u8; 32],
}

/// One conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Session {
    /// Its name.
    pub session_id: String,
    /// The title that its client gave it, or the beginning of the user's first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How many memories it has.
    pub memories: i64,
    /// The tokens of its memories (o200k).
    pub tokens: i64,
    /// The time of its first memory.
    pub first: String,
    /// The time of its last memory.
    pub last: String,
    /// The branch that was last checked out in it.
    pub branch: Option<String>,
    /// Whether a script ran it, without a user; such conversations are listed last.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub headless: bool,
    /// The assistants that were consulted in it, with the number of their turns.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub assistants: BTreeMap<String, u32>,
}

/// Reads one page of sessions.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let limit = args.limit.unwrap_or(20);
    if !(1..=PAGE).contains(&limit) {
        return Err(Error::bad_input("`limit` is not between 1 and 100"));
    }
    let offset = match args.cursor.as_deref() {
        None => 0,
        Some(cursor) => cursor.parse::<u32>().map_err(|_| {
            Error::bad_input(format!("`cursor` was not returned by this tool: `{}`", quoted(cursor)))
                .hint("leave it out to start at the beginning")
        })? as usize,
    };
    let mut notices = Vec::new();
    if offset == 0 {
        notices = caller.capture(engine).catch_up().await;
    }
    let project = caller.project(engine).await?;
    let secret = engine.installation().await?.secret;
    let mut rows = project.store.sessions(&project.scope, offset, limit + 1).await?;
    let next_cursor = (rows.len() > limit).then(|| (offset + limit).to_string());
    rows.truncate(limit);
    let ids = rows.iter().map(|row| row.id.clone()).collect();
    let about = project.store.about_sessions(&project.scope, ids).await?;
    let mut consulted: HashMap<SessionId, BTreeMap<String, u32>> = HashMap::new();
    for thread in project.store.threads(&project.scope, None).await? {
        let assistant = envelope::escape(&thread.name.assistant).into_owned();
        consulted.entry(thread.name.session).or_default().insert(assistant, thread.turns);
    }
    let sessions = rows.into_iter().zip(about).map(|(row, about)| {
        let assistants = consulted.remove(&row.id).unwrap_or_default();
        session(row, about, assistants)
    });
    let mut sessions: Vec<Session> = sessions.collect();
    tell_apart(&mut sessions);
    let name = envelope::escape(&project.name).into_owned();
    Ok(Output { sessions, next_cursor, project: name, notices, secret })
}

/// Adds the time at which the session began to titles that several sessions of the page have.
fn tell_apart(sessions: &mut [Session]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for title in sessions.iter().filter_map(|session| session.title.clone()) {
        *counts.entry(title).or_default() += 1;
    }
    for session in sessions {
        let first = &session.first;
        let repeated = session.title.as_mut().filter(|title| counts[title.as_str()] > 1);
        repeated.into_iter().for_each(|title| *title += &format!(" ({first})"));
    }
}

fn session(row: SessionRow, about: About, assistants: BTreeMap<String, u32>) -> Session {
    Session {
        session_id: envelope::escape(row.id.as_str()).into_owned(),
        title: about.title.as_deref().and_then(show::line),
        memories: row.memories,
        tokens: row.tokens,
        first: times::show_time(row.first),
        last: times::show_time(row.last),
        branch: row.branch.map(|branch| envelope::escape(&branch).into_owned()),
        headless: about.client.is_some_and(|client| client.ends_with(HEADLESS)),
        assistants,
    }
}

/// Returns the consulted assistants as the end of a session's line.
pub fn consulted(assistants: &BTreeMap<String, u32>) -> String {
    let turns = |(name, turns): (&String, &u32)| {
        format!("{} ({})", envelope::name(name), counted(i64::from(*turns), "turn", "turns"))
    };
    let all: Vec<String> = assistants.iter().map(turns).collect();
    if all.is_empty() { String::new() } else { format!(", consulted {}", all.join(", ")) }
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        if self.sessions.is_empty() {
            return format!(
                "No sessions in project `{}` yet; save_messages begins one.",
                quoted(&self.project)
            );
        }
        let mut body = String::new();
        for session in &self.sessions {
            let Session { session_id, title, memories, tokens, first, last, branch, headless, assistants } =
                session;
            let title = title.as_ref().map(|title| format!(" \"{}\"", envelope::name(title)));
            let title = title.unwrap_or_default();
            let branch = branch
                .as_ref()
                .map_or(String::new(), |branch| format!(", branch {}", envelope::name(branch)));
            let memories = counted(*memories, "memory", "memories");
            let tokens = counted(*tokens, "token", "tokens");
            // `envelope::name` keeps each session on one line.
            let name = envelope::name(session_id);
            body += &format!(
                "{}{title}: {memories}, {tokens}, {first} to {last}{branch}{}{}\n",
                envelope::quoted(&name),
                if *headless { ", run by a script" } else { "" },
                consulted(assistants)
            );
        }
        let mut text = partial::line(&self.notices) + &envelope::wrap(&self.secret, &body);
        if let Some(cursor) = &self.next_cursor {
            text += &format!("\nMore with cursor `{cursor}`.");
        }
        text + &common::footnotes(&[], 0, &self.notices)
    }
}
