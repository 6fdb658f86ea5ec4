//! Reads a page of a conversation for people: its properties, what it is about, its commits, and some of its messages.
//!
//! Unlike [`conversation`](super::conversation), this reads no more of the conversation than the page shows, so a long
//! conversation opens as fast as a short one.

use std::collections::HashMap;

use serde::Serialize;

use super::brief::{Brief, briefs, escaped, line};
use crate::memory::hits::SupersededBy;
use crate::memory::hits::from_memory::superseded_by;
use crate::memory::named;

use tiro_base::error::{Error, Result, quoted};
use tiro_base::memory::{Memory, MemoryKey, marked};
use tiro_base::scope::{AuthorId, Scope, Sessions};
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_store::{About, HEADLESS, ReplacementQuery, Superseded};

/// The most messages of a page.
const MOST: usize = 200;

/// The arguments.
#[derive(Debug, Default)]
pub struct Args {
    /// The session: its name, the beginning of its name, or its title.
    pub session: String,
    /// The number of the first message; the conversation's first message if `None`.
    pub from: Option<i64>,
    /// The most messages, 1 to 200; 50 if `None`.
    pub limit: Option<usize>,
}

/// A page of a conversation.
#[derive(Debug, Default, Serialize)]
pub struct Output {
    /// The session's name.
    pub session_id: String,
    /// The title that its client gave it, or the beginning of the user's first message.
    pub title: Option<String>,
    /// The client program.
    pub client: Option<String>,
    /// Whether a script ran it, without a user.
    pub headless: bool,
    /// The branch that was last checked out in it.
    pub branch: Option<String>,
    /// The time of its first memory, RFC 3339.
    pub first: String,
    /// The time of its last memory, RFC 3339.
    pub last: String,
    /// The number of its memories.
    pub memories: i64,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// The id of the memory that represents the session.
    pub account_id: Option<String>,
    /// The text of this memory: what the user asked for, and what came of it.
    pub account: Option<String>,
    /// The commits to which it led, the latest first.
    pub commits: Vec<Brief>,
    /// The messages of the page, in order.
    pub messages: Vec<Message>,
    /// The number with which the next page begins.
    pub next: Option<i64>,
    /// The number with which the page before begins.
    pub previous: Option<i64>,
    /// Other remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
}

/// A message.
#[derive(Debug, Default, Serialize)]
pub struct Message {
    /// Its number in the conversation.
    pub number: i64,
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// The role of its speaker: user, assistant, system or tool.
    pub role: Option<String>,
    /// The speaker's name or role. For a tool call, the tool.
    pub speaker: String,
    /// Who shared it; left out if that was the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// When it was said, RFC 3339.
    pub time: String,
    /// Its text.
    pub text: String,
    /// Whether it was marked important.
    pub important: bool,
    /// The memory that replaced it, or one of its statements.
    pub superseded: Option<SupersededBy>,
}

/// Reads the page.
///
/// Errors with [`NotFound`](tiro_base::error::Kind::NotFound) if there is no such session, and with
/// [`BadInput`](tiro_base::error::Kind::BadInput) if several have this name.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let limit = args.limit.unwrap_or(50).clamp(1, MOST);
    let project = caller.project(engine).await?;
    let matching = named::sessions(&project, &args.session).await?;
    let session = matching.one()?.cloned().ok_or_else(|| {
        Error::not_found(format!("no session is called `{}`", quoted(&args.session)))
            .hint("list_sessions shows the names and titles of sessions")
    })?;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let own = Scope { sessions: Sessions::Only(vec![session.clone()]), ..scope.clone() };
    let listed = store.sessions(&own, 0, 1).await?.pop();
    let About { title, client, .. } =
        store.about_sessions(scope, vec![session.clone()]).await?.pop().unwrap_or_default();
    let account = match store.conversation(scope, &session).await? {
        Some(row) => store.memory(scope, &row.id).await?,
        None => None,
    };
    let mut notices = Vec::new();
    let commits = store.commits_of(scope, &session).await?;
    let commits = briefs(store, scope, commits, "that it led to", &mut notices).await?;

    let from = args.from.unwrap_or(0).max(0);
    let mut rows = store.surroundings(scope, &session, from, limit, limit).await?;
    let split = rows.iter().position(|row| row.ordinal >= Some(from)).unwrap_or(rows.len());
    let mut shown = rows.split_off(split);
    let previous = rows.first().and_then(|row| row.ordinal);
    let next = if shown.len() > limit { shown.pop().and_then(|row| row.ordinal) } else { None };
    let keys = shown.iter().map(|row| row.key).collect();
    let wanted = ReplacementQuery { memories: keys, ..ReplacementQuery::default() };
    let replaced = store.replacements(scope, wanted).await?.superseded;
    let replaced: HashMap<MemoryKey, &Superseded> = replaced.iter().map(|each| (each.memory, each)).collect();
    let headless = client.as_deref().is_some_and(|client| client.ends_with(HEADLESS));
    Ok(Output {
        session_id: escaped(session.as_str()),
        title: title.as_deref().and_then(line),
        client: client.map(|client| escaped(client.trim_end_matches(HEADLESS))),
        headless,
        branch: listed.as_ref().and_then(|row| row.branch.as_deref().map(escaped)),
        first: times::show_time(listed.as_ref().map_or(0, |row| row.first)),
        last: times::show_time(listed.as_ref().map_or(0, |row| row.last)),
        memories: listed.as_ref().map_or(0, |row| row.memories),
        tokens: listed.as_ref().map_or(0, |row| row.tokens),
        account_id: account.as_ref().map(|account| account.id.to_string()),
        account: account.map(|account| escaped(&marked(account.text, account.is_damaged))),
        commits,
        messages: shown.into_iter().map(|row| message(&replaced, row, &scope.reader)).collect(),
        next,
        previous,
        notices,
    })
}

fn message(replaced: &HashMap<MemoryKey, &Superseded>, row: Memory, reader: &AuthorId) -> Message {
    let superseded = replaced.get(&row.key).map(|superseded| superseded_by(superseded, &row.text));
    let role = row.role.map(|role| role.to_string());
    Message {
        number: row.ordinal.unwrap_or_default(),
        id: row.id.to_string(),
        kind: row.kind.to_string(),
        speaker: escaped(row.speaker.as_deref().or(role.as_deref()).unwrap_or("?")),
        author: row.author.other_than(reader),
        role,
        time: times::show_time(row.time),
        important: row.marked,
        superseded,
        text: escaped(&marked(row.text, row.is_damaged)),
    }
}
