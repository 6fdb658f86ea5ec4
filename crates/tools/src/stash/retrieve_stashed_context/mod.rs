//! Finds segments in the stash by meaning, follows their references, or lists the content of the stash.

mod answer;
mod listing;

use std::time::Duration;

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Deserialize;

use self::answer::Group;
use super::preview::{Preview, rounded};
use super::{hidden_segments, named};
use crate::common;
use crate::common::beginning;
use tiro_base::error::{Error, Result, partial};
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Memory, MemoryKey, Millis};
use tiro_base::scope::{Scope, Sessions};
use tiro_base::times;
use tiro_host::ask;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_intake::Capture;
use tiro_recall::retrieve::{self, rank::Ranked, rank::Weights};
use tiro_recall::stash::profile::{self, Parts, parts};
use tiro_recall::tuning::ranking::BEST_SCORE;
use tiro_recall::tuning::stash::{MIN_SIMILARITY, PREVIEW};
use tiro_store::StashedMemory;

pub use self::answer::Output;

/// The name of the tool in MCP.
pub const NAME: &str = "retrieve_stashed_context";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Search the stash";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Finds stashed context of any session by meaning; merge_stashed_context takes its \
    ids. Without a query it lists the stash. For all memories use search_project_memory.";

/// The most hits of a call.
const MOST: usize = 50;

/// The longest time that a call waits until the idle worker has stashed the messages that contexts left out. Arbitrary:
/// this takes some hundredths of the time.
const STASHING: Duration = Duration::from_secs(2);

/// The notice of a call that stopped waiting.
const UNSTASHED: &str = "what the last context had no room for may be missing: ask again";
/// Ages are counted only for this many of the most relevant segments, or for more of them if a call wants many
/// segments. The two ages together have only a tenth of the weight, so they could hardly bring other segments among the
/// best.
const WEIGHED: usize = 60;
/// The maximum number of steps for which references are followed.
const MOST_HOPS: usize = 5;
/// The maximum number of segments that are found along references.
const MOST_WALKED: usize = 50;
/// The maximum number of references that a preview lists on each side.
const MOST_REFERENCES: usize = 8;
/// The maximum number of bytes of a hint that are searched for.
const LONGEST_HINT: usize = 1_500;

/// The arguments of the call.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// What you need.
    #[schemars(description = "")]
    pub query: Option<String>,
    /// The task at hand, which helps the search.
    #[schemars(description = "Hints: task, recent messages, file at hand")]
    pub task: Option<String>,
    /// The last messages.
    #[schemars(description = "")]
    pub recent: Option<String>,
    /// The file at hand, or its text.
    #[schemars(description = "")]
    pub file: Option<String>,
    /// 5 if left out.
    #[schemars(range(min = 1, max = MOST))]
    pub top_k: Option<usize>,
    /// Least cosine, 0 to 1.
    #[schemars(description = "")]
    pub min_similarity: Option<f64>,
    /// Conditions on the segments.
    #[schemars(description = "")]
    pub filters: Option<Filters>,
    /// Id whose references to follow.
    pub from_segment: Option<String>,
    /// 2 if left out.
    #[schemars(description = "", range(max = MOST_HOPS))]
    pub max_hops: Option<usize>,
    /// `next_cursor` of the answer before.
    #[schemars(description = "")]
    pub cursor: Option<String>,
}

/// Conditions, all of which a segment must meet.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Filters {
    /// Its type, such as decision.
    #[serde(rename = "type")]
    #[schemars(description = "")]
    pub kind: Option<String>,
    /// Its topic.
    #[schemars(description = "")]
    pub topic: Option<String>,
    /// Its conversation.
    #[schemars(description = "")]
    pub session_id: Option<String>,
    /// Made at this time or later.
    #[schemars(description = "")]
    pub start_time: Option<String>,
    /// Made before this time.
    #[schemars(description = "")]
    pub end_time: Option<String>,
    /// Its file, or the id that its client gave it.
    #[schemars(description = "")]
    pub source: Option<String>,
}

/// The result of a call, before it is fitted into an answer.
#[derive(Clone, Debug, Default)]
struct FoundSegments {
    /// The segments found.
    previews: Vec<Preview>,
    /// The groups listed.
    groups: Vec<Group>,
    /// Whether the call lists the stash.
    lists: bool,
    /// The number of segments that were found, or that are in the stash.
    total: usize,
    /// The number of tokens of the listed segments.
    tokens: i64,
    /// How many groups come before the page.
    offset: usize,
    /// Whether there are groups after the page.
    has_more: bool,
    /// How many chunks have no embedding.
    pending: usize,
    /// Whether the text mentions the number of pending chunks.
    says_pending: bool,
    /// Notices.
    notices: Vec<String>,
}

impl FoundSegments {
    /// Returns whether nothing was found.
    fn is_empty(&self) -> bool {
        self.total == 0
    }
}

/// Searches the stash, follows references, or lists the stash.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let top_k = args.top_k.unwrap_or(5);
    if !(1..=MOST).contains(&top_k) {
        return Err(Error::bad_input(format!("`top_k` is not between 1 and {MOST}: {top_k}")));
    }
    let hops = args.max_hops.unwrap_or(2);
    if hops > MOST_HOPS {
        return Err(Error::bad_input(format!("`max_hops` is not between 0 and {MOST_HOPS}: {hops}")));
    }
    let least = args.min_similarity.unwrap_or(MIN_SIMILARITY);
    if !(-1.0..=1.0).contains(&least) {
        return Err(Error::bad_input(format!("`min_similarity` is not between 0 and 1: {least}")));
    }
    let project = caller.project(engine).await?;
    let (filter, scope) = conditions(&project, args.filters.clone().unwrap_or_default(), engine.now())?;
    let mut notices = caller.capture(engine).catch_up().await;
    if !caller.await_stash(STASHING).await {
        notices.push(partial::notice(UNSTASHED));
    }
    let filter = Filter { stash: Some(hidden_segments::hidden(engine, &project).await?), ..filter };
    let query = asked(&args);
    let mut found = match (&args.from_segment, query.is_empty()) {
        (Some(from), _) => walk(engine, caller, &project, from, hops).await?,
        (None, true) => listing::list(&project, &scope, &filter, args.cursor.as_deref()).await?,
        (None, false) => search((engine, caller), &project, &scope, &filter, &query, (top_k, least)).await?,
    };
    found.notices.splice(0..0, notices);
    if found.is_empty() && project.store.is_empty(&project.scope).await? {
        found.notices.push(common::nothing_yet(engine, &project).await?);
    }
    found.pending = project.store.pending(&project.scope).await?;
    found.says_pending = found.pending > 0 && caller.says_pending();
    let secret = engine.installation().await?.secret;
    let form = caller.form();
    tiro_host::summaries::messages::blocking(move || answer::fit(found, form, &secret)).await
}

/// Returns the text to search for: the query, then the hints. A single text is enough, because the search weights its
/// words by their rarity, and an embedding of several sentences lies between their embeddings.
fn asked(args: &Args) -> String {
    let hints = [&args.query, &args.task, &args.recent, &args.file];
    let hints = hints.into_iter().flatten().map(|hint| hint.trim()).filter(|hint| !hint.is_empty());
    let hints = hints.map(|hint| &hint[..hint.floor_char_boundary(LONGEST_HINT)]);
    hints.collect::<Vec<_>>().join("\n")
}

/// Returns the filter and the scope of a search.
fn conditions(project: &OpenProject, filters: Filters, now: Millis) -> Result<(Filter, Scope)> {
    let Filters { kind, topic, session_id, start_time, end_time, source } = filters;
    let short = |name: &str, text: Option<String>| text.map(|text| common::short(name, &text)).transpose();
    let kind = kind.map(|word| common::kind("filters.type", &word)).transpose()?;
    let (since, until) = times::range(
        ("filters.start_time", start_time.as_deref()),
        ("filters.end_time", end_time.as_deref()),
        now,
    )?;
    let session =
        session_id.map(|name| tiro_intake::session_id(&project.redactor, "filters.session_id", &name));
    let sessions = session.transpose()?.map_or(Sessions::All, |session| Sessions::Only(vec![session]));
    let filter = Filter {
        kinds: kind.map(|kind: Kind| vec![kind]),
        topic: short("filters.topic", topic)?,
        source: short("filters.source", source)?,
        since,
        until,
        ..Filter::default()
    };
    Ok((filter, Scope { sessions, ..project.scope.clone() }))
}

/// Returns the best segments for `query`. They are at most `top_k`, and their similarity is at least `least`.
async fn search(
    (engine, caller): (&Engine, &Caller),
    project: &OpenProject,
    scope: &Scope,
    filter: &Filter,
    query: &str,
    (top_k, least): (usize, f64),
) -> Result<FoundSegments> {
    let (store, now, options) = (project.store.as_ref(), engine.now(), &engine.config().options);
    let weights = profile::Weights {
        relevance: options.stash_weight_relevance,
        age: options.stash_weight_age,
        stash_age: options.stash_weight_stash_age,
    };
    let mut found = FoundSegments::default();
    let encoders = ask::encoders(engine, caller, &mut found.notices).await;
    let searched = retrieve::search(&[(store, scope)], &encoders, query, filter, &Weights::default()).await?;
    found.notices.extend(searched.notices);
    let near: Vec<Ranked> = searched
        .ranked
        .into_iter()
        .filter(|hit| least <= MIN_SIMILARITY || hit.cosine.is_none_or(|cosine| cosine >= least))
        .collect();
    let all = near.len();
    let near = near.into_iter().take(WEIGHED.max(4 * top_k)).collect::<Vec<_>>();
    let stashed = states(project, near.iter().map(|hit| hit.place.key)).await?;
    let mut ranked: Vec<(Parts, Ranked)> = near
        .into_iter()
        .filter_map(|hit| {
            let stashed = stashed.get(&hit.place.key)?;
            let times = (hit.place.time, stashed.stashed_at);
            Some((parts(hit.score / BEST_SCORE, times, now, &weights), hit))
        })
        .collect();
    ranked
        .sort_by(|a, b| b.0.sum().total_cmp(&a.0.sum()).then_with(|| a.1.place.tie().cmp(&b.1.place.tie())));
    found.total = all;
    ranked.truncate(top_k);
    let wanted = ranked.iter().map(|(_, hit)| (hit.place.key, hit.chunk)).collect();
    for shown in store.shown(scope, wanted).await? {
        let (parts, hit) = &ranked[shown.place];
        let piece = shown.memory.text.get(shown.chunk.start..shown.chunk.end).unwrap_or_default();
        let mut preview = Preview::new(
            (&shown.memory, &scope.reader),
            stashed.get(&shown.memory.key),
            beginning(piece.trim(), PREVIEW),
            now,
        );
        preview.similarity = hit.cosine.map(rounded);
        preview.score = Some((*parts).into());
        link(project, &mut preview, shown.memory.key).await?;
        found.previews.push(preview);
    }
    Ok(found)
}

/// Returns the segments that are reached from `from` along references, in both directions, in at most `hops` steps. The
/// nearest come first. Each segment is returned only once, even if references form a circle.
async fn walk(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    from: &str,
    hops: usize,
) -> Result<FoundSegments> {
    let ids = named::ids(engine, caller, "from_segment", &[from.to_owned()]).await?;
    let mut found = FoundSegments::default();
    let mut seen: HashSet<MemoryKey> = HashSet::new();
    let mut reached = named::keys(engine, caller, &ids).await?;
    let mut order: Vec<(usize, MemoryKey)> = Vec::new();
    for hop in 0..=hops {
        reached.retain(|key| seen.insert(*key));
        let mut next = Vec::new();
        for key in &reached {
            if hop < hops {
                next.extend(project.store.references(&project.scope, *key).await?);
            }
            order.push((hop, *key));
        }
        reached = next;
        if order.len() > MOST_WALKED {
            found.notices.push(format!("more than {MOST_WALKED} segments are linked; the nearest are shown"));
            break;
        }
    }
    order.truncate(MOST_WALKED);
    found.total = order.len();
    let mut stashed = states(project, order.iter().map(|(_, key)| *key)).await?;
    // A text that was given to the stash no longer exists after it has expired. A message has only left the stash.
    let is_gone = |key: &MemoryKey| {
        stashed.get(key).is_some_and(|segment| segment.is_given && hidden_segments::is_over(segment, engine))
    };
    order.retain(|(_, key)| !is_gone(key));
    stashed.retain(|_, segment| !hidden_segments::is_over(segment, engine));
    found.total = order.len();
    let memories =
        project.store.memories(&project.scope, order.iter().map(|(_, key)| *key).collect()).await?;
    let memories: HashMap<MemoryKey, Memory> =
        memories.into_iter().map(|memory| (memory.key, memory)).collect();
    for (hop, key) in order {
        let Some(memory) = memories.get(&key) else { continue };
        let text = beginning(memory.text.trim(), PREVIEW);
        let mut preview = Preview::new((memory, caller.author()), stashed.get(&key), text, engine.now());
        preview.hops = Some(hop);
        link(project, &mut preview, key).await?;
        found.previews.push(preview);
    }
    Ok(found)
}

/// Returns the states of those of `keys` that are in the stash.
async fn states(
    project: &OpenProject,
    keys: impl Iterator<Item = MemoryKey>,
) -> Result<HashMap<MemoryKey, StashedMemory>> {
    let rows = project.store.stashed(&project.scope, keys.collect()).await?;
    Ok(rows.into_iter().map(|row| (row.key, row)).collect())
}

/// Adds the references of the segment to its preview, in both directions.
async fn link(project: &OpenProject, preview: &mut Preview, key: MemoryKey) -> Result<()> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let both = store.references(scope, key).await?;
    if both.is_empty() {
        return Ok(());
    }
    let to: HashSet<MemoryKey> = store.refers_to(scope, key).await?.into_iter().collect();
    for memory in store.memories(scope, both).await? {
        // A fact that was extracted from a message doesn't count as a segment that refers to the message.
        if memory.provenance == tiro_base::memory::Provenance::Derived {
            continue;
        }
        let ids = if to.contains(&memory.key) { &mut preview.references } else { &mut preview.referenced_by };
        if ids.len() < MOST_REFERENCES {
            ids.push(memory.id.to_string());
        }
    }
    Ok(())
}
