//! Backups. A backup is a file of SQLite, which every engine restores: what the reader sees of a store, as it is at one
//! moment.

mod backup;
mod restore;
