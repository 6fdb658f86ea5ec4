//! Assembles a context to continue from: key facts, summaries, the last messages, and the messages that answer a
//! question.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::common;
use crate::common::schema::one_of;
use crate::context::answer::{self, Context, LEAST, MOST};
use tiro_base::error::{Error, Result, partial, quoted};
use tiro_base::filter::Filter;
use tiro_base::memory::Millis;
use tiro_base::scope::{Scope, Sessions};
use tiro_base::times;
use tiro_host::ask;
use tiro_host::assembly::marks::{stale, superseded};
use tiro_host::assembly::{ContextRequest, IncludeLevel, across_sessions, within_session};
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_intake::{Capture, session_id};
use tiro_store::{ShownLine, Version};

/// The name of the tool in MCP.
pub const NAME: &str = "retrieve_context";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Assemble context";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Assembles what is remembered about a question: key facts, summaries, recent \
    and relevant messages, commits; from session_id, or else from all sessions. For single facts use \
    search_project_memory.";

/// The arguments of the call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Args {
    /// The question at hand.
    pub query: String,
    /// The conversation to continue.
    pub session_id: Option<String>,
    /// Only these sessions.
    pub conversation_ids: Option<Vec<String>>,
    /// Like 2026-03-01.
    #[schemars(description = "")]
    pub time_range: Option<TimeRange>,
    /// mixed if left out.
    #[serde(default)]
    #[schemars(schema_with = "include_levels")]
    pub include_level: Option<IncludeLevel>,
    /// 8000 with session_id, else 4000.
    #[schemars(range(min = LEAST))]
    pub max_tokens: Option<usize>,
}

/// A range of times.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TimeRange {
    /// Like 2026-03-01, yesterday or 7d.
    pub start: Option<String>,
    /// The last time; a day is included.
    #[schemars(description = "")]
    pub end: Option<String>,
}

impl TimeRange {
    /// Returns start and end in milliseconds. A value is `None` if the range has no limit on this side.
    ///
    /// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if one of them is not a date or time.
    pub fn read(&self, now: Millis) -> Result<(Option<Millis>, Option<Millis>)> {
        let (start, end) = (self.start.as_deref(), self.end.as_deref());
        times::range(("time_range.start", start), ("time_range.end", end), now)
    }
}

fn include_levels(_: &mut SchemaGenerator) -> Schema {
    one_of(&["summary", "mixed", "full"])
}

/// The answer of the call.
pub type Output = Context;

/// Returns the cached answer if nothing that it depends on has changed. Otherwise assembles a new answer.
pub async fn run(engine: &Engine, caller: &Caller, args: Args) -> Result<Output> {
    let project = caller.project(engine).await?;
    let (mut asked, notice) = read(engine, caller, &project, &args).await?;
    let mut notices = caller.capture(engine).catch_up().await;
    asked.filter.without = caller.running_session(engine, &project, &asked.scope);
    // An answer that reports newly imported messages is not cached: the report is true only for this call.
    let is_cacheable = notices.is_empty();
    // The version is read before the memories. If a write comes in between, the answer is cached under the older
    // version, so that no later call finds it.
    let (before, is_empty) = version(engine, &project, &asked).await?;
    match (&asked.session, &asked.scope.sessions) {
        (Some(session), _) if is_empty => {
            return Err(Error::not_found(format!("no session is called `{}`", quoted(session)))
                .hint("list_sessions shows them; leave `session_id` out to search all"));
        }
        (None, Sessions::Only(named)) => {
            let rows = project.store.sessions(&asked.scope, 0, named.len()).await?;
            let missing = named.iter().filter(|id| !rows.iter().any(|row| row.id == **id));
            notices.extend(
                missing.map(|id| format!("no session is called `{}`; list_sessions shows them", quoted(id))),
            );
        }
        (Some(_), _) | (None, Sessions::All) => {}
    }
    let encoders = ask::encoders(engine, caller, &mut notices).await;
    let space = encoders.names();
    notices.extend(notice);
    let options = &engine.config().options;
    let store = &project.store;
    let head = caller.capture(engine).checked_out().await;
    let depends_on = [space.unwrap_or_default(), head.unwrap_or_default()];
    let key = |version: [Version; 2]| key((engine, caller), &args, &asked, &depends_on, version);
    if is_cacheable
        && let Some(body) = store.cached(&asked.scope, key(before), engine.now()).await?
        && let Ok(CachedAnswer { context, whole, lines }) = serde_json::from_str::<CachedAnswer>(&body)
    {
        count_saving(caller, whole, &context);
        record(&project, &asked, key(before), lines).await;
        return Ok(Context { budget: asked.budget, ..context });
    }
    let (mut is_whole, mut whole) = (true, None);
    let mut chosen = match &asked.session {
        Some(session) => {
            let prepared = within_session::prepare(engine, &project, &asked, session).await?;
            (is_whole, whole) = (prepared.waiting == 0, Some(prepared.tokens()));
            within_session::choose((engine, caller), &asked, prepared, &encoders).await?
        }
        None => across_sessions::choose(engine, &project, &asked, &encoders).await?,
    };
    superseded::mark(&project, &asked, &mut chosen).await?;
    is_whole &= stale::mark(engine, caller, &mut chosen).await;
    if chosen.stable.is_empty() && chosen.live.is_empty() {
        if project.store.is_empty(&project.scope).await? {
            chosen.notices.insert(0, common::nothing_yet(engine, &project).await?);
        } else if asked.filter.has_range()
            && project.store.list(&asked.scope, &asked.filter, None, 1).await?.is_empty()
        {
            chosen.notices.insert(0, format!("{} that time", answer::NOTHING));
        }
    }
    chosen.notices.splice(0..0, notices);
    let secret = engine.installation().await?.secret;
    let budget = (asked.budget, caller.form());
    // The first count loads the tokenizer's dictionary, which blocks the thread.
    let fit = tokio::task::spawn_blocking(move || {
        let context = answer::fit(&mut chosen, budget, &secret);
        (context, answer::shown_lines(&chosen))
    });
    let (context, lines) = fit.await.expect("fitting does not panic");
    record(&project, &asked, key(before), lines.clone()).await;
    count_saving(caller, whole, &context);
    let answer = CachedAnswer { context, whole, lines };
    // If messages of the session still wait for a summary, the next call makes more summaries, so this answer is not
    // cached. An answer is also not cached if something could not be read and is missing.
    is_whole &= !partial::any(&answer.context.notices);
    if is_cacheable && is_whole {
        let body = serde_json::to_string(&answer).expect("an answer is JSON");
        let (ttl, most) = (options.cache_ttl(), options.cache_bytes());
        project.books.cache(&asked.scope, key(before), body, engine.now(), ttl, most).await?;
    }
    Ok(answer.context)
}

/// An answer as the cache stores it.
#[derive(Serialize, Deserialize)]
struct CachedAnswer {
    context: Context,
    /// The number of tokens of the whole conversation that the context replaces; `None` if the context comes from
    /// several conversations.
    whole: Option<i64>,
    /// The lines with which the answer shows each memory.
    lines: Vec<ShownLine>,
}

/// Records the lines in which the context of a session shows each memory. From this, stashing computes the number of
/// tokens that it frees.
async fn record(project: &OpenProject, asked: &ContextRequest, key: [u8; 32], lines: Vec<ShownLine>) {
    let Some(session) = &asked.session else { return };
    let recorded = project.books.record_assembly(&project.scope, session, key, lines).await;
    recorded.unwrap_or_else(|error| error.log());
}

/// Records how many tokens the answer saves compared with the whole conversation. Records nothing if `whole` is `None`.
fn count_saving(caller: &Caller, whole: Option<i64>, context: &Context) {
    if let Some(whole) = whole {
        caller.saved(whole, i64::try_from(context.tokens_used).unwrap_or(i64::MAX));
    }
}

/// Reads the arguments. Also returns notices about what was understood in another way than it was written.
async fn read(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    args: &Args,
) -> Result<(ContextRequest, Vec<String>)> {
    let query = args.query.trim().to_owned();
    if query.is_empty() {
        return Err(Error::bad_input("`query` is empty").hint("name the task, or ask a question"));
    }
    let redactor = &project.redactor;
    let session = args.session_id.as_deref().map(|name| session_id(redactor, "session_id", name));
    let session = session.transpose()?;
    let named = args.conversation_ids.as_ref().filter(|names| !names.is_empty());
    if session.is_some() && named.is_some() {
        return Err(Error::bad_input("both `session_id` and `conversation_ids` are given").hint(
            "give `session_id` to continue one conversation, or `conversation_ids` to search several",
        ));
    }
    let named = named.map(|names| {
        names.iter().map(|name| session_id(redactor, "conversation_ids", name)).collect::<Result<Vec<_>>>()
    });
    let sessions = match (&session, named.transpose()?) {
        (Some(session), _) => Sessions::Only(vec![session.clone()]),
        (None, Some(named)) => Sessions::Only(named),
        (None, None) => Sessions::All,
    };
    let range = args.time_range.clone().unwrap_or_default();
    let (since, until) = range.read(engine.now())?;
    let options = &engine.config().options;
    let usual = if session.is_some() { options.session_max_tokens } else { options.context_max_tokens };
    let (budget, notice) = budget(caller, args.max_tokens, usual)?;
    let mut filter = Filter { since, until, ..Filter::default() };
    let only_day = common::only_day(&query, &mut filter, engine.now());
    let asked = ContextRequest {
        query,
        scope: Scope { sessions, ..project.scope.clone() },
        session,
        filter,
        level: args.include_level.unwrap_or_default(),
        budget,
    };
    Ok((asked, notice.into_iter().chain(only_day).collect()))
}

/// Returns the budget. It is `asked` if given, otherwise `usual` clamped to the limits. If `asked` is too large, it is
/// lowered, and a notice is returned too.
pub fn budget(caller: &Caller, asked: Option<usize>, usual: usize) -> Result<(usize, Option<String>)> {
    common::max_tokens(caller, asked, usual, LEAST, MOST)
}

/// Returns the versions of the project's and the owner's memories, and whether there are no memories to choose from.
/// Every write that could change the answer changes at least one of the two versions.
async fn version(
    engine: &Engine,
    project: &OpenProject,
    asked: &ContextRequest,
) -> Result<([Version; 2], bool)> {
    let own = project.store.source_state(&asked.scope).await?;
    let owners = &engine.installation().await?.registry;
    let of_owner = owners.memories().source_state(&project.scope.owner_wide()).await?;
    Ok(([own.version, of_owner.version], own.is_empty))
}

/// Returns the cache key: a hash of everything that the answer depends on. `depends_on` names the encoders and the
/// checked-out commit.
fn key(
    (engine, caller): (&Engine, &Caller),
    args: &Args,
    asked: &ContextRequest,
    depends_on: &[String],
    version: [Version; 2],
) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("tiro 2026 assembled context");
    let parts = [
        env!("CARGO_PKG_VERSION").to_owned(),
        serde_json::to_string(args).expect("arguments are JSON"),
        format!("{:?} {:?}", asked.scope, asked.filter),
        format!("{} {:?}", asked.budget, caller.form()),
        format!("{:?}", engine.config().options),
        format!("{depends_on:?}"),
        format!("{:?}", version.map(Version::bytes)),
    ];
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    *hasher.finalize().as_bytes()
}
