//! The state of a session while memories are written to it.

use std::collections::BTreeSet;

use super::turns::{index_neighbours, index_turns, reached_before};
use crate::error::Result;
use crate::owners::SessionRef;
use crate::transactions::Transaction;
use tiro_base::scope::SessionId;

/// The state of a session while a batch is written to it.
pub(crate) struct OpenSession {
    owner: i64,
    pub(super) seq: i64,
    next_ordinal: i64,
    /// The new messages: their ordinals, which rise.
    new: Vec<i64>,
    /// The ordinals of new messages between older ones.
    between: BTreeSet<i64>,
    pub(super) branch: Option<String>,
    pub(super) head: Option<String>,
}

/// The place of a new message in its session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// After all others.
    Next,
    /// After all others, and not before the place with this ordinal, which it had in a backup.
    After(i64),
    /// The place with this ordinal, which it has in another store; after all others if another message has that place.
    At(i64),
}

/// The maximum number of ordinals that a restored message may skip. Skipped ordinals belong to purged messages.
/// Arbitrary: a gap costs nothing, but a backup must not be able to use up all ordinals.
const WIDEST_GAP: i64 = 1_000_000;

impl OpenSession {
    /// Opens the session called `name` in a part, and makes it if there is none.
    pub(crate) async fn open(tx: &Transaction, owner: i64, name: &SessionId) -> Result<OpenSession> {
        tx.execute(
            "INSERT INTO sessions (owner, name) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            &[&owner, &name.as_str()],
        )
        .await?;
        // The ordinal of a purged message isn't used again, so that a range of ordinals always means the same messages.
        let row = tx
            .only(
                "SELECT seq, last + 1 FROM sessions WHERE owner = $1 AND name = $2",
                &[&owner, &name.as_str()],
            )
            .await?;
        Ok(OpenSession {
            owner,
            seq: row.get(0),
            next_ordinal: row.get(1),
            new: Vec::new(),
            between: BTreeSet::new(),
            branch: None,
            head: None,
        })
    }

    /// Returns the ordinal of a new message.
    pub(super) async fn next(&mut self, tx: &Transaction, wanted: Wanted) -> Result<i64> {
        if let Wanted::After(least) | Wanted::At(least) = wanted {
            let gap = least.checked_sub(self.next_ordinal);
            self.next_ordinal += gap.filter(|gap| (1..=WIDEST_GAP).contains(gap)).unwrap_or_default();
        }
        if let Wanted::At(place) = wanted
            && (0..self.next_ordinal).contains(&place)
            && self.is_free(tx, place).await?
        {
            self.between.insert(place);
            return Ok(place);
        }
        let ordinal = self.next_ordinal;
        self.new.push(ordinal);
        self.next_ordinal += 1;
        Ok(ordinal)
    }

    /// Returns whether no message has this ordinal.
    async fn is_free(&self, tx: &Transaction, ordinal: i64) -> Result<bool> {
        let is_taken = "SELECT FROM memories WHERE owner = $1 AND session = $2 AND ordinal = $3";
        let is_new = self.new.binary_search(&ordinal).is_ok() || self.between.contains(&ordinal);
        Ok(!is_new && !tx.exists(is_taken, &[&self.owner, &self.seq, &ordinal]).await?)
    }

    /// Stores the branch and commit of the session, and indexes its new messages. The messages just before the new ones
    /// are indexed again, because the new messages are now part of their context.
    pub(crate) async fn close(&self, tx: &Transaction) -> Result<()> {
        if self.branch.is_some() || self.head.is_some() {
            tx.execute(
                "UPDATE sessions SET branch = coalesce($3, branch), head_sha = coalesce($4, head_sha)
                 WHERE owner = $1 AND seq = $2",
                &[&self.owner, &self.seq, &self.branch, &self.head],
            )
            .await?;
        }
        if let (Some(first), Some(last)) = (self.new.first(), self.new.last()) {
            let session = SessionRef { owner: self.owner, seq: self.seq };
            let from = reached_before(tx, session, *first).await?;
            index_turns(tx, session, from..last + 1, *first).await?;
        }
        if !self.between.is_empty() {
            let ordinals: Vec<i64> = self.between.iter().copied().collect();
            let (owners, seqs) = (vec![self.owner; ordinals.len()], vec![self.seq; ordinals.len()]);
            tx.execute("SELECT messages_changed($1, $2, $3)", &[&owners, &seqs, &ordinals]).await?;
            let places = ordinals.iter().map(|ordinal| (self.owner, self.seq, *ordinal)).collect();
            index_neighbours(tx, &places).await?;
        }
        Ok(())
    }
}
