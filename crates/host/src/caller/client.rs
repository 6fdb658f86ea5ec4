//! The client that serves the caller's model: how much of an answer it shows, and which session it runs.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::Caller;
use crate::engine::Engine;
use crate::project::OpenProject;
use tiro_base::memory::Millis;
use tiro_base::scope::{Scope, SessionId, Sessions};
use tiro_capture::clients::Client;
use tiro_capture::spool::running;
use tiro_intake::session_id;

/// The maximum number of tokens of an answer for Copilot CLI. Copilot CLI puts an answer of more than about 20 KB into
/// a file and shows its model only the beginning. English text has at most 5.5 bytes per token.
const MOST_IN_COPILOT: usize = 3500;

impl Caller {
    /// Returns the maximum number of tokens of an answer that the caller's client shows its model. No answer may be
    /// longer.
    pub fn most_tokens(&self) -> usize {
        self.state.most_tokens.load(Ordering::Relaxed)
    }

    /// Notes at the time `now` that the client calls itself `name`, and how much of an answer this client shows. If
    /// Tiro doesn't know the hooks of this client, nothing else is noted.
    pub fn met_client(&self, name: &str, now: Millis) {
        let name = name.to_lowercase();
        self.state.most_tokens.store(most_tokens(&name), Ordering::Relaxed);
        let met = Client::introduced(&name).map(|client| (client, running::ancestors(), now));
        *self.state.client.lock().unwrap_or_else(PoisonError::into_inner) = met;
    }

    /// Returns the session that the caller's client runs now, if a hook of this client reported it. A search leaves out
    /// the messages of this session, because the model still has them. Returns `None` if `scope` names sessions.
    pub fn running_session(
        &self,
        engine: &Engine,
        project: &OpenProject,
        scope: &Scope,
    ) -> Option<SessionId> {
        if scope.sessions != Sessions::All {
            return None;
        }
        let met = self.state.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (client, ancestors, since) = met?;
        let name = engine.spool(project).running(client.word(), &ancestors, since)?;
        session_id(&project.redactor, "session", &name).ok()
    }
}

/// Returns the maximum number of tokens of an answer that the client called `name` shows its model.
pub fn most_tokens(name: &str) -> usize {
    if name.to_lowercase().contains("copilot") { MOST_IN_COPILOT } else { usize::MAX }
}
