//! Brings segments back: returns their full texts in their original order. Stashed messages are no longer left out of
//! the contexts of their sessions.

mod answer;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Deserialize;

use self::answer::Merging;
use super::named;
use crate::common;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::humanize;
use tiro_base::memory::{Memory, MemoryId, MemoryKey};
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;
use tiro_host::summaries::messages::blocking;
use tiro_recall::stash::merge;

pub use self::answer::Output;

/// The name of the tool in MCP.
pub const NAME: &str = "merge_stashed_context";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Bring back stashed context";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Returns stashed segments in full, in their original order, without repetitions; \
    messages return to their session's assembled context. For previews use retrieve_stashed_context.";

/// The minimum number of tokens of an answer.
const LEAST: usize = 300;
/// The maximum number of tokens of an answer, because clients cut off tool results after 25,000 tokens.
const MOST: usize = 20_000;
/// The maximum number of segments of a call. Arbitrary: more than fit into an answer.
const MOST_SEGMENTS: usize = 1_000;

/// The arguments of the call.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Ids, SESSION#3, SESSION#0-49; the most important first.
    pub segment_ids: Vec<String>,
    /// 20000 if left out.
    #[schemars(range(min = LEAST))]
    pub max_tokens: Option<usize>,
    /// false: they leave the stash.
    pub keep: Option<bool>,
}

/// Returns the texts of the segments that fit, and brings these segments back.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    let (max_tokens, clamped) = common::max_tokens(caller, args.max_tokens, MOST, LEAST, MOST)?;
    merge(engine, caller, &args.segment_ids, args.keep.unwrap_or(true), max_tokens, clamped).await
}

/// Does the same as [`run`], but without a limit of tokens. This is for people.
pub async fn restore(engine: &Engine, caller: &WritingCaller, ids: &[String], keep: bool) -> Result<Output> {
    merge(engine, caller, ids, keep, usize::MAX, None).await
}

async fn merge(
    engine: &Engine,
    caller: &WritingCaller,
    names: &[String],
    keep: bool,
    max_tokens: usize,
    clamped: Option<String>,
) -> Result<Output> {
    if names.is_empty() {
        return Err(Error::bad_input("`segment_ids` is empty")
            .hint("retrieve_stashed_context finds segments and shows their ids"));
    }
    let project = caller.writable_project(engine).await?;
    let (names, begins) = continued(names)?;
    let mut ids = named::ids(engine, caller, "segment_ids", &names).await?;
    let given = ids.len();
    let mut seen = std::collections::HashSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    let repeated = given - ids.len();
    if ids.len() > MOST_SEGMENTS {
        return Err(Error::bad_input(format!(
            "`segment_ids` names {} segments, more than {MOST_SEGMENTS}",
            ids.len()
        ))
        .hint("nothing was changed; merge them in several calls"));
    }
    let mut notices: Vec<String> = clamped.into_iter().collect();
    if repeated > 0 {
        notices.push(format!(
            "{} more than once; each is merged once",
            humanize::counted(repeated, "segment was named", "segments were named")
        ));
    }
    let segments = read(engine, caller, &ids).await?;
    let plan = merge::plan(&segments);
    let secret = engine.installation().await?.secret;
    let form = caller.form();
    let reader = caller.author().clone();
    let merging = Merging { segments, plan, begins, max_tokens, form, keep, notices, secret, reader };
    let (merging, mut output) = blocking(move || {
        let output = answer::fit(&merging);
        (merging, output)
    })
    .await?;

    // The segments that are brought back are those that the answer shows to their end, and those that it shows in
    // another segment's text.
    let back = output.brought_back();
    let back: Vec<MemoryId> = ids.into_iter().filter(|id| back.contains(&id.to_string())).collect();
    let living = project.store.unstash(&project.scope, &back, keep).await?;
    let gone: Vec<&MemoryId> = back.iter().filter(|id| !living.contains(id)).collect();
    if !gone.is_empty() {
        // If a segment was forgotten during the merge, its text is not shown.
        let left: Vec<String> = gone.iter().map(|id| id.to_string()).collect();
        let merging = merging.without(&left);
        output = blocking(move || answer::fit(&merging)).await?;
    }
    engine.wrote();
    Ok(output)
}

/// Divides names such as `m123@4096` into the name and the byte. Such a name means a segment that did not fit as a
/// whole, and continues it at this byte.
fn continued(names: &[String]) -> Result<(Vec<String>, HashMap<String, usize>)> {
    let mut begins = HashMap::new();
    let mut plain = Vec::with_capacity(names.len());
    for name in names {
        let name = name.trim();
        match name.rsplit_once('@').filter(|(id, _)| MemoryId::parse(id).is_some()) {
            Some((id, place)) => {
                let place = place.parse().map_err(|_| {
                    Error::bad_input(format!("`segment_ids` has no place after `@`: `{}`", quoted(name)))
                        .hint("use the name that `left_out` gave")
                })?;
                begins.insert(id.to_owned(), place);
                plain.push(id.to_owned());
            }
            None => plain.push(name.to_owned()),
        }
    }
    Ok((plain, begins))
}

/// Returns the segments called `ids`, in this order.
///
/// Errors with [`NotFound`](tiro_base::error::Kind::NotFound) if one of them is not a living memory, or is not in the
/// stash.
async fn read(engine: &Engine, caller: &Caller, ids: &[MemoryId]) -> Result<Vec<Memory>> {
    let project = caller.project(engine).await?;
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let keys = named::keys(engine, caller, ids).await?;
    let stashed: Vec<MemoryKey> =
        store.stashed(scope, keys.clone()).await?.into_iter().map(|row| row.key).collect();
    let missing: Vec<String> = ids
        .iter()
        .zip(&keys)
        .filter(|(_, key)| stashed.binary_search(key).is_err())
        .map(|(id, _)| id.to_string())
        .collect();
    if !missing.is_empty() {
        return Err(Error::not_found(format!("not in the stash: {}", humanize::some(&missing)))
            .hint("nothing was changed; expand_detail shows other memories in full"));
    }
    let memories = store.memories(scope, keys.clone()).await?;
    let mut by_key: HashMap<MemoryKey, Memory> =
        memories.into_iter().map(|memory| (memory.key, memory)).collect();
    Ok(keys.iter().filter_map(|key| by_key.remove(key)).collect())
}
