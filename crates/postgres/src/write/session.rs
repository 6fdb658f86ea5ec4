//! The state of a session while memories are written to it.

use super::turns::index_turns;
use crate::error::Result;
use crate::owners::SessionRef;
use crate::transactions::Transaction;
use tiro_base::scope::SessionId;
use tiro_store::tuning::NEIGHBOURS;

/// The state of a session while a batch is written to it.
pub(crate) struct OpenSession {
    owner: i64,
    pub(super) seq: i64,
    next_ordinal: i64,
    /// The new messages: their ordinals, which rise.
    new: Vec<i64>,
    pub(super) branch: Option<String>,
    pub(super) head: Option<String>,
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
            branch: None,
            head: None,
        })
    }

    /// Returns the ordinal of a new message: the next one, or `wanted` if that is greater.
    pub(super) fn next(&mut self, wanted: Option<i64>) -> i64 {
        let gap = wanted.and_then(|wanted| wanted.checked_sub(self.next_ordinal));
        if gap.is_some_and(|gap| (1..=WIDEST_GAP).contains(&gap)) {
            self.next_ordinal += gap.unwrap_or_default();
        }
        let ordinal = self.next_ordinal;
        self.new.push(ordinal);
        self.next_ordinal += 1;
        ordinal
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
            index_turns(tx, session, first - NEIGHBOURS..last + 1, *first).await?;
        }
        Ok(())
    }
}
