//! Resets a thread. Either only its files are reset, so that they get new places, or the whole thread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tiro_base::error::Result;
use tiro_base::humanize::counted;
use tiro_base::thread::ThreadName;
use tiro_host::caller::WritingCaller;
use tiro_host::consult;
use tiro_host::engine::Engine;
use tiro_intake::session_id;
use tiro_store::Reset;

/// The name of the tool in MCP.
pub const NAME: &str = "reset_session";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Reset a thread";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Resets the threads of a session: `files` sends files anew and may place them \
    differently; `thread` begins an empty thread. Memory stays; forget_context removes it.";

/// The arguments of the call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Args {
    /// The session.
    #[schemars(description = "")]
    pub session_id: String,
    /// All if left out.
    pub assistant: Option<String>,
    /// files if left out.
    pub what: Option<What>,
}

/// What is reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(
    clippy::missing_docs_in_private_items,
    reason = "docs would be part of the schema that every model reads"
)]
#[allow(missing_docs, reason = "docs become part of the schema, which models pay for")]
pub enum What {
    #[default]
    Files,
    Thread,
}

/// The answer of the call.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// The session.
    pub session_id: String,
    /// The assistants whose threads were reset.
    pub assistants: Vec<String>,
    /// How many files lost their places.
    pub files: usize,
    /// How many turns were removed from threads. Their messages stay in the memory.
    pub turns: usize,
    /// What was reset.
    pub what: What,
}

/// Resets the threads.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    let project = caller.begin_project(engine).await?;
    let session = session_id(&project.redactor, "session_id", &args.session_id)?;
    let what = args.what.unwrap_or_default();
    let mut threads = project.store.threads(&project.scope, Some(&session)).await?;
    if let Some(name) = args.assistant.as_deref().map(str::trim) {
        threads.retain(|thread| thread.name.assistant == name);
    }
    if threads.is_empty() {
        let assistant = args.assistant.as_deref().map(str::trim);
        return Err(consult::missing(engine, &project, &session, assistant).await?);
    }
    // If a thread is being asked, it is not reset, because its turn could not be recorded afterwards.
    let names: Vec<ThreadName> = threads.into_iter().map(|thread| thread.name).collect();
    let mut leases = Vec::with_capacity(names.len());
    for name in &names {
        leases.push(consult::lease(engine, &project, name).await?);
    }
    let mut output = Output { session_id: session.to_string(), what, ..Output::default() };
    for (name, lease) in names.into_iter().zip(leases) {
        let reset = match what {
            What::Files => Reset::Files,
            What::Thread => Reset::Thread,
        };
        let done = project.store.reset_thread(&project.scope, &name, reset).await?;
        output.files += done.files;
        output.turns += done.turns;
        lease.release().await;
        output.assistants.push(name.assistant);
    }
    Ok(output)
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let (threads, files) = (self.assistants.join(", "), counted(self.files, "file", "files"));
        let session = tiro_base::error::quoted(&self.session_id);
        match self.what {
            What::Files => format!(
                "Reset {files} of session `{session}` ({threads}): the next call sends the files of the context whole. If it \
                 names a `context`, that replaces the earlier one."
            ),
            What::Thread => format!(
                "Removed {} and {files} from session `{session}` ({threads}). What was said stays in the memory.",
                counted(self.turns, "turn", "turns")
            ),
        }
    }
}
