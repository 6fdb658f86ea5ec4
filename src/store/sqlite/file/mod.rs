//! The file itself: where it is, its schema, the connections that read it, copies of it.

pub(super) mod backup;
pub(super) mod migrate;
pub(super) mod place;
pub(super) mod readers;
