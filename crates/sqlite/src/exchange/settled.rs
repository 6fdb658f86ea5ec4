//! The states that a merge gives to memories.

use tiro_store::ExchangedState;

/// The states that a call gives to memories that are here, in order, each with whether it is the peer's.
#[derive(Default)]
pub(super) struct Settled(pub Vec<(i64, ExchangedState, bool)>);

impl Settled {
    /// Returns the state that the memory in a row gets, if it gets one.
    pub fn state(&self, seq: i64) -> Option<ExchangedState> {
        self.0.iter().rev().find(|(settled, ..)| *settled == seq).map(|(_, state, _)| *state)
    }

    /// Sets the state that the memory in a row gets.
    pub fn set(&mut self, seq: i64, state: ExchangedState, is_of_peer: bool) {
        self.0.retain(|(settled, ..)| *settled != seq);
        self.0.push((seq, state, is_of_peer));
    }
}
