//! Stores the graph of the repository's commits for all processes. The graph shows whether a commit is still on a
//! branch, without reading git's objects.

use std::time::{Duration, Instant};

use crate::follow::in_time::in_time;
use crate::freshness;
use crate::sources::Sources;
use tiro_base::error::Result;
use tiro_git::{GraphPart, Repository};
use tiro_intake::{Intake, ReadIntake, Standing, Subject};
use tiro_store::GraphRow;

/// The longest time that git may take to find the standing of commits. After that, the standing counts as unknown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the standing of each of `subjects`, in their order. Among other things, the standing says whether the commit
/// is still on a branch.
pub async fn standing(sources: &Sources, intake: &dyn ReadIntake, subjects: Vec<Subject>) -> Vec<Standing> {
    let count = subjects.len();
    let Some(repository) = sources.repository.clone() else { return vec![Standing::CURRENT; count] };
    if let Err(error) = remember(&repository, intake).await {
        tracing::warn!(%error, "the graph of commits is read again");
    }
    let ask = move |_: &_| freshness::standing(&repository, &subjects);
    let Some(standing) = in_time(Some(Instant::now() + PATIENCE), ask).await else {
        return vec![Standing::UNKNOWN; count];
    };
    standing
}

/// Reads the commits that branches and `HEAD` lead to, and stores the new part of the graph.
pub async fn learn(sources: &Sources, intake: &dyn Intake, until: Option<Instant>) -> Result<()> {
    let Some(repository) = sources.repository.clone() else { return Ok(()) };
    remember(&repository, intake).await?;
    let explore = move |_: &_| {
        let head = repository.head().ok().and_then(|head| head.commit);
        let tips: Vec<_> = head.into_iter().chain(repository.branch_tips().iter().copied()).collect();
        repository.explore(&tips, until)
    };
    in_time(until, explore).await;
    keep(sources, intake).await
}

/// Loads the stored graph if this process hasn't read or loaded any commits yet.
async fn remember(repository: &Repository, intake: &dyn ReadIntake) -> Result<()> {
    if !repository.is_graph_empty() {
        return Ok(());
    }
    let rows = intake.commit_graph().await?;
    let part = |GraphRow { stamp, first, count, bytes }| GraphPart { stamp, first, count, bytes };
    let parts: Vec<GraphPart> = rows.into_iter().map(part).collect();
    repository.take_graph(&parts);
    Ok(())
}

/// Stores the part of the graph that was read since the graph was last stored.
async fn keep(sources: &Sources, intake: &dyn Intake) -> Result<()> {
    let Some(repository) = &sources.repository else { return Ok(()) };
    let Some(part) = repository.unsaved_graph() else { return Ok(()) };
    let GraphPart { stamp, first, count, bytes } = part.clone();
    if intake.add_to_commit_graph(GraphRow { stamp, first, count, bytes }).await? {
        repository.saved_graph(&part);
    }
    Ok(())
}
