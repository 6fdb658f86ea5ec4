//! MCP resources. They show sessions and memories, which are read by their address.
//!
//! Clients let users choose a resource and attach it. Agents mostly use the tools. So resources only show the content
//! that `list_sessions` and `expand_detail` show.

use std::sync::Arc;

use crate::common::tool::Pending;
use crate::memory::authors::with_author;
use crate::memory::{expand_detail, list_sessions};
use tiro_base::budget::Budget;
use tiro_base::envelope;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::filter::Filter;
use tiro_base::humanize::counted;
use tiro_base::memory::marked;
use tiro_base::scope::{Scope, Sessions};
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_intake::session_id;
use tiro_text::chunk::excerpt::Shown;
use tiro_text::tokens::bounded;

/// The most tokens of a resource.
const MAX_TOKENS: usize = 20_000;

/// The number of tokens that are reserved for the line that says that messages are missing.
const NOTE_TOKENS: usize = 40;

/// The maximum number of memories of a conversation that are read. More memories would not fit.
const MOST_MEMORIES: usize = 2000;

/// The functions that read resources. Each already has the engine and the caller.
pub struct Resources {
    /// Returns the page of sessions that starts at the given cursor, or the first page if there is no cursor.
    pub sessions: Box<dyn Fn(Option<String>) -> Pending<SessionPage> + Send + Sync>,
    /// Returns the text of the session with this id, or a [`NotFound`](tiro_base::error::Kind::NotFound) error.
    pub session: Box<dyn Fn(String) -> Pending<String> + Send + Sync>,
    /// Returns the text of the memory with this id, or a [`NotFound`](tiro_base::error::Kind::NotFound) error.
    pub memory: Box<dyn Fn(String) -> Pending<String> + Send + Sync>,
    /// Notes the name of the client.
    pub met: Box<dyn Fn(&str) + Send + Sync>,
}

/// Some of the sessions, most recent first.
#[derive(Clone, Debug, Default)]
pub struct SessionPage {
    /// The sessions of this page.
    pub sessions: Vec<SessionEntry>,
    /// The cursor of the next page. Absent on the last page.
    pub next_cursor: Option<String>,
}

/// A session as a list shows it.
#[derive(Clone, Debug)]
pub struct SessionEntry {
    /// The session's id in the form that the tools accept.
    pub id: String,
    /// The title that clients show to users.
    pub title: String,
    /// Its number of memories and its times, in words.
    pub description: String,
}

impl Resources {
    /// Returns the resources of the caller's project.
    pub fn of(engine: &Arc<Engine>, caller: &Caller) -> Resources {
        // Reading resources changes nothing.
        let both = || (Arc::clone(engine), caller.clone());
        let (sessions, session, memory, met) = (both(), both(), both(), both());
        Resources {
            sessions: Box::new(move |cursor| {
                let (engine, caller) = sessions.clone();
                Box::pin(async move { page(&engine, &caller, cursor).await })
            }),
            session: Box::new(move |id| {
                let (engine, caller) = session.clone();
                Box::pin(async move { conversation(&engine, &caller, &id).await })
            }),
            memory: Box::new(move |id| {
                let (engine, caller) = memory.clone();
                Box::pin(async move {
                    let args = expand_detail::Args { id, max_tokens: Some(MAX_TOKENS), ..Default::default() };
                    Ok(expand_detail::run(&engine, &caller, args).await?.text())
                })
            }),
            met: Box::new(move |name| met.1.met_client(name, met.0.now())),
        }
    }
}

async fn page(engine: &Engine, caller: &Caller, cursor: Option<String>) -> Result<SessionPage> {
    let listed = list_sessions::run(engine, caller, list_sessions::Args { limit: Some(100), cursor }).await?;
    let entry = |session: list_sessions::Session| SessionEntry {
        title: session.session_id.clone(),
        description: format!(
            "{}, {} to {}",
            counted(session.memories, "memory", "memories"),
            session.first,
            session.last
        ),
        id: session.session_id,
    };
    Ok(SessionPage {
        sessions: listed.sessions.into_iter().map(entry).collect(),
        next_cursor: listed.next_cursor,
    })
}

/// Returns the text of the conversation. If the whole conversation doesn't fit, returns its latest messages and a line
/// that says that earlier messages are missing.
async fn conversation(engine: &Engine, caller: &Caller, id: &str) -> Result<String> {
    let project = caller.project(engine).await?;
    let installation = engine.installation().await?;
    let secret = installation.secret;
    let session = session_id(&project.redactor, "id", id)?;
    let scope = Scope { sessions: Sessions::Only(vec![session.clone()]), ..project.scope.clone() };
    let newest = project.store.list(&scope, &Filter::default(), None, MOST_MEMORIES + 1).await?;
    if newest.is_empty() {
        return Err(Error::not_found(format!("no session is called `{}`", quoted(&session)))
            .hint("list_sessions shows the sessions of the project"));
    }
    let mut budget = Budget::new(MAX_TOKENS - envelope::OVERHEAD_TOKENS - NOTE_TOKENS);
    let mut excerpts: Vec<String> = Vec::new();
    let mut is_cut = newest.len() > MOST_MEMORIES;
    for memory in newest.iter().take(MOST_MEMORIES) {
        let excerpt = Shown::of_memory(memory).excerpt(&marked(memory.text.clone(), memory.is_damaged));
        let excerpt = with_author(excerpt, memory.author.other_than(&scope.reader).as_deref());
        // The excerpt's tokens are not counted, because it is cheaper to subtract an upper bound from the budget.
        let tokens = bounded(&excerpt).high;
        if !budget.spend(tokens) {
            is_cut = true;
            break;
        }
        excerpts.push(excerpt);
    }
    excerpts.reverse();
    let mut text = envelope::wrap(&secret, &excerpts.concat());
    if is_cut {
        text += "\nEarlier messages did not fit; search_project_memory finds them.";
    }
    Ok(text)
}
