//! A caller who may change what is stored.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError};

use super::toolset::Toolsets;
use super::{Caller, CallerState, Form};
use crate::config::Config;
use crate::engine::{Engine, PATIENCE_OF_CLOSING};
use crate::principals::{Principal, Rights};
use crate::project::WritableProject;
use tiro_base::error::Result;
use tiro_base::scope::{ProjectId, TenantId};
use tiro_store::Savings;

/// A caller whose operations may change the store. Operations that only read take a [`Caller`], which can't return a
/// project for writing. So the compiler guarantees that they write nothing.
pub struct WritingCaller {
    reading: Caller,
}

impl Deref for WritingCaller {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.reading
    }
}

impl WritingCaller {
    /// Returns the caller for the user who started the process, with all tools. The caller's directory is the directory
    /// that the user named, or if none is named, the working directory.
    pub fn of_process(config: &Config) -> WritingCaller {
        let named = config.project.clone();
        let directory = named.or_else(|| config.current_dir.clone());
        WritingCaller::new(config.owner.clone(), directory, config.is_project_named)
    }

    /// Returns a caller with the same owner and another directory. `is_named` says whether the user named that
    /// directory as the project.
    pub fn in_directory(&self, directory: &Path, is_named: bool) -> WritingCaller {
        WritingCaller::new(self.reading.state.owner.clone(), Some(directory.to_owned()), is_named)
    }

    /// Returns a caller with the same owner and the registered project `id`, which has no directory on this machine.
    pub fn in_registered(&self, id: &ProjectId) -> WritingCaller {
        let mut state = CallerState::new(self.reading.state.owner.clone(), None, false);
        state.registered = Some(id.clone());
        WritingCaller { reading: Caller { state: Arc::new(state) } }
    }

    /// Returns a caller who uses this caller's open project as `principal`, with the principal's rights in this project,
    /// if it is shared with the principal. The client shows its model at most `most_tokens` of an answer. Without
    /// `principal`, it is the owner.
    pub fn joined_by(
        &self,
        principal: Option<(&Principal, Option<&Rights>)>,
        most_tokens: usize,
    ) -> WritingCaller {
        let origin = &self.reading.state;
        let mut state = CallerState::new(origin.owner.clone(), origin.directory.clone(), origin.is_named);
        if let Some((principal, rights)) = principal {
            (state.author, state.access) = (principal.author.clone(), Some(principal.access));
            state.rights = rights.cloned();
        }
        state.origin = Some(self.reading.clone());
        state.toolsets = origin.toolsets.clone();
        state.form = origin.form;
        state.most_tokens = AtomicUsize::new(most_tokens);
        WritingCaller { reading: Caller { state: Arc::new(state) } }
    }

    /// Returns `caller` with the right to write.
    pub(super) fn of(caller: &Caller) -> WritingCaller {
        WritingCaller { reading: caller.clone() }
    }

    fn new(owner: TenantId, directory: Option<PathBuf>, is_named: bool) -> WritingCaller {
        WritingCaller { reading: Caller { state: Arc::new(CallerState::new(owner, directory, is_named)) } }
    }

    /// Returns the caller restricted to the tools of `toolsets`. The caller must not have been used yet.
    pub fn with_toolsets(mut self, toolsets: Toolsets) -> WritingCaller {
        let state = Arc::get_mut(&mut self.reading.state).expect("nothing has used the caller yet");
        state.toolsets = toolsets;
        self
    }

    /// Returns the caller with the form in which they read answers. The caller must not have been used yet.
    pub fn with_form(mut self, form: Form) -> WritingCaller {
        let state = Arc::get_mut(&mut self.reading.state).expect("nothing has used the caller yet");
        state.form = form;
        self
    }

    /// Returns the project that [`Caller::project`] returns, for a call that changes existing memories. No store is
    /// created for a project without a store.
    ///
    /// Fails as [`Caller::project`] does.
    pub async fn writable_project(&self, engine: &Engine) -> Result<Arc<WritableProject>> {
        Ok(self.reading.found(engine).await?.project)
    }

    /// Returns the caller's project for writing. This is like [`WritingCaller::writable_project`], but creates the project's store
    /// if there is none. A repository that was deleted and cloned again is another project.
    ///
    /// Fails as [`Caller::project`] does.
    pub async fn begin_project(&self, engine: &Engine) -> Result<Arc<WritableProject>> {
        Ok(self.reading.begin(engine).await?.project)
    }

    /// Returns the project if a call has already opened it, and the disk still has the same project.
    pub fn opened_project(&self, engine: &Engine) -> Option<Arc<WritableProject>> {
        let last = self.reading.shared().project.last();
        let found = last.filter(|found| found.holds(engine.config(), self.named()))?;
        Some(self.reading.seen(found).project)
    }

    /// Closes the project's store. Calls that still use the store fail. The last process that closes the store moves
    /// the write-ahead log into the database file.
    pub fn close(&self) {
        if let Some(found) = self.reading.shared().project.last() {
            found.project.store.close(PATIENCE_OF_CLOSING);
        }
    }

    /// If a call has opened the project, stores the counts that are not stored yet.
    pub async fn keep_measurements(&self, engine: &Engine) -> Result<()> {
        let Some(project) = self.opened_project(engine) else { return Ok(()) };
        let measured = std::mem::take(
            &mut *self.reading.shared().measured.lock().unwrap_or_else(PoisonError::into_inner),
        );
        let saved =
            std::mem::take(&mut *self.reading.shared().saved.lock().unwrap_or_else(PoisonError::into_inner));
        match measured.is_empty() && saved == Savings::default() {
            true => Ok(()),
            false => project.store.measure(&project.scope, measured, saved).await,
        }
    }
}
