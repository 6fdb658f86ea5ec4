//! Forgets memories, restores forgotten ones, or removes memories for good.

mod answer;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common;
use crate::memory::authors;
use crate::memory::search_project_memory as search;
use tiro_base::envelope;
use tiro_base::error::{Error, Result};
use tiro_base::filter::Filter;
use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::Scope;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;
use tiro_host::exchange::connection::Place;
use tiro_host::summaries::levels;
use tiro_host::tuning::{MATCHING_SHARE, NAMED_SHARE};
use tiro_recall::retrieve;
use tiro_store::{Forgotten, Reach, Selection, Store};
use tiro_text::tokens;

/// The name of the tool in MCP.
pub const NAME: &str = "forget_context";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Forget memories";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Forgets memories by ids, session_id, source or query (exactly one); `undo` \
    brings them back. Returns exactly what it removed; with a query, look first with `dry_run: true`. To \
    correct a fact store the right one with store_memory.";

/// The maximum number of memories that one query forgets. Arbitrary: few enough to check by eye.
const BY_QUERY: usize = 20;

/// The budget of the search for matches, in tokens: large enough for [`BY_QUERY`] hits.
const SEARCH_TOKENS: usize = 20_000;

/// For each memory that a query would forget, at most this many tokens of its beginning are shown.
const EXCERPT: usize = 30;

/// The number of latest operations that are read to find the one to undo. Arbitrary.
const OPERATIONS_READ: usize = 1000;

/// The maximum number of ids that an answer lists. Arbitrary.
const LISTED: usize = 100;

/// The arguments of the call.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// Ids, or SESSION#NUMBER.
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
    /// Only report what would be done.
    pub dry_run: Option<bool>,
}

/// The answer of the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// forgotten, would_forget, purged, undone or would_undo.
    pub done: String,
    /// The id of the operation, to undo it.
    pub operation: Option<String>,
    /// How many memories were forgotten, restored or removed, or in a dry run would be.
    pub count: usize,
    /// The tokens of these memories (o200k).
    pub tokens: i64,
    /// The ids of these memories, if there are at most 100.
    pub ids: Vec<String>,
    /// The authors of these memories, if there are others than the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// The given ids that belong to no memory or to a forgotten one.
    pub unknown: Vec<String>,
    /// Memories that others shared: only they or an admin forget them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// How many matches of the query were not forgotten: others match much better, or they lack half of its words.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// How many of the removed memories had been forgotten before.
    #[serde(skip_serializing_if = "is_zero")]
    pub forgotten_before: usize,
    /// How many forgotten memories with the query's words were not removed. Repeating the call removes more of them.
    #[serde(skip_serializing_if = "is_zero")]
    pub forgotten_left_out: usize,
    /// Paths of stores of no registered project, such as after a merge: the removed memories may still be in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strays: Vec<String>,
    /// Says that quoted text is data, not instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caution: Option<&'static str>,
    /// The memories that a query would forget.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<Match>,
    /// Whether the project is connected with a server.
    #[serde(skip)]
    is_connected: bool,
    #[serde(skip)]
    secret: [u8; 32],
}

/// A memory that a query would forget.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Match {
    /// Its id.
    pub id: String,
    /// The beginning of its best chunk.
    pub text: String,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The memories that a call selects, with information about the selection for the answer.
#[derive(Default)]
struct Selected<'a> {
    /// The selection for each store that contains some of the selected memories.
    parts: Vec<(&'a dyn Store, &'a Scope, Selection)>,
    unknown: Vec<String>,
    left_out: usize,
    forgotten_left_out: usize,
    matches: Vec<Match>,
}

/// Forgets, undoes or purges. The change is durable when the call returns.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    let project = caller.writable_project(engine).await?;
    let owners = &engine.installation().await?.registry;
    let owners_scope = project.scope.owner_wide();
    let places = [(project.store.as_ref(), &project.scope), (owners.memories().as_ref(), &owners_scope)];
    let now = engine.now();
    let is_dry = args.dry_run.unwrap_or(false);
    if let Some(operation) = &args.undo {
        return undo(engine, places, operation, is_dry).await;
    }
    // A purge also selects forgotten memories, because their text stays in the files until they are purged.
    let is_purge = args.purge.unwrap_or(false);
    let reach = if is_purge { Reach::Forgotten } else { Reach::Living };
    let selected = select(engine, caller, places, &args, reach).await?;
    let operation = engine.operation();
    let (mut all, mut before, mut authors) = (Forgotten::default(), 0, BTreeSet::new());
    for (store, scope, selection) in &selected.parts {
        let named = store.selected(scope, selection, reach).await?;
        authors.extend(authors::others(*store, scope, &named.ids[..named.ids.len().min(LISTED)]).await?);
        if is_purge {
            let living = store.selected(scope, selection, Reach::Living).await?;
            before += named.ids.len().saturating_sub(living.ids.len());
        }
        all.add(match (is_dry, is_purge) {
            (true, _) => named,
            (false, true) => store.forget_for_good(scope, selection, &operation, now).await?,
            (false, false) => store.forget(scope, selection, &operation, now).await?,
        });
    }
    if is_purge && !is_dry {
        // If an earlier purge was interrupted, the memories that it left are forgotten but still stored. They are
        // removed now.
        for (store, scope) in places {
            all.add(store.finish_purges(scope, Millis::MAX).await?);
        }
        owners.forget_sent(&project.scope.project, &all.sessions).await?;
    }
    // A stray store was merged into another project, or its project is unknown.
    let strays = if is_purge && !is_dry { owners.strays().await? } else { Vec::new() };
    let (mut unknown, mut kept) = (unknown(&selected.parts, &all), BTreeMap::new());
    for (store, scope, _) in &selected.parts {
        kept.extend(authors::of_others(*store, scope, &unknown).await?);
    }
    unknown.retain(|id| !kept.contains_key(id));
    let done = match (is_dry, is_purge) {
        (true, _) => "would_forget",
        (false, true) => "purged",
        (false, false) => "forgotten",
    };
    if !is_dry && all.ids.is_empty() && !kept.is_empty() {
        return Err(Error::bad_input(format!("nothing was forgotten: {}", authors::listed(&kept)))
            .hint("only who shared a memory or an admin forgets it"));
    }
    if !is_dry && all.ids.is_empty() {
        return Err(Error::not_found("nothing matches, nothing was forgotten")
            .hint("search first: search results show ids"));
    }
    let answer = Output {
        authors: authors.into_iter().collect(),
        unknown: unknown.iter().map(MemoryId::to_string).chain(selected.unknown).collect(),
        kept: kept.keys().map(MemoryId::to_string).collect(),
        left_out: selected.left_out,
        forgotten_before: before,
        forgotten_left_out: selected.forgotten_left_out,
        strays: strays.iter().map(|row| row.file.display().to_string()).collect(),
        is_connected: Place::of(&engine.config().data_dir, &project.scope.project).connection()?.is_some(),
        ..output(done, all)
    };
    if is_dry {
        let mut matches = selected.matches;
        matches.retain(|each| !answer.kept.contains(&each.id));
        let caution = (!matches.is_empty()).then_some(envelope::CAUTION);
        let secret = engine.installation().await?.secret;
        return Ok(Output { caution, matches, secret, ..answer });
    }
    engine.wrote();
    Ok(answer)
}

/// Restores the memories that the operation forgot. In a dry run, only returns which memories it would restore.
async fn undo(
    engine: &Engine,
    places: [(&dyn Store, &Scope); 2],
    operation: &str,
    is_dry: bool,
) -> Result<Output> {
    let operation = Some(operation.trim()).filter(|name| *name != "last" && !name.is_empty());
    // Each store records its own operations. Without a name, the latest operation of both stores is undone; an expiry
    // is undone only by name. An operation with a time in the future was recorded with a wrong clock.
    let now = engine.now();
    let mut latest: Option<((bool, i64), &dyn Store, &Scope)> = None;
    for (store, scope) in places {
        let operations = store.operations(scope, OPERATIONS_READ).await?;
        let open = operations.iter().filter(|each| !each.undone);
        let named = open.filter(|each| operation.map_or(each.kind == "forget", |name| each.id == name));
        let own = named.map(|each| (each.at <= now, each.at)).max();
        if let Some(at) = own.filter(|at| latest.is_none_or(|(known, ..)| *at > known)) {
            latest = Some((at, store, scope));
        }
    }
    let (store, scope) = latest.map_or(places[0], |(_, store, scope)| (store, scope));
    if is_dry {
        return Ok(output("would_undo", store.undoable(scope, operation).await?));
    }
    let undone = store.undo(scope, operation, now).await?;
    engine.wrote();
    Ok(output("undone", undone))
}

/// Returns the memories to forget, by store.
///
/// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) unless exactly one selector is given. Also returns this
/// error if a call that isn't a purge selects memories of both stores.
async fn select<'a>(
    engine: &Engine,
    caller: &Caller,
    places: [(&'a dyn Store, &'a Scope); 2],
    args: &Args,
    reach: Reach,
) -> Result<Selected<'a>> {
    let given = [args.ids.is_some(), args.session_id.is_some(), args.source.is_some(), args.query.is_some()];
    if given.iter().filter(|is_given| **is_given).count() != 1 {
        return Err(Error::bad_input(
            "exactly one of `ids`, `session_id`, `source`, `query` and `undo` is needed",
        ));
    }
    let mut selected = Selected::default();
    let selection = match (&args.ids, &args.session_id, &args.source) {
        (Some(ids), ..) => {
            let found = levels::ids(engine, caller, "ids", ids)
                .await
                .map_err(|error| with_commit_hint(ids, error))?;
            let (mut ids, unknown) = found;
            for text in unknown {
                match forgotten_place(engine, caller, &text).await? {
                    Some(id) if reach == Reach::Forgotten => ids.push(id),
                    _ => selected.unknown.push(text),
                }
            }
            Selection::Ids(ids)
        }
        (_, Some(name), _) => {
            let redactor = &caller.project(engine).await?.redactor;
            Selection::Session(tiro_intake::session_id(redactor, "session_id", name)?)
        }
        (.., Some(source)) => {
            let source = common::short("source", source)?;
            Selection::Matching(Filter { source_id: Some(source), ..Filter::default() })
        }
        (None, None, None) => {
            by_query(engine, caller, places, args.query.clone().unwrap_or_default(), reach, &mut selected)
                .await?;
            return Ok(selected);
        }
    };
    for (store, scope) in places {
        if !store.selected(scope, &selection, reach).await?.ids.is_empty() {
            selected.parts.push((store, scope, selection.clone()));
        }
    }
    match (&selected.parts[..], reach) {
        // An operation that can be undone changes one store only.
        ([_, _], Reach::Living) => {
            Err(Error::bad_input("the selection has memories of the project and of the owner")
                .hint("give their ids in two calls; nothing was forgotten"))
        }
        ([], _) => {
            selected.parts.push((places[0].0, places[0].1, selection));
            Ok(selected)
        }
        _ => Ok(selected),
    }
}

/// Returns the id of the forgotten message that `text` names in the form SESSION#NUMBER.
async fn forgotten_place(engine: &Engine, caller: &Caller, text: &str) -> Result<Option<MemoryId>> {
    let project = caller.project(engine).await?;
    match levels::place(&project.redactor, "ids", text)? {
        Some((session, ordinal)) => project.store.forgotten_at(&project.scope, &session, ordinal).await,
        None => Ok(None),
    }
}

/// Selects the memories of the project that match best. If `reach` includes forgotten memories, also selects the
/// forgotten memories that contain all words of the query, in either store.
async fn by_query<'a>(
    engine: &Engine,
    caller: &Caller,
    places: [(&'a dyn Store, &'a Scope); 2],
    query: String,
    reach: Reach,
    selected: &mut Selected<'a>,
) -> Result<()> {
    let words = retrieve::query::terms(&query);
    let max_tokens = Some(SEARCH_TOKENS);
    let args = search::Args { query, k: Some(BY_QUERY), max_tokens, ..search::Args::default() };
    let mut found = search::search(engine, caller, args).await?.hits;
    found.retain(|hit| hit.scope.is_none());
    // The index of a commit also contains words of its changes, but only its message is forgotten.
    let named = |text: &str| words.iter().filter(|word| text.to_lowercase().contains(word.as_str())).count();
    let before = found.len();
    found.retain(|hit| named(&hit.text) as f64 >= NAMED_SHARE * words.len() as f64);
    let best = found.iter().map(|hit| hit.relevance).fold(0.0, f64::max);
    found.retain(|hit| hit.relevance >= MATCHING_SHARE * best);
    selected.left_out = before - found.len();
    selected.matches = found.iter().map(|hit| shown(&hit.id, &hit.text)).collect();
    let mut ids: Vec<MemoryId> = found.iter().filter_map(|hit| MemoryId::parse(&hit.id)).collect();
    for (store, scope) in places {
        if reach == Reach::Forgotten {
            let (forgotten, others) = store.forgotten_with(scope, words.clone(), BY_QUERY).await?;
            selected.forgotten_left_out += others;
            selected.matches.extend(forgotten.iter().map(|(id, text)| shown(id.as_str(), text)));
            ids.extend(forgotten.into_iter().map(|(id, _)| id));
        }
        selected.parts.push((store, scope, Selection::Ids(std::mem::take(&mut ids))));
    }
    Ok(())
}

/// Returns the beginning of a memory on one line, cut to [`EXCERPT`] tokens.
fn shown(id: &str, text: &str) -> Match {
    let line = text.split_whitespace().take(EXCERPT).collect::<Vec<_>>().join(" ");
    let start = tokens::truncate(&line, EXCERPT);
    let is_whole = start.len() == line.len() && text.split_whitespace().nth(EXCERPT).is_none();
    let more = if is_whole { "" } else { "…" };
    Match { id: id.to_owned(), text: format!("{start}{more}") }
}

/// Adds a hint to `error` on how to forget a commit, if one of `ids` looks like a commit's id.
fn with_commit_hint(ids: &[String], error: Error) -> Error {
    let is_commit = |text: &String| {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (7..=40).contains(&text.len()) && is_hex
    };
    match ids.iter().any(is_commit) {
        true => error.hint(
            "to forget a commit, give ten digits or more of its id as `source`: `tiro forget --source ID`",
        ),
        false => error,
    }
}

/// Returns each selected id that no memory in `forgotten` has, without repeats.
fn unknown(parts: &[(&dyn Store, &Scope, Selection)], forgotten: &Forgotten) -> Vec<MemoryId> {
    let known: HashSet<&MemoryId> = forgotten.ids.iter().collect();
    let mut seen = HashSet::new();
    let ids = parts.iter().filter_map(|(.., selection)| match selection {
        Selection::Ids(ids) => Some(ids),
        _ => None,
    });
    ids.flatten().filter(|id| !known.contains(id) && seen.insert(*id)).cloned().collect()
}

fn output(done: &str, forgotten: Forgotten) -> Output {
    let ids = forgotten.ids.iter().map(MemoryId::to_string);
    Output {
        done: done.to_owned(),
        operation: Some(forgotten.operation).filter(|operation| !operation.is_empty()),
        count: forgotten.ids.len(),
        tokens: forgotten.tokens,
        ids: if forgotten.ids.len() <= LISTED { ids.collect() } else { Vec::new() },
        authors: Vec::new(),
        is_connected: false,
        unknown: Vec::new(),
        kept: Vec::new(),
        left_out: 0,
        forgotten_before: 0,
        forgotten_left_out: 0,
        strays: Vec::new(),
        caution: None,
        matches: Vec::new(),
        secret: [0; 32],
    }
}
