//! Makes drafts of memories from the entries of a session.

use super::forks;
use crate::follow::cursor::Kept;
use crate::follow::link::WorkTrees;
use crate::import::transcript::TranscriptEntry;
use tiro_base::memory::{Draft, FileWrite, LONGEST_TEXT, Millis, Provenance, Role, Work};
use tiro_base::scope::SessionId;

/// The maximum number of bytes that are stored of one session: the first limit is for its tool outputs, the second for
/// all its entries. A longer session probably comes from an agent in a loop.
const TOOLS_KEPT: usize = 4 * 1024 * 1024;
const ALL_KEPT: usize = 16 * 1024 * 1024;

/// Returns whether the entry exceeds the limit of one entry or the limit of its session. `kept` is the number of bytes
/// of the session that are already stored.
pub(super) fn is_too_much(said: &TranscriptEntry, kept: Kept) -> bool {
    let size = said.text.len();
    let is_tool = said.role == Role::Tool;
    kept.all + size > ALL_KEPT || (is_tool && kept.tools + size > TOOLS_KEPT) || size > LONGEST_TEXT
}

pub(super) fn draft(
    said: TranscriptEntry,
    session: &SessionId,
    time: Millis,
    files: Vec<String>,
    work_trees: &WorkTrees,
) -> Draft {
    let (role, identity) = (forks::role(&said), forks::identity(&said));
    let provenance = match role {
        _ if said.is_summary => Provenance::Derived,
        Role::User if said.is_subagent => Provenance::ModelSaid,
        Role::User => Provenance::UserSaid,
        Role::Assistant => Provenance::ModelSaid,
        Role::Tool => Provenance::ToolOutput,
        Role::System => Provenance::Imported,
    };
    let mut draft = Draft::new(forks::kind(&said), provenance, said.text, time);
    draft.identity = identity;
    draft.occurrence = match said.fingerprint {
        Some(_) => Some(said.key.clone()),
        None => said.copy_of.and_then(|copy| copy.own),
    };
    draft.source_id = Some(said.key);
    draft.session = Some(session.clone());
    draft.role = Some(role);
    draft.speaker = match said.is_subagent {
        true => Some(said.speaker.map_or("sub-agent".to_owned(), |name| format!("sub-agent {name}"))),
        false => said.speaker,
    };
    let reflog = said.worktree.as_deref().and_then(|directory| work_trees.work_tree(directory));
    let reflog = reflog.and_then(|root| work_trees.reflogs.get(&root));
    draft.head_sha = reflog.and_then(|reflog| reflog.at(time)).map(|sha| sha.to_string());
    draft.branch = said.branch.filter(|branch| branch != "HEAD" && !branch.is_empty());
    draft.files = files;
    let directory = said.worktree.as_deref();
    let writes = said.written.into_iter().filter_map(|written| {
        let (path, root) = work_trees.relative(&written.path, directory)?;
        Some(FileWrite { path, worktree: Some(root.to_string_lossy().into_owned()), lines: written.lines })
    });
    draft.work = Work {
        writes: writes.collect(),
        worktree: directory
            .and_then(|it| work_trees.work_tree(it))
            .map(|root| root.to_string_lossy().into_owned()),
        ended: said.until,
        commits: said.commits,
    };
    draft
}
