//! The functions that a consulted assistant may call: searches with the rights of its caller, and nothing else.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::memory::search_project_memory;
use tiro_base::error::{Error, Result, quoted};
use tiro_host::caller::Caller;
use tiro_host::consult::{Callable, Returned};
use tiro_host::engine::Engine;
use tiro_llm::Function;
use tiro_store::Sources;

/// The maximum number of tokens of a result, if there is enough room.
const MOST_TOKENS: usize = 2000;

/// The fewest tokens of a result.
const LEAST_TOKENS: usize = 200;

/// The arguments of the function. They are a part of the tool's arguments.
#[derive(Debug, Deserialize)]
struct Args {
    query: String,
    kinds: Option<Vec<String>>,
    path: Option<String>,
    since: Option<String>,
    until: Option<String>,
    cursor: Option<String>,
}

/// Returns the search of the project's memory.
pub fn search_memory(engine: &Arc<Engine>, caller: &Caller) -> Callable {
    let (engine, caller) = (Arc::clone(engine), caller.clone());
    Callable {
        function: Function {
            name: search_project_memory::NAME.to_owned(),
            description: "Finds what was said, decided and committed in this project: earlier conversations, decisions \
                          with their reasons, git commits. Returns excerpts with sources and dates, best first."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "A question or key words"},
                    "kinds": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Only these, such as message, commit, decision"
                    },
                    "path": {"type": "string", "description": "Only about this file or folder"},
                    "since": {"type": "string", "description": "Like 2026-03-01"},
                    "until": {"type": "string"},
                    "cursor": {"type": "string", "description": "For the next page: the cursor that a result names"}
                },
                "required": ["query"]
            }),
        },
        run: Arc::new(move |arguments, most| {
            let (engine, caller) = (Arc::clone(&engine), caller.clone());
            Box::pin(async move { search(&engine, &caller, arguments, most).await })
        }),
    }
}

async fn search(engine: &Engine, caller: &Caller, arguments: Value, most: usize) -> Result<Returned> {
    let args: Args = serde_json::from_value(arguments.clone()).map_err(|_| {
        Error::bad_input(format!("the arguments are not as described: {}", quoted(&arguments)))
            .hint("give an object with `query`, a text")
    })?;
    let args = search_project_memory::Args {
        query: args.query,
        kinds: args.kinds,
        path: args.path,
        since: args.since,
        until: args.until,
        cursor: args.cursor,
        max_tokens: Some(most.clamp(LEAST_TOKENS, MOST_TOKENS)),
        ..search_project_memory::Args::default()
    };
    let output = search_project_memory::search(engine, caller, args).await?;
    let sources = Sources::memories(output.hits.iter().map(|hit| hit.id.clone()));
    Ok(Returned { text: output.text(), sources })
}
