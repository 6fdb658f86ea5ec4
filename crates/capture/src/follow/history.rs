//! Records how much of the repository's history is stored, and decides which commits are wanted.
//!
//! Two things are recorded separately: how much of the history was imported, and the commits after which new commits
//! are followed. So if the user declines the import, new commits are still followed, and the history can be imported
//! later.

use std::collections::HashSet;

use crate::follow::in_time::in_time;
use crate::sources::Sources;
use tiro_base::error::Result;
use tiro_git::{KnownCommit, Sha};
use tiro_intake::{Intake, ReadIntake};

/// The name of the import cursor that contains the state of the import.
const SOURCE: &str = "git";

/// The name of the import cursor that contains the commits at which branches pointed when they were last followed.
const FOLLOWED: &str = "git followed";

/// The state after all commits that branches lead to were imported.
const WHOLE: &str = "whole";

/// The state that versions before 0.2 wrote in place of [`WHOLE`]. Those versions wrote this state even if the user
/// declined to import the history, so an import doesn't rely on it.
const FORMERLY_WHOLE: &str = "complete";

/// The state after the user imported part of the history, with a limit or from an incomplete clone.
const PARTIAL: &str = "partial";

/// The state while an import of the whole history is unfinished.
const INTERRUPTED: &str = "interrupted";

/// Which commits an import is to store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The whole history.
    #[default]
    Everything,
    /// New commits: those made since the last import, or since following began.
    New,
}

/// How much of the history is stored.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    imported: Option<String>,
    /// The commits that branches pointed at when they were last followed.
    seen: Option<Vec<Sha>>,
}

impl Stored {
    /// Reads the state from the store.
    pub async fn of(intake: &dyn ReadIntake) -> Result<Stored> {
        let seen = intake.cursor(FOLLOWED).await?;
        Ok(Stored {
            imported: intake.cursor(SOURCE).await?,
            seen: seen.map(|text| text.split_whitespace().filter_map(|sha| sha.parse().ok()).collect()),
        })
    }

    /// Returns whether following has begun. New commits can be told from old ones only after that.
    pub fn is_followed(&self) -> bool {
        self.imported.is_some() || self.seen.is_some()
    }

    /// Returns whether the user imported the history or part of it.
    pub fn is_imported(&self) -> bool {
        self.imported.is_some()
    }

    /// Returns whether it is certain that no ancestor of a stored commit is missing. It is certain if only new commits
    /// are wanted and a version before 0.2 wrote the state.
    pub fn has_no_gaps(&self, wanted: Wanted) -> bool {
        wanted == Wanted::New && self.imported.as_deref() == Some(FORMERLY_WHOLE)
    }

    /// Returns whether the state says that everything is stored. A version before 0.2 may have written such a state
    /// although nothing was stored.
    pub fn claims_all(&self) -> bool {
        matches!(self.imported.as_deref(), Some(WHOLE | FORMERLY_WHOLE))
    }

    /// Returns whether the whole history is certainly stored.
    pub fn is_whole(&self) -> bool {
        self.imported.as_deref() == Some(WHOLE)
    }

    /// Returns the commits that branches pointed at when they were last followed. An import uses them to tell new
    /// commits from old ones. Returns `None` if the import need not do this: it wants the whole history, or the user
    /// has already begun to import the whole history, so every commit that is not stored is wanted.
    pub fn seen(&self, wanted: Wanted) -> Option<&[Sha]> {
        let is_partial = matches!(self.imported.as_deref(), None | Some(PARTIAL));
        let is_all_wanted = wanted == Wanted::Everything || !is_partial;
        self.seen.as_deref().filter(|_| !is_all_wanted)
    }

    /// Returns what a stored commit tells about its ancestors.
    pub fn covers(&self, wanted: Wanted) -> KnownCommit {
        match self.is_whole() || (wanted == Wanted::New && self.claims_all()) {
            true => KnownCommit::CoversAncestors,
            false => KnownCommit::OnlyItself,
        }
    }

    /// Records that an import begins. `left_out` is the number of older commits that the import leaves out. If the
    /// import stops early, ancestors of stored commits may be missing, and the recorded state says so.
    ///
    /// A state that an earlier version wrote is not changed. The user of that version may have declined to import the
    /// history. In this case, any other state would look like an interrupted import, and the rest of the history would
    /// be imported. Keeping that state is safe: parents are stored before their children, so no ancestor of a stored
    /// commit is missing.
    pub async fn begin(&self, intake: &dyn Intake, wanted: Wanted, left_out: usize) -> Result<()> {
        if self.has_no_gaps(wanted) {
            return Ok(());
        }
        let is_partial = left_out > 0 && self.imported.as_deref().is_some_and(|imported| imported != PARTIAL);
        if self.covers(wanted) == KnownCommit::CoversAncestors || is_partial {
            intake.keep_cursor(SOURCE, INTERRUPTED).await?;
        }
        Ok(())
    }

    /// Records that everything wanted is stored. `tips` are the commits at which branches point.
    pub async fn end(&self, intake: &dyn Intake, wanted: Wanted, tips: &[Sha]) -> Result<()> {
        if self.seen(wanted).is_some() {
            return follow_from(intake, tips).await;
        }
        let state = if self.has_no_gaps(wanted) { FORMERLY_WHOLE } else { WHOLE };
        intake.keep_cursor(SOURCE, state).await
    }

    /// Records that part of the wanted commits are stored. If Tiro did not follow new commits before, it does so from
    /// now on.
    pub async fn end_in_part(&self, intake: &dyn Intake, wanted: Wanted, tips: &[Sha]) -> Result<()> {
        if wanted == Wanted::Everything && self.imported.is_none() {
            intake.keep_cursor(SOURCE, PARTIAL).await?;
        }
        match self.is_followed() {
            true => Ok(()),
            false => follow_from(intake, tips).await,
        }
    }
}

/// The number of commits in the history, and the number of stored ones.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// The number of commits that can be reached from branches.
    pub all: usize,
    /// The number of those commits that are stored.
    pub stored: usize,
}

/// Counts the commits of the project's repository and those that are stored. This reads the whole history.
pub async fn share(sources: &Sources, intake: &dyn ReadIntake) -> Result<Option<Share>> {
    let Some(repository) = sources.repository.clone() else { return Ok(None) };
    let known = known(intake).await?;
    let count = in_time(None, move |stop| {
        let tips = repository.tips().found;
        let mut all = 0;
        let is_known = &mut |sha: &Sha| {
            all += 1;
            known.contains(sha)
        };
        let left = repository.history(&tips, KnownCommit::OnlyItself, stop, is_known)?;
        let missing = left.commits.len() + left.unreadable.len();
        Ok(Share { all, stored: all.saturating_sub(missing) })
    });
    count.await.transpose()
}

/// Sets the commits from which following starts. From then on, commits that can't be reached from `tips` count as new.
pub async fn follow_from(intake: &dyn Intake, tips: &[Sha]) -> Result<()> {
    let mut tips: Vec<String> = tips.iter().map(Sha::to_string).collect();
    tips.sort();
    tips.dedup();
    intake.keep_cursor(FOLLOWED, &tips.join(" ")).await
}

/// Returns the ids of the stored commits.
pub async fn known(intake: &dyn ReadIntake) -> Result<HashSet<Sha>> {
    let known = intake.known_commits().await?;
    Ok(known.iter().filter_map(|sha| sha.parse().ok()).collect())
}
