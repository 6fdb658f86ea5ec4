//! Returns the messages and commits that answer a question, with the messages around them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common;
use crate::context::answer::{self, Context};
use crate::context::retrieve_context;
use tiro_base::budget::Budget;
use tiro_base::error::{Error, Result};
use tiro_base::filter::Filter;
use tiro_base::memory::Kind;
use tiro_digest::context::importance::recency;
use tiro_digest::tuning::contexts::SNIPPETS_WITH_NEIGHBOURS;
use tiro_host::ask;
use tiro_host::assembly::across_sessions::{Hit, passage, pending, read};
use tiro_host::assembly::order::{conversation, weigh};
use tiro_host::assembly::passages::{Chosen, Part, Passage, Room, SMALL_FRAME, fill, remembered};
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_intake::Capture;
use tiro_recall::retrieve;
use tiro_recall::retrieve::rank::Weights;
use tiro_recall::tuning::ranking::{SNIPPET_HALF_LIFE, SNIPPET_RECENCY};

/// The name of the tool in MCP.
pub const NAME: &str = "get_relevant_snippets";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Get relevant snippets";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Returns messages and commits that answer a question, with the messages \
    around them, in order of time. To get summaries too, use retrieve_context.";

/// The budget of an answer, in tokens, if the call names none.
const MAX_TOKENS: usize = 1000;

/// The strategy `recency` orders only this many of the best hits by time, and drops the other hits. Arbitrary: the
/// other hits rarely answer the question.
const MOST_BY_TIME: usize = 40;

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// A question or key words.
    pub query: String,
    /// 1000 if left out.
    #[schemars(range(min = answer::LEAST))]
    pub max_tokens: Option<usize>,
    /// mixed if left out.
    pub strategy: Option<Strategy>,
    /// With the messages around each; true if left out.
    pub expand_context: Option<bool>,
}

/// The order in which messages are added while they fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(
    clippy::missing_docs_in_private_items,
    reason = "docs would be part of the schema that every model reads"
)]
#[allow(missing_docs, reason = "docs become part of the schema, which models pay for")]
pub enum Strategy {
    Relevance,
    Recency,
    #[default]
    Mixed,
}

/// The answer of the call.
pub type Output = Context;

/// Searches the messages of all conversations and the commits, and shows as many as fit.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let query = args.query.trim();
    if query.is_empty() {
        return Err(Error::bad_input("`query` is empty").hint("ask a question or give key words"));
    }
    let (max_tokens, notice) = retrieve_context::budget(caller, args.max_tokens, MAX_TOKENS)?;
    let project = caller.project(engine).await?;
    let mut chosen = Chosen { notices: caller.capture(engine).catch_up().await, ..Chosen::default() };
    chosen.notices.extend(notice);
    let encoders = ask::encoders(engine, caller, &mut chosen.notices).await;
    let without = caller.running_session(engine, &project, &project.scope);
    let filter = Filter { kinds: Some(vec![Kind::Message, Kind::Commit]), without, ..Filter::default() };
    let places = [(project.store.as_ref(), &project.scope)];
    let found = retrieve::search(&places, &encoders, query, &filter, &Weights::default()).await?;
    chosen.notices.extend(found.notices);
    chosen.pending = pending(&places, found.pending).await?;
    if found.ranked.is_empty() {
        let notice = match project.store.is_empty(&project.scope).await? {
            true => common::nothing_yet(engine, &project).await?,
            false => "only messages and commits are looked at here; search_project_memory also finds notes"
                .to_owned(),
        };
        chosen.notices.insert(0, notice);
    }
    let sessions = weigh(&found.ranked);
    let hits = ordered(read(&places, found.ranked).await?, args.strategy.unwrap_or_default());
    let room = Room::USUAL;
    let mut budget = Budget::new(max_tokens - SMALL_FRAME);
    let with_neighbours = if args.expand_context.unwrap_or(true) { SNIPPETS_WITH_NEIGHBOURS } else { 0 };
    let (best, others) = hits.split_at(hits.len().min(with_neighbours));
    // The best hits and their neighbours come first, then the other hits.
    let keys = best.iter().map(|hit| hit.memory.key).collect();
    let (mut beside, _) = project.store.beside(&project.scope, keys, None).await?;
    beside.retain(|memory| !best.iter().any(|hit| hit.memory.id == memory.id));
    let around = beside.iter().filter_map(|memory| {
        let session = memory.session.as_ref()?;
        let most = room.most(memory.role, memory.tokens);
        let shown = (memory, caller.author());
        let mut passage = remembered(Part::Relevant, session, shown, 0..memory.text.len(), most);
        let hit = best.iter().find(|hit| hit.memory.session.as_ref() == Some(session));
        let weighed = hit.and_then(|hit| sessions.get(&conversation(&hit.ranked)?));
        passage.place.0 = weighed.map_or(memory.time, |session| session.first);
        Some(passage)
    });
    let is_left = |hit: &&Hit| !beside.iter().any(|memory| memory.id == hit.memory.id);
    let shown = |hit| passage(hit, caller.author(), &sessions, room, usize::MAX);
    let passages: Vec<Passage> = best
        .iter()
        .filter_map(shown)
        .chain(around)
        .chain(others.iter().filter(is_left).filter_map(shown))
        .collect();
    fill(passages, &mut budget, &mut chosen, true);
    let secret = engine.installation().await?.secret;
    // The first count loads the tokenizer's dictionary, which blocks the thread.
    let budget = (max_tokens, caller.form());
    let fit = tokio::task::spawn_blocking(move || answer::fit(&mut chosen, budget, &secret));
    Ok(fit.await.expect("fitting does not panic"))
}

/// Returns `hits` in the order of the strategy. `hits` must be sorted by relevance, the best first.
fn ordered(mut hits: Vec<Hit>, strategy: Strategy) -> Vec<Hit> {
    let newest = hits.iter().map(|hit| hit.memory.time).max().unwrap_or(0);
    let by_id = |a: &Hit, b: &Hit| a.memory.id.cmp(&b.memory.id);
    match strategy {
        Strategy::Relevance => {}
        Strategy::Recency => {
            hits.truncate(MOST_BY_TIME);
            hits.sort_by(|a, b| b.memory.time.cmp(&a.memory.time).then_with(|| by_id(a, b)));
        }
        Strategy::Mixed => {
            let score = |hit: &Hit| {
                hit.ranked.score + SNIPPET_RECENCY * recency(hit.memory.time, newest, SNIPPET_HALF_LIFE)
            };
            hits.sort_by(|a, b| score(b).total_cmp(&score(a)).then_with(|| by_id(a, b)));
        }
    }
    hits
}
