//! Forgets memories, brings them back, or removes them for good.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{common, levels, search_project_memory as search};
use crate::engine::Engine;
use crate::envelope;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::memory::{MemoryId, Millis};
use crate::scope::Scope;
use crate::store::{Forgotten, Selection, Store};
use crate::tokens::Tokenizer;

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

/// Tokens of an answer to a search, so that none of those matches is left out for want of room.
const SEARCH_TOKENS: usize = 20_000;

/// How well a memory matches a query that is to be forgotten by it, beside the best. Arbitrary: half as well.
const MATCHES: f64 = 0.5;

/// Tokens of what is shown of a memory that a query would forget.
const EXCERPT: usize = 30;

/// Operations of the past among which the one to undo is looked for. Arbitrary.
const OPERATIONS_READ: usize = 1000;

/// Ids named in an answer; more are only counted. Arbitrary.
const LISTED: usize = 100;

/// What the call takes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
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
    /// Only say what would be done.
    pub dry_run: Option<bool>,
}

/// What the call answers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// forgotten, would_forget, purged, undone or would_undo.
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
    /// Matches of the query that were left alone, because others match much better.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// How to take what is quoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caution: Option<&'static str>,
    /// What a query would forget.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<Match>,
    #[serde(skip)]
    secret: [u8; 32],
}

/// A memory that a query would forget.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Match {
    /// Its id.
    pub id: String,
    /// How its best piece begins.
    pub text: String,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// What a call selects, and what to say of it.
struct Selected {
    selection: Selection,
    unknown: Vec<String>,
    left_out: usize,
    matches: Vec<Match>,
}

impl From<Selection> for Selected {
    fn from(selection: Selection) -> Selected {
        Selected { selection, unknown: Vec::new(), left_out: 0, matches: Vec::new() }
    }
}

/// Forgets, undoes or purges; durable when it returns.
pub async fn run(engine: &Engine, args: Args) -> Result<Output> {
    let project = engine.project().await?;
    let owners = &engine.installation().await?.registry;
    let places = [(&project.store, &project.scope), (owners.memories(), owners.scope())];
    let now = engine.now();

    let is_dry = args.dry_run.unwrap_or(false);
    if let Some(operation) = &args.undo {
        return undo(engine, places, operation, is_dry).await;
    }
    let (store, scope, selected) = select(engine, places, &args).await?;
    let Selected { selection, unknown: nowhere, left_out, matches } = selected;
    let answer = |done: &str, forgotten: Forgotten| {
        let mut unknown = unknown(&selection, &forgotten);
        unknown.extend(nowhere.clone());
        Output { unknown, left_out, ..output(done, forgotten) }
    };
    if is_dry {
        let would = answer("would_forget", store.selected(scope, &selection).await?);
        let caution = (!matches.is_empty()).then_some(envelope::CAUTION);
        return Ok(Output { caution, matches, secret: engine.installation().await?.secret, ..would });
    }
    let operation = format!("f{}", hex(engine.random::<6>()));
    let (done, forgotten) = match args.purge.unwrap_or(false) {
        true => {
            let purged = store.forget_for_good(scope, &selection, &operation, now).await?;
            // What an earlier call began to remove is forgotten already, and is removed now.
            let left = store.finish_purges(scope, Millis::MAX).await?;
            ("purged", if purged.ids.is_empty() { left } else { purged })
        }
        false => ("forgotten", store.forget(scope, &selection, &operation, now).await?),
    };
    if forgotten.ids.is_empty() {
        return Err(nothing());
    }
    engine.wrote();
    Ok(answer(done, forgotten))
}

fn nothing() -> Error {
    Error::not_found("nothing matches, nothing was forgotten").hint("search first; ids come with the results")
}

/// Brings back what the operation forgot, or says what that would bring back.
async fn undo(
    engine: &Engine,
    places: [(&Store, &Scope); 2],
    operation: &str,
    is_dry: bool,
) -> Result<Output> {
    let operation = Some(operation.trim()).filter(|name| *name != "last" && !name.is_empty());
    // The two stores keep their own operations: the one named is in one of them, the last is the later.
    let mut latest: Option<(i64, &Store, &Scope)> = None;
    for (store, scope) in places {
        let operations = store.operations(scope, OPERATIONS_READ).await?;
        let candidates = operations.iter().filter(|each| each.kind == "forget" && !each.undone);
        let own =
            candidates.filter(|each| operation.is_none_or(|name| each.id == name)).map(|each| each.at).max();
        if let Some(at) = own.filter(|at| latest.is_none_or(|(known, ..)| *at > known)) {
            latest = Some((at, store, scope));
        }
    }
    let (store, scope) = latest.map_or(places[0], |(_, store, scope)| (store, scope));
    if is_dry {
        return Ok(output("would_undo", store.undoable(scope, operation).await?));
    }
    let undone = store.undo(scope, operation, engine.now()).await?;
    engine.wrote();
    Ok(output("undone", undone))
}

/// Returns what to forget, and in which of the two places it is.
async fn select<'a>(
    engine: &Engine,
    places: [(&'a Store, &'a Scope); 2],
    args: &Args,
) -> Result<(&'a Store, &'a Scope, Selected)> {
    let [(store, scope), (owner_store, owner_scope)] = places;
    let given = [args.ids.is_some(), args.session_id.is_some(), args.source.is_some(), args.query.is_some()];
    if given.iter().filter(|is_given| **is_given).count() != 1 {
        return Err(Error::bad_input(
            "exactly one of `ids`, `session_id`, `source`, `query` and `undo` is needed",
        ));
    }
    if let Some(ids) = &args.ids {
        let (ids, unknown) = levels::ids(engine, "ids", ids).await.map_err(|error| of_commit(ids, error))?;
        let selection = Selection::Ids(ids);
        let in_project = store.selected(scope, &selection).await?;
        let owners = owner_store.selected(owner_scope, &selection).await?;
        let selected = Selected { unknown, ..Selected::from(selection) };
        return match (in_project.ids.is_empty(), owners.ids.is_empty()) {
            (true, false) => Ok((owner_store, owner_scope, selected)),
            (false, false) => Err(Error::bad_input("`ids` mixes memories of the project and of the owner")
                .hint("forget them in two calls; nothing was forgotten")),
            _ => Ok((store, scope, selected)),
        };
    }
    let selected = match (&args.session_id, &args.source, &args.query) {
        (Some(name), ..) => {
            let redactor = &engine.installation().await?.redactor;
            Selection::Session(common::session(redactor, "session_id", name)?).into()
        }
        (_, Some(source), _) => {
            let source = common::short("source", source)?;
            Selection::Matching(Filter { source_id: Some(source), ..Filter::default() }).into()
        }
        (.., query) => {
            let query = query.clone().unwrap_or_default();
            let max_tokens = Some(SEARCH_TOKENS);
            let args = search::Args { query, k: Some(BY_QUERY), max_tokens, ..search::Args::default() };
            let mut found = search::run(engine, args).await?.hits;
            found.retain(|hit| hit.scope == "project");
            let best = found.iter().map(|hit| hit.score).fold(0.0, f64::max);
            let before = found.len();
            found.retain(|hit| hit.score >= MATCHES * best);
            let ids = found.iter().filter_map(|hit| MemoryId::parse(&hit.id)).collect();
            let (left_out, matches) = (before - found.len(), found.iter().map(shown).collect());
            Selected { left_out, matches, ..Selected::from(Selection::Ids(ids)) }
        }
    };
    Ok((store, scope, selected))
}

/// Returns what is shown of a hit: how it begins, on one line.
fn shown(hit: &search::Hit) -> Match {
    let line = hit.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = Tokenizer::O200k.truncate(&line, EXCERPT);
    let more = if start.len() < line.len() { "…" } else { "" };
    Match { id: hit.id.clone(), text: format!("{start}{more}") }
}

/// Tells whoever gave the id of a commit where it belongs.
fn of_commit(ids: &[String], error: Error) -> Error {
    let is_commit = |text: &String| {
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (7..=40).contains(&text.len()) && is_hex
    };
    match ids.iter().any(is_commit) {
        true => error.hint(
            "a commit is forgotten by ten digits or more of its id as `source`: `tiro forget --source ID`",
        ),
        false => error,
    }
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
        left_out: 0,
        caution: None,
        matches: Vec::new(),
        secret: [0; 32],
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
            "would_undo" => format!("Would bring back {what}{ids}. Nothing was changed."),
            "would_forget" if !self.matches.is_empty() => {
                let line = |each: &Match| format!("{}: {}\n", each.id, each.text);
                let body: String = self.matches.iter().map(line).collect();
                format!("Would forget {what}:\n{}Nothing was changed.", envelope::wrap(&self.secret, &body))
            }
            "would_forget" => format!("Would forget {what}{ids}. Nothing was changed."),
            "purged" => format!("Removed {what} for good{ids}."),
            _ => format!(
                "Forgot {what}{ids}. To bring {} back: undo `{operation}`.",
                if self.count == 1 { "it" } else { "them" }
            ),
        };
        if self.left_out > 0 {
            let others = common::counted(self.left_out, "match", "matches");
            text += &format!("\n{others} of less weight left alone; name them by id.");
        }
        if !self.unknown.is_empty() {
            text += &format!("\nNo memory is called {}.", common::some(&self.unknown));
        }
        text
    }
}
