//! The decisions of a store as pure functions, kept separate from SQL.
//!
//! An engine reads the values that a decision needs, calls a function of this module, and writes the result. All this
//! happens in one transaction. Every engine calls the same functions, so all engines make the same decisions.

pub mod clock;
pub mod context;
pub mod exchange;
pub mod keys;
pub mod leases;
pub mod queue;
pub mod retention;
pub mod scope;
pub mod spending;
pub mod stale;
pub mod words;
