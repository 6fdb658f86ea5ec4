//! A list of work that calls leave to the idle worker. The calls only read, but found work that would change the store.
//!
//! The list is in memory and short. If the process ends before the work is done, the next call that needs the result
//! finds the work again.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use tiro_base::memory::{MemoryId, Millis};
use tiro_base::scope::SessionId;
use tiro_store::Summary;

/// The maximum number of tasks that are kept. If there are more, the oldest is dropped. Arbitrary.
const MOST: usize = 256;

/// The pause between two checks whether the work is done.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Work that a call left.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Extract facts from the session's new messages, close its segments and make their summaries.
    Digest(SessionId),
    /// Stash those messages of the session that no summary covers and that did not fit into its context.
    Stash(SessionId, Vec<MemoryId>),
    /// Store a summary that was made for an answer, under the id that the answer names.
    Keep {
        /// The id.
        id: MemoryId,
        /// The summary.
        summary: Box<Summary>,
        /// The time when making the summary began.
        began: Millis,
    },
}

impl Task {
    /// Returns whether the task makes `other` unnecessary.
    fn replaces(&self, other: &Task) -> bool {
        match (self, other) {
            (Task::Digest(one), Task::Digest(other)) => one == other,
            (Task::Stash(one, _), Task::Stash(other, _)) => one == other,
            (Task::Keep { id: one, .. }, Task::Keep { id: other, .. }) => one == other,
            _ => false,
        }
    }
}

/// The tasks that calls left, with the oldest first.
#[derive(Default)]
pub(super) struct Later {
    tasks: Mutex<Vec<Task>>,
    told: Notify,
}

impl Later {
    /// Adds a task. It replaces a waiting task for the same session or id.
    pub fn add(&self, task: Task) {
        self.change(|tasks| {
            tasks.retain(|waiting| !task.replaces(waiting));
            tasks.push(task);
            let surplus = tasks.len().saturating_sub(MOST);
            tasks.drain(..surplus);
        });
    }

    /// Returns the tasks.
    pub fn all(&self) -> Vec<Task> {
        self.change(|tasks| tasks.clone())
    }

    /// Removes a task that is done. If the task was replaced in the meantime, the new task stays.
    pub fn remove(&self, task: &Task) {
        self.change(|tasks| tasks.retain(|waiting| waiting != task));
    }

    /// Waits until no task for the stash is left, but at most for `patience`. Returns whether none is left.
    pub async fn stashed(&self, patience: Duration) -> bool {
        let began = Instant::now();
        while self.all().iter().any(|task| matches!(task, Task::Stash(..))) {
            if began.elapsed() >= patience {
                return false;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        true
    }

    /// Wakes the idle worker if there are tasks.
    pub fn tell(&self) {
        if self.change(|tasks| !tasks.is_empty()) {
            self.told.notify_one();
        }
    }

    /// Waits until there are tasks for the idle worker.
    pub async fn told(&self) {
        self.told.notified().await;
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Task>) -> T) -> T {
        change(&mut self.tasks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_waits_only_once_and_the_list_is_bounded() {
        let later = Later::default();
        let session = |number: usize| SessionId::parse(&format!("s{number}")).unwrap();
        let stash = |ids: &[&str]| {
            let id = |key: &&str| MemoryId::derive(tiro_base::memory::Kind::Message, None, key);
            Task::Stash(session(0), ids.iter().map(id).collect())
        };
        later.add(Task::Digest(session(0)));
        later.add(stash(&["a"]));
        later.add(Task::Digest(session(0)));
        assert_eq!(later.all(), [stash(&["a"]), Task::Digest(session(0))]);
        later.add(stash(&["a", "b"]));
        later.remove(&stash(&["a"]));
        assert_eq!(later.all().len(), 2, "a task that was replaced meanwhile stays");
        (0..2 * MOST).for_each(|number| later.add(Task::Digest(session(number))));
        assert_eq!(later.all().len(), MOST);
    }
}
