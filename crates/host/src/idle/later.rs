//! Does the work that calls leave undone, so that no answer waits for it. This work is extracting facts, closing
//! segments, making summaries, and stashing messages.
//!
//! The idle worker does this work as soon as the answer is sent. Commands do some of it at their end, because they have
//! no idle worker.

use std::time::Duration;

use crate::caller::{Task, WritingCaller};
use crate::engine::Engine;
use crate::project::WritableProject;
use crate::summaries::sessions;
use tiro_base::error::Result;
use tiro_base::memory::MemoryId;
use tiro_store::{StashCause, Stashing};

/// The maximum number of tasks in one step. Arbitrary: they take less than a second.
const STEP: usize = 8;

/// The longest time that a command waits for other writers. After that, it leaves the work undone.
const TURN: Duration = Duration::from_secs(1);

/// Does some of the work that calls left. Returns whether more work can be done at once. If some work fails, it stays
/// for another try.
pub async fn work_off(engine: &Engine, caller: &WritingCaller) -> Result<bool> {
    let tasks = caller.left();
    if tasks.is_empty() {
        return Ok(false);
    }
    let project = caller.begin_project(engine).await?;
    let mut is_left = tasks.len() > STEP;
    let mut failed = None;
    for task in tasks.into_iter().take(STEP) {
        match work(engine, &project, &task).await {
            Ok(true) => is_left = true,
            Ok(false) => caller.did(&task),
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(is_left), Err)
}

/// Does a part of the task. Returns whether a part of the task is left.
async fn work(engine: &Engine, project: &WritableProject, task: &Task) -> Result<bool> {
    match task {
        Task::Digest(session) => Ok(sessions::digest(engine, project, session).await? > 0),
        Task::Stash(_, ids) => stash(engine, project, ids).await.map(|()| false),
        Task::Keep { summary, began, .. } => {
            let (summary, now) = (summary.as_ref().clone(), engine.now());
            project.store.save_version(&project.scope, summary, *began, now).await.map(|_| false)
        }
    }
}

/// Does some of the work that a command left. If the work fails, or other processes write, the work stays undone until
/// the session is read again.
pub async fn after_a_command(engine: &Engine, caller: &WritingCaller) {
    if caller.left().is_empty() {
        return;
    }
    let worked = async {
        let project = caller.begin_project(engine).await?;
        project.store.await_turn(&project.scope, TURN).await?;
        work_off(engine, caller).await
    };
    if let Err(error) = worked.await {
        tracing::debug!(%error, "what the command left is not done yet");
    }
}

/// Stashes those of the messages that still exist. Contexts continue to show them.
async fn stash(engine: &Engine, project: &WritableProject, ids: &[MemoryId]) -> Result<()> {
    let (store, scope) = (project.store.as_ref(), &project.scope);
    let living = store.keys_of(scope, ids.to_vec()).await?;
    let named = ids.iter().zip(living).filter_map(|(id, key)| key.map(|_| id.clone())).collect::<Vec<_>>();
    if named.is_empty() {
        return Ok(());
    }
    let stashing = Stashing {
        named,
        given: Vec::new(),
        cause: StashCause::Pruning,
        expires_at: None,
        is_protected: None,
        topic: None,
    };
    store.stash(scope, stashing, engine.now()).await.map(drop)
}
