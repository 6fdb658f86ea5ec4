//! Receives what changed on the server.

use super::arriving::{Models, ready};
use super::connection::{Connection, Place, Progress};
use crate::engine::Engine;
use crate::project::WritableProject;
use tiro_base::error::Result;
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::AuthorId;
use tiro_store::{MergeOutcome, MergeRights};
use tiro_sync::Trouble;
use tiro_sync::line::{self, Misread};
use tiro_sync::page::Unreadable;
use tiro_sync::remote::Remote;

/// What was received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Got {
    /// How many memories are new here.
    pub added: usize,
    /// How many memories have a new state here.
    pub changed: usize,
    /// How many changes were known already.
    pub known: usize,
    /// The ids, on the way, of memories that have another text here. Both texts stay where they are.
    pub conflicts: Vec<MemoryId>,
    /// How many changes were left out because this version doesn't understand them.
    pub later: usize,
    /// How many changes were left out because they are malformed, their time is in the future, or they are of memories of the
    /// user that this machine never sends.
    pub malformed: usize,
}

/// What receiving needs.
pub(super) struct Receiver<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// The project.
    pub project: &'a WritableProject,
    /// The requests to the server.
    pub remote: &'a Remote,
    /// The connection.
    pub connection: &'a Connection,
    /// Its files.
    pub place: &'a Place,
    /// The kinds of memories that are shared in the project.
    pub shared: Vec<Kind>,
}

impl Receiver<'_> {
    /// Receives everything that changed since the last time. If the server turns out to be an older copy, begins with the
    /// first change, and so does the next sending.
    pub(super) async fn receive(&self, progress: &mut Progress, got: &mut Got) -> Result<()> {
        let mut is_older = false;
        loop {
            let wanted = progress.wanted(self.connection);
            let page = self.remote.pull(wanted, progress.received, line::read).await;
            let page = page.map_err(|trouble| trouble.error(self.remote.server()))?;
            let malformed = || Err(Trouble::Page(Unreadable::Other).error(self.remote.server()));
            if progress.count(page.end.before, page.end.next != progress.received) {
                self.place.keep(progress)?;
                if std::mem::replace(&mut is_older, true) {
                    return malformed();
                }
                continue;
            }
            // A page that leads nowhere would be asked for without end.
            if page.end.more && (page.end.next <= progress.received || page.lines.is_empty()) {
                return malformed();
            }
            if page.lines.iter().any(|line| matches!(line, Err(Misread::Later))) {
                progress.ground.puzzled = Some(env!("CARGO_PKG_VERSION").to_owned());
            }
            self.merge(&progress.device(), page.lines, got).await?;
            if progress.received != page.end.next {
                progress.received = page.end.next;
                self.place.keep(progress)?;
            }
            if !page.end.more {
                return Ok(());
            }
        }
    }

    /// Returns whether a line is of something that this machine never sends.
    fn is_private(&self, arrived: &line::Arrived) -> bool {
        let is_own = arrived.author.as_str() == self.connection.user;
        is_own && !self.connection.is_private && !self.shared.contains(&arrived.kind)
    }

    async fn merge(
        &self,
        device: &str,
        lines: Vec<Result<line::Arrived, Misread>>,
        got: &mut Got,
    ) -> Result<()> {
        let (engine, now) = (self.engine, self.engine.now());
        let (models, redactor) = (Models::of(engine), self.project.redactor.clone());
        let shared = self.project.scope.project.shared();
        let mut taken = Vec::with_capacity(lines.len());
        for line in lines {
            match line {
                Ok(arrived) if arrived.state.is_ahead(now) || self.is_private(&arrived) => got.malformed += 1,
                Ok(arrived) => taken.push(arrived),
                Err(Misread::Later) => got.later += 1,
                Err(Misread::Malformed | Misread::TooLong) => got.malformed += 1,
            }
        }
        if taken.is_empty() {
            return Ok(());
        }
        // Redacting and counting long texts takes seconds.
        let prepare =
            move || taken.into_iter().map(|it| ready(&redactor, models, it, shared, now)).collect::<Vec<_>>();
        let prepared = tokio::task::spawn_blocking(prepare).await;
        let incoming = prepared.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        let (store, scope) = (self.project.store.as_ref(), &self.project.scope);
        let name = AuthorId::new(&self.connection.user);
        let ids: Vec<MemoryId> = incoming.iter().map(|each| each.id.clone()).collect();
        let outcomes =
            store.merge_changes(scope, Some(&name), device, MergeRights::ALL, incoming, now).await?;
        for (outcome, id) in outcomes.into_iter().zip(ids) {
            match outcome {
                MergeOutcome::Stored => got.added += 1,
                MergeOutcome::Changed => got.changed += 1,
                MergeOutcome::Known | MergeOutcome::Remembered | MergeOutcome::Purged => got.known += 1,
                MergeOutcome::Conflict => got.conflicts.push(id),
                MergeOutcome::Refused => got.malformed += 1,
            }
        }
        if got.added + got.changed > 0 {
            engine.wrote();
        }
        Ok(())
    }
}
