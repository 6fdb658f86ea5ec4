//! A tool: its name, description and schemas for the agent, and a function from JSON arguments to an [`Answer`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::arguments::{self, Given};
use super::schema::{input_schema, listed, output_schema};
use tiro_base::error::Result;
use tiro_host::caller::{Form, Toolset};
use tiro_text::tokens;

/// An operation that agents can call.
pub struct Tool {
    /// The name, in snake_case.
    pub name: String,
    /// The title that clients show to people.
    pub title: String,
    /// The description that agents read. It says what the tool does, and when another tool is better.
    pub description: String,
    /// The JSON Schema of the arguments, an object schema: see [`input_schema`] and [`listed`].
    pub input_schema: Arc<Map<String, Value>>,
    /// The JSON Schema of the answer's top level: see [`output_schema`].
    pub output_schema: Arc<Map<String, Value>>,
    /// What a call may change.
    pub hints: Hints,
    /// The toolset it belongs to.
    pub toolset: Toolset,
    call: Box<dyn Fn(Value, Progress) -> Pending<Answer> + Send + Sync>,
}

/// The fields of a [`Tool`] except its schemas and its function.
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

/// A boxed future of a result. Dropping it stops the work at its next await.
pub type Pending<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

impl Tool {
    /// Returns a tool that reads its arguments as `A` and calls `run`. `O` is the type of its output.
    pub fn new<A, O, F, W>(about: About, run: F) -> Tool
    where
        A: DeserializeOwned + JsonSchema + Send,
        O: Serialize + JsonSchema,
        F: Fn(A, Progress) -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<Answer>> + Send,
    {
        let About { name, title, description, hints, toolset } = about;
        let schema = Arc::new(input_schema::<A>());
        let input_schema = Arc::new(listed(&schema));
        let output_schema = Arc::new(output_schema::<O>());
        // The arguments are read inside the future, because they can be megabytes, and the thread that reads requests
        // must not wait.
        let call = Box::new(move |arguments, progress| -> Pending<Answer> {
            let (schema, run) = (Arc::clone(&schema), run.clone());
            Box::pin(async move {
                let Given { args, remark } = arguments::read::<A>(&schema, arguments)?;
                match (run(args, progress).await, remark) {
                    (Err(error), Some(remark)) => {
                        let hint = error.way_out().map_or(String::new(), |hint| format!("{hint}. "));
                        Err(error.hint(hint + &remark))
                    }
                    (answer, remark) => answer.map(|answer| answer.with(remark)),
                }
            })
        });
        Tool { name, title, description, input_schema, output_schema, hints, toolset, call }
    }

    /// Calls the tool with JSON arguments, which are read as liberally as [`arguments`] describes. A long call reports
    /// its state to `progress`.
    ///
    /// If an argument is missing or can't be read, the result is a [`BadInput`](tiro_base::error::Kind::BadInput) error
    /// that names the argument and gives an example. The answer names the arguments that the tool doesn't have.
    pub fn call(&self, arguments: Value, progress: Progress) -> Pending<Answer> {
        (self.call)(arguments, progress)
    }
}

/// The answer of a tool: the same content as text for a model and as data for a program. Clients get the data only from
/// `tiro serve --structured`.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer as text. It is complete, because a model gets nothing else.
    pub text: String,
    /// The answer as data. Fields without a value are left out and not set to `null`.
    pub fields: Map<String, Value>,
}

impl Answer {
    /// Returns the answer with `text` and the fields of `output`.
    ///
    /// # Panics
    ///
    /// Panics if `output` does not serialise to a JSON object. Every test of the tool would find this fault.
    pub fn new(text: String, output: &impl Serialize) -> Answer {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(output) else {
            panic!("the output of a tool serialises to a JSON object")
        };
        // Output schemas give an optional field a plain type, which `null` would not match.
        fields.retain(|_, value| !value.is_null());
        Answer { text, fields }
    }

    /// Returns the number of tokens (o200k) that an answer costs its reader. This is the number of tokens of `text`. If
    /// the reader may get the data of `output` instead, it is the larger of the two numbers.
    pub fn cost(form: Form, text: &str, output: &impl Serialize) -> usize {
        match form {
            Form::Text => tokens::count(text),
            Form::Both => tokens::count(text).max(Answer::data_cost(output)),
        }
    }

    /// Returns the number of tokens (o200k) of the data of `output` as JSON.
    pub fn data_cost(output: &impl Serialize) -> usize {
        let fields = Answer::new(String::new(), output).fields;
        tokens::count(&serde_json::to_string(&fields).expect("an answer is JSON"))
    }

    /// Returns the answer with `news` added as the last line of its text and as one of its notices.
    pub fn with(mut self, news: Option<String>) -> Answer {
        let Some(news) = news else { return self };
        self.text += &format!("\n{news}");
        let notices = self.fields.entry("notices").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(notices) = notices {
            notices.push(Value::String(news));
        }
        self
    }
}

/// Reports the state of a call to its client. Clones report to the same client.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(String) + Send + Sync>>);

impl Progress {
    /// Returns the progress of a call. Each message is passed to the client by calling `tell`, which must not block.
    pub fn new(tell: impl Fn(String) + Send + Sync + 'static) -> Progress {
        Progress(Some(Arc::new(tell)))
    }

    /// Reports `message` to the client. It is a short phrase without secrets, such as "reading 12 files".
    pub fn tell(&self, message: impl Into<String>) {
        if let Some(tell) = &self.0 {
            tell(message.into());
        }
    }
}

/// The changes that a call of a tool may make. Clients receive these hints as the MCP tool annotations, and use them to
/// decide whether to ask the user before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// True if a call neither makes, changes nor deletes anything: no memory, no segment, no summary and nothing in the
    /// stash. Even during such a call, new transcripts and commits are imported.
    pub read_only: bool,
    /// Whether a call may delete something.
    pub destructive: bool,
    /// Whether a second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Whether a call may ask a provider.
    pub open_world: bool,
}

impl Hints {
    /// The hints for a tool that only reads.
    pub const READS: Hints =
        Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    /// The hints for a tool that adds something. Calling the tool twice may add the same thing twice.
    pub const ADDS: Hints =
        Hints { read_only: false, destructive: false, idempotent: false, open_world: false };
    /// The hints for a tool that sets or adds something. A second call with the same arguments changes nothing.
    pub const SETS: Hints =
        Hints { read_only: false, destructive: false, idempotent: true, open_world: false };
    /// The hints for a tool that deletes something.
    pub const REMOVES: Hints =
        Hints { read_only: false, destructive: true, idempotent: true, open_world: false };
}
