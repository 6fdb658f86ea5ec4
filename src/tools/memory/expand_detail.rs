//! Opens one memory: its full text and what stands around it.

mod page;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

use self::page::{Page, fit};
use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::{Error, Result, quoted};
use crate::memory::{Memory, MemoryId, MemoryKey};
use crate::retrieve::query;
use crate::scope::Scope;
use crate::store::Store;
use crate::summaries::levels::{self, Depth, Walk};
use crate::tools::common;
use crate::tools::common::schema::one_of;
use crate::tools::memory::linked;

pub use self::page::Output;

/// The name agents call it by.
pub const NAME: &str = "expand_detail";
/// The name people are shown.
pub const TITLE: &str = "Open a memory";
/// What agents are told of it.
pub const DESCRIPTION: &str = "To find memories use search_project_memory. Opens one: its full text and what \
    surrounds it; a summary down to its messages.";

/// Tokens of an answer unless the caller says otherwise.
const MAX_TOKENS: usize = 4000;

/// The least that holds the envelope and a line. Arbitrary.
const LEAST_TOKENS: usize = 150;

/// Tokens of an answer at most: clients cut tool results at 25,000.
pub(crate) const MOST_TOKENS: usize = 20_000;

/// Neighbours on one side at most.
const MOST_NEIGHBOURS: usize = 20;

/// How many references in a row are followed from the memory.
const MAX_HOPS: usize = 2;

/// What the call takes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Id from an answer, of a commit, or SESSION#NUMBER.
    pub id: String,
    /// Of a summary; the next if left out.
    #[serde(default)]
    #[schemars(schema_with = "depths")]
    pub level: Option<Depth>,
    /// One level up.
    #[serde(default)]
    pub collapse: bool,
    /// Only what has to do with this topic.
    #[schemars(description = "")]
    pub focus: Option<String>,
    /// Messages, 0 to 20; 2 if left out.
    pub before: Option<usize>,
    /// Messages after it, 0 to 20; 2 if left out.
    #[schemars(description = "")]
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

/// Reads the memory and what fits of its surroundings.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let (budget, clamped) = common::max_tokens(args.max_tokens, MAX_TOKENS, LEAST_TOKENS, MOST_TOKENS)?;
    let (before, after) = (args.before.unwrap_or(2), args.after.unwrap_or(2));
    if before > MOST_NEIGHBOURS || after > MOST_NEIGHBOURS {
        return Err(Error::bad_input(format!("`before` and `after` are at most {MOST_NEIGHBOURS}")));
    }
    let walk = Walk {
        level: args.level,
        collapse: args.collapse,
        focus: args.focus.as_deref().unwrap_or_default().trim().to_owned(),
    };
    let (store, scope, memory) = named(engine, caller, &args.id, &walk).await?;
    let memory = match walk.leads_away() && memory.seq.is_stored() {
        true => levels::around(engine, caller, memory, &walk).await?,
        false => memory,
    };
    let start = match args.cursor.as_deref() {
        None => 0,
        Some(cursor) => offset(cursor, &memory.text)?,
    };
    let around = match (&memory.session, memory.ordinal) {
        (Some(session), Some(ordinal)) if start == 0 => {
            store.surroundings(scope, session, ordinal, before, after).await?
        }
        _ => Vec::new(),
    };
    let linked = if memory.seq.is_stored() { follow(store, scope, memory.seq).await? } else { Vec::new() };
    let linked = store.memories(scope, linked.into_iter().take(MOST_NEIGHBOURS).collect()).await?;
    let references = linked.iter().map(|memory| memory.id.to_string()).collect();
    let linked = if memory.seq.is_stored() { linked::of(store, scope, &memory).await? } else { Vec::new() };
    let secret = engine.installation().await?.secret;
    let notices = clamped.into_iter().collect();
    let page = Page { secret, memory, start, around, references, linked, notices, budget };
    // Counting loads the tokenizer's dictionary the first time, which blocks.
    Ok(tokio::task::spawn_blocking(move || fit(page)).await.expect("fitting does not panic"))
}

/// Returns what `text` names: a commit, a message by its session and place, a summary, or any other memory.
async fn named<'e>(
    engine: &'e Engine,
    caller: &'e Caller,
    text: &str,
    walk: &Walk,
) -> Result<(&'e Store, &'e Scope, Memory)> {
    if let Some(id) = commit_named(engine, caller, text).await? {
        return find(engine, caller, &id).await;
    }
    let project = caller.project(engine).await?;
    if let Some((session, ordinal)) = levels::place(&project.redactor, "id", text)? {
        return match levels::message(project, &session, ordinal).await? {
            Some(memory) => Ok((&project.store, &project.scope, memory)),
            None => Err(Error::not_found(format!("no message {ordinal} in session `{}`", quoted(&session)))
                .hint("list_sessions names the sessions; what was forgotten can't be opened")),
        };
    }
    let id = MemoryId::read("id", text).map_err(|error| {
        error.hint(
            "ids come with search results: `m` and 13 letters and digits, SESSION#NUMBER of a message, or seven \
             digits or more of a commit's id",
        )
    })?;
    match levels::summary(engine, caller, &id, walk).await? {
        Some(memory) => Ok((&project.store, &project.scope, memory)),
        None => find(engine, caller, &id).await,
    }
}

/// Returns the memories that are reached over at most [`MAX_HOPS`] references, in either direction, the
/// nearest first.
async fn follow(store: &Store, scope: &Scope, memory: MemoryKey) -> Result<Vec<MemoryKey>> {
    let mut reached = vec![memory];
    let mut frontier = vec![memory];
    for _ in 0..MAX_HOPS {
        let mut next = Vec::new();
        for seq in frontier {
            for linked in store.references(scope, seq).await? {
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

/// Returns the id of the commit that `text` names by at least seven digits of its own id; `None` where it doesn't.
async fn commit_named(engine: &Engine, caller: &Caller, text: &str) -> Result<Option<MemoryId>> {
    let [name] = query::commit_ids(text)[..] else { return Ok(None) };
    let project = caller.project(engine).await?;
    let Some((seq, _)) = project.store.commit_named(&project.scope, name).await? else { return Ok(None) };
    let memory = project.store.memories(&project.scope, vec![seq]).await?.pop();
    Ok(memory.map(|memory| memory.id))
}

/// Returns the memory called `id` with the store it is in: the project's, else the owner's.
async fn find<'e>(
    engine: &'e Engine,
    caller: &'e Caller,
    id: &MemoryId,
) -> Result<(&'e Store, &'e Scope, Memory)> {
    let project = caller.project(engine).await?;
    if let Some(memory) = project.store.memory(&project.scope, id).await? {
        return Ok((&project.store, &project.scope, memory));
    }
    let owners = &engine.installation().await?.registry;
    match owners.memories().memory(owners.scope(), id).await? {
        Some(memory) => Ok((owners.memories(), owners.scope(), memory)),
        None => Err(Error::not_found(format!("no memory is called `{id}`"))
            .hint("ids come with search results; what was forgotten can't be opened")),
    }
}

/// Reads a cursor: a byte offset at the boundary of a character.
fn offset(cursor: &str, text: &str) -> Result<usize> {
    cursor
        .parse::<usize>()
        .ok()
        .filter(|offset| text.is_char_boundary(*offset) && *offset < text.len())
        .ok_or_else(|| {
            Error::bad_input(format!("`cursor` is none of this memory: `{}`", quoted(cursor)))
                .hint("leave it out to start anew")
        })
}
