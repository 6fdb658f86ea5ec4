//! Forgets memories, brings them back, or removes them for good.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{common, search_project_memory as search};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::memory::MemoryId;
use crate::scope::Scope;
use crate::store::{Forgotten, Selection, Store};

/// The name agents call it by.
pub const NAME: &str = "forget_context";
/// The name people are shown.
pub const TITLE: &str = "Forget memories";
/// What agents are told of it.
pub const DESCRIPTION: &str = "To free context without losing it use stash_context where offered. Forgets memories by \
    ids, session_id, source or query (exactly one); `undo` brings them back. Says exactly what it removed; with a \
    query, look first with `dry_run: true`.";

/// Memories a query may forget at once. Arbitrary: few enough to look at.
const BY_QUERY: usize = 20;

/// Operations of the past among which the one to undo is looked for. Arbitrary.
const OPERATIONS_READ: usize = 1000;

/// Ids named in an answer; more are only counted. Arbitrary.
const LISTED: usize = 100;

/// What the call takes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Ids from search results.
    pub ids: Option<Vec<String>>,
    /// Forget a whole conversation.
    pub session_id: Option<String>,
    /// Forget what came from this message id or commit.
    pub source: Option<String>,
    /// Forget the best matches, at most 20.
    pub query: Option<String>,
    /// `operation` of an earlier call, or `last`.
    pub undo: Option<String>,
    /// Remove for good.
    pub purge: Option<bool>,
    /// Only say what would be forgotten.
    pub dry_run: Option<bool>,
}

/// What the call answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// forgotten, would_forget, purged or undone.
    pub done: String,
    /// Names the operation for `undo`.
    pub operation: Option<String>,
    /// How many memories.
    pub count: usize,
    /// Their tokens (o200k).
    pub tokens: i64,
    /// Their ids, where there are at most 100.
    pub ids: Vec<String>,
    /// Of the ids given those that no memory has, or only one forgotten before.
    pub unknown: Vec<String>,
}

/// Forgets, undoes or purges; durable when it returns.
pub async fn run(engine: &Engine, args: Args) -> Result<Output> {
    let project = engine.project().await?;
    let owners = &engine.installation().await?.registry;
    let places = [(&project.store, &project.scope), (owners.memories(), owners.scope())];
    let now = engine.now();

    if let Some(operation) = &args.undo {
        let operation = Some(operation.trim()).filter(|name| *name != "last" && !name.is_empty());
        // The two stores keep their own operations: the one named is in one of them, the last is the later.
        let mut latest: Option<(i64, &Store, &Scope)> = None;
        for (store, scope) in places {
            let operations = store.operations(scope, OPERATIONS_READ).await?;
            let candidates = operations.iter().filter(|each| each.kind == "forget" && !each.undone);
            let own = candidates
                .filter(|each| operation.is_none_or(|name| each.id == name))
                .map(|each| each.at)
                .max();
            if let Some(at) = own.filter(|at| latest.is_none_or(|(known, ..)| *at > known)) {
                latest = Some((at, store, scope));
            }
        }
        let (store, scope) = latest.map_or(places[0], |(_, store, scope)| (store, scope));
        let undone = store.undo(scope, operation, now).await?;
        engine.wrote();
        return Ok(output("undone", undone));
    }

    let (store, scope, selection) = select(engine, places, &args).await?;
    if args.dry_run.unwrap_or(false) {
        let selected = store.selected(scope, &selection).await?;
        let unknown = unknown(&selection, &selected);
        return Ok(Output { unknown, ..output("would_forget", selected) });
    }
    let operation = format!("f{}", hex(engine.random::<6>()));
    let forgotten = store.forget(scope, &selection, &operation, now).await?;
    if forgotten.ids.is_empty() {
        return Err(Error::not_found("nothing matches, nothing was forgotten")
            .hint("search first; ids come with the results"));
    }
    let (done, forgotten) = match args.purge.unwrap_or(false) {
        true => ("purged", store.purge(scope, &forgotten.operation, now).await?),
        false => ("forgotten", forgotten),
    };
    engine.wrote();
    let unknown = unknown(&selection, &forgotten);
    Ok(Output { unknown, ..output(done, forgotten) })
}

/// Returns what to forget, and in which of the two places it is.
async fn select<'a>(
    engine: &Engine,
    places: [(&'a Store, &'a Scope); 2],
    args: &Args,
) -> Result<(&'a Store, &'a Scope, Selection)> {
    let [(store, scope), (owner_store, owner_scope)] = places;
    let given = [args.ids.is_some(), args.session_id.is_some(), args.source.is_some(), args.query.is_some()];
    if given.iter().filter(|is_given| **is_given).count() != 1 {
        return Err(Error::bad_input(
            "exactly one of `ids`, `session_id`, `source`, `query` and `undo` is needed",
        ));
    }
    if let Some(ids) = &args.ids {
        let ids: Vec<MemoryId> = ids.iter().map(|id| memory_id(id)).collect::<Result<_>>()?;
        let selection = Selection::Ids(ids);
        let in_project = store.selected(scope, &selection).await?;
        let owners = owner_store.selected(owner_scope, &selection).await?;
        return match (in_project.ids.is_empty(), owners.ids.is_empty()) {
            (true, false) => Ok((owner_store, owner_scope, selection)),
            (false, false) => Err(Error::bad_input("`ids` mixes memories of the project and of the owner")
                .hint("forget them in two calls; nothing was forgotten")),
            _ => Ok((store, scope, selection)),
        };
    }
    let selection = match (&args.session_id, &args.source, &args.query) {
        (Some(name), ..) => {
            let redactor = &engine.installation().await?.redactor;
            Selection::Session(common::session(redactor, "session_id", name)?)
        }
        (_, Some(source), _) => {
            let source = common::short("source", source)?;
            Selection::Matching(Filter { source_id: Some(source), ..Filter::default() })
        }
        (.., query) => {
            let query = query.clone().unwrap_or_default();
            let args = search::Args { query, k: Some(BY_QUERY), ..search::Args::default() };
            let found = search::run(engine, args).await?;
            let in_project = found.hits.iter().filter(|hit| hit.scope == "project");
            Selection::Ids(in_project.filter_map(|hit| MemoryId::parse(&hit.id)).collect())
        }
    };
    Ok((store, scope, selection))
}

/// Reads the id of a memory; whoever gives that of a commit is told where it belongs.
fn memory_id(text: &str) -> Result<MemoryId> {
    let is_commit = (7..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    common::memory_id("ids", text).map_err(|error| match is_commit {
        true => error.hint(
            "a commit is forgotten by ten digits or more of its id as `source`: `tiro forget --source ID`",
        ),
        false => error,
    })
}

/// Returns the ids of the selection that are not among those forgotten, each once.
fn unknown(selection: &Selection, forgotten: &Forgotten) -> Vec<String> {
    let Selection::Ids(ids) = selection else { return Vec::new() };
    let known: HashSet<&MemoryId> = forgotten.ids.iter().collect();
    let mut seen = HashSet::new();
    ids.iter().filter(|id| !known.contains(id) && seen.insert(*id)).map(MemoryId::to_string).collect()
}

fn output(done: &str, forgotten: Forgotten) -> Output {
    let ids = forgotten.ids.iter().map(MemoryId::to_string);
    Output {
        done: done.to_owned(),
        operation: Some(forgotten.operation).filter(|operation| !operation.is_empty()),
        count: forgotten.ids.len(),
        tokens: forgotten.tokens,
        ids: if forgotten.ids.len() <= LISTED { ids.collect() } else { Vec::new() },
        unknown: Vec::new(),
    }
}

fn hex<const N: usize>(bytes: [u8; N]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Output {
    /// Returns the answer in words.
    pub fn text(&self) -> String {
        let memories = common::counted(self.count, "memory", "memories");
        let what = format!("{memories} ({})", common::counted(self.tokens, "token", "tokens"));
        let ids = if self.ids.is_empty() { String::new() } else { format!(": {}", self.ids.join(", ")) };
        let operation = self.operation.as_deref().unwrap_or_default();
        let mut text = match self.done.as_str() {
            "undone" => format!("Brought back {what}{ids}."),
            "would_forget" => format!("Would forget {what}{ids}. Nothing was changed."),
            "purged" => format!("Removed {what} for good{ids}."),
            _ => format!(
                "Forgot {what}{ids}. To bring {} back: undo `{operation}`.",
                if self.count == 1 { "it" } else { "them" }
            ),
        };
        if !self.unknown.is_empty() {
            text += &format!("\nNo memory is called {}.", common::some(&self.unknown));
        }
        text
    }
}
