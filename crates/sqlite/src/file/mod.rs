//! The database file: its place, its schema, its reading connections, and copies of it.

pub(super) mod backup;
pub(super) mod connect;
pub(super) mod counts;
pub(super) mod damage;
pub(super) mod migrate;
pub(super) mod readers;
pub(super) mod rows;
pub(super) mod store_file;
pub(super) mod sums;
pub(super) mod verify;
mod whole_copy;
