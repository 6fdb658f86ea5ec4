//! The graph of the repository's commits. It is stored for all processes. With it they can tell, without reading git's
//! objects, whether a commit is still on a branch.

use std::time::{Duration, Instant};

use crate::ingest::in_time::in_time;
use crate::project::{OpenProject, WritableProject};
use tiro_base::error::Result;
use tiro_capture::freshness::{self, Standing, Subject};
use tiro_git::GraphPart;
use tiro_store::GraphRow;

/// The longest time that git may take to tell the standing of commits. After that, the standing counts as unknown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the standing of each of `subjects`, in their order. It says, among other things, whether the commit is still
/// on a branch.
pub async fn standing(project: &OpenProject, subjects: Vec<Subject>) -> Vec<Standing> {
    let count = subjects.len();
    let Some(repository) = project.repository.clone() else { return vec![Standing::CURRENT; count] };
    if let Err(error) = remember(project).await {
        tracing::warn!(%error, "the graph of commits is read again");
    }
    let ask = move |_: &_| freshness::standing(&repository, &subjects);
    let Some(standing) = in_time(Some(Instant::now() + PATIENCE), ask).await else {
        return vec![Standing::UNKNOWN; count];
    };
    standing
}

/// Reads the commits that branches and `HEAD` lead to, and stores the new part of the graph.
pub async fn learn(project: &WritableProject, until: Option<Instant>) -> Result<()> {
    let Some(repository) = project.repository.clone() else { return Ok(()) };
    remember(project).await?;
    let explore = move |_: &_| {
        let head = repository.head().ok().and_then(|head| head.commit);
        let tips: Vec<_> = head.into_iter().chain(repository.branch_tips().iter().copied()).collect();
        repository.explore(&tips, until)
    };
    in_time(until, explore).await;
    keep(project).await
}

/// Loads the stored graph if this process hasn't read or loaded any commits yet.
async fn remember(project: &OpenProject) -> Result<()> {
    let Some(repository) = project.repository.as_ref().filter(|it| it.is_graph_empty()) else {
        return Ok(());
    };
    let rows = project.store.commit_graph(&project.scope).await?;
    let part = |GraphRow { stamp, first, count, bytes }| GraphPart { stamp, first, count, bytes };
    let parts: Vec<GraphPart> = rows.into_iter().map(part).collect();
    repository.take_graph(&parts);
    Ok(())
}

/// Stores the part of the graph that was read since the graph was last stored.
async fn keep(project: &WritableProject) -> Result<()> {
    let Some(repository) = &project.repository else { return Ok(()) };
    let Some(part) = repository.unsaved_graph() else { return Ok(()) };
    let GraphPart { stamp, first, count, bytes } = part.clone();
    if project.store.add_to_commit_graph(&project.scope, GraphRow { stamp, first, count, bytes }).await? {
        repository.saved_graph(&part);
    }
    Ok(())
}
