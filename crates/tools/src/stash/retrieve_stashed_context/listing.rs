//! Lists the stash by topic and session, so that a new session can see its content.

use super::FoundSegments;
use super::answer::{Example, Group};
use crate::common::beginning;
use tiro_base::error::{Error, Result, quoted};
use tiro_base::filter::Filter;
use tiro_base::memory::{MemoryId, MemoryKey, marked};
use tiro_base::scope::Scope;
use tiro_base::times::show_time;
use tiro_host::project::OpenProject;
use tiro_store::{StashGroup, StashPage};

/// The number of groups on a page.
const GROUPS: usize = 20;
/// The number of segments of each group that a page names.
const NAMED: usize = 3;
/// The maximum number of tokens of the beginning of a text.
const BEGINNING: usize = 20;

/// Returns a page of the stash, beginning at `cursor`.
pub(super) async fn list(
    project: &OpenProject,
    scope: &Scope,
    filter: &Filter,
    cursor: Option<&str>,
) -> Result<FoundSegments> {
    let offset = cursor.map_or(Ok(0), |cursor| {
        cursor.parse::<u32>().map(|offset| offset as usize).map_err(|_| {
            Error::bad_input(format!("`cursor` was not returned by this tool: `{}`", quoted(cursor)))
                .hint("leave it out to start at the beginning")
        })
    })?;
    let page = StashPage { filter: filter.clone(), offset, groups: GROUPS, ids: NAMED };
    let contents = project.store.stash_contents(scope, page).await?;
    let mut found = FoundSegments { lists: true, offset, ..FoundSegments::default() };
    (found.total, found.tokens) = (contents.memories.unsigned_abs() as usize, contents.tokens);
    found.has_more = offset + contents.page.len() < contents.groups.unsigned_abs() as usize;
    for group in contents.page {
        found.groups.push(shown(project, group).await?);
    }
    Ok(found)
}

async fn shown(project: &OpenProject, group: StashGroup) -> Result<Group> {
    let StashGroup { topic, session, memories, tokens, last, ids } = group;
    let keys = project.store.keys_of(&project.scope, ids.clone()).await?;
    let keys: Vec<MemoryKey> = keys.into_iter().flatten().collect();
    let texts = project.store.memories(&project.scope, keys).await?;
    let example = |id: &MemoryId| {
        let memory = texts.iter().find(|memory| memory.id == *id)?;
        let line = memory.text.split_whitespace().take(40).collect::<Vec<_>>().join(" ");
        let text = marked(beginning(&line, BEGINNING).to_owned(), memory.is_damaged);
        Some(Example { id: id.to_string(), text })
    };
    Ok(Group {
        topic,
        session_id: session.map(|session| session.to_string()),
        segments: memories,
        tokens,
        last_stashed: show_time(last),
        examples: ids.iter().filter_map(example).collect(),
    })
}
