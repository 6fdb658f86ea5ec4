//! Reads memories, messages and sessions.

pub(super) mod behind;
pub(super) mod conditions;
mod context_parts;
pub(super) mod memories;
pub(super) mod parts;
mod references;
pub(super) mod segments;
pub(super) mod sessions;
pub(super) mod stats;
mod timeline;
