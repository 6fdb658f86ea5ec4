//! Exchanges memories with another store.

use crate::MemoryStore;
use tiro_base::error::{Error, Kind, Result};
use tiro_base::memory::Millis;
use tiro_base::scope::{AuthorId, Scope};
use tiro_store::{Changes, Incoming, MergeOutcome, MergeRights, WantedChanges};

impl MemoryStore {
    pub(crate) async fn changes(
        &self,
        _scope: &Scope,
        _name: Option<&AuthorId>,
        _wanted: &WantedChanges,
        _after: i64,
        _limit: usize,
    ) -> Result<Changes> {
        Err(Error::new(Kind::Store, "this store can't exchange memories yet"))
    }

    pub(crate) async fn merge_changes(
        &self,
        _scope: &Scope,
        _name: Option<&AuthorId>,
        _peer: &str,
        _rights: MergeRights,
        _incoming: Vec<Incoming>,
        _now: Millis,
    ) -> Result<Vec<MergeOutcome>> {
        Err(Error::new(Kind::Store, "this store can't exchange memories yet"))
    }
}
