//! Marks memories as important.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::authors;
use crate::common;
use tiro_base::error::{Error, Result};
use tiro_base::humanize;
use tiro_base::memory::MemoryId;
use tiro_host::caller::{Caller, WritingCaller};
use tiro_host::engine::Engine;
use tiro_host::summaries::levels;

/// The name of the tool in MCP.
pub const NAME: &str = "mark_important";
/// The title of the tool, which clients show to users.
pub const TITLE: &str = "Mark as important";
/// The description of the tool, which agents read.
pub const DESCRIPTION: &str = "Marks memories as important, so that they rank higher and are kept when \
    context gets short; `important: false` removes the mark. To store something new use store_memory.";

/// The arguments of the call.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// Ids from search results, or SESSION#NUMBER.
    pub ids: Vec<String>,
    /// true if left out.
    pub important: Option<bool>,
    /// 0 to 1; unchanged if left out.
    pub importance: Option<f64>,
}

/// The answer of the call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The memories marked.
    pub ids: Vec<String>,
    /// Whether they are marked as important now.
    pub important: bool,
    /// Ids that no memory of the project or the owner has.
    pub unknown: Vec<String>,
    /// Memories of others, which the caller may only read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}

/// Sets or removes the mark. The change is durable when the call returns.
pub async fn run(engine: &Engine, caller: &WritingCaller, args: Args) -> Result<Output> {
    let (commits, others) = commits(engine, caller, &args.ids).await?;
    let (mut ids, unresolved) = levels::ids(engine, caller, "ids", &others).await?;
    ids.extend(commits);
    if args.ids.is_empty() {
        return Err(Error::bad_input("`ids` is empty").hint("give ids from search results"));
    }
    common::importance(args.importance)?;
    let important = args.important.unwrap_or(true);
    let project = caller.writable_project(engine).await?;
    let owners = &engine.installation().await?.registry;
    let mut marked = project.store.mark(&project.scope, &ids, important, args.importance).await?;
    if marked.len() < ids.len() {
        let scope = project.scope.owner_wide();
        marked.extend(owners.memories().mark(&scope, &ids, important, args.importance).await?);
    }
    let missing: Vec<MemoryId> = ids.into_iter().filter(|id| !marked.contains(id)).collect();
    let kept = authors::of_others(project.store.as_ref(), &project.scope, &missing).await?;
    let missing = missing.iter().filter(|id| !kept.contains_key(id)).map(MemoryId::to_string);
    let unknown: Vec<String> = missing.chain(unresolved).collect();
    if marked.is_empty() && !kept.is_empty() {
        return Err(Error::bad_input(format!("nothing was marked: {}", authors::listed(&kept)))
            .hint("you may only read what is shared in this project"));
    }
    if marked.is_empty() {
        return Err(Error::not_found(format!("no memory is called {}", humanize::some(&unknown)))
            .hint("search results show ids"));
    }
    let kept = kept.keys().map(MemoryId::to_string).collect();
    Ok(Output { ids: marked.iter().map(MemoryId::to_string).collect(), important, unknown, kept })
}

/// Returns the ids of commits that are named in `texts` by at least seven digits of a git id, and the other texts.
async fn commits(engine: &Engine, caller: &Caller, texts: &[String]) -> Result<(Vec<MemoryId>, Vec<String>)> {
    let project = caller.project(engine).await?;
    let (mut commits, mut others) = (Vec::new(), Vec::new());
    for text in texts {
        let digits = text.trim();
        let is_git = (7..=64).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let named = match is_git {
            true => project.store.commit_named(&project.scope, digits).await?,
            false => None,
        };
        match named {
            Some((key, _)) => {
                let found = project.store.memories(&project.scope, vec![key]).await?;
                commits.extend(found.into_iter().map(|memory| memory.id));
            }
            None => others.push(text.clone()),
        }
    }
    Ok((commits, others))
}

impl Output {
    /// Returns the answer as text.
    pub fn text(&self) -> String {
        let done = if self.important { "Marked as important" } else { "No longer marked as important" };
        let mut text = format!("{done}: {}.", humanize::some(&self.ids));
        if !self.unknown.is_empty() {
            text += &format!("\nNo memory is called {}.", humanize::some(&self.unknown));
        }
        if !self.kept.is_empty() {
            text +=
                &format!("\nNot changed, because you may only read them: {}.", humanize::some(&self.kept));
        }
        text
    }
}
