//! Opens one memory: its full text, the messages around it and its links. Also opens a session by its name.

mod page;

use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use self::page::{Page, fit};
use crate::common;
use crate::common::schema::one_of;
use crate::memory::beside::{linked, replaced};
use crate::memory::named::{self, Stored};
use tiro_base::error::{Error, Kind, Result, quoted};
use tiro_base::memory::{Memory, MemoryId, MemoryKey};
use tiro_base::scope::Scope;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_host::summaries::levels::{self, Depth, Walk};
use tiro_recall::retrieve::query;
use tiro_store::ReadStore;

pub use self::page::Output;

/// The name of the tool in MCP.
pub const NAME: &str = "expand_detail";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Open a memory";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Opens one memory or session: its text and what surrounds it. A summary opens level \
    by level. To find memories use search_project_memory.";

/// The budget of an answer, in tokens, if the call names none.
const MAX_TOKENS: usize = 4000;

/// The smallest budget, in tokens: enough for the envelope and a line. Arbitrary.
const LEAST_TOKENS: usize = 150;

/// The largest budget, in tokens: clients cut off tool results after 25,000 tokens.
pub const MOST_TOKENS: usize = 20_000;

/// The maximum number of neighbours that a call may request on each side of the memory.
const MOST_NEIGHBOURS: usize = 20;

/// The maximum length of a chain of references that is followed from the memory.
const MAX_HOPS: usize = 2;

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Id of a memory or commit, SESSION#NUMBER, or a session.
    pub id: String,
    /// For summaries; next deeper level if left out.
    #[serde(default)]
    #[schemars(schema_with = "depths")]
    pub level: Option<Depth>,
    /// One level up.
    #[serde(default)]
    pub collapse: bool,
    /// Limits a summary to this topic.
    #[schemars(description = "")]
    pub focus: Option<String>,
    /// Messages before it; 2 if left out.
    #[schemars(range(max = MOST_NEIGHBOURS))]
    pub before: Option<usize>,
    /// Messages after it; 2 if left out.
    #[schemars(description = "", range(max = MOST_NEIGHBOURS))]
    pub after: Option<usize>,
    /// 4000 if left out.
    #[schemars(range(min = LEAST_TOKENS))]
    pub max_tokens: Option<usize>,
    /// `next_cursor` of the answer before.
    #[schemars(description = "")]
    pub cursor: Option<String>,
}

fn depths(_: &mut SchemaGenerator) -> Schema {
    one_of(&["brief", "standard", "detailed", "messages"])
}

/// Reads the memory, and as many of its neighbours, references and links as fit.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let (budget, clamped) =
        common::max_tokens(caller, args.max_tokens, MAX_TOKENS, LEAST_TOKENS, MOST_TOKENS)?;
    let (before, after) = (args.before.unwrap_or(2), args.after.unwrap_or(2));
    if before > MOST_NEIGHBOURS || after > MOST_NEIGHBOURS {
        return Err(Error::bad_input(format!("`before` and `after` are at most {MOST_NEIGHBOURS}")));
    }
    let walk = Walk {
        level: args.level,
        collapse: args.collapse,
        focus: args.focus.as_deref().unwrap_or_default().trim().to_owned(),
    };
    let (opened, is_session) = resolve(engine, caller, &args.id, &walk).await?;
    let (store, scope, memory) = opened;
    let memory = match walk.leads_away() && memory.key.is_stored() {
        true => levels::around(engine, caller, memory, &walk).await?,
        false => memory,
    };
    let start = match args.cursor.as_deref() {
        None => 0,
        Some(cursor) => offset(cursor, &memory.text)?,
    };
    let around = match (&memory.session, memory.ordinal) {
        (Some(session), Some(ordinal)) if start == 0 => {
            store.surroundings(&scope, session, ordinal, before, after).await?
        }
        _ => Vec::new(),
    };
    let linked =
        if memory.key.is_stored() { follow(store.as_ref(), &scope, memory.key).await? } else { Vec::new() };
    let linked = store.memories(&scope, linked.into_iter().take(MOST_NEIGHBOURS).collect()).await?;
    let references = linked.iter().map(|memory| memory.id.to_string()).collect();
    let linked = match memory.key.is_stored() || is_session {
        true => linked::of(store.as_ref(), &scope, &memory).await?,
        false => Vec::new(),
    };
    let superseded = replaced::of(store.as_ref(), &scope, &[&memory]).await?.into_values().next();
    let secret = engine.installation().await?.secret;
    let notices = clamped.into_iter().collect();
    let form = caller.form();
    let reader = caller.author().clone();
    let page =
        Page { secret, memory, superseded, reader, start, around, references, linked, notices, budget, form };
    // The first count loads the tokenizer's dictionary, which blocks the thread.
    Ok(tokio::task::spawn_blocking(move || fit(page)).await.expect("fitting does not panic"))
}

/// Returns the memory that `text` names, and whether it stands for a session, which is shown as a summary or as its
/// messages. As in `tiro show`, a session with exactly that name takes precedence, then an id, then a session that has
/// `text` as an alias or as a part of its name or title.
///
/// Errors with [`NotFound`](tiro_base::error::Kind::NotFound) if there is nothing with that name.
async fn resolve(engine: &Engine, caller: &Caller, text: &str, walk: &Walk) -> Result<(Stored, bool)> {
    let project = caller.project(engine).await?;
    let session = match named::whole(&project, text).await? {
        Some(whole) => whole,
        None => match by_id(engine, caller, text, walk).await {
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::BadInput) => {
                named::sessions(&project, text).await?.only()?.cloned().ok_or(error)?
            }
            found => return Ok((found?, false)),
        },
    };
    let shown = levels::session(engine, caller, &session, walk).await?;
    Ok((stored(&project, shown), true))
}

/// Returns the memory with the id `text`. The id may name a commit, a message by session and number, a summary, or any
/// other memory. Errors with [`NotFound`](tiro_base::error::Kind::NotFound) if there is no such memory.
async fn by_id(engine: &Engine, caller: &Caller, text: &str, walk: &Walk) -> Result<Stored> {
    if let Some(id) = commit_named(engine, caller, text).await? {
        return find(engine, caller, &id).await;
    }
    let project = caller.project(engine).await?;
    if let Some((session, ordinal)) = levels::place(&project.redactor, "id", text)? {
        return match levels::message(&project, &session, ordinal).await? {
            Some(memory) => Ok(stored(&project, memory)),
            None => Err(Error::not_found(format!("no message {ordinal} in session `{}`", quoted(&session)))
                .hint("list_sessions shows the sessions; a forgotten message can't be opened")),
        };
    }
    if let [name] = query::commit_ids(text)[..]
        && name == text.trim()
    {
        let message =
            format!("no stored commit has an id that begins with `{}`, or several do", quoted(name));
        return Err(
            Error::not_found(message).hint("give more of its digits, or import it with `tiro import git`")
        );
    }
    let id = MemoryId::read("id", text).map_err(|error| {
        error.hint(
            "search results show ids: `m` and 13 letters and digits, SESSION#NUMBER of a message, or seven \
             digits or more of a commit's id; list_sessions shows the names of sessions",
        )
    })?;
    match levels::summary(engine, caller, &id, walk).await? {
        Some(memory) => Ok(stored(&project, memory)),
        None => find(engine, caller, &id).await,
    }
}

/// Returns a memory of the project with its store and scope.
fn stored(project: &OpenProject, memory: Memory) -> Stored {
    (Arc::clone(&project.store), project.scope.clone(), memory)
}

/// Returns the memories that are at most [`MAX_HOPS`] references away from `memory`, the nearest first. References are
/// followed in both directions.
async fn follow(store: &dyn ReadStore, scope: &Scope, memory: MemoryKey) -> Result<Vec<MemoryKey>> {
    let mut reached = vec![memory];
    let mut frontier = vec![memory];
    for _ in 0..MAX_HOPS {
        let mut next = Vec::new();
        for key in frontier {
            for linked in store.references(scope, key).await? {
                if !reached.contains(&linked) && reached.len() <= MOST_NEIGHBOURS {
                    reached.push(linked);
                    next.push(linked);
                }
            }
        }
        frontier = next;
    }
    reached.remove(0);
    Ok(reached)
}

/// Returns the memory id of the commit whose SHA begins with `text`. Returns `None` if `text` has fewer than seven
/// digits, or if no stored commit has such a SHA.
async fn commit_named(engine: &Engine, caller: &Caller, text: &str) -> Result<Option<MemoryId>> {
    let [name] = query::commit_ids(text)[..] else { return Ok(None) };
    let project = caller.project(engine).await?;
    let Some((key, _)) = project.store.commit_named(&project.scope, name).await? else { return Ok(None) };
    let memory = project.store.memories(&project.scope, vec![key]).await?.pop();
    Ok(memory.map(|memory| memory.id))
}

/// Returns the memory with the id `id`, with its store and scope. First searches the project's store, then the owner's
/// store. Errors with [`NotFound`](tiro_base::error::Kind::NotFound) if neither contains the memory.
async fn find(engine: &Engine, caller: &Caller, id: &MemoryId) -> Result<Stored> {
    let project = caller.project(engine).await?;
    named::memory(engine, &project, id).await?.ok_or_else(|| {
        Error::not_found(format!("no memory is called `{id}`"))
            .hint("search results show ids; a forgotten memory can't be opened")
    })
}

/// Reads a cursor, which is a byte offset at the boundary of a character.
fn offset(cursor: &str, text: &str) -> Result<usize> {
    cursor
        .parse::<usize>()
        .ok()
        .filter(|offset| text.is_char_boundary(*offset) && *offset < text.len())
        .ok_or_else(|| {
            Error::bad_input(format!("`cursor` was not returned for this memory: `{}`", quoted(cursor)))
                .hint("leave it out to start at the beginning")
        })
}
