//! What the data have for the exchange with other stores.

use tiro_base::memory::{Kind, MemoryId, Millis};
use tiro_base::scope::AuthorId;
use tiro_store::ExchangedState;
use tiro_store::clock::Clock;
use tiro_store::decide::exchange::Stamp;

/// What a memory has for the exchange with other stores.
#[derive(Clone, Debug, Default)]
pub struct Exchanged {
    /// The number of its last change.
    pub changed: i64,
    /// The peer whose change that was.
    pub by: Option<String>,
    /// When it was marked last.
    pub marked_at: Stamp,
    /// When it was forgotten or restored last.
    pub forgotten_at: Stamp,
    /// The id under which it travels; `None` while that is its own.
    pub id: Option<MemoryId>,
}

/// A memory that is not here: it was purged, or only its state came from a peer.
#[derive(Clone, Debug)]
pub struct Absent {
    /// Its kind.
    pub kind: Kind,
    /// Who said it.
    pub author: AuthorId,
    /// Its state.
    pub state: ExchangedState,
    /// The number of its last change.
    pub changed: i64,
    /// The peer whose change that was.
    pub by: Option<String>,
    /// The id under which it travels; `None` while that is its own.
    pub travelling: Option<MemoryId>,
}

/// Returns the time of the machine.
pub fn time() -> Millis {
    Clock::default().now()
}
