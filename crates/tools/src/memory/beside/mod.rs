//! What stands beside a memory: the conversations and commits linked to it, and similar memories.

pub mod behind;
pub mod linked;
pub mod near;
