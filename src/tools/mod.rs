//! The operations of Tiro, one file each, and the table that the doors read them from.
//!
//! `tools/<verb>.rs` holds the arguments, the output and one function that tells the story of a call; this module
//! turns such a file into a [`Tool`]: a name, texts and schemas for the agent, and a call from JSON to an [`Answer`].
//! A tool file gives `NAME`, `TITLE`, `DESCRIPTION`, `Args`, `Output` with `fn text(&self) -> String`, and
//! `async fn run(&Engine, Args) -> Result<Output>`; the macro `tool!` does the rest. The command line calls `run` itself.
//!
//! A call is a closure that already holds the engine, so that a door needs to know neither the engine nor the types
//! of a tool. It is not: the wire. Nothing here knows MCP or JSON-RPC, and `server/` is the only place that does.

mod across_sessions;
mod arguments;
mod ask;
pub mod backup;
mod behind;
pub mod catch_up;
pub(crate) mod common;
pub mod configure_llm_provider;
mod cursor;
pub mod demo;
pub mod doctor;
pub mod expand_detail;
pub mod export;
mod followed;
pub mod forget_context;
pub mod gc;
pub mod get_context_summary;
pub mod get_relevant_snippets;
mod history;
mod hits;
pub mod import_git;
pub mod import_preview;
pub mod import_sessions;
mod imported;
mod in_time;
pub mod index;
pub mod init;
mod keep_summary;
mod kept_out;
mod leaves;
pub(crate) mod levels;
mod link;
pub(crate) mod linked;
pub mod list_sessions;
mod long_conversation;
pub mod mark_important;
mod messages;
mod meter;
pub mod model;
mod passages;
pub mod projects;
pub mod provider;
mod quarters;
mod queue;
mod resources;
pub mod retrieve_context;
pub mod save_messages;
mod schema;
pub mod search_project_memory;
mod share;
pub mod show;
mod spending;
pub mod stats;
pub mod store_memory;
pub(crate) mod summaries;
pub mod summarize_all;
pub mod summarize_commits;
pub mod summarize_conversation;
mod summary;
mod surroundings;
#[cfg(test)]
mod tests;
mod times;
mod within_session;

use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::engine::Engine;
use crate::error::{Error, Result, quoted};

pub use resources::{Resources, SessionEntry, SessionPage};
pub use schema::{input_schema, output_schema};

/// Returns every tool there is, in the order in which clients list them.
///
/// Nothing is loaded or opened: a client may list the tools before anything works.
pub fn all(engine: &Arc<Engine>) -> Vec<Tool> {
    engine.serves_tools();
    vec![
        tool!(engine, search_project_memory, Memory, READS),
        tool!(engine, expand_detail, Memory, READS),
        tool!(engine, save_messages, Memory, ADDS),
        tool!(engine, store_memory, Memory, SETS),
        tool!(engine, mark_important, Memory, SETS),
        tool!(engine, forget_context, Memory, REMOVES),
        tool!(engine, list_sessions, Memory, READS),
        tool!(engine, retrieve_context, Context, READS),
        tool!(engine, get_relevant_snippets, Context, READS),
        tool!(engine, get_context_summary, Context, READS),
        tool!(engine, summarize_conversation, Context, ASKS),
        tool!(engine, configure_llm_provider, Context, SETS),
    ]
}

/// Returns how sessions and memories are read as resources.
pub fn resources(engine: &Arc<Engine>) -> Resources {
    Resources::of(engine)
}

/// An operation as an agent sees it, and how to call it.
pub struct Tool {
    /// The name it is called by, snake_case.
    pub name: &'static str,
    /// The name people are shown.
    pub title: &'static str,
    /// What it does, when to use it and when to use another; the agent reads this.
    pub description: &'static str,
    /// The JSON Schema of the arguments, an object schema: see [`input_schema`].
    pub input_schema: Arc<Map<String, Value>>,
    /// The JSON Schema of the answer's top level: see [`output_schema`].
    pub output_schema: Arc<Map<String, Value>>,
    /// What calling it may do to the world.
    pub hints: Hints,
    /// The group it is offered with.
    pub toolset: Toolset,
    call: Box<dyn Fn(Value) -> Pending<Answer> + Send + Sync>,
}

/// What is said about a tool beside its types.
pub struct About {
    /// See [`Tool::name`].
    pub name: &'static str,
    /// See [`Tool::title`].
    pub title: &'static str,
    /// See [`Tool::description`].
    pub description: &'static str,
    /// See [`Tool::hints`].
    pub hints: Hints,
    /// See [`Tool::toolset`].
    pub toolset: Toolset,
}

/// A result that is still being worked on; dropping it ends the work at its next await.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

impl Tool {
    /// Returns the tool that reads its arguments as `A` and answers what `run` returns; `O` is its output type.
    pub fn new<A, O, F, W>(about: About, run: F) -> Tool
    where
        A: DeserializeOwned + JsonSchema + Send,
        O: Serialize + JsonSchema,
        F: Fn(A) -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<Answer>> + Send,
    {
        let About { name, title, description, hints, toolset } = about;
        let input_schema = Arc::new(input_schema::<A>());
        let output_schema = Arc::new(output_schema::<O>());
        let schema = Arc::clone(&input_schema);
        // Reading the arguments is part of the work: they can be megabytes, and a door's thread has others to serve.
        let call = Box::new(move |arguments| -> Pending<Answer> {
            let (schema, run) = (Arc::clone(&schema), run.clone());
            Box::pin(async move { run(arguments::read::<A>(&schema, arguments)?).await })
        });
        Tool { name, title, description, input_schema, output_schema, hints, toolset, call }
    }

    /// Calls the tool with a JSON object of arguments, spelled in snake_case or camelCase.
    ///
    /// A missing, unknown or wrongly typed argument is a [`BadInput`](crate::error::Kind::BadInput) error that names
    /// it and says what would be right.
    pub fn call(&self, arguments: Value) -> Pending<Answer> {
        (self.call)(arguments)
    }
}

/// Makes a [`Tool`] of a tool file: `tool!(engine, store_memory, Memory, ADDS)`.
macro_rules! tool {
    ($engine:expr, $file:ident, $toolset:ident, $hints:ident) => {{
        let engine = std::sync::Arc::clone($engine);
        let about = $crate::tools::About {
            name: $file::NAME,
            title: $file::TITLE,
            description: $file::DESCRIPTION,
            hints: $crate::tools::Hints::$hints,
            toolset: $crate::tools::Toolset::$toolset,
        };
        let about_hints = about.hints;
        $crate::tools::Tool::new::<$file::Args, $file::Output, _, _>(about, move |args| {
            let engine = std::sync::Arc::clone(&engine);
            async move {
                let began = std::time::Instant::now();
                let output = $file::run(&engine, args).await?;
                engine.measured($file::NAME, began.elapsed().as_micros() as u64);
                let answer = $crate::tools::Answer::new(output.text(), &output);
                // What only reads keeps a budget, to which this would be added: it says it among its own notices.
                let news = if about_hints.read_only { None } else { engine.take_news() };
                Ok(answer.with(news))
            }
        })
    }};
}
use tool;

/// What a tool answers: the same thing for a model to read and for a program.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer in words; it stands alone, since some clients show a model nothing else.
    pub text: String,
    /// The answer as data. Fields without a value are left out rather than `null`.
    pub fields: Map<String, Value>,
}

impl Answer {
    /// Returns the answer that reads `text` and holds the fields of `output`.
    ///
    /// # Panics
    /// If `output` is not a struct of plain values: any test of the tool would show that.
    pub fn new(text: String, output: &impl Serialize) -> Answer {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(output) else {
            panic!("the output of a tool serialises to a JSON object")
        };
        // Output schemas say a plain type for an optional field, so `null` would not match them.
        fields.retain(|_, value| !value.is_null());
        Answer { text, fields }
    }

    /// Returns the answer with a line of news after its text, and among its notices.
    fn with(mut self, news: Option<String>) -> Answer {
        let Some(news) = news else { return self };
        self.text += &format!("\n{news}");
        let notices = self.fields.entry("notices").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(notices) = notices {
            notices.push(Value::String(news));
        }
        self
    }
}

/// What calling a tool may do; all four are told to clients, which decide by them what to ask the user about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may take something away.
    pub destructive: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: bool,
    /// It reaches beyond this machine.
    pub open_world: bool,
}

impl Hints {
    /// Reads and nothing else.
    pub const READS: Hints =
        Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    /// Adds something; calling it twice may add it twice.
    pub const ADDS: Hints =
        Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    /// Brings something into a state, or adds it once however often it is called.
    pub const SETS: Hints =
        Hints { read_only: false, destructive: false, idempotent: true, open_world: false };
    /// Makes something, once however often it is called, and may ask a model elsewhere for it.
    pub const ASKS: Hints =
        Hints { read_only: false, destructive: false, idempotent: true, open_world: true };
    /// Takes something away.
    pub const REMOVES: Hints =
        Hints { read_only: false, destructive: true, idempotent: true, open_world: false };
}

/// A group of tools that is offered or left out as one, since every tool listed costs its reader tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolset {
    /// Searching, storing and forgetting memories.
    Memory,
    /// Asking other models.
    Consult,
    /// Assembling the context of long conversations.
    Context,
    /// Putting parts of a conversation aside.
    Stash,
}

/// The toolsets a server offers; all of them unless said otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolsets(Vec<Toolset>);

impl Toolsets {
    /// Returns whether `toolset` is offered.
    pub fn offers(&self, toolset: Toolset) -> bool {
        self.0.contains(&toolset)
    }
}

impl Default for Toolsets {
    fn default() -> Toolsets {
        Toolsets(vec![Toolset::Memory, Toolset::Consult, Toolset::Context, Toolset::Stash])
    }
}

/// Reads names separated by commas: `memory,consult`.
impl FromStr for Toolsets {
    type Err = Error;

    fn from_str(names: &str) -> Result<Toolsets> {
        let toolset = |name: &str| match name.trim() {
            "memory" => Ok(Toolset::Memory),
            "consult" => Ok(Toolset::Consult),
            "context" => Ok(Toolset::Context),
            "stash" => Ok(Toolset::Stash),
            other => Err(Error::bad_input(format!("there is no toolset `{}`", quoted(other)))
                .hint("choose from memory, consult, context and stash, separated by commas")),
        };
        names.split(',').map(toolset).collect::<Result<Vec<Toolset>>>().map(Toolsets)
    }
}
