//! Sends what changed here to the server.

use std::collections::BTreeMap;

use super::connection::{Connection, Place, Progress};
use crate::project::WritableProject;
use tiro_base::error::{Error, Result};
use tiro_base::memory::Kind;
use tiro_base::scope::AuthorId;
use tiro_store::{Change, WantedChanges};
use tiro_sync::line::{self, Vectors};
use tiro_sync::page::{End, LARGEST_SENT, Packer};
use tiro_sync::remote::{Remote, Wanted};

/// How many changes are read from the store at once. Arbitrary.
const BATCH: usize = 200;

/// The most different reasons of refusals that are told.
const MOST_REASONS: usize = 5;

/// What was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// How many memories are new on the server.
    pub added: usize,
    /// How many memories have a new state there.
    pub changed: usize,
    /// How many changes the server knew already.
    pub known: usize,
    /// How many memories have another text on the server. Both texts stay where they are.
    pub conflicts: usize,
    /// How many changes the server refused, by the reason.
    pub refused: BTreeMap<String, usize>,
    /// How many memories are too long to be sent.
    pub too_long: usize,
}

impl Sent {
    /// Returns how many changes were refused.
    pub fn refusals(&self) -> usize {
        self.refused.values().sum()
    }

    fn refuse(&mut self, why: Option<String>) {
        let why = why.unwrap_or_else(|| "the server doesn't say why".to_owned());
        let is_new = !self.refused.contains_key(&why);
        let why = if is_new && self.refused.len() >= MOST_REASONS { "other reasons".to_owned() } else { why };
        *self.refused.entry(why).or_default() += 1;
    }
}

/// What sending needs.
pub(super) struct Sender<'a> {
    /// The project.
    pub project: &'a WritableProject,
    /// The requests to the server.
    pub remote: &'a Remote,
    /// The connection.
    pub connection: &'a Connection,
    /// Its files.
    pub place: &'a Place,
    /// The kinds of memories to send.
    pub kinds: Vec<Kind>,
}

impl Sender<'_> {
    /// Sends everything that changed since the last time.
    pub(super) async fn send(&self, progress: &mut Progress, sent: &mut Sent) -> Result<()> {
        let name = AuthorId::new(&self.connection.user);
        let peer = Some(self.connection.device.clone());
        let wanted = WantedChanges { kinds: self.kinds.clone(), peer, with_private: true };
        if wanted.kinds.is_empty() {
            return Ok(());
        }
        let (store, scope) = (self.project.store.as_ref(), &self.project.scope);
        loop {
            let changes = store.changes(scope, Some(&name), &wanted, progress.sent, BATCH).await?;
            let mut page = Packer::default();
            let mut last = progress.sent;
            for change in &changes.changes {
                let Some(line) = self.line(change) else {
                    sent.too_long += 1;
                    continue;
                };
                if !page.fits(line.len()) {
                    let full = std::mem::take(&mut page);
                    self.push(full, sent, last).await?;
                    progress.sent = last;
                    self.place.keep(progress)?;
                }
                page.add(&line);
                last = change.number;
            }
            if page.lines() > 0 {
                self.push(page, sent, changes.next).await?;
            }
            if progress.sent != changes.next {
                progress.sent = changes.next;
                self.place.keep(progress)?;
            }
            if changes.is_last {
                return Ok(());
            }
        }
    }

    /// Returns the line of a change, without vectors if it is too long with them. Returns `None` if it is too long
    /// without them, too.
    fn line(&self, change: &Change) -> Option<String> {
        let fits = |line: &String| {
            // Most lines are far shorter than what a server takes, even if they can't be compressed.
            line.len() < LARGEST_SENT / 2 || {
                let mut page = Packer::default();
                page.add(line);
                page.finish(End::default()).len() <= LARGEST_SENT
            }
        };
        let written = |vectors| Some(line::write(change, vectors)).filter(|line| fits(line));
        written(Vectors::Kept).or_else(|| written(Vectors::LeftOut))
    }

    async fn push(&self, page: Packer, sent: &mut Sent, next: i64) -> Result<()> {
        let lines = page.lines();
        let page = page.finish(End { next, more: false });
        let connection = self.connection;
        let wanted = Wanted {
            project: &connection.project,
            device: &connection.device,
            private: connection.is_private,
        };
        let received = self.remote.push(wanted, page, lines).await;
        let received = received.map_err(|trouble| -> Error { trouble.error(self.remote.server()) })?;
        for became in received.outcomes {
            match became.outcome.as_str() {
                "stored" => sent.added += 1,
                "changed" => sent.changed += 1,
                "known" => sent.known += 1,
                "conflict" => sent.conflicts += 1,
                _ => sent.refuse(became.why),
            }
        }
        Ok(())
    }
}
