//! The operations of Tiro, one file each, in folders by toolset, and the table of those that agents call.
//!
//! `tools/<toolset>/<verb>.rs` holds the arguments, the output and one function that tells the story of the call. The macro
//! `tool!` makes a [`Tool`] of such a file; it needs `NAME`, `TITLE`, `DESCRIPTION`, `Args`, `Output` with
//! `fn text(&self) -> String`, and `async fn run(&Engine, Args) -> Result<Output>`. The command line calls `run` itself.
//!
//! A tool holds the engine, so a door knows neither the engine nor the types of an operation. MCP and JSON-RPC are not
//! known here: that is `server/`.

pub mod common;
pub mod context;
pub mod memory;
pub mod operate;
pub mod provider;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::engine::Engine;

pub use self::common::tool::{About, Answer, Hints, Pending, Tool, Toolset, Toolsets};
use self::context::{get_context_summary, get_relevant_snippets, retrieve_context, summarize_conversation};
pub use self::memory::resources::{Resources, SessionEntry, SessionPage};
use self::memory::{
    expand_detail, forget_context, list_sessions, mark_important, save_messages, search_project_memory,
    store_memory,
};
use self::provider::configure_llm_provider;

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
