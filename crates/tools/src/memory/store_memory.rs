//! Stores one fact, decision or finding.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::common;
use crate::memory::beside::near::{self, Near};
use tiro_base::error::{Error, Result, partial, quoted};
use tiro_base::humanize;
use tiro_base::memory::{Draft, Identity, Kind, MemoryId, Provenance};
use tiro_base::scope::{ProjectId, Scope, SessionId, Visibility};
use tiro_embed::Encoders;
use tiro_host::ask;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;
use tiro_host::summaries::levels;
use tiro_intake::session_id;
use tiro_recall::remember::remember;
use tiro_redact::{Redaction, Redactor, redactions};
use tiro_store::{Outcome, ReadStore};

/// The name of the tool in MCP.
pub const NAME: &str = "store_memory";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Store a memory";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Stores one fact, decision (with its why), finding or piece of text for good; \
    storing the same again changes nothing. Secrets are replaced first. For messages of a conversation use \
    save_messages.";

/// The hint for an unknown type. It lists the types in the schema.
const TYPES: &str = "use fact, decision, finding, preference, task_state, code_block or error_log";

/// The notice for a text that the user forgot.
const FORGOTTEN: &str =
    "it was forgotten before and stays forgotten; undo the forgetting, or store it in other words";

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// One idea, understandable without this conversation.
    pub text: String,
    /// fact (default), decision, finding, preference, task_state, code_block, error_log.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// 0 to 1.
    pub importance: Option<f64>,
    /// project (default) or owner: all your projects.
    pub scope: Option<String>,
    /// Conversation it belongs to.
    #[schemars(description = "")]
    pub session_id: Option<String>,
    /// Ids, or SESSION#NUMBER.
    pub references: Option<Vec<String>>,
    /// Ids of what it replaces.
    pub supersedes: Option<Vec<String>>,
    /// Tag to search by.
    pub topic: Option<String>,
    /// Its file.
    pub source: Option<String>,
}

/// The answer of the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The memory's id.
    pub id: String,
    /// Whether this call stored it; false if it was stored or forgotten before.
    pub stored: bool,
    /// The memory's kind.
    pub kind: String,
    /// The word for the kind that the call used.
    #[serde(skip)]
    pub called: String,
    /// project or owner.
    pub scope: String,
    /// The memories that it replaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<String>,
    /// Noted memories that it may repeat, add to or contradict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Near>,
    #[serde(skip)]
    secret: [u8; 32],
    /// References that name no memory in the same store. They are stored anyway.
    pub unknown_references: Vec<String>,
    /// Secrets replaced, by rule.
    #[schemars(with = "Vec<Value>")]
    pub redactions: Vec<Redaction>,
    /// How many chunks have no embedding yet: searches find them by words, not by meaning.
    pub pending: usize,
    /// Other remarks, each a sentence without a full stop.
    pub notices: Vec<String>,
}

/// Stores a memory that a model wrote. The memory is durable when the call returns.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    store(engine, caller, args, Provenance::ModelSaid).await
}

/// Stores a memory with this provenance. The memory is durable when the call returns.
pub async fn store(
    engine: &Engine,
    caller: &WritingCaller,
    args: Args,
    provenance: Provenance,
) -> Result<Output> {
    store_for(engine, caller, args, provenance, None).await
}

/// Like [`store`], but `visibility` says who sees the memory. If it is `None`, that depends on the memory's kind.
pub async fn store_for(
    engine: &Engine,
    caller: &WritingCaller,
    mut args: Args,
    provenance: Provenance,
    visibility: Option<Visibility>,
) -> Result<Output> {
    let now = engine.now();
    let installation = engine.begin_installation().await?;
    let is_owners = is_owners(args.scope.as_deref())?;
    let redactor = match is_owners {
        true => installation.redactor_of(&installation.registry.scope().project),
        false => caller.begin_project(engine).await?.redactor.clone(),
    };
    let text = std::mem::take(&mut args.text);
    let mut draft = Draft { provenance, ..draft(&args, text, now, &redactor)? };
    let given = args.references.as_deref().unwrap_or_default();
    let (references, missing) = levels::ids(engine, caller, "references", given).await?;
    draft.references = references;
    draft.supersedes = superseded(engine, caller, args.supersedes.as_deref(), is_owners).await?;
    if is_owners && draft.session.is_some() {
        return Err(Error::bad_input("`session_id` belongs to a project, but `scope` is owner")
            .hint("leave one of them out"));
    }
    let project;
    let owners_scope = caller.scope_of(ProjectId::owner_wide());
    let (store, scope, root) = match is_owners {
        true => {
            draft.visibility = common::visibility(&owners_scope);
            (installation.registry.memories().as_ref(), &owners_scope, None)
        }
        false => {
            project = caller.begin_project(engine).await?;
            draft.visibility = visibility.or(project.placement.of_kind(draft.kind));
            (draft.branch, draft.head_sha) = common::head(&project);
            (project.store.as_ref(), &project.scope, Some(project.root.as_path()))
        }
    };
    let mut unknown_references = unknown(store, scope, &draft).await?;
    unknown_references.extend(missing);
    if let Some(option) = ignored(engine, &draft, root) {
        return Err(excluded(option));
    }

    // This loads the model, so that the text is embedded at once. A search would report a missing model.
    let encoders = ask::encoders(engine, caller, &mut Vec::new()).await;
    let loaded = engine.loaded_embedders();
    let remembered =
        remember(store, scope, &redactor, &loaded, vec![draft.clone()], now, || engine.random(), |_| {})
            .await?;
    engine.wrote();

    let (id, outcome) = remembered.receipt.outcomes.first().expect("one draft has one outcome");
    let trouble = caller.opened_project(engine).and_then(|project| project.trouble.clone());
    let mut notices: Vec<String> = trouble.into_iter().collect();
    let near = match outcome {
        Outcome::Stored => {
            let corrected = &remembered.corrected;
            nearest((store, scope), &encoders, (id, &draft, corrected), &mut notices).await
        }
        _ => Vec::new(),
    };
    if *outcome == Outcome::Forgotten {
        notices.push(FORGOTTEN.to_owned());
    }
    Ok(Output {
        id: id.to_string(),
        stored: *outcome == Outcome::Stored,
        kind: draft.kind.to_string(),
        called: args.kind.as_deref().map_or(draft.kind.to_string(), common::plain),
        scope: if is_owners { "owner" } else { "project" }.to_owned(),
        supersedes: draft.supersedes.iter().chain(&remembered.corrected).map(MemoryId::to_string).collect(),
        near,
        secret: installation.secret,
        unknown_references,
        redactions: redactions(remembered.redactions),
        pending: remembered.receipt.pending,
        notices,
    })
}

/// Returns the error that the configuration excludes a text by `option`.
fn excluded(option: impl std::fmt::Display) -> Error {
    Error::bad_input(format!("nothing was stored: the configuration's `{option}` excludes this"))
        .hint("the user wants no memory of that conversation or file; don't store it in other words")
}

/// Returns the noted memories near the draft, which is stored as `id` and supersedes `corrected` by its words. They are advice, so a failed search adds a notice
/// and is no error.
async fn nearest(
    place: (&dyn ReadStore, &Scope),
    encoders: &Encoders<'_>,
    (id, draft, corrected): (&MemoryId, &Draft, &[MemoryId]),
    notices: &mut Vec<String>,
) -> Vec<Near> {
    let settled: Vec<MemoryId> =
        draft.supersedes.iter().chain(&draft.references).chain([id]).cloned().collect();
    near::near(place, encoders, &draft.text, &settled, corrected).await.unwrap_or_else(|error| {
        notices.push(partial::notice(format!("memories near it were not searched: {}", error.with_hint())));
        Vec::new()
    })
}

/// Returns the ids of the memories that `texts` name. Errors if one of them is not a living memory of the store in
/// which the new memory will be stored.
async fn superseded(
    engine: &Engine,
    caller: &Caller,
    texts: Option<&[String]>,
    is_owners: bool,
) -> Result<Vec<MemoryId>> {
    let Some(texts) = texts.filter(|texts| !texts.is_empty()) else { return Ok(Vec::new()) };
    let (older, unknown) = levels::ids(engine, caller, "supersedes", texts).await?;
    if let Some(unknown) = unknown.first() {
        return Err(nothing_to_supersede(unknown));
    }
    let project = caller.project(engine).await?;
    let owners = &engine.installation().await?.registry;
    let owners_scope = project.scope.owner_wide();
    let mut places: [(&dyn ReadStore, &Scope); 2] =
        [(project.store.as_ref(), &project.scope), (owners.memories().as_ref(), &owners_scope)];
    if is_owners {
        places.reverse();
    }
    let [(store, scope), (other, other_scope)] = places;
    let (own, elsewhere) =
        (store.keys_of(scope, older.clone()).await?, other.keys_of(other_scope, older.clone()).await?);
    for ((id, key), elsewhere) in older.iter().zip(own).zip(elsewhere) {
        match (key, elsewhere) {
            (Some(_), _) => {}
            (None, None) => return Err(nothing_to_supersede(id.as_str())),
            (None, Some(_)) => {
                let (here, there) = if is_owners { ("owner", "project") } else { ("project", "owner") };
                let message = format!("`{id}` has the scope {there}, and the new memory the scope {here}");
                return Err(Error::bad_input(message).hint(format!(
                    "nothing was stored; store it with `scope` {there}, or leave `supersedes` out"
                )));
            }
        }
    }
    Ok(older)
}

fn nothing_to_supersede(id: &str) -> Error {
    Error::not_found(format!("no memory with id `{}` to supersede", quoted(id)))
        .hint("nothing was stored; search results show ids")
}

/// Returns whether the memory belongs to the owner and not to the project.
fn is_owners(scope: Option<&str>) -> Result<bool> {
    match scope.map(common::plain).as_deref() {
        None | Some("project" | "local" | "repo" | "repository" | "workspace" | "this_project") => Ok(false),
        Some("owner" | "user" | "global" | "all" | "all_projects") => Ok(true),
        Some(other) => {
            Err(Error::bad_input(format!("`scope` can't be `{}`", quoted(other)))
                .hint("use project or owner"))
        }
    }
}

fn draft(args: &Args, text: String, now: i64, redactor: &Redactor) -> Result<Draft> {
    if text.trim().is_empty() {
        return Err(Error::bad_input("`text` is empty").hint("say what to remember in a sentence"));
    }
    common::whole("text", &text)?;
    let kind = args.kind.as_deref().map_or(Ok(Kind::Fact), |word| common::kind("type", word));
    let kind = kind.map_err(|error| error.hint(TYPES))?;
    if matches!(kind, Kind::Message | Kind::Commit | Kind::Document | Kind::Conversation) {
        return Err(Error::bad_input(format!("`type` can't be {kind}")).hint(
            "messages are saved with save_messages, commits and documents are imported with `tiro import git`",
        ));
    }
    common::importance(args.importance)?;
    let session: Option<SessionId> =
        args.session_id.as_deref().map(|name| session_id(redactor, "session_id", name)).transpose()?;
    let mut draft = Draft::new(kind, Provenance::ModelSaid, text, now);
    draft.topic = args.topic.as_deref().map(|topic| common::short("topic", topic)).transpose()?;
    draft.path = args.source.as_deref().map(|path| common::short("source", path)).transpose()?;
    draft.importance = args.importance;
    // Memories with the same text, kind and scope are the same memory.
    draft.identity = Identity::Text;
    draft.session = session;
    Ok(draft)
}

/// Returns the name of the option that excludes the memory, if there is one. The memory's path is compared as a path
/// relative to `root`.
pub fn ignored(engine: &Engine, draft: &Draft, root: Option<&Path>) -> Option<&'static str> {
    let ignored = &engine.config().ignored;
    if draft.session.as_ref().is_some_and(|session| ignored.session(session.as_str())) {
        return Some("ignore.sessions");
    }
    let path = Path::new(draft.path.as_deref()?);
    let relative = root.and_then(|root| path.strip_prefix(root).ok()).unwrap_or(path);
    let relative = relative.strip_prefix(".").unwrap_or(relative);
    ignored.path(&relative.to_string_lossy()).then_some("ignore.paths")
}

async fn unknown(store: &dyn ReadStore, scope: &Scope, draft: &Draft) -> Result<Vec<String>> {
    let mut unknown = Vec::new();
    for id in &draft.references {
        if store.memory(scope, id).await?.is_none() {
            unknown.push(id.to_string());
        }
    }
    Ok(unknown)
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let done = if self.stored { "Stored" } else { "Already stored" };
        // A search finds the memory under the name of its kind.
        let kind = if self.called == self.kind { String::new() } else { format!(", kind {}", self.kind) };
        let mut text = format!("{done} as {} `{}` ({}{kind}).", self.called, self.id, self.scope);
        text += &near::text(&self.near, &self.supersedes, &self.secret);
        if !self.supersedes.is_empty() {
            text += &format!("\nIt supersedes {}.", humanize::some(&self.supersedes));
        }
        if !self.unknown_references.is_empty() {
            text += &format!("\nNo memory is called {}.", humanize::some(&self.unknown_references));
        }
        text + &common::footnotes(&self.redactions, self.pending, &self.notices)
    }
}
