//! Machines that wait for what others share: each is answered when there is something that it may see and doesn't have, or
//! after a while with "nothing".
//!
//! A machine that waits takes a connection and a place among those that wait, but no thread, no connection to the
//! database, and none of its user's calls. Each look for changes begins with the key and the rights, so who lost them
//! learns nothing more. If the client goes away, this future is dropped.

use std::time::Duration;

use axum::http::request::Parts;
use axum::response::Response;
use tokio::time::Instant;

use super::Http;
use super::door::Refusal;
use super::sync::json;
use crate::web::peer::Peer;
use tiro_host::exchange::serve::Look;
use tiro_host::principals::Principal;
use tiro_sync::greeting::Waited;
use tiro_sync::remote::LONGEST_WAIT;

/// The time between two looks for the same machine. Changes come in groups.
const PAUSE: Duration = Duration::from_secs(1);

impl Http {
    /// Answers a machine that waits for changes of the project with the id `project`.
    pub(super) async fn wait(
        &self,
        peer: &Peer,
        principal: Option<Principal>,
        project: &str,
        parts: &Parts,
    ) -> Result<Response, Refusal> {
        let _place = self.door.admit_wait(principal.as_ref())?;
        let mut is_ending = self.is_ending.subscribe();
        let changed = tokio::select! {
            changed = self.changed(peer, principal, project, parts) => changed.map(|()| true)?,
            () = tokio::time::sleep(LONGEST_WAIT) => false,
            // The sender lives as long as `self`.
            _ = is_ending.wait_for(|is_ending| *is_ending) => false,
        };
        Ok(json(&Waited { changed }))
    }

    /// Returns as soon as there are changes that the principal may see and doesn't have.
    async fn changed(
        &self,
        peer: &Peer,
        mut principal: Option<Principal>,
        project: &str,
        parts: &Parts,
    ) -> Result<(), Refusal> {
        loop {
            let next = match self.desk.look(&self.callers, principal, project, parts).await? {
                Look::Changed => return Ok(()),
                Look::Nothing(next) => next,
            };
            let looked = Instant::now();
            next.await;
            tokio::time::sleep_until(looked + PAUSE).await;
            principal = self.door.readmit(peer, &parts.headers, self.engine.now()).await?;
        }
    }
}
