//! How far the history of a project's repository is stored, and which of its commits are wanted.
//!
//! Two things are kept apart: what was imported, and from where on commits are followed. Who declines to import the
//! history has commits followed all the same, and may import the history at any time.

use std::collections::HashSet;

use crate::caller::Caller;
use crate::engine::Engine;
use crate::error::Result;
use crate::git::{Known, Sha};
use crate::ingest::in_time::in_time;
use crate::project::OpenProject;

/// The import's name in the store.
const SOURCE: &str = "git";

/// Under what name the store keeps the commits that branches pointed at when commits were followed last.
const FOLLOWED: &str = "git followed";

/// Everything that branches led to was imported.
const WHOLE: &str = "whole";

/// The same, as versions before 0.2 wrote it; they also did where the history was declined, so an import doesn't rely on it.
const FORMERLY_WHOLE: &str = "complete";

/// The user had some of the history imported, with a limit or of a clone that lacks some.
const PARTIAL: &str = "partial";

/// An import of everything was begun.
const INTERRUPTED: &str = "interrupted";

/// Which commits are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The whole history.
    #[default]
    Everything,
    /// What came since the last time: of a history that was imported, or since following began.
    New,
}

/// How far the history is stored.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    imported: Option<String>,
    /// Where branches pointed when commits were followed last.
    seen: Option<Vec<Sha>>,
}

impl Stored {
    /// Reads it.
    pub async fn of(project: &OpenProject) -> Result<Stored> {
        let seen = project.store.import_cursor(&project.scope, FOLLOWED).await?;
        Ok(Stored {
            imported: project.store.import_cursor(&project.scope, SOURCE).await?,
            seen: seen.map(|text| text.split_whitespace().filter_map(|sha| sha.parse().ok()).collect()),
        })
    }

    /// Whether it is known from where on commits are followed.
    pub fn is_followed(&self) -> bool {
        self.imported.is_some() || self.seen.is_some()
    }

    /// Whether the user had commits imported, the whole history or some of it.
    pub fn is_imported(&self) -> bool {
        self.imported.is_some()
    }

    /// Whether it relies on what an earlier version said: of what is known, nothing is missing before it, and that is all.
    pub fn has_no_gaps(&self, wanted: Wanted) -> bool {
        wanted == Wanted::New && self.imported.as_deref() == Some(FORMERLY_WHOLE)
    }

    /// Whether an import said that it stored everything, which one before 0.2 may have said of nothing.
    pub fn claims_all(&self) -> bool {
        matches!(self.imported.as_deref(), Some(WHOLE | FORMERLY_WHOLE))
    }

    /// Returns whether the history was stored as a whole, for certain.
    pub fn is_whole(&self) -> bool {
        self.imported.as_deref() == Some(WHOLE)
    }

    /// Returns where branches pointed when commits were followed last, where only what came since is wanted.
    pub fn seen(&self, wanted: Wanted) -> Option<&[Sha]> {
        let is_partial = matches!(self.imported.as_deref(), None | Some(PARTIAL));
        let is_all_wanted = wanted == Wanted::Everything || !is_partial;
        self.seen.as_deref().filter(|_| !is_all_wanted)
    }

    /// Returns what a stored commit says of its ancestors.
    pub fn covers(&self, wanted: Wanted) -> Known {
        match self.is_whole() || (wanted == Wanted::New && self.claims_all()) {
            true => Known::CoversAncestors,
            false => Known::OnlyItself,
        }
    }

    /// Notes that commits are being stored, of which `left_out` older ones are not: where this stops, what is stored says
    /// nothing of its ancestors.
    ///
    /// What an earlier version said stays: the history may have been declined, and would be imported as what an interrupted
    /// import left. Commits are stored parents before children then, so nothing is missing before what is known.
    pub async fn begin(
        &self,
        engine: &Engine,
        caller: &Caller,
        wanted: Wanted,
        left_out: usize,
    ) -> Result<()> {
        if self.has_no_gaps(wanted) {
            return Ok(());
        }
        let is_partial = left_out > 0 && self.imported.as_deref().is_some_and(|imported| imported != PARTIAL);
        if self.covers(wanted) == Known::CoversAncestors || is_partial {
            let project = caller.begin_project(engine).await?;
            project.store.set_import_cursor(&project.scope, SOURCE, INTERRUPTED, engine.now()).await?;
        }
        Ok(())
    }

    /// Notes that all is stored that was wanted; `tips` are where branches point.
    pub async fn end(&self, engine: &Engine, caller: &Caller, wanted: Wanted, tips: &[Sha]) -> Result<()> {
        if self.seen(wanted).is_some() {
            return follow_from(engine, caller, tips).await;
        }
        let state = if self.has_no_gaps(wanted) { FORMERLY_WHOLE } else { WHOLE };
        let project = caller.begin_project(engine).await?;
        project.store.set_import_cursor(&project.scope, SOURCE, state, engine.now()).await
    }

    /// Notes that some of what was wanted is stored: what is new is followed all the same.
    pub async fn end_in_part(
        &self,
        engine: &Engine,
        caller: &Caller,
        wanted: Wanted,
        tips: &[Sha],
    ) -> Result<()> {
        if wanted == Wanted::Everything && self.imported.is_none() {
            let project = caller.begin_project(engine).await?;
            project.store.set_import_cursor(&project.scope, SOURCE, PARTIAL, engine.now()).await?;
        }
        match self.is_followed() {
            true => Ok(()),
            false => follow_from(engine, caller, tips).await,
        }
    }
}

/// How many commits there are, and how many of them are stored.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Commits that branches lead to.
    pub all: usize,
    /// Those of them that are stored.
    pub stored: usize,
}

/// Counts the commits of the project's repository, and those of them that are stored; reads the whole history.
pub async fn share(project: &OpenProject) -> Result<Option<Share>> {
    let Some(repository) = project.repository.clone() else { return Ok(None) };
    let known = known(project).await?;
    let count = in_time(None, move |stop| {
        let tips = repository.tips().found;
        let mut all = 0;
        let is_known = &mut |sha: &Sha| {
            all += 1;
            known.contains(sha)
        };
        let left = repository.history(&tips, Known::OnlyItself, stop, is_known)?;
        let missing = left.commits.len() + left.unreadable.len();
        Ok(Share { all, stored: all.saturating_sub(missing) })
    });
    count.await.transpose()
}

/// Has commits followed that no branch led to while they pointed at `tips`.
pub async fn follow_from(engine: &Engine, caller: &Caller, tips: &[Sha]) -> Result<()> {
    let mut tips: Vec<String> = tips.iter().map(Sha::to_string).collect();
    tips.sort();
    tips.dedup();
    let project = caller.begin_project(engine).await?;
    project.store.set_import_cursor(&project.scope, FOLLOWED, &tips.join(" "), engine.now()).await
}

/// Returns the ids of the commits that the store knows.
pub(crate) async fn known(project: &OpenProject) -> Result<HashSet<Sha>> {
    let known = project.store.known_commits(&project.scope).await?;
    Ok(known.iter().filter_map(|sha| sha.parse().ok()).collect())
}
