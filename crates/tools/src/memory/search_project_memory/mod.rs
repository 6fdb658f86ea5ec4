//! Searches the memories of the project, and those of its owner.

pub mod as_typed;

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::common;
use crate::common::beginning_in_bytes;
use crate::memory::beside::behind;
use crate::memory::elsewhere;
use crate::memory::hits::from_memory::{hit, superseded_by};
use crate::memory::hits::{self, Page, sentences};
use crate::memory::show;
use crate::stash::hidden_segments::given_and_over;
use tiro_base::envelope;
use tiro_base::error::{Error, Result, partial, quoted};
use tiro_base::filter::Filter;
use tiro_base::memory::{Kind, Millis};
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_base::times;
use tiro_embed::Encoders;
use tiro_host::ask;
use tiro_host::assembly::across_sessions;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_host::summaries::messages;
use tiro_intake::{Capture, Standing, Subject, session_id};
use tiro_recall::retrieve::answering::{BEST, Verdict};
use tiro_recall::retrieve::rank::{Ranked, Weights};
use tiro_recall::retrieve::{self, SearchResult, Timings};
use tiro_redact::Redactor;
use tiro_store::{About, ReadStore, ShownMemory};
use tiro_text::words::CodeNames;

pub use crate::memory::hits::{Hit, Output};

/// The name of the tool in MCP.
pub const NAME: &str = "search_project_memory";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Search project memory";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Finds what was said, decided and committed here; search before asking why \
    code is as it is. Returns excerpts, best first. To read one memory whole use expand_detail.";

/// The most hits on one page.
const MOST_HITS: usize = 50;

/// The maximum number of bytes that are shown of a session's title. Arbitrary: about half a line.
const LONGEST_TITLE: usize = 60;

/// The smallest budget, in tokens: enough for the envelope and one short hit.
const LEAST_TOKENS: usize = 100;

/// The largest budget, in tokens: clients cut off tool results after 25,000 tokens.
const MOST_TOKENS: usize = 20_000;

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// A question or key words.
    #[schemars(description = "")]
    pub query: String,
    /// 10 if left out.
    #[schemars(range(min = 1, max = MOST_HITS))]
    pub k: Option<usize>,
    /// Such as message, commit, decision.
    pub kinds: Option<Vec<String>>,
    /// Only these sessions.
    #[schemars(description = "")]
    pub sessions: Option<Vec<String>>,
    /// Only this branch.
    #[schemars(description = "")]
    pub branch: Option<String>,
    /// Only this tag.
    #[schemars(description = "")]
    pub topic: Option<String>,
    /// File or directory.
    pub path: Option<String>,
    /// Like 2026-03-01, yesterday or 7d.
    pub since: Option<String>,
    /// The last time; a day is included.
    #[schemars(description = "")]
    pub until: Option<String>,
    /// 2000 if left out.
    #[schemars(range(min = LEAST_TOKENS))]
    pub max_tokens: Option<usize>,
    /// `next_cursor` of the answer before.
    #[schemars(description = "")]
    pub cursor: Option<String>,
    /// Whether all of the user's projects are searched. A person asks for this; for an agent, the option
    /// `search.everywhere` decides.
    #[serde(skip)]
    #[schemars(skip)]
    pub everywhere: bool,
}

/// Searches as [`search`] does; all of the user's projects if the option `search.everywhere` says so.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    search(engine, caller, Args { everywhere: engine.config().options.search_everywhere, ..args }).await
}

/// Searches the project's memories, and the owner's unless sessions are named. If `args.everywhere` is true and no
/// sessions are named, the user's other projects are searched, too.
pub async fn search(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let query = args.query.trim();
    if query.is_empty() {
        return Err(Error::bad_input("`query` is empty").hint("ask a question or give key words"));
    }
    let k = within("k", args.k.unwrap_or(10), 1, MOST_HITS)?;
    let (max_tokens, clamped) = common::max_tokens(caller, args.max_tokens, 2000, LEAST_TOKENS, MOST_TOKENS)?;
    let offset = offset(args.cursor.as_deref())?;
    let project = caller.project(engine).await?;
    let installation = engine.installation().await?;
    let (scope, covered) = narrowed(&project.scope, &project.redactor, args.sessions.as_deref())?;
    let (filter, only_day) = filter(&args, engine.now())?;
    let filter = Filter { without: caller.running_session(engine, &project, &scope), ..filter };

    // The owner's memories belong to no session, so a search within some sessions leaves them out.
    let owners = &installation.registry;
    let owners_scope = project.scope.owner_wide();
    let mut places: Vec<(&dyn ReadStore, &Scope)> = vec![(project.store.as_ref(), &scope)];
    if scope.sessions == Sessions::All {
        places.push((owners.memories().as_ref(), &owners_scope));
    }
    let mut unread = Vec::new();
    let elsewhere = match args.everywhere && scope.sessions == Sessions::All {
        true => elsewhere::projects(engine, caller, &project, &mut unread).await?,
        false => Vec::new(),
    };
    places.extend(elsewhere.iter().map(|other| (other.store.as_ref(), &other.scope)));
    // Only the first page imports new messages and commits, so that the ranking stays the same for later pages.
    let mut notices = if offset == 0 { caller.capture(engine).catch_up().await } else { Vec::new() };
    notices.extend(clamped.into_iter().chain(only_day).chain(unread));
    let encoders = ask::encoders(engine, caller, &mut notices).await;
    notices.extend(missing_sessions(&project, &scope).await?);
    let found = found((engine, &project), &places, &encoders, (query, &filter), &mut notices).await?;
    let page: Vec<&Ranked> = found.ranked.iter().skip(offset).take(k).collect();
    let has_more = found.ranked.len() > offset + page.len();
    let (shown, shares, verdict) = judged(&project, &places, &found, (offset, &page)).await?;
    // With a cursor, the caller asks for hits in full, whatever they are about. The cursor 0 leads to the first page.
    let is_first = args.cursor.is_none() && !partial::any(&notices);
    let denial = verdict.notice().filter(|_| is_first);
    let standing = standing(engine, caller, &shown).await;
    let question = behind::Question { query, encoders: &encoders };
    let behind = behind::conversations(&project, question, &shown, &found.ranked, &mut notices).await?;
    let (kinds, is_denied) = (args.kinds.as_deref(), denial.is_some());
    let searched = sentences::searched(&project, &covered, kinds, elsewhere.len(), is_denied).await?;
    notices.splice(0..0, denial.map(str::to_owned));
    notices.extend(sentences::alike(&found.alike, shown.iter().map(|(_, shown, _)| &shown.memory)));
    let titles = titles(&project, &shown).await?;
    let ranks: Vec<usize> = shown.iter().filter_map(|(ranked, ..)| rank_of(&page, ranked)).collect();
    let hits = shown.into_iter().zip(ranks).zip(shares).zip(standing).zip(behind);
    let hits = hits.map(|(((((ranked, shown, scope), rank), share), fresh), behind)| {
        let parts = ranked.full_scale(share, &Weights::default());
        let superseded = found.superseded.get(&(ranked.store, ranked.place.key));
        let superseded = superseded.map(|superseded| superseded_by(superseded, &shown.memory.text));
        let mut hit = hit((rank, ranked, parts), shown, scope, fresh, behind, caller.author());
        hit.superseded = superseded;
        hit.project = ranked.store.checked_sub(2).map(|other| elsewhere[other].shown());
        hit.ranking = hit.ranking.filter(|_| engine.config().timings);
        hit
    });
    let (mut hits, length): (Vec<Hit>, usize) = (hits.collect(), page.len());
    hits.iter_mut().zip(titles).for_each(|(hit, title)| hit.title = title);

    let pending = across_sessions::pending(&places, found.pending).await?;
    let output = Output {
        caution: envelope::CAUTION,
        hits: Vec::new(),
        covered,
        tokens_used: 0,
        truncated: false,
        dropped: 0,
        pending,
        next_cursor: None,
        notices,
        timings: engine.config().timings.then(|| milliseconds(&found.timings)),
        searched,
        says_pending: pending > 0 && caller.says_pending(),
        rendered: String::new(),
    };
    let (form, secret) = (caller.form(), installation.secret);
    let page = Page { hits, length, output, offset, has_more, max_tokens, form, secret };
    messages::blocking(move || hits::fit(page)).await
}

/// Searches `places`, and leaves out expired memories and documents that have a newer version. Adds what a caller should
/// know to `notices`.
async fn found(
    (engine, project): (&Engine, &OpenProject),
    places: &[(&dyn ReadStore, &Scope)],
    encoders: &Encoders<'_>,
    (query, filter): (&str, &Filter),
    notices: &mut Vec<String>,
) -> Result<SearchResult> {
    let mut found = retrieve::search(places, encoders, query, filter, &Weights::default()).await?;
    hide_expired(engine, project, filter, &mut found.ranked).await?;
    project.keep_current_documents(&mut found.ranked).await?;
    notices.append(&mut found.notices);
    if found.ranked.is_empty() && project.store.is_empty(&project.scope).await? {
        notices.insert(0, common::nothing_yet(engine, project).await?);
    }
    Ok(found)
}

/// A memory that was found, with its place in the ranking, and its scope: `project`, `owner` or `elsewhere`.
type Found<'r> = (&'r Ranked, ShownMemory, &'static str);

/// Returns how far each memory is current. Of the memories of other projects, whose repositories are not read, this is
/// unknown.
async fn standing(engine: &Engine, caller: &Caller, shown: &[Found<'_>]) -> Vec<Standing> {
    let standing = caller.capture(engine).standing(shown.iter().map(subject).collect()).await;
    let of = |((ranked, ..), standing): (&Found<'_>, _)| {
        if ranked.store > 1 { Standing::UNKNOWN } else { standing }
    };
    shown.iter().zip(standing).map(of).collect()
}

/// Returns what is compared with git to tell whether the memory is current. The owner's notes are about no project in
/// particular.
fn subject((ranked, shown, _): &Found<'_>) -> Subject {
    let subject = Subject::of(&shown.memory, &shown.commit_ids);
    if ranked.store == 0 { subject } else { Subject { names: CodeNames::default(), ..subject } }
}

/// Reads the memories of a page, in the order of the ranking. Each comes with its scope: `project`, `owner` or
/// `elsewhere`.
async fn read_shown<'r>(places: &[(&dyn ReadStore, &Scope)], page: &[&'r Ranked]) -> Result<Vec<Found<'r>>> {
    let mut shown: Vec<Found<'r>> = Vec::with_capacity(page.len());
    for (number, (store, scope)) in places.iter().enumerate() {
        let own: Vec<&Ranked> = page.iter().copied().filter(|ranked| ranked.store == number).collect();
        let wanted = own.iter().map(|ranked| (ranked.place.key, ranked.chunk)).collect();
        let name = ["project", "owner"].get(number).unwrap_or(&"elsewhere");
        let found = store.shown(scope, wanted).await?;
        shown.extend(found.into_iter().map(|memory| (own[memory.place], memory, *name)));
    }
    // The stores were read one after the other, so sorting restores the order of the ranking.
    shown.sort_by_key(|(ranked, ..)| rank_of(page, ranked));
    Ok(shown)
}

/// Reads the memories of `page`, which begins at `offset` in the ranking. Returns each with the share of the query's
/// words that it contains, and the verdict of the best hits, at least ten, on the query.
async fn judged<'r>(
    project: &OpenProject,
    places: &[(&dyn ReadStore, &Scope)],
    found: &'r SearchResult,
    (offset, page): (usize, &[&'r Ranked]),
) -> Result<(Vec<Found<'r>>, Vec<f64>, Verdict)> {
    let judged: Vec<&Ranked> = found.ranked.iter().skip(offset).take(page.len().max(BEST)).collect();
    let mut shown = read_shown(places, &judged).await?;
    let text =
        |shown: &ShownMemory| retrieve::searched_text(&shown.memory, shown.chunk.start..shown.chunk.end);
    let texts = shown.iter().map(|(_, shown, _)| text(shown)).collect();
    let (terms, rarity) = (found.terms.clone(), found.rarity.clone());
    let mut shares = project.store.shares(&project.scope, terms, rarity, texts).await?;
    let hits: Vec<(&Ranked, f64)> =
        shown.iter().map(|(ranked, ..)| *ranked).zip(shares.iter().copied()).collect();
    let verdict = found.verdict(&hits);
    // The memories are in the order of the ranking, so those of the page come first.
    shown.retain(|(ranked, ..)| rank_of(page, ranked).is_some());
    shares.truncate(shown.len());
    Ok((shown, shares, verdict))
}

/// Returns the title of the session of each hit of the project at its first occurrence. Returns `None` for later occurrences, and for a session
/// without a title.
async fn titles(project: &OpenProject, shown: &[Found<'_>]) -> Result<Vec<Option<String>>> {
    let own = |(ranked, shown, _): &Found<'_>| shown.memory.session.clone().filter(|_| ranked.store == 0);
    let sessions: Vec<Option<SessionId>> = shown.iter().map(own).collect();
    let mut named: Vec<SessionId> = sessions.iter().flatten().cloned().collect();
    named.sort_unstable();
    named.dedup();
    let about = project.store.about_sessions(&project.scope, named.clone()).await?;
    let title = |about: About| {
        let title = about.title.as_deref().and_then(show::line)?;
        Some(beginning_in_bytes(&title, LONGEST_TITLE).into_owned())
    };
    let mut titles: HashMap<SessionId, Option<String>> =
        named.into_iter().zip(about.into_iter().map(title)).collect();
    Ok(sessions.into_iter().map(|session| titles.remove(&session?).flatten()).collect())
}

/// Returns the place of `ranked` on its page, from 0.
fn rank_of(page: &[&Ranked], ranked: &Ranked) -> Option<usize> {
    page.iter().position(|other| std::ptr::eq(*other, ranked))
}

/// Returns the duration of each stage of a search in milliseconds.
fn milliseconds(timings: &Timings) -> HashMap<&'static str, f64> {
    let Timings { embed, candidates, rank } = timings;
    let stages = [("embed", embed), ("candidates", candidates), ("rank", rank)];
    stages.into_iter().map(|(name, micros)| (name, *micros as f64 / 1000.0)).collect()
}

fn within(name: &str, value: usize, least: usize, most: usize) -> Result<usize> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::bad_input(format!("`{name}` is not between {least} and {most}: {value}")))
}

/// Returns the filter of a search. If the query names the only day that is searched, also returns a notice.
fn filter(args: &Args, now: Millis) -> Result<(Filter, Option<String>)> {
    let kinds = args.kinds.as_ref().filter(|kinds| !kinds.is_empty());
    let kinds = kinds
        .map(|kinds| kinds.iter().map(|word| common::kind("kinds", word)).collect::<Result<Vec<Kind>>>());
    let short =
        |name, text: &Option<String>| text.as_deref().map(|text| common::short(name, text)).transpose();
    let (since, until) =
        times::range(("since", args.since.as_deref()), ("until", args.until.as_deref()), now)?;
    let mut filter = Filter {
        kinds: kinds.transpose()?,
        branch: short("branch", &args.branch)?,
        path: short("path", &args.path)?,
        topic: short("topic", &args.topic)?,
        since,
        until,
        ..Filter::default()
    };
    let only_day = common::only_day(&args.query, &mut filter, now);
    Ok((filter, only_day))
}

fn offset(cursor: Option<&str>) -> Result<usize> {
    let Some(cursor) = cursor else { return Ok(0) };
    cursor.parse::<u16>().map(usize::from).map_err(|_| {
        Error::bad_input(format!("`cursor` was not returned by this tool: `{}`", quoted(cursor)))
            .hint("leave it out to start at the beginning")
    })
}

/// Returns the scope narrowed to `sessions`, and their names for the answer. If no sessions are given, the scope stays
/// unchanged and the only name is `all`.
fn narrowed(scope: &Scope, redactor: &Redactor, sessions: Option<&[String]>) -> Result<(Scope, Vec<String>)> {
    let Some(names) = sessions.filter(|names| !names.is_empty()) else {
        return Ok((scope.clone(), vec!["all".to_owned()]));
    };
    let ids: Vec<SessionId> =
        names.iter().map(|name| session_id(redactor, "sessions", name)).collect::<Result<_>>()?;
    let covered = ids.iter().map(SessionId::to_string).collect();
    Ok((Scope { sessions: Sessions::Only(ids), ..scope.clone() }, covered))
}

/// Returns a notice for each session of the scope that has no memories.
pub async fn missing_sessions(project: &OpenProject, scope: &Scope) -> Result<Vec<String>> {
    let Sessions::Only(ids) = &scope.sessions else { return Ok(Vec::new()) };
    let known = project.store.sessions(scope, 0, ids.len()).await?;
    let missing = ids.iter().filter(|id| !known.iter().any(|row| row.id == **id));
    Ok(missing.map(|id| format!("no session is called `{}`; list_sessions shows them", quoted(id))).collect())
}

/// Removes expired texts of the stash from the result of a search in the project's store. These are texts that were
/// given to the stash as text. A search finds such texts only if it asks for their kinds.
async fn hide_expired(
    engine: &Engine,
    project: &OpenProject,
    filter: &Filter,
    ranked: &mut Vec<Ranked>,
) -> Result<()> {
    if filter.kinds.is_some() {
        let keys = ranked.iter().filter(|each| each.store == 0).map(|each| each.place.key);
        let over = given_and_over(engine, project, keys.collect()).await?;
        ranked.retain(|each| each.store != 0 || !over.contains(&each.place.key));
    }
    Ok(())
}
