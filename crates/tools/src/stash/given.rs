//! Reads segments that a call gives as text.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::common;
use crate::memory::store_memory::ignored;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::memory::{Draft, Identity, Kind, MemoryId, Provenance};
use tiro_base::times;
use tiro_host::caller::Caller;
use tiro_host::engine::Engine;
use tiro_host::project::OpenProject;
use tiro_host::summaries::levels;
use tiro_intake::prepare::Prepared;
use tiro_recall::remember::prepared;
use tiro_store::PreparedMemory;

/// A segment of context, given as text.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Segment {
    /// The text.
    #[schemars(description = "")]
    pub text: String,
    /// message (default), code_block, file_content, error_log, debug_output, task_state, decision, research.
    #[serde(rename = "type")]
    #[schemars(
        description = "message, code_block, file_content, error_log, debug_output, task_state, decision, research"
    )]
    pub kind: Option<String>,
    /// Its file, or its name in the client.
    #[schemars(description = "")]
    pub source: Option<String>,
    /// Ids, `SESSION#NUMBER`, or `#0` for the first segment of this call.
    #[schemars(description = "Ids, or #0 of this call")]
    pub references: Option<Vec<String>>,
    /// The conversation it belongs to.
    #[schemars(description = "")]
    pub session_id: Option<String>,
    /// When it was made; now if left out.
    #[schemars(description = "")]
    pub time: Option<String>,
}

/// The kinds of segments that a call can give.
const KINDS: [Kind; 8] = [
    Kind::Message,
    Kind::CodeBlock,
    Kind::FileContent,
    Kind::ErrorLog,
    Kind::DebugOutput,
    Kind::TaskState,
    Kind::Decision,
    Kind::Research,
];

/// The segments of a call, ready to be stored.
pub(super) struct Given {
    /// The memories that the segments become, in the order given.
    pub memories: Vec<PreparedMemory>,
    /// The number of secrets that each rule replaced in these memories.
    pub redactions: Vec<(String, usize)>,
    /// References that name no memory. They are stored anyway.
    pub unknown_references: Vec<String>,
}

/// Returns the memories that `segments` become.
///
/// Errors with [`BadInput`](tiro_base::error::Kind::BadInput) if a field of a segment is invalid. The error names the
/// segment by its place.
pub(super) async fn read(
    engine: &Engine,
    caller: &Caller,
    project: &OpenProject,
    segments: Vec<Segment>,
    topic: Option<&str>,
) -> Result<Given> {
    let count = segments.len();
    let mut drafts = Vec::with_capacity(count);
    let mut named = Vec::with_capacity(count);
    for (place, segment) in segments.into_iter().enumerate() {
        named.push(segment.references.clone().unwrap_or_default());
        drafts.push(draft(engine, project, (place, segment), topic)?);
    }
    let loaded = engine.loaded_embedders();
    let redactor = project.redactor.clone();
    let prepare = move || prepared(&redactor, &loaded, drafts, &mut || [0; 16]);
    let Prepared { mut memories, redactions } =
        tokio::task::spawn_blocking(prepare).await.expect("preparing does not panic");
    let own: Vec<MemoryId> = memories.iter().map(|memory| memory.id.clone()).collect();
    let mut unknown_references = Vec::new();
    for (memory, texts) in memories.iter_mut().zip(named) {
        let (places, others): (Vec<String>, Vec<String>) =
            texts.into_iter().partition(|text| text.trim().starts_with('#'));
        let (ids, missing) = levels::ids(engine, caller, "references", &others).await?;
        unknown_references.extend(missing);
        for id in &ids {
            if !own.contains(id) && project.store.memory(&project.scope, id).await?.is_none() {
                unknown_references.push(id.to_string());
            }
        }
        memory.draft.references = ids;
        for place in places {
            let id = place.trim()[1..].parse::<usize>().ok().and_then(|place| own.get(place));
            memory.draft.references.push(id.cloned().ok_or_else(|| no_place(&place, count))?);
        }
    }
    Ok(Given { memories, redactions, unknown_references })
}

fn no_place(place: &str, count: usize) -> Error {
    Error::bad_input(format!("`references` names `{}`, but the call has {count} segments", quoted(place)))
        .hint("nothing was stashed; #0 is the first segment of the call")
}

/// Returns the draft of the segment at `place` of the call.
fn draft(
    engine: &Engine,
    project: &OpenProject,
    (place, segment): (usize, Segment),
    topic: Option<&str>,
) -> Result<Draft> {
    let Segment { text, kind, source, session_id, time, .. } = segment;
    let name = |field: &str| format!("segments[{place}].{field}");
    if text.is_empty() {
        return Err(Error::bad_input(format!("`{}` is empty", name("text")))
            .hint("nothing was stashed; leave the segment out"));
    }
    common::whole(&name("text"), &text)?;
    let kind = kind.as_deref().map_or(Ok(Kind::Message), |word| common::kind(&name("type"), word))?;
    if !KINDS.contains(&kind) {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.as_str()).collect();
        return Err(Error::bad_input(format!("`{}` can't be {kind}", name("type")))
            .hint(format!("nothing was stashed; use {}", known.join(", "))));
    }
    let time = time.as_deref().map(|time| times::parse_time(&name("time"), time)).transpose()?;
    let mut draft = Draft::new(kind, Provenance::ModelSaid, text, time.unwrap_or_else(|| engine.now()));
    let redactor = &project.redactor;
    draft.session = session_id
        .as_deref()
        .map(|id| tiro_intake::session_id(redactor, &name("session_id"), id))
        .transpose()?;
    draft.path = source.as_deref().map(|source| common::short(&name("source"), source)).transpose()?;
    draft.topic = topic.map(str::to_owned);
    draft.identity = Identity::Segment;
    if let Some(option) = ignored(engine, &draft, Some(project.root.as_path())) {
        return Err(Error::bad_input(format!("the configuration's `{option}` excludes `segments[{place}]`"))
            .hint("nothing was stashed; the user wants no memory of that conversation or file"));
    }
    Ok(draft)
}
