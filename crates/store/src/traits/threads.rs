//! Reads and records threads with assistants.

use std::collections::HashMap;

use async_trait::async_trait;

use crate::{Exchange, Recorded, Reset, ResetDone, ThreadRow, TurnRecord, TurnRow};
use tiro_base::error::Result;
use tiro_base::scope::{Scope, SessionId};
use tiro_base::thread::{ContentHash, Thread, ThreadName};

/// Reads threads with assistants.
#[async_trait]
pub trait ReadThreads: Send + Sync {
    /// Returns the thread with the blocks of its current epoch and their texts; `None` if nothing was recorded. `name`
    /// may contain an alias of the session.
    ///
    /// A message that was forgotten has no text until it is restored, and a purged message has no block. A text that
    /// was removed to save space is `None`.
    async fn thread(&self, scope: &Scope, name: &ThreadName) -> Result<Option<Thread>>;

    /// Returns the copies of files that the assistant has, by path. A path without a copy is left out: the file is not
    /// inline, or its copy was removed to save space.
    ///
    /// Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if there is no such thread.
    async fn copies(
        &self,
        scope: &Scope,
        name: &ThreadName,
        paths: Vec<String>,
    ) -> Result<HashMap<String, String>>;

    /// Returns the turn that the call `call_id` recorded in the thread; `None` if there is none.
    async fn turn_by_call(&self, scope: &Scope, name: &ThreadName, call_id: &str) -> Result<Option<TurnRow>>;

    /// Returns up to `limit` turns of the thread in all its epochs, the latest first.
    async fn turns(&self, scope: &Scope, name: &ThreadName, limit: usize) -> Result<Vec<TurnRow>>;

    /// Returns the threads of the scope, the thread with the latest turn first. If `session` is given, only the threads
    /// of this session are returned.
    async fn threads(&self, scope: &Scope, session: Option<&SessionId>) -> Result<Vec<ThreadRow>>;

    /// Returns exchanges that the thread's session had with other assistants. Only exchanges that were recorded after
    /// the thread's last turn are considered, and the last `limit` of them are returned, the earliest first. The order
    /// is the order of recording, so wrong clocks have no influence. An exchange is left out if its question or its
    /// answer was forgotten.
    async fn other_exchanges(&self, scope: &Scope, name: &ThreadName, limit: usize) -> Result<Vec<Exchange>>;

    /// Returns the numbers of tokens of the contents with these hashes. Contents without a stored count are left out.
    async fn token_counts(&self, scope: &Scope, hashes: &[ContentHash]) -> Result<HashMap<ContentHash, u32>>;
}

/// Records threads with assistants.
#[async_trait]
pub trait WriteThreads: Send + Sync {
    /// Records a turn in one transaction: its memories, its blocks, the changes of the ledger, the texts and the turn
    /// itself. If any part fails, nothing is kept.
    ///
    /// The first turn makes the thread, and its session if there is none. If the session is named by an alias, the
    /// memories are stored under its name. The first turn of an epoch removes the blocks of the earlier epochs. If the
    /// texts of the owner are then still larger than allowed, the texts of the least recently used threads are removed.
    ///
    /// Errors with [`Kind::Busy`](tiro_base::error::Kind::Busy) if the thread has another number of turns or another
    /// epoch than expected, because another call recorded a turn or reset the thread. Errors with
    /// [`Kind::BadInput`](tiro_base::error::Kind::BadInput) if the call was recorded already, if the ledger has a file
    /// as inline that no block of the epoch has, or if another text is stored under the id of the question or the
    /// answer. Errors with [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if the scope doesn't have the session,
    /// or if a message that the turn names is not a living memory.
    async fn record_turn(&self, scope: &Scope, name: &ThreadName, turn: TurnRecord) -> Result<Recorded>;

    /// Removes the files of a thread, or the whole thread. Returns how many files, blocks and turns were removed.
    ///
    /// If only the files are removed, the thread begins a new epoch. The exchanges so far and the context stay, the
    /// ledger is empty, and the places of files are no longer fixed. A turn whose prompt was made before the reset is
    /// refused. The messages of a removed thread stay memories. Errors with
    /// [`Kind::NotFound`](tiro_base::error::Kind::NotFound) if the scope has no such thread.
    async fn reset_thread(&self, scope: &Scope, name: &ThreadName, what: Reset) -> Result<ResetDone>;
}
