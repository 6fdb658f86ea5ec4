//! The operations of Tiro, and the table of the tools that agents call. Each operation has its own file, in a folder
//! for its toolset.

#![allow(rustdoc::private_intra_doc_links, reason = "the documentation is built with private items")]
//!
//! `tools/<toolset>/<verb>.rs` contains the arguments, the output and the function `run`. The code of `run` can be read
//! from top to bottom. The macro `tool!` makes a [`Tool`] from such a file. The file needs `NAME`, `TITLE`,
//! `DESCRIPTION`, `Args`, `Output` with `fn text(&self) -> String`, and `async fn run(&Engine, &Caller, Args) ->
//! Result<Output>`. If `run` changes something, it takes a `WritingCaller`. The command line calls `run` directly.
//!
//! A tool contains the engine, so code that calls a tool does not need the engine or the types of the operation. MCP
//! and JSON-RPC are in `server/`.

pub mod common;
pub mod consult;
pub mod context;
pub mod memory;
pub mod operate;
pub mod provider;
pub mod stash;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tiro_host::ask;
use tiro_host::caller::{Caller, Toolset, WritingCaller};
use tiro_host::config::Use;
use tiro_host::engine::Engine;
use tiro_host::principals::Access;

pub use self::common::tool::{About, Answer, Hints, Pending, Progress, Tool};
use self::consult::{chat, count_tokens, describe_session, reset_session};
use self::context::{get_context_summary, get_relevant_snippets, retrieve_context, summarize_conversation};
pub use self::memory::resources::{Resources, SessionEntry};
use self::memory::{
    expand_detail, explain_lines, forget_context, list_sessions, mark_important, save_messages,
    search_project_memory, store_memory,
};
use self::provider::configure_llm_provider;
use self::stash::{merge_stashed_context, retrieve_stashed_context, stash_context};

/// Returns the tools that the caller may use, in the order in which clients list them.
///
/// Loads no model and opens no store, because a client may list the tools before a model or store can be used. The
/// table is the same, byte for byte, for the same caller and configuration.
pub fn offered(engine: &Arc<Engine>, caller: &Arc<WritingCaller>) -> Vec<Tool> {
    caller.serves_tools();
    let mut table = vec![
        tool!(engine, caller, search_project_memory, Memory, READS),
        tool!(engine, caller, expand_detail, Memory, READS),
        tool!(engine, caller, explain_lines, Memory, READS),
        tool!(engine, caller, save_messages, Memory, ADDS),
        tool!(engine, caller, store_memory, Memory, SETS),
        tool!(engine, caller, mark_important, Memory, SETS),
        tool!(engine, caller, forget_context, Memory, REMOVES),
        tool!(engine, caller, list_sessions, Memory, READS),
        tool!(engine, caller, retrieve_context, Context, READS),
        tool!(engine, caller, get_relevant_snippets, Context, READS),
        tool!(engine, caller, get_context_summary, Context, READS),
        tool!(engine, caller, summarize_conversation, Context, SETS),
        tool!(engine, caller, configure_llm_provider, Context, SETS),
        tool!(engine, caller, stash_context, Stash, SETS),
        tool!(engine, caller, retrieve_stashed_context, Stash, READS),
        tool!(engine, caller, merge_stashed_context, Stash, SETS),
    ];
    // Without an assistant, the tools for threads would be useless.
    let assistants = chat::offered(engine, caller);
    if !assistants.is_empty() {
        table.extend(assistants);
        table.push(tool!(engine, caller, describe_session, Consult, READS));
        table.push(tool!(engine, caller, reset_session, Consult, REMOVES));
        table.push(tool!(engine, caller, count_tokens, Consult, READS));
    }
    table.retain(|tool| caller.may_use(tool.toolset) && may_call(caller, tool));
    // The purposes for which the user named providers decide which calls may ask a provider.
    let (embeds, summarises) =
        (ask::may_ask_to_embed(engine), ask::may_ask(engine, Use::Summarize).is_some());
    for tool in &mut table {
        tool.hints.open_world |= match tool.name.as_str() {
            summarize_conversation::NAME => summarises,
            name => embeds && SEARCHING.contains(&name),
        };
    }
    table
}

/// Returns whether the caller has the right to call the tool. An author with a personal key has no files on this
/// machine, and everything that asks providers is paid for by the owner.
fn may_call(caller: &Caller, tool: &Tool) -> bool {
    let is_of_files = tool.toolset == Toolset::Consult || tool.name == explain_lines::NAME;
    let needed = match (tool.hints.read_only, tool.name.as_str()) {
        (true, _) => Access::Read,
        (false, configure_llm_provider::NAME) => Access::Admin,
        (false, _) => Access::Write,
    };
    caller.may(needed) && (caller.has_files() || !is_of_files)
}

/// Returns the names of the read-only tools. A user may let agents call these tools without asking.
pub fn reading(engine: &Arc<Engine>) -> Vec<String> {
    let table = offered(engine, &Arc::new(WritingCaller::of_process(engine.config())));
    table.into_iter().filter(|tool| tool.hints.read_only).map(|tool| tool.name).collect()
}

/// The tools that search by meaning. A provider may embed their question.
const SEARCHING: [&str; 5] = [
    search_project_memory::NAME,
    retrieve_context::NAME,
    get_relevant_snippets::NAME,
    get_context_summary::NAME,
    retrieve_stashed_context::NAME,
];

/// Returns the reader of sessions and memories as MCP resources.
pub fn resources(engine: &Arc<Engine>, caller: &Caller) -> Resources {
    Resources::of(engine, caller)
}

/// Makes a [`Tool`] from a tool file: `tool!(engine, caller, store_memory, Memory, ADDS)`.
macro_rules! tool {
    // A read-only tool gets a caller that can't write.
    (@run READS $file:ident, $engine:expr, $caller:expr, $args:expr) => {{
        let caller: &Caller = $caller;
        $file::run($engine, caller, $args)
    }};
    (@run $hints:ident $file:ident, $engine:expr, $caller:expr, $args:expr) => {
        $file::run($engine, $caller, $args)
    };
    ($engine:expr, $caller:expr, $file:ident, $toolset:ident, $hints:ident) => {{
        let (engine, caller) = (std::sync::Arc::clone($engine), std::sync::Arc::clone($caller));
        let about = $crate::About {
            name: $file::NAME.to_owned(),
            title: $file::TITLE.to_owned(),
            description: $file::DESCRIPTION.to_owned(),
            hints: $crate::Hints::$hints,
            toolset: tiro_host::caller::Toolset::$toolset,
        };
        let about_hints = about.hints;
        $crate::Tool::new::<$file::Args, $file::Output, _, _>(about, move |args, _| {
            let (engine, caller) = (std::sync::Arc::clone(&engine), std::sync::Arc::clone(&caller));
            async move {
                let began = std::time::Instant::now();
                let output = tool!(@run $hints $file, &engine, &caller, args).await?;
                caller.measured($file::NAME, began.elapsed().as_micros() as u64);
                let answer = $crate::Answer::new(output.text(), &output);
                // Work that a call found, such as summaries, is left to the idle worker, so that no answer waits for
                // it.
                caller.tell_of_work();
                // The caller's news are appended here as a line, but only for tools that change something. The answer
                // of a read-only tool has a token budget, which another line could exceed, so its `run` adds the news
                // to the notices itself.
                let news = if about_hints.read_only { None } else { caller.take_news(&engine) };
                Ok(answer.with(news))
            }
        })
    }};
}
use tool;
