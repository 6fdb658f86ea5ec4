//! A tool: a name, texts and schemas for the agent, and a call from JSON to an [`Answer`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::arguments;
use super::schema::{input_schema, output_schema};
use crate::caller::Toolset;
use crate::error::Result;

/// An operation as an agent sees it, and how to call it.
pub struct Tool {
    /// The name it is called by, snake_case.
    pub name: String,
    /// The name people are shown.
    pub title: String,
    /// What it does, when to use it and when to use another; the agent reads this.
    pub description: String,
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
    pub name: String,
    /// See [`Tool::title`].
    pub title: String,
    /// See [`Tool::description`].
    pub description: String,
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
    pub(crate) fn with(mut self, news: Option<String>) -> Answer {
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
