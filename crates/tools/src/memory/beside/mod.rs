//! What stands beside a memory: the conversations and commits linked to it, similar memories, and what
//! replaced it.

pub mod behind;
pub mod linked;
pub mod near;
pub mod replaced;
