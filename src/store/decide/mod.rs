//! What a store decides, apart from how it keeps things: functions from values to values.
//!
//! An engine reads what a decision needs, asks here, and writes what was decided, all in one transaction. Another engine asks
//! the same functions, so that both decide alike.

pub mod leases;
pub mod queue;
pub mod retention;
pub mod spending;
pub mod stale;
