//! Reads memories and sessions.

mod behind;
pub(crate) mod conditions;
mod context_parts;
pub(crate) mod conversations;
pub(crate) mod find;
pub(crate) mod memories;
pub(crate) mod messages;
mod references;
pub(crate) mod sessions;
mod stats;
mod timeline;
