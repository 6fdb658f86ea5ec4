//! Promises about the exchange of memories with another store.

pub mod converging;
mod giving;
mod merging;
pub mod peer;

pub use giving::*;
pub use merging::*;
