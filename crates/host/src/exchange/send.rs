//! Sends what changed here to the server.

use std::collections::BTreeMap;

use super::connection::{Connection, Place, Progress};
use crate::project::WritableProject;
use tiro_base::error::{Error, Result};
use tiro_base::memory::{Kind, MemoryId};
use tiro_base::scope::AuthorId;
use tiro_store::{Change, Changes, WantedChanges};
use tiro_sync::line::{self, Vectors};
use tiro_sync::page::{End, LARGEST_SENT, Packer};
use tiro_sync::remote::Remote;

/// How many changes are read from the store at once. Arbitrary.
const BATCH: usize = 500;

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
    /// The ids, on the way, of memories that have another text on the server. Both texts stay where they are.
    pub conflicts: Vec<MemoryId>,
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

/// A page that is ready to be sent.
struct Page {
    bytes: Vec<u8>,
    ids: Vec<MemoryId>,
    /// Everything up to this number is sent once the page is.
    reaches: i64,
}

/// The next changes as pages.
struct Packed {
    pages: Vec<Page>,
    too_long: usize,
    next: i64,
    is_last: bool,
}

impl Sender<'_> {
    /// Sends everything that changed since the last time.
    pub(super) async fn send(&self, progress: &mut Progress, sent: &mut Sent) -> Result<()> {
        if self.kinds.is_empty() {
            return Ok(());
        }
        if self.send_once(progress, sent).await? {
            self.send_once(progress, sent).await?;
        }
        Ok(())
    }

    /// Sends everything that changed since the last time, or until the server turns out to be an older copy. Returns whether
    /// it is one. While the server works on some changes, the next ones are read.
    async fn send_once(&self, progress: &mut Progress, sent: &mut Sent) -> Result<bool> {
        let device = progress.device();
        let mut packed = self.packed(&device, progress.sent).await?;
        loop {
            let Packed { pages, too_long, next, is_last } = packed;
            sent.too_long += too_long;
            let ahead = async {
                match is_last {
                    true => Ok(None),
                    false => self.packed(&device, next).await.map(Some),
                }
            };
            let push = async {
                for page in pages {
                    let before = self.push(progress, page.bytes, page.ids, sent).await?;
                    progress.sent = page.reaches;
                    let is_older = progress.count(before, true);
                    self.place.keep(progress)?;
                    if is_older {
                        return Ok(true);
                    }
                }
                Ok::<bool, Error>(false)
            };
            let (is_older, ahead) = tokio::join!(push, ahead);
            if is_older? {
                return Ok(true);
            }
            if progress.sent != next {
                progress.sent = next;
                self.place.keep(progress)?;
            }
            match ahead? {
                Some(ahead) => packed = ahead,
                None => return Ok(false),
            }
        }
    }

    /// Reads the changes after the number `after` that didn't come from the server, and packs them into pages.
    async fn packed(&self, device: &str, after: i64) -> Result<Packed> {
        let name = AuthorId::new(&self.connection.user);
        let peer = Some(device.to_owned());
        let wanted = WantedChanges { kinds: self.kinds.clone(), peer, with_private: true };
        let (store, scope) = (self.project.store.as_ref(), &self.project.scope);
        let changes = store.changes(scope, Some(&name), &wanted, after, BATCH).await?;
        // Compressing takes some milliseconds.
        let packed = tokio::task::spawn_blocking(move || pack(&changes, after)).await;
        Ok(packed.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())))
    }

    /// Sends a page. Returns how many pages the server had exchanged before.
    async fn push(
        &self,
        progress: &Progress,
        page: Vec<u8>,
        ids: Vec<MemoryId>,
        sent: &mut Sent,
    ) -> Result<Option<u64>> {
        let received = self.remote.push(progress.wanted(self.connection), page, ids.len()).await;
        let received = received.map_err(|trouble| -> Error { trouble.error(self.remote.server()) })?;
        for (became, id) in received.outcomes.into_iter().zip(ids) {
            match became.outcome.as_str() {
                "stored" => sent.added += 1,
                "changed" => sent.changed += 1,
                "known" => sent.known += 1,
                "conflict" => sent.conflicts.push(id),
                _ => sent.refuse(became.why),
            }
        }
        Ok(received.before)
    }
}

/// Packs changes after the number `after` into pages.
fn pack(changes: &Changes, after: i64) -> Packed {
    let (mut pages, mut page, mut last, mut too_long) = (Vec::new(), Packer::default(), after, 0);
    let mut ids = Vec::new();
    let finished = |page: Packer, ids: &mut Vec<MemoryId>, reaches: i64| Page {
        bytes: page.finish(End { next: reaches, ..End::default() }),
        ids: std::mem::take(ids),
        reaches,
    };
    for change in &changes.changes {
        let Some(line) = line_of(change) else {
            too_long += 1;
            continue;
        };
        if !page.fits(line.len()) {
            pages.push(finished(std::mem::take(&mut page), &mut ids, last));
        }
        page.add(&line);
        ids.push(change.id.clone());
        last = change.number;
    }
    if page.lines() > 0 {
        pages.push(finished(page, &mut ids, changes.next));
    }
    Packed { pages, too_long, next: changes.next, is_last: changes.is_last }
}

/// Returns the line of a change, without vectors if it is too long with them. Returns `None` if it is too long without
/// them, too.
fn line_of(change: &Change) -> Option<String> {
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
